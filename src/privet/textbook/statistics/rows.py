"""Rows as integers: check the parameters, clamp the data, evaluate the statistic exactly and release it."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from privet.errors import DataError, InternalError, NumberError, write
from privet.exact import Exact, Number, exact, literal, nearest, positive, show
from privet.exact.lattice import Bounds
from privet.mechanisms import Laplace
from privet.privacy.adjacency import Adjacency
from privet.textbook import sensitivity
from privet.textbook.statistics.estimate import Estimate


class Rows:
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
                f"missing must be within the bounds, not {show(default)}",
                remedy=write(f"missing={literal(bounds.lower)}", exact=True),
            )
        if bounds.stepped and (default - bounds.lower) % bounds.step:
            raise NumberError(
                f"a missing value would count as {show(default)}, which is not a multiple of the step "
                f"{show(bounds.step)} from the lower bound. (Whether a value is missing is private, so this is checked "
                "before data are read.)",
                remedy=write(f"missing={literal(bounds.lower)}"),
            )
        self.rounding = bounds.rounding
        self.codes: list[int] = bounds.encode(data, missing=bounds.code(default)).tolist()
        self.n = len(self.codes)
        if self.n == 0:
            raise DataError("a statistic needs at least one row, but there is none. (The number of rows is public.)")

    def pairs(self, ddof: int) -> int:
        """The number n (n - ddof), by which `squares` is divided to give a variance."""
        if self.n < 2:
            raise DataError("a variance or std needs at least two rows. (The number of rows is public.)")
        return self.n * (self.n - ddof)

    def squares(self) -> int:
        """The sum of squares times n, less the square of the sum: n^2 times the variance of the codes."""
        total = sum(self.codes)
        return self.n * sum(code * code for code in self.codes) - total * total

    def largest_variance(self, ddof: int) -> Exact:
        """Half of the rows at one bound, half at the other."""
        return Fraction(self.n * self.n // 4, self.pairs(ddof)) * (self.upper - self.lower) ** 2

    def order_statistic(self, name: str, level: Exact, interpolation: sensitivity.Interpolation) -> Estimate:
        most = sensitivity.quantile(
            level, lower=0, upper=self.width, adjacency=Adjacency.REPLACE, n=self.n, interpolation=interpolation
        )
        if interpolation == "linear":
            position = (self.n - 1) * level
        else:
            position = Fraction(max(1, math.ceil(level * self.n)) - 1)
        below, share = int(position // 1), position % 1
        ordered = sorted(self.codes)
        low, high = ordered[below], ordered[min(below + 1, self.n - 1)]
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
        value: int,
        *,
        moved: Exact,
        unit: Exact,
        offset: Exact,
        rounding: Exact,
        limits: tuple[Exact, Exact],
    ) -> Estimate:
        """Release offset + unit * value, where one row moves the integer `value` by at most `moved`."""
        mechanism = Laplace(sensitivity=moved, epsilon=self.epsilon)
        if mechanism.dimension is not None:
            raise InternalError(f"the sensitivity of {name} is not an integer. This is probably a bug in Privet")
        answer = offset + unit * mechanism.release(value)
        return Estimate(
            statistic=name,
            value=nearest(min(max(answer, limits[0]), limits[1])),
            n=self.n,
            sensitivity=moved * unit,
            _answer=answer,
            _mechanism=mechanism,
            _unit=unit,
            _rounding=rounding,
            _range=limits,
        )
