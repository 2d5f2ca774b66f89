"""Asking over HTTP: what the command line prints is what the API sends; a key is one debit."""

from __future__ import annotations

import copy
import json
import re
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import Any

import httpx
import pytest
from pydantic import BaseModel
from tests.server.api.serving import BY_REGION, COUNT, Running

import privet as pv
from privet.ledger import Ledger
from privet.privacy.events import Stated
from privet.release.recall import reopened
from privet.release.render import json as render
from privet.server import models as m

QUERY = "/datasets/people/query"
FRESH = {"sql": COUNT, "epsilon": 0.01, "fresh": True}


def checked(response: httpx.Response, model: type[BaseModel], status: int = 200) -> Any:
    """The body, which must be what the API document promises."""
    assert response.status_code == status, response.text
    tree = response.json()
    model.model_validate(tree, strict=False)
    return tree


def debits(running: Running, name: str = "people") -> int:
    return sum(entry.kind == "reserved" for entry in running.server.ledger.history(name))


def test_a_question_is_answered_as_on_the_command_line(running: Running, ann: httpx.Client) -> None:
    before = debits(running)
    answer = checked(ann.post(QUERY, json={"sql": BY_REGION, "epsilon": 0.5}), m.Answer)
    assert debits(running) == before + 1
    assert [row["region"] for row in answer["rows"]] == ["north", "south", "elsewhere"]
    assert (answer["spent"], answer["paid_before"]) == ({"epsilon": "0.5"}, False)
    # the certificate alone gives the same answer, and the same JSON
    certificate = pv.Certificate.from_json(json.dumps(answer["certificate"], sort_keys=True, separators=(",", ":")))
    again = json.loads(render.answer(reopened(certificate)))
    assert again["rows"] == answer["rows"]
    assert pv.verify(certificate, ledger=running.server.ledger).ledger
    # and it can be had again, free of charge, by its id and by asking
    got = checked(ann.get(f"/datasets/people/answers/{answer['request_id']}"), m.Answer)
    assert (got["rows"], got["paid_before"], got["spent"]) == (answer["rows"], True, {"epsilon": "0"})
    same = checked(ann.post(QUERY, json={"sql": BY_REGION, "epsilon": "1/2"}), m.Answer)
    assert (same["rows"], same["paid_before"], same["request_id"]) == (answer["rows"], True, None)
    found = checked(ann.get(f"/datasets/people/certificates/{answer['entry']}"), m.Certificate)
    assert found == answer["certificate"]
    verified = checked(ann.post("/verify", json={"certificate": found}), m.Verified)
    assert verified["rules"]
    assert verified["ledger"]
    found["document"]["derived"]["price"]["epsilon"] = "1/100"
    assert ann.post("/verify", json={"certificate": found}).status_code == 422
    assert debits(running) == before + 1


