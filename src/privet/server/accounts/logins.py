"""Signing in with a password, and the sessions of the page."""

from __future__ import annotations

from privet.server.accounts.base import Base
from privet.server.accounts.records import Identity, Person


class Logins(Base):
    """The operations on passwords and sessions."""

    def sign_in(self, name: str, password: str, *, address: str) -> tuple[str, Identity]:
        """Begin a new session; returns the value of its cookie, and whose it is.

        Claim: an unknown name, a wrong password, a disabled account and one without a password raise the same
        WrongPassword after the same work. Each sign-in makes a new session. Too many attempts, for a name or from an
        address, raise Throttled(retry_after).
        """
        raise NotImplementedError

    def check_password(self, name: str, password: str, *, address: str) -> Person:
        """Check a password as `sign_in` does, and begin no session: before a change that needs it again."""
        raise NotImplementedError

    def begin_session(self, name: str) -> tuple[str, Identity]:
        """Begin a session for a person whom somebody else has checked, such as a company's identity provider."""
        raise NotImplementedError

    def session(self, cookie_value: str) -> Identity | None:
        """Whose session a cookie belongs to; None if it is forged, expired or ended, or the person is disabled."""
        raise NotImplementedError

    def sign_out(self, cookie_value: str) -> None:
        """End a session, if there is one."""
        raise NotImplementedError

    def set_password(self, name: str, password: str, *, keep: str | None = None) -> None:
        """Set a password and end the person's sessions, except the one with the id `keep`, and their one-time link."""
        raise NotImplementedError

    def csrf_ok(self, identity: Identity, value: str) -> bool:
        """Whether a form of this session sent the right value; compared in constant time. False for tokens."""
        raise NotImplementedError
