"""Forms before there is a session: each carries the value of a cookie of its own.

So no other site can sign a browser in.
"""

from __future__ import annotations

import hmac
import re
from urllib.parse import urlsplit

from starlette.responses import Response

from privet.policy.openid_shape import is_loopback
from privet.server.accounts.hashing import new_secret
from privet.server.call import Call
from privet.server.pages.frames import go, show
from privet.server.settings import Settings

STALE = "The form is out of date. Try again."
LONGEST = 4000
"""Characters of an address of this server."""
_VALUE = re.compile(r"[0-9a-f]{64}")


def sign_in_form(
    call: Call, *, target: str = "/datasets", name: str = "", problem: str = "", status: int = 200
) -> Response:
    """The page on which somebody signs in."""
    token = new_secret()
    values = {"csrf_token": token, "next": target, "name": name, "problem": problem, **ways_in(call)}
    response = show(call, "sign_in.html", status=status, **values)
    give_form(response, call.server.settings, token)
    return response


def ways_in(call: Call) -> dict[str, object]:
    """How people can sign in, for a template."""
    settings = call.server.settings
    openid = settings.openid
    name, claim = ("", "") if openid is None else (openid.name, openid.claim)
    return {"passwords": settings.passwords, "provider": name, "claim": claim}


def elsewhere(call: Call, path: str) -> Response | None:
    """The same page at the server's own address, to which a provider sends the browser back; None if it is there.

    Only on one machine, which has several names for itself; elsewhere a proxy may change the header Host.
    """
    settings = call.server.settings
    here = urlsplit(settings.origin)
    known = call.request.headers.get("host", "").lower() == here.netloc or not is_loopback(here.hostname or "")
    return None if settings.openid is None or known else go(f"{settings.origin}{path}")


def _form_cookie(settings: Settings) -> str:
    return "__Host-privet-form" if settings.secure else "privet-form"


def give_form(response: Response, settings: Settings, token: str) -> None:
    """Give the browser the value of a form."""
    name = _form_cookie(settings)
    response.set_cookie(name, token, path="/", secure=settings.secure, httponly=True, samesite="strict")


def drop_form(response: Response, settings: Settings) -> None:
    """Take the value from the browser."""
    name = _form_cookie(settings)
    response.delete_cookie(name, path="/", secure=settings.secure, httponly=True, samesite="strict")


def same_form(call: Call, value: str) -> bool:
    """Whether a form came from a page of this browser."""
    if call.identity is not None:  # the form carries the value of the session, which is checked already
        return True
    cookie = call.request.cookies.get(_form_cookie(call.server.settings), "")
    return bool(_VALUE.fullmatch(cookie)) and hmac.compare_digest(cookie.encode(), value.encode())


def safe(target: str) -> str:
    r"""A page of this server; anything else becomes the first page, so that no link can lead away.

    Example:
        >>> safe("/datasets/a?sql=b"), safe("//evil.example"), safe("https://evil.example"), safe("/\\\\evil")
        ('/datasets/a?sql=b', '/datasets', '/datasets', '/datasets')
    """
    parts = urlsplit(target) if target.isprintable() and "\\" not in target else urlsplit("")
    inside = target.startswith("/") and not target.startswith("//") and not parts.scheme and not parts.netloc
    return target if inside and parts.path and len(target) <= LONGEST else "/datasets"
