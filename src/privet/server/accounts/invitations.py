"""One-time links with which a person sets their password: `/welcome/<secret>`."""

from __future__ import annotations

from privet.server.accounts.base import Base
from privet.server.accounts.records import Person


class Invitations(Base):
    """The operations on one-time links."""

    def invite(self, name: str, *, hours: int = 72) -> str:
        """A one-time secret with which this person can set a password. It replaces an earlier one."""
        raise NotImplementedError

    def first_steward(self, name: str = "steward") -> str | None:
        """The one-time secret for a server's first start, while no steward has a password; otherwise None."""
        raise NotImplementedError

    def invited(self, secret: str) -> Person | None:
        """Whose link this is; None if it is wrong, used or expired."""
        raise NotImplementedError

    def accept(self, secret: str, password: str) -> Person:
        """Set the password and use up the link; AccountError if the link is wrong, used or expired.

        A password that is refused does not use up the link. Exactly one of several racing calls succeeds.
        """
        raise NotImplementedError
