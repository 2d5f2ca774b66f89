"""People: who has an account, in which role, and which datasets they may ask."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from privet.errors import Remedy, Subject
from privet.names.lookalikes import confusable, normalised
from privet.server.accounts.base import Base, find, label_of, person_of, scope_text
from privet.server.accounts.errors import AccountError
from privet.server.accounts.records import Person, Role
from privet.server.accounts.store import changed
from privet.server.accounts.tables import devices, invitations, people, sessions, tokens

TERMINAL = "cli:"
"""How the names of people at the command line begin in the ledger; no account has such a name."""


class People(Base):
    """The operations on people."""

    def add(self, name: str, role: Role = Role.ANALYST, datasets: Collection[str] | None = None) -> Person:
        """Add a person, who can't sign in before they have set a password.

        Refused with an AccountError: a name that is taken, that looks like another, or that is not printable.
        """
        with self._store.writing() as connection:
            self._add(connection, name, Role(role), datasets)
            return person_of(self._existing(connection, name))

    def check_new(self, name: str) -> str:
        """The name in its normal form; AccountError if nobody can be added with it."""
        with self._store.reading() as connection:
            return self._free(connection, name)

    def _free(self, connection: sa.Connection, name: str) -> str:
        name = _new_name(name)
        for other in connection.execute(sa.select(people.c.name)).scalars():
            if other == name or confusable(other, name):
                what = "is taken" if other == name else f"looks like {other!r}, which is taken"
                raise AccountError(
                    f"the name {name!r} {what}", subject=Subject("argument", "name"), remedy=Remedy("Choose another")
                )
        return name

    def _add(self, connection: sa.Connection, name: str, role: Role, datasets: Collection[str] | None) -> None:
        name = self._free(connection, name)
        row = {"name": name, "role": role, "datasets": scope_text(datasets), "disabled": 0, "created": self._now()}
        changed(connection.execute(sa.insert(people).values(row)), self._store)

    def person(self, name: str) -> Person | None:
        """The person with this name."""
        with self._store.reading() as connection:
            row = find(connection, normalised(name))
        return None if row is None else person_of(row)

    def people(self) -> list[Person]:
        """Everybody, sorted by name."""
        with self._store.reading() as connection:
            rows = connection.execute(sa.select(people)).all()
        return sorted(map(person_of, rows), key=lambda person: person.name)

    def disable(self, name: str, *, even_last: bool = False) -> Person:
        """Lock a person out: ends their sessions, links and device logins, and revokes their tokens, all at once.

        The last steward who can sign in is refused unless `even_last`: then only the command line can add another.
        """
        with self._store.writing() as connection:
            row = self._existing(connection, name)
            if not even_last:
                self._check_not_last(connection, row)
            for table in (sessions, invitations, devices):
                connection.execute(sa.delete(table).where(table.c.name == row.name))
            live = (tokens.c.name == row.name) & tokens.c.revoked.is_(None)
            connection.execute(sa.update(tokens).where(live).values(revoked=self._now()))
            return self._changed(connection, row.name, disabled=1)

    def enable(self, name: str) -> Person:
        """Let a person sign in again. Revoked tokens stay revoked."""
        with self._store.writing() as connection:
            return self._changed(connection, self._existing(connection, name).name, disabled=0)

    def set_access(self, name: str, role: Role, datasets: Collection[str] | None) -> Person:
        """Change what a person may do, from their next request on. The last steward stays a steward."""
        with self._store.writing() as connection:
            row = self._existing(connection, name)
            if Role(role) is not Role.STEWARD:
                self._check_not_last(connection, row)
            return self._changed(connection, row.name, role=Role(role), datasets=scope_text(datasets))

    def _changed(self, connection: sa.Connection, name: str, **values: Any) -> Person:
        changed(connection.execute(sa.update(people).where(people.c.name == name).values(**values)), self._store)
        return person_of(self._existing(connection, name))

    def _check_not_last(self, connection: sa.Connection, row: Any) -> None:
        able = (people.c.role == Role.STEWARD) & (people.c.disabled == 0) & people.c.password.is_not(None)
        stewards = connection.execute(sa.select(people.c.name).where(able)).scalars().all()
        if [*stewards] == [row.name]:
            raise AccountError(
                f"{row.name!r} is the only steward who can sign in",
                subject=Subject("argument", "name"),
                remedy=Remedy("Add another steward first"),
            )


def _new_name(name: str) -> str:
    """A name that an account may have, in its normal form."""
    name = label_of(normalised(name), "account")
    if name.casefold().startswith(TERMINAL) or {"/", "\\"} & {*name} or name in (".", ".."):
        raise AccountError(
            f"an account can't have the name {name!r}",
            allowed=f"A name has no slash, and does not begin with {TERMINAL!r}",
            subject=Subject("argument", "name"),
        )
    return name
