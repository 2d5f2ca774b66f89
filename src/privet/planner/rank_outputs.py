"""From chosen codes and noisy counts to columns of quantiles, with their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, takewhile

from privet.exact import Exact, nearest
from privet.planner.cells import Cell, Cells
from privet.planner.confidences import USUAL, careful
from privet.planner.linear import Noisy
from privet.planner.noise import Noise
from privet.planner.ranks import RankMeasurement

FAR_INSIDE = 4
"""An unmarked minimum or maximum aims inside by at most one in so many of the rows."""


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

        Which of them are marked is in `_proofs`.
        """
        values = tuple(self._value(group[self.measurement][self.place]) for group in groups)
        if not self.what.counts:  # nothing is known
            many = len(groups)
            return Cells(values, (-math.inf,) * many, (math.inf,) * many, (False,) * many)
        proofs = self._proofs(noise, confidence)
        found = [proofs(group[self.measurement]) for group in groups]
        low, high, noisy = zip(*found, strict=True) if found else ((), (), ())
        bounds = 0, self.what.code.width
        ends = [[bounds[side] if end is None else end for end in some] for side, some in enumerate((low, high))]
        return Cells(values, tuple(map(self._value, ends[0])), tuple(map(self._value, ends[1])), noisy)

    def _value(self, code: int) -> Cell:
        exactly = self.what.code.lower + self.what.code.step * code
        whole = self.what.code.lower.denominator == self.what.code.step.denominator == 1
        return int(exactly) if whole else nearest(exactly)

    def _proofs(
        self, noise: Noise, confidence: Exact
    ) -> Callable[[Sequence[int]], tuple[int | None, int | None, bool]]:
        """From codes and counts: both ends, None where the counts do not prove one; whether they prove too little.

        An answer without a mark needs evidence: the farthest code on each side is proved at the confidence 1 - a^2,
        a = 1 - confidence (0.05 at most). Nearer codes are then proved at 1 - a^2 too, unless both farthest ones are
        beyond their lines by h, the margin at 1 - a, or more: then at 1 - a. What is proved at 1 - a^2 must not cover
        more than half of the range. A minimum or maximum aims some ranks inside: the group must have FAR_INSIDE times
        as many rows, beyond the margin, or it may be nearer to the median than to the edge.

        Claim: let U: the answer is unmarked. A minimum or maximum is wrong and unmarked with probability a^2/2 at most
        on any data: given U, it is right with probability 1 - a/2 or more wherever P(U) >= a. So is a quantile that is
        less than h above a line, with a^2. If the true count of a side is not beyond its line, at most a share a of its
        noisy counts that are beyond it are so by h, since noise is log-concave; else at least half of its noisy counts
        are beyond it. So with one side in doubt, it is wrong with probability 2 a at most, given U, wherever
        P(U) >= a. With both sides in doubt this is measured (`./dev bench kinds`), not proved.
        """
        usual = max(confidence, USUAL)
        at_line, beyond_line = (careful(usual),), (careful(usual), usual)
        start, counts, q, width = len(self.what.steps), self.what.counts, self.q, self.what.code.width

        def several(weights: Sequence[Exact], times: Sequence[int], level: Exact) -> Exact:
            """The error of a sum of counts, so many times with each weight."""
            scales = [noise.scales[self.measurement]] * len(weights)
            return noise.mechanism.error_of_sum(weights, scales, level, times)

        @cache
        def needed(first: int, levels: tuple[Exact, ...]) -> int:
            """What the first few counts together must differ from q n by, times q's denominator: 1, and the errors."""
            errors = (several((1 - q, q), (first, counts - first), level) for level in levels)
            return math.ceil((1 + sum(errors)) * q.denominator)

        @cache
        def rows_error() -> Exact:
            """The error of the number of rows in a group."""
            return several((Exact(1),), (counts,), usual)

        def proofs(vector: Sequence[int]) -> tuple[int | None, int | None, bool]:
            thresholds = self.what.thresholds(vector)
            total, upto = sum(vector[start:]), list(accumulate(vector[start:], initial=0))

            def proved(first: int, *levels: Exact, above: bool) -> bool:
                x = q.denominator * upto[first] - q.numerator * total
                return (x if above else -x) >= needed(first, levels)

            if self.is_edge:
                first, above = 1 + thresholds.index(self.what.edge(vector, self.index)), q == 0
                code = vector[self.place] if proved(first, confidence, above=above) else None
                few = total - rows_error() < FAR_INSIDE * noise.inside[self.measurement]
                noisy = few or not proved(first, *at_line, above=above)
                wide = 2 * (vector[self.place] if above else width - vector[self.place]) > width
                return (None, code, noisy or wide) if above else (code, None, noisy or wide)
            sides = [
                [(code, 1 + thresholds.index(code + side)) for code in codes]
                for side, codes in enumerate(self.what.ends(vector, self.index))
            ]
            noisy, near = (
                not all(proved(codes[0][1], *levels, above=bool(side)) for side, codes in enumerate(sides))
                for levels in (at_line, beyond_line)
            )
            level = careful(confidence) if near and not noisy else confidence

            def nearest_proved(side: int, level: Exact) -> int | None:
                kept = [code for code, _ in takewhile(lambda one: proved(one[1], level, above=bool(side)), sides[side])]
                return kept[-1] if kept else None

            sure = [nearest_proved(side, *at_line) for side in (0, 1)]
            wide = sure[0] is None or sure[1] is None or 2 * (sure[1] - sure[0]) > width
            return nearest_proved(0, level), nearest_proved(1, level), noisy or wide

        return proofs

    def expected(self, noise: Noise, confidence: Exact, assuming: int | None) -> Exact | None:
        """Unknown: it depends on how close the values are to each other."""
        return None

    def allowed(self, error: Exact, noise: Noise, confidence: Exact, assuming: int | None) -> Exact | None:
        return None
