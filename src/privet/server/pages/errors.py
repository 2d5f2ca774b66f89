"""What a browser sees when a page is refused or fails: the same words as the API's problem document, as a page."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from privet.errors import PrivetError
from privet.server.accounts import Identity
from privet.server.identity import identify
from privet.server.pages import problems
from privet.server.pages.frames import go, page
from privet.server.pages.problems import ProblemShown
from privet.server.pages.signing_in import return_to
from privet.server.problems import Refusal
from privet.server.state import Server

_HEADINGS = {
    400: "This request is not understood",
    401: "Sign in first",
    403: "Not allowed",
    404: "Not found",
    405: "Not found",
    413: "Too much was sent",
    429: "Too many questions at once",
    503: "Busy",
}


async def error_page(
    server: Server, request: Request, identity: Identity | None, error: Refusal | PrivetError | None
) -> Response:
    """The page that says what went wrong; None is a bug."""
    if identity is None and isinstance(error, Refusal) and error.status in (404, 405):
        identity = await identify(request, server.accounts, server.settings)
    if isinstance(error, Refusal):
        return refused_page(request, error, identity)
    return unexpected_page(identity) if error is None else failed_page(error, identity)


def refused_page(request: Request, refusal: Refusal, identity: Identity | None) -> Response:
    """The page of a refusal; who has not signed in is led to the sign-in."""
    if refusal.status == 401 and identity is None:
        return go(return_to(request))
    heading = _HEADINGS.get(refusal.status, "Something went wrong")
    response = _page(identity, refusal.status, heading, ProblemShown(f"{refusal.detail.rstrip('.')}."))
    for name, value in refusal.headers.items():
        response.headers[name] = value
    return response


def failed_page(error: PrivetError, identity: Identity | None) -> Response:
    """The page of an error; what is for the steward's log alone is not in it."""
    status = problems.status(error)
    response = _page(identity, status, problems.heading(error), problems.shown(error))
    if status == 503:
        response.headers["Retry-After"] = "1"
    return response


def unexpected_page(identity: Identity | None) -> Response:
    """The page of a bug."""
    return _page(
        identity, 500, "Something went wrong", ProblemShown("Something went wrong in the server. Nothing was released.")
    )


def _page(identity: Identity | None, status: int, heading: str, problem: ProblemShown) -> Response:
    back, words = ("/datasets", "To the datasets") if identity is not None else ("/sign-in", "Sign in")
    values: dict[str, Any] = {"code": status, "heading": heading, "problem": problem, "back": back, "back_words": words}
    return page(identity, "problem.html", active="", status=status, **values)
