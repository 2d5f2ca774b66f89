"""The tables of a ledger in a database.

Entries are only ever added, and a ledger's whole state follows from them. `leases` has a row for each unsettled
reservation; `answers` stores the answers, whose hashes are in the entries.
"""

from __future__ import annotations

import sqlalchemy as sa

VERSION = 1

metadata = sa.MetaData()
_number = sa.Integer().with_variant(sa.BigInteger(), "postgresql")

ledger = sa.Table(
    "privet_ledger",
    metadata,
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("number", _number, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
)
"""One row, the end of the chain. Writers lock it."""
entries = sa.Table(
    "privet_entries",
    metadata,
    sa.Column("number", _number, primary_key=True, autoincrement=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
)
answers = sa.Table(
    "privet_answers",
    metadata,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),  # SQLite: an index without the texts
    sa.Column("text", sa.Text, nullable=False),
)
leases = sa.Table(
    "privet_leases",
    metadata,
    sa.Column("number", _number, primary_key=True, autoincrement=False),
    sa.Column("beats", _number, nullable=False),
)
NAMES = tuple(metadata.tables)
