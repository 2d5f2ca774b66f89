"""Search in integers of any size."""

from __future__ import annotations

from collections.abc import Callable


def first(holds: Callable[[int], bool], low: int, high: int | None = None, *, guess: int | None = None) -> int:
    """The smallest integer from `low` on for which a condition holds; it must hold for all larger ones.

    With `high`, the search ends there: `high` is the answer if the condition holds for none below it. A right guess
    takes two trials, and a wrong one a few more.

    Example:
        >>> first(lambda k: k * k >= 10**50, 0), first(lambda k: False, 3, 9)
        (10000000000000000000000000, 9)
        >>> first(lambda k: k * k >= 10**50, 0, guess=10**25 + 7), first(lambda k: False, 3, 9, guess=4)
        (10000000000000000000000000, 9)
    """
    if guess is not None:
        guess = max(guess, low) if high is None else min(max(guess, low), high)
        if guess == high or holds(guess):
            low, high = _below(holds, low, guess)
        else:
            low = guess + 1
    if high is None or guess is not None:
        step = 1
        while high is None or low + step - 1 < high:
            if holds(low + step - 1):
                high = low + step - 1
                break
            low, step = low + step, 2 * step
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _below(holds: Callable[[int], bool], low: int, high: int) -> tuple[int, int]:
    """Ends between which the first integer lies, near to `high`, from where on the condition holds."""
    step = 1
    while low < high:
        trial = max(low, high - step)
        if not holds(trial):
            return trial + 1, high
        high, step = trial, 2 * step
    return low, high


def last(holds: Callable[[int], bool], high: int, guess: int) -> int:
    """The largest integer from 1 to `high` for which a condition holds, or 0; it must hold for all smaller ones.

    A right guess takes two trials, and a wrong one a few more.

    Example:
        >>> last(lambda k: k * k <= 10**12, 10**9, guess=10**6 + 5), last(lambda k: False, 9, guess=4)
        (1000000, 0)
    """
    low, over, step = 0, high + 1, 1
    trial = min(max(guess, 1), high)
    while over - low > 1:
        if holds(trial):
            low, trial = trial, trial + step
        else:
            over, trial = trial, trial - step
        step *= 2
        if not low < trial < over:
            trial = (low + over) // 2
    return low
