"""Certificates: one text for each, read back as it was, and nothing else is read."""

from __future__ import annotations

import json
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.release.certificates import ASKED, KEY, LINK, PUBLIC, certificate, made_plan, sha256

from privet.codec import canonical
from privet.errors import UserError, VerificationError
from privet.planner.facts import plan_again
from privet.privacy.guarantees import budgets
from privet.release.certificate import Certificate, certify
from privet.release.signing import new_signing_key, signer, signs, verifier
from privet.release.verification import verify

EVERY = [*ASKED, "value"]


@pytest.mark.parametrize("name", EVERY)
def test_round_trip(name: str, tmp_path: Path) -> None:
    made = certificate(name)
    text = made.to_json()
    assert Certificate.from_json(text) == Certificate.from_json(text.encode()) == made
    assert made.save(tmp_path / "answer.json").read_text(encoding="utf-8") == text + "\n"
    assert Certificate.from_json((tmp_path / "answer.json").read_bytes()) == made
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")), "canonical"
    assert text.isascii()
    assert made.digest == sha256(canonical(made.document))
    assert json.loads(str(made)) == made.document


@pytest.mark.parametrize("name", ASKED)
def test_the_plan_is_made_again_from_what_was_asked(name: str) -> None:
    made = made_plan(name)
    assert plan_again(certificate(name).document["asked"]) == made


@pytest.mark.parametrize("name", ASKED)
def test_what_a_certificate_says(name: str) -> None:
    document, made = certificate(name).document, made_plan(name)
    derived = document["derived"]
    assert [Fraction(part["scale"]) for part in derived["measurements"]] == list(made.scales)
    assert [part["price"] for part in derived["measurements"]] == [budgets.to_tree(part.price) for part in made.noised]
    assert derived["price"] == budgets.to_tree(made.price)
    assert derived["guarantee"] == budgets.to_tree(made.guarantee())
    assert [part["name"] for part in derived["columns"]] == list(dict(made.columns))
    assert sorted(document["answer"]) == sorted(dict(made.columns))
    (stated,) = [e for e in derived["event"]["events"] if e["kind"] == "joint_gaussian"] or [None]
    assert len(stated["noises"] if stated else derived["event"]["events"]) == len(made.noised)
    for cells in document["answer"].values():
        assert set(cells) == {"values", "low", "high", "noisy"}
        assert all(len(cell) == made.groups for cell in cells.values())


def test_no_float_but_in_answers() -> None:
    """What is exact stays exact: rationals are texts."""

    def floats(tree: Any) -> bool:
        if isinstance(tree, dict | list):
            return any(floats(part) for part in (tree.values() if isinstance(tree, dict) else tree))
        return isinstance(tree, float)

    for name in EVERY:
        document = certificate(name).document
        assert not floats({key: part for key, part in document.items() if key != "answer"})


def test_signatures_are_deterministic_and_of_every_byte() -> None:
    one, two = certificate("groups"), certificate("groups")
    assert one.signature == two.signature is not None
    for other in ({"entry": 3}, {"hash": "6" * 64}, {"request_id": "second"}, {"analyst": "bob"}):
        assert certificate("groups", link={**LINK, **other}).signature != one.signature
    assert certificate("groups", key=None).signature is None


def test_nan_is_never_certified() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        certify({"answer": float("nan")}, dataset="d", link={}, version="0", key=None)


# --- what is no certificate -------------------------------------------------------------------------

