"""The Laplace mechanism on its own, for any value of known sensitivity, without tables or a ledger."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from privet import accuracy
from privet.errors import DataError, NumberError, write
from privet.exact import Exact, Number, literal, positive, show, up, whole
from privet.exact.lattice import (
    add_exactly,
    array_from_steps,
    from_steps,
    is_power_of_two,
    power_of_two_below,
    to_steps,
)
from privet.mechanisms.laplace import LAPLACE
from privet.mechanisms.values import Value, read
from privet.noise import DiscreteLaplace
from privet.privacy import events
from privet.privacy.accounting import PureAccountant
from privet.privacy.divergences import PrivacyProfile, privacy_profile
from privet.privacy.guarantees import PureDP
from privet.privacy.moves import L1Move

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
    larger than sensitivity / epsilon, by at most one part in 2^23 unless you choose a coarser `step`.

    `fit(value)` is the mechanism that `release(value)` uses. With an integer sensitivity the mechanism itself is the
    one for integers, and so are `error`, `tail` and `scale`; for floats use `fit(12.5).error()`, or pass `dimension=1`.

    What it can't check: a float that you computed has its own rounding error, which depends on the data and adds to
    the sensitivity (a float sum of n numbers can move by far more than one of them). Compute in integers, or use
    `privet.textbook.statistics`, which does. It does not track what you spend, either.

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
    """The number of coordinates that are rounded to the lattice; None for integers, which lie on it."""
    steps: int = field(compare=False)
    """The sensitivity in lattice steps, including the effect of rounding."""
    noise: DiscreteLaplace = field(compare=False)
    """The noise of each coordinate, in lattice steps."""
    _chosen: bool
    """Whether the caller chose the step, which then does not change."""

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
            raise NumberError("pass either epsilon or scale", remedy=write(_EXAMPLE))
        if scale is not None:
            loss = most / positive(scale, name="scale", example="Laplace(sensitivity=1, scale=2)")
        else:
            loss = positive(epsilon, name="epsilon", example=_EXAMPLE)
        coordinates = None if dimension is None else whole(dimension, name="dimension", example="dimension=3")
        chosen = step is not None
        if step is not None:
            size = positive(step, name="step", example="step=1 or step=2**-20")
            if not is_power_of_two(size):
                raise NumberError(f"step must be a power of two, not {step}", remedy=write("step=2**-20"))
            if size != 1 and coordinates is None:
                coordinates = 1
        elif most.denominator == 1 and coordinates is None:
            size = Fraction(1)
        else:
            coordinates = coordinates or 1
            size = power_of_two_below(most / (coordinates << FINENESS))
        steps = math.ceil(most / size) + (coordinates or 1) - 1
        noise = LAPLACE.distribution(LAPLACE.scale(L1Move(steps), epsilon=loss))
        for name, value in zip(self.__slots__, (most, loss, size, coordinates, steps, noise, chosen), strict=True):
            object.__setattr__(self, name, value)
        self.event()  # refuses what a ledger could not store, before any data are read

    def __repr__(self) -> str:
        lattice = "" if self.dimension is None else f", step={show(self.step)}, dimension={self.dimension}"
        if self._chosen and self.dimension is None:
            lattice = f", step={show(self.step)}"
        return f"Laplace(sensitivity={show(self.sensitivity)}, epsilon={show(self.epsilon)}{lattice})"

    # --- the noise and what it costs ------------------------------------------------------------

    @property
    def scale(self) -> Exact:
        """The scale of the noise, in units of the value: sensitivity / epsilon, never less."""
        return self.noise.scale * self.step

    def event(self) -> events.LaplaceNoise:
        """The event of a release, for accountants."""
        return LAPLACE.event(L1Move(self.steps), scale=self.noise.scale)

    def guarantee(self) -> PureDP:
        """The guarantee of one release."""
        return PureAccountant().account(self.event())

    def privacy_profile(self) -> PrivacyProfile:
        """Epsilon -> delta, for neighbours that differ as much as possible in one coordinate.

        Example:
            >>> float(Laplace(sensitivity=1, epsilon=1).privacy_profile()(0))
            0.46211715726000974
        """
        return privacy_profile(self.noise, self.noise.at(self.steps))

    # --- its accuracy ---------------------------------------------------------------------------

    @property
    def _rounded(self) -> Exact:
        return Fraction(0) if self.dimension is None else Fraction(1, 2)

    def error(self, confidence: Number = 0.95) -> int | float:
        """The error bound that holds with this confidence, for each coordinate by itself; for floats, see `fit`."""
        bound = accuracy.error(self.noise, confidence, step=self.step, rounded=self._rounded)
        return int(bound) if self.dimension is None else up(bound)

    def tail(self, t: Number) -> float:
        """P(|A - f| >= t), rounded up: exact for integers, and including the effect of rounding for reals.

        Example:
            >>> Laplace(sensitivity=1, epsilon=1).tail(3) <= 2 * math.exp(-3)
            True
        """
        return min(1.0, up(accuracy.tail(self.noise, t, step=self.step, rounded=self._rounded).upper))

    def interval(self, value: Any, confidence: Number = 0.95) -> tuple[Any, Any]:
        """The interval around a released value that contains the true one with this confidence, for each coordinate.

        Real ends are rounded outwards, and account for the rounding of the answer to a float.
        """
        content = read(value)
        half = self._fit(content).error(confidence)
        if isinstance(half, int):
            shape = content.array.shape
            low, high = (add_exactly(content.array, np.full(shape, by, dtype=object)) for by in (-half, half))
        else:
            centre = content.array.astype(np.float64)
            wide = np.nextafter(half + np.spacing(np.abs(centre)), np.inf)
            low, high = np.nextafter(centre - wide, -np.inf), np.nextafter(centre + wide, np.inf)
        return content.like(low), content.like(high)

    # --- release --------------------------------------------------------------------------------

    def fit(self, value: Any) -> Laplace:
        """The mechanism for a value of this type and length, with the same sensitivity and epsilon.

        Example:
            >>> Laplace(sensitivity=1, epsilon=0.5).fit([0.5, 1.5])
            Laplace(sensitivity=1, epsilon=0.5, step=2.98023e-8, dimension=2)
        """
        return self._fit(read(value))

    def _fit(self, value: Value) -> Laplace:
        if self.dimension is None and not value.real:
            return self
        if self.dimension is not None and value.length <= self.dimension:
            return self
        if self._chosen:
            allowed = "integers" if self.dimension is None else f"up to {self.dimension} numbers"
            raise DataError(
                f"{self!r} takes {allowed}: with a step that you choose, rounding can add noise that depends on how "
                "many numbers are rounded",
                remedy=write(f"Laplace(..., step={literal(self.step)}, dimension={value.length})", exact=True),
            )
        return _fitted(self, value.length)

    def release(self, value: Any) -> Any:
        """The value plus noise: an int, float, list or array like `value` (a number, list, tuple or numpy array).

        NaN and infinities are refused: no sensitivity covers them. The type and the length of the value are public.

        Example:
            >>> type(Laplace(sensitivity=2, epsilon=1).release([10, 20, 30]))
            <class 'list'>
        """
        content = read(value)
        return self._fit(content)._release(content)

    def _release(self, value: Value) -> Any:
        if value.scalar and self.dimension is None:  # a count: no rounding and no array
            return int(value.content) + self.noise.sample()
        if value.scalar:
            return from_steps(to_steps(Fraction(value.content), self.step) + self.noise.sample(), self.step)
        total = add_exactly(value.steps(self.step), self.noise.sample(value.content.size))
        return value.like(total if self.dimension is None else array_from_steps(total, self.step))


@lru_cache(maxsize=64)
def _fitted(mechanism: Laplace, dimension: int) -> Laplace:
    return Laplace(sensitivity=mechanism.sensitivity, epsilon=mechanism.epsilon, dimension=dimension)
