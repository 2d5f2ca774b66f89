"""A private statistic with its error."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from fractions import Fraction

from privet import accuracy
from privet.exact import Exact, Number, down, exact, show, show_up, up
from privet.mechanisms import Laplace
from privet.privacy import events
from privet.privacy.accounting import PureAccountant
from privet.privacy.adjacency import Adjacency
from privet.privacy.guarantees import PureDP


class PrivateNumber:
    """A private number: it can be used as a float, and knows its guarantee."""

    __slots__ = ()
    value: float

    @abstractmethod
    def event(self) -> events.LaplaceNoise | events.BoundedRange:
        """The event, for accountants."""

    def guarantee(self) -> PureDP:
        """The guarantee, recomputed from the event."""
        return PureAccountant().account(self.event())

    def meaning(self) -> str:
        """What the guarantee means for one person, whose data could be replaced."""
        return self.guarantee().meaning(Adjacency.REPLACE)

    def __float__(self) -> float:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"


@dataclass(frozen=True, slots=True, repr=False)
class Estimate(PrivateNumber):
    """A private statistic with its error.

    Claim: epsilon-differentially private for replacing one row. `interval(confidence)` contains the exact statistic of
    the clamped data with at least that probability, for any data. (With a `step`: of the data rounded to it.)
    """

    statistic: str
    value: float
    """The noisy answer, clamped to the public range of the statistic."""
    n: int
    sensitivity: Exact
    """How far one row can move the statistic, in units of the statistic."""
    _answer: Exact
    _mechanism: Laplace
    _unit: Exact
    _rounding: Exact
    _range: tuple[Exact, Exact]

    @property
    def epsilon(self) -> Exact:
        """The cost."""
        return self._mechanism.epsilon

    @property
    def scale(self) -> Exact:
        """The scale of the noise in units of the statistic: sensitivity / epsilon."""
        return self._mechanism.noise.scale * self._unit

    def event(self) -> events.LaplaceNoise:
        """The event, for accountants."""
        return self._mechanism.event()

    def error(self, confidence: Number = 0.95) -> float:
        """The error bound that holds with this confidence, including the effect of rounding to steps."""
        return up(self._error(confidence))

    def interval(self, confidence: Number = 0.95) -> tuple[float, float]:
        """An interval for the statistic of the clamped data, within its public range."""
        low, high = self._interval(confidence)
        return down(low), up(high)

    def _error(self, confidence: Number) -> Exact:
        return accuracy.error(self._mechanism.noise, confidence, step=self._unit) + self._rounding

    def _interval(self, confidence: Number) -> tuple[Exact, Exact]:
        half, (low, high) = self._error(confidence), self._range
        ends = self._answer - half, self._answer + half
        if ends[1] <= low or ends[0] >= high:  # the noise exceeds the range, so only the range is known
            return low, high
        return max(ends[0], low), min(ends[1], high)

    def __str__(self) -> str:
        low, high = self._interval(Fraction(95, 100))
        return (
            f"{self.statistic} {_shown(exact(self.value))}, 95 % interval {_shown(low, ROUND_FLOOR)} to "
            f"{_shown(high, ROUND_CEILING)} (epsilon {show_up(self.epsilon)}, n {self.n})"
        )


def _shown(number: Exact, rounding: str = ROUND_HALF_EVEN) -> str:
    """Six digits, or two decimals if that is more."""
    if not 10**4 <= abs(number) < 10**15:
        return show(number, 6, rounding=rounding)
    digits = len(str(math.floor(abs(number)))) + 2
    return f"{Decimal(show(number, digits, rounding=rounding)):,.2f}"