HEAD = '{"document":{"a":'
TAIL = '},"signature":null}'
BOMBS: dict[str, str | bytes] = {
    "empty": "",
    "no JSON": "{certificate}",
    "a list": "[]",
    "a number": "{}1",
    "no fields": "{}",
    "one field more": '{"document":{},"more":1,"signature":null}',
    "document is a list": '{"document":[],"signature":null}',
    "signature is a number": '{"document":{},"signature":7}',
    "nan": f"{HEAD}NaN{TAIL}",
    "infinity": f"{HEAD}Infinity{TAIL}",
    "minus infinity": f"{HEAD}-Infinity{TAIL}",
    "a float that overflows": f"{HEAD}1e999{TAIL}",
    "a field twice": '{"document":{"a":1,"a":1},"signature":null}',
    "a field twice, outside": '{"document":{},"document":{},"signature":null}',
    "nested 100,000 deep": f"{HEAD}{'[' * 100_000}{']' * 100_000}{TAIL}",
    "objects nested 100,000 deep": f"{HEAD}" + '{"a":' * 100_000 + "1" + "}" * 100_000 + TAIL,
    "nested and not closed": f"{HEAD}{'[' * 1_000_000}",
    "a number of 5,000 digits": f"{HEAD}{'9' * 5_000}{TAIL}",
    "a number of a million digits": f"{HEAD}{'9' * 1_000_000}{TAIL}",
    "an exponent of a million": f"{HEAD}1e1000000{TAIL}",
    "10 MB of text": f'{HEAD}"{"x" * 10_000_000}"{TAIL}',
    "10 MB of numbers": f"{HEAD}[{'1,' * 5_000_000}1]{TAIL}",
    "blanks": '{"document": {}, "signature": null}',
    "unsorted": '{"signature":null,"document":{}}',
    "not ASCII": '{"document":{"a":"ü"},"signature":null}',
    "escaped for nothing": '{"document":{"a":"\\u0061"},"signature":null}',
    "a float that is written otherwise": f"{HEAD}1.50{TAIL}",
    "minus zero": f"{HEAD}-0{TAIL}",
    "UTF-16": f"{HEAD}1{TAIL}".encode("utf-16"),
    "UTF-8 with a mark": b"\xef\xbb\xbf" + f"{HEAD}1{TAIL}".encode(),
    "no UTF-8": b'{"document":{"a":"\xff"},"signature":null}',
    "a lone surrogate": '{"document":{"a":"\ud800"},"signature":null}',
    "blanks at the end": f"{HEAD}1{TAIL}  ",
    "NUL at the end": f"{HEAD}1{TAIL}\x00",
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_no_certificate_is_refused_at_once(name: str) -> None:
    begin = time.process_time()
    for check in (Certificate.from_json, verify):
        if check is verify and BOMBS[name][:1] not in ("{", b"{"):
            continue  # a text that does not begin with { is the name of a file
        if check is not verify and name.startswith("10 MB"):
            continue  # long, but the canonical text of something; the rules refuse it
        with pytest.raises(VerificationError) as caught:
            check(BOMBS[name])
        assert len(str(caught.value)) < 400
    assert time.process_time() - begin < 60


@pytest.mark.parametrize("depth", [*range(880, 1000), 1100])
def test_nesting_near_the_limit_is_refused_cleanly(depth: int) -> None:
    with pytest.raises(VerificationError):
        verify(f"{HEAD}{'[' * depth}{']' * depth}{TAIL}")


@pytest.mark.parametrize("given", [5, None, [], {"document": {}}, 1.5])
def test_other_things_are_refused(given: Any) -> None:
    with pytest.raises((UserError, VerificationError)):
        verify(given)


@pytest.mark.parametrize("path", ["no such file", "a\x00b", "x" * 10_000, "."])
def test_files_that_can_not_be_read(path: str) -> None:
    with pytest.raises(UserError, match=r"the certificate .* can't be read"):
        verify(path)


# --- keys -------------------------------------------------------------------------------------------


def test_a_new_key_pair(tmp_path: Path) -> None:
    private = tmp_path / "steward.key"
    public = new_signing_key(private)
    assert public == tmp_path / "steward.key.pub"
    assert private.stat().st_mode & 0o777 == 0o600
    made = certificate("count", key=private)
    assert made == certificate("count", key=str(private))
    assert verify(made, key=public).signature
    assert verify(made, key=str(public)).signature
    before = private.read_bytes()
    with pytest.raises(UserError, match="exists, and a key is never overwritten"):
        new_signing_key(private)
    assert private.read_bytes() == before
    with pytest.raises(UserError, match="can't be written"):
        new_signing_key(tmp_path / "no folder" / "key")


def test_the_public_file_is_not_overwritten_either(tmp_path: Path) -> None:
    public = tmp_path / "steward.key.pub"
    public.write_text("the key that everybody has", encoding="utf-8")
    with pytest.raises(UserError, match="never overwritten"):
        new_signing_key(tmp_path / "steward.key")
    assert public.read_text(encoding="utf-8") == "the key that everybody has"
    assert not (tmp_path / "steward.key").exists(), "no half of a pair is left behind"


def test_two_keys_are_different(tmp_path: Path) -> None:
    one, two = (new_signing_key(tmp_path / name) for name in ("one", "two"))
    assert one.read_bytes() != two.read_bytes()


@pytest.mark.parametrize("content", [b"", b"x", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_what_is_no_key(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    with pytest.raises(UserError, match="contains no Ed25519 private key"):
        signer(path)
    with pytest.raises(UserError, match="contains no Ed25519 public key"):
        verifier(path)


@pytest.mark.parametrize("load", [signer, verifier])
def test_a_key_file_that_is_not_there(load: Any, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no key file"):
        load(tmp_path / "none")


def test_the_wrong_half_of_a_pair(tmp_path: Path) -> None:
    private = tmp_path / "key"
    public = new_signing_key(private)
    with pytest.raises(UserError, match="contains no Ed25519 private key"):
        signer(public)
    with pytest.raises(UserError, match="contains no Ed25519 public key"):
        verifier(private)


def test_other_kinds_of_keys_are_refused(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = ec.generate_private_key(ec.SECP256R1())
    private, public = tmp_path / "key", tmp_path / "key.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(UserError, match="no Ed25519 private key"):
        signer(private)
    with pytest.raises(UserError, match="no Ed25519 public key"):
        verifier(public)


def test_signs() -> None:
    signature = KEY.sign(b"message")
    assert signs(PUBLIC, signature, b"message")
    for bad in (b"", signature[:-1], signature + b"\x00", bytes(64)):
        assert not signs(PUBLIC, bad, b"message")
    assert not signs(PUBLIC, signature, b"massage")
