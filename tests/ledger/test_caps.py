"""Caps of a dataset, of its analysts and of one question: exactly kept, named rightly, changed by the steward alone."""

from __future__ import annotations

import ast
import re
from contextlib import closing
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.common import PEOPLE, ask, cost, kinds, opened, pay
from tests.ledger.conftest import Factory, Where

import privet as pv
from privet.errors import BudgetError, UserError
from privet.exact import exact
from privet.ledger import Balance, Ration, memory_ledger, open_ledger
from privet.privacy.accounting import PureAccountant
from privet.privacy.events import Free, Stated
from privet.privacy.guarantees import ApproxDP, PureDP, show_down

PURE = PureAccountant()

# --- analysts ----------------------------------------------------------------------------------------


def test_a_cap_holds_for_one_analyst(make: Factory) -> None:
    ledger = opened(make(), PureDP(10))
    ledger.cap("people", PureDP(2), reason="a guest", analyst="ann")
    pay(ledger, None, cost("1.5"))
    with pytest.raises(
        BudgetError,
        match=r"^this costs epsilon 0\.6, but only epsilon 0\.5 is left of epsilon 2 for 'ann'\. "
        r"Nothing was spent\.$",
    ):
        pay(ledger, None, cost("0.6"))
    pay(ledger, None, cost(5), analyst="bob")
    pay(ledger, None, cost("0.5"))
    with pytest.raises(
        BudgetError, match=r"nothing is left of epsilon 2 for 'ann'.*Ask the steward for a larger budget\.$"
    ):
        pay(ledger, None, cost("0.1"))
    pay(ledger, None, Free())
    assert ledger.analysts("people") == {
        "ann": Ration(PureDP(2), PureDP(2)),
        "bob": Ration(PureDP(5)),
    }
    assert ledger.balance("people") == Balance(PURE, PureDP(10), PureDP(7))
    assert ledger.balance("people", "ann") == Balance(PURE, PureDP(10), PureDP(7), Ration(PureDP(2), PureDP(2)))
    assert ledger.balance("people", "ann").remaining.guarantee == PureDP.ZERO
    assert (
        ledger.balance("people", "bob").remaining.guarantee == ledger.balance("people").remaining.guarantee == PureDP(3)
    )
    assert ledger.balance("people", "nobody").ration == Ration(PureDP.ZERO)
    ledger.verify()


def test_caps_of_analysts_ration_and_do_not_grant(make: Factory) -> None:
    """Together they may be more than there is; what there is holds."""
    ledger = opened(make())
    for who in ("ann", "bob"):
        ledger.cap("people", PureDP("0.8"), reason="a share", analyst=who)
    pay(ledger, None, cost("0.8"))
    with pytest.raises(BudgetError, match=r"epsilon 0\.2 is left of epsilon 1\. .*Nothing was spent\.$"):
        pay(ledger, None, cost("0.8"), analyst="bob")
    assert ledger.balance("people", "bob").remaining.guarantee == PureDP("0.2")
    pay(ledger, None, cost("0.2"), analyst="bob")


def test_a_cap_counts_what_was_spent_before_it(make: Factory) -> None:
    ledger = opened(make())
    pay(ledger, None, cost("0.3"))
    ledger.cap("people", PureDP("0.4"), reason="late", analyst="ann")
    with pytest.raises(BudgetError, match=r"epsilon 0\.1 is left of epsilon 0\.4 for 'ann'"):
        pay(ledger, None, cost("0.2"))
    ledger.cap("people", PureDP("0.2"), reason="less", analyst="ann")
    with pytest.raises(BudgetError, match=r"nothing is left of epsilon 0\.2 for 'ann'"):
        pay(ledger, None, cost("0.01"))
    assert ledger.balance("people", "ann").remaining.guarantee == PureDP.ZERO
    ledger.cap("people", PureDP("0.6"), reason="more", analyst="ann")
    pay(ledger, None, cost("0.3"))
    ledger.cap("people", None, reason="none", analyst="ann")
    pay(ledger, None, cost("0.4"))
    assert ledger.balance("people").remaining.guarantee == PureDP.ZERO
    ledger.verify()


