"""The client and the real server: the same questions and the same answers as in a session beside the data."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.asking import COUNT, POLICY, Shell, made
from tests.client.real import PACE, Serving, served

import privet as pv
from privet.client import RemoteSession, login, tokens
from privet.client.addresses import address
from privet.client.wire import Wire
from privet.errors import QueryError, UserError
from privet.server.accounts import Identity

VISITS = """
[datasets.visits]
budget = { epsilon = 10, delta = 1e-5 }
adjacency = "replace"

[datasets.visits.tables.visits]
source = "visits.parquet"
protect = { person = "who", max_rows = 3 }

[datasets.visits.tables.visits.columns]
town = "text"
cost = { number = [0, 100], step = 0.01 }
day = { date = [2025-01-01, 2025-12-31] }

[public.regions]
source = "regions.parquet"
key = "name"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    made(folder, POLICY.replace("epsilon = 3 }", "epsilon = 1000 }") + VISITS + PACE)
    towns = [f"town {i % 3}" for i in range(600)]
    days = pa.array([20_100 + i % 60 for i in range(600)], pa.int32()).cast(pa.date32())
    rows = {
        "who": [i // 2 for i in range(600)],
        "town": towns,
        "cost": [i % 100 / 1.0 for i in range(600)],
        "day": days,
    }
    pq.write_table(pa.table(rows), folder / "visits.parquet")
    pq.write_table(pa.table({"name": ["north", "south"], "coast": [True, False]}), folder / "regions.parquet")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Serving]:
    with served(folder / "privet.toml") as serving:
        yield serving


@pytest.fixture(scope="module")
def token(server: Serving) -> str:
    return server.token()


@pytest.fixture(scope="module")
def remote(server: Serving, token: str) -> Iterator[RemoteSession]:
    with pv.connect(server.url, token=token, dataset="people") as session:
        yield session


@pytest.fixture(scope="module")
def local(server: Serving) -> pv.Session:
    """The same analyst, beside the data."""
    return server.datasets["people"].session(analyst="ana")


def test_questions_are_the_same_values(remote: RemoteSession, local: pv.Session) -> None:
    assert remote.tables == local.tables
    assert remote.public == local.public
    assert (remote.name, remote.version, remote.analyst) == ("people", "1", "ana")
    people, regions = remote.tables["people"], remote.public["regions"]
    built = people.where(pv.col("age") >= 18).group_by("region").agg(n=pv.count(), pay=pv.mean("income"))
    text = "SELECT region, COUNT(*) AS n, AVG(income) AS pay FROM people WHERE age >= 18 GROUP BY region"
    assert remote.parse(text) == built == local.parse(text)
    joined = people.join(regions, on="region").group_by("coast").agg(n=pv.count())
    assert (
        remote.parse("SELECT coast, COUNT(*) AS n FROM people JOIN regions ON region = name GROUP BY coast") == joined
    )
    with pytest.raises(UserError, match="rows of 'people' are private"):
        len(people)
    with pytest.raises(QueryError, match="line 1, column 8") as here:
        remote.parse("SELECT agee FROM people")
    with pytest.raises(QueryError) as there:
        local.parse("SELECT agee FROM people")
    assert str(here.value) == str(there.value)


QUESTIONS = [
    ("SELECT region, COUNT(*) AS n, AVG(income) AS pay FROM people WHERE age >= 30 GROUP BY region", {"epsilon": 0.5}),
    ("SELECT MEDIAN(income) AS m FROM people", {"epsilon": "1/3", "confidence": 0.9}),
    (COUNT, {"within": {"n": 50}, "simultaneous": True}),
    ("SELECT SUM(income) AS s, COUNT(*) AS n FROM people", {"epsilon": 1, "weights": {"s": 3}, "assuming": 100}),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.25) COUNT(*) AS n FROM people WHERE smoker", {}),
    ("SELECT region, smoker, COUNT(*) AS n FROM people GROUP BY ROLLUP (region, smoker)", {"epsilon": 0.5}),
    ("SELECT region, COUNT(*) AS n FROM people GROUP BY region HAVING COUNT(*) > 60 ORDER BY n DESC", {"epsilon": 1}),
]


