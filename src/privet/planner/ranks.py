"""Quantiles, minimum and maximum in a plan: codes that are chosen by rank, and counts that certify an interval.

The codes are chosen by `mechanisms.splitting`. For an interval, a code below and one above each quantile are chosen
too, `reach` ranks away. Then the rows below, between and above these codes are counted, with noise. A code is an end of
the interval if the noisy counts say so beyond their margin; else the end is the public bound. So an interval is wrong
only if noise exceeds its margin, whatever the data are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from privet.codec import ratio
from privet.exact import Exact
from privet.mechanisms import NoiseMechanism
from privet.mechanisms.splitting import Step, edge_steps, levels, quantile_steps
from privet.privacy import events
from privet.privacy.adjacency import Adjacency
from privet.privacy.events import BoundedRange
from privet.privacy.guarantees import Guarantee, PureDP, ZeroConcentratedDP, budgets
from privet.privacy.moves import Move
from privet.privacy.sensitivity import l1_move, l2_move
from privet.tables.codec import encode
from privet.tables.expressions.rendering import show
from privet.tables.ranked import Extreme, Ranked
from privet.tables.statement import Code, Present, Tally

VALUES, SIDES, COUNTS = Exact(40, 100), Exact(22, 100), Exact(38, 100)
"""The shares of epsilon with an interval: for the quantiles, for the codes beside them, and for the counts."""
EDGE = Exact(3, 4)
"""The share for a minimum or maximum; the rest is for the count."""
NEARER: tuple[Exact, ...] = (Exact(1), Exact(3, 5), Exact(2, 5), Exact(1, 4))
"""Where rows are counted beside a single quantile: at these parts of the way to the chosen codes."""
USUAL = Exact(95, 100)
"""The confidence for which the codes beside a quantile are chosen; at others, the ends are public bounds more often."""


@dataclass(frozen=True, slots=True)
class RankMeasurement:
    """Which codes are chosen in each group, and whether rows between them are counted."""

    aggregate: Ranked
    code: Code
    people: ClassVar[bool] = False
    distinct: ClassVar[None] = None

    @property
    def rule(self) -> str:
        return "edge/1" if isinstance(self.aggregate, Extreme) else "quantiles/1"

    @property
    def quantity(self) -> str:
        return str(self.aggregate)

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """The rows to choose from are those with a code."""
        return (Present(self.code),)

    @property
    def ranks(self) -> tuple[Exact, ...]:
        """The quantiles; 0 for a minimum, 1 for a maximum."""
        if isinstance(self.aggregate, Extreme):
            return (Exact(int(self.aggregate.largest)),)
        return self.aggregate.ranks

    @property
    def steps(self) -> tuple[Step, ...]:
        """The choices, level by level."""
        if isinstance(self.aggregate, Extreme):
            return edge_steps(largest=self.aggregate.largest)
        return quantile_steps(self.aggregate.ranks, sides=self.aggregate.interval)

    @property
    def counts(self) -> int:
        """How many numbers of rows are measured."""
        if not self.aggregate.interval:
            return 0
        return 2 if isinstance(self.aggregate, Extreme) else 2 * len(self.ranks) * len(self.nearer) + 1

    @property
    def nearer(self) -> tuple[Exact, ...]:
        """The parts of the way to the codes beside a quantile at which rows are counted, the farthest first."""
        return NEARER if len(self.ranks) == 1 else NEARER[:1]

    def ends(self, codes: Sequence[int], index: int) -> tuple[list[int], list[int]]:
        """The codes that may be the lower end of a quantile's interval, and the upper end; the farthest first."""
        many = len(self.ranks)
        value, low, high = codes[index], codes[many + index], codes[2 * many + index]
        below = [value - int((value - low) * part) for part in self.nearer]
        return below, [value + int((high - value) * part) for part in self.nearer]

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
        if isinstance(self.aggregate, Extreme):
            return [codes[0] if self.aggregate.largest else codes[0] + 1]
        pairs = [self.ends(codes, i) for i in range(len(self.ranks))]
        return sorted([low for below, _ in pairs for low in below] + [high + 1 for _, above in pairs for high in above])


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
    """How many ranks from the quantile, or from the edge, choices beside it aim."""

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
        shares = self._shares()
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
        return replace(made, reach=made._reach())

    def _shares(self) -> list[Exact]:
        """The share of epsilon of each level, then of the counts if there are any."""
        measured = self.measurement
        many = levels(measured.steps)
        if not measured.counts:
            return [Exact(1, many)] * many
        if measured.rule == "edge/1":
            return [EDGE, 1 - EDGE]
        beside = 1 if len(measured.ranks) == 1 else 2
        return [*[VALUES / (many - beside)] * (many - beside), *[SIDES / beside] * beside, COUNTS]

    def _reach(self) -> int:
        """How many ranks away to aim.

        Claim: any number is as private. An edge aims so far inside that e^3 times all codes beyond it weigh less than
        one at it: 2 D (ln N + 3) / epsilon. Beside a quantile, so far that the counts prove it in 99 % of answers.
        """
        codes = self.measurement.code.width + 1
        if self.measurement.rule == "edge/1":
            (step,) = self.measurement.steps
            return math.ceil((codes.bit_length() * 0.6932 + 3) / float(self.rate(step)))
        if not self.measurement.counts:
            return 0
        form = self.measurement
        size, middle = form.counts, form.ranks[len(form.ranks) // 2]
        split = max(1, size // 2)
        weights = [1 - middle] * split + [-middle] * (size - split)
        margin = self.mechanism.error_of_sum(tuple(weights), (self.scale,) * size, USUAL)
        beside = max(1 / float(self.rate(step)) for step in form.steps if step.side)
        within = max(1 / float(self.rate(step)) for step in form.steps if not step.side)
        spread = (1.3 * float(margin)) ** 2 + (5 * beside) ** 2 + (3 * within) ** 2
        return 1 + math.ceil(float(margin) + math.sqrt(spread))

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
            },
        }  # fmt: skip


def _root(number: Exact, bits: int = 64) -> Exact:
    """The square root, rounded down to a multiple of 2^-bits, or to 64 bits of it."""
    more = bits + max(0, number.denominator.bit_length() - number.numerator.bit_length())
    return Exact(math.isqrt((number.numerator << 2 * more) // number.denominator), 1 << more)