def test_a_cap_of_nothing(make: Factory) -> None:
    ledger = opened(make())
    ledger.cap("people", PureDP.ZERO, reason="on leave", analyst="ann")
    with pytest.raises(
        BudgetError, match=r"nothing is left of epsilon 0 for 'ann'.*Ask the steward for a larger budget\.$"
    ):
        pay(ledger, None, cost("0.1"))
    pay(ledger, None, Free())
    ledger.cap("people", PureDP.ZERO, reason="a pause", query=True)
    with pytest.raises(BudgetError, match=r"one question.*Ask the steward for a larger budget\.$"):
        pay(ledger, None, cost("0.1"), analyst="bob")


def test_an_analyst_who_never_asked_has_a_cap(make: Factory) -> None:
    ledger = opened(make())
    ledger.cap("people", PureDP("1/3"), reason="a share", analyst="zoë")
    assert ledger.analysts("people") == {"zoë": Ration(PureDP.ZERO, PureDP("1/3"))}


# --- one question ------------------------------------------------------------------------------------


def test_a_cap_for_each_question(make: Factory) -> None:
    ledger = opened(make(), PureDP(10))
    ledger.cap("people", PureDP("0.5"), reason="small steps", query=True)
    for who in ("ann", "bob"):
        pay(ledger, None, cost("0.5"), analyst=who)
        with pytest.raises(
            BudgetError, match=r"^this costs epsilon 0\.6, .*epsilon 0\.5 .*one question.*Nothing was spent\.$"
        ):
            pay(ledger, None, cost("0.6"), analyst=who)
    with pytest.raises(BudgetError, match="one question"):
        pay(ledger, None, cost("0.3"), cost("0.3"))  # it is one question all the same
    assert ledger.balance("people").per_query == PureDP("0.5")
    ledger.cap("people", None, reason="no longer", query=True)
    pay(ledger, None, cost("0.6"))
    assert ledger.balance("people").per_query is None
    ledger.verify()


# --- the budget --------------------------------------------------------------------------------------


def test_only_the_steward_grants_more_and_says_why(make: Factory) -> None:
    ledger = opened(make())
    pay(ledger, None, cost(1))
    with pytest.raises(BudgetError):
        pay(ledger, None, cost("0.1"))
    for reason in ("", "   ", None, 5):
        with pytest.raises(UserError, match="a reason is required"):
            ledger.cap("people", PureDP(2), reason=reason)  # type: ignore[arg-type]
    assert kinds(ledger) == ["created", "reserved"]
    ledger.cap("people", PureDP(2), reason="new consent")
    pay(ledger, None, cost(1))
    ledger.cap("people", PureDP("1.5"), reason="consent withdrawn")
    assert ledger.balance("people") == Balance(PURE, PureDP("1.5"), PureDP(2))
    assert ledger.balance("people").remaining.guarantee == PureDP.ZERO
    with pytest.raises(BudgetError, match=r"nothing is left of epsilon 1\.5.*Ask the steward"):
        pay(ledger, None, cost("0.001"))
    found = [(entry.kind, entry.note, entry.totals.budget) for entry in ledger.history("people")]
    assert found == [
        ("created", "", PureDP(1)),
        ("reserved", "", PureDP(1)),
        ("capped", "new consent", PureDP(2)),
        ("reserved", "", PureDP(2)),
        ("capped", "consent withdrawn", PureDP("1.5")),
    ]
    assert ledger.dataset("people").budget == PureDP(1), "what it was made with stays in the first entry"
    ledger.verify()


def test_a_dataset_is_opened_with_the_budget_that_it_has_now(where: Where) -> None:
    with closing(open_ledger(where)) as ledger:
        opened(ledger)
        ledger.cap("people", PureDP(2), reason="new consent")
        ledger.cap("people", PureDP("1/3"), reason="a share", analyst="ann")
        ledger.cap("people", PureDP("1/4"), reason="small steps", query=True)
        pay(ledger, None, cost("1/4"))
    with closing(open_ledger(where)) as ledger:
        with pytest.raises(
            UserError, match=r"a budget of epsilon 2, but is opened with epsilon 1\..*budget=pv\.PureDP\(2\)"
        ):
            ledger.create(PEOPLE)
        ledger.create(replace(PEOPLE, budget=PureDP(2)))
        assert ledger.balance("people", "ann") == Balance(
            PURE, PureDP(2), PureDP("1/4"), Ration(PureDP("1/4"), PureDP("1/3")), PureDP("1/4")
        )
        with pytest.raises(BudgetError, match=r"left of .*'ann'"):
            pay(ledger, None, cost("1/5"))


