"""What the bare selection mechanisms have in common: scores in, one candidate out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from privet.errors import NumberError, write
from privet.exact import Enclosure, Exact, Number, ball, enclose, exact, positive, probability, show, up, whole
from privet.mechanisms.base import SelectionMechanism
from privet.mechanisms.profiles import BoundedRangeProfile, PureProfile
from privet.mechanisms.scores import pick, read_scores, whole_scores
from privet.privacy.accounting import PureAccountant
from privet.privacy.events import BoundedRange, Stated
from privet.privacy.guarantees import PureDP


@dataclass(frozen=True, slots=True, init=False)
class Selection:
    """The choice of one candidate by scores that neighbouring datasets move by at most `sensitivity` each.

    `monotone=True` promises that between two neighbours no score rises while another falls; then half of the noise
    suffices. Counts are monotone if a person is added or removed. They are not if a person is replaced.
    """

    sensitivity: Exact
    epsilon: Exact
    monotone: bool

    mechanism: ClassVar[SelectionMechanism]
    integers: ClassVar[bool] = False
    """Whether scores must be integers."""

    def __init__(self, *, sensitivity: Number, epsilon: Number, monotone: bool = False) -> None:
        example = f"{type(self).__name__}(sensitivity=1, epsilon=0.5)"
        if not isinstance(monotone, bool):
            raise NumberError(f"monotone must be True or False, not {monotone!r}", remedy=write("monotone=True"))
        object.__setattr__(self, "sensitivity", positive(sensitivity, name="sensitivity", example=example))
        object.__setattr__(self, "epsilon", positive(epsilon, name="epsilon", example=example))
        object.__setattr__(self, "monotone", monotone)
        self.event()  # refuses what a ledger could not store, before any data are read

    def __repr__(self) -> str:
        direction = ", monotone=True" if self.monotone else ""
        return f"{type(self).__name__}(sensitivity={show(self.sensitivity)}, epsilon={show(self.epsilon)}{direction})"

    # --- what it costs --------------------------------------------------------------------------

    @property
    def scale(self) -> Exact:
        """The difference of scores that counts as one unit: 2 sensitivity / epsilon, or half of it if monotone."""
        return (1 if self.monotone else 2) * self.sensitivity / self.epsilon

    def event(self) -> BoundedRange | Stated:
        """The event of a choice, for accountants."""
        return Stated(epsilon=self.epsilon, delta=0)

    def guarantee(self) -> PureDP:
        """The guarantee of one choice."""
        return PureAccountant().account(self.event())

    def privacy_profile(self) -> PureProfile | BoundedRangeProfile:
        """Epsilon -> delta, an upper bound for all neighbours."""
        return PureProfile(self.epsilon)

    # --- the choice -----------------------------------------------------------------------------

    def select(self, scores: Any, candidates: Sequence[Any] | None = None) -> Any:
        """One candidate, or its position if no candidates are given. Their number is public, the scores are not."""
        numbers, scale = self._read(scores)
        chosen = pick(candidates, len(numbers))
        return chosen[self.mechanism.select(numbers, scale=scale)]

    def count(self, scores: Any) -> int:
        """The number of candidates that these scores are for; what `select` refuses is refused here, too."""
        return len(self._read(scores)[0])

    def probabilities(self, scores: Any) -> list[Enclosure]:
        """The probability of each candidate, enclosed; for tests and explanations, since scores are private."""
        numbers, scale = self._read(scores)
        return list(self.mechanism.weights(numbers, scale=scale))

    def _read(self, scores: Any) -> tuple[Any, Exact]:
        if self.integers:
            return whole_scores(scores, name="scores", example="select([3, 5, 4])"), self.scale
        content = read_scores(scores)
        return content.integers, self.scale * content.denominator

    # --- its accuracy ---------------------------------------------------------------------------

    def tail(self, t: Number, *, candidates: int) -> float:
        """At least P(best score - chosen score >= t), whatever the scores of this many candidates; rounded up."""
        gap = exact(t, name="t", example="tail(10, candidates=5)")
        return min(1.0, up(self._tail(gap, _number(candidates)).upper))

    def _tail(self, gap: Exact, candidates: int) -> Enclosure:
        """The worst scores of the exponential mechanism: one best, and all others worse by exactly the gap."""
        if gap <= 0 or candidates == 1:
            return Enclosure(Fraction(gap <= 0), Fraction(gap <= 0))
        return enclose(lambda: 1 / (1 + ball(gap / self.scale).exp() / (candidates - 1)))

    def error(self, confidence: Number = 0.95, *, candidates: int) -> float:
        """The chosen score is at most this much below the best, with this confidence; rounded up."""
        level = probability(confidence, name="confidence", example="error(0.95, candidates=5)")
        odds = (_number(candidates) - 1) * level / (1 - level)
        return up(self.scale * enclose(lambda: ball(odds).log()).upper) if odds > 1 else 0.0

    def with_epsilon(self, epsilon: Number) -> Self:
        """The same mechanism at another epsilon."""
        return type(self)(sensitivity=self.sensitivity, epsilon=epsilon, monotone=self.monotone)


def _number(candidates: int) -> int:
    return whole(candidates, name="candidates", example="error(0.95, candidates=5)")
