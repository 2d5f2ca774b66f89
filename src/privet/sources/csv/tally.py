"""Counts during an import: for the report to the steward, and for the decision whether to accept the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from privet.sources.csv import hints, parsing
from privet.sources.csv.blocks import Texts
from privet.sources.csv.casting import Cast
from privet.sources.csv.dialect import NOT_CLOSED, shown
from privet.sources.csv.hints import Hint, Option, Refused
from privet.sources.csv.notation import Notation
from privet.sources.csv.report import ImportReport, Persons
from privet.sources.readings import Reading
from privet.tables.schema import Column
from privet.tables.types import KeyType

SHOWN = 20
"""Maximum bad rows and values in a report; equal ones count once."""

_EACH = 3
"""Maximum bad values of one column in a report."""

_LINES = 3
"""Maximum lines to list for equal ones."""

_STRAYS = 3
"""Maximum texts to show of a column that contains none of its keys."""

_DIFFERENT = 10_000
"""Maximum distinct bad texts to remember per column."""


@dataclass(slots=True)
class Tally:
    """The counts so far."""

    kinds: Mapping[str, Reading]
    declared: Mapping[str, Column]
    notation: Notation
    newlines: bool = False
    rows: int = 0
    bad_rows: int = 0
    empty_lines: int = 0
    not_text: bool = False
    missing: Counter[str] = field(default_factory=Counter)
    outside: Counter[str] = field(default_factory=Counter)
    bad: dict[str, Counter[str]] = field(default_factory=dict)
    """The bad texts of each column; the empty text counts those that are not remembered."""
    kept: dict[str, Counter[str]] = field(default_factory=dict)
    """The texts that were kept and may mean a missing value."""
    places: dict[str, list[int]] = field(default_factory=dict)
    """The first lines of each problem, by its message."""
    often: Counter[str] = field(default_factory=Counter)
    """The number of occurrences of each problem."""
    told: dict[str, list[str]] = field(default_factory=dict)
    """The problems of each column that are told; bad rows are under the empty name."""
    unlisted: dict[str, Counter[str]] = field(default_factory=dict)
    """The values of each column with declared keys that are none of them."""
    strays: dict[str, dict[str, None]] = field(default_factory=dict)
    """The first texts of each column with declared keys, until one of them is a key."""

    @property
    def examples(self) -> tuple[str, ...]:
        """The first bad rows and values, equal ones together: where they are, and what is wrong."""
        named = [f"{_lines(lines, self.often[why])}: {why}" for why, lines in self.places.items()]
        for name, texts in self.bad.items():
            more = sum(texts.values()) - sum(self.often[why] for why in self.told.get(name, ()))
            if more:
                named.append(f"{name}: {_count(more, 'more bad value')}")
        return tuple(named)

    def add(self, texts: Texts, casts: Mapping[str, Cast], beyond: Mapping[str, int], kept: Mapping[str, Any]) -> None:
        """Count some more rows."""
        self.rows += len(texts.lines)
        self.bad_rows += len(texts.bad)
        self.empty_lines += texts.empty
        self.not_text = self.not_text or any(row.not_text for row in texts.bad)
        lines_by_problem: dict[str, list[int]] = {}
        for row in texts.bad:
            lines_by_problem.setdefault(row.why, []).append(row.line)
        often = Counter({why: len(lines) for why, lines in lines_by_problem.items()})
        column_of = dict.fromkeys(lines_by_problem, "")
        for name, cast in casts.items():
            self.missing[name] += cast.values.null_count
            self.outside[name] += beyond[name]
            self.kept.setdefault(name, Counter()).update(kept[name])
            if len(cast.bad):
                bad_texts = texts.columns[name].take(cast.bad)
                self._remember(name, bad_texts)
                expected = parsing.expected(self.kinds[name], self.notation.date(name))
                for text, first, count in _different(bad_texts):
                    why = f"{name}: {shown(text)} is not {expected}"
                    column_of[why] = name
                    lines_by_problem.setdefault(why, []).extend(int(texts.lines[cast.bad[place]]) for place in first)
                    often[why] += count
            if isinstance(getattr(self.declared.get(name), "type", None), KeyType):
                self._stray(name, cast.values, beyond[name])
                self._note_unlisted(name, cast.values, beyond[name])
        for why, lines in sorted(lines_by_problem.items(), key=lambda each: each[1][0]):
            told = self.told.setdefault(column_of[why], [])
            few = len(told) < (_EACH if column_of[why] else SHOWN)
            if why in self.places or (few and len(self.places) < SHOWN):
                if why not in self.places:
                    told.append(why)
                shown_lines = self.places.setdefault(why, [])
                shown_lines += lines[: _LINES - len(shown_lines)]
                self.often[why] += often[why]

    def _stray(self, name: str, values: Any, beyond: int) -> None:
        """Remember some values, if none so far is a key."""
        seen = self.strays.setdefault(name, {})
        if beyond == len(values) - values.null_count and len(seen) < _STRAYS:
            for value in values.drop_null()[:_DIFFERENT].unique()[:_STRAYS].to_pylist():
                seen[shown(str(value))] = None

    def _note_unlisted(self, name: str, values: Any, beyond: int) -> None:
        """Count the values that are none of the keys."""
        counts, kind = self.unlisted.setdefault(name, Counter()), self.declared[name].type
        assert isinstance(kind, KeyType)
        keys = {*kind.keys()}
        for each in values.value_counts().to_pylist() if beyond and len(counts) < _DIFFERENT else ():
            value = each["values"]
            if value is not None and value not in keys and (value in counts or len(counts) < _DIFFERENT):
                counts[value] += each["counts"]

    def _remember(self, name: str, texts: Any) -> None:
        counts = self.bad.setdefault(name, Counter())
        for each in texts.value_counts().to_pylist():
            text, count = each["values"], each["counts"]
            counts[text if text in counts or len(counts) < _DIFFERENT else ""] += count

    def judge(self, csv: str, bad_rows: str, bad_values: str, allowed: Sequence[str]) -> None:
        """Refuse the whole file if it has problems that are not allowed."""
        values = sum(sum(texts.values()) for texts in self.bad.values())
        rows_fail, values_fail = self.bad_rows and bad_rows == "fail", values and bad_values == "fail"
        if rows_fail or values_fail:
            what = (
                f"{csv!r} was not imported, and nothing was written: {_count(self.bad_rows, 'bad row')}, "
                f"{_count(values, 'bad value')}. For the steward only, the first of them:"
            )
            options = tuple(
                Option(name, "missing") for name, n in (("bad_rows", rows_fail), ("bad_values", values_fail)) if n
            )
            last = Hint(
                "Fix the file, or read them all as missing",
                (options,),
                "Fix the file, change the declaration, or read them all as missing",
            )
            raise Refused(what, self.examples, (*self._hints(), last))
        empty = [name for name in self.kinds if self.rows and self.missing[name] == self.rows and name not in allowed]
        if empty:
            what = (
                f"{csv!r} was not imported, and nothing was written: {', '.join(empty)} would be missing in every row"
            )
            last = Hint("If that is right", (tuple(Option("allow_missing", name) for name in empty),))
            raise Refused(f"{what}.", self.examples, (*self._hints(), last))
        unlisted = [name for name in self.strays if name not in allowed and self._unlisted(name)]
        if unlisted:
            what = (
                f"{csv!r} was not imported, and nothing was written: no value of {', '.join(unlisted)} is among the "
                "declared keys. For the steward only, the first of them:"
            )
            last = Hint(
                "Declare the keys as the file writes them. Or, if this is right",
                (tuple(Option("allow_missing", name) for name in unlisted),),
            )
            raise Refused(what, tuple(self._compared(name) for name in unlisted), (last,))

    def _unlisted(self, name: str) -> bool:
        """Whether a column has values, and none of them is one of its keys."""
        return 0 < self.outside[name] == self.rows - self.missing[name]

    def _compared(self, name: str) -> str:
        """Some values of a column, and some of its keys."""
        kind = self.declared[name].type
        assert isinstance(kind, KeyType)
        keys = ", ".join(shown(str(key)) for key in kind.values[:_STRAYS])
        more = f" and {len(kind.values) - _STRAYS:,} more" if len(kind.values) > _STRAYS else ""
        return f"{name}: {', '.join([*self.strays[name]][:_STRAYS])}. Declared: {keys}{more}"

    def _hints(self) -> list[Hint]:
        """Hints that may help: encodings, missing values, notations."""
        proposals = []
        if self.not_text:
            question = "Some bytes are not text in this encoding. If the file comes from Windows or from Excel"
            proposals.append(Hint(question, ((Option("encoding", "cp1252"),),)))
        if not self.newlines and any(why.startswith(NOT_CLOSED) for why in self.often):
            question = "If quoted fields contain line breaks, their rows go on in the next lines. Then"
            proposals.append(Hint(question, ((Option("newlines", "True"),),)))
        proposals += hints.markers(self.bad)
        for name, texts in self.bad.items():
            proposals += hints.readings(name, self.kinds[name], [text for text in texts if text], self.notation)
        return proposals

    def report(
        self,
        csv: str,
        parquet: str,
        *,
        id: str | None,  # noqa: A002
        max_rows: int | None,
        persons: Persons | None,
    ) -> ImportReport:
        """The report to the steward."""
        return ImportReport(
            csv=csv,
            parquet=parquet,
            rows=self.rows,
            columns=tuple(self.kinds),
            missing={name: self.missing[name] for name in self.kinds},
            bad_values={name: sum(self.bad.get(name, Counter()).values()) for name in self.kinds},
            outside={name: self.outside[name] for name in self.kinds if self.outside[name]},
            bad_rows=self.bad_rows,
            empty_lines=self.empty_lines,
            id=id,
            max_rows=max_rows,
            persons=persons,
            examples=self.examples,
            hints=(*hints.keys_kept(self.notation), *hints.markers(self.kept, kept=True)),
            declared=self.declared,
            unlisted={name: tuple(str(key) for key, _ in n.most_common(_EACH)) for name, n in self.unlisted.items()},
        )


def _different(texts: Any) -> list[tuple[str, list[int], int]]:
    """The first distinct texts, each with its first positions and its number of occurrences."""
    encoded = texts.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    texts_seen = []
    for code, text in enumerate(encoded.dictionary[:SHOWN].to_pylist()):
        places = (codes == code).nonzero()[0]
        texts_seen.append((text, places[:_LINES].tolist(), len(places)))
    return texts_seen


def _lines(first: Sequence[int], count: int) -> str:
    """The first lines, and the number of further ones.

    Example:
        >>> _lines([2], 1), _lines([2, 5], 2), _lines([2, 5, 9], 1207)
        ('line 2', 'lines 2 and 5', 'lines 2, 5, 9 and 1,204 more')
    """
    (*named, last) = [
        *(f"{line:,}" for line in first),
        *([f"{count - len(first):,} more"] if count > len(first) else []),
    ]
    return f"lines {', '.join(named)} and {last}" if named else f"line {last}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
