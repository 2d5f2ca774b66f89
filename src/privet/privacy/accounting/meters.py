"""The accountant of approximate differential privacy by meters: many small questions cost far less than their sum."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_DOWN
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple

from privet.codec import ratio, read_amount
from privet.exact import Exact, nearest, shorter_up, show, show_up
from privet.exact.rounding import add_up, at_most
from privet.exact.search import last
from privet.privacy import renyi
from privet.privacy.accounting.base import Accountant, Share, Shown, percent_down, percent_up
from privet.privacy.events import (
    BoundedRange,
    Free,
    GaussianNoise,
    JointGaussian,
    LaplaceNoise,
    PrivacyEvent,
    Stated,
    leaves,
)
from privet.privacy.gaussian import delta_of
from privet.privacy.guarantees import ApproxDP

_HIGHEST = 2**40  # the highest order that is considered
_LEAKS = Exact(1, 2)  # the share of delta for questions that have a delta of their own
_LEAKS_OF_ONE = 2**20  # questions without a delta of their own use up what is set aside for leaks
_DIGITS = 10**6  # to which `left` is found


class Readings(NamedTuple):
    """A price, or a total, on every meter; None on a meter that can't bound it."""

    epsilon: Exact | None
    delta: Exact
    renyi: tuple[Exact | None, ...]
    """At each order."""


