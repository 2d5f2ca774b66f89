"""Quantiles, minimum and maximum of one expression: one table of choices for all of them, where that is more accurate.

Three quantiles need two levels of choices together, and three choices one by one; a minimum and a maximum are chosen
on one level beside a quantile; and one vector of counts proves all intervals. Errors are compared as in `design`:
relative to each aggregate alone at full price.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from privet.exact import Exact
from privet.mechanisms.splitting import levels, steps_of
from privet.planner.ranks import RankMeasurement
from privet.tables.ranked import FINEST, MOST_QUANTILES, Extreme, Quantiles, Ranked
from privet.tables.statement import Code


@dataclass(frozen=True, slots=True)
class Joint:
    """One measurement for some aggregates of an expression, and the worst of their relative errors."""

    measurement: RankMeasurement
    answers: tuple[Ranked, ...]
    error: float


def joints(asked: Mapping[Ranked, Exact], code: Code, power: int) -> list[Joint]:
    """The measurements for these aggregates of one expression, with their weights.

    Claim: the best of three ways is taken, which is known before data are read: each on its own, all quantiles
    together, or all of them together. Errors fall with the price (power 1) or with its root (2).
    """
    found = []
    for interval in (True, False):
        some = {each: weight for each, weight in asked.items() if each.interval is interval}
        ways = [[_joint(part, some, code, power) for part in way] for way in _ways(list(some))]
        if ways:
            found += min(ways, key=lambda way: round(sum(joint.error**power for joint in way), 6))
    return found


def _ways(asked: Sequence[Ranked]) -> Iterator[list[tuple[Ranked, ...]]]:
    """Ways to measure these aggregates: lists of those that are measured together."""
    if not asked:
        return
    yield [(each,) for each in asked]
    quantiles = tuple(each for each in asked if isinstance(each, Quantiles))
    if quantiles and _fit(quantiles):
        yield [quantiles, *((each,) for each in asked if each not in quantiles)]
        yield [tuple(asked)]


def _fit(quantiles: Sequence[Quantiles]) -> bool:
    """Whether they can be one aggregate."""
    ranks = _ranks(quantiles)
    return len(ranks) <= MOST_QUANTILES and math.lcm(*(rank.denominator for rank in ranks)) <= FINEST


def _ranks(asked: Sequence[Ranked]) -> tuple[Exact, ...]:
    return tuple(sorted({rank for each in asked if isinstance(each, Quantiles) for rank in each.ranks}))


def _measurement(asked: Sequence[Ranked], code: Code) -> RankMeasurement:
    depth = min((_depth(each) for each in asked if isinstance(each, Quantiles)), default=1)
    edges = tuple(sorted({each.largest for each in asked if isinstance(each, Extreme)}))
    return RankMeasurement(code, _ranks(asked), edges, asked[0].interval, depth)


def _depth(one: Ranked) -> int:
    """The number of levels that choose what it asks for."""
    return 1 if isinstance(one, Extreme) else levels(steps_of(one.ranks, sides=False))


def _joint(asked: tuple[Ranked, ...], weights: Mapping[Ranked, Exact], code: Code, power: int) -> Joint:
    made = _measurement(asked, code)
    if len(asked) == 1:
        return Joint(made, asked, float(weights[asked[0]]))
    whole = _norm(made, power)
    errors = [
        float(weights[each]) * made.depth / _depth(each) * whole / _norm(_measurement([each], code), power)
        for each in asked
    ]
    return Joint(made, asked, max(errors))


def _norm(measured: RankMeasurement, power: int) -> float:
    """What all of the price is, in units of the shares of its levels."""
    return math.pow(sum(math.pow(weight, power) for weight in measured.weights()), 1 / power)
