"""Real numbers on a lattice of exact steps, so that all private values are integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import NoSensitivity, NumberError, write
from privet.exact import Exact, Number, binary, exact, literal, nearest, positive, show
from privet.exact.columns import as_floats

Integers = NDArray[Any]
"""An array of int64 or, where a value does not fit, of Python integers."""

_SAFE = 1 << 62
_BOUNDS = "lower=0, upper=200_000"
_REACH = Fraction(2) ** 500  # the largest bound, and the inverse of the smallest step: their squares still fit a float


def power_of_two_below(number: Exact) -> Exact:
    """The largest power of two that is not greater than a positive number.

    Example:
        >>> power_of_two_below(Fraction(5)), power_of_two_below(Fraction(1, 3))
        (Fraction(4, 1), Fraction(1, 4))
    """
    exponent = number.numerator.bit_length() - number.denominator.bit_length()
    power = Fraction(2) ** exponent
    return power if power <= number else power / 2


def is_power_of_two(number: Exact) -> bool:
    """Whether a positive number is 2^k for an integer k.

    Example:
        >>> is_power_of_two(Fraction(1, 8)), is_power_of_two(Fraction(3))
        (True, False)
    """
    return number == power_of_two_below(number)


def to_steps(value: Exact, step: Exact) -> int:
    """The nearest number of steps; halves are rounded up.

    Claim: values at most D apart are at most ceil(D / step) steps apart; vectors of d coordinates at L1
    distance at most D, at most ceil(D / step) + d - 1. All halves must be rounded in the same direction:
    rounding half to even would break this.

    Example:
        >>> to_steps(Fraction("0.5"), Fraction(1)), to_steps(Fraction("-0.5"), Fraction(1))
        (1, 0)
    """
    top, bottom = value.numerator * step.denominator, value.denominator * step.numerator
    return (2 * top + bottom) // (2 * bottom)


def steps_up(value: Exact, step: Exact) -> int:
    """The least number of steps that is not below the value, in integers alone.

    Example:
        >>> steps_up(Fraction("2.5"), Fraction(1, 2)), steps_up(Fraction("-2.6"), Fraction(1, 2))
        (5, -5)
    """
    return -(-value.numerator * step.denominator // (value.denominator * step.numerator))


def steps_down(value: Exact, step: Exact) -> int:
    """The greatest number of steps that is not above the value, in integers alone.

    Example:
        >>> steps_down(Fraction("2.5"), Fraction(1, 2)), steps_down(Fraction("-2.6"), Fraction(1, 2))
        (5, -6)
    """
    return value.numerator * step.denominator // (value.denominator * step.numerator)


def from_steps(steps: int, step: Exact) -> float:
    """Steps as the nearest float, infinite if out of range."""
    try:
        return steps * step.numerator / step.denominator
    except OverflowError:
        return math.inf if steps > 0 else -math.inf


def array_to_steps(values: NDArray[np.float64], step: Exact) -> Integers:
    """`to_steps` of finite floats, each taken at its exact binary value; `step` is a power of two."""
    exponent = step.denominator.bit_length() - step.numerator.bit_length()
    with np.errstate(all="ignore"):
        scaled = np.ldexp(values, exponent)
    if not np.all(np.abs(scaled) < _SAFE):
        return np.array([to_steps(binary(x), step) for x in values.flat], dtype=object).reshape(values.shape)
    whole = np.floor(scaled)
    whole += scaled - whole >= 0.5  # not floor(x + 0.5): that sum rounds
    return whole.astype(np.int64)


def array_from_steps(steps: Integers, step: Exact) -> NDArray[np.float64]:
    """Steps as floats, nearest where one does not fit; `step` is a power of two."""
    if steps.dtype == object:
        return np.array([from_steps(k, step) for k in steps.flat], dtype=np.float64).reshape(steps.shape)
    exponent = step.numerator.bit_length() - step.denominator.bit_length()
    with np.errstate(all="ignore"):
        return np.ldexp(steps.astype(np.float64), exponent)


def add_exactly(left: Integers, right: Integers) -> Integers:
    """The sum of two arrays of integers, with Python integers where int64 would overflow.

    Claim: the values and their type (int64 or not) depend only on the sums.

    Example:
        >>> add_exactly(np.array([2**62]), np.array([2**62])).tolist() == [2**63]
        True
    """
    if left.dtype != object and right.dtype != object and not _may_overflow(left, right):
        return np.asarray(left.astype(np.int64, copy=False) + right)
    unbounded = np.asarray(left.astype(object) + right.astype(object), dtype=object)  # numpy makes 0-d sums scalars
    fits = all(-(1 << 63) <= x < 1 << 63 for x in unbounded.flat)
    return unbounded.astype(np.int64) if fits else unbounded


def _may_overflow(*arrays: Integers) -> bool:
    return any(a.size and (int(a.max()) >= _SAFE or int(a.min()) < -_SAFE) for a in arrays)


def public_bounds(
    lower: object, upper: object, *, statistic: str = "answer", line: str = "lower={}, upper={}"
) -> tuple[Exact, Exact]:
    """Two exact bounds; refused if missing, infinite or reversed: `line` says how to write them.

    Example:
        >>> public_bounds(0, "0.5")
        (Fraction(0, 1), Fraction(1, 2))
    """
    for name, bound in (("lower", lower), ("upper", upper)):
        if bound is None or _is_infinite(bound):
            raise NoSensitivity(
                f"{name} is {bound}: without finite bounds, one row could change the {statistic} without limit, so no "
                "amount of noise would be enough",
                remedy=write(_BOUNDS, advice="Choose bounds from what you know, never from the data"),
            )
    low, high = (exact(bound, name=name, example=_BOUNDS) for name, bound in (("lower", lower), ("upper", upper)))
    if low > high:
        raise NumberError(
            f"lower must be less than upper, but {show(low)} is greater than {show(high)}",
            remedy=write(line.format(literal(high), literal(low)), exact=True),
        )
    return low, high


def _is_infinite(bound: object) -> bool:
    if isinstance(bound, str):
        return bound.strip().lower().lstrip("+-") in ("inf", "infinity")
    return isinstance(bound, float | np.floating | Decimal) and bound in (math.inf, -math.inf)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The public range of private values: lower, lower + step, ..., lower + width * step, at most `upper`.

    Claim: `encode` is a total function of each value, independent of the others, into 0..width. Any row
    moves a sum of encoded values by at most `width`, and changes no other row's code. A value is read as a 64-bit
    float, clamped (infinities too) and rounded to the nearest step, half to even. None, NaN and values that are not
    numbers are missing.

    Example:
        >>> Bounds(0, 10, step=1).encode([3.2, -5, float("inf"), None, "x"], missing=5).tolist()
        [3, 0, 10, 5, 5]
    """

    lower: Exact
    upper: Exact
    step: Exact
    stepped: bool
    """Whether the caller chose the step, which means that values are multiples of it."""

    def __init__(self, lower: Number, upper: Number, *, step: Number | None = None) -> None:
        low, high = public_bounds(lower, upper)
        if low == high:
            raise NumberError(f"lower must be less than upper, but both are {show(low)}", remedy=write(_BOUNDS))
        size = (
            power_of_two_below((high - low) / 2**32) if step is None else positive(step, name="step", example="step=1")
        )
        if not 1 <= (high - low) / size <= 2**52:
            fine = literal(power_of_two_below((high - low) / 2**32))
            raise NumberError(
                f"the step {show(size)} must divide {show(low)}..{show(high)} into 1 to 2^52 parts",
                remedy=write(f"step={fine}", advice="Choose another step, or omit it"),
            )
        if max(abs(low), abs(high)) > _REACH or size < 1 / _REACH:
            raise NumberError(
                f"the bounds {show(low)}..{show(high)} in steps of {show(size)} are too large or too fine for 64-bit "
                "floats",
                remedy=write("lower=0, upper=200_000", advice="Use another unit for data and bounds"),
            )
        for name, value in zip(self.__slots__, (low, high, size, step is not None), strict=True):
            object.__setattr__(self, name, value)

    @property
    def width(self) -> int:
        """The largest code."""
        return int((self.upper - self.lower) // self.step)

    @property
    def rounding(self) -> Exact:
        """How far `encode` can move a value within the bounds.

        If the caller chose the step, values are multiples of it: they do not move, provided that 64-bit floats can
        distinguish the steps; only a value clamped to `upper` can move, down to the last step.
        """
        over = self.upper - self.lower - self.width * self.step  # the rest of the range after the last step
        float_error = (max(abs(self.lower), abs(self.upper)) + self.upper - self.lower) / 2**51
        if self.stepped and float_error < self.step / 2:
            return over
        return max(self.step / 2, over) + float_error

    def code(self, value: Exact) -> int:
        """The code of one public number, clamped."""
        return min(max(round((value - self.lower) / self.step), 0), self.width)

    def encode(self, data: Any, *, missing: int) -> NDArray[np.int64]:
        """The codes of private values: a list or tuple, a numpy array, or an Arrow, pandas or polars column."""
        values = as_floats(data)
        absent = np.isnan(values)
        with np.errstate(all="ignore"):  # a warning would depend on a row
            scaled = np.rint((values - nearest(self.lower)) / nearest(self.step))
        codes = np.clip(np.where(absent, 0.0, scaled), 0.0, float(self.width)).astype(np.int64)
        codes[absent] = missing
        return codes
