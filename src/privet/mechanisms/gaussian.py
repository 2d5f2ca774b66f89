"""Gaussian noise on integers for any L2 move, used by tables and by the bare `Gaussian`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from privet.accuracy.gaussian import GaussianSums
from privet.errors import InternalError
from privet.exact import Exact, show, sqrt_up
from privet.exact.lattice import Integers
from privet.noise import DiscreteGaussian
from privet.privacy.events import Composed, GaussianNoise, PrivacyEvent
from privet.privacy.gaussian import gaussian_delta, largest_rho, smallest_sigma_squared, stated, together
from privet.privacy.guarantees import ApproxDP, Guarantee, ZeroConcentratedDP
from privet.privacy.moves import L2Move, Move, Norm


@dataclass(frozen=True, slots=True)
class GaussianMechanism(GaussianSums):
    """Discrete Gaussian noise, whose scale is sigma^2, for a vector that moves by at most `move` in L2.

    Claim: rho-zero-concentrated differentially private with rho = move^2 / (2 sigma^2), exactly; for a price in
    (epsilon, delta), sigma^2 is the smallest for which `gaussian_delta` is at most delta, to 12 digits, rounded up.
    In this contract "scale" is sigma^2, because sigma itself may be irrational.

    Example:
        >>> GAUSSIAN.calibrate(L2Move(4), ZeroConcentratedDP("1/50"), coordinates=3)
        Fraction(100, 1)
        >>> GAUSSIAN.cost(L2Move(4), scale=Exact(100), coordinates=3, like=ZeroConcentratedDP(1))
        ZeroConcentratedDP(0.02)
        >>> float(GAUSSIAN.calibrate(L2Move(1), ApproxDP(1, 1e-6), coordinates=1))
        17.899...

    Reference: Canonne, Kamath, Steinke (2020), the discrete Gaussian for differential privacy.
    """

    name: ClassVar[str] = "gaussian/1"
    label: ClassVar[str] = "Discrete Gaussian noise"
    norm: ClassVar[Norm] = "L2"
    prices: ClassVar[tuple[type[Guarantee], ...]] = (ZeroConcentratedDP, ApproxDP)

    def additive(self, price: Guarantee) -> ZeroConcentratedDP:
        if isinstance(price, ZeroConcentratedDP):
            return price
        if isinstance(price, ApproxDP):
            return ZeroConcentratedDP.derived(largest_rho(epsilon=price.epsilon, delta=price.delta))
        raise _wrong_price()

    def calibrate(self, move: Move, price: Guarantee, *, coordinates: int) -> Exact:
        moved = _in_l2(move)
        if isinstance(price, ZeroConcentratedDP):
            return moved.squared / (2 * price.rho)
        if isinstance(price, ApproxDP):
            return smallest_sigma_squared(moved, coordinates, epsilon=price.epsilon, delta=price.delta)
        raise _wrong_price()

    def cost(self, move: Move, *, scale: Exact, coordinates: int, like: Guarantee) -> ZeroConcentratedDP | ApproxDP:
        moved = _in_l2(move)
        if isinstance(like, ZeroConcentratedDP):
            return ZeroConcentratedDP.derived(moved.squared / (2 * scale))
        if isinstance(like, ApproxDP):
            return ApproxDP.capped(like.epsilon, gaussian_delta(moved, scale, coordinates, like.epsilon))
        raise _wrong_price()

    def event(
        self, move: Move, *, scale: Exact, coordinates: int | None = None, price: Guarantee | None = None
    ) -> GaussianNoise:
        level = price.epsilon if isinstance(price, ApproxDP) else None
        if level is not None and coordinates is None:  # the delta of one number would be too small for a vector
            raise InternalError("the number of coordinates is missing. This is a bug in Privet")
        return GaussianNoise(move=_in_l2(move), sigma_squared=scale, coordinates=coordinates or 1, epsilon=level)

    def together(self, noises: Sequence[PrivacyEvent], *, epsilon: Exact | None) -> PrivacyEvent:
        if epsilon is None or not noises:
            return Composed(noises)
        return Composed([together([_gaussian(noise) for noise in noises], epsilon=epsilon)])

    def stated(self, noises: Sequence[PrivacyEvent], *, delta: Exact) -> Exact | None:
        return stated([_gaussian(noise) for noise in noises], delta=delta).epsilon

    def distribution(self, scale: Exact) -> DiscreteGaussian:
        """The noise of one coordinate."""
        return DiscreteGaussian(scale)

    def draw(
        self, move: Move, *, scale: Exact, count: int, price: Guarantee | None = None
    ) -> tuple[Integers, GaussianNoise]:
        noise = self.distribution(scale)
        return noise.sample(count), self.event(move, scale=noise.sigma_squared, coordinates=max(1, count), price=price)

    def serves(self, stored: PrivacyEvent, asked: PrivacyEvent) -> bool:
        return (
            isinstance(stored, GaussianNoise)
            and isinstance(asked, GaussianNoise)
            and stored.move == asked.move
            and stored.coordinates == asked.coordinates
            and stored.sigma_squared <= asked.sigma_squared
        )

    def show(self, *, scale: Exact) -> str:
        return f"sigma^2 = {show(scale)} (sigma = {show(sqrt_up(scale))})"


def _in_l2(move: Move) -> L2Move:
    if isinstance(move, L2Move):
        return move
    raise InternalError("Gaussian noise hides moves in L2. This is a bug in Privet")


def _gaussian(noise: PrivacyEvent) -> GaussianNoise:
    if isinstance(noise, GaussianNoise):
        return noise
    raise InternalError("only Gaussian noise can be stated together. This is a bug in Privet")


def _wrong_price() -> InternalError:
    return InternalError("the price of Gaussian noise is rho, or epsilon and delta. This is a bug in Privet")


GAUSSIAN = GaussianMechanism()
"""The only instance, because it has no parameters."""
