"""How a DuckDB is started, shut in: it reads the sources and nothing else, and can't be told otherwise."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import duckdb
from duckdb import DuckDBPyConnection

from privet.engines.base import Resources, Source
from privet.engines.duckdb import attaching
from privet.engines.duckdb.files import DuckDBFile
from privet.engines.unchanged import states
from privet.errors import SourceError
from privet.system.stopping import current

_READERS = 8  # threads of DuckDB's own that read ahead
_COLUMNS = (
    "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE database_name = 'memory' AND NOT internal "
    "ORDER BY ALL"
)


@dataclass(frozen=True, slots=True)
class Starting:
    """What every DuckDB of an engine has."""

    sources: Sequence[tuple[str, Source]]
    """By the names that statements use."""
    resources: Resources
    _types: list[list[Any]] = field(default_factory=list)
    """The columns of all views and tables, and their types, in the first of them: statements are made for these."""

    @property
    def apart(self) -> bool:
        """Whether each question has a DuckDB, and so memory, of its own."""
        return self.resources.get("apart", False)

    @property
    def threads(self) -> int:
        """How many threads each has, also while it is idle."""
        return (self.resources.get("threads") or os.cpu_count() or 1) + _READERS

    def started(self, folder: str) -> DuckDBPyConnection:
        """One more, which writes to this folder what does not fit into memory. No other may write there.

        It reads columns of the types that the first one did, whatever became of a file. A question that is stopped
        meanwhile need not wait for it.
        """
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
        question = current()
        try:
            with nullcontext() if question is None else question.ended_by(connection.interrupt):
                for name, source in self.sources:
                    attaching.attach(connection, source, name)
                self._check_types(connection)
                self._harden(connection, folder)
        except BaseException:
            connection.close()
            raise
        return connection

    def attached(self) -> object:
        """The state of all files that are attached. From these DuckDB keeps pages, as long as it is open."""
        files = (source for _, source in self.sources if isinstance(source, DuckDBFile))
        return states(sorted({path for source in files for path in source.files()}))

    def _check_types(self, connection: DuckDBPyConnection) -> None:
        found = connection.execute(_COLUMNS).fetchall()
        if not self._types:
            self._types.append(found)
        elif found != self._types[0]:
            raise SourceError("the columns of a table are not what they were when it was opened")

    def cursor(self, first: DuckDBPyConnection) -> DuckDBPyConnection:
        """A cursor of one that was started."""
        cursor = first.cursor()
        for name, source in self.sources:
            attaching.attach_again(cursor, source, name)
        return cursor

    def _harden(self, connection: DuckDBPyConnection, folder: str) -> None:
        memory, threads = self.resources.get("memory"), self.resources.get("threads")
        progress = self.resources.get("progress", False)
        settings: dict[str, Any] = {
            "TimeZone": "UTC",
            "preserve_insertion_order": False,
            # The first folds comparisons by a file's minimum and maximum, which leave NaN out: what a NaN is read as
            # would then depend on other rows. The second makes row_number() <= k several times slower.
            "disabled_optimizers": "statistics_propagation,top_n_window_elimination",
            "enable_external_file_cache": False,  # it would keep objects in memory
            "temp_directory": folder,
            "allowed_paths": [file for _, source in self.sources for file in source.files()],
            "allowed_directories": [folder],
        }
        if memory is not None:
            settings["memory_limit"] = memory
        if threads is not None:
            settings["threads"] = threads
        for setting, value in settings.items():  # for all cursors
            connection.execute(f"SET GLOBAL {setting} = {_literal(value)}")
        connection.execute(f"SET SESSION enable_progress_bar = {_literal(progress)}")
        if progress:  # counted for the first connection alone, and drawn by us
            connection.execute("SET SESSION enable_progress_bar_print = false")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")


def _literal(value: bool | int | str | list[str]) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
    return "[" + ", ".join(map(_literal, value)) + "]"
