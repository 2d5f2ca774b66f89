"""The staircase mechanism: the least noise for one integer of known sensitivity."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from flint import arb

from privet import accuracy
from privet.errors import DataError, write
from privet.exact import Enclosure, Exact, Number, ball, enclose, nonnegative, show, up
from privet.mechanisms.values import read
from privet.noise.staircase import DiscreteStaircase
from privet.privacy.accounting import PureAccountant
from privet.privacy.events import Stated
from privet.privacy.guarantees import PureDP


@dataclass(frozen=True, slots=True)
class StaircaseProfile:
    """Epsilon -> delta of staircase noise, for values that differ by the sensitivity.

    Claim: all log ratios are -epsilon, 0 or epsilon, so delta(x) = (1 - e^(x - epsilon)) P(S), where S are the integers
    with log ratio epsilon: those up to 0 and, of those between the two values, the ones that are nearer by a step.
    """

    noise: DiscreteStaircase

    def __call__(self, epsilon: Number) -> Enclosure:
        level = nonnegative(epsilon, name="epsilon", example="0.5")
        noise = self.noise
        if level >= noise.epsilon:
            return Enclosure(Fraction(0), Fraction(0))
        # between 0 and the sensitivity d: k < width and d - k >= width
        between = max(0, min(noise.width - 1, noise.sensitivity - noise.width))

        def delta() -> arb:
            top = noise.cdf_ball(0) - noise.cdf_ball(-1)
            return -ball(level - noise.epsilon).expm1() * (noise.cdf_ball(0) + between * top)

        return enclose(delta)


@dataclass(frozen=True, slots=True, init=False)
class Staircase:
    """Release one integer with staircase noise.

    Claim: if neighbouring datasets move the value by at most `sensitivity`, then `release` is epsilon-differentially
    private, and no noise that is has a smaller expected absolute value. For a large epsilon this is far less than
    Laplace noise; for sensitivity 1 it is the same.

    It is for one value. If each of several values moves a little, each can cross a step: staircase noise on a vector
    costs epsilon for every coordinate that moves, so vectors are refused.

    Example:
        >>> mechanism = Staircase(sensitivity=20, epsilon=3)
        >>> isinstance(mechanism.release(1234), int), mechanism.guarantee(), mechanism.error(0.95)
        (True, PureDP(3), 20)
        >>> float(mechanism.noise.mean_size)  # that of Laplace noise is 6.64
        4.671364054987198

    Reference: Geng, Viswanath, "The optimal mechanism in differential privacy", ISIT 2014.
    """

    sensitivity: int
    epsilon: Exact
    noise: DiscreteStaircase = field(compare=False)

    def __init__(self, *, sensitivity: int, epsilon: Number) -> None:
        noise = DiscreteStaircase(sensitivity=sensitivity, epsilon=epsilon)
        for name, value in zip(self.__slots__, (noise.sensitivity, noise.epsilon, noise), strict=True):
            object.__setattr__(self, name, value)
        self.event()  # refuses what a ledger could not store, before any data are read

    @property
    def step(self) -> Exact:
        """The lattice of the answer: integers."""
        return Exact(1)

    def __repr__(self) -> str:
        return f"Staircase(sensitivity={self.sensitivity}, epsilon={show(self.epsilon)})"

    def event(self) -> Stated:
        """The event of a release, for accountants."""
        return Stated(epsilon=self.epsilon, delta=0)

    def guarantee(self) -> PureDP:
        """The guarantee of one release."""
        return PureAccountant().account(self.event())

    def privacy_profile(self) -> StaircaseProfile:
        """Epsilon -> delta, for neighbours that differ as much as possible."""
        return StaircaseProfile(self.noise)

    def error(self, confidence: Number = 0.95) -> int:
        """The error bound that holds with this confidence."""
        return int(accuracy.error(self.noise, confidence))

    def tail(self, t: Number) -> float:
        """P(|A - f| >= t), rounded up."""
        return min(1.0, up(self.noise.tail(t).upper))

    def interval(self, value: int, confidence: Number = 0.95) -> tuple[int, int]:
        """The interval around a released value that contains the true one with this confidence."""
        half = self.error(confidence)
        return _integer(value) - half, _integer(value) + half

    def fit(self, value: int) -> Staircase:
        """The mechanism for a value of this type: itself, for one integer."""
        _integer(value)
        return self

    def release(self, value: int) -> int:
        """The value plus noise."""
        return _integer(value) + self.noise.sample()


def _integer(value: Any) -> int:
    content = read(value)
    if not content.scalar or content.real:
        raise DataError("staircase noise is for one integer", remedy=write("release(1234)"))
    return int(content.content)
