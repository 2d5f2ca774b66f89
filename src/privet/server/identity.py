"""Who makes a request: the bearer of a token, or the browser with a session's cookie."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from privet.server.accounts import Accounts, Identity
from privet.server.accounts.logins import REMEMBERED, browser_mark
from privet.server.call import in_thread
from privet.server.problems import Refusal
from privet.server.settings import Settings

CSRF_HEADER, CSRF_FIELD = "x-csrf-token", "csrf"
"""Where a browser sends the CSRF token back: with a script, or in a form."""
_LONGEST = 4096  # characters of a token or of a cookie
_OTHER_SITE = "This request came from another site"


def cookie_name(settings: Settings) -> str:
    """The name of the session's cookie; behind TLS, browsers accept it only from this host, and by TLS."""
    return "__Host-privet" if settings.secure else "privet"


def mark_name(settings: Settings) -> str:
    """The name of the cookie by which a browser is known at sign-in; it opens nothing, and outlasts the session."""
    return "__Host-privet-browser" if settings.secure else "privet-browser"


def set_cookie(response: Response, settings: Settings, value: str) -> None:
    """Give the browser a session, and a mark by which it is known at the next sign-in."""
    response.set_cookie(cookie_name(settings), value, path="/", secure=settings.secure, httponly=True, samesite="lax")
    response.set_cookie(
        mark_name(settings),
        browser_mark(value),
        max_age=REMEMBERED,
        path="/",
        secure=settings.secure,
        httponly=True,
        samesite="strict",
    )


def drop_cookie(response: Response, settings: Settings) -> None:
    """Take the session's cookie from the browser."""
    response.delete_cookie(cookie_name(settings), path="/", secure=settings.secure, httponly=True, samesite="lax")


async def identify(request: Request, accounts: Accounts, settings: Settings) -> Identity | None:
    """Who makes the request; None for nobody. A wrong token is refused, whatever cookie comes with it."""
    sent = request.headers.getlist("authorization")
    if sent:
        kind, _, text = sent[0].partition(" ")
        identity = None
        if len(sent) == 1 and kind.lower() == "bearer" and 0 < len(text) <= _LONGEST:
            identity = await in_thread(accounts.bearer, text.strip())
        if identity is None:
            raise Refusal(
                401,
                "The token is wrong, expired or revoked",
                headers={"WWW-Authenticate": 'Bearer realm="privet", error="invalid_token"'},
            )
        return identity
    cookie = request.cookies.get(cookie_name(settings), "")
    if not cookie or len(cookie) > _LONGEST:
        return None
    return await in_thread(accounts.session, cookie)


def check_origin(request: Request, settings: Settings) -> None:
    """Refuse a request that a page of another site makes a browser send."""
    origins = request.headers.getlist("origin")
    if any(origin not in settings.origins for origin in origins):
        raise Refusal(403, _OTHER_SITE)
    if any(site not in ("same-origin", "none") for site in request.headers.getlist("sec-fetch-site")):
        raise Refusal(403, _OTHER_SITE)


async def check_csrf(request: Request, identity: Identity, accounts: Accounts) -> None:
    """Refuse a request with a session's cookie that does not send the session's CSRF token back."""
    value = request.headers.get(CSRF_HEADER, "")
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not value and media == "application/x-www-form-urlencoded":
        await request.body()  # kept, so that it can be read again
        form = await request.form(max_files=0, max_fields=1000)
        field = form.get(CSRF_FIELD)
        value = field if isinstance(field, str) else ""
    if not accounts.csrf_ok(identity, value):
        raise Refusal(403, "The form is out of date. Load the page again")
