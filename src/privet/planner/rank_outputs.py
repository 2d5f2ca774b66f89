"""From chosen codes and noisy counts to columns of quantiles, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from privet.exact import Exact, nearest
from privet.planner.cells import Cell, Cells
from privet.planner.linear import Linear, Noisy
from privet.planner.noise import Noise
from privet.planner.ranks import RankMeasurement


@dataclass(frozen=True, slots=True)
class RankedCode:
    """A quantile, a minimum or a maximum: one of the chosen codes of a measurement."""

    measurement: int
    index: int
    """Which of its quantiles, or of its edges."""
    what: RankMeasurement
    is_edge: bool = False
    """Whether it is a minimum or maximum."""

    @property
    def place(self) -> int:
        """Its place among the chosen codes."""
        return self.what.first_edge + self.index if self.is_edge else self.index

    @property
    def q(self) -> Exact:
        """The quantile; 0 for a minimum, 1 for a maximum."""
        return Exact(int(self.what.edges[self.index])) if self.is_edge else self.what.ranks[self.index]

    def measurements(self) -> frozenset[int]:
        return frozenset([self.measurement])

    def cells(self, groups: Sequence[Noisy], noise: Noise, confidence: Exact) -> Cells:
        """The value, and an interval between a code below and one above that the noisy counts prove.

        Claim: with probability `confidence` or more, whatever the data are, the quantile by every usual definition lies
        in the interval: at most q n - 1 rows are below its lower end, or that is the public bound; at least q n + 1
        are not above its upper end, or that is the public bound. Why: let t = rows below the code - q n, and x be the
        same from noisy counts, with error at most h. The code is kept only if x + h <= -1. If t > -1, this needs noise
        beyond h on one side; and so for the other end. Codes nearer to the quantile are tried only after those farther
        away are proved: to err, the first that is wrong must be proved, so there is nothing to correct for. A maximum
        is at least the lower end, if a row is there.
        """
        values = tuple(self._value(group[self.measurement][self.place]) for group in groups)
        if not self.what.counts:  # nothing is known
            many = len(groups)
            return Cells(values, (-math.inf,) * many, (math.inf,) * many, (False,) * many)
        ends = [self._ends(group[self.measurement], noise, confidence) for group in groups]
        bounds = 0, self.what.code.width
        low, high = ([bounds[side] if end[side] is None else end[side] for end in ends] for side in (0, 1))
        noisy = tuple(self._is_noisy(end) for end in ends)
        return Cells(values, tuple(map(self._value, low)), tuple(map(self._value, high)), noisy)  # type: ignore[arg-type]

    def _is_noisy(self, ends: tuple[int | None, int | None]) -> bool:
        """Whether the counts prove too little: not every end, or an interval over more than half of the range."""
        low, high = ends
        unproved = low is None and high is None if self.is_edge else low is None or high is None
        width = self.what.code.width
        return unproved or 2 * ((width if high is None else high) - (low or 0)) > width

    def _value(self, code: int) -> Cell:
        exactly = self.what.code.lower + self.what.code.step * code
        whole = self.what.code.lower.denominator == self.what.code.step.denominator == 1
        return int(exactly) if whole else nearest(exactly)

    def _ends(self, vector: Sequence[int], noise: Noise, confidence: Exact) -> tuple[int | None, int | None]:
        """The codes of both ends; None where the counts do not prove one."""
        thresholds = self.what.thresholds(vector)
        if self.is_edge:
            first = 1 + thresholds.index(self.what.edge(vector, self.index))
            proved = self._proved(vector, first, noise, confidence, above=self.q == 0)
            code = vector[self.place] if proved else None
            return (None, code) if self.q == 0 else (code, None)
        below, above = self.what.ends(vector, self.index)
        least = most = None
        for low in below:
            if not self._proved(vector, 1 + thresholds.index(low), noise, confidence, above=False):
                break
            least = low
        for high in above:
            if not self._proved(vector, 1 + thresholds.index(high + 1), noise, confidence, above=True):
                break
            most = high
        return least, most

    def _proved(self, vector: Sequence[int], first: int, noise: Noise, confidence: Exact, *, above: bool) -> bool:
        """Whether the first few counts together are less than q n by 1 or more; or more than it, if `above`."""
        q, start = self.q, len(self.what.steps)
        weights = [(1 if i < first else 0) - q for i in range(self.what.counts)]
        form = Linear(tuple((self.measurement, start + i, w) for i, w in enumerate(weights) if w))
        x = sum((w * count for w, count in zip(weights, vector[start:], strict=True)), Exact(0))
        margin = noise.error(form, confidence)
        return x - margin >= 1 if above else x + margin <= -1

    def expected(self, noise: Noise, confidence: Exact, assuming: int | None) -> Exact | None:
        """Unknown: it depends on how close the values are to each other."""
        return None

    def allowed(self, error: Exact, noise: Noise, confidence: Exact, assuming: int | None) -> Exact | None:
        return None
