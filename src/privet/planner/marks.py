"""Which answers are too noisy to rely on, and how this selection affects the intervals of the others.

The mark depends only on noisy numbers, so it is post-processing. But then noise selects the answers without a mark: of
the groups just below the line, those with much noise end up above it, and an interval that covers 95 % of all answers
covers far fewer of these. So just above the line intervals are wider.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from privet.exact import Exact
from privet.planner.confidences import USUAL
from privet.planner.linear import Linear, Noisy
from privet.planner.noise import Noise

LINE = 2
"""A number below this many half widths of its interval is marked: its usual error can be half of it."""
UNDER = 4
"""The same for a denominator. With less, the interval of a mean just above the line could be most of the range, and
that of a ratio infinite."""


class Standing(IntEnum):
    """The position of a noisy number: below the line, less than a half width above it, or further above."""

    MARKED = 0
    NEAR = 1
    CLEAR = 2


def usual_error(form: Linear, noise: Noise, confidence: Exact) -> Exact:
    """The half width by which answers are marked."""
    return noise.half_width(form, max(confidence, USUAL))


def standings(
    form: Linear, groups: Sequence[Noisy], noise: Noise, confidence: Exact, *, signed: bool, line: int = LINE
) -> list[Standing]:
    """The standing of a linear form in each group; if it can't be negative (not `signed`), negative values are noise.

    Claim: let x = n + Z with symmetric, log-concave Z (sums of independent log-concave noise are), a = 1 - confidence,
    and h with P(|Z| > h) <= a. Let the line be at c = 2h (or more). (1) If n < c - h, then P(x >= c) <= a/2. (2) If
    n < c, then P(x > c + h | x >= c) <= a, since P(Z > d + h) / P(Z >= d) is largest at d = 0. (3) If n >= c, then
    P(x >= c) >= 1/2.

    So let an interval, of whatever, err with probability a, and a^2 where c <= x <= c + h (`careful`). Given x >= c, it
    errs with probability 2a at most, wherever x >= c has probability a or more: a^2/a + a if n < c, a / (1/2) if
    n >= c. Where two numbers must stand above their lines, this is measured, not proved (`./dev bench unmarked`).

    Example:
        >>> from privet.mechanisms import DEFAULT
        >>> form, noise = Linear(((0, 0, Exact(1)),)), Noise(DEFAULT, (Exact(2),))
        >>> some = [[[11]], [[12]], [[-18]], [[19]]]
        >>> [s.name for s in standings(form, some, noise, Exact("0.95"), signed=True)]
        ['MARKED', 'NEAR', 'NEAR', 'CLEAR']
    """
    half = usual_error(form, noise, confidence)
    numbers, unit = form.wholes(groups, also=half.denominator)
    error = int(half * unit)
    return [standing(abs(x) if signed else x, error, line) for x in numbers]


def standing(size: int, half: int, line: int = LINE) -> Standing:
    """The standing of a number of this size, for this half width."""
    if size < line * half:
        return Standing.MARKED
    return Standing.NEAR if half and size <= (line + 1) * half else Standing.CLEAR
