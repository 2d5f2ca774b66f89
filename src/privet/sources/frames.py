"""Frames as sources: Arrow, pandas, Polars, Ibis, and anything with Arrow's stream interface.

A frame is cast to the declared types, column by column, and copied, so later changes to it have no effect here.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privet.engines.base import ArrowRows
from privet.errors import Remedy, SourceError, Subject, write
from privet.sources.objects import misfit
from privet.sources.readings import Reading
from privet.system.identity import Identity
from privet.tables.stored_types import StoredType


@dataclass(frozen=True, slots=True)
class Columns:
    """A frame before it is read: its columns by name, each of a known type."""

    where: str
    types: Mapping[str, StoredType]
    frame: Any = field(repr=False)
    identities: tuple[Identity, ...] = ()
    """The files or tables that were already read into the frame."""

    def read(self, kinds: Mapping[str, Reading]) -> ArrowRows:
        """A copy of these columns, cast to these kinds."""
        import pyarrow as pa

        from privet.sources import ibis_tables

        of_ibis = _library(self.frame) == "ibis"
        frame = _of_ibis(self.frame.select(*kinds)) if of_ibis else self.frame
        for name, kind in kinds.items():
            _check_objects(frame, name, kind, self.where)
        arrays = {name: _column(frame, name, kind) for name, kind in kinds.items()}
        return ArrowRows(_copied(pa.table(arrays)), ibis_tables.identities(self.frame) if of_ibis else self.identities)


def columns(source: Any) -> Columns | None:
    """The columns of a frame of any supported library; None if it is not a frame."""
    import pyarrow as pa

    from privet.engines.arrow_types import stored

    library, name = _library(source), type(source).__name__
    if library == "polars" and name == "LazyFrame":
        raise SourceError("a LazyFrame has no rows yet", remedy=write("pv.table(name, frame.collect(), ...)"))
    if library == "pyspark":  # whose plan may be anything, and fail on a row
        raise SourceError(
            f"a {name} of Spark is not a table",
            allowed="Tables of Spark's catalogue and Parquet files that Spark reads are, by name",
            remedy=write(
                'frame.write.saveAsTable("sales.people"); pv.table("people", "spark:sales.people", ...)', exact=True
            ),
        )
    if library == "ibis":
        if not hasattr(source, "to_pyarrow") or not hasattr(source, "limit"):
            raise SourceError(f"{name} is not an Ibis table", remedy=write('connection.table("people")'))
        types = {f.name: stored(f.type) for f in _of_ibis(source.limit(0)).schema}
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
    return Columns("the Arrow table", {f.name: stored(f.type) for f in source.schema}, source)


def settled(columns: Columns) -> Columns:
    """Public columns in Arrow; a column of objects gets the type of its values, if they share one."""
    import pyarrow as pa

    from privet.engines.arrow_types import stored
    from privet.sources import ibis_tables

    of_ibis = _library(columns.frame) == "ibis"
    frame = _of_ibis(columns.frame) if of_ibis else columns.frame
    identities = ibis_tables.identities(columns.frame) if of_ibis else columns.identities
    arrays: dict[str, Any] = {}
    for name, kind in columns.types.items():
        try:
            arrays[name] = _raw(frame, name, objects=kind.family == "anything")
        except Exception:  # not a type that Arrow knows
            arrays[name] = pa.array([[]] * len(frame), pa.list_(pa.null()))
    table = pa.table(arrays)
    return Columns(columns.where, {field.name: stored(field.type) for field in table.schema}, table, identities)


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
    """The library that a frame comes from; found without importing it."""
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
        with warnings.catch_warnings():  # Ibis and its engines warn about each other
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
    """A copy that shares no memory: an array can be a view of memory that someone else still changes."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


# --- one column -----------------------------------------------------------------------------------


def _at(frame: Any, place: int) -> Any:
    return frame.iloc[:, place]


def _column(frame: Any, name: str, kind: Reading) -> Any:
    from privet.sources import arrow

    library = _library(frame)
    if library == "pandas":
        place = [str(column) for column in frame.columns].index(name)
        return _pandas_column(_at(frame, place), kind)
    if library == "polars":
        return _polars_column(frame[name], kind)
    return arrow.column(frame.column(name), kind)


def _check_objects(frame: Any, name: str, kind: Reading, where: str) -> None:
    """Refuse Python objects of other types, such as numbers as texts: all of them would be missing."""
    from privet.sources.readings import HOLD, NAMES

    found = misfit(_objects(frame, name), kind)
    if found is None:
        return
    polars = _library(frame) == "polars"
    source, read_as = f"frame[{name!r}]".replace("'", '"'), " or ".join(NAMES[family] for family in HOLD[kind])
    fixes = {"boolean": f'{source}.map({{"yes": True, "no": False}})', "text": f"{source}.astype(str)"}
    if kind in ("number", "integer", "key"):
        fixes[kind] = f'pd.to_numeric({source}, errors="coerce")'
    elif kind in ("date", "timestamp"):
        fixes[kind] = f'pd.to_datetime({source}, errors="coerce")'
    line = write(f"{source} = {fixes[kind]}") if kind in fixes and not polars else None
    raise SourceError(
        f"column {name!r} of {where} contains Python objects, and one of them is of type {found.__name__!r}",
        allowed=f"Here it must contain {read_as} only",
        subject=Subject("column", name),
        remedy=line or Remedy("Convert the column first"),
    )


def _objects(frame: Any, name: str) -> Any:
    """The different Python objects of a column, if it has such."""
    match _library(frame):
        case "pandas":
            series = _at(frame, [str(column) for column in frame.columns].index(name))
            values = series.cat.categories if str(series.dtype) == "category" else series
            return list(values) if isinstance(values.dtype, np.dtype) and values.dtype.kind == "O" else ()
        case "polars":
            return frame[name].to_list() if str(frame[name].dtype) == "Object" else ()
    return ()


def _of_pandas(series: Any) -> StoredType:
    """What a pandas column contains, according to its type."""
    from privet.engines.arrow_types import stored

    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind == "O":
        return StoredType("object", "anything")
    if str(dtype) == "category":
        return StoredType(f"category of {series.cat.categories.dtype}", _of_pandas(series.cat.categories).family)
    try:
        return StoredType(str(dtype), stored(_chunked(series[:0]).type).family)
    except Exception:  # sparse, complex, ...
        return StoredType(str(dtype), "no use")


def _pandas_column(series: Any, kind: Reading) -> Any:
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

    array = pa.array(series, from_pandas=True)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _of_polars(series: Any) -> StoredType:
    from privet.engines.arrow_types import stored

    name = str(series.dtype)
    if name == "Object":
        return StoredType(name, "anything")
    if name in ("Int128", "UInt128"):
        return StoredType(name, "integer")
    try:
        return StoredType(name, stored(series.head(0).to_arrow().type).family)
    except Exception:
        return StoredType(name, "no use")


def _polars_column(series: Any, kind: Reading) -> Any:
    import pyarrow as pa

    from privet.sources import arrow

    if str(series.dtype) in ("Object", "Int128", "UInt128"):
        return arrow.from_objects(series.to_list(), kind)
    return arrow.column(pa.chunked_array([series.to_arrow()]), kind)
