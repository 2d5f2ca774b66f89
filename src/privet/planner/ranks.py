"""Quantiles, minimum and maximum in a plan: codes that are chosen by rank, and counts that certify an interval.

The codes are chosen by `mechanisms.splitting`. For an interval, a code below and one above each quantile are chosen
too, `reach` ranks away; a minimum or maximum aims `inside` ranks from the edge. Then the rows below, between and above
these codes are counted, with noise. A code is an end of the interval if the noisy counts say so beyond their margin;
else the end is the public bound. So an interval is wrong only if noise exceeds its margin, whatever the data are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from privet.codec import ratio
from privet.exact import Exact
from privet.mechanisms import NoiseMechanism
from privet.mechanisms.splitting import Step, levels, steps_of
from privet.planner.confidences import USUAL, careful
from privet.privacy import events
from privet.privacy.adjacency import Adjacency
from privet.privacy.events import BoundedRange
from privet.privacy.guarantees import Guarantee, PureDP, ZeroConcentratedDP, budgets
from privet.privacy.moves import Move
from privet.privacy.sensitivity import l1_move, l2_move
from privet.tables.codec import encode
from privet.tables.expressions.rendering import show
from privet.tables.ranked import Extreme, Quantiles
from privet.tables.statement import Code, Present, Tally

VALUES, SIDES, COUNTS = Exact(40, 100), Exact(22, 100), Exact(38, 100)
"""The shares of epsilon with an interval: for the quantiles, for the codes beside them, and for the counts."""
EDGE = Exact(2, 3)
"""The share for a minimum or maximum; the rest is for the count."""
NEARER: tuple[Exact, ...] = (Exact(1), Exact(3, 5), Exact(2, 5), Exact(1, 4))
"""Where rows are counted beside a quantile: at these parts of the way to the chosen codes."""
FEW = 4
"""The number of quantiles up to which rows are counted at all of these; beside more, at the chosen codes alone."""


@dataclass(frozen=True, slots=True)
class RankMeasurement:
    """Which codes are chosen in each group, and whether rows between them are counted.

    They are quantiles, or a minimum or maximum, or both in one table of choices.
    """

    code: Code
    ranks: tuple[Exact, ...]
    """The quantiles, ascending."""
    edges: tuple[bool, ...]
    """A maximum for True, a minimum for False."""
    interval: bool
    depth: int = 1
    """The levels of the smallest aggregate by rank that it answers: shares of the price are relative to that."""
    people: ClassVar[bool] = False
    distinct: ClassVar[None] = None

    @property
    def rule(self) -> str:
        return "quantiles/1" if self.ranks else "edge/1"

    @property
    def quantity(self) -> str:
        """What is chosen, in words."""
        of = self.code.expression
        between = [str(Quantiles(of, self.ranks))] if self.ranks else []
        return ", ".join([*between, *(str(Extreme(of, largest)) for largest in self.edges)])

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """The rows to choose from are those with a code."""
        return (Present(self.code),)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The choices, level by level."""
        return steps_of(self.ranks, sides=self.interval, edges=self.edges)

    @property
    def first_edge(self) -> int:
        """The place of the first edge among the chosen codes."""
        return len(self.ranks) * (3 if self.interval else 1)

    @property
    def counts(self) -> int:
        """How many numbers of rows are measured."""
        return 2 * len(self.ranks) * len(self.nearer) + len(self.edges) + 1 if self.interval else 0

    @property
    def nearer(self) -> tuple[Exact, ...]:
        """The parts of the way to the codes beside a quantile at which rows are counted, the farthest first."""
        return NEARER if len(self.ranks) <= FEW else NEARER[:1]

    def ends(self, codes: Sequence[int], index: int) -> tuple[list[int], list[int]]:
        """The codes that may be the lower end of a quantile's interval, and the upper end; the farthest first."""
        many = len(self.ranks)
        value, low, high = codes[index], codes[many + index], codes[2 * many + index]
        parts = [(part.numerator, part.denominator) for part in self.nearer]
        below = [value - (value - low) * a // b for a, b in parts]
        return below, [value + (high - value) * a // b for a, b in parts]

    def edge(self, codes: Sequence[int], index: int) -> int:
        """From which code on rows are counted for an edge: those from a maximum on, or those above a minimum."""
        code = codes[self.first_edge + index]
        return code if self.edges[index] else code + 1

    @property
    def corners(self) -> tuple[tuple[int, ...], ...]:
        """What a row can add to the counts: 1 to one of them, or nothing."""
        size = self.counts
        return (*(tuple(int(i == j) for j in range(size)) for i in range(size)), (0,) * size)

    @property
    def size(self) -> int:
        """The number of integers in each group: codes, then counts."""
        return len(self.steps) + self.counts

    def thresholds(self, codes: Sequence[int]) -> list[int]:
        """The codes between which rows are counted: rows below the first, from it to below the second, and so on.

        The end below a quantile is where rows are below it, the end above is the last code that is not above it.
        """
        pairs = [self.ends(codes, i) for i in range(len(self.ranks))]
        beside = [low for below, _ in pairs for low in below] + [high + 1 for _, above in pairs for high in above]
        return sorted([*beside, *(self.edge(codes, i) for i in range(len(self.edges)))])

    def weights(self) -> list[Exact]:
        """The relative share of the price of each level, then of the counts if there are any.

        A share of rho falls with the square of it. What a quantile or an edge gets alone has the weight 1 in all.
        """
        values = levels(steps_of(self.ranks, sides=False)) if self.ranks else 0
        if not self.interval:
            return [*[Exact(1, self.depth)] * values, *[Exact(1)] * bool(self.edges)]
        much, beside = Exact(values, self.depth), 1 if len(self.ranks) == 1 else 2
        shares = [*[VALUES / self.depth] * values, *[SIDES * much / beside] * (beside if values else 0)]
        edge = 1 - EDGE if self.edges else Exact(0)
        return [*shares, *[EDGE] * bool(self.edges), max(COUNTS * much, edge)]


@dataclass(frozen=True, slots=True)
class ChosenRanks:
    """Choices by rank at a price, with the noise of the counts."""

    measurement: RankMeasurement
    rows: int
    """Maximum rows per person."""
    max_groups: int
    groups: int
    adjacency: Adjacency
    mechanism: NoiseMechanism
    """Of the noise of the counts."""
    same_rows: ClassVar[bool] = False
    level: ClassVar[None] = None
    price: PureDP | ZeroConcentratedDP
    epsilons: tuple[Exact, ...] = ()
    """The bounded range of each level."""
    scale: Exact = Exact(1)  # noqa: RUF009
    """The scale of the noise of each count."""
    reach: int = 0
    """How many ranks from the quantile choices beside it aim."""
    inside: int = 0
    """How many ranks from the edge a minimum or maximum aims."""

    @property
    def move(self) -> Move:
        """How far one person moves the counts: each row is in one of them, or in none."""
        moved = l1_move if self.mechanism.norm == "L1" else l2_move
        return moved(
            self.measurement.corners,
            adjacency=self.adjacency,
            rows=self.rows // self.max_groups,
            max_groups=self.max_groups,
            groups=self.groups,
        )

    @property
    def coordinates(self) -> int:
        """The number of counts, in all groups together."""
        return self.measurement.counts * self.groups

    def moved(self, step: Step) -> Exact:
        """How far one person moves the distance of a candidate."""
        return step.moved(rows=self.rows, adjacency=self.adjacency, groups=self.groups)

    def rate(self, step: Step) -> Exact:
        """The weight of a candidate falls by e^-rate with each rank."""
        return self.epsilons[step.level] / (2 * self.moved(step))

    def at(self, price: Guarantee) -> ChosenRanks:
        """The same at another price."""
        assert isinstance(price, PureDP | ZeroConcentratedDP)
        shares = self.measurement.weights()
        power = 2 if isinstance(price, ZeroConcentratedDP) else 1
        whole = sum((share**power for share in shares), Exact(0))
        parts = [share**power / whole for share in shares]
        if isinstance(price, ZeroConcentratedDP):
            epsilons = tuple(_root(8 * price.rho * part) for part in parts)
        else:
            epsilons = tuple(price.epsilon * part for part in parts)
        scale = Exact(1)
        if self.measurement.counts:
            epsilons = epsilons[:-1]
            amount: Guarantee = (
                ZeroConcentratedDP.derived(price.rho * parts[-1])
                if isinstance(price, ZeroConcentratedDP)
                else PureDP.derived(price.epsilon * parts[-1])
            )
            scale = self.mechanism.calibrate(self.move, amount, coordinates=self.coordinates)
        made = replace(self, price=price, epsilons=epsilons, scale=scale)
        return replace(made, reach=made._reach(), inside=made._inside())

    def away(self, step: Step) -> int:
        """How many ranks a choice aims away from the quantile that it is beside, or from the edge."""
        return self.inside if step.place >= self.measurement.first_edge else self.reach

    def _inside(self) -> int:
        """How many ranks inside an edge aims.

        Claim: any number is as private. It aims so far inside that e^3 times all codes beyond it weigh less than one
        at it: 2 D (ln N + 3) / epsilon; and so far that the count proves it without a mark in some 96 % of answers.
        """
        if not self.measurement.edges:
            return 0
        codes, rate = self.measurement.code.width + 1, float(self.rate(self.measurement.steps[-1]))
        least = (codes.bit_length() * 0.6932 + 3) / rate
        if self.measurement.counts:
            usual, sure = (float(self._margin((Exact(1),), level)) for level in (USUAL, careful(USUAL)))
            least = max(least, 1 + sure + math.hypot(0.85 * usual, 3 / rate))
        return math.ceil(least)

    def _margin(self, weights: tuple[Exact, ...], confidence: Exact) -> Exact:
        """The error of a sum of counts."""
        return self.mechanism.error_of_sum(weights, (self.scale,) * len(weights), confidence)

    def _reach(self) -> int:
        """How many ranks beside a quantile to aim: so far that the counts prove it without a mark in 98 % of answers.

        Claim: any number is as private.
        """
        form = self.measurement
        if not form.counts or not form.ranks:
            return 0
        size, middle = form.counts, form.ranks[len(form.ranks) // 2]
        split = max(1, size // 2)
        weights = [1 - middle] * split + [-middle] * (size - split)
        margin, sure = (float(self._margin(tuple(weights), level)) for level in (USUAL, careful(USUAL)))
        steps = [step for step in form.steps if step.place < form.first_edge]
        beside = max(1 / float(self.rate(step)) for step in steps if step.side)
        within = max(1 / float(self.rate(step)) for step in steps if not step.side)
        return 1 + math.ceil(sure + math.hypot(1.3 * margin, 5 * beside, 3 * within))

    def restored(self, measured: Any) -> ChosenRanks:
        """The same as a certificate has it."""
        price = budgets.from_tree(measured["price"])
        assert isinstance(price, PureDP | ZeroConcentratedDP)
        return self.at(price)

    def choices(self) -> list[events.PrivacyEvent]:
        """The events of the choices: one for each level, since those of a level look at different rows."""
        return [BoundedRange(epsilon=epsilon) for epsilon in self.epsilons]

    def noises(self) -> list[events.PrivacyEvent]:
        """The event of the noise of the counts, if there are any."""
        if not self.measurement.counts:
            return []
        return [self.mechanism.event(self.move, scale=self.scale, coordinates=self.coordinates)]

    def facts(self, statement: int) -> dict[str, Any]:
        """What a certificate says about it."""
        what = self.measurement
        return {
            "statement": statement,
            "rule": what.rule,
            "mechanism": self.mechanism.name,
            "quantity": what.quantity,
            "tallies": [encode(tally) for tally in what.tallies],
            "expression": show(what.code.expression),
            "steps": [
                {
                    "place": step.place, "left": step.left, "right": step.right, "q": ratio(step.q), "side": step.side,
                    "split": step.split, "level": step.level, "moved": ratio(self.moved(step)),
                }
                for step in what.steps
            ],
            "counts": what.counts,
            "rows_per_person": self.rows,
            "groups": self.groups,
            "adjacency": str(self.adjacency),
            "move": events.move_to_tree(self.move) if what.counts else None,
            "price": budgets.to_tree(self.price),
            "scale": {
                "epsilons": [ratio(epsilon) for epsilon in self.epsilons],
                "counts": ratio(self.scale) if what.counts else None,
                "reach": self.reach,
                "inside": self.inside,
            },
        }  # fmt: skip


def _root(number: Exact, bits: int = 64) -> Exact:
    """The square root, rounded down to a multiple of 2^-bits, or to 64 bits of it."""
    more = bits + max(0, number.denominator.bit_length() - number.numerator.bit_length())
    return Exact(math.isqrt((number.numerator << 2 * more) // number.denominator), 1 << more)
