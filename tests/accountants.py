"""A toy accountant, as anybody could add one: a file like this, and one line in the registry."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar, NamedTuple

from privet.codec import ratio, read_amount
from privet.privacy.accounting import Accountant, Shown
from privet.privacy.events import BoundedRange, Free, LaplaceNoise, PrivacyEvent, Stated, leaves
from privet.privacy.guarantees import ApproxDP


class Meters(NamedTuple):
    epsilon: Fraction
    squares: Fraction


@dataclass(frozen=True)
class TwoMeters(Accountant[Meters]):
    """The sum of the epsilons and the sum of their squares; a budget covers a total if either meter does.

    It is for tests: no theorem says that a quarter of epsilon squared is enough.
    """

    name: ClassVar[str] = "two meters"
    promises: ClassVar[type] = ApproxDP
    zero: ClassVar[Meters] = Meters(Fraction(0), Fraction(0))  # type: ignore[misc]

    def price(self, event: PrivacyEvent, /) -> Meters:
        prices = [(times, self._epsilon(leaf, path)) for path, leaf, times in leaves(event)]
        return Meters(sum((n * e for n, e in prices), Fraction(0)), sum((n * e * e for n, e in prices), Fraction(0)))

    def _epsilon(self, leaf: PrivacyEvent, path: str) -> Fraction:
        if type(leaf) is LaplaceNoise:
            return leaf.move.total / leaf.scale
        if type(leaf) is BoundedRange or (type(leaf) is Stated and leaf.delta == 0):
            return leaf.epsilon
        if type(leaf) is Free:
            return Fraction(0)
        raise self.unknown(path, leaf)

    def add(self, total: Meters, price: Meters, /) -> Meters:
        return Meters(total.epsilon + price.epsilon, total.squares + price.squares)

    def at_most(self, one: Meters, other: Meters, /) -> bool:
        return one.epsilon <= other.epsilon and one.squares <= other.squares

    def fits(self, total: Meters, budget: ApproxDP, /) -> bool:
        return total.epsilon <= budget.epsilon or total.squares <= budget.epsilon**2 / 4

    def spent(self, total: Meters, budget: ApproxDP, /) -> ApproxDP:
        return ApproxDP(total.epsilon, 0)

    def left(self, total: Meters, budget: ApproxDP, /) -> ApproxDP:
        squares = max(budget.epsilon**2 / 4 - total.squares, Fraction(0))
        root = Fraction(isqrt(squares.numerator * 2**80 // squares.denominator), 2**40)
        return ApproxDP(max(budget.epsilon - total.epsilon, root, Fraction(0)), 0)

    def share(self, total: Meters, budget: ApproxDP, /) -> Fraction:
        if not budget.epsilon:
            return Fraction(0)
        spent = min(total.epsilon / budget.epsilon, 4 * total.squares / budget.epsilon**2)
        return max(1 - spent, Fraction(0))

    def show(self, total: Meters, budget: ApproxDP, /) -> Shown:
        share = int(100 * self.share(total, budget))
        return Shown(f"{100 - share} % of the budget", f"{share} % of the budget")

    def to_json(self, total: Meters, /) -> list[str]:
        return [ratio(total.epsilon), ratio(total.squares)]

    def from_json(self, tree: Any, /) -> Meters:
        if not isinstance(tree, list) or len(tree) != 2:
            raise ValueError("two meters are needed")
        return Meters(read_amount(tree[0]), read_amount(tree[1]))
