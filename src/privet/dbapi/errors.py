"""The exceptions of PEP 249, and which of them each error of Privet is.

Error:
    ├── InterfaceError             a wrong argument, or a closed connection or cursor
    └── DatabaseError              an answer that fails verification
        ├── DataError              a number that is not allowed
        ├── OperationalError       the budget, the maximum of the connection, the ledger, the engine, a server
        ├── IntegrityError         never raised
        ├── InternalError          a bug or a broken machine
        ├── ProgrammingError       a statement that can't be asked
        └── NotSupportedError      several statements at once

Each has the text of Privet's error, which is its `__cause__`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from privet import errors


class Warning(Exception):  # noqa: A001 (PEP 249 calls it so)
    """An important warning; Privet raises none."""


class Error(Exception):
    """The base class of all other errors."""


class InterfaceError(Error):
    """The interface is used in a wrong way."""


class DatabaseError(Error):
    """An error of the database."""


class DataError(DatabaseError):
    """A number is not allowed."""


class OperationalError(DatabaseError):
    """The budget is too small, or the ledger, the engine or the server fails."""


class IntegrityError(DatabaseError):
    """Never raised: nothing is written."""


class InternalError(DatabaseError):
    """A bug or a broken machine."""


class ProgrammingError(DatabaseError):
    """A statement can't be asked."""


class NotSupportedError(DatabaseError):
    """Something that Privet does not do."""


_KINDS: tuple[tuple[type[errors.PrivetError], type[Error]], ...] = (
    (errors.BudgetError, OperationalError),
    (errors.PolicyError, OperationalError),
    (errors.SourceError, OperationalError),
    (errors.NumberError, DataError),
    (errors.DataError, DataError),
    (errors.QueryError, ProgrammingError),
    (errors.NoSensitivity, ProgrammingError),
    (errors.UserError, InterfaceError),
    (errors.LedgerError, OperationalError),
    (errors.NoAnswer, OperationalError),
    (errors.NoConnection, OperationalError),
    (errors.InternalError, InternalError),
    (errors.PrivetError, DatabaseError),
)


@contextmanager
def translated() -> Iterator[None]:
    """A block whose errors of Privet become those of PEP 249."""
    try:
        yield
    except errors.PrivetError as error:
        kind = next(kind for own, kind in _KINDS if isinstance(error, own))
        raise kind(error.render("sql")) from error
