"""What an import tells the steward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from privet.exact import show
from privet.sources.hints import Hint
from privet.system.files import Swept
from privet.tables.schema import Column
from privet.tables.types import KeyType, NumberType, TimeType


@dataclass(frozen=True, slots=True)
class Persons:
    """Whose rows they are, by the id."""

    count: int
    over: int | None
    """How many persons have more rows than the cap, if there is one."""
    left_out: int | None
    """How many rows are over the cap: they take no part in an answer."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was imported, and what was bad. For the steward only: it describes individual rows."""

    csv: str
    parquet: str
    rows: int
    columns: tuple[str, ...]
    missing: Mapping[str, int]
    """How many values of each column are missing, bad ones included."""
    bad_values: Mapping[str, int]
    """How many values of each column did not convert."""
    outside: Mapping[str, int]
    """How many values are outside of the declared bounds or keys, for each column that has some."""
    bad_rows: int
    empty_lines: int
    id: str | None
    max_rows: int | None
    persons: Persons | None
    examples: tuple[str, ...] = field(repr=False)
    """The first bad rows and values: where, and what is wrong."""
    hints: tuple[Hint, ...] = field(default=(), repr=False)
    declared: Mapping[str, Column] = field(default_factory=dict, repr=False)
    alike: Mapping[str, int] = field(default_factory=dict)
    """How many ids equal another but for spaces around them, capital letters or forms of a letter (NFKC); without an
    id, the values of each column of texts."""
    swept: Swept = field(default=Swept(0, ()), repr=False)
    """What interrupted imports to the same place had left."""

    def __str__(self) -> str:
        return self.text()

    def text(self, *, flags: bool = False) -> str:
        """The report as a text; with `flags` it proposes options of the command line, not of Python."""
        width = max(map(len, self.columns))
        told = (f"{name:<{width}}  {self._column(name)}" for name in self.columns)
        head = (
            f"{self.csv} -> {self.parquet}",
            "For the steward only: this report describes individual rows.",
            f"{self.rows:,} rows, {self.bad_rows:,} bad; {self.empty_lines:,} empty lines skipped",
        )
        lines = [*head, *(f"  {line}" for line in (*told, *self.examples))]
        lines += [line for line in (self._persons(), *self._alike(), str(self.swept)) if line]
        return "\n".join((*lines, *(hint.text(flags=flags) for hint in self.hints)))

    def _column(self, name: str) -> str:
        told = f"{self.missing[name]:,} missing, {self.bad_values[name]:,} bad"
        if not self.outside.get(name):
            return told
        kind, count = self.declared[name].type, f"{self.outside[name]:,}"
        match kind:
            case NumberType():
                return (
                    f"{told}, {count} outside {show(kind.lower)}..{show(kind.upper)} (clamped in answers, in no group)"
                )
            case TimeType():
                return f"{told}, {count} outside {kind.first}..{kind.last} (clamped in answers, in no group)"
            case KeyType(other=None):
                return f"{told}, {count} not among the keys (left out of groups)"
            case KeyType():
                return f"{told}, {count} not among the keys (counted as {kind.other})"
            case _:
                return told

    def _persons(self) -> str:
        if self.persons is None or self.id is None:
            return ""
        told = f"Persons: {self.persons.count:,} by {self.id}"
        left = [f"{self.missing[self.id]:,} without {self.id}"] if self.missing[self.id] else []
        if self.persons.over is not None and self.max_rows is not None:
            over = f"{self.persons.over:,}" if self.persons.over else "none"
            told += f", {over} with more than {self.max_rows:,} row{'s' * (self.max_rows > 1)}"
            left = [f"{self.persons.left_out:,} over this cap"] * bool(self.persons.left_out) + left
        return f"{told}. Rows left out of an answer: {', '.join(left)}." if left else f"{told}."

    def _alike(self) -> list[str]:
        if self.id is not None:
            what, then = "id", ". Each counts as a person of its own: correct the file if they are the same."
        else:
            what, then = "value", "."
        return [
            f"{name}: {count:,} different {what}{'s' * (count > 1)} equal{'s' * (count == 1)} another but for spaces, "
            f"capital letters or forms of a letter{then}"
            for name, count in self.alike.items()
        ]
