"""The search for neighbours that change more unknown keys than a plan claims, or move what is measured in their groups
too far. Noise off.

Relations are those of the search for measurements: fan-out joins, people with many keys, ids that are missing or of two
types. The worlds are crowded: hostile texts, the same keys held by many. Which keys were found is public, so that any
of them may be: those that one table alone has, and one that nobody holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from tests.moves import keeps_to
from tests.neighbours import ranks
from tests.neighbours.crowds import holders
from tests.neighbours.exact import Bench, Vectors, changed
from tests.neighbours.findings import Findings, tables_around, through
from tests.neighbours.further import FurtherAsker, sometimes_lowered
from tests.neighbours.questions import relation
from tests.neighbours.ranks import Groups, followed, ranked
from tests.neighbours.worlds import World

import privet as pv
from privet.errors import UserError
from privet.mechanisms.thresholds import UNIT, GaussianThreshold, KeySelection, OptimalSelection
from privet.planner import ReleasePlan, plan
from privet.planner.ranks import ChosenRanks
from privet.privacy.adjacency import Adjacency
from privet.tables.expressions.nodes import Column
from privet.tables.holders import Found, Held, Holders, can_appear, is_unknown
from privet.tables.statement import Statement

QUESTIONS, FORMS, MOST_FOUND = 3, 5, 40

PRICES: list[dict[str, Any]] = [{"epsilon": 1}, {"epsilon": 1}, {"epsilon": "1/20"}, {"epsilon": 300}]
"""The more, the nearer to an edge or a quantile is what is aimed at."""


def question(chance: Random, of: World) -> ReleasePlan | None:
    """A plan that groups by what is not public, alone or beside public keys; None if nothing came up."""
    try:
        tables = {name: table.relation for name, table in of.tables.items()}
        plain = bool(of.varied) and chance.random() < 0.8  # the rows and a column as they are
        rows = tables["one"] if plain else relation(chance, of, tables)
        types = dict(rows.input.types())
        unknown = [name for name in types if is_unknown(Column(name), types)]
        if not unknown:
            return None
        keys = list(of.varied) if plain else chance.sample(unknown, min(len(unknown), chance.choice([1, 1, 1, 2, 3])))
        named: dict[str, Any] = {f"k{i}": pv.col(name) for i, name in enumerate(keys)}
        asker = FurtherAsker(chance, types)
        if chance.random() < (0.1 if plain else 0.3):
            named["public"] = asker.key()
        named = dict(chance.sample(list(named.items()), len(named)))
        asked = rows.group_by(**named).agg(**_several(chance, asker, plain=plain, alone="public" not in named))
        delta = chance.choice([1e-6, 1e-6, 1e-3])
        asked = sometimes_lowered(chance, asked)
        if asked.aggregates and chance.random() < 0.1:
            return plan(asked, within={asked.aggregates[0][0]: 10}, assuming=100, delta=delta)
        return plan(asked, **chance.choice(PRICES), delta=delta)
    except UserError:
        return None


def _several(chance: Random, asker: FurtherAsker, *, plain: bool, alone: bool) -> dict[str, Any]:
    """What is asked of each key: people alone, nothing but the keys, or anything."""
    drawn = chance.random()
    if drawn > 0.85 and alone:
        return {}
    if drawn > 0.7:
        return {"n": pv.count_people()}
    if plain:
        value = asker.number(0)
        ways: list[Callable[[], Any]] = [
            lambda: pv.sum(value), lambda: pv.sum(value), lambda: pv.mean(value), lambda: pv.variance(value),
            lambda: pv.histogram(value, asker.edges(value)), lambda: pv.count_distinct(value), pv.count,
            lambda: pv.count(value), lambda: ranked(chance, value), lambda: ranked(chance, value),
        ]  # fmt: skip
        return {"a": chance.choice(ways)()}
    several = {f"a{i}": asker.further() for i in range(chance.choice([1, 2]))}
    return several | ({"q": ranked(chance, asker.number(1))} if chance.random() < 0.3 else {})


Weigh = Callable[[KeySelection, int], int]
"""What a person who holds so many keys adds to each."""


def counts(held: Iterable[Held], chosen: KeySelection, weigh: Weigh) -> tuple[Counter[Found], Counter[Found]]:
    """By key: the people, and their weights."""
    people: Counter[Found] = Counter()
    weights: Counter[Found] = Counter()
    for each in held:
        people[each.key] += each.people
        weights[each.key] += each.people * weigh(chosen, each.keys)
    return people, weights


def found_keys(chance: Random, held: list[list[Held]]) -> list[Found]:
    """Some or all of the keys that any of the tables has, and one that nobody holds."""
    every = sorted({each.key for one in held for each in one})
    most = min(len(every), MOST_FOUND)
    some = chance.sample(every, most if chance.random() < 0.7 else chance.randint(min(1, most), most))
    texts = bool(every) and all(isinstance(value, str) for value in every[0])
    return [*some, *([("nobody",) * len(every[0])] if texts else [])]


def search(
    worlds: Iterable[int],
    asked: Callable[[Holders], Holders] = lambda of: of,
    *,
    kept: Callable[[list[Held]], list[Held]] = lambda held: held,
    measured: Callable[[Statement], Statement] = lambda of: of,
    weigh: Weigh = lambda chosen, keys: chosen.weight(keys),
    forms: int = FORMS,
    stop: bool = False,
) -> Findings:
    """Every pair of neighbours of these worlds; the engine may be asked for something else than the plan does."""

    def look(number: int, seen: Findings) -> None:
        chance = Random(number)
        made = holders(chance)
        plans = [each for each in (question(chance, made) for _ in range(2 * QUESTIONS)) if each is not None]
        plans = [each for each in plans if each.discovery is not None][:QUESTIONS]  # not if a condition names all texts
        tables, pairs = tables_around(chance, made, forms)
        with Bench(made) as bench:
            held: list[list[list[Held]]] = [[] for _ in plans]
            for data in tables:
                bench.put(data)
                for place, each in enumerate(plans):
                    assert each.discovery is not None
                    held[place].append(kept(bench.engine.holders(asked(each.discovery.holders))))
            later: list[tuple[ReleasePlan, list[Vectors], list[list[Groups]]]] = []
            for each, of in zip(plans, held, strict=True):
                seen.questions += 1
                _keys(seen, number, each, of, pairs, weigh)
                found = found_keys(chance, of)
                assert each.discovery is not None
                if not each.discovery.counts and each.noised and found:
                    later.append((each.resolved(found), [], []))
            for data in tables if later else []:
                bench.put(data)
                for after, vectors, codes in later:
                    asks = [measured(s) for s in after.statements()]
                    vectors.append(after.coordinates([bench.engine.answer(s) for s in asks[: after.summed]]))
                    codes.append(ranks.codes(bench, after, measured))
        for after, vectors, codes in later:
            _groups(seen, number, chance, after, vectors, codes, pairs)

    return through(worlds, look, stop=stop)


def _keys(
    seen: Findings, number: int, of: ReleasePlan, held: list[list[Held]], pairs: list[tuple[int, int]], weigh: Weigh
) -> None:
    """The first step: who holds which keys."""
    assert of.discovery is not None
    if held[0] != held[1]:
        seen.wrong(number, f"{of.query}: the order of rows matters")
    if not all(can_appear(value) for one in held for each in one for value in each.key):
        seen.wrong(number, f"{of.query}: a value appears that can't")
    selection = of.discovery.selection
    for i, j in pairs:
        (left, mine), (right, theirs) = (counts(held[place], selection, weigh) for place in (i, j))
        changes = [left[key] - right[key] for key in {*left, *right}]
        weights = [mine[key] - theirs[key] for key in {*mine, *theirs}]
        total, moved = sum(map(abs, changes)), share_moved(selection, weights)
        seen.cases += 1
        seen.at(f"keys {selection.adjacency}", total / selection.changed)
        seen.at(f"{type(selection).__name__} {selection.adjacency}", moved)
        if total > selection.changed or max(map(abs, changes), default=0) > 1 or moved > 1:
            seen.wrong(number, f"{of.query}: {changes} changed of {selection.changed}, by {weights}")


def share_moved(selection: KeySelection, weights: list[int]) -> float:
    """How far weights moved, as a share of what hides them: in L2, in L1 by whole units, or key by key."""
    persons = 2 if selection.adjacency is Adjacency.REPLACE else 1
    if isinstance(selection, GaussianThreshold):
        return sum(weight**2 for weight in weights) / (persons * UNIT**2)
    if isinstance(selection, OptimalSelection):
        most = max(map(abs, weights), default=0)
        return max(sum(map(abs, weights)) / (persons * selection.unit), most / selection.unit)
    return sum(map(abs, weights)) / selection.changed


def _groups(
    seen: Findings, number: int, chance: Random, of: ReleasePlan, vectors: list[Vectors], codes: list[list[Groups]],
    pairs: list[tuple[int, int]],
) -> None:  # fmt: skip
    """The second step: what is measured in the groups of the keys that were found."""
    if (vectors[0], codes[0]) != (vectors[1], codes[1]):
        seen.wrong(number, f"{of.query}: the order of rows matters in groups that were found")
    for i, j in pairs:
        moves = changed(vectors[i], vectors[j])
        for part, change in zip(of.noised, moves, strict=True):
            name = f"{part.measurement.rule} {part.adjacency}"
            if not isinstance(part, ChosenRanks):
                seen.at(name, sum(map(abs, change)) / part.move.total)
                if not keeps_to(part.move, change):
                    seen.wrong(number, f"{of.query}: {name} moved by {change}, claimed {part.move}")
                continue
            at = of.statement_of(part) - of.summed
            for name, share, keeps in followed(chance, part, codes[i][at], codes[j][at]):
                seen.at(name, float(share))
                if not keeps:
                    seen.wrong(number, f"{of.query}: {name} moved by {share} of its claim")