@pytest.mark.parametrize(("text", "options"), QUESTIONS)
def test_plans_explanations_and_answers_are_the_same(
    remote: RemoteSession, local: pv.Session, folder: Path, text: str, options: dict[str, object]
) -> None:
    answer = remote.release(text, **options)  # type: ignore[arg-type]
    for asked in (text, remote.parse(text))[: 1 if "OPTIONS" in text else 2]:
        plan = remote.plan(asked, **options)  # type: ignore[arg-type]
        assert plan == local.plan(asked, **options)  # type: ignore[arg-type]
        assert remote.explain(plan) == local.explain(plan)
        assert remote.explain(plan, face="terminal", fresh=True) == local.explain(plan, face="terminal", fresh=True)
        answer = remote.release(asked, **options)  # type: ignore[arg-type]
        stored = local.release(asked, **options)  # type: ignore[arg-type]
        assert answer.noisy == stored.noisy
        assert answer.plan == stored.plan
        assert answer.shown == stored.shown
        assert answer.to_arrow() == stored.to_arrow()
        assert remote.paid_before(plan) == local.paid_before(plan) == answer.guarantee
        assert answer.certificate == stored.certificate
    checked = pv.verify(answer.certificate, key=folder / "steward.key.pub", ledger=local.ledger)
    assert checked.signature
    assert checked.ledger
    again = remote.release(remote.plan(text, **options))  # type: ignore[arg-type]
    assert again.paid_before
    assert str(again) == str(local.release(text, **options))  # type: ignore[arg-type]


def test_balances(remote: RemoteSession, local: pv.Session) -> None:
    assert remote.balance == local.balance
    assert (remote.spent, remote.remaining) == (local.spent, local.remaining)
    before = remote.remaining
    answer = remote.release("SELECT COUNT(*) AS n FROM people WHERE age < 33", epsilon=0.5)
    assert answer.remaining == remote.remaining == local.remaining
    assert before.epsilon - answer.remaining.epsilon == answer.spent.epsilon  # type: ignore[union-attr]


def test_batches(remote: RemoteSession, local: pv.Session) -> None:
    people = remote.tables["people"]
    questions = {
        "men": "SELECT region, COUNT(*) AS n FROM people WHERE NOT smoker GROUP BY region",
        "pay": people.group_by("region").agg(pay=pv.mean("income")),
        "all": people.group_by("region").agg(n=pv.count()),
    }
    options = {"epsilon": 1, "weights": {"men": 2}}
    assert remote.plan_all(questions, **options).whole == local.plan_all(questions, **options).whole  # type: ignore[arg-type]
    before = local.spent
    assert remote.explain_all(questions, **options) == local.explain_all(questions, **options)  # type: ignore[arg-type]
    assert local.spent == before
    released = remote.release_all(questions, **options)  # type: ignore[arg-type]
    told = remote.explain_all(questions, **options)  # type: ignore[arg-type]
    assert "Already paid for" in told
    assert told == local.explain_all(questions, **options)  # type: ignore[arg-type]
    fresh = remote.explain_all(questions, fresh=True, **options)  # type: ignore[arg-type]
    assert fresh == local.explain_all(questions, fresh=True, **options) != told  # type: ignore[arg-type]
    stored = local.release_all(questions, **options)  # type: ignore[arg-type]
    assert not released.paid_before
    assert stored.paid_before
    assert released.guarantee == stored.guarantee == pv.PureDP(1)
    assert {name: each.noisy for name, each in released.items()} == {name: each.noisy for name, each in stored.items()}
    assert str(remote.release_all(questions, **options)) == str(stored)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="question 'b'"):
        remote.release_all({"a": COUNT, "b": "SELECT nothing FROM people"}, epsilon=1)


