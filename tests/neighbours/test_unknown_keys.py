"""T15 and T16, noise off: one person changes no more unknown keys than claimed, and each by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tests.neighbours.unknown_keys import search

from privet.tables.holders import Held, Holders
from privet.tables.statement import PeopleInGroups, Statement, Unbounded


def test_no_neighbour_changes_more_keys_than_claimed(effort: int) -> None:
    seen = search(range(3, 3 + 3 * effort))
    assert seen.violations == []
    assert seen.cases > 20
    assert max(part for what, part in seen.reached.items() if "keys" in what) == 1


def unbounded(of: Holders) -> Holders:
    """A twin that forgets to bound persons."""
    return replace(of, bounding=PeopleInGroups(2**30)) if isinstance(of.bounding, PeopleInGroups) else of


def commonest(held: list[Held]) -> list[Held]:
    """A twin with a LIMIT before the noise: others' keys come and go with one person."""
    people: Counter[object] = Counter()
    for each in held:
        people[each.key] += each.people
    first = {key for key, _ in sorted(people.items(), key=lambda pair: (-pair[1], str(pair[0])))[:2]}
    return [each for each in held if each.key in first]


def without_bound(of: Statement) -> Statement:
    """A twin that forgets to bound persons in the groups that were found."""
    return replace(of, bounding=Unbounded())


def test_a_twin_that_forgets_to_bound_is_caught() -> None:
    assert search(range(3, 200), unbounded, stop=True).violations


def test_a_twin_that_gives_each_key_a_whole_unit_is_caught() -> None:
    assert search(range(3, 200), weigh=lambda chosen, keys: chosen.weight(1), stop=True).violations


def test_a_twin_that_limits_before_noise_is_caught() -> None:
    assert search(range(2, 200), kept=commonest, stop=True).violations


def test_a_twin_that_forgets_to_bound_in_groups_is_caught() -> None:
    assert search(range(3, 200), measured=without_bound, stop=True).violations
