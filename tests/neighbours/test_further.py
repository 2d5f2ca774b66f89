"""Lower caps, different values, filtered aggregates and batches: no neighbour moves more than claimed. Noise off."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from random import Random

from tests.neighbours import further
from tests.neighbours.crowds import crowd
from tests.neighbours.exact import Bench, Vectors
from tests.neighbours.search import by_engine, search
from tests.neighbours.worlds import World

from privet.planner import ReleasePlan
from privet.planner.plan import NoisyMeasurement
from privet.privacy.moves import L1Move, Move
from privet.tables import caps
from privet.tables.statement import AtMostGroups, AtMostRows, Statement

CAPPED, DISTINCT = 1, 1
"""Worlds that show what twins do."""


def test_no_neighbour_moves_more_than_claimed(effort: int) -> None:
    batches = 0

    def ask(chance: Random, of: World) -> ReleasePlan | None:
        nonlocal batches
        made = further.planned(chance, of)
        batches += made is not None and bool(made.query.arrangement.hidden)
        return made

    found = search(range(1, 1 + 2 * effort), ask=ask, make=crowd)
    assert found.violations == []
    assert found.cases > 50
    assert max(part for key, part in found.reached.items() if "distinct" in key) == 1
    assert batches  # some of the questions share what they measure


def cap_forgotten(bench: Bench, made: ReleasePlan) -> Vectors:
    """A twin that bounds persons as their table declares, whatever lower cap the question has."""
    declared = caps.effective(made.query.input, None, made.groups)

    def higher(of: Statement) -> Statement:
        if isinstance(of.bounding, AtMostRows | AtMostGroups) and declared is not None:
            return replace(of, bounding=declared)
        return of

    return made.coordinates(bench.tallies([higher(s) for s in made.statements()]))


def one_value_each(part: NoisyMeasurement) -> Move:
    """A twin that claims that a person has one value, where different values are counted."""
    if part.measurement.rule != "distinct/1" or not isinstance(part.move, L1Move):
        return part.move
    return L1Move(part.move.total // part.rows)


def test_a_forgotten_cap_is_caught() -> None:
    twin = partial(by_engine, vectors=cap_forgotten)
    assert search(range(CAPPED, 200), measure=twin, ask=further.planned, make=crowd, stop=True).violations


def test_a_claim_of_one_value_each_is_caught() -> None:
    assert search(range(DISTINCT, 200), one_value_each, ask=further.planned, make=crowd, stop=True).violations
