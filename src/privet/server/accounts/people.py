"""People: who has an account, in which role, and which datasets they may ask."""

from __future__ import annotations

from collections.abc import Collection

from privet.server.accounts.base import Base
from privet.server.accounts.records import Person, Role


class People(Base):
    """The operations on people."""

    def add(self, name: str, role: Role = Role.ANALYST, datasets: Collection[str] | None = None) -> Person:
        """Add a person, who can't sign in before they have set a password.

        Refused with an AccountError: a name that is taken, that looks like another, or that is not printable.
        """
        raise NotImplementedError

    def person(self, name: str) -> Person | None:
        """The person with this name."""
        raise NotImplementedError

    def people(self) -> list[Person]:
        """Everybody, sorted by name."""
        raise NotImplementedError

    def disable(self, name: str) -> Person:
        """Lock a person out: ends their sessions, links and device logins, and revokes their tokens, all at once.

        The last steward who can sign in can't be disabled.
        """
        raise NotImplementedError

    def enable(self, name: str) -> Person:
        """Let a person sign in again. Revoked tokens stay revoked."""
        raise NotImplementedError

    def set_access(self, name: str, role: Role, datasets: Collection[str] | None) -> Person:
        """Change what a person may do, from their next request on."""
        raise NotImplementedError
