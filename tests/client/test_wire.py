"""Requests that fail on the way: tried again with the same key, never paid for twice, and never sent elsewhere."""

from __future__ import annotations

import itertools
import logging
import pickle
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from tests.client.hostile import TOKEN, Heard, Liar, Said

import privet as pv
from privet.client import RemoteSession, wire
from privet.client.addresses import address
from privet.client.problems import error_of
from privet.errors import NoConnection, Place, PrivetError, Remedy, Subject, UserError

AGES = itertools.count(40)
BUSY = {"kind": "LedgerBusy", "what": "busy", "detail": "busy"}


def question() -> str:
    return f"SELECT COUNT(*) AS n FROM people WHERE age <= {next(AGES)}"


def at_first(route: str, *said: Said) -> Callable[[Heard], Said | None]:
    """What the server says to the first requests of a route."""
    rest = list(said)
    return lambda heard: rest.pop(0) if heard.route == route and rest else None


# --- paid once --------------------------------------------------------------------------------------------


def test_a_connection_that_breaks_after_the_debit(
    remote: RemoteSession, liar: Liar, behind: pv.Session, pauses: list[float]
) -> None:
    before = behind.spent.epsilon
    broken: list[Said] = []

    def lie(heard: Heard, said: Said) -> Said:
        if heard.route == "query" and len(broken) < 3:
            broken.append(said)
            return Said(cut=True)
        return said

    liar.lie = lie
    answer = remote.release(question(), epsilon=0.5)
    assert behind.spent.epsilon == before + pv.PureDP(0.5).epsilon  # four requests, one debit
    assert answer.spent == pv.PureDP(0.5)
    assert remote.debited
    keys = {heard.headers["idempotency-key"] for heard in liar.asked("query")}
    assert len(keys) == 1
    assert len(liar.asked("query")) == 4
    assert [0.1 <= pause <= 2 ** (n - 2) for n, pause in enumerate(pauses)] == [True] * 3


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_says_when_to_come_back(
    remote: RemoteSession, liar: Liar, pauses: list[float], status: int
) -> None:
    at = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    liar.first = at_first(
        "query",
        Said(status, BUSY, {"Retry-After": "7"}),
        Said(status, BUSY, {"Retry-After": at}),
        Said(status, {**BUSY, "retry_after": 3}),
        Said(status, BUSY, {"Retry-After": "soon"}),
    )
    assert remote.release(question(), epsilon=0.5).spent == pv.PureDP(0.5)
    assert pauses[0] == 7
    assert 27 < pauses[1] <= 30
    assert pauses[2] == 3
    assert pauses[3] <= 8
    assert len({heard.headers["idempotency-key"] for heard in liar.asked("query")}) == 1


def test_a_server_that_is_busy_for_longer_than_we_wait(liar: Liar, pauses: list[float]) -> None:
    with pv.connect(liar.url, token=TOKEN, timeout=20) as session:
        liar.first = at_first("query", Said(503, BUSY, {"Retry-After": "100000"}))
        with pytest.raises(pv.LedgerBusy, match=r"busy\. The request id is [0-9a-f]{32}"):
            session.release(question(), epsilon=0.5)
    assert pauses == []


def test_a_proxy_that_has_lost_its_server(remote: RemoteSession, liar: Liar, pauses: list[float]) -> None:
    liar.first = at_first("query", *(Said(status, raw=b"<h1>Bad Gateway</h1>") for status in (502, 504, 500)))
    assert remote.release(question(), epsilon=0.5).spent == pv.PureDP(0.5)
    assert len(pauses) == 3


@pytest.mark.parametrize("kind", ["DatasetClosed", "SourceError", "LedgerError"])
def test_a_refusal_that_lasts_is_not_asked_again(
    remote: RemoteSession, liar: Liar, pauses: list[float], kind: str
) -> None:
    liar.first = lambda heard: Said(503, {"kind": kind, "what": "no", "detail": "no"}, {"Retry-After": "1"})
    with pytest.raises(vars(pv.errors)[kind]):
        remote.release(question(), epsilon=0.5)
    assert (pauses, remote.debited) == ([], False)


