"""Frames as sources: Arrow, pandas, Polars, Ibis, and whatever speaks Arrow's stream interface.

A frame is cast to what was declared, column by column, and copied: what happens to it later changes nothing here.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from privet.errors import Remedy, SourceError, Subject, write
from privet.sources import reading
from privet.sources.kinds import Found, Kind
from privet.system.identity import Identity

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows in memory, as an Arrow table that nobody else holds."""

    rows: Any = field(repr=False)
    identities: tuple[Identity, ...] = ()
    """Where they were read from, as far as that is known. What is in memory alone has no identity."""

    def types(self) -> Mapping[str, str]:
        """DuckDB's name of each column's type."""
        with reading.reader() as connection:
            connection.register("rows", self.rows.slice(0, 0))
            return reading.describe(connection, "rows")

    def files(self) -> Sequence[str]:
        """No files."""
        return ()

    def attach(self, connection: DuckDBPyConnection, name: str) -> None:
        """Make the rows known to this connection (not to its cursors) under a name."""
        connection.register(name, self.rows)


@dataclass(frozen=True, slots=True)
class Columns:
    """A frame before it is read: its columns by name, each of a known type."""

    where: str
    types: Mapping[str, Found]
    frame: Any = field(repr=False)
    identities: tuple[Identity, ...] = ()
    """The files or tables that were already read into the frame."""

    def read(self, kinds: Mapping[str, Kind]) -> Frame:
        """These columns, as these kinds, copied."""
        import pyarrow as pa

        from privet.sources import databases

        of_ibis = _library(self.frame) == "ibis"
        frame = _of_ibis(self.frame.select(*kinds)) if of_ibis else self.frame
        made = {name: _column(frame, name, kind) for name, kind in kinds.items()}
        return Frame(_copied(pa.table(made)), databases.identities(self.frame) if of_ibis else self.identities)


def columns(source: Any) -> Columns | None:
    """The columns of a frame, of whatever library; None if it is none."""
    import pyarrow as pa

    from privet.sources import arrow

    library, name = _library(source), type(source).__name__
    if library == "polars" and name == "LazyFrame":
        raise SourceError("a LazyFrame has no rows yet", remedy=write("pv.table(name, frame.collect(), ...)"))
    if library == "ibis":
        if not hasattr(source, "to_pyarrow") or not hasattr(source, "limit"):
            raise SourceError(f"{name} is not an Ibis table", remedy=write('connection.table("people")'))
        types = {f.name: arrow.found(f.type) for f in _of_ibis(source.limit(0)).schema}
        return Columns("the Ibis table", types, source)
    if library == "pandas" and name == "DataFrame":
        names = _unique([str(column) for column in source.columns], "the pandas DataFrame")
        return Columns("the pandas DataFrame", {n: _of_pandas(_at(source, i)) for i, n in enumerate(names)}, source)
    if library == "polars" and name == "DataFrame":
        types = {n: _of_polars(source[n]) for n in source.columns}
        return Columns("the Polars DataFrame", types, source)
    if not hasattr(source, "__arrow_c_stream__") and not isinstance(source, pa.RecordBatch):
        return None
    if not isinstance(source, pa.Table):
        source = _streamed(source)
    _unique(source.column_names, "the Arrow table")
    return Columns("the Arrow table", {f.name: arrow.found(f.type) for f in source.schema}, source)


def settled(found: Columns) -> Columns:
    """Public columns as Arrow has them: objects get the type that their values have, if they have one."""
    import pyarrow as pa

    from privet.sources import arrow, databases

    of_ibis = _library(found.frame) == "ibis"
    frame = _of_ibis(found.frame) if of_ibis else found.frame
    identities = databases.identities(found.frame) if of_ibis else found.identities
    made: dict[str, Any] = {}
    for name, kind in found.types.items():
        try:
            made[name] = _raw(frame, name, objects=kind.family == "anything")
        except Exception:  # no type that Arrow knows
            made[name] = pa.array([[]] * len(frame), pa.list_(pa.null()))
    table = pa.table(made)
    return Columns(found.where, {field.name: arrow.found(field.type) for field in table.schema}, table, identities)


