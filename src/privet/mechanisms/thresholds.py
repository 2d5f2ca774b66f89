"""Which keys appear in an answer if the keys themselves are private: decided by how many people hold each.

People are counted, once for each key, with at most `max_keys` keys each. Keys that nobody holds are never drawn, so a
key that exists through one person must be unlikely to appear: that is what delta pays for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privet.errors import DataError, NumberError, write
from privet.exact import Enclosure, Exact, Number, ball, enclose, floor, less, positive, probability, whole
from privet.exact.lattice import Integers, add_exactly
from privet.exact.search import first
from privet.noise import DiscreteLaplace
from privet.noise.coins import toss
from privet.noise.entropy import SYSTEM, Bits
from privet.noise.inversion import enclosed_prefixes, exp_minus
from privet.noise.laplace import laplace_digits, two_sided_cdf
from privet.privacy.accounting import ApproxAccountant
from privet.privacy.adjacency import Adjacency
from privet.privacy.events import Stated
from privet.privacy.guarantees import ApproxDP

_EXAMPLE = "epsilon=1, delta=1e-6, max_keys=1, adjacency='add/remove'"
_ZERO, _ONE = Enclosure(Fraction(0), Fraction(0)), Enclosure(Fraction(1), Fraction(1))


@dataclass(frozen=True, slots=True, init=False)
class KeySelection:
    """What decides which keys appear: epsilon and delta in total, keys per person, and what neighbours are."""

    epsilon: Exact
    delta: Exact
    max_keys: int
    adjacency: Adjacency

    def __init__(self, *, epsilon: Number, delta: Number, max_keys: int, adjacency: Adjacency | str) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, name="epsilon", example=_EXAMPLE))
        object.__setattr__(self, "delta", probability(delta, name="delta", example=_EXAMPLE))
        object.__setattr__(self, "max_keys", whole(max_keys, name="max_keys", example=_EXAMPLE))
        object.__setattr__(self, "adjacency", Adjacency(adjacency))
        self.event()  # refuses what a ledger could not store, before any data are read

    @property
    def changed(self) -> int:
        """How many keys' counts differ by one between neighbours, at most: twice as many if a person is replaced."""
        return self.max_keys * (2 if self.adjacency is Adjacency.REPLACE else 1)

    def event(self) -> Stated:
        """The event of one answer, for accountants."""
        return Stated(epsilon=self.epsilon, delta=self.delta)

    def guarantee(self) -> ApproxDP:
        """The guarantee of one answer."""
        return ApproxAccountant().account(self.event())

    def probability(self, people: int) -> Enclosure:
        """The probability that a key that this many people hold appears."""
        raise NotImplementedError

    def people_for(self, chance: Number) -> int:
        """The smallest number of people with which a key appears with at least this probability."""
        level = probability(chance, name="chance", example="people_for(0.5)")
        return first(lambda people: self.probability(people).lower >= level, 1)


# --- keys alone -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, init=False)
class OptimalSelection(KeySelection):
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
        KeySelection.__init__(self, epsilon=epsilon, delta=delta, max_keys=max_keys, adjacency=adjacency)
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
            return _ZERO
        if n >= self._full:
            return _ONE
        return enclose(lambda: self._chance(n))

    def select(self, counts: Any) -> NDArray[np.intp]:
        """The positions of the keys that appear, from how many people hold each key: 1 or more."""
        return self._draw(counts, SYSTEM)

    def _draw(self, counts: Any, bits: Bits) -> NDArray[np.intp]:
        """The same from these bits. Every key gets a coin, so the work does not depend on which appear."""
        people = np.minimum(_people(counts), self._full)
        distinct, which = np.unique(people, return_inverse=True)
        chances = [int(n) for n in distinct if n < self._full]
        prefixes = enclosed_prefixes(lambda: [self._chance(n) for n in chances], 192)
        lower = np.array([*prefixes, *[(1 << 64) - 1] * (len(distinct) - len(chances))], dtype=np.uint64)

        def exactly(i: int) -> arb:
            return self._chance(int(people[i])) if people[i] < self._full else arb(1)

        return np.flatnonzero(toss(lower[which], 1, exactly, bits))


# --- keys with noisy counts -------------------------------------------------------------------


@dataclass(frozen=True, slots=True, init=False)
class LaplaceThreshold(KeySelection):
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
        KeySelection.__init__(self, epsilon=epsilon, delta=delta, max_keys=max_keys, adjacency=adjacency)
        object.__setattr__(self, "noise", DiscreteLaplace(self.changed / self.epsilon))
        object.__setattr__(self, "threshold", first(lambda t: less(lambda: self._leak(t), self.delta), 1))

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
        return _ZERO if n == 0 else enclose(lambda: self._at_least(self.threshold - n))

    def release(self, counts: Any) -> tuple[NDArray[np.intp], Integers]:
        """The positions of the keys that appear, and their noisy counts."""
        return self._draw(counts, SYSTEM)

    def _draw(self, counts: Any, bits: Bits) -> tuple[NDArray[np.intp], Integers]:
        """The same from these bits. Every key gets noise, so the work does not depend on which appear."""
        people = _people(counts)
        noisy = add_exactly(people, laplace_digits(self.noise.scale).array(len(people), bits))
        kept = np.flatnonzero(noisy >= self.threshold)
        return kept, noisy[kept]


# --- keys with noisy weighted counts ----------------------------------------------------------

UNIT = 1 << 20
"""The weight of a person who holds one key."""


def key_weight(keys: int) -> int:
    """What a person who holds this many keys adds to each: floor(2^20 / sqrt(keys)).

    Claim: the squares of what one person adds sum to at most 2^40, however many keys they hold.

    Example:
        >>> key_weight(1), key_weight(2)
        (1048576, 741455)
    """
    return math.isqrt(UNIT**2 // keys)


class UpperTail(Protocol):
    """Integer noise, symmetric around 0, whose tail is known."""

    def cdf_ball(self, k: int) -> arb:
        """P(noise <= k), at the precision of the block."""


def weighted_threshold(noise: UpperTail, *, delta: Exact, max_keys: int) -> int:
    """The smallest T for weighted counts with this noise: keep a key if its noisy weighted count is at least T.

    Claim: a person who alone holds all of their g <= max_keys keys makes one of them appear with probability at most
    delta: 1 - (1 - P(key_weight(g) + noise >= T))^g <= delta for every g. The largest is not always at g = max_keys.

    Example:
        >>> weighted_threshold(DiscreteLaplace(UNIT), delta=Exact(1, 1000), max_keys=1) / UNIT
        7.214609146118164
    """

    def leaks(threshold: int) -> bool:
        def leak(keys: int) -> arb:
            appears = noise.cdf_ball(key_weight(keys) - threshold)  # P(noise >= threshold - weight), by symmetry
            return -(keys * (-appears).log1p()).expm1()

        return not all(less(lambda keys=keys: leak(keys), delta) for keys in range(1, max_keys + 1))  # type: ignore[misc]

    return first(lambda threshold: not leaks(threshold), key_weight(max_keys))


def _people(counts: Any) -> NDArray[np.int64]:
    """How many people hold each key."""
    people = np.asarray(counts)
    masked = isinstance(counts, np.ma.MaskedArray)
    if masked or people.ndim != 1 or (len(people) and people.dtype.kind not in "iu"):
        raise DataError("counts must be a list of integers, one for each key", remedy=write("select([12, 40])"))
    if len(people) and int(people.min()) < 1:
        raise NumberError("each key must be held by at least one person", remedy=write("select([12, 40])"))
    return people.astype(np.int64)
