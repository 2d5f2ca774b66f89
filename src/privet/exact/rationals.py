"""Numbers as people write them, as exact rationals."""

from __future__ import annotations

import math
import numbers
import re
from decimal import Decimal
from fractions import Fraction

from privet.errors import NumberError, Remedy, Subject, write

Exact = Fraction
"""An exact rational number."""

Number = int | float | str | Decimal | Fraction
"""The types that users can pass as a number, in addition to numpy scalars."""

INFINITY = math.inf
"""The only value of a divergence that is not rational."""

_DECIMAL = re.compile(r"[+-]?(\d[\d_]*(\.[\d_]*)?|\.\d[\d_]*)([eE](?P<exponent>[+-]?\d{1,4}))?\Z")
_RATIO = re.compile(r"[+-]?\d+/\d+\Z")
_LONGEST = 400  # characters of a number's text, and the largest power of ten in it
_BITS = 4096  # of a numerator or denominator, which Python can still print


def exact(value: object, *, name: str = "number", example: str | Remedy | None = None) -> Exact:
    """The rational that a person means by `value`.

    Claim: a float means its shortest decimal (the one that Python prints), so ten times 0.1 is 1; a numpy scalar means
    its own shortest decimal; int, str ("0.1", "1/3"), Decimal and Fraction mean their exact values. NaN, infinities,
    bools, other text and numbers of more than 1,200 digits are refused.

    Example:
        >>> exact(0.1), exact("1/3"), 10 * exact(0.1) == 1
        (Fraction(1, 10), Fraction(1, 3), True)
        >>> exact(float("nan"), name="epsilon", example="epsilon=0.5")
        Traceback (most recent call last):
        privet.errors.NumberError: epsilon must be a number, not nan. Write, for example: epsilon=0.5
    """
    number = _parse(value)
    if number is None:
        raise _refusal(name, "a number", value, example)
    return number


def positive(value: object, *, name: str, example: str | Remedy | None = None) -> Exact:
    """An exact number greater than zero.

    Example:
        >>> positive(0, name="epsilon", example="epsilon=0.5")
        Traceback (most recent call last):
        privet.errors.NumberError: epsilon must be a number greater than 0, not 0. Write, for example: epsilon=0.5
    """
    number = _parse(value)
    if number is None or number <= 0:
        raise _refusal(name, "a number greater than 0", value, example)
    return number


def nonnegative(value: object, *, name: str, example: str | Remedy | None = None) -> Exact:
    """An exact number, zero or greater.

    Example:
        >>> nonnegative("1e-9", name="delta")
        Fraction(1, 1000000000)
    """
    number = _parse(value)
    if number is None or number < 0:
        raise _refusal(name, "a number, 0 or greater", value, example)
    return number


def probability(value: object, *, name: str, example: str | Remedy | None = None) -> Exact:
    """An exact number strictly between 0 and 1, such as a confidence.

    Example:
        >>> probability(0.95, name="confidence")
        Fraction(19, 20)
    """
    number = _parse(value)
    if number is None or not 0 < number < 1:
        raise _refusal(name, "a number between 0 and 1, both excluded", value, example)
    return number


def whole(value: object, *, name: str, least: int = 1, example: str | Remedy | None = None) -> int:
    """An integer, `least` or greater; 3.0 is 3, 2.5 is refused.

    Example:
        >>> whole(3.0, name="max_rows")
        3
    """
    number = _parse(value)
    if number is None or number.denominator != 1 or number < least:
        raise _refusal(name, f"a whole number, {least} or greater", value, example)
    return int(number)


def binary(value: float) -> Exact:
    """The exact value of a float in data, as opposed to a parameter that a person wrote.

    Example:
        >>> binary(0.5), binary(0.1) == exact(0.1)
        (Fraction(1, 2), False)
    """
    return Fraction(value)


def _parse(value: object) -> Exact | None:
    number = _rational(value)
    return None if number is None or _long(number) else number


def _long(number: Exact) -> bool:
    return max(number.numerator.bit_length(), number.denominator.bit_length()) > _BITS


def _rational(value: object) -> Exact | None:
    if type(value) is Fraction:
        return value
    if type(value) is int:
        return Fraction(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, Fraction):  # a subclass may have its own arithmetic
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, numbers.Integral):
        try:
            return Fraction(int(value))
        except (TypeError, ValueError):  # numpy registers its time differences as Integral
            return None
    if isinstance(value, Decimal):
        return _read(str(value)) if value.is_finite() else None
    if isinstance(value, float):
        return Fraction(float.__repr__(value)) if math.isfinite(value) else None
    if isinstance(value, numbers.Real):  # numpy's other floats: str is their shortest decimal
        return _read(str(value)) if math.isfinite(value) else None
    if isinstance(value, str):
        return _read(str.strip(value))
    return None


def _read(text: str) -> Exact | None:
    if len(text) > _LONGEST:
        return None
    match = _DECIMAL.match(text)
    if match is None and _RATIO.match(text) is None:
        return None
    if match is not None and abs(int(match["exponent"] or 0)) >= _LONGEST:
        return None
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None


def _refusal(name: str, allowed: str, value: object, example: str | Remedy | None) -> NumberError:
    shown = _shown(value)
    if not isinstance(value, str | numbers.Number | Decimal):
        shown = f"{shown} ({type(value).__name__})"
    text = str(value).strip() if isinstance(value, str | Decimal) else ""
    if _parse(text) is None and (_DECIMAL.match(text) or _RATIO.match(text)):
        allowed += f", of at most {_LONGEST} characters, with an exponent below {_LONGEST}"
    remedy = write(example) if isinstance(example, str) else example
    return NumberError(f"{name} must be {allowed}, not {shown}", subject=Subject("argument", name), remedy=remedy)


def _shown(value: object) -> str:
    """A short text of a value. Python refuses to print integers of thousands of digits, and is slow for long ones."""
    if isinstance(value, int | Fraction) and _long(Fraction(value)):
        return "one of more than 1,200 digits"
    try:
        shown = repr(value) if isinstance(value, str) else str(value)
    except ValueError:  # another type of integer, or a list of them
        return "a number too long to print"
    return shown if len(shown) <= 60 else shown[:57] + "..."
