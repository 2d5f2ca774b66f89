"""An answer as every renderer sees it: keys, numbers with their intervals, and the notes below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from privet.planner.outputs import Cells
from privet.release.render import periods
from privet.release.render.numerals import numerals
from privet.tables.query import Query
from privet.tables.types import KeyValue, Unit


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers: with intervals around the value or between two ends, or public, without any."""

    name: str
    cells: Cells
    around: bool
    public: bool = False
    level: bool = False
    """Whether it is a mean, a ratio or the like, drawn as a dot, and not an amount, drawn as a bar from zero."""

    plain: bool = False
    """Whether it has no interval of its own: it is an end of one or of bounds, or is computed from such ends."""

    ranked: bool = False
    """Whether it is a quantile, a minimum or a maximum."""

    def texts(self, group: int) -> tuple[str, str]:
        """The value and the interval of one group."""
        cells = self.cells
        value, interval = numerals(cells.values[group], cells.low[group], cells.high[group], around=self.around)
        if self.public or self.plain:
            interval = "(public)" if self.public else ""
        return f"~{value}" if marks(cells)[group] else value, interval


def marks(cells: Cells) -> Sequence[bool]:
    """Which cells are marked as noisy: with `~` in print, and drawn lighter."""
    return cells.noisy


@dataclass(frozen=True, slots=True)
class Keys:
    """A column of keys: one for each group."""

    name: str
    values: Sequence[KeyValue | None]
    unit: Unit | None = None
    """What dates were cut to, if they were."""
    total: str = periods.TOTAL
    """What is shown where the key is added up."""

    @property
    def numeric(self) -> bool:
        known = [value for value in self.values if value is not None]
        return bool(known) and type(known[0]) is int

    def texts(self) -> list[str]:
        """Keys as texts: 2024, 2024 Q3, May 2024, or a date in ISO form."""
        return periods.texts(self.values, self.unit, self.total)


@dataclass(frozen=True, slots=True)
class View:
    """What is shown of an answer: released values and public facts alone."""

    query: Query
    keys: Sequence[Keys]
    columns: Sequence[Column]
    notes: Sequence[str] = ()
    """What the numbers mean and cost."""

    @property
    def groups(self) -> int:
        """How many groups are shown."""
        return len(self.columns[0].cells.values if self.columns else self.keys[0].values)


def levels(query: Query) -> set[str]:
    """The columns that are not amounts: means, ratios and spreads, for which a bar from zero would say nothing."""
    columns = query.columns()
    return {column for name, what in query.aggregates if not what.is_amount for column in columns[name]}


def joined(parts: Sequence[Cells]) -> Cells:
    """The cells of several columns, one after the other: a histogram is one column for each of its bins."""
    return Cells(*(tuple(x for part in parts for x in getattr(part, each.name)) for each in fields(Cells)))
