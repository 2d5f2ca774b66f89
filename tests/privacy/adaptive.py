"""The best adaptive analyst against a filter, found by exact search: who asks what depends on all earlier answers.

A question is a pair of output laws, P with a person and Q without, and a price. The analyst may ask any question of a
menu that the filter still grants, and may stop. The hockey-stick divergence of the transcripts is the largest over all
such analysts: from the end, each chooses what makes the expected (1 - e^E Q/P)+ largest, which is a recursion over how
often each answer was seen.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from privet.privacy.accounting import Accountant
from privet.privacy.accounting.meters import MeterAccountant, Readings
from privet.privacy.events import BoundedRange, LaplaceNoise, PrivacyEvent, Stated
from privet.privacy.guarantees import ApproxDP
from privet.privacy.moves import L1Move


@dataclass(frozen=True)
class Question:
    event: PrivacyEvent | None
    """None for a question that is priced by its laws."""
    laws: tuple[tuple[float, float], ...]
    """The probabilities of each answer, with the person and without."""

    def price(self, accountant: Accountant[Any]) -> Any:
        if self.event is not None:
            return accountant.price(self.event)
        assert isinstance(accountant, MeterAccountant)
        worst = max(abs(math.log(p / q)) for p, q in self.laws)
        taus = tuple(Fraction(self.divergence(order) + 1e-12) for order in accountant.orders)
        return Readings(Fraction(worst + 1e-12), Fraction(0), taus)

    def divergence(self, order: int) -> float:
        """The Renyi divergence of this order, in both directions."""
        moments = [
            sum(p**order * q ** (1 - order) for p, q in laws) for laws in (self.laws, [w[::-1] for w in self.laws])
        ]
        return math.log(max(moments)) / (order - 1)


def randomized_response(epsilon: Fraction, delta: Fraction = Fraction(0)) -> Question:
    """The worst (epsilon, delta)-DP mechanism: with probability delta it tells all."""
    likely = 1 / (1 + math.exp(-epsilon))
    rest = 1 - float(delta)
    laws = [(rest * likely, rest * (1 - likely)), (rest * (1 - likely), rest * likely)]
    leaks = [(float(delta), 0.0), (0.0, float(delta))] if delta else []
    return Question(Stated(epsilon=epsilon, delta=delta), (*laws, *leaks))


def laplace(scale: Fraction, shift: int) -> Question:
    """The log ratio of discrete Laplace noise, which says all about the person: its values from -shift to shift."""
    r = math.exp(-1 / scale)
    weight = (1 - r) / (1 + r)
    p = {k: weight * r ** abs(k) for k in range(1, shift)} | {0: 1 / (1 + r), shift: r**shift / (1 + r)}
    q = {k: weight * r ** abs(k - shift) for k in range(1, shift)} | {0: r**shift / (1 + r), shift: 1 / (1 + r)}
    return Question(LaplaceNoise(move=L1Move(shift), scale=scale), tuple((p[k], q[k]) for k in sorted(p)))


def choice(epsilon: Fraction, top: float) -> Question:
    """A choice between two with log ratios top and top - epsilon."""
    high, low = math.exp(top), math.exp(top - epsilon)
    q = (1 - low) / (high - low)
    return Question(BoundedRange(epsilon=epsilon), ((q * high, q), ((1 - q) * low, 1 - q)))


def coin(p: float, q: float) -> Question:
    """Heads with probability p with the person, and q without."""
    return Question(None, ((p, q), (1 - p, 1 - q)))


def worst_delta(
    accountant: Accountant[Any], budget: ApproxDP, menu: Sequence[Question], most: int, *, swapped: bool = False
) -> float:
    """The largest delta at the budget's epsilon of any analyst who asks at most so many questions."""
    prices = [question.price(accountant) for question in menu]
    factor = math.exp(budget.epsilon)
    answers = [(i, law[::-1] if swapped else law) for i, question in enumerate(menu) for law in question.laws]

    @cache
    def granted(asked: tuple[int, ...]) -> Any:
        total = accountant.zero
        for price, times in zip(prices, asked, strict=True):
            for _ in range(times):
                total = accountant.add(total, price)
        return accountant.fits(total, budget)

    @cache
    def best(seen: tuple[int, ...]) -> float:
        """The most that can still be had of (P - e^E Q)+, from here on."""
        p = math.prod(law[0] ** n for n, (_, law) in zip(seen, answers, strict=True))
        q = math.prod(law[1] ** n for n, (_, law) in zip(seen, answers, strict=True))
        if p == 0:
            return 0.0
        if q == 0:
            return p
        most_here = max(0.0, p - factor * q)
        if sum(seen) == most:
            return most_here
        asked = [sum(n for n, (which, _) in zip(seen, answers, strict=True) if which == i) for i in range(len(menu))]
        for i in range(len(menu)):
            if not granted(tuple(n + (j == i) for j, n in enumerate(asked))):
                continue
            ahead = sum(
                best(tuple(n + (k == at) for k, n in enumerate(seen)))
                for at, (which, _) in enumerate(answers)
                if which == i
            )
            most_here = max(most_here, ahead)
        return most_here

    return best((0,) * len(answers))


Meters = Callable[[random.Random, ApproxDP], Accountant[Any]]


def some_meters(draw: random.Random, budget: ApproxDP) -> MeterAccountant:
    count = draw.choice([1, 1, 2, 3])
    parts = [draw.randint(1, 9) for _ in range(count)]
    leaks = draw.choice([0, draw.randint(1, 9)])
    orders = tuple(sorted(draw.sample(range(2, 20), count)))
    return MeterAccountant(orders, tuple(Fraction(part, sum(parts) + leaks) for part in parts))


def search(cases: range, meters: Meters) -> tuple[float, int]:
    """The largest share of delta that any analyst of these cases reached, and its case."""
    return max((attack(case, meters), case) for case in cases)


def attack(case: int, meters: Meters) -> float:
    """The share of the budget's delta that the best analyst of this case reaches."""
    draw = random.Random(case)
    budget = ApproxDP(Fraction(draw.randint(2, 30), 10), Fraction(draw.randint(1, 60), 200))
    accountant = meters(draw, budget)
    menu = [_question(draw, budget) for _ in range(draw.choice([1, 1, 2, 3]))]
    answers = sum(len(question.laws) for question in menu)
    most = {2: 40, 3: 16, 4: 12, 5: 8, 6: 7}.get(answers, 5)
    return max(worst_delta(accountant, budget, menu, most, swapped=way) for way in (False, True)) / float(budget.delta)


def _question(draw: random.Random, budget: ApproxDP) -> Question:
    epsilon = budget.epsilon * Fraction(draw.randint(1, 40), 40)
    kind = draw.choice(["response", "response", "leak", "laplace", "choice", "coin"])
    if kind == "coin":
        heads = 10 ** draw.uniform(-3, -0.05)
        other = heads * math.exp(-epsilon)
        return coin(heads, other) if draw.random() < 0.5 else coin(other, heads)
    if kind == "leak":
        return randomized_response(epsilon, budget.delta * Fraction(draw.randint(1, 20), 40))
    if kind == "laplace":
        shift = draw.randint(1, 3)
        return laplace(shift / epsilon, shift)
    if kind == "choice":
        return choice(epsilon, float(epsilon) * draw.uniform(0.05, 0.95))
    return randomized_response(epsilon)
