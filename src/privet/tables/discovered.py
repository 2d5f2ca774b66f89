"""Groups whose keys are not public: a mechanism decides which of them an answer has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from privet.errors import QueryError, write
from privet.tables.analysis import narrowing
from privet.tables.expressions.nodes import Node, Which
from privet.tables.expressions.rendering import show
from privet.tables.groups import GroupingSets, Listed, Sets, Values
from privet.tables.holders import MOST_KEYS, Found, is_unknown
from privet.tables.operators import Operator
from privet.tables.types import MOST_GROUPS


@dataclass(frozen=True, slots=True)
class Discovered:
    """Combinations of what was found for the unknown keys with every value of the keys that are public.

    Before anything is found, `most` is the limit: an answer never has more groups, whatever the data. What was found is
    in one order, that of its values, wherever its rows were.

    Example:
        >>> towns = Discovered(((), ("f", "m")), (0,))
        >>> towns.most, list(towns.resolved((("Rome",), ("Köln",))))[:2]
        (10000, [('Köln', 'f'), ('Köln', 'm')])
    """

    listed: tuple[Values, ...]
    """The values of each public key; none for the others."""
    unknown: tuple[int, ...]
    """Which keys are not public."""
    found: tuple[Found, ...] | None = None

    @property
    def limit(self) -> int:
        """The maximum number of combinations of unknown keys in an answer."""
        return MOST_GROUPS // self._public

    @property
    def _public(self) -> int:
        return prod(len(values) for i, values in enumerate(self.listed) if i not in self.unknown)

    @property
    def ceiling(self) -> int:
        """The maximum number of groups, whatever is found."""
        return self._public * self.limit

    @property
    def most(self) -> int:
        return self.ceiling if self.found is None else self._public * len(self.found)

    @property
    def overlap(self) -> int:
        return 1

    @property
    def is_public(self) -> bool:
        return False

    def resolved(self, found: tuple[Found, ...]) -> Discovered:
        """The groups of an answer in which these appear; the first of them, if there are too many."""
        return replace(self, found=tuple(sorted(found)[: self.limit]))

    @property
    def values(self) -> tuple[Values, ...]:
        """The values of each key, in their order."""
        found = self.found or ()
        return tuple(
            tuple(sorted({each[self.unknown.index(i)] for each in found})) if i in self.unknown else values
            for i, values in enumerate(self.listed)
        )

    def __iter__(self) -> Iterator[Values]:
        """The groups in the order of `statement`, each with one value for each key."""
        place = self.unknown[0]
        known = [i for i in range(len(self.listed)) if i not in self.unknown]
        before, after = ([i for i in known if (i < place) is first] for first in (True, False))
        for head in product(*(self.listed[i] for i in before)):
            for found in self.found or ():
                for tail in product(*(self.listed[i] for i in after)):
                    mine = dict(zip([*before, *self.unknown, *after], [*head, *found, *tail], strict=True))
                    yield tuple(mine[i] for i in range(len(self.listed)))

    def statement(self, keys: tuple[Node, ...]) -> tuple[tuple[Node, ...], Listed]:
        """The keys of a statement that counts in these groups, and their values: all unknown keys are one number."""
        found = self.found or ()
        which: Node = Which(tuple(keys[i] for i in self.unknown), found)
        numbers: Values = tuple(range(len(found)))
        pairs: list[tuple[Node, Values]] = [
            (which, numbers) if i == self.unknown[0] else (keys[i], self.listed[i])
            for i in range(len(keys))
            if i == self.unknown[0] or i not in self.unknown
        ]
        return tuple(key for key, _ in pairs), Listed(tuple(values for _, values in pairs))


def groups_of(rows: Operator, keys: tuple[Node, ...], sets: GroupingSets | None = None) -> Listed | Sets | Discovered:
    """The groups of a question: listed, if every key is public; on several levels, if there are grouping sets."""
    types = rows.types()
    unknown = tuple(i for i, key in enumerate(keys) if is_unknown(key, types) and not _narrow(rows, key))
    if not unknown:
        listed = Listed.of(rows, keys)
        return listed if sets is None else Sets(listed, sets)
    if sets is not None:
        raise QueryError(
            f"{show(keys[unknown[0]])} is not public, and only groups of public keys have totals that add up",
            remedy=write('group_by("town").agg(...)', sql="GROUP BY town", advice="Group by it on one level"),
        )
    if len(unknown) > MOST_KEYS:
        raise QueryError(f"an answer can have at most {MOST_KEYS} keys that are not declared")
    public = Listed.of(rows, tuple(key for i, key in enumerate(keys) if i not in unknown))
    if not public.most:
        raise QueryError("these conditions exclude every group")
    values = iter(public.values)
    return Discovered(tuple(() if i in unknown else next(values) for i in range(len(keys))), unknown)


def _narrow(rows: Operator, key: Node) -> bool:
    """Whether conditions leave so few values of a whole number that they can be listed."""
    try:
        return narrowing.left(rows, (key,)) is not None
    except QueryError:
        return False
