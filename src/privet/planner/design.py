"""Which measurements answer a query, and how the budget is shared between them.

Measurements are shared: one vector can give the count, sum, mean and variance of a column. Errors are compared in units
of one person's largest effect, relative to a measurement of its own at full price; a query's error is its worst one.
If measurement i must answer something with relative error c_i (times its weight), the best shares of epsilon are
proportional to c_i, and the worst error is then the sum of all c_i. A rho buys an error that falls with its root: the
best shares of rho are proportional to c_i^2, and the worst error is the root of their sum. The design with the least
worst error is taken. All of it is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from privet.errors import QueryError
from privet.exact import Exact
from privet.exact.lattice import Bounds
from privet.mechanisms import NoiseMechanism
from privet.planner import measurements as m
from privet.planner import possible
from privet.planner.bounds import Found
from privet.planner.joining import Joint, joints
from privet.planner.linear import Linear
from privet.planner.measurements import Measurement
from privet.planner.outputs import Fixed, Output, Quotient, RankedCode, Spread, SpreadOfAll, Straight
from privet.planner.ranks import RankMeasurement
from privet.privacy.adjacency import Adjacency
from privet.privacy.guarantees import ZeroConcentratedDP
from privet.privacy.sensitivity import l1_move, l2_move, radius
from privet.tables.aggregates import (
    Aggregate,
    ApproxBounds,
    Count,
    CountDistinct,
    CountPeople,
    Histogram,
    Mean,
    OfValues,
    Ratio,
    Std,
    Sum,
    Variance,
)
from privet.tables.expressions.nodes import Node, Types
from privet.tables.expressions.typing_rules import as_number
from privet.tables.groups import Sets
from privet.tables.operators import adjacency, keeps_all_rows, tables
from privet.tables.query import Query
from privet.tables.ranked import Extreme, Quantiles, Ranked
from privet.tables.statement import Given, Present

MOST_CODES = 2**46
"""Choices count candidates in 64 bits: 2^16 for each code."""

_Divided = Count | CountPeople | Sum

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
        powers = [error**self.power for error in self.errors]
        return tuple(each / sum(powers) for each in powers)

    @property
    def worst(self) -> Exact:
        """The worst relative error, to the power; the smaller, the better."""
        return sum((error**self.power for error in self.errors), Exact(0))


def designs(query: Query, weights: Mapping[str, Exact], mechanism: NoiseMechanism) -> list[Design]:
    """All candidate designs: the row count measured separately, or from the vector of a column."""
    rows = _fixed_rows(query)
    groups = query.groups.most
    lattices: dict[tuple[Node, bool], Bounds] = {}
    candidates = [_Builder(query, weights, rows, groups, None, lattices, mechanism).build()]
    if rows is None and _counts_rows(query):  # any of the first few is as good as any other
        candidates += [
            _Builder(query, weights, rows, groups, of, lattices, mechanism).build() for of in _summed(query)[:_TRIED]
        ]
    return candidates


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


def _parts(query: Query) -> list[Aggregate]:
    parts: list[Aggregate] = []
    for _, aggregate in query.aggregates:
        parts += [aggregate.numerator, aggregate.denominator] if isinstance(aggregate, Ratio) else [aggregate]
    return parts


def _counts_rows(query: Query) -> bool:
    types = query.input.types()
    counts = [part.expression for part in _parts(query) if isinstance(part, Count)]
    return any(of is None or not of.type(types).missing for of in counts)


def _summed(query: Query) -> list[Node]:
    return list(dict.fromkeys(p.expression for p in _parts(query) if isinstance(p, OfValues)))


@dataclass
class _Column:
    """The statistics needed of one expression."""

    bounds: Bounds
    missing: bool
    count: bool = False
    mean: bool = False
    spread: bool = False


@dataclass
class _Builder:
    """Collects the needed statistics, then builds the measurements and the outputs."""

    query: Query
    weights: Mapping[str, Exact]
    rows: int | None
    groups: int
    serves_count: Node | None
    """The expression whose vector also gives the number of rows."""
    lattices: dict[tuple[Node, bool], Bounds]
    """The lattice of each expression, squared or not: shared by all designs of a query."""
    mechanism: NoiseMechanism
    measurements: list[Measurement | RankMeasurement] = field(default_factory=list)
    errors: list[Exact] = field(default_factory=list)
    places: dict[object, int] = field(default_factory=dict)
    joints: dict[Node, list[Joint]] = field(default_factory=dict)

    @property
    def power(self) -> int:
        """How the error falls as the price grows, as in `Design`."""
        return 2 if self.mechanism.prices[0] is ZeroConcentratedDP else 1

    def build(self) -> Design:
        self.types: Types = self.query.input.types()
        self.columns: dict[Node, _Column] = {}
        for part in _parts(self.query):
            self._need(part)
        if self.serves_count is not None:
            self.columns[self.serves_count].count = True
        self._measure()
        columns: list[tuple[str, Output]] = []
        for name, aggregate in self.query.aggregates:
            weight = self.weights.get(name, Exact(1))
            columns += self._outputs(name, aggregate, weight)
        for place, measurement in enumerate(self.measurements):
            self.errors[place] *= self._stretch(measurement)
        price = "epsilon" if self.power == 1 else "rho"
        reason = f"Each measurement gets the share of {price} that minimizes the worst error of the answer."
        return Design(tuple(self.measurements), tuple(self.errors), tuple(columns), reason, self.power)

    def _stretch(self, measurement: Measurement | RankMeasurement) -> Exact:
        """How far a row can move it, as a multiple of its radius: 1 if rows are added or removed, else up to 2."""
        kind = adjacency(self.query.input)
        if isinstance(measurement, RankMeasurement):
            return Exact(1 if kind is Adjacency.ADD_REMOVE else 2)
        if kind is Adjacency.ADD_REMOVE:
            return Exact(1)
        if self.mechanism.norm == "L1":
            move = l1_move(measurement.corners, adjacency=kind, groups=self.groups)
            return Exact(move.total, radius(measurement.corners))
        moved, alone = (
            l2_move(measurement.corners, adjacency=each, groups=self.groups).squared
            for each in (kind, Adjacency.ADD_REMOVE)
        )
        return Exact(math.ceil(1000 * math.sqrt(moved / alone)), 1000)

    # --- what is needed -------------------------------------------------------------------------

    def _need(self, part: Aggregate) -> None:
        if not isinstance(part, OfValues):
            return
        of, spread = part.expression, part.needs == "squares"
        if (of, spread) not in self.lattices:
            self.lattices[of, spread] = m.lattice(of, self.types, part, squared=spread)
        column = self.columns.setdefault(of, _Column(self.lattices[of, spread], self._type_missing(of)))
        column.mean |= part.needs == "count and sum"
        column.spread |= spread

    def _type_missing(self, of: Node) -> bool:
        return of.type(self.types).missing

    def _measure(self) -> None:
        for part in _parts(self.query):  # counts of what is not missing come from the column's vector, if there is one
            if isinstance(part, Count) and part.expression in self.columns and self.columns[part.expression].missing:
                self.columns[part.expression].count = True
        public = self.rows is not None and self.mechanism.norm == "L1"
        found = [what for _, what in self.query.aggregates if isinstance(what, Ratio)]
        ratios = [part.expression for r in found for part in (r.numerator, r.denominator) if isinstance(part, Sum)]
        for of, column in self.columns.items():
            everything = column.missing and of == self.serves_count
            if column.spread and public and not column.missing and of not in ratios:
                self._add(of, m.moments(of, column.bounds))
            elif column.spread:
                self._add(of, m.triple(of, column.bounds, missing=column.missing, everything=everything))
            elif self.rows is not None and not column.missing:
                self._add(of, m.total(of, column.bounds, missing=column.missing))
            elif column.mean or column.count:
                self._add(of, m.pair(of, column.bounds, missing=column.missing, everything=everything))
            else:
                self._add(of, m.total(of, column.bounds, missing=column.missing))

    def _add(self, key: object, measurement: Measurement | RankMeasurement) -> int:
        if key not in self.places:
            self.places[key] = len(self.measurements)
            self.measurements.append(measurement)
            self.errors.append(Exact(0))
        return self.places[key]

    def _claim(self, place: int, relative: float, weight: Exact) -> None:
        """An output of the measurement has this relative error."""
        self.errors[place] = max(self.errors[place], Exact(math.ceil(relative * 1000), 1000) * weight)

    # --- outputs --------------------------------------------------------------------------------

    def _outputs(self, name: str, aggregate: Aggregate, weight: Exact) -> list[tuple[str, Output]]:
        match aggregate:
            case Histogram(of):
                place = self._add(of, m.histogram(of))
                self._claim(place, 1, weight)
                kind, whole = of.type(self.types), not isinstance(self.query.groups, Sets)
                return [
                    (f"{name} {label}", Straight(Linear(((place, i, Exact(1)),)), integer=True, whole=whole))
                    for i, label in enumerate(kind.keys())
                ]
            case ApproxBounds():
                bins, kind = aggregate.bins(self.types), as_number(aggregate.expression.type(self.types), name)
                place = self._add(bins, m.histogram(bins))
                self._claim(place, 1, weight)
                return [(f"{name} {part}", Found(place, bins.edges, kind.integer, part)) for part in aggregate.columns]
            case Mean(of):
                return [(name, self._mean(of, weight))]
            case Quantiles() | Extreme():
                return self._ranked(name, aggregate)
            case Variance(of) | Std(of):
                return [(name, self._spread(of, isinstance(aggregate, Std), weight))]
            case Ratio(top, bottom):
                return [(name, replace(self._ratio(top, bottom, weight), can_be=possible.ratio(aggregate, self.types)))]
            case CountDistinct(of):
                form = self._own(aggregate, m.count_distinct(of), weight)
                return [(name, Straight(form, integer=True, can_be=possible.different_values(of, self.types)))]
            case _:
                return [(name, self._straight(aggregate, weight))]

    def _spread(self, of: Node, root: bool, weight: Exact) -> Output:
        place, bounds = self.places[of], self.columns[of].bounds
        if self.measurements[place].rule == "moments/1":
            assert self.rows is not None
            self._claim(place, 1.12, weight)
            return SpreadOfAll(place, bounds.width, bounds.step, self.rows, root)
        self._claim(place, 1, weight)
        return Spread(place, bounds.width, bounds.step, root)

    def _fixed(self, part: Count | CountPeople | Sum) -> Fixed | None:
        """A count that is public."""
        if (
            self.rows is not None
            and isinstance(part, Count)
            and (part.expression is None or not self._type_missing(part.expression))
        ):
            return Fixed(self.rows)
        return None

    def _straight(self, part: Count | CountPeople | Sum, weight: Exact) -> Output:
        return self._fixed(part) or Straight(
            self._form(part, weight), integer=not isinstance(part, Sum), whole=not isinstance(self.query.groups, Sets)
        )

    def _form(self, part: Count | CountPeople | Sum, weight: Exact) -> Linear:
        match part:
            case CountPeople():
                return self._own(part, m.count_people(), weight)
            case Sum(of):
                return self._sum(of, weight)
            case Count(of):
                if of is not None and self._type_missing(of):
                    if of in self.columns:
                        return self._count(of, weight, everything=False)
                    return self._own(Present(Given(of)), m.count_present(of), weight)
                if self.serves_count is not None:
                    return self._count(self.serves_count, weight, everything=True)
                return self._own(Count(None), m.count_rows(), weight)

    def _own(self, key: object, measurement: Measurement, weight: Exact) -> Linear:
        place = self._add(key, measurement)
        self._claim(place, 1, weight)
        return Linear(((place, 0, Exact(1)),))

    def _count(self, of: Node, weight: Exact, *, everything: bool) -> Linear:
        """The number of rows, or of rows with a value, from a column's vector: its coordinates add up to it."""
        place, column = self.places[of], self.columns[of]
        if self.measurements[place].rule == "moments/1":
            assert self.rows is not None
            return Linear((), Exact(self.rows))
        norm = column.bounds.width ** (2 if column.spread else 1)
        used = range(self.measurements[place].size if everything else 3 if column.spread else 2)
        self._claim(place, math.sqrt(len(used)), weight)
        return Linear(tuple((place, i, Exact(1, norm)) for i in used))

    def _codes(self, of: Node) -> Linear:
        """The sum of the codes v, in units of 1/W."""
        place, width = self.places[of], Exact(self.columns[of].bounds.width)
        if self.measurements[place].rule == "moments/1":
            return Linear(((place, 0, 1 / width),))
        if self.columns[of].spread:
            return Linear(((place, 1, 1 / (2 * width)), (place, 2, 1 / width)))
        return Linear(((place, 0, Exact(1)),))

    def _sum(self, of: Node, weight: Exact) -> Linear:
        place, bounds = self.places[of], self.columns[of].bounds
        if self.measurements[place].rule == "sum/1":
            self._claim(place, 1, weight)
            return Linear(((place, 0, bounds.step / (bounds.lower / bounds.step).denominator),))
        count = self._count(of, Exact(0), everything=False)
        form = self._codes(of).times(bounds.step).plus(count.times(bounds.lower))
        largest = max(abs(bounds.lower), abs(bounds.lower + bounds.width * bounds.step))
        norm = bounds.width ** (2 if self.columns[of].spread else 1)
        self._claim(place, math.sqrt(sum(float(w * norm / largest) ** 2 for w in form.weights())), weight)
        return form

    def _ranked(self, name: str, aggregate: Ranked) -> list[tuple[str, Output]]:
        joint = next(each for each in self._joints(aggregate.expression) if aggregate in each.answers)
        what = joint.measurement
        place = self._add(what, what)
        self._claim(place, joint.error, Exact(1))
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
            bounds = m.lattice(of, self.types, first)
            if bounds.width >= MOST_CODES:
                raise QueryError(f"{first}: has {bounds.width:,} steps, too many to choose from. Clip it first")
            code = m.coded(of, bounds, missing=self._type_missing(of))
            self.joints[of] = joints(asked, code, self.power)
        return self.joints[of]

    def _mean(self, of: Node, weight: Exact) -> Output:
        place, column = self.places[of], self.columns[of]
        bounds = column.bounds
        if self.measurements[place].rule in ("sum/1", "moments/1"):  # the number of rows is public
            assert self.rows is not None
            return Straight(self._sum(of, weight).times(Exact(1, self.rows)), integer=False)
        self._claim(place, 1.12 if column.spread else 1, weight)
        count = self._count(of, Exact(0), everything=False)
        return Quotient(
            self._codes(of), count, most=Exact(bounds.width), lower=bounds.lower, unit=bounds.step, each=Exact(1),
            at=Exact(0),
        )  # fmt: skip

    def _ratio(
        self, top: Count | CountPeople | Sum, bottom: Count | CountPeople | Sum, weight: Exact
    ) -> Straight | Quotient:
        if isinstance(self._fixed(bottom), Fixed):
            assert self.rows is not None
            if isinstance(self._fixed(top), Fixed):
                return Straight(Linear((), Exact(1)), integer=False)
            return Straight(self._form(top, weight).times(Exact(1, self.rows)), integer=False)
        upper, lower = self._form(top, weight), self._form(bottom, weight)
        each, other = self._typical(bottom), self._typical(top)
        return Quotient(upper, lower, most=None, lower=Exact(0), unit=Exact(1), each=each, at=other / each)

    def _typical(self, part: Count | CountPeople | Sum) -> Exact:
        """The contribution of a row at the middle of its range (or, if that is 0, at its end)."""
        if not isinstance(part, Sum):
            return Exact(1)
        bounds = self.columns[part.expression].bounds
        return abs(bounds.lower + bounds.upper) / 2 or bounds.upper
