"""The bare mechanisms that add noise to any value of known sensitivity, without tables or a ledger."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self, cast

from privet.errors import NumberError, UserError, write
from privet.exact import Exact, Number, nonnegative, positive, show, sqrt_up, up
from privet.mechanisms.additive import Additive, lattice
from privet.mechanisms.gaussian import GAUSSIAN
from privet.mechanisms.laplace import LAPLACE
from privet.noise import DiscreteGaussian, DiscreteLaplace
from privet.privacy import events
from privet.privacy.accounting import PureAccountant
from privet.privacy.divergences import PrivacyProfile
from privet.privacy.guarantees import ApproxDP, PureDP, ZeroConcentratedDP
from privet.privacy.moves import L1Move, L2Move

_EXAMPLE = "Laplace(sensitivity=1, epsilon=0.5)"
_GAUSSIAN_EXAMPLE = "Gaussian(sensitivity=1, rho=0.1)"


@dataclass(frozen=True, slots=True)
class Laplace(Additive):
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
        >>> mechanism.tail(6) <= 2 * math.exp(-3), float(mechanism.privacy_profile()(0)), mechanism.fit([0.5, 1.5])
        (True, 0.24491866240370913, Laplace(sensitivity=1, epsilon=0.5, step=2.98023e-8, dimension=2))

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
        size, coordinates = lattice(most, step, dimension)
        steps = math.ceil(most / size) + (coordinates or 1) - 1
        noise = LAPLACE.distribution(LAPLACE.scale(L1Move(steps), epsilon=loss))
        for name, value in zip(
            self.__slots__, (most, loss, size, coordinates, steps, noise, step is not None), strict=True
        ):
            object.__setattr__(self, name, value)
        self.event()  # refuses what a ledger could not store, before any data are read

    def __repr__(self) -> str:
        return f"Laplace(sensitivity={show(self.sensitivity)}, epsilon={show(self.epsilon)}{self._lattice_text()})"

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

    def _for_reals(self, length: int) -> Self:
        return cast("Self", _laplace(self, length))


@lru_cache(maxsize=64)
def _laplace(mechanism: Laplace, dimension: int) -> Laplace:
    return Laplace(sensitivity=mechanism.sensitivity, epsilon=mechanism.epsilon, dimension=dimension)


@dataclass(frozen=True, slots=True)
class Gaussian(Additive):
    """Release a value of known sensitivity with Gaussian (normal) noise.

    Claim: if neighbouring datasets move the value by at most `sensitivity` (in L2, for a vector), then `release` is
    rho-zero-concentrated differentially private with noise of sigma^2 = sensitivity^2 / (2 rho), or
    (epsilon, delta)-differentially private with the smallest sigma of discrete noise (to 12 digits, rounded up). All
    noise is discrete and exact. Give `rho`, or `sigma`, or `epsilon` and `delta`.

    For (epsilon, delta) a single number needs less noise than a vector, whose bound goes by way of rho. A vector of
    integers with sensitivity 1 is the exception: only one of them moves.

    Integers get integer noise. Real numbers are rounded to a lattice whose step is a power of two, which can bring
    values D apart to ceil(D / step) steps apart, and vectors of d coordinates to D / step + sqrt(d). The noise is
    scaled for that, so sigma is larger by at most one part in 2^23 unless you choose a coarser `step`.

    `fit(value)` is the mechanism that `release(value)` uses; `error`, `tail` and `sigma` depend on its type and, for
    (epsilon, delta), on whether it is a vector. What it can't check is the same as for `Laplace`.

    Example:
        >>> mechanism = Gaussian(sensitivity=1, rho=0.02)
        >>> isinstance(mechanism.release(1234), int), isinstance(mechanism.release(12.5), float)
        (True, True)
        >>> mechanism.sigma, mechanism.guarantee(), mechanism.error(0.95), mechanism.interval(1234, 0.95)
        (5.0, ZeroConcentratedDP(0.02), 10, (1224, 1244))
        >>> exactly = Gaussian(sensitivity=1, epsilon=1, delta=1e-6)
        >>> exactly.sigma, exactly.fit([1.5, 2.5]).sigma, float(exactly.privacy_profile()(1))
        (4.230..., 4.53..., 9.99...e-07)

    Reference: Canonne, Kamath, Steinke (2020), the discrete Gaussian for differential privacy.
    """

    sensitivity: Exact
    price: ZeroConcentratedDP | ApproxDP
    """What one release costs."""
    step: Exact
    dimension: int | None
    """The number of coordinates that are rounded to the lattice; None for integers, which lie on it."""
    coordinates: int
    """The number of coordinates."""
    move: L2Move = field(compare=False)
    """The sensitivity in lattice steps, including the effect of rounding."""
    steps: int = field(compare=False)
    """How far one coordinate can move, in lattice steps."""
    noise: DiscreteGaussian = field(compare=False)
    """The noise of each coordinate, in lattice steps."""
    _chosen: bool
    """Whether the caller chose the step, which then does not change."""

    def __init__(
        self,
        *,
        sensitivity: Number,
        sigma: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        step: Number | None = None,
        dimension: int | None = None,
    ) -> None:
        most = positive(sensitivity, name="sensitivity", example=_GAUSSIAN_EXAMPLE)
        price = _price(most, sigma, rho, epsilon, delta)
        size, coordinates = lattice(most, step, dimension)
        self._make(most, price, size, coordinates, coordinates or 1, step is not None)

    def _make(
        self,
        sensitivity: Exact,
        price: ZeroConcentratedDP | ApproxDP,
        step: Exact,
        dimension: int | None,
        coordinates: int,
        chosen: bool,
    ) -> None:
        move = L2Move(_squared_steps(sensitivity / step, dimension))
        steps = math.isqrt(move.squared)
        noise = GAUSSIAN.distribution(GAUSSIAN.calibrate(move, price, coordinates=coordinates))
        values = (sensitivity, price, step, dimension, coordinates, move, steps, noise, chosen)
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)
        self.event()  # refuses what a ledger could not store, before any data are read

    def __repr__(self) -> str:
        if isinstance(self.price, ApproxDP):
            price = f"epsilon={show(self.price.epsilon)}, delta={show(self.price.delta)}"
        else:
            price = f"rho={show(self.price.rho)}"
        return f"Gaussian(sensitivity={show(self.sensitivity)}, {price}{self._lattice_text()})"

    # --- the noise and what it costs ------------------------------------------------------------

    @property
    def sigma(self) -> float:
        """The parameter sigma of the noise, in units of the value, rounded up; see `sigma_squared`."""
        return up(sqrt_up(self.sigma_squared, 160))

    @property
    def sigma_squared(self) -> Exact:
        """sigma^2, exactly, in squared units of the value: sensitivity^2 / (2 rho), never less."""
        return self.noise.sigma_squared * self.step**2

    def event(self) -> events.GaussianNoise:
        """The event of a release, for accountants."""
        return GAUSSIAN.event(self.move, scale=self.noise.sigma_squared, coordinates=self.coordinates, price=self.price)

    def guarantee(self) -> ZeroConcentratedDP | ApproxDP:
        """The guarantee of one release: rho, or the epsilon and delta that were asked for."""
        return self.price

    def privacy_profile(self) -> PrivacyProfile:
        """Epsilon -> delta, for one number; refused for vectors, where moves in several coordinates need more delta."""
        if self.coordinates > 1 and self.move.squared > 1:
            raise UserError(
                "the privacy profile is for one number: a vector that moves in several coordinates needs more delta",
                remedy=write("Gaussian(sensitivity=2, epsilon=1, delta=1e-6).guarantee()"),
            )
        return Additive.privacy_profile(self)  # a class with slots has no plain super()

    def _for_integers(self, length: int) -> Self:
        return self if length == self.coordinates else cast("Self", _gaussian(self, length, None))

    def _for_reals(self, length: int) -> Self:
        return cast("Self", _gaussian(self, length, length))


@lru_cache(maxsize=64)
def _gaussian(mechanism: Gaussian, length: int, dimension: int | None) -> Gaussian:
    made = object.__new__(Gaussian)
    step = mechanism.step if dimension is None else lattice(mechanism.sensitivity, None, dimension)[0]
    made._make(mechanism.sensitivity, mechanism.price, step, dimension, length, mechanism._chosen)
    return made


def _price(
    sensitivity: Exact, sigma: Number | None, rho: Number | None, epsilon: Number | None, delta: Number | None
) -> ZeroConcentratedDP | ApproxDP:
    both = epsilon is not None or delta is not None
    if (sigma is not None) + (rho is not None) + both != 1 or (both and (epsilon is None or delta is None)):
        raise NumberError("pass rho, or sigma, or epsilon and delta", remedy=write(_GAUSSIAN_EXAMPLE))
    if sigma is not None:
        deviation = positive(sigma, name="sigma", example="Gaussian(sensitivity=1, sigma=5)")
        return ZeroConcentratedDP(sensitivity**2 / (2 * deviation**2))
    if rho is not None:
        return ZeroConcentratedDP(rho)
    positive(delta, name="delta", example="Gaussian(sensitivity=1, epsilon=1, delta=1e-6)")
    return ApproxDP(nonnegative(epsilon, name="epsilon"), nonnegative(delta, name="delta"))


def _squared_steps(distance: Exact, dimension: int | None) -> int:
    """The largest squared L2 norm, in steps, of a move by at most `distance` steps, of which `dimension` are rounded.

    Claim: rounding brings a coordinate that moves by x steps to less than |x| + 1, and a single one to ceil(|x|). The
    squared norm of integers is an integer, so its bound is rounded down, 1 at least; but a float such as sqrt(3) may
    stand for a number that is a little larger, so up to 2^-48 of it is added first.
    """
    if dimension is None:
        squared = distance**2
        return max(1, math.floor(squared if squared.denominator == 1 else squared * (1 + Exact(1, 2**48))))
    if dimension == 1:
        return math.ceil(distance) ** 2
    return math.floor(distance**2 + 2 * distance * sqrt_up(Exact(dimension)) + dimension)
