"""Signing in and out, the one-time link that sets a password, and the confirmation of a program's login."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from privet.errors import PrivetError
from privet.server.accounts import AccountError, Throttled, WrongPassword
from privet.server.accounts.hashing import new_secret
from privet.server.accounts.passwords import SHORTEST
from privet.server.call import Call, in_thread
from privet.server.identity import cookie_name, drop_cookie, mark_name, set_cookie
from privet.server.limits import client_address
from privet.server.pages.frames import fields, first, go, segment, sentence, show
from privet.server.pages.sign_in_forms import (
    STALE,
    drop_form,
    elsewhere,
    give_form,
    safe,
    same_form,
    sign_in_form,
    ways_in,
)

NO_PASSWORDS = "Passwords are turned off on this server."


async def home(call: Call) -> Response:
    """The first page: the datasets, or the sign-in."""
    return go("/datasets" if call.identity is not None else "/sign-in")


async def sign_in_page(call: Call) -> Response:
    """The form to sign in."""
    target = safe(call.request.query_params.get("next", ""))
    if call.identity is not None:
        return go(target)
    return elsewhere(call, f"/sign-in?next={segment(target)}") or sign_in_form(call, target=target)


async def sign_in(call: Call) -> Response:
    """Sign in with a name and a password, and get a new session."""
    given = await fields(call.request)
    name, target = first(given, "name"), safe(first(given, "next"))
    if not same_form(call, first(given, "csrf")):
        return sign_in_form(call, target=target, name=name, problem=STALE, status=403)
    settings = call.server.settings
    if not settings.passwords:
        return sign_in_form(call, target=target, problem=NO_PASSWORDS, status=403)
    try:
        cookie, _ = await in_thread(
            call.server.accounts.sign_in,
            name,
            first(given, "password"),
            address=client_address(call.request, settings),
            mark=call.request.cookies.get(mark_name(settings)),
        )
    except (WrongPassword, Throttled) as error:
        status = 401 if isinstance(error, WrongPassword) else 429
        response = sign_in_form(call, target=target, name=name, problem=sentence(error), status=status)
        if isinstance(error, Throttled):
            response.headers["Retry-After"] = str(error.retry_after)
        return response
    response = go(target)
    set_cookie(response, settings, cookie)
    drop_form(response, settings)
    return response


async def sign_out(call: Call) -> Response:
    """End the session."""
    settings = call.server.settings
    await in_thread(call.server.accounts.sign_out, call.request.cookies.get(cookie_name(settings), ""))
    response = go("/sign-in")
    drop_cookie(response, settings)
    return response


async def welcome_page(call: Call) -> Response:
    """The page of a one-time link."""
    person = await in_thread(call.server.accounts.invited, call.path("secret"))
    if person is None:
        return sign_in_form(
            call, problem="This link was used already, or is too old. Ask a steward for a new one.", status=404
        )
    return elsewhere(call, call.request.url.path) or _welcome(call, person.name)


async def welcome(call: Call) -> Response:
    """Set the password of a one-time link, and sign in; if there are no passwords, only sign in, once."""
    given, accounts = await fields(call.request), call.server.accounts
    secret = call.path("secret")
    person = await in_thread(accounts.invited, secret)
    if person is None:
        return await welcome_page(call)
    if not same_form(call, first(given, "csrf")):
        return _welcome(call, person.name, problem=STALE, status=403)
    password = first(given, "password")
    if call.server.settings.passwords and password != first(given, "again"):
        return _welcome(call, person.name, problem="The two passwords differ.", status=422)
    try:
        if call.server.settings.passwords:
            await in_thread(accounts.accept, secret, password)
            cookie, _ = await in_thread(accounts.begin_session, person.name)
        else:
            cookie, _ = await in_thread(accounts.enter_by_link, secret)
    except AccountError as error:
        return _welcome(call, person.name, problem=sentence(error), status=422)
    response = go("/datasets")
    set_cookie(response, call.server.settings, cookie)
    drop_form(response, call.server.settings)
    return response


async def device_page(call: Call) -> Response:
    """Where a person types the code that a program shows, and sees what asks."""
    code = call.request.query_params.get("code", call.request.query_params.get("user_code", ""))[:40]
    return await _device(call, code)


async def device(call: Call) -> Response:
    """Let a program in, or refuse it."""
    given, accounts = await fields(call.request), call.server.accounts
    code, approve = first(given, "code")[:40], first(given, "act") == "approve"
    try:
        if approve:
            await in_thread(accounts.approve_device, code, call.me)
        else:
            await in_thread(accounts.deny_device, code, call.me)
    except (AccountError, Throttled) as error:
        return await _device(call, "", problem=error)
    return show(call, "device.html", done="approved" if approve else "denied", asking=None, code="")


async def _device(call: Call, code: str, *, problem: PrivetError | None = None) -> Response:
    asking = None
    if code:
        try:
            found = await in_thread(call.server.accounts.device, code, call.me)
        except (AccountError, Throttled) as error:
            found, problem = None, error
        if found is not None:
            asking = {"code": code.upper(), "label": found.label}
        elif problem is None:
            problem = AccountError("no program is waiting with this code. It may be mistyped or expired")
    status = 200 if problem is None else 429 if isinstance(problem, Throttled) else 422
    words = "" if problem is None else sentence(problem)
    return show(call, "device.html", done="", asking=asking, code=code, problem=words, status=status)


def _welcome(call: Call, name: str, *, problem: str = "", status: int = 200) -> Response:
    token = new_secret() if call.identity is None else call.identity.csrf
    here = f"/welcome/{segment(call.path('secret'))}"
    values = {"name": name, "csrf_token": token, "shortest": SHORTEST, "here": here, "problem": problem}
    response = show(call, "welcome.html", status=status, link=call.path("secret"), **values, **ways_in(call))
    give_form(response, call.server.settings, token)
    return response


def return_to(request: Request) -> str:
    """Where to go after signing in: the page that was asked for, or the first one after a form was sent."""
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return f"/sign-in?next={segment(safe(target))}" if request.method == "GET" and target != "/" else "/sign-in"
