"""Looking for a stored answer: what `stored` finds is what `reserve` would return, and nothing is written."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from tests.ledger.common import ask, cost, kinds, opened, pay
from tests.ledger.conftest import Factory

from privet.errors import UserError
from privet.ledger import Entry
from privet.ledger.storage.book import Book
from privet.privacy.guarantees import PureDP


def test_stored_finds_what_reserve_would_return(make: Factory) -> None:
    ledger = opened(make())
    ask(ledger, "rough", "rough", "0.1", question="q")
    ask(ledger, "fine", "fine", "0.2", question="q")
    ask(ledger, "other", "other", "0.1", question="q", version="2")
    ledger.settle(pay(ledger, "failed", cost("0.1"), question="r"), "failed")
    pay(ledger, "running", cost("0.1"), question="s")
    ask(ledger, "nameless", "nameless", "0.1")
    before = kinds(ledger)
    found = {}
    for question, version, epsilon in product(["q", "r", "s", ""], ["1", "2"], ["0.05", "0.1", "0.2", "0.25"]):
        charge = ledger.stored(
            dataset="people", events=[cost(epsilon)], question=question, version=version, analyst="x"
        )
        if charge is not None:
            found[question, version, epsilon] = charge.answer
    assert kinds(ledger) == before
    assert found == {
        ("q", "1", "0.05"): "fine", ("q", "1", "0.1"): "fine", ("q", "1", "0.2"): "fine",
        ("q", "2", "0.05"): "other", ("q", "2", "0.1"): "other",
    }  # fmt: skip
    for (question, version, epsilon), answer in found.items():
        assert pay(ledger, None, cost(epsilon), question=question, version=version, analyst="bob").answer == answer


def test_a_dataset_that_is_not_there(make: Factory) -> None:
    with pytest.raises(UserError, match="there is no dataset 'people'"):
        make().stored(dataset="people", events=[cost(1)], question="q", analyst="ann")


def test_answers_that_others_paid_for(make: Factory) -> None:
    """Without sharing, one's own are found and others' are not, whichever has less noise or is newer."""
    ledger = opened(make())
    ask(ledger, "mine", "mine", "0.1", question="q", analyst="ann")
    ask(ledger, "theirs", "theirs", "0.2", question="q", analyst="bob")
    about: dict[str, Any] = {"dataset": "people", "events": [cost("0.1")], "question": "q"}
    for analyst, share, answer in (("ann", True, "theirs"), ("ann", False, "mine"), ("bob", False, "theirs")):
        found = ledger.stored(**about, analyst=analyst, share=share)
        assert found is not None
        assert found.answer == answer
        assert pay(ledger, None, cost("0.1"), question="q", analyst=analyst, share=share).answer == answer
    assert ledger.stored(**about, analyst="eve", share=False) is None
    before = kinds(ledger)
    assert pay(ledger, None, cost("0.1"), question="q", analyst="eve", share=False).state == "reserved"
    assert kinds(ledger) == [*before, "reserved"]


def test_many_stored_answers(make: Factory) -> None:
    """The newest of those with the least noise is found; each entry is read once, and equal prices compared once."""
    ledger = opened(make(), PureDP(10))
    prices = ["0.02", "0.05", "0.02", "0.05", "0.01", "0.05", "0.02"]
    numbers = [
        ask(ledger, f"r{at}", f"r{at}", price, question="q", fresh=True).number for at, price in enumerate(prices)
    ]
    about: dict[str, Any] = {"dataset": "people", "question": "q", "analyst": "ann"}

    def found(price: str) -> int | None:
        stored = ledger.stored(**about, events=[cost(price)])
        balance, same = ledger.standing(**about, events=[cost(price)])
        assert (same, balance) == (stored, ledger.balance("people", "ann"))
        return None if stored is None else stored.number

    assert [found(price) for price in ("0.01", "0.02", "0.05", "0.06")] == [numbers[5]] * 3 + [None]
    later = ask(ledger, "later", "later", "0.05", question="q", fresh=True)
    assert found("0.01") == later.number
    with pytest.MonkeyPatch.context() as patch:
        read: list[int] = []
        entry = Book.entry

        def counted(book: Book, number: int) -> Entry:
            read.append(number)
            return entry(book, number)

        patch.setattr(Book, "entry", counted)
        ask(ledger, "one more", "one more", "0.05", question="q", fresh=True)
        read.clear()
        assert found("0.01") is not None
        assert len(read) == 1
