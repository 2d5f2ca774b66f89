"""The most that a connection may spend, when the ledger, the engine or the way to a server fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from tests.cli.asking import COUNT, damaged, made
from tests.client.conftest import behind, folder, liar, pauses, server  # noqa: F401
from tests.client.hostile import TOKEN, Heard, Liar, Said

import privet as pv
from privet.allowance import Allowance, LimitedSession
from privet.errors import (
    BudgetError,
    LedgerBusy,
    NoAnswer,
    NoConnection,
    PrivetError,
    UserError,
    VerificationError,
)
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


def test_a_delta_buys_no_rho_beyond_the_maximum() -> None:
    """In rho, an event with little epsilon and some delta can cost anything; and a budget may have no epsilon."""
    rows = pa.table({"age": [31, 45], "name": ["a", "b"]})
    people = pv.table("t", rows, protect=pv.each_row(), columns={"age": pv.integer(0, 110), "name": pv.text()})
    asked = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (delta = 0.4) COUNT(*) AS n FROM t"
    with pv.Session([people], budget=pv.ZeroConcentratedDP(1), ledger=None) as session:
        limited = LimitedSession(session, Allowance("0.01"))
        for price in ({"within": {"n": 5}}, {"epsilon": "0.005", "mechanism": "gaussian"}):
            with pytest.raises(
                BudgetError, match=r"delta 0\.\d+, but at epsilon 0.* may spend delta 0: no larger share"
            ):
                limited.release(asked, **price)
        assert session.remaining.guarantee == pv.ZeroConcentratedDP(1)
        limited.release("SELECT COUNT(*) AS n FROM t", epsilon="0.005")
        assert limited.allowance.left == Exact("0.005")
    by_name = "SELECT name, COUNT(*) AS n FROM t GROUP BY name"
    with (
        pv.Session([people], budget=pv.ApproxDP(0, "1e-5"), ledger=None) as session,
        pytest.raises(BudgetError, match="may spend delta 0"),
    ):
        LimitedSession(session, Allowance(1)).release(by_name, epsilon="0.1")


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


def _refused(refusal: Said, heard: Heard) -> Said | None:
    return refusal if heard.route == "query" else None


def test_a_refusal_of_a_retry_gives_nothing_back(liar: Liar, behind: pv.Session, pauses: list[float]) -> None:  # noqa: F811
    """The first attempt may be paid for. A refusal of the second says nothing of it, unless it is about the budget."""
    refusals = [
        Said(429, {"title": "Too Many Requests", "status": 429, "detail": "Too many of your requests"}),
        Said(401, {"title": "Unauthorized", "status": 401, "detail": "The token is wrong, expired or revoked"}),
        Said(404, {"title": "Not Found", "status": 404, "detail": "Not found"}),
        Said(503, {"title": "Busy", "status": 503, "detail": "busy", "kind": "LedgerBusy", "what": "busy"}),
    ]
    for place, refusal in enumerate(refusals):
        asked, before = f"SELECT COUNT(*) AS n FROM people WHERE age > {50 + place}", behind.spent.epsilon
        with LimitedSession.open(Allowance(1), url=liar.url, token=TOKEN) as limited:
            liar.lie = lambda heard, said: Said(cut=True) if heard.route == "query" else said
            with pytest.raises(NoConnection):
                limited.release(asked, epsilon="3/4")
            liar.first = partial(_refused, refusal)
            for _ in range(2):
                with pytest.raises(PrivetError):
                    limited.release(asked, epsilon="3/4")
                assert limited.allowance.left == Exact(1, 4)
            liar.lie, liar.first = lambda heard, said: said, lambda heard: None
            limited.release(asked, epsilon="3/4")
            assert behind.spent.epsilon == before + Exact(3, 4)
            assert limited.allowance.left == Exact(1, 4), "paid for once, and counted"


def test_what_an_earlier_attempt_came_to_is_the_end_of_it(
    liar: Liar,  # noqa: F811
    behind: pv.Session,  # noqa: F811
    pauses: list[float],  # noqa: F811
) -> None:
    """Its request id was used for another question or has no answer: it stays counted, and the next attempt is new."""
    for kind in ("ReusedRequest", "NoAnswer"):
        refusal = Said(409, {"title": "x", "status": 409, "detail": "x", "kind": kind, "what": "x"})
        asked = f"SELECT COUNT(*) AS n FROM people WHERE age > {len(kind)}"
        with LimitedSession.open(Allowance(1), url=liar.url, token=TOKEN) as limited:
            liar.lie = lambda heard, said: Said(cut=True) if heard.route == "query" else said
            with pytest.raises(NoConnection):
                limited.release(asked, epsilon="1/4")
            liar.lie = lambda heard, said: _refused(refusal, heard) or said  # noqa: B023 (it is told in this round)
            with pytest.raises(PrivetError):
                limited.release(asked, epsilon="1/4")
            assert (limited.allowance.left, limited.allowance.unsure) == (Exact(3, 4), {})
            liar.lie = lambda heard, said: said


def test_an_interrupt_is_followed_up(
    liar: Liar,  # noqa: F811
    behind: pv.Session,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    pauses: list[float],  # noqa: F811
) -> None:
    asked, before, sent = (
        "SELECT COUNT(*) AS n FROM people WHERE age > 57",
        behind.spent.epsilon,
        len(liar.asked("query")),
    )
    with LimitedSession.open(Allowance(1), url=liar.url, token=TOKEN) as limited:
        post = pv.client.RemoteSession._post

        def interrupted(session: pv.client.RemoteSession, route: str, *arguments: object) -> object:
            reply = post(session, route, *arguments)  # type: ignore[arg-type]
            if route == "query":
                raise KeyboardInterrupt
            return reply

        with monkeypatch.context() as patch:
            patch.setattr(pv.client.RemoteSession, "_post", interrupted)
            for _ in range(2):
                with pytest.raises(KeyboardInterrupt):
                    limited.release(asked, epsilon="3/4")
                assert limited.allowance.left == Exact(1, 4)
        limited.release(asked, epsilon="3/4")
        assert behind.spent.epsilon == before + Exact(3, 4)
        assert limited.allowance.left == Exact(1, 4)
    keys = {heard.headers["idempotency-key"] for heard in liar.asked("query")[sent:]}
    assert len(keys) == 1, "whether or not it was answered meanwhile"
