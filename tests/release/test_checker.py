"""The checker of certificates, by itself: against brute force, against the planner, and on altered statements."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.neighbours import cubes, hierarchies
from tests.neighbours.search import questions
from tests.neighbours.worlds import world
from tests.test_architecture import imports

import privet as pv
from privet.errors import VerificationError
from privet.mechanisms import GAUSSIAN
from privet.planner import plan, pricing
from privet.planner.facts import derived
from privet.privacy import rank_claims, row_claims
from privet.privacy.moves import L1Move
from privet.release import checker, verification

SOURCE = Path(checker.__file__)
CODE: dict[str, Any] = {"kind": "code", "expression": {"kind": "column", "name": "x"}, "lower": "0/1", "step": "1/1"}


def test_it_imports_no_rule_of_the_planner() -> None:
    sources = [SOURCE, *map(Path, (rank_claims.__file__, row_claims.__file__))]
    found = [each.module for source in sources for each in imports(source, SOURCE.parents[1])]
    mine = {module for module in found if module.startswith("privet")}
    assert {".".join(module.split(".")[:2]) for module in mine} == {
        "privet.codec",
        "privet.errors",
        "privet.mechanisms",
        "privet.privacy",
    }


ALONE = """
import importlib.util, json, sys
for blocked in ("planner", "tables", "engines", "release", "session", "sources", "ledger", "sql", "policy"):
    sys.modules["privet." + blocked] = None  # importing it, or anything in it, is an ImportError
