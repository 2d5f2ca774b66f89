"""The meter filter: what it grants, and the best adaptive analyst against it and against broken ones."""

import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.adaptive import Question, attack, coin, search, some_meters, worst_delta
from tests.privacy.adaptive import laplace as laplace_question

from privet.exact.search import last
from privet.privacy import renyi
from privet.privacy.accounting import Accountant, ApproxAccountant
from privet.privacy.accounting.meters import MeterAccountant, Readings
from privet.privacy.events import (
    BoundedRange,
    Composed,
    GaussianNoise,
    LaplaceNoise,
    PrivacyEvent,
    Repeated,
    Stated,
)
from privet.privacy.guarantees import ApproxDP
from privet.privacy.moves import L1Move, L2Move

BUDGET = ApproxDP(1, 1e-6)
ALL_ON_22 = MeterAccountant((22,), (Fraction(1),))
DEFAULT = MeterAccountant().for_budget(BUDGET)


def allowed(accountant: Accountant[Any], event: PrivacyEvent, budget: ApproxDP = BUDGET) -> int:
    """How many such questions are granted."""
    low, high = 0, 1 << 20
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high) if accountant.fits(accountant.price(Repeated(event, middle)), budget) else (low, middle)
        )
    return low


def laplace(epsilon: str) -> LaplaceNoise:
    return LaplaceNoise(move=L1Move(1), scale=1 / Fraction(epsilon))


@given(most=st.integers(1, 10**6), where=st.integers(0, 10**6), guess=st.integers(-5, 10**6))
def test_a_search_from_any_guess_ends_in_the_same_place(most: int, where: int, guess: int) -> None:
    trials: list[int] = []

    def holds(k: int) -> bool:
        trials.append(k)
        return k <= where

    assert last(holds, most, guess) == min(where, most)
    assert len(trials) <= 2 * most.bit_length() + 2
    assert len(set(trials)) == len(trials)
    assert all(1 <= k <= most for k in trials)
    assert last(holds, most, where) == min(where, most)
    assert len(trials[len(set(trials)) :]) <= 2


def slowly_left(accountant: MeterAccountant, total: Readings, budget: ApproxDP) -> ApproxDP:
    """What is left, by a search that needs no guess."""
    steps = 10**6

    def granted(step: int) -> bool:
        question = accountant.price(Stated(epsilon=budget.epsilon * step / steps, delta=0))
        return accountant.fits(accountant.add(total, question), budget)

    low, high = 0, steps + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if granted(middle) else (low, middle)
    delta = max(accountant.limits(budget).delta - total.delta, Fraction(0))
    return ApproxDP.capped(budget.epsilon * low / steps, delta)


@settings(max_examples=60)
@given(
    budget=st.builds(
        ApproxDP,
        st.one_of(st.fractions("1/1000", 30, max_denominator=1000), st.sampled_from(["1e-200", "1e-9", 2000, 10**400])),
        st.sampled_from([0, "1e-300", "1e-12", "1e-6", "0.01"]),
    ),
    other=st.sampled_from([None, ApproxDP(1, 1e-6), ApproxDP(20, 1e-9)]),
    share=st.fractions(0, "5/4", max_denominator=500),
    times=st.integers(1, 200),
    leak=st.sampled_from([Fraction(0), Fraction(1, 10**7), Fraction(1, 2)]),
    kind=st.sampled_from(["stated", "laplace", "gaussian"]),
)
def test_a_guess_finds_what_is_left_without_one(
    budget: ApproxDP, other: ApproxDP | None, share: Fraction, times: int, leak: Fraction, kind: str
) -> None:
    """The guess only saves time: also for orders of another budget, extreme numbers, and totals over the budget."""
    accountant = MeterAccountant().for_budget(other or budget)
    epsilon = share * budget.epsilon
    if kind == "laplace" and 0 < epsilon < 10**6:
        event: PrivacyEvent = LaplaceNoise(move=L1Move(1), scale=times / epsilon)
    elif kind == "gaussian":
        event = GaussianNoise(move=L2Move(1), sigma_squared=100 * times * (1 + share), coordinates=1, epsilon=None)
    else:
        event = Stated(epsilon=epsilon / times, delta=leak * budget.delta)
    total = accountant.price(Repeated(event, times))
    assert accountant.left(total, budget) == slowly_left(accountant, total, budget)


# --- what is granted --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "most", "plain"), [("0.1", 10, 10), ("0.05", 22, 20), ("0.02", 125, 50), ("0.01", 490, 100)]
)
def test_published_numbers_of_questions(epsilon: str, most: int, plain: int) -> None:
    assert allowed(ALL_ON_22, laplace(epsilon)) == most
    assert allowed(ApproxAccountant(), laplace(epsilon)) == plain
    assert allowed(DEFAULT, laplace(epsilon)) >= 0.9 * most
    assert allowed(DEFAULT, laplace(epsilon)) >= plain


