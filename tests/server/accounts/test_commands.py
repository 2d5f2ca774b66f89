"""`privet users` and `privet tokens`: without a running server, and each act of a steward in the ledger."""

from __future__ import annotations

import os
import pwd
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.cli.asking import COUNT, Shell
from tests.cli.conftest import here, shell  # noqa: F401 (fixtures)
from tests.server.accounts.common import HERE, PASSWORD, Counting

from privet.ledger import open_ledger
from privet.server.accounts import Accounts, StoreError

USER = f"cli:{pwd.getpwuid(os.getuid()).pw_name}"
LINK = "http://localhost:8765/welcome/"


def opened() -> Accounts:
    return Accounts.open("people.ledger.accounts", create=False, hasher=Counting())


def noted() -> list[tuple[str, str]]:
    """The acts in the ledger: by whom, and what."""
    with closing(open_ledger("people.ledger")) as ledger:
        return [(entry.by, entry.note) for entry in ledger.history("people") if entry.kind == "administered"]


def test_people_and_tokens_from_first_to_last(shell: Shell) -> None:  # noqa: F811
    first = shell("users", "add", "sam", "--role", "steward")
    assert first.out.startswith(LINK)
    assert "works once, within 72 hours" in first.err
    assert "Not recorded in the ledger" in first.err, "there is no ledger yet"
    with opened() as accounts:
        accounts.accept(first.out.strip().removeprefix(LINK), PASSWORD)
        cookie, _ = accounts.sign_in("sam", PASSWORD, address=HERE)
    shell("query", COUNT, "--epsilon", "0.5")

    added = shell.json("users", "add", " ana  lee", "--dataset", "people", "--json", "--as", "sam")
    assert added.pop("link").startswith(LINK)
    person = {"name": "ana lee", "role": "analyst", "datasets": ["people"], "disabled": False, "has_password": False}
    assert added == person
    assert [each["name"] for each in shell.json("users", "list", "--json")] == ["ana lee", "sam"]
    table = "name     role     datasets       state\nana lee  analyst  people         invited\n"
    assert shell.out("users", "list") == table + "sam      steward  every dataset  active\n"

    given: dict[str, Any] = shell.json(
        "tokens", "create", "ana lee", "--label", "notebook", "--max-epsilon", "1/3", "--days", "7", "--json"
    )
    assert given["token"].items() >= {"name": "ana lee", "max_epsilon": "1/3", "spent": "0", "revoked": False}.items()
    other = shell("tokens", "create", "sam", "--label", "night", "--role", "steward", "--dataset", "people")
    assert "only time" in other.err
    with opened() as accounts:
        bearer = accounts.bearer(given["text"])
        assert bearer is not None
        assert bearer.token is not None
        assert bearer.token.max_epsilon == Fraction(1, 3)
        assert accounts.bearer(other.out.strip()) is not None
        assert accounts.session(cookie) is not None
    listed = shell.json("tokens", "list", "--json")
    assert [token["label"] for token in listed] == ["night", "notebook"] or listed[0]["created"] == listed[1]["created"]
    assert [token["label"] for token in shell.json("tokens", "list", "--user", "ana lee", "--json")] == ["notebook"]
    assert "0 of 0.333333" in shell.out("tokens", "list")
    assert given["text"] not in shell.out("tokens", "list") + shell.out("tokens", "list", "--json")

    changed = shell.json("users", "access", "ana lee", "--role", "steward", "--json")
    assert (changed["role"], changed["datasets"]) == ("steward", ["people"])
    assert shell.json("users", "access", "ana lee", "--every-dataset", "--json")["datasets"] is None
    assert "is revoked" in shell.out("tokens", "revoke", given["token"]["id"])
    assert "revoked" in shell.out("tokens", "list", "--user", "ana lee")
    link = shell.out("users", "invite", "sam").strip()
    shell("users", "disable", "sam")
    with opened() as accounts:
        assert accounts.bearer(given["text"]) is None
        assert accounts.bearer(other.out.strip()) is None
        assert accounts.session(cookie) is None
        assert accounts.invited(link.removeprefix(LINK)) is None
    shell("users", "enable", "sam")
    key = given["token"]["id"]
    assert [by for by, _ in noted()] == ["sam"] + [USER] * 8
    assert [note for _, note in noted()] == [
        "account ana lee: added as analyst for people",
        "account ana lee: new token for every dataset as analyst, epsilon 1/3 at most",
        "account sam: new token for people as steward",
        "account ana lee: now steward for people",
        "account ana lee: now steward for every dataset",
        f"account ana lee: token {key} revoked",
        "account sam: new link to set a password",
        "account sam: disabled",
        "account sam: enabled",
    ]


REFUSED = [
    (("users", "add", "Ana"), "looks like 'ana'"),
    (("users", "add", "bo", "--role", "king"), "The roles are: steward, analyst"),
    (("users", "add", "bo", "--dataset", "nope"), "The datasets are: people"),
    (("users", "add", "bo", "--as", "ana"), "not a steward's account"),
    (("users", "add", "bo", "--as", "nobody"), "not a steward's account"),
    (("users", "disable", "nobody"), "nobody has the name 'nobody'"),
    (("users", "access", "ana", "--dataset", "people", "--every-dataset"), "not both"),
    (("users", "invite", "off"), "disabled"),
    (("tokens", "create", "ana", "--label", "x", "--role", "steward"), "can't have a steward's token"),
    (("tokens", "create", "ana", "--label", "x", "--max-epsilon", "-1"), "--max-epsilon 0.5"),
    (("tokens", "create", "ana", "--label", "x", "--days", "1000"), "366"),
    (("tokens", "create", "off", "--label", "x"), "disabled"),
    (("tokens", "revoke", "0123456789abcdef"), "privet tokens list"),
    (("tokens", "list", "--user", "nobody"), "nobody has the name"),
]


def test_what_is_refused_is_not_done_and_not_recorded(shell: Shell) -> None:  # noqa: F811
    shell("query", COUNT, "--epsilon", "0.5")
    shell("users", "add", "ana")
    shell("users", "add", "off")
    shell("users", "disable", "off")
    before, notes = shell.out("users", "list"), noted()
    for arguments, why in REFUSED:
        assert why in shell.refused(2, *arguments), arguments
    assert why in shell.refused(2, *arguments, "--json")
    assert (shell.out("users", "list"), noted(), shell.json("tokens", "list", "--json")) == (before, notes, [])


def test_an_act_that_can_not_be_recorded_is_not_done(shell: Shell) -> None:  # noqa: F811
    shell("query", COUNT, "--epsilon", "0.5")
    shell("users", "add", "ana")
    Path("people.ledger").write_bytes(b"")
    assert "empty file" in shell.refused(5, "users", "disable", "ana")
    with opened() as accounts:
        (ana,) = accounts.people()
        assert not ana.disabled


def test_a_missing_or_damaged_store(shell: Shell, here: Path) -> None:  # noqa: F811
    assert "there is no account store" in shell.refused(2, "users", "list")
    shell("users", "add", "ana")
    assert "already" in shell.refused(2, "query", COUNT, "--epsilon", "0.1", "-o", "people.ledger.accounts")
    (here / "people.ledger.accounts").write_bytes(b"")
    for command in (("users", "list"), ("users", "add", "bo"), ("tokens", "list")):
        assert "was emptied" in shell.refused(5, *command)
    with pytest.raises(StoreError):
        opened()