def test_caps_that_can_not_be(make: Factory) -> None:
    ledger = opened(make())
    with pytest.raises(UserError, match="can't be removed"):
        ledger.cap("people", None, reason="none")
    with pytest.raises(UserError, match="not to both"):
        ledger.cap("people", PureDP(1), reason="both", analyst="ann", query=True)
    for how in ({}, {"analyst": "ann"}, {"query": True}):
        with pytest.raises(UserError, match=r"the pure accountant needs a budget of type PureDP, not ApproxDP"):
            ledger.cap("people", ApproxDP(1, 1e-6), reason="another kind", **how)
        with pytest.raises(UserError, match="budget must be a guarantee, not 3"):
            ledger.cap("people", 3, reason="a number", **how)  # type: ignore[arg-type]
    assert kinds(ledger) == ["created"]


# --- the nearest of several --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("price", "said", "fits"),
    [
        ("1.2", "epsilon 0.5 is left of epsilon 2 for 'ann'", "0.5"),  # over all three
        ("0.8", "epsilon 0.5 is left of epsilon 2 for 'ann'", "0.5"),  # over the analyst's and a question's
        ("0.6", "epsilon 0.5 is left of epsilon 2 for 'ann'", "0.5"),  # over the analyst's alone
    ],
)
def test_of_several_caps_the_nearest_is_named(make: Factory, price: str, said: str, fits: str) -> None:
    ledger = opened(make(), PureDP(10))
    pay(ledger, None, cost("7.5"), analyst="bob")
    pay(ledger, None, cost("1.5"))
    ledger.cap("people", PureDP(2), reason="a guest", analyst="ann")
    ledger.cap("people", PureDP("0.7"), reason="small steps", query=True)
    with pytest.raises(BudgetError) as caught:
        pay(ledger, None, cost(price))
    assert said in str(caught.value)
    assert "Write" not in str(caught.value), "nobody should be led to spend all that is left"
    pay(ledger, None, cost(fits))


parts = st.fractions(0, 2, max_denominator=30)
maybe_parts = st.none() | parts


def pure(number: Fraction) -> PureDP:
    return PureDP(number) if number else PureDP.ZERO


@given(
    budget=parts,
    mine=maybe_parts,
    query=maybe_parts,
    spent=parts,
    others=parts,
    price=parts.filter(lambda price: price > 0),
)
@settings(max_examples=40)
def test_a_debit_is_granted_if_and_only_if_every_cap_covers_it(
    budget: Fraction,
    mine: Fraction | None,
    query: Fraction | None,
    spent: Fraction,
    others: Fraction,
    price: Fraction,
) -> None:
    """And what is advised fits, and nothing more than that would."""
    with closing(opened(memory_ledger(), PureDP(10))) as ledger:
        pay(ledger, None, cost(spent)) if spent else None
        pay(ledger, None, cost(others), analyst="bob") if others else None
        ledger.cap("people", pure(budget), reason="a test")
        ledger.cap("people", None if mine is None else pure(mine), reason="a test", analyst="ann")
        ledger.cap("people", None if query is None else pure(query), reason="a test", query=True)
        left = [max(budget - spent - others, Fraction(0))]
        left += [] if mine is None else [max(mine - spent, Fraction(0))]
        left += [] if query is None else [query]
        balance = ledger.balance("people", "ann")
        assert balance.remaining.epsilon == min(left[:1] if mine is None else left[:2])
        assert balance.remaining.fits(cost(price)) == (price <= min(left))
        if price <= min(left):
            assert pay(ledger, "x", cost(price)).cost == PureDP(price)
            return
        with pytest.raises(BudgetError, match="Nothing was spent") as caught:
            pay(ledger, "x", cost(price))
        said = str(caught.value)
        assert ledger.balance("people", "ann") == balance
        advice = re.search(r"only epsilon (\S+) is left", said) if min(left) else None
        if min(left) == 0:
            assert advice is None
            assert said.endswith("Ask the steward for a larger budget.")
            return
        assert advice is not None
        most = exact(ast.literal_eval(advice[1]))
        assert most == min(left) or (min(left) * Fraction(99_999, 100_000) < most < min(left) and len(advice[1]) <= 12)
        assert pay(ledger, "x", cost(min(left))).state == "reserved"


