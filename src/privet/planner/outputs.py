"""From noisy coordinates to columns of an answer, with their intervals: post-processing, which costs nothing.

Each output knows how to estimate its column, how wide it is sure to be before any data were read, and how large the
noise may be for an error that is wanted. Intervals are for the statistic of bounded rows and clamped, rounded values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privet import accuracy
from privet.exact import Exact, down, nearest, up
from privet.planner.linear import Linear, Noisy

Cell = int | float


@dataclass(frozen=True, slots=True)
class Cells:
    """One column of an answer: a value and an interval for each group, and whether the value says little."""

    values: tuple[Cell, ...]
    low: tuple[Cell, ...]
    high: tuple[Cell, ...]
    noisy: tuple[bool, ...]

    def at(self, groups: Sequence[int]) -> Cells:
        """The cells of these groups, in this order."""
        parts = (self.values, self.low, self.high, self.noisy)
        values, low, high, noisy = (tuple(part[i] for i in groups) for part in parts)
        return Cells(values, low, high, noisy)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Fixed:
    """A number that is public: the declared number of rows, or what follows from it."""

    value: int

    def measurements(self) -> frozenset[int]:
        return frozenset()

    def cells(self, groups: Sequence[Noisy], scales: Sequence[Exact], confidence: Exact) -> Cells:
        same = (self.value,) * len(groups)
        return Cells(same, same, same, (False,) * len(groups))

    def expected(self, scales: Sequence[Exact], confidence: Exact, assuming: int | None) -> Exact | None:
        return Exact(0)

    def allowed(self, error: Exact, ratios: Sequence[Exact], confidence: Exact, assuming: int | None) -> Exact | None:
        return None


@dataclass(frozen=True, slots=True)
class Straight:
    """A count or a sum: a linear form of the coordinates."""

    form: Linear
    integer: bool

    def measurements(self) -> frozenset[int]:
        return self.form.measurements

    def cells(self, groups: Sequence[Noisy], scales: Sequence[Exact], confidence: Exact) -> Cells:
        half = self._half(scales, confidence)
        found, unit = self.form.wholes(groups, also=half.denominator)
        room = int(half * unit)
        if self.integer:  # the true number is an integer inside
            values: list[Cell] = [(2 * x + unit) // (2 * unit) for x in found]
            low: list[Cell] = [min(-((room - x) // unit), int(v)) for x, v in zip(found, values, strict=True)]
            high: list[Cell] = [max((x + room) // unit, int(v)) for x, v in zip(found, values, strict=True)]
        else:
            values = [nearest(Exact(x, unit)) for x in found]
            low = [down(Exact(x - room, unit)) for x in found]
            high = [up(Exact(x + room, unit)) for x in found]
        return Cells(tuple(values), tuple(low), tuple(high), tuple(abs(x) < room for x in found))

    def _half(self, scales: Sequence[Exact], confidence: Exact) -> Exact:
        return accuracy.error_of_sum(self.form.weights(), self.form.scales(scales), confidence)

    def expected(self, scales: Sequence[Exact], confidence: Exact, assuming: int | None) -> Exact:
        """The error that it keeps to with this confidence, whatever the data.

        Claim: a count is rounded to the nearest integer, and the truth is one: |x - n| <= h means that the rounded x is
        at most floor(h + 1/2) away.
        """
        half = self._half(scales, confidence)
        return Exact(math.floor(half + Exact(1, 2))) if self.integer else half

    def allowed(self, error: Exact, ratios: Sequence[Exact], confidence: Exact, assuming: int | None) -> Exact | None:
        """The factor by which `ratios` may be multiplied to be the scales that keep to this error."""
        room = math.floor(error) + Exact(499_999, 10**6) if self.integer else error  # it is rounded: see `expected`
        return accuracy.scale_for_sum(self.form.weights(), self.form.scales(ratios), confidence, room)


@dataclass(frozen=True, slots=True)
class Quotient:
    """lower + unit * numerator / denominator: a mean, or a ratio of sums; the quotient is in 0..most, or has no bounds.

    `each` is what a row adds to the denominator and `at` the quotient, for errors expected before data are read.
    """

    numerator: Linear
    denominator: Linear
    most: Exact | None
    lower: Exact
    unit: Exact
    each: Exact
    at: Exact

    def measurements(self) -> frozenset[int]:
        return self.numerator.measurements | self.denominator.measurements

    def cells(self, groups: Sequence[Noisy], scales: Sequence[Exact], confidence: Exact) -> Cells:
        places = sorted({(m, c) for m, c, _ in (*self.numerator.terms, *self.denominator.terms)})
        x = np.array([[nearest(Exact(noisy[m][c])) for m, c in places] for noisy in groups])
        sides = [self._row(form, places) for form in (self.numerator, self.denominator)]
        noise = np.array([up(scales[m]) for m, _ in places])
        lower, upper = (0.0, nearest(self.most)) if self.most is not None else (-math.inf, math.inf)
        found = accuracy.ratio_estimate(x, *sides, lower=lower, upper=upper)
        low, high = accuracy.ratio_interval(x, noise, *sides, lower=lower, upper=upper, confidence=confidence)
        wide = high - low > (upper / 4 if self.most is not None else np.abs(found))
        start, unit = nearest(self.lower), nearest(self.unit)
        values, low, high = (start + unit * part for part in (found, low, high))
        return Cells(tuple(values.tolist()), tuple(low.tolist()), tuple(high.tolist()), tuple(wide.tolist()))

    @staticmethod
    def _row(form: Linear, places: Sequence[tuple[int, int]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        weights = {(m, c): w for m, c, w in form.terms}
        return np.array([nearest(weights.get(place, Exact(0))) for place in places])

    def _noise(self) -> Linear:
        return self.numerator.plus(self.denominator.times(-self.at))

    def expected(self, scales: Sequence[Exact], confidence: Exact, assuming: int | None) -> Exact | None:
        """The error at an assumed number of rows, or None without one."""
        if assuming is None:
            return None
        form = self._noise()
        half = accuracy.error_of_sum(form.weights(), form.scales(scales), confidence)
        return abs(self.unit) * half / (assuming * self.each)

    def allowed(self, error: Exact, ratios: Sequence[Exact], confidence: Exact, assuming: int | None) -> Exact | None:
        if assuming is None:
            return None
        form = self._noise()
        room = error / abs(self.unit) * assuming * self.each
        return accuracy.scale_for_sum(form.weights(), form.scales(ratios), confidence, room)


@dataclass(frozen=True, slots=True)
class Spread:
    """A variance, or its root, from the three coordinates of a `triple`."""

    measurement: int
    width: int
    unit: Exact
    root: bool

    def measurements(self) -> frozenset[int]:
        return frozenset([self.measurement])

    def cells(self, groups: Sequence[Noisy], scales: Sequence[Exact], confidence: Exact) -> Cells:
        x = np.array([[nearest(Exact(c)) for c in noisy[self.measurement][:3]] for noisy in groups])
        width, scale = float(self.width), up(scales[self.measurement])
        low, high = accuracy.variance_interval(x, scale, width, confidence=confidence)
        wide = high - low > width**2 / 8
        unit = nearest(self.unit) ** 2
        values, low, high = (unit * part for part in (accuracy.variance_estimate(x, width), low, high))
        if self.root:
            values, low, high = np.sqrt(values), np.sqrt(low), np.sqrt(high)
        return Cells(tuple(values.tolist()), tuple(low.tolist()), tuple(high.tolist()), tuple(wide.tolist()))

    def expected(self, scales: Sequence[Exact], confidence: Exact, assuming: int | None) -> Exact | None:
        """At an assumed number of rows; for a root, where the standard deviation is a quarter of the range."""
        if assuming is None:
            return None
        half = accuracy.error_of_sum([1], [scales[self.measurement]], confidence) * self.unit**2 / assuming
        return half * 2 / (self.unit * self.width) if self.root else half

    def allowed(self, error: Exact, ratios: Sequence[Exact], confidence: Exact, assuming: int | None) -> Exact | None:
        if assuming is None:
            return None
        variance = error * self.unit * self.width / 2 if self.root else error
        room = variance * assuming / self.unit**2
        return accuracy.scale_for_sum([1], [ratios[self.measurement]], confidence, room)


Output = Fixed | Straight | Quotient | Spread
"""Every kind of output there is."""
