"""Query trees that somebody has tampered with: refused as questions, never a failure of the server."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import httpx
from tests.server.api.serving import Running

STATEMENTS = [
    "SELECT region, COUNT(*) AS n, AVG(income) AS a FROM people WHERE age >= 18 GROUP BY region ORDER BY n LIMIT 2",
    "SELECT SUM(CASE WHEN age > 50 THEN income / 2 ELSE 0 END) AS s FROM people",
    "SELECT MEDIAN(age) AS m FROM people HAVING m > 3",
]
VALUES: list[Any] = [
    None, True, False, 0, -1, 1, 2**63, -(2**70), 10**400, "", "x", "0/1", "1/0", "-1/2", "1/3", "9" * 500 + "/1",
    "\ud800", "people", "column", [], [[]], {}, {"kind": "query"}, {"kind": "scan"}, {"exact": "1/2"},
    {"date": "2024-01-01"}, {"datetime": "9999-12-31T23:59:59"}, {"kind": "constant", "value": None},
    [None] * 50, {"kind": []},
]  # fmt: skip


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return found + [place for key, value in items for place in places(value, (*path, key))]


def at(tree: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def mutated(tree: Any, rng: random.Random) -> Any:
    """The tree with one to three changes: a value replaced, removed, doubled, or taken from elsewhere in it."""
    made = copy.deepcopy(tree)
    for _ in range(rng.randint(1, 3)):
        every = places(made)
        if not every:
            return made
        *path, last = rng.choice(every)
        parent = at(made, tuple(path))
        match rng.randrange(5):
            case 0:
                parent[last] = copy.deepcopy(rng.choice(VALUES))
            case 1:
                parent[last] = copy.deepcopy(at(made, rng.choice(every)))
            case 2 if isinstance(parent, dict):
                del parent[last]
            case 3 if isinstance(parent, list):
                parent.insert(last, copy.deepcopy(parent[last]))
            case _ if isinstance(parent, dict):
                parent[f"{last}x"] = parent.pop(last)
            case _:
                del parent[last]
    return made


def outcomes(ann: httpx.Client, count: int, seed: int = 17) -> tuple[dict[int, int], list[str]]:
    """How often each status was the answer to a mutated tree; and the bodies with another answer than planned."""
    rng = random.Random(seed)
    trees = [ann.post("/datasets/people/parse", json={"sql": sql}).json()["query"] for sql in STATEMENTS]
    found: dict[int, int] = {}
    wrong = []
    for i in range(count):
        body = json.dumps({"query": mutated(trees[i % len(trees)], rng), "epsilon": 0.5, "assuming": 5})
        response = ann.post("/datasets/people/explain", content=body, headers={"Content-Type": "application/json"})
        found[response.status_code] = found.get(response.status_code, 0) + 1
        if response.status_code not in (200, 400, 422):
            wrong.append(body)
    return found, wrong


def test_mutated_trees_are_refused_or_planned(running: Running, ann: httpx.Client, effort: int) -> None:
    found, wrong = outcomes(ann, 250 * effort)
    assert wrong == []
    assert found[422] > 100
    assert found[200] > 0
    assert '"event": "bug"' not in running.log.getvalue()


def test_deep_trees_are_refused(ann: httpx.Client) -> None:
    tree = ann.post("/datasets/people/parse", json={"sql": STATEMENTS[0]}).json()["query"]
    for depth in (60, 190, 240, 5_000):
        deep = '{"kind":"not","operand":' * depth + '{"kind":"column","name":"age"}' + "}" * depth
        for place in ('"predicate":', '"condition":', '"where":'):
            body = json.dumps({"query": tree, "epsilon": 1}).replace(
                '"input": {', f'"input": {{"deep": {deep}, {place} {deep},', 1
            )
            response = ann.post("/datasets/people/explain", content=body, headers={"Content-Type": "application/json"})
            assert response.status_code in (400, 422)
    sql = f"SELECT COUNT(*) AS n FROM people WHERE {'(' * 3000}age > 1{')' * 3000}"
    assert ann.post("/datasets/people/explain", json={"sql": sql, "epsilon": 1}).status_code in (200, 422)
    sql = "SELECT COUNT(*) AS n FROM people WHERE " + " AND ".join(["age > 1"] * 5000)
    assert ann.post("/datasets/people/explain", json={"sql": sql, "epsilon": 1}).status_code in (200, 422)
