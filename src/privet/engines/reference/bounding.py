"""At most so many rows of each person, chosen by that person's rows and the salt alone.

Claim: rows are put in the order of what the statement reads of them, so that rows which are equal in this order are
the same for the statement. Of n rows min(k, n) survive, spread evenly, from a place that a keyed hash chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from privet.tables.statement import AtMostGroups, AtMostRows, Bounding, PeopleInGroups, Unbounded


@dataclass(frozen=True, slots=True)
class Row:
    """Who it belongs to, its group, and what each tally reads of it."""

    person: Any
    group: int
    values: tuple[int | None, ...]


def hashed(salt: bytes, *parts: object) -> int:
    """64 bits of a keyed hash."""
    text = "\x00".join(f"{type(part).__name__} {part}" for part in parts)
    key = blake2b(salt, digest_size=32, person=b"privet bounding").digest()
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest())


def kept(rows: Iterable[Row], bounding: Bounding, salt: bytes) -> list[Row]:
    """The rows that survive; those of nobody don't, if there are persons."""
    if isinstance(bounding, Unbounded):
        return list(rows)
    people: dict[Any, list[Row]] = {}
    for row in rows:
        if row.person is not None:
            people.setdefault(row.person, []).append(row)
    return [row for person, mine in people.items() for row in _of_person(person, mine, bounding, salt)]


def _of_person(person: Any, rows: list[Row], bounding: Bounding, salt: bytes) -> list[Row]:
    if isinstance(bounding, AtMostRows):
        return _evenly(rows, bounding.rows, hashed(salt, person))
    by_group: dict[int, list[Row]] = {}
    for row in rows:
        by_group.setdefault(row.group, []).append(row)
    order = sorted(by_group, key=lambda group: (hashed(salt, person, group), group))
    match bounding:
        case AtMostGroups(groups, most):
            return [row for g in order[:groups] for row in _evenly(by_group[g], most, hashed(salt, person, g, "rows"))]
        case PeopleInGroups(groups):
            return [by_group[group][0] for group in order[:groups]]
    raise AssertionError(bounding)


def _evenly(rows: list[Row], most: int, place: int) -> list[Row]:
    many = len(rows)
    ordered = sorted(rows, key=lambda row: (row.group, [(value is None, value or 0) for value in row.values]))
    return [row for i, row in enumerate(ordered) if (i + place) % many * most % many < most]


def few_keys(
    rows: Iterable[tuple[Any, tuple[Any, ...]]], bounding: Bounding, salt: bytes
) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The keys that count, once for each person that holds them, and how many count for that person."""
    if not isinstance(bounding, PeopleInGroups):
        yield from ((key, 1) for _, key in rows)
        return
    people: dict[Any, set[tuple[Any, ...]]] = {}
    for person, key in rows:
        if person is not None:
            people.setdefault(person, set()).add(key)
    for person, keys in people.items():
        mine = sorted(keys, key=lambda key: (hashed(salt, person, *key), key))[: bounding.groups]
        yield from ((key, len(mine)) for key in mine)
