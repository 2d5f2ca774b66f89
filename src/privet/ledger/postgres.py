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

from privet.addresses import is_public, masked
from privet.errors import LedgerError, UserError
from privet.ledger.database import Database

_DURABLE = "fsync", "full_page_writes", "synchronous_commit"
_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"  # each statement sees what the lock waited for
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_FRESH = 1.0  # a connection that was used so few seconds ago is not tried before it is used
_CREATING = 7236838  # the number of an advisory lock


class Postgres(Database):
    """A database at an address.

    A transaction is a pipeline: its statements wait until an answer is looked at, and the last ones go with the commit.
    An error in any of them is raised at its end at the latest, and then nothing was written.
    """

    _used = 0.0

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
        return connection

    def _lives(self, connection: Any) -> bool:
        try:
            if time.monotonic() - self._used > _FRESH or _speaks(connection):
                connection.execute("SELECT 1")
        except self._errors:
            return False
        return True

    def _together(self, connection: Any) -> AbstractContextManager[object]:
        pipeline: AbstractContextManager[object] = connection.pipeline()
        return pipeline

    def _begin(self, connection: Any, *, write: bool) -> None:
        connection.execute(_WRITING if write else _READING)

    def _commit(self, connection: Any) -> None:
        connection.execute("COMMIT")  # goes with what was written; its error is raised at the pipeline's end
        self._used = time.monotonic()

    def _lock_all(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_CREATING})")

    def check(self) -> None:
        """Postgres looks after its own files."""


def _speaks(connection: Any) -> bool:
    """Whether something was said without being asked: as a rule, that the connection ends."""
    try:
        return bool(select.select([connection.fileno()], [], [], 0)[0])
    except ValueError:  # more files are open than `select` has numbers for
        return True


def connect(text: str) -> Postgres:
    """The ledger at an address."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise UserError("a ledger in Postgres needs psycopg. Write: pip install 'privet[postgres]'") from None
    if "@" in text.partition("@")[2] or "?" in text.rpartition("@")[0]:  # part of a password could be taken for a host
        raise UserError(
            "it is not clear where the password of this address ends. Write %40 for an @ in it, and %3F for a ?"
        )
    try:
        url = sa.make_url(text).set(drivername="postgresql+psycopg")
        given = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
        hidden = {name: value for name, value in given.items() if not is_public(name)}
        if url.password:
            hidden["password"] = str(url.password)
        public = url._replace(password=None).difference_update_query(hidden)  # an engine shows its address
        engine = sa.create_engine(public, poolclass=NullPool, pool_reset_on_return=None, connect_args=hidden)
    except (SQLAlchemyError, ValueError):
        raise UserError('this is not an address. Write, for example: ledger="postgresql://user@host/base"') from None
    made = Postgres(engine, repr(masked(public.render_as_string(hide_password=True))))
    made.hidden = tuple(hidden.values())
    sa.event.listen(engine, "connect", _durable)
    try:
        made.prepare()
    except BaseException:
        made.close()
        raise
    return made


def _durable(connection: Any, record: object) -> None:
    """Refuse what could lose a debit in a crash. How commits wait stays as it is now while the connection lasts."""
    settings = {setting: connection.execute(f"SHOW {setting}").fetchone()[0] for setting in _DURABLE}
    for setting, value in settings.items():
        if value == "off":
            connection.close()
            raise LedgerError(
                f"{setting} is off in Postgres, so a debit could be lost in a crash. Write there: "
                f"ALTER SYSTEM SET {setting} = on; SELECT pg_reload_conf()"
            )
    connection.execute(f"SET synchronous_commit = {settings['synchronous_commit']}")
    connection.commit()


logging.getLogger("psycopg").addHandler(logging.NullHandler())  # what it can't raise it would print
