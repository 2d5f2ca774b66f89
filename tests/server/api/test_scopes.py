"""What is not yours is not found; and what ends, ends at once."""

from __future__ import annotations

import copy
from typing import Any

import httpx
from tests.server.api.serving import COUNT, Running

from privet.server.accounts import Role


def test_what_is_out_of_scope_is_not_found(running: Running, ann: httpx.Client, tim: httpx.Client) -> None:
    """As if it did not exist: the same status, text and headers."""
    made = ann.post("/datasets/people/query", json={"sql": COUNT, "epsilon": 0.1, "fresh": True}).json()
    for path in ("", "/budget", "/history", f"/answers/{made['request_id']}", f"/certificates/{made['entry']}"):
        here, nowhere = tim.get(f"/datasets/people{path}"), tim.get(f"/datasets/nothing{path}")
        assert (here.status_code, here.content) == (nowhere.status_code, nowhere.content) == (404, here.content)
        assert {*here.headers} == {*nowhere.headers}
    for path in ("parse", "explain", "query"):
        body = {"sql": COUNT, "epsilon": 0.1}
        here, nowhere = (
            tim.post(f"/datasets/people/{path}", json=body),
            tim.post(f"/datasets/nothing/{path}", json=body),
        )
        assert (here.status_code, here.content) == (nowhere.status_code, nowhere.content) == (404, here.content)
    # a question about a table of another dataset
    crossed = tim.post("/datasets/trips/query", json={"sql": COUNT, "epsilon": 0.1})
    assert (crossed.status_code, crossed.json()["kind"]) == (422, "QueryError")
    tree = ann.post("/datasets/people/parse", json={"sql": COUNT}).json()["query"]
    assert tim.post("/datasets/trips/query", json={"query": tree, "epsilon": 0.1}).status_code == 422


def test_a_query_tree_can_t_change_the_declaration(running: Running, ann: httpx.Client) -> None:
    """Bounds and what is protected come from the policy, whatever the tree says."""
    sql = "SELECT SUM(age) AS s FROM people"
    tree = ann.post("/datasets/people/parse", json={"sql": sql}).json()["query"]
    forged: list[dict[str, Any]] = [copy.deepcopy(tree) for _ in range(3)]
    forged[0]["input"]["table"]["protect"] = {"kind": "each row"}
    forged[1]["input"]["table"]["columns"][1][1]["type"]["upper"] = "1000000/1"
    forged[2]["input"]["table"]["protect"]["max_rows"] = 2
    for tree in forged:
        response = ann.post("/datasets/people/explain", json={"query": tree, "epsilon": 0.1})
        assert response.status_code == 422, response.text


def test_sessions_and_tokens_end_at_once(running: Running) -> None:
    accounts = running.server.accounts
    accounts.add("eve", Role.ANALYST, ["people"])
    browser, token = running.browser("eve"), running.token("eve")
    assert browser.get("/me").status_code == token.get("/me").status_code == 200
    accounts.disable("eve")
    assert browser.get("/me").status_code == token.get("/me").status_code == 401
