"""Plans for ROLLUP, CUBE and GROUPING SETS: which levels are measured, and the consistent answer made of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby, islice
from typing import Any, Protocol

from privet import accuracy
from privet.accuracy.sums import Terms
from privet.errors import QueryError, Remedy, write
from privet.exact import Exact
from privet.mechanisms import NoiseMechanism
from privet.planner import computed, levels
from privet.planner.hierarchies import Branches, Hierarchy, residual_shares, residuals
from privet.planner.least_squares import least_squares, tier_shares
from privet.planner.level_shares import margin_shares
from privet.planner.levels import Keys, Level, Levels
from privet.planner.linear import Linear, Noisy
from privet.planner.measurements import Measurement
from privet.planner.noise import Noise
from privet.planner.outputs import Cells, Output, Quotient, Straight
from privet.planner.plan import NoisyMeasurement, ReleasePlan
from privet.privacy import tiers
from privet.privacy.guarantees import PureDP, ZeroConcentratedDP
from privet.privacy.margins import margin_move, residual_move
from privet.privacy.moves import Move
from privet.tables import caps, nesting, operators
from privet.tables.aggregates import ApproxBounds, CountDistinct, CountPeople, Std, Variance, parts
from privet.tables.computed import leaves
from privet.tables.expressions.nodes import Column, OfAnswer
from privet.tables.expressions.rendering import in_sql
from privet.tables.groups import Group, Sets
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
    of = levels_of(query.groups)
    if isinstance(of, Hierarchy):
        _check_tree(query, of)
    elif len(of.parts) > MOST_LEVELS:
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


def _check_tree(query: Query, of: Hierarchy) -> None:
    """Refuse levels, and totals of levels, that do not form a tree."""
    names = [key.name for key in query.keys]
    pairs = nesting.nested(query.input, [key.expression for key in query.keys])
    _check_order(names, {*of.sets}, pairs)
    if not of.is_tree:
        child, above = names[pairs[0].child], names[pairs[0].above]
        raise QueryError(
            f"{child!r} lies within {above!r}, so these levels must form a tree: each must divide the one before it",
            remedy=write(
                f'rollup("{above}", "{child}")',
                sql=f"GROUP BY ROLLUP ({in_sql(Column(above))}, {in_sql(Column(child))})",
                advice="Add the other keys before or after them in one rollup, or ask for the levels separately",
            ),
        )
    for name, formula in query.arrangement.computed:
        for leaf in leaves(formula):
            if not isinstance(leaf, OfAnswer) or leaf.function != "total":
                continue
            by = [names.index(key) for key in leaf.by]
            margins = [tuple(key for key in keys if key in by) for keys in of.sets]
            missing = next((margin for margin in margins if not of.has(margin)), None)
            if missing is not None:
                level = ", ".join(names[key] for key in missing) or "total"
                raise QueryError(
                    f"{name!r} needs the level {level!r}, which is not asked for",
                    remedy=write(
                        "rollup(...)", sql="GROUP BY ROLLUP (...)", advice="Add this level to those that are asked for"
                    ),
                )


def _check_order(names: Sequence[str], sets: set[Keys], pairs: Sequence[nesting.Nested]) -> None:
    """Refuse towns with and without their region, and no regions: a rollup in the wrong order."""
    for pair in pairs:
        for keys in sets:
            with_above = tuple(sorted({*keys, pair.above}))
            alone = tuple(key for key in with_above if key != pair.child)
            if pair.child in keys and pair.above not in keys and with_above in sets and alone not in sets:
                child, above = names[pair.child], names[pair.above]
                order = [names[place] for place in nesting.downwards(len(names), pairs)]
                raise QueryError(
                    f"{child!r} lies within {above!r}, so this has each {child} twice and no level for {above!r}",
                    allowed="In a rollup, a key comes after the one that it lies within",
                    remedy=write(
                        f"rollup({', '.join(map(json.dumps, order))})",
                        sql=f"GROUP BY ROLLUP ({', '.join(in_sql(Column(name)) for name in order)})",
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
    of, residual = levels_of(groups), mechanism.norm == "L2"
    adjacency = operators.adjacency(query.input)
    known: dict[str, Any] = {"adjacency": adjacency, "rows": rows, "max_groups": max_groups}
    kinds: list[Level | Branches]
    moves: list[Move]
    if isinstance(of, Hierarchy):
        branches = of.tiers(adjacency, residual=residual)
        kinds = [*branches]
        on_tier = tiers.residual_move if residual else tiers.tier_move
        moves = [on_tier(measurement.corners, level.tier, **known) for level in branches]
        totals = [move.total for move in moves]
        shares = residual_shares(of, branches, totals) if residual else tier_shares(of, tuple(totals))
    else:
        margins = of.measured(residual=residual)
        kinds = [*margins]
        on_margin = residual_move if residual else margin_move
        moves = [on_margin(measurement.corners, level.margin, **known) for level in margins]
        totals = [move.total for move in moves]
        shares = of.shares(totals) if residual else margin_shares(of, tuple(totals))
    price = ZeroConcentratedDP if mechanism.prices[0] is ZeroConcentratedDP else PureDP
    return [
        NoisyMeasurement(
            measurement, rows * max_groups, level.cells, adjacency, False, mechanism, move,
            price.derived(share), Exact(1), level,
        ).at(price.derived(share))
        for level, move, share in zip(kinds, moves, shares, strict=True)
        if share
    ]  # fmt: skip


def levels_of(groups: Sets) -> Levels | Hierarchy:
    """The levels of a table of all combinations, or of a tree if only some are possible."""
    return Levels.of(groups) if groups.listed.only is None else Hierarchy.of(groups)


class Consistent(Protocol):
    """How consistent numbers follow from noisy ones: cells of one kind have the same error."""

    def margins(self, noisy: Sequence[Sequence[Sequence[int]]]) -> dict[Keys, list[tuple[int, ...]]]:
        """The cells of every margin, each times the `unit` of its kind."""

    def kinds_of(self, margin: Keys) -> tuple[int, ...]:
        """The kind of each cell of a margin."""

    def unit(self, margin: Keys, kind: int) -> int:
        """The denominator of a kind of cells."""

    def draws(self, margin: Keys, scales: Sequence[Exact], kind: int) -> Terms:
        """The weights, scales and numbers of the draws that are the error of a kind of cells."""


def _estimate(of: Levels | Hierarchy, some: Sequence[NoisyMeasurement]) -> Consistent:
    variances = tuple(part.scale if part.mechanism.norm == "L2" else part.scale**2 for part in some)
    if isinstance(of, Levels):
        return levels.estimate(of, tuple(each for part in some if isinstance(each := part.level, Level)), variances)
    branches = tuple(each for part in some if isinstance(each := part.level, Branches))
    return residuals(of, branches) if some[0].mechanism.norm == "L2" else least_squares(of, branches, variances)


@dataclass(frozen=True)
class Cube:
    """The consistent answer of a plan."""

    plan: ReleasePlan
    levels: Levels | Hierarchy
    estimates: tuple[Consistent, ...]
    """For each measurement of the design."""
    scales: tuple[tuple[Exact, ...], ...]
    """For each of them, the scales of the noise on its levels."""

    @classmethod
    def of(cls, plan: ReleasePlan) -> Cube:
        groups = plan.query.groups
        assert isinstance(groups, Sets)
        every, parts = levels_of(groups), by_measurement(plan)
        scales = tuple(tuple(part.scale for part in some) for some in parts)
        return cls(plan, every, tuple(_estimate(every, some) for some in parts), scales)

    def kinds(self, keys: Keys) -> tuple[int, ...]:
        """The kind of each cell of a grouping set."""
        return self.estimates[0].kinds_of(self.levels.plain(keys))

    def noise(self, margin: Keys, kind: int = 0) -> Noise:
        """The noise of a cell of a margin, whose coordinates are whole numbers over one unit."""
        return self.plan.once(f"noise {margin} {kind}", lambda _: self._noise(margin, kind))

    def _noise(self, margin: Keys, kind: int) -> Noise:
        made = []
        for estimate, scales in zip(self.estimates, self.scales, strict=True):
            unit = estimate.unit(margin, kind)
            made.append(tuple((weight * unit, scale, n) for weight, scale, n in estimate.draws(margin, scales, kind)))
        numbers = tuple(Exact(place) for place in range(1, len(made) + 1))
        return Noise(accuracy.Combined(self.plan.mechanism, tuple(made)), numbers)

    def view(self, output: Output, keys: Keys, kind: int = 0) -> tuple[Output, Noise]:
        """An output as it is read from a kind of cells of a grouping set, and the noise there."""
        margin = self.levels.plain(keys)
        return _over(output, [estimate.unit(margin, kind) for estimate in self.estimates]), self.noise(margin, kind)

    def margins(self, noisy: Sequence[Sequence[Sequence[int]]]) -> dict[Keys, list[Noisy]]:
        """The consistent coordinates of every margin, by group, in multiples of 1 / unit."""
        rest = iter(noisy)
        made = [
            estimate.margins(list(islice(rest, len(scales))))
            for estimate, scales in zip(self.estimates, self.scales, strict=True)
        ]
        return {
            margin: [list(group) for group in zip(*(each[margin] for each in made), strict=True)]
            for margin in self.levels.margins
        }

    def cells(self, noisy: Sequence[Sequence[Sequence[int]]]) -> dict[str, Cells]:
        """The columns of the answer: all groups of the first set, then of the second, and so on."""
        by_set = self.margins(noisy)
        rows = list(self.plan.query.groups)
        every: list[dict[str, Cells]] = []
        for keys in self.levels.sets:
            cells, kinds = by_set[self.levels.plain(keys)], self.kinds(keys)
            first, rows = rows[: len(cells)], rows[len(cells) :]
            places: dict[int, list[int]] = {}
            for place, kind in enumerate(kinds):
                places.setdefault(kind, []).append(place)
            some = [self._alike(keys, kind, [(first[i], cells[i]) for i in at], by_set) for kind, at in places.items()]
            order = [place for at in places.values() for place in at]
            back = sorted(range(len(order)), key=order.__getitem__)
            joined = {name: _joined([each[name] for each in some]) for name in some[0]}
            every.append({name: _placed(column, back) for name, column in joined.items()})
        return {name: _joined([each[name] for each in every]) for name in every[0]}

    def _alike(
        self, keys: Keys, kind: int, groups: Sequence[tuple[Group, Noisy]], by_set: dict[Keys, list[Noisy]]
    ) -> dict[str, Cells]:
        """The columns of the groups of one kind, of one grouping set."""

        def summed(name: str, by: Sequence[int], group: Group) -> tuple[Output, Noise, Noisy | None]:
            margin, output = tuple(key for key in keys if key in by), dict(self.plan.columns)[name]
            if isinstance(self.levels, Levels):  # all cells are of one kind, so they are all here to be added up
                return *self.view(output, margin), None
            place = self.levels.node(margin, group)
            return *self.view(output, margin, self.kinds(margin)[place]), by_set[self.levels.plain(margin)][place]

        level = computed.Groups(
            {name: self.view(output, keys, kind)[0] for name, output in self.plan.columns},
            self.noise(self.levels.plain(keys), kind),
            [cell for _, cell in groups],
            [group for group, _ in groups],
            summed,
        )
        return level.cells(self.plan)


def cube(plan: ReleasePlan) -> Cube:
    """The consistent answer of a plan, prepared once."""
    return plan.once("cube", Cube.of)


def by_measurement(plan: ReleasePlan) -> list[list[NoisyMeasurement]]:
    """The levels of each measurement of the design."""
    noised = [part for part in plan.noised if isinstance(part, NoisyMeasurement)]
    return [list(some) for _, some in groupby(noised, key=lambda part: part.measurement)]


def views(plan: ReleasePlan, output: Output) -> Iterator[tuple[Output, Noise]]:
    """An output with its noise, for each kind of cells of each level of the answer."""
    made = cube(plan)
    for keys in made.levels.sets:
        for kind in sorted({*made.kinds(keys)}):
            yield made.view(output, keys, kind)


def worst(plan: ReleasePlan, bounds: Sequence[Exact]) -> list[Exact]:
    """The greatest error of each level, from those of its kinds of cells."""
    made, rest = cube(plan), iter(bounds)
    return [max(islice(rest, len({*made.kinds(keys)}))) for keys in made.levels.sets]


def _over(output: Output, units: Sequence[int]) -> Output:
    """An output of coordinates that are given as multiples of 1 / unit, by measurement."""

    def over(form: Linear) -> Linear:
        return Linear(tuple((m, c, w / units[m]) for m, c, w in form.terms), form.offset)

    match output:
        case Straight(form):
            return replace(output, form=over(form))
        case Quotient(numerator, denominator):
            return replace(output, numerator=over(numerator), denominator=over(denominator))
    return output


def _placed(cells: Cells, order: Sequence[int]) -> Cells:
    """Cells in another order."""
    return Cells(*(tuple(getattr(cells, each.name)[i] for i in order) for each in fields(Cells)))


def _joined(some: Sequence[Cells]) -> Cells:
    return Cells(*(tuple(x for cells in some for x in getattr(cells, each.name)) for each in fields(Cells)))
