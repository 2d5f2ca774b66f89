"""Private keys with noisy weighted counts, for people who hold many."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privet.errors import NumberError, write
from privet.exact import Enclosure, Exact, Number, enclose, less, nearest, positive, whole
from privet.exact.lattice import Integers, add_exactly
from privet.exact.search import first
from privet.mechanisms.gaussian import GAUSSIAN
from privet.mechanisms.thresholds.base import NEVER, KeySelection, counts_of
from privet.noise import DiscreteGaussian
from privet.noise.entropy import SYSTEM, Bits
from privet.noise.gaussian import gaussian_cdf, gaussian_sampler
from privet.privacy.adjacency import Adjacency
from privet.privacy.events import Composed, GaussianNoise, Stated
from privet.privacy.guarantees import ApproxDP, ZeroConcentratedDP
from privet.privacy.moves import L2Move

UNIT = 1 << 20
"""The weight of a person who holds one key."""

_EXAMPLE = "GaussianThreshold(epsilon=1, delta=1e-6, max_keys=3, adjacency='add/remove')"


def key_weight(keys: int) -> int:
    """What a person who holds this many keys adds to each: floor(2^20 / sqrt(keys)).

    Claim: the squares of what one person adds sum to at most 2^40, however many keys they hold.

    Example:
        >>> key_weight(1), key_weight(2)
        (1048576, 741455)
    """
    return math.isqrt(UNIT**2 // whole(keys, name="keys", example="key_weight(3)"))


@dataclass(frozen=True, slots=True, init=False)
class GaussianThreshold(KeySelection):
    """Keys with their weighted counts: discrete Gaussian noise on each, and only those of at least T are released.

    A person who holds g keys adds `key_weight(g)` to each, so people with few keys count more. Give rho and delta, all
    of which is for keys of one person; or epsilon and delta, half of which is for the noise.

    Claim: `release` is private at the price of its event: noise for a move of 2^40 in squared L2 (2^41 if a person is
    replaced, who takes 2^40 away and adds 2^40), and a leak of d, where T is the smallest integer with

        1 - (1 - P(key_weight(g) + noise >= T))^g <= d   for every g from 1 to max_keys.

    Exactly T is released, so its mass is part of that probability. The largest is not always at g = max_keys. Why: let
    a person alone hold j of their g keys. With them, one of the j appears with probability at most d. Without those
    answers the laws differ on the other keys only, which move by less than the whole; none of the j appears with
    probability at least 1 - d, so in the other direction (1 - d) times the law without them suffices. Under replace the
    two persons have i and j such keys, of which one loses at most d and the other is a factor of at least 1 - d.

    Only keys that change have a part in delta: the event has max_keys coordinates, twice that under replace.

    Example:
        >>> keys = GaussianThreshold(epsilon=1, delta=1e-6, max_keys=10, adjacency="add/remove")
        >>> keys.people_for(0.5), str(keys.guarantee()), float(keys.leak()) <= 5e-7
        (80, 'epsilon 1, delta 1e-6', True)
        >>> places, weights = keys.release([key_weight(10), 5000 * key_weight(10)])
        >>> places.tolist()
        [1]

    Reference: Desfontaines, Voss, Gipson, Mandayam 2020, section 4; Swanberg, Desfontaines, Haney, "DP-SIPS: a simpler,
    more scalable mechanism for differentially private partition selection", 2023, for the weights.
    """

    price: ZeroConcentratedDP | ApproxDP
    """What the noise costs, without the leak."""
    threshold: int = field(compare=False)
    noise: DiscreteGaussian = field(compare=False)

    def __init__(
        self,
        *,
        rho: Number | None = None,
        epsilon: Number | None = None,
        delta: Number,
        max_keys: int,
        adjacency: Adjacency | str,
    ) -> None:
        if (rho is None) == (epsilon is None):
            raise NumberError("pass either rho or epsilon, and delta", remedy=write(_EXAMPLE))
        KeySelection.__init__(self, delta=delta, max_keys=max_keys, adjacency=adjacency)
        if rho is not None:
            price: ZeroConcentratedDP | ApproxDP = ZeroConcentratedDP(rho)
        else:
            price = ApproxDP(positive(epsilon, name="epsilon", example=_EXAMPLE), self.delta / 2)
        object.__setattr__(self, "price", price)
        scale = GAUSSIAN.calibrate(self.move, price, coordinates=self.changed)
        object.__setattr__(self, "noise", DiscreteGaussian(scale))
        self.event()  # refuses what a ledger could not store, before any data are read
        object.__setattr__(self, "threshold", self._smallest())

    @property
    def move(self) -> L2Move:
        """How far one unit moves all weighted counts."""
        return L2Move(UNIT**2 * (2 if self.adjacency is Adjacency.REPLACE else 1))

    @property
    def leaked(self) -> Exact:
        """The delta for keys that only one person holds."""
        return self.delta - (self.price.delta if isinstance(self.price, ApproxDP) else 0)

    def event(self) -> Composed:
        """The event of one answer, for accountants."""
        noise: GaussianNoise = GAUSSIAN.event(
            self.move, scale=self.noise.sigma_squared, coordinates=self.changed, price=self.price
        )
        return Composed([noise, Stated(epsilon=0, delta=self.leaked)])

    def weight(self, keys: int) -> int:
        """What a person who holds this many keys adds to each."""
        return key_weight(keys)

    # --- the threshold --------------------------------------------------------------------------

    def _at_least(self, k: int) -> arb:
        """P(noise >= k)."""
        return gaussian_cdf(self.noise.sigma_squared, -k)

    def _leak(self, threshold: int, keys: int) -> arb:
        """The probability that one of the keys of a person appears, if they alone hold all of them."""
        return -(keys * (-self._at_least(threshold - key_weight(keys))).log1p()).expm1()

    def _smallest(self) -> int:
        """The smallest threshold for each number of keys in turn; one that suffices already stays."""
        threshold = 1
        for keys in range(self.max_keys, 0, -1):

            def enough(t: int, keys: int = keys) -> bool:
                return less(lambda: self._leak(t, keys), self.leaked)

            if not enough(threshold):
                threshold = first(enough, threshold + 1, guess=self._about(keys))
        return threshold

    def _about(self, keys: int) -> int:
        """About the smallest threshold: that of a continuous normal noise."""
        chance = min(max(nearest(self.leaked / keys), sys.float_info.min), 0.5)
        sigmas = round(-NormalDist().inv_cdf(chance) * 2**32)
        return key_weight(keys) + (math.isqrt(math.ceil(self.noise.sigma_squared)) * sigmas >> 32)

    def leak(self) -> Enclosure:
        """The largest probability that a key of one person appears, over all numbers of keys: at most its delta."""
        leaks = (enclose(lambda keys=keys: self._leak(self.threshold, keys)) for keys in range(1, self.max_keys + 1))  # type: ignore[misc]
        return max(leaks, key=lambda leak: leak.upper)

    def probability(self, people: int, *, keys: int | None = None) -> Enclosure:
        """The probability that a key appears that this many people hold, each among `keys` (max_keys by default)."""
        n = whole(people, name="people", least=0, example="probability(10)")
        held = self.max_keys if keys is None else whole(keys, name="keys", example="probability(10, keys=3)")
        return NEVER if n == 0 else enclose(lambda: self._at_least(self.threshold - n * key_weight(held)))

    # --- the answer -----------------------------------------------------------------------------

    def release(self, weights: Any) -> tuple[NDArray[np.intp], Integers]:
        """The positions of the keys that appear, and their noisy weighted counts, in units of 2^-20 people.

        Each weight is the sum of `key_weight(g)` over the people who hold the key, g being how many they hold.
        """
        return self._draw(weights, SYSTEM)

    def _draw(self, weights: Any, bits: Bits) -> tuple[NDArray[np.intp], Integers]:
        """The same from these bits. Every key that is held gets noise, so the work does not depend on which appear."""
        held, numbers = counts_of(weights, name="weights")
        noisy = add_exactly(numbers, gaussian_sampler(self.noise.sigma_squared).array(len(numbers), bits))
        kept = np.flatnonzero(noisy >= self.threshold)
        return held[kept], noisy[kept]
