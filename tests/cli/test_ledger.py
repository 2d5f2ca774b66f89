"""`privet budget` and `privet ledger ...`: what a steward sees, and what is refused."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.asking import COUNT, Shell, made
from tests.cli.test_cli import refusal, run

import privet as pv
from privet import cli
from privet.ledger import Dataset, Receipt, open_ledger
from privet.privacy.adjacency import Adjacency
from privet.privacy.events import GaussianNoise, LaplaceNoise
from privet.privacy.guarantees import ApproxDP, PureDP, ZeroConcentratedDP
from privet.privacy.moves import L1Move, L2Move

HALF = LaplaceNoise(move=L1Move(1), scale=2)


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """Two analysts, one with a cap; an answer, a failure, and a question that is still open."""
    path = str(tmp_path / "people.ledger")
    made = open_ledger(path)
    made.create(Dataset("people", "person", Adjacency.ADD_REMOVE, PureDP(3)))
    made.declare("people", "2026")
    made.cap("people", PureDP("4/3"), analyst="ann", reason="the first year")
    for analyst, outcome in (("ann", "answered"), ("bob", "failed"), ("bob", None)):
        charge = made.reserve(dataset="people", analyst=analyst, request_id=None, events=[HALF])
        if outcome is not None:
            made.settle(charge, outcome, "the answer")  # type: ignore[arg-type]
    made.close()
    return path


def test_help_names_every_command() -> None:
    text = run("ledger", "--help")
    for command in ("history", "verify", "head", "export", "replay", "cap", "reopen", "protect", "allow-source"):
        assert f"  {command} " in text
        assert "Example: privet ledger" in run("ledger", command, "--help")
    assert "Example: privet budget people.ledger" in run("budget", "--help")


def test_the_budget(ledger: str) -> None:
    assert run("budget", ledger).splitlines() == [
        "dataset  analyst  granted          spent        left",
        "people            epsilon 3        epsilon 1.5  epsilon 1.5",
        "         ann      epsilon 1.33333  epsilon 0.5  epsilon 0.833333",
        "         bob                       epsilon 1",
        "people: enough for 3 questions like the latest.",
    ]
    found = json.loads(run("budget", ledger, "--json"))
    assert found[1] == {
        "dataset": "people",
        "analyst": "ann",
        "granted": {"epsilon": "4/3"},
        "spent": {"epsilon": "0.5"},
        "left": {"epsilon": "5/6"},
    }
    assert found[2]["left"] is None


def test_the_history(ledger: str) -> None:
    lines = [line.split(None, 3) for line in run("ledger", "history", ledger).splitlines()]
    assert [line[3] for line in lines[1:4]] == [
        "created                           epsilon 0    each person, add/remove, pure accountant, epsilon 3",
        "declared                          epsilon 0    version 2026",
        "capped      ann                   epsilon 0    epsilon 1.33333: the first year",
    ]
    assert [line[3].split()[0] for line in lines[4:]] == ["reserved", "answered", "reserved", "failed", "reserved"]
    entries = json.loads(run("ledger", "history", ledger, "--json"))
    assert [entry["kind"] for entry in entries][3:5] == ["reserved", "answered"]
    assert entries[3]["cost"] == {"epsilon": "0.5"}
    assert entries[4]["refers"] == 4


def test_receipts(ledger: str, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    receipt = run("ledger", "head", ledger).strip()
    assert Receipt.read(receipt).number == 8
    assert run("ledger", "verify", ledger) == "all 8 entries verified\n"
    copy = tmp_path / "old.ledger"
    with closing(sqlite3.connect(ledger)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    later, told = run("ledger", "reopen", ledger, "--reason", "a new disk").splitlines()
    assert told == "The dataset 'people' is open to everybody."
    assert run("ledger", "verify", ledger, "--expect", receipt).endswith("the receipt matches an entry\n")
    assert "ends at entry 8, so it is an older copy" in refusal(
        capsys, monkeypatch, "ledger", "verify", str(copy), "--expect", later, code=5
    )
    assert "is not a receipt" in refusal(capsys, monkeypatch, "ledger", "verify", ledger, "--expect", "nine")


def test_an_export_is_checked_by_itself(ledger: str, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    exported = tmp_path / "people.jsonl"
    exported.write_text(run("ledger", "export", ledger), encoding="utf-8")
    assert run("ledger", "verify", str(exported)) == "all 8 entries verified\n"
    assert "the answer" not in exported.read_text(encoding="utf-8")
    found = json.loads(run("ledger", "verify", str(exported), "--json"))
    known = {"entries": 8, "hash": Receipt.read(run("ledger", "head", ledger)).hash}
    assert found == json.loads(run("ledger", "verify", ledger, "--json")) == {**known, "datasets": {"people": 8}}
    exported.write_text(exported.read_text(encoding="utf-8").replace("bob", "eve"), encoding="utf-8")
    assert "entry 6 of the ledger is invalid" in refusal(capsys, monkeypatch, "ledger", "verify", str(exported), code=5)


def test_a_tampered_ledger_is_refused_by_every_command(ledger: str, capsys: Any, monkeypatch: Any) -> None:
    with closing(sqlite3.connect(ledger)) as connection, connection:
        connection.execute("UPDATE privet_entries SET text = replace(text, 'bob', 'eve') WHERE number = 6")
    for command in (["budget"], ["ledger", "history"], ["ledger", "verify"], ["ledger", "head"], ["ledger", "replay"]):
        error = refusal(capsys, monkeypatch, *command, ledger, code=5)
        assert "entry 6 of the ledger is invalid" in error
        assert error.count("\n") == 1


def test_replay(ledger: str) -> None:
    assert run("ledger", "replay", ledger).splitlines() == [
        "pure          epsilon 1.5   (this dataset)",
        "meters        no price: the meters accountant needs a budget in epsilon and delta",
        "approx        epsilon 1.5, delta 0",
        "concentrated  rho 0.375",
        "pld           no price: the pld accountant needs a budget in epsilon and delta",
    ]


def test_replay_as_a_batch_is_labelled(tmp_path: Path) -> None:
    path = tmp_path / "delta.ledger"
    opened = open_ledger(str(path))
    opened.create(Dataset("people", "person", Adjacency.ADD_REMOVE, ApproxDP(1, 1e-6)))
    event = LaplaceNoise(move=L1Move(1), scale=100)
    charge = opened.reserve(dataset="people", analyst="ann", request_id=None, events=[event] * 100)
    opened.settle(charge, "answered", "the answer")
    opened.close()
    label = "if it had been one batch that was fixed in advance: no guarantee for adaptive questions"
    line = run("ledger", "replay", str(path)).splitlines()[-1]
    assert line.startswith("pld           epsilon 0.392"), "the plain sum is 1"
    assert line.endswith(f", delta 1e-6, {label}")


def test_a_new_budget_needs_its_delta(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    path = str(tmp_path / "delta.ledger")
    opened = open_ledger(path)
    opened.create(Dataset("people", "person", Adjacency.ADD_REMOVE, ApproxDP(1, 1e-6)))
    opened.close()
    more = ["ledger", "cap", path, "--epsilon", "3", "--reason", "consent"]
    assert "has a delta, so a new one needs it too. Write, for example: --epsilon 3 --delta 0.000001" in refusal(
        capsys, monkeypatch, *more
    )
    run(*more, "--delta", "1e-6")
    run(*more, "--analyst", "ann")
    assert "epsilon 3, delta 1e-6" in run("budget", path)


def test_replay_of_gaussian_noise(tmp_path: Path) -> None:
    path = str(tmp_path / "rho.ledger")
    opened = open_ledger(path)
    opened.create(Dataset("people", "person", Adjacency.ADD_REMOVE, ZeroConcentratedDP(1)))
    event = GaussianNoise(move=L2Move(1), sigma_squared=50, coordinates=1, epsilon=None)
    opened.reserve(dataset="people", analyst="ann", request_id=None, events=[event])
    opened.close()
    lines = run("ledger", "replay", path).splitlines()
    assert lines[0].endswith("the history has Gaussian noise or a delta, which a budget in epsilon alone can't pay for")
    assert "concentrated  rho 0.01   (this dataset)" in lines


def test_caps(ledger: str, capsys: Any, monkeypatch: Any) -> None:
    run("ledger", "cap", ledger, "--epsilon", "5", "--reason", "new consent")
    run("ledger", "cap", ledger, "--query", "--epsilon", "1/4", "--reason", "small steps")
    run("ledger", "cap", ledger, "--analyst", "ann", "--reason", "no ration any more")
    opened = open_ledger(ledger)
    assert opened.balance("people", "ann").remaining.guarantee == PureDP(3.5)
    assert opened.balance("people").per_query == PureDP("1/4")
    opened.close()
    assert "has no delta, which can't be changed. Omit --delta" in refusal(
        capsys, monkeypatch, "ledger", "cap", ledger, "--epsilon", "5", "--delta", "1e-6", "--reason", "x"
    )
    assert "a reason is required" in refusal(
        capsys, monkeypatch, "ledger", "cap", ledger, "--epsilon", "5", "--reason", " "
    )


@pytest.fixture
def shell(tmp_path: Path, capsys: Any, monkeypatch: Any) -> Shell:
    """In the folder of a policy."""
    monkeypatch.chdir(made(tmp_path))
    return Shell(capsys, monkeypatch)


def test_the_ledger_is_the_policy_s(shell: Shell, tmp_path: Path, monkeypatch: Any) -> None:
    commands = ["budget"], *(["ledger", name] for name in ("history", "verify", "head", "export", "replay"))
    for command in commands:
        assert "does not exist. The first question creates it" in shell.refused(2, *command)
    assert not Path("people.ledger").exists()
    shell("query", COUNT, "--epsilon", "0.5")
    for command in commands:
        assert shell.out(*command) == shell.out(*command, "people.ledger")
        assert "not both" in shell.refused(2, *command, "people.ledger", "--policy", "privet.toml")
    shell("ledger", "cap", "--analyst", "ann", "--epsilon", "1", "--reason", "the first year")
    shell("ledger", "reopen", "--reason", "a new disk")
    assert "is a policy, not a ledger. Write: --policy privet.toml" in shell.refused(2, "budget", "privet.toml")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    for command in commands:
        assert shell.out(*command, "--policy", "../privet.toml") == shell.out(*command, "../people.ledger")
        assert "no ledger was named, and there is no privet.toml in this folder" in shell.refused(2, *command)
        assert "there is no policy 'none.toml'" in shell.refused(2, *command, "--policy", "none.toml")


def test_the_dataset_is_the_policy_s(shell: Shell) -> None:
    """Where other policies share the ledger."""
    shell("query", COUNT, "--epsilon", "0.5")
    opened = open_ledger("people.ledger")
    opened.create(Dataset("visits", "row", Adjacency.REPLACE, PureDP(1)))
    opened.close()
    for command in ("history", "replay"):
        assert shell.out("ledger", command) == shell.out("ledger", command, "people.ledger", "--dataset", "people")
        assert "Write, for example: --dataset people" in shell.refused(2, "ledger", command, "people.ledger")
    assert shell.out("ledger", "head") == shell.out("ledger", "head", "people.ledger"), "one chain over all datasets"


def test_a_cap_below_what_is_spent_says_so(shell: Shell) -> None:
    shell("query", COUNT, "--epsilon", "0.5")
    done = shell("ledger", "cap", "--epsilon", "0.25", "--reason", "an audit")
    assert "This is the receipt of the newest entry" in done.err
    assert "epsilon 0.5 is already spent, so nothing is left under this cap." in done.err
    assert "spent already" not in shell("ledger", "cap", "--epsilon", "2", "--reason", "more").err


def test_eps_is_epsilon(shell: Shell) -> None:
    assert (
        shell.refused(2, "query", COUNT, "--eps", "0.5")
        == "error: there is no option --eps. Write, for example: --epsilon 0.5\n"
    )


def test_where_a_policy_and_a_ledger_differ_the_smaller_holds_and_it_is_said(shell: Shell) -> None:
    shell("query", COUNT, "--epsilon", "0.5")
    more = "the policy allows epsilon 3, but the ledger allows epsilon 5. The smaller amount applies. To raise it, "
    more += "write in the policy: "
    assert shell("ledger", "cap", "--epsilon", "5", "--reason", "consent").err.endswith(
        more + "budget = { epsilon = 5 }\n"
    )
    assert "people            epsilon 3     epsilon 0.5  epsilon 2.5" in shell.out("budget")
    assert shell("budget").err == more + "budget = { epsilon = 5 }\n"
    assert shell("query", COUNT, "--epsilon", "0.25").err == "", "an analyst can't change it"
    assert "epsilon 2.5 is left of epsilon 3" in shell.run("query", COUNT, "--epsilon", "2.75").err
    shell("ledger", "cap", "--epsilon", "1", "--reason", "an audit")
    line = (
        "the policy allows epsilon 3, but the ledger allows epsilon 1. The smaller amount applies. "
        'To raise it, write: privet ledger cap --epsilon 3 --reason "..."\n'
    )
    assert shell("budget").err == line
    assert shell.json("budget", "--json")[0]["left"] == {"epsilon": "0.5"}
    shell("ledger", "cap", "--epsilon", "3", "--reason", "the audit is over")
    assert shell("query", COUNT, "--epsilon", "0.25").err == ""
    said = shell("ledger", "cap", "--analyst", "press", "--epsilon", "1/8", "--reason", "an audit").err
    assert "epsilon 0.25 for 'press', but the ledger allows epsilon 0.125. The smaller amount applies" in said
    assert shell("query", COUNT, "--epsilon", "0.01").err == "", "it is nobody else's"


def test_the_history_shows_the_questions(shell: Shell) -> None:
    sql = "SELECT region, COUNT(*) AS n\nFROM people\nWHERE age >= 18 GROUP BY region"
    shell("query", sql, "--epsilon", "0.5", "--request-id", "one")
    shell("query", sql, "--epsilon", "0.25", "--request-id", "two")
    with pv.Session.open("privet.toml") as session:
        people = session.tables["people"]
        session.release(
            people.where(pv.col("age") >= 18)
            .group_by("region", month=pv.col("day").truncate("month"))
            .agg(n=pv.count(), pay=pv.mean("income"))
            .order_by("n"),
            epsilon="0.125",
        )
        session.release_value(3, sensitivity=1, epsilon="0.125", label="my own")
    lines = shell.out("ledger", "history").splitlines()
    shown = [line.split("  ")[-1].strip() for line in lines if " reserved " in line or " served " in line]
    flat = "SELECT region, COUNT(*) AS n FROM people WHERE age >= 18 GROUP BY region"
    assert shown == [
        flat,
        flat,
        "people.where(age >= 18).group_by(region, month=day by month).agg(n=count(), pay=mean(income)) order by n",
        "release_value: my own",
    ]
    entries = shell.json("ledger", "history", "--json")
    assert [e["question"] for e in entries if e["kind"] in ("reserved", "served")][:2] == [sql, sql]
    assert {e["question"] for e in entries if e["kind"] not in ("reserved", "served")} == {None}
    assert json.loads(shell.out("ledger", "export").splitlines()[4])["entry"].count("FROM people") == 1


def test_several_datasets(ledger: str, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    opened = open_ledger(ledger)
    opened.create(Dataset("visits", "row", Adjacency.REPLACE, ApproxDP(1, 1e-6)))
    opened.close()
    for command in ("history", "replay"):
        assert "people, visits. Write, for example: --dataset people" in refusal(
            capsys, monkeypatch, "ledger", command, ledger
        )
    assert len(run("ledger", "history", ledger, "--dataset", "visits").splitlines()) == 2
    receipt = run("ledger", "head", ledger).strip()
    assert Receipt.read(receipt).number == 9
    assert run("ledger", "verify", ledger) == "all 9 entries verified (people 8, visits 1)\n"
    for dataset, told, hidden in ((), 9, 0), (("--dataset", "visits"), 1, 8), (("--dataset", "people"), 8, 1):
        exported = tmp_path / "some.jsonl"
        exported.write_text(run("ledger", "export", ledger, *dataset), encoding="utf-8")
        lines = [json.loads(line) for line in exported.read_text(encoding="utf-8").splitlines()]
        assert [sum(name in line for line in lines) for name in ("entry", "digest")] == [told, hidden]
        checked = run("ledger", "verify", str(exported), "--expect", receipt)
        assert checked == f"{VERIFIED[told]}\nthe receipt matches an entry\n"
        found = json.loads(run("ledger", "verify", str(exported), "--json"))
        known = {"people": 8} if told == 8 else {"visits": 1} if told == 1 else {"people": 8, "visits": 1}
        assert (found["datasets"], sum(found.get("hidden", {}).values())) == (known, hidden)
    assert "ann" not in run("ledger", "export", ledger, "--dataset", "visits"), "only the hashes of the others"
    assert "visits            epsilon 1, delta 1e-6" in run("budget", ledger)
    run("ledger", "cap", ledger, "--dataset", "visits", "--epsilon", "2", "--delta", "1e-6", "--reason", "more")


VERIFIED = {
    9: "all 9 entries verified (people 8, visits 1)",
    8: "8 entries of people verified; 1 entry of other datasets (visits) verified by hash only",
    1: "1 entry of visits verified; 8 entries of other datasets (people) verified by hash only",
}


@pytest.mark.parametrize("name", ["\ud800", "a\nb", "\u202e", ""])
def test_an_export_with_an_impossible_name_is_refused(tmp_path: Path, capsys: Any, monkeypatch: Any, name: str) -> None:
    exported = tmp_path / "people.jsonl"
    exported.write_text(json.dumps({"dataset": name, "digest": "0" * 64, "hash": "0" * 64}), encoding="utf-8")
    told = refusal(capsys, monkeypatch, "ledger", "verify", str(exported), code=5)
    assert "line 1 is not an entry of an exported ledger" in told


def test_what_is_no_ledger(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    missing = tmp_path / "none.ledger"
    assert "there is no ledger" in refusal(capsys, monkeypatch, "budget", str(missing))
    assert not missing.exists()
    other = tmp_path / "notes.txt"
    other.write_text("my notes")
    assert "is not a ledger" in refusal(capsys, monkeypatch, "ledger", "verify", str(other))
    assert other.read_text() == "my notes"


def test_help_does_not_load_a_database() -> None:
    import subprocess
    import sys

    code = "import sys; from privet import cli; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert cli.app is not None
