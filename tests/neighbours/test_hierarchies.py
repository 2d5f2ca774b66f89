"""No neighbour moves a tier of a tree further than its plan claims: nodes in L1, residuals in L2."""

from __future__ import annotations

import pytest
from tests.neighbours.hierarchies import forest, planned
from tests.neighbours.search import Claim, search

from privet.planner.hierarchies import Branches
from privet.planner.plan import NoisyMeasurement
from privet.privacy.adjacency import Adjacency
from privet.privacy.moves import L1Move, L2Move, Move
from privet.privacy.tiers import Tier

WORLDS = range(12, 24)
FORMS = 4


def test_no_neighbour_moves_a_tier_too_far(effort: int) -> None:
    found = search(range(WORLDS.start, WORLDS.start + len(WORLDS) * effort), ask=planned, make=forest, forms=FORMS)
    assert found.violations == []
    assert found.cases > 300
    reached = {key: part for key, part in found.reached.items() if "count/1" in key}
    assert {"add/remove" in key for key in reached} == {"L2" in key for key in reached} == {True, False}
    assert all(part > 0.9 for part in reached.values()), reached


def _blocks(part: NoisyMeasurement) -> Tier | None:
    """The tier of a residual, as it is claimed for L2."""
    return part.level.tier if isinstance(part.level, Branches) and part.level.residual else None


def smallest_parent(part: NoisyMeasurement) -> Move:
    """As if all parents had as few children as the smallest, and weight 1."""
    tier = _blocks(part)
    if tier is None or not isinstance(part.move, L2Move):
        return part.move
    least = min(n for n in tier.children if n > 1)
    largest = max(w * w * n * (n - 1) for n, w in zip(tier.children, tier.weights, strict=True))
    return L2Move(part.move.squared * least * (least - 1) // largest)


def one_parent(part: NoisyMeasurement) -> Move:
    """As if all rows of a unit were below the largest parent, where they cancel each other."""
    tier = _blocks(part)
    if tier is None or tier.most > 1 or part.measurement.rule != "count/1" or not isinstance(part.move, L2Move):
        return part.move
    n, w = max(zip(tier.children, tier.weights, strict=True), key=lambda each: each[1] ** 2 * each[0] * (each[0] - 1))
    inside = max(w * w * n * j * (n - j) for j in range(1, n))
    return L2Move(min(part.move.squared, inside * (2 if part.adjacency is Adjacency.REPLACE else 1)))


def within_one_parent(part: NoisyMeasurement) -> Move:
    """As if a row that is replaced were only added or removed in its block."""
    tier = _blocks(part)
    if tier is None or part.adjacency is not Adjacency.REPLACE or not isinstance(part.move, L2Move):
        return part.move
    blocks = [(w * w * n * (n - 1), w * w * n * n) for n, w in zip(tier.children, tier.weights, strict=True)]
    return L2Move(part.move.squared * max(a for a, _ in blocks) // max(b for _, b in blocks))


def rows_forgotten(part: NoisyMeasurement) -> Move:
    """As if the rows of different leaves never met in a node above."""
    if not isinstance(part.level, Branches) or part.level.tier.most == 1 or not isinstance(part.move, L1Move):
        return part.move
    return L1Move(part.move.l1 // part.rows, blocks=part.move.blocks)


@pytest.mark.parametrize(
    ("claim", "first"), [(smallest_parent, 0), (one_parent, 3), (within_one_parent, 12), (rows_forgotten, 3)]
)
def test_broken_claims_are_found(claim: Claim, first: int) -> None:
    """In the first of these worlds, to be quick."""
    found = search(range(first, first + 30), claim=claim, ask=planned, make=forest, forms=FORMS, stop=True)
    assert found.violations
