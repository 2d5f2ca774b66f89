"""A Parquet file that appears whole or not at all: written beside its place, and named at the end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from privet.errors import SourceError

_GROUP = 122_880
"""How many rows are written together, at the least."""


def writable(target: Path, overwrite: bool) -> None:
    """Refuse a place where nothing can be written."""
    if target.exists() and not overwrite:
        raise SourceError(f"{str(target)!r} exists already. Write, to replace it: overwrite=True")
    if not target.parent.is_dir():
        raise SourceError(f"there is no folder {str(target.parent)!r} to write to.")


def write(target: Path, schema: Any, tables: Iterator[Any], judge: Callable[[], None]) -> None:
    """All tables, if the judge raises nothing at the end; else no file is left."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = [field.name for field in schema if field.type == pa.large_string()]
    handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            with pq.ParquetWriter(file, schema, compression="zstd", use_dictionary=texts or False) as writer:
                for table in _gathered(tables):
                    writer.write_table(table)
            judge()
            file.flush()
            os.fsync(file.fileno())
        Path(scratch).replace(target)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


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
