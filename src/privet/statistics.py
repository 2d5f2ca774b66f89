"""The textbook statistics, end to end: clamp, evaluate exactly in integers, add Laplace noise, state the error.

What is protected is the data of one row (**replace**); the number of rows n is public. Every function takes
`data` (a list, a numpy array, or an Arrow, pandas or polars column), public bounds and an epsilon, and returns an
`Estimate`. Values outside the bounds are clamped, missing ones count as `missing` (the middle of the bounds if not
given): so no row is ever dropped, and nothing but the noisy answer depends on the data.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from privet import accuracy, events, sensitivity
from privet.accounting import PureAccountant
from privet.distances import Adjacency
from privet.errors import DataError, InternalError, NumberError
from privet.exact import Exact, Number, down, exact, nearest, positive, show, show_up, sqrt_up, up
from privet.guarantees import PureDP
from privet.lattice import Bounds
from privet.mechanisms import Laplace

_REPLACE = Adjacency.REPLACE


@dataclass(frozen=True, slots=True, repr=False)
class Estimate:
    """A private statistic with its error.

    Claim: epsilon-differentially private for replacing one row. `interval(confidence)` holds the exact statistic of
    the clamped data with at least that probability, whatever the data. (If a `step` was given: of the data on it.)
    """

    statistic: str
    value: float
    """The noisy answer, moved into the range that the statistic can have (which is public)."""
    n: int
    sensitivity: Exact
    """How far one row can move the statistic, in its own units."""
    _answer: Exact
    _mechanism: Laplace
    _unit: Exact
    _rounding: Exact
    _range: tuple[Exact, Exact]

    @property
    def epsilon(self) -> Exact:
        """What it cost."""
        return self._mechanism.epsilon

    @property
    def scale(self) -> Exact:
        """The scale of the noise in units of the statistic: sensitivity / epsilon."""
        return self._mechanism.noise.scale * self._unit

    def event(self) -> events.Laplace:
        """What was done, as accountants see it."""
        return self._mechanism.event()

    def guarantee(self) -> PureDP:
        """What was promised, recomputed from the event."""
        return PureAccountant().account(self.event())

    def meaning(self) -> str:
        """What that means for one person, whose data could be replaced by any other."""
        return self.guarantee().meaning(_REPLACE)

    def error(self, confidence: Number = 0.95) -> float:
        """The error that the noise keeps to with this confidence, what rounding to steps adds included."""
        return up(self._error(confidence))

    def interval(self, confidence: Number = 0.95) -> tuple[float, float]:
        """An interval for the statistic of the clamped data, within the range that it can have."""
        low, high = self._interval(confidence)
        return down(low), up(high)

    def _error(self, confidence: Number) -> Exact:
        return accuracy.error(self._mechanism.noise, confidence, step=self._unit) + self._rounding

    def _interval(self, confidence: Number) -> tuple[Exact, Exact]:
        half, (low, high) = self._error(confidence), self._range
        ends = self._answer - half, self._answer + half
        return builtins.min(builtins.max(ends[0], low), high), builtins.min(builtins.max(ends[1], low), high)

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits)

    def __repr__(self) -> str:
        return f"Estimate({self})"

    def __str__(self) -> str:
        low, high = self._interval(Fraction(95, 100))
        return (
            f"{self.statistic} {_shown(exact(self.value), round)}, 95 % interval {_shown(low, math.floor)} to "
            f"{_shown(high, math.ceil)} (epsilon {show_up(self.epsilon)}, n {self.n})"
        )


def _shown(number: Exact, rounding: Callable[[Exact], int]) -> str:
    """Two decimals, or for small numbers more; rounded as asked."""
    size = abs(number)
    digits = 2 if size >= 100 or not size else 5 - math.floor(math.log10(nearest(size)) if nearest(size) else -300)
    shown = nearest(Fraction(rounding(number * 10**digits)) / 10**digits)
    return f"{shown:,.2f}" if size >= 100 else f"{shown:.6g}"


def sum(  # noqa: A001
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The sum. Sensitivity: upper - lower.

    Example:
        >>> sum([1, 2, 3, 4], lower=0, upper=10, epsilon=1).sensitivity
        Fraction(10, 1)
    """
    table = _Table(data, lower, upper, epsilon, missing, step)
    return table.estimate(
        "sum",
        builtins.sum(table.codes),
        moved=sensitivity.sum(lower=0, upper=table.width, adjacency=_REPLACE, n=table.n),
        unit=table.step,
        offset=table.n * table.lower,
        rounding=table.n * table.rounding,
        limits=(table.n * table.lower, table.n * table.upper),
    )


