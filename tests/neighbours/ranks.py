"""The search for neighbours that move choices by rank further than a plan claims. Noise off.

All choices of a plan are followed, level by level: what is chosen is some candidate that both tables have, and each
table then splits its own rows there. By how much the distances of all candidates move is computed from the definition.
A choice has the bounded range rate * (largest - smallest change of a distance). What the choices of a level add up to,
over nodes and groups, must be no more than the epsilon of that level. The counts beside them must keep to their move.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

from tests.moves import keeps_to
from tests.neighbours.crowds import crowd
from tests.neighbours.exact import Bench
from tests.neighbours.findings import Findings, tables_around, through
from tests.neighbours.further import sometimes_lowered
from tests.neighbours.questions import Asker, relation
from tests.neighbours.worlds import World

import privet as pv
from privet.errors import UserError
from privet.exact import Exact
from privet.mechanisms import GAUSSIAN
from privet.mechanisms.ranks import TIES, CodeCounts
from privet.mechanisms.splitting import Chosen, Step
from privet.planner import ReleasePlan, plan
from privet.planner.ranks import ChosenRanks
from privet.tables.ranked import Ranked
from privet.tables.statement import Buckets, Statement, counted_code

QUESTIONS, FORMS = 3, 5
MOST_GROUPS = 40

Groups = list[list[int]]
"""The codes of each group, sorted."""
Claim = Callable[[ChosenRanks, Step], Fraction]
Asked = Callable[[Statement], Statement]


# --- questions --------------------------------------------------------------------------------------------

RANKS = ("1/1000", "0.01", "0.1", "1/3", "0.5", "0.9", "0.99", "999/1000")


def ranked(chance: Random, value: Any) -> Ranked:
    """Quantiles, or a minimum or maximum, with an interval or without."""
    interval = chance.random() < 0.5
    match chance.randrange(5):
        case 0:
            return pv.min(value, interval=interval)
        case 1:
            return pv.max(value, interval=interval)
        case 2:
            return pv.quantile(value, chance.choice(RANKS), interval=interval)
    some = sorted(chance.sample(RANKS, chance.randint(2, 5)), key=lambda q: Exact(q))
    return pv.quantiles(value, some, interval=interval)


def asked(chance: Random, of: World) -> ReleasePlan | None:
    """A question by ranks and its plan: of one or two values, perhaps in groups, perhaps with a cap."""
    try:
        plain = chance.random() < 0.5  # all rows, and a column as it is: many rows in a group
        tables = {name: table.relation for name, table in of.tables.items()}
        rows = tables["one"] if plain else relation(chance, of, tables)
        asker = Asker(chance, dict(rows.input.types()))
        values = [asker.number(0 if plain else 1) for _ in range(chance.choice([1, 1, 1, 2]))]
        several: dict[str, Any] = {f"a{i}": ranked(chance, value) for i, value in enumerate(values)}
        if chance.random() < 0.3:  # answered by one table of choices
            several["b"] = ranked(chance, values[0])
        if chance.random() < 0.2:
            several["n"] = pv.count()
        keys = {f"k{i}": asker.key() for i in range(chance.choice([0, 0, 1] if plain else [0, 1, 2]))}
        made = (rows.group_by(**keys) if keys else rows).agg(**several)
        price: dict[str, Any] = chance.choice(
            [{"epsilon": 1}, {"epsilon": 100}, {"epsilon": 30}, {"rho": "1/2"}, {"rho": 200}]
        )  # the more, the nearer to an edge or a quantile
        found = plan(sometimes_lowered(chance, made), **price)
        return found if found.groups <= MOST_GROUPS else None
    except UserError:
        return None


# --- what is counted --------------------------------------------------------------------------------------


def codes(bench: Bench, of: ReleasePlan, asked: Asked = lambda of: of) -> list[Groups]:
    """The codes of each statement that chooses by rank."""
    return [
        [sorted(code for code, many in group.items() for _ in range(many)) for group in counted]
        for statement in of.statements()[of.summed :]
        for counted in [bench.engine.histograms(asked(statement), Buckets(0))]
    ]


def bucketed(bench: Bench, of: ReleasePlan, found: list[Groups], chance: Random) -> bool:
    """Whether buckets of codes, and the codes of some buckets, are those of all codes."""
    for statement, groups in zip(of.statements()[of.summed :], found, strict=True):
        shift = chance.randrange(counted_code(statement).width.bit_length())
        whole = [_counted(code >> shift for code in group) for group in groups]
        if bench.engine.histograms(statement, Buckets(shift)) != whole:
            return False
        every = [(g, bucket) for g, group in enumerate(whole) for bucket in group]
        wanted = frozenset(chance.sample(every, len(every) // 2))
        some = [_counted(c for c in group if (g, c >> shift) in wanted) for g, group in enumerate(groups)]
        if wanted and bench.engine.histograms(statement, Buckets(0, wanted, shift)) != some:
            return False
    return True


def _counted(values: Iterable[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for value in values:
        found[value] = found.get(value, 0) + 1
    return found


# --- choices ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Node:
    """The rows that a choice looks at, sorted, and the codes that can be chosen."""

    rows: list[int]
    start: int
    low: int
    high: int

    def split(self, code: int, j: int) -> int:
        """The rank at which a candidate splits these rows."""
        below, upto = bisect_left(self.rows, code), bisect_right(self.rows, code)
        return below + (upto - below) * j // TIES

    def distance(self, code: int, j: int, step: Step, reach: int) -> int:
        """Of a candidate from the aimed rank, times the denominator of q."""
        b = step.q.denominator
        target = step.q.numerator * len(self.rows) + b * step.side * reach
        if step.split:
            return abs(b * self.split(code, j) - target)
        return max(0, b * bisect_left(self.rows, code) - target, target - b * bisect_right(self.rows, code))


def node(rows: list[int], step: Step, chosen: Sequence[Chosen | None], width: int, *, both: bool = False) -> Node:
    """The rows between the chosen neighbours of a step; `both` is a broken twin: ties are on both sides."""
    low, start = (0, 0) if step.left is None else chosen[step.left] or (0, 0)
    high, end = (width, len(rows)) if step.right is None else chosen[step.right] or (width, len(rows))
    if both:
        start = 0 if step.left is None else bisect_left(rows, low)
        end = len(rows) if step.right is None else bisect_right(rows, high)
    return Node(rows[start:end], start, low, high)


def candidates(one: Node, other: Node, step: Step) -> list[tuple[int, int]]:
    """Where the change of a distance can be largest or smallest: at rows, beside them, and where ties are split."""
    near = {code + d for code in {*one.rows, *other.rows} for d in (-1, 0, 1)} | {one.low, one.high}
    found = []
    for code in sorted(near):
        if one.low <= code <= one.high:
            ties = {bisect_right(rows, code) - bisect_left(rows, code) for rows in (one.rows, other.rows)}
            splits = {-(-i * TIES // e) for e in ties if step.split for i in range(e)} | {0}
            found += [(code, j + d) for j in splits for d in (-1, 0) if j + d >= 0]
    return found


def claimed(part: ChosenRanks, step: Step) -> Fraction:
    return part.moved(step)


def followed(
    chance: Random, part: ChosenRanks, one: Groups, other: Groups, claim: Claim = claimed, *, both: bool = False
) -> Iterator[tuple[str, Fraction, bool]]:
    """The levels of a plan, and the counts: what part of the claim is reached, and whether it is kept."""
    steps, width, name = (
        part.measurement.steps,
        part.measurement.code.width,
        f"{part.measurement.rule} {part.adjacency}",
    )
    apart = [g for g, (left, right) in enumerate(zip(one, other, strict=True)) if left != right]
    mine: dict[int, list[Chosen | None]] = {g: [None] * len(steps) for g in apart}
    theirs: dict[int, list[Chosen | None]] = {g: [None] * len(steps) for g in apart}
    for level in range(len(part.epsilons)):
        total = Fraction(0)
        for step in (each for each in steps if each.level == level):
            for g in apart:
                left, right = (
                    node(rows[g], step, chosen[g], width, both=both) for rows, chosen in ((one, mine), (other, theirs))
                )
                found = candidates(left, right, step)
                changes = [
                    left.distance(*each, step, part.away(step)) - right.distance(*each, step, part.away(step))
                    for each in found
                ]
                rows = [each for each in found if each[0] in left.rows or each[0] in right.rows] or found
                code, j = chance.choice(chance.choice([rows, rows, found]))
                j = chance.choice([j, chance.randrange(TIES)]) if step.split else j
                mine[g][step.place] = code, left.start + left.split(code, j)
                theirs[g][step.place] = code, right.start + right.split(code, j)
                total += Fraction(max(changes) - min(changes), step.q.denominator) / (2 * claim(part, step))
        yield name, total, total <= 1
    if part.measurement.counts and apart:
        change: list[int] = []
        for g in apart:
            few = part.measurement.thresholds([each[0] for each in mine[g] if each is not None])
            change += [x - y for x, y in zip(between(one[g], few), between(other[g], few), strict=True)]
        moves = [part.move, replace(part, mechanism=GAUSSIAN).move]
        yield (
            f"{name}, counts",
            Fraction(sum(map(abs, change)), moves[0].total),
            all(keeps_to(m, change) for m in moves),
        )


def between(rows: list[int], thresholds: Sequence[int]) -> list[int]:
    """The rows below, between and above some codes."""
    below = [0, *(bisect_left(rows, code) for code in thresholds), len(rows)]
    return [after - before for before, after in pairwise(below)]


def runs_agree(chance: Random, part: ChosenRanks, rows: list[int]) -> bool:
    """Whether the first choice that the mechanism would make has the distances of the definition."""
    step, width = part.measurement.steps[0], part.measurement.code.width
    shift = chance.randrange(width.bit_length())
    buckets, known = _counted(code >> shift for code in rows), _counted(rows)
    counts = CodeCounts.of(buckets if shift else known, shift=shift, width=width, known=known)
    choice = step.choice([], width=width, total=len(rows), reach=part.away(step), rate=part.rate(step))
    choice.everything = True
    runs, whole = choice.runs(counts), Node(rows, 0, 0, width)
    places = (runs.first, runs.codes, runs.members, runs.distance, runs.rank)
    listed = list(zip(*(each.tolist() for each in places), strict=True))
    if sum(members for _, _, members, _, _ in listed) != (width + 1) * (TIES if step.split else 1):
        return False
    nearest = None
    for first, many, _, distance, rank in listed:
        for code in {first, first + many - 1}:
            ties = bisect_right(rows, code) - bisect_left(rows, code)
            j = -(-(rank - bisect_left(rows, code)) * TIES // ties) if step.split and ties else 0
            real = whole.distance(code, j, step, part.away(step)) - distance
            if real != (real if nearest is None else nearest):
                return False
            nearest = real
    return True


def search(
    worlds: Iterable[int],
    claim: Claim = claimed,
    *,
    asked_for: Asked = lambda of: of,
    both: bool = False,
    forms: int = FORMS,
    stop: bool = False,
) -> Findings:
    """Every pair of neighbours of these worlds."""

    def look(number: int, seen: Findings) -> None:
        chance = Random(number)
        made = crowd(chance, rows=(3, 12, 40))
        plans = [each for each in (asked(chance, made) for _ in range(2 * QUESTIONS)) if each is not None][:QUESTIONS]
        tables, pairs = tables_around(chance, made, forms, plans)
        with Bench(made) as bench:
            plans = [p for p in plans if all(bench.engine.supports(s) is None for s in p.statements())]
            found: list[list[list[Groups]]] = []
            for data in tables:
                bench.put(data)
                found.append([codes(bench, each, asked_for) for each in plans])
            for q, each in enumerate(plans):
                if not bucketed(bench, each, codes(bench, each), chance):
                    seen.wrong(number, f"buckets are not those of the codes: {each.query}")
                if found[0][q] != found[1][q]:
                    seen.wrong(number, f"the order of rows matters: {each.query}")
        for q, each in enumerate(plans):
            seen.questions += 1
            parts = [part for part in each.noised if isinstance(part, ChosenRanks)]
            of = [each.statement_of(part) - each.summed for part in parts]
            for part, at in zip(parts, of, strict=True):
                if not runs_agree(chance, part, chance.choice(found[-1][q][at])):
                    seen.wrong(number, f"not the distances of the definition: {each.query}")
            for i, j in pairs:
                seen.cases += 1
                for part, at in zip(parts, of, strict=True):
                    for what, share, kept in followed(chance, part, found[i][q][at], found[j][q][at], claim, both=both):
                        seen.at(what, float(share))
                        if not kept:
                            seen.wrong(number, f"{what} moved by {share} of its claim: {each.query}")

    return through(worlds, look, stop=stop)
