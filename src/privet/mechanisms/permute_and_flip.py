"""The permute-and-flip mechanism."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from flint import arb, arb_poly

from privet.exact import Enclosure, Exact, ball, enclose
from privet.exact.lattice import Integers
from privet.mechanisms.base import SelectionMechanism
from privet.mechanisms.scores import distances
from privet.mechanisms.selection import Selection
from privet.noise.choice import CHUNK
from privet.noise.coins import toss
from privet.noise.entropy import SYSTEM, Bits
from privet.noise.inversion import exp_minus
from privet.noise.powers import Powers
from privet.noise.uniform import uniform_below
from privet.privacy.events import Stated


@dataclass(frozen=True, slots=True)
class PermuteAndFlipMechanism:
    """Candidates in random order; the first whose coin, of probability e^((score - best)/scale), shows heads.

    Claim: epsilon = 2 move / scale. The first heads in a random order is a uniform choice among all heads, so all coins
    are tossed and one of the heads is chosen; the best candidate's coin always shows heads.
    """

    name: ClassVar[str] = "permute_and_flip/1"

    def scale(self, move: int, *, epsilon: Exact) -> Exact:
        return 2 * move / epsilon

    def event(self, move: int, *, scale: Exact) -> Stated:
        return Stated(epsilon=2 * move / scale, delta=0)

    def weights(self, scores: Sequence[int] | Integers, *, scale: Exact) -> list[Enclosure]:
        groups = Counter(int(d) for d in distances(scores).tolist())
        chances = {d: enclose(lambda d=d: _chance(d, groups, scale)) for d in groups}  # type: ignore[misc]
        return [chances[int(d)] for d in distances(scores).tolist()]

    def select(self, scores: Sequence[int] | Integers, *, scale: Exact) -> int:
        return self._draw(scores, scale=scale, bits=SYSTEM)

    def _draw(self, scores: Sequence[int] | Integers, *, scale: Exact, bits: Bits) -> int:
        """The same from these bits."""
        away, heads = distances(scores), Powers(1 / scale)
        shown = []
        for start in range(0, len(away), CHUNK):
            part = away[start : start + CHUNK]
            coins = toss(*heads.bounds(part), lambda i, part=part: heads.exactly(part[i]), bits)  # type: ignore[misc]
            shown.append(start + np.flatnonzero(coins))
        places = np.concatenate(shown)
        return int(places[uniform_below(len(places), bits)])


def _chance(distance: int, groups: Counter[int], scale: Exact) -> arb:
    """The probability that one candidate of this distance is chosen.

    It is p times the integral over t (its place in the order) of the product of 1 - t p_j over the others, 0 <= t <= 1.
    With 1 - t p = (1 - t) + t (1 - p), all terms are positive: e_b times the integral of t^b (1 - t)^(m - b), where e_b
    are the elementary symmetric polynomials of the 1 - p_j.
    """

    def heads(d: int) -> arb:
        return exp_minus(Fraction(d) / scale)

    product, others = arb_poly([1]), -1
    for d, count in groups.items():
        product *= arb_poly([1, 1 - heads(d) if d else 0]) ** (count - (d == distance))
        others += count
    terms = (product[b] * ball(Fraction(1, (others + 1) * math.comb(others, b))) for b in range(product.degree() + 1))
    return heads(distance) * sum(terms, arb(0)) if distance else sum(terms, arb(0))


PERMUTE_AND_FLIP = PermuteAndFlipMechanism()
"""The only instance, because it has no parameters."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class PermuteAndFlip(Selection):
    """Choose a candidate by its score, with an expected score never below that of the exponential mechanism.

    Claim: if neighbouring datasets move each score by at most `sensitivity`, then `select` is epsilon-differentially
    private: candidates are visited in random order, and each is chosen with probability e^((score - best)/scale), scale
    = 2 sensitivity / epsilon (sensitivity / epsilon if monotone, see `Exponential`). It is exactly that. It is not of
    bounded range epsilon, so it must not be accounted for as an exponential mechanism: its event is a pure epsilon.

    `tail` and `error` are those of the exponential mechanism, which are never smaller. Every candidate's coin is
    tossed, whichever is chosen.

    Example:
        >>> mechanism = PermuteAndFlip(sensitivity=1, epsilon=1)
        >>> mechanism.select([3, 60, 5], candidates=["a", "b", "c"])
        'b'
        >>> [float(p) for p in mechanism.probabilities([0, 2])]
        [0.18393972058572117, 0.8160602794142788]

    Reference: McKenna, Sheldon, "Permute-and-flip: a new mechanism for differentially private selection", NeurIPS 2020.
    """

    mechanism: ClassVar[SelectionMechanism] = PERMUTE_AND_FLIP
