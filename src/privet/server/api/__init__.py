"""The handlers of the API, by the names of their routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.responses import Response

from privet.server.api import accounts, datasets, devices, ledger, meta, questions, tokens
from privet.server.call import Call

Handler = Callable[[Call], Awaitable[Response]]

HANDLERS: Mapping[str, Handler] = {
    "datasets": datasets.datasets,
    "dataset": datasets.dataset,
    "budget": datasets.budget,
    "history": datasets.history,
    "parse": questions.parse,
    "explain": questions.explain,
    "explain_batch": questions.explain_batch,
    "query": questions.ask,
    "batch": questions.ask,
    "answer": questions.answer,
    "certificate": questions.certificate,
    "verify": questions.verify,
    "caps": ledger.caps,
    "reopen": ledger.reopen,
    "ledger_head": ledger.head,
    "ledger_verify": ledger.verify,
    "ledger_receipts": ledger.receipts,
    "me": accounts.me,
    "people": accounts.people,
    "add_person": accounts.add_person,
    "change_person": accounts.change_person,
    "tokens": tokens.tokens,
    "create_token": tokens.create_token,
    "revoke_token": tokens.revoke_token,
    "device_code": devices.code,
    "device_token": devices.token,
    "openapi": meta.openapi,
    "health": meta.health,
}
"""What answers each route."""