spec = importlib.util.spec_from_file_location("alone", sys.argv[1])
checker = importlib.util.module_from_spec(spec)
sys.modules["alone"] = checker
spec.loader.exec_module(checker)
document = json.load(sys.stdin)
print(checker.check(document["derived"], document["noisy"]))
loaded = [name for name, module in sys.modules.items() if name.startswith("privet.") and module is not None]
print(sorted({name.split('.')[1] for name in loaded}))
"""


def checked_alone(document: Any) -> subprocess.CompletedProcess[str]:
    text = json.dumps({name: document[name] for name in ("derived", "noisy")})
    return subprocess.run([sys.executable, "-c", ALONE, str(SOURCE)], input=text, capture_output=True, text=True)


def test_it_works_alone() -> None:
    """In a process where neither planner nor engine can be imported, on a certificate that they made."""
    document = certificate()
    found = checked_alone(document)
    assert found.returncode == 0, found.stderr
    epsilon, loaded = found.stdout.splitlines()
    assert epsilon == "epsilon 1"
    assert loaded == "['accuracy', 'codec', 'errors', 'exact', 'mechanisms', 'names', 'noise', 'privacy', 'system']"
    claimed = copy.deepcopy(document)
    claimed["derived"]["measurements"][0]["scale"] = "1/1000"
    refused = checked_alone(claimed)
    assert refused.returncode != 0
    assert "VerificationError" in refused.stderr


def test_a_checker_that_asks_the_planner_does_not_work_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    twin = tmp_path / "checker.py"
    twin.write_text(SOURCE.read_text().replace("from privet.errors", "import privet.planner\nfrom privet.errors"))
    monkeypatch.setitem(globals(), "SOURCE", twin)
    found = checked_alone(certificate())
    assert found.returncode != 0
    assert "privet.planner" in found.stderr


# --- against brute force ----------------------------------------------------------------------------


def scanned(adjacency: str) -> Any:
    return {"kind": "scan", "table": {"adjacency": adjacency, "protect": {"kind": "each row"}}}


@st.composite
def measured(draw: st.DrawFn) -> tuple[Any, Any]:
    """A code, some tallies of it, and any integer matrix."""
    code = {**CODE, "width": draw(st.integers(1, 9)), "missing": draw(st.booleans())}
    kinds = draw(st.lists(st.sampled_from(["present", "total", "squares"]), min_size=1, max_size=3, unique=True))
    tallies = [{"kind": kind, "value": code} for kind in kinds] + ([{"kind": "rows"}] if draw(st.booleans()) else [])
    size = draw(st.integers(1, 3))
    number = st.integers(-30, 30)
    matrix = [draw(st.lists(number, min_size=len(tallies), max_size=len(tallies))) for _ in range(size)]
    adjacency = draw(st.sampled_from(["add/remove", "replace"]))
    keys = draw(st.sampled_from([[], [{"kind": "column", "name": "g"}]]))
    statement = {"input": scanned(adjacency), "keys": keys, "bounding": {"kind": "unbounded"}, "tallies": tallies}
    return statement, {"level": None, "tallies": tallies, "matrix": matrix}


def every_vector(statement: Any, part: Any) -> set[tuple[int, ...]]:
    code = next(t["value"] for t in part["tallies"] if t["kind"] != "rows")
    codes: list[int | None] = [*range(code["width"] + 1), *([None] if code["missing"] else [])]
    found = set()
    for v in codes:
        power = {"rows": 1, "present": int(v is not None), "total": v or 0, "squares": (v or 0) ** 2}
        adds = [power[t["kind"]] for t in part["tallies"]]
        found.add(tuple(sum(a * x for a, x in zip(row, adds, strict=True)) for row in part["matrix"]))
    return found


@given(measured(), st.integers(1, 2))
def test_sensitivities_are_those_of_all_rows(case: tuple[Any, Any], groups: int) -> None:
    statement, part = case
    rows = every_vector(statement, part)
    zero = (0,) * len(part["matrix"])
    found = row_claims.moved(statement, part, groups)
    norm = max(sum(map(abs, u)) for u in rows)
    if statement["input"]["table"]["adjacency"] == "add/remove":
        assert found == L1Move(norm)
    elif groups > 1:
        assert found == (L1Move(norm, blocks=2) if min(map(min, rows)) >= 0 else L1Move(2 * norm))
    else:
        points = rows | ({zero} if statement["keys"] else set())
        assert found.total == max(
            sum(abs(a - b) for a, b in zip(u, v, strict=True)) for u, v in product(points, repeat=2)
        )


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_histograms_too(size: int) -> None:
    place = {"kind": "place", "expression": {"kind": "bin", "edges": ["0/1"] * (size + 1)}, "size": size}
    tallies = [{"kind": "at", "value": place, "index": i} for i in range(size)]
    matrix = [[int(i == j) for j in range(size)] for i in range(size)]
    for adjacency, expected in (("add/remove", 1), ("replace", 1 if size == 1 else 2)):
        statement = {"input": scanned(adjacency), "keys": [], "bounding": {"kind": "unbounded"}, "tallies": tallies}
        assert row_claims.moved(statement, {"level": None, "tallies": tallies, "matrix": matrix}, 1) == L1Move(
            1, blocks=expected
        )


# --- against the planner ----------------------------------------------------------------------------


@pytest.mark.slow
def test_it_agrees_with_the_planner_on_generated_questions(effort: int) -> None:
    seen: dict[str, int] = {}
    for number in range(25 * effort):
        chance = Random(910_000 + number)
        for asked in questions(chance, world(chance)):
            tree = json.loads(json.dumps(derived(asked)))
            noisy = [[[0] * part.measurement.size] * asked.groups for part in asked.noised]
            squared = pricing.measured(asked.query, asked.design, GAUSSIAN)
            for part, other, measurement in zip(asked.noised, squared, tree["measurements"], strict=True):
                statement = tree["statements"][measurement["statement"]]
                for each in (part, other):
                    found = row_claims.moved(statement, measurement, asked.groups, each.mechanism.norm)
                    # where no row can go, the planner uses that for sums alone, and the checker for everything
                    assert found == each.move or (found.total < each.move.total and part.measurement.rule != "sum/1")
                seen[part.measurement.rule] = seen.get(part.measurement.rule, 0) + 1
            assert checker.check(tree, noisy).implies(asked.price)
    assert len(seen) >= 6, seen


@pytest.mark.parametrize(
    ("make", "ask", "first"),
    [(world, cubes.planned, 920_000), (hierarchies.forest, hierarchies.planned, 0)],
    ids=["tables", "trees"],
)
def test_it_agrees_with_the_planner_on_levels(make: Any, ask: Any, first: int, effort: int) -> None:
    """Rollups and cubes: margins in L1 and residuals in L2; the same moves, from the certificate alone."""
    seen: dict[tuple[str, str], int] = {}
    for number in range(6 * effort):
        chance = Random(first + number)
        for asked in questions(chance, make(chance), ask=ask):
            for price in ({"epsilon": 1}, {"rho": 1}):
                made = plan(asked.query, **price)  # type: ignore[arg-type]
                tree = json.loads(json.dumps(derived(made)))
                noisy = [[[0] * part.measurement.size] * part.groups for part in made.noised]
                for part, measurement in zip(made.noised, tree["measurements"], strict=True):
                    statement = tree["statements"][measurement["statement"]]
                    found = row_claims.moved(statement, measurement, part.groups, part.mechanism.norm)
                    assert found.total <= part.move.total
                    key = part.mechanism.norm, str(part.adjacency)
                    seen[key] = seen.get(key, 0) + (found == part.move)
                assert checker.check(tree, noisy).implies(made.price)
    assert len(seen) == 4
    assert min(seen.values()) > 3, seen


# --- altered statements -----------------------------------------------------------------------------


def certificate(adjacency: str = "replace", required: bool = True) -> Any:
    rows = pa.table({"x": [1, 2, 3], "id": [1, 2, 3]})
    columns = {"x": pv.integer(3, 9, required=required)}
    table = pv.table("t", rows, protect=pv.each_row(), adjacency=adjacency, columns=columns)
    session = pv.Session([table], budget=pv.PureDP(3), ledger=None)
    return session.release(table.agg(s=pv.sum("x")), epsilon=1).certificate.document


def put(tree: Any, path: str, value: Any) -> Any:
    made = copy.deepcopy(tree)
    *inner, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    at = made
    for part in inner:
        at = at[part]
    at[last] = value
    return made


def test_what_is_promised_is_what_makes_it_small() -> None:
    """Every row has a code in 3..9, so that a replaced row moves the sum by 6; if one can be missing, by 9."""
    document = certificate()
    assert document["derived"]["measurements"][0]["move"] == {"blocks": 1, "l1": 6}
    assert certificate(required=False)["derived"]["measurements"][0]["move"] == {"blocks": 1, "l1": 9}
    checker.check(document["derived"], document["noisy"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: _each(d, "missing", True), "move: is 6 in L1, but the statement implies 9"),
        (lambda d: _each(d, "width", 7), "move: is 6 in L1, but the statement implies 7"),
        (lambda d: put(d, "derived.statements.0.keys", [{"kind": "column", "name": "x"}]), "the statement implies 9"),
        (
            lambda d: put(d, "derived.statements.0.bounding", {"kind": "at most rows", "rows": 3}),
            "the statement implies 18",
        ),
        (lambda d: put(d, "derived.statements.0.input.table.protect.kind", "person"), "are not bounded"),
        (lambda d: put(d, "derived.statements.0.input.table.adjacency", "add/remove"), "the statement implies 9"),
        (lambda d: put(d, "derived.measurements.0.matrix", [[3, 2]]), "the statement implies 12"),
        (lambda d: put(d, "derived.measurements.0.move.l1", 5), "is 5 in L1, but the statement implies 6"),
        (
            lambda d: put(d, "derived.measurements.0.scale", "5/1"),
            "price: is epsilon 1, but the noise implies epsilon 1",
        ),
        (lambda d: put(d, "derived.measurements.0.scale", "7/1"), "is not the noise of the measurements"),
        (lambda d: put(d, "derived.measurements.0.price.epsilon", "1/2"), "is epsilon 0.5, but the noise implies"),
        (lambda d: put(d, "derived.price.epsilon", "1/2"), "price: is epsilon 0.5, but the noise implies epsilon 1"),
        (lambda d: put(d, "derived.guarantee.epsilon", "9/10"), "guarantee: is epsilon 0.9, but"),
        (lambda d: put(d, "derived.statements.0.tallies", [{"kind": "rows"}]), "the statement does not count this"),
        (lambda d: put(d, "noisy.0", [[1], [2]]), "the statement implies 2 blocks by 9 each"),
        (lambda d: put(d, "derived.event.events", []), "is not the noise of the measurements"),
        (lambda d: put(d, "derived.measurements.0.scale", "-6/1"), "must be a positive number"),
        (lambda d: put(d, "derived.measurements.0.price.epsilon", "-1/1"), "malformed"),
        (lambda d: put(d, "derived.statements.0.bounding", {"kind": "at most rows", "rows": -10}), "1 or greater"),
        (lambda d: put(d, "derived.statements.0.bounding", {"kind": "at most rows", "rows": 0.99}), "1 or greater"),
        (lambda d: put(d, "derived.statements.0.bounding", {"kind": "at most rows", "rows": True}), "1 or greater"),
        (lambda d: put(d, "derived.measurements.0.statement", -1), "no such statement"),
        (lambda d: put(d, "derived.measurements.0.move.l1", 6.0), "must have blocks and l1|malformed"),
        (lambda d: put(d, "derived.measurements.0.move", {"blocks": 6, "l1": 1}), "is 6 blocks by 1 each in L1, but"),
        (lambda d: put(d, "derived.measurements.0.move", {"blocks": 0, "l1": 6}), "must have blocks and l1|malformed"),
        (lambda d: put(d, "derived.measurements.0.move", {"squared_l2": 36}), "must have blocks and l1|malformed"),
        (lambda d: put(d, "derived.measurements.0.matrix", []), "noisy|integer for each tally"),
        (lambda d: put(d, "derived.statements.0.input.table.adjacency", []), "malformed"),
        (lambda d: put(d, "derived", []), "malformed"),
        (lambda d: put(d, "noisy", None), "malformed"),
        (lambda d: put(d, "derived.measurements.0.scale", "1e200000"), "must be a positive number"),
    ],
)
def test_an_altered_statement_is_refused(change: Any, message: str) -> None:
    document = change(certificate())
    with pytest.raises(VerificationError, match=message.replace("/", r"\/")):
        checker.check(document["derived"], document["noisy"])


def _each(document: Any, name: str, value: Any) -> Any:
    """The code with another field, wherever it is written."""
    text = json.dumps(document)
    old = json.dumps(document["derived"]["statements"][0]["tallies"][0]["value"])
    assert old in text
    new = json.dumps({**json.loads(old), name: value})
    return json.loads(text.replace(old, new))


def test_verify_catches_a_planner_that_claims_too_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planner's own rules agree with themselves, whatever they say; the checker shares none of them."""
    document = certificate()
    text = json.dumps({"document": document, "signature": None}, sort_keys=True, separators=(",", ":"))
    pv.verify(text)
    honest = derived
    monkeypatch.setattr(verification, "derived", lambda made: put(honest(made), "measurements.0.move.l1", 5))
    altered = put(document, "derived.measurements.0.move.l1", 5)
    with pytest.raises(VerificationError, match="is 5 in L1, but the statement implies 6"):
        pv.verify(json.dumps({"document": altered, "signature": None}, sort_keys=True, separators=(",", ":")))


def test_a_number_is_read_only_in_its_own_form() -> None:
    """The text "1e999999999" is short, but computing it takes minutes."""
    huge = "1e5000"
    found = {"mechanism": "OptimalSelection", "max_keys": 1, "adjacency": "add/remove", "delta": "1/1000"}
    with pytest.raises(VerificationError, match=r"discovery.epsilon: must be a positive number, written as p/q"):
        checker._FoundKeys.claimed({**found, "epsilon": huge}, held=1, adjacency={"add/remove"})
    with pytest.raises(VerificationError, match=r"ranks: must be a positive number, written as p/q"):
        rank_claims._positive(huge, "ranks")
