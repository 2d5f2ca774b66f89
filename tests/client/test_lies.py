"""A server that lies: another question's certificate, other numbers, another price, another request.

Many of these certificates hold by themselves. A client that only verified them would take them, which is shown too.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.client.hostile import TOKEN, Heard, Liar, Said, _told

import privet as pv
from privet.client import RemoteSession
from privet.codec import canonical
from privet.errors import NoConnection, VerificationError
from privet.release.certificate import Certificate, answered, plain
from privet.release.recall import planned_again
from privet.release.signing import new_signing_key, signer

AGES = itertools.count(20)


def question() -> str:
    """A question that was not asked yet."""
    return f"SELECT region, COUNT(*) AS n FROM people WHERE age >= {next(AGES)} GROUP BY region"


def held(certificate: Any) -> Certificate:
    """A certificate that verifies by itself."""
    found = Certificate.from_json(canonical(certificate))
    pv.verify(found)
    return found


def test_without_a_lie_everything_is_taken(remote: RemoteSession, behind: pv.Session, folder: Path, liar: Liar) -> None:
    asked = question()
    answer = remote.release(asked, epsilon=0.5)
    assert answer.spent == pv.PureDP(0.5)
    stored = behind.release(asked, epsilon=0.5)
    assert answer.noisy == stored.noisy
    assert str(answer.certificate) == str(stored.certificate)
    assert pv.verify(answer.certificate, key=folder / "steward.key.pub", ledger=behind.ledger).ledger
    again = remote.release(asked.replace(" AS n", " AS people"), epsilon=0.25, confidence=0.9)
    assert again.paid_before
    assert (again.spent, again.noisy, [*again.shown]) == (pv.PureDP.ZERO, answer.noisy, ["people"])
    with pv.connect(liar.url, token=TOKEN, key=folder / "steward.key.pub") as signed:
        assert signed.release(asked, epsilon=0.5).noisy == answer.noisy


# --- certificates that hold, and answer something else ------------------------------------------------

Instead = Callable[[pv.Session, str, str], dict[str, Any]]
"""What a server answers instead, given its session, the question and the request id."""


def _other(**changes: Any) -> Instead:
    def instead(session: pv.Session, asked: str, request_id: str) -> dict[str, Any]:
        return _told(session.release(asked, request_id=request_id, **{"epsilon": 0.5, **changes}), request_id)

    return instead


def _other_question(session: pv.Session, asked: str, request_id: str) -> dict[str, Any]:
    return _told(session.release(question(), epsilon=0.5, request_id=request_id), request_id)


def _other_request(session: pv.Session, asked: str, request_id: str) -> dict[str, Any]:
    return _told(session.release(asked, epsilon=0.5, request_id=f"{request_id}x"), request_id)


def _noisier(session: pv.Session, asked: str, request_id: str) -> dict[str, Any]:
    return {**_told(session.release(asked, epsilon=0.1), request_id), "paid_before": True}


def _older_question(session: pv.Session, asked: str, request_id: str) -> dict[str, Any]:
    return {**_told(session.release(question(), epsilon=0.5), request_id), "paid_before": True}


def _for_another_analyst(session: pv.Session, asked: str, request_id: str) -> dict[str, Any]:
    with session.dataset.session(analyst="mallory") as other:
        return _told(other.release(asked, epsilon=0.5, request_id=request_id), request_id)


def _altered(change: Callable[[dict[str, Any]], None]) -> Instead:
    """An honest answer whose document is then changed, and still verifies."""

    def instead(session: pv.Session, asked: str, request_id: str) -> dict[str, Any]:
        told = _told(session.release(asked, epsilon=0.5, request_id=request_id), request_id)
        change(told["certificate"]["document"])
        return told

    return instead


OTHERWISE: dict[str, tuple[Instead, str]] = {
    "another question": (_other_question, "another question: it differs in its query"),
    "a cheaper one": (_other(epsilon=0.1), "another question: it differs in its price"),
    "a dearer one": (_other(epsilon=1), "another question: it differs in its price"),
    "other intervals": (_other(confidence=0.5), "another question: it differs in its confidence"),
    "together": (_other(simultaneous=True), "another question: it differs in its simultaneous"),
    "another request": (_other_request, "made for another request"),
    "more noise": (_noisier, "more noise than was asked for"),
    "a stored answer to another question": (_older_question, "answers another question"),
    "another analyst's": (_for_another_analyst, "made for 'mallory', not for 'analyst'"),
    "another dataset": (_altered(lambda d: d.update(dataset="other")), "about the dataset 'other', not 'people'"),
    "another entry": (_altered(lambda d: d["ledger"].update(entry=10**6)), "another entry of the ledger"),
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_an_answer_to_something_else(remote: RemoteSession, liar: Liar, behind: pv.Session, what: str) -> None:
    instead, why = OTHERWISE[what]
    asked, sent = question(), []

    def first(heard: Heard) -> Said | None:
        if heard.route != "query":
            return None
        sent.append(instead(behind, asked, heard.headers["idempotency-key"]))
        return Said(tree=sent[-1])

    liar.first = first
    with pytest.raises(VerificationError, match=why):
        remote.release(asked, epsilon=0.5)
    held(sent[0]["certificate"])  # by itself it is in order: a careless client would have taken it


def test_an_older_answer_is_not_a_fresh_one(remote: RemoteSession, liar: Liar) -> None:
    asked = question()
    before = remote.release(asked, epsilon=0.5)
    told = {**_told(before, ""), "paid_before": True}
    liar.first = lambda heard: (
        Said(tree={**told, "request_id": heard.headers["idempotency-key"]}) if heard.route == "query" else None
    )
    assert remote.release(asked, epsilon=0.5).noisy == before.noisy
    with pytest.raises(VerificationError, match="an older answer, and a fresh one was asked for"):
        remote.release(asked, epsilon=0.5, fresh=True)


# --- certificates that do not hold ----------------------------------------------------------------------


def _set(*path: Any, to: Any) -> Callable[[Any], None]:
    def change(tree: Any) -> None:
        for step in path[:-1]:
            tree = tree[step]
        tree[path[-1]] = to(tree[path[-1]]) if callable(to) else to

    return change


_DOCUMENT = ("certificate", "document")
BROKEN: dict[str, Callable[[Any], None]] = {
    "a value": _set(*_DOCUMENT, "answer", "n", "values", 0, to=lambda n: n + 1),
    "an interval": _set(*_DOCUMENT, "answer", "n", "low", 0, to=lambda n: n - 1),
    "a noisy number": _set(*_DOCUMENT, "noisy", 0, 0, 0, to=lambda n: n + 1),
    "a smaller guarantee": _set(*_DOCUMENT, "derived", "guarantee", "epsilon", to="1/4"),
    "a smaller price": _set(*_DOCUMENT, "asked", "price", "epsilon", to="1/4"),
    "less noise": _set(*_DOCUMENT, "derived", "measurements", 0, "scale", to="1/1"),
    "wider bounds": _set(*_DOCUMENT, "asked", "query", "input", to=None),
    "no document": _set("certificate", "document", to={}),
    "no certificate": _set("certificate", to=None),
    "a list": _set("certificate", to=[]),
    "another kind": _set(*_DOCUMENT, "kind", to="value"),
    "no ledger": _set(*_DOCUMENT, "ledger", to={}),
    "another format": _set(*_DOCUMENT, "format", to="privet-certificate/2"),
    "a field more": _set(*_DOCUMENT, to=lambda d: {**d, "more": 1}),
    "another request id": _set("request_id", to="mine"),
    "no request id": _set("request_id", to=None),
    "another entry": _set("entry", to=lambda n: n + 1),
    "no word on payment": _set("paid_before", to="no"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_changed_answer(remote: RemoteSession, liar: Liar, what: str) -> None:
    def lie(heard: Heard, said: Said) -> Said:
        if heard.route == "query":
            BROKEN[what](said.tree)
        return said

    liar.lie = lie
    with pytest.raises(VerificationError, match=r"^The server's answer was not accepted"):
        remote.release(question(), epsilon=0.5)


def _invented(tree: Any) -> None:
    """Other noisy numbers, and everything that follows from them: consistent, and false."""
    document = tree["certificate"]["document"]
    document["noisy"][0][0][0] += 1000
    document["answer"] = plain(answered(planned_again(document).cells(document["noisy"])))


def test_invented_numbers_need_the_stewards_key(
    remote: RemoteSession, liar: Liar, folder: Path, tmp_path: Path
) -> None:
    def lie(heard: Heard, said: Said) -> Said:
        if heard.route == "query":
            changes[-1](said.tree)
        return said

    def signed_by_another(tree: Any) -> None:
        tree["certificate"]["signature"] = mallory.sign(canonical(tree["certificate"]["document"]).encode()).hex()

    new_signing_key(tmp_path / "mallory.key")
    mallory = signer(tmp_path / "mallory.key")
    changes: list[Callable[[Any], None]] = [_invented]
    liar.lie = lie
    assert remote.release(question(), epsilon=0.5)  # nobody can tell: known-limits says so
    with pv.connect(liar.url, token=TOKEN, key=str(folder / "steward.key.pub")) as session:
        for change in (_invented, signed_by_another, _set("certificate", "signature", to=None)):
            changes.append(change)
            with pytest.raises(VerificationError, match="signature: it is "):
                session.release(question(), epsilon=0.5)


NOISE = [
    b"",
    b"null",
    b"[]",
    b'"yes"',
    b"<html>",
    b'{"certificate":' * 5000,
    b'{"a":1,"a":2}',
    b'{"a":NaN}',
    b"\xff\xfe",
]


@pytest.mark.parametrize("route", ["query", "explain", "budget", "batch", "explain_batch"])
def test_what_is_no_answer_at_all(remote: RemoteSession, liar: Liar, route: str) -> None:
    asked = question()
    calls: dict[str, Callable[[], object]] = {
        "query": lambda: remote.release(asked, epsilon=0.5),
        "explain": lambda: remote.explain(asked, epsilon=0.5),
        "budget": lambda: remote.balance,
        "batch": lambda: remote.release_all({"a": asked}, epsilon=0.5),
        "explain_batch": lambda: remote.explain_all({"a": asked}, epsilon=0.5),
    }
    for raw in NOISE:
        liar.first = lambda heard, raw=raw: Said(raw=raw) if heard.route == route else None  # type: ignore[misc]
        with pytest.raises((NoConnection, VerificationError)):
            calls[route]()


def test_terms_that_are_none(liar: Liar, pauses: list[float]) -> None:
    good = liar._honest(Heard("GET", "/api/v1/datasets/people", {}, None)).tree["terms"]
    changes: list[Callable[[Any], None]] = [
        _set("terms", to=None),
        _set("terms", "tables", to=[]),
        _set("terms", "tables", 0, to=7),
        _set("terms", "tables", 0, "kind", to="query"),
        _set("terms", "tables", 0, "columns", to=[]),
        _set("terms", "tables", 0, "name", to="a\x1b[2J"),
        _set("terms", "public", to=good["tables"]),
        _set("terms", "budget", to={"kind": "pure", "epsilon": "-1/1"}),
        _set("terms", "accountant", to="nobody"),
        _set("terms", "accountant", to={"name": "meters"}),
        _set("terms", "created_with", to=None),
        _set("terms", "min_epsilon", to="0/1"),
        _set("terms", "min_epsilon", to="9" * 10**6),
        _set("terms", "delta_share", to=0.01),
        _set("terms", "name", to="other"),
        _set("terms", to=lambda terms: {**terms, "more": 1}),
    ]
    for change in changes:
        tree = {"terms": copy.deepcopy(good)}
        change(tree)
        liar.first = lambda heard, tree=tree: Said(tree=tree) if heard.route == "people" else None  # type: ignore[misc]
        with pytest.raises(NoConnection, match="did not describe the dataset 'people'"):
            pv.connect(liar.url, token=TOKEN)


# --- explanations -----------------------------------------------------------------------------------------


def test_an_explanation_of_another_question(remote: RemoteSession, liar: Liar) -> None:
    asked = question()
    liar.lie = lambda heard, said: (
        Said(tree={**said.tree, "asked": {**said.tree["asked"], "confidence": "1/2"}})
        if heard.route == "explain"
        else said
    )
    with pytest.raises(VerificationError, match="it explains another question: it differs in its confidence"):
        remote.explain(asked, epsilon=0.5)
    with pytest.raises(VerificationError, match="explains another question"):
        remote.paid_before(asked, epsilon=0.5)


def _other_event(tree: Any) -> None:
    tree["event"]["events"] = tree["event"]["events"][:1] * 2


def _other_questions(tree: Any) -> None:
    del tree["questions"]["b"]


@pytest.mark.parametrize("change", [_other_event, _other_questions, lambda tree: _swap({"answers": tree["questions"]})])
def test_an_explanation_of_another_batch(remote: RemoteSession, liar: Liar, change: Callable[[Any], None]) -> None:
    questions, options = {"a": question(), "b": question()}, {"epsilon": 0.5, "weights": {"a": 2}}
    assert "2 questions, answered" in remote.explain_all(questions, **options)  # type: ignore[arg-type]

    def lie(heard: Heard, said: Said) -> Said:
        if heard.route == "explain_batch":
            change(said.tree)
        return said

    liar.lie = lie
    with pytest.raises(VerificationError, match="it explains another"):
        remote.explain_all(questions, **options)  # type: ignore[arg-type]
    liar.lie = lambda heard, said: Said(tree={**said.tree, "text": "a\x1b[2J"}) if "text" in said.tree else said
    assert remote.explain_all(questions, **options) == "a[2J"  # type: ignore[arg-type]


def test_texts_of_the_server_do_not_move_the_cursor(remote: RemoteSession, liar: Liar) -> None:
    liar.lie = lambda heard, said: (
        Said(tree={**said.tree, "text": "Budget\x1b[2J\x07\n\u202eleft"}) if heard.route == "explain" else said
    )
    assert remote.explain(question(), epsilon=0.5) == "Budget[2J\nleft"
    told = {"kind": "QueryError", "what": "no\x1b]0;title\x07", "detail": "", "allowed": "\x9b1m"}
    liar.first = lambda heard: Said(422, told)
    with pytest.raises(pv.errors.QueryError) as caught:
        remote.release(question(), epsilon=0.5)
    assert str(caught.value) == "no]0;title. 1m"


def test_a_server_of_another_version(liar: Liar, behind: pv.Session, pauses: list[float]) -> None:
    """It is asked what it would do, which is free, before it is paid to do it."""

    def lie(heard: Heard, said: Said) -> Said:
        if heard.route == "health":
            return Said(tree={"version": "9.9\x1b[2J"})
        if heard.route in ("explain", "explain_batch") and other:
            plan = said.tree["questions"]["a"] if heard.route == "explain_batch" else said.tree
            plan["derived"]["measurements"][0]["scale"] = "1/1"
        return said

    other, before = True, behind.spent
    liar.lie = lie
    remote = pv.connect(liar.url, token=TOKEN)
    for ask in (
        lambda: remote.release(question(), epsilon=0.5),
        lambda: remote.release_all({"a": question()}, epsilon=0.5),
    ):
        with pytest.raises(pv.UserError, match=r"the server has Privet 9\.9\[2J and this is .* Nothing was spent"):
            ask()
    assert behind.spent == before
    assert liar.asked("query") == liar.asked("batch") == []
    other = False
    assert remote.release(question(), epsilon=0.5).spent == pv.PureDP(0.5)
    people = remote.tables["people"].where(pv.col("age") >= next(AGES)).group_by("region")
    shares = {"n": people.agg(n=pv.count()), "pay": people.agg(pay=pv.mean("income"))}
    assert remote.plan_all(shares, epsilon=0.5).together() == [["n", "pay"]]
    assert not remote.release_all(shares, epsilon=0.5).paid_before
    remote.close()


# --- batches ----------------------------------------------------------------------------------------------


def _swap(tree: Any) -> None:
    answers = tree["answers"]
    answers["a"], answers["b"] = answers["b"], answers["a"]


def _lose(tree: Any) -> None:
    del tree["answers"]["b"]


def _more(tree: Any) -> None:
    tree["answers"]["c"] = tree["answers"]["a"]


def _alone(tree: Any) -> None:
    """Each says that it stands alone: that is more than was asked to be paid for together."""
    for each in tree["answers"].values():
        del each["certificate"]["document"]["ledger"]["batch"]


def _other_part(tree: Any) -> None:
    _set("answers", "a", *_DOCUMENT, "ledger", "batch", "part", to=1)(tree)


def _another_debit(tree: Any) -> None:
    _set("answers", "a", *_DOCUMENT, "ledger", "hash", to="0" * 64)(tree)


@pytest.mark.parametrize("change", [_swap, _lose, _more, _alone, _other_part, _another_debit])
def test_a_batch_that_was_changed(remote: RemoteSession, liar: Liar, change: Callable[[Any], None]) -> None:
    questions = {"a": question(), "b": question()}
    released = remote.release_all(questions, epsilon=0.5)
    assert [each.spent for each in released.values()] == [pv.PureDP(0.25)] * 2

    def lie(heard: Heard, said: Said) -> Said:
        if heard.route == "batch":
            change(said.tree)
        return said

    liar.lie = lie
    with pytest.raises(VerificationError, match=r"^The server's answer was not accepted"):
        remote.release_all(questions, epsilon=0.5, fresh=True)


def test_a_batch_at_another_price(remote: RemoteSession, liar: Liar, behind: pv.Session) -> None:
    questions = {"a": question(), "b": question()}

    def first(heard: Heard) -> Said | None:
        if heard.route != "batch":
            return None
        heard = Heard(heard.method, heard.path, heard.headers, {**heard.body, "epsilon": "1/10"})
        return liar._honest(heard)

    liar.first = first
    with pytest.raises(VerificationError, match="another question: it differs in its price"):
        remote.release_all(questions, epsilon=0.5)
    assert json.loads(json.dumps(liar.asked("batch")[0].body))["epsilon"] == "1/2"
