"""The counts of keys that appear because their own noisy counts reached a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from flint import arb

from privet.exact import Exact, ball, precision
from privet.exact.search import first
from privet.noise import TruncatedLaplace
from privet.planner import marks
from privet.planner.confidences import USUAL
from privet.planner.linear import Noisy
from privet.planner.noise import Noise
from privet.planner.outputs import Cells, Straight
from privet.system.remembered import remembered

_BITS = 128


@dataclass(frozen=True, slots=True)
class Kept(Straight):
    """A noisy count Y = n + X that is shown only if it is at least a threshold T; only counts of 1 or more get noise.

    Claim: given that a count is shown, its interval is right with probability 1 - a or more, whatever the count n >= 1
    is; and so it is given that it is not marked, which is Y >= L for a line L >= T. For a bound F, the interval of x
    has the n for which neither P(Y >= x | Y >= F) nor P(Y <= x | Y >= F) is at most a/2. Each of the two events has
    probability a/2 at most, given Y >= F. Both chances are monotone in n, since X is log-concave, so this is an
    interval. Below L it is that of F = T. From L on it is the union of those of F = T and F = L.

    So a count close to the threshold says little of how small n is, and its interval says so.
    """

    law: TruncatedLaplace = field(kw_only=True)

    def cells(self, groups: Sequence[Noisy], noise: Noise, confidence: Exact) -> Cells:
        line = max(self.law.threshold, marks.LINE * _half(self.law, max(confidence, USUAL)))
        counts = [int(self.form.value(group)) for group in groups]
        far = line + self.law.highest - self.law.lowest  # from here on, whatever n is, Y >= L is certain
        excluding = _Excluding(self.law, confidence)
        ends = {near: excluding.interval(near, line) for near in {min(x, far) for x in counts}}
        low, high = (tuple(ends[min(x, far)][i] + x - min(x, far) for x in counts) for i in (0, 1))
        return Cells(tuple(counts), low, high, tuple(x < line for x in counts))

    def expected(self, noise: Noise, confidence: Exact, assuming: int | None) -> Exact:
        """A bound on its error at this confidence, given that it is shown, if at least T are counted.

        Claim: then it is shown with a probability of at least 1/2.
        """
        return Exact(_half(self.law, 1 - (1 - confidence) / 2))


@remembered(256)
def _half(law: TruncatedLaplace, confidence: Exact) -> int:
    """An h with P(|X| > h) <= 1 - confidence."""
    beyond = (1 - confidence) / 2
    return max(-law.quantile(beyond), law.quantile(1 - beyond))


class _Excluding:
    """Which counts a noisy count excludes, given that it is at least a bound; what is unsure is not excluded."""

    def __init__(self, law: TruncatedLaplace, confidence: Exact) -> None:
        self.law, self.beyond = law, (1 - confidence) / 2
        self._chances: dict[int, arb] = {}

    def interval(self, x: int, line: int) -> tuple[int, int]:
        bounds = (self.law.threshold, line) if x >= line else (self.law.threshold,)
        with precision(_BITS):
            ends = [self._given(x, bound, ball(self.beyond)) for bound in bounds]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def _given(self, x: int, bound: int, beyond: arb) -> tuple[int, int]:
        def high_enough(n: int) -> bool:
            return not self._at_least(n, x) <= beyond * self._at_least(n, bound)

        def too_high(n: int) -> bool:
            shown = self._at_least(n, bound)
            return bool(shown - self._at_least(n, x + 1) <= beyond * shown)

        low = first(high_enough, max(1, x - self.law.highest))
        return low, max(low, first(too_high, low) - 1)

    def _at_least(self, n: int, y: int) -> arb:
        """P(n + X >= y)."""
        place = self.law.threshold + n - y
        if place not in self._chances:
            self._chances[place] = self.law.shown_ball(place)
        return self._chances[place]
