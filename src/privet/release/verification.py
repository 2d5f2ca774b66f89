"""Checking a certificate, in three levels.

(1) The rules, twice. `checker` reads the statements that the engine was given, and nothing else: from them it works out
how far one person can move each measurement, whether the noise is enough for that, and what epsilon it comes to. Then
the planner derives everything anew from the query and the declarations: statements, scales, values and intervals.
(2) With a key: the steward's signature over every byte. (3) With a ledger: the debit is there, and for this
certificate. All of it proves the claim. Nothing can prove that the engine computed the statements, or that noise was
drawn.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from privet.codec import canonical, ratio
from privet.errors import LedgerError, UserError, VerificationError, write
from privet.exact import Exact, nonnegative
from privet.ledger import Ledger, Receipt, open_ledger
from privet.mechanisms import AboveThreshold, Gaussian, Staircase, described
from privet.mechanisms.described import Adding
from privet.planner.facts import asked, derived
from privet.privacy import events
from privet.release import checker
from privet.release.batch import batch_of, check_computed, checked_batch, holds
from privet.release.certificate import FORMAT, Certificate, answered, found_tree, of_choice, of_value, plain
from privet.release.recall import planned_again
from privet.release.signing import VerifyingKey, signs, verifier
from privet.system.addresses import shown
from privet.tables.expressions.rendering import show as show_node
from privet.tables.operators import Operator, Where, steps
from privet.tables.schema import check_name

_CLOSE = 1e-9  # intervals come from floats, which differ in their last bits between machines


@dataclass(frozen=True, slots=True)
class Verification:
    """The levels that were checked and passed; if one fails, `verify` raises."""

    rules: bool
    signature: bool
    ledger: bool
    promise: str

    def __str__(self) -> str:
        return "\n".join(
            [
                f"rules      {'passed' if self.rules else 'not checked'}: {self.promise}",
                f"signature  {'valid for this key' if self.signature else 'not checked: no key was given'}",
                f"ledger     {'debit found' if self.ledger else 'not checked: no ledger was given'}",
            ]
        )


def verify(
    certificate: Certificate | str | bytes | Path,
    *,
    key: VerifyingKey | None = None,
    ledger: Ledger | str | Path | None = None,
    receipt: Receipt | str | None = None,
) -> Verification:
    """Check a certificate (itself, its text, or its file); raises `VerificationError` naming what failed.

    A batch whose privacy loss can't be computed here (extra `pld`) is `NotChecked`, after everything else has passed.

    A ledger that is named by its file or address is verified from its first entry; with a receipt, an older copy of it
    is not taken.

    Claim: a certificate whose derived fields were altered is rejected by the rules; any altered byte, by the signature.
    """
    if ledger is None and receipt is not None:
        line = write('pv.verify(certificate, ledger="people.ledger")', terminal="--ledger people.ledger")
        raise UserError("a receipt needs its ledger", remedy=line)
    return check(certificate, key=key, ledger=None if ledger is None else walked(ledger, receipt))


def check(
    certificate: Certificate | str | bytes | Path,
    *,
    key: VerifyingKey | None = None,
    ledger: AbstractContextManager[Ledger] | None = None,
) -> Verification:
    """The same with a ledger that is `walked`, perhaps once for many certificates."""
    loaded = _load(certificate)
    document = loaded.document
    if document.get("format") != FORMAT:
        raise VerificationError(f"format: this version checks {FORMAT!r}, not {str(document.get('format'))[:40]!r}")
    for name, kind in (("dataset", str), ("version", str), ("ledger", dict)):
        if not isinstance(document.get(name), kind):
            raise VerificationError(f"{name}: must be {'a string' if kind is str else 'an object'}")
    try:
        promise = {"query": _check_query, "value": _check_value, "choice": _check_choice}[document["kind"]](document)
    except (UserError, LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        raise VerificationError(f"the document is malformed: {str(error)[:200]}") from None
    if key is not None:
        _check_signature(loaded, verifier(key))
    if ledger is not None:
        try:
            with ledger as opened:
                _check_ledger(loaded, opened)
        except LedgerError as error:
            raise VerificationError(f"ledger: {error}") from None
    check_computed(document)
    return Verification(True, key is not None, ledger is not None, promise)


@contextmanager
def walked(ledger: Ledger | str | Path, receipt: Receipt | str | None = None) -> Iterator[Ledger]:
    """A ledger that is verified from its first entry, and contains the receipt's; closed again, if opened here."""
    with ExitStack() as stack:
        if isinstance(ledger, str | Path):
            ledger = stack.enter_context(closing(open_ledger(ledger, read_only=True)))
        ledger.verify(receipt, answers=False)
        yield ledger


