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
from privet.server import serving
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
    first = shell("users", "add", "sam", "--role", "steward", "--every-dataset")
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
    assert added == {**person, "openid": None, "linked": False}
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
    signs_in = shell.json("users", "access", "ana lee", "--openid", "Ana@Example.org", "--json")
    assert (signs_in["openid"], signs_in["linked"]) == ("ana@example.org", False)
    assert shell.json("users", "access", "ana lee", "--openid", "", "--json")["openid"] is None
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
    assert [by for by, _ in noted()] == ["sam"] + [USER] * 10
    assert [note for _, note in noted()] == [
        "account ana lee: added as analyst for people",
        "account ana lee: new token for all of the account's datasets as analyst, epsilon 1/3 at most",
        "account sam: new token for people as steward",
        "account ana lee: now steward for people",
        "account ana lee: now steward for every dataset",
        "account ana lee: now steward for every dataset, signs in as ana@example.org by OpenID Connect",
        "account ana lee: now steward for every dataset, not by OpenID Connect",
        f"account ana lee: token {key} revoked",
        "account sam: new link to set a password",
        "account sam: disabled",
        "account sam: enabled",
    ]


def test_links_lead_to_where_the_server_is(shell: Shell, here: Path) -> None:  # noqa: F811
    unsaid = shell("users", "add", "ana", "--dataset", "people")
    assert unsaid.out.startswith(LINK)
    assert "leads to http://localhost:8765. If the server is elsewhere" in unsaid.err
    for command in (("users", "add", "bo", "--dataset", "people"), ("users", "invite", "ana")):
        said = shell(*command, "--listen", "127.0.0.1:9000")
        assert said.out.startswith("http://localhost:9000/welcome/")
        assert "elsewhere" not in said.err
    assert "9000" in shell.refused(2, "users", "invite", "ana", "--listen", "9000")
    policy = here / "privet.toml"
    policy.write_text(policy.read_text() + '\n[server]\naddress = "https://privet.example.org"\n')
    named = shell("users", "invite", "ana", "--listen", "127.0.0.1:9000")
    assert named.out.startswith("https://privet.example.org/welcome/"), "a proxy is where browsers go"
    assert "elsewhere" not in named.err


def test_the_first_link_is_for_a_terminal_and_never_in_the_log(
    shell: Shell,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(serving, "serve", lambda policy, settings, *, listen, ready: ready())
    logged = shell("serve", "--listen", "127.0.0.1:9000")
    assert (logged.out, "welcome" in logged.err) == ("", False)
    command = "privet users invite steward --policy privet.toml --listen 127.0.0.1:9000"
    assert logged.err.endswith(f"For a link to set one: {command}\n")
    link = shell.out(*command.split()[1:]).strip()
    shell("serve")
    with opened() as accounts:
        assert accounts.invited(link.rpartition("/")[2]) is not None, "a restart leaves it valid"
    with monkeypatch.context() as patch:
        patch.setattr("_pytest.capture.CaptureIO.isatty", lambda self: True)
        shown = shell("serve")
    assert "welcome" not in shown.err
    (line,) = shown.out.splitlines()
    secret = line.rpartition(f"Set one: {LINK}")[2]
    with opened() as accounts:
        accounts.accept(secret, PASSWORD)
    again = shell("serve")
    assert "No steward" not in again.out + again.err


REFUSED = [
    (("users", "add", "Ana", "--dataset", "people"), "looks like 'ana'"),
    (("users", "add", "bo"), "The datasets are: people. Add --dataset people, or --every-dataset"),
    (("users", "add", "bo", "--role", "steward"), "the datasets that they may ask are missing"),
    (("users", "add", "bo", "--dataset", "people", "--every-dataset"), "not both"),
    (("users", "add", "bo", "--role", "king"), "The roles are: steward, analyst"),
    (("users", "add", "bo", "--dataset", "nope"), "The datasets are: people"),
    (("users", "add", "bo", "--as", "ana"), "not a steward's account"),
    (("users", "add", "bo", "--as", "nobody"), "not a steward's account"),
    (("users", "disable", "nobody"), "nobody has the name 'nobody'"),
    (("users", "access", "ana", "--dataset", "people", "--every-dataset"), "not both"),
    (("users", "add", "bo", "--dataset", "people", "--openid", "bö@example.org"), "ASCII"),
    (("users", "access", "off", "--openid", "ANA@example.org"), "is how 'ana' signs in"),
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
    shell("users", "add", "ana", "--dataset", "people", "--openid", "ana@example.org")
    shell("users", "add", "off", "--dataset", "people")
    shell("users", "disable", "off")
    before, notes = shell.out("users", "list"), noted()
    for arguments, why in REFUSED:
        assert why in shell.refused(2, *arguments), arguments
    assert why in shell.refused(2, *arguments, "--json")
    assert (shell.out("users", "list"), noted(), shell.json("tokens", "list", "--json")) == (before, notes, [])


def test_an_act_that_can_not_be_recorded_is_not_done(shell: Shell) -> None:  # noqa: F811
    shell("query", COUNT, "--epsilon", "0.5")
    shell("users", "add", "ana", "--dataset", "people")
    Path("people.ledger").write_bytes(b"")
    assert "empty file" in shell.refused(5, "users", "disable", "ana")
    with opened() as accounts:
        (ana,) = accounts.people()
        assert not ana.disabled


def test_a_missing_or_damaged_store(shell: Shell, here: Path) -> None:  # noqa: F811
    assert "there is no account store" in shell.refused(2, "users", "list")
    shell("users", "add", "ana", "--dataset", "people")
    assert "already" in shell.refused(2, "query", COUNT, "--epsilon", "0.1", "-o", "people.ledger.accounts")
    (here / "people.ledger.accounts").write_bytes(b"")
    for command in (("users", "list"), ("users", "add", "bo", "--every-dataset"), ("tokens", "list")):
        assert "was emptied" in shell.refused(5, *command)
    with pytest.raises(StoreError):
        opened()
