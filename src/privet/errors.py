"""Every error that Privet raises.

::

    PrivetError
    ├── UserError (also a ValueError)    the call is wrong: the message says how to fix it
    │   ├── NumberError                  not a number that may stand there
    │   ├── DataError                    values of a kind that the call can't take
    │   ├── NoSensitivity                no finite bound exists, so nothing can be released
    │   ├── AccountingError              an event that this accountant can't account for
    │   ├── SourceError                  a table that can't be registered: no such file, column or type
    │   ├── PolicyError                  a policy that can't be used; it names every line to fix
    │   ├── QueryError                   a question that can't be asked
    │   └── BudgetError                  a question that costs more than is left; nothing was spent
    ├── LedgerError                      the ledger can't be read, written or trusted; nothing is answered until it can
    │   └── LedgerBusy                   another process holds the ledger's lock; try again
    ├── VerificationError                a certificate that does not hold
    ├── NoAnswer                         the engine failed after the debit; the text is always the same
    │   └── DatasetClosed                the engine failed too often; the steward must reopen the dataset
    └── InternalError                    a bug or a broken machine; nothing was released
        └── EntropyError                 the operating system gave no random bits

Example:
    >>> issubclass(NumberError, ValueError)
    True
"""

from typing import Any


class PrivetError(Exception):
    """The base class of all errors that Privet raises."""


class UserError(PrivetError, ValueError):
    """The call is wrong; the message says how to fix it."""


class NumberError(UserError):
    """A parameter is not a number that may stand there."""


class DataError(UserError):
    """The data are of a kind (type, shape) that the call can't take."""


class NoSensitivity(UserError):
    """No finite sensitivity exists for what was asked."""


class AccountingError(UserError):
    """An accountant met an event that it can't account for."""


class SourceError(UserError):
    """A table can't be registered: its file, its columns or their types are not what was declared."""


class PolicyError(UserError):
    """A policy can't be used. It names every line to fix."""

    def __init__(self, text: str, problems: tuple[Any, ...] = ()) -> None:
        super().__init__(text)
        self.problems = problems


class QueryError(UserError):
    """A question can't be asked in this way."""


class BudgetError(UserError):
    """A question costs more than is left. Nothing was spent, and no data were read."""


class LedgerError(PrivetError):
    """The ledger can't be read or written, or does not verify. Nothing is answered until it is fixed."""


class LedgerBusy(LedgerError):
    """Another process holds the ledger's lock; try again."""


class VerificationError(PrivetError):
    """A certificate does not hold."""


class NoAnswer(PrivetError):
    """The engine failed after the debit. The text is the same whatever happened: it could tell of a row."""


class DatasetClosed(NoAnswer):
    """The engine failed too often; the dataset stays closed until the steward reopens it."""


class InternalError(PrivetError):
    """A promise of the code itself does not hold; nothing was released."""


class EntropyError(InternalError):
    """The operating system gave no random bits, so nothing was drawn."""
