"""The exponential mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from privet.exact import Enclosure, Exact
from privet.exact.lattice import Integers
from privet.mechanisms.base import SelectionMechanism
from privet.mechanisms.profiles import BoundedRangeProfile
from privet.mechanisms.scores import distances
from privet.mechanisms.selection import Selection
from privet.noise.choice import WeightedChoice
from privet.noise.entropy import SYSTEM, Bits
from privet.privacy.events import BoundedRange


@dataclass(frozen=True, slots=True)
class ExponentialMechanism:
    """A choice with weights e^(score / scale), used by tables and by the bare `Exponential`.

    Claim: a choice has bounded range 2 move / scale if one unit moves each score by at most `move`.
    """

    name: ClassVar[str] = "exponential/1"

    def scale(self, move: int, *, epsilon: Exact) -> Exact:
        return 2 * move / epsilon

    def event(self, move: int, *, scale: Exact) -> BoundedRange:
        return BoundedRange(epsilon=2 * move / scale)

    def weights(self, scores: Sequence[int] | Integers, *, scale: Exact) -> list[Enclosure]:
        return WeightedChoice(distances(scores), rate=1 / scale).probabilities()

    def select(self, scores: Sequence[int] | Integers, *, scale: Exact) -> int:
        return self._draw(scores, scale=scale, bits=SYSTEM)

    def _draw(self, scores: Sequence[int] | Integers, *, scale: Exact, bits: Bits) -> int:
        """The same from these bits."""
        return WeightedChoice(distances(scores), rate=1 / scale).draw(bits)


EXPONENTIAL = ExponentialMechanism()
"""The only instance, because it has no parameters."""


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Exponential(Selection):
    """Choose a candidate by its score: each point of score makes it e^(1/scale) times as likely.

    Claim: if neighbouring datasets move each score by at most `sensitivity`, then `select` is epsilon-differentially
    private, and a choice of bounded range epsilon, which composes better. Candidate i has probability e^(score_i/scale)
    / (the sum over all), scale = 2 sensitivity / epsilon, exactly. Why: a neighbour changes each log weight by at most
    sensitivity / scale, up or down, and the same normalisation is added to all: the log ratios lie in an interval of
    length 2 sensitivity / scale.

    With `monotone=True` (no score rises while another falls) the scale is sensitivity / epsilon: the changes then lie
    in [0, sensitivity / scale] or in [-sensitivity / scale, 0]. This holds for counts under add/remove. It does not
    hold for them under replace, where one count falls and another rises.

    The work does not depend on the choice, except with a probability below 2^-20 for a million candidates.

    Example:
        >>> mechanism = Exponential(sensitivity=1, epsilon=1)
        >>> mechanism.select([3, 40, 5], candidates=["a", "b", "c"])
        'b'
        >>> [float(p) for p in mechanism.probabilities([0, 2])], mechanism.event()
        ([0.2689414213699951, 0.7310585786300049], BoundedRange(epsilon=Fraction(1, 1)))

    Reference: McSherry, Talwar, "Mechanism design via differential privacy", FOCS 2007; Durfee, Rogers 2019.
    """

    mechanism: ClassVar[SelectionMechanism] = EXPONENTIAL

    def event(self) -> BoundedRange:
        """The event of a choice, for accountants."""
        return BoundedRange(epsilon=self.epsilon)

    def privacy_profile(self) -> BoundedRangeProfile:
        """Epsilon -> delta, an upper bound for all neighbours.

        Example:
            >>> float(Exponential(sensitivity=1, epsilon=1).privacy_profile()(0))
            0.24491866240370913
        """
        return BoundedRangeProfile(self.epsilon)
