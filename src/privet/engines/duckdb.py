"""DuckDB, embedded and shut in: it can read its sources and nothing else, and what it finds are exact integers."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from pathlib import Path
from threading import Lock, Thread
from types import MappingProxyType, TracebackType
from typing import Any, Protocol
from weakref import WeakSet, finalize

import duckdb

from privet.engines.leaves import read
from privet.engines.relations import Stored
from privet.engines.sql import Context, name
from privet.engines.statements import Compiled, compiled
from privet.errors import NoAnswer, SourceError, UserError
from privet.system.interrupts import duckdb_interrupts, interruptible
from privet.system.processes import forever, native
from privet.tables.schema import Column, PublicSchema, Schema
from privet.tables.statement import Statement

FAILED = "the engine could not compute the answer. What was spent stays spent"
"""The text of every failure: what went wrong could tell of a row."""

_LISTED = "SELECT v FROM (SELECT unnest($1::VARCHAR[]) AS v, unnest(range(len($1::VARCHAR[]))) AS i) ORDER BY i"


class Source(Protocol):
    """Where the rows of a table are."""

    def types(self) -> Mapping[str, str]:
        """The columns, and DuckDB's names of their types."""

    def files(self) -> Sequence[str]:
        """The files that must stay readable."""

    def attach(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        """Makes a table or view of this name."""


_TRIAL = "SELECT sum(hash(i)) FROM range(500_000) AS r(i)"  # as many rows as need several threads
_PATIENCE = 30.0  # seconds that it may take to open the tables in a child; it takes less than one
_STUCK = (
    "DuckDB does not start in this process, perhaps since it was forked while its parent was busy with DuckDB. "
    "Nothing was spent. Start processes before questions are asked, or with the method 'spawn' of multiprocessing, "
    "and open a session in each"
)
_LOST = (
    "the tables of this session can't be opened again in this process, which was forked from the one that opened them. "
    "Nothing was spent. Look whether their files are still there, and open a session in this process"
)


@dataclass(frozen=True, slots=True)
class _Home:
    """What one process has of an engine."""

    connection: duckdb.DuckDBPyConnection
    folder: str
    lock: Lock = field(default_factory=Lock)


class DuckDB:
    """Exact integers for statements over some tables.

    Claim: the size and order of a result depend on the statement alone. No row can cause an error; what else fails
    (memory, disk) is one constant `NoAnswer`. The connection reads the files of its sources, writes to a private folder
    for what does not fit into memory, which is removed, and can't be told otherwise.

    A child of a fork opens a connection and a folder of its own when it first needs them. It neither uses nor closes
    what is its parent's: DuckDB's threads were not forked with it, and whoever waits for them waits for ever.
    """

    @duckdb_interrupts()
    def __init__(
        self,
        tables: Mapping[str, tuple[Schema, Source]],
        public: Mapping[str, tuple[PublicSchema, Source]] = MappingProxyType({}),
        *,
        salt: bytes,
        memory: str | None = None,
        threads: int | None = None,
        spill: Path | None = None,
        progress: bool = False,
    ) -> None:
        self._key = int.from_bytes(sha256(b"privet bounding\x00" + salt).digest()[:8])
        self._calls = count()
        self._sources = dict(tables), dict(public)
        self._how: dict[str, Any] = {"memory": memory, "threads": threads, "progress": progress}
        self._spill = spill
        self._homes: dict[int, _Home] = {}  # by process
        self._opening: dict[int, Lock] = {}
        self._stuck: set[int] = set()
        self._closed = self._stopped = False
        finalize(self, _abandon, self._homes).atexit = False  # for sessions that nobody closes
        _OPEN.add(self)
        self._open()

    @native()
    def _open(self, trial: str = "") -> None:
        """A connection and a folder for this process."""
        home = None
        folder = tempfile.mkdtemp(prefix="privet-", dir=self._spill)
        try:
            connection = duckdb.connect(
                ":memory:",
                config={
                    "python_enable_replacements": False,
                    "autoinstall_known_extensions": False,
                    "autoload_known_extensions": False,
                    "allow_community_extensions": False,
                    "allow_persistent_secrets": False,
                    "default_collation": "",  # texts are equal if their bytes are
                },
            )
            home = _Home(connection, folder)
            tables, public = self._sources
            self._tables = self._attach(connection, "t", tables)
            self._public = self._attach(connection, "p", public)
            files = [file for _, source in (*tables.values(), *public.values()) for file in source.files()]
            self._harden(home, files, **self._how)
            self._check_public(home)
            if trial:
                connection.execute(trial).fetchall()
        except BaseException:
            _shut(home, folder)
            raise
        self._homes[os.getpid()] = home

    def ready(self) -> None:
        """Make sure that this process can ask: nothing is read. To be called before a debit."""
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
    def _connection(self) -> duckdb.DuckDBPyConnection:
        return self._homes[os.getpid()].connection

    @property
    def _folder(self) -> str:
        return self._homes[os.getpid()].folder

    @property
    def _lock(self) -> Lock:
        return self._homes[os.getpid()].lock

    def _attach(
        self,
        connection: duckdb.DuckDBPyConnection,
        prefix: str,
        tables: Mapping[str, tuple[Schema, Source]] | Mapping[str, tuple[PublicSchema, Source]],
    ) -> dict[str, Stored]:
        found = {}
        given: list[tuple[Schema | PublicSchema, Source]] = list(tables.values())
        for i, (schema, source) in enumerate(given):
            source.attach(connection, f"{prefix}{i}")
            found[schema.name] = Stored(schema, f"{prefix}{i}", dict(source.types()))
        return found

    def _harden(
        self, home: _Home, files: list[str], *, memory: str | None, threads: int | None, progress: bool
    ) -> None:
        shown = progress and sys.stderr.isatty()
        settings: dict[str, Any] = {
            "TimeZone": "UTC",
            "preserve_insertion_order": False,
            # The first folds comparisons by a file's minimum and maximum, which leave NaN out: what a NaN is read as
            # would then depend on other rows. The second makes row_number() <= k several times slower.
            "disabled_optimizers": "statistics_propagation,top_n_window_elimination",
            "enable_progress_bar": shown,
            "temp_directory": home.folder,
            "allowed_paths": files,
            "allowed_directories": [home.folder],
        }
        if memory is not None:
            settings["memory_limit"] = memory
        if threads is not None:
            settings["threads"] = threads
        for setting, value in settings.items():
            home.connection.execute(f"SET {setting} = {_literal(value)}")
        home.connection.execute("SET enable_external_access = false")
        home.connection.execute("SET lock_configuration = true")

    def _check_public(self, home: _Home) -> None:
        """The key of a public table is unique as it is read: else a join could make many rows of one."""
        for stored in self._public.values():
            assert isinstance(stored.schema, PublicSchema)
            key = stored.schema.key
            context = Context(prefix=f"u{next(self._calls)}_")
            value = read(Column(dict(stored.schema.columns)[key]), stored.types[key], name(key), "key", context)
            sql = f"SELECT count(k) - count(DISTINCT k) FROM (SELECT {value.sql} AS k FROM {stored.name})"
            if _rows(home, sql, context)[0][0]:
                raise SourceError(f"the key {key!r} of the public table {stored.schema.name!r} stands there twice")

    def _hash(self, columns: list[str]) -> str:
        """The keyed hash. Privacy holds for every one: it chooses who survives evenly, no more."""
        return f"hash({self._key}::UBIGINT, {', '.join(columns)})"

    def compile(self, statement: Statement) -> Compiled:
        """The statement as SQL; no data are read."""
        return compiled(statement, self._tables, self._public, self._hash, f"e{next(self._calls)}_")

    def tally(self, statement: Statement) -> list[list[int]]:
        """What the statement counts: a list for each group, in the order of `itertools.product`, of exact integers."""
        return self.answer(self.compile(statement))

    def answer(self, made: Compiled) -> list[list[int]]:
        """The same, of a statement that was compiled before."""
        rows: list[tuple[Any, ...]] | None = None
        self.ready()
        with suppress(Exception):
            rows = interruptible(lambda: self._run(made.sql, made.context), self._connection.interrupt)
        if rows is None and self._stopped:
            raise SystemExit
        if rows is None:  # raised out here, so that nothing of the engine's own error is attached
            raise NoAnswer(FAILED)
        return made.read(rows)

    def _run(self, sql: str, context: Context) -> list[tuple[Any, ...]]:
        return _rows(self._homes[os.getpid()], sql, context)

    def stop(self) -> None:
        """The process ends: what is running is ended too, and its thread with it."""
        self._stopped = True
        with suppress(Exception):
            self._connection.interrupt()

    def close(self) -> None:
        """Ends this process's connection and removes its folder."""
        self._closed = True
        home = self._homes.get(os.getpid())
        if home is not None:
            with native(), home.lock:  # what is running ends first
                _shut(home, home.folder)

    def __enter__(self) -> DuckDB:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _rows(home: _Home, sql: str, context: Context) -> list[tuple[Any, ...]]:
    with native(), home.lock:
        made = []
        try:
            for values, enum in context.enums.items():
                home.connection.execute(f"CREATE TYPE {enum} AS ENUM ({_LISTED})", [list(values)])
                made.append(enum)
            return home.connection.execute(sql, context.parameters).fetchall()
        finally:
            for enum in made:
                home.connection.execute(f"DROP TYPE {enum}")


def _shut(home: _Home | None, folder: str) -> None:
    if home is not None:
        home.connection.close()
    shutil.rmtree(folder, ignore_errors=True)


def _abandon(homes: dict[int, _Home]) -> None:
    """Nobody needs the engine any more: this process's folder goes, and the parent's connection is left alone."""
    for process, home in homes.items():
        if process == os.getpid():
            shutil.rmtree(home.folder, ignore_errors=True)
        else:
            forever(home.connection)


_OPEN: WeakSet[DuckDB] = WeakSet()


@atexit.register
def _at_exit() -> None:
    for engine in list(_OPEN):
        _abandon(engine._homes)


def _literal(value: bool | int | str | list[str]) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
    return "[" + ", ".join(map(_literal, value)) + "]"