def test_choices_of_bounded_range_cost_a_quarter() -> None:
    assert allowed(ALL_ON_22, BoundedRange(epsilon=0.01)) >= 1900
    assert allowed(DEFAULT, BoundedRange(epsilon=0.01)) >= 0.9 * 1900


def test_blocks_cost_less_than_one_move_of_the_same_length() -> None:
    apart = LaplaceNoise(move=L1Move(1, blocks=10), scale=100)
    together = LaplaceNoise(move=L1Move(10), scale=100)
    assert allowed(DEFAULT, apart) > 4 * allowed(DEFAULT, together)


def test_gaussian_noise_has_no_epsilon_of_its_own() -> None:
    event = GaussianNoise(move=L2Move(1), sigma_squared=20_000, coordinates=1, epsilon=None)
    assert DEFAULT.price(event) == Readings(None, Fraction(0), renyi.concentrated(DEFAULT.orders, Fraction(1, 40_000)))
    assert (
        allowed(DEFAULT, event) == renyi.allowance(23, Fraction(1), Fraction(1, 2 * 10**6)) // (23 * event.rho) == 917
    )


@given(st.lists(st.fractions("0.001", "0.3", max_denominator=1000), min_size=1, max_size=30))
def test_never_worse_than_the_plain_sum(epsilons: list[Fraction]) -> None:
    events = Composed([Stated(epsilon=epsilon, delta=0) for epsilon in epsilons])
    plain = ApproxAccountant()
    assert DEFAULT.fits(DEFAULT.price(events), BUDGET) or not plain.fits(plain.price(events), BUDGET)


def test_leaks_have_a_share_of_their_own() -> None:
    leak = Stated(epsilon=0.001, delta=1e-7)
    assert allowed(DEFAULT, leak) == 5
    assert not DEFAULT.fits(DEFAULT.price(Stated(epsilon=0, delta="6e-7")), BUDGET)


@pytest.mark.parametrize("budget", [ApproxDP(1, 0), ApproxDP(0, 1e-6), ApproxDP("1e-9", "1e-30"), ApproxDP(50, 0.1)])
def test_odd_budgets(budget: ApproxDP) -> None:
    accountant = MeterAccountant().for_budget(budget)
    assert accountant.fits(accountant.zero, budget)
    assert accountant.fits(accountant.price(Stated(epsilon=budget.epsilon, delta=0)), budget)
    assert not accountant.fits(accountant.price(Stated(epsilon=2 * budget.epsilon + 1, delta=0)), budget)


# --- the best adaptive analyst ----------------------------------------------------------------------


def test_no_adaptive_analyst_gets_more_than_delta(effort: int) -> None:
    worst, case = search(range(60 * effort), some_meters)
    assert worst <= 1, case
    assert worst > 0.5, "or the analysts are harmless"
    worst, case = search(range(60 * effort), lambda _, budget: MeterAccountant().for_budget(budget))
    assert worst <= 1, case


class AllOfDelta(MeterAccountant):
    """Wrong: every meter has the whole of delta, as if its order were chosen after looking at the history."""

    def limits(self, budget: ApproxDP, /) -> Readings:
        taus = (renyi.allowance(order, budget.epsilon, budget.delta) for order in self.orders)
        return Readings(budget.epsilon, budget.delta, tuple(taus))


class Continuous(MeterAccountant):
    """Wrong: prices of continuous Laplace noise for discrete noise."""

    def _price(self, leaf: PrivacyEvent, path: str) -> Readings:
        price = super()._price(leaf, path)
        if not isinstance(leaf, LaplaceNoise):
            return price
        x = float(leaf.move.total / leaf.scale)
        return price._replace(
            epsilon=None,
            renyi=tuple(
                Fraction(math.log((a * math.exp((a - 1) * x) + (a - 1) * math.exp(-a * x)) / (2 * a - 1)) / (a - 1))
                for a in self.orders
            ),
        )


class FreeLeaks(MeterAccountant):
    """Wrong: a question's own delta is forgotten."""

    def _price(self, leaf: PrivacyEvent, path: str) -> Readings:
        return super()._price(leaf, path)._replace(delta=Fraction(0))


class PureAsRange(MeterAccountant):
    """Wrong: everything of pure privacy is priced as the exponential mechanism, permute-and-flip too."""

    def _price(self, leaf: PrivacyEvent, path: str) -> Readings:
        if isinstance(leaf, Stated) and not leaf.delta:
            leaf = BoundedRange(epsilon=leaf.epsilon)
        return super()._price(leaf, path)


