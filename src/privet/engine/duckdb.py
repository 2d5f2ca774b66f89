"""DuckDB, embedded and shut in: it can read its sources and nothing else, and what it finds are exact integers."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from threading import Lock
from types import MappingProxyType, TracebackType
from typing import Any, Protocol
from weakref import finalize

import duckdb

from privet.engine.leaves import read
from privet.engine.relations import Stored
from privet.engine.sql import Context, name
from privet.engine.statements import Compiled, compiled
from privet.errors import NoAnswer, SourceError
from privet.interrupts import duckdb_interrupts, interruptible
from privet.relation.schema import Column, PublicSchema, Schema
from privet.relation.statement import Statement

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


class DuckDB:
    """Exact integers for statements over some tables.

    Claim: the size and order of a result depend on the statement alone. No row can cause an error; what else fails
    (memory, disk) is one constant `NoAnswer`. The connection reads the files of its sources, writes to a private folder
    for what does not fit into memory, which is removed, and can't be told otherwise.
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
        self._lock = Lock()
        self._calls = count()
        self._folder = tempfile.mkdtemp(prefix="privet-", dir=spill)
        finalize(self, shutil.rmtree, self._folder, True)  # for sessions that nobody closes
        try:
            self._connection = duckdb.connect(
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
            self._tables = self._attach("t", tables)
            self._public = self._attach("p", public)
            files = [file for _, source in (*tables.values(), *public.values()) for file in source.files()]
            self._harden(files, memory=memory, threads=threads, progress=progress)
            self._check_public()
        except BaseException:
            self.close()
            raise

    def _attach(
        self, prefix: str, tables: Mapping[str, tuple[Schema, Source]] | Mapping[str, tuple[PublicSchema, Source]]
    ) -> dict[str, Stored]:
        found = {}
        given: list[tuple[Schema | PublicSchema, Source]] = list(tables.values())
        for i, (schema, source) in enumerate(given):
            source.attach(self._connection, f"{prefix}{i}")
            found[schema.name] = Stored(schema, f"{prefix}{i}", dict(source.types()))
        return found

    def _harden(self, files: list[str], *, memory: str | None, threads: int | None, progress: bool) -> None:
        shown = progress and sys.stderr.isatty()
        settings: dict[str, Any] = {
            "TimeZone": "UTC",
            "preserve_insertion_order": False,
            # The first folds comparisons by a file's minimum and maximum, which leave NaN out: what a NaN is read as
            # would then depend on other rows. The second makes row_number() <= k several times slower.
            "disabled_optimizers": "statistics_propagation,top_n_window_elimination",
            "enable_progress_bar": shown,
            "temp_directory": self._folder,
            "allowed_paths": files,
            "allowed_directories": [self._folder],
        }
        if memory is not None:
            settings["memory_limit"] = memory
        if threads is not None:
            settings["threads"] = threads
        for setting, value in settings.items():
            self._connection.execute(f"SET {setting} = {_literal(value)}")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def _check_public(self) -> None:
        """The key of a public table is unique as it is read: else a join could make many rows of one."""
        for stored in self._public.values():
            assert isinstance(stored.schema, PublicSchema)
            key = stored.schema.key
            context = Context(prefix=f"u{next(self._calls)}_")
            value = read(Column(dict(stored.schema.columns)[key]), stored.types[key], name(key), "key", context)
            sql = f"SELECT count(k) - count(DISTINCT k) FROM (SELECT {value.sql} AS k FROM {stored.name})"
            if self._run(sql, context)[0][0]:
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
        with suppress(Exception):
            rows = interruptible(lambda: self._run(made.sql, made.context), self._connection.interrupt)
        if rows is None:  # raised out here, so that nothing of the engine's own error is attached
            raise NoAnswer(FAILED)
        return made.read(rows)

    def _run(self, sql: str, context: Context) -> list[tuple[Any, ...]]:
        with self._lock:
            made = []
            try:
                for values, enum in context.enums.items():
                    self._connection.execute(f"CREATE TYPE {enum} AS ENUM ({_LISTED})", [list(values)])
                    made.append(enum)
                return self._connection.execute(sql, context.parameters).fetchall()
            finally:
                for enum in made:
                    self._connection.execute(f"DROP TYPE {enum}")

    def close(self) -> None:
        """Ends the connection and removes its folder."""
        with self._lock:  # what is running ends first
            if hasattr(self, "_connection"):
                self._connection.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> DuckDB:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _literal(value: bool | int | str | list[str]) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
    return "[" + ", ".join(map(_literal, value)) + "]"
