"""The vectors that a design measures, one for all that a query asks of an expression; counts and sums are read from it.

Each is measured once. Its error is the largest that any use of it claims.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from privet.exact import Exact
from privet.exact.lattice import Bounds
from privet.mechanisms import NoiseMechanism
from privet.planner import measurements as m
from privet.planner.linear import Linear
from privet.planner.measurements import Measurement
from privet.planner.ranks import RankMeasurement
from privet.privacy.adjacency import Adjacency
from privet.privacy.guarantees import ZeroConcentratedDP
from privet.privacy.sensitivity import l1_move, l2_move, radius
from privet.tables.aggregates import Aggregate, Count, OfValues, Ratio, Sum, parts
from privet.tables.expressions.nodes import Node, Types
from privet.tables.operators import adjacency
from privet.tables.query import Query


def asked(query: Query) -> list[Aggregate]:
    """The aggregates to measure: of a ratio, both sides."""
    return [part for _, aggregate in query.aggregates for part in parts(aggregate)]


@dataclass(slots=True)
class Needed:
    """The statistics needed of one expression."""

    bounds: Bounds
    missing: bool
    count: bool = False
    mean: bool = False
    spread: bool = False


@dataclass(slots=True)
class Vectors:
    """Collects the statistics that a query needs, and the measurements that give them."""

    query: Query
    rows: int | None
    """The number of rows, if it is public."""
    serves_count: Node | None
    """The expression whose vector also gives the number of rows."""
    lattices: dict[tuple[Node, bool], Bounds]
    """The lattice of each expression, squared or not: shared by all designs of a query."""
    mechanism: NoiseMechanism
    types: Types = field(init=False)
    needed: dict[Node, Needed] = field(default_factory=dict)
    measurements: list[Measurement | RankMeasurement] = field(default_factory=list)
    errors: list[Exact] = field(default_factory=list)
    """The relative error of each measurement."""
    places: dict[object, int] = field(default_factory=dict)
    """The place of a measurement, by what it is of."""

    def __post_init__(self) -> None:
        self.types = self.query.input.types()
        for part in asked(self.query):
            self._need(part)
        if self.serves_count is not None:
            self.needed[self.serves_count].count = True
        self._measure()

    @property
    def power(self) -> int:
        """How the error falls as the price grows, as in `Design`."""
        return 2 if self.mechanism.prices[0] is ZeroConcentratedDP else 1

    def stretch(self, measurement: Measurement | RankMeasurement) -> Exact:
        """How far a row can move it, as a multiple of its radius: 1 if rows are added or removed, else up to 2."""
        kind = adjacency(self.query.input)
        if isinstance(measurement, RankMeasurement):
            return Exact(1 if kind is Adjacency.ADD_REMOVE else 2)
        if kind is Adjacency.ADD_REMOVE:
            return Exact(1)
        if self.mechanism.norm == "L1":
            move = l1_move(measurement.corners, adjacency=kind, groups=self.query.groups.most)
            return Exact(move.total, radius(measurement.corners))
        moved, alone = (
            l2_move(measurement.corners, adjacency=each, groups=self.query.groups.most).squared
            for each in (kind, Adjacency.ADD_REMOVE)
        )
        return Exact(math.ceil(1000 * math.sqrt(moved / alone)), 1000)

    def _need(self, part: Aggregate) -> None:
        if not isinstance(part, OfValues):
            return
        of, spread = part.expression, part.needs == "squares"
        if (of, spread) not in self.lattices:
            self.lattices[of, spread] = m.lattice(of, self.types, part, squared=spread)
        column = self.needed.setdefault(of, Needed(self.lattices[of, spread], self.can_miss(of)))
        column.mean |= part.needs == "count and sum"
        column.spread |= spread

    def can_miss(self, of: Node) -> bool:
        """Whether a value of the expression can be missing."""
        return of.type(self.types).missing

    def _measure(self) -> None:
        for part in asked(self.query):  # counts of what is not missing come from the column's vector, if there is one
            if isinstance(part, Count) and part.expression in self.needed and self.needed[part.expression].missing:
                self.needed[part.expression].count = True
        public = self.rows is not None and self.mechanism.norm == "L1"
        found = [part for _, what in self.query.aggregates if isinstance(what, Ratio) for part in parts(what)]
        ratios = [part.expression for part in found if isinstance(part, Sum)]
        for of, column in self.needed.items():
            everything = column.missing and of == self.serves_count
            if column.spread and public and not column.missing and of not in ratios:
                self.add(of, m.moments(of, column.bounds))
            elif column.spread:
                self.add(of, m.triple(of, column.bounds, missing=column.missing, everything=everything))
            elif self.rows is not None and not column.missing:
                self.add(of, m.total(of, column.bounds, missing=column.missing))
            elif column.mean or column.count:
                self.add(of, m.pair(of, column.bounds, missing=column.missing, everything=everything))
            else:
                self.add(of, m.total(of, column.bounds, missing=column.missing))

    def add(self, key: object, measurement: Measurement | RankMeasurement) -> int:
        """The place of a measurement; it is added if it has none."""
        if key not in self.places:
            self.places[key] = len(self.measurements)
            self.measurements.append(measurement)
            self.errors.append(Exact(0))
        return self.places[key]

    def claim(self, place: int, relative: float, weight: Exact) -> None:
        """An output of the measurement has this relative error."""
        self.errors[place] = max(self.errors[place], Exact(math.ceil(relative * 1000), 1000) * weight)

    def own(self, key: object, measurement: Measurement, weight: Exact) -> Linear:
        """The first coordinate of a measurement that serves nothing else."""
        place = self.add(key, measurement)
        self.claim(place, 1, weight)
        return Linear(((place, 0, Exact(1)),))

    def count(self, of: Node, weight: Exact, *, everything: bool) -> Linear:
        """The number of rows, or of rows with a value, from a column's vector: its coordinates add up to it."""
        place, column = self.places[of], self.needed[of]
        if self.measurements[place].rule == "moments/1":
            assert self.rows is not None
            return Linear((), Exact(self.rows))
        norm = column.bounds.width ** (2 if column.spread else 1)
        used = range(self.measurements[place].size if everything else 3 if column.spread else 2)
        self.claim(place, math.sqrt(len(used)), weight)
        return Linear(tuple((place, i, Exact(1, norm)) for i in used))

    def codes(self, of: Node) -> Linear:
        """The sum of the codes v, in units of 1/W."""
        place, width = self.places[of], Exact(self.needed[of].bounds.width)
        if self.measurements[place].rule == "moments/1":
            return Linear(((place, 0, 1 / width),))
        if self.needed[of].spread:
            return Linear(((place, 1, 1 / (2 * width)), (place, 2, 1 / width)))
        return Linear(((place, 0, Exact(1)),))

    def total(self, of: Node, weight: Exact) -> Linear:
        """The sum of the values of an expression, from its vector."""
        place, bounds = self.places[of], self.needed[of].bounds
        if self.measurements[place].rule == "sum/1":
            self.claim(place, 1, weight)
            return Linear(((place, 0, bounds.step / (bounds.lower / bounds.step).denominator),))
        count = self.count(of, Exact(0), everything=False)
        form = self.codes(of).times(bounds.step).plus(count.times(bounds.lower))
        largest = max(abs(bounds.lower), abs(bounds.lower + bounds.width * bounds.step))
        norm = bounds.width ** (2 if self.needed[of].spread else 1)
        self.claim(place, math.sqrt(sum(float(w * norm / largest) ** 2 for w in form.weights())), weight)
        return form
