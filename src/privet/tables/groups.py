"""The groups of an answer, as a value. They are counted here and nowhere else.

`Listed`: the keys are public, so every group appears, empty or not. `Sets`: several listings over the same keys
(ROLLUP, CUBE). Keys that a mechanism discovers satisfy the same contract; `most` is then the mechanism's limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from math import prod
from typing import Protocol, Self

from privet.errors import QueryError, Remedy, TooManyGroups, write
from privet.tables import nesting
from privet.tables.analysis import narrowing
from privet.tables.expressions.nodes import Node
from privet.tables.operators import Operator
from privet.tables.types import MOST_GROUPS, BooleanType, KeyType, KeyValue, TimeType, Type

Values = tuple[KeyValue, ...]
Group = tuple[KeyValue | None, ...]
"""One value for each key; None where a listing does not group by the key."""


class Groups(Protocol):
    """What the planner needs to know about the groups of an answer before data are read."""

    @property
    def most(self) -> int:
        """The maximum number of groups in the answer."""

    @property
    def overlap(self) -> int:
        """The number of groups that count one row: it multiplies the sensitivity of one group."""

    @property
    def is_public(self) -> bool:
        """Whether the keys are known before data are read; then every group is shown, and the keys cost nothing."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Every combination of public values, in the order of `itertools.product`; without keys there is one group.

    Where keys lie within others, `only` some combinations are possible.

    Example:
        >>> regions = Listed((("north", "south"), (False, True)))
        >>> regions.most, list(regions)[:2]
        (4, [('north', False), ('north', True)])
        >>> Listed((("north", "south"), ("a", "b")), (("north", "a"), ("south", "b"))).most
        2
    """

    values: tuple[Values, ...] = ()
    only: tuple[Values, ...] | None = None

    def __post_init__(self) -> None:
        _few(self.most)
        if self.only is None:
            return
        if prod(map(len, self.values)) >= 2**100:
            raise TooManyGroups("these keys have too many values together", remedy=Remedy("Use fewer keys"))
        places = [{value: i for i, value in enumerate(values)} for values in self.values]
        try:
            order = [tuple(map(dict.__getitem__, places, each)) for each in self.only if len(each) == len(places)]
        except KeyError:
            order = []
        if len(order) < len(self.only) or any(a >= b for a, b in pairwise(order)):
            raise QueryError("the possible combinations must have values of the keys, in their order")

    @classmethod
    def of(cls, rows: Operator, keys: tuple[Node, ...]) -> Self:
        """The values of each key that remain possible after all conditions."""
        values = narrowing.domains(rows, keys)
        only = nesting.possible(rows, keys, values)
        if only is None:
            return cls(values)
        left = [{*some} for some in zip(*only, strict=True)] or [set()] * len(keys)
        return cls(tuple(tuple(v for v in every if v in some) for every, some in zip(values, left, strict=True)), only)

    @classmethod
    def whole(cls, rows: Operator, keys: tuple[Node, ...]) -> Self:
        """All values of each key, ignoring conditions."""
        types = rows.types()
        return cls(tuple(key.type(types).keys() for key in keys))

    @property
    def most(self) -> int:
        return prod(map(len, self.values)) if self.only is None else len(self.only)

    def over(self, keys: Sequence[int]) -> list[tuple[KeyValue, ...]]:
        """The combinations of some of the keys, each once, in the order in which they appear."""
        if self.only is None:
            return list(product(*(self.values[key] for key in keys)))
        return list(dict.fromkeys(tuple(each[key] for key in keys) for each in self.only))

    @property
    def overlap(self) -> int:
        return 1

    @property
    def is_public(self) -> bool:
        return True

    def __iter__(self) -> Iterator[tuple[KeyValue, ...]]:
        return product(*self.values) if self.only is None else iter(self.only)

    def check(self, kinds: Iterable[Type]) -> None:
        """Refuse values that are not keys of these types, in their order; conditions may leave none."""
        types = tuple(kinds)
        if len(types) != len(self.values):
            raise QueryError("every key needs a list of values")
        for kind, values in zip(types, self.values, strict=True):
            one = _kind_of_key(kind)
            same = all(type(value) is one for value in values)
            every = iter(narrowing.spanned(kind, values).keys() if values and same else ())
            if not same or not all(any(value == other for other in every) for value in values):
                raise QueryError("the values of a key must be values of its type, in their order")


@dataclass(frozen=True, slots=True)
class Sets:
    """Several listings over the same keys: each set contains the positions of the keys that it groups by.

    Claim: a row is counted once in each set, so one person moves the answer `overlap` times as far.

    Example:
        >>> Sets.rollup(Listed((("north", "south"), (2024, 2025)))).sets
        ((0, 1), (0,), ())
        >>> Sets.cube(Listed((("north", "south"), (2024, 2025)))).most
        9
    """

    listed: Listed
    sets: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        places = range(len(self.listed.values))
        if not self.sets or len({*self.sets}) < len(self.sets):
            raise QueryError("there must be at least one grouping set, and all must be different")
        for each in self.sets:
            if list(each) != sorted({*each}) or not all(place in places for place in each):
                raise QueryError("a grouping set must list keys, each once, in their order")
        if {*places} != {place for each in self.sets for place in each}:
            raise QueryError("every key must be in a grouping set")
        _few(self.most)

    @classmethod
    def rollup(cls, listed: Listed) -> Self:
        """All keys, then all except the last, and so on down to the total."""
        return cls(listed, rollup(len(listed.values)))

    @classmethod
    def cube(cls, listed: Listed) -> Self:
        """Every subset of the keys."""
        return cls(listed, cube(len(listed.values)))

    @property
    def most(self) -> int:
        if self.listed.only is not None:
            return sum(len(self.listed.over(each)) for each in self.sets)
        return sum(prod(len(self.listed.values[place]) for place in each) for each in self.sets)

    @property
    def overlap(self) -> int:
        return len(self.sets)

    @property
    def is_public(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Group]:
        for each in self.sets:
            for some in self.listed.over(each):
                found = dict(zip(each, some, strict=True))
                yield tuple(found.get(i) for i in range(len(self.listed.values)))


GroupingSets = tuple[tuple[int, ...], ...]
"""The sets of keys to group by, as positions."""

MOST_KEYS = 6
"""Maximum keys of a cube: it has a set for each subset of them."""


def rollup(keys: int) -> GroupingSets:
    """The grouping sets of ROLLUP: all keys, then all except the last, and so on down to the total.

    Example:
        >>> rollup(2)
        ((0, 1), (0,), ())
    """
    return tuple(tuple(range(size)) for size in reversed(range(keys + 1)))


def cube(keys: int) -> GroupingSets:
    """The grouping sets of CUBE: every subset of the keys.

    Example:
        >>> cube(2)
        ((0, 1), (0,), (1,), ())
    """
    if keys > MOST_KEYS:
        raise QueryError(
            f"a cube can have at most {MOST_KEYS} keys, because each subset of them is a level",
            remedy=write('rollup("region", "town")', sql="GROUP BY ROLLUP (region, town)"),
        )
    return tuple(each for size in reversed(range(keys + 1)) for each in combinations(range(keys), size))


def named(sets: GroupingSets, keys: Sequence[str]) -> str:
    """Grouping sets in words, with the names of the keys.

    Example:
        >>> named(((0, 1), (0,), ()), ["region", "town"]), named(((0,), (1,)), ["region", "town"])
        ('rollup(region, town)', 'grouping_sets((region), (town))')
    """
    if sets == rollup(len(keys)):
        return f"rollup({', '.join(keys)})"
    if len(keys) <= MOST_KEYS and sets == cube(len(keys)):
        return f"cube({', '.join(keys)})"
    listed = [f"({', '.join(keys[i] for i in each)})" for each in sets]
    return f"grouping_sets({', '.join(listed)})"


def _kind_of_key(kind: Type) -> type:
    """The Python type of the values of a key."""
    match kind:
        case BooleanType():
            return bool
        case TimeType():
            return type(kind.first)
        case KeyType(values):
            return type(values[0])
    return int


def _few(groups: int) -> None:
    if groups > MOST_GROUPS:
        raise TooManyGroups(
            f"these keys make {groups:,} groups; at most {MOST_GROUPS:,} are allowed",
            remedy=write(
                'group_by(pv.bins("age", [0, 18, 65, 110]))',
                sql="GROUP BY FLOOR(age / 10) * 10",
                advice="Use fewer keys, or wider bins",
            ),
        )