def test_a_check_tells_nothing_of_others_entries(
    running: Running, ann: httpx.Client, bob: httpx.Client, sam: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the text of the refusal, an analyst could tell which entries are debits, and of which dataset."""
    theirs = ann.post(QUERY, json=FRESH).json()
    own = bob.post(QUERY, json=FRESH).json()
    other = bob.post("/datasets/trips/query", json={"sql": "SELECT COUNT(*) AS n FROM trips", "epsilon": 0.01}).json()
    answers: dict[int, tuple[int, str]] = {}
    for number in [*range(-1, running.server.ledger.head().number + 2), 2**70]:
        forged = copy.deepcopy(own["certificate"])
        forged["document"]["ledger"]["entry"] = number
        refused = bob.post("/verify", json={"certificate": forged})
        if number != own["entry"]:
            answers[number] = refused.status_code, refused.text
    assert {theirs["entry"], other["entry"]} < {*answers}
    assert len(set(answers.values())) <= 2
    said = {number: text for number, text in answers.items() if "no such entry with this answer" not in text[1]}
    assert {*said} <= {each["number"] for each in bob.get("/datasets/people/history").json()["entries"]}, "his own"
    # a certificate that somebody hands on can still be checked
    assert bob.post("/verify", json={"certificate": theirs["certificate"]}).json()["ledger"]
    # and a receipt does not make the server walk the whole ledger, except for a steward
    walks: list[object] = []
    walk = Ledger._read_through

    def counted(self: Ledger, *arguments: Any, **options: Any) -> None:
        walks.append(arguments)
        walk(self, *arguments, **options)

    monkeypatch.setattr(Ledger, "_read_through", counted)
    head = str(running.server.ledger.head())
    wrong = f"{head[:-1]}{'0' if head[-1] != '0' else '1'}"
    for client, times in ((bob, 0), (sam, 2)):
        walks.clear()
        asked = {"certificate": own["certificate"]}
        assert client.post("/verify", json={**asked, "receipt": head}).status_code == 200
        assert client.post("/verify", json={**asked, "receipt": wrong}).status_code == 422
        assert client.post("/verify", json={**asked, "receipt": "none"}).status_code == 422
        assert len(walks) == times


def test_parse_and_explain_are_free(running: Running, ann: httpx.Client) -> None:
    before = running.server.ledger.head()
    tree = checked(
        ann.post(
            "/datasets/people/parse",
            json={"sql": BY_REGION.replace("SELECT", "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.2)")},
        ),
        m.Parsed,
    )
    assert tree["options"] == {"epsilon": "0.2"}
    by_tree = checked(
        ann.post("/datasets/people/explain", json={"query": tree["query"], "epsilon": 0.3}), m.Explanation
    )
    by_sql = checked(ann.post("/datasets/people/explain", json={"sql": BY_REGION, "epsilon": 0.3}), m.Explanation)
    assert by_tree["derived"] == by_sql["derived"]
    assert [point["epsilon"] for point in by_sql["curve"]] == ["0.075", "0.15", "0.3", "0.6", "1.2"]
    errors = [point["expected_error"]["n"] for point in by_sql["curve"]]
    assert errors == sorted(errors, reverse=True)
    assert "epsilon 0.3" in by_sql["text"]
    session = running.server.datasets["people"].session(analyst="ann")
    planned = json.loads(render.explanation(session.plan(BY_REGION, epsilon="0.3"), paid_before=None))
    assert {name: by_sql[name] for name in planned if name != "paid_before"} == {
        name: planned[name] for name in planned if name != "paid_before"
    }
    assert running.server.ledger.head() == before


def test_a_batch_is_explained_free_of_charge(running: Running, ann: httpx.Client) -> None:
    """As a session explains it; as many questions as a batch may have, and no more."""
    before = running.server.ledger.head()
    where, parts = "/datasets/people/explain_batch", {"n": "COUNT(*) AS n", "pay": "AVG(income) AS pay"}
    questions = {
        name: f"SELECT region, {part} FROM people WHERE age > 21 GROUP BY region" for name, part in parts.items()
    }
    body = {"questions": {name: {"sql": sql} for name, sql in questions.items()}, "epsilon": 0.3}
    tree = checked(ann.post(where, json=body), m.BatchExplanation)
    session = running.server.datasets["people"].session(analyst="ann")
    assert tree["text"] == session.explain_all(questions, epsilon="0.3")
    assert tree["questions"]["n"] == json.loads(json.dumps(session.plan_all(questions, epsilon="0.3")["n"].to_json()))
    assert (tree["cost"], tree["fits"], tree["paid_before"]) == ({"epsilon": "0.3"}, True, None)
    assert tree["together"] == [["n", "pay"]]
    dear = checked(ann.post(where, json={**body, "epsilon": 5000}), m.BatchExplanation)
    assert (dear["fits"], dear["times"]) == (False, 0)
    wrong = ann.post(where, json={**body, "questions": {"a": {"sql": "SELECT nothing FROM people"}}})
    assert (wrong.status_code, "question 'a'" in wrong.text) == (422, True)
    many = {str(i): {"sql": COUNT} for i in range(1001)}
    assert ann.post(where, json={**body, "questions": many}).status_code == 422
    assert running.server.ledger.head() == before


@pytest.mark.parametrize("epsilon", [0.1, "0.1", "1/10", "1e-1"])
def test_numbers_are_exact(ann: httpx.Client, epsilon: Any) -> None:
    tree = checked(ann.post("/datasets/people/explain", json={"sql": COUNT, "epsilon": epsilon}), m.Explanation)
    assert Fraction(tree["derived"]["guarantee"]["epsilon"]) == Fraction(1, 10)


def test_numbers_with_many_digits_are_not_rounded(ann: httpx.Client) -> None:
    body = f'{{"sql": "{COUNT}", "epsilon": 0.1000000000000000055511151231257827}}'
    headers = {"Content-Type": "application/json"}
    tree = checked(ann.post("/datasets/people/explain", content=body, headers=headers), m.Explanation)
    assert Fraction(tree["derived"]["guarantee"]["epsilon"]) == Fraction(
        Decimal("0.1000000000000000055511151231257827")
    )


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        ({"sql": "SELECT COUNT(*) FROM nothing", "epsilon": 1}, 422, "QueryError"),
        ({"sql": COUNT}, 422, "QueryError"),
        ({"sql": COUNT, "epsilon": 0}, 422, "NumberError"),
        ({"sql": COUNT, "epsilon": "NaN"}, 422, "NumberError"),
        ({"sql": COUNT, "epsilon": 10**6}, 402, "BudgetError"),
        ({"sql": COUNT, "epsilon": True}, 422, None),
        ({"sql": COUNT, "epsilon": 1, "unknown": 1}, 422, None),
        ({"epsilon": 1}, 422, None),
        ({"sql": COUNT, "query": {}, "epsilon": 1}, 422, None),
        ({"query": {"kind": "statement"}, "epsilon": 1}, 422, "QueryError"),
        ([], 422, None),
        ("sql", 422, None),
    ],
)
def test_what_is_wrong_is_a_problem_document(
    running: Running, ann: httpx.Client, body: Any, status: int, kind: str | None
) -> None:
    before = running.server.ledger.head()
    response = ann.post(QUERY, json=body)
    problem = checked(response, m.Problem, status)
    assert response.headers["content-type"] == "application/problem+json"
    assert problem.get("kind") == kind
    assert problem["status"] == status
    assert problem["type"] == (f"urn:privet:error:{kind}" if kind else "about:blank")
    assert kind is None or problem["spent"] == {"epsilon": "0"}
    assert running.server.ledger.head() == before


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"sql": COUNT, "epsilon": 1, "confidense": 1}, "confidense: there is no such field. The fields are: "),
        ({"sql": COUNT, "epsilon": 1, "confidense": 1}, "Did you mean confidence?"),
        ({"sql": 5, "epsilon": 1}, 'sql: must be a text: "..."'),
        ({"sql": COUNT, "within": 5}, "within: must be an object: {...}"),
        ({"sql": COUNT, "epsilon": 1, "fresh": "maybe"}, "fresh: must be true or false"),
        ([], "the body: must be an object: {...}"),
    ],
)
def test_a_body_of_another_form_is_told_in_the_words_of_json(ann: httpx.Client, body: Any, words: str) -> None:
    problem = checked(ann.post(QUERY, json=body), m.Problem, 422)
    assert words in problem["detail"]
    assert not re.search("[Ii]nput|dictionary|instance|permitted", problem["detail"])


def test_64_retries_of_one_key_are_one_debit(running: Running, ann: httpx.Client) -> None:
    before = debits(running)
    body = {"sql": "SELECT AVG(age) AS a FROM people", "epsilon": 0.25, "fresh": True}

    def ask(_: int) -> httpx.Response:
        return ann.post(QUERY, json=body, headers={"Idempotency-Key": "sixty-four"})

    with ThreadPoolExecutor(64) as threads:
        responses = list(threads.map(ask, range(64)))
    assert {response.status_code for response in responses} <= {200, 202, 503, 429}
    rows = {json.dumps(response.json()["rows"]) for response in responses if response.status_code == 200}
    assert len(rows) == 1
    assert debits(running) == before + 1


def test_a_key_is_for_one_question(running: Running, ann: httpx.Client, bob: httpx.Client) -> None:
    key = {"Idempotency-Key": "report-17"}
    first = checked(ann.post(QUERY, json={"sql": COUNT, "epsilon": 0.1, "fresh": True}, headers=key), m.Answer)
    assert first["request_id"] == "report-17"
    for body in ({"sql": COUNT, "epsilon": 0.2, "fresh": True}, {"sql": BY_REGION, "epsilon": 0.1, "fresh": True}):
        problem = checked(ann.post(QUERY, json=body, headers=key), m.Problem, 409)
        assert problem["kind"] == "ReusedRequest"
    # another analyst has other keys, and does not find this one
    assert bob.get("/datasets/people/answers/report-17").status_code == 404
    theirs = checked(bob.post(QUERY, json={"sql": COUNT, "epsilon": 0.2, "fresh": True}, headers=key), m.Answer)
    assert theirs["entry"] != first["entry"]
    assert bob.get(f"/datasets/people/certificates/{first['entry']}").status_code == 404
    twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    assert ann.post(QUERY, json={"sql": COUNT, "epsilon": 0.1}, headers=twice).status_code == 422
    assert (
        ann.post(QUERY, json={"sql": COUNT, "epsilon": 0.1}, headers={"Idempotency-Key": "x" * 999}).status_code == 422
    )


def test_a_batch(running: Running, ann: httpx.Client) -> None:
    before = debits(running)
    body = {"questions": {"all": {"sql": COUNT}, "ages": {"sql": "SELECT SUM(age) AS s FROM people"}}, "epsilon": 0.4}
    answer = checked(ann.post("/datasets/people/batch", json=body), m.BatchAnswer)
    assert list(answer["answers"]) == ["all", "ages"]
    assert debits(running) == before + 1
    got = checked(ann.get(f"/datasets/people/answers/{answer['request_id']}"), m.BatchAnswer)
    rows = [each["rows"] for each in answer["answers"].values()]
    assert [each["rows"] for each in got["answers"].values()] == rows
    second = ann.get(f"/datasets/people/certificates/{answer['entry']}", params={"part": 1}).json()
    assert second == answer["answers"]["ages"]["certificate"]
    assert ann.get(f"/datasets/people/certificates/{answer['entry']}", params={"part": 2}).status_code == 404


def test_a_token_with_a_largest_epsilon(running: Running) -> None:
    limited = running.token("ann", max_epsilon=Fraction(1, 2))
    ask = {"sql": "SELECT SUM(income) AS s FROM people", "epsilon": 0.3, "fresh": True}
    assert limited.post(QUERY, json=ask).status_code == 200
    refused = limited.post(QUERY, json=ask)
    assert (refused.status_code, refused.json()["kind"]) == (402, "BudgetError")
    assert limited.post(QUERY, json={**ask, "fresh": False}).json()["paid_before"]
    # what is refused later is given back
    assert limited.post(QUERY, json={**ask, "epsilon": 10**6}).status_code == 402
    assert limited.post(QUERY, json={**ask, "epsilon": 0.2}).status_code == 200
    token = limited.get("/me").json()["token"]
    assert (token["max_epsilon"], token["spent"]) == ("0.5", "0.5")


def test_history_and_budget_show_ones_own(
    running: Running, ann: httpx.Client, bob: httpx.Client, sam: httpx.Client
) -> None:
    bob.post(QUERY, json={"sql": COUNT, "epsilon": 0.7, "fresh": True})
    own = checked(bob.get("/datasets/people/history", params={"limit": 2}), m.History)["entries"]
    assert {entry["analyst"] for entry in own} == {"bob"}
    every = checked(sam.get("/datasets/people/history", params={"limit": 1000}), m.History)
    assert {entry["analyst"] for entry in every["entries"]} >= {"ann", "bob", None}
    assert every["next"] is None
    page = checked(sam.get("/datasets/people/history", params={"limit": 1}), m.History)
    after = checked(sam.get("/datasets/people/history", params={"before": page["next"]}), m.History)
    assert page["entries"][0]["number"] == after["entries"][0]["number"] + 1
    assert bob.get("/datasets/people/history", params={"limit": "9" * 20}).status_code == 422
    mine = checked(bob.get("/datasets/people/budget"), m.Budget)
    assert (mine["analyst"], mine["rows"], mine["failures"]) == ("bob", None, None)
    everybody = checked(sam.get("/datasets/people/budget"), m.Budget)
    assert [row["analyst"] for row in everybody["rows"]][:3] == [None, "ann", "bob"]
    listed = checked(bob.get("/datasets"), m.Datasets)["datasets"]
    assert [each["dataset"] for each in listed] == ["people", "trips"]
    described = checked(ann.get("/datasets/people"), m.Dataset)
    assert described["tables"]["people"]["columns"]["age"]["words"] == "an integer in 0..110"


def test_a_key_that_no_address_can_contain_is_refused_before_the_debit(running: Running, ann: httpx.Client) -> None:
    head = running.server.ledger.head()
    for key in ("a/b", "a\\b", ".", "..", '".."'):
        response = ann.post(
            "/datasets/people/query", json={"sql": COUNT, "epsilon": 0.01}, headers={"Idempotency-Key": key}
        )
        assert response.status_code == 422, key
    assert running.server.ledger.head() == head


def test_whoever_does_not_wait_sees_that_a_process_ended(running: Running, ann: httpx.Client) -> None:
    """Its questions are given up by a look at the ledger, also if all clients only poll."""
    ledger = running.server.ledger
    looked: list[int] = []
    look = type(ledger).look

    def noted(self: Any, charge: Any) -> Any:
        looked.append(charge.number)
        return look(self, charge)

    about = {"dataset": "people", "analyst": "ann", "events": [Stated(epsilon="0.01", delta=0)], "asked": "polled"}
    charge = ledger.reserve(**about, request_id="polled")  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(ledger), "look", noted)
        polled = ann.get("/datasets/people/answers/polled", headers={"Prefer": "respond-async"})
        assert (polled.status_code, looked) == (202, [charge.number])
    ledger.settle(charge, "interrupted")
    assert ann.get("/datasets/people/answers/polled", headers={"Prefer": "respond-async"}).status_code == 502
