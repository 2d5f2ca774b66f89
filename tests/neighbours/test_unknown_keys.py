"""T15 and T16, noise off: one person changes no more unknown keys than claimed, and each by one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.effort import EFFORT
from tests.neighbours.unknown_keys import search

from privet.tables.holders import Holders
from privet.tables.statement import PeopleInGroups


@pytest.mark.slow
def test_no_neighbour_changes_more_keys_than_claimed() -> None:
    seen = search(range(14 * EFFORT))
    assert seen.violations == []
    assert seen.cases >= 20
    assert seen.reached == 1


def unbounded(of: Holders) -> Holders:
    """A twin that forgets to bound persons."""
    return replace(of, bounding=PeopleInGroups(2**30)) if isinstance(of.bounding, PeopleInGroups) else of


@pytest.mark.slow
def test_a_twin_that_forgets_to_bound_is_caught() -> None:
    assert search(range(200), unbounded, stop=True).violations
