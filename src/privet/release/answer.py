"""A release: the noisy integers, and the answer computed from them, which costs nothing more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privet.errors import InternalError, QueryError, UserError, install
from privet.exact import nearest
from privet.ledger import Remaining
from privet.planner import ReleasePlan, bounds, computed, finding
from privet.planner.outputs import Cell, Cells, Fixed, Straight
from privet.planner.rank_outputs import RankedCode
from privet.privacy.guarantees import Guarantee
from privet.privacy.guarantees.budgets import is_nothing
from privet.release import arranging
from privet.release.render import chart, frame, html, notes, periods, picture, style, text
from privet.release.render.view import Column, Keys, View, levels
from privet.system import files
from privet.tables.groups import Group
from privet.tables.types import KeyValue

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from matplotlib.figure import Figure

    from privet.release.render.style import Order


@dataclass(frozen=True, slots=True, repr=False)
class Release:
    """The answer to a query: a value and an interval for each group and column.

    Claim: everything but `spent`, `remaining` and `certificate` is a function of the plan and the noisy integers.
    """

    plan: ReleasePlan
    noisy: tuple[tuple[tuple[int, ...], ...], ...]
    """The noisy integers: by measurement, by group, by coordinate."""
    spent: Guarantee
    """The cost of this release."""
    remaining: Remaining | None
    """The budget that remains afterwards; None if unknown."""
    certificate: Any = field(compare=False)
    """The claim, to be checked by anyone."""
    cells: Mapping[str, Cells] | None = field(default=None, compare=False)
    """The columns computed from the noisy integers, for every group, shown or not."""
    _rows: tuple[int, ...] = field(init=False, compare=False)
    shown: Mapping[str, Cells] = field(init=False, compare=False)
    """The shown columns: the chosen groups in their order, without hidden columns."""

    def __post_init__(self) -> None:
        sizes = [[len(group) for group in part] for part in self.noisy]
        if sizes != [[part.measurement.size] * self.plan.groups_of(part) for part in self.plan.noised]:
            raise InternalError("the noisy integers are not those of this plan. This is a bug in Privet.")
        if self.cells is None:
            object.__setattr__(self, "cells", self.plan.cells(self.noisy))
        assert self.cells is not None
        query = self.plan.query
        rows = arranging.shown(self.plan, self.cells)
        every = rows == tuple(range(self.plan.groups))
        shown = {name: self.cells[name] if every else self.cells[name].at(rows) for name in query.shown()}
        object.__setattr__(self, "_rows", rows)
        object.__setattr__(self, "shown", shown)

    # --- columns --------------------------------------------------------------------------------

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns: keys first, then numbers."""
        return (*(key.name for key in self.plan.query.keys), *self.shown)

    @property
    def keys(self) -> list[Group]:
        """The keys of each group that is shown, in the order of the answer; without keys there is one group, ().

        On the coarser levels of a rollup or a cube, keys that are added up are None.
        """
        every = arranging.groups(self.plan.query)
        return [every[i] for i in self._rows]

    @property
    def confidence(self) -> float:
        """The confidence of the intervals: of each separately, or of all together if requested."""
        return nearest(self.plan.confidence)

    @property
    def limits(self) -> tuple[str, ...]:
        """Every cap and clamp that affects the answer, in words; intervals do not include their effect."""
        return self.plan.limits

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the answer, which is also its cost, whether paid now or before."""
        return self.plan.guarantee()

    @property
    def paid_before(self) -> bool:
        """Whether the answer was already stored, so that nothing was spent now."""
        return is_nothing(self.spent) and not is_nothing(self.guarantee)

    def values(self, column: str) -> list[Any]:
        """The values of a column: keys, integers for counts, floats for everything else."""
        for name, values in self.shown_keys():
            if name == column:
                return values
        return list(self._of(column).values)

    def interval(self, column: str) -> tuple[list[Cell], list[Cell]]:
        """The lower and the upper ends of a column's intervals; an end can be infinite."""
        cells = self._of(column)
        return list(cells.low), list(cells.high)

    def too_noisy(self, column: str) -> list[bool]:
        """Whether each value is too noisy to rely on: below twice its margin of error, or a mean of too few rows.

        A mean or a ratio is, if its numerator is, or if its denominator is less than four times its usual error. The
        mark is read from released numbers alone.
        """
        return list(self._of(column).noisy)

    def __len__(self) -> int:
        """The number of groups that are shown."""
        return len(self._rows)

    def _of(self, column: str) -> Cells:
        if column in self.shown:
            return self.shown[column]
        raise QueryError(
            f"the answer has no numeric column {column!r}", allowed=f"The columns are: {', '.join(self.shown)}"
        )

    def shown_keys(self) -> list[tuple[str, list[KeyValue | None]]]:
        keys = self.keys
        return [(key.name, [group[i] for group in keys]) for i, key in enumerate(self.plan.query.keys)]

    # --- frames ---------------------------------------------------------------------------------

    def to_arrow(self, intervals: bool = True) -> pa.Table:
        """A pyarrow table: each column `n` is followed by `n_low`, `n_high` and `n_noisy` (see `too_noisy`).

        Counts are int64, or, should one not fit, decimals of 38 digits, or floats. Without `intervals`, values only.
        The notes are in its metadata.
        """
        return frame.arrow(self, intervals=intervals)

    def to_pandas(self, intervals: bool = True) -> pd.DataFrame:
        """A pandas DataFrame, with the columns of `to_arrow`; `attrs["notes"]` are the notes."""
        try:
            import pandas  # noqa: F401
        except ImportError as error:
            raise UserError("to_pandas needs pandas", remedy=install("frames")) from error
        table: pd.DataFrame = self.to_arrow(intervals).to_pandas()
        table.attrs["notes"] = self.notes()
        return table

    def to_polars(self, intervals: bool = True) -> pl.DataFrame:
        """A Polars DataFrame, with the columns of `to_arrow`."""
        try:
            import polars as pl
        except ImportError as error:
            raise UserError("to_polars needs polars", remedy=install("frames")) from error
        return pl.DataFrame(self.to_arrow(intervals))

    def to_dicts(self, intervals: bool = True) -> list[dict[str, Any]]:
        """A dict for each group, with the columns of `to_arrow`."""
        rows: list[dict[str, Any]] = self.to_arrow(intervals).to_pylist()
        return rows

    def to_csv(self, path: str | Path | None = None, *, intervals: bool = True, notes: bool = True) -> str:
        """The columns of `to_arrow` as CSV text, written to a file if a path is given; one that exists is replaced.

        The notes come first, in lines that begin with #: `pandas.read_csv(path, comment="#")` skips them.
        """
        written = frame.csv(self, intervals=intervals, notes=notes)
        if path is not None:
            files.write(Path(path), written.encode(), overwrite=True)
        return written

    # --- to look at -----------------------------------------------------------------------------

    def __repr__(self) -> str:
        groups = f"{len(self)} group{'' if len(self) == 1 else 's'}"
        before = ", paid for before" if self.paid_before else ""
        return f"<Release of {self.plan.query}: {groups}, {self.guarantee}{before}>"

    def __str__(self) -> str:
        return text.text(self.view())

    def _repr_html_(self) -> str:
        return html.html(self.view())

    def notes(self) -> list[str]:
        """The meaning and the cost of the numbers, as shown below the table."""
        return list(self.view().notes)

    def view(self, *, drawn: bool = False) -> View:
        """The answer for renderers; if `drawn`, with the notes below a picture."""
        query = self.plan.query
        outputs, dots, units = dict(self.plan.columns), levels(query), style.units(query)
        formulas = dict(query.arrangement.computed)
        columns = [
            Column(
                name,
                cells,
                computed.linear(formulas[name], outputs) is not None
                if name in formulas
                else isinstance(outputs[name], Straight | Fixed),
                computed.is_public(self.plan, formulas[name]) if name in formulas else isinstance(outputs[name], Fixed),
                name in formulas or name in dots,
                computed.is_plain(self.plan, formulas[name]) if name in formulas else bounds.is_end(outputs[name]),
                isinstance(outputs.get(name), RankedCode),
            )
            for name, cells in self.shown.items()
        ]
        empty = [finding.nothing(self.plan)] if self.plan.discovery is not None and not self.plan.groups else []
        below = (
            empty
            + list(self.plan.conditions)
            + notes.notes(
                columns=columns,
                confidence=self.plan.confidence,
                simultaneous=self.plan.simultaneous,
                limits=self.limits,
                guarantee=self.guarantee,
                spent=self.spent,
                remaining=self.remaining,
                left_out=self.plan.groups - len(self),
                chosen_by_noise=self.plan.chosen_by_noise,
                drawn=drawn,
                part="batch" in getattr(self.certificate, "document", {}).get("ledger", {}),
                like=self.plan,
            )
        )
        keys = [
            Keys(name, values, units[name], periods.total(every))
            for (name, values), every in zip(self.shown_keys(), query.domains(), strict=True)
        ]
        return View(query, keys, columns, below)

    def chart(self, width: int = 100) -> str:
        """A text chart: bars, or dots for means, with their intervals; below, their meaning and cost."""
        return chart.chart(self.view(), width)

    def plot(
        self,
        column: str | None = None,
        path: str | Path | None = None,
        *,
        title: str | None = None,
        labels: Mapping[Any, str] | None = None,
        order: Order | None = None,
    ) -> Figure:
        """A picture of one column, or of all, each with its intervals; saved if a path is given.

        Counts and sums are bars, means are dots; what is noisy is hollow. `labels` are texts to show for
        columns and keys: `{"n": "People", "region": "Region of birth", "N": "North"}`. `order` is "ascending" or
        "descending", by value, or a list of keys; those that it does not name come after.
        """
        return picture.picture(self.view(drawn=True), column, style.Style(title, labels or {}, order), path)
