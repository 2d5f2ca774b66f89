"""No neighbour moves a choice by rank, nor the counts beside it, further than its plan claims. Noise off."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from tests.neighbours.ranks import Claim, claimed, search

from privet.mechanisms.ranks import distance_moved
from privet.mechanisms.splitting import Step
from privet.planner.ranks import ChosenRanks
from privet.privacy.adjacency import Adjacency
from privet.tables.statement import Statement, Unbounded


def test_no_neighbour_moves_a_choice_further_than_claimed(effort: int) -> None:
    seen = search(range(17, 17 + 3 * effort))
    assert seen.violations == []
    assert seen.cases > 40
    assert max(seen.reached.values()) == 1


def added_or_removed(part: ChosenRanks, step: Step) -> Fraction:
    """A broken twin: the rule of add/remove, whatever the adjacency is."""
    return distance_moved(step.q, rows=part.rows, adjacency=Adjacency.ADD_REMOVE, alone=True)


def always_alone(part: ChosenRanks, step: Step) -> Fraction:
    """A broken twin: under replace, as if nobody went from one part of the rows, or one group, to another."""
    return distance_moved(step.q, rows=part.rows, adjacency=part.adjacency, alone=True)


def unbounded(of: Statement) -> Statement:
    """A broken twin: persons have all of their rows."""
    return replace(of, bounding=Unbounded())


@pytest.mark.parametrize(("claim", "first"), [(added_or_removed, 18), (always_alone, 70)])
def test_broken_claims_are_found(claim: Claim, first: int) -> None:
    """The searches begin where a world was found that shows it."""
    assert search(range(first, first + 40), claim, stop=True).violations


def test_ties_on_both_sides_are_found() -> None:
    assert search(range(22, 60), claimed, both=True, stop=True).violations


def test_a_forgotten_bound_is_found() -> None:
    assert search(range(4, 40), asked_for=unbounded, stop=True).violations
