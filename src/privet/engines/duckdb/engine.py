"""DuckDB, embedded and shut in: it can read its sources and nothing else, and what it finds are exact integers."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from types import MappingProxyType
from typing import Any, ClassVar, Unpack
from weakref import WeakSet, finalize

from duckdb import DuckDBPyConnection

from privet.engines import object_store
from privet.engines.base import Private, Public, Resources, Source, objects_of
from privet.engines.duckdb import attaching
from privet.engines.duckdb.dialect import DuckDBDialect
from privet.engines.duckdb.lists import Lists
from privet.engines.duckdb.starting import Starting
from privet.engines.sql.engine import Ask, Rows, SQLEngine
from privet.engines.sql.pool import Pool
from privet.engines.sql.relations import Stored
from privet.engines.sql.text import Context
from privet.engines.unchanged import Unchanged
from privet.errors import SourceError, UserError
from privet.system.interrupts import duckdb_interrupts
from privet.system.processes import forever, native
from privet.tables.schema import PublicSchema, Schema

_TRIAL = "SELECT sum(hash(i)) FROM range(500_000) AS r(i)"  # as many rows as need several threads
_PATIENCE = 30.0  # seconds that it may take to open the tables in a child; it takes less than one
_THREADS = 1_000  # of DuckDBs apart that are idle, in a process: many systems allow some thousands
_STUCK = (
    "DuckDB does not start in this process, perhaps since it was forked while its parent was busy with DuckDB. "
    "Nothing was spent. Start processes before questions are asked, or with the method 'spawn' of multiprocessing, "
    "and open a session in each"
)
_LOST = (
    "the tables of this session can't be opened again in this process, which was forked from the one that opened them. "
    "Nothing was spent. Look whether their files are still there, and open a session in this process"
)


class _Home(Pool[DuckDBPyConnection]):
    """What one process has of an engine: a folder, and as many connections as questions run at a time.

    A connection runs one statement at a time, and is interrupted alone. All are cursors of the first, or, if questions
    are apart, each is a DuckDB with memory and a folder of its own.
    """

    def __init__(self, folder: str, starting: Starting) -> None:
        super().__init__()
        self.folder, self._starting = folder, starting
        self.lists = Lists()
        self._own: dict[DuckDBPyConnection, tuple[str, object]] = {}  # of DuckDBs apart: the folder, and their files
        self.first = self._apart() if starting.apart else starting.started(folder)
        self.idle.append(self.first)

    @native()
    def _connect(self) -> DuckDBPyConnection:
        return self._apart() if self._starting.apart else self._starting.cursor(self.first)

    def _apart(self) -> DuckDBPyConnection:
        folder = tempfile.mkdtemp(dir=self.folder)
        try:
            states = self._starting.attached()
            connection = self._starting.started(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._own[connection] = folder, states
        return connection

    def renew(self) -> None:
        """Let go of DuckDBs apart that have attached a file that is not what it was: each has pages of it in memory."""
        if not self._starting.apart:
            return
        now = self._starting.attached()
        with self._changed:
            old = [each for each in self.idle if self._own[each][1] != now]
            self.idle[:] = [each for each in self.idle if each not in old]
        for each in old:
            self._drop(each)

    def _usable(self, connection: DuckDBPyConnection) -> bool:
        """Whether it is kept: one of each engine is; of DuckDBs apart, each of which has threads, no more than fit."""
        return not (self._starting.apart and self.idle) or (_idle() + 1) * self._starting.threads <= _THREADS

    def _drop(self, connection: DuckDBPyConnection) -> None:
        """One that was interrupted, perhaps while it removed a type, is closed; of cursors, the first with its process.

        A DuckDB of its own goes with its folder.
        """
        if self._starting.apart:
            folder, _ = self._own.pop(connection)
            with native():
                connection.close()
            shutil.rmtree(folder, ignore_errors=True)
        elif connection is not self.first:
            connection.close()

    def close(self) -> None:
        """After what is running."""
        super().close()
        self.first.close()


class DuckDB(SQLEngine):
    """Exact integers for statements over some tables.

    Claim: the size and order of a result depend on the statement alone. No row can cause an error; what else fails
    (memory, disk) is one constant `NoAnswer`. The connection reads the files of its sources, writes to a private folder
    for what does not fit into memory, which is removed, and can't be told otherwise.

    Threads ask at the same time, each on a cursor of its own, or, if questions are `apart`, in a DuckDB of its own.

    A child of a fork opens a connection and a folder of its own when it first needs them. It neither uses nor closes
    what is its parent's: DuckDB's threads were not forked with it, so waiting for them would never end.
    """

    name: ClassVar[str] = "duckdb"

    @classmethod
    def reads(cls, source: Source) -> bool:
        """Whether DuckDB can read a source."""
        return attaching.reads(source)

    @duckdb_interrupts()
    def __init__(
        self,
        tables: Private,
        public: Public = MappingProxyType({}),
        *,
        salt: bytes,
        **resources: Unpack[Resources],
    ) -> None:
        progress = resources.get("progress", False)
        super().__init__(_stored("t", tables), _stored("p", public), DuckDBDialect(), salt=salt, progress=progress)
        self._objects = objects_of(tables)
        named = [(self._tables[name].name, source) for name, (_, source) in tables.items()]
        named += [(self._public[name].name, source) for name, (_, source) in public.items()]
        self._starting = Starting(named, resources)
        self._homes: dict[int, _Home] = {}  # by process
        self._opening: dict[int, Lock] = {}
        self._stuck: set[int] = set()
        finalize(self, _abandon, self._homes).atexit = False  # for sessions that nobody closes
        _OPEN.add(self)
        self._open()

    @native()
    def _open(self, trial: str = "") -> None:
        """A connection and a folder for this process."""
        home = None
        folder = tempfile.mkdtemp(prefix="privet-", dir=self._starting.resources.get("spill"))
        try:
            object_store.check_before_debit(self._objects)
            home = _Home(folder, self._starting)
            with home.connection() as connection:
                self._check_public(lambda sql, context: _rows(connection, home.lists, sql, context))
                if trial:
                    connection.execute(trial).fetchall()
        except BaseException:
            _shut(home, folder)
            raise
        self._homes[os.getpid()] = home

    def ready(self) -> None:
        """Make sure that this process can ask: no row is read. To be called before a debit."""
        self._prepare()
        object_store.check_before_debit(self._objects)

    def _prepare(self) -> None:
        process = os.getpid()
        if process in self._homes or self._closed:
            return
        with self._opening.setdefault(process, Lock()):
            if process not in self._homes:
                self._open_in_child(process)

    def _open_in_child(self, process: int) -> None:
        """In a thread of its own: whatever DuckDB has inherited from a parent that was busy, nobody waits for ever."""
        errors: list[Exception] = []

        def run() -> None:
            try:
                self._open(_TRIAL)
            except Exception as error:
                errors.append(error)

        if process not in self._stuck:
            thread = Thread(target=run, daemon=True)
            try:
                thread.start()
                thread.join(_PATIENCE)
            except RuntimeError:  # no more threads
                run()
            if thread.is_alive():
                self._stuck.add(process)
        if process in self._stuck:
            raise UserError(_STUCK)
        if errors and isinstance(errors[0], UserError):
            raise errors[0]
        if errors:
            raise SourceError(_LOST) from None
        if "multiprocessing.util" in sys.modules:  # its processes end without `atexit`
            sys.modules["multiprocessing.util"].Finalize(self, _abandon, (self._homes,), exitpriority=0)

    @property
    def _connection(self) -> DuckDBPyConnection:
        return self._homes[os.getpid()].first

    @property
    def _folder(self) -> str:
        return self._homes[os.getpid()].folder

    @contextmanager
    def _looking(self) -> Iterator[Ask]:
        """One cursor, and files that stay as they are."""
        home = self._homes[os.getpid()]
        home.renew()
        with home.connection() as cursor:
            files = Unchanged(source for _, source in self._starting.sources)

            def ask(sql: str, context: Context) -> Rows | None:
                if self._stopped:  # while a DuckDB was started
                    return None
                found = self._interruptible(
                    lambda: self._run(cursor, sql, context), cursor.interrupt, lambda: cursor.query_progress() / 100
                )
                files.check()  # what changed meanwhile was read in parts
                for objects in self._objects.values():
                    object_store.check(objects)
                return found

            yield ask

    def _run(self, cursor: DuckDBPyConnection, sql: str, context: Context) -> list[tuple[Any, ...]]:
        return _rows(cursor, self._homes[os.getpid()].lists, sql, context)

    def stop(self) -> None:
        """The process ends: what is running is ended too, and its thread with it."""
        self._stopped = True
        with suppress(Exception):
            for cursor in self._homes[os.getpid()].running:
                cursor.interrupt()

    def close(self) -> None:
        """Ends this process's connection and removes its folder; what is running ends first."""
        self._closed = True
        home = self._homes.get(os.getpid())
        if home is not None:
            with native():
                _shut(home, home.folder)


