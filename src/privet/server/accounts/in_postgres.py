"""An account store in Postgres: tables beside those of the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.exc import TimeoutError  # noqa: A004 (no connection was free)

from privet.ledger.storage import database
from privet.ledger.storage.postgres import foreign
from privet.ledger.storage.postgres.database import place
from privet.server.accounts import tables
from privet.server.accounts.errors import AccountError, StoreError
from privet.server.accounts.store import OPTIONS, Store, first_row

_CREATING = 7236839  # the key of an advisory lock
_BUSY = ("55P03", "57014", "40P01", "40001")
"""The error codes of a lock timeout, a statement timeout, a deadlock and a conflict."""
_STOPPED = ("57P01", "57P02", "57P03", "53300")
"""The error codes of a Postgres that stops, crashed, starts, or takes no more connections."""
_SUSPECT, _FOREIGN = foreign.suspect(tables.NAMES), foreign.foreign(tables.NAMES)
_SCHEMAS = f"""
    SELECT nspname, pg_table_is_visible(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE relname = '{tables.store.name}' AND NOT pg_is_other_temp_schema(n.oid)
"""


class InPostgres(Store):
    """An account store at an address."""

    patience = database.PATIENCE
    named = False
    """Whether the address sets the search path."""

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[sa.Connection]:
        with self.engine.connect() as connection:
            level = "READ COMMITTED" if write else "REPEATABLE READ"  # a writer sees commits made while it waited
            chosen = connection.execution_options(isolation_level=level, postgresql_readonly=not write)
            with chosen.begin():
                yield chosen

    def _check(self, connection: sa.Connection, *, write: bool) -> None:
        if connection.exec_driver_sql(_SUSPECT).scalar():
            found = connection.exec_driver_sql(_FOREIGN).fetchone()
            if found is not None:
                raise self.damaged(f"has a {found[0][:100]} on its table {found[1]!r}, which Privet did not create")
            for name in tables.NAMES:
                if connection.exec_driver_sql(f"SELECT to_regclass('{name}')").scalar() is None:
                    raise self.damaged(f"has no table {name!r}")

    def _is_busy(self, error: BaseException) -> bool:
        state = getattr(getattr(error, "orig", None) or error, "sqlstate", None)
        return isinstance(error, TimeoutError) or state in _BUSY

    def _is_away(self, error: BaseException) -> bool:
        """A connection that was refused or lost has no code, or one of Postgres that starts or stops."""
        if not isinstance(error, sa.exc.OperationalError):
            return False
        state = getattr(error.orig, "sqlstate", None)
        return state is None or state[:2] == "08" or state in _STOPPED

    def prepare(self, *, create: bool) -> None:
        """Check that there is one store, or create it; only one of several processes does so."""
        with self._guarded(), self.engine.begin() as connection:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_CREATING})")
            schemas = connection.exec_driver_sql(_SCHEMAS).fetchall()
            visible = [name for name, seen in schemas if seen]
            others = sorted(name for name, seen in schemas if not seen and not self.named)
            if others:
                raise StoreError(
                    f"this database has an account store in the schema {others[0]!r}, where the address "
                    f"{self.where} does not lead. Name its schema in the address: ?options=-csearch_path%3D{others[0]}"
                )
            if not visible:
                if not create:
                    raise AccountError(f"there is no account store at {self.where}")
                tables.metadata.create_all(connection, checkfirst=False)
                connection.execute(first_row())
            elif self._is_first(connection):
                tables.upgrade(connection)
        with self.reading():
            pass

    def _is_first(self, connection: sa.Connection) -> bool:
        """Whether this is a store of version 1, from which writers are kept away until the transaction ends."""
        head = sa.select(tables.store.c.version).with_for_update()
        if connection.execute(head).scalars().all() != [1]:
            return False
        names = [table.name for table in tables.ADDED]
        return all(connection.exec_driver_sql(f"SELECT to_regclass('{name}')").scalar() is None for name in names)


def open_address(text: str, *, create: bool) -> InPostgres:
    """Open the store at an address."""
    found = place(text, pool_size=4, max_overflow=8, pool_timeout=database.PATIENCE, pool_pre_ping=True, **OPTIONS)
    store = InPostgres(found.engine, found.where, found.hidden)
    store.named = found.named
    try:
        store.prepare(create=create)
    except BaseException:
        store.close()
        raise
    return store
