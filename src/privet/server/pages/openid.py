"""Signing in by OpenID Connect: the button that leads to the provider, and the way back.

The browser leaves by a page of its own, not by a redirect: browsers apply `form-action` of the Content-Security-Policy
to every redirect after a form, also to those among the sites of a provider. So the policy stays as strict as it is.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from starlette.responses import Response

from privet.server.accounts import NotLetIn, Throttled
from privet.server.accounts.hashing import new_secret
from privet.server.accounts.openid import LIFETIME
from privet.server.authorization import NOT_FOUND
from privet.server.call import Call, in_thread
from privet.server.identity import cookie_name, mark_name, set_cookie
from privet.server.limits import client_address
from privet.server.openid import Flow, Provider, ProviderError
from privet.server.pages.frames import fields, first, go, sentence, show
from privet.server.pages.sign_in_forms import STALE, drop_form, safe, same_form, sign_in_form
from privet.server.problems import Refusal
from privet.server.settings import Settings

_SECRET = re.compile(r"[0-9a-f]{64}")
_OVER = "This sign-in is too old, or began in another browser. Try again."


async def openid_begin(call: Call) -> Response:
    """Begin to sign in by OpenID Connect: the browser leaves for the provider."""
    provider, settings = _provider(call), call.server.settings
    given = await fields(call.request)
    target, link = safe(first(given, "next")), first(given, "link") or None
    if not same_form(call, first(given, "csrf")):
        return sign_in_form(call, target=target, problem=STALE, status=403)
    if call.identity is not None and link is None:
        return go(target)
    secret = new_secret()
    begin = {"address": client_address(call.request, settings), "target": target, "link": link}
    mark = call.request.cookies.get(mark_name(settings))
    try:
        where = await Flow(provider, settings.origin, secret).leave()
        await in_thread(call.server.accounts.begin_openid, secret, mark=mark, **begin)
    except ProviderError as error:
        call.server.log.kept_out(call.route.name, error.reason)
        return sign_in_form(call, target=target, problem=_failed(provider), status=503)
    except Throttled as error:
        return _throttled(call, target, error)
    name, host = provider.settings.name, urlsplit(where).hostname
    response = show(call, "leaving.html", where=where, provider=name, host=host)
    response.set_cookie(
        _cookie(settings),
        secret,
        max_age=LIFETIME,
        path="/",
        secure=settings.secure,
        httponly=True,
        samesite="lax",  # the way back begins at the provider's site
    )
    return response


async def openid_callback(call: Call) -> Response:
    """Come back from the provider, and get a new session."""
    provider, settings = _provider(call), call.server.settings
    query, secret = call.request.query_params, call.request.cookies.get(_cookie(settings), "")
    flow = Flow(provider, settings.origin, secret)
    once = len(query.multi_items()) == len(query)
    if not once or not _SECRET.fullmatch(secret) or not flow.is_mine(query.get("state", "")):
        return sign_in_form(call, problem=_OVER, status=403)  # perhaps of another site: what has begun goes on
    response = await _arrived(call, flow)
    response.delete_cookie(_cookie(settings), path="/", secure=settings.secure, httponly=True, samesite="lax")
    return response


async def _arrived(call: Call, flow: Flow) -> Response:
    server, settings = call.server, call.server.settings
    begun = await in_thread(server.accounts.complete_openid, flow.secret)
    if begun is None:
        return sign_in_form(call, problem=_OVER, status=403)
    try:
        named = await flow.arrive(call.request.query_params)
        cookie, _ = await in_thread(server.accounts.enter, begun, named.issuer, named.subject, named.claim)
    except ProviderError as error:
        server.log.kept_out(call.route.name, error.reason)
        return sign_in_form(call, target=begun.target, problem=_failed(flow.provider), status=403)
    except NotLetIn as error:
        server.log.kept_out(call.route.name, error.reason)
        return sign_in_form(call, target=begun.target, problem=sentence(error), status=403)
    except Throttled as error:
        return _throttled(call, begun.target, error)
    if call.identity is not None:  # somebody else was signed in here, or the same person
        await in_thread(server.accounts.sign_out, call.request.cookies.get(cookie_name(settings), ""))
    response = go(safe(begun.target))
    set_cookie(response, settings, cookie)
    drop_form(response, settings)
    return response


def _provider(call: Call) -> Provider:
    if call.server.openid is None:
        raise Refusal(404, NOT_FOUND)
    return call.server.openid


def _throttled(call: Call, target: str, error: Throttled) -> Response:
    response = sign_in_form(call, target=target, problem=sentence(error), status=429)
    response.headers["Retry-After"] = str(error.retry_after)
    return response


def _failed(provider: Provider) -> str:
    return f"{provider.settings.name} can’t be reached, or did not confirm who you are. Try again, or ask a steward."


def _cookie(settings: Settings) -> str:
    return "__Host-privet-openid" if settings.secure else "privet-openid"
