"""How the rows of a CSV are told apart: the same for the whole file, given by the steward, never guessed."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from privet.errors import SourceError

ENCODINGS = ("utf-8", "ascii", "latin-1", "cp1252")
"""Encodings in which a line ends where a newline byte stands, whatever the text."""

_LONGEST = 131_072
_CODE = "bytes that are no text in this encoding"


class Row(NamedTuple):
    """The line where a row stands, and its fields, or why it has none; for an empty line there is no reason."""

    line: int
    fields: list[str] | None
    why: str = ""


class _NoText(Exception):
    """A line's bytes are no text."""


@dataclass(frozen=True, slots=True)
class Dialect:
    r"""What stands between fields, around them, and in them.

    Claim: without `newlines` a row depends on its own line alone.

    Example:
        >>> [row.fields for row in Dialect().rows([b'1,"a, b"\n', b'2,"open\n', b"3,c\n"])]
        [['1', 'a, b'], None, ['3', 'c']]
    """

    separator: str = ","
    quote: str = '"'
    encoding: str = "utf-8"
    newlines: bool = False

    def __post_init__(self) -> None:
        for name, mark in (("separator", self.separator), ("quote", self.quote)):
            if len(mark) != 1 or not mark.isascii() or mark in "\r\n\x00":
                raise SourceError(
                    f'{name} must be one ASCII character, not {mark!r}. Write, for example: separator=";"'
                )
        if self.separator == self.quote:
            raise SourceError('separator and quote must differ. Write, for example: separator=",", quote=\'"\'')
        if self.encoding not in ENCODINGS:
            raise SourceError(f"encoding must be one of {', '.join(ENCODINGS)}, not {self.encoding!r}.")

    def rows(self, stream: Iterable[bytes]) -> Iterator[Row]:
        """The rows of a file."""
        return self._spanning(stream) if self.newlines else self._single(stream)

    def _decode(self, raw: bytes, number: int) -> str | None:
        if number == 1 and self.encoding == "utf-8":
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        try:
            return raw.removesuffix(b"\n").removesuffix(b"\r").decode(self.encoding)
        except UnicodeDecodeError:
            return None

    def _single(self, stream: Iterable[bytes]) -> Iterator[Row]:
        for number, raw in enumerate(stream, start=1):
            line = self._decode(raw, number)
            if line is None:
                yield Row(number, None, _CODE)
            elif not line:
                yield Row(number, None)
            elif len(line) > _LONGEST:
                yield Row(number, None, f"more than {_LONGEST:,} characters")
            elif self.quote not in line and "\r" not in line:
                yield Row(number, line.split(self.separator))
            else:
                try:
                    (fields,) = self._reader([line])
                    yield Row(number, fields)
                except csv.Error as error:
                    yield Row(number, None, _reason(str(error)))

    def _spanning(self, stream: Iterable[bytes]) -> Iterator[Row]:
        """Rows that may have line breaks between quotes; a bad one is the last, since nobody can say where it ends."""
        reader = self._reader(self._lines(stream))
        line = 1
        while True:
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield Row(line, None, _reason(str(error)))
                return
            except _NoText:
                yield Row(reader.line_num + 1, None, _CODE)
                return
            yield Row(line, fields or None)
            line = reader.line_num + 1

    def _lines(self, stream: Iterable[bytes]) -> Iterator[str]:
        for number, raw in enumerate(stream, start=1):
            line = self._decode(raw, number)
            if line is None:
                raise _NoText
            yield line + "\n"

    def _reader(self, lines: Iterable[str]) -> csv._reader:  # type: ignore[name-defined]
        return csv.reader(lines, delimiter=self.separator, quotechar=self.quote, strict=True)


def _reason(error: str) -> str:
    for sign, reason in (
        ("expected after", "text after a closing quote"),
        ("unexpected end", "a quote that is not closed"),
        ("field limit", "a field that is too long"),
    ):
        if sign in error:
            return reason
    return "a line break outside of quotes"
