"""`share_answers=False`: nobody learns from a price whether somebody else asked the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.asking import COUNT, Shell, made

import privet as pv
from privet.cli import query as commands
from privet.ledger import Ledger, reservations
from privet.policy import load

Open = Callable[..., pv.Session]


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = made(tmp_path) / "privet.toml"
    path.write_text(path.read_text().replace("adjacency", "share_answers = false\nadjacency", 1))
    return path


@pytest.fixture(params=["policy", "python"])
def opened(request: pytest.FixtureRequest, policy: Path) -> Open:
    def by_policy(analyst: str, share: bool = False) -> pv.Session:
        path = policy.parent / f"{share}.toml"
        path.write_text(policy.read_text().replace("share_answers = false", f"share_answers = {str(share).lower()}"))
        return pv.Session.open(path, analyst=analyst)

    def by_hand(analyst: str, share: bool = False) -> pv.Session:
        tables = load(policy).datasets["people"].tables()
        where = policy.parent / "people.ledger"
        return pv.Session(tables, budget=pv.PureDP(3), ledger=where, analyst=analyst, share_answers=share)

    return by_policy if request.param == "policy" else by_hand


def test_another_analyst_pays_and_gets_a_draw_of_their_own(opened: Open) -> None:
    with opened("ann") as session:
        first = session.release(COUNT, epsilon="0.02")
        assert session.release(COUNT, epsilon="0.02").spent == pv.PureDP.ZERO, "one's own are served"
        assert session.release(COUNT, epsilon="0.01").noisy == first.noisy
    with opened("bob") as session:
        assert session.paid_before(COUNT, epsilon="0.02") is None
        assert "Stored" not in session.explain(COUNT, epsilon="0.02")
        mine = session.release(COUNT, epsilon="0.02")
        assert mine.spent == pv.PureDP("0.02")
        assert mine.noisy != first.noisy
        assert session.paid_before(COUNT, epsilon="0.02") == pv.PureDP("0.02")
        assert session.release(COUNT, epsilon="0.02").noisy == mine.noisy
        assert session.spent == pv.PureDP("0.04")
    with opened("ann") as session:
        assert session.release(COUNT, epsilon="0.02").noisy == first.noisy, "the newest is not one's own"
        session.ledger.verify()


def test_by_default_answers_are_shared(opened: Open) -> None:
    with opened("ann") as session:
        first = session.release(COUNT, epsilon="0.5")
    with opened("bob", share=True) as session:
        assert session.paid_before(COUNT, epsilon="0.5") == pv.PureDP("0.5")
        assert session.release(COUNT, epsilon="0.5").noisy == first.noisy
        assert session.spent == pv.PureDP("0.5")


def test_what_bob_sees_is_the_same_whether_ann_asked_or_not(policy: Path, tmp_path: Path) -> None:
    """But for the budget that is left, and the noise."""
    text = policy.read_text()
    seen = []
    for asks in (False, True):
        path = tmp_path / f"{asks}.toml"
        path.write_text(
            text.replace("people.ledger", f"{asks}.ledger").replace(
                "adjacency", "per_analyst = { epsilon = 1 }\nadjacency", 1
            )
        )
        if asks:
            with pv.Session.open(path, analyst="ann") as session:
                session.release(COUNT, epsilon="0.5")
        with pv.Session.open(path, analyst="bob") as session:
            told: list[Any] = [session.explain(COUNT, epsilon="0.5"), session.paid_before(COUNT, epsilon="0.5")]
            answer = session.release(COUNT, epsilon="0.5")
            told += [answer.spent, answer.remaining, answer.notes(), session.explain(COUNT, epsilon="0.5")]
            told += [session.release(COUNT, epsilon="0.5").spent]
        seen.append(told)
    assert seen[0] == seen[1]


def test_however_often_others_asked(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many answers to a question are looked at: those of others must not push out one's own."""
    monkeypatch.setattr(reservations, "_CANDIDATES", 5)
    with opened("ann") as session:
        first = session.release(COUNT, epsilon="0.01")
    with opened("bob") as session:
        for _ in range(6):
            session.release(COUNT, epsilon="0.002", fresh=True)
    with opened("ann") as session:
        assert session.paid_before(COUNT, epsilon="0.01") == pv.PureDP("0.01")
        assert session.release(COUNT, epsilon="0.01").noisy == first.noisy


def test_a_retry_is_still_answered_once(opened: Open) -> None:
    with opened("ann") as session:
        first = session.release(COUNT, epsilon="0.5", request_id="a")
        assert session.release(COUNT, epsilon="0.5", request_id="a").noisy == first.noisy
        assert session.release(COUNT, epsilon="0.5", request_id="b").noisy == first.noisy
        assert session.spent == pv.PureDP("0.5")


def test_others_answers_are_not_even_read(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened("ann") as session:
        session.release(COUNT, epsilon="0.5")
    read: list[int] = []
    state = Ledger._earlier

    def noted(self: Ledger, journal: Any, dataset: str, number: int) -> Any:
        read.append(number)
        return state(self, journal, dataset, number)

    monkeypatch.setattr(Ledger, "_earlier", noted)
    with opened("bob") as session:
        session.explain(COUNT, epsilon="0.5")
        session.release(COUNT, epsilon="0.5")
    assert read == []


def test_true_or_false(policy: Path) -> None:
    tables = load(policy).datasets["people"].tables()
    with pytest.raises(pv.UserError, match="share_answers must be True or False, not 0"):
        pv.Session(tables, budget=pv.PureDP(3), ledger=None, share_answers=0)  # type: ignore[arg-type]
    assert load(policy).datasets["people"].settings.share_answers is False
    assert "share_answers" not in commands.query.__annotations__, "an analyst has no say in it"


def test_commands(policy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(policy.parent)
    shell = Shell(capsys, monkeypatch)
    shell("query", COUNT, "--epsilon", "0.5", "--analyst", "ann")
    explained = shell.json("explain", COUNT, "--epsilon", "0.5", "--analyst", "bob", "--json")
    assert explained["paid_before"] is None
    shell("query", COUNT, "--epsilon", "0.5", "--analyst", "bob")
    assert shell.spent() == 1