def test_an_answer_that_failed_is_not_asked_again(remote: RemoteSession, liar: Liar, pauses: list[float]) -> None:
    failed = {"kind": "NoAnswer", "what": "It was paid for.", "detail": "", "spent": {"epsilon": "1/2"}}
    liar.first = lambda heard: Said(502, failed)
    with pytest.raises(pv.NoAnswer, match=r"^It was paid for\.$") as caught:
        remote.release(question(), epsilon=0.5)
    assert (len(liar.heard), pauses, remote.debited) == (1, [], True)
    assert caught.value.spent == {"epsilon": "1/2"}


# --- answers that take their time ---------------------------------------------------------------------------


def pending(**more: str) -> Said:
    return Said(202, {"state": "running", "location": "https://elsewhere.example/answers/1"}, {**more})


def test_a_question_that_takes_longer_is_asked_for_later(
    remote: RemoteSession, liar: Liar, pauses: list[float]
) -> None:
    kept: list[Said] = []

    def lie(heard: Heard, said: Said) -> Said:
        kept.append(said)
        return pending(**{"Retry-After": "2"})

    def first(heard: Heard) -> Said | None:
        if "/answers/" not in heard.path:
            return None
        assert heard.path.endswith(f"/datasets/people/answers/{liar.heard[0].headers['idempotency-key']}")
        return pending() if len(liar.heard) < 4 else kept[0]

    liar.lie, liar.first = lie, first
    answer = remote.release(question(), epsilon=0.5)
    assert answer.spent == pv.PureDP(0.5)
    assert pauses == [2, 1, 1]  # the location that it names is not asked


def test_a_batch_that_is_fetched_later(remote: RemoteSession, liar: Liar) -> None:
    """The server then has its answers by position: the names are ours."""
    kept: list[Said] = []

    def lie(heard: Heard, said: Said) -> Said:
        kept.append(Said(tree={**said.tree, "answers": dict(enumerate(said.tree["answers"].values()))}))
        return pending()

    liar.lie = lambda heard, said: lie(heard, said) if heard.route == "batch" else said
    liar.first = lambda heard: kept[0] if "/answers/" in heard.path else None
    questions = {"1": question(), "0": question()}
    released = remote.release_all(questions, epsilon=0.5)
    assert [released[name].plan.query for name in released] == [remote.parse(questions[name]) for name in ("1", "0")]
    assert released.remaining is not None
    assert not released.paid_before


def test_a_question_that_was_lost_is_sent_again(remote: RemoteSession, liar: Liar, behind: pv.Session) -> None:
    before, posts = behind.spent.epsilon, itertools.count()

    def first(heard: Heard) -> Said | None:
        if "/answers/" in heard.path:
            return Said(404, {"detail": "there is no such answer"})
        return pending() if heard.route == "query" and next(posts) < 2 else None

    liar.first = first
    remote.release(question(), epsilon=0.5)
    assert behind.spent.epsilon == before + pv.PureDP(0.5).epsilon


def test_after_the_timeout_the_error_says_how_to_fetch_the_answer(
    liar: Liar, behind: pv.Session, pauses: list[float]
) -> None:
    asked = question()
    with pv.connect(liar.url, token=TOKEN, timeout=5) as session:
        before = behind.spent.epsilon
        liar.lie = lambda heard, said: pending(**{"Retry-After": "9"}) if heard.route == "query" else said
        with pytest.raises(NoConnection, match="its request id is ") as caught:
            session.release(asked, epsilon=0.5)
        request_id = caught.value.request_id
        assert f'request_id="{request_id}"' in str(caught.value)
        assert f"--request-id {request_id}" in caught.value.render("terminal")
        assert caught.value.to_json()["request_id"] == request_id
        assert behind.spent.epsilon == before + pv.PureDP(0.5).epsilon
        liar.lie = lambda heard, said: said
        assert session.release(asked, epsilon=0.5, request_id=request_id).paid_before
        assert behind.spent.epsilon == before + pv.PureDP(0.5).epsilon


