"""What all operations on accounts share: the store, the clock, and how rows become records."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from privet.errors import Subject, UserError
from privet.exact import Exact
from privet.names.lookalikes import normalised
from privet.server.accounts.errors import AccountError
from privet.server.accounts.passwords import Passwords
from privet.server.accounts.records import Person, Role, Token
from privet.server.accounts.store import Store
from privet.server.accounts.tables import openid, people
from privet.tables.schema import check_name

EVERYBODY = sa.select(
    people, openid.c.awaits, sa.case((openid.c.subject.is_not(None), 1), else_=0).label("linked")
).outerjoin(openid, openid.c.name == people.c.name)
"""The rows of people, with how they sign in."""
_BY_NAME = EVERYBODY.where(people.c.name == sa.bindparam("n"))


class Base:
    """The store, the clock and the passwords of accounts."""

    def __init__(self, store: Store, passwords: Passwords, clock: Callable[[], float] = time.time) -> None:
        self._store, self._passwords, self._clock = store, passwords, clock

    def __repr__(self) -> str:
        return f"Accounts({self._store.where})"

    def _now(self) -> int:
        return int(self._clock())

    def _existing(self, connection: sa.Connection, name: str) -> Any:
        """The row of a person, however the spaces in the name are written; AccountError if there is none."""
        row = find(connection, normalised(name))
        if row is None:
            raise no_such_person(name)
        return row


def find(connection: sa.Connection, name: str) -> Any:
    """The row of a person, or None."""
    if "\0" in name or not name.isprintable():  # Postgres stores no such text
        return None
    return connection.execute(_BY_NAME, {"n": name}).one_or_none()


def no_such_person(name: str) -> AccountError:
    """The error for a name that nobody has."""
    return AccountError(f"nobody has the name {name[:120]!r}", subject=Subject("argument", "name"))


def label_of(text: object, what: str) -> str:
    """A printable text of 1 to 120 characters."""
    try:
        return check_name(text, what)
    except UserError as error:
        raise AccountError(error.what) from None


def moment(seconds: int) -> datetime:
    """A stored time."""
    return datetime.fromtimestamp(seconds, UTC)


def person_of(row: Any) -> Person:
    """A person, as stored."""
    return Person(
        name=row.name,
        role=Role(row.role),
        datasets=scope_of(row.datasets),
        disabled=bool(row.disabled),
        has_password=row.password is not None,
        created=moment(row.created),
        openid=row.awaits,
        linked=bool(row.linked),
    )


def token_of(row: Any) -> Token:
    """A token, as stored."""
    return Token(
        id=row.id,
        name=row.name,
        label=row.label,
        role=Role(row.role),
        datasets=scope_of(row.datasets),
        max_epsilon=None if row.max_epsilon is None else Exact(row.max_epsilon),
        spent=Exact(row.spent),
        created=moment(row.created),
        expires=moment(row.expires),
        revoked=None if row.revoked is None else moment(row.revoked),
        last_used=None if row.used is None else moment(row.used),
    )


def scope_of(text: str | None) -> frozenset[str] | None:
    """Datasets, as stored."""
    return None if text is None else frozenset(json.loads(text))


def scope_text(datasets: Collection[str] | None) -> str | None:
    """Datasets, to be stored.

    Example:
        >>> scope_text({"b", "a"}), scope_text(None)
        ('["a", "b"]', None)
    """
    if datasets is None:
        return None
    if isinstance(datasets, str):
        raise AccountError("datasets must be a list of names, not one text")
    return json.dumps(sorted({label_of(name, "dataset") for name in datasets}))
