"""What went wrong, as a problem document (RFC 9457).

An error before the debit follows from the question and the policy; one after it is always the same. Nothing of an
engine, a ledger's file or a traceback is in it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from privet.errors import (
    BudgetError,
    DatasetClosed,
    InternalError,
    LedgerBusy,
    LedgerError,
    NoAnswer,
    PrivetError,
    ReusedRequest,
    SourceError,
    UserError,
    VerificationError,
)
from privet.server.accounts.errors import NotLetIn, Throttled, WrongPassword

MEDIA = "application/problem+json"
RETRY = 1
"""Seconds after which a busy server may be asked again."""

STATUS: tuple[tuple[type[PrivetError], int], ...] = (
    (BudgetError, 402),
    (ReusedRequest, 409),
    (SourceError, 503),
    (UserError, 422),
    (VerificationError, 422),
    (WrongPassword, 401),
    (NotLetIn, 403),
    (Throttled, 429),
    (DatasetClosed, 503),
    (NoAnswer, 502),
    (LedgerBusy, 503),
    (LedgerError, 500),
    (InternalError, 500),
)
"""The status of each error; the first class that fits decides."""

_CONSTANT: tuple[tuple[type[PrivetError], str], ...] = (
    (SourceError, "The data can't be read. Nothing was spent. The steward can see why in the server's log."),
    (LedgerBusy, "The ledger is busy. Nothing was spent. Try again."),
    (LedgerError, "The ledger can't be used. Nothing is answered until the steward has fixed it."),
    (InternalError, "Something went wrong in the server. Nothing was released."),
)
"""What is said of errors whose own text is for the steward alone."""


class Refusal(Exception):
    """A request that is refused for what it is, before anybody looks at what it asks."""

    def __init__(self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **fields: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.fields = status, detail, dict(headers or {}), fields


def refused(refusal: Refusal) -> Response:
    """The problem document of a refusal."""
    return _document(
        {
            "type": "about:blank",
            "title": HTTPStatus(refusal.status).phrase,
            "status": refusal.status,
            "detail": refusal.detail,
            **refusal.fields,
        },
        refusal.headers,
    )


def failed(error: PrivetError) -> Response:
    """The problem document of an error, with its own fields."""
    status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
    fields = error.to_json("http")
    said = _said(error)
    if said is not None:
        fields |= {"message": said, "what": said, "allowed": "", "subject": None, "remedy": None}
        fields.pop("problems", None)
    kind = type(error).__name__
    headers: dict[str, str] = {}
    if isinstance(error, Throttled):
        headers["Retry-After"] = str(math.ceil(error.retry_after))
    elif isinstance(error, LedgerBusy):
        headers["Retry-After"] = str(RETRY)
    document = {
        "type": f"urn:privet:error:{kind}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": fields["message"],
        **fields,
    }
    return _document(document, headers)


def unexpected() -> Response:
    """The problem document of a bug."""
    return refused(Refusal(500, "Something went wrong in the server. Nothing was released."))


def is_constant(error: PrivetError) -> bool:
    """Whether the error's own text is not shown, so that the log must have it."""
    return _said(error) is not None


def _said(error: PrivetError) -> str | None:
    if isinstance(error, LedgerBusy) and error.subject is None:  # its text names no ledger, and says what was paid
        return None
    return next((text for kind, text in _CONSTANT if isinstance(error, kind)), None)


def _document(fields: Mapping[str, Any], headers: Mapping[str, str]) -> Response:
    body = json.dumps(fields, ensure_ascii=False, allow_nan=False, default=str)
    return Response(body, status_code=fields["status"], headers=dict(headers), media_type=MEDIA)
