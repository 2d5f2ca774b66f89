"""What stewards do: each act is an entry of the ledger with their name."""

from __future__ import annotations

from typing import Any

import httpx
from tests.server.api.serving import COUNT, Running
from tests.server.api.test_asking import checked

from privet.ledger import Entry
from privet.server import models as m
from privet.server.accounts import Role


def latest(running: Running, dataset: str = "people") -> Entry:
    return running.server.ledger.history(dataset)[-1]


def test_caps_and_reopening(running: Running, sam: httpx.Client, bob: httpx.Client) -> None:
    done = checked(
        sam.post("/datasets/people/caps", json={"analyst": "bob", "epsilon": "0.5", "reason": "May"}), m.Done
    )
    entry = latest(running)
    assert (entry.number, entry.kind, entry.by, entry.note) == (done["entry"], "capped", "sam", "May")
    refused = bob.post("/datasets/people/query", json={"sql": COUNT, "epsilon": 0.6})
    assert refused.status_code == 402
    checked(sam.post("/datasets/people/caps", json={"analyst": "bob", "reason": "over"}), m.Done)
    assert latest(running).ration is not None
    for wrong in (
        {"reason": "x"},
        {"epsilon": 1, "reason": ""},
        {"epsilon": 1, "delta": 0.1, "reason": "x"},
        {"rho": 1, "reason": "x"},
    ):
        assert sam.post("/datasets/people/caps", json=wrong).status_code == 422, wrong
    checked(sam.post("/datasets/people/reopen", json={"reason": "more memory"}), m.Done)
    assert (latest(running).kind, latest(running).by) == ("reopened", "sam")


def test_people(running: Running, sam: httpx.Client) -> None:
    body: dict[str, Any] = {"name": "una", "role": "analyst", "datasets": ["people"]}
    made = checked(sam.post("/people", json=body), m.ChangedPerson, 201)
    assert made["invitation"].startswith(f"{running.server.settings.origin}/welcome/")
    entry = latest(running)
    assert (entry.kind, entry.by, entry.note) == ("administered", "sam", "account una: added as analyst for people")
    head = running.server.ledger.head()
    assert sam.post("/people", json=body).status_code == 422, "the name is taken"
    assert sam.post("/people", json={"name": "uno", "datasets": ["nothing"]}).status_code == 422
    assert sam.post("/people", json={"name": "unа", "datasets": None}).status_code == 422, "it looks like una"
    unsaid = sam.post("/people", json={"name": "bo"})
    assert (unsaid.status_code, "datasets: is missing" in unsaid.text) == (422, True)
    assert running.server.ledger.head() == head, "what is refused is no act"
    changed = checked(sam.patch("/people/una", json={"all_datasets": True, "role": "steward"}), m.ChangedPerson)
    assert (changed["person"]["datasets"], changed["person"]["role"]) == (None, "steward")
    assert latest(running).note == latest(running, "trips").note == "account una: now steward for every dataset"
    assert checked(sam.patch("/people/una", json={"invite": True}), m.ChangedPerson)["invitation"]
    checked(sam.patch("/people/una", json={"disabled": True}), m.ChangedPerson)
    assert latest(running).note == "account una: disabled"
    assert sam.patch("/people/nobody", json={"disabled": True}).status_code == 404
    everybody = checked(sam.get("/people"), m.People)["people"]
    assert {person["name"] for person in everybody} >= {"ann", "bob", "sam", "tim", "una"}


def test_tokens(running: Running, sam: httpx.Client, ann: httpx.Client) -> None:
    browser = running.browser("ann")
    made = checked(browser.post("/tokens", json={"label": "notebook", "max_epsilon": 0.5}), m.CreatedToken, 201)
    used = running.client({"Authorization": f"Bearer {made['text']}"})
    assert used.get("/me").json()["token"]["max_epsilon"] == "0.5"
    assert used.post("/tokens", json={"label": "more"}).status_code == 403, "a token makes no token"
    assert browser.post("/tokens", json={"label": "theirs", "name": "bob"}).status_code == 403
    wide = browser.post("/tokens", json={"label": "wide", "role": "steward"})
    assert (
        wide.status_code == 422
        or running.client({"Authorization": f"Bearer {wide.json()['text']}"}).get("/ledger/head").status_code == 403
    )
    head = running.server.ledger.head()
    theirs = checked(
        sam.post("/tokens", json={"label": "for bob", "name": "bob", "datasets": ["trips"]}), m.CreatedToken, 201
    )
    assert running.server.ledger.head() != head
    assert latest(running, "trips").by == "sam"
    assert "for bob" not in latest(running, "trips").note
    assert ann.delete(f"/tokens/{theirs['token']['id']}").status_code == 403, "a token revokes only itself"
    assert sam.delete(f"/tokens/{theirs['token']['id']}").status_code == 204
    assert running.client({"Authorization": f"Bearer {theirs['text']}"}).get("/me").status_code == 401
    assert browser.delete(f"/tokens/{made['token']['id']}").status_code == 204
    assert used.get("/me").status_code == 401
    own = checked(ann.get("/tokens"), m.Tokens)["tokens"]
    assert {token["name"] for token in own} == {"ann"}
    assert {token["name"] for token in checked(sam.get("/tokens"), m.Tokens)["tokens"]} >= {"ann", "bob", "sam"}


def test_the_ledger_shows_itself(running: Running, sam: httpx.Client) -> None:
    head = checked(sam.get("/ledger/head"), m.Head)["receipt"]
    found = checked(sam.post("/ledger/verify", json={"receipt": head}), m.VerifiedLedger)
    assert found["head"] == head
    receipts = checked(sam.get("/ledger/receipts", params={"limit": 2}), m.Receipts)["receipts"]
    assert [receipts[0]["receipt"], len(receipts)] == [head, 2]
    wrong = f"1:{'0' * 64}"
    refused = sam.post("/ledger/verify", json={"receipt": wrong})
    assert (refused.status_code, refused.json()["kind"]) == (422, "VerificationError")
    assert "has a different entry there" in refused.json()["detail"]


def test_login_by_device_code(running: Running, nobody: httpx.Client) -> None:
    codes = checked(nobody.post("/device/code", json={"label": "laptop"}), m.DeviceCodes)
    ask = {"device_code": codes["device_code"]}
    waiting = nobody.post("/device/token", json=ask)
    assert (waiting.status_code, waiting.json()["error"]) == (400, "authorization_pending")
    cookie, identity = running.server.accounts.begin_session("ann")
    running.server.accounts.approve_device(codes["user_code"], identity)
    granted = nobody.post("/device/token", json=ask)
    if granted.status_code == 400:  # asked too soon
        assert granted.json()["error"] == "slow_down"
    else:
        token = checked(granted, m.AccessToken)["access_token"]
        assert running.client({"Authorization": f"Bearer {token}"}).get("/me").json()["name"] == "ann"
    unknown = nobody.post("/device/token", json={"device_code": "x"})
    assert (unknown.status_code, unknown.json()["error"]) == (400, "expired_token")
    assert cookie
    assert identity.role is Role.ANALYST
