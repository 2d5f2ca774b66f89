"""The report of an import to the steward."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from privet.exact import show
from privet.sources.csv.dialect import shown
from privet.sources.csv.hints import Hint
from privet.system.files import Swept
from privet.tables.schema import Column
from privet.tables.types import KeyType, NumberType, TimeType


@dataclass(frozen=True, slots=True)
class Persons:
    """The people in a file, by id."""

    count: int
    over: int | None
    """The number of people with more rows than the cap, if there is one."""
    left_out: int | None
    """The number of rows over the cap; answers do not use them."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was imported, and what was bad. For the steward only: it describes individual rows."""

    csv: str
    parquet: str
    rows: int
    columns: tuple[str, ...]
    missing: Mapping[str, int]
    """The number of missing values in each column, including bad ones."""
    bad_values: Mapping[str, int]
    """The number of values in each column that did not convert."""
    outside: Mapping[str, int]
    """The number of values outside of the declared bounds or keys, for each column that has some."""
    bad_rows: int
    empty_lines: int
    id: str | None
    max_rows: int | None
    persons: Persons | None
    examples: tuple[str, ...] = field(repr=False)
    """The first bad rows and values: where they are, and what is wrong."""
    hints: tuple[Hint, ...] = field(default=(), repr=False)
    declared: Mapping[str, Column] = field(default_factory=dict, repr=False)
    unlisted: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """The most frequent values of each column with declared keys that are none of them."""
    alike: Mapping[str, int] = field(default_factory=dict)
    """The number of ids that differ from another only in surrounding spaces, capital letters or forms of a letter
    (NFKC); without an id, the number of such values in each text column."""
    swept: Swept = field(default=Swept(0, ()), repr=False)
    """Files that interrupted imports to the same place had left."""

    def __str__(self) -> str:
        return self.text()

    def text(self, *, flags: bool = False) -> str:
        """The report as text; with `flags` it proposes options of the command line instead of Python."""
        width = max(map(len, self.columns))
        columns = (f"{name:<{width}}  {self._column(name)}" for name in self.columns)
        head = (
            f"{self.csv} -> {self.parquet}",
            "For the steward only: this report describes individual rows.",
            f"{self.rows:,} rows, {self.bad_rows:,} bad; {self.empty_lines:,} empty lines skipped",
        )
        lines = [*head, *(f"  {line}" for line in (*columns, *self.examples))]
        lines += [line for line in (self._persons(), *self._alike(), str(self.swept)) if line]
        return "\n".join((*lines, *(hint.text(flags=flags) for hint in self.hints)))

    def _column(self, name: str) -> str:
        counts = f"{self.missing[name]:,} missing, {self.bad_values[name]:,} bad"
        if not self.outside.get(name):
            return counts
        kind, count = self.declared[name].type, f"{self.outside[name]:,}"
        match kind:
            case NumberType():
                bounds = f"{show(kind.lower)}..{show(kind.upper)}"
                return f"{counts}, {count} outside {bounds} (clamped in answers, in no group)"
            case TimeType():
                return f"{counts}, {count} outside {kind.first}..{kind.last} (clamped in answers, in no group)"
            case KeyType():
                some = ", ".join(shown(key) for key in self.unlisted.get(name, ()))
                effect = "left out of groups" if kind.other is None else f"counted as {kind.other}"
                return f"{counts}, {count} not among the keys{f', such as {some}' if some else ''} ({effect})"
            case _:
                return counts

    def _persons(self) -> str:
        if self.persons is None or self.id is None:
            return ""
        people = f"People: {self.persons.count:,} by {self.id}"
        left = [f"{self.missing[self.id]:,} without {self.id}"] if self.missing[self.id] else []
        if self.persons.over is not None and self.max_rows is not None:
            over = f"{self.persons.over:,}" if self.persons.over else "none"
            people += f", {over} with more than {self.max_rows:,} row{'s' * (self.max_rows > 1)}"
            left = [f"{self.persons.left_out:,} over this cap"] * bool(self.persons.left_out) + left
        return f"{people}. Rows left out of an answer: {', '.join(left)}." if left else f"{people}."

    def _alike(self) -> list[str]:
        if self.id is not None:
            what, then = "id", ". Each counts as a separate person; correct the file if they are the same."
        else:
            what, then = "value", "."
        return [
            f"{name}: {count:,} {what}{'s' * (count > 1)} differ{'s' * (count == 1)} from another only in spaces, "
            f"capital letters or forms of a letter{then}"
            for name, count in self.alike.items()
        ]