def _load(certificate: Certificate | str | bytes | Path) -> Certificate:
    if isinstance(certificate, Certificate):
        return Certificate.from_json(certificate.to_json())
    if isinstance(certificate, Path) or (isinstance(certificate, str) and not certificate.lstrip().startswith("{")):
        try:
            certificate = Path(certificate).read_bytes()
        except (OSError, ValueError) as error:
            if isinstance(error, FileNotFoundError):
                why = "there is no such file"
            elif isinstance(error, IsADirectoryError):
                why = "it is a folder"
            else:
                why = getattr(error, "strerror", None) or "this is not a path"
            raise UserError(f"the certificate {shown(str(certificate))[:200]!r} can't be read: {why}") from None
    if not isinstance(certificate, str | bytes):
        raise UserError(
            "this needs a certificate, its text or its file", remedy=write("pv.verify(release.certificate)", exact=True)
        )
    return Certificate.from_json(certificate)


_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_HEAD = {"format", "version", "dataset", "ledger", "kind", "asked", "derived", "answer"}


def _check_query(document: dict[str, Any]) -> str:
    plan = planned_again(document)
    found = found_tree(plan)
    _same(sorted(document), sorted({*_HEAD, "noisy", *found}), "fields of the document")
    _same({name: document[name] for name in found}, plain(found), "found")
    _same(document["asked"], plain(asked(plan)), "asked")
    _same(document["derived"], plain(derived(plan)), "derived")
    noisy = document["noisy"]
    _same([len(part) for part in noisy], [plan.groups_of(part) for part in plan.noised], "noisy: number of groups")
    for i, (part, noised) in enumerate(zip(noisy, plan.noised, strict=True)):
        for vector in part:
            if len(vector) != noised.measurement.size or not all(type(x) is int and abs(x) < 2**900 for x in vector):
                raise VerificationError(f"noisy[{i}]: must be {noised.measurement.size} integers for each group")
    checker.check(document["derived"], noisy)
    _same(document["answer"], plain(answered(plan.cells(noisy))), "answer")
    return f"{plan.guarantee()}, for {plan.query}{_rows(plan.query.input)}{checked_batch(document)}"


def _rows(of: Operator) -> str:
    conditions = [show_node(each.condition) for each in steps(of) if isinstance(each, Where)]
    return f" where {' and '.join(conditions)}" if conditions else ""


def _check_value(document: dict[str, Any]) -> str:
    _same(sorted(document), sorted(_HEAD), "fields of the document")
    given = document["asked"]
    check_name(given["label"], "label")
    mechanism = described.from_tree(given["mechanism"])
    if not isinstance(mechanism, Adding):
        raise VerificationError("asked.mechanism: must be one that adds noise")
    level = given["stated_at"]
    at = None if level is None else nonnegative(level, name="stated_at")
    again = of_value(mechanism, document["answer"], given["label"], stated_at=at)
    _same(given, plain(again["asked"]), "asked")
    _same(document["derived"], plain(again["derived"]), "derived")
    _check_lattice(mechanism, document["answer"])
    return f"{mechanism.guarantee()}, if the sensitivity of {given['label']!r} is as stated"


def _check_lattice(mechanism: Adding, answer: Any) -> None:
    """A released value is a number or a list of them, each a multiple of the step (as far as floats tell)."""
    numbers = answer if isinstance(answer, list) else [answer]
    flat = list(_flat(numbers))
    most = _coordinates(mechanism, answer)
    if not flat or (most is not None and len(flat) > most):
        raise VerificationError("answer: must have as many numbers as were paid for")
    for number in flat:
        if type(number) not in (int, float):
            raise VerificationError(f"answer: {str(number)[:40]!r} is not a number")
        if (Exact(number) / mechanism.step).denominator != 1:
            raise VerificationError(f"answer: {number!r} is not a multiple of the step {ratio(mechanism.step)}")


