"""The errors of accounts. None of them contains a password, a token or any other secret.

::

    UserError
    └── AccountError       an act on accounts that is not allowed; the message says why
    PrivetError
    ├── WrongPassword      a sign-in that failed; the text is always the same
    ├── NotLetIn           a sign-in by OpenID Connect of somebody who has no account; the text is always the same
    └── Throttled          too many attempts; says when to try again
    LedgerError
    └── StoreError         the account store can't be read, written or trusted; nobody is let in
    LedgerBusy
    └── StoreBusy          another process holds the lock of the account store; try again
"""

from __future__ import annotations

from privet.errors import LedgerBusy, LedgerError, PrivetError, UserError


class AccountError(UserError):
    """An act on accounts that is not allowed."""


class WrongPassword(PrivetError):
    """A sign-in failed. Unknown name, wrong password, disabled account and missing password look the same."""

    def __init__(self) -> None:
        super().__init__("the name or the password is wrong")


class NotLetIn(PrivetError):
    """A provider of OpenID Connect named somebody who is not let in: unknown, disabled, or not who was expected."""

    def __init__(self, reason: str) -> None:
        super().__init__("you have no access here. Ask a steward for it")
        self.reason = reason
        """Why, for the log: one of a few words."""


class Throttled(PrivetError):
    """There were too many attempts."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"there were too many attempts. Try again in {retry_after} seconds")
        self.retry_after = retry_after
        """Seconds until the next attempt is allowed, rounded up."""


class StoreError(LedgerError):
    """The account store can't be read, written or trusted. Nobody is let in until it is fixed."""


class StoreBusy(LedgerBusy, StoreError):
    """Another process holds the lock of the account store. Nothing was changed; try again."""
