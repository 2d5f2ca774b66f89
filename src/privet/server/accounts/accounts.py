"""`Accounts`: the one object with which the rest of the server knows who somebody is."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from privet.errors import Subject
from privet.server.accounts.devices import Devices
from privet.server.accounts.errors import AccountError
from privet.server.accounts.in_postgres import open_address
from privet.server.accounts.in_sqlite import open_file
from privet.server.accounts.openid import OpenID
from privet.server.accounts.passwords import Passwords
from privet.server.accounts.store import noting
from privet.server.accounts.tokens import Tokens
from privet.system.addresses import is_address, is_postgres, masked

if TYPE_CHECKING:
    from argon2 import PasswordHasher


class Accounts(OpenID, Tokens, Devices):
    """The accounts in a store, which several threads, processes and machines can use at once.

    Every operation is one transaction that is on disk when it returns. Errors: `AccountError` for an act that is not
    allowed, `StoreBusy` if another process holds the lock for too long, `StoreError` if the store can't be trusted.
    """

    @classmethod
    def open(
        cls,
        where: str | Path,
        *,
        create: bool = True,
        hasher: PasswordHasher | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Open the store in a file (SQLite) or at a postgresql:// address; created if it is missing.

        Passwords are hashed by `hasher`, by default with the parameters that RFC 9106 recommends.
        """
        text = str(where)
        if is_postgres(text) and text.isprintable():
            return cls(open_address(text.strip(), create=create), Passwords(hasher), clock)
        if is_address(text) or not text.strip() or not text.isprintable():
            what = f"an account store is a file or a Postgres address, not {masked(text)[:60]!r}"
            raise AccountError(what, subject=Subject("argument", "where"))
        return cls(open_file(text, Path(where), create=create), Passwords(hasher), clock)

    def noting(self, note: Callable[[], None]) -> AbstractContextManager[None]:
        """Within this block, `note` is called just before the first change is committed, such as to tell the ledger.

        Claim: an act that is refused leaves no note, and an act without its note is not done.

        Example:
            with accounts.noting(lambda: ledger.administer(datasets, "account ana: disabled", by="sam")):
                accounts.disable("ana")
        """
        return noting(note)

    def close(self) -> None:
        """Close all connections."""
        self._store.close()

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
