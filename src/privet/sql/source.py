"""The text of a statement, and errors that point into it."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import pairwise

from privet.advice import masked
from privet.errors import QueryError

_WIDTH = 100
"""So much of a line is shown."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text: the places of its first and its last character."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Source:
    """A statement as it was written.

    Example:
        >>> print(Source("SELECT MEDIAN(x) FROM t").refusal(Span(7, 12), "MEDIAN is not supported."))
        line 1, column 8: MEDIAN is not supported.
          SELECT MEDIAN(x) FROM t
                 ^^^^^^
    """

    text: str

    def refusal(self, at: Span, why: str) -> QueryError:
        """The error that says what is wrong, and where."""
        start = min(max(at.start, 0), len(self.text))
        first = self.text.rfind("\n", 0, start) + 1
        stop = self.text.find("\n", first)
        line = self.text[first : stop if stop >= 0 else len(self.text)].rstrip()
        column = min(start - first, len(line))
        length = max(1, min(self._closed(start, at.end) + 1 - start, len(line) - column))
        from_ = max(0, min(column - _WIDTH // 2, len(line) - _WIDTH))
        shown = line[from_ : from_ + _WIDTH]
        left, right = "..." if from_ else "", "..." if from_ + _WIDTH < len(line) else ""
        before = len(left) + _places(shown[: column - from_])
        carets = "^" * max(1, _places(shown[column - from_ : column - from_ + length]))
        where = f"line {self.text.count(chr(10), 0, start) + 1}, column {start - first + 1}"
        return QueryError(f"{where}: {why}\n  {left}{_printable(shown)}{right}\n  {' ' * before}{carets}")

    def _closed(self, start: int, end: int) -> int:
        """The end of a part, with the brackets that close what it opens."""
        part = self.text[start : end + 1]
        for _ in range(part.count("(") - part.count(")")):
            after = self.text[end + 1 :]
            if not after.lstrip().startswith(")"):
                break
            end += len(after) - len(after.lstrip()) + 1
        return end

    def words(self, at: Span) -> str:
        """What is written there, in short, on one line."""
        text = " ".join(_printable(self.text[at.start : self._closed(at.start, at.end) + 1]).split())
        return text if len(text) <= 40 else text[:37] + "..."


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)


def _places(text: str) -> int:
    """How many places a text takes in a terminal."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.category(c) in {"Mn", "Me", "Cf"} for c in text if c.isprintable())


def without_python(message: str) -> str:
    """A message of the query language without the sentences that tell what to write in Python.

    Example:
        >>> without_python('where needs a condition. Write, for example: pv.col("age") >= 18')
        'where needs a condition.'
    """
    plain = masked(message)
    ends = [0, *(found.end() for found in re.finditer(r"(?<=[.:]) (?=[A-Z])", plain)), len(message)]
    kept = [
        message[start:end].strip()
        for start, end in pairwise(ends)
        if not re.search(r"pv\.|\bWrite\b|where\(|with_columns", plain[start:end])
    ]
    text = (" ".join(kept) or message).replace("with ==.", "with =.").replace("with !=.", "with <>.")
    return text if text.endswith(".") else f"{text}."
