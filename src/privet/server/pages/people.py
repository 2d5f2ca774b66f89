"""The steward's pages of accounts: people, what they may ask, one-time links, and tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from privet.errors import LedgerError, PrivetError
from privet.server import acts
from privet.server.accounts import Person, Role
from privet.server.authorization import NOT_FOUND
from privet.server.call import Call, in_thread
from privet.server.pages.account import created, token_shown
from privet.server.pages.frames import Secret, fields, first, listed, segment, sentence, show
from privet.server.pages.sign_in_forms import ways_in
from privet.server.problems import Refusal

_ONCE = "It works once and is shown only now: send it to them."


async def people_page(call: Call) -> Response:
    """Everybody with an account."""
    return await _people(call)


async def add_person_page(call: Call) -> Response:
    """Add a person, and show the link to set a password once."""
    given = await fields(call.request)
    name, role = first(given, "name").strip(), _role(given)
    try:
        person, secret = await in_thread(
            acts.add_person, call.server, call.me, name, role, _datasets(given), _openid(call, given)
        )
    except LedgerError:
        raise
    except PrivetError as error:
        return await _people(
            call,
            problem=sentence(error),
            given={
                "name": name,
                "role": role,
                "every": first(given, "every"),
                "datasets": given.get("dataset", []),
                "openid": first(given, "openid"),
            },
            status=422,
        )
    return await _people(call, shown=Secret(f"A link for {person.name}.", _ONCE, _link(call, secret)))


async def person_page(call: Call) -> Response:
    """One person: access, spending, a link, and the switch."""
    return await _person(call)


async def change_access(call: Call) -> Response:
    """Change what a person may ask."""
    given, name = await fields(call.request), call.path("name")
    role, datasets, openid = _role(given), _datasets(given), _openid(call, given)
    person = await in_thread(call.server.accounts.person, name)
    if person is not None and openid == (person.openid or ""):
        openid = None  # it stays as it is
    return await _done(call, lambda: acts.set_access(call.server, call.me, name, role, datasets, openid), "Saved.")


async def disable_person(call: Call) -> Response:
    """Disable an account: its sessions and tokens end at once."""
    name = call.path("name")
    words = f"{name} is disabled. Sessions and tokens have ended."
    return await _done(call, lambda: acts.set_disabled(call.server, call.me, name, True), words)


async def enable_person(call: Call) -> Response:
    """Enable an account again."""
    name = call.path("name")
    enable = lambda: acts.set_disabled(call.server, call.me, name, False)  # noqa: E731
    return await _done(call, enable, f"{name} can sign in again.")


async def invite_person(call: Call) -> Response:
    """A new one-time link to set a password."""
    name = call.path("name")
    await _existing(call)
    try:
        secret = await in_thread(acts.invite, call.server, call.me, name)
    except LedgerError:
        raise
    except PrivetError as error:
        return await _person(call, problem=sentence(error), status=422)
    return await _person(call, shown=Secret(f"A link for {name}.", _ONCE, _link(call, secret)))


async def all_tokens_page(call: Call) -> Response:
    """Everybody's tokens."""
    return await _tokens(call)


async def make_token_for(call: Call) -> Response:
    """Make a token for a person; its text is shown once."""
    given = await fields(call.request)
    try:
        text, token = await in_thread(created, call, first(given, "name"), given)
    except LedgerError:
        raise
    except PrivetError as error:
        return await _tokens(call, problem=sentence(error), status=422)
    words = "It is shown only now: copy it."
    return await _tokens(call, shown=Secret(f"The token {token.label!r} for {token.name}.", words, text))


async def revoke_any_token(call: Call) -> Response:
    """Revoke anybody's token, at once."""
    given = await fields(call.request)
    token = await in_thread(call.server.accounts.token, first(given, "id"))
    if token is None:
        return await _tokens(call, problem="There is no such token.", status=404)
    await in_thread(acts.revoke_token, call.server, call.me, token)
    return await _tokens(call, notice=f"The token {token.label!r} of {token.name} is revoked.")


# --- what is shown ----------------------------------------------------------------------------------


async def _people(call: Call, *, status: int = 200, **values: Any) -> Response:
    people = await in_thread(call.server.accounts.people)
    usual = {"people": [_shown(each) for each in people], "names": list(call.server.datasets)}
    given = {"given": {"name": "", "role": "", "every": "", "datasets": [], "openid": ""}, **ways_in(call)}
    return show(call, "steward/people.html", active="steward", status=status, **{**usual, **given, **values})


async def _person(call: Call, *, status: int = 200, **values: Any) -> Response:
    person = await _existing(call)
    spending = await in_thread(_spending, call, person.name)
    here = f"/steward/people/{segment(person.name)}"
    usual: dict[str, Any] = {
        "person": _shown(person),
        "names": list(call.server.datasets),
        "spending": spending,
        "here": here,
    }
    usual |= ways_in(call)
    return show(call, "steward/person.html", active="steward", status=status, **{**usual, **values})


async def _tokens(call: Call, *, status: int = 200, **values: Any) -> Response:
    accounts = call.server.accounts
    rows = [token_shown(each) for each in await in_thread(accounts.tokens)]
    people = [each.name for each in await in_thread(accounts.people) if not each.disabled]
    usual = {"tokens": rows, "people": people, "names": list(call.server.datasets)}
    return show(call, "steward/tokens.html", active="steward", status=status, **{**usual, **values})


async def _done(call: Call, act: Callable[[], object], notice: str) -> Response:
    await _existing(call)
    try:
        await in_thread(act)
    except LedgerError:
        raise
    except PrivetError as error:
        return await _person(call, problem=sentence(error), status=422)
    return await _person(call, notice=notice)


async def _existing(call: Call) -> Person:
    person = await in_thread(call.server.accounts.person, call.path("name"))
    if person is None:
        raise Refusal(404, NOT_FOUND)
    return person


def _shown(person: Person) -> dict[str, Any]:
    state, sign = ("disabled", "bad") if person.disabled else ("active", "good")
    if not person.disabled and not person.has_password and not person.linked:
        state, sign = "not signed in yet", "warn"
    return {
        "name": person.name,
        "role": str(person.role),
        "datasets": listed(person.datasets),
        "every": person.datasets is None,
        "of": person.datasets or frozenset(),
        "disabled": person.disabled,
        "openid": person.openid or "",
        "linked": person.linked,
        "state": state,
        "sign": sign,
    }


def _spending(call: Call, name: str) -> list[dict[str, str]]:
    rows = []
    for dataset, each in call.server.datasets.items():
        found = each.ledger.analysts(dataset).get(name)
        if found is not None:
            balance = each.ledger.balance(dataset)
            spent = str(balance.accountant.spent(found.spent, balance.budget))
            rows.append({"dataset": dataset, "spent": spent, "cap": "none" if found.cap is None else str(found.cap)})
    return rows


def _role(given: dict[str, list[str]]) -> Role:
    return Role.STEWARD if first(given, "role") == "steward" else Role.ANALYST


def _openid(call: Call, given: dict[str, list[str]]) -> str | None:
    """What the provider calls the person; None without a provider, whose field the form does not have."""
    return first(given, "openid").strip() if call.server.openid is not None and "openid" in given else None


def _datasets(given: dict[str, list[str]]) -> list[str] | None:
    return None if first(given, "every") == "1" else given.get("dataset", [])


def _link(call: Call, secret: str) -> str:
    return f"{call.server.settings.origin}/welcome/{secret}"
