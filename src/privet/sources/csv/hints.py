"""Hints to the steward: texts of a CSV that did not convert, and the option with which they would.

Nothing here is applied automatically: the steward decides what the texts mean.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from privet.errors import Face, SourceError
from privet.sources.csv import parsing
from privet.sources.csv.date_formats import DateFormat
from privet.sources.csv.dialect import shown
from privet.sources.csv.notation import Notation
from privet.sources.readings import Reading

MARKERS = frozenset(
    (
        *("NA", "N/A", "n/a", "na", "NaN", "nan", "NULL", "Null", "null", "None", "none", "NIL", "nil", "(null)"),
        *("-", "--", "---", ".", "?", "\\N", "#N/A", "#NA", "missing", "MISSING", "Missing"),
    )
)
"""Texts that often mean a missing value."""

_DAYS = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%Y-%m-%d"),
    *("%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y"),
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}([^0-9][0-9]{3})+", re.ASCII)
_LOOKED_AT = 1_000
_CURRENCIES = "$€£¥₹"
_MARKS = ((",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "\u00a0"), (",", "\u202f"))
_WORDS = {"ja": "nein", "oui": "non", "si": "no", "sí": "no", "sim": "não", "on": "off", "wahr": "falsch",
          "vrai": "faux", "verdadero": "falso", "да": "нет", "tak": "nie", "igen": "nem", "evet": "hayır"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Option:
    """An argument of `import_csv` and of `privet import`, its value, and its column if it is about one."""

    name: str
    value: str
    column: str = ""

    def __str__(self) -> str:
        text = json.dumps(self.value, ensure_ascii=False)
        match self.name:
            case "missing" if self.column:
                return f'missing={{"": ["", {text}], {json.dumps(self.column, ensure_ascii=False)}: [{text}]}}'
            case "missing":
                return f'missing=["", {text}]'
            case "true" | "false" | "allow_missing":
                return f"{self.name}=[{text}]"
            case "newlines":
                return f"{self.name}=True"
            case "date_format":
                return f"date_format={{{json.dumps(self.column, ensure_ascii=False)}: {text}}}"
            case _:
                return f"{self.name}={text}"

    def flag(self) -> str:
        """The same on the command line.

        Example:
            >>> print(Option("date_format", "%d.%m.%Y", "born").flag(), Option("missing", "N/A").flag())
            --date-format born=%d.%m.%Y --missing N/A
        """
        if self.name == "newlines":
            return "--newlines"
        value = f"{self.column}={self.value}" if self.column else self.value.replace("\t", "tab")
        quoted = "','" if value == "," else shlex.quote(value)  # a comma in a sentence needs quotes to be seen
        return f"--{self.name.replace('_', '-')} {quoted}"


@dataclass(frozen=True, slots=True)
class Hint:
    """An observation, and the options to write for each possible meaning."""

    seen: str
    choices: tuple[tuple[Option, ...], ...]
    """Empty if there is no option; then `seen` says what to do."""
    typed: str = ""
    """The observation in the words of the command line, if they differ."""
    means: tuple[str, ...] = ()
    """What each choice would make of a text of the file, to tell them apart."""

    def text(self, *, flags: bool = False) -> str:
        """A line to show.

        Example:
            >>> Hint("If 'NA' means missing", ((Option("missing", "NA"),),)).text(flags=True)
            "If 'NA' means missing: --missing NA"
        """
        seen = self.typed if flags and self.typed else self.seen
        proposals = [
            (" " if flags else ", ").join(option.flag() if flags else str(option) for option in choice)
            for choice in self.choices
        ]
        if len(self.means) > 1:
            proposals = [f"{line} ({meaning})" for line, meaning in zip(proposals, self.means, strict=True)]
        return f"{seen}: {', or '.join(proposals)}" if proposals else seen


class Refused(SourceError):
    """A file was not imported: why, where, and hints in Python or as options of the command line."""

    def __init__(self, what: str, where: tuple[str, ...], hints: tuple[Hint, ...]) -> None:
        super().__init__(what)
        self.where, self.hints = where, hints

    def render(self, face: Face) -> str:
        """The whole message; in the terminal it proposes command-line options."""
        hints = (hint.text(flags=face == "terminal") for hint in self.hints)
        return "\n".join((self.what, *(f"  {line}" for line in self.where), *hints))


def markers(seen: Mapping[str, Mapping[str, int]], *, kept: bool = False) -> list[Hint]:
    """A hint for each text that may mean a missing value, with the columns that contain it."""
    columns_by_text: dict[str, dict[str, int]] = {}
    for column, texts in seen.items():
        for text in sorted(MARKERS & texts.keys()):
            columns_by_text.setdefault(text, {})[column] = texts[text]
    return [
        Hint(
            f"{shown(text)} is in {_list(columns)} ({_times(sum(columns.values()))})"
            f"{', and was kept as text' if kept else ''}. If it means missing",
            ((Option("missing", text),),),
        )
        for text, columns in columns_by_text.items()
    ]


def keys_kept(notation: Notation) -> list[Hint]:
    """A hint for each text that means missing elsewhere but is a key of a column, so it was kept there."""
    return [
        Hint(
            f"{shown(text)} is also a key of {column}, and stays one there. If it means missing there, too",
            ((Option("missing", text, column),),),
        )
        for column, texts in notation.own.items()
        for text in sorted(notation.missing - texts)
    ]


def readings(column: str, kind: Reading, texts: Iterable[str], notation: Notation) -> list[Hint]:
    """Options with which all bad texts of a column would parse, except those that may mean missing values.

    Example:
        >>> print(readings("pay", "number", ["1,5", "20,25"], Notation())[0].text())
        pay would parse with another separator: decimal=","
    """
    left = [text for text in texts if text not in MARKERS and text.strip()]
    if not left:
        return []
    if kind in ("date", "timestamp"):
        days = [day + time for time in _TIMES for day in _DAYS if _all(left, kind, notation, DateFormat(day + time))]
        choices = [(Option("date_format", each, column),) for each in days]
        return [_hint(f"the dates in {column!r} match this format", *choices)] if choices else _mixed(column, left)
    if kind in ("number", "integer", "key"):
        fitting: dict[str, str] = {}
        for decimal, thousands in _MARKS:
            if _all(left, kind, Notation(notation.missing, decimal, thousands)):
                fitting.setdefault(decimal, thousands)
        if all(_GROUPED.fullmatch(text.strip()) for text in left):  # more likely thousands than decimals
            fitting = dict(sorted(fitting.items(), key=lambda each: not each[1]))
        separators = [
            tuple(
                Option(name, mark)
                for name, mark in (("decimal", decimal), ("thousands", thousands))
                if mark != getattr(notation, name)
            )
            for decimal, thousands in fitting.items()
        ]
        if not separators and (sign := next((text[0] for text in left if text[0] in _CURRENCIES), None)):
            return [Hint(f"Amounts in {column} begin with {sign}. Remove the currency sign from the file.", ())]
        if not separators:
            return []
        means = tuple(
            f"{shown(left[0])} is {parsing.parse(left[:1], kind, Notation(notation.missing, *marks))[0][0]:.15g}"
            for marks in fitting.items()
        )
        return [Hint(f"{column} would parse with another separator", tuple(separators), means=means)]
    if kind == "boolean":
        return [_words(column, {text.strip().lower() for text in left})]
    return []


def _mixed(column: str, texts: list[str]) -> list[Hint]:
    """A hint that each of the texts fits some date format, but no format fits all of them."""
    forms = [DateFormat(day + time) for time in _TIMES for day in _DAYS]
    examples: dict[str, str] = {}
    for text in texts[:_LOOKED_AT]:
        fitting = [form.text for form in forms if form.read(text) is not None]
        if not fitting:
            return []
        if not {*fitting} & {*examples}:
            examples[fitting[0]] = text
    some = " and ".join(f"{shown(text)} ({form})" for form, text in [*examples.items()][:2])
    return [Hint(f"the dates in {column!r} have several formats, such as {some}. Use one format for all.", ())]


def _words(column: str, words: set[str]) -> Hint:
    pairs = [(yes, no) for yes, no in _WORDS.items() if {yes, no} & words and words <= {yes, no}]
    question = f"If you know which words of {column} mean true and false"
    return _hint(question, *((Option("true", yes), Option("false", no)) for yes, no in pairs or [("...", "...")]))


def _hint(seen: str, *choices: tuple[Option, ...]) -> Hint:
    return Hint(seen, tuple(choices))


def _all(texts: list[str], kind: Reading, notation: Notation, form: DateFormat | None = None) -> bool:
    return not parsing.parse(texts, kind, notation, form)[1]


def _list(columns: Iterable[str]) -> str:
    names = list(columns)
    return ", ".join(names[:5]) + (f" and {len(names) - 5} other columns" if len(names) > 5 else "")


def _times(count: int) -> str:
    return f"{count:,} time{'s' * (count != 1)}"
