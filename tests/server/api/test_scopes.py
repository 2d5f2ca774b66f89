"""What is not yours is not found; and what ends, ends at once."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.api.serving import COUNT, Running, serving

from privet.exact import Exact
from privet.server.accounts import Role
from privet.server.accounts.grants import MOST_DAYS


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


def test_a_token_revokes_only_itself(running: Running) -> None:
    accounts = running.server.accounts
    _, others = accounts.create_token("bob", "of another")
    _, mine = accounts.create_token("ann", "another of mine")
    limited = {"role": Role.STEWARD, "max_epsilon": Exact(1)}
    for client in (
        running.token("ann"),
        running.token("sam", **limited),
        running.token("sam", role=Role.STEWARD, datasets=["people"]),
        running.token("sam"),
    ):
        for key in (others.id, mine.id, "0" * 16):
            refused = client.delete(f"/tokens/{key}")
            assert (refused.status_code, "only itself" in refused.text) == (403, True), key
        own = client.get("/me").json()["token"]["id"]
        assert client.delete(f"/tokens/{own}").status_code == 204
        assert client.get("/me").status_code == 401
    assert running.browser("ann").delete(f"/tokens/{others.id}").status_code == 404, "not theirs"
    assert running.browser("ann").delete(f"/tokens/{mine.id}").status_code == 204
    steward, head = running.token("sam", role=Role.STEWARD), running.server.ledger.head
    assert steward.delete(f"/tokens/{others.id}").status_code == 204, "it may do all that a steward may"
    before = head()
    assert steward.delete(f"/tokens/{others.id}").status_code == 204
    assert head() == before, "what is revoked already is no act"


def paid(running: Running) -> int:
    return [entry.kind for entry in running.server.ledger.history("people")].count("reserved")


def test_a_largest_epsilon_limits_delta_too(tmp_path: Path) -> None:
    """Each question counted with its epsilon alone, so a token could spend all of the delta."""
    with serving(tmp_path, epsilon='10, delta = "1e-6"') as running:
        capped, free = running.token("ann", max_epsilon=Exact(1)), running.token("ann")

        def ask(client: httpx.Client, epsilon: str, delta: str) -> tuple[int, dict[str, Any]]:
            body = {"sql": COUNT, "epsilon": epsilon, "delta": delta, "mechanism": "gaussian", "fresh": True}
            response = client.post("/datasets/people/query", json=body)
            return response.status_code, response.json()

        code, told = ask(capped, "0.5", "1e-7")
        assert (code, told["kind"], told["remedy"]["write"]) == (402, "BudgetError", '"delta": "0.00000005"')
        assert "of the delta no larger share than of the epsilon. Nothing was spent" in told["detail"]
        assert paid(running) == 0
        assert capped.get("/me").json()["token"]["spent"] == "0"
        assert [ask(capped, "0.5", "5e-8")[0] for _ in range(2)] == [200, 200]
        code, told = ask(capped, "0.5", "5e-8")
        assert (code, told["spent"], told["what"].endswith("Nothing was spent")) == (402, {"epsilon": "0"}, True)
        assert ask(free, "0.5", "1e-7")[0] == 200
        assert paid(running) == 3


def test_a_steward_of_one_dataset_sees_nothing_of_others(running: Running) -> None:
    """The page that answers a change was that of all datasets: budgets, what analysts spent, and who there is."""
    running.server.accounts.add("tess", Role.STEWARD, ["trips"])
    tess, sam = running.browser("tess"), running.browser("sam")

    def page(client: httpx.Client, path: str, form: dict[str, str]) -> str:
        response = client.post(f"http://127.0.0.1:{running.port}/steward/{path}", data=form)
        assert response.status_code in (200, 422), response.text
        return response.text

    for form in ({"what": "query", "epsilon": "2", "reason": "May"}, {"what": "query", "epsilon": "x", "reason": ""}):
        mine, all_of_them = (page(client, "budgets/trips", form) for client in (tess, sam))
        for theirs in ("/steward/budgets/people", "ann"):
            assert theirs in all_of_them
            assert theirs not in mine
        assert "tim" in mine
    mine, all_of_them = (page(client, "failures/trips/reopen", {"reason": "more memory"}) for client in (tess, sam))
    assert ">people" in all_of_them
    assert ">people" not in mine
    assert ">trips" in mine


def test_a_batch_costs_what_its_token_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch was planned again after its turn. If somebody had used up the delta meanwhile, it cost much more."""
    budget = '20, delta = "1e-5" }\naccountant = "approx" #'
    questions = {f"from {age}": {"sql": f"{COUNT} WHERE age >= {age}"} for age in range(20, 80)}
    body = {"questions": questions, "epsilon": dict.fromkeys(questions, 0.1), "delta": 1e-7}
    with serving(tmp_path, epsilon=budget) as running:
        free, accounts = running.token("ann"), running.server.accounts
        cost = free.post("/datasets/people/explain_batch", json=body).json()["cost"]
        assert Exact(cost["epsilon"]) < 4, "one by one they cost 6"
        token = running.token("ann", max_epsilon=Exact(cost["epsilon"]))
        still_asks = accounts.still_asks

        def meanwhile(*arguments: Any) -> bool:
            monkeypatch.undo()
            bob = running.server.datasets["people"].session(analyst="bob")
            bob.release(COUNT, epsilon=0.2, delta="9.99e-6", mechanism="gaussian")
            return still_asks(*arguments)

        monkeypatch.setattr(accounts, "still_asks", meanwhile)
        refused = token.post("/datasets/people/batch", json=body)
        assert refused.status_code == 402, refused.text
        assert token.get("/me").json()["token"]["spent"] == "0"
        spent = running.server.ledger.analysts("people")
        assert "ann" not in spent


def test_a_token_lasts_as_long_as_the_api_says(running: Running) -> None:
    schema = running.client().get("/openapi.json").json()["components"]["schemas"]["NewToken"]
    assert schema["properties"]["days"]["maximum"] == MOST_DAYS
    browser = running.browser("ann")
    for days, status in {MOST_DAYS: 201, MOST_DAYS + 1: 422}.items():
        assert browser.post("/tokens", json={"label": "long", "days": days}).status_code == status
