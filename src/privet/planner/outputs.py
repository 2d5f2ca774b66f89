"""From noisy coordinates to columns of an answer, with their intervals: post-processing, which costs nothing.

Each output knows how to estimate its column, how wide it is sure to be before any data were read, and how large the
noise may be for an error that is wanted. Intervals are for the statistic of bounded rows and clamped, rounded values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privet import accuracy
from privet.exact import Exact, down, nearest, up
from privet.exact.rounding import quotient_down, quotient_nearest, quotient_up
from privet.planner import marks
from privet.planner.cells import Cell as Cell
from privet.planner.cells import Cells as Cells
from privet.planner.cells import Ends as Ends
from privet.planner.confidences import USUAL, careful
from privet.planner.linear import Linear, Noisy
from privet.planner.marks import Standing
from privet.planner.noise import Noise
from privet.planner.rank_outputs import RankedCode as RankedCode

if TYPE_CHECKING:  # it is made of what is here
    from privet.planner.bounds import Found

_FOR_THE_MEAN = Exact(1, 5)  # of the probability to err in a variance

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def _cells(
    estimates: Floats,
    stands: ArrayLike,
    interval: Callable[[Bools, Exact], tuple[Floats, Floats]],
    confidence: Exact,
    shown: Callable[[Floats], Floats],
) -> Cells:
    """Cells from estimates, where they stand, and how to get intervals; just above the line, more careful ones.

    Claim: no interval has zero width, not even after rounding to floats.
    """
    low, high = np.empty_like(estimates), np.empty_like(estimates)
    near = np.equal(stands, Standing.NEAR)
    for some, level in ((~near, confidence), (near, careful(confidence))):
        if some.any():
            low[some], high[some] = interval(some, level)
    values, low, high = shown(estimates), shown(low), shown(high)
    point = low == high
    low, high = np.where(point, np.nextafter(low, -np.inf), low), np.where(point, np.nextafter(high, np.inf), high)
    noisy = np.equal(stands, Standing.MARKED)
    return Cells(tuple(values.tolist()), tuple(low.tolist()), tuple(high.tolist()), tuple(noisy.tolist()))


@dataclass(frozen=True, slots=True)
class Fixed:
    """A public number: the declared number of rows, or a number that follows from it."""

    value: int

    def measurements(self) -> frozenset[int]:
        return frozenset()

    def cells(self, groups: Sequence[Noisy], noise: Noise, confidence: Exact) -> Cells:
        same = (self.value,) * len(groups)
        return Cells(same, same, same, (False,) * len(groups))

    def expected(self, noise: Noise, confidence: Exact, assuming: int | None) -> Exact | None:
        return Exact(0)

    def allowed(self, error: Exact, noise: Noise, confidence: Exact, assuming: int | None) -> Exact | None:
        return None


@dataclass(frozen=True, slots=True)
class Straight:
    """A count or a sum: a linear form of the coordinates."""

    form: Linear
    integer: bool
    whole: bool = True
    """Whether a count is shown as a whole number; not where counts must add up."""
    can_be: Ends = (None, None)
    """What it is cut to."""

    def measurements(self) -> frozenset[int]:
        return self.form.measurements

    def cells(self, groups: Sequence[Noisy], noise: Noise, confidence: Exact) -> Cells:
        """The value, and a half width to both sides; just above the line of `marks`, to a half width below the line.

        Claim: right with probability 1 - a, also given that it is not marked, wherever unmarked answers have
        probability a or more. In the words of `marks.standings`: such an n is h or more. If n < 2h, only x > 3h misses
        it; if 2h <= n < 3h, only x > n + h, and half of all x are unmarked; if n >= 3h, whatever is marked misses it
        too. A sum of either sign can also be unmarked on the wrong side of 0, with probability P(Z <= -3h) at most:
        that takes P(Z <= -3h) / a from it, about a^2/2.
        """
        half = noise.half_width(self.form, confidence)
        usual = half if confidence >= USUAL else marks.usual_error(self.form, noise, confidence)
        numbers, unit = self.form.wholes(groups, also=math.lcm(half.denominator, usual.denominator))
        room, error = int(half * unit), int(usual * unit)
        below = (marks.LINE - 1) * error
        stands = [marks.standing(x if self.integer else abs(x), error) for x in numbers]  # a count is not below 0
        near = [stand is Standing.NEAR for stand in stands]
        low = [below if close and x > 0 else x - room for x, close in zip(numbers, near, strict=True)]
        high = [-below if close and x < 0 else x + room for x, close in zip(numbers, near, strict=True)]
        noisy = tuple(stand is Standing.MARKED for stand in stands)
        if self.integer and self.whole:
            whole = [_wholes(x, a, b, unit) for x, a, b in zip(numbers, low, high, strict=True)]
            values, least, most = zip(*whole, strict=True) if whole else ((), (), ())
            return Cells(values, least, most, noisy).cut(self.can_be)
        return Cells(
            tuple([quotient_nearest(x, unit) for x in numbers]),
            tuple([quotient_down(a, unit) for a in low]),
            tuple([quotient_up(b, unit) for b in high]),
            noisy,
        ).cut(self.can_be)

    def expected(self, noise: Noise, confidence: Exact, assuming: int | None) -> Exact:
        """A bound on its error at this confidence, for all data.

        Claim: a count is rounded to the nearest integer, and the truth is one: |x - n| <= h means that the rounded x is
        at most floor(h + 1/2) away.
        """
        half = noise.error(self.form, confidence)
        return Exact(math.floor(half + Exact(1, 2))) if self.integer and self.whole else half

    def allowed(self, error: Exact, noise: Noise, confidence: Exact, assuming: int | None) -> Exact | None:
        """The factor for all scales at which it has this error."""
        room = (
            math.floor(error) + Exact(499_999, 10**6) if self.integer and self.whole else error
        )  # it is rounded: see `expected`
        return noise.factor(self.form, confidence, room)


def _wholes(x: int, low: int, high: int, unit: int) -> tuple[int, int, int]:
    """The integer nearest to x / unit, and the integers inside of low..high; if there is noise, more than one."""
    value, least, most = (2 * x + unit) // (2 * unit), -(-low // unit), high // unit
    spare = 1 if least >= most and low < high else 0
    return value, min(least, value - spare), max(most, value + spare)


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
    can_be: Ends = (None, None)
    """What it is cut to, beside 0..most."""

    def measurements(self) -> frozenset[int]:
        return self.numerator.measurements | self.denominator.measurements

    def cells(self, groups: Sequence[Noisy], noise: Noise, confidence: Exact) -> Cells:
        places = sorted({(m, c) for m, c, _ in (*self.numerator.terms, *self.denominator.terms)})
        x = np.array([[nearest(noisy[m][c]) for m, c in places] for noisy in groups])
        sides = [self._row(form, places) for form in (self.numerator, self.denominator)]
        scales = np.array([up(noise.scales[m]) for m, _ in places])
        lower, upper = (0.0, nearest(self.most)) if self.most is not None else (-math.inf, math.inf)
        estimates = accuracy.ratio_estimate(x, *sides, lower=lower, upper=upper)

        def interval(some: Bools, level: Exact) -> tuple[Floats, Floats]:
            return accuracy.ratio_interval(
                noise.mechanism, x[some], scales, *sides, lower=lower, upper=upper, confidence=level
            )

        # a quotient with a least number is by a count, or of two numbers that are not negative
        signed = self.most is None and self.can_be[0] is None
        stands = [
            marks.standings(form, groups, noise, confidence, signed=either, line=line)
            for form, either, line in (
                (self._size(), self.most is None, marks.LINE),
                (self.denominator, signed, marks.UNDER),
            )
        ]
        start, unit = nearest(self.lower), nearest(self.unit)
        found = _cells(estimates, np.min(stands, axis=0), interval, confidence, lambda part: start + unit * part)
        found = found.cut(self.can_be)
        if self.most is not None or None in self.can_be:
            return found
        tops, bottoms = ([form.value(noisy) for noisy in groups] for form in (self.numerator, self.denominator))
        return found.without_size(tops, bottoms, self.can_be)

    def _size(self) -> Linear:
        """What of the numerator must be known: of a mean, the sum of the values, or of what they are below 0.

        Where 0 is inside the range it is a value like any other, and values are taken from the lower end instead.
        """
        if self.most is None or self.lower < 0 < self.lower + self.unit * self.most:
            return self.numerator
        return self.numerator.times(self.unit).plus(self.denominator.times(self.lower)).times(_sign(self.lower))

    @staticmethod
    def _row(form: Linear, places: Sequence[tuple[int, int]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        weights = {(m, c): w for m, c, w in form.terms}
        return np.array([nearest(weights.get(place, Exact(0))) for place in places])

    def _noise(self) -> Linear:
        return self.numerator.plus(self.denominator.times(-self.at))

    def expected(self, noise: Noise, confidence: Exact, assuming: int | None) -> Exact | None:
        """The error at an assumed number of rows, or None without one."""
        if assuming is None:
            return None
        half = noise.error(self._noise(), confidence)
        return abs(self.unit) * half / (assuming * self.each)

    def allowed(self, error: Exact, noise: Noise, confidence: Exact, assuming: int | None) -> Exact | None:
        if assuming is None:
            return None
        return noise.factor(self._noise(), confidence, error / abs(self.unit) * assuming * self.each)


def _sign(x: Exact) -> Exact:
    return Exact(-1) if x < 0 else Exact(1)


@dataclass(frozen=True, slots=True)
class Spread:
    """A variance, or its root, from the three coordinates of a `triple`."""

    measurement: int
    width: int
    unit: Exact
    root: bool

    def measurements(self) -> frozenset[int]:
        return frozenset([self.measurement])

    def cells(self, groups: Sequence[Noisy], noise: Noise, confidence: Exact) -> Cells:
        x = np.array([[nearest(c) for c in noisy[self.measurement][:3]] for noisy in groups])
        width, scale = float(self.width), up(noise.scales[self.measurement])

        def interval(some: Bools, level: Exact) -> tuple[Floats, Floats]:
            return accuracy.variance_interval(noise.mechanism, x[some], scale, width, confidence=level)

        def shown(part: Floats) -> Floats:
            variance = nearest(self.unit) ** 2 * part
            return np.sqrt(variance) if self.root else variance

        count = Linear(tuple((self.measurement, i, Exact(1)) for i in range(3)))
        # False and True add up to a standing
        above = (
            ~accuracy.within_noise(noise.mechanism, x, scale, width, times=times, confidence=confidence)
            for times in (marks.LINE, marks.LINE + 1)
        )
        known = marks.standings(count, groups, noise, confidence, signed=False, line=marks.UNDER)
        stands = np.minimum(known, np.sum(list(above), axis=0))
        return _cells(accuracy.variance_estimate(x, width), stands, interval, confidence, shown)

    def expected(self, noise: Noise, confidence: Exact, assuming: int | None) -> Exact | None:
        """At an assumed number of rows; for a root, where the standard deviation is a quarter of the range."""
        if assuming is None:
            return None
        half = noise.error(self._one(), confidence) * self.unit**2 / assuming
        return half * 2 / (self.unit * self.width) if self.root else half

    def allowed(self, error: Exact, noise: Noise, confidence: Exact, assuming: int | None) -> Exact | None:
        if assuming is None:
            return None
        variance = error * self.unit * self.width / 2 if self.root else error
        return noise.factor(self._one(), confidence, variance * assuming / self.unit**2)

    def _one(self) -> Linear:
        """One coordinate alone."""
        return Linear(((self.measurement, 0, Exact(1)),))


@dataclass(frozen=True, slots=True)
class SpreadOfAll:
    """A variance, or its root, from the two coordinates of `moments`: the number of rows n is public.

    Claim: let A = sum W v, B = sum 2 v (W - v), and g = A / (n W^2), the mean in units of W. For any c,
    sum (v/W - c)^2 / n = ((1 - 2c) A - B/2) / (n W^2) + c^2: it is linear in A and B, and at the true mean it is the
    variance in units of W^2. At the noisy g it is g (1 - g) - B / (2 n W^2), and at c larger by (c - g)^2. Let a fifth
    of the probability to err be for the mean to be further than d from g, and the rest for the noise of the linear form
    to be above h, at the largest |1 - 2c| for c in g -+ d. Then the variance is less than h from the form's values for
    these c. It is also at most the largest c (1 - c), and equal to it for W = 1, where B is known to be 0.
    """

    measurement: int
    width: int
    unit: Exact
    rows: int
    root: bool

    def measurements(self) -> frozenset[int]:
        return frozenset([self.measurement])

    def cells(self, groups: Sequence[Noisy], noise: Noise, confidence: Exact) -> Cells:
        means = [self._mean().value(noisy) for noisy in groups]
        inside = [_between(g, Exact(0), Exact(1)) for g in means]
        squares = [self._at(g).value(noisy) for g, noisy in zip(inside, groups, strict=True)]
        estimates = [_between(v, Exact(0), g * (1 - g)) for v, g in zip(squares, inside, strict=True)]
        stands = []
        for v, g in zip(squares, inside, strict=True):
            half = marks.usual_error(self._form(_rounded_up(abs(1 - 2 * g))), noise, confidence)
            unit = math.lcm(v.denominator, half.denominator)
            stands.append(marks.standing(int(v * unit), int(half * unit)))

        def interval(some: Bools, level: Exact) -> tuple[Floats, Floats]:
            ends = [self._interval(means[i], squares[i], noise, level) for i in np.flatnonzero(some)]
            near = [estimates[i] for i in np.flatnonzero(some)]
            low = [down(min(low, v)) for (low, _), v in zip(ends, near, strict=True)]
            high = [up(max(high, v)) for (_, high), v in zip(ends, near, strict=True)]
            return np.array(low), np.array(high)

        def shown(part: Floats) -> Floats:
            variance = nearest((self.unit * self.width) ** 2) * part
            return np.sqrt(variance) if self.root else variance

        return _cells(np.array([nearest(v) for v in estimates]), stands, interval, confidence, shown)

    def _interval(self, mean: Exact, square: Exact, noise: Noise, confidence: Exact) -> tuple[Exact, Exact]:
        """An interval for the variance, in units of W^2; what is outside of the possible counts as at its end."""
        wrong, inside = 1 - confidence, _between(mean, Exact(0), Exact(1))
        d = noise.half_width(self._mean(), 1 - wrong * (1 if self.width == 1 else _FOR_THE_MEAN))
        left, right = max(inside - d, Exact(0)), min(inside + d, Exact(1))
        most = max(c * (1 - c) for c in (left, right, _between(Exact(1, 2), left, right)))
        if self.width == 1:
            return min(c * (1 - c) for c in (left, right)), most
        h = noise.half_width(
            self._form(_rounded_up(max(abs(1 - 2 * left), abs(1 - 2 * right)))), 1 - wrong * (1 - _FOR_THE_MEAN)
        )
        further = max((c - mean) ** 2 for c in (left, right)) - (inside - mean) ** 2
        low, high = (_between(x, Exact(0), most) for x in (square, square + further))
        return max(low - h, Exact(0)), min(high + h, most)

    def expected(self, noise: Noise, confidence: Exact, assuming: int | None) -> Exact:
        """For all data; for a root, where the standard deviation is a quarter of the range."""
        wrong = 1 - confidence
        d = noise.error(self._mean(), 1 - wrong * _FOR_THE_MEAN)
        error = noise.error(self._form(Exact(1)), 1 - wrong * (1 - _FOR_THE_MEAN)) + d**2
        return error * self.unit * self.width * (2 if self.root else self.unit * self.width)

    def allowed(self, error: Exact, noise: Noise, confidence: Exact, assuming: int | None) -> Exact | None:
        """A 16th of the error is for the mean."""
        wrong = 1 - confidence
        share = error / (self.unit * self.width * (2 if self.root else self.unit * self.width))
        root = Exact(math.isqrt(int(share / 16 * 2**64)), 2**32)
        whole = noise.factor(self._form(Exact(1)), 1 - wrong * (1 - _FOR_THE_MEAN), share * 15 / 16)
        mean = noise.factor(self._mean(), 1 - wrong * _FOR_THE_MEAN, root)
        return None if whole is None or mean is None else min(whole, mean)

    def _mean(self) -> Linear:
        """The mean, in units of W."""
        return Linear(((self.measurement, 0, Exact(1, self.rows * self.width**2)),))

    def _at(self, c: Exact) -> Linear:
        """Sum (v/W - c)^2 / n."""
        if self.width == 1:
            return Linear(((self.measurement, 0, (1 - 2 * c) / self.rows),), c * c)
        return replace(self._form(1 - 2 * c), offset=c * c)

    def _form(self, steep: Exact) -> Linear:
        """Its linear part, for steep = 1 - 2c."""
        one = Exact(1, self.rows * self.width**2)
        beside = () if self.width == 1 else ((self.measurement, 1, -one / 2),)
        return Linear(((self.measurement, 0, steep * one), *beside))


def _between(x: Exact, low: Exact, high: Exact) -> Exact:
    """x, or the nearer end."""
    return min(max(x, low), high)


def _rounded_up(weight: Exact) -> Exact:
    """A weight of noise, rounded up to a few digits; never 0."""
    return Exact(math.ceil(weight * 1000) or 1, 1000)


Output: TypeAlias = "Fixed | Straight | Quotient | Spread | SpreadOfAll | RankedCode | Found"
"""Every kind of output."""
