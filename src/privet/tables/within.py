"""The public fact that each key of one column lies in one key of another: towns in regions, regions in countries.

A row can contradict it. Then its town and its region are read as they are, each by itself; but in a question that
groups by both, such a row is in no group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privet.errors import Subject, UserError, write
from privet.tables.types import KeyType, Type

EXAMPLE = write(
    'pv.keys({"north": ["a", "b"], "south": ["c"]}, within="region")',
    policy='{ keys = { north = ["a", "b"], south = ["c"] }, within = "region" }',
)
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Within:
    """The column that holds the parents of some keys, and the parent of each key, in their order.

    Example:
        >>> Within("region", ("north", "north", "south")).column
        'region'
    """

    column: str
    parents: tuple[str, ...] | tuple[int, ...]

    def grouped(self, values: Sequence[str | int]) -> dict[str | int, list[str | int]]:
        """The keys of each parent, as they are declared."""
        found: dict[str | int, list[str | int]] = {}
        parents: tuple[str | int, ...] = self.parents
        for parent, value in zip(parents, values, strict=True):
            found.setdefault(parent, []).append(value)
        return found

    def typed(self, kind: Type) -> Within:
        """The same, with integers for texts if the parents are integers: a policy can't write these otherwise."""
        wanted = isinstance(kind, KeyType) and not kind.textual
        if not wanted or not all(isinstance(each, str) and _INTEGER.fullmatch(each) for each in self.parents):
            return self
        return Within(self.column, tuple(int(each) for each in self.parents))


def flattened(given: object, within: object) -> tuple[tuple[Any, ...], Within]:
    """The keys of a dict from each parent to a list of its keys, and where they lie."""
    if not isinstance(within, str) or not within.strip():
        raise UserError(
            "keys that are listed by the key that they lie in need the name of its column",
            subject=Subject("argument", "within"),
            remedy=EXAMPLE,
        )
    if not isinstance(given, Mapping) or not given:
        raise UserError(
            "within needs a dict from each key of that column to the list of keys that lie in it", remedy=EXAMPLE
        )
    values: list[Any] = []
    parents: list[Any] = []
    for parent, some in given.items():
        if not isinstance(some, list | tuple) or not some:
            raise UserError(f"{parent!r} needs a list of one or more keys, not {str(some)[:40]!r}", remedy=EXAMPLE)
        values += some
        parents += [parent] * len(some)
    return tuple(values), Within(within, tuple(parents))


def check(columns: Mapping[str, tuple[Type, Within | None]]) -> None:
    """Refuse keys that lie in a column that is not declared, in keys that it does not have, or in themselves."""
    for name, (kind, within) in columns.items():
        if within is None:
            continue
        for what in _wrong(name, kind, within, columns):
            raise UserError(f"column {name!r}: {what}", subject=Subject("column", name), remedy=EXAMPLE)


def _wrong(name: str, kind: Type, within: Within, columns: Mapping[str, tuple[Type, Within | None]]) -> Iterator[str]:
    above = columns.get(within.column)
    if not isinstance(kind, KeyType) or len(within.parents) != len(kind.values):
        yield "only keys lie within others, each in one"
        return
    if above is None or within.column == name:
        yield f"its keys lie within {within.column!r}, which is not another declared column"
        return
    if not isinstance(above[0], KeyType):
        yield f"its keys lie within {within.column!r}, which is not declared with keys"
        return
    every = above[0].keys()
    strange = next((each for each in within.parents if each not in every), None)
    if strange is not None:
        yield f"{strange!r} is not one of the keys of {within.column!r}"
    empty = next((each for each in above[0].values if each not in {*within.parents}), None)
    if empty is not None and kind.other is None:
        yield f"no key lies within {empty!r} of {within.column!r}; list some, or declare other="
    seen, place = {name}, within.column
    while (up := columns[place][1]) is not None:
        if place in seen or up.column not in columns:
            yield f"its keys lie within {within.column!r}, and these within {name!r}"
            return
        seen.add(place)
        place = up.column
