"""The distance between two tables or two vectors, and the privacy unit.

Differential privacy compares neighbouring tables. The privacy unit (a row, or all rows of one person) and the adjacency
(added or removed, or replaced) determine a `Distance` between neighbours; everything else starts from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import total_ordering

from privet.errors import DataError, UserError, argument, write
from privet.exact import Exact, Number, exact, nonnegative, show, sqrt_up, whole


class Adjacency(StrEnum):
    """How neighbouring tables differ: a unit is added or removed, or its data are replaced.

    Example:
        >>> Adjacency("replace"), Adjacency.ADD_REMOVE == "add/remove"
        (<Adjacency.REPLACE: 'replace'>, True)
    """

    ADD_REMOVE = "add/remove"
    REPLACE = "replace"

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise UserError(
            f"adjacency must be 'add/remove' or 'replace', not {value!r}", remedy=argument("adjacency", "add/remove")
        )


class Metric(Enum):
    """A distance between two tables (of rows) or two vectors (of numbers)."""

    SYMMETRIC = "rows added and removed"
    HAMMING = "rows changed"
    L1 = "L1"
    L2 = "L2"
    LINF = "Linf"

    @property
    def counts_rows(self) -> bool:
        """Whether it measures tables, in whole rows, instead of vectors."""
        return self in (Metric.SYMMETRIC, Metric.HAMMING)


# --- tables -----------------------------------------------------------------------------------


def symmetric(a: Iterable[Hashable], b: Iterable[Hashable]) -> int:
    """The number of rows to add or remove to turn multiset `a` into multiset `b`.

    Claim: sum over rows of |times in a - times in b|. The order of rows does not matter.

    Example:
        >>> symmetric(["x", "y", "y"], ["y", "z"])
        3
    """
    left, right = _multiset(a), _multiset(b)
    return (left - right).total() + (right - left).total()


def hamming(a: Sequence[object], b: Sequence[object]) -> int:
    """The number of rows to change in place to turn `a` into `b`, which have the same length.

    Claim: symmetric(a, b) <= 2 * hamming(a, b), since a change is one removal and one addition.

    Example:
        >>> hamming(["x", "y", "y"], ["x", "y", "z"])
        1
    """
    if len(a) != len(b):
        raise DataError(
            f"the Hamming distance needs tables of equal length, not {len(a)} and {len(b)} rows",
            remedy=write("symmetric(a, b)"),
        )
    return sum(1 for x, y in zip(a, b, strict=True) if x != y)


def _multiset(rows: Iterable[Hashable]) -> Counter[Hashable]:
    try:
        return Counter(rows)
    except TypeError as error:
        raise DataError(f"rows must be hashable ({error})", remedy=write("map(tuple, rows)")) from None


# --- vectors ----------------------------------------------------------------------------------


def l1(u: Sequence[Number], v: Sequence[Number]) -> Exact:
    """The L1 distance, exactly: the sum of |u_i - v_i|.

    Example:
        >>> l1([0, 0.1], [1, 0.3])
        Fraction(6, 5)
    """
    return sum(_gaps(u, v), Exact(0))


def l2_squared(u: Sequence[Number], v: Sequence[Number]) -> Exact:
    """The square of the L2 distance, exactly: the sum of (u_i - v_i)^2.

    Example:
        >>> l2_squared([0, 0], [3, 4])
        Fraction(25, 1)
    """
    return sum((gap * gap for gap in _gaps(u, v)), Exact(0))


def l2_up(u: Sequence[Number], v: Sequence[Number]) -> Exact:
    """A rational not smaller than the L2 distance: exact if that is rational, else within 2^-96.

    Example:
        >>> l2_up([0, 0], [3, 4]), l2_up([0, 0], [1, 1]) ** 2 > 2
        (Fraction(5, 1), True)
    """
    return sqrt_up(l2_squared(u, v))


def linf(u: Sequence[Number], v: Sequence[Number]) -> Exact:
    """The L-infinity distance, exactly: the greatest |u_i - v_i|.

    Example:
        >>> linf([0, 0.1], [1, 0.3])
        Fraction(1, 1)
    """
    return max(_gaps(u, v), default=Exact(0))


def _gaps(u: Sequence[Number], v: Sequence[Number]) -> list[Exact]:
    if len(u) != len(v):
        raise DataError(f"vectors must have equal length, not {len(u)} and {len(v)}")
    return [abs(exact(x, name="coordinate") - exact(y, name="coordinate")) for x, y in zip(u, v, strict=True)]


# --- a distance -------------------------------------------------------------------------------


@total_ordering
@dataclass(frozen=True, slots=True, init=False)
class Distance:
    """A bound on the distance between neighbours in one metric; ordered only within that metric.

    Example:
        >>> one = Distance(Metric.SYMMETRIC, 1)
        >>> print(one.times(3), one < one.times(3), sep="; ")
        3 rows added and removed; True
    """

    metric: Metric
    value: Exact

    def __init__(self, metric: Metric, value: Number) -> None:
        if not isinstance(metric, Metric):
            raise UserError(f"metric must be a Metric, not {metric!r}", remedy=write("Distance(Metric.L1, 1)"))
        line = f"Distance(Metric.{metric.name}, 1)"
        rows = metric.counts_rows
        number = whole(value, name="distance", least=0, example=line) if rows else value
        object.__setattr__(self, "metric", metric)
        object.__setattr__(self, "value", nonnegative(number, name="distance", example=line))

    def __lt__(self, other: Distance) -> bool:
        if not isinstance(other, Distance):
            return NotImplemented
        if self.metric is not other.metric:
            raise UserError(f"distances in {self.metric.name} and {other.metric.name} can't be compared")
        return self.value < other.value

    def __str__(self) -> str:
        if self.metric is Metric.SYMMETRIC and self.value == 1:
            return "1 row added or removed"
        if self.metric.counts_rows:
            return "1 row changed" if self.value == 1 else f"{show(self.value)} {self.metric.value}"
        return f"{self.metric.value} distance {show(self.value)}"

    def times(self, k: int) -> Distance:
        """The distance after k such steps.

        Claim: in a metric, k steps of length d lead at most k * d away (triangle inequality).
        """
        return Distance(self.metric, self.value * whole(k, name="k", least=0, example="times(2)"))


# --- what is protected ------------------------------------------------------------------------

_PERSON = 'person("person_id", max_rows=3)'
_CAPPED = write(_PERSON, terminal="--max-rows 3", policy='{ person = "person_id", max_rows = 3 }')
_PERSON_GROUPS = 'person("person_id", max_groups=2, max_rows_per_group=3)'

_MOST_ROWS = 2**30
"""The largest cap on the rows of a person."""


@dataclass(frozen=True, slots=True)
class EachRow:
    """Every row belongs to a different person."""

    def distance(self, adjacency: Adjacency | str, metric: Metric = Metric.SYMMETRIC) -> Distance:
        """The distance between neighbouring tables.

        Claim: add/remove is symmetric distance 1. Replace is 2, a removal and an addition; or Hamming distance 1, if
        every neighbour has the same number of rows.

        Example:
            >>> print(each_row().distance("replace"), each_row().distance("replace", Metric.HAMMING), sep="; ")
            2 rows added and removed; 1 row changed
        """
        if metric is Metric.HAMMING and Adjacency(adjacency) is Adjacency.REPLACE:
            return Distance(Metric.HAMMING, 1)
        return _unit_distance(1, adjacency, metric)

    def __str__(self) -> str:
        return "each row"


@dataclass(frozen=True, slots=True, init=False)
class Person:
    """All rows with the same value of column `id`, of which at most `max_rows` are used.

    For grouped answers: rows in at most `max_groups` groups, and at most `max_rows_per_group` in each.
    """

    id: str
    max_rows: int
    max_groups: int | None
    max_rows_per_group: int | None

    def __init__(
        self,
        id: str,  # noqa: A002
        *,
        max_rows: int | None = None,
        max_groups: int | None = None,
        max_rows_per_group: int | None = None,
    ) -> None:
        object.__setattr__(self, "id", _column(id))
        if (max_rows is max_groups is None) or (max_groups is None) != (max_rows_per_group is None):
            raise UserError(
                "without a cap, one person could change an answer without limit",
                allowed="A cap is max_rows, or max_groups and max_rows_per_group",
                remedy=_CAPPED,
            )
        if max_groups is not None:
            max_groups = whole(max_groups, name="max_groups", example=_PERSON_GROUPS)
            max_rows_per_group = whole(max_rows_per_group, name="max_rows_per_group", example=_PERSON_GROUPS)
        rows = max_groups * max_rows_per_group if max_groups and max_rows_per_group else max_rows
        rows = whole(rows, name="max_rows", example=_CAPPED)
        if max_groups is not None and max_rows not in (None, rows):
            raise UserError(f"max_rows must be max_groups times max_rows_per_group, which is {rows}")
        if rows > _MOST_ROWS:
            raise UserError(f"the cap on rows per person must be at most 2^30, not {rows}", remedy=_CAPPED)
        for name, value in (("max_rows", rows), ("max_groups", max_groups), ("max_rows_per_group", max_rows_per_group)):
            object.__setattr__(self, name, value)

    def distance(self, adjacency: Adjacency | str, metric: Metric = Metric.SYMMETRIC) -> Distance:
        """The distance between neighbouring tables with at most `max_rows` rows per person.

        Claim: add/remove is symmetric distance k = max_rows; replace is 2k: k rows removed and k rows added.

        Example:
            >>> p = person("person_id", max_rows=3)
            >>> print(p.distance("add/remove"), p.distance("replace"), sep="; ")
            3 rows added and removed; 6 rows added and removed
        """
        return _unit_distance(self.max_rows, adjacency, metric)

    def __str__(self) -> str:
        if self.max_groups is not None:
            return (
                f"each person ({self.id}), at most {_plural(self.max_groups, 'group')} with "
                f"{_plural(self.max_rows_per_group or 0, 'row')} each"
            )
        return f"each person ({self.id}), at most {_plural(self.max_rows, 'row')}"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count > 1 else ''}"


Protected = EachRow | Person
"""The privacy unit of a table."""


def each_row() -> EachRow:
    """Protect every row separately.

    Example:
        >>> print(each_row())
        each row
    """
    return EachRow()


def person(
    id: str,  # noqa: A002
    *,
    max_rows: int | None = None,
    max_groups: int | None = None,
    max_rows_per_group: int | None = None,
) -> Person:
    """Protect all rows of one person; rows over the cap are not used.

    The cap is `max_rows` in total or, for grouped answers, `max_groups` with `max_rows_per_group` in each.

    Example:
        >>> print(person("person_id", max_rows=3))
        each person (person_id), at most 3 rows
        >>> print(person("person_id", max_groups=2, max_rows_per_group=1))
        each person (person_id), at most 2 groups with 1 row each
    """
    return Person(id, max_rows=max_rows, max_groups=max_groups, max_rows_per_group=max_rows_per_group)


def _column(name: object) -> str:
    if isinstance(name, str) and name.strip():
        return name
    raise UserError(f"id must be the name of a column, not {name!r}", remedy=_CAPPED)


def _unit_distance(rows: int, adjacency: Adjacency | str, metric: Metric) -> Distance:
    if metric is not Metric.SYMMETRIC:
        raise UserError(
            f"neighbouring tables have no bounded {metric.name} distance here",
            remedy=write("distance(adjacency, Metric.SYMMETRIC)"),
        )
    once = Distance(Metric.SYMMETRIC, rows)
    return once if Adjacency(adjacency) is Adjacency.ADD_REMOVE else once.times(2)