@dataclass(frozen=True)
class MeterAccountant(Accountant[Readings]):
    """A pure meter and Renyi meters of fixed orders, each with a share of delta; the rest of delta is for leaks.

    Claim: let the budget be (E, delta), and let the price of a question, a function of the past, be (eps, d, tau_1 ...
    tau_m), where for each pair of neighbours with output laws P and Q some P' <= P has mass at least 1 - d,
    P' <= e^eps Q, and a Renyi divergence of order alpha_j from Q of at most tau_j. A total fits if the sum of d is at
    most the share of leaks, and the sum of eps is at most E or, for some j, that of tau_j is at most
    `renyi.allowance(alpha_j, E, delta_j)`. Then all granted answers together are (E, delta)-DP, for adaptive questions.
    A question that fits the plain sum of epsilons fits, while its deltas do. The proof is in docs/theory.md.

    Orders and shares are chosen from the budget alone, when a dataset is made, and never change: orders that were
    chosen after looking at the history would promise nothing.

    Example:
        >>> meters = MeterAccountant().for_budget(ApproxDP(1, 1e-6))
        >>> meters.orders, [str(share) for share in meters.shares]
        ((23,), ['1/2'])
        >>> from privet.privacy.events import Repeated
        >>> question = Stated(epsilon=0.01, delta=0)
        >>> total = meters.price(Repeated(question, 460))
        >>> meters.fits(total, ApproxDP(1, 1e-6)), float(total.epsilon)
        (True, 4.6)

    Reference: Feldman, Zrnic, "Individual privacy accounting via a Renyi filter", NeurIPS 2021, for one order.
    """

    name: ClassVar[str] = "meters"
    promises: ClassVar[type] = ApproxDP
    orders: tuple[int, ...] = ()
    shares: tuple[Exact, ...] = ()
    """Of delta, one for each order."""

    def for_budget(self, budget: ApproxDP, /) -> MeterAccountant:
        """One order, at which small questions cost the smallest part of its allowance, with half of delta."""
        order = _best_order(budget.epsilon, (1 - _LEAKS) * budget.delta)
        return MeterAccountant() if order is None else MeterAccountant((order,), (1 - _LEAKS,))

    @property
    def zero(self) -> Readings:  # type: ignore[override]
        """The price of revealing nothing."""
        return Readings(Exact(0), Exact(0), (Exact(0),) * len(self.orders))

    # --- prices -----------------------------------------------------------------------------------

    def price(self, event: PrivacyEvent, /) -> Readings:
        """The sums over the leaves; None for a meter on which a leaf has no price."""
        parts = [(times, self._price(leaf, path)) for path, leaf, times in leaves(event)]
        taus = (_total((times, part.renyi[i]) for times, part in parts) for i in range(len(self.orders)))
        delta = sum((times * part.delta for times, part in parts), Exact(0))
        return Readings(_total((times, part.epsilon) for times, part in parts), delta, tuple(taus))

    def _price(self, leaf: PrivacyEvent, path: str) -> Readings:
        orders = self.orders
        match leaf:
            case LaplaceNoise() if type(leaf) is LaplaceNoise:
                block = renyi.laplace(orders, leaf.scale, leaf.move.l1)
                taus = tuple(leaf.move.blocks * tau for tau in block)
                return Readings(shorter_up(leaf.move.total / leaf.scale), Exact(0), taus)
            case BoundedRange() if type(leaf) is BoundedRange:
                return Readings(shorter_up(leaf.epsilon), Exact(0), renyi.bounded_range(orders, leaf.epsilon))
            case Stated() if type(leaf) is Stated:
                taus = renyi.randomized_response(orders, leaf.epsilon)
                return Readings(shorter_up(leaf.epsilon), shorter_up(leaf.delta), taus)
            case GaussianNoise() if type(leaf) is GaussianNoise:
                taus = renyi.concentrated(orders, leaf.rho)
                if leaf.move.squared == 0:
                    return self.zero
                if leaf.epsilon is None:
                    return Readings(None, Exact(0), taus)
                return Readings(shorter_up(leaf.epsilon), shorter_up(delta_of(leaf)), taus)
            case JointGaussian() if type(leaf) is JointGaussian:
                taus = renyi.concentrated(orders, leaf.rho)
                return Readings(shorter_up(leaf.epsilon), shorter_up(delta_of(leaf)), taus) if leaf.rho else self.zero
            case Free() if type(leaf) is Free:
                return self.zero
        raise self.unknown(path, leaf)

    def add(self, total: Readings, price: Readings, /) -> Readings:
        """Each meter adds up."""
        return _sum(total, price)

    def at_most(self, one: Readings, other: Readings, /) -> bool:
        """Compares every meter."""
        pairs = zip((one.epsilon, *one.renyi), (other.epsilon, *other.renyi), strict=True)
        return one.delta <= other.delta and all(b is None or (a is not None and a <= b) for a, b in pairs)

    # --- the budget -------------------------------------------------------------------------------

    def limits(self, budget: ApproxDP, /) -> Readings:
        """The most that each meter may read; 0 on a Renyi meter that this budget has no use for."""
        return _limits(self, budget)

    def fits(self, total: Readings, budget: ApproxDP, /) -> bool:
        """Whether the leaks fit, and any meter is within its limit."""
        limits = self.limits(budget)
        return at_most(total.delta, limits.delta) and any(
            reading is not None and at_most(reading, limit) for reading, limit in _meters(total, limits)
        )

    def covers(self, price: Readings, cap: ApproxDP, /) -> bool:
        """One question may use the whole of delta: for its own delta, or for a Renyi meter."""
        alone = price.epsilon is not None and at_most(price.epsilon, cap.epsilon) and at_most(price.delta, cap.delta)
        return alone or self.fits(price, cap)

    def stated_delta(self, budget: ApproxDP, /) -> Exact:
        """A millionth of what is set aside for leaks: an epsilon grows only with the root of its logarithm."""
        return self.limits(budget).delta / _LEAKS_OF_ONE

    def spent(self, total: Readings, budget: ApproxDP, /) -> Share:
        """The share that is used of the meter that has most left: what is promised is the budget, and nothing less."""
        parts = [
            reading / limit for reading, limit in _meters(total, self.limits(budget)) if limit and reading is not None
        ]
        return Share(min(parts, default=Exact(1)), budget)

    def share(self, total: Readings, budget: ApproxDP, /) -> Exact:
        """The share that is left of the meter that has most left; 0 if the leaks are more than their share."""
        if total.delta > self.limits(budget).delta:
            return Exact(0)
        return max(1 - self.spent(total, budget).used, Exact(0))

    def left(self, total: Readings, budget: ApproxDP, /) -> ApproxDP:
        """The largest epsilon, to six digits and at most the budget's, and delta that one more question may have."""
        return _left(self, total, budget)

    def show(self, total: Readings, budget: ApproxDP, /) -> Shown:
        """A share that is spent, in percent; what is left as an epsilon, like that of other budgets, and as a share."""
        used = self.spent(total, budget).used
        left = show(self.left(total, budget).epsilon, rounding=ROUND_DOWN)
        return Shown(percent_up(used), f"epsilon {left} ({percent_down(self.share(total, budget))})")

    def show_price(self, price: Readings, budget: ApproxDP, /) -> str:
        """Each reading, rounded up, beside its limit; one of them must fit, and delta."""
        limits = self.limits(budget)
        pairs = [("epsilon", price.epsilon, limits.epsilon)]
        names = (f"Renyi divergence (order {order})" for order in self.orders)
        pairs += zip(names, price.renyi, limits.renyi, strict=True)
        texts = [
            f"{name} {'unbounded' if reading is None else show_up(reading, 3)} of {show(limit, 3)}"
            for name, reading, limit in pairs
            if limit
        ]
        leaks = f"; and delta {show_up(price.delta, 3)} of {show(limits.delta, 3)}" if price.delta else ""
        return ", or ".join(texts) + leaks + "."

    # --- settings ---------------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """The orders and their shares of delta."""
        return {"orders": list(self.orders), "shares": [ratio(share) for share in self.shares]}

    def with_settings(self, tree: dict[str, Any], /) -> MeterAccountant:
        """The inverse."""
        if tree.keys() != {"orders", "shares"}:
            raise ValueError("meters must have orders and shares")
        orders, shares = tuple(tree["orders"]), tuple(map(read_amount, tree["shares"]))
        sound = all(type(order) is int and 1 < order <= _HIGHEST for order in orders) and len(shares) == len(orders)
        if not sound or list(orders) != sorted(set(orders)) or sum(shares) > 1:
            raise ValueError("meters must have rising orders, each with a share of delta")
        return MeterAccountant(orders, shares)

    # --- texts ------------------------------------------------------------------------------------

    def to_json(self, total: Readings, /) -> dict[str, Any]:
        """Each meter as "p/q", or null."""
        return {
            "epsilon": _write(total.epsilon),
            "delta": ratio(total.delta),
            "renyi": [_write(tau) for tau in total.renyi],
        }

    def from_json(self, tree: Any, /) -> Readings:
        """The inverse."""
        if not isinstance(tree, dict) or tree.keys() != {"epsilon", "delta", "renyi"}:
            raise ValueError("a price on meters must have an epsilon, a delta and Renyi divergences")
        taus = tree["renyi"]
        if not isinstance(taus, list) or len(taus) != len(self.orders):
            raise ValueError(f"there must be {len(self.orders)} Renyi divergences")
        return Readings(_read(tree["epsilon"]), read_amount(tree["delta"]), tuple(map(_read, taus)))


