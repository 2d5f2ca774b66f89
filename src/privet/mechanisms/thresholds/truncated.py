"""Private keys with their counts, by noise with which a threshold shows the most keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.exact import Enclosure, Exact, Number, whole
from privet.exact.lattice import Integers, add_exactly
from privet.mechanisms.thresholds.base import EpsilonSelection, counts_of
from privet.noise import TruncatedLaplace
from privet.noise.entropy import SYSTEM, Bits
from privet.privacy.adjacency import Adjacency
from privet.privacy.events import Composed, LaplaceNoise, Stated
from privet.privacy.moves import L1Move


@dataclass(frozen=True, slots=True, init=False)
class TruncatedThreshold(EpsilonSelection):
    """Keys with their counts: truncated Laplace noise on each count, and only noisy counts of at least T are released.

    Claim: `release` is (epsilon, delta)-differentially private. Let c be the number of keys whose counts can change:
    max_keys, twice that under replace. With `TruncatedLaplace(epsilon / c, delta / c)` the answer for one key is
    (epsilon/c, delta/c)-private against one person more or less, and shows it with the largest probability that any
    such answer can have, even one without a count. The c keys together cost c times that.

    Its event is Laplace noise of scale c/epsilon and a leak of delta. Why: an answer that is (e, d)-private is no
    easier to tell apart than one that tells all with probability d, and else a bit with odds e^e (Kairouz, Oh,
    Viswanath 2015). That bit is what discrete Laplace noise of scale 1/e makes of one step. So every accountant prices
    c keys as that noise in c blocks, and c leaks of delta/c.

    Example:
        >>> keys = TruncatedThreshold(epsilon=1, delta=1e-6, max_keys=1, adjacency="add/remove")
        >>> keys.threshold, keys.people_for(0.5), float(keys.probability(1))
        (14, 14, 1e-06)
        >>> places, counts = keys.release([1, 5000])
        >>> places.tolist(), abs(int(counts[0]) - 5000) <= 14
        ([1], True)

    Reference: Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition selection", 2022, section 3.
    """

    noise: TruncatedLaplace = field(compare=False)

    def __init__(self, *, epsilon: Number, delta: Number, max_keys: int, adjacency: Adjacency | str) -> None:
        EpsilonSelection.__init__(self, epsilon=epsilon, delta=delta, max_keys=max_keys, adjacency=adjacency)
        object.__setattr__(self, "noise", TruncatedLaplace(self.epsilon / self.changed, self.delta / self.changed))

    @property
    def threshold(self) -> int:
        """The smallest noisy count that is released."""
        return self.noise.threshold

    @property
    def scale(self) -> Exact:
        """The scale of the Laplace noise that this noise is, except for its ends."""
        return 1 / self.noise.epsilon

    def weight(self, keys: int) -> int:
        """What a person adds to each of their keys: always 1."""
        return 1

    def event(self) -> Composed:
        """The event of one answer, for accountants."""
        noise = LaplaceNoise(move=L1Move(1, blocks=self.changed), scale=self.changed / self.epsilon)
        return Composed([noise, Stated(epsilon=0, delta=self.delta)])

    def probability(self, people: int) -> Enclosure:
        """The probability that a key that this many people hold appears."""
        return self.noise.shown(whole(people, name="people", least=0, example="probability(10)"))

    def leak(self) -> Enclosure:
        """The probability that a key of one person appears, if they alone hold all of their keys: at most delta."""
        each = self.noise.shown(1)
        return Enclosure(1 - (1 - each.lower) ** self.max_keys, 1 - (1 - each.upper) ** self.max_keys)

    def release(self, counts: Any) -> tuple[NDArray[np.intp], Integers]:
        """The positions of the keys that appear, and their noisy counts."""
        return self._draw(counts, SYSTEM)

    def _draw(self, counts: Any, bits: Bits) -> tuple[NDArray[np.intp], Integers]:
        """The same from these bits. Every key that is held gets noise, so the work does not depend on which appear."""
        held, people = counts_of(counts, name="counts")
        noisy = add_exactly(people, self.noise.draws(len(people), bits))
        kept = np.flatnonzero(noisy >= self.threshold)
        return held[kept], noisy[kept]
