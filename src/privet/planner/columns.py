"""The columns of an answer: how each aggregate is computed from the shared vectors, and the error that it claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from privet.errors import QueryError
from privet.exact import Exact
from privet.planner import measurements as m
from privet.planner import possible
from privet.planner.bounds import Found
from privet.planner.joining import Joint, joints
from privet.planner.linear import Linear
from privet.planner.outputs import Fixed, Output, Quotient, RankedCode, Spread, SpreadOfAll, Straight
from privet.planner.vectors import Vectors
from privet.tables.aggregates import (
    Aggregate,
    ApproxBounds,
    Count,
    CountDistinct,
    CountPeople,
    Histogram,
    Mean,
    Ratio,
    Std,
    Sum,
    Variance,
)
from privet.tables.expressions.nodes import Node
from privet.tables.expressions.typing_rules import as_number
from privet.tables.groups import Sets
from privet.tables.query import Query
from privet.tables.ranked import Extreme, Quantiles, Ranked
from privet.tables.statement import Given, Present

MOST_CODES = 2**46
"""Choices count candidates in 64 bits: 2^16 for each code."""

_Amount = Count | CountPeople | Sum


@dataclass(slots=True)
class Columns:
    """Builds the outputs of a query's aggregates."""

    query: Query
    weights: Mapping[str, Exact]
    vectors: Vectors
    joints: dict[Node, list[Joint]] = field(default_factory=dict)

    def outputs(self) -> tuple[tuple[str, Output], ...]:
        """Every column of the answer with its output."""
        columns: list[tuple[str, Output]] = []
        for name, aggregate in self.query.aggregates:
            columns += self._outputs(name, aggregate, self.weights.get(name, Exact(1)))
        return tuple(columns)

    def _outputs(self, name: str, aggregate: Aggregate, weight: Exact) -> list[tuple[str, Output]]:
        types = self.vectors.types
        match aggregate:
            case Histogram(of):
                place = self.vectors.add(of, m.histogram(of))
                self.vectors.claim(place, 1, weight)
                kind, whole = of.type(types), not isinstance(self.query.groups, Sets)
                return [
                    (f"{name} {label}", Straight(Linear(((place, i, Exact(1)),)), integer=True, whole=whole))
                    for i, label in enumerate(kind.keys())
                ]
            case ApproxBounds():
                bins, kind = aggregate.bins(types), as_number(aggregate.expression.type(types), name)
                place = self.vectors.add(bins, m.histogram(bins))
                self.vectors.claim(place, 1, weight)
                return [(f"{name} {part}", Found(place, bins.edges, kind.integer, part)) for part in aggregate.columns]
            case Mean(of):
                return [(name, self._mean(of, weight))]
            case Quantiles() | Extreme():
                return self._ranked(name, aggregate)
            case Variance(of) | Std(of):
                return [(name, self._spread(of, isinstance(aggregate, Std), weight))]
            case Ratio(top, bottom):
                return [(name, replace(self._ratio(top, bottom, weight), can_be=possible.ratio(aggregate, types)))]
            case CountDistinct(of):
                form = self.vectors.own(aggregate, m.count_distinct(of), weight)
                return [(name, Straight(form, integer=True, can_be=possible.different_values(of, types)))]
            case _:
                return [(name, self._straight(aggregate, weight))]

    def _spread(self, of: Node, root: bool, weight: Exact) -> Output:
        place, bounds = self.vectors.places[of], self.vectors.needed[of].bounds
        if self.vectors.measurements[place].rule == "moments/1":
            assert self.vectors.rows is not None
            self.vectors.claim(place, 1.12, weight)
            return SpreadOfAll(place, bounds.width, bounds.step, self.vectors.rows, root)
        self.vectors.claim(place, 1, weight)
        return Spread(place, bounds.width, bounds.step, root)

    def _fixed(self, part: _Amount) -> Fixed | None:
        """A count that is public."""
        if (
            self.vectors.rows is not None
            and isinstance(part, Count)
            and (part.expression is None or not self.vectors.can_miss(part.expression))
        ):
            return Fixed(self.vectors.rows)
        return None

    def _straight(self, part: _Amount, weight: Exact) -> Output:
        return self._fixed(part) or Straight(
            self._form(part, weight), integer=not isinstance(part, Sum), whole=not isinstance(self.query.groups, Sets)
        )

    def _form(self, part: _Amount, weight: Exact) -> Linear:
        match part:
            case CountPeople():
                return self.vectors.own(part, m.count_people(), weight)
            case Sum(of):
                return self.vectors.total(of, weight)
            case Count(of):
                if of is not None and self.vectors.can_miss(of):
                    if of in self.vectors.needed:
                        return self.vectors.count(of, weight, everything=False)
                    return self.vectors.own(Present(Given(of)), m.count_present(of), weight)
                if self.vectors.serves_count is not None:
                    return self.vectors.count(self.vectors.serves_count, weight, everything=True)
                return self.vectors.own(Count(None), m.count_rows(), weight)

    def _ranked(self, name: str, aggregate: Ranked) -> list[tuple[str, Output]]:
        joint = next(each for each in self._joints(aggregate.expression) if aggregate in each.answers)
        what = joint.measurement
        place = self.vectors.add(what, what)
        self.vectors.claim(place, joint.error, Exact(1))
        if isinstance(aggregate, Extreme):
            return [(name, RankedCode(place, what.edges.index(aggregate.largest), what, is_edge=True))]
        names = zip(self.query.columns()[name], aggregate.ranks, strict=True)
        return [(column, RankedCode(place, what.ranks.index(rank), what)) for column, rank in names]

    def _joints(self, of: Node) -> list[Joint]:
        """The measurements for all aggregates by rank of an expression."""
        if of not in self.joints:
            asked: dict[Ranked, Exact] = {}
            for name, each in self.query.aggregates:
                if isinstance(each, Ranked) and each.expression == of:
                    asked[each] = max(asked.get(each, Exact(0)), self.weights.get(name, Exact(1)))
            first = next(iter(asked))
            bounds = m.lattice(of, self.vectors.types, first)
            if bounds.width >= MOST_CODES:
                raise QueryError(f"{first}: has {bounds.width:,} steps, too many to choose from. Clip it first")
            code = m.coded(of, bounds, missing=self.vectors.can_miss(of))
            self.joints[of] = joints(asked, code, self.vectors.power)
        return self.joints[of]

    def _mean(self, of: Node, weight: Exact) -> Output:
        place, column = self.vectors.places[of], self.vectors.needed[of]
        bounds = column.bounds
        if self.vectors.measurements[place].rule in ("sum/1", "moments/1"):  # the number of rows is public
            assert self.vectors.rows is not None
            return Straight(self.vectors.total(of, weight).times(Exact(1, self.vectors.rows)), integer=False)
        self.vectors.claim(place, 1.12 if column.spread else 1, weight)
        count = self.vectors.count(of, Exact(0), everything=False)
        return Quotient(
            self.vectors.codes(of), count, most=Exact(bounds.width), lower=bounds.lower, unit=bounds.step,
            each=Exact(1), at=Exact(0),
        )  # fmt: skip

    def _ratio(self, top: _Amount, bottom: _Amount, weight: Exact) -> Straight | Quotient:
        if isinstance(self._fixed(bottom), Fixed):
            assert self.vectors.rows is not None
            if isinstance(self._fixed(top), Fixed):
                return Straight(Linear((), Exact(1)), integer=False)
            return Straight(self._form(top, weight).times(Exact(1, self.vectors.rows)), integer=False)
        upper, lower = self._form(top, weight), self._form(bottom, weight)
        each, other = self._typical(bottom), self._typical(top)
        return Quotient(upper, lower, most=None, lower=Exact(0), unit=Exact(1), each=each, at=other / each)

    def _typical(self, part: _Amount) -> Exact:
        """The contribution of a row at the middle of its range (or, if that is 0, at its end)."""
        if not isinstance(part, Sum):
            return Exact(1)
        bounds = self.vectors.needed[part.expression].bounds
        return abs(bounds.lower + bounds.upper) / 2 or bounds.upper
