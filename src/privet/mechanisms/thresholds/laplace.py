"""Private keys with their counts, by discrete Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privet.exact import Enclosure, Number, enclose, less, whole
from privet.exact.lattice import Integers, add_exactly
from privet.exact.search import first
from privet.mechanisms.thresholds.base import NEVER, EpsilonSelection, counts_of
from privet.noise import DiscreteLaplace
from privet.noise.entropy import SYSTEM, Bits
from privet.noise.laplace import laplace_digits, two_sided_cdf
from privet.privacy.adjacency import Adjacency
from privet.privacy.events import Composed, LaplaceNoise, Stated
from privet.privacy.moves import L1Move


@dataclass(frozen=True, slots=True, init=False)
class LaplaceThreshold(EpsilonSelection):
    """Keys with their counts: discrete Laplace noise on each count, and only noisy counts of at least T are released.

    Claim: `release` is (epsilon, delta)-differentially private: noise of scale c / epsilon, c the number of keys whose
    counts can change (max_keys, twice that under replace), and T the smallest integer with

        1 - (1 - P(1 + noise >= T))^max_keys <= delta,  P(1 + noise >= T) = r^(T-1)/(1+r),  r = e^(-epsilon/c).

    A count of exactly T is released, so the mass at T is part of that probability. delta is the same for both kinds of
    neighbours. Why: let x = P(1 + noise >= T), and let a person alone hold g of their keys. With them, one of these
    appears with probability at most 1 - (1 - x)^g. The answers in which none appears have log ratios of at most epsilon
    (1 - g / max_keys) on the other keys, and are (1 - x)^g times as likely as without them: in that direction, too,
    (1 - delta) times their probability suffices. Under replace the two persons have g and h such keys; what the first
    loses and the factor of the second together leave at most 1 - (1 - x)^max(g, h).

    So what is left of either law is no further from the other than noisy counts of the keys that both have: the event
    is that of the noise, and a leak of delta. On a Renyi meter this costs less than any (epsilon, delta) does.

    Example:
        >>> keys = LaplaceThreshold(epsilon=1, delta=1e-6, max_keys=1, adjacency="add/remove")
        >>> keys.threshold, keys.people_for(0.5)
        (15, 15)
        >>> places, counts = keys.release([1, 5000])
        >>> places.tolist()
        [1]

    Reference: Korolova, Kenthapadi, Mishra, Ntoulas, "Releasing search queries and clicks privately", 2009; the mass at
    T, Google's differential-privacy #101.
    """

    threshold: int
    noise: DiscreteLaplace = field(compare=False)

    def __init__(self, *, epsilon: Number, delta: Number, max_keys: int, adjacency: Adjacency | str) -> None:
        EpsilonSelection.__init__(self, epsilon=epsilon, delta=delta, max_keys=max_keys, adjacency=adjacency)
        object.__setattr__(self, "noise", DiscreteLaplace(self.changed / self.epsilon))
        object.__setattr__(self, "threshold", first(lambda t: less(lambda: self._leak(t), self.delta), 1))

    def event(self) -> Composed:
        """The event of one answer, for accountants."""
        noise = LaplaceNoise(move=L1Move(1, blocks=self.changed), scale=self.changed / self.epsilon)
        return Composed([noise, Stated(epsilon=0, delta=self.delta)])

    def _at_least(self, k: int) -> arb:
        """P(noise >= k)."""
        return two_sided_cdf(self.noise.scale, -k)

    def _leak(self, threshold: int) -> arb:
        """The probability that one of max_keys keys that one person holds appears."""
        return -(self.max_keys * (-self._at_least(threshold - 1)).log1p()).expm1()

    def leak(self) -> Enclosure:
        """The probability that a key of one person appears, if it alone holds all of its keys: at most delta."""
        return enclose(lambda: self._leak(self.threshold))

    def probability(self, people: int) -> Enclosure:
        """The probability that a key that this many people hold appears."""
        n = whole(people, name="people", least=0, example="probability(10)")
        return NEVER if n == 0 else enclose(lambda: self._at_least(self.threshold - n))

    def release(self, counts: Any) -> tuple[NDArray[np.intp], Integers]:
        """The positions of the keys that appear, and their noisy counts."""
        return self._draw(counts, SYSTEM)

    def _draw(self, counts: Any, bits: Bits) -> tuple[NDArray[np.intp], Integers]:
        """The same from these bits. Every key that is held gets noise, so the work does not depend on which appear."""
        held, people = counts_of(counts, name="counts")
        noisy = add_exactly(people, laplace_digits(self.noise.scale).array(len(people), bits))
        kept = np.flatnonzero(noisy >= self.threshold)
        return held[kept], noisy[kept]
