"""What the bare mechanisms that add noise share: the lattice, the release, and the accuracy of an answer."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

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
from privet.mechanisms.values import Value, read
from privet.noise import DiscreteGaussian, DiscreteLaplace
from privet.privacy.divergences import PrivacyProfile, privacy_profile

FINENESS = 24
"""A real lattice has steps of at most 2^-24 of the sensitivity, divided by the number of coordinates."""


def lattice(sensitivity: Exact, step: Number | None, dimension: int | None) -> tuple[Exact, int | None]:
    """The step, and the number of coordinates that are rounded to multiples of it: None for integers."""
    coordinates = None if dimension is None else whole(dimension, name="dimension", example="dimension=3")
    if step is not None:
        size = positive(step, name="step", example="step=1 or step=2**-20")
        if not is_power_of_two(size):
            raise NumberError(f"step must be a power of two, not {step}", remedy=write("step=2**-20"))
        return size, 1 if size != 1 and coordinates is None else coordinates
    if sensitivity.denominator == 1 and coordinates is None:
        return Fraction(1), None
    coordinates = coordinates or 1
    return power_of_two_below(sensitivity / (coordinates << FINENESS)), coordinates


class Additive:
    """A bare mechanism that puts a value on a lattice and adds independent noise to each coordinate.

    A subclass has a docstring with its claim, and says how much noise, for which event and which guarantee.
    """

    __slots__ = ()

    sensitivity: Exact
    step: Exact
    dimension: int | None
    steps: int
    """How far one coordinate can move, in lattice steps."""
    noise: DiscreteLaplace | DiscreteGaussian
    _chosen: bool

    def _for_integers(self, length: int) -> Self:
        """The mechanism for this many integers."""
        return self

    def _for_reals(self, length: int) -> Self:
        """The mechanism for this many real numbers."""
        raise NotImplementedError

    def _lattice_text(self) -> str:
        if self.dimension is not None:
            return f", step={show(self.step)}, dimension={self.dimension}"
        return f", step={show(self.step)}" if self._chosen else ""

    def privacy_profile(self) -> PrivacyProfile:
        """Epsilon -> delta, for neighbours that differ as much as possible in one coordinate."""
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
        """P(|A - f| >= t), rounded up: exact for integers, and including the effect of rounding for reals."""
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

    def fit(self, value: Any) -> Self:
        """The mechanism for a value of this type and length, with the same sensitivity and price."""
        return self._fit(read(value))

    def _fit(self, value: Value) -> Self:
        if self.dimension is None and not value.real:
            return self._for_integers(value.length)
        if self.dimension is not None and value.length <= self.dimension:
            return self
        if self._chosen:
            allowed = "integers" if self.dimension is None else f"up to {self.dimension} numbers"
            line = f"{type(self).__name__}(..., step={literal(self.step)}, dimension={value.length})"
            raise DataError(
                f"{self!r} takes {allowed}: you chose its step, and how much noise rounding needs depends on how many "
                "numbers are rounded",
                remedy=write(line, exact=True),
            )
        return self._for_reals(value.length)

    def release(self, value: Any) -> Any:
        """The value plus noise: an int, float, list or array like `value` (a number, list, tuple or numpy array).

        NaN and infinities are refused: no sensitivity covers them. The type and the length of the value are public.
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
