"""CSV to Parquet, once and strictly: the steward sets dialect, names and types, and nothing is guessed.

A line is a row. Each is read independently, so nothing in it, not even an open quote, affects other rows. By default
one bad row or value stops the import before anything is written, and the report says where it is.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path
from typing import Any, Literal

from privet.engines.duckdb.files import version
from privet.errors import SourceError, Subject, UserError, argument, write
from privet.exact import whole
from privet.names.required import needs
from privet.sources import checked_files
from privet.sources.csv import parquet
from privet.sources.csv.blocks import Piece, Splitter, Texts
from privet.sources.csv.dialect import Dialect, Row, not_utf16
from privet.sources.csv.notation import Notation, date_formats
from privet.sources.csv.report import ImportReport
from privet.sources.readings import Reading, missing_column, reading_of
from privet.system import files
from privet.tables.kinds import KINDS
from privet.tables.schema import Column, check_name
from privet.tables.types import KeyType

_WORKERS = 4
_LINE = write(
    'pv.import_csv("people.csv", "people.parquet", columns={"age": pv.integer(0, 110)}, id="person_id")',
    terminal="privet import people.csv -o people.parquet --id person_id --column age=integer",
)
_SEPARATORS = ",;\t|"


@needs('pv.import_csv("people.csv", "people.parquet", columns={"age": pv.integer(0, 110)})')
def import_csv(
    csv: str | Path,
    parquet: str | Path,
    *,
    columns: Mapping[str, Column | str],
    id: str | None = None,  # noqa: A002
    id_type: Literal["integer", "text"] = "text",
    cap: int | None = None,
    separator: str = ",",
    quote: str = '"',
    encoding: str = "utf-8",
    header: bool | Sequence[str] = True,
    newlines: bool = False,
    missing: Sequence[str] | Mapping[str, Sequence[str]] = ("",),
    decimal: str = ".",
    thousands: str = "",
    date_format: str | Mapping[str, str] | None = None,
    true: Sequence[str] = (),
    false: Sequence[str] = (),
    bad_rows: Literal["fail", "missing"] = "fail",
    bad_values: Literal["fail", "missing"] = "fail",
    allow_missing: Sequence[str] = (),
    overwrite: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> ImportReport:
    """Import a CSV file into a Parquet file with the declared columns, and the id of the person.

    A column is declared as in a table, or by its kind alone, such as "integer" or "date". Columns that are not declared
    are left out. Values keep what they are: nothing is clamped. The report tells how many are outside of what was
    declared, and, given a `cap`, how many rows are over so many of a person.

    `header` is True if the first line contains the names, else the list of all names. A text in `missing` is a missing
    value, quoted or not: a list for all columns, or lists by name, with the one for all columns under the empty name. A
    declared key of a column stays a key there, unless it is listed for this column by name. Dates are in ISO 8601,
    or in `date_format`: one for all columns, or by name. `true` and `false` are further words for true and false,
    besides true and false, t and f, yes and no, y and n, 1 and 0; case is ignored.

    A row with too many or too few fields, an open quote or bytes that are not text is bad; so is a value that is not of
    its column's type. With "fail" the import stops and writes nothing; with "missing" all values of such a row, or the
    one value, become missing, and no other row changes. Empty lines are skipped. A column without any value, or
    without any of its declared keys, stops the import, unless `allow_missing` names it.

    `newlines=True` allows line breaks inside quotes. Then rows are not independent, and a bad row stops the import,
    whatever `bad_rows` says. `progress` is called with the bytes read so far and the total.
    """
    for name, choice in (("bad_rows", bad_rows), ("bad_values", bad_values)):
        if choice not in ("fail", "missing"):
            raise SourceError(
                f"{name} must be 'fail' or 'missing', not {choice!r}",
                subject=Subject("argument", name),
                remedy=argument(name, "missing"),
            )
    if decimal == separator:
        raise SourceError(
            f"the decimal mark and the separator are both {decimal!r}",
            subject=Subject("argument", "decimal"),
            remedy=write('decimal=",", separator=";"', terminal="--decimal , --separator ';'"),
        )
    dialect = Dialect(separator, quote, encoding, newlines)
    bounds, kinds = _kinds(columns, id, id_type)
    timed = [name for name, kind in kinds.items() if kind in ("date", "timestamp")]
    everywhere, own = _missing_texts(missing, kinds, bounds)
    notation = Notation(
        everywhere,
        decimal,
        thousands,
        _texts(true, "true"),
        _texts(false, "false"),
        date_formats(date_format, timed),
        own,
    )
    allowed = _texts(allow_missing, "allow_missing")
    for name in allowed:
        if name not in kinds:
            raise missing_column(name, list(kinds), "allow_missing")
    cap = None if cap is None else whole(cap, name="cap", example="cap=3")
    source, target = Path(csv).expanduser().absolute(), Path(parquet).expanduser().absolute()
    if not source.is_file():
        looked = "" if str(csv) == str(source) else f" (looked for {str(source)!r})"
        raise SourceError(f"there is no file {str(csv)!r}{looked}", subject=Subject("file", str(csv)), remedy=_LINE)
    files.check(target, overwrite=overwrite, taken=lambda path: files.among(path, [source]))
    work = _Import(str(csv), str(parquet), source, target, overwrite, dialect, kinds, bounds, notation)
    rows_may_be = bad_rows if not newlines else "fail"
    return work.run(header, id, cap, lambda tally: tally.judge(str(csv), rows_may_be, bad_values, allowed), progress)


def _texts(texts: Sequence[str], name: str) -> tuple[str, ...]:
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise SourceError(
            f"{name} must be a list of strings, not {texts!r}",
            subject=Subject("argument", name),
            remedy=write(f'{name}=["NA"]', terminal=f"--{name.replace('_', '-')} NA"),
        )
    return tuple(texts)


def _missing_texts(
    missing: Sequence[str] | Mapping[str, Sequence[str]], kinds: Mapping[str, Reading], declared: Mapping[str, Column]
) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """The texts that mean missing in all columns, and those of columns that differ because of their keys or by name."""
    by_name = missing if isinstance(missing, Mapping) else {"": missing}
    for name in by_name:
        if name and name not in kinds:
            raise missing_column(name, list(kinds), "missing")
    everywhere = frozenset(_texts(by_name.get("", ("",)), "missing"))
    own = {}
    for name in kinds:
        kind = declared[name].type if name in declared else None
        keys = frozenset(str(key) for key in kind.values if key != "") if isinstance(kind, KeyType) else frozenset()
        texts = (everywhere - keys) | frozenset(_texts(by_name.get(name, ()), "missing"))
        if texts != everywhere:
            own[name] = texts
    return everywhere, own


def _kinds(
    columns: Mapping[str, Column | str],
    id: str | None,  # noqa: A002
    id_type: str,
) -> tuple[dict[str, Column], dict[str, Reading]]:
    """The columns declared with bounds; and the kind of each column, the id first."""
    for name, column in columns.items():
        if not isinstance(column, Column) and column not in KINDS:
            raise UserError(
                f"{name!r} must be declared as a column or as one of {', '.join(KINDS)}, not {column!r}",
                subject=Subject("column", name),
                remedy=_LINE,
            )
    if not columns:
        raise UserError("at least one column must be declared", subject=Subject("argument", "columns"), remedy=_LINE)
    if id_type not in ("integer", "text"):
        raise UserError(
            f"the type of an id must be 'integer' or 'text', not {id_type!r}",
            subject=Subject("argument", "id_type"),
            remedy=argument("id_type", "text"),
        )
    person: dict[str, Reading] = {} if id is None else {id: "key" if id_type == "integer" else "text"}
    bounds = {name: column for name, column in columns.items() if isinstance(column, Column)}
    read = {name: reading_of(column) for name, column in columns.items()}
    kinds = person | {name: kind for name, kind in read.items() if name not in person}
    for name in kinds:
        check_name(name, "column")
    return {name: column for name, column in bounds.items() if reading_of(column) == kinds[name]}, kinds


@dataclass(frozen=True, slots=True)
class _Import:
    """One import, with all arguments checked."""

    csv: str
    parquet: str
    source: Path
    target: Path
    overwrite: bool
    dialect: Dialect
    kinds: Mapping[str, Reading]
    bounds: Mapping[str, Column]
    notation: Notation

    def run(
        self,
        header: bool | Sequence[str],
        id: str | None,  # noqa: A002
        max_rows: int | None,
        judge: Callable[[Any], None],
        progress: Callable[[int, int], object] | None,
    ) -> ImportReport:
        import pyarrow as pa

        from privet.sources.arrow import DECLARED
        from privet.sources.csv import profile
        from privet.sources.csv.tally import Tally

        swept = replace(files.sweep(self.target), others=files.abandoned(self.target.parent))
        tally = Tally(self.kinds, self.bounds, self.notation, self.dialect.newlines)
        size = self.source.stat().st_size
        schema = pa.schema([(name, DECLARED[kind]) for name, kind in self.kinds.items()])
        with self.source.open("rb") as stream:
            names, line = self._names(stream, header)
            splitter = Splitter(self.dialect, names, tuple(self.kinds))

            def tables() -> Iterator[Any]:
                if progress is not None:
                    progress(0, size)
                for texts, casts, beyond, marked in _in_parallel(
                    lambda piece: self._cast(splitter.texts(piece)), splitter.pieces(stream, line)
                ):
                    tally.add(texts, casts, beyond, marked)
                    if progress is not None:
                        progress(stream.tell(), size)
                    yield pa.table({name: cast.values for name, cast in casts.items()}, schema=schema)

            parquet.write(self.target, schema, tables(), lambda: judge(tally), overwrite=self.overwrite)
        marks = checked_files.marks(str(self.target.absolute()), [*self.kinds], reader=version(), fresh=True)
        checked_files.remember(marks.values())  # all that was written was read from UTF-8, and in microseconds
        persons = None if id is None else profile.persons(self.target, id, max_rows)
        alike = profile.alike(self.target, [id] if id is not None else [*self.kinds], self.kinds)
        report = tally.report(self.csv, self.parquet, id=id, max_rows=max_rows, persons=persons)
        return replace(report, alike=alike, swept=swept)

    def _cast(self, texts: Texts) -> tuple[Texts, dict[str, Any], dict[str, int], dict[str, dict[str, int]]]:
        """The values of some rows, and the counts to report."""
        from privet.sources.csv import profile
        from privet.sources.csv.casting import cast

        casts, beyond, marked = {}, {}, {}
        for name, kind in self.kinds.items():
            casts[name] = cast(texts.columns[name], kind, self.notation.for_column(name), self.notation.date(name))
            beyond[name] = profile.outside(casts[name].values, self.bounds.get(name))
            marked[name] = profile.marked(casts[name].values, self.bounds.get(name)) if kind == "text" else {}
        return texts, casts, beyond, marked

    def _names(self, stream: BufferedReader, header: bool | Sequence[str]) -> tuple[list[str], int]:
        """The names of all columns, and the line after them."""
        not_utf16(stream.peek(2), self.csv)
        if header is not True:
            if isinstance(header, str | bool) or not all(isinstance(name, str) for name in header):
                raise SourceError(
                    "list the column names if the first line does not contain them",
                    subject=Subject("argument", "header"),
                    remedy=write('header=["id", "age"]', terminal="--header id,age"),
                )
            names, line = list(header), 1
        else:
            first = next(self.dialect.rows(stream), None)
            if first is None or first.fields is None:
                raise self._no_header(first)
            names = first.fields
            read = stream.tell()
            stream.seek(0)
            line = 1 + stream.read(read).count(b"\n")
        for name in self.kinds:
            if names.count(name) != 1:
                if name in names:
                    raise SourceError(
                        f"the column {name!r} appears twice in the header of {self.csv!r}",
                        subject=Subject("column", name),
                    )
                raise self._missing(name, names)
        return names, line

    def _no_header(self, first: Row | None) -> SourceError:
        from privet.sources.csv.hints import Hint, Option, Refused

        why = "it is empty" if first is None else first.why or "an empty line"
        if first is None or not first.not_text:
            return SourceError(f"{self.csv!r} has no header: {why}", subject=Subject("file", self.csv))
        what = f"the header of {self.csv!r} can't be read: {why}."
        question = "If the file comes from Windows or from Excel"
        return Refused(what, (), (Hint(question, ((Option("encoding", "cp1252"),),)),))

    def _missing(self, name: str, names: list[str]) -> SourceError:
        """The error for a missing column, perhaps because the header uses another separator."""
        from privet.sources.csv.hints import Hint, Option, Refused

        (head, *more) = names
        best = max(_SEPARATORS, key=head.count)
        if more or best not in head:
            return missing_column(name, names, repr(self.csv), line=_LINE)
        hint = Hint(f"The names in its header are separated by {best!r}", ((Option("separator", best),),))
        return Refused(f"{missing_column(name, names, repr(self.csv)).render('http')}.", (), (hint,))


def _in_parallel(work: Callable[[Piece], Any], pieces: Iterator[Piece]) -> Iterator[Any]:
    """The result for each piece, in order; a few are processed at once."""
    workers = min(_WORKERS, os.cpu_count() or 1)
    pending: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for piece in pieces:
            pending.append(pool.submit(work, piece))
            if len(pending) > workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
