"""Where a ledger is: in a file, in Postgres, or in memory."""

from __future__ import annotations

from pathlib import Path

from privet.ledger.database import connect
from privet.ledger.durable import DurableLedger


class MemoryLedger(DurableLedger):
    """The same in memory: it forgets when the process ends."""

    def __init__(self) -> None:
        super().__init__(connect(None))


def open_ledger(where: str | Path, *, create: bool = True, lease: float = 30.0) -> DurableLedger:
    """The ledger in a file (SQLite) or at a postgresql:// address; it is made if there is none, and else verified.

    `lease`: after so many seconds without a sign of life of the process that made it, a reservation counts as failed.
    """
    return DurableLedger(connect(where, create=create), lease=lease)
