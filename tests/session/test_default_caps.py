"""`per_analyst`: what each analyst may spend whom the policy does not name."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.asking import COUNT, Shell, made

import privet as pv
from privet.errors import BudgetError
from privet.policy import PolicyError, agreement, load


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = made(tmp_path) / "privet.toml"
    path.write_text(path.read_text().replace("adjacency", "per_analyst = { epsilon = 1 }\nadjacency", 1))
    return path


def test_it_holds_for_everybody_who_is_not_named(policy: Path) -> None:
    people = load(policy).datasets["people"]
    assert people.per_analyst == pv.PureDP(1)
    assert agreement.caps(people, "anybody").analyst == pv.PureDP(1)
    assert agreement.caps(people, "press").analyst == pv.PureDP("0.25")
    for analyst in ("ann", "bob"):
        with pv.Session.open(policy, analyst=analyst) as session:
            assert session.remaining.guarantee == pv.PureDP(1)
            session.release(COUNT, epsilon="0.75", fresh=True)
            assert session.remaining.guarantee == pv.PureDP("0.25")
            with pytest.raises(BudgetError, match=f"epsilon 0.25 is left of epsilon 1 for '{analyst}'"):
                session.release(COUNT, epsilon="0.5", fresh=True)
            assert f"epsilon 0.25 is left of epsilon 1 for '{analyst}'" in session.explain(COUNT, epsilon="0.1")
    with pv.Session.open(policy, analyst="press") as session:
        assert session.remaining.guarantee == pv.PureDP("0.25")
        assert [each for each in session.ledger.analysts("people") if each != "press"] == ["ann", "bob"]
        assert session.ledger.analysts("people")["ann"].cap is None, "it is the policy's, and not written down"


@pytest.mark.parametrize(("by_ledger", "left"), [(2, 1), ("1/2", "1/2")])
def test_of_it_and_the_ledger_s_cap_the_smaller_holds(policy: Path, by_ledger: str | int, left: str | int) -> None:
    with pv.Session.open(policy, analyst="ann") as session:
        session.ledger.cap("people", pv.PureDP(by_ledger), analyst="ann", reason="a try")
    with pv.Session.open(policy, analyst="ann") as session:
        assert session.remaining.guarantee == pv.PureDP(left)
        (told,) = agreement.differences(load(policy).datasets["people"], session.ledger, "ann")
        assert "for 'ann'" in told
        assert ("write in the policy: ann = { epsilon = 2 }" in told) is (by_ledger == 2)


def test_without_it_nothing_changes(policy: Path) -> None:
    policy.write_text(policy.read_text().replace("per_analyst = { epsilon = 1 }\n", ""))
    assert load(policy).datasets["people"].per_analyst is None
    with pv.Session.open(policy, analyst="ann") as session:
        assert session.remaining.guarantee == pv.PureDP(3)


def test_with_a_delta(policy: Path) -> None:
    text = policy.read_text()
    policy.write_text(text.replace("{ epsilon = 3 }", "{ epsilon = 3, delta = 1e-6 }"))
    assert load(policy).datasets["people"].per_analyst == pv.ApproxDP(1, 0)
    policy.write_text(text.replace("per_analyst = { epsilon = 1 }", "per_analyst = { epsilon = 1, delta = 1e-6 }"))
    with pytest.raises(PolicyError, match="per_analyst: the budget has no delta"):
        load(policy)


def test_commands_show_it(policy: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(policy.parent)
    shell = Shell(capsys, monkeypatch)
    shell("query", COUNT, "--epsilon", "0.75", "--analyst", "ann")
    lines = [line.split("  ") for line in shell.out("budget").splitlines()]
    shown = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert ["ann", "epsilon 1", "epsilon 0.75", "epsilon 0.25"] in shown
    assert ["every other", "epsilon 1"] in shown
    tree = shell.json("budget", "--json")
    assert tree[0]["per_analyst"] == {"epsilon": "1"}
    assert [row["granted"] for row in tree if row["analyst"] == "ann"] == [{"epsilon": "1"}]
    assert "epsilon 0.25 is left of epsilon 1 for 'ann'" in shell.out(
        "explain", COUNT, "--epsilon", "2", "--analyst", "ann"
    )
    assert "for 'ann'" in shell.refused(3, "query", COUNT, "--epsilon", "2", "--analyst", "ann")
