"""Private keys without their counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privet.exact import Enclosure, Exact, Number, ball, enclose, floor, whole
from privet.mechanisms.thresholds.base import ALWAYS, NEVER, EpsilonSelection, counts_of
from privet.noise.coins import toss
from privet.noise.entropy import SYSTEM, Bits
from privet.noise.inversion import enclosed_prefixes, exp_minus
from privet.privacy.adjacency import Adjacency


@dataclass(frozen=True, slots=True, init=False)
class OptimalSelection(EpsilonSelection):
    """Keys without their counts: each appears with the largest probability that privacy allows.

    Claim: `select` is (epsilon, delta)-differentially private. With e = epsilon / c and d = delta / c, c the number of
    keys whose counts can change (max_keys, twice that under replace), a key that n people hold appears with probability

        pi(0) = 0,  pi(n + 1) = min(e^e pi(n) + d,  1 - e^-e (1 - pi(n) - d),  1),

    which is the largest function for which one key is (e, d)-private against one person more or less; c keys together
    are (epsilon, delta)-private. `probability` is this recursion in closed form, with enclosures.

    Example:
        >>> keys = OptimalSelection(epsilon=1, delta=1e-6, max_keys=1, adjacency="add/remove")
        >>> keys.people_for(0.5), float(keys.probability(1)), keys.select([1, 5000]).tolist()
        (14, 1e-06, [1])

    Reference: Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition selection", 2020, theorem 1.
    """

    _turn: int = field(compare=False, repr=False)
    """Up to here the first of the two recursions is the smaller one."""
    _full: int = field(compare=False, repr=False)
    """From here on keys always appear."""

    def __init__(self, *, epsilon: Number, delta: Number, max_keys: int, adjacency: Adjacency | str) -> None:
        EpsilonSelection.__init__(self, epsilon=epsilon, delta=delta, max_keys=max_keys, adjacency=adjacency)
        e, d = self._each()
        # pi(n) = d (e^(n e) - 1)/(e^e - 1) while it is at most (1 - d)/(e^e + 1); the next one is the turn
        steps = floor(lambda: (1 + ball((1 - d) / d) * ball(e).expm1() / (1 + ball(e).exp())).log() / ball(e))
        object.__setattr__(self, "_turn", steps + 1)
        # with c = d/(e^e - 1), what is missing at turn + m is e^(-m e) (rest + c) - c
        more = floor(lambda: (1 + self._rest_at_turn() * ball(e).expm1() / ball(d)).log() / ball(e))
        object.__setattr__(self, "_full", self._turn + more + 1)

    def _each(self) -> tuple[Exact, Exact]:
        return self.epsilon / self.changed, self.delta / self.changed

    def _first(self, n: int) -> arb:
        e, d = self._each()
        return ball(d) * ball(n * e).expm1() / ball(e).expm1()

    def _rest_at_turn(self) -> arb:
        return 1 - self._first(self._turn)

    def _chance(self, n: int) -> arb:
        """Pi(n), 0 < n < full, at the precision of the block."""
        if n <= self._turn:
            return self._first(n)
        e, d = self._each()
        c = ball(d) / ball(e).expm1()
        return 1 + c - exp_minus((n - self._turn) * e) * (self._rest_at_turn() + c)

    def probability(self, people: int) -> Enclosure:
        """The probability that a key that this many people hold appears."""
        n = whole(people, name="people", least=0, example="probability(10)")
        if n == 0:
            return NEVER
        if n >= self._full:
            return ALWAYS
        return enclose(lambda: self._chance(n))

    def select(self, counts: Any) -> NDArray[np.intp]:
        """The positions of the keys that appear, from how many people hold each key."""
        return self._draw(counts, SYSTEM)

    def _draw(self, counts: Any, bits: Bits) -> NDArray[np.intp]:
        """The same from these bits. Every key that is held gets a coin, so the work does not depend on which appear."""
        held, numbers = counts_of(counts, name="counts")
        people = np.minimum(numbers, self._full).astype(np.int64)
        distinct, which = np.unique(people, return_inverse=True)
        chances = [int(n) for n in distinct if n < self._full]
        prefixes = enclosed_prefixes(lambda: [self._chance(n) for n in chances], 192)
        lower = np.array([*prefixes, *[(1 << 64) - 1] * (len(distinct) - len(chances))], dtype=np.uint64)

        def exactly(i: int) -> arb:
            return self._chance(int(people[i])) if people[i] < self._full else arb(1)

        return held[toss(lower[which], 1, exactly, bits)]
