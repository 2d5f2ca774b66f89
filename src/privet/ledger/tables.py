"""The tables of a ledger in a database, and how older ones are brought up to date.

Entries are only ever added. `leases` holds what is reserved and not settled yet; `answers` what was answered.
"""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from privet.errors import LedgerError

metadata = sa.MetaData()
_number = sa.Integer().with_variant(sa.BigInteger(), "postgresql")

schema = sa.Table("privet_schema", metadata, sa.Column("version", sa.Integer, nullable=False))
datasets = sa.Table(
    "privet_datasets",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("salt", sa.Text, nullable=False),
    sa.Column("head", _number, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)
entries = sa.Table(
    "privet_entries",
    metadata,
    sa.Column("dataset", sa.Text, primary_key=True),
    sa.Column("number", _number, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("analyst", sa.Text),
    sa.Column("request", sa.Text),
    sa.Column("question", sa.Text),
    sa.Column("refers", _number),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)
answers = sa.Table(
    "privet_answers",
    metadata,
    sa.Column("dataset", sa.Text, primary_key=True),
    sa.Column("number", _number, primary_key=True, autoincrement=False),
    sa.Column("text", sa.Text, nullable=False),
)
leases = sa.Table(
    "privet_leases",
    metadata,
    sa.Column("dataset", sa.Text, primary_key=True),
    sa.Column("number", _number, primary_key=True, autoincrement=False),
    sa.Column("beats", _number, nullable=False),
    sqlite_with_rowid=False,
)

for _name, _columns, _unique in (
    ("request", ["request"], True),
    ("question", ["question"], False),
    ("reference", ["refers"], False),
    ("analyst", ["analyst", "number"], False),
):  # of entries that have it: every page less is a page less to write
    _has = entries.c[_columns[0]].is_not(None)
    sa.Index(
        f"privet_by_{_name}",
        entries.c.dataset,
        *(entries.c[column] for column in _columns),
        unique=_unique,
        sqlite_where=_has,
        postgresql_where=_has,
    )


def _first(connection: sa.Connection) -> None:
    metadata.create_all(connection)


MIGRATIONS: tuple[Callable[[sa.Connection], None], ...] = (_first,)
"""The n-th makes version n + 1 of what was version n; a version 0 is an empty database."""


def upgrade(connection: sa.Connection) -> None:
    """Bring the tables up to date, within the transaction of this connection."""
    version = 0
    if sa.inspect(connection).has_table(schema.name):
        found = connection.execute(sa.select(schema.c.version)).scalars().all()
        if len(found) != 1 or type(found[0]) is not int or found[0] < 1:
            raise LedgerError("the ledger does not say once, as a number, which version it is of: it was tampered with")
        version = found[0]
    if version > len(MIGRATIONS):
        raise LedgerError(
            f"the ledger is of version {version}, and this Privet knows versions up to {len(MIGRATIONS)}. "
            "Write: pip install --upgrade privet"
        )
    for step in MIGRATIONS[version:]:
        step(connection)
    if version < len(MIGRATIONS):
        connection.execute(sa.delete(schema))
        connection.execute(sa.insert(schema).values(version=len(MIGRATIONS)))
