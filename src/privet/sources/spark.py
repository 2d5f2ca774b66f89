"""A table in Spark as a source, checked before any session exists."""

from __future__ import annotations

from privet.engines.spark import files, tables
from privet.engines.spark.addresses import parsed, written
from privet.engines.spark.tables import SparkTable
from privet.errors import Remedy, SourceError, Subject
from privet.sources import checked_files, readings
from privet.sources.parquet import person_of
from privet.tables.schema import Schema


def source_of(schema: Schema, address: str) -> SparkTable:
    """The table or the files that an address names, if they match the schema and all of their values can be read."""
    found = tables.opened(parsed(address), schema.name)
    readings.check(schema, found.types(), str(found))
    kept = found.keeping(readings.kinds(schema), person_of(schema))
    _check_readable(kept)
    return kept


def _check_readable(source: SparkTable) -> None:
    """Read what can fail to be read, once for each content of the files: a question would fail because of one row."""
    unsure = [name for name, kind in source.columns if files.can_fail(kind) or not source.alone]
    if not unsure:
        return
    marks = _marks(source, unsure)
    new = [name for name in unsure if not checked_files.is_known(marks.get(name))]
    if not new:
        return
    differing = [] if source.alone else files.differing(source)
    types = source.types()
    columns = [name for name in new if name in differing or files.can_fail(types[name])]
    if columns and not files.are_readable(source, columns):
        several = "one of the columns" if len(columns) > 1 else "the column"
        raise SourceError(
            f"{several} {', '.join(columns)} of {source} can't be read: its files have different types for it, are "
            "damaged, or contain a timestamp beyond Spark's calendar, or a decimal with more digits than its type has",
            subject=Subject("table", source.address.table),
            remedy=Remedy(
                "Write the files again, all with the same types, timestamps in microseconds and decimals with a writer "
                "that checks them, as Spark's own does; or leave these columns out of the declaration"
            ),
        )
    if marks and marks == _marks(source, unsure):  # they are still the same files
        checked_files.remember(marks.values())


def _marks(source: SparkTable, columns: list[str]) -> dict[str, str]:
    state = files.state(source)
    if state is None:
        return {}
    types = source.types()  # a table of the catalogue can be made again with other types, over the same files
    typed = [f"{name} {types[name].name}" for name in columns]
    made = checked_files.object_marks(written(source.address), state, b"", typed, reader="spark")
    return dict(zip(columns, made.values(), strict=True))