def test_the_price_of_continuous_noise_is_too_low() -> None:
    def worst(kind: type[MeterAccountant]) -> Fraction:
        return max(
            Fraction(worst_delta(kind((order,), (Fraction(1),)), budget, [laplace_question(1 / epsilon, 1)], 30))
            / budget.delta
            for budget in (ApproxDP(1, 0.1), ApproxDP(2, 0.05))
            for order in (2, 3, 4, 6)
            for epsilon in (Fraction(i, 10) for i in range(2, 21, 2))
        )

    assert worst(MeterAccountant) <= 1 < worst(Continuous)


@pytest.mark.parametrize("wrong", [AllOfDelta, FreeLeaks, PureAsRange])
def test_the_analyst_breaks_a_broken_twin(wrong: type[MeterAccountant]) -> None:
    def meters(draw: random.Random, budget: ApproxDP) -> MeterAccountant:
        sound = some_meters(draw, budget)
        return wrong(sound.orders, sound.shares)

    assert any(attack(case, meters) > 1 for case in range(160))


def test_orders_chosen_after_the_history_promise_nothing() -> None:
    """Heads make a high order the better one, tails a low one; each branch then uses up the whole of delta.

    A coin is tossed first. On heads its log ratio is high, and of the high order's moment nearly all lies there; of the
    low order's moment a third lies on tails. So together they are worth more than one delta.
    """
    epsilon, delta, orders = Fraction(4), Fraction(1, 10), (2, 5)
    toss = coin(0.5, 0.5 * math.exp(-0.5))
    menu = [toss, *(_rest(toss, side, order, epsilon, delta) for side, order in ((1, 2), (0, 5)))]
    budget, shares = ApproxDP(epsilon, delta), (Fraction(1, 2), Fraction(1, 2))
    assert worst_delta(Afterwards(orders, shares), budget, menu, 4) > 1.2 * delta
    for order in orders:  # each order alone would be sound
        assert worst_delta(Afterwards((order,), shares[:1]), budget, menu, 4) <= delta
    assert worst_delta(MeterAccountant(orders, shares), budget, menu, 4) <= delta


class Afterwards(AllOfDelta):
    """Only Renyi meters, any of which may be the one that counts."""

    def limits(self, budget: ApproxDP, /) -> Readings:
        return super().limits(budget)._replace(epsilon=Fraction(0))


def _rest(toss: Question, side: int, order: int, epsilon: Fraction, delta: Fraction) -> Question:
    """The question that, after this side of the coin, uses up this order in the worst point for it."""
    ratio = math.log(toss.laws[side][0] / toss.laws[side][1])
    worst = float(epsilon) - math.log1p(-1 / order) - ratio
    left = float(renyi.allowance(order, epsilon, delta)) - toss.divergence(order) - 1e-9
    low, high = 0.0, 1.0
    for _ in range(60):
        heads = (low + high) / 2
        low, high = (heads, high) if coin(heads, heads * math.exp(-worst)).divergence(order) < left else (low, heads)
    return coin(low, low * math.exp(-worst))


def test_a_higher_budget_keeps_the_orders() -> None:
    """A steward who raises the budget does not choose orders anew."""
    more = ApproxDP(2, 1e-6)
    total = DEFAULT.price(Repeated(laplace("0.01"), allowed(DEFAULT, laplace("0.01"))))
    assert DEFAULT.fits(total, more)
    assert replace(DEFAULT).orders == DEFAULT.orders != MeterAccountant().for_budget(more).orders


@pytest.mark.parametrize(("order", "delta"), [(2, Fraction(1, 4)), (3, Fraction(4, 27))])
def test_an_allowance_that_is_a_rational_number(order: int, delta: Fraction) -> None:
    """Where the logarithm is 0, no precision decides on which side of the grid it lies."""
    assert renyi.allowance(order, Fraction(1), delta) == 1
    assert renyi.allowance(order, Fraction(1), delta * Fraction(999, 1000)) < 1


def test_nothing_is_left_when_the_leaks_are_used_up() -> None:
    total = DEFAULT.price(Stated(epsilon=0.001, delta="4e-7"))
    less = ApproxDP(1, 1e-7)
    assert DEFAULT.share(total, less) == 0
    assert DEFAULT.show(total, less).left == "epsilon 0 (0 %)"


def test_a_move_of_nothing_costs_nothing_whatever_its_epsilon() -> None:
    event = GaussianNoise(move=L2Move(0), sigma_squared=1, coordinates=1, epsilon=2**4000)
    assert DEFAULT.price(Repeated(event, 2**4000)) == DEFAULT.zero