# --- exactly -----------------------------------------------------------------------------------------


def test_caps_are_exact(make: Factory) -> None:
    ledger = opened(make(), PureDP("1/3"))
    hair = Fraction(1, 10**60)
    ledger.cap("people", PureDP("1/7"), reason="a share", analyst="ann")
    for i in range(7):
        pay(ledger, str(i), cost("1/49"))
    with pytest.raises(BudgetError, match="'ann'"):
        pay(ledger, None, cost(hair))
    pay(ledger, None, cost(Fraction(1, 3) - Fraction(1, 7) - hair), analyst="bob")
    assert ledger.balance("people").remaining.guarantee == PureDP(hair)
    assert ledger.balance("people").left.startswith("epsilon "), ledger.balance("people").left
    with pytest.raises(BudgetError):
        pay(ledger, None, cost(2 * hair), analyst="bob")
    pay(ledger, None, cost(hair), analyst="bob")
    assert ledger.balance("people").spent == PureDP("1/3")
    ledger.verify()


def test_what_is_left_is_rounded_down_for_people() -> None:
    assert show_down(PureDP("0.9999999999")) == "epsilon 0.999999"
    assert show_down(ApproxDP("0.9999999999", "1.99999999e-6")) == "epsilon 0.999999, delta 1.99999e-6"
    assert show_down(PureDP.ZERO) == "epsilon 0"


def test_approximate_caps_count_both(make: Factory) -> None:
    ledger = opened(make(), ApproxDP(10, "1e-6"), "approx")
    ledger.cap("people", ApproxDP(2, "1e-7"), reason="a guest", analyst="ann")
    ledger.cap("people", ApproxDP(1, "5e-8"), reason="small steps", query=True)
    pay(ledger, None, Stated(epsilon=1, delta="5e-8"))
    with pytest.raises(BudgetError, match="one question") as caught:
        pay(ledger, None, Stated(epsilon="0.5", delta="6e-8"), analyst="bob")
    assert "epsilon=" not in str(caught.value), "a smaller epsilon would not help"
    with pytest.raises(BudgetError, match=r"one question.*Nothing was spent\.$"):
        pay(ledger, None, cost("1.1"), analyst="bob")
    pay(ledger, None, Stated(epsilon="0.5", delta="4e-8"))
    assert ledger.balance("people", "ann").remaining.guarantee == ApproxDP("0.5", "1e-8")
    with pytest.raises(BudgetError, match="'ann'") as caught:
        pay(ledger, None, Stated(epsilon="0.1", delta="2e-8"))
    assert "epsilon=" not in str(caught.value)
    with pytest.raises(BudgetError, match=r"'ann'.*Nothing was spent\.$"):
        pay(ledger, None, cost("0.6"))
    pay(ledger, None, Stated(epsilon="0.5", delta="1e-8"))
    assert ledger.balance("people", "ann").remaining.guarantee == ApproxDP(0, 0)
    assert ledger.balance("people").remaining.guarantee == ApproxDP(8, "9e-7")
    ledger.cap("people", ApproxDP(10, "1e-8"), reason="less delta")
    assert ledger.balance("people").remaining.guarantee == ApproxDP(8, 0)
    with pytest.raises(BudgetError):
        pay(ledger, None, Stated(epsilon=0, delta="1e-30"), analyst="bob")
    ledger.verify()


pairs = st.tuples(parts, parts).map(lambda pair: ApproxDP(pair[0], pair[1] / 10))


