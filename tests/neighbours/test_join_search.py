"""A search for neighbours of joined tables that move a measurement too far: caps of each table, orders and queries.

Worlds are those of the other searches, with two tables whose caps differ; both orders of every join are asked, as one
plan, and each search is put to a broken twin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from tests.neighbours.exact import Bench, moved
from tests.neighbours.questions import Asker
from tests.neighbours.worlds import ID, Data, World, owner, people, row, rows_of, shuffled, world

import privet as pv
from privet.errors import UserError
from privet.planner import ReleasePlan, plan
from privet.privacy.adjacency import Adjacency, Person
from privet.tables import caps
from privet.tables.operators import protected
from privet.tables.query import Query
from privet.tables.relation import Relation, Table
from privet.tables.statement import AtMostGroups, AtMostRows

WORLDS, QUESTIONS, NEIGHBOURS = 12, 5, 4


@dataclass
class Joined(World):
    """A world whose tables have caps of their own."""

    caps: dict[str, Any] = field(default_factory=dict)

    def declare(self, name: str, rows: Any, chunks: int = 1, source: Any = None) -> Table:
        self.protect = self.caps[name]
        return super().declare(name, rows, chunks, source)


def neighbours(chance: Random, of: World, count: int) -> Iterator[Data]:
    """Tables next to this one: a person less or more, or with other rows."""
    for _ in range(count):
        who = chance.choice([i for i in of.ids if owner(i) is not None])
        there = owner(who) in people(of.data)
        made = {name: [r for r in rows if owner(r[ID]) != owner(who)] for name, rows in of.data.items()}
        if not there or of.adjacency is Adjacency.REPLACE:
            for name, rows in made.items():  # added, or replaced (by nothing, at times)
                for new in rows_of(chance, of, name, who):
                    rows.insert(chance.randint(0, len(rows)), new)
        yield made


def some_cap(chance: Random) -> dict[str, int]:
    if chance.random() < 0.5:
        return {"max_rows": chance.choice([1, 2, 3, 5])}
    return {"max_groups": chance.choice([1, 2, 3]), "max_rows_per_group": chance.choice([1, 2])}


def joined_world(chance: Random) -> Joined | None:
    made = world(chance, person=True)
    if "two" not in made.columns:
        return None
    found = Joined(**{**vars(made), "caps": {name: pv.person(ID, **some_cap(chance)) for name in made.columns}})
    found.data = {name: [row(chance, found, name) for _ in range(12)] for name in made.columns}
    found.tables = {name: found.declare(name, rows) for name, rows in found.data.items()}
    return found


def side(chance: Random, of: Relation) -> Relation:
    asker = Asker(chance, dict(of.input.types()))
    match chance.choice(["as it is", "where", "with", "per_person", "cap"]):
        case "where":
            return of.where(asker.condition(1))
        case "with":
            return of.with_columns(**{f"new{chance.randrange(10**6)}": asker.number(1)})
        case "per_person":
            return of.per_person(**{f"p{chance.randrange(10**6)}": pv.greatest(asker.summed())})
        case "cap":
            return of.cap(**some_cap(chance))
    return of


def question(chance: Random, of: Joined) -> Query | None:
    """A question about the join, the same in both orders; None if what came up can't be asked."""
    try:
        a, b = (side(chance, of.tables[name].relation) for name in ("one", "two"))
        both = a.join(b)
        assert both == b.join(a)
        asker = Asker(chance, dict(both.input.types()))
        asked = {f"a{i}": asker.aggregate() for i in range(chance.choice([1, 2]))}
        made = both.group_by(k=asker.key()).agg(**asked) if chance.random() < 0.5 else both.agg(**asked)
        made = made.cap(**some_cap(chance)) if chance.random() < 0.5 else made
        return made if plan(made, epsilon=1).groups <= 60 else None
    except UserError:
        return None


def search(worlds: range, claim: Any = lambda _, part: part.move.total, *, stop: bool = False) -> tuple[int, list[str]]:
    """How many cases were seen, and what moved further than claimed; to `stop` at the first world that shows it."""
    cases, violations = 0, list[str]()
    for number in worlds:
        if stop and violations:
            break
        chance = Random(number)
        made = joined_world(chance)
        if made is None:
            continue
        asked = (question(chance, made) for _ in range(5 * QUESTIONS))
        plans = [plan(query, epsilon=1) for query in asked if query is not None][:QUESTIONS]
        with Bench(made) as bench:
            bench.put(made.data)
            before = [bench.vectors(each) for each in plans]
            for place, data in enumerate([shuffled(chance, made.data), *neighbours(chance, made, NEIGHBOURS)]):
                bench.put(data)
                for each, old in zip(plans, before, strict=True):
                    cases += 1
                    for part, change in zip(each.noised, moved(old, bench.vectors(each)), strict=True):
                        if change > (claim(each, part) if place else 0):
                            violations.append(f"world {number}, neighbour {place}: {each.query}: {change}")
    return cases, violations


@pytest.mark.slow
def test_no_neighbour_of_joined_tables_moves_more_than_claimed(effort: int) -> None:
    cases, violations = search(range(WORLDS * effort))
    assert violations == []
    assert cases > 60 * effort


def of_one_table(asked: ReleasePlan, part: Any) -> int:
    """A twin's claim: the cap of the table that comes first in the join."""
    cap = protected(asked.query.input)
    assert isinstance(cap, Person)
    return int(part.move.total // part.rows * min(part.rows, cap.max_rows))


def test_a_twin_that_claims_the_cap_of_one_table_is_caught() -> None:
    assert search(range(12), of_one_table, stop=True)[1]


def test_a_twin_whose_query_caps_less_than_it_claims_is_caught() -> None:
    """Claiming one row less than the cap of the query is seen, for caps by rows and by groups."""

    def one_less(asked: ReleasePlan, part: Any) -> int:
        at_most = asked.query.at_most
        less = isinstance(at_most, AtMostRows | AtMostGroups) and caps.rows_of(at_most) > 1
        return int(part.move.total // part.rows * (part.rows - 1)) if less and part.rows > 1 else part.move.total

    assert search(range(12), one_less, stop=True)[1]
