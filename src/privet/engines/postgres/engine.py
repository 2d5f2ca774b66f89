"""Postgres, asked where the rows are: one SELECT for each look, and only integers by group come back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any, ClassVar, Unpack

from privet.engines.base import Private, Public, Resources, in_bytes
from privet.engines.postgres import connections
from privet.engines.postgres.addresses import Address
from privet.engines.postgres.dialect import PostgresDialect
from privet.engines.postgres.public import Shipped, shipped
from privet.engines.postgres.signatures import locks, looks, signature
from privet.engines.postgres.tables import PostgresTable, is_as_declared
from privet.engines.sql.engine import Ask, Rows
from privet.engines.sql.pool import Pool
from privet.engines.sql.server import ServerEngine, in_python
from privet.engines.sql.text import Context
from privet.errors import SourceError, UserError
from privet.system.processes import forever

_NO_COLUMN = "42703"
_CHANGED = (
    "a table of this session was changed in Postgres: a column has another type or is not there any more, a view has "
    "another definition, a virtual generated column another expression, or a type another cast to text. Nothing was "
    "spent. Open the session again"
)


class _Home(Pool[Any]):
    """What one process has of an engine: as many connections as questions run at a time."""

    def __init__(self, address: Address) -> None:
        super().__init__()
        self._address = address

    def _connect(self) -> Any:
        return connections.connect(self._address)

    def _usable(self, connection: Any) -> bool:
        from psycopg.pq import TransactionStatus

        return not connection.abandoned and connection.info.transaction_status == TransactionStatus.IDLE

    def _drop(self, connection: Any) -> None:
        with suppress(Exception):
            connection.close()


class Postgres(ServerEngine[PostgresTable, Shipped]):
    """Exact integers for statements over tables of one database.

    Claim: that of `Engine`. All looks of a question are in one transaction, which can only read, sees one snapshot, has
    a time limit for each SELECT, and depends on no setting of the server. A table that was changed since it was
    declared is noticed under a lock, before it is read.

    A child of a fork opens connections of its own, and leaves those of its parent alone.
    """

    name: ClassVar[str] = "postgres"

    table: ClassVar[type[PostgresTable]] = PostgresTable
    where: ClassVar[str] = "one database"

    def __init__(
        self,
        tables: Private,
        public: Public = MappingProxyType({}),
        *,
        salt: bytes,
        **resources: Unpack[Resources],
    ) -> None:
        super().__init__(tables, public, PostgresDialect(), shipped, salt=salt, resources=resources)
        sources = self._sources
        self._address = sources[0].address
        self._first = _first_message(sources, resources)
        self._looks = "; ".join(looks(sources))
        self._signature: str | None = None
        self._homes: dict[int, _Home] = {}  # by process
        try:
            with self._home().connection() as connection:
                self._signature = self._begin(connection)
                if not all(is_as_declared(connection, source) for source in sources):
                    raise SourceError(_CHANGED)
                self._check_public(lambda sql, context: self._rows(connection, sql, context))
                connection.execute("ROLLBACK")
        except UserError:
            raise
        except Exception as error:
            what = f"{sources[0]} can't be read: {connections.told(self._address, error)}"
            raise SourceError(what) from None

    def _home(self) -> _Home:
        process = os.getpid()
        if process not in self._homes:
            for home in self._homes.values():  # of a parent, whose connections must not be ended
                forever(home)
            self._homes.setdefault(process, _Home(self._address))
        return self._homes[process]

    def _begin(self, connection: Any) -> str:
        """Begin a transaction; returns what the tables are now."""
        limit = f"SET LOCAL statement_timeout = '{max(1, int(connection.limit * 1000))}ms'"
        cursor = connection.execute(f"{limit.join(self._first)}")
        while cursor.nextset():
            pass
        return str(cursor.fetchone()[0])

    def ready(self) -> None:
        """Make sure that Postgres can be asked, and that the tables are what they were. Before a debit."""
        if self._closed or self._stopped:
            return
        home, what = self._home(), ""
        for _ in range(len(home.idle) + 1):  # connections that were lost while nobody used them
            try:
                with home.connection() as connection:
                    now = self._begin(connection)
                    if now == self._signature:
                        connection.execute(self._looks)
                    connection.execute("ROLLBACK")
            except SourceError:
                raise
            except Exception as error:
                if getattr(error, "sqlstate", None) == _NO_COLUMN:
                    raise SourceError(_CHANGED) from None
                what = f"Postgres can't be asked: {connections.told(self._address, error)}. Nothing was spent"
                continue
            if now != self._signature:
                raise SourceError(_CHANGED)
            return
        raise SourceError(what)

    @contextmanager
    def _looking(self) -> Iterator[Ask]:
        """One transaction, and so one snapshot: it is taken with the first look, and given up after the last."""
        process = os.getpid()
        with self._home().connection() as connection:

            def end() -> None:
                with suppress(Exception):
                    connection.cancel_safe(timeout=1)
                connection.abandoned = True

            if self._interruptible(lambda: self._begin(connection), end) != self._signature:
                raise SourceError(_CHANGED)

            def ask(sql: str, context: Context) -> Rows:
                return self._interruptible(lambda: self._rows(connection, sql, context), end)

            yield ask
            if os.getpid() == process:  # else a signal handler forked: it is the parent's
                with suppress(Exception):  # the answers are there; a connection that does not answer is dropped
                    self._interruptible(lambda: connection.execute("ROLLBACK"), end)

    def _rows(self, connection: Any, sql: str, context: Context) -> list[tuple[Any, ...]]:
        parameters: list[Any] = list(context.parameters)
        for each in self._sent:
            sql = each.bound(sql, parameters)
        return in_python(connections.rows(connection, sql, parameters))

    def stop(self) -> None:
        """The process ends: what is running is ended too, and its thread with it."""
        self._stopped = True
        with suppress(Exception):
            for connection in self._home().running:
                connection.abandoned = True
                connection.cancel_safe(timeout=1)

    def close(self) -> None:
        """Ends this process's connections; what is running ends first."""
        self._closed = True
        home = self._homes.get(os.getpid())
        if home is not None:
            home.close()


def _first_message(sources: list[PostgresTable], resources: Resources) -> tuple[str, str]:
    """How a transaction begins, before and after its time limit: settings, a lock, and then a look at the tables."""
    settings: dict[str, str | int] = {}
    memory, threads = resources.get("memory"), resources.get("threads")
    if memory is not None:
        settings["work_mem"] = _work_mem(memory)
    if threads is not None:
        settings["max_parallel_workers_per_gather"] = max(0, threads - 1)
    return f"{connections.beginning(settings)}; ", f"; {locks(sources)}; {signature(sources)}"


def _work_mem(memory: str) -> str:
    """A quarter of the memory, in kilobytes: a statement may sort several times at once."""
    return f"{min(max(in_bytes(memory) // 4096, 64), 2**31 - 1)}kB"
