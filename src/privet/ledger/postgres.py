"""A ledger in Postgres, for teams: whatever is not waited for is sent together."""

from __future__ import annotations

import logging
import select
import time
from contextlib import AbstractContextManager, suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from privet.errors import LedgerError, Remedy, Subject, UserError, install
from privet.ledger import chain, database, tables
from privet.ledger.database import Database
from privet.system.addresses import is_public, masked

_DURABLE = "fsync", "full_page_writes", "synchronous_commit"
_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"  # each statement sees what the lock waited for
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_FRESH = 1.0  # a connection that was used so few seconds ago is not tried before it is used
_CREATING = 7236838  # the number of an advisory lock
_LONG = "60s"  # for a statement, and for a writer that was stopped in the middle: then others get their turn
_NETWORK = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
}
"""A server that fell silent is noticed, unless the address says otherwise."""
_BUSY = ("55P03", "57014", "40P01")
"""The codes of a lock or a statement that took too long, and of two that wait for each other."""

_PLACES = ", ".join(f"to_regclass('{name}')" for name in tables.NAMES)
_SUSPECT = (
    f"SELECT count(*) <> {len(tables.NAMES)} OR bool_or(relkind <> 'r' OR relpersistence <> 'p' OR relhastriggers OR "
    "relhasrules OR relrowsecurity OR relhassubclass OR relispartition OR relchecks > 0 OR "
    "EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND atthasdef) OR "
    "EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND NOT indisprimary)) "
    f"FROM pg_class c WHERE oid IN ({_PLACES})"
)
"""Whether something on our tables could be foreign: a quick look, at every transaction."""
_FOREIGN = f"""
    WITH ours AS (SELECT oid, relname, relkind, relpersistence, relrowsecurity FROM pg_class WHERE oid IN ({_PLACES}))
    SELECT 'trigger ' || tgname, relname FROM pg_trigger t JOIN ours ON tgrelid = ours.oid WHERE NOT tgisinternal
    UNION ALL SELECT 'rule ' || rulename, relname FROM pg_rewrite r JOIN ours ON ev_class = ours.oid
    UNION ALL SELECT 'policy ' || polname, relname FROM pg_policy p JOIN ours ON polrelid = ours.oid
    UNION ALL SELECT 'table ' || inhrelid::regclass, relname FROM pg_inherits
        JOIN ours ON ours.oid IN (inhparent, inhrelid)
    UNION ALL SELECT 'constraint ' || conname, relname FROM pg_constraint c JOIN ours ON conrelid = ours.oid
        WHERE contype NOT IN ('p', 'n')
    UNION ALL SELECT 'index ' || indexrelid::regclass, relname FROM pg_index JOIN ours ON indrelid = ours.oid
        WHERE NOT indisprimary
    UNION ALL SELECT 'default of ' || attname, relname FROM pg_attribute JOIN ours ON attrelid = ours.oid
        WHERE atthasdef
    UNION ALL SELECT 'column ' || attname, relname FROM pg_attribute JOIN ours ON attrelid = ours.oid
        WHERE attnum > 0 AND NOT attisdropped AND atttypid NOT IN ('int4'::regtype, 'int8'::regtype, 'text'::regtype)
    UNION ALL SELECT 'kind of table', relname FROM ours
        WHERE relkind <> 'r' OR relpersistence <> 'p' OR relrowsecurity
"""
"""What is on our tables and is not ours, by name."""
_SCHEMAS = """
    SELECT nspname FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
    WHERE c.relname = %s AND (nspname = ANY (current_schemas(false)) OR n.oid = pg_my_temp_schema())
"""
"""Where a table of this name would be found: it must be one place."""