def _raw(frame: Any, name: str, *, objects: bool) -> Any:
    import pyarrow as pa

    library = _library(frame)
    if library == "pyarrow":
        return frame.column(name)
    column = frame[name] if library == "polars" else _at(frame, [str(c) for c in frame.columns].index(name))
    if objects:
        return pa.array(list(column), from_pandas=True)
    return column.to_arrow() if library == "polars" else _chunked(column)


def _library(source: Any) -> str:
    """Which library made this: none of them need be installed to know."""
    return type(source).__module__.partition(".")[0]


def _streamed(source: Any) -> Any:
    import pyarrow as pa

    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    try:
        return pa.RecordBatchReader.from_stream(source).read_all()
    except Exception as error:
        raise SourceError(f"{type(source).__name__} can't be read as a table ({type(error).__name__}).") from None


def _of_ibis(source: Any) -> Any:
    try:
        with warnings.catch_warnings():  # Ibis and its engines warn of each other
            warnings.simplefilter("ignore")
            return source.to_pyarrow()
    except Exception as error:
        raise SourceError(
            f"the Ibis table can't be read ({type(error).__name__}: {str(error)[:200]})",
            remedy=write('pv.table(name, connection.table("people"), ...)'),
        ) from None


def _unique(names: list[str], where: str) -> list[str]:
    for name, times in Counter(names).items():
        if times > 1:
            raise SourceError(
                f"{where} has two columns {name!r}",
                subject=Subject("column", name),
                remedy=Remedy("Rename one of them"),
            )
    return names


def _copied(table: Any) -> Any:
    """A copy that shares no memory: an array can be a view of memory that somebody else still changes."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


# --- one column -----------------------------------------------------------------------------------


def _at(frame: Any, place: int) -> Any:
    return frame.iloc[:, place]


def _column(frame: Any, name: str, kind: Kind) -> Any:
    from privet.sources import arrow

    library = _library(frame)
    if library == "pandas":
        place = [str(column) for column in frame.columns].index(name)
        return _pandas_column(_at(frame, place), kind)
    if library == "polars":
        return _polars_column(frame[name], kind)
    return arrow.column(frame.column(name), kind)


def _of_pandas(series: Any) -> Found:
    """What a pandas column holds, as its type says."""
    from privet.sources import arrow

    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        return Found("object", "anything")
    if str(dtype) == "category":
        return Found(f"category of {series.cat.categories.dtype}", _of_pandas(series.cat.categories).family)
    try:
        return Found(str(dtype), arrow.found(_chunked(series[:0]).type).family)
    except Exception:  # sparse, complex, ...
        return Found(str(dtype), "no use")


def _pandas_column(series: Any, kind: Kind) -> Any:
    from privet.sources import arrow

    if isinstance(series.dtype, np.dtype) and series.dtype.kind == "O":
        return arrow.from_objects(list(series), kind)
    if str(series.dtype) == "category":
        import pyarrow as pa

        categories = _pandas_column(series.cat.categories.to_series(), kind).combine_chunks()
        codes = series.cat.codes.to_numpy()
        return pa.chunked_array([categories.take(pa.array(codes, mask=codes < 0))])
    return arrow.column(_chunked(series), kind)


def _chunked(series: Any) -> Any:
    import pyarrow as pa

    made = pa.array(series, from_pandas=True)
    return made if isinstance(made, pa.ChunkedArray) else pa.chunked_array([made])


def _of_polars(series: Any) -> Found:
    from privet.sources import arrow

    name = str(series.dtype)
    if name == "Object":
        return Found(name, "anything")
    if name in ("Int128", "UInt128"):
        return Found(name, "integer")
    try:
        return Found(name, arrow.found(series.head(0).to_arrow().type).family)
    except Exception:
        return Found(name, "no use")


def _polars_column(series: Any, kind: Kind) -> Any:
    import pyarrow as pa

    from privet.sources import arrow

    if str(series.dtype) in ("Object", "Int128", "UInt128"):
        return arrow.from_objects(series.to_list(), kind)
    return arrow.column(pa.chunked_array([series.to_arrow()]), kind)
