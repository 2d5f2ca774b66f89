"""No neighbour moves a level of a rollup or a cube further than its plan claims: margins in L1, residuals in L2."""

from __future__ import annotations

from math import prod

import pytest
from tests.neighbours import cubes
from tests.neighbours.crowds import crowd
from tests.neighbours.search import search

from privet.planner.levels import Level
from privet.planner.plan import NoisyMeasurement
from privet.privacy.margins import Margin
from privet.privacy.moves import L1Move, L2Move, Move

WORLDS = range(6, 10)
FORMS = 3


def test_no_neighbour_moves_a_level_too_far(effort: int) -> None:
    worlds = range(WORLDS.start, WORLDS.start + len(WORLDS) * effort)
    found = search(worlds, ask=cubes.planned, make=crowd, forms=FORMS)
    assert found.violations == []
    assert found.cases > 80
    reached = {key: part for key, part in found.reached.items() if "count" in key}
    assert {"add/remove" in key for key in reached} == {"L2" in key for key in reached} == {True, False}
    assert all(part > 0.9 for part in reached.values()), reached


def other_part(part: NoisyMeasurement) -> Move:
    """The move of a residual, as if it had the norm of the total."""
    if not isinstance(part.level, Level) or not isinstance(part.move, L2Move):
        return part.move
    return L2Move(part.move.squared // prod(n * (n - 1) for n in _sizes(part.level.margin)))


def overlap_forgotten(part: NoisyMeasurement) -> Move:
    """As if a row were in only one of the levels: each of them has its share of the move."""
    return L1Move(part.move.l1 // 2, blocks=part.move.blocks) if isinstance(part.move, L1Move) else part.move


def rows_forgotten(part: NoisyMeasurement) -> Move:
    """As if the rows of different groups never met in a coarser level."""
    if not isinstance(part.level, Level) or part.level.margin.beside == 1 or not isinstance(part.move, L1Move):
        return part.move
    return L1Move(part.move.l1 // part.rows, blocks=part.move.blocks)


def _sizes(margin: Margin) -> list[int]:
    return [margin.sizes[key] for key in margin.keys]


@pytest.mark.parametrize("claim", [other_part, overlap_forgotten, rows_forgotten])
def test_broken_claims_are_found(claim: object) -> None:
    found = search(WORLDS, claim=claim, ask=cubes.planned, make=crowd, forms=FORMS, stop=True)  # type: ignore[arg-type]
    assert found.violations
