"""Where a ledger is: in a file, in Postgres, or in memory."""

from __future__ import annotations

from pathlib import Path

from privet.addresses import is_address, is_postgres, masked
from privet.errors import UserError
from privet.ledger import postgres, sqlite
from privet.ledger.durable import DurableLedger


class MemoryLedger(DurableLedger):
    """The same in memory: it forgets when the process ends."""

    def __init__(self) -> None:
        super().__init__(sqlite.in_memory())


def open_ledger(
    where: str | Path, *, create: bool = True, read_only: bool = False, lease: float = 30.0
) -> DurableLedger:
    """The ledger in a file (SQLite) or at a postgresql:// address; it is made if there is none, and else verified.

    `read_only` is for looking: it makes nothing, writes nothing and needs no lock. `lease`: after so many seconds
    without a sign of life of the process that made it, a reservation counts as failed.
    """
    text = str(where)
    create = create and not read_only
    if is_postgres(text) and text.isprintable():
        return DurableLedger(postgres.connect(text.strip(), create=create, read_only=read_only), lease=lease)
    if is_address(text) or not text.strip() or not text.isprintable():
        raise UserError(
            f"a ledger is a file or a Postgres address, not {masked(text)[:60]!r}. "
            'Write, for example: ledger="people.ledger" or ledger="postgresql://user@host/base"'
        )
    return DurableLedger(sqlite.connect(text, Path(where), create=create, read_only=read_only), lease=lease)