class Postgres(Database):
    """A database at an address.

    A transaction is a pipeline: its statements wait until an answer is looked at, and the last ones go with the commit.
    An error in any of them is raised at its end at the latest, and then nothing was written.
    """

    _used = 0.0
    _suspect: Any = None  # the quick look of this transaction

    def _connection(self) -> Any:
        """The driver's connection. One that may have died is tried, and made anew."""
        if self._held and not self._lives(self._held[0].driver_connection):
            with suppress(Exception):
                self._held[0].invalidate()
            self._held.clear()
        fresh = not self._held
        connection = super()._connection()
        if fresh:
            connection.autocommit = True  # transactions begin where we say so
            self._check_tables(connection)
        return connection

    def _lives(self, connection: Any) -> bool:
        try:
            if time.monotonic() - self._used > _FRESH or _speaks(connection):
                connection.execute("SELECT 1")
        except self._errors:
            return False
        return True

    def _together(self, connection: Any, *, write: bool) -> AbstractContextManager[object]:
        pipeline: AbstractContextManager[object] = connection.pipeline()
        return pipeline

    def _begin(self, connection: Any, *, write: bool) -> None:
        connection.execute(_WRITING if write else _READING)
        self._suspect = connection.execute(_SUSPECT)

    def _begun(self, connection: Any) -> None:
        if self._suspect.fetchone()[0]:
            self._check_tables(connection)

    def _commit(self, connection: Any) -> None:
        connection.execute("COMMIT")  # goes with what was written; its error is raised at the pipeline's end
        self._used = time.monotonic()

    def _is_busy(self, error: BaseException) -> bool:
        return getattr(getattr(error, "orig", None) or error, "sqlstate", None) in _BUSY

    def _moved(self) -> bool:
        known = self.known
        with self.engine.connect() as connection:  # another one: this one's transaction was given up
            self.known = connection.execute(sa.select(tables.ledger.c.hash)).scalar() or ""
        return self.known != known

    def _check_tables(self, connection: Any) -> None:
        """Refuse anything on our tables that is not ours: a trigger could undo a debit."""
        found = connection.execute(_FOREIGN).fetchone()
        if found is not None:
            raise LedgerError(
                f"the ledger {self.where} has a {found[0][:100]} on {found[1]!r}, which is not its own: it could undo "
                "debits. Nothing is answered with this ledger. Remove what does not belong there"
            )
        for name, there in zip(tables.NAMES, connection.execute(f"SELECT {_PLACES}").fetchone(), strict=True):
            if there is None:
                raise LedgerError(f"the ledger {self.where} has no {name!r}: it was tampered with")

    def prepare(self, *, create: bool) -> None:
        """See that the tables are there; two that start at once must not both make them."""
        try:
            with self.engine.begin() as connection:
                found = _tables(connection)
            if len(found) < len(tables.NAMES):  # perhaps another makes them just now
                found = self._made(create=create)
            if len(found) < len(tables.NAMES):
                missing = sorted({*tables.NAMES} - {*found})
                raise LedgerError(f"the ledger {self.where} has no {missing[0]!r}: it was tampered with")
        except self._errors as error:
            if self._is_busy(error):
                raise self._busy() from None
            raise LedgerError(self._trouble(error)) from None

    def _made(self, *, create: bool) -> list[str]:
        """The tables, which are made if there are none. Over a new connection: the old one remembers what was not."""
        with self.engine.begin() as connection:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_CREATING})")
            found = _tables(connection)
            if not found and not create:
                raise UserError(f"there is no ledger at {self.where}")
            if not found:
                tables.metadata.create_all(connection, checkfirst=False)
                first = {"version": tables.VERSION, "number": 0, "hash": chain.GENESIS}
                connection.execute(sa.insert(tables.ledger).values(first))
                self.created = True
        return found or [*tables.NAMES]


def _tables(connection: sa.Connection) -> list[str]:
    """Those of our tables that are there."""
    return [name for name in tables.NAMES if connection.exec_driver_sql(f"SELECT to_regclass('{name}')").scalar()]


def _speaks(connection: Any) -> bool:
    """Whether something was said without being asked: as a rule, that the connection ends."""
    try:
        return bool(select.select([connection.fileno()], [], [], 0)[0])
    except ValueError:  # more files are open than `select` has numbers for
        return True


def connect(text: str, *, create: bool, read_only: bool = False) -> Postgres:
    """The ledger at an address."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise UserError("a ledger in Postgres needs psycopg", remedy=install("postgres")) from None
    if "@" in text.partition("@")[2] or "?" in text.rpartition("@")[0]:  # part of a password could be taken for a host
        raise UserError(
            "it is not clear where the password of this address ends",
            remedy=Remedy("Write %40 for an @ in it, and %3F for a ?"),
        )
    try:
        url = sa.make_url(text).set(drivername="postgresql+psycopg")
        given = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
        hidden = {name: value for name, value in given.items() if not is_public(name)}
        if url.password:
            hidden["password"] = str(url.password)
        public = url._replace(password=None).difference_update_query(hidden)  # an engine shows its address
        arguments = {name: value for name, value in _NETWORK.items() if name not in given} | hidden
        engine = sa.create_engine(public, poolclass=NullPool, pool_reset_on_return=None, connect_args=arguments)
    except (SQLAlchemyError, ValueError):
        raise UserError(
            "this is not an address",
            allowed="An address is like postgresql://user@host/base",
            subject=Subject("ledger"),
        ) from None
    made = Postgres(
        engine,
        repr(masked(public.set(drivername="postgresql").render_as_string(hide_password=True))),
        read_only=read_only,
    )
    made.hidden = tuple(hidden.values())
    sa.event.listen(engine, "connect", _settle)
    try:
        made.prepare(create=create)
    except BaseException:
        made.close()
        raise
    return made


def _settle(connection: Any, record: object) -> None:
    """What holds while a connection lasts: commits wait for the disk, locks for a while, and names mean one table."""
    settings = {setting: connection.execute(f"SHOW {setting}").fetchone()[0] for setting in _DURABLE}
    for setting, value in settings.items():
        if value == "off":
            connection.close()
            raise LedgerError(
                f"{setting} is off in Postgres, so a debit could be lost in a crash",
                remedy=Remedy(f"Run in Postgres: ALTER SYSTEM SET {setting} = on; SELECT pg_reload_conf()"),
            )
    schemas = connection.execute(_SCHEMAS, [tables.ledger.name]).fetchall()
    if len(schemas) > 1:
        connection.close()
        raise LedgerError(
            f"there are two ledgers in this database, in the schemas {schemas[0][0]!r} and {schemas[1][0]!r}. "
            "Name one in the address: ?options=-csearch_path%3Done_schema"
        )
    held = {
        "synchronous_commit": settings["synchronous_commit"],
        "lock_timeout": f"{database.PATIENCE}s",
        "statement_timeout": _LONG,
        "idle_in_transaction_session_timeout": _LONG,
    }
    for setting, value in held.items():
        connection.execute("SELECT set_config(%s, %s, false)", [setting, value])
    connection.commit()


logging.getLogger("psycopg").addHandler(logging.NullHandler())  # what it can't raise it would print
