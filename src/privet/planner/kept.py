"""The counts of keys that appear because their own noisy counts reached a threshold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from privet.exact import Exact
from privet.planner import marks
from privet.planner.linear import Noisy
from privet.planner.noise import Noise
from privet.planner.outputs import Cells, Straight


@dataclass(frozen=True, slots=True)
class Kept(Straight):
    """A noisy count that is shown only if it is at least a threshold T; only counts of 1 or more get noise.

    Claim: given that a count is shown, its interval is right with probability 1 - a or more, whatever the count n >= 1
    is. Let h be the half width at 1 - a/2, so P(|Z| > h) <= a/2 for the discrete Laplace noise Z, and let L >= T be the
    line below which counts are marked. The interval of x is x - h..x + h if x > L + h, else 1..x + h.

    If n >= T, x >= T has probability 1/2 or more, so it misses with a at most. If n < T, then x >= T > n is never too
    low; and given x >= T, x - T has a geometric law that does not depend on n (noise has no memory): x > L + h >= T + h
    has probability P(|Z| > h) (1 + r)/2 <= a/2. The same with L in place of T holds given that it is not marked.

    So a count close to the threshold says little of how small n is, and its interval says so.
    """

    threshold: int = field(kw_only=True)

    def cells(self, groups: Sequence[Noisy], noise: Noise, confidence: Exact) -> Cells:
        half = math.ceil(noise.half_width(self.form, _halved(confidence)))
        usual = marks.usual_error(self.form, noise, confidence)
        line = max(self.threshold, math.ceil(marks.LINE * usual))
        counts = [int(self.form.value(group)) for group in groups]
        low = tuple(x - half if x > line + half else 1 for x in counts)
        return Cells(tuple(counts), low, tuple(x + half for x in counts), tuple(x < line for x in counts))

    def expected(self, noise: Noise, confidence: Exact, assuming: int | None) -> Exact:
        """A bound on its error at this confidence, given that it is shown, if at least the threshold are counted."""
        return Straight(self.form, self.integer).expected(noise, _halved(confidence), assuming)


def _halved(confidence: Exact) -> Exact:
    return 1 - (1 - confidence) / 2
