"""The most that a connection may spend, when the ledger, the engine or the way to a server fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.asking import COUNT, damaged, made
from tests.client.conftest import behind, folder, liar, pauses, server  # noqa: F401
from tests.client.hostile import TOKEN, Heard, Liar, Said

import privet as pv
from privet.allowance import Allowance, LimitedSession
from privet.errors import BudgetError, LedgerBusy, NoAnswer, NoConnection, UserError, VerificationError
from privet.exact import Exact


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[LimitedSession]:
    made(tmp_path)
    with LimitedSession.open(Allowance(1), policy=tmp_path / "privet.toml") as opened:
        yield opened


def test_what_the_budget_refuses_is_given_back(tmp_path: Path) -> None:
    made(tmp_path)
    with LimitedSession.open(Allowance(10), policy=tmp_path / "privet.toml") as limited:
        with pytest.raises(BudgetError, match="is left of epsilon 3"):
            limited.release(COUNT, epsilon=4)
        assert limited.allowance.left == 10


def test_a_busy_ledger_costs_nothing(limited: LimitedSession, monkeypatch: pytest.MonkeyPatch) -> None:
    limited.release("SELECT COUNT(*) AS n FROM people", epsilon=0.25)

    def busy(*_: object, **__: object) -> None:
        raise LedgerBusy("another process holds the ledger's lock")

    with monkeypatch.context() as patch:
        patch.setattr(type(limited.session.ledger), "reserve", busy)  # type: ignore[union-attr]
        with pytest.raises(LedgerBusy):
            limited.release(COUNT, epsilon=0.5)
    assert limited.allowance.left == Exact(3, 4)


def test_a_failed_answer_stays_paid(tmp_path: Path) -> None:
    made(tmp_path)
    damaged(tmp_path / "people.parquet", "income")
    with LimitedSession.open(Allowance(1), policy=tmp_path / "privet.toml") as limited:
        for left in (Exact(2, 3), Exact(1, 3)):
            with pytest.raises(NoAnswer):
                limited.release("SELECT AVG(income) AS a FROM people", epsilon="1/3")
            assert limited.allowance.left == left
        assert limited.session.spent.epsilon == Exact(2, 3)


def test_a_forked_process_has_no_allowance_of_its_own(limited: LimitedSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(UserError, match="opened in another process"):
        limited.allowance.hold(Exact(1, 10))


def test_a_policy_or_a_server() -> None:
    for both in ({}, {"policy": "privet.toml", "url": "https://x.org"}):
        with pytest.raises(UserError, match="either a policy or the address"):
            LimitedSession.open(Allowance(1), **both)


# --- over a server ------------------------------------------------------------------------------------------


def test_a_lost_answer_is_paid_for_once(liar: Liar, behind: pv.Session, pauses: list[float]) -> None:  # noqa: F811
    """The server debits and does not answer; whoever asks again, also after connecting again, pays nothing more."""
    allowance, before = Allowance(1), behind.spent.epsilon
    liar.lie = lambda heard, said: Said(cut=True) if heard.route == "query" else said
    for _ in range(2):
        with LimitedSession.open(allowance, url=liar.url, token=TOKEN) as limited:
            with pytest.raises(NoConnection):
                limited.release(COUNT, epsilon="3/4")
            assert allowance.left == Exact(1, 4)
    liar.lie = lambda heard, said: said
    with LimitedSession.open(allowance, url=liar.url, token=TOKEN) as limited:
        limited.release(COUNT, epsilon="3/4")
        limited.release(COUNT, epsilon="3/4")
        assert allowance.left == Exact(1, 4)
        assert behind.spent.epsilon == before + Exact(3, 4)
        assert len({heard.headers["idempotency-key"] for heard in liar.asked("query")}) == 2, "one id until it arrived"


def test_what_a_server_refuses_is_given_back(liar: Liar, pauses: list[float]) -> None:  # noqa: F811
    with LimitedSession.open(Allowance(5000), url=liar.url, token=TOKEN) as limited:
        with pytest.raises(BudgetError):
            limited.release(COUNT, epsilon=2000)
        assert limited.allowance.left == 5000


def test_an_answer_that_is_not_accepted_stays_paid(liar: Liar, pauses: list[float]) -> None:  # noqa: F811
    asked = "SELECT COUNT(*) AS n FROM people WHERE age > 33"
    with LimitedSession.open(Allowance(1), url=liar.url, token=TOKEN) as limited:
        liar.lie = lambda heard, said: Said(tree={**said.tree, "certificate": {}}) if heard.route == "query" else said
        with pytest.raises(VerificationError):
            limited.release(asked, epsilon="1/2")
        assert limited.allowance.left == Exact(1, 2)


def test_what_a_server_charges_against_its_word_is_counted(liar: Liar, pauses: list[float]) -> None:  # noqa: F811
    """Beyond the maximum a question is asked only if its answer is stored. A server may say so, and debit it still."""
    asked = "SELECT COUNT(*) AS n FROM people WHERE age > {}"
    with LimitedSession.open(Allowance("1/2"), url=liar.url, token=TOKEN) as limited:

        def stored(heard: Heard, said: Said) -> Said:
            return Said(tree={**said.tree, "paid_before": {"epsilon": "1"}}) if heard.route == "explain" else said

        limited.release(asked.format(70), epsilon="1/4")
        liar.lie = stored
        limited.release(asked.format(71), epsilon="1/2")
        assert limited.allowance.left == 0
        liar.lie = lambda heard, said: said
        with pytest.raises(BudgetError, match="nothing is left"):
            limited.release(asked.format(72), epsilon="1/4")


def test_a_refusal_after_a_debit_gives_nothing_back(liar: Liar, behind: pv.Session, pauses: list[float]) -> None:  # noqa: F811
    """The answer is lost, or still computed, and what comes then is a refusal: of the token, or of one request more."""
    refused = Said(429, {"title": "Too Many Requests", "status": 429, "detail": "Too many of your requests"})
    closed = Said(401, {"title": "Unauthorized", "status": 401, "detail": "The token is wrong, expired or revoked"})
    waits = Said(202, {"request_id": "?", "state": "running", "paid": True, "retry_after": 1})
    for place, after in enumerate((refused, closed)):
        for first in (Said(cut=True), waits):
            asked = f"SELECT COUNT(*) AS n FROM people WHERE age > {40 + place} AND age < {90 + (first is waits)}"
            before, sent = behind.spent.epsilon, [0]

            def lie(heard: Heard, said: Said, first: Said = first, after: Said = after, sent: list[int] = sent) -> Said:
                if heard.route != "query" and "/answers/" not in heard.path:
                    return said
                sent[0] += 1
                return first if sent[0] == 1 else after

            with LimitedSession.open(Allowance(1), url=liar.url, token=TOKEN) as limited:
                liar.lie = lie
                with pytest.raises(NoConnection, match="may have been paid for; its request id is") as caught:
                    limited.release(asked, epsilon="1/4")
                assert caught.value.request_id
                assert sent[0] > 1
                liar.lie = lambda heard, said: said
                assert (behind.spent.epsilon - before, limited.allowance.left) == (Exact(1, 4), Exact(3, 4))
                limited.release(asked, epsilon="1/4")
                assert (behind.spent.epsilon - before, limited.allowance.left) == (Exact(1, 4), Exact(3, 4))


def test_what_is_held_for_a_lost_question_follows_it(liar: Liar, pauses: list[float]) -> None:  # noqa: F811
    """If it was never paid for, it is given back; if it was, against the server's word, it is counted."""
    asked = "SELECT COUNT(*) AS n FROM people WHERE age > {}"
    with LimitedSession.open(Allowance(5000), url=liar.url, token=TOKEN) as limited:
        liar.first = lambda heard: Said(cut=True) if heard.route == "query" else None
        with pytest.raises(NoConnection):
            limited.release(asked.format(61), epsilon=2000)
        liar.first = lambda heard: None
        assert limited.allowance.left == 3000
        with pytest.raises(BudgetError):
            limited.release(asked.format(61), epsilon=2000)
        assert limited.allowance.left == 5000

    def stored(heard: Heard, said: Said) -> Said:
        if heard.route == "query":
            return Said(cut=True)
        return Said(tree={**said.tree, "paid_before": {"epsilon": "1"}}) if heard.route == "explain" else said

    with LimitedSession.open(Allowance("1/4"), url=liar.url, token=TOKEN) as limited:
        liar.lie = stored
        with pytest.raises(NoConnection):
            limited.release(asked.format(62), epsilon="1/2")
        liar.lie = lambda heard, said: said
        limited.release(asked.format(62), epsilon="1/2")
        assert limited.allowance.left == 0
