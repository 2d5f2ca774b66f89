"""Choices by rank and their noise, drawn in floating point: many draws of one group, fast.

The weights are those of `RankChoice.runs`, as a release has them; only the random numbers are not exact. A choice is
drawn once for many draws of noise, since it is the noise that makes an answer look proved.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from privet.mechanisms.ranks import CodeCounts, Node, Runs
from privet.planner import ReleasePlan
from privet.planner.rank_outputs import RankedCode
from privet.planner.ranks import ChosenRanks

Vector = tuple[int, ...]
"""The chosen codes, then the noisy counts."""


def vectors(
    part: ChosenRanks, values: Sequence[int], rng: np.random.Generator, *, choices: int, noises: int
) -> Iterator[Vector]:
    """Draws of one group with these values, in the unit of the column."""
    code = part.measurement.code
    codes = Counter(int((value - code.lower) / code.step) for value in values)
    counts = CodeCounts.of(codes, shift=0, width=code.width, known={})
    known: dict[tuple[Node, int], tuple[Runs, np.ndarray]] = {}
    for _ in range(choices):
        made: list[tuple[int, int] | None] = [None] * len(part.measurement.steps)
        for step in part.measurement.steps:
            choice = step.choice(
                made, width=code.width, total=counts.total, reach=part.away(step), rate=part.rate(step)
            )
            if (key := (choice.node, step.place)) not in known:
                runs = choice.runs(counts)
                known[key] = runs, np.cumsum(np.exp(-float(runs.rate) * runs.distance) * runs.members)
            runs, upto = known[key]
            at = int(np.searchsorted(upto, rng.random() * upto[-1]))
            made[step.place] = int(runs.first[at]) + int(rng.integers(int(runs.codes[at]))), int(runs.rank[at])
        chosen = tuple(one[0] for one in made if one is not None)
        below = [0, *(counts.below(each) for each in part.measurement.thresholds(chosen)), counts.total]
        exact = np.array([after - before for before, after in pairwise(below)])
        p = -math.expm1(-1 / float(part.scale))  # discrete Laplace: a difference of two geometric numbers
        noise = rng.geometric(p, (noises, len(exact))) - rng.geometric(p, (noises, len(exact)))
        yield from ((*chosen, *row) for row in (exact + noise).tolist())


def judged(
    plan: ReleasePlan, values: Sequence[int], rng: np.random.Generator, *, choices: int, noises: int
) -> dict[str, list[tuple[bool, bool]]]:
    """For each column of an answer about these values: whether each interval holds, and whether it is unmarked.

    A quantile holds if the interval contains it by every usual definition. Without rows there is none: an unmarked
    answer is wrong.
    """
    found: dict[str, list[tuple[bool, bool]]] = {}
    for place, part in enumerate(plan.noised):
        assert isinstance(part, ChosenRanks)
        drawn = list(vectors(part, values, rng, choices=choices, noises=noises))
        groups = [tuple(vector if i == place else () for i in range(len(plan.noised))) for vector in drawn]
        for name, output in plan.columns:
            assert isinstance(output, RankedCode)
            if output.measurement == place:
                cells = output.cells(groups, plan.noise, plan.confidence)
                ends = usual_definitions(output, values)
                found[name] = [
                    (marked if ends is None else low <= ends[0] and ends[1] <= high, not marked)
                    for low, high, marked in zip(cells.low, cells.high, cells.noisy, strict=True)
                ]
    return found


def usual_definitions(output: RankedCode, values: Sequence[int]) -> tuple[int, int] | None:
    """The least and the greatest that a quantile of these values can be; None if there are none."""
    if not values:
        return None
    rows, q = sorted(values), output.q
    if output.is_edge:
        return (rows[-1], rows[-1]) if q else (rows[0], rows[0])
    return rows[max(0, math.ceil(q * len(rows)) - 1)], rows[min(len(rows) - 1, math.floor(q * len(rows)))]
