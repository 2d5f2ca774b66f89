"""Questions: parse, explain, ask, and answers to earlier requests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from privet.codec import canonical
from privet.errors import LedgerError, UserError, VerificationError
from privet.ledger import Ledger
from privet.release.batch import ReleasedBatch
from privet.release.verification import check, walked
from privet.server import reading
from privet.server.accounts import Role
from privet.server.asking import Answered, Running
from privet.server.authorization import ADMITS, NOT_FOUND, Rule
from privet.server.call import Call, reply
from privet.server.problems import Refusal
from privet.server.routes import API

_RETRY = 1  # seconds after which to ask for an answer that is not there yet
_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*([0-9]{1,6})(?:$|[,;\s])", re.IGNORECASE)


async def parse(call: Call) -> Response:
    """What a SELECT asks."""
    session = call.server.asking.session(call.dataset, call.me)
    return reply(await call.server.asking.planned(call.me, reading.parse, session, call.body))


async def explain(call: Call) -> Response:
    """What a question would cost, and how accurate it would be."""
    session = call.server.asking.session(call.dataset, call.me)
    asking, explained = call.server.asking, reading.explain
    return reply(await asking.planned(call.me, explained, session, call.body, asking.plans, call.body.face))


async def explain_batch(call: Call) -> Response:
    """What a batch would cost, and how accurate it would be."""
    session = call.server.asking.session(call.dataset, call.me)
    tree = await call.server.asking.planned(call.me, reading.explain_batch, session, call.body)
    return await call.server.asking.written(call.me, reply, tree)


async def ask(call: Call) -> Response:
    """The answer to a question or a batch, or where to ask for it."""
    gone = asyncio.ensure_future(call.request.receive())  # the body is read, so this is the end of the connection
    try:
        outcome = await call.server.asking.ask(
            call.dataset, call.me, call.body, request_id=_key(call), wait=_wait(call), gone=gone
        )
    finally:
        gone.cancel()
    return await told(call, outcome)


async def answer(call: Call) -> Response:
    """The answer to an earlier request."""
    outcome = await call.server.asking.answer(call.dataset, call.me, call.path("request_id"), wait=_wait(call))
    if outcome is None:
        raise Refusal(404, NOT_FOUND)
    return await told(call, outcome)


async def told(call: Call, outcome: Answered | Running) -> Response:
    """An answer, or where it will be."""
    if isinstance(outcome, Running):
        where = f"{API}/datasets/{quote(call.dataset.name, safe='')}/answers/{quote(outcome.request_id, safe='')}"
        tree = {"request_id": outcome.request_id, "state": "running", "paid": True}
        tree |= {"location": where, "retry_after": _RETRY}
        return reply(tree, 202, Location=where, Retry_After=str(_RETRY))
    return await call.server.asking.written(call.me, _written, outcome)


def _written(outcome: Answered) -> Response:
    released = outcome.released
    if isinstance(released, ReleasedBatch):
        return reply(reading.batch_answer(released, outcome.request_id))
    return reply(reading.answer(released, outcome.request_id))


def _key(call: Call) -> str | None:
    keys = call.request.headers.getlist("idempotency-key")
    if len(keys) > 1:
        raise Refusal(422, "Send one Idempotency-Key")
    if not keys:
        return None
    key = keys[0].strip().removeprefix('"').removesuffix('"')
    if key in (".", "..") or {"/", "\\"} & {*key}:
        raise Refusal(422, "An Idempotency-Key has no slash, and is not . or ..: it is a part of the answer's address")
    return key


def _wait(call: Call) -> float | None:
    """Seconds that whoever asks prefers to wait (RFC 7240)."""
    preferred = ",".join(call.request.headers.getlist("prefer"))
    if "respond-async" in preferred.lower():
        return 0.0
    found = _WAIT.search(preferred)
    return None if found is None else float(found[1])


async def certificate(call: Call) -> Response:
    """The certificate of an answer."""
    text = call.path("entry")
    part = call.number("part", most=1000) or 0
    if not re.fullmatch(r"[1-9][0-9]{0,15}", text):
        raise Refusal(404, NOT_FOUND)
    found = await call.server.asking.planned(call.me, _certificates, call, int(text))
    if part >= len(found):
        raise Refusal(404, NOT_FOUND)
    return reply(found[part])


def _certificates(call: Call, number: int) -> list[Any]:
    if not _may_see(call, call.dataset.name, number):
        return []
    text = call.dataset.ledger.answer(call.dataset.name, number)
    return [] if text is None else reading.certificates(text)


def _may_see(call: Call, name: str, number: int) -> bool:
    """Whether an entry is a debit of this dataset that whoever asks may see: it is theirs, or they are a steward."""
    ledger = call.server.datasets[name].ledger
    try:
        entry, _ = ledger.reservation(name, number)
    except UserError:
        return False
    if call.me.role is Role.STEWARD or entry.analyst == call.name:
        return True
    return ledger.was_served(name, call.name, number)


async def verify(call: Call) -> Response:
    """What a check of a certificate found."""
    return reply(await call.server.asking.planned(call.me, _verified, call))


def _verified(call: Call) -> dict[str, Any]:
    certificate, receipt = call.body.certificate, call.body.receipt
    document = certificate.get("document")
    name = document.get("dataset") if isinstance(document, dict) else None
    if not isinstance(name, str) or name not in call.server.datasets or not call.me.may_ask(name):
        if receipt is not None:
            raise UserError("a receipt needs a certificate of a dataset that you may ask")
        return asdict(check(canonical(certificate)))
    ledger = call.server.datasets[name].ledger
    if ADMITS[Rule.STEWARD](call.me):
        trusted = nullcontext(ledger) if receipt is None else walked(ledger, receipt)
        return asdict(check(canonical(certificate), ledger=trusted))
    link = document.get("ledger") if isinstance(document, dict) else None
    number = link.get("entry") if isinstance(link, dict) else None
    own = type(number) is int and _may_see(call, name, number)
    broken: list[LedgerError] = []
    try:
        return asdict(check(canonical(certificate), ledger=_for_analysts(ledger, receipt, own, broken)))
    except VerificationError:
        if broken:
            raise broken[0] from None
        raise


@contextmanager
def _for_analysts(ledger: Ledger, receipt: str | None, own: bool, broken: list[LedgerError]) -> Iterator[Ledger]:
    """A ledger for a check that does not walk it, and that says of entries of others only that they do not match."""
    try:
        if receipt is not None and not ledger.contains(receipt):
            raise VerificationError("ledger: it does not contain the receipt's entry")
        yield ledger
    except VerificationError:
        if own:
            raise
        raise VerificationError("ledger: it has no such entry with this answer") from None
    except LedgerError as error:
        broken.append(error)
        raise
