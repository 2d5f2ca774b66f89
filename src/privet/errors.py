"""Every error that Privet raises.

::

    PrivetError
    ├── UserError (also a ValueError)    the call can be mended: the message shows the line to write
    │   ├── NumberError                  not a number that may stand there
    │   ├── DataError                    values of a kind that the call can't take
    │   ├── NoSensitivity                no finite bound exists, so nothing can be released
    │   └── AccountingError              an event that this accountant can't account for
    └── InternalError                    a bug or a broken machine; nothing was released
        └── EntropyError                 the operating system gave no random bits

Example:
    >>> issubclass(NumberError, ValueError)
    True
"""


class PrivetError(Exception):
    """The base class of all errors that Privet raises."""


class UserError(PrivetError, ValueError):
    """The call can be mended by the person who made it."""


class NumberError(UserError):
    """A parameter is not a number that may stand there."""


class DataError(UserError):
    """The data are of a kind (type, shape) that the call can't take."""


class NoSensitivity(UserError):
    """No finite sensitivity exists for what was asked."""


class AccountingError(UserError):
    """An accountant met an event that it can't account for."""


class InternalError(PrivetError):
    """A promise of the code itself does not hold; nothing was released."""


class EntropyError(InternalError):
    """The operating system gave no random bits, so nothing was drawn."""
