"""Search in integers of any size."""

from __future__ import annotations

from collections.abc import Callable


def first(holds: Callable[[int], bool], low: int, high: int | None = None) -> int:
    """The smallest integer from `low` on for which a condition holds; it must hold for all larger ones.

    With `high`, the search ends there: `high` is the answer if the condition holds for none below it.

    Example:
        >>> first(lambda k: k * k >= 10**50, 0), first(lambda k: False, 3, 9)
        (10000000000000000000000000, 9)
    """
    if high is None:
        step = 1
        while not holds(low + step - 1):
            low, step = low + step, 2 * step
        high = low + step - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
