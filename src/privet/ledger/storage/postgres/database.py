"""A ledger in Postgres, for teams. Statements whose results are not needed at once are sent together."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from privet.errors import LedgerError, Remedy, Subject, UserError, install
from privet.ledger.history import chain
from privet.ledger.storage import tables
from privet.ledger.storage.database import Database, NoLedger
from privet.ledger.storage.postgres import foreign, settings
from privet.ledger.storage.turns import Patience
from privet.system.addresses import is_public, masked

_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"  # statements see commits made during the wait
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_FRESH = 1.0  # seconds: a connection that was used more recently is not tested first
_CREATING = 7236838  # the key of an advisory lock
_ALIVE = 10.0  # seconds in which a server must respond to a test that needs no lock
_BUSY = ("55P03", "57014", "40P01")
"""The error codes of a lock timeout, a statement timeout and a deadlock."""

_PLACES = foreign.places(tables.NAMES)
_SUSPECT = foreign.suspect(tables.NAMES)
_FOREIGN = foreign.foreign(tables.NAMES)


class Postgres(Database):
    """A database at an address.

    A transaction is a pipeline: statements are sent when a result is needed, and the last ones with the commit.
    An error in any of them is raised at the pipeline's end at the latest, and then nothing was written.
    """

    named = False
    """Whether the address sets the search path."""
    _used = 0.0

    def _connection(self) -> Any:
        """The driver's connection. One that may be dead is tested, and replaced."""
        if self._held and not self._is_alive(self._held[0].driver_connection):
            with suppress(Exception):
                self._held[0].invalidate()
            self._held.clear()
        fresh = not self._held
        connection = super()._connection()
        if fresh:
            connection.autocommit = True  # we begin transactions explicitly
            self._check_tables(connection)
        return connection

    def _is_alive(self, connection: Any) -> bool:
        try:
            if time.monotonic() - self._used > _FRESH or _has_message(connection):
                connection.silence, usual = min(_ALIVE, connection.silence), connection.silence
                connection.execute("SELECT 1")
                connection.silence = usual
        except self._errors:
            return False
        return True

    def _begin(self, connection: Any, stack: ExitStack, *, write: bool) -> Callable[[], None]:
        stack.enter_context(connection.pipeline())
        connection.execute(_WRITING if write else _READING)
        suspect = connection.execute(_SUSPECT)

        def check() -> None:
            if suspect.fetchone()[0]:
                self._check_tables(connection)

        return check

    def _commit(self, connection: Any) -> None:
        connection.execute("COMMIT")  # sent with the writes; an error is raised at the pipeline's end
        self._used = time.monotonic()

    def _is_busy(self, error: BaseException) -> bool:
        return getattr(getattr(error, "orig", None) or error, "sqlstate", None) in _BUSY

    def _waits_on(self, patience: Patience) -> bool:
        """Postgres has waited for as long as patience lasts; again, if the ledger has grown since."""
        before = self.newest
        with self.engine.connect() as connection:  # a new one: the transaction of the other was aborted
            self.newest = connection.execute(sa.select(tables.ledger.c.hash)).scalar() or ""
        return self.newest != before

    def _check_tables(self, connection: Any) -> None:
        """Refuse foreign objects on our tables: a trigger could undo a debit."""
        found = connection.execute(_FOREIGN).fetchone()
        if found is not None:
            raise LedgerError(
                f"the table {found[1]!r} of the ledger {self.where} has a {found[0][:100]} that Privet did not "
                "create and that could undo debits. Privet answers nothing until you remove it"
            )
        for name, table in zip(tables.NAMES, connection.execute(f"SELECT {_PLACES}").fetchone(), strict=True):
            if table is None:
                raise self._missing(name)

    def prepare(self, *, create: bool) -> None:
        """Check that the tables exist, or create them; only one of several processes does so."""
        try:
            with self.engine.begin() as connection:
                names = _tables(connection)
            if len(names) < len(tables.NAMES):  # another process may be creating them
                names = self._ensure_tables(create=create)
            if len(names) < len(tables.NAMES):
                raise self._missing(min({*tables.NAMES} - {*names}))
        except self._errors as error:
            if self._is_busy(error):
                raise self._busy() from None
            raise LedgerError(self._storage_error(error)) from None

    def _missing(self, name: str) -> LedgerError:
        return LedgerError(f"the ledger {self.where} has no table {name!r}: it was tampered with")

    def _ensure_tables(self, *, create: bool) -> list[str]:
        """The tables, created if there are none. This needs a new connection: the old one caches their absence."""
        with self.engine.begin() as connection:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_CREATING})")
            settings.check_schema(connection.connection.driver_connection, named=self.named)
            names = _tables(connection)
            if not names and not create:
                raise NoLedger(f"there is no ledger at {self.where}", subject=Subject("ledger"))
            if not names:
                tables.metadata.create_all(connection, checkfirst=False)
                first = {"version": tables.VERSION, "number": 0, "hash": chain.GENESIS}
                connection.execute(sa.insert(tables.ledger).values(first))
                self.created = True
        return names or [*tables.NAMES]


