"""What stewards do to accounts. Each act is an entry of the ledger, with the steward's name."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from privet.errors import Subject, UserError
from privet.exact import Exact, show
from privet.server.accounts import AccountError, Identity, Person, Role, Token
from privet.server.accounts.people import signs_in
from privet.server.state import Server
from privet.tables.schema import check_name


def scope(datasets: Collection[str] | None) -> str:
    """Which datasets, in words."""
    return "every dataset" if datasets is None else ", ".join(sorted(datasets)) or "no dataset"


def checked(server: Server, datasets: Collection[str] | None) -> frozenset[str] | None:
    """The datasets, if the server has all of them."""
    unknown = sorted(set(datasets or ()) - set(server.datasets))
    if unknown:
        raise UserError(
            f"there is no dataset {unknown[0]!r}",
            allowed=f"The datasets are: {', '.join(server.datasets)}",
            subject=Subject("dataset", unknown[0]),
        )
    return None if datasets is None else frozenset(datasets)


def record(server: Server, by: Identity, note: str, datasets: Collection[str] | None = None) -> None:
    """Write an act into the ledger: for each of these datasets, or for all."""
    concerned = set(server.datasets) & set(datasets or ())
    server.ledger.administer(concerned or set(server.datasets), note, by=by.person.name)


def noted(
    server: Server, by: Identity, note: str, datasets: Collection[str] | None = None
) -> AbstractContextManager[None]:
    """A block with one act on accounts: if it is done, it is in the ledger, and if it is refused, it is not."""
    return server.accounts.noting(partial(record, server, by, note, datasets))


def add_person(
    server: Server,
    by: Identity,
    name: str,
    role: Role,
    datasets: Collection[str] | None,
    openid: str | None = None,
) -> tuple[Person, str]:
    """Add an account; returns it, and the one-time secret to set its password."""
    may_ask, openid = checked(server, datasets), openid or None
    note = f"account {check_name(name, 'name')}: added as {role} for {scope(may_ask)}{signs_in(openid)}"
    with noted(server, by, note, may_ask):
        person = server.accounts.add(name, role, may_ask, openid=openid)
    return person, server.accounts.invite(person.name)


def known(server: Server, name: str) -> Person:
    """An account; an error if there is none."""
    person = server.accounts.person(name)
    if person is None:
        raise AccountError(f"there is no account {name!r}")
    return person


def set_access(
    server: Server,
    by: Identity,
    name: str,
    role: Role,
    datasets: Collection[str] | None,
    openid: str | None = None,
) -> Person:
    """Change what somebody may do; and how they sign in by OpenID Connect, unless that is None."""
    person, may_ask = known(server, name), checked(server, datasets)
    concerned = None if may_ask is None or person.datasets is None else may_ask | person.datasets
    with noted(server, by, f"account {person.name}: now {role} for {scope(may_ask)}{signs_in(openid)}", concerned):
        return server.accounts.set_access(name, role, may_ask, openid=openid)


def set_disabled(server: Server, by: Identity, name: str, disabled: bool) -> Person:
    """Lock somebody out, or let them in again."""
    person = known(server, name)
    with noted(server, by, f"account {person.name}: {'disabled' if disabled else 'enabled'}", person.datasets):
        return server.accounts.disable(name) if disabled else server.accounts.enable(name)


def invite(server: Server, by: Identity, name: str) -> str:
    """A new one-time secret with which somebody can set a password."""
    person = known(server, name)
    with noted(server, by, f"account {person.name}: new link to set a password", person.datasets):
        return server.accounts.invite(name)


def create_token(
    server: Server,
    by: Identity,
    name: str,
    label: str,
    *,
    role: Role,
    datasets: Collection[str] | None,
    max_epsilon: Exact | None,
    days: int,
) -> tuple[str, Token]:
    """Make a token; a steward's, or one for somebody else, is an entry of the ledger."""
    may_ask, person = checked(server, datasets), known(server, name)
    limit = "" if max_epsilon is None else f", epsilon {show(max_epsilon)} at most"
    of = "all of the account's datasets" if may_ask is None else scope(may_ask)
    note = f"account {person.name}: new token for {of} as {role}{limit}"
    with noted(server, by, note, may_ask) if by.role is Role.STEWARD else nullcontext():
        return server.accounts.create_token(
            name, label, role=role, datasets=may_ask, max_epsilon=max_epsilon, days=days
        )


def revoke_token(server: Server, by: Identity, token: Token) -> Token:
    """Revoke a token; by a steward, it is an entry of the ledger. What is revoked already stays as it is."""
    if token.revoked is not None:
        return token
    note = f"account {token.name}: token {token.id} revoked"
    with noted(server, by, note, token.datasets) if by.role is Role.STEWARD else nullcontext():
        return server.accounts.revoke_token(token.id)
