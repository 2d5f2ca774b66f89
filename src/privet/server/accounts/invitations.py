"""One-time links with which a person sets their password: `/welcome/<secret>`."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from privet.errors import Remedy
from privet.server.accounts import hashing
from privet.server.accounts.base import find, person_of
from privet.server.accounts.errors import AccountError
from privet.server.accounts.logins import Logins
from privet.server.accounts.passwords import check_new
from privet.server.accounts.people import People
from privet.server.accounts.records import Person, Role
from privet.server.accounts.store import changed
from privet.server.accounts.tables import invitations, people, store

HOURS = 72


class Invitations(Logins, People):
    """The operations on one-time links."""

    def invite(self, name: str, *, hours: int = HOURS) -> str:
        """A one-time secret with which this person can set a password. It replaces an earlier one."""
        with self._store.writing() as connection:
            row = self._existing(connection, name)
            if row.disabled:
                raise AccountError(f"{name!r} is disabled", remedy=Remedy("Enable the account first"))
            return self._invite(connection, row.name, hours)

    def _invite(self, connection: sa.Connection, name: str, hours: int) -> str:
        secret = hashing.new_secret()
        connection.execute(sa.delete(invitations).where(invitations.c.name == name))
        row = {"name": name, "hash": hashing.digest(secret), "expires": self._now() + hours * 3600}
        changed(connection.execute(sa.insert(invitations).values(row)), self._store)
        return secret

    def first_steward(self, name: str = "steward", *, invite: bool = True) -> tuple[str, str] | None:
        """For a server's first start, until a steward has set a password: who must, and a one-time secret for it.

        The account is added if there is no steward. Without `invite` the secret is empty, and an earlier one is valid.
        Claim: a store in which a steward has ever had a password gives None, even if its people were removed.
        """
        with self._store.writing() as connection:
            if connection.execute(sa.select(store.c.started)).scalar():
                return None
            waiting = (people.c.role == Role.STEWARD) & (people.c.disabled == 0)
            names = sorted(connection.execute(sa.select(people.c.name).where(waiting)).scalars())
            if not names:
                self._add(connection, name, Role.STEWARD, None)
            first = name if name in names or not names else names[0]
            return first, self._invite(connection, first, HOURS) if invite else ""

    def invited(self, secret: str) -> Person | None:
        """Whose link this is; None if it is wrong, used or expired."""
        with self._store.reading() as connection:
            row = self._invited(connection, secret)
        return None if row is None else person_of(row)

    def _invited(self, connection: sa.Connection, secret: str) -> Any:
        return self._invited_by(connection, hashing.digest(secret))

    def _invited_by(self, connection: sa.Connection, digest: str) -> Any:
        live = (invitations.c.hash == digest) & (invitations.c.expires > self._now())
        name = connection.execute(sa.select(invitations.c.name).where(live)).scalar()
        row = None if name is None else find(connection, name)
        return None if row is None or row.disabled else row

    def accept(self, secret: str, password: str) -> Person:
        """Set the password and use up the link; AccountError if the link is wrong, used or expired.

        A password that is refused does not use up the link. Exactly one of several racing calls succeeds.
        """
        person = self.invited(secret)
        if person is None:
            raise useless()
        check_new(person.name, password)
        hashed = self._passwords.hashed(password)
        with self._store.writing() as connection:
            row = self._invited(connection, secret)
            if row is None:
                raise useless()
            self._set_password(connection, row, hashed)
            return person_of(self._existing(connection, row.name))


def useless() -> AccountError:
    """The error for a link that opens nothing."""
    return AccountError(
        "this link is wrong, was used already or has expired", remedy=Remedy("Ask a steward for a new one")
    )
