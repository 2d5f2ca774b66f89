"""A Parquet file that appears whole or not at all: written beside its place, and named at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from privet.system import files

_GROUP = 122_880
"""How many rows are written together, at the least."""


def write(target: Path, schema: Any, tables: Iterator[Any], judge: Callable[[], None], *, overwrite: bool) -> None:
    """All tables, if the judge raises nothing at the end; else no file is left. Only its owner may read a new one."""
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

    held: list[Any] = []
    for table in tables:
        held.append(table)
        if sum(part.num_rows for part in held) >= _GROUP:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)