def test_a_diagnosis_is_paid_for(remote: RemoteSession, local: pv.Session, folder: Path) -> None:
    """It reads data, so it costs what it costs beside the data, and is verified as every answer is."""
    asked, before = "SELECT AVG(income) AS pay FROM people WHERE age >= 21", local.spent.epsilon
    found = remote.diagnose(asked, epsilon=0.5, ceiling=8)
    assert (found.spent, local.spent.epsilon) == (pv.PureDP(0.5), before + pv.PureDP(0.5).epsilon)
    stored = local.diagnose(asked, epsilon=0.5, ceiling=8)
    assert (stored.paid_before, stored.shares, stored.advice) == (True, found.shares, found.advice)
    assert str(remote.diagnose(remote.parse(asked), epsilon=0.5, ceiling=8)) == str(stored)
    for certificate in found.certificates.values():
        assert pv.verify(certificate, key=folder / "steward.key.pub", ledger=local.ledger).ledger
    with pytest.raises(QueryError, match="a diagnosis needs an epsilon or a rho"):
        remote.diagnose(asked)
    with pytest.raises(pv.BudgetError, match="Nothing was spent"):
        remote.diagnose(asked, epsilon=2000)
    assert local.spent.epsilon == before + pv.PureDP(0.5).epsilon


def test_errors_of_the_server(remote: RemoteSession, server: Serving, token: str) -> None:
    with pytest.raises(pv.BudgetError, match="Nothing was spent") as caught:
        remote.release(COUNT, epsilon=2000)
    assert caught.value.spent == {"epsilon": "0"}
    asked = "SELECT COUNT(*) AS n FROM people WHERE age < 40"
    remote.release(asked, epsilon=0.5, request_id="mine")
    with pytest.raises(UserError, match="'mine' was already used for a different question") as reused:
        remote.release(asked, epsilon=0.25, request_id="mine")
    assert type(reused.value).__name__ == "ReusedRequest"
    beside = r"computed from the data, so it needs a session beside the data\. Ask "
    with pytest.raises(UserError, match=beside):
        remote.release_value(3, label="mine", sensitivity=1, epsilon=1)
    with pytest.raises(UserError, match=beside):
        remote.select([1, 2])
    with pytest.raises(UserError, match=r"several datasets.*The datasets are: people, visits"):
        pv.connect(server.url, token=token)
    with pytest.raises(UserError, match=r"no dataset 'visit' that you .*are: people, visits\. Did you mean 'visits'\?"):
        pv.connect(server.url, token=token, dataset="visit")
    with pytest.raises(UserError, match="does not accept the token"):
        pv.connect(server.url, token="privet_0_wrong", dataset="people")
    logged = server.log.getvalue()
    assert '"route": "query"' in logged
    assert not [word for word in (token, "wrong", "SELECT") if word in logged]


def test_unknown_keys_and_two_mechanisms(server: Serving, token: str) -> None:
    """A budget with a delta: keys that are not public, and noise that the server chooses."""
    local = server.datasets["visits"].session(analyst="ana")
    with pv.connect(server.url, token=token, asking="SELECT COUNT(*) FROM visits") as remote:
        assert remote.name == "visits"
        for text, options in (
            ("SELECT town, COUNT(DISTINCT who) AS n FROM visits GROUP BY town", {"epsilon": 1}),
            ("SELECT AVG(cost) AS c, COUNT(*) AS n FROM visits", {"epsilon": 0.5, "delta": 1e-7}),
            ("SELECT EXTRACT(MONTH FROM day) AS m, COUNT(*) AS n FROM visits GROUP BY m", {"within": {"n": 50}}),
            ("SELECT COUNT(*) AS n FROM visits", {"rho": 0.01}),
        ):
            plan = remote.plan(text, **options)
            assert plan == local.plan(text, **options)
            answer = remote.release(text, **options)
            stored = local.release(text, **options)
            assert (answer.noisy, answer.plan) == (stored.noisy, stored.plan)
            assert remote.remaining == local.remaining
        many = {"a": "SELECT COUNT(*) AS n FROM visits WHERE cost > 2", "b": "SELECT AVG(cost) AS c FROM visits"}
        assert (
            remote.plan_all(many, epsilon=0.2, delta=1e-7).whole == local.plan_all(many, epsilon=0.2, delta=1e-7).whole
        )
        assert remote.explain_all(many, epsilon=0.2, delta=1e-7) == local.explain_all(many, epsilon=0.2, delta=1e-7)
        released = remote.release_all(
            {"a": "SELECT COUNT(*) AS n FROM visits WHERE cost > 1", "b": "SELECT AVG(cost) AS c FROM visits"},
            epsilon={"a": 0.1, "b": 0.1},
            delta=1e-7,
        )
        assert not released.paid_before


