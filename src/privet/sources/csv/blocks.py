"""The fields of a CSV in blocks of columns: the same result as `Dialect` row by row, but much faster.

Arrow splits only unambiguous lines: they decode, and each quote opens at the start of a field and closes at its end,
within the line. `Dialect` reads all other lines, one by one, and they are put in their places.

Claim: the rows, the bad rows and the empty lines are those of `Dialect.rows`. Without `newlines` a row depends only on
its own line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, islice
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from privet.sources.csv.dialect import BOM, LONGEST, Dialect, NotText, Row, shown

SIZE = 4 << 20
"""Bytes to read at a time."""

_ROWS = 65_536
_NEWLINE = 10


@dataclass(frozen=True, slots=True)
class Texts:
    """Some rows: the line of each, and its fields by column; None in all columns of a bad row."""

    lines: NDArray[np.int64]
    columns: dict[str, Any]
    bad: tuple[Row, ...] = ()
    empty: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole rows as bytes of the file; each ends in a newline, and `starts` are the numbers of their first lines."""

    data: bytes
    starts: NDArray[np.int64]
    rest: tuple[Row, ...] = ()
    """Rows that were already parsed; if there are any, they replace the bytes."""


@dataclass(frozen=True, slots=True)
class Splitter:
    """Splits a file with these columns into fields; keeps only the wanted columns."""

    dialect: Dialect
    names: Sequence[str]
    wanted: Sequence[str]

    def pieces(self, stream: IO[bytes], start: int) -> Iterator[Piece]:
        """The file from a line on, in parts that can be read independently."""
        return self._records(stream, start) if self.dialect.newlines else self._lines(stream, start)

    def texts(self, piece: Piece) -> Texts:
        """The fields in a part of the file."""
        if piece.rest:
            return self._of_rows(piece.rest)
        data, broken = self._decoded(piece.data)
        ends = self._ends(data)
        starts = np.concatenate(([0], ends[:-1] + 1))
        sizes = ends - starts
        odd = sizes > LONGEST
        odd[list(broken)] = True
        if not self.dialect.newlines and (self.dialect.quote.encode() in data or b"\r" in data):
            odd |= ~self._regular(data, ends)
        if BOM in data:  # Arrow would drop one at the start as the mark of a file
            odd |= np.array([data.startswith(BOM, start) for start in starts])
        empty = (sizes == 0) & ~odd
        clean = ~(odd | empty)
        lone = [
            Row(line, None, broken[i], not_text=True)
            if i in broken
            else self.dialect.row(line, data[starts[i] : ends[i]].decode())
            for i, line in zip(np.flatnonzero(odd).tolist(), piece.starts[odd].tolist(), strict=True)
        ]
        if not clean.all():
            data = np.frombuffer(data, np.uint8)[np.repeat(clean, sizes + 1)].tobytes()
        columns, uneven = self._split(data, piece.starts[clean])
        if not lone and not uneven:
            return Texts(piece.starts[clean], columns, (), int(empty.sum()))
        return self._merged(columns, piece.starts[clean], (*lone, *uneven), int(empty.sum()))

    # --- from a file to pieces ----------------------------------------------------------------------

    def _lines(self, stream: IO[bytes], line: int) -> Iterator[Piece]:
        while data := self._read(stream):
            count = data.count(b"\n")
            yield Piece(data, np.arange(line, line + count))
            line += count

    def _read(self, stream: IO[bytes]) -> bytes:
        """The next whole lines: each ends in a newline, and one carriage return before it is removed."""
        first = stream.tell() == 0
        data = stream.read(SIZE)
        if data and not data.endswith(b"\n"):
            data += stream.readline()
        if data and not data.endswith(b"\n"):
            data += b"\n"
        if first:
            data = data.removeprefix(self.dialect.mark)
        return data.replace(b"\r\n", b"\n") if b"\r" in data else data

    def _records(self, stream: IO[bytes], line: int) -> Iterator[Piece]:
        """Rows with line breaks inside quotes; from the first irregular row on, `Dialect` reads the rest."""
        data = b""
        while (more := self._read(stream)) or data:
            data += more
            ends = self._ends(data)
            good = self._regular_records(data[: ends[-1] + 1]) if len(ends) else 0
            cut = int(ends[good - 1]) + 1 if good else 0
            if good:
                breaks = np.flatnonzero(np.frombuffer(data[:cut], np.uint8) == _NEWLINE)
                yield Piece(data[:cut], line + np.concatenate(([0], np.searchsorted(breaks, ends[: good - 1]) + 1)))
                line += len(breaks)
                data = data[cut:]
            if good < len(ends) or len(data) > SIZE or not more:
                data = data.replace(b"\n", b"\r\n")  # as it may have been: `Dialect` removes one carriage return again
                rows = self.dialect.rows(chain(BytesIO(data), stream), line)
                while chunk := tuple(islice(rows, _ROWS)):
                    yield Piece(b"", np.zeros(0, np.int64), chunk)
                return

    def _regular_records(self, data: bytes) -> int:
        """The number of leading rows that are regular."""
        data, broken = self._decoded(data)
        if broken:
            return 0
        ends = self._ends(data)
        regular = self._regular(data, ends) & (np.diff(ends, prepend=-1) <= LONGEST)
        return len(ends) if regular.all() else int(np.argmin(regular))

    # --- from a piece to texts ----------------------------------------------------------------------

    def _decoded(self, data: bytes) -> tuple[bytes, dict[int, str]]:
        """The data in UTF-8, with lines that are not text emptied; and the reason for each of those."""
        encoding = self.dialect.encoding
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            broken: dict[int, str] = {}
            for place, line in enumerate(data.split(b"\n")):
                try:
                    self.dialect.decode(line)
                except NotText as error:
                    broken[place] = str(error)
            lines = (b"" if i in broken else line for i, line in enumerate(data.split(b"\n")))
            return b"\n".join(lines).decode(encoding).encode(), broken
        return (data if encoding in ("utf-8", "ascii") else text.encode()), {}

    def _ends(self, data: bytes) -> NDArray[np.int64]:
        """The positions where rows end: at each newline, or at those after an even number of quotes."""
        raw = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(raw == _NEWLINE)
        if self.dialect.newlines:
            ends = ends[np.searchsorted(np.flatnonzero(raw == ord(self.dialect.quote)), ends) % 2 == 0]
        return np.asarray(ends)

    def _regular(self, data: bytes, ends: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each row has only quotes that open a field or close it, and doubled quotes in between.

        In a regular row the first, third, ... quote opens a field or is the second of a pair; the others close a field
        or are the first of a pair. So the byte before the former, and after the latter, is a separator, the end of a
        row or a quote.
        """
        raw = np.frombuffer(data, np.uint8)
        quotes = np.flatnonzero(raw == ord(self.dialect.quote))
        row = np.searchsorted(ends, quotes)
        count = np.bincount(row, minlength=len(ends))
        opens = (np.arange(len(quotes)) - (np.cumsum(count) - count)[row]) % 2 == 0
        beside = np.where(
            opens, raw[quotes - 1], raw[quotes + 1]
        )  # "before" the first byte is the last byte, a newline
        allowed = np.isin(beside, [ord(self.dialect.quote), ord(self.dialect.separator), _NEWLINE])
        odd = np.bincount(row[~allowed], minlength=len(ends)) > 0
        if b"\r" in data:
            odd[np.searchsorted(ends, np.flatnonzero(raw == ord("\r")))] = True
        return np.asarray(~odd & (count % 2 == 0))

    def _split(self, data: bytes, lines: NDArray[np.int64]) -> tuple[dict[str, Any], list[Row]]:
        """The columns of regular rows, without those that have too many or too few fields; and those rows."""
        import pyarrow as pa
        from pyarrow import csv

        uneven: list[Row] = []

        def handler(row: Any) -> str:
            why = fields(row.actual_columns, len(self.names), row.text)
            uneven.append(Row(int(lines[row.number - 1]), None, why))
            return "skip"

        if not data:
            return {name: pa.array([], pa.string()) for name in self.wanted}, []
        places = [str(place) for place in range(len(self.names))]
        wanted_places = [places[self.names.index(name)] for name in self.wanted]
        table = csv.read_csv(
            pa.BufferReader(data),
            read_options=csv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=places),
            parse_options=csv.ParseOptions(
                delimiter=self.dialect.separator,
                quote_char=self.dialect.quote,
                double_quote=True,
                escape_char=False,
                newlines_in_values=self.dialect.newlines,
                ignore_empty_lines=False,
                invalid_row_handler=handler,
            ),
            convert_options=csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(wanted_places, pa.string()),
                null_values=[],
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
                include_columns=wanted_places,
            ),
        )
        return {
            name: table.column(place).combine_chunks() for name, place in zip(self.wanted, wanted_places, strict=True)
        }, uneven

    def _of_rows(self, rows: Sequence[Row]) -> Texts:
        """The columns of rows that were read one by one."""
        import pyarrow as pa

        filled = [self._even(row) for row in rows if row.fields is not None or row.why]
        places = [(name, self.names.index(name)) for name in self.wanted]
        columns = {
            name: pa.array([None if row.fields is None else row.fields[place] for row in filled], pa.string())
            for name, place in places
        }
        lines = np.array([row.line for row in filled], np.int64)
        return Texts(lines, columns, tuple(row for row in filled if row.fields is None), len(rows) - len(filled))

    def _even(self, row: Row) -> Row:
        if row.fields is None or len(row.fields) == len(self.names):
            return row
        return Row(row.line, None, fields(len(row.fields), len(self.names), self.dialect.separator.join(row.fields)))

    def _merged(self, columns: dict[str, Any], split: NDArray[np.int64], lone: Sequence[Row], empty: int) -> Texts:
        """The columns that Arrow split and the other rows, in the order of their lines."""
        import pyarrow as pa

        slow = self._of_rows(lone)
        split = split[~np.isin(split, [row.line for row in lone])]
        lines = np.concatenate((split, slow.lines))
        order = np.argsort(lines, kind="stable")
        merged = {
            name: pa.concat_arrays([columns[name], slow.columns[name]]).take(pa.array(order)) for name in self.wanted
        }
        bad = tuple(sorted(slow.bad, key=lambda row: row.line))
        return Texts(lines[order], merged, bad, empty + slow.empty)


def fields(count: int, expected: int, text: str) -> str:
    """The reason why a row with too many or too few fields is bad."""
    return f"{count:,} field{'s' * (count != 1)} instead of {expected:,}: {shown(text)}"
