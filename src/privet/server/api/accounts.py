"""Accounts: who you are, and what stewards do to others' accounts."""

from __future__ import annotations

from starlette.responses import Response

from privet.errors import UserError
from privet.server import acts
from privet.server.account_json import person_tree, token_tree
from privet.server.accounts import Person, Role
from privet.server.authorization import NOT_FOUND
from privet.server.call import Call, in_thread, reply
from privet.server.models import ChangePerson
from privet.server.problems import Refusal


def welcome(call: Call, secret: str | None) -> str | None:
    """The one-time link to set a password."""
    return None if secret is None else f"{call.server.settings.origin}/welcome/{secret}"


async def me(call: Call) -> Response:
    """Who makes the request."""
    identity = call.me
    tree = {
        "name": call.name,
        "role": str(identity.role),
        "datasets": None if identity.datasets is None else sorted(identity.datasets),
        "token": None if identity.token is None else token_tree(identity.token),
        "csrf": identity.csrf or None,
    }
    return reply(tree)


async def people(call: Call) -> Response:
    """All accounts."""
    everybody = await in_thread(call.server.accounts.people)
    return reply({"people": [person_tree(person) for person in everybody]})


async def add_person(call: Call) -> Response:
    """Add an account."""
    body = call.body
    person, secret = await in_thread(
        acts.add_person, call.server, call.me, body.name, Role(body.role), body.datasets, body.openid
    )
    return reply({"person": person_tree(person), "invitation": welcome(call, secret)}, 201)


async def change_person(call: Call) -> Response:
    """Change an account."""
    person = await in_thread(call.server.accounts.person, call.path("name"))
    if person is None:
        raise Refusal(404, NOT_FOUND)
    changed, secret = await in_thread(_changed, call, person, call.body)
    return reply({"person": person_tree(changed), "invitation": welcome(call, secret)})


def _changed(call: Call, person: Person, change: ChangePerson) -> tuple[Person, str | None]:
    if change.all_datasets and change.datasets is not None:
        raise UserError("give either datasets or all_datasets")
    name, secret = person.name, None
    changes = (change.role, change.datasets, change.openid)
    if change.all_datasets or any(each is not None for each in changes):
        role = person.role if change.role is None else Role(change.role)
        datasets = None if change.all_datasets else person.datasets if change.datasets is None else change.datasets
        person = acts.set_access(call.server, call.me, name, role, datasets, change.openid)
    if change.disabled is not None and change.disabled != person.disabled:
        person = acts.set_disabled(call.server, call.me, name, change.disabled)
    if change.invite:
        secret = acts.invite(call.server, call.me, name)
    return person, secret