def test_many_threads_pay_once(remote: RemoteSession, local: pv.Session) -> None:
    asked, before = "SELECT COUNT(*) AS n FROM people WHERE age < 41", local.spent.epsilon
    start = threading.Barrier(8)

    def ask(_: int) -> object:
        start.wait()
        return remote.release(asked, epsilon=0.5, request_id="together").noisy

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert answers == [answers[0]] * 8
    assert local.spent.epsilon == before + pv.PureDP(0.5).epsilon


# --- the command line -----------------------------------------------------------------------------------


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, token: str) -> Shell:
    """The command line of an analyst, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PRIVET_TOKEN", token)
    monkeypatch.delenv("PRIVET_SERVER", raising=False)
    return Shell(capsys, monkeypatch)


def test_commands_print_what_they_print_beside_the_data(
    shell: Shell, server: Serving, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, here = ("--server", server.url), ("--policy", folder / "privet.toml", "--analyst", "ana")
    asked = ("SELECT region, COUNT(*) AS n FROM people WHERE age > 33 GROUP BY region", "--epsilon", "0.5")
    shell("query", *asked, *there)
    for command in (
        ("query", *asked),
        ("query", *asked, "--json"),
        ("query", *asked, "--dry-run", "--json", "--fresh"),
        ("explain", *asked),
        ("explain", *asked, "--max-rows", "1", "--simultaneous", "--mechanism", "laplace"),
    ):
        assert shell(*command, *there) == shell(*command, *here)
    for command in (
        ("bounds", "people", "income", "--epsilon", "0.5"),
        ("diagnose", "SELECT AVG(income) AS pay FROM people WHERE age > 33", "--epsilon", "0.5"),
    ):
        assert "Spent epsilon 0.5" in shell.out(*command, *there)
        assert shell(*command, *there) == shell(*command, *here)
        assert shell(*command, *there, "--json") == shell(*command, *here, "--json")
    monkeypatch.setenv("PRIVET_SERVER", server.url)
    assert shell("explain", *asked) == shell("explain", *asked, *here)  # a policy that is named comes first
    told = shell.refused(3, "query", "SELECT COUNT(*) FROM people", "--epsilon", "5000", "--dataset", "people")
    assert "only epsilon" in told
    wrong = ("query", "SELECT wrong FROM people", "--epsilon", "1")
    assert shell.run(*wrong) == shell.run(*wrong, *here)
    assert "not both" in shell.refused(2, "query", *asked, *there, "--policy", folder / "privet.toml")
    assert "Leave out --analyst" in shell.refused(2, "query", *asked, "--analyst", "bob")
    done = shell("query", *asked, "-o", "answer.csv", "--certificate", "answer.json")
    assert (done.out, Path("answer.csv").read_text().count("\n")) == ("", 4)
    assert "rules      passed" in shell.out("verify", "answer.json")


def test_a_server_that_is_gone(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privet.client.wire.sleep", lambda seconds: None)
    told = shell.refused(75, "query", COUNT, "--epsilon", "1", "--server", "http://127.0.0.1:9")
    assert "can't be reached: Connection refused" in told


# --- signing in -----------------------------------------------------------------------------------------


@pytest.fixture
def waits(
    shell: Shell, server: Serving, token: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[int, Callable[[str, Identity], object]]]:
    """What a person does on the page while the client waits, by the number of the pause, with the code it shows."""
    monkeypatch.delenv("PRIVET_TOKEN")
    server.accounts.set_password("ana", "correct horse battery")
    _, identity = server.accounts.sign_in("ana", "correct horse battery", address="192.0.2.1")
    person: dict[int, Callable[[str, Identity], object]] = {}
    codes: list[str] = []
    begin = login.begin

    def begun(at: Wire) -> login.Codes:
        found = begin(at)
        codes.append(found.user_code)
        assert found.where == f"{server.url.replace('127.0.0.1', 'localhost')}/device"
        return found

    def slept(seconds: float) -> None:
        server.later.append(seconds)
        if (does := person.get(len(server.later))) is not None:
            does(codes[-1], identity)

    monkeypatch.setattr(login, "begin", begun)
    monkeypatch.setattr("privet.client.wire.sleep", slept)
    monkeypatch.setattr("privet.client.wire.now", lambda: time.monotonic() + sum(server.later))
    yield person
    server.later.clear()


Waits = dict[int, Callable[[str, Identity], object]]


def test_signing_in_and_out(shell: Shell, server: Serving, waits: Waits, tmp_path: Path) -> None:
    waits[3] = server.accounts.approve_device
    done = shell("login", server.url)
    assert done.out == f"Signed in to {server.url} as ana. The token is stored in {tokens.file()}\n"
    assert re.fullmatch(r"Open http://localhost:\d+/device and enter the code [A-Z0-9-]{8,}\n", done.err)
    assert len(server.later) == 3
    text = json.loads(tokens.file().read_text())[server.url]
    assert text not in done.out + done.err
    held = server.accounts.bearer(text)
    assert held is not None
    assert held.token is not None
    assert held.token.label == login.label()
    with pv.connect(server.url, dataset="people") as session:
        assert session.analyst == "ana"
    assert shell.out("query", "SELECT COUNT(*) AS n FROM people", "--epsilon", "1", "--server", server.url)
    assert shell.out("logout", server.url) == f"Signed out of {server.url}.\n"
    assert server.accounts.bearer(text) is None
    assert json.loads(tokens.file().read_text()) == {}
    assert "there is no stored token" in shell.refused(2, "logout", server.url)


def test_signing_in_is_refused_or_forgotten(shell: Shell, server: Serving, waits: Waits) -> None:
    waits[1] = server.accounts.deny_device
    refused = shell.run("login", server.url)
    assert (refused.code, refused.out) == (2, "")
    assert "\nerror: not signed in: the code was refused" in refused.err
    server.later.clear()
    waits[1] = lambda code, identity: server.later.append(580)
    assert "\nerror: not signed in: the code has expired" in shell.run("login", server.url).err
    assert not tokens.file().exists()


def test_tokens_are_kept_to_oneself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("PRIVET_TOKEN", raising=False)
    one, other = address("https://a.example.org"), address("https://b.example.org")
    with pytest.raises(UserError, match=r"there is no token for https://a\.example\.org.*privet login"):
        tokens.token_for(one)
    file = tokens.store(one, "first")
    tokens.store(other, "second")
    tokens.store(one, "third")
    assert file == tmp_path / "privet" / "tokens.json"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [*file.parent.iterdir()] == [file]
    assert tokens.token_for(one).header() == "Bearer third"
    monkeypatch.setenv("PRIVET_TOKEN", "fourth")
    assert tokens.token_for(one).header() == "Bearer fourth"
    assert tokens.token_for(one, "fifth").header() == "Bearer fifth"
    monkeypatch.delenv("PRIVET_TOKEN")
    assert tokens.forget(one)
    assert not tokens.forget(one)
    assert json.loads(file.read_text()) == {"https://b.example.org": "second"}
    os.chmod(file, 0o640)  # noqa: PTH101
    with pytest.raises(UserError, match="others can read your tokens") as caught:
        tokens.token_for(other)
    assert "second" not in str(caught.value)
    file.chmod(0o600)
    file.write_text("[")
    with pytest.raises(UserError, match="is damaged"):
        tokens.token_for(other)
