"""A Parquet file that appears whole or not at all: written under a temporary name, then renamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from privet.system import files

_GROUP = 122_880
"""Minimum rows to write together."""


def write(target: Path, schema: Any, tables: Iterator[Any], judge: Callable[[], None], *, overwrite: bool) -> None:
    """Write all tables, unless `judge` raises at the end; then no file remains. Only its owner can read a new file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = [field.name for field in schema if field.type == pa.large_string()]
    with files.written(target, overwrite=overwrite, mode=0o600) as file:
        with pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=texts or False) as writer:
            for table in _gathered(tables):
                writer.write_table(table)
        judge()


def _gathered(tables: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    pending: list[Any] = []
    for table in tables:
        pending.append(table)
        if sum(part.num_rows for part in pending) >= _GROUP:
            yield pa.concat_tables(pending)
            pending = []
    if pending:
        yield pa.concat_tables(pending)
