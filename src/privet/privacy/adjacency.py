"""The unit of privacy (a row, or all rows of one person), and how neighbouring tables differ in it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from privet.errors import UserError, argument, write
from privet.exact import whole


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


_PERSON = 'pv.person("person_id", max_rows=3)'
_CAPPED = write(_PERSON, terminal="--max-rows 3", policy='{ person = "person_id", max_rows = 3 }')
_PERSON_GROUPS = 'pv.person("person_id", max_groups=2, max_rows_per_group=3)'

_MOST_ROWS = 2**30
"""The largest cap on the rows of a person."""


@dataclass(frozen=True, slots=True)
class EachRow:
    """Every row belongs to a different person."""

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

    def __str__(self) -> str:
        if self.max_groups is not None:
            return (
                f"each person ({self.id}), at most {_plural(self.max_groups, 'group')} with "
                f"{_plural(self.max_rows_per_group or 0, 'row')} each"
            )
        return f"each person ({self.id}), at most {_plural(self.max_rows, 'row')}"


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count > 1 else ''}"


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
