"""Arguments without a default, which only the caller can decide: a call without them is told what to write."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import ParamSpec, TypeVar

from privet.errors import Subject, UserError, write

P = ParamSpec("P")
T = TypeVar("T")


def needs(example: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A function that refuses a call without its required keyword arguments, with an example of a call that has them.

    Example:
        >>> @needs("release(count, epsilon=0.5)")
        ... def release(query, *, epsilon, label=""):
        ...     return epsilon
        >>> release("count", epsilon=1)
        1
        >>> release("count")
        Traceback (most recent call last):
        privet.errors.UserError: epsilon= is missing. Write, for example: release(count, epsilon=0.5)
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        required = [
            each.name
            for each in signature(function).parameters.values()
            if each.kind is Parameter.KEYWORD_ONLY and each.default is Parameter.empty
        ]

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            missing = [name for name in required if name not in kwargs]
            if missing:
                verb = "is" if len(missing) == 1 else "are"
                raise UserError(
                    f"{' and '.join(f'{name}=' for name in missing)} {verb} missing",
                    subject=Subject("argument", missing[0]),
                    remedy=write(example),
                )
            return function(*args, **kwargs)

        return checked

    return decorate
