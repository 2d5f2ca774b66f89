"""An error for a page: what is wrong, what is allowed, what to do, and where in the statement."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from privet.errors import BudgetError, LedgerBusy, LedgerError, NoAnswer, PrivetError
from privet.server.problems import failed, is_constant


@dataclass(frozen=True, slots=True)
class ProblemShown:
    """What a page shows of an error."""

    title: str
    lines: tuple[str, ...] = ()
    write: str = ""
    exact: bool = False
    excerpt: str = ""
    at: str = ""
    """The range of the statement that is wrong, as two numbers; empty if there is none."""


def shown(error: PrivetError) -> ProblemShown:
    """An error of Privet, in its own words; one whose words are for the steward alone, in the constant ones."""
    if is_constant(error):
        return ProblemShown(json.loads(bytes(failed(error).body))["detail"])
    subject, remedy = error.subject, error.remedy
    at = None if subject is None else subject.at
    is_sql = subject is not None and subject.kind == "statement"
    where = f"Line {at.line}, column {at.column}: " if at is not None and at.column else ""
    lines = [error.allowed, "" if remedy is None else remedy.advice]
    return ProblemShown(
        f"{where}{_sentence(error.what) if not where else _closed(error.what)}",
        tuple(_line(line, "" if at is None else at.excerpt) for line in lines if line.strip()),
        "" if remedy is None else remedy.line("sql") if is_sql else _typed(remedy.line("http")),
        remedy is not None and remedy.exact,
        "" if at is None else at.excerpt,
        f"{at.start} {at.end}" if at is not None and at.end > at.start else "",
    )


def _typed(line: str) -> str:
    """What to type into a field, from the same in JSON.

    Example:
        >>> _typed('"epsilon": 0.5, "delta": 1e-6')
        'epsilon 0.5, delta 1e-6'
    """
    return re.sub(r'"(\w+)": (?=[\d.])', r"\1 ", line)


def _line(text: str, excerpt: str) -> str:
    """A sentence; a name of the statement that begins it is written as it is there."""
    begins = re.match(r"\w+", text)
    is_name = begins is not None and re.search(rf"\b{begins[0]}\b", excerpt) is not None
    return _closed(text) if is_name else _sentence(text)


def _sentence(text: str) -> str:
    return _closed(text[:1].upper() + text[1:])


def _closed(text: str) -> str:
    return text if text.endswith((".", "?", "!", ":")) else f"{text}."


def heading(error: PrivetError) -> str:
    """The heading of a page that shows an error alone."""
    if isinstance(error, BudgetError):
        return "Not enough budget"
    if isinstance(error, NoAnswer):
        return "No answer"
    if isinstance(error, LedgerBusy):
        return "Busy"
    return "The ledger needs the steward" if isinstance(error, LedgerError) else "This can’t be asked"


def status(error: PrivetError) -> int:
    """The status of a page that shows an error: that of the API."""
    return failed(error).status_code
