"""Which measurements answer a query, and how the budget is shared between them.

Measurements are shared: one vector can give the count, sum, mean and variance of a column. Errors are compared in units
of one person's largest effect, relative to a measurement of its own at full price; a query's error is its worst one.
If measurement i must answer something with relative error c_i (times its weight), the best shares of epsilon are
proportional to c_i, and the worst error is then the sum of all c_i. A rho buys an error that falls with its root: the
best shares of rho are proportional to c_i^2, and the worst error is the root of their sum. The design with the least
worst error is taken. All of it is public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from privet.exact import Exact
from privet.exact.lattice import Bounds
from privet.mechanisms import NoiseMechanism
from privet.planner.columns import Columns
from privet.planner.measurements import Measurement
from privet.planner.outputs import Output
from privet.planner.ranks import RankMeasurement
from privet.planner.vectors import Vectors, asked
from privet.tables.aggregates import (
    Count,
    OfValues,
)
from privet.tables.expressions.nodes import Node
from privet.tables.operators import keeps_all_rows, tables
from privet.tables.query import Query

_TRIED = 8
"""Maximum columns to try as the one whose vector gives the row count."""


@dataclass(frozen=True, slots=True)
class Design:
    """The measurements, the relative error of each, and the outputs computed from them."""

    measurements: tuple[Measurement | RankMeasurement, ...]
    errors: tuple[Exact, ...]
    columns: tuple[tuple[str, Output], ...]
    reason: str
    """Why this design: for people to read."""
    power: int
    """How the error falls as the price grows: with the price itself (1), or with its root (2)."""

    @property
    def shares(self) -> tuple[Exact, ...]:
        """The share of the price of each measurement; together 1."""
        whole = self.worst
        return tuple(error**self.power / whole for error in self.errors)

    @property
    def worst(self) -> Exact:
        """The worst relative error, to the power; the smaller, the better."""
        return sum((error**self.power for error in self.errors), Exact(0))


def designs(query: Query, weights: Mapping[str, Exact], mechanism: NoiseMechanism) -> list[Design]:
    """All candidate designs: the row count measured separately, or from the vector of a column."""
    rows = _fixed_rows(query)
    served: list[Node | None] = [None]
    if rows is None and _counts_rows(query):  # any of the first few is as good as any other
        served += _summed(query)[:_TRIED]
    lattices: dict[tuple[Node, bool], Bounds] = {}
    return [_design(query, weights, Vectors(query, rows, of, lattices, mechanism)) for of in served]


def _design(query: Query, weights: Mapping[str, Exact], vectors: Vectors) -> Design:
    columns = Columns(query, weights, vectors).outputs()
    measured = zip(vectors.measurements, vectors.errors, strict=True)
    errors = tuple(error * vectors.stretch(each) for each, error in measured)
    price = "epsilon" if vectors.power == 1 else "rho"
    reason = f"Each measurement gets the share of {price} that minimizes the worst error of the answer."
    return Design(tuple(vectors.measurements), errors, columns, reason, vectors.power)


def best(candidates: Sequence[Design]) -> Design:
    """The design with the smallest worst relative error."""
    best = min(candidates, key=lambda d: d.worst)
    if len(candidates) == 1:
        return best
    own, other = candidates[0], min(candidates[1:], key=lambda d: d.worst)
    price = "epsilon" if best.power == 1 else "rho"
    reason = (
        f"Worst error, relative to measuring each statistic alone with the full {price}: "
        f"{_two(own)} with a separate row count, {_two(other)} with the count from a column's vector. "
        "Privet uses the smaller."
    )
    return replace(best, reason=reason)


def _two(design: Design) -> str:
    return f"{float(design.worst) ** (1 / design.power):.2f}"


def _fixed_rows(query: Query) -> int | None:
    """The public number of rows, if the query uses every row."""
    table = tables(query.input)[0]
    return table.rows if not query.keys and keeps_all_rows(query.input) else None


def _counts_rows(query: Query) -> bool:
    types = query.input.types()
    counts = [part.expression for part in asked(query) if isinstance(part, Count)]
    return any(of is None or not of.type(types).missing for of in counts)


def _summed(query: Query) -> list[Node]:
    return list(dict.fromkeys(p.expression for p in asked(query) if isinstance(p, OfValues)))
