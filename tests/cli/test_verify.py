"""`privet verify`: a certificate that was saved by `privet query`, whole and altered."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.cli.asking import COUNT, Shell, made

from privet.release.signing import new_signing_key

CERTIFICATE = "answer.json"
KEY = ("--key", "steward.key.pub")
LEDGER = ("--ledger", "people.ledger")


@pytest.fixture
def shell(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """After a question whose certificate was saved."""
    ready = Shell(capsys, monkeypatch)
    ready("query", COUNT, "--epsilon", "0.5", "--certificate", CERTIFICATE)
    return ready


def test_all_levels(shell: Shell) -> None:
    done = shell("verify", CERTIFICATE, *KEY, *LEDGER)
    assert done.err == ""
    assert done.out.splitlines() == [
        "rules      passed: epsilon 0.5, for n = count() by region",
        "signature  valid for this key",
        "ledger     debit found",
    ]


@pytest.mark.parametrize("given", [(), KEY, LEDGER, (*KEY, *LEDGER)], ids=["rules", "key", "ledger", "all"])
def test_what_was_checked_is_said(shell: Shell, given: tuple[str, ...]) -> None:
    tree = shell.json("verify", CERTIFICATE, *given, "--json")
    assert tree == {
        "rules": True,
        "signature": "--key" in given,
        "ledger": "--ledger" in given,
        "promise": "epsilon 0.5, for n = count() by region",
    }
    text = shell.out("verify", CERTIFICATE, *given)
    assert ("signature  not checked: no key was given" in text) == ("--key" not in given)
    assert ("ledger     not checked: no ledger was given" in text) == ("--ledger" not in given)


def test_it_needs_no_data_and_no_policy(shell: Shell, here: Path) -> None:
    for name in ("people.parquet", "privet.toml", "steward.key"):
        (here / name).unlink()
    shell("verify", CERTIFICATE, *KEY, *LEDGER)


def altered(here: Path, change: dict[str, Any]) -> None:
    """The certificate with other fields, in its canonical form again."""
    tree = json.loads((here / CERTIFICATE).read_text())
    for path, value in change.items():
        *parents, last = path.split(".")
        at = tree["document"]
        for name in parents:
            at = at[name]
        assert at[last] != value
        at[last] = value
    (here / CERTIFICATE).write_text(json.dumps(tree, sort_keys=True, separators=(",", ":")) + "\n")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"derived.guarantee.epsilon": "1/4"}, "derived.guarantee.epsilon"),
        ({"answer.n.values": [1, 2, 3]}, "answer.n.values"),
        ({"noisy": [[[1], [2], [3]]]}, "answer"),
        ({"kind": "nothing"}, "malformed"),
        ({"format": "privet-certificate/0"}, "format"),
    ],
    ids=lambda part: next(iter(part)) if isinstance(part, dict) else "",
)
def test_rules_that_do_not_hold(shell: Shell, here: Path, change: dict[str, Any], says: str) -> None:
    altered(here, change)
    assert says in shell.refused(1, "verify", CERTIFICATE)


def test_a_signature_that_does_not_hold(shell: Shell, here: Path) -> None:
    altered(here, {"version": "9.9.9"})
    shell("verify", CERTIFICATE)  # by the rules it could be
    assert "signature: it is not this key's signature" in shell.refused(1, "verify", CERTIFICATE, *KEY)
    assert "the entry has a different answer" in shell.refused(1, "verify", CERTIFICATE, *LEDGER)


def test_somebody_else_s_key(shell: Shell, here: Path) -> None:
    new_signing_key(here / "other.key")
    assert "signature" in shell.refused(1, "verify", CERTIFICATE, "--key", "other.key.pub")
    assert "contains no Ed25519 public key" in shell.refused(2, "verify", CERTIFICATE, "--key", "steward.key")


def test_without_a_signature(shell: Shell, here: Path) -> None:
    policy = (here / "privet.toml").read_text().replace('signing_key = "steward.key"\n', "")
    (here / "privet.toml").write_text(policy)
    shell("query", COUNT, "--epsilon", "0.25", "--fresh", "--certificate", "plain.json")
    shell("verify", "plain.json", *LEDGER)
    assert "signature: it is missing" in shell.refused(1, "verify", "plain.json", *KEY)


def test_receipts(shell: Shell, here: Path) -> None:
    receipt = shell.out("ledger", "head", "people.ledger").strip()
    shell("verify", CERTIFICATE, *LEDGER, "--receipt", receipt)
    with closing(sqlite3.connect("people.ledger")) as now, closing(sqlite3.connect("older.ledger")) as copy:
        now.backup(copy)
    shell("query", COUNT, "--epsilon", "0.25", "--fresh")
    later = shell.out("ledger", "head", "people.ledger").strip()
    shell("verify", CERTIFICATE, *LEDGER, "--receipt", later)
    for path in here.glob("people.ledger*"):
        path.unlink()
    (here / "older.ledger").rename(here / "people.ledger")
    shell("verify", CERTIFICATE, *LEDGER, "--receipt", receipt)
    assert "error: ledger: " in shell.refused(1, "verify", CERTIFICATE, *LEDGER, "--receipt", later)
    assert "a receipt needs its ledger" in shell.refused(2, "verify", CERTIFICATE, "--receipt", receipt)
    assert "is not a receipt" in shell.refused(2, "verify", CERTIFICATE, *LEDGER, "--receipt", "3:abc")


def test_another_ledger(shell: Shell, here: Path) -> None:
    (here / "other").mkdir()
    made(here / "other")
    shell("query", COUNT, "--epsilon", "0.5", "--policy", "other/privet.toml")
    assert "ledger: " in shell.refused(1, "verify", CERTIFICATE, "--ledger", "other/people.ledger")
    assert "there is no ledger" in shell.refused(2, "verify", CERTIFICATE, "--ledger", "none.ledger")


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b"\xff\xfe", b'{"document":{},"signature":null}', b"{" * 9_999]
)
def test_what_is_no_certificate(shell: Shell, here: Path, content: bytes) -> None:
    (here / "odd.json").write_bytes(content)
    shell.refused(1, "verify", "odd.json")
    shell.refused(1, "verify", "odd.json", *KEY, *LEDGER)


def test_files_that_can_t_be_read(shell: Shell, here: Path) -> None:
    for name in ("none.json", "."):
        assert f"the certificate '{name}' can't be read" in shell.refused(2, "verify", name)
    assert shell.run("verify").code == 2
    assert "none.pub" in shell.refused(2, "verify", CERTIFICATE, "--key", "none.pub")
