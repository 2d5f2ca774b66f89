"""Looking for a stored answer: what `stored` finds is what `reserve` would return, and nothing is written."""

from __future__ import annotations

from itertools import product

import pytest
from tests.ledger.common import ask, cost, kinds, opened, pay
from tests.ledger.conftest import Factory

from privet.errors import UserError
from privet.guarantees import PureDP


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
            dataset="people", analyst="bob", events=[cost(epsilon)], question=question, version=version
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
        make().stored(dataset="people", analyst="ann", events=[cost(1)], question="q")


def test_what_is_not_shared_is_found_by_its_analyst_alone(make: Factory) -> None:
    ledger = opened(make())
    ask(ledger, "a", "of ann", "0.1", question="q")
    ask(ledger, "b", "of bob", "0.2", question="q", analyst="bob", share=False)
    events = [cost("0.1")]
    for share, expected in (
        (True, dict.fromkeys(("ann", "bob", "cleo"), "of bob")),
        (False, {"ann": "of ann", "bob": "of bob"}),
    ):
        found = {}
        for who in ("ann", "bob", "cleo"):
            charge = ledger.stored(dataset="people", analyst=who, events=events, question="q", share=share)
            if charge is not None:
                found[who] = charge.answer
        assert found == expected
    paid = pay(ledger, None, *events, question="q", analyst="cleo", share=False)
    assert (paid.state, paid.cost) == ("reserved", PureDP("0.1")), "what is not served is paid for"
