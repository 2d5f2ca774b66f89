"""The search for neighbours that move a choice by rank further than its plan claims. Noise off.

For every candidate value, the distance from the aimed rank is computed from the definition, over the codes that the
engine counts. What groups move by, each at its worst candidate, must add up to no more than the claim: so much do the
bounded ranges of all groups add up to.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from random import Random

from tests.neighbours.exact import Bench
from tests.neighbours.questions import Asker, relation
from tests.neighbours.worlds import Data, World, star, world

import privet as pv
from privet.errors import UserError
from privet.mechanisms.ranks import TIES, distance_moved
from privet.mechanisms.splitting import Step
from privet.planner import ReleasePlan, plan
from privet.planner.ranks import ChosenRanks
from privet.privacy.adjacency import Adjacency
from privet.tables.ranked import Ranked
from privet.tables.statement import Buckets

Groups = list[list[int]]
"""The codes of each group, sorted."""
Claim = Callable[[ChosenRanks, Step], Fraction]


def asked(chance: Random, of: World) -> ReleasePlan | None:
    """A question for quantiles, or for a minimum or maximum."""
    try:
        rows = relation(chance, of, {name: table.relation for name, table in of.tables.items()})
        asker = Asker(chance, dict(rows.input.types()))
        value = asker.number(1)
        several: list[Ranked] = [pv.median(value), pv.min(value), pv.max(value), pv.quantiles(value, [0.25, 0.5, 0.9])]
        several += [pv.quantile(value, q) for q in ("0.1", "0.9", "1/3")]
        what = chance.choice(several)
        made = rows.group_by(k=asker.key()).agg(a=what) if chance.random() < 0.4 else rows.agg(a=what)
        found = plan(made, epsilon=1)
        return found if found.groups <= 40 else None
    except UserError:
        return None


def codes(bench: Bench, of: ReleasePlan) -> Groups:
    (statement,) = of.statements()
    counted = bench.engine.histograms(statement, Buckets(0))
    return [sorted(code for code, many in group.items() for _ in range(many)) for group in counted]


def distance(rows: list[int], code: int, step: Step, reach: int) -> int:
    """Times the denominator of q."""
    b = step.q.denominator
    target = step.q.numerator * len(rows) + b * step.side * reach
    return max(0, b * bisect_left(rows, code) - target, target - b * bisect_right(rows, code))


def moved(one: Groups, other: Groups, step: Step, part: ChosenRanks) -> Fraction:
    """What all groups move by, each at its worst candidate."""
    total = 0
    for left, right in zip(one, other, strict=True):
        if left == right:
            continue
        near = {c + d for c in (*left, *right) for d in (-1, 0, 1)} | {0, part.measurement.code.width}
        total += max(
            abs(distance(left, c, step, part.away(step)) - distance(right, c, step, part.away(step)))
            for c in near
            if 0 <= c <= part.measurement.code.width
        )
    return Fraction(total, step.q.denominator)


def parts(rows: list[int], code: int, j: int, *, both: bool) -> tuple[Counter[int], Counter[int]]:
    """The rows on the two sides of a candidate (code, j); `both` is a broken twin: equal rows are on both sides."""
    below, upto = bisect_left(rows, code), bisect_right(rows, code)
    split = below + (upto - below) * j // TIES
    return Counter(rows[: upto if both else split]), Counter(rows[below if both else split :])


def apart(one: Counter[int], other: Counter[int]) -> int:
    return (one - other).total() + (other - one).total()


def pairs(number: int) -> Iterator[tuple[World, ReleasePlan, ChosenRanks, Groups, Groups]]:
    """A world's questions, with what the engine counts for neighbours."""
    chance = Random(number)
    made = world(chance)
    plans = [each for each in (asked(chance, made) for _ in range(3)) if each is not None]
    around = star(chance, made, 2)
    tables: list[Data] = around.tables()
    with Bench(made) as bench:
        for each in plans:
            if bench.engine.supports(each.statements()[0]) is not None:
                continue
            seen = []
            for data in tables:
                bench.put(data)
                seen.append(codes(bench, each))
            (part,) = each.noised
            assert isinstance(part, ChosenRanks)
            for i, j in around.pairs():
                yield made, each, part, seen[i], seen[j]


def claimed(part: ChosenRanks, step: Step) -> Fraction:
    return part.moved(step)


def added_or_removed(part: ChosenRanks, step: Step) -> Fraction:
    """A broken twin: the rule of add/remove, whatever the adjacency is."""
    return distance_moved(step.q, rows=part.rows, adjacency=Adjacency.ADD_REMOVE, alone=True)


def search(
    worlds: Iterable[int], claim: Claim = claimed, *, both: bool = False, stop: bool = False
) -> tuple[int, int, float]:
    """How many pairs were seen, how many move further than claimed, and the largest part of a claim that was seen."""
    cases, violations, reached = 0, 0, 0.0
    for number in worlds:
        chance = Random(number)
        for _, _, part, one, other in pairs(number):
            cases += 1
            root = part.measurement.steps[0]  # the others look at parts of these rows
            share = moved(one, other, root, part) / claim(part, root)
            reached = max(reached, float(share))
            bad = share > 1
            for left, right in zip(one, other, strict=True):
                code = chance.choice([*left, *right, 0])
                j = chance.choice([0, TIES // 2, TIES - 1, chance.randrange(TIES)])
                a, b = (parts(rows, code, j, both=both) for rows in (left, right))
                whole = apart(Counter(left), Counter(right))
                bad |= sum(apart(x, y) for x, y in zip(a, b, strict=True)) > whole
            violations += bad
            if bad and stop:
                return cases, violations, reached
    return cases, violations, reached


def test_no_neighbour_moves_a_choice_further_than_claimed(effort: int) -> None:
    cases, violations, reached = search(range(5 * effort))
    assert cases > 8
    assert violations == 0
    assert reached > 0.5  # 1 over more worlds


def test_broken_twins_are_found() -> None:
    assert search(range(25), added_or_removed, stop=True)[1]
    assert search(range(25), both=True, stop=True)[1]
