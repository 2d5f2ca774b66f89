"""People: who has an account, in which role, and which datasets they may ask."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from privet.errors import Remedy, Subject
from privet.names.lookalikes import confusable, normalised
from privet.server.accounts.base import EVERYBODY, Base, find, label_of, person_of, scope_text
from privet.server.accounts.errors import AccountError
from privet.server.accounts.records import Person, Role
from privet.server.accounts.store import changed
from privet.server.accounts.tables import devices, invitations, people, sessions, tokens
from privet.server.accounts.tables import openid as openid_table

LONGEST_CLAIM = 255
"""Characters of a subject, and of another claim."""
TERMINAL = "cli:"
"""How the names of people at the command line begin in the ledger; no account has such a name."""


class People(Base):
    """The operations on people."""

    def add(
        self,
        name: str,
        role: Role = Role.ANALYST,
        datasets: Collection[str] | None = None,
        *,
        openid: str | None = None,
    ) -> Person:
        """Add a person, who can't sign in before they have set a password, or have signed in by `openid`.

        Refused with an AccountError: a name that is taken, that looks like another, or that is not printable.
        """
        with self._store.writing() as connection:
            self._add(connection, name, Role(role), datasets)
            if openid:
                self._await(connection, self._existing(connection, name), openid)
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
            rows = connection.execute(EVERYBODY).all()
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

    def set_access(
        self, name: str, role: Role, datasets: Collection[str] | None, *, openid: str | None = None
    ) -> Person:
        """Change what a person may do, from their next request on. The last steward stays a steward.

        A new `openid` replaces the old one: it ends the link to a person at the provider, their sessions, and a
        one-time link that was not used yet. An empty one only ends these.
        """
        with self._store.writing() as connection:
            row = self._existing(connection, name)
            if Role(role) is not Role.STEWARD:
                self._check_not_last(connection, row)
            if openid is not None:
                self._await(connection, row, openid)
            return self._changed(connection, row.name, role=Role(role), datasets=scope_text(datasets))

    def _await(self, connection: sa.Connection, row: Any, claim: str) -> None:
        """Let the person of this claim sign in to this account, and nobody else by OpenID Connect."""
        claim = claim_of(claim) if claim.strip() else ""
        if claim == (row.awaits or "") and (claim or not row.linked):
            return
        taken = connection.execute(sa.select(openid_table.c.name).where(openid_table.c.awaits == claim)).scalar()
        if claim and taken is not None:
            raise AccountError(f"{claim!r} is how {taken!r} signs in", subject=Subject("argument", "openid"))
        connection.execute(sa.delete(openid_table).where(openid_table.c.name == row.name))
        if row.linked or row.awaits:  # a link that was meant for somebody else
            connection.execute(sa.delete(invitations).where(invitations.c.name == row.name))
        if row.linked:
            connection.execute(sa.delete(sessions).where(sessions.c.name == row.name))
        if claim:
            new = sa.insert(openid_table).values(name=row.name, awaits=claim)
            changed(connection.execute(new), self._store)

    def _changed(self, connection: sa.Connection, name: str, **values: Any) -> Person:
        changed(connection.execute(sa.update(people).where(people.c.name == name).values(**values)), self._store)
        return person_of(self._existing(connection, name))

    def _check_not_last(self, connection: sa.Connection, row: Any) -> None:
        linked = people.c.name.in_(sa.select(openid_table.c.name).where(openid_table.c.subject.is_not(None)))
        able = (people.c.role == Role.STEWARD) & (people.c.disabled == 0) & (people.c.password.is_not(None) | linked)
        stewards = connection.execute(sa.select(people.c.name).where(able)).scalars().all()
        if [*stewards] == [row.name]:
            raise AccountError(
                f"{row.name!r} is the only steward who can sign in",
                subject=Subject("argument", "name"),
                remedy=Remedy("Add another steward first"),
            )


def claim_of(text: str) -> str:
    """What a provider calls somebody: printable, and for an e-mail address in lower case.

    Example:
        >>> claim_of(" Ana@Example.org "), claim_of("A-1")
        ('ana@example.org', 'A-1')
    """
    text = text.strip()
    if not text or len(text) > LONGEST_CLAIM or not text.isascii() or not text.isprintable():
        raise AccountError(
            "this can't be a name at a provider of OpenID Connect",
            allowed=f"It has 1 to {LONGEST_CLAIM} ASCII characters, such as ana@example.org",
            subject=Subject("argument", "openid"),
        )
    return text.lower() if "@" in text else text


def signs_in(openid: str | None) -> str:
    """How somebody signs in by OpenID Connect, in words for the ledger; empty if that stays as it is.

    Example:
        >>> signs_in("Ana@example.org"), signs_in(""), signs_in(None)
        (', signs in as ana@example.org by OpenID Connect', ', not by OpenID Connect', '')
    """
    if openid is None:
        return ""
    return f", signs in as {claim_of(openid)} by OpenID Connect" if openid.strip() else ", not by OpenID Connect"


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
