"""The sparse vector technique: the first of several queries that is above a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from flint import arb

from privet.errors import NumberError, write
from privet.exact import Enclosure, Exact, Number, ball, ends, exact, positive, precision, probability, show, up, whole
from privet.exact.lattice import Integers, add_exactly
from privet.mechanisms.profiles import PureProfile
from privet.mechanisms.scores import whole_scores
from privet.noise import DiscreteLaplace
from privet.noise.digits import REACH
from privet.noise.entropy import SYSTEM, Bits
from privet.noise.laplace import laplace_digits, two_sided_cdf
from privet.privacy.accounting import PureAccountant
from privet.privacy.events import Stated
from privet.privacy.guarantees import PureDP

_EXAMPLE = "AboveThreshold(sensitivity=1, epsilon=0.5, threshold=100)"


@dataclass(frozen=True, slots=True, init=False)
class AboveThreshold:
    """The position of the first query whose noisy answer is at least a noisy threshold, or None.

    Claim: if neighbouring datasets move each query by at most `sensitivity`, then `select` is epsilon-differentially
    private, however many queries there are. The threshold gets discrete Laplace noise of scale sensitivity / e1, drawn
    once, each query its own of scale 2 sensitivity / e2, e1 + e2 = epsilon; query i is above if its noisy answer >= the
    noisy threshold. Why: let a neighbour's run have a threshold noise larger by the sensitivity s (factor e^e1).
    All queries before the first one above then stay below, whatever their noise; and the first one is above if its
    noise is larger by 2 s (factor e^e2). Both shifts are whole numbers of lattice steps, so discrete noise keeps this.

    With `monotone=True` (no query rises while another falls, as counts under add/remove; not under replace) noise of
    scale sensitivity / e2 suffices for the queries. e1 is 2/5 of epsilon, or 1/2 if monotone: close to the best split.

    Only the position is released. One call answers one list; for another threshold or list, pay again. All queries get
    noise, wherever the first one above is. Queries are integers.

    Example:
        >>> mechanism = AboveThreshold(sensitivity=1, epsilon=1, threshold=100)
        >>> mechanism.select([-500, -400, 700, 900])
        2
        >>> mechanism.select([-500, -400]) is None, mechanism.guarantee()
        (True, PureDP(1))

    Reference: Dwork, Roth 2014, algorithm 1; Lyu, Su, Li, "Understanding the sparse vector technique for differential
    privacy", VLDB 2017, algorithm 1.
    """

    sensitivity: Exact
    epsilon: Exact
    threshold: Exact
    monotone: bool

    def __init__(self, *, sensitivity: Number, epsilon: Number, threshold: Number, monotone: bool = False) -> None:
        if not isinstance(monotone, bool):
            raise NumberError(f"monotone must be True or False, not {monotone!r}", remedy=write("monotone=True"))
        object.__setattr__(self, "sensitivity", positive(sensitivity, name="sensitivity", example=_EXAMPLE))
        object.__setattr__(self, "epsilon", positive(epsilon, name="epsilon", example=_EXAMPLE))
        object.__setattr__(self, "threshold", exact(threshold, name="threshold", example=_EXAMPLE))
        object.__setattr__(self, "monotone", monotone)
        self.event()  # refuses what a ledger could not store, before any data are read

    def __repr__(self) -> str:
        direction = ", monotone=True" if self.monotone else ""
        return (
            f"AboveThreshold(sensitivity={show(self.sensitivity)}, epsilon={show(self.epsilon)}, "
            f"threshold={show(self.threshold)}{direction})"
        )

    # --- what it costs --------------------------------------------------------------------------

    @property
    def threshold_noise(self) -> DiscreteLaplace:
        """The noise of the threshold."""
        share = Fraction(1, 2) if self.monotone else Fraction(2, 5)
        return DiscreteLaplace(math.ceil(self.sensitivity) / (share * self.epsilon))

    @property
    def query_noise(self) -> DiscreteLaplace:
        """The noise of each query."""
        share, factor = (Fraction(1, 2), 1) if self.monotone else (Fraction(3, 5), 2)
        return DiscreteLaplace(factor * math.ceil(self.sensitivity) / (share * self.epsilon))

    def event(self) -> Stated:
        """The event of one list, for accountants."""
        return Stated(epsilon=self.epsilon, delta=0)

    def guarantee(self) -> PureDP:
        """The guarantee of one list."""
        return PureAccountant().account(self.event())

    def privacy_profile(self) -> PureProfile:
        """Epsilon -> delta, an upper bound for all neighbours."""
        return PureProfile(self.epsilon)

    # --- the answer -----------------------------------------------------------------------------

    def select(self, queries: Any) -> int | None:
        """The position of the first query above the threshold, or None. The number of queries is public."""
        return self._draw(queries, SYSTEM)

    def count(self, queries: Any) -> int:
        """The number of queries; what `select` refuses is refused here, too."""
        return len(self._read(queries))

    def _read(self, queries: Any) -> Integers:
        return whole_scores(queries, name="queries", example="select([90, 120, 80])")

    def _draw(self, queries: Any, bits: Bits) -> int | None:
        """The same from these bits."""
        numbers = self._read(queries)
        limit = math.ceil(self.threshold) + laplace_digits(self.threshold_noise.scale).one(bits)
        noisy = add_exactly(numbers, laplace_digits(self.query_noise.scale).array(len(numbers), bits))
        above = np.flatnonzero(noisy >= limit)
        return int(above[0]) if len(above) else None

    def probabilities(self, queries: Any) -> list[Enclosure]:
        """The probability of each position, then that of None, enclosed; for tests, since queries are private.

        Claim: the sum over the threshold's noise v of P(v) times the probability that the queries before stay below
        and this one does not. What is left out is at most the probability of a v beyond the sum.
        """
        numbers = self._read(queries).tolist()
        limit, query = math.ceil(self.threshold), self.query_noise.scale
        scale = self.threshold_noise.scale
        reach = int(REACH * scale) + 1
        with precision(160):
            ratio = ball(-1 / scale).exp()
            sums = [arb(0)] * (len(numbers) + 1)
            for v in range(-reach, reach + 1):
                mass = (1 - ratio) / (1 + ratio) * ball(Fraction(-abs(v)) / scale).exp()
                below = [two_sided_cdf(query, limit + v - int(q) - 1) for q in numbers]
                reached = list(accumulate(below, lambda a, b: a * b, initial=mass))
                for i, part in enumerate(below):
                    sums[i] += reached[i] * (1 - part)
                sums[-1] += reached[-1]
            outside = ends(2 * two_sided_cdf(scale, -reach - 1)).upper
            inside = [ends(each) for each in sums]
        return [Enclosure(max(Fraction(0), e.lower), min(Fraction(1), e.upper + outside)) for e in inside]

    def error(self, confidence: Number = 0.95, *, queries: int) -> int:
        """With this confidence, no query that is lower than the threshold by more is taken for above, and none that is
        higher by more is passed over, in a list of this length.

        Claim: the noises of the threshold and of all queries are within it together: each has half of 1 - confidence.
        """
        level = probability(confidence, name="confidence", example="error(0.95, queries=10)")
        count = whole(queries, name="queries", example="error(0.95, queries=10)")
        rest = (1 - level) / 4
        return self.threshold_noise.quantile(1 - rest) + self.query_noise.quantile(1 - rest / count)

    def tail(self, t: Number, *, queries: int) -> float:
        """At least the probability of a mistake by more than t in a list of this length: the inverse of `error`."""
        gap = exact(t, name="t", example="tail(10, queries=5)")
        count = whole(queries, name="queries", example="tail(10, queries=5)")
        first, second = self.threshold_noise, self.query_noise
        share = gap * first.scale / (first.scale + second.scale)
        bound = first.tail(math.floor(share) + 1).upper + count * second.tail(math.floor(gap - share) + 1).upper
        return min(1.0, up(bound)) if gap >= 0 else 1.0
