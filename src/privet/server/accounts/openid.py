"""Signing in by OpenID Connect: which account belongs to whom at the provider, and sign-ins that have begun.

Claim: an account is entered by OpenID Connect only if a steward said by which claim, or gave its owner a one-time link.
The first sign-in binds the account to the issuer and its subject; from then on nobody else is let in, whatever their
e-mail address. A sign-in that has begun can be completed once, within `LIFETIME` seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from privet.server.accounts import hashing, throttle
from privet.server.accounts.base import find
from privet.server.accounts.errors import AccountError, NotLetIn
from privet.server.accounts.invitations import Invitations, useless
from privet.server.accounts.logins import known_browser
from privet.server.accounts.people import LONGEST_CLAIM, claim_of
from privet.server.accounts.records import Identity, Role
from privet.server.accounts.store import changed, make_room
from privet.server.accounts.tables import invitations, openid, openid_logins, sessions, store

LIFETIME = 600
"""Seconds in which a sign-in must be completed."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A sign-in that has begun, and now can't be completed again."""

    target: str
    """The page to go to."""
    invitation: str | None
    """The hash of the one-time link with which it began."""
    charged: str


class OpenID(Invitations):
    """The operations of OpenID Connect."""

    def begin_openid(
        self, secret: str, *, address: str, target: str, link: str | None = None, mark: str | None = None
    ) -> None:
        """Remember that the browser with this secret begins to sign in; Throttled after too many from an address.

        A browser that sends the `mark` of an earlier session has an allowance of its own.
        """
        now = self._now()
        with self._store.writing() as connection:
            browser = known_browser(connection, mark or "")
            where = throttle.network(address) if browser is None else f"browser {browser}"
            charged = self._key("openid", where)
            throttle.charge(connection, self._clock(), [(charged, throttle.BY_OPENID)])
            make_room(connection, openid_logins, now)
            row = {
                "hash": hashing.digest(secret),
                "expires": now + LIFETIME,
                "target": target,
                "invitation": None if link is None else hashing.digest(link),
                "charged": charged,
            }
            changed(connection.execute(sa.insert(openid_logins).values(row)), self._store)

    def complete_openid(self, secret: str) -> Begun | None:
        """The sign-in that began with this secret, once; None if there is none, or it is too old."""
        mine = openid_logins.c.hash == hashing.digest(secret)
        with self._store.writing() as connection:
            row = connection.execute(sa.select(openid_logins).where(mine)).one_or_none()
            if row is None:
                return None
            changed(connection.execute(sa.delete(openid_logins).where(mine)), self._store)
        return Begun(row.target, row.invitation, row.charged) if self._now() < row.expires else None

    def enter(self, begun: Begun, issuer: str, subject: str, claim: str | None) -> tuple[str, Identity]:
        """Begin a session for whom the provider names; NotLetIn if that is nobody here, or somebody who is disabled.

        `claim` is what the provider calls them, if it can be relied on. Each sign-in makes a session, so there are only
        so many of one person, as with a right password; then Throttled.
        """
        if not subject or len(subject) > LONGEST_CLAIM or not subject.isprintable() or not subject.isascii():
            raise NotLetIn("subject")
        with self._store.writing() as connection:
            person = self._invitee(connection, begun, issuer, subject)
            if person is None:
                person = self._bound(connection, issuer, subject) or self._awaited(connection, issuer, subject, claim)
            if person is None or person.disabled:
                raise NotLetIn("unknown" if person is None else "disabled")
            self._charge_right(connection, person.name)
            throttle.refund(connection, [(begun.charged, throttle.BY_OPENID)])
            return self._started(connection, person)

    def enter_by_link(self, secret: str) -> tuple[str, Identity]:
        """Use up a one-time link to begin a session without a password; AccountError if it is used or expired."""
        with self._store.writing() as connection:
            row = self._invited(connection, secret)
            if row is None:
                raise useless()
            connection.execute(sa.delete(invitations).where(invitations.c.name == row.name))
            return self._started(connection, row)

    def _started(self, connection: sa.Connection, person: Any) -> tuple[str, Identity]:
        if person.role == Role.STEWARD:
            connection.execute(sa.update(store).values(started=1))
        return self._begin(connection, person)

    def _bound(self, connection: sa.Connection, issuer: str, subject: str) -> Any:
        """The account that belongs to this person at the provider."""
        mine = (openid.c.issuer == issuer) & (openid.c.subject == subject)
        name = connection.execute(sa.select(openid.c.name).where(mine)).scalar()
        return None if name is None else find(connection, name)

    def _awaited(self, connection: sa.Connection, issuer: str, subject: str, claim: str | None) -> Any:
        """The account that waits for this claim, as it is written; from now on it is bound to this person."""
        if claim is None or claim != claim.strip():
            return None
        try:
            awaits = openid.c.awaits == claim_of(claim)
        except AccountError:
            return None
        row = connection.execute(sa.select(openid).where(awaits)).one_or_none()
        if row is None:
            return None
        if row.subject is not None:  # another person, who has or had the same e-mail address
            raise NotLetIn("bound to another subject")
        person = find(connection, row.name)
        if person is not None and not person.disabled:
            bound = sa.update(openid).where(openid.c.name == row.name).values(issuer=issuer, subject=subject)
            changed(connection.execute(bound), self._store)
        return person

    def _invitee(self, connection: sa.Connection, begun: Begun, issuer: str, subject: str) -> Any:
        """The owner of the one-time link with which the sign-in began, now bound; None if it began without one."""
        if begun.invitation is None:
            return None
        row = self._invited_by(connection, begun.invitation)
        if row is None:
            raise NotLetIn("link")
        other = self._bound(connection, issuer, subject)
        if other is not None and other.name != row.name:
            raise NotLetIn("bound to another account")
        connection.execute(sa.delete(openid).where(openid.c.name == row.name))
        bound = sa.insert(openid).values(name=row.name, awaits=row.awaits, issuer=issuer, subject=subject)
        changed(connection.execute(bound), self._store)
        connection.execute(sa.delete(invitations).where(invitations.c.name == row.name))
        connection.execute(sa.delete(sessions).where(sessions.c.name == row.name))
        return row
