"""Every error that Privet raises.

::

    PrivetError
    ├── UserError (also a ValueError)    the call is wrong: the message says how to fix it
    │   ├── NumberError                  not a number that is allowed here
    │   ├── DataError                    data of a type or shape that the call does not accept
    │   ├── NoSensitivity                no finite bound exists, so nothing can be released
    │   ├── AccountingError              an event that this accountant can't account for
    │   ├── SourceError                  a table that can't be registered: its file, columns or types are wrong
    │   ├── PolicyError                  a policy that can't be used; it names every line to fix
    │   ├── QueryError                   a question that can't be asked
    │   │   ├── NoBounds                 one person could change an answer without limit: choose bounds
    │   │   └── TooManyGroups            more groups than one answer may have
    │   ├── ReusedRequest                a request id that was already used for a different question
    │   └── BudgetError                  a question that costs more than the remaining budget; nothing was spent
    ├── LedgerError                      the ledger can't be read, written or trusted; nothing is answered until it can
    │   └── LedgerBusy                   another process holds its lock; try again
    ├── VerificationError                a certificate that fails verification
    │   └── NotChecked                   a certificate that needs an extra to be checked; nothing wrong was found
    ├── NoAnswer                         the engine failed after the debit; the text is always the same
    │   └── DatasetClosed                the engine failed too often; the steward must reopen the dataset
    ├── NoConnection                     a server can't be reached, or did not answer in time
    └── InternalError                    a bug or a broken machine; nothing was released
        └── EntropyError                 the operating system returned no random bits

An error is data: what is wrong, what is allowed, its subject, and the remedy. Each face (Python, SQL, the
terminal, a policy, HTTP) renders it in its own language; `str(error)` is the rendering for Python.

Example:
    >>> error = NumberError("epsilon must be greater than 0, not -1", remedy=argument("epsilon", 0.5))
    >>> print(error)
    epsilon must be greater than 0, not -1. Write, for example: epsilon=0.5
    >>> print(error.render("terminal"))
    epsilon must be greater than 0, not -1. Write, for example: --epsilon 0.5
"""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

Face = Literal["python", "sql", "terminal", "policy", "http"]
"""Where an error is shown; each face has its own language."""


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a part of a statement or of a policy."""

    line: int
    """The line of its first character; the first line is 1."""
    column: int = 0
    """The column of its first character; the first column is 1, and 0 means the whole line."""
    start: int = 0
    """The index of its first character in the whole text."""
    end: int = 0
    """The index after its last character."""
    file: str = ""
    excerpt: str = ""
    """The line, with the part marked."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What an error is about: an argument, a column, a place in a statement or in a policy."""

    kind: Literal["argument", "column", "person", "table", "key", "file", "dataset", "ledger", "statement", "policy"]
    name: str = ""
    table: str = ""
    """The table that a column belongs to."""
    at: Place | None = None
    """Its position in the statement or the policy."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to do instead: advice for every face, and a line to write in the language of each.

    A face without a line of its own shows none, so nobody is told to write in another face's language.
    """

    advice: str = ""
    python: str = ""
    sql: str = ""
    terminal: str = ""
    policy: str = ""
    http: str = ""
    exact: bool = False
    """Whether to write exactly this line; otherwise it is an example."""

    def line(self, face: Face) -> str:
        """The line to write in the language of this face; empty if there is none."""
        return str(getattr(self, face))

    def render(self, face: Face) -> str:
        """The advice, then the line of this face."""
        line = self.line(face)
        instruction = f"Write{'' if self.exact else ', for example'}: {line}" if line else ""
        return _sentences(self.advice, instruction)


def write(
    python: str = "",
    *,
    sql: str = "",
    terminal: str = "",
    policy: str = "",
    http: str = "",
    advice: str = "",
    exact: bool = False,
) -> Remedy:
    """A line to write instead, for each face that has one.

    Example:
        >>> write('pv.col("age") >= 18', sql="age >= 18").render("sql")
        'Write, for example: age >= 18'
    """
    return Remedy(advice, python, sql, terminal, policy, http, exact)


def argument(name: str, example: object, *, advice: str = "", exact: bool = False) -> Remedy:
    """An argument to pass, as each face writes it.

    Example:
        >>> [argument("max_rows", 5).render(face) for face in ("python", "terminal", "policy")]
        ['Write, for example: max_rows=5', 'Write, for example: --max-rows 5', 'Write, for example: max_rows = 5']
    """
    flag = f"--{name.replace('_', '-')}"
    text = f'"{example}"' if isinstance(example, str) else str(example)
    words = shlex.quote(str(example))
    option = {True: flag, False: f"--no-{flag[2:]}"}[example] if isinstance(example, bool) else f"{flag} {words}"
    value = text.lower() if isinstance(example, bool) else text
    return Remedy(advice, f"{name}={text}", "", option, f"{name} = {value}", f'"{name}": {value}', exact)


def install(extra: str) -> Remedy:
    """The optional dependencies to install; the line is the same for every face."""
    line = f"pip install 'privet[{extra}]'"
    return Remedy("", line, line, line, line, "", exact=True)


