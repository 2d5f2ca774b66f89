"""Postgres, asked where the rows are: one SELECT for a statement, and only integers by group come back."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from threading import Condition, Lock
from types import MappingProxyType
from typing import Any, ClassVar, Unpack

from privet.engines.base import FAILED, ArrowRows, Private, Public, Resources, Source, Unsupported
from privet.engines.postgres import connections
from privet.engines.postgres.dialect import PostgresDialect
from privet.engines.postgres.public import Shipped, shipped
from privet.engines.postgres.signatures import locks, looks, signature
from privet.engines.postgres.tables import PostgresTable, is_as_declared
from privet.engines.sql.buckets import compiled_buckets
from privet.engines.sql.holders import CompiledHolders, compiled_holders
from privet.engines.sql.leaves import read
from privet.engines.sql.relations import Stored
from privet.engines.sql.statements import Compiled, compiled
from privet.engines.sql.text import Context
from privet.errors import NoAnswer, Remedy, SourceError, UserError
from privet.system.closing import Closing
from privet.system.interrupts import interruptible
from privet.system.processes import forever
from privet.tables.holders import Held, Holders
from privet.tables.schema import Column, PublicSchema
from privet.tables.statement import Buckets, Statement

_KEPT = 256  # compiled statements
_NO_COLUMN = "42703"
_CHANGED = (
    "a table of this session was changed in Postgres: a column has another type or is not there any more, a view has "
    "another definition, or a type has another cast to text. Nothing was spent. Open the session again"
)


@dataclass(frozen=True, slots=True)
class _Home:
    """What one process has of an engine: as many connections as questions run at a time."""

    connect: Callable[[], Any]
    idle: list[Any] = field(default_factory=list)
    running: list[Any] = field(default_factory=list)
    changed: Condition = field(default_factory=Condition)

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """One that nobody else uses while this lasts; after a failure it is closed for good."""
        process = os.getpid()
        with self.changed:
            connection = self.idle.pop() if self.idle else None
        if connection is None:
            connection = self.connect()
        with self.changed:
            self.running.append(connection)
        usable = False
        try:
            yield connection
            usable = True
        finally:
            if os.getpid() == process:  # else a signal handler forked: it is the parent's
                with self.changed:
                    self.running.remove(connection)
                    if usable:
                        self.idle.append(connection)
                    self.changed.notify_all()
                if not usable:
                    _shut(connection)

    def close(self) -> None:
        """After what is running."""
        with self.changed:
            self.changed.wait_for(lambda: not self.running)
            for connection in self.idle:
                _shut(connection)
            self.idle.clear()


class Postgres(Closing):
    """Exact integers for statements over tables of one database.

    Claim: that of `Engine`. Each question is one SELECT in a transaction that can only read, sees one snapshot, has a
    time limit, and depends on no setting of the server. A table that was changed since it was declared is noticed
    under a lock, before it is read.

    A child of a fork opens connections of its own, and leaves those of its parent alone.
    """

    name: ClassVar[str] = "postgres"

    @classmethod
    def reads(cls, source: Source) -> bool:
        """Whether it can read a source; rows in memory only of public tables."""
        return isinstance(source, PostgresTable | ArrowRows)

    def __init__(
        self,
        tables: Private,
        public: Public = MappingProxyType({}),
        *,
        salt: bytes,
        **resources: Unpack[Resources],
    ) -> None:
        sources = [source for _, source in tables.values() if isinstance(source, PostgresTable)]
        if len(sources) < len(tables) or len({source.address.url for source in sources}) != 1:
            raise UserError(
                "the engine 'postgres' reads private tables of one database, under one address",
                remedy=Remedy("Name the same address for each table, with its own name after #"),
            )
        self._address = sources[0].address
        self._key = int.from_bytes(sha256(b"privet bounding\x00" + salt).digest()[:8])
        self._dialect = PostgresDialect()
        self._compiled: dict[int, tuple[Statement, Compiled]] = {}
        self._tables = {
            schema.name: Stored(schema, source.rows, dict(source.types()))  # type: ignore[attr-defined]
            for schema, source in tables.values()
        }
        self._shipped: list[Shipped] = []
        self._public: dict[str, Stored] = {}
        for schema, source in public.values():
            one = shipped(source, len(self._shipped))
            self._shipped.append(one)
            self._public[schema.name] = Stored(schema, one.rows, one.types)
        self._first = _first_message(sources, resources)
        self._looks = "; ".join(looks(sources))
        self._signature: str | None = None
        self._homes: dict[int, _Home] = {}  # by process
        self._opening = Lock()
        self._closed = self._stopped = False
        try:
            with self._home().connection() as connection:
                self._signature = self._begin(connection)
                if not all(is_as_declared(connection, source) for source in sources):
                    raise SourceError(_CHANGED)
                self._check_public(connection)
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
            self._homes.setdefault(process, _Home(lambda: connections.connect(self._address)))
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

    def _check_public(self, connection: Any) -> None:
        """The key of a public table is unique as it is read: else a join could make many rows of one."""
        for stored in self._public.values():
            assert isinstance(stored.schema, PublicSchema)
            key = stored.schema.key
            context = Context(self._dialect)
            kind, quoted = dict(stored.schema.columns)[key], self._dialect.name(key)
            value = read(Column(kind), stored.types[key], quoted, "key", context)
            sql = f"SELECT count(k) - count(DISTINCT k) FROM (SELECT {value.sql} AS k FROM {stored.name})"
            if self._rows(connection, sql, context)[0][0]:
                raise SourceError(f"the key {key!r} of the public table {stored.schema.name!r} appears twice in it")

    def compile(self, statement: Statement) -> Compiled:
        """The statement as SQL; no data are read."""
        known = self._compiled.get(id(statement))
        if known is None or known[0] is not statement:
            if len(self._compiled) >= _KEPT:
                self._compiled.clear()
            program = compiled(statement, self._tables, self._public, self._dialect, self._key)
            self._compiled[id(statement)] = known = statement, program
        return known[1]

    def _compile_holders(self, statement: Holders) -> CompiledHolders:
        return compiled_holders(statement, self._tables, self._public, self._dialect, self._key)

    def supports(self, statement: Statement | Holders) -> str | None:
        """Why Postgres can't compute this statement; None if it can."""
        try:
            if isinstance(statement, Holders):
                self._compile_holders(statement)
            else:
                self.compile(statement)
        except Unsupported as reason:
            return str(reason)
        return None

    def answer(self, statement: Statement) -> list[list[int]]:
        """What the statement counts: a list for each group, in the order of `itertools.product`, of exact integers."""
        program = self.compile(statement)
        return program.read(self._fetched(program.sql, program.context))

    def histograms(self, statement: Statement, buckets: Buckets) -> list[dict[int, int]]:
        """For each group, the number of rows in each of these buckets of codes that has any."""
        program = compiled_buckets(statement, buckets, self._tables, self._public, self._dialect, self._key)
        return program.read(self._fetched(program.sql, program.context), buckets)

    def holders(self, statement: Holders) -> list[Held]:
        """How many people hold each private key."""
        program = self._compile_holders(statement)
        return program.read(self._fetched(program.sql, program.context))

    def _fetched(self, sql: str, context: Context) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] | None = None
        if self._stopped:
            raise SystemExit
        with suppress(Exception):
            found = None if self._closed else self._ask(sql, context)
        if found is None and self._stopped:
            raise SystemExit
        if found is None:  # raised out here, so that nothing of the driver's own error is attached
            raise NoAnswer(FAILED)
        return found

    def _ask(self, sql: str, context: Context) -> list[tuple[Any, ...]] | None:
        with self._home().connection() as connection:

            def run() -> list[tuple[Any, ...]] | None:
                if self._begin(connection) != self._signature:
                    return None
                found = self._rows(connection, sql, context)
                connection.execute("ROLLBACK")
                return found

            def end() -> None:
                with suppress(Exception):
                    connection.cancel_safe(timeout=1)
                connection.abandoned = True

            found = interruptible(run, end)
            if found is None:
                raise SourceError(_CHANGED)  # so that the connection, in its transaction, is closed
            return found

    def _rows(self, connection: Any, sql: str, context: Context) -> list[tuple[Any, ...]]:
        parameters: list[Any] = list(context.parameters)
        for each in self._shipped:
            sql = each.bound(sql, parameters)
        found = connections.rows(connection, sql, parameters)
        return [tuple(int(cell) if isinstance(cell, Decimal) else cell for cell in row) for row in found]

    def stop(self) -> None:
        """The process ends: what is running is ended too, and its thread with it."""
        self._stopped = True
        with suppress(Exception):
            for connection in list(self._home().running):
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
    number, unit = re.fullmatch(r"([0-9.]+) ?([KMGT]?)i?B", memory).groups()  # type: ignore[union-attr]
    size = float(number) * 1024 ** " KMGT".index(unit or " ")
    return f"{min(max(int(size / 4096), 64), 2**31 - 1)}kB"


def _shut(connection: Any) -> None:
    with suppress(Exception):
        connection.close()
