"""Opening a ledger in a file, in Postgres, or in memory."""

from __future__ import annotations

from pathlib import Path

from privet.errors import Subject, UserError, write
from privet.ledger.inspection import Inspection
from privet.ledger.reservations import Reservations
from privet.ledger.steward import Steward
from privet.ledger.storage.database import NoLedger
from privet.ledger.storage.postgres import database as postgres
from privet.ledger.storage.sqlite import database as sqlite
from privet.system.addresses import is_address, is_postgres, masked


class Ledger(Reservations, Steward, Inspection):
    """A ledger in a database: every step is a transaction that is on disk before the next begins.

    Claim: `reserve` reads, prices, compares with every cap and appends in one atomic step that is durable before it
    returns, so two debits that together exceed a cap cannot both pass. A reservation is spent, whatever happens next.

    Example:
        >>> from privet.ledger import Dataset, memory_ledger
        >>> from privet.privacy.adjacency import Adjacency
        >>> from privet.privacy.events import LaplaceNoise
        >>> from privet.privacy.guarantees import PureDP
        >>> from privet.privacy.moves import L1Move
        >>> ledger = memory_ledger()
        >>> salt = ledger.create(Dataset("people", "row", Adjacency.ADD_REMOVE, PureDP(1)))
        >>> half = LaplaceNoise(move=L1Move(1), scale=2)
        >>> charge = ledger.reserve(dataset="people", analyst="me", request_id="1", events=[half])
        >>> print(ledger.settle(charge, "answered", "42").remaining)
        epsilon 0.5
    """


def memory_ledger() -> Ledger:
    """A ledger in memory: it is lost when the process ends."""
    return Ledger(sqlite.in_memory())


def open_ledger(where: str | Path, *, create: bool = True, read_only: bool = False, lease: float = 30.0) -> Ledger:
    """Open the ledger in a file (SQLite) or at a postgresql:// address: created if missing, otherwise verified.

    With `read_only`, it creates and writes nothing and needs no lock. A reservation counts as failed when its process
    has not responded for `lease` seconds.
    """
    text = str(where)
    create = create and not read_only
    if is_postgres(text) and text.isprintable():
        return Ledger(postgres.connect(text.strip(), create=create, read_only=read_only), lease=lease)
    if is_address(text) or not text.strip() or not text.isprintable():
        raise UserError(
            f"a ledger is a file or a Postgres address, not {masked(text)[:60]!r}",
            subject=Subject("argument", "ledger"),
            remedy=write(
                'ledger="people.ledger" or ledger="postgresql://user@host/database"',
                terminal="people.ledger or postgresql://user@host/database",
                policy='ledger = "people.ledger" or ledger = "postgresql://user@host/database"',
            ),
        )
    return Ledger(sqlite.connect(text, Path(where), create=create, read_only=read_only), lease=lease)


def existing_ledger(where: str | Path) -> Ledger | None:
    """The ledger at this place, opened to be read only; None if there is none yet."""
    try:
        return open_ledger(where, read_only=True)
    except NoLedger:
        return None
