"""`Session.open`: what the steward's policy says is what holds, and an analyst has no say in it."""

from __future__ import annotations

import inspect
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privet as pv
from privet.cli import query as commands
from privet.errors import BudgetError, QueryError, UserError
from privet.ledger import open_ledger
from privet.policy import PolicyError, load
from privet.requests.options import ReleaseOptions

COUNT = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
POLICY = """
ledger = "all.ledger"

[datasets.people]
budget = { epsilon = 3 }
adjacency = "add/remove"
version = "2026-11"
per_query = { epsilon = 1 }
signing_key = "steward.key"
threads = 1
memory = "500MB"
analysts = { press = { epsilon = 0.25 }, research = { epsilon = 2 } }
[datasets.people.tables.people]
source = "people.parquet"
protect = { person = "id", max_rows = 1 }
columns = { region = { keys = ["north", "south"] }, income = { number = [0, 1000] } }
[datasets.people.tables.visits]
source = "visits.parquet"
protect = { person = "id", max_rows = 5 }
columns = { minutes = { integer = [0, 60] } }

[datasets.homes]
budget = { epsilon = "1/3", delta = 1e-6 }
adjacency = "replace"
[datasets.homes.tables.homes]
source = "homes.parquet"
protect = "each row"
rows = 20
columns = { rooms = { integer = [0, 20] }, region = { keys = ["north", "south"] } }

[public.regions]
source = "regions.csv"
key = "region"
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """A policy with two datasets, in a folder of its own, and what it names."""
    people = {"id": list(range(50)), "region": ["north"] * 30 + ["west"] * 20, "income": [10.0 * i for i in range(50)]}
    pq.write_table(pa.table(people), tmp_path / "people.parquet")
    pq.write_table(pa.table({"id": [1, 1, 2], "minutes": [5, 50, 500]}), tmp_path / "visits.parquet")
    pq.write_table(pa.table({"rooms": [3] * 20, "region": ["south"] * 20}), tmp_path / "homes.parquet")
    (tmp_path / "regions.csv").write_text("region,area\nnorth,3\nsouth,5\n")
    pv.new_signing_key(tmp_path / "steward.key")
    path = tmp_path / "privet.toml"
    path.write_text(POLICY)
    return path


def changed(policy: Path, old: str, new: str) -> Path:
    text = policy.read_text()
    assert text.count(old) == 1, old
    policy.write_text(text.replace(old, new))
    return policy


def kinds(session: pv.Session) -> list[str]:
    return [entry.kind for entry in session.ledger.history(session.name)]


# --- what it opens ------------------------------------------------------------------------------------


def test_a_dataset_by_name(policy: Path) -> None:
    with pv.Session.open(policy, dataset="people", analyst="research") as session:
        assert (session.name, session.analyst, session.version) == ("people", "research", "2026-11")
        assert list(session.tables) == ["people", "visits"]
        assert list(session.public) == ["regions"]
        assert session.balance.budget == pv.PureDP(3)
        assert session.balance.per_query == pv.PureDP(1)
        answer = session.release(COUNT, epsilon=1)
        assert answer.remaining == session.remaining
        assert session.remaining.guarantee == pv.PureDP(1), "of the analyst's 2"
        joined = "SELECT SUM(area) AS a FROM people JOIN regions ON people.region = regions.region"
        assert session.release(joined, epsilon="1/2").columns == ("a",)
    with pv.Session.open(policy, dataset="homes") as session:
        assert session.balance.budget == pv.ApproxDP("1/3", "1e-6")
        assert session.tables["homes"].schema.rows == 20
        session.release("SELECT AVG(rooms) AS m FROM homes", epsilon="0.1")


def test_the_engine(policy: Path) -> None:
    with pv.Session.open(policy, dataset="homes") as session:
        assert session.dataset.engine.name == "duckdb", "the first that reads all sources"
    changed(policy, 'adjacency = "replace"', 'adjacency = "replace"\nengine = "reference"')
    with pv.Session.open(policy, dataset="homes") as session:
        assert session.dataset.engine.name == "reference"
        session.release("SELECT AVG(rooms) AS m FROM homes", epsilon="0.1")


def test_an_unknown_engine_is_refused_before_data_are_read(policy: Path) -> None:
    (policy.parent / "homes.parquet").unlink()
    changed(policy, 'adjacency = "replace"', 'adjacency = "replace"\nengine = "flink"')
    with pytest.raises(PolicyError, match="there is no engine"):
        pv.Session.open(policy, dataset="homes")
    assert not (policy.parent / "all.ledger").exists()


def test_the_only_dataset(policy: Path) -> None:
    alone = policy.read_text().partition("[datasets.homes]")[0]
    policy.write_text(alone)
    with pv.Session.open(str(policy)) as session:
        assert session.name == "people"
        assert session.public == {}


@pytest.mark.parametrize(
    ("statement", "dataset"),
    [
        (COUNT, "people"),
        ("SELECT AVG(minutes) FROM VISITS", "people"),
        ('SELECT COUNT(*) FROM "homes"', "homes"),
        ("SELECT COUNT(*) FROM homes JOIN regions ON homes.region = regions.region", "homes"),
        ("WITH x AS (SELECT rooms FROM homes) SELECT COUNT(*) FROM x", "homes"),
    ],
)
def test_by_the_tables_of_a_statement(policy: Path, statement: str, dataset: str) -> None:
    with pv.Session.open(policy, asking=statement) as session:
        assert session.name == dataset
        assert session.parse(statement) == session.plan(statement, epsilon="0.1").query
        session.release(statement, epsilon="0.1")


@pytest.mark.parametrize("statement", ["SELECT COUNT(*) AS homes FROM people", f"{COUNT} HAVING region <> 'homes'"])
def test_other_words_of_a_statement_name_no_dataset(policy: Path, statement: str) -> None:
    with pv.Session.open(policy, asking=statement) as session:
        assert session.name == "people"


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({}, "no table of any dataset"),
        ({"asking": "SELECT COUNT(*) FROM persons"}, "no table of any dataset"),
        ({"asking": "SELECT COUNT(*) FROM people JOIN homes"}, "tables of several datasets"),
        ({"dataset": "cars"}, "has no dataset 'cars'. The datasets are: people, homes"),
        ({"dataset": "PEOPLE"}, "has no dataset 'PEOPLE'"),
        ({"dataset": "people", "analyst": ""}, "analyst"),
    ],
)
def test_what_can_t_be_opened_makes_no_ledger(policy: Path, how: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        pv.Session.open(policy, **how)
    assert not (policy.parent / "all.ledger").exists()


def test_from_anywhere(policy: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: Any) -> None:
    """Paths of a policy are relative to it."""
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    with pv.Session.open(load(policy), dataset="people") as session:
        session.release(COUNT, epsilon=1)
    assert (policy.parent / "all.ledger").exists()
    assert list(Path.cwd().iterdir()) == []


def test_a_statement_names_tables_of_its_own_dataset_only(policy: Path) -> None:
    with pv.Session.open(policy, dataset="people") as session:
        for statement in ("SELECT COUNT(*) FROM homes", "SELECT COUNT(*) FROM people JOIN homes ON region = region"):
            with pytest.raises(QueryError, match="there is no table homes"):
                session.release(statement, epsilon=1)
        assert session.spent == pv.PureDP.ZERO


def test_a_source_that_does_not_fit_is_told_with_its_line(policy: Path) -> None:
    pq.write_table(pa.table({"id": [1], "region": [5], "income": ["a lot"]}), policy.parent / "people.parquet")
    (policy.parent / "visits.parquet").unlink()
    with pytest.raises(PolicyError) as caught:
        pv.Session.open(policy, dataset="people")
    assert "visits" in str(caught.value)  # everything that is wrong, at once
    assert "region" in str(caught.value)
    assert not (policy.parent / "all.ledger").exists()


# --- caps ---------------------------------------------------------------------------------------------


def test_caps_are_granted_once(policy: Path) -> None:
    for _ in range(3):
        with pv.Session.open(policy, dataset="people") as session:
            entries = session.ledger.history("people")
            assert kinds(session) == ["created", "attached", "attached", "declared", "capped", "capped", "capped"]
            assert {entry.note for entry in entries if entry.kind == "capped"} == {"set by the policy"}
            rations = session.ledger.analysts("people")
            assert {name: rations[name].cap for name in rations} == {
                "press": pv.PureDP("1/4"),
                "research": pv.PureDP(2),
            }


def test_of_two_caps_the_smaller_holds_and_opening_changes_neither(policy: Path) -> None:
    """Whoever opens a session must not undo what the steward did, in the policy or in the ledger."""
    with pv.Session.open(policy, dataset="people", analyst="press") as session:
        session.release(COUNT, epsilon="1/8")
        session.ledger.cap("people", pv.PureDP("3/16"), analyst="press", reason="an audit")
    with pv.Session.open(policy, dataset="people", analyst="press") as session:
        assert session.remaining.guarantee == pv.PureDP("1/16")
        with pytest.raises(BudgetError, match=r"epsilon 0\.0625 is left of epsilon 0\.1875 for 'press'"):
            session.release(COUNT, epsilon="1/8", fresh=True)
        session.ledger.cap("people", pv.PureDP(2), analyst="press", reason="by mistake")
    with pv.Session.open(policy, dataset="people", analyst="press") as session:
        assert session.remaining.guarantee == pv.PureDP("1/8"), "the ledger does not raise what the policy allows"
        with pytest.raises(BudgetError, match=r"epsilon 0\.125 is left of epsilon 0\.25 for 'press'"):
            session.release(COUNT, epsilon="1/4", fresh=True)
        assert "is left of epsilon 0.25 for 'press': not enough" in session.explain(COUNT, epsilon="1/4")
        session.release(COUNT, epsilon="1/8", fresh=True)
        assert session.remaining.guarantee == pv.PureDP.ZERO
        assert kinds(session)[7:] == ["reserved", "answered", "capped", "capped", "reserved", "answered"]
    changed(policy, "press = { epsilon = 0.25 }, ", "")
    with closing(open_ledger(policy.parent / "all.ledger")) as ledger:
        ledger.cap("people", pv.PureDP("1/8"), analyst="press", reason="it is not in the policy any more")
    with pv.Session.open(policy, dataset="people", analyst="press") as session:
        assert session.remaining.guarantee == pv.PureDP.ZERO  # who is not named keeps what was granted
        assert kinds(session)[14:] == []


@pytest.mark.parametrize("analyst", ["press", "somebody"])
def test_a_question_costs_no_more_than_its_cap(policy: Path, analyst: str) -> None:
    with pv.Session.open(policy, dataset="people", analyst=analyst) as session:
        with pytest.raises(BudgetError, match="Nothing was spent"):
            session.release(COUNT, epsilon=Fraction(1) + Fraction(1, 10**20))
        assert "not enough" in session.explain(COUNT, epsilon=2)
        with pytest.raises(BudgetError, match="Nothing was spent"):
            session.release(COUNT, within={"n": Fraction(1, 10)})
        assert session.spent == pv.PureDP.ZERO
        session.release(COUNT, epsilon="1/4")
        if analyst == "press":
            with pytest.raises(BudgetError, match="'press'"):
                session.release(COUNT, epsilon="1/100", fresh=True)


@pytest.mark.parametrize(("by_policy", "by_ledger"), [("0.5", "1"), ("1", "0.5")])
def test_of_two_caps_for_each_question_the_smaller_holds(policy: Path, by_policy: str, by_ledger: str) -> None:
    with pv.Session.open(policy, dataset="people") as session:
        session.ledger.cap("people", pv.PureDP(by_ledger), query=True, reason="small steps")
    changed(policy, "per_query = { epsilon = 1 }", f"per_query = {{ epsilon = {by_policy} }}")
    with pv.Session.open(policy, dataset="people") as session:
        with pytest.raises(BudgetError, match=r"left of epsilon 0\.5 for one question"):
            session.release(COUNT, epsilon="0.6")
        session.release(COUNT, epsilon="0.5")


# --- what is fixed ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("budget = { epsilon = 3 }", "budget = { epsilon = 3, delta = 1e-6 }", "The kind of a budget can't be changed"),
        ('adjacency = "add/remove"', 'adjacency = "replace"', "was created with adjacency"),
    ],
)
def test_a_changed_promise_is_refused(policy: Path, old: str, new: str, says: str) -> None:
    with pv.Session.open(policy, dataset="people") as session:
        session.release(COUNT, epsilon=1)
    before = (policy.parent / "all.ledger").read_bytes()
    changed(policy, old, new)
    with pytest.raises(UserError, match=says):
        pv.Session.open(policy, dataset="people")
    assert (policy.parent / "all.ledger").read_bytes() == before


def test_who_is_protected_is_fixed(policy: Path) -> None:
    pv.Session.open(policy, dataset="people").close()
    text = policy.read_text()
    for rows in (1, 5):
        text = text.replace(f'protect = {{ person = "id", max_rows = {rows} }}', 'protect = "each row"')
    policy.write_text(text)
    with pytest.raises(UserError, match="was created with protect person"):
        pv.Session.open(policy, dataset="people")


def test_the_steward_changes_a_budget_in_the_ledger(policy: Path) -> None:
    pv.Session.open(policy, dataset="people").close()
    with closing(open_ledger(policy.parent / "all.ledger")) as ledger:
        ledger.cap("people", pv.PureDP(30), reason="new consent")
    with pv.Session.open(policy, dataset="people") as session:
        assert session.remaining.guarantee == pv.PureDP(3), "the policy does not say so yet"
    changed(policy, "budget = { epsilon = 3 }", "budget = { epsilon = 30 }")
    with pv.Session.open(policy, dataset="people") as session:
        assert session.remaining.guarantee == pv.PureDP(30)


@pytest.mark.parametrize(("epsilon", "left"), [("30", 2), ("2.5", "1.5"), ("0.5", 0)])
def test_a_budget_that_was_changed_in_the_policy_alone_does_not_grow(
    policy: Path, epsilon: str, left: str | int
) -> None:
    with pv.Session.open(policy, dataset="people") as session:
        session.release(COUNT, epsilon=1)
    changed(policy, "budget = { epsilon = 3 }", f"budget = {{ epsilon = {epsilon} }}")
    with pv.Session.open(policy, dataset="people") as session:
        assert session.remaining.epsilon == Fraction(left)
        assert session.ledger.balance("people").budget == pv.PureDP(3), "it is changed by an act of the steward alone"
        assert session.release(COUNT, epsilon=1).spent == pv.PureDP.ZERO, "what is paid for is answered"
        if not left:
            with pytest.raises(BudgetError, match="Ask the steward for a larger budget"):
                session.release(COUNT, epsilon="0.1", fresh=True)


def test_caps_of_a_policy_with_a_delta(policy: Path) -> None:
    changed(policy, "budget = { epsilon = 3 }", "budget = { epsilon = 3, delta = 1e-6 }")
    with pv.Session.open(policy, dataset="people") as session:
        session.ledger.cap("people", pv.ApproxDP(5, "1e-7"), reason="epsilon for delta")
    with pv.Session.open(policy, dataset="people") as session:
        assert session.remaining.guarantee == pv.ApproxDP(3, "5e-8")


def test_a_new_version_is_answered_anew_and_does_not_renew_the_budget(policy: Path) -> None:
    with pv.Session.open(policy, dataset="people") as session:
        first = session.release(COUNT, epsilon=1)
        assert session.release(COUNT, epsilon=1).spent == pv.PureDP.ZERO
    changed(policy, 'version = "2026-11"', 'version = "2026-12"')
    with pv.Session.open(policy, dataset="people") as session:
        again = session.release(COUNT, epsilon=1)
        assert (first.spent, again.spent, session.spent) == (pv.PureDP(1), pv.PureDP(1), pv.PureDP(2))
        declared = [entry.version for entry in session.ledger.history("people") if entry.kind == "declared"]
        assert declared == ["2026-11", "2026-12"]


def test_certificates_are_signed_by_the_steward(policy: Path) -> None:
    with pv.Session.open(policy, dataset="people") as session:
        certificate = session.release(COUNT, epsilon=1).certificate
        found = pv.verify(certificate, key=policy.parent / "steward.key.pub", ledger=session.ledger)
        assert found.rules
        assert found.signature
        assert found.ledger
    with pv.Session.open(policy, dataset="homes") as session:
        assert session.release("SELECT COUNT(*) FROM homes", epsilon="0.1").certificate.signature is None


def test_a_key_that_is_not_there_is_refused_before_a_ledger_is_made(policy: Path) -> None:
    (policy.parent / "steward.key").unlink()
    with pytest.raises(UserError, match=r"steward\.key"):
        pv.Session.open(policy, dataset="people")
    assert not (policy.parent / "all.ledger").exists()


# --- an analyst has no say in it ----------------------------------------------------------------------


def test_an_analyst_chooses_no_more_than_a_dataset_and_a_name() -> None:
    """In Python and in the terminal: whoever adds a way to say more must think about this test."""
    assert set(inspect.signature(pv.Session.open).parameters) == {"policy", "dataset", "analyst", "asking"}
    told = {"sql", "file", "policy", "dataset", "analyst", "as_json", *ReleaseOptions.__annotations__}
    told -= {"weights"}  # in Python only
    told |= {"max_rows", "max_groups", "max_rows_per_group"}  # they only tighten what the steward declared
    told |= {"server"}  # it has a policy of its own
    assert set(inspect.signature(commands.explain).parameters) == told
    more = {"form", "output", "certificate", "request_id", "fresh", "dry_run", "title", "label", "order", "force"}
    assert set(inspect.signature(commands.query).parameters) == told | more


@pytest.mark.parametrize(
    "name", ["PRIVET_BUDGET", "PRIVET_POLICY", "PRIVET_EPSILON", "PRIVET_LEDGER", "PRIVET_ANALYST"]
)
def test_nor_does_the_environment(policy: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "100")
    with pv.Session.open(policy, dataset="people") as session:
        assert session.balance.budget == pv.PureDP(3)
        assert session.analyst == "analyst"


def test_what_is_declared_can_t_be_declared_otherwise(policy: Path) -> None:
    """The same table with looser bounds, fewer rows of a person, or further columns is another table, and refused."""
    with pv.Session.open(policy, dataset="people") as session:
        mine = session.tables["people"]
        columns = dict(mine.schema.columns)
        for protect, declared in (
            (pv.person("id", max_rows=1), {**columns, "income": pv.number(0, 10)}),
            (pv.person("id", max_rows=2), columns),
            (pv.each_row(), columns),
            (pv.person("id", max_rows=1), {**columns, "id": pv.integer(0, 50)}),
        ):
            other = pv.table("people", policy.parent / "people.parquet", protect=protect, columns=declared)
            with pytest.raises(QueryError, match="the session's table 'people' is declared differently"):
                session.release(other.agg(n=pv.count()), epsilon=1)
        assert session.spent == pv.PureDP.ZERO
        with pytest.raises(QueryError, match="identifies a person"):
            session.release("SELECT SUM(id) FROM people", epsilon=1)
        session.release(mine.agg(n=pv.count()), epsilon=1)


def test_a_loaded_policy_can_t_be_changed(policy: Path) -> None:
    loaded = load(policy)
    people: Any = loaded.datasets["people"]
    for change in (
        lambda: setattr(loaded, "ledger", "mine.ledger"),
        lambda: setattr(people, "budget", pv.PureDP(100)),
        lambda: people.analysts.update(press=pv.PureDP(100)),
        lambda: loaded.datasets.update(mine=people),  # type: ignore[attr-defined]
        lambda: people.declared.clear(),
    ):
        with pytest.raises((AttributeError, TypeError)):
            change()


def test_sql_and_python_ask_the_same_and_pay_once(policy: Path) -> None:
    with pv.Session.open(policy, dataset="people") as session:
        first = session.release(COUNT, epsilon=1)
        query = session.tables["people"].group_by("region").agg(n=pv.count())
        assert session.parse(COUNT) == query
        assert session.release(query, epsilon=1).noisy == first.noisy
        assert session.spent == pv.PureDP(1)
        assert first.chart(60).splitlines()[0] == "n"
        assert first.notes()[-1] == "Spent epsilon 1; 2 left."
