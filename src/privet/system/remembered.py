"""What is worked out for a question and remembered: for each asker apart, where several share a process.

So the time that a question takes does not tell what somebody else has asked.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_ASKER: ContextVar[str] = ContextVar("privet_asker", default="")


def asked_by(name: str) -> None:
    """From here on, whatever this task does and starts is done for this asker."""
    _ASKER.set(name)


class _Remembered(Generic[_P, _T]):
    def __init__(self, work: Callable[_P, _T], most: int) -> None:
        def done(asker: str, *arguments: Any, **options: Any) -> _T:
            return work(*arguments, **options)

        self._done = lru_cache(most)(done)
        self.cache_clear = self._done.cache_clear
        update_wrapper(self, work)

    def __call__(self, *arguments: _P.args, **options: _P.kwargs) -> _T:
        return self._done(_ASKER.get(), *arguments, **options)  # type: ignore[arg-type]


def remembered(most: int) -> Callable[[Callable[_P, _T]], _Remembered[_P, _T]]:
    """Remember the latest results of a function.

    Example:
        >>> @remembered(8)
        ... def doubled(x: int) -> int:
        ...     print("doubled")
        ...     return 2 * x
        >>> doubled(1), doubled(1)
        doubled
        (2, 2)
        >>> from contextvars import copy_context
        >>> context = copy_context()
        >>> context.run(asked_by, "bob")
        >>> context.run(doubled, 1)
        doubled
        2
    """
    return lambda work: _Remembered(work, most)
