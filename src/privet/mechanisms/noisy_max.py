"""Report noisy max: the candidate whose score is best after noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, repeat
from math import prod
from operator import mul
from typing import ClassVar

import numpy as np
from flint import arb, arb_poly

from privet.exact import Enclosure, Exact, Number, ball, enclose, ends, precision, probability, whole
from privet.exact.lattice import Integers, add_exactly
from privet.exact.search import first
from privet.mechanisms.base import SelectionMechanism
from privet.mechanisms.scores import integers_of
from privet.mechanisms.selection import Selection
from privet.noise import DiscreteLaplace
from privet.noise.digits import REACH
from privet.noise.entropy import SYSTEM, Bits
from privet.noise.laplace import laplace_digits, two_sided_cdf
from privet.noise.uniform import uniform_below
from privet.privacy.events import Stated


@dataclass(frozen=True, slots=True)
class NoisyMaxMechanism:
    """The best score after discrete Laplace noise of this scale; ties are broken by a uniform choice.

    Claim: epsilon = 2 move / scale.
    """

    name: ClassVar[str] = "noisy_max/1"

    def scale(self, move: int, *, epsilon: Exact) -> Exact:
        return 2 * move / epsilon

    def event(self, move: int, *, scale: Exact) -> Stated:
        return Stated(epsilon=2 * move / scale, delta=0)

    def weights(self, scores: Sequence[int] | Integers, *, scale: Exact) -> list[Enclosure]:
        numbers = [int(score) for score in integers_of(scores).tolist()]
        chances = _chances(Counter(numbers), scale)
        return [chances[score] for score in numbers]

    def select(self, scores: Sequence[int] | Integers, *, scale: Exact) -> int:
        return self._draw(scores, scale=scale, bits=SYSTEM)

    def _draw(self, scores: Sequence[int] | Integers, *, scale: Exact, bits: Bits) -> int:
        """The same from these bits."""
        numbers = integers_of(scores)
        noisy = add_exactly(numbers, laplace_digits(DiscreteLaplace(scale).scale).array(len(numbers), bits))
        best = np.flatnonzero(noisy == noisy.max())
        return int(best[uniform_below(len(best), bits)])


def _chances(groups: Counter[int], scale: Exact) -> dict[int, Enclosure]:
    """The probability that one candidate of each score is chosen.

    Claim: it is the sum over v of P(its noisy score is v) times the integral over t in [0, 1] of the product over the
    others of P(theirs is below v) + t P(theirs is v), since a tie with b others is won with probability 1/(b + 1). The
    terms below `first` are at most the probability that the best score's noise is that low, those above `last` at most
    the sum of the probabilities that a noisy score is that high. One of these must happen, too, if a score that is more
    than twice as far below the best is to matter, so those are left out of the sum.
    """
    best, total = max(groups), groups.total()
    reach = int((REACH + total.bit_length()) * scale) + 1
    everyone, groups = groups, Counter({score: n for score, n in groups.items() if best - score <= 2 * reach})
    least = min(groups)
    first, last = best - reach, best + reach
    with precision(160):
        ratio = ball(-1 / scale).exp()
        powers = list(accumulate(repeat(ratio, last - least), mul, initial=(1 - ratio) / (1 + ratio)))
        below = {first - best: two_sided_cdf(scale, first - best - 1)}  # P(noise < k)
        for k in range(first - best, last - least):
            below[k + 1] = below[k] + powers[abs(k)]
        sums = dict.fromkeys(groups, arb(0))
        for v in range(first, last + 1):
            wins = {s: arb_poly([below[v - s], powers[abs(v - s)]]) for s in groups}
            for score in groups:
                product = prod(((wins[s] ** (n - (s == score))) for s, n in groups.items()), start=arb_poly([1]))
                shares = sum((product[b] / (b + 1) for b in range(product.degree() + 1)), arb(0))
                sums[score] += powers[abs(v - score)] * shares
        outside = ends(two_sided_cdf(scale, -reach - 1) * (1 + total)).upper
        inside = {score: ends(each) for score, each in sums.items()}
    nothing = Enclosure(Fraction(0), Fraction(0))
    chances = {score: inside.get(score, nothing) for score in everyone}
    return {
        score: Enclosure(max(Fraction(0), each.lower - outside), min(Fraction(1), each.upper + outside))
        for score, each in chances.items()
    }


NOISY_MAX = NoisyMaxMechanism()
"""The only instance, because it has no parameters."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ReportNoisyMax(Selection):
    """Add discrete Laplace noise to each score and report which is the largest: the position, never the value.

    Claim: if neighbouring datasets move each score by at most `sensitivity`, then `select` is epsilon-differentially
    private, with noise of scale 2 sensitivity / epsilon on each score (sensitivity / epsilon if monotone, see
    `Exponential`). Ties, which have positive probability, are broken by a uniform choice.
    Why: a uniform choice among ties is what a random order of the candidates does, in which an earlier one wins a tie.
    Fix that order and the noise of all others. Then i is chosen exactly if its noise is at least an integer h, which is
    given by the others' noisy scores; a neighbour moves them and score i by at most sensitivity each, so it moves h by
    at most 2 sensitivity, and P(noise >= h) changes by a factor of at most e^(2 sensitivity / scale).
    The noisy maximum is not part of the answer. It would cost more.

    Scores are integers: the lattice of the noise may not follow the data.

    Example:
        >>> mechanism = ReportNoisyMax(sensitivity=1, epsilon=1)
        >>> mechanism.select([3, 90, 5], candidates=["a", "b", "c"])
        'b'
        >>> [round(float(p), 6) for p in mechanism.probabilities([0, 2])]
        [0.27404, 0.72596]

    Reference: Dwork, Roth, "The algorithmic foundations of differential privacy", 2014, claim 3.9; Ding, Kifer, et al.,
    "The permute-and-flip mechanism is identical to report-noisy-max with exponential noise", 2021.
    """

    mechanism: ClassVar[SelectionMechanism] = NOISY_MAX
    integers: ClassVar[bool] = True

    def _tail(self, gap: Exact, candidates: int) -> Enclosure:
        """At most (candidates - 1) P(X - Y >= gap), for the noise X, Y of two candidates.

        With r = e^(-1/scale): P(X - Y = i) = ((1-r)/(1+r))^2 r^i (i + 1 + 2 r^2/(1-r^2)), and the sum of these.
        """
        steps = -(-gap // 1)
        if steps <= 0 or candidates == 1:
            return Enclosure(Fraction(steps <= 0), Fraction(steps <= 0))

        def bound() -> arb:
            r, rest = ball(-1 / self.scale).exp(), -ball(-1 / self.scale).expm1()
            each = (steps + 1 + 2 * r**2 / (rest * (1 + r))) / rest + r / rest**2
            return (candidates - 1) * (rest / (1 + r)) ** 2 * ball(-steps / self.scale).exp() * each

        return enclose(bound)

    def error(self, confidence: Number = 0.95, *, candidates: int) -> int:
        """The chosen score is at most this much below the best, with this confidence."""
        level = probability(confidence, name="confidence", example="error(0.95, candidates=5)")
        count = whole(candidates, name="candidates", example="error(0.95, candidates=5)")

        def enough(most: int) -> bool:
            return self._tail(Fraction(most + 1), count) <= 1 - level

        return first(enough, 0)
