"""What every ledger keeps to: written once, run for each kind of ledger there is."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from privet.distances import Adjacency
from privet.errors import AccountingError, BudgetError, DatasetClosed, InternalError, NoAnswer, UserError
from privet.events import Composed, Free, Laplace, PrivacyEvent, Repeated, Stated
from privet.guarantees import ApproxDP, PureDP
from privet.ledger import Balance, Budget, Charge, Dataset, Ledger, MemoryLedger

Factory = Callable[[], Ledger]

LEDGERS: dict[str, Factory] = {"memory": MemoryLedger}
"""A further ledger joins by a line here."""

PEOPLE = Dataset("people", "row", Adjacency.ADD_REMOVE, PureDP(1))


@pytest.fixture(params=LEDGERS)
def make(request: pytest.FixtureRequest) -> Factory:
    return LEDGERS[request.param]


def cost(epsilon: Any) -> Laplace:
    return Laplace(sensitivity=1, scale=1 / Fraction(epsilon))


def opened(make: Factory, budget: Budget = PEOPLE.budget) -> Ledger:
    ledger = make()
    ledger.create(replace(PEOPLE, budget=budget))
    return ledger


def pay(ledger: Ledger, request: str, *events: PrivacyEvent, analyst: str = "ann") -> Charge:
    return ledger.reserve(dataset="people", analyst=analyst, request_id=request, events=events)


# --- what is spent ----------------------------------------------------------------------------


def test_a_new_dataset_has_all_of_its_budget(make: Factory) -> None:
    ledger = opened(make)
    assert ledger.balance("people") == Balance(PureDP(1), PureDP.ZERO)
    assert ledger.balance("people").remaining == PureDP(1)
    assert ledger.history("people") == ()


def test_ten_times_a_tenth_is_one(make: Factory) -> None:
    ledger = opened(make)
    for i in range(10):
        assert pay(ledger, str(i), cost("0.1")) == Charge(i + 1, "people", PureDP(0.1))
    assert ledger.balance("people").spent == PureDP(1)
    assert ledger.balance("people").remaining == PureDP.ZERO
    with pytest.raises(BudgetError, match="Ask the steward for more"):
        pay(ledger, "more", cost(Fraction(1, 10**300)))
    assert len(ledger.history("people")) == 10


def test_thirds_are_no_decimals(make: Factory) -> None:
    ledger = opened(make)
    for i in range(3):
        pay(ledger, str(i), cost("1/3"))
    assert ledger.balance("people").remaining == PureDP.ZERO


def test_a_hair_too_much_is_too_much_and_the_message_says_what_fits(make: Factory) -> None:
    ledger = opened(make)
    pay(ledger, "a", cost("0.75"))
    with pytest.raises(BudgetError, match=r"epsilon 0\.25 is left of epsilon 1\. Nothing was spent\. .*epsilon=0\.25$"):
        pay(ledger, "b", cost(Fraction(1, 4) + Fraction(1, 10**100)))
    assert ledger.balance("people").spent == PureDP(0.75)
    pay(ledger, "b", cost("0.25"))


def test_several_events_are_paid_all_or_none(make: Factory) -> None:
    ledger = opened(make)
    with pytest.raises(BudgetError):
        pay(ledger, "a", cost("0.5"), cost("0.4"), cost("0.2"))
    assert ledger.balance("people").spent == PureDP.ZERO
    assert ledger.history("people") == ()
    charge = pay(ledger, "a", cost("0.5"), cost("0.4"))
    assert charge.cost == PureDP(0.9)
    assert ledger.history("people")[0].events == (cost("0.5"), cost("0.4"))


@pytest.mark.parametrize(
    ("events", "price"),
    [
        ((), PureDP.ZERO),
        ((Free(),), PureDP.ZERO),
        ((Composed([cost("0.2"), Free(), cost("0.3")]),), PureDP(0.5)),
        ((Repeated(cost("0.1"), 7),), PureDP(0.7)),
        ((Laplace(sensitivity=0, scale=1),), PureDP.ZERO),
        ((Laplace(sensitivity=3, scale=30),), PureDP(0.1)),
    ],
)
def test_the_price_is_the_accountants(make: Factory, events: Sequence[PrivacyEvent], price: PureDP) -> None:
    ledger = opened(make)
    assert pay(ledger, "a", *events).cost == price
    assert ledger.balance("people").spent == price


def test_what_can_not_be_priced_is_not_paid(make: Factory) -> None:
    ledger = opened(make)
    with pytest.raises(AccountingError):
        pay(ledger, "a", cost("0.1"), Stated(epsilon=0.1, delta=1e-9))  # a pure budget has no delta
    with pytest.raises(AccountingError):
        pay(ledger, "b", "noise")  # type: ignore[arg-type]
    assert ledger.balance("people").spent == PureDP.ZERO
    assert ledger.history("people") == ()


def test_nothing_is_refunded(make: Factory) -> None:
    ledger = opened(make)
    ledger.settle(pay(ledger, "a", cost("0.3")), "failed")
    ledger.settle(pay(ledger, "b", cost("0.3")), "answered", "digest")
    pay(ledger, "c", cost("0.3"))
    assert ledger.balance("people").spent == PureDP(0.9)


def test_an_approximate_budget_counts_both(make: Factory) -> None:
    ledger = opened(make, ApproxDP(1, 1e-6))
    assert pay(ledger, "a", cost("0.5")).cost == ApproxDP(0.5, 0)
    pay(ledger, "b", Stated(epsilon=0.25, delta="6e-7"))
    assert ledger.balance("people") == Balance(ApproxDP(1, 1e-6), ApproxDP(0.75, 6e-7))
    assert ledger.balance("people").remaining == ApproxDP(0.25, 4e-7)
    with pytest.raises(BudgetError, match="Nothing was spent"):
        pay(ledger, "c", Stated(epsilon=0, delta="5e-7"))  # too much delta
    with pytest.raises(BudgetError, match=r"epsilon=0\.25$"):
        pay(ledger, "c", cost("0.3"))  # too much epsilon
    pay(ledger, "c", Stated(epsilon=0.25, delta="4e-7"))
    assert ledger.balance("people").remaining == ApproxDP(0, 0)
    pay(ledger, "d", Free())


# --- how a question ends ------------------------------------------------------------------------


def test_history_is_kept_in_order(make: Factory) -> None:
    ledger = opened(make)
    charges = [pay(ledger, request, cost("0.1"), analyst=who) for request, who in [("x", "ann"), ("y", "bob")]]
    ledger.settle(charges[1], "answered", "abc")
    ledger.settle(charges[0], "failed")
    ledger.reopen("people", "more memory")
    pay(ledger, "z", cost("0.2"))
    assert [(e.number, e.analyst, e.request_id, e.state, e.answer) for e in ledger.history("people")] == [
        (1, "ann", "x", "failed", ""),
        (2, "bob", "y", "answered", "abc"),
        (3, "steward", "reopened-3", "reopened", ""),
        (4, "ann", "z", "reserved", ""),
    ]
    assert ledger.history("people")[2].note == "more memory"
    assert ledger.history("people")[2].events == ()


def test_history_is_a_copy(make: Factory) -> None:
    ledger = opened(make)
    before = ledger.history("people")
    pay(ledger, "x", cost("0.1"))
    assert before == ()
    with pytest.raises(AttributeError):
        ledger.history("people")[0].state = "answered"  # type: ignore[misc]


@pytest.mark.parametrize("again", ["answered", "failed"])
@pytest.mark.parametrize("first", ["answered", "failed"])
def test_a_question_ends_once(make: Factory, first: Any, again: Any) -> None:
    ledger = opened(make)
    charge = pay(ledger, "x", cost("0.1"))
    ledger.settle(charge, first, "one")
    with pytest.raises(InternalError, match="settled already"):
        ledger.settle(charge, again, "two")
    assert [(e.state, e.answer) for e in ledger.history("people")] == [(first, "one")]


@pytest.mark.parametrize(("number", "outcome"), [(0, "answered"), (-1, "answered"), (2, "answered"), (1, "reserved")])
def test_only_what_was_reserved_is_settled(make: Factory, number: int, outcome: Any) -> None:
    ledger = opened(make)
    charge = pay(ledger, "x", cost("0.1"))
    with pytest.raises(InternalError):
        ledger.settle(replace(charge, number=number), outcome, "forged")
    assert [entry.answer for entry in ledger.history("people")] == [""]


def test_a_request_id_is_used_once(make: Factory) -> None:
    ledger = opened(make)
    charge = pay(ledger, "x", cost("0.1"))
    for _ in range(2):
        with pytest.raises(UserError, match="the request id 'x' was used before"):
            pay(ledger, "x", cost("0.1"))
        with pytest.raises(UserError, match="the request id 'x' was used before"):
            pay(ledger, "x", cost("0.2"), analyst="bob")
        if ledger.history("people")[0].state == "reserved":
            ledger.settle(charge, "answered", "abc")
    assert ledger.balance("people").spent == PureDP(0.1)


def test_a_refused_request_id_can_be_used(make: Factory) -> None:
    ledger = opened(make)
    with pytest.raises(BudgetError):
        pay(ledger, "x", cost(2))
    pay(ledger, "x", cost(1))


def test_three_failures_close_a_dataset_until_it_is_reopened(make: Factory) -> None:
    ledger = opened(make)
    for i in range(3):
        charge = pay(ledger, str(i), cost("0.1"))
        pay(ledger, f"good {i}", cost("0.05"))
        ledger.settle(charge, "failed")
    with pytest.raises(DatasetClosed, match=r"closed\. Nothing was spent.*reopen") as caught:
        pay(ledger, "more", cost("0.1"))
    assert isinstance(caught.value, NoAnswer)
    assert ledger.balance("people").spent == PureDP(0.45)
    for empty in ("", "  ", None):
        with pytest.raises(UserError, match="a reason must be given"):
            ledger.reopen("people", empty)  # type: ignore[arg-type]
    ledger.reopen("people", "more memory")
    assert ledger.balance("people").spent == PureDP(0.45), "opening again grants nothing"
    for i in range(2):
        ledger.settle(pay(ledger, f"again {i}", cost("0.1")), "failed")
    ledger.settle(pay(ledger, "again 2", cost("0.1")), "answered")
    ledger.settle(pay(ledger, "again 3", cost("0.1")), "failed")  # an answer between failures is no excuse
    with pytest.raises(DatasetClosed):
        pay(ledger, "and again", Free())


def test_what_was_reserved_before_the_dataset_closed_can_be_settled(make: Factory) -> None:
    ledger = opened(make)
    charges = [pay(ledger, str(i), cost("0.1")) for i in range(5)]
    for charge in charges[:4]:
        ledger.settle(charge, "failed")
    ledger.settle(charges[4], "answered", "abc")
    assert ledger.history("people")[4].state == "answered"


# --- datasets -------------------------------------------------------------------------------------


def test_datasets_are_apart(make: Factory) -> None:
    ledger = opened(make)
    ledger.create(replace(PEOPLE, name="visits"))
    pay(ledger, "x", cost(1))
    ledger.reserve(dataset="visits", analyst="ann", request_id="x", events=[cost("0.5")])
    assert ledger.balance("visits").remaining == PureDP(0.5)
    assert len(ledger.history("people")) == len(ledger.history("visits")) == 1


def test_a_dataset_is_opened_again_as_it_was_made(make: Factory) -> None:
    ledger = opened(make)
    pay(ledger, "x", cost("0.5"))
    ledger.create(PEOPLE)
    assert ledger.balance("people").spent == PureDP(0.5), "a dataset that is opened again keeps what was spent"


@pytest.mark.parametrize(
    ("what", "other"),
    [
        ("protect", "person"),
        ("adjacency", Adjacency.REPLACE),
        ("budget", PureDP(2)),
        ("budget", PureDP(0.5)),
        ("budget", ApproxDP(1, 1e-6)),
    ],
)
def test_other_facts_are_refused(make: Factory, what: str, other: Any) -> None:
    ledger = opened(make)
    with pytest.raises(UserError, match=f"'people' was made with {what} .* fixed for its whole life"):
        ledger.create(replace(PEOPLE, **{what: other}))
    assert ledger.balance("people").budget == PureDP(1)


def test_unknown_datasets(make: Factory) -> None:
    ledger = opened(make)
    for call in (
        lambda: ledger.balance("nobody"),
        lambda: ledger.history("nobody"),
        lambda: ledger.reopen("nobody", "a reason"),
        lambda: ledger.reserve(dataset="nobody", analyst="a", request_id="b", events=[]),
        lambda: ledger.settle(Charge(1, "nobody", PureDP(1)), "answered"),
    ):
        with pytest.raises(UserError, match=r"no dataset 'nobody'\. There are: people"):
            call()


# --- races ----------------------------------------------------------------------------------------


def test_racing_debits_never_pass_the_budget(make: Factory) -> None:
    """L1: 16 threads with 200 debits each, and room for 1,000."""
    ledger = opened(make, PureDP(10))
    start = threading.Barrier(16)

    def ask(thread: int) -> Counter[str]:
        seen: Counter[str] = Counter()
        start.wait()
        for i in range(200):
            try:
                ledger.settle(pay(ledger, f"{thread}-{i}", cost("0.01")), "answered", f"{thread}-{i}")
                seen["granted"] += 1
            except BudgetError:
                seen["refused"] += 1
        return seen

    with ThreadPoolExecutor(16) as threads:
        total = sum(threads.map(ask, range(16)), Counter[str]())
    assert total == {"granted": 1000, "refused": 2200}
    assert ledger.balance("people").spent == PureDP(10)
    entries = ledger.history("people")
    assert [entry.number for entry in entries] == list(range(1, 1001))
    assert all(entry.state == "answered" and entry.answer == entry.request_id for entry in entries)


def test_racing_for_one_request_id(make: Factory) -> None:
    ledger = opened(make)
    start = threading.Barrier(16)

    def ask(_: int) -> str:
        start.wait()
        try:
            pay(ledger, "the same", cost("0.01"))
        except UserError:
            return "refused"
        return "granted"

    with ThreadPoolExecutor(16) as threads:
        assert sorted(threads.map(ask, range(16))) == ["granted"] + ["refused"] * 15
    assert ledger.balance("people").spent == PureDP(0.01)


# --- a stateful search against a reference --------------------------------------------------------


class Reference:
    """A ledger in 30 lines: lists and sums, nothing clever."""

    def __init__(self, budget: Fraction) -> None:
        self.budget = budget
        self.paid: list[Fraction] = []
        self.states: list[str] = []
        self.requests: set[str] = set()
        self.failures = 0

    def reserve(self, request: str, costs: list[Fraction]) -> str | int:
        if self.failures >= 3:
            return "closed"
        if request in self.requests:
            return "used"
        if sum(self.paid) + sum(costs) > self.budget:
            return "budget"
        self.requests.add(request)
        self.paid.append(sum(costs, Fraction(0)))
        self.states.append("reserved")
        return len(self.states)

    def settle(self, number: int, outcome: str) -> bool:
        if self.states[number - 1] != "reserved":
            return False
        self.states[number - 1] = outcome
        self.failures += outcome == "failed"
        return True

    def reopen(self) -> None:
        self.failures = 0
        self.states.append("reopened")
        self.paid.append(Fraction(0))


KIND: dict[type[Exception], str] = {DatasetClosed: "closed", BudgetError: "budget", UserError: "used"}


class AgainstReference(RuleBasedStateMachine):
    """Both ledgers are asked the same, and must say the same."""

    make: Factory = MemoryLedger

    @initialize(budget=st.fractions(Fraction(1, 3), 3, max_denominator=60))
    def begin(self, budget: Fraction) -> None:
        self.ledger = opened(type(self).make, PureDP(budget))
        self.reference = Reference(budget)
        self.charges: list[Charge] = []

    @rule(
        request=st.integers(0, 30).map(str),
        costs=st.lists(st.fractions(Fraction(1, 60), Fraction(1, 2), max_denominator=60), max_size=3),
    )
    def reserve(self, request: str, costs: list[Fraction]) -> None:
        said = self.reference.reserve(request, costs)
        try:
            charge = pay(self.ledger, request, *map(cost, costs))
        except (UserError, DatasetClosed) as error:
            found: str | int = KIND[type(error)]
        else:
            found = charge.number
            assert charge.cost.epsilon == sum(costs)
            self.charges.append(charge)
        assert found == said

    @precondition(lambda self: self.charges)
    @rule(pick=st.integers(0, 10**6), outcome=st.sampled_from(["answered", "failed", "failed"]))
    def settle(self, pick: int, outcome: Any) -> None:
        charge = self.charges[pick % len(self.charges)]
        try:
            self.ledger.settle(charge, outcome)
            done = True
        except InternalError:
            done = False
        assert done == self.reference.settle(charge.number, outcome)

    @rule()
    def reopen(self) -> None:
        self.ledger.reopen("people", "a reason")
        self.reference.reopen()

    @invariant()
    def same(self) -> None:
        balance = self.ledger.balance("people")
        assert balance.spent.epsilon == sum(self.reference.paid) <= self.reference.budget
        assert balance.remaining.epsilon == self.reference.budget - sum(self.reference.paid)
        assert [entry.state for entry in self.ledger.history("people")] == self.reference.states


@pytest.mark.parametrize("name", LEDGERS)
def test_against_a_reference(name: str, effort: int) -> None:
    """L6: thousands of steps."""
    machine = type(f"Against{name.title()}", (AgainstReference,), {"make": staticmethod(LEDGERS[name])})
    how = settings(settings.default, max_examples=50 * effort, stateful_step_count=50, derandomize=True)
    run_state_machine_as_test(machine, settings=how)