@given(budget=pairs, cap=pairs, query=pairs, spent=pairs, price=pairs)
@settings(max_examples=40)
def test_an_approximate_debit_is_granted_if_and_only_if_every_cap_covers_it(
    budget: ApproxDP, cap: ApproxDP, query: ApproxDP, spent: ApproxDP, price: ApproxDP
) -> None:
    with closing(opened(memory_ledger(), ApproxDP(10, "0.9"), "approx")) as ledger:
        pay(ledger, None, Stated(epsilon=spent.epsilon, delta=spent.delta))
        ledger.cap("people", budget, reason="a test")
        ledger.cap("people", cap, reason="a test", analyst="ann")
        ledger.cap("people", query, reason="a test", query=True)
        balance = ledger.balance("people", "ann")
        left = balance.remaining.guarantee
        assert isinstance(left, ApproxDP)
        assert left.epsilon == max(0, min(budget.epsilon, cap.epsilon) - spent.epsilon)
        assert left.delta == max(0, min(budget.delta, cap.delta) - spent.delta)
        fits = min(left.epsilon, query.epsilon) >= price.epsilon and min(left.delta, query.delta) >= price.delta
        lowered = any(spent.epsilon > each.epsilon or spent.delta > each.delta for each in (budget, cap))
        try:
            pay(ledger, None, Stated(epsilon=price.epsilon, delta=price.delta))
            granted = True
        except BudgetError:
            granted = False
        assert granted == balance.remaining.fits(Stated(epsilon=price.epsilon, delta=price.delta))
        assert granted == fits or (lowered and not granted)


# --- caps and stored answers, caps and sessions -------------------------------------------------------


def test_what_is_served_needs_no_budget(make: Factory) -> None:
    ledger = opened(make())
    ask(ledger, "first", "42", 1, question="q")
    for how in ({}, {"analyst": "ann"}, {"query": True}):
        ledger.cap("people", PureDP.ZERO, reason="a pause", **how)
    assert pay(ledger, "again", cost(1), question="q").answer == "42"
    with pytest.raises(BudgetError):
        pay(ledger, None, cost(1), question="q", fresh=True)


def test_sessions_keep_to_caps(where: Where) -> None:
    table = pv.table("people", pa.table({"age": [1, 2, 3]}), protect=pv.each_row(), columns={"age": pv.integer(0, 9)})
    query = table.agg(n=pv.count())

    def session(analyst: str) -> pv.Session:
        return pv.Session([table], budget=pv.PureDP(3), ledger=where, analyst=analyst, threads=1)

    with session("ann") as ann, session("bob") as bob:
        bob.ledger.cap("people", pv.PureDP("0.5"), reason="a guest", analyst="ann")
        bob.ledger.cap("people", pv.PureDP(1), reason="small steps", query=True)
        assert (ann.remaining.guarantee, bob.remaining.guarantee) == (pv.PureDP("0.5"), pv.PureDP(3))
        assert "epsilon 0.5 is left of epsilon 0.5 for 'ann': not enough." in ann.explain(query, epsilon=1)
        assert "not enough" not in bob.explain(query, epsilon="0.5")
        assert "not enough" in bob.explain(query, epsilon="1.5")
        with pytest.raises(BudgetError, match=r"left of epsilon 0\.5 for 'ann'.*Nothing was spent\.$"):
            ann.release(query, epsilon=1)
        with pytest.raises(BudgetError, match=r"one question.*Nothing was spent\.$"):
            bob.release(query, epsilon=2)
        assert ann.spent == bob.spent == pv.PureDP.ZERO
        ann.release(query, epsilon="0.5")
        assert (ann.remaining.guarantee, bob.remaining.guarantee) == (pv.PureDP.ZERO, pv.PureDP("2.5"))
        with pytest.raises(BudgetError, match="Ask the steward"):
            ann.release_value(1, sensitivity=1, epsilon="0.1", label="one")
        bob.release_value(1, sensitivity=1, epsilon=1, label="one")
        assert ann.balance == Balance(PURE, PureDP(3), PureDP("1.5"), Ration(PureDP("0.5"), PureDP("0.5")), PureDP(1))
        ann.ledger.verify()
