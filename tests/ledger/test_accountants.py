"""Another accountant, registered in one line, runs through sessions, ledgers, policies and the command line.

Its totals are a vector of meters, and it covers what either meter covers: no epsilon is compared anywhere else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.accountants import Meters, TwoMeters
from tests.cli.test_cli import run
from tests.ledger.common import cost

import privet as pv
from privet.errors import BudgetError, LedgerError, UserError
from privet.ledger import Ledger, memory_ledger, open_ledger, verify_export
from privet.privacy.accounting import ACCOUNTANTS, ApproxAccountant, PureAccountant
from privet.privacy.guarantees import ApproxDP

BUDGET = ApproxDP(1, "1e-6")


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ACCOUNTANTS, TwoMeters.name, TwoMeters())


@pytest.fixture(params=["memory", "sqlite"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    path = tmp_path / "people.ledger"
    with closing(memory_ledger() if request.param == "memory" else open_ledger(path)) as opened:
        yield opened


def people() -> Any:
    return pv.table(
        "people", pa.table({"age": [20, 30, 40]}), protect=pv.each_row(), columns={"age": pv.integer(0, 100)}
    )


def session_on(ledger: Any, **how: Any) -> pv.Session:
    return pv.Session([people()], budget=BUDGET, ledger=ledger, accountant="two meters", **how)


def ask(session: pv.Session, times: int = 1, epsilon: str = "0.1") -> Any:
    query = session.tables["people"].agg(n=pv.count())
    return [session.release(query, epsilon=epsilon, fresh=True) for _ in range(times)][-1]


def test_questions_fit_by_either_meter(ledger: Ledger) -> None:
    """Of 0.1, the sum of the epsilons allows 10; the sum of squares, 0.01 each of 0.25, allows 25."""
    with session_on(ledger) as session:
        answer = ask(session, 20)
        assert session.spent == ApproxDP(2, 0), "twice the budget's epsilon"
        assert session.balance.total == Meters(Fraction(2), Fraction(1, 5))
        assert session.remaining.share == Fraction(1, 5)
        assert str(session.remaining) == session.balance.left == "20 % of the budget"
        assert session.remaining.fits(cost("0.2"))
        assert not session.remaining.fits(cost("0.3"))
        plan = session.plan(session.tables["people"].agg(n=pv.count()), epsilon="0.2")
        assert session.remaining.fits(plan)
        assert answer.spent == pv.PureDP("0.1"), "a release's own guarantee"
        assert answer.remaining == session.remaining
        assert "20 % of the budget left." in str(answer)
        ask(session, 5)
        assert session.remaining.share == 0
        with pytest.raises(BudgetError, match=r"this costs epsilon 0\.1, .* nothing is left .* Ask the steward"):
            ask(session)
        assert "not enough" in session.explain(session.tables["people"].agg(n=pv.count()), epsilon="0.1", fresh=True)
        assert session.balance.total == Meters(Fraction(5, 2), Fraction(1, 4))


def test_caps_are_filters_of_their_own(ledger: Ledger) -> None:
    with session_on(ledger, analyst="ann") as ann, session_on(ledger, analyst="bob") as bob:
        ledger.cap("people", ApproxDP("0.4", 0), reason="a guest", analyst="ann")
        ledger.cap("people", ApproxDP("0.2", 0), reason="small steps", query=True)
        with pytest.raises(BudgetError, match="for one question"):
            ask(bob, epsilon="0.25")
        ask(bob, 20)
        ask(ann, 4)  # of squares, 4 * 0.01 of 0.2 * 0.2
        assert (ann.remaining.share, bob.remaining.share) == (Fraction(0), Fraction(1, 25))
        with pytest.raises(BudgetError, match="for 'ann'"):
            ask(ann)
        ask(bob)
        ledger.cap("people", ApproxDP("0.9", 0), reason="consent withdrawn")
        with pytest.raises(BudgetError, match=r"left of epsilon 0\.9"):
            ask(bob)
        with pytest.raises(UserError, match="the two meters accountant needs a budget of type ApproxDP"):
            ledger.cap("people", pv.PureDP(1), reason="another kind")


def test_a_ledger_keeps_the_state_exactly_and_everyone_can_verify_it(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with session_on(path) as session:
        ask(session, 3, "1/7")
        ledger = session.ledger
        total = Meters(Fraction(3, 7), Fraction(3, 49))
        assert ledger.replay("people", PureAccountant()) == pv.PureDP("3/7")
        assert ledger.replay("people", ApproxAccountant()) == ledger.replay("people", TwoMeters()) == ApproxDP("3/7", 0)
        assert verify_export(ledger.export()) == ledger.verify()
        entries = [json.loads(json.loads(line)["entry"]) for line in ledger.export()]
        assert entries[-1]["totals"]["spent"] == ["3/7", "3/49"]
        assert {entry["totals"]["accountant"] for entry in entries} == {"two meters"}
    with session_on(path) as session:
        assert session.balance.total == total
    with pytest.raises(UserError, match=r"created with accountant two meters, but is opened with meters"):
        pv.Session([people()], budget=BUDGET, ledger=path)


def test_a_ledger_whose_accountant_is_unknown_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.ledger"
    session_on(path).close()
    monkeypatch.delitem(ACCOUNTANTS, TwoMeters.name)
    with pytest.raises(LedgerError, match="there is no accountant 'two meters'"):
        open_ledger(path)


def test_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    with session_on(path, analyst="ann") as session:
        ask(session, 20)
    run("ledger", "cap", str(path), "--analyst", "ann", "--epsilon", "1.5", "--delta", "0", "--reason", "a guest")
    lines = run("budget", str(path)).splitlines()
    assert lines[1].split("  ")[0] == "people"
    assert lines[1].endswith("20 % of the budget")
    assert lines[2].endswith("64 % of the budget")
    assert run("ledger", "verify", str(path)).startswith("all ")
    replayed = [line for line in run("ledger", "replay", str(path)).splitlines() if "this dataset" in line]
    assert replayed == ["two meters    epsilon 2, delta 0   (this dataset)"]
    assert "two meters accountant" in run("ledger", "history", str(path))
    assert run("ledger", "export", str(path)).count("\n") == len(open_ledger(path).history("people"))


def test_a_policy_names_it(tmp_path: Path) -> None:
    pq.write_table(pa.table({"age": [20, 30, 40]}), tmp_path / "people.parquet")
    policy = tmp_path / "privet.toml"
    policy.write_text(
        f'''
ledger = "{tmp_path / "policy.ledger"}"
[datasets.people]
budget = {{ epsilon = 1, delta = 1e-6 }}
adjacency = "add/remove"
accountant = "two meters"
[datasets.people.analysts]
ann = {{ epsilon = 0.4 }}
[datasets.people.tables.people]
source = "people.parquet"
protect = "each row"
[datasets.people.tables.people.columns]
age = {{ integer = [0, 100] }}
'''
    )
    with pv.Session.open(policy, analyst="ann") as session:
        ask(session, 4)
        assert session.remaining.share == 0
        with pytest.raises(BudgetError, match="for 'ann'"):
            ask(session)
