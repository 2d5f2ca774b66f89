"""The text of a statement, and errors that point to a part of it."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from privet.errors import Place, PrivetError, QueryError, Remedy, Subject

_WIDTH = 100
"""Maximum characters of a line to show."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text: the positions of its first and its last character."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SqlText:
    """A statement as the analyst wrote it.

    Example:
        >>> print(SqlText("SELECT MEDIAN(x) FROM t").refusal(Span(7, 12), "MEDIAN is not supported"))
        line 1, column 8: MEDIAN is not supported.
          SELECT MEDIAN(x) FROM t
                 ^^^^^^
    """

    text: str

    def refusal(
        self, at: Span, what: str, advice: str = "", *, allowed: str = "", remedy: Remedy | None = None
    ) -> QueryError:
        """The error for this part of the statement; `advice` says what to write there instead."""
        remedy = Remedy(advice) if advice else remedy
        return QueryError(what, allowed=allowed, subject=self._subject(at), remedy=remedy)

    def placed(self, at: Span, error: PrivetError) -> QueryError:
        """An error of the query language, shown at its cause in the statement."""
        kind = type(error) if isinstance(error, QueryError) else QueryError
        return kind(error.what, allowed=error.allowed, subject=self._subject(at), remedy=error.remedy)

    def _subject(self, at: Span) -> Subject:
        start = min(max(at.start, 0), len(self.text))
        first = self.text.rfind("\n", 0, start) + 1
        stop = self.text.find("\n", first)
        line = self.text[first : stop if stop >= 0 else len(self.text)].rstrip()
        column = min(start - first, len(line))
        end = self._closed(start, at.end) + 1
        length = max(1, min(end - start, len(line) - column))
        from_ = max(0, min(column - _WIDTH // 2, len(line) - _WIDTH))
        shown = line[from_ : from_ + _WIDTH]
        left, right = "..." if from_ else "", "..." if from_ + _WIDTH < len(line) else ""
        before = len(left) + _cells(shown[: column - from_])
        carets = "^" * max(1, _cells(shown[column - from_ : column - from_ + length]))
        marked = f"  {left}{_printable(shown)}{right}\n  {' ' * before}{carets}"
        place = Place(self.text.count("\n", 0, start) + 1, start - first + 1, start, end, excerpt=marked)
        return Subject("statement", self.words(at), at=place)

    def _closed(self, start: int, end: int) -> int:
        """The end of a part, including the parentheses that close those it opens."""
        part = self.text[start : end + 1]
        for _ in range(part.count("(") - part.count(")")):
            after = self.text[end + 1 :]
            if not after.lstrip().startswith(")"):
                break
            end += len(after) - len(after.lstrip()) + 1
        return end

    def words(self, at: Span) -> str:
        """The text of this part, shortened, on one line."""
        text = " ".join(_printable(self.text[at.start : self._closed(at.start, at.end) + 1]).split())
        return text if len(text) <= 40 else text[:37] + "..."


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " if c.isspace() else "?" for c in text)


def _cells(text: str) -> int:
    """The width of a text in terminal cells."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.category(c) in {"Mn", "Me", "Cf"} for c in text if c.isprintable())