def _coordinates(mechanism: Adding, answer: Any) -> int | None:
    """How many numbers a mechanism is for; None for any number of them."""
    if isinstance(mechanism, Staircase):
        return 1 if not isinstance(answer, list) else 0
    return mechanism.coordinates if isinstance(mechanism, Gaussian) else mechanism.dimension


def _flat(numbers: list[Any]) -> Iterator[Any]:
    for number in numbers:
        if isinstance(number, list):
            yield from _flat(number)
        else:
            yield number


def _check_choice(document: dict[str, Any]) -> str:
    _same(sorted(document), sorted(_HEAD), "fields of the document")
    given, answer = document["asked"], document["answer"]
    check_name(given["label"], "label")
    mechanism = described.from_tree(given["mechanism"])
    if isinstance(mechanism, Adding):
        raise VerificationError("asked.mechanism: must be one that chooses by scores")
    count, digest, position = given["count"], given["candidates"], answer["position"]
    again = of_choice(mechanism, position, given["label"], count=count, candidates=None)
    _same(given, plain(again["asked"]) | {"candidates": digest}, "asked")
    _same(document["derived"], plain(again["derived"]), "derived")
    _same(sorted(answer), ["candidate", "position"], "fields of the answer")
    if digest is not None and not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
        raise VerificationError("asked.candidates: must be a digest, or null")
    if type(count) is not int or count < 1:
        raise VerificationError("asked.count: must be a whole number, 1 or greater")
    none = position is None and isinstance(mechanism, AboveThreshold)
    if not none and not (type(position) is int and 0 <= position < count):
        raise VerificationError("answer.position: must be that of a candidate")
    if (none or digest is None) and answer["candidate"] is not None:
        raise VerificationError("answer.candidate: there is none")
    return f"{mechanism.guarantee()}, if the sensitivity of each score of {given['label']!r} is as stated"


def _check_signature(certificate: Certificate, key: Ed25519PublicKey) -> None:
    if certificate.signature is None:
        raise VerificationError("signature: it is missing")
    try:
        signature = bytes.fromhex(certificate.signature)
    except ValueError:
        signature = b""
    if certificate.signature != signature.hex() or not signs(key, signature, canonical(certificate.document).encode()):
        raise VerificationError("signature: it is not this key's signature of this document")


def _check_ledger(certificate: Certificate, ledger: Ledger) -> None:
    link, dataset = certificate.document["ledger"], certificate.document["dataset"]
    number = link.get("entry")
    try:
        entry, end = ledger.reservation(dataset, number if type(number) is int and 0 < number < 2**62 else 0)
    except UserError as error:
        raise VerificationError(f"ledger: it has no such entry: {error}") from None
    if (entry.request_id, entry.analyst, entry.hash) != (link.get("request_id"), link.get("analyst"), link.get("hash")):
        raise VerificationError("ledger: it has no such entry")
    batch, text = batch_of(certificate.document), certificate.to_json()
    if entry.events != (batch or events.from_tree(certificate.document["derived"]["event"]),):
        raise VerificationError("ledger: the entry paid for something else")
    if end is None or not (
        holds(ledger, dataset, entry.number, end.answer, text)
        if batch is not None
        else end.answer == hashlib.sha256(text.encode()).hexdigest()
    ):
        raise VerificationError("ledger: the entry has a different answer")


def _same(given: Any, expected: Any, path: str) -> None:
    """Compare two JSON trees; floats may differ in their last bits."""
    if isinstance(given, dict) and isinstance(expected, dict):
        for name in sorted({*given, *expected}, key=str):
            if name not in given:
                raise VerificationError(f"{path}.{name}: is missing")
            if name not in expected:
                raise VerificationError(f"{path}.{name}: is not expected")
            _same(given[name], expected[name], f"{path}.{name}")
    elif isinstance(given, list) and isinstance(expected, list) and len(given) == len(expected):
        for i, (a, b) in enumerate(zip(given, expected, strict=True)):
            _same(a, b, f"{path}[{i}]")
    elif type(given) is float and type(expected) is float:
        if not math.isclose(given, expected, rel_tol=_CLOSE, abs_tol=0.0):
            raise VerificationError(f"{path}: is {given!r}, but must be {expected!r} by the rules")
    elif type(given) is not type(expected) or given != expected:
        raise VerificationError(f"{path}: is {str(given)[:60]!r}, but must be {str(expected)[:60]!r} by the rules")
