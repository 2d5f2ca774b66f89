"""One contract for every accountant."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.accountants import TwoMeters

from privet.codec import canonical
from privet.errors import AccountingError, UserError
from privet.privacy.accounting import (
    ACCOUNTANTS,
    Accountant,
    ApproxAccountant,
    BatchAccountant,
    ConcentratedAccountant,
    MeterAccountant,
    PureAccountant,
    Share,
    accountant_for,
    guarantee_of,
    registry,
)
from privet.privacy.events import (
    BoundedRange,
    Composed,
    FixedBatch,
    Free,
    GaussianNoise,
    JointGaussian,
    LaplaceNoise,
    PrivacyEvent,
    Repeated,
    Stated,
    from_json,
    leaves,
    to_json,
)
from privet.privacy.guarantees import ApproxDP, Budget, PureDP, ZeroConcentratedDP, stricter
from privet.privacy.moves import L1Move, L2Move

METERS = MeterAccountant((3, 22), (Fraction(1, 4), Fraction(1, 2)))
EVERY: list[Accountant[Any]] = [*ACCOUNTANTS.values(), METERS, TwoMeters()]
every_accountant = pytest.mark.parametrize(
    "accountant", EVERY, ids=lambda accountant: f"{accountant.name}{getattr(accountant, 'orders', '') or ''}"
)
keeps_budgets = pytest.mark.parametrize("accountant", [each for each in EVERY if each.adaptive], ids=lambda a: a.name)

ONE = LaplaceNoise(move=L1Move(3, blocks=2), scale="7/2")
KINDS: list[PrivacyEvent] = [
    ONE,
    GaussianNoise(move=L2Move(2), sigma_squared=50, coordinates=3, epsilon=None),
    GaussianNoise(move=L2Move(1), sigma_squared=50, coordinates=1, epsilon=0.5),
    JointGaussian(
        noises=[GaussianNoise(move=L2Move(2), sigma_squared=each, coordinates=3, epsilon=None) for each in (50, 70)],
        epsilon=0.5,
    ),
    BoundedRange(epsilon=0.3),
    Stated(epsilon="1/3", delta=0),
    Stated(epsilon=0.1, delta=1e-6),
    Free(),
    Composed([ONE, Free(), Stated(epsilon=0.1, delta=0)]),
    Repeated(ONE, 3),
    FixedBatch(events=[ONE, ONE], epsilon=1, delta=0, method="pld/1"),
    FixedBatch(events=[ONE, Free()], epsilon=1, delta=1e-6, method="pld/1"),
]

ratios = st.fractions(min_value=Fraction(1, 100), max_value=10, max_denominator=100)
deltas = st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(1, 50)])


def trees(delta: st.SearchStrategy[Fraction]) -> st.SearchStrategy[PrivacyEvent]:
    leaf: st.SearchStrategy[PrivacyEvent] = st.one_of(
        st.builds(lambda n, s: LaplaceNoise(move=L1Move(n), scale=s), st.integers(0, 5), ratios),
        st.builds(lambda e, d: Stated(epsilon=e, delta=d), ratios, delta),
        st.builds(lambda e: BoundedRange(epsilon=e), ratios),
        st.just(Free()),
    )
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(Composed, st.lists(inner, max_size=3)), st.builds(Repeated, inner, st.integers(0, 3))
        ),
        max_leaves=6,
    )


WITHOUT_DELTA, WITH_DELTA = trees(st.just(Fraction(0))), trees(deltas)
BUDGETS: dict[type, st.SearchStrategy[Budget]] = {
    PureDP: st.builds(PureDP, ratios),
    ApproxDP: st.builds(ApproxDP, ratios, deltas),
    ZeroConcentratedDP: st.builds(ZeroConcentratedDP, ratios),
}


def tree_for(accountant: Accountant[Any]) -> st.SearchStrategy[PrivacyEvent]:
    return WITH_DELTA if accountant.name in ("approx", "meters", "pld") else WITHOUT_DELTA


@every_accountant
@settings(max_examples=40)
@given(data=st.data(), n=st.integers(0, 5))
def test_repeated_is_composed(accountant: Accountant[Any], data: st.DataObject, n: int) -> None:
    event = data.draw(tree_for(accountant))
    assert accountant.price(Repeated(event, n)) == accountant.price(Composed([event] * n))


@every_accountant
@pytest.mark.parametrize("event", KINDS, ids=lambda event: type(event).__name__)
def test_repeated_is_composed_for_every_kind(accountant: Accountant[Any], event: PrivacyEvent) -> None:
    assert {type(each) for each in KINDS} == set(PrivacyEvent.__args__)

    def price(whole: PrivacyEvent) -> Any:
        try:
            return accountant.price(whole)
        except AccountingError:
            return "none"

    for n in (1, 2, 7):
        assert price(Repeated(event, n)) == price(Composed([event] * n))
    assert price(Repeated(event, 2)) == "none" or price(Repeated(event, 2)) == accountant.add(
        price(event), price(event)
    )


def test_a_fixed_batch_costs_what_it_states() -> None:
    batch = FixedBatch(events=[ONE] * 9, epsilon=2, delta=1e-6, method="pld/1")
    for accountant in (MeterAccountant().for_budget(ApproxDP(3, 1e-5)), ApproxAccountant(), METERS):
        assert accountant.price(batch) == accountant.price(Stated(epsilon=2, delta=1e-6))
    for refuses in (PureAccountant(), ConcentratedAccountant(), TwoMeters()):
        with pytest.raises(AccountingError, match=r"^events\[1\]: "):
            refuses.price(Composed([Free(), batch]))
    assert BatchAccountant().price(batch) == ((ONE, 9),), "in a larger batch its parts count"


def test_privacy_loss_keeps_no_budget() -> None:
    batches = BatchAccountant()
    assert not batches.adaptive
    for keep in (batches.fits, batches.left, batches.share):
        with pytest.raises(AccountingError, match=r"not valid for adaptive questions \(arXiv 2602\.06756\)"):
            keep(batches.zero, ApproxDP(1, 1e-6))
    with pytest.raises(UserError, match="the pld accountant is for fixed batches"):
        accountant_for(ApproxDP(1, 1e-6), "pld")


@every_accountant
@settings(max_examples=40)
@given(data=st.data(), seed=st.integers(0, 99))
def test_order_does_not_matter(accountant: Accountant[Any], data: st.DataObject, seed: int) -> None:
    parts = data.draw(st.lists(tree_for(accountant), max_size=4))
    shuffled = random.Random(seed).sample(parts, len(parts))
    assert accountant.price(Composed(parts)) == accountant.price(Composed(shuffled))
    assert accountant.price(Composed([Composed(parts[:2]), *parts[2:]])) == accountant.price(Composed(parts))


@every_accountant
@settings(max_examples=40)
@given(data=st.data())
def test_prices_are_an_ordered_commutative_monoid(accountant: Accountant[Any], data: st.DataObject) -> None:
    events = [data.draw(tree_for(accountant)) for _ in range(3)]
    a, b, c = map(accountant.price, events)
    add, at_most = accountant.add, accountant.at_most
    assert add(a, b) == add(b, a) == accountant.price(Composed(events[:2]))
    assert add(add(a, b), c) == add(a, add(b, c))
    assert add(accountant.zero, a) == add(a, accountant.zero) == a
    assert at_most(accountant.zero, a)
    assert at_most(a, a)
    assert at_most(a, add(a, b)), "more never costs less"
    assert not (at_most(a, b) and at_most(b, a)) or a == b
    assert not (at_most(a, b) and at_most(b, c)) or at_most(a, c)
    assert not at_most(a, b) or at_most(add(a, c), add(b, c))


@keeps_budgets
@settings(max_examples=40)
@given(data=st.data())
def test_what_is_spent_follows_from_the_price(accountant: Accountant[Any], data: st.DataObject) -> None:
    one, two = data.draw(tree_for(accountant)), data.draw(tree_for(accountant))
    budget = data.draw(BUDGETS[accountant.promises])
    spent, more = (accountant.spent(accountant.price(event), budget) for event in (one, Composed([one, two])))
    if isinstance(spent, Share):
        assert isinstance(more, Share)
        assert spent.used <= more.used
        assert spent.budget == budget
    else:
        assert type(spent) is accountant.promises
        assert not isinstance(more, Share)
        assert spent.implies(more)


@every_accountant
def test_settings_are_stored_and_never_chosen_again(accountant: Accountant[Any]) -> None:
    tree = json.loads(canonical(registry.to_tree(accountant)))
    if accountant.name in ACCOUNTANTS:
        assert registry.from_tree(tree) == accountant
    for wrong in (None, 3, "", "generous", {}, {"name": "pure", "orders": [2]}, {"name": "meters"}, {"name": "pure"}):
        with pytest.raises(ValueError, match=r"."):
            registry.from_tree(wrong)


@keeps_budgets
@settings(max_examples=40)
@given(data=st.data())
def test_what_fits_fits_with_less(accountant: Accountant[Any], data: st.DataObject) -> None:
    a, b = (accountant.price(data.draw(tree_for(accountant))) for _ in range(2))
    budget, more = data.draw(BUDGETS[accountant.promises]), data.draw(BUDGETS[accountant.promises])
    least = stricter(budget, more)
    assert accountant.fits(accountant.zero, budget)
    assert accountant.fits(a, budget) or not accountant.fits(accountant.add(a, b), budget)
    assert accountant.fits(a, budget) or not accountant.fits(a, least), "a smaller budget never covers more"


@keeps_budgets
@settings(max_examples=40)
@given(data=st.data())
def test_what_is_left_is_just_enough(accountant: Accountant[Any], data: st.DataObject) -> None:
    total, budget = accountant.price(data.draw(tree_for(accountant))), data.draw(BUDGETS[accountant.promises])
    left, share = accountant.left(total, budget), accountant.share(total, budget)
    assert 0 <= share <= 1
    assert accountant.share(accountant.zero, budget) == 1
    assert accountant.share(accountant.add(total, total), budget) <= share
    if accountant.fits(total, budget):
        for more, fits in ((Fraction(0), True), (Fraction(1, 10**4), False)):
            granted = accountant.fits(accountant.add(total, accountant.price(all_of(left, more))), budget)
            assert granted is fits or left == accountant.left(accountant.zero, budget), "or left is a whole budget"
    shown = accountant.show(total, budget)
    assert shown.spent
    assert shown.left


def all_of(left: Budget, more: Fraction) -> PrivacyEvent:
    """A question that uses all that is left, and a little more."""
    if isinstance(left, ZeroConcentratedDP):
        return GaussianNoise(
            move=L2Move(1 if left.rho + more else 0),
            sigma_squared=1 / (2 * (left.rho + more) or 1),
            coordinates=1,
            epsilon=None,
        )
    return Stated(epsilon=left.epsilon + more, delta=left.delta if isinstance(left, ApproxDP) else 0)


@every_accountant
@settings(max_examples=40)
@given(data=st.data())
def test_json_is_exact_and_canonical(accountant: Accountant[Any], data: st.DataObject) -> None:
    a, b = (accountant.price(data.draw(tree_for(accountant))) for _ in range(2))
    texts = [canonical(accountant.to_json(each)) for each in (a, b)]
    assert [accountant.from_json(json.loads(text)) for text in texts] == [a, b]
    assert (texts[0] == texts[1]) == (a == b)


@every_accountant
@pytest.mark.parametrize("tree", [None, 1, 0.5, "", "1", "2/4", "-1/2", "1/0", [], ["1/2"], {}, {"epsilon": "1/2"}])
def test_other_json_is_refused(accountant: Accountant[Any], tree: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        accountant.from_json(tree)


@keeps_budgets
@settings(max_examples=40)
@given(n=st.integers(0, 20), s=ratios, more=ratios)
def test_more_distance_or_less_noise_never_costs_less(
    accountant: Accountant[Any], n: int, s: Fraction, more: Fraction
) -> None:
    events = (
        LaplaceNoise(move=L1Move(n), scale=s + more),
        LaplaceNoise(move=L1Move(n + 1), scale=s + more),
        LaplaceNoise(move=L1Move(n + 1), scale=s),
    )
    price, further, quieter = map(accountant.price, events)
    assert accountant.at_most(price, further)
    assert not accountant.at_most(further, price)
    assert accountant.at_most(further, quieter)
    assert not accountant.at_most(quieter, further)


@every_accountant
@settings(max_examples=40)
@given(s=ratios)
def test_zero_distance_and_nothing_cost_nothing(accountant: Accountant[Any], s: Fraction) -> None:
    nothing: list[PrivacyEvent] = [
        LaplaceNoise(move=L1Move(0), scale=s),
        Free(),
        Composed([]),
        Repeated(LaplaceNoise(move=L1Move(1), scale=s), 0),
        Stated(epsilon=0, delta=0),
    ]
    for event in [*nothing, Composed(nothing), Repeated(Composed(nothing), 3)]:
        assert accountant.price(event) == accountant.zero


@every_accountant
@settings(max_examples=40)
@given(data=st.data())
def test_post_processing_is_free_and_json_keeps_the_price(accountant: Accountant[Any], data: st.DataObject) -> None:
    event = data.draw(tree_for(accountant))
    price = accountant.price(event)
    assert accountant.price(Composed([Free(), event, Repeated(Free(), 9)])) == price
    assert accountant.price(from_json(to_json(event))) == price


@every_accountant
def test_ten_tenths_are_one(accountant: Accountant[Any]) -> None:
    tenth = LaplaceNoise(move=L1Move(1), scale=10)
    two = LaplaceNoise(move=L1Move(3), scale="3/2")
    for event, epsilon in ((Repeated(tenth, 10), 1), (two, 2)):
        price = accountant.price(event)
        assert getattr(price, "epsilon", epsilon) == epsilon


# --- which accountant keeps a budget -----------------------------------------------------------------


def test_the_kind_of_a_budget_chooses_its_accountant_and_it_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert accountant_for(PureDP(1)) == PureAccountant()
    assert accountant_for(ApproxDP(1, 1e-6), "approx") == ApproxAccountant()
    assert accountant_for(ZeroConcentratedDP(0.1)) == ConcentratedAccountant()
    monkeypatch.setitem(ACCOUNTANTS, TwoMeters.name, TwoMeters())
    assert accountant_for(ApproxDP(1, 1e-6)) == MeterAccountant((23,), (Fraction(1, 2),)), "the first of its kind"
    assert accountant_for(ApproxDP(1, 1e-6), "two meters") == TwoMeters()


@pytest.mark.parametrize(
    ("budget", "name", "said"),
    [
        (3, "", "budget must be a guarantee, not 3"),
        (
            PureDP(1),
            "generous",
            "there is no accountant 'generous'. The accountants are: pure, meters, ",
        ),
        (PureDP(1), "approx", r"the approx accountant needs a budget of type ApproxDP, not PureDP\(1\)"),
        (ApproxDP(1, 0), "pure", r"the pure accountant needs a budget of type PureDP"),
        (ApproxDP(1, 0), "batches", "is for fixed batches"),
    ],
)
def test_budgets_that_nobody_keeps(budget: Any, name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Batches(TwoMeters):
        name: ClassVar[str] = "batches"
        adaptive: ClassVar[bool] = False

    if name == "batches":
        monkeypatch.setitem(ACCOUNTANTS, "batches", Batches())
    with pytest.raises(UserError, match=said):
        accountant_for(budget, name)


# --- pure and approximate ----------------------------------------------------------------------------


@given(WITHOUT_DELTA)
def test_both_agree_where_delta_is_zero(event: PrivacyEvent) -> None:
    assert PureAccountant().account(event).to_approx() == ApproxAccountant().account(event)


@given(WITH_DELTA)
def test_approx_is_the_sum_of_the_leaves(event: PrivacyEvent) -> None:
    expected = ApproxDP(0, 0)
    for _, leaf, times in leaves(event):
        for _ in range(times):
            if isinstance(leaf, LaplaceNoise):
                expected = expected.compose(ApproxDP(Fraction(leaf.move.total) / leaf.scale, 0))
            elif isinstance(leaf, Stated):
                expected = expected.compose(ApproxDP(leaf.epsilon, leaf.delta))
            elif isinstance(leaf, BoundedRange):
                expected = expected.compose(PureDP(leaf.epsilon))
    assert ApproxAccountant().account(event) == expected


def test_delta_never_exceeds_one() -> None:
    price = ApproxAccountant().account(Repeated(Stated(epsilon=1, delta=0.4), 3))
    assert price == ApproxDP.capped(Fraction(3), Fraction(1))


def test_pure_refuses_delta_and_names_the_leaf() -> None:
    bad = Repeated(Stated(epsilon=1, delta=1e-6), 2)
    with pytest.raises(AccountingError, match=r"^events\[2\]\.event: .*ApproxAccountant\(\)"):
        PureAccountant().account(Composed([Free(), LaplaceNoise(move=L1Move(1), scale=1), bad]))
    with pytest.raises(AccountingError, match=r"^event: "):
        PureAccountant().account(Repeated(Stated(epsilon=1, delta=1e-6), 0))


@dataclass(frozen=True)
class Gaussian:
    sigma: int = 1


class MilderLaplace(LaplaceNoise):
    """A subclass may mean something else, so it is another kind."""


@every_accountant
@pytest.mark.parametrize("unknown", [Gaussian(), MilderLaplace(move=L1Move(1), scale=1), None, "free", 3])
def test_unknown_kinds_fail_closed(accountant: Accountant[Any], unknown: PrivacyEvent) -> None:
    with pytest.raises(AccountingError, match=f"^the event: .*{type(unknown).__name__}"):
        accountant.price(unknown)
    inner = Repeated(Free(), 2)
    tree = Composed([Free(), inner])
    object.__setattr__(inner, "event", unknown)  # the constructor would have refused it already
    with pytest.raises(AccountingError, match=rf"^events\[1\]\.event: .*{type(unknown).__name__}"):
        accountant.price(tree)


@pytest.mark.parametrize("accountant", [PureAccountant(), ApproxAccountant()])
def test_odd_parameters_cost_no_less_and_stay_short(accountant: PureAccountant | ApproxAccountant) -> None:
    scales = [Fraction(3**900 + 2 * k, 2**1400) for k in range(50)]
    price = accountant.account(Composed([LaplaceNoise(move=L1Move(1), scale=scale) for scale in scales])).epsilon
    exactly = sum(1 / scale for scale in scales)
    assert 0 <= price - exactly < Fraction(50, 2**320)
    assert price.denominator <= 2**320


# --- one release by itself -----------------------------------------------------------------------


def test_the_guarantee_of_gaussian_noise_in_rho_with_a_leak() -> None:
    """The noise is converted at the delta of the rest; nothing smaller than both together is stated."""
    noise = GaussianNoise(move=L2Move(1), sigma_squared=50, coordinates=1, epsilon=None)
    leak = Stated(epsilon="0.1", delta="1e-6")
    stated = guarantee_of([Repeated(noise, 3), leak, Free()])
    assert isinstance(stated, ApproxDP)
    converted = ZeroConcentratedDP("0.03").to_approx(delta="1e-6")
    assert (stated.epsilon, stated.delta) == (converted.epsilon + Fraction(1, 10), Fraction("2e-6"))
    assert guarantee_of([noise, Repeated(leak, 0)]) == ZeroConcentratedDP("0.01")
    assert guarantee_of([noise, Stated(epsilon=1, delta=0)]) == ZeroConcentratedDP("0.51")