def mean(
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The mean. Sensitivity: (upper - lower)/n, so the noise has scale (upper - lower)/(n epsilon).

    Example:
        >>> pay = mean([52_000, 61_000, 58_000], lower=0, upper=200_000, epsilon=0.5)
        >>> pay.sensitivity, pay.scale
        (Fraction(200000, 3), Fraction(400000, 3))
    """
    table = _Table(data, lower, upper, epsilon, missing, step)
    return table.estimate(
        "mean",
        builtins.sum(table.codes),
        moved=sensitivity.mean(lower=0, upper=table.width, adjacency=_REPLACE, n=table.n) * table.n,
        unit=table.step / table.n,
        offset=table.lower,
        rounding=table.rounding,
        limits=(table.lower, table.upper),
    )


def variance(
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    ddof: Literal[0, 1] = 0,
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The variance, of the population (ddof=0) or of a sample (ddof=1). Sensitivity: (U-L)^2 (n-1)/n^2, or (U-L)^2/n.

    Example:
        >>> variance([0, 1, 1, 0], lower=0, upper=1, epsilon=1).sensitivity
        Fraction(3, 16)
    """
    sensitivity.variance(lower=lower, upper=upper, adjacency=_REPLACE, ddof=ddof)  # refuses before data are read
    less: Literal[0, 1] = 1 if exact(ddof) else 0
    table = _Table(data, lower, upper, epsilon, missing, step)
    pairs = table.pairs(less)
    most = sensitivity.variance(lower=0, upper=table.width, adjacency=_REPLACE, ddof=less, n=table.n)
    return table.estimate(
        "variance",
        table.squares(),
        moved=most * pairs,
        unit=table.step**2 / pairs,
        offset=Fraction(0),
        rounding=table.rounding * (table.upper - table.lower) * table.n / (table.n - less),
        limits=(Fraction(0), table.largest_variance(less)),
    )


def std(
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    ddof: Literal[0, 1] = 0,
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The standard deviation, of the population (ddof=0) or of a sample (ddof=1).

    Sensitivity: (U-L) sqrt(n-1)/n, or (U-L)/sqrt(n). The square root is taken in integers, rounded down to a small
    part of a step; that rounding counts in the sensitivity.

    Example:
        >>> round(float(std([0, 1, 1, 0], lower=0, upper=1, epsilon=1).sensitivity), 6)
        0.433013
    """
    sensitivity.variance(lower=lower, upper=upper, adjacency=_REPLACE, ddof=ddof)  # refuses before data are read
    less: Literal[0, 1] = 1 if exact(ddof) else 0
    table = _Table(data, lower, upper, epsilon, missing, step)
    pairs = table.pairs(less)
    fine = builtins.max(0, 24 + table.n.bit_length() // 2 - table.width.bit_length())
    most = sensitivity.std(lower=0, upper=table.width, adjacency=_REPLACE, ddof=less, n=table.n)
    unit = table.step / 2**fine
    return table.estimate(
        "std",
        math.isqrt((table.squares() << 2 * fine) // pairs),
        moved=Fraction(math.ceil(most * 2**fine)),
        unit=unit,
        offset=Fraction(0),
        rounding=table.rounding * Fraction(table.n, table.n - less) + unit,
        limits=(Fraction(0), sqrt_up(table.largest_variance(less))),
    )


def quantile(
    data: Any,
    q: Number,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    interpolation: sensitivity.Interpolation = "linear",
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The q-quantile: "linear" between order statistics (numpy's), or "lower", the order statistic ceil(q n).

    Sensitivity: (upper - lower) max(f, 1 - f), with f the fractional part of (n - 1) q; upper - lower for "lower".
    It does not shrink with n: one row can carry a quantile across the whole range. The interval says so.

    Example:
        >>> quantile([1, 2, 3, 4], 0.5, lower=0, upper=10, epsilon=1).sensitivity
        Fraction(5, 1)
    """
    sensitivity.quantile(q, lower=lower, upper=upper, adjacency=_REPLACE, interpolation=interpolation)  # may refuse
    table = _Table(data, lower, upper, epsilon, missing, step)
    return table.order_statistic("quantile", exact(q), interpolation)


def median(
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    interpolation: sensitivity.Interpolation = "linear",
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The median: the middle value, or at even n the middle of the two ("linear") or the lower one ("lower").

    Sensitivity: upper - lower, half of that for the middle of the two.

    Example:
        >>> median([1, 2, 3], lower=0, upper=10, epsilon=1).sensitivity
        Fraction(10, 1)
    """
    sensitivity.median(lower=lower, upper=upper, adjacency=_REPLACE, interpolation=interpolation)  # may refuse
    table = _Table(data, lower, upper, epsilon, missing, step)
    return table.order_statistic("median", Fraction(1, 2), interpolation)


def max(  # noqa: A001
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The largest value. Sensitivity: upper - lower.

    Example:
        >>> max([1, 2, 3], lower=0, upper=10, epsilon=1).sensitivity
        Fraction(10, 1)
    """
    table = _Table(data, lower, upper, epsilon, missing, step)
    return table.order_statistic("max", Fraction(1), "linear")


def min(  # noqa: A001
    data: Any,
    *,
    lower: Number,
    upper: Number,
    epsilon: Number,
    missing: Number | None = None,
    step: Number | None = None,
) -> Estimate:
    """The smallest value. Sensitivity: upper - lower.

    Example:
        >>> min([1, 2, 3], lower=0, upper=10, epsilon=1).sensitivity
        Fraction(10, 1)
    """
    table = _Table(data, lower, upper, epsilon, missing, step)
    return table.order_statistic("min", Fraction(0), "linear")


class _Table:
    """The parameters, checked before any data is read, and the data as integers in 0..width."""

    def __init__(
        self, data: Any, lower: Number, upper: Number, epsilon: Number, missing: Number | None, step: Number | None
    ) -> None:
        self.epsilon = positive(epsilon, name="epsilon", example="epsilon=0.5")
        bounds = Bounds(lower, upper, step=step)
        self.lower, self.upper, self.step, self.width = bounds.lower, bounds.upper, bounds.step, bounds.width
        default = (
            (bounds.lower + bounds.upper) / 2
            if missing is None
            else exact(missing, name="missing", example="missing=0")
        )
        if not bounds.lower <= default <= bounds.upper:
            raise NumberError(
                f"missing ({show(default)}) must be within the bounds. Write: missing={show(bounds.lower)}"
            )
        if bounds.stepped and (default - bounds.lower) % bounds.step:
            raise NumberError(
                f"a missing value would count as {show(default)}, which is not on the steps of {show(bounds.step)}. "
                f"Write, for example: missing={show(bounds.lower)}"
            )
        self.rounding = bounds.rounding
        self.codes: list[int] = bounds.encode(data, missing=bounds.code(default)).tolist()
        self.n = len(self.codes)
        if self.n == 0:
            raise DataError("there are no rows, and a statistic of no rows does not exist. (n is public here.)")

    def pairs(self, ddof: int) -> int:
        """The number n (n - ddof), by which `squares` is divided to give a variance."""
        if self.n < 2:
            raise DataError("a variance or std needs two rows or more. (n is public here.)")
        return self.n * (self.n - ddof)

    def squares(self) -> int:
        """The sum of squares times n, less the square of the sum: n^2 times the variance of the codes."""
        total = builtins.sum(self.codes)
        return self.n * builtins.sum(code * code for code in self.codes) - total * total

    def largest_variance(self, ddof: int) -> Exact:
        """Half of the rows at one bound, half at the other."""
        return Fraction(self.n * self.n // 4, self.pairs(ddof)) * (self.upper - self.lower) ** 2

    def order_statistic(self, name: str, level: Exact, interpolation: sensitivity.Interpolation) -> Estimate:
        most = sensitivity.quantile(
            level, lower=0, upper=self.width, adjacency=_REPLACE, n=self.n, interpolation=interpolation
        )
        if interpolation == "linear":
            place = (self.n - 1) * level
        else:
            place = Fraction(builtins.max(1, math.ceil(level * self.n)) - 1)
        below, share = int(place // 1), place % 1
        ordered = sorted(self.codes)
        low, high = ordered[below], ordered[builtins.min(below + 1, self.n - 1)]
        parts = share.denominator
        return self.estimate(
            name,
            (parts - share.numerator) * low + share.numerator * high,
            moved=most * parts,
            unit=self.step / parts,
            offset=self.lower,
            rounding=self.rounding,
            limits=(self.lower, self.upper),
        )

    def estimate(
        self,
        name: str,
        exactly: int,
        *,
        moved: Exact,
        unit: Exact,
        offset: Exact,
        rounding: Exact,
        limits: tuple[Exact, Exact],
    ) -> Estimate:
        """Release offset + unit * exactly, an integer that one row moves by at most `moved`."""
        mechanism = Laplace(sensitivity=moved, epsilon=self.epsilon)
        if mechanism.dimension is not None:
            raise InternalError(f"the sensitivity of {name} is not an integer; this is probably a bug in Privet")
        answer = offset + unit * mechanism.release(exactly)
        return Estimate(
            statistic=name,
            value=nearest(builtins.min(builtins.max(answer, limits[0]), limits[1])),
            n=self.n,
            sensitivity=moved * unit,
            _answer=answer,
            _mechanism=mechanism,
            _unit=unit,
            _rounding=rounding,
            _range=limits,
        )
