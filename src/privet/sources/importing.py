"""CSV to Parquet, once and strictly: dialect, names and types are given, never guessed.

A line is a row. Each is read by itself, so that whatever stands in it, an open quote too, changes only itself. By
default one bad row or value stops the import before anything is written, and the report says where it is.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from privet.errors import SourceError, UserError
from privet.relation.schema import Column, called
from privet.sources import parsing
from privet.sources.dialect import Dialect, Row
from privet.sources.kinds import Kind, declared, missing_column

SHOWN = 20
"""How many bad rows and values a report names."""

_CHUNK = 65_536
_LINE = 'pv.import_csv("people.csv", "people.parquet", columns={"age": pv.integer(0, 110)}, id="person_id")'


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was imported, and what was bad. It tells of single rows: it is for the steward, and for nobody else."""

    csv: str
    parquet: str
    rows: int
    columns: tuple[str, ...]
    missing: Mapping[str, int]
    """How many values of each column are missing, bad ones included."""
    bad_values: Mapping[str, int]
    """How many values of each column did not convert."""
    bad_rows: int
    empty_lines: int
    examples: tuple[str, ...] = field(repr=False)
    """The first bad rows and values: where, and what is wrong."""

    def __str__(self) -> str:
        width = max(map(len, self.columns))
        told = (f"{n:<{width}}  {self.missing[n]:,} missing, {self.bad_values[n]:,} bad" for n in self.columns)
        head = (
            f"{self.csv} -> {self.parquet}",
            "For the steward only: this tells of single rows.",
            f"{self.rows:,} rows, {self.bad_rows:,} bad; {self.empty_lines:,} empty lines skipped",
        )
        return "\n".join([*head, *(f"  {line}" for line in (*told, *self.examples))])


def import_csv(
    csv: str | Path,
    parquet: str | Path,
    *,
    columns: Mapping[str, Column],
    id: str | None = None,  # noqa: A002
    id_type: Literal["integer", "text"] = "text",
    separator: str = ",",
    quote: str = '"',
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool | Sequence[str] = True,
    missing: Sequence[str] = ("",),
    newlines: bool = False,
    bad_rows: Literal["fail", "missing"] = "fail",
    bad_values: Literal["fail", "missing"] = "fail",
    overwrite: bool = False,
) -> ImportReport:
    """Import a CSV file into a Parquet file with the declared columns, and the id of the person.

    `header` is True if the first line has the names, else the list of all names. Columns that are not declared are left
    out. Values keep what they are: nothing is clamped. A text in `missing` is a missing value, quoted or not.

    A row with too many or too few fields, an open quote or bytes that are no text is bad; so is a value that is not of
    its column's type. With "fail" the import stops, and writes nothing; with "missing" all values of such a row, or the
    one value, are missing, and no other row changes. Empty lines are skipped.

    `newlines=True` allows line breaks between quotes. Then rows can't be told apart by themselves, and a bad row stops
    the import, whatever `bad_rows` says.
    """
    for name, choice in (("bad_rows", bad_rows), ("bad_values", bad_values)):
        if choice not in ("fail", "missing"):
            raise SourceError(f"{name} must be 'fail' or 'missing', not {choice!r}.")
    if decimal not in (".", ",") or decimal == separator:
        raise SourceError(f"decimal must be '.' or ',', and not the separator, not {decimal!r}.")
    dialect = Dialect(separator, quote, encoding, newlines)
    kinds = _kinds(columns, id, id_type)
    source, target = Path(csv).expanduser().absolute(), Path(parquet).expanduser().absolute()
    if not source.is_file():
        raise SourceError(f"there is no file {str(csv)!r} (looked for {str(source)!r}). Write, for example: {_LINE}")
    _writable(target, overwrite)
    seen = _Seen(kinds, frozenset(missing), decimal)
    with source.open("rb") as stream:
        rows = dialect.rows(stream)
        names = _names(rows, header, str(csv))
        for name in kinds:
            if names.count(name) != 1:
                if name in names:
                    raise SourceError(f"the column {name!r} stands twice in the header of {str(csv)!r}.")
                raise missing_column(name, names, repr(str(csv)), f" Write, for example: {_LINE}")
        chunks = (seen.convert(chunk, names) for chunk in iter(lambda: list(islice(rows, _CHUNK)), []))
        _write(target, kinds, chunks, lambda: seen.judge(str(csv), bad_rows if not newlines else "fail", bad_values))
    return seen.report(str(csv), str(parquet))


