"""One contract for every accountant."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.accounting import Accountant, ApproxAccountant, PureAccountant
from privet.errors import AccountingError
from privet.events import Composed, Free, Laplace, PrivacyEvent, Repeated, Stated, from_json, leaves, to_json
from privet.guarantees import ApproxDP, PureDP

ACCOUNTANTS: list[Accountant] = [PureAccountant(), ApproxAccountant()]
ZERO = {"pure": PureDP.ZERO, "approx": ApproxDP(0, 0)}
every_accountant = pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=lambda a: a.name)

ratios = st.fractions(min_value=Fraction(1, 100), max_value=10, max_denominator=100)
deltas = st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(1, 50)])


def trees(delta: st.SearchStrategy[Fraction]) -> st.SearchStrategy[PrivacyEvent]:
    leaf: st.SearchStrategy[PrivacyEvent] = st.one_of(
        st.builds(lambda n, s: Laplace(sensitivity=n, scale=s), st.integers(0, 5), ratios),
        st.builds(lambda e, d: Stated(epsilon=e, delta=d), ratios, delta),
        st.just(Free()),
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(Composed, st.lists(inner, max_size=3)), st.builds(Repeated, inner, st.integers(0, 3))
        ),
        max_leaves=6,
    )


def tree_for(accountant: Accountant) -> st.SearchStrategy[PrivacyEvent]:
    return trees(st.just(Fraction(0)) if accountant.name == "pure" else deltas)


@every_accountant
@given(data=st.data(), n=st.integers(0, 5))
def test_repeated_is_composed(accountant: Accountant, data: st.DataObject, n: int) -> None:
    event = data.draw(tree_for(accountant))
    assert accountant.account(Repeated(event, n)) == accountant.account(Composed([event] * n))


@every_accountant
@given(data=st.data(), seed=st.integers(0, 99))
def test_order_does_not_matter(accountant: Accountant, data: st.DataObject, seed: int) -> None:
    parts = data.draw(st.lists(tree_for(accountant), max_size=4))
    shuffled = random.Random(seed).sample(parts, len(parts))
    assert accountant.account(Composed(parts)) == accountant.account(Composed(shuffled))
    assert accountant.account(Composed([Composed(parts[:2]), *parts[2:]])) == accountant.account(Composed(parts))


@every_accountant
@given(data=st.data())
def test_more_never_costs_less(accountant: Accountant, data: st.DataObject) -> None:
    one, two = data.draw(tree_for(accountant)), data.draw(tree_for(accountant))
    assert accountant.account(one).implies(accountant.account(Composed([one, two])))


@every_accountant
@given(n=st.integers(0, 20), s=ratios, more=ratios)
def test_more_distance_or_less_noise_never_costs_less(
    accountant: Accountant, n: int, s: Fraction, more: Fraction
) -> None:
    price = accountant.account(Laplace(sensitivity=n, scale=s + more))
    further, quieter = Laplace(sensitivity=n + 1, scale=s + more), Laplace(sensitivity=n + 1, scale=s)
    assert price.implies(accountant.account(further))
    assert not accountant.account(further).implies(price)
    assert accountant.account(further).implies(accountant.account(quieter))
    assert not accountant.account(quieter).implies(accountant.account(further))


@every_accountant
@given(s=ratios)
def test_zero_distance_and_nothing_cost_nothing(accountant: Accountant, s: Fraction) -> None:
    nothing: list[PrivacyEvent] = [
        Laplace(sensitivity=0, scale=s),
        Free(),
        Composed([]),
        Repeated(Laplace(sensitivity=1, scale=s), 0),
        Stated(epsilon=0, delta=0),
    ]
    for event in [*nothing, Composed(nothing), Repeated(Composed(nothing), 3)]:
        assert accountant.account(event) == ZERO[accountant.name]


@every_accountant
@given(data=st.data())
def test_post_processing_is_free_and_json_keeps_the_price(accountant: Accountant, data: st.DataObject) -> None:
    event = data.draw(tree_for(accountant))
    price = accountant.account(event)
    assert accountant.account(Composed([Free(), event, Repeated(Free(), 9)])) == price
    assert accountant.account(from_json(to_json(event))) == price


@every_accountant
def test_ten_tenths_are_one(accountant: Accountant) -> None:
    tenth = Laplace(sensitivity=1, scale=10)
    assert accountant.account(Repeated(tenth, 10)) in (PureDP(1), ApproxDP(1, 0))
    assert accountant.account(Laplace(sensitivity=3, scale="3/2")) in (PureDP(2), ApproxDP(2, 0))


@given(trees(st.just(Fraction(0))))
def test_both_agree_where_delta_is_zero(event: PrivacyEvent) -> None:
    assert PureAccountant().account(event).to_approx() == ApproxAccountant().account(event)


@given(trees(deltas))
def test_approx_is_the_sum_of_the_leaves(event: PrivacyEvent) -> None:
    expected = ApproxDP(0, 0)
    for _, leaf, times in leaves(event):
        for _ in range(times):
            if isinstance(leaf, Laplace):
                expected = expected.compose(ApproxDP(Fraction(leaf.sensitivity) / leaf.scale, 0))
            elif isinstance(leaf, Stated):
                expected = expected.compose(ApproxDP(leaf.epsilon, leaf.delta))
    assert ApproxAccountant().account(event) == expected


def test_delta_never_exceeds_one() -> None:
    price = ApproxAccountant().account(Repeated(Stated(epsilon=1, delta=0.4), 3))
    assert price == ApproxDP.capped(Fraction(3), Fraction(1))


def test_pure_refuses_delta_and_names_the_leaf() -> None:
    bad = Repeated(Stated(epsilon=1, delta=1e-6), 2)
    with pytest.raises(AccountingError, match=r"^events\[2\]\.event: .*ApproxAccountant\(\)"):
        PureAccountant().account(Composed([Free(), Laplace(sensitivity=1, scale=1), bad]))
    with pytest.raises(AccountingError, match=r"^event: "):
        PureAccountant().account(Repeated(Stated(epsilon=1, delta=1e-6), 0))


@dataclass(frozen=True)
class Gaussian:
    sigma: int = 1


class MilderLaplace(Laplace):
    """A subclass may mean something else, so it is another kind."""


@every_accountant
@pytest.mark.parametrize("unknown", [Gaussian(), MilderLaplace(sensitivity=1, scale=1), None, "free", 3])
def test_unknown_kinds_fail_closed(accountant: Accountant, unknown: PrivacyEvent) -> None:
    with pytest.raises(AccountingError, match=f"^the event: .*{type(unknown).__name__}"):
        accountant.account(unknown)
    inner = Repeated(Free(), 2)
    tree = Composed([Free(), inner])
    object.__setattr__(inner, "event", unknown)  # the constructor would have refused it already
    with pytest.raises(AccountingError, match=rf"^events\[1\]\.event: .*{type(unknown).__name__}"):
        accountant.account(tree)


@pytest.mark.parametrize("accountant", [PureAccountant(), ApproxAccountant()])
def test_odd_parameters_cost_no_less_and_stay_short(accountant: PureAccountant | ApproxAccountant) -> None:
    scales = [Fraction(3**900 + 2 * k, 2**1400) for k in range(50)]
    price = accountant.account(Composed([Laplace(sensitivity=1, scale=scale) for scale in scales])).epsilon
    exactly = sum(1 / scale for scale in scales)
    assert 0 <= price - exactly < Fraction(50, 2**320)
    assert price.denominator <= 2**320