def test_a_slow_server(liar: Liar, pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that come one by one do not keep us for ever."""
    now = itertools.count(0, 0.5)
    with pv.connect(liar.url, token=TOKEN, timeout=4) as session:
        monkeypatch.setattr(wire, "now", lambda: float(next(now)))
        liar.first = lambda heard: Said(raw=b" " * 10**6) if heard.route == "query" else None
        with pytest.raises(NoConnection, match="it took too long"):
            session.release(question(), epsilon=0.5)


def test_an_answer_without_an_end(remote: RemoteSession, liar: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_LARGEST", 10**5)
    liar.first = lambda heard: Said(raw=b" " * 10**6)
    with pytest.raises(NoConnection, match="its reply is too long"):
        remote.release(question(), epsilon=0.5)


def test_nobody_is_there(pauses: list[float]) -> None:
    with pytest.raises(NoConnection, match=r"^http://127\.0\.0\.1:9 can't be reached: Connection refused") as caught:
        pv.connect("http://127.0.0.1:9", token=TOKEN)
    assert len(pauses) == 5
    assert caught.value.request_id == ""


# --- where the token goes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(remote: RemoteSession, liar: Liar, status: int) -> None:
    target = liar.url.replace("127.0.0.1", "localhost") + "/stolen"
    liar.first = lambda heard: Said(status, {}, {"Location": target})
    with pytest.raises(NoConnection, match=f"redirects to {target}. The token is not sent there"):
        remote.release(question(), epsilon=0.5)
    assert [heard.route for heard in liar.heard] == ["query"]


REFUSED = {
    "http://privet.example.org": "clear text",
    "http://10.0.0.1:8000": "clear text",
    "http://localhost.example.org": "clear text",
    "http://127.0.0.1.example.org": "clear text",
    "ftp://localhost": "begins with https://",
    "privet.example.org": "begins with https://, or with http:// on your own machine",
    "https://": "begins with https://",
    "https://a b": "begins with https://",
    "https://x\ny": "begins with https://",
    "https://user:secret@privet.example.org": "must not contain a name or a password",
    "http://localhost@privet.example.org": "must not contain a name or a password",
    "https://privet.example.org?x=1": "no [?] and no #",
    "https://privet.example.org#": "no [?] and no #",
    "https://privet.example.org:port": "port .* is not a number",
}


@pytest.mark.parametrize("url", REFUSED)
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(UserError, match=REFUSED[url]) as caught:
        pv.connect(url, token=TOKEN)
    assert "secret" not in str(caught.value)


def test_addresses_that_are_taken() -> None:
    assert str(address("http://[::1]:80/")) == "http://[::1]:80"
    assert str(address("http://privet.example.org", insecure=True)) == "http://privet.example.org"
    assert address("https://x.org/privet/").path("me") == "https://x.org/privet/api/v1/me"


def test_a_token_is_in_no_text(
    liar: Liar, pauses: list[float], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    session = pv.connect(liar.url, token=TOKEN)
    assert all(heard.headers["authorization"] == f"Bearer {TOKEN}" for heard in liar.heard)
    session.release(question(), epsilon=0.5)
    texts = [repr(session), str(session), session._repr_html_(), repr(vars(session)), repr(vars(session._wire))]
    texts += [caplog.text]
    assert "HTTP Request: POST" in caplog.text  # what the server sends back is its own affair
    echo = {"kind": "QueryError", "what": f"wrong token {TOKEN}", "detail": TOKEN}
    for said in (Said(422, echo), Said(401, echo), Said(503, echo), Said(cut=True), Said(302, {}, {"Location": TOKEN})):
        liar.first = lambda heard, said=said: said  # type: ignore[misc]
        with pytest.raises(PrivetError) as caught:
            session.release(question(), epsilon=0.5)
        chain = traceback.TracebackException.from_exception(caught.value, capture_locals=False)
        texts += [*chain.format(), repr(caught.value), str(caught.value.to_json())]
    with pytest.raises(UserError, match="can't be copied"):
        pickle.dumps(session)
    session.close()
    assert TOKEN not in "\n".join(texts)


def test_a_token_that_is_refused(remote: RemoteSession, liar: Liar, pauses: list[float]) -> None:
    liar.first = lambda heard: Said(401, {"detail": "who are you"})
    with pytest.raises(UserError, match=f"does not accept the token.*privet login {liar.url}"):
        remote.release(question(), epsilon=0.5)
    assert pauses == []


@pytest.mark.parametrize("token", ["", " ", "a b", "a\r\nX-Evil: 1", "\u00e9", "x" * 501])
def test_what_is_no_token(token: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("PRIVET_TOKEN", raising=False)
    with pytest.raises(UserError, match="token") as caught:
        pv.connect("http://localhost:1", token=token)
    assert not token.strip() or token not in str(caught.value)


# --- errors -------------------------------------------------------------------------------------------------


def test_errors_arrive_as_they_were_raised() -> None:
    kinds = [kind for kind in vars(pv.errors).values() if isinstance(kind, type) and issubclass(kind, PrivetError)]
    assert len(kinds) > 20
    subject = Subject("statement", "age", "people", Place(1, 8, 7, 10, "", "SELECT age\n       ^^^"))
    for kind in kinds:
        error = kind("it is wrong", allowed="This is right", subject=subject, remedy=Remedy("Do this", sql="age >= 18"))
        error.spent = {"epsilon": "1/2"}
        again = error_of({"status": 422, "detail": "x", **error.to_json("http")}, 422)
        assert type(again) is kind
        assert (again.what, again.allowed, again.subject) == (error.what, error.allowed, error.subject)
        assert again.spent == error.spent
        assert again.render("sql") == error.render("sql")


@pytest.mark.parametrize(
    "tree",
    [None, [], {}, {"kind": "Unknown", "detail": "x"}, {"kind": "Face"}, {"kind": ["x"], "subject": 7, "remedy": "x"},
     {"kind": "QueryError", "subject": {"kind": "statement", "at": {"line": "1"}}, "spent": [1]},
     {"kind": "QueryError", "subject": {"kind": "moon"}, "remedy": {"write": 7}, "spent": {"epsilon": 1}}],
)  # fmt: skip
def test_a_problem_of_another_shape(tree: object) -> None:
    error = error_of(tree, 500)
    assert isinstance(error, PrivetError)
    assert str(error)
    assert isinstance(error_of(tree, 422), UserError)


def test_wrong_calls_are_refused_before_anything_is_sent(remote: RemoteSession, liar: Liar) -> None:
    asked = question()
    plan = remote.plan(asked, epsilon=0.5)
    wrong: list[Callable[[], object]] = [
        lambda: remote.release("SELECT * FROM people", epsilon=0.5),
        lambda: remote.release(asked),
        lambda: remote.release(asked, epsilon=-1),
        lambda: remote.release(asked, eps=0.5),  # type: ignore[call-arg]
        lambda: remote.release(plan, epsilon=0.5),
        lambda: remote.release(asked, epsilon=0.5, fresh="yes"),  # type: ignore[arg-type]
        lambda: remote.release(asked, epsilon=0.5, request_id="a/b"),
        lambda: remote.release(asked, epsilon=0.5, request_id="\u00e9"),
        lambda: remote.release_all({"a": plan}),
        lambda: remote.release_all({}, epsilon=0.5),
        lambda: remote.release_all({"a": asked}, epsilon={"b": 1}),
        lambda: remote.explain("SELECT nothing FROM people", epsilon=0.5),
    ]
    for call in wrong:
        with pytest.raises(UserError):
            call()
    assert liar.heard == []
    remote.close()
    with pytest.raises(UserError, match="this session is closed"):
        remote.release(asked, epsilon=0.5)
