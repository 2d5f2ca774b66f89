"""Plans for ROLLUP, CUBE and GROUPING SETS: which levels are measured, and the consistent answer made of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby, islice
from typing import Any

from privet import accuracy
from privet.errors import QueryError, Remedy, write
from privet.exact import Exact
from privet.mechanisms import NoiseMechanism
from privet.planner import computed, levels
from privet.planner.level_shares import margin_shares
from privet.planner.levels import Estimate, Keys, Levels
from privet.planner.linear import Linear, Noisy
from privet.planner.measurements import Measurement
from privet.planner.noise import Noise
from privet.planner.outputs import Cells, Output, Quotient, Straight
from privet.planner.plan import NoisyMeasurement, ReleasePlan
from privet.privacy.guarantees import PureDP, ZeroConcentratedDP
from privet.privacy.margins import margin_move, residual_move
from privet.tables import caps, operators
from privet.tables.aggregates import ApproxBounds, CountDistinct, CountPeople, Std, Variance, parts
from privet.tables.expressions.nodes import Column
from privet.tables.expressions.rendering import in_sql
from privet.tables.groups import Sets
from privet.tables.query import Query
from privet.tables.ranked import Extreme, Quantiles

_NOT_ADDITIVE = Variance | Std | Quantiles | Extreme | CountDistinct | ApproxBounds

MOST_LEVELS = 64
"""Maximum levels that are measured for one answer."""


def check(query: Query) -> None:
    """Refuse what can't be answered consistently on several levels."""
    if not isinstance(query.groups, Sets):
        return
    if not all(query.domains()):
        raise QueryError(
            "the conditions exclude all values of a key, so there is nothing to add up",
            remedy=Remedy("Remove one of the conditions"),
        )
    if len(Levels.of(query.groups).parts) > MOST_LEVELS:
        raise QueryError(
            f"these grouping sets need more than {MOST_LEVELS} levels", remedy=Remedy("Use fewer keys, or fewer sets")
        )
    asked = [part for _, aggregate in query.aggregates for part in (aggregate, *parts(aggregate))]
    odd = [part for part in asked if isinstance(part, _NOT_ADDITIVE)]
    if odd:
        names = [key.name for key in query.keys]
        by, written = ", ".join(in_sql(Column(name)) for name in names), ", ".join(f'"{name}"' for name in names)
        raise QueryError(
            f"{odd[0]} of several groups is not the sum of theirs, so it can't be made consistent over several levels",
            allowed="Counts, sums, means, ratios and histograms can",
            remedy=write(f"group_by({written}).agg(...)", sql=f"GROUP BY {by}", advice="Ask for it on one level"),
        )
    people = any(isinstance(part, CountPeople) for part in asked)
    if people and caps.effective(query.input, query.at_most, query.listed.most) is not None:
        most = caps.people(query.input, query.at_most, query.listed.most)
        if most > 1:
            raise QueryError(
                f"a person can be in {most} groups here, but counts once in their sum: people in towns do not add up "
                "to people in regions",
                allowed="Rows add up, and so do people if each is in one group",
                remedy=write(
                    "people.cap(max_rows=1)",
                    sql="SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_rows_contributed = 1) ...",
                    terminal="--max-rows 1",
                    http='"max_rows": 1',
                    advice="Count rows instead, or use one row per person",
                ),
            )


def measured(
    query: Query,
    groups: Sets,
    measurement: Measurement,
    mechanism: NoiseMechanism,
    *,
    rows: int,
    max_groups: int,
) -> list[NoisyMeasurement]:
    """The levels of a measurement, at prices that add up to 1: residuals in L2, margins in L1."""
    of, residual = Levels.of(groups), mechanism.norm == "L2"
    kinds, adjacency = of.measured(residual=residual), operators.adjacency(query.input)
    known: dict[str, Any] = {"adjacency": adjacency, "rows": rows, "max_groups": max_groups}
    moved = residual_move if residual else margin_move
    moves = [moved(measurement.corners, level.margin, **known) for level in kinds]
    totals = [move.total for move in moves]
    shares = of.shares(totals) if residual else margin_shares(of, tuple(totals))
    price = ZeroConcentratedDP if mechanism.prices[0] is ZeroConcentratedDP else PureDP
    return [
        NoisyMeasurement(
            measurement, rows * max_groups, level.margin.cells, adjacency, False, mechanism, move,
            price.derived(share), Exact(1), level,
        ).at(price.derived(share))
        for level, move, share in zip(kinds, moves, shares, strict=True)
        if share
    ]  # fmt: skip


