"""What an import has seen: for the report to the steward, and for the judgement whether the file is good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from privet.relation.schema import Column
from privet.sources import hints, parsing
from privet.sources.blocks import Texts
from privet.sources.casting import Cast
from privet.sources.dialect import shown
from privet.sources.hints import Hint, Option, Refused
from privet.sources.kinds import Kind
from privet.sources.notation import Notation
from privet.sources.report import ImportReport, Persons

SHOWN = 20
"""How many bad rows and values a report names."""

_DIFFERENT = 10_000
"""How many different bad texts of a column are remembered."""


@dataclass(slots=True)
class Tally:
    """What was seen so far."""

    kinds: Mapping[str, Kind]
    declared: Mapping[str, Column]
    notation: Notation
    rows: int = 0
    bad_rows: int = 0
    empty_lines: int = 0
    not_text: bool = False
    missing: Counter[str] = field(default_factory=Counter)
    outside: Counter[str] = field(default_factory=Counter)
    bad: dict[str, Counter[str]] = field(default_factory=dict)
    """The bad texts of each column; under the empty text, all that are not remembered."""
    kept: dict[str, Counter[str]] = field(default_factory=dict)
    """The texts that were kept and may mean a missing value."""
    examples: list[str] = field(default_factory=list)

    def add(self, texts: Texts, casts: Mapping[str, Cast], beyond: Mapping[str, int], kept: Mapping[str, Any]) -> None:
        """Some more rows."""
        self.rows += len(texts.lines)
        self.bad_rows += len(texts.bad)
        self.empty_lines += texts.empty
        self.not_text = self.not_text or any(row.not_text for row in texts.bad)
        told = [(row.line, row.why) for row in texts.bad[:SHOWN]]
        for name, cast in casts.items():
            self.missing[name] += cast.values.null_count
            self.outside[name] += beyond[name]
            self.kept.setdefault(name, Counter()).update(kept[name])
            if len(cast.bad):
                found = texts.columns[name].take(cast.bad)
                self._remember(name, found)
                for place, text in zip(cast.bad[:SHOWN], found[:SHOWN].to_pylist(), strict=True):
                    why = f"{name}: {shown(text)} is not {parsing.expected(self.kinds[name], self.notation.date(name))}"
                    told.append((int(texts.lines[place]), why))
        for line, why in sorted(told, key=lambda each: each[0])[: SHOWN - len(self.examples)]:
            self.examples.append(f"line {line:,}: {why}")

    def _remember(self, name: str, texts: Any) -> None:
        known = self.bad.setdefault(name, Counter())
        for each in texts.value_counts().to_pylist():
            text, count = each["values"], each["counts"]
            known[text if text in known or len(known) < _DIFFERENT else ""] += count

    def judge(self, csv: str, bad_rows: str, bad_values: str, allowed: Sequence[str]) -> None:
        """Refuse the whole file if something was bad that may not be."""
        values = sum(sum(texts.values()) for texts in self.bad.values())
        rows_fail, values_fail = self.bad_rows and bad_rows == "fail", values and bad_values == "fail"
        if rows_fail or values_fail:
            what = (
                f"{csv!r} was not imported, and nothing was written: {_count(self.bad_rows, 'bad row')}, "
                f"{_count(values, 'bad value')}. For the steward only, the first of them:"
            )
            taken = tuple(
                Option(name, "missing") for name, n in (("bad_rows", rows_fail), ("bad_values", values_fail)) if n
            )
            last = Hint("Fix the file, or read them all as missing", (taken,))
            raise Refused(what, tuple(self.examples), (*self._hints(), last))
        empty = [name for name in self.kinds if self.rows and self.missing[name] == self.rows and name not in allowed]
        if empty:
            what = (
                f"{csv!r} was not imported, and nothing was written: {', '.join(empty)} would be missing in every row"
            )
            last = Hint("If that is right", (tuple(Option("allow_missing", name) for name in empty),))
            raise Refused(f"{what}.", tuple(self.examples), (*self._hints(), last))

    def _hints(self) -> list[Hint]:
        """What may help: encodings, missing values, notations."""
        found = []
        if self.not_text:
            said = "Some bytes are not text in this encoding. If the file comes from Windows or from Excel"
            found.append(Hint(said, ((Option("encoding", "cp1252"),),)))
        found += hints.markers(self.bad)
        for name, texts in self.bad.items():
            found += hints.readings(name, self.kinds[name], [text for text in texts if text], self.notation)
        return [hint for hint in found if hint.choices]

    def report(
        self,
        csv: str,
        parquet: str,
        *,
        id: str | None,  # noqa: A002
        max_rows: int | None,
        persons: Persons | None,
    ) -> ImportReport:
        """What to tell the steward."""
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
            examples=tuple(self.examples),
            hints=(*hints.keys_kept(self.notation), *hints.markers(self.kept, kept=True)),
            declared=self.declared,
        )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
