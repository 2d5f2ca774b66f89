"""The Laplace mechanism."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from privet import accuracy, events
from privet.accounting import PureAccountant
from privet.divergences import PrivacyProfile, privacy_profile
from privet.errors import DataError, NumberError
from privet.exact import Exact, Number, binary, nearest, positive, show, up, whole
from privet.guarantees import PureDP
from privet.lattice import (
    Integers,
    add_exactly,
    array_from_steps,
    array_to_steps,
    from_steps,
    is_power_of_two,
    power_of_two_below,
    to_steps,
)
from privet.noise import DiscreteLaplace

FINENESS = 24
"""A real lattice has steps of at most 2^-24 of the sensitivity, divided by the number of coordinates."""

_EXAMPLE = "Laplace(sensitivity=1, epsilon=0.5)"


@dataclass(frozen=True, slots=True)
class Laplace:
    """Release a value of known sensitivity with Laplace noise.

    Claim: if neighbouring datasets move the value by at most `sensitivity` (in L1, for a vector), then `release`
    is epsilon-differentially private, with noise of scale sensitivity / epsilon. All noise is discrete and exact.

    Integers get integer noise. Real numbers are rounded to a lattice whose step is a power of two, which can bring
    values D apart to ceil(D / step) steps apart (plus d - 1 for d coordinates). The noise is scaled for that, so it is
    larger than sensitivity / epsilon, by a part in 2^23 at most. `fit(value)` is the mechanism that `release` uses.

    What it can't see: a float that you computed carries its own rounding error, which depends on the data and adds to
    the sensitivity (a float sum of n numbers can move by far more than one of them). Compute in integers, or use
    `privet.statistics`, which does. Nor does it keep count of what you spend: a session does.

    Example:
        >>> mechanism = Laplace(sensitivity=1, epsilon=0.5)
        >>> isinstance(mechanism.release(1234), int), isinstance(mechanism.release(12.5), float)
        (True, True)
        >>> mechanism.guarantee(), mechanism.error(0.95), mechanism.interval(1234, 0.95)
        (PureDP(0.5), 6, (1228, 1240))

    Reference: Dwork, McSherry, Nissim, Smith (2006), calibrating noise to sensitivity.
    """

    sensitivity: Exact
    epsilon: Exact
    step: Exact
    dimension: int | None
    """How many coordinates are rounded to the lattice; None for integers, which lie on it."""
    steps: int = field(compare=False)
    """The sensitivity in lattice steps, what rounding adds included."""
    noise: DiscreteLaplace = field(compare=False)
    """The noise of each coordinate, in lattice steps."""
    _chosen: bool
    """Whether the step was given, and so is kept by `fit`."""

    def __init__(
        self,
        *,
        sensitivity: Number,
        epsilon: Number | None = None,
        scale: Number | None = None,
        step: Number | None = None,
        dimension: int | None = None,
    ) -> None:
        most = positive(sensitivity, name="sensitivity", example=_EXAMPLE)
        if (epsilon is None) == (scale is None):
            raise NumberError(f"give epsilon or scale, one of the two. Write, for example: {_EXAMPLE}")
        if scale is not None:
            loss = most / positive(scale, name="scale", example="Laplace(sensitivity=1, scale=2)")
        else:
            loss = positive(epsilon, name="epsilon", example=_EXAMPLE)
        coordinates = None if dimension is None else whole(dimension, name="dimension", example="dimension=3")
        chosen = step is not None
        if step is not None:
            size = positive(step, name="step", example="step=1 or step=2**-20")
            if not is_power_of_two(size):
                raise NumberError(f"step must be a power of two, not {step}. Write, for example: step=2**-20")
            if size != 1 and coordinates is None:
                coordinates = 1
        elif most.denominator == 1 and coordinates is None:
            size = Fraction(1)
        else:
            coordinates = coordinates or 1
            size = power_of_two_below(most / (coordinates << FINENESS))
        steps = math.ceil(most / size) + (coordinates or 1) - 1
        noise = DiscreteLaplace(steps / loss)
        for name, value in zip(self.__slots__, (most, loss, size, coordinates, steps, noise, chosen), strict=True):
            object.__setattr__(self, name, value)
        self.event()  # what could not be written down is refused here, not after data were read

    def __repr__(self) -> str:
        lattice = "" if self.dimension is None else f", step={show(self.step)}, dimension={self.dimension}"
        return f"Laplace(sensitivity={show(self.sensitivity)}, epsilon={show(self.epsilon)}{lattice})"

    # --- the noise and what it costs ------------------------------------------------------------

    @property
    def scale(self) -> Exact:
        """The scale of the noise, in units of the value: sensitivity / epsilon, never less."""
        return self.noise.scale * self.step

    def event(self) -> events.Laplace:
        """What a release does, as accountants see it."""
        return events.Laplace(sensitivity=self.steps, scale=self.noise.scale)

    def guarantee(self) -> PureDP:
        """What one release promises."""
        return PureAccountant().account(self.event())

    def privacy_profile(self) -> PrivacyProfile:
        """Epsilon -> delta, for values as far apart as they can be in one coordinate.

        Example:
            >>> float(Laplace(sensitivity=1, epsilon=1).privacy_profile()(0))
            0.46211715726000974
        """
        return privacy_profile(self.noise, self.noise.at(self.steps))

    # --- its accuracy ---------------------------------------------------------------------------

    @property
    def _rounded(self) -> Exact:
        return Fraction(0) if self.dimension is None else Fraction(1, 2)

    def error(self, confidence: Number) -> int | float:
        """The error that an answer keeps to with this confidence (each coordinate by itself)."""
        bound = accuracy.error(self.noise, confidence, step=self.step, rounded=self._rounded)
        return int(bound) if self.dimension is None else up(bound)

    def tail(self, t: Number) -> float:
        """P(|A - f| >= t), rounded up: exact for integers, with the rounding's share for reals.

        Example:
            >>> Laplace(sensitivity=1, epsilon=1).tail(3) <= 2 * math.exp(-3)
            True
        """
        return min(1.0, up(accuracy.tail(self.noise, t, step=self.step, rounded=self._rounded).upper))

    def interval(self, value: Any, confidence: Number) -> tuple[Any, Any]:
        """The interval around a released value that holds the true one with this confidence."""
        read = _read(value)
        half = self._fit(read).error(confidence)
        if read.scalar:
            centre = read.content if isinstance(half, int) else nearest(Fraction(read.content))
            return centre - half, centre + half
        if isinstance(half, int):
            by = np.full(read.content.shape, half, dtype=object)
            low, high = add_exactly(read.content, -by), add_exactly(read.content, by)
        else:
            centre = read.content.astype(np.float64)
            low, high = np.asarray(centre - half), np.asarray(centre + half)
        return (low.tolist(), high.tolist()) if read.listed else (low, high)

    # --- release --------------------------------------------------------------------------------

    def fit(self, value: Any) -> Laplace:
        """The mechanism on the lattice that a value of this type and length needs; same sensitivity, same epsilon.

        Example:
            >>> Laplace(sensitivity=1, epsilon=0.5).fit([0.5, 1.5])
            Laplace(sensitivity=1, epsilon=0.5, step=2.98023e-08, dimension=2)
        """
        return self._fit(_read(value))

    def _fit(self, value: _Value) -> Laplace:
        if self.dimension is None and not value.real:
            return self
        if self.dimension is not None and value.length <= self.dimension:
            return self
        step = self.step if self._chosen else None
        return Laplace(sensitivity=self.sensitivity, epsilon=self.epsilon, step=step, dimension=value.length)

    def release(self, value: Any) -> Any:
        """The value plus noise: an int, float, list or array like `value` (a number, list, tuple or numpy array).

        NaN and infinities are refused: no sensitivity covers them. The type and the length of the value are public.

        Example:
            >>> type(Laplace(sensitivity=2, epsilon=1).release([10, 20, 30]))
            <class 'list'>
        """
        read = _read(value)
        return self._fit(read)._release(read)

    def _release(self, value: _Value) -> Any:
        if value.scalar:
            if self.dimension is None:
                return int(value.content) + self.noise.sample()
            return from_steps(to_steps(Fraction(value.content), self.step) + self.noise.sample(), self.step)
        total = add_exactly(value.steps(self.step), self.noise.sample(value.content.size))
        answer = total if self.dimension is None else array_from_steps(total, self.step)
        return answer.tolist() if value.listed else answer.reshape(value.content.shape)


@dataclass(frozen=True, slots=True)
class _Value:
    """A value that was read: an int, a Fraction, or an array of integers, of floats or (from a list) of both."""

    content: Any
    real: bool
    listed: bool = False

    @property
    def scalar(self) -> bool:
        return not isinstance(self.content, np.ndarray)

    @property
    def length(self) -> int:
        return 1 if self.scalar else max(1, self.content.size)

    def steps(self, step: Exact) -> Integers:
        flat: Integers = self.content.ravel()
        if flat.dtype == np.float64:
            return array_to_steps(flat, step)
        if step == 1 and not self.real:
            return flat
        return np.array([to_steps(Fraction(x), step) for x in flat.tolist()], dtype=object)


def _read(value: Any) -> _Value:
    if isinstance(value, np.ma.MaskedArray):  # numpy keeps what is under the mask: it would go out without noise
        raise DataError("a masked array can't be released. Write, for example: release(values.filled(0))")
    if isinstance(value, np.ndarray):
        value = np.asarray(value)
        if value.dtype.kind in "iu":
            return _Value(value, real=False)
        if value.dtype.kind == "f" and value.dtype.itemsize <= 8:
            if not np.isfinite(value).all():
                raise _not_finite()
            return _Value(value.astype(np.float64), real=True)
        raise DataError(f"an array of {value.dtype} can't be released. Write: release(values.astype(float))")
    if isinstance(value, list | tuple):
        items = [_scalar(item) for item in value]
        real = any(item.real for item in items)
        content = np.empty(len(items), dtype=object)
        content[:] = [item.content for item in items]
        return _Value(content, real, listed=True)
    return _scalar(value)


def _scalar(value: Any) -> _Value:
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return _Value(int(value), real=False)
    if isinstance(value, numbers.Rational) and not isinstance(value, bool):
        return _Value(Fraction(value), real=True)
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise _not_finite()
        return _Value(Fraction(value), real=True)
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = float(value)
        if not math.isfinite(number):
            raise _not_finite()
        return _Value(binary(number), real=True)
    raise DataError(
        f"a {type(value).__name__} can't be released: give a number, a list of numbers or a numpy array. "
        "Write, for example: release(1234)"
    )


def _not_finite() -> DataError:
    return DataError("NaN and infinity can't be released: no sensitivity covers them. Clamp the value before.")