def _tables(connection: sa.Connection) -> list[str]:
    """The names of our tables that exist."""
    return [name for name in tables.NAMES if connection.exec_driver_sql(f"SELECT to_regclass('{name}')").scalar()]


def _has_message(connection: Any) -> bool:
    """Whether the server sent something unasked, usually that it closes the connection."""
    try:
        return bool(select.select([connection.fileno()], [], [], 0)[0])
    except ValueError:  # the descriptor is too large for `select`
        return True


@dataclass(frozen=True, slots=True)
class Place:
    """A database at an address: its engine, and how errors name it."""

    engine: sa.Engine
    where: str
    """The address without secrets."""
    hidden: tuple[str, ...] = field(repr=False)
    """The secrets of the address."""
    named: bool
    """Whether the address sets the search path."""


def place(text: str, **pooling: Any) -> Place:
    """The database at an address. Its connections wait for the disk, and for nothing else without a limit."""
    try:
        from privet.ledger.storage.postgres.deadlines import LimitedConnection
        from privet.system.postgres import NETWORK
    except ImportError:
        raise UserError("a ledger in Postgres needs psycopg", remedy=install("postgres")) from None
    if (
        "@" in text.partition("@")[2] or "?" in text.rpartition("@")[0]
    ):  # part of a password could be mistaken for a host
        raise UserError(
            "it is not clear where the password in this address ends",
            remedy=Remedy("In the password, write %40 for @ and %3F for ?"),
        )
    try:
        url = sa.make_url(text).set(drivername="postgresql+psycopg")
        query = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
        hidden = {name: value for name, value in query.items() if not is_public(name, value)}
        if url.password:
            hidden["password"] = str(url.password)
        if url.username and not is_public("user", url.username):
            hidden["user"] = url.username
        public = url._replace(
            password=None, username=None if "user" in hidden else url.username
        ).difference_update_query(hidden)  # an engine can show its address
        arguments = {name: value for name, value in NETWORK.items() if name not in query} | hidden
        engine = sa.create_engine(public, connect_args=arguments, **pooling)
    except (SQLAlchemyError, ValueError):
        raise UserError(
            "this is not a valid Postgres address",
            allowed="An address looks like postgresql://user@host/database",
            subject=Subject("ledger"),
        ) from None
    if not url.database and not {"dbname", "service"} & query.keys():  # the default is the name of the user
        raise UserError(
            "this address does not name a database, so it would lead each user to another ledger",
            allowed="An address looks like postgresql://user@host/database",
            subject=Subject("ledger"),
        )
    named = settings.names_schema(query.get("options", ""))
    sa.event.listen(engine, "do_connect", lambda *known: LimitedConnection.connect(*known[2], **known[3]))
    sa.event.listen(engine, "connect", lambda connection, _: settings.configure(connection, named=named))
    where = repr(masked(public.set(drivername="postgresql").render_as_string(hide_password=True)))
    return Place(engine, where, tuple(hidden.values()), named)


def connect(text: str, *, create: bool, read_only: bool = False) -> Postgres:
    """Open the ledger at an address."""
    found = place(text, poolclass=NullPool, pool_reset_on_return=None)
    ledger = Postgres(found.engine, found.where, read_only=read_only)
    ledger.hidden, ledger.named = found.hidden, found.named
    try:
        ledger.prepare(create=create)
    except BaseException:
        ledger.close()
        raise
    return ledger
