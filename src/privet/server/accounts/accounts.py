"""`Accounts`: the one object with which the rest of the server knows who somebody is."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from privet.server.accounts.devices import Devices
from privet.server.accounts.invitations import Invitations
from privet.server.accounts.logins import Logins
from privet.server.accounts.people import People
from privet.server.accounts.tokens import Tokens
from privet.system.addresses import is_postgres


class Accounts(People, Logins, Invitations, Tokens, Devices):
    """The accounts in a store, which several threads, processes and machines can use at once.

    Every operation is one transaction that is on disk when it returns. Errors: `AccountError` for an act that is not
    allowed, `StoreBusy` if another process holds the lock for too long, `StoreError` if the store can't be trusted.
    """

    @classmethod
    def open(cls, where: str | Path, *, create: bool = True) -> Self:
        """Open the store in a file (SQLite) or at a postgresql:// address; created if it is missing."""
        raise NotImplementedError

    def close(self) -> None:
        """Close all connections."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def beside(ledger: str) -> str:
    """Where the accounts of a ledger are: in a file beside it, or in the same database.

    Example:
        >>> beside("people.ledger"), beside("postgresql://host/base")
        ('people.ledger.accounts', 'postgresql://host/base')
    """
    return ledger if is_postgres(ledger) else f"{ledger}.accounts"