class PrivetError(Exception):
    """The base class of all errors that Privet raises."""

    def __init__(
        self, what: str, *, allowed: str = "", subject: Subject | None = None, remedy: Remedy | None = None
    ) -> None:
        super().__init__(what)
        self.what = what
        """What is wrong, in words that fit every face."""
        self.allowed = allowed
        """What is allowed."""
        self.subject = subject
        self.remedy = remedy
        self.spent: dict[str, str] | None = None
        """What the failed question cost, if known: its epsilon, and its delta if it has one."""

    def __str__(self) -> str:
        return self.render("python")

    def render(self, face: Face) -> str:
        """The whole error in the language of a face. An error in a statement is always in SQL, and an error in a
        policy in TOML.
        """
        language, subject = self._language(face), self.subject
        remedy = Remedy() if self.remedy is None else self.remedy
        if subject is None or subject.at is None:
            return _sentences(self.what, self.allowed, remedy.render(language))
        at = subject.at
        column, key = f"column {at.column}" if at.column else "", subject.name if subject.kind == "policy" else ""
        where = ", ".join(part for part in (at.file, f"line {at.line}", column, key) if part)
        message = _closed(_sentences(self.what, self.allowed, remedy.advice))
        line = replace(remedy, advice="").render(language)
        if subject.kind == "policy":
            return f"{where}: {message}\n  {line}" if line else f"{where}: {message}"
        return f"{where}: {_sentences(message, line)}\n{at.excerpt}"

    def about(self, subject: Subject) -> Self:
        """The same error; sets its subject if it has none."""
        if self.subject is None:
            self.subject = subject
        return self

    def inside(self, where: str) -> Self:
        """The same error; says also in which file it is, or in which of several questions."""
        if self.subject is None or self.subject.at is None:
            self.what = f"{where}: {self.what}"
        else:
            at = self.subject.at
            self.subject = replace(self.subject, at=replace(at, file=", ".join(filter(None, (where, at.file)))))
        return self

    def to_json(self, face: Face = "http") -> dict[str, Any]:
        """The error for programs: its kind, its fields, and its text for a face."""
        language = self._language(face)
        remedy = self.remedy and {"advice": self.remedy.advice, "write": self.remedy.line(language)}
        fields = {
            "kind": type(self).__name__,
            "message": self.render(face),
            "what": self.what,
            "allowed": self.allowed,
            "subject": None if self.subject is None else asdict(self.subject),
            "remedy": remedy if remedy and any(remedy.values()) else None,
        }
        return fields if self.spent is None else {**fields, "spent": self.spent}

    def _language(self, face: Face) -> Face:
        languages: dict[str, Face] = {"statement": "sql", "policy": "policy"}
        return face if self.subject is None else languages.get(self.subject.kind, face)


def _sentences(*parts: str) -> str:
    """The sentences, joined; each except the last ends with a full stop."""
    sentences = [part.strip() for part in parts if part.strip()]
    return " ".join([*map(_closed, sentences[:-1]), *sentences[-1:]])


def _closed(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?", "!", ":")) else f"{sentence}."


class UserError(PrivetError, ValueError):
    """The call is wrong; the message says how to fix it."""


class NumberError(UserError):
    """A parameter is not a number that is allowed here."""


class DataError(UserError):
    """The data have a type or shape that the call does not accept."""


class NoSensitivity(UserError):
    """The requested statistic has no finite sensitivity."""


class AccountingError(UserError):
    """An accountant got an event that it can't account for."""


class SourceError(UserError):
    """A table can't be registered: its file, its columns or their types do not match the declaration."""


class PolicyError(UserError):
    """A policy can't be used. It names every line to fix."""

    def __init__(self, what: str, problems: tuple[PrivetError, ...] = (), **more: Any) -> None:
        super().__init__(what, **more)
        self.problems = problems
        """One error for each line to fix."""

    def render(self, face: Face) -> str:
        """Every problem, each with its line. A policy is in TOML, so the face makes no difference."""
        return "\n".join(each.render("policy") for each in self.problems) or super().render("policy")

    def to_json(self, face: Face = "http") -> dict[str, Any]:
        """The error for programs, with each of its problems."""
        return {**super().to_json(face), "problems": [each.to_json("policy") for each in self.problems]}


class QueryError(UserError):
    """A question can't be asked in this way."""


class NoBounds(QueryError):
    """One person could change the answer without limit, because the summed value has no bounds."""


class TooManyGroups(QueryError):
    """The keys make more groups than one answer may have."""


class ReusedRequest(UserError):
    """The request id was already used for a different question or version of the data. Nothing was spent."""


class BudgetError(UserError):
    """A question costs more than the remaining budget. Nothing was spent, and no data were read."""


class LedgerError(PrivetError):
    """The ledger can't be read or written, or does not verify. Nothing is answered until it is fixed."""


class LedgerBusy(LedgerError):
    """Another process holds the ledger's lock. Nothing was paid; try again."""


class VerificationError(PrivetError):
    """A certificate failed verification."""


class NotChecked(VerificationError):
    """A certificate is not checked, because that needs an extra that is not installed. Nothing wrong was found."""


class NoAnswer(PrivetError):
    """The engine failed after the debit, with one text for all reasons; or the dataset is closed after failures."""


class DatasetClosed(NoAnswer):
    """The engine failed too often; the dataset stays closed until the steward reopens it."""


class NoConnection(PrivetError):
    """A server can't be reached, or did not answer in time. What was sent may have been paid for."""

    def __init__(self, what: str, *, request_id: str = "", **more: Any) -> None:
        super().__init__(what, **more)
        self.request_id = request_id
        """Under this id the answer can be fetched later, free of charge; empty if nothing was asked."""

    def to_json(self, face: Face = "http") -> dict[str, Any]:
        """The error for programs, with the request id."""
        return {**super().to_json(face), "request_id": self.request_id}


class InternalError(PrivetError):
    """A bug or a broken machine; nothing was released."""


class EntropyError(InternalError):
    """The operating system returned no random bits, so nothing was drawn."""