def _kinds(columns: Mapping[str, Column], id: str | None, id_type: str) -> dict[str, Kind]:  # noqa: A002
    if not columns or not all(isinstance(column, Column) for column in columns.values()):
        raise UserError(f"columns must declare at least one column. Write, for example: {_LINE}")
    if id_type not in ("integer", "text"):
        raise UserError(f"id_type must be 'integer' or 'text', not {id_type!r}.")
    person: dict[str, Kind] = {} if id is None else {id: "key" if id_type == "integer" else "text"}
    kinds = person | {name: declared(column.type) for name, column in columns.items() if name not in person}
    for name in kinds:
        called(name, "column")
    return kinds


def _names(rows: Iterator[Row], header: bool | Sequence[str], csv: str) -> list[str]:
    if header is not True:
        if isinstance(header, str | bool) or not all(isinstance(name, str) for name in header):
            raise SourceError('give the names if the first line has none. Write, for example: header=["id", "age"]')
        return list(header)
    first = next(rows, None)
    if first is None or first.fields is None:
        raise SourceError(f"{csv!r} has no header: {'it is empty' if first is None else first.why or 'an empty line'}.")
    return first.fields


@dataclass(slots=True)
class _Seen:
    """What was read so far."""

    kinds: Mapping[str, Kind]
    null: frozenset[str]
    decimal: str
    rows: int = 0
    bad_rows: int = 0
    empty_lines: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    bad_values: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)

    def convert(self, chunk: list[Row], names: list[str]) -> dict[str, list[Any]]:
        """The values of some rows, by column; a bad row is missing everywhere."""
        kept: list[Row] = []
        for row in chunk:
            if row.fields is None and not row.why:
                self.empty_lines += 1
            elif row.fields is not None and len(row.fields) == len(names):
                kept.append(row)
            else:
                found = 0 if row.fields is None else len(row.fields)
                self._bad(row.line, row.why or f"{found} fields, and not {len(names)}")
                self.bad_rows += 1
                kept.append(Row(row.line, None))
        self.rows += len(kept)
        made = {}
        for name, kind in self.kinds.items():
            place = names.index(name)
            texts = [None if row.fields is None else row.fields[place] for row in kept]
            values, bad = parsing.parse(texts, kind, self.null, self.decimal)
            for where in bad[:SHOWN]:
                self._bad(kept[where].line, f"{name} is no {parsing.NAMES[kind]}")
            self.bad_values[name] = self.bad_values.get(name, 0) + len(bad)
            self.missing[name] = self.missing.get(name, 0) + values.count(None)
            made[name] = values
        return made

    def _bad(self, line: int, why: str) -> None:
        if len(self.examples) < SHOWN:
            self.examples.append(f"line {line:,}: {why}")

    def judge(self, csv: str, bad_rows: str, bad_values: str) -> None:
        """Refuse the whole file if something was bad that may not be."""
        values = sum(self.bad_values.values())
        if not (self.bad_rows and bad_rows == "fail") and not (values and bad_values == "fail"):
            return
        told = "\n".join(f"  {example}" for example in self.examples)
        choices = [f'{name}="missing"' for name, n in (("bad_rows", self.bad_rows), ("bad_values", values)) if n]
        raise SourceError(
            f"{csv!r} was not imported, and nothing was written: {self.bad_rows:,} bad rows, {values:,} bad values. "
            f"For the steward only, the first of them:\n{told}\n"
            f"Mend the file; or take them as missing: {', '.join(choices)}"
        )

    def report(self, csv: str, parquet: str) -> ImportReport:
        """What to tell the steward."""
        missing = {name: self.missing.get(name, 0) for name in self.kinds}
        bad = {name: self.bad_values.get(name, 0) for name in self.kinds}
        return ImportReport(
            csv,
            parquet,
            self.rows,
            tuple(self.kinds),
            missing,
            bad,
            self.bad_rows,
            self.empty_lines,
            tuple(self.examples),
        )


def _writable(target: Path, overwrite: bool) -> None:
    if target.exists() and not overwrite:
        raise SourceError(f"{str(target)!r} exists already. Write, to replace it: overwrite=True")
    if not target.parent.is_dir():
        raise SourceError(f"there is no folder {str(target.parent)!r} to write to.")


def _write(
    target: Path, kinds: Mapping[str, Kind], chunks: Iterator[dict[str, list[Any]]], judge: Callable[[], None]
) -> None:
    """All of it or nothing: into a file beside the target, which takes its name at the end."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from privet.sources.arrow import DECLARED

    schema = pa.schema([(name, DECLARED[kind]) for name, kind in kinds.items()])
    handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                for chunk in chunks:
                    writer.write_table(pa.table(chunk, schema=schema))
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