def _stored(prefix: str, tables: Mapping[str, tuple[Schema | PublicSchema, Source]]) -> dict[str, Stored]:
    """The tables by name, each with a name of our own."""
    return {
        schema.name: Stored(schema, f"{prefix}{i}", dict(source.types()))
        for i, (schema, source) in enumerate(tables.values())
    }


def _rows(cursor: DuckDBPyConnection, lists: Lists, sql: str, context: Context) -> list[tuple[Any, ...]]:
    """What a SELECT finds. After an error the cursor is not used again, and its types are as they may be."""
    with native():
        lists.provide(cursor, context.lists)
        found = cursor.execute(sql, context.parameters).fetchall()
        lists.tidy(cursor)
        return found


def _shut(home: _Home | None, folder: str) -> None:
    if home is not None:
        home.close()
    shutil.rmtree(folder, ignore_errors=True)


def _abandon(homes: dict[int, _Home]) -> None:
    """Nobody needs the engine any more: this process's folder goes, and the parent's connection is left alone."""
    for process, home in homes.items():
        if process == os.getpid():
            shutil.rmtree(home.folder, ignore_errors=True)
        else:
            for connection in {home.first, *home.idle, *home.running}:
                forever(connection)


_OPEN: WeakSet[DuckDB] = WeakSet()


def _idle() -> int:
    """How many DuckDBs apart are idle in this process, of all engines."""
    try:
        homes = [engine._homes.get(os.getpid()) for engine in _OPEN if engine._starting.apart]
    except RuntimeError:  # another thread has just opened one
        return _idle()
    return sum(len(home.idle) for home in homes if home is not None)


@atexit.register
def _at_exit() -> None:
    for engine in list(_OPEN):
        _abandon(engine._homes)
