"""One's own account: tokens for programs, and the password."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from privet.errors import LedgerError, PrivetError, UserError
from privet.exact import positive
from privet.exact import show as shown_number
from privet.server import acts
from privet.server.accounts import Role, Throttled, Token, WrongPassword
from privet.server.accounts.passwords import SHORTEST
from privet.server.call import Call, in_thread
from privet.server.identity import mark_name
from privet.server.limits import client_address
from privet.server.pages.frames import Secret, fields, first, listed, sentence, show, when
from privet.server.pages.problems import status as status_of


async def account_page(call: Call) -> Response:
    """One's tokens, and the form for another password."""
    return await _account(call)


async def make_token(call: Call) -> Response:
    """Make a token of one's own; its text is shown once."""
    given = await fields(call.request)
    try:
        text, token = await in_thread(created, call, call.name, given)
    except PrivetError as error:
        return await _refused(call, error)
    return await _account(call, shown=Secret(f"The token {token.label!r}.", "It is shown only now: copy it.", text))


async def revoke_own_token(call: Call) -> Response:
    """Revoke a token of one's own, at once."""
    given = await fields(call.request)
    token = await in_thread(call.server.accounts.token, first(given, "id"))
    if token is None or token.name != call.name:
        return await _account(call, problem="There is no such token.", status=404)
    await in_thread(acts.revoke_token, call.server, call.me, token)
    return await _account(call, notice=f"The token {token.label!r} is revoked.")


async def change_password(call: Call) -> Response:
    """Change one's own password; other sessions end."""
    given, accounts = await fields(call.request), call.server.accounts
    if not call.server.settings.passwords:
        return await _account(call, problem="Passwords are turned off on this server.", status=403)
    new = first(given, "password")
    if new != first(given, "again"):
        return await _account(call, problem="The two new passwords differ.", status=422)
    try:
        settings = call.server.settings
        address, mark = client_address(call.request, settings), call.request.cookies.get(mark_name(settings))
        await in_thread(accounts.check_password, call.name, first(given, "old"), address=address, mark=mark)
        await in_thread(accounts.set_password, call.name, new, keep=call.me.session)
    except WrongPassword:
        return await _account(call, problem="The present password is wrong.", status=422)
    except PrivetError as error:
        return await _refused(call, error)
    return await _account(call, notice="The password is changed. Other sessions have ended.")


async def _refused(call: Call, error: PrivetError) -> Response:
    """The page with what is wrong; an error of the store has a page of its own."""
    if isinstance(error, LedgerError):
        raise error
    response = await _account(call, problem=sentence(error), status=status_of(error))
    if isinstance(error, Throttled):
        response.headers["Retry-After"] = str(error.retry_after)
    return response


async def _account(call: Call, *, status: int = 200, **values: Any) -> Response:
    tokens = await in_thread(call.server.accounts.tokens, call.name)
    names = [name for name in call.server.datasets if call.me.may_ask(name)]
    rows = [token_shown(each) for each in tokens]
    access = f"may ask about {listed(call.me.datasets)}"
    values = {"tokens": rows, "names": names, "access": access, "shortest": SHORTEST, "of_everyone": False, **values}
    values["passwords"] = call.server.settings.passwords and call.me.person.has_password
    return show(call, "account.html", active="account", status=status, **values)


# --- shared with the steward's page of tokens -------------------------------------------------------


def token_shown(token: Token) -> dict[str, Any]:
    """A token for a page."""
    live = token.is_live(datetime.now(UTC))
    limit = "" if token.max_epsilon is None else f", at most epsilon {shown_number(token.max_epsilon)}"
    of = "all datasets of its owner" if token.datasets is None else listed(token.datasets)
    return {
        "id": token.id,
        "name": token.name,
        "label": token.label,
        "may": f"{token.role}, {of}{limit}",
        "spent": f"epsilon {shown_number(token.spent)}" if token.max_epsilon is not None else "not counted",
        "expires": when(token.expires),
        "last_used": "never" if token.last_used is None else when(token.last_used),
        "live": live,
        "state": "" if live else "revoked" if token.revoked is not None else "expired",
    }


def created(call: Call, name: str, given: dict[str, list[str]]) -> tuple[str, Token]:
    """A new token of a person, as a form describes it."""
    dataset, most, days = first(given, "dataset"), first(given, "max_epsilon").strip(), first(given, "days").strip()
    if not days.isdecimal() or not days.isascii() or len(days) > 5:
        raise UserError("the days must be a whole number", allowed="For example: 90")
    epsilon = positive(most[:100], name="the largest epsilon") if most else None
    return acts.create_token(
        call.server,
        call.me,
        name,
        first(given, "label"),
        role=Role.ANALYST,
        datasets=[dataset] if dataset else None,
        max_epsilon=epsilon,
        days=int(days),
    )
