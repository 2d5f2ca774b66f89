"""What every ledger keeps to: written once, run for each kind of ledger there is."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

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
from tests.ledger.common import PEOPLE, ask, cost, kinds, opened, pay
from tests.ledger.conftest import LEDGERS, Factory, Where

from privet.errors import AccountingError, BudgetError, DatasetClosed, InternalError, NoAnswer, ReusedRequest, UserError
from privet.ledger import (
    Balance,
    Charge,
    Dataset,
    Ledger,
    Ration,
    Receipt,
    Verified,
    memory_ledger,
    open_ledger,
    verify_export,
)
from privet.ledger.history.chain import digest
from privet.privacy.accounting import ApproxAccountant, PureAccountant
from privet.privacy.adjacency import Adjacency
from privet.privacy.events import Composed, Free, LaplaceNoise, PrivacyEvent, Repeated, Stated
from privet.privacy.guarantees import ApproxDP, PureDP
from privet.privacy.guarantees.budgets import numbers
from privet.privacy.moves import L1Move

# --- what is spent ----------------------------------------------------------------------------


def test_a_new_dataset_has_all_of_its_budget(make: Factory) -> None:
    ledger = opened(make())
    assert ledger.balance("people") == Balance(PureAccountant(), PureDP(1), PureDP.ZERO)
    assert ledger.balance("people").remaining.guarantee == PureDP(1)
    assert ledger.balance("people", "ann") == Balance(PureAccountant(), PureDP(1), PureDP.ZERO, Ration(PureDP.ZERO))
    (first,) = ledger.history("people")
    assert (first.number, first.kind, first.facts) == (1, "created", PEOPLE)


def test_ten_times_a_tenth_is_one(make: Factory) -> None:
    ledger = opened(make())
    for i in range(10):
        charge = pay(ledger, str(i), cost("0.1"))
        found = ledger.history("people")[-1].hash
        assert charge == Charge(i + 2, "people", PureDP(0.1), request_id=str(i), hash=found)
    assert ledger.balance("people").spent == PureDP(1)
    assert ledger.balance("people").remaining.guarantee == PureDP.ZERO
    with pytest.raises(BudgetError, match="Ask the steward for a larger budget"):
        pay(ledger, "more", cost(Fraction(1, 10**300)))
    assert kinds(ledger) == ["created"] + ["reserved"] * 10


def test_thirds_are_no_decimals(make: Factory) -> None:
    ledger = opened(make())
    for i in range(3):
        pay(ledger, str(i), cost("1/3"))
    assert ledger.balance("people").remaining.guarantee == PureDP.ZERO


def test_a_hair_too_much_is_too_much_and_the_message_says_what_fits(make: Factory) -> None:
    ledger = opened(make())
    pay(ledger, "a", cost("0.75"))
    with pytest.raises(BudgetError, match=r"epsilon 0\.25 is left of epsilon 1\. Nothing was spent\.$"):
        pay(ledger, "b", cost(Fraction(1, 4) + Fraction(1, 10**100)))
    assert ledger.balance("people").spent == PureDP(0.75)
    pay(ledger, "b", cost("0.25"))


def test_several_events_are_paid_all_or_none(make: Factory) -> None:
    ledger = opened(make())
    with pytest.raises(BudgetError):
        pay(ledger, "a", cost("0.5"), cost("0.4"), cost("0.2"))
    assert ledger.balance("people").spent == PureDP.ZERO
    assert kinds(ledger) == ["created"]
    charge = pay(ledger, "a", cost("0.5"), cost("0.4"))
    assert charge.cost == PureDP(0.9)
    assert ledger.history("people")[1].events == (cost("0.5"), cost("0.4"))


@pytest.mark.parametrize(
    ("events", "price"),
    [
        ((), PureDP.ZERO),
        ((Free(),), PureDP.ZERO),
        ((Composed([cost("0.2"), Free(), cost("0.3")]),), PureDP(0.5)),
        ((Repeated(cost("0.1"), 7),), PureDP(0.7)),
        ((LaplaceNoise(move=L1Move(0), scale=1),), PureDP.ZERO),
        ((LaplaceNoise(move=L1Move(3), scale=30),), PureDP(0.1)),
    ],
)
def test_the_price_is_the_accountants(make: Factory, events: Sequence[PrivacyEvent], price: PureDP) -> None:
    ledger = opened(make())
    assert pay(ledger, "a", *events).cost == price
    assert ledger.balance("people").spent == price


def test_what_can_not_be_priced_is_not_paid(make: Factory) -> None:
    ledger = opened(make())
    with pytest.raises(AccountingError):
        pay(ledger, "a", cost("0.1"), Stated(epsilon=0.1, delta=1e-9))  # a pure budget has no delta
    with pytest.raises(AccountingError):
        pay(ledger, "b", "noise")  # type: ignore[arg-type]
    assert ledger.balance("people").spent == PureDP.ZERO
    assert kinds(ledger) == ["created"]


def test_nothing_is_refunded(make: Factory) -> None:
    ledger = opened(make())
    ledger.settle(pay(ledger, "a", cost("0.3")), "failed")
    ledger.settle(pay(ledger, "b", cost("0.3")), "answered", "42")
    pay(ledger, "c", cost("0.3"))
    assert ledger.balance("people").spent == PureDP(0.9)


def test_an_answer_is_text(make: Factory) -> None:
    ledger = opened(make())
    charge = pay(ledger, "a", cost("0.3"))
    with pytest.raises(InternalError, match="an answer is stored as text, not as bytes"):
        ledger.settle(charge, "answered", b"42")  # type: ignore[arg-type]
    ledger.settle(charge, "answered", "42")


def test_an_approximate_budget_counts_both(make: Factory) -> None:
    ledger = opened(make(), ApproxDP(1, 1e-6), "approx")
    assert pay(ledger, "a", cost("0.5")).cost == PureDP(0.5)
    pay(ledger, "b", Stated(epsilon=0.25, delta="6e-7"))
    assert ledger.balance("people") == Balance(ApproxAccountant(), ApproxDP(1, 1e-6), ApproxDP(0.75, 6e-7))
    assert ledger.balance("people").remaining.guarantee == ApproxDP(0.25, 4e-7)
    with pytest.raises(BudgetError, match="Nothing was spent"):
        pay(ledger, "c", Stated(epsilon=0, delta="5e-7"))  # too much delta
    with pytest.raises(BudgetError, match=r"only epsilon 0\.25, delta 4e-7 is left"):
        pay(ledger, "c", cost("0.3"))  # too much epsilon
    pay(ledger, "c", Stated(epsilon=0.25, delta="4e-7"))
    assert ledger.balance("people").remaining.guarantee == ApproxDP(0, 0)
    pay(ledger, "d", Free())


def test_odd_prices_do_not_make_totals_endless(make: Factory) -> None:
    """Sums of rationals with long denominators that share no factor grow by each of them."""
    ledger = opened(make())
    odd = [Fraction(1, 2**250 + 2 * i + 1) for i in range(60)]
    for i, epsilon in enumerate(odd):
        pay(ledger, str(i), cost(epsilon))
    spent = ledger.balance("people").spent.epsilon
    assert sum(odd) <= spent < sum(odd) + Fraction(1, 2**200), "rounded up, if at all, and by next to nothing"
    assert max(map(len, ledger.export("people"))) < 3000
    ledger.verify()


def test_another_accountant_can_replay_the_history(make: Factory) -> None:
    ledger = opened(make())
    for i in range(3):
        ledger.settle(pay(ledger, str(i), cost("0.1"), cost("0.2")), "failed")
    assert ledger.replay("people", ApproxAccountant()) == ApproxDP(0.9, 0)


# --- how a question ends ------------------------------------------------------------------------


def test_history_is_kept_in_order(make: Factory) -> None:
    ledger = opened(make())
    charges = [pay(ledger, request, cost("0.1"), analyst=who) for request, who in [("x", "ann"), ("y", "bob")]]
    ledger.settle(charges[1], "answered", "42")
    ledger.settle(charges[0], "failed")
    ledger.reopen("people", " more memory ")
    pay(ledger, "z", cost("0.2"))
    found = ledger.history("people")
    assert [(e.number, e.kind, e.analyst, e.request_id, e.refers, e.answer, e.note) for e in found] == [
        (1, "created", "", "", None, "", ""),
        (2, "reserved", "ann", "x", None, "", ""),
        (3, "reserved", "bob", "y", None, "", ""),
        (4, "answered", "", "", 3, digest("42"), ""),
        (5, "failed", "ann", "", 2, "", ""),
        (6, "reopened", "", "", None, "", "more memory"),
        (7, "reserved", "ann", "z", None, "", ""),
    ]
    assert [e.events for e in found] == [(), (cost("0.1"),), (cost("0.1"),), (), (), (), (cost("0.2"),)]
    assert ledger.reservation("people", 3) == (found[2], found[3])
    assert ledger.reservation("people", 7) == (found[6], None)
    assert ledger.head() == Receipt(7, found[6].hash)
    for number in (-1, 0, 1, 4, 8):
        with pytest.raises(UserError, match=f"there is no reservation {number} in the dataset 'people'"):
            ledger.reservation("people", number)


def test_history_is_a_copy(make: Factory) -> None:
    ledger = opened(make())
    before = ledger.history("people")
    pay(ledger, "x", cost("0.1"))
    assert len(before) == 1
    with pytest.raises(AttributeError):
        before[0].kind = "answered"  # type: ignore[misc]


@pytest.mark.parametrize("again", ["answered", "failed"])
@pytest.mark.parametrize("first", ["answered", "failed"])
def test_a_question_ends_once(make: Factory, first: Any, again: Any) -> None:
    ledger = opened(make())
    charge = pay(ledger, "x", cost("0.1"))
    ledger.settle(charge, first, "one")
    before = ledger.history("people")
    with pytest.raises(InternalError, match=f"already settled as {first}"):
        ledger.settle(charge, again, "two")
    assert ledger.history("people") == before
    ledger.verify()


@pytest.mark.parametrize(
    ("number", "outcome"), [(0, "answered"), (-1, "answered"), (1, "answered"), (3, "answered"), (2, "reserved")]
)
def test_only_what_was_reserved_is_settled(make: Factory, number: int, outcome: Any) -> None:
    ledger = opened(make())
    charge = pay(ledger, "x", cost("0.1"))
    with pytest.raises(InternalError):
        ledger.settle(replace(charge, number=number), outcome, "forged")
    assert kinds(ledger) == ["created", "reserved"]
    ledger.settle(charge, "answered", "42")
    assert pay(ledger, "x", cost("0.1")).answer == "42"


def test_a_request_id_is_used_once(make: Factory) -> None:
    """Who asks the same again learns what became of it; another question under the same id is refused."""
    ledger = opened(make())
    charge = pay(ledger, "x", cost("0.1"), asked="a")
    for state, answer in (("running", None), ("answered", "42")):
        again = pay(ledger, "x", cost("0.1"), asked="a")
        assert (again.number, again.state, again.answer, again.cost) == (charge.number, state, answer, PureDP.ZERO)
        for events, how in (("0.2", {"asked": "a"}), ("0.1", {"asked": "b"}), ("0.1", {"asked": "a", "version": "2"})):
            with pytest.raises(UserError, match="the request id 'x' was already used for a different"):
                pay(ledger, "x", cost(events), **how)
        if state == "running":
            ledger.settle(charge, "answered", "42")
    assert ledger.balance("people").spent == PureDP(0.1)
    assert kinds(ledger) == ["created", "reserved", "answered"]


def test_nobody_learns_of_anothers_request_ids(make: Factory) -> None:
    """Each analyst has ids of their own: the same one is another request, and neither is refused nor answered by it."""
    ledger = opened(make())
    ask(ledger, "x", "of ann", "0.1", asked="a")
    running = pay(ledger, "y", cost("0.1"), asked="a")
    for request, asked in (("x", "a"), ("y", "b")):
        charge = pay(ledger, request, cost("0.1"), asked=asked, analyst="bob")
        assert (charge.state, charge.cost, charge.answer) == ("reserved", PureDP(0.1), None)
        ledger.settle(charge, "answered", f"of bob, {request}")
    assert pay(ledger, "x", cost("0.1"), asked="a").answer == "of ann"
    assert pay(ledger, "y", cost("0.1"), asked="a").number == running.number
    assert pay(ledger, "x", cost("0.1"), asked="a", analyst="bob").answer == "of bob, x"
    assert ledger.balance("people").spent == PureDP("0.4")
    ledger.verify()


def test_a_refused_request_id_can_be_used(make: Factory) -> None:
    ledger = opened(make())
    with pytest.raises(BudgetError):
        pay(ledger, "x", cost(2))
    pay(ledger, "x", cost(1))


def test_without_a_request_id_every_question_is_a_new_one(make: Factory) -> None:
    ledger = opened(make())
    made = [pay(ledger, None, cost("0.1")).request_id for _ in range(3)]
    assert len({*made}) == 3
    assert all(made)
    assert ledger.balance("people").spent == PureDP(0.3)


def fail(ledger: Ledger, who: str, times: int, epsilon: str = "0.01") -> None:
    for _ in range(times):
        ledger.settle(pay(ledger, None, cost(epsilon), analyst=who), "failed")


def test_three_failures_close_a_dataset_to_their_analyst_until_it_is_reopened(make: Factory) -> None:
    ledger = opened(make())
    for i in range(3):
        charge = pay(ledger, str(i), cost("0.1"))
        pay(ledger, f"good {i}", cost("0.05"))
        ledger.settle(charge, "failed")
    for _ in range(2):
        with pytest.raises(
            DatasetClosed, match=r"^3 questions of 'ann' failed, so the dataset is closed to 'ann'\. Nothing .*reopen"
        ) as caught:
            pay(ledger, "more", cost("0.1"))
        assert isinstance(caught.value, NoAnswer)
    pay(ledger, "more", cost("0.05"), analyst="bob")
    assert ledger.balance("people").spent == PureDP("0.5")
    assert {who: ration.failures for who, ration in ledger.analysts("people").items()} == {"ann": 3, "bob": 0}
    for empty in ("", "  ", None):
        with pytest.raises(UserError, match="a reason is required"):
            ledger.reopen("people", empty)  # type: ignore[arg-type]
    ledger.reopen("people", "more memory")
    assert ledger.balance("people").spent == PureDP("0.5"), "opening again grants nothing"
    for i in range(2):
        ledger.settle(pay(ledger, f"again {i}", cost("0.1")), "failed")
    ledger.settle(pay(ledger, "again 2", cost("0.1")), "answered")
    ledger.settle(pay(ledger, "again 3", cost("0.1")), "failed")  # an answer between failures is no excuse
    with pytest.raises(DatasetClosed):
        pay(ledger, "and again", Free())
    ledger.verify()


def test_ten_failures_close_a_dataset_to_all_until_it_is_reopened(make: Factory) -> None:
    """An analyst who asks under many names does not go on for ever."""
    ledger = opened(make())
    for who in ("ann", "bob", "cleo"):
        fail(ledger, who, 3)
    pay(ledger, None, cost("0.01"), analyst="dora")
    fail(ledger, "dora", 1)
    for who in ("ann", "dora", "emil"):
        with pytest.raises(DatasetClosed, match=r"^10 questions failed, so the dataset is closed\. Nothing .*reopen"):
            pay(ledger, None, Free(), analyst=who)
    assert ledger.balance("people").spent == PureDP("0.11")
    ledger.reopen("people", "more memory")
    assert {ration.failures for ration in ledger.analysts("people").values()} == {0}
    for who in ("ann", "dora", "emil"):
        fail(ledger, who, 3)
        with pytest.raises(DatasetClosed, match=f"closed to '{who}'"):
            pay(ledger, None, Free(), analyst=who)
    fail(ledger, "bob", 1)
    with pytest.raises(DatasetClosed, match=r"is closed\. Nothing"):
        pay(ledger, None, Free(), analyst="bob")
    ledger.verify()


def test_what_a_dataset_was_made_with_closes_it(make: Factory) -> None:
    ledger = make()
    ledger.create(replace(PEOPLE, closes_after=2, closes_for=1))
    fail(ledger, "ann", 1)
    with pytest.raises(DatasetClosed, match=r"^1 questions of 'ann' failed"):
        pay(ledger, None, Free())
    fail(ledger, "bob", 1)
    with pytest.raises(DatasetClosed, match=r"^2 questions failed"):
        pay(ledger, None, Free(), analyst="cleo")
    ledger.verify()


def test_what_was_reserved_before_the_dataset_closed_can_be_settled(make: Factory) -> None:
    ledger = opened(make())
    charges = [pay(ledger, str(i), cost("0.01")) for i in range(15)]
    for charge in charges[:12]:
        ledger.settle(charge, "failed")
    assert (ledger.history("people")[-1].totals.failures, ledger.analysts("people")["ann"].failures) == (12, 12)
    ledger.settle(charges[12], "answered", "42")
    ledger.settle(charges[13], "interrupted")
    assert pay(ledger, "12", cost("0.01")).answer == "42", "and what was answered is still to be had"
    assert kinds(ledger)[-1] == "interrupted"
    ledger.verify()


# --- datasets -------------------------------------------------------------------------------------


def test_datasets_are_apart(make: Factory) -> None:
    ledger = opened(make())
    salts = {ledger.create(PEOPLE), ledger.create(replace(PEOPLE, name="visits"))}
    assert len(salts) == 2
    assert {len(salt) for salt in salts} == {16}
    assert ledger.datasets() == ("people", "visits")
    pay(ledger, "x", cost(1))
    charge = ledger.reserve(dataset="visits", analyst="ann", request_id="x", events=[cost("0.5")])
    ledger.settle(charge, "answered", "42")
    assert ledger.balance("visits").remaining.guarantee == PureDP(0.5)
    assert (kinds(ledger), kinds(ledger, "visits")) == (["created", "reserved"], ["created", "reserved", "answered"])
    assert ledger.verify() == Verified(ledger.head(), {"people": 2, "visits": 3})
    assert ledger.head().number == 5
    numbers = [[entry.number for entry in ledger.history(name)] for name in ledger.datasets()]
    assert numbers == [[1, 3], [2, 4, 5]], "one chain, in the order of time"
    for name, number in (("people", 4), ("visits", 3)):
        with pytest.raises(UserError, match=f"there is no reservation {number} in the dataset '{name}'"):
            ledger.reservation(name, number)


def test_a_charge_of_one_dataset_is_not_settled_in_another(make: Factory) -> None:
    ledger = opened(make())
    ledger.create(replace(PEOPLE, name="visits"))
    charge = pay(ledger, "x", cost("0.1"))
    with pytest.raises(InternalError):
        ledger.settle(replace(charge, dataset="visits"), "answered", "42")
    assert kinds(ledger, "visits") == ["created"]
    ledger.settle(charge, "answered", "42")
    ledger.verify()


def test_a_dataset_is_opened_again_as_it_was_made(make: Factory) -> None:
    ledger = make()
    salt = ledger.create(PEOPLE)
    pay(ledger, "x", cost("0.5"))
    assert ledger.create(PEOPLE) == salt, "a sample of rows stays the same"
    assert ledger.balance("people").spent == PureDP(0.5), "a dataset that is opened again keeps what was spent"
    assert ledger.dataset("people") == PEOPLE


@pytest.mark.parametrize(
    ("what", "other", "said"),
    [
        ("protect", "person", "was created with protect row, but is opened with person.* can't be changed"),
        (
            "adjacency",
            Adjacency.REPLACE,
            "was created with adjacency add/remove, but is opened with replace.* can't be changed",
        ),
        ("budget", PureDP(2), "has a budget of epsilon 1, but is opened with epsilon 2"),
        ("budget", PureDP(0.5), r".* Open it with its recorded budget, or let the steward.*budget=pv\.PureDP\(1\)"),
        (
            "budget",
            ApproxDP(1, 1e-6),
            "has a budget of epsilon 1, but is opened with epsilon 1, delta 1e-6. The kind .* can't be changed",
        ),
    ],
)
def test_other_facts_are_refused(make: Factory, what: str, other: Any, said: str) -> None:
    ledger = opened(make())
    facts: dict[str, Any] = {"accountant": "", what: other}
    with pytest.raises(UserError, match=f"'people' {said}"):
        ledger.create(replace(PEOPLE, **facts))
    assert ledger.balance("people").budget == PureDP(1)
    assert kinds(ledger) == ["created"]


def test_unknown_datasets(make: Factory) -> None:
    ledger = opened(make())
    for call in (
        lambda: ledger.balance("nobody"),
        lambda: ledger.analysts("nobody"),
        lambda: ledger.history("nobody"),
        lambda: ledger.reservation("nobody", 1),
        lambda: ledger.stored(dataset="nobody", analyst="ann", events=[cost(1)], question="q"),
        lambda: ledger.protect("nobody", "visits", "id", reason="a reason"),
        lambda: ledger.dataset("nobody"),
        lambda: list(ledger.export("nobody")),
        lambda: ledger.replay("nobody", ApproxAccountant()),
        lambda: ledger.reopen("nobody", "a reason"),
        lambda: ledger.declare("nobody", "2"),
        lambda: ledger.cap("nobody", PureDP(1), reason="a reason"),
        lambda: ledger.reserve(dataset="nobody", analyst="a", request_id="b", events=[]),
        lambda: ledger.settle(Charge(1, "nobody", PureDP(1)), "answered"),
    ):
        with pytest.raises(UserError, match=r"no dataset 'nobody'\. The ledger has these datasets: people"):
            call()


def test_a_budget_is_of_its_accountants_kind() -> None:
    for budget, accountant in ((PureDP(1), "approx"), (ApproxDP(1, 1e-6), "pure")):
        with pytest.raises(UserError, match=f"the {accountant} accountant needs"):
            Dataset("people", "row", Adjacency.REPLACE, budget, accountant)
    with pytest.raises(UserError, match=r"no accountant 'renyi'\. The accountants are: pure, meters, approx"):
        Dataset("people", "row", Adjacency.REPLACE, PureDP(1), "renyi")


@pytest.mark.parametrize("name", ["", "a\x00b", "a\ud800b"])
def test_names_that_can_not_be_kept_are_refused_and_do_no_harm(make: Factory, name: str) -> None:
    ledger = opened(make())
    with pytest.raises(UserError):
        pay(ledger, "x", cost("0.1"), analyst=name)
    with pytest.raises(UserError):
        pay(ledger, "x", cost("0.1"), version=name)
    with pytest.raises(UserError):
        pay(ledger, name, cost("0.1"))
    with pytest.raises(UserError):
        ledger.cap("people", PureDP(1), reason="a reason", analyst=name)
    with pytest.raises(UserError):
        ledger.declare("people", name)
    with pytest.raises(UserError):
        ledger.create(replace(PEOPLE, name=name))
    ask(ledger, "y", "42")
    assert kinds(ledger) == ["created", "reserved", "answered"]
    ledger.verify()


def test_a_protocol_that_all_keep(make: Factory) -> None:
    ledger: Ledger = opened(make())
    assert ledger.datasets() == ("people",)


# --- races ----------------------------------------------------------------------------------------


def test_racing_debits_never_pass_the_budget(make: Factory) -> None:
    """L1, with threads: 16 with 50 debits each, and room for 250."""
    ledger = opened(make(), PureDP("2.5"))
    start = threading.Barrier(16)

    def race(thread: int) -> Counter[str]:
        seen: Counter[str] = Counter()
        start.wait()
        for i in range(50):
            try:
                ledger.settle(pay(ledger, f"{thread}-{i}", cost("0.01")), "answered", f"{thread}-{i}")
                seen["granted"] += 1
            except BudgetError:
                seen["refused"] += 1
        return seen

    with ThreadPoolExecutor(16) as threads:
        total = sum(threads.map(race, range(16)), Counter[str]())
    assert total == {"granted": 250, "refused": 550}
    assert ledger.balance("people").spent == PureDP(2.5)
    entries = ledger.history("people")
    assert [entry.number for entry in entries] == list(range(1, 502))
    settled = {entry.refers: entry.answer for entry in entries if entry.kind == "answered"}
    assert settled == {e.number: digest(e.request_id) for e in entries if e.kind == "reserved"}
    ledger.verify()


def test_racing_for_one_request_id(make: Factory) -> None:
    """L4, with threads."""
    ledger = opened(make())
    start = threading.Barrier(16)

    def race(thread: int) -> str | None:
        start.wait()
        charge = pay(ledger, "the same", cost("0.01"))
        if charge.state == "reserved":
            ledger.settle(charge, "answered", f"by {thread}")
            return f"by {thread}"
        return ledger.wait(charge).answer

    with ThreadPoolExecutor(16) as threads:
        answers = {*threads.map(race, range(16))}
    assert len(answers) == 1
    assert None not in answers
    assert ledger.balance("people").spent == PureDP(0.01)
    assert kinds(ledger) == ["created", "reserved", "answered"]


# --- a stateful search against a reference --------------------------------------------------------


class Reference:
    """A ledger in a few lines: lists and sums, nothing clever."""

    def __init__(self, budget: Fraction) -> None:
        self.budget = budget
        self.per_query: Fraction | None = None
        self.caps: dict[str, Fraction | None] = {}
        self.kinds = ["created"]
        self.number = 2  # the second entry is another dataset's
        self.requests: dict[tuple[str, str], tuple[tuple[str, Fraction, str], int]] = {}  # by analyst and id
        self.versions: set[str] = set()
        self.paid: dict[int, tuple[str, Fraction, str]] = {}  # by entry: who, how much, and for what
        self.ends: dict[int, str] = {}
        self.failed: list[str] = []  # by whom, since it was opened last

    def spent(self, analyst: str | None = None) -> Fraction:
        return sum((paid for who, paid, _ in self.paid.values() if analyst in (None, who)), Fraction(0))

    def add(self, kind: str) -> int:
        self.kinds.append(kind)
        self.number += 1
        return self.number

    def reserve(self, request: str | None, who: str, price: Fraction, about: str, fresh: bool) -> tuple[str, int]:
        body = who, price, about
        if request is not None and (who, request) in self.requests:
            known, number = self.requests[who, request]
            return (self.ends.get(number, "running"), number) if known == body else ("used", 0)
        had = [(p, n) for n, (_, p, q) in self.paid.items() if q == about and self.ends.get(n) == "answered"]
        named = not about.startswith(" ")
        if named and not fresh and (better := [pair for pair in had if pair[0] >= price]):
            number = max(better)[1]
            if request is not None:
                self.requests[who, request] = body, number
                self.add("served")
            return "answered", number
        if len(self.failed) >= CLOSES_AFTER:
            return "closed", 0
        if self.failed.count(who) >= CLOSES_FOR:
            return "closed to one", 0
        limits = [(self.spent(), self.budget), (self.spent(who), self.caps.get(who)), (Fraction(0), self.per_query)]
        if any(limit is not None and already + price > limit for already, limit in limits):
            return "budget", 0
        number = self.add("reserved")
        self.paid[number] = body
        if request is not None:
            self.requests[who, request] = body, number
        return "reserved", number

    def settle(self, number: int, outcome: str) -> bool:
        if number in self.ends:
            return False
        self.ends[number] = outcome
        if outcome == "failed":
            self.failed.append(self.paid[number][0])
        self.add(outcome)
        return True


CLOSES_AFTER, CLOSES_FOR = 4, 2  # fewer than by default, so that both are met
SMALL = replace(PEOPLE, closes_after=CLOSES_AFTER, closes_for=CLOSES_FOR)
REFUSALS: dict[str, tuple[type[Exception], str]] = {
    "closed": (DatasetClosed, r"so the dataset is closed\."),
    "closed to one": (DatasetClosed, "so the dataset is closed to '(ann|bob|cleo)'"),
    "budget": (BudgetError, "Nothing was spent"),
    "used": (ReusedRequest, "was already used"),
}
ANALYSTS = ("ann", "bob", "cleo")
sixtieths = st.integers(1, 30).map(lambda parts: Fraction(parts, 60))

questions = st.tuples(
    st.none() | st.integers(0, 40).map(str),  # the request id
    st.sampled_from(ANALYSTS),
    sixtieths,
    st.sampled_from([" of 1", " of 1", "mean of 1", "mean of 2", "count of 1"]),
    st.sampled_from([False, False, False, True]),  # whether a fresh draw is asked for
)
ends = st.sampled_from(["", "", "answered", "answered", "failed"])


class AgainstReference(RuleBasedStateMachine):
    """Both ledgers are asked the same, and must say the same."""

    place: Callable[[], Where | None]
    ledger: Ledger
    steps: ClassVar[Counter[str]] = Counter()

    @initialize(budget=sixtieths.map(lambda part: 20 * part))
    def begin(self, budget: Fraction) -> None:
        self.where = type(self).place()
        self.ledger = memory_ledger() if self.where is None else open_ledger(self.where)
        self.salt = self.ledger.create(replace(SMALL, budget=PureDP(budget)))
        self.ledger.create(replace(PEOPLE, name="visits", budget=PureDP(10**6)))
        self.reference = Reference(budget)
        self.charges: list[Charge] = []

    @rule(question=questions, then=ends)
    def reserve(self, question: tuple[str | None, str, Fraction, str, bool], then: Any) -> None:
        if self._reserve(*question) and then:
            self.settle_one(self.charges[-1], then)

    # Hypothesis takes every rule as often as another, and most steps should be questions.

    @rule(question=questions, then=ends)
    def reserve_more(self, question: tuple[str | None, str, Fraction, str, bool], then: Any) -> None:
        self.reserve(question, then)

    @rule(question=questions, then=ends)
    def reserve_much_more(self, question: tuple[str | None, str, Fraction, str, bool], then: Any) -> None:
        self.reserve(question, then)

    def _reserve(self, request: str | None, who: str, price: Fraction, about: str, fresh: bool = False) -> bool:
        """Whether it is ours to answer now."""
        question, version = about.split(" of ")
        how: dict[str, Any] = {"analyst": who, "question": question, "version": version, "fresh": fresh}
        said = self.reference.reserve(request, who, price, about, fresh)
        self.steps[said[0]] += 1
        if said[0] in REFUSALS:
            kind, words = REFUSALS[said[0]]
            with pytest.raises(kind, match=words) as caught:
                pay(self.ledger, request, cost(price), asked=f"{question} at {price}", **how)
            assert caught.type is kind
            return False
        charge = pay(self.ledger, request, cost(price), asked=f"{question} at {price}", **how)
        assert (charge.state, charge.number) == said
        assert charge.answer == (f"answer {charge.number}" if charge.state == "answered" else None)
        assert numbers(charge.cost)["epsilon"] == (price if charge.state == "reserved" else 0)
        if charge.state == "reserved":
            self.charges.append(charge)
        return charge.state == "reserved"

    @rule(request=st.none() | st.integers(0, 40).map(str), pick=st.integers(0, 10**6))
    def ask_again(self, request: str | None, pick: int) -> None:
        """Something that was asked before, under the same request id or another one."""
        if self.reference.requests and request is not None:
            who, request = sorted(self.reference.requests)[pick % len(self.reference.requests)]
            (_, price, about), _ = self.reference.requests[who, request]
        elif self.reference.paid:
            who, price, about = list(self.reference.paid.values())[pick % len(self.reference.paid)]
        else:
            return
        self._reserve(request, who, price, about)

    @precondition(lambda self: self.charges)
    @rule(pick=st.integers(0, 10**6), outcome=st.sampled_from(["answered", "answered", "failed"]))
    def settle(self, pick: int, outcome: Any) -> None:
        self.settle_one(self.charges[pick % len(self.charges)], outcome)

    def settle_one(self, charge: Charge, outcome: Any) -> None:
        if self.reference.settle(charge.number, outcome):
            self.ledger.settle(charge, outcome, f"answer {charge.number}")
        else:
            with pytest.raises(InternalError, match="already settled"):
                self.ledger.settle(charge, outcome, "another answer")

    @rule(
        act=st.sampled_from(["reopen", "reopen", "declare", "budget", "analyst", "query", "both"]),
        who=st.sampled_from(ANALYSTS),
        cap=st.none() | st.none() | sixtieths,
        version=st.sampled_from("1234"),
    )
    def steward(self, act: str, who: str, cap: Fraction | None, version: str) -> None:
        reference, given = self.reference, None if cap is None else PureDP(cap)
        if act == "reopen":
            self.ledger.reopen("people", "a reason")
            reference.failed.clear()
            reference.add("reopened")
        elif act == "declare":
            self.ledger.declare("people", version)
            if version not in reference.versions:
                reference.versions.add(version)
                reference.add("declared")
        elif act == "analyst":
            self.ledger.cap("people", given, reason="a reason", analyst=who)
            reference.caps[who] = cap
            reference.add("capped")
        elif act == "query":
            self.ledger.cap("people", given, reason="a reason", query=True)
            reference.per_query = cap
            reference.add("capped")
        elif act == "both" or cap is None:
            with pytest.raises(UserError):
                self.ledger.cap(
                    "people", None, reason="a reason", analyst=who if act == "both" else None, query=act == "both"
                )
        else:
            self.ledger.cap("people", PureDP(20 * cap), reason="a reason")
            reference.budget = 20 * cap
            reference.add("capped")

    @rule(who=st.sampled_from(ANALYSTS), price=sixtieths)
    def elsewhere(self, who: str, price: Fraction) -> None:
        """What happens in another dataset changes the numbers, and nothing else."""
        event, before = cost(price), self.ledger.head().number
        self.ledger.reserve(dataset="visits", analyst=who, request_id=None, events=[event], question="mean")
        self.reference.number += 1
        assert self.ledger.head().number == before + 1 == self.reference.number

    @precondition(lambda self: self.where is not None and len(self.reference.kinds) % 10 == 0)
    @rule()
    def restart(self) -> None:
        self.ledger.close()
        self.ledger = open_ledger(self.where)  # type: ignore[arg-type]
        assert self.ledger.create(replace(SMALL, budget=PureDP(self.reference.budget))) == self.salt

    @invariant()
    def same(self) -> None:
        self.steps["all"] += 1
        reference, who = self.reference, ANALYSTS[len(self.reference.kinds) % 3]
        balance = self.ledger.balance("people", who)
        assert balance.spent.epsilon == reference.spent()
        assert numbers(balance.budget)["epsilon"] == reference.budget
        assert balance.ration is not None
        assert balance.ration.spent.epsilon == reference.spent(who)
        assert balance.ration.failures == reference.failed.count(who)
        assert (balance.ration.cap and numbers(balance.ration.cap)["epsilon"]) == reference.caps.get(who)
        assert (balance.per_query and numbers(balance.per_query)["epsilon"]) == reference.per_query

    def teardown(self) -> None:
        assert kinds(self.ledger) == self.reference.kinds
        spent = {who: ration.spent.epsilon for who, ration in self.ledger.analysts("people").items()}
        assert spent == {who: self.reference.spent(who) for who in spent}
        assert sum(spent.values()) == self.reference.spent()
        head, kept = self.ledger.head(), len(self.reference.kinds)
        assert head.number == self.reference.number
        assert self.ledger.verify(head) == Verified(head, {"people": kept, "visits": head.number - kept})
        for dataset in (None, "people", "visits"):
            assert verify_export(self.ledger.export(dataset), head).head == head
        self.ledger.close()


@pytest.mark.parametrize("kind", LEDGERS)
def test_against_a_reference(kind: str, places: Callable[[str], Where | None], effort: int) -> None:
    """L6: over 4,500 steps, of which most are in memory. Each of the examples has up to 100."""
    examples, steps = {"memory": (56, 4000), "sqlite": (9, 500), "postgres": (3, 100)}[kind]
    seen: Counter[str] = Counter()
    made = {"place": staticmethod(lambda: places(kind)), "steps": seen}
    machine = type(f"Against{kind.title()}", (AgainstReference,), made)
    how = settings(settings.default, max_examples=examples * effort, stateful_step_count=100, derandomize=True)
    run_state_machine_as_test(machine, settings=how)
    assert seen["all"] >= steps * effort
    if kind == "memory":  # nothing that can happen was left out
        assert {*seen} == {"all", "reserved", "running", "answered", "failed", *REFUSALS}