@dataclass(frozen=True)
class Cube:
    """The consistent answer of a plan."""

    plan: ReleasePlan
    levels: Levels
    estimates: tuple[Estimate, ...]
    """For each measurement of the design."""
    scales: tuple[tuple[Exact, ...], ...]
    """For each of them, the scales of the noise on its levels."""

    @classmethod
    def of(cls, plan: ReleasePlan) -> Cube:
        groups = plan.query.groups
        assert isinstance(groups, Sets)
        every = Levels.of(groups)
        estimates, scales = [], []
        for some in by_measurement(plan):
            kinds = tuple(part.level for part in some if part.level is not None)
            variances = tuple(part.scale if part.mechanism.norm == "L2" else part.scale**2 for part in some)
            estimates.append(levels.estimate(every, kinds, variances))
            scales.append(tuple(part.scale for part in some))
        return cls(plan, every, tuple(estimates), tuple(scales))

    def noise(self, margin: Keys) -> Noise:
        """The noise of a cell of a margin, whose coordinates are whole numbers over one unit."""
        return self.plan.once(f"noise {margin}", lambda _: self._noise(margin))

    def _noise(self, margin: Keys) -> Noise:
        made = []
        for estimate, scales in zip(self.estimates, self.scales, strict=True):
            unit = estimate.unit(margin)
            made.append(tuple((weight * unit, scale, n) for weight, scale, n in estimate.draws(margin, scales)))
        numbers = tuple(Exact(place) for place in range(1, len(made) + 1))
        return Noise(accuracy.Combined(self.plan.mechanism, tuple(made)), numbers)

    def view(self, output: Output, keys: Keys) -> tuple[Output, Noise]:
        """An output as it is read from a cell of a grouping set, and the noise there."""
        margin = self.levels.plain(keys)
        return _over(output, self.estimates[0].unit(margin) if self.estimates else 1), self.noise(margin)

    def margins(self, noisy: Sequence[Sequence[Sequence[int]]]) -> dict[Keys, list[Noisy]]:
        """The consistent coordinates of every margin, by group, in multiples of 1 / unit."""
        parts, rest = [], iter(noisy)
        for estimate in self.estimates:
            some = list(islice(rest, len(estimate.measured)))
            tables = [
                levels.table(vectors, levels.shape(level.margin))
                for vectors, level in zip(some, estimate.measured, strict=True)
            ]
            parts.append(estimate.parts(tables))
        by_set: dict[Keys, list[Noisy]] = {}
        for margin in self.levels.margins:
            each = [
                levels.vectors(estimate.margin(part, margin))
                for estimate, part in zip(self.estimates, parts, strict=True)
            ]
            by_set[margin] = [list(group) for group in zip(*each, strict=True)]
        return by_set

    def cells(self, noisy: Sequence[Sequence[Sequence[int]]]) -> dict[str, Cells]:
        """The columns of the answer: all groups of the first set, then of the second, and so on."""
        by_set = self.margins(noisy)
        rows = list(self.plan.query.groups)
        every: list[dict[str, Cells]] = []
        for keys in self.levels.sets:
            cells = by_set[self.levels.plain(keys)]
            first, rows = rows[: len(cells)], rows[len(cells) :]
            level = computed.Groups(
                {name: self.view(output, keys)[0] for name, output in self.plan.columns},
                self.noise(self.levels.plain(keys)),
                cells,
                first,
                lambda name, by, keys=keys: self._summed(name, tuple(key for key in keys if key in by)),  # type: ignore[misc]
            )
            every.append(level.cells(self.plan))
        return {name: _joined([each[name] for each in every]) for name in every[0]}

    def _summed(self, name: str, margin: Keys) -> tuple[Output, Noise]:
        """A column of a coarser margin, to which the cells of a level add up exactly, and the noise there."""
        return self.view(dict(self.plan.columns)[name], margin)


def cube(plan: ReleasePlan) -> Cube:
    """The consistent answer of a plan, prepared once."""
    return plan.once("cube", Cube.of)


def by_measurement(plan: ReleasePlan) -> list[list[NoisyMeasurement]]:
    """The levels of each measurement of the design."""
    noised = [part for part in plan.noised if isinstance(part, NoisyMeasurement)]
    return [list(some) for _, some in groupby(noised, key=lambda part: part.measurement)]


def views(plan: ReleasePlan, output: Output) -> Iterator[tuple[Output, Noise]]:
    """An output with its noise, on each level of the answer."""
    made = cube(plan)
    for keys in made.levels.sets:
        yield made.view(output, keys)


def _over(output: Output, unit: int) -> Output:
    """An output of coordinates that are given as multiples of 1 / unit."""

    def over(form: Linear) -> Linear:
        return Linear(tuple((m, c, w / unit) for m, c, w in form.terms), form.offset)

    match output:
        case Straight(form):
            return replace(output, form=over(form))
        case Quotient(numerator, denominator):
            return replace(output, numerator=over(numerator), denominator=over(denominator))
    return output


def _joined(some: Sequence[Cells]) -> Cells:
    return Cells(*(tuple(x for cells in some for x in getattr(cells, each.name)) for each in fields(Cells)))
