"""A number and its interval as text, with as many digits as the noise leaves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal

from privet.exact import Exact, binary
from privet.planner.outputs import Cell

_PLAIN_BELOW = Exact(10**15)  # larger numbers, and those that need more than nine decimals, are written as 1.2e15
_LAST_PLACE = -9
_FLOAT_DIGITS = 17


def numerals(value: Cell, low: Cell, high: Cell, *, around: bool) -> tuple[str, str]:
    """A value and its interval (`around` it, or between two ends), to two digits of half the interval's width.

    A number that is public, without an interval, keeps all of its digits. An interval around a value that is not in its
    middle is shown by its ends.

    Claim: the printed interval contains low..high, whatever was rounded.

    Example:
        >>> numerals(1204, 1191, 1217, around=True), numerals(31204.4, 30110.3, 32329.9, around=False)
        (('1,204', '± 13'), ('31,200', '(30,100 to 32,400)'))
        >>> numerals(1234567.89, 1184567.89, 1284567.89, around=True), numerals(80, 30, 110, around=True)
        (('1,235,000', '± 50,500'), ('80', '(30 to 110)'))
        >>> numerals(0.28571, 0.2713, 0.3001, around=False), numerals(3.14159, 2.5, math.inf, around=False)
        (('0.286', '(0.271 to 0.301)'), ('3.14', '(at least 2.50)'))
    """
    if value != value:  # a quotient by 0
        return "missing", ""
    if not _finite(value):
        return ("below -1e308" if value < 0 else "above 1e308"), "(no bound)"
    at = binary(value)
    ends = [binary(end) for end in (low, high) if _finite(end)]
    half = (ends[1] - ends[0]) / 2 if len(ends) == 2 else max((abs(at - end) for end in ends), default=Exact(0))
    place, plain = _last_place(at, ends, half, integer=isinstance(value, int))

    def text(x: Exact, rounding: Callable[[Exact], int], to: int = place) -> str:
        return _digits(rounding(x / Exact(10) ** to), to, plain=plain)

    shown = text(at, round)
    askew = abs(sum(ends) - 2 * at) if len(ends) == 2 else None
    if around and askew is not None and askew <= max(half / 10, Exact(isinstance(value, int))):
        # as far as any value is rounded, not only this one: answers with the same noise show the same error
        rounded = 0 if place == 0 and isinstance(value, int) else Exact(10) ** place / 2
        finer = place - 1 if plain and place > 0 else place  # so that rounding costs little where digits are free
        return shown, f"± {text(max(abs(end - at) for end in ends) + rounded, math.ceil, finer)}"
    least = text(binary(low), math.floor) if _finite(low) else ""
    most = text(binary(high), math.ceil) if _finite(high) else ""
    if least and most:
        return shown, f"({least} to {most})"
    if least or most:
        return shown, f"(at least {least})" if least else f"(at most {most})"
    return shown, "(no bound)"


def _finite(x: Cell) -> bool:
    return isinstance(x, int) or math.isfinite(x)


def _last_place(value: Exact, ends: Sequence[Exact], half: Exact, *, integer: bool) -> tuple[int, bool]:
    """The power of ten of the last digit, and whether the number is written without an exponent."""
    place = _order(half) - 1 if half else min(_order(value) - 2, 0) if value else 0
    place += half > 99 * Exact(10) ** place  # 9.95 is shown as 10, not as 10.0
    place = max(place, 0) if integer else place
    largest = max(map(abs, (value, *ends)))
    if largest < _PLAIN_BELOW and place >= _LAST_PLACE:
        return place, True
    return max(place, _order(largest) + 1 - _FLOAT_DIGITS), False


def _order(x: Exact) -> int:
    """The power of ten of the first digit."""
    cut = Context(3, ROUND_FLOOR, MIN_EMIN, MAX_EMAX, traps=[])
    return cut.divide(Decimal(abs(x.numerator)), Decimal(x.denominator)).adjusted()


def _digits(units: int, place: int, *, plain: bool) -> str:
    """The number units * 10^place."""
    if not plain:
        digits = Decimal((units < 0, tuple(map(int, str(abs(units)))), place))
        return f"{digits:e}".replace("e+", "e") if units else "0"
    whole, part = divmod(abs(units) * 10 ** max(place, 0), 10 ** max(-place, 0))
    return f"{'-' if units < 0 else ''}{whole:,}" + (f".{part:0{-place}}" if place < 0 else "")
