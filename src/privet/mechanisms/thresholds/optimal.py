"""Private keys without their counts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privet.exact import Enclosure, Exact, Number, ball, floor, whole
from privet.mechanisms.thresholds.base import EpsilonSelection, counts_of
from privet.noise import TruncatedLaplace
from privet.noise.coins import toss
from privet.noise.entropy import SYSTEM, Bits
from privet.noise.inversion import enclosed_prefixes
from privet.privacy.adjacency import Adjacency
from privet.privacy.events import PrivacyEvent, Repeated, Stated

_DIVIDED = 10  # up to here the unit is divided exactly among any number of keys
_BITS = 64  # of the delta of a unit


@dataclass(frozen=True, slots=True, init=False)
class OptimalSelection(EpsilonSelection):
    """Keys without their counts: a person divides one unit among their keys, and keys appear by the optimal rule.

    A person who holds g keys adds `weight(g)` = floor(unit / g) to each, so people with few keys count more. A key of
    weight m appears with probability pi(m), the `TruncatedLaplace` rule for e = epsilon / unit and a delta d of a unit.

    Claim: `select` is (epsilon, delta)-differentially private, and at the price of its event. One key is (m e,
    D(m))-private against a change by m, in both directions, where D(m) = d (e^(m e) - 1)/(e^e - 1): m steps of an (e,
    d)-private rule. All keys of a person with g of them lose g weight(g) e <= epsilon, and g D(weight(g)) <= D(unit),
    since (e^x - 1)/x grows with x. So d with D(unit) = delta is enough. Under replace, two persons change their keys,
    and a key of both by less than one of them: each has epsilon/2 and delta/2.

    If max_keys is 1, no (epsilon, delta)-private answer shows any key with a larger probability.

    Example:
        >>> keys = OptimalSelection(epsilon=1, delta=1e-6, max_keys=1, adjacency="add/remove")
        >>> keys.people_for(0.5), float(keys.probability(1)), keys.select([1, 5000]).tolist()
        (14, 1e-06, [1])
        >>> keys = OptimalSelection(epsilon=1, delta=1e-6, max_keys=3, adjacency="add/remove")
        >>> keys.unit, keys.weight(2), [keys.people_for(0.5, keys=g) for g in (1, 2, 3)]
        (6, 3, [14, 28, 41])

    Reference: Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition selection", 2020, theorem 1, for
    one key per person.
    """

    unit: int = field(compare=False)
    """What a person who holds one key adds to it."""
    rule: TruncatedLaplace = field(compare=False, repr=False)

    def __init__(self, *, epsilon: Number, delta: Number, max_keys: int, adjacency: Adjacency | str) -> None:
        EpsilonSelection.__init__(self, epsilon=epsilon, delta=delta, max_keys=max_keys, adjacency=adjacency)
        most = self.max_keys
        unit = math.lcm(*range(1, most + 1)) if most <= _DIVIDED else 1 << max(20, 10 + most.bit_length())
        object.__setattr__(self, "unit", unit)
        each = self.epsilon / (self._persons * unit)
        object.__setattr__(self, "rule", TruncatedLaplace(each, self._unit_delta(each)))

    @property
    def _persons(self) -> int:
        """How many persons differ between neighbours."""
        return 2 if self.adjacency is Adjacency.REPLACE else 1

    def _unit_delta(self, each: Exact) -> Exact:
        """The largest d with D(unit) at most the delta of a person, rounded down to 64 bits."""
        delta = self.delta / self._persons
        if self.unit == 1:
            return delta

        def share() -> arb:
            return ball(delta) * ball(each).expm1() / ball(self.unit * each).expm1()

        power = _BITS - floor(lambda: share().log() / ball(2).log())
        return Exact(floor(lambda: share() * arb(2) ** power)) / Exact(2) ** power

    def event(self) -> PrivacyEvent:
        """The event of one answer, for accountants."""
        one = Stated(epsilon=self.epsilon / self._persons, delta=self.delta / self._persons)
        return one if self._persons == 1 else Repeated(one, self._persons)

    def weight(self, keys: int) -> int:
        """What a person who holds this many keys adds to each."""
        return self.unit // whole(keys, name="keys", example="weight(3)")

    def probability(self, people: int, *, keys: int | None = None) -> Enclosure:
        """The probability that a key appears that this many people hold, each among `keys` (max_keys by default)."""
        n = whole(people, name="people", least=0, example="probability(10)")
        return self.rule.shown(n * self.weight(self.max_keys if keys is None else keys))

    def leak(self) -> Enclosure:
        """The largest probability that a key of one person appears who alone holds it: with one key, at most delta."""
        return self.rule.shown(self.unit)

    def select(self, weights: Any) -> NDArray[np.intp]:
        """The positions of the keys that appear.

        Each weight is the sum of `weight(g)` over the people who hold the key, g being how many they hold; if max_keys
        is 1, it is the number of people.
        """
        return self._draw(weights, SYSTEM)

    def _draw(self, weights: Any, bits: Bits) -> NDArray[np.intp]:
        """The same from these bits. Every key that is held gets a coin, so the work does not depend on which appear."""
        held, numbers = counts_of(weights, name="weights")
        full = self.rule.full
        least = np.minimum(numbers, full)
        distinct, which = np.unique(least, return_inverse=True)
        chances = [int(n) for n in distinct if n < full]
        prefixes = enclosed_prefixes(lambda: [self.rule.shown_ball(n) for n in chances], 192)
        lower = np.array([*prefixes, *[(1 << 64) - 1] * (len(distinct) - len(chances))], dtype=np.uint64)
        return held[toss(lower[which], 1, lambda i: self.rule.shown_ball(int(least[i])), bits)]
