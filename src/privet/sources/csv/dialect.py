"""The dialect of a CSV: the same for the whole file, set by the steward, never guessed."""

from __future__ import annotations

import codecs
import csv
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple

from privet.errors import Remedy, SourceError, Subject, argument, write

NOT_CLOSED = "a quote that is not closed"
"""Why a line is not a row if a quoted field goes on in the next line, or if its closing quote is missing."""
ENCODINGS = ("utf-8", "ascii", "latin-1", "iso-8859-15", "cp1252", "cp1250", "cp1251", "mac-roman")
"""Encodings in which every newline byte ends a line, whatever the text."""

LONGEST = 131_072
"""Maximum characters in a line, or in a field if line breaks are allowed inside quotes."""

BOM = b"\xef\xbb\xbf"
"""The byte order mark that some programs write at the start of a UTF-8 file."""

_SHOWN = 60
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_KNOWN = {codecs.lookup(name).name: name for name in ENCODINGS} | {"utf-8-sig": "utf-8"}


class Row(NamedTuple):
    """The line of a row, and its fields, or why it has none; an empty line has no reason."""

    line: int
    fields: list[str] | None
    why: str = ""
    not_text: bool = False
    """Whether its bytes are not text in this encoding."""


class NotText(Exception):
    """A line's bytes are not text; its argument says why."""


@dataclass(frozen=True, slots=True)
class Dialect:
    r"""The separator between fields, the quote around them, their encoding, and whether they may contain line breaks.

    Claim: without `newlines` a row depends only on its own line.

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
                    f"the {name} must be one ASCII character, not {mark!r}",
                    subject=Subject("argument", name),
                    remedy=argument("separator", ";"),
                )
        if self.separator == self.quote:
            raise SourceError(
                "the separator and the quote must differ",
                subject=Subject("argument", "separator"),
                remedy=write("""separator=",", quote='"'""", terminal="""--separator , --quote '"'"""),
            )
        object.__setattr__(self, "encoding", _encoding(self.encoding))

    def rows(self, stream: Iterable[bytes], start: int | None = None) -> Iterator[Row]:
        """The rows of a file from its beginning, or from the line with this number."""
        lines = iter(stream)
        if start is None:
            lines = chain((raw.removeprefix(self.mark) for raw in islice(lines, 1)), lines)
        return (self._spanning if self.newlines else self._single)(lines, 1 if start is None else start)

    @property
    def mark(self) -> bytes:
        """The bytes that a file may begin with that are not part of its text."""
        return BOM if self.encoding == "utf-8" else b""

    def row(self, number: int, line: str) -> Row:
        """The row in one line."""
        if not line:
            return Row(number, None)
        if len(line) > LONGEST:
            return Row(number, None, f"more than {LONGEST:,} characters: {shown(line)}")
        if self.quote not in line and "\r" not in line:
            return Row(number, line.split(self.separator))
        try:
            (fields,) = self._reader([line])
            return Row(number, fields)
        except csv.Error as error:
            return Row(number, None, f"{_reason(str(error))}: {shown(line)}")

    def decode(self, raw: bytes) -> str:
        """The text of a line, without its end."""
        line = raw.removesuffix(b"\n").removesuffix(b"\r")
        try:
            return line.decode(self.encoding)
        except UnicodeDecodeError as error:
            near = line[max(0, error.start - 30) : error.start + 20]
            raise NotText(f"byte 0x{line[error.start]:02x} is not {self.encoding} text: {near!r}") from None

    def _single(self, stream: Iterator[bytes], start: int) -> Iterator[Row]:
        return (self.alone(raw, number) for number, raw in enumerate(stream, start=start))

    def alone(self, raw: bytes, number: int) -> Row:
        """The row in the bytes of one line."""
        try:
            return self.row(number, self.decode(raw))
        except NotText as error:
            return Row(number, None, str(error), not_text=True)

    def _spanning(self, stream: Iterator[bytes], start: int) -> Iterator[Row]:
        """Rows that may have line breaks inside quotes; a bad row is the last, because its end is unknown."""
        reader = self._reader(self.decode(raw) + "\n" for raw in stream)
        line = start
        while True:
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield Row(line, None, _reason(str(error)))
                return
            except NotText as error:
                yield Row(start + reader.line_num, None, str(error), not_text=True)
                return
            yield Row(line, fields or None)
            line = start + reader.line_num

    def _reader(self, lines: Iterable[str]) -> csv._reader:  # type: ignore[name-defined]
        return csv.reader(lines, delimiter=self.separator, quotechar=self.quote, strict=True)


def shown(text: str) -> str:
    """A text of the file as shown to the steward: in quotes, and shortened.

    Example:
        >>> print(shown("n/a"), shown("x" * 100)[-5:])
        'n/a' x'...
    """
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."


def not_utf16(start: bytes, where: str) -> None:
    """Refuse a file in UTF-16, where a newline byte need not be a newline."""
    if start[:2] in _UTF_16:
        raise SourceError(f"{where!r} is in UTF-16", subject=Subject("file", where), remedy=_converted(where))


def _converted(file: str) -> Remedy:
    line = f"iconv -f UTF-16 -t UTF-8 {shlex.quote(file)} > converted.csv"
    return write(line, terminal=line, policy=line, advice="Convert the file first")


def _encoding(name: str) -> str:
    """The encoding under the name that Privet uses.

    Example:
        >>> _encoding("UTF8"), _encoding("iso-8859-1"), _encoding("windows-1252")
        ('utf-8', 'latin-1', 'cp1252')
    """
    try:
        known = _KNOWN.get(codecs.lookup(name).name)
    except (LookupError, TypeError):
        known = None
    if known is None:
        raise SourceError(
            f"the encoding must be one of {', '.join(ENCODINGS)}, not {name!r}",
            subject=Subject("argument", "encoding"),
            remedy=_converted("people.csv"),
        )
    return known


def _reason(error: str) -> str:
    for sign, reason in (
        ("expected after", "text after a closing quote"),
        ("unexpected end", NOT_CLOSED),
        ("field limit", "a field that is too long"),
    ):
        if sign in error:
            return reason
    return "a line break outside of quotes"
