"""The search for neighbours that change more unknown keys than a plan claims. Noise off.

Worlds and relations are those of the search for measurements: fan-out joins, people with many keys, ids that are
missing or of two types, hostile texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.neighbours.exact import Bench
from tests.neighbours.questions import relation
from tests.neighbours.worlds import shuffled, star, world

import privet as pv
from privet.errors import UserError
from privet.mechanisms.thresholds import UNIT, key_weight
from privet.planner import ReleasePlan, plan
from privet.privacy.adjacency import Adjacency
from privet.tables.expressions.nodes import Column
from privet.tables.holders import Held, Holders, can_appear, is_unknown

FORMS = 4


@dataclass
class Seen:
    """What a search saw."""

    cases: int = 0
    violations: list[str] = field(default_factory=list)
    reached: float = 0
    """The largest part of the keys that may change of those that did."""


def question(chance: Random, number: int) -> tuple[Any, ReleasePlan] | None:
    """A world, and a plan that groups by what is not public; None if nothing came up."""
    made = world(chance)
    tables = {name: table.relation for name, table in made.tables.items()}
    for _ in range(10):
        try:
            rows = relation(chance, made, tables)
            types = rows.input.types()
            unknown = [name for name in types if is_unknown(Column(name), types)]
            if not unknown:
                continue
            keys = chance.sample(unknown, min(len(unknown), chance.choice([1, 1, 2])))
            named = {f"k{i}": pv.col(name) for i, name in enumerate(keys)}
            return made, plan(rows.group_by(**named).agg(n=pv.count_people()), epsilon=1, delta=1e-6)
        except UserError:
            continue
    return None


def counts(held: list[Held]) -> tuple[Counter[Any], Counter[Any]]:
    """By key: the people, and their weights."""
    people: Counter[Any] = Counter()
    weights: Counter[Any] = Counter()
    for each in held:
        people[each.key] += each.people
        weights[each.key] += each.people * key_weight(each.keys)
    return people, weights


def search(worlds: Iterable[int], asked: Callable[[Holders], Holders] = lambda of: of, *, stop: bool = False) -> Seen:
    """Every pair of neighbours of these worlds; `asked` may ask for something else than the plan does."""
    seen = Seen()
    for number in worlds:
        chance = Random(number)
        if (made := question(chance, number)) is None:
            continue
        of, planned = made
        assert planned.discovery is not None
        around = star(chance, of, FORMS)
        tables = [shuffled(chance, of.data), of.data, *around.tables()]
        statement = asked(planned.discovery.holders)
        with Bench(of) as bench:
            found = []
            for data in tables:
                bench.put(data)
                found.append(bench.engine.holders(statement))
        if found[0] != found[1]:
            seen.violations.append(f"world {number}: the order of rows matters")
        if not all(can_appear(value) for held in found for each in held for value in each.key):
            seen.violations.append(f"world {number}: a value appears that can't")
        selection = planned.discovery.selection
        squared = UNIT**2 * (2 if selection.adjacency is Adjacency.REPLACE else 1)
        for i, j in around.pairs():
            (left, mine), (right, theirs) = counts(found[i + 2]), counts(found[j + 2])
            changes = [left[key] - right[key] for key in {*left, *right}]
            moved = sum((mine[key] - theirs[key]) ** 2 for key in {*mine, *theirs})
            seen.cases += 1
            changed = sum(map(abs, changes))
            seen.reached = max(seen.reached, changed / selection.changed)
            if changed > selection.changed or max(map(abs, changes), default=0) > 1 or moved > squared:
                seen.violations.append(f"world {number}: {changes} changed of {selection.changed}: {planned.query}")
        if stop and seen.violations:
            break
    return seen
