"""The schema of a ledger in SQLite: exactly our tables, and nothing that could undo a debit."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from privet.errors import LedgerError, UserError
from privet.ledger.history import chain
from privet.ledger.storage import tables

MARK = 0x50726976
"""The text "Priv", as SQLite's application id in the header of every ledger."""
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of a new ledger."""
    engine = sa.create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    connection.execute(f"PRAGMA application_id = {MARK}")
    with engine.begin() as transaction:
        tables.metadata.create_all(transaction)
        transaction.execute(sa.insert(tables.ledger).values(version=tables.VERSION, number=0, hash=chain.GENESIS))


def new_ledger() -> bytes:
    """The file of a ledger without entries."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        create_tables(memory)
        return memory.serialize()


@cache
def _own_schema() -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as memory:
        create_tables(memory)
        return memory.execute(_SCHEMA).fetchall()


def check_schema(connection: Any, where: str) -> None:
    """Refuse a file that is not a ledger, and a ledger with missing or foreign objects."""
    own, objects = _own_schema(), connection.execute(_SCHEMA).fetchall()
    if objects == own:
        return
    if not objects:
        raise LedgerError(f"the ledger {where} has no tables: it was emptied. Restore a copy that verifies")
    if not any(name in tables.NAMES for _, name, _, _ in objects):
        raise not_a_ledger(where)
    for kind, name, table, sql in objects:
        if (kind, name, table, sql) not in own:
            raise LedgerError(
                f"the table {str(table)[:60]!r} of the ledger {where} has the {kind} {str(name)[:60]!r}, which Privet "
                "did not create and which could undo debits. Privet answers nothing until you remove it, or restore a "
                "copy that verifies"
            )
    missing = next(name for _, name, _, _ in own if name not in [other for _, other, _, _ in objects])
    raise LedgerError(
        f"the ledger {where} has no {missing!r}: it was tampered with. Privet answers nothing with this ledger. "
        "Restore a copy that verifies"
    )


def not_a_ledger(where: str) -> UserError:
    """The error for a file that is something else."""
    return UserError(
        f"{where} exists, but is not a ledger. Name another file. If it was a ledger, restore a copy that "
        "verifies: a new one would forget what was spent"
    )