@lru_cache(maxsize=256)
def _limits(accountant: MeterAccountant, budget: ApproxDP) -> Readings:
    taus = (
        renyi.allowance(order, budget.epsilon, share * budget.delta)
        for order, share in zip(accountant.orders, accountant.shares, strict=True)
    )
    return Readings(budget.epsilon, (1 - sum(accountant.shares)) * budget.delta, tuple(taus))


@lru_cache(maxsize=256)
def _left(accountant: MeterAccountant, total: Readings, budget: ApproxDP) -> ApproxDP:
    def fits(step: int) -> bool:
        question = Stated(epsilon=budget.epsilon * step / _DIGITS, delta=0)
        return accountant.fits(_sum(total, accountant.price(question)), budget)

    step = last(fits, _DIGITS, _guess(accountant, total, budget))
    delta = max(accountant.limits(budget).delta - total.delta, Exact(0))
    return ApproxDP.capped(budget.epsilon * step / _DIGITS, delta)


def _guess(accountant: MeterAccountant, total: Readings, budget: ApproxDP) -> int:
    """The number of steps that are left, in floats: it need not be right."""
    limits, epsilon = accountant.limits(budget), nearest(budget.epsilon)
    if total.delta > limits.delta or not 0 < epsilon < math.inf:
        return 0
    pure = 0.0 if total.epsilon is None else nearest(1 - total.epsilon / budget.epsilon) * _DIGITS
    steps = [min(max(round(pure), 0), _DIGITS)]
    for order, tau, limit in zip(accountant.orders, total.renyi, limits.renyi, strict=True):
        room = 0.0 if tau is None or limit is None else nearest(limit - tau)
        steps.append(bisect_right(range(1, _DIGITS + 1), room, key=partial(_divergence, order, epsilon / _DIGITS)))
    return max(steps)


def _divergence(order: int, unit: float, step: int) -> float:
    """`renyi.randomized_response` of that many units, in floats."""
    e = unit * step
    return e + (math.log1p(math.exp((1 - 2 * order) * e)) - math.log1p(math.exp(-e))) / (order - 1)


def _sum(one: Readings, other: Readings) -> Readings:
    taus = tuple(_plus(a, b) for a, b in zip(one.renyi, other.renyi, strict=True))
    return Readings(_plus(one.epsilon, other.epsilon), add_up(one.delta, other.delta), taus)


def _plus(a: Exact | None, b: Exact | None) -> Exact | None:
    return None if a is None or b is None else add_up(a, b)


def _total(parts: Iterable[tuple[int, Exact | None]]) -> Exact | None:
    """The sum of readings, each so many times; None if one of them is."""
    total = Exact(0)
    for times, reading in parts:
        if times and reading is None:
            return None
        total += times * (reading or 0)
    return total


def _meters(total: Readings, limits: Readings) -> list[tuple[Exact | None, Exact]]:
    """Each meter's reading and its limit; without Renyi meters that the budget has no use for."""
    limit = limits.epsilon
    assert limit is not None
    pairs = [(reading, most) for reading, most in zip(total.renyi, limits.renyi, strict=True) if most]
    return [(total.epsilon, limit), *pairs]


def _write(reading: Exact | None) -> str | None:
    return None if reading is None else ratio(reading)


def _read(tree: object) -> Exact | None:
    return None if tree is None else read_amount(tree)


def _best_order(epsilon: Exact, delta: Exact) -> int | None:
    """The order with the largest allowance for its size, in floats: every order is valid. None if all have none."""
    if not delta:
        return None
    e, log_delta = nearest(epsilon), math.log(delta.numerator) - math.log(delta.denominator)

    def worth(order: int) -> float:
        above = order - 1
        return (e + (log_delta + math.log(above) - order * math.log1p(-1 / order)) / above) / order

    low, high = 2, _HIGHEST  # it rises, and then falls
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if worth(middle) >= worth(middle + 1) else (middle + 1, high)
    return low if worth(low) > 0 else None
