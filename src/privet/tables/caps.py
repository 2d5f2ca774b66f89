"""Caps on the rows per person: those that tables declare, those after joins, and those that a query sets.

The engine enforces a cap after everything else, so every choice of a cap is sound. The choice here must not depend on
the order of joins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from privet.errors import QueryError, Remedy, write
from privet.exact import Exact, whole
from privet.privacy.adjacency import Person
from privet.tables.expressions.nodes import Column
from privet.tables.operators import JoinPerson, Operator, PerPerson, Scan, WithColumns, one_row_each, sides, tables
from privet.tables.schema import CEILING
from privet.tables.statement import AtMostGroups, AtMostRows
from privet.tables.types import NumberType

Cap = AtMostRows | AtMostGroups
"""The maximum rows per person: in total, or in each of a number of groups."""

MOST_ROWS = 2**30
"""The largest cap."""

_CAP = write("cap(max_rows=5)", terminal="--max-rows 5", http='"max_rows": 5')


def rows_of(cap: Cap) -> int:
    """The total number of rows that a cap allows per person."""
    return cap.rows if isinstance(cap, AtMostRows) else cap.groups * cap.rows


def groups_of(cap: Cap) -> int:
    """The number of groups that these rows can be in."""
    return cap.rows if isinstance(cap, AtMostRows) else cap.groups


def requested(
    *, max_rows: int | None = None, max_groups: int | None = None, max_rows_per_group: int | None = None
) -> Cap:
    """The cap that these arguments request.

    Example:
        >>> requested(max_groups=2, max_rows_per_group=1)
        AtMostGroups(groups=2, rows=1)
    """
    if (max_rows is None) == (max_groups is None) or (max_groups is None) != (max_rows_per_group is None):
        raise QueryError("a cap needs max_rows, or both max_groups and max_rows_per_group", remedy=_CAP)
    if max_groups is None:
        return AtMostRows(whole(max_rows, name="max_rows", example="cap(max_rows=5)"))
    line = "cap(max_groups=2, max_rows_per_group=1)"
    groups = whole(max_groups, name="max_groups", example=line)
    return AtMostGroups(groups, whole(max_rows_per_group, name="max_rows_per_group", example=line))


# --- which cap applies ------------------------------------------------------------------------------------


def holding(rows: Operator) -> Cap | None:
    """The cap that the tables declare, after joins; None if each row is protected on its own.

    Claim: the same for every order and association of joins.
    """
    match rows:
        case Scan(table):
            protect = table.protect
            if not isinstance(protect, Person):
                return None
            if protect.max_groups is not None and protect.max_rows_per_group is not None:
                return AtMostGroups(protect.max_groups, protect.max_rows_per_group)
            return AtMostRows(protect.max_rows)
        case PerPerson(inner, most=most):
            declared = holding(inner)
            return AtMostRows(most if declared is None else min(most, rows_of(declared)))
        case JoinPerson(left, right):
            return product(cap for side in (left, right) if (cap := holding(side)) is not None)
        case _:
            return holding(rows.input)


def product(caps: Iterable[Cap]) -> Cap:
    """The cap of joined rows, where each row of one side meets each row of the others.

    Example:
        >>> product([AtMostRows(3), AtMostRows(1), AtMostRows(2)]), product([AtMostRows(1), AtMostGroups(2, 4)])
        (AtMostRows(rows=6), AtMostGroups(groups=2, rows=4))
    """
    multiple = [cap for cap in caps if rows_of(cap) > 1]
    return multiple[0] if len(multiple) == 1 else AtMostRows(prod(map(rows_of, multiple)))


def checked(rows: Operator, cap: Cap, *, before: Cap | None = None) -> None:
    """Refuse a cap that is higher than the declared one, or than an earlier one of the query."""
    declared = holding(rows)
    if declared is None:
        raise QueryError(
            "each row is protected on its own here, so there is nothing to cap", remedy=Remedy("Remove the cap")
        )
    if one_row_each(rows) and cap != AtMostRows(1):
        raise QueryError("each person already has one row here, so a cap does nothing", remedy=BOUNDS_INSTEAD)
    for limit in (declared, *([] if before is None else [before])):
        if not tightens(limit, cap):
            why, line = "", limit
            if isinstance(limit, AtMostGroups) and isinstance(cap, AtMostRows) and cap.rows <= rows_of(limit):
                why = (
                    ". That many rows could be in more groups, or more of them in one group, so this cap needs both "
                    "max_groups and max_rows_per_group"
                )
                groups = min(limit.groups, cap.rows)
                line = AtMostGroups(groups, min(limit.rows, cap.rows // groups))
            raise QueryError(
                f"a cap can only be lowered: you asked for {in_words(cap)}, but the limit per person is "
                f"{in_words(limit)}{why}",
                remedy=lowered(line),
            )


def as_stored(rows: Operator, before: Cap | None, cap: Cap) -> Cap | None:
    """The cap of a query, as it is stored: None if it is the declared one."""
    checked(rows, cap, before=before)
    return None if cap == holding(rows) else cap


def tightens(declared: Cap, cap: Cap) -> bool:
    """Whether no person can have more rows, or be in more groups, than before, however their rows are spread.

    m rows could be in m groups, or all in one group, so they fit into g groups of r rows if m <= min(g, r).

    Example:
        >>> tightens(AtMostGroups(2, 3), AtMostRows(6)), tightens(AtMostGroups(2, 3), AtMostRows(2))
        (False, True)
    """
    match declared, cap:
        case AtMostGroups(groups, rows), AtMostGroups():
            return cap.groups <= groups and cap.rows <= rows
        case AtMostGroups(groups, rows), AtMostRows(most):
            return most <= min(groups, rows)
    return rows_of(cap) <= rows_of(declared)


def effective(rows: Operator, cap: Cap | None, groups: int) -> Cap | None:
    """The cap to enforce for an answer with this many groups; None if each unit has only one row.

    Claim: a query's own cap only tightens the declared one, so it never lets a person have more rows, or be in more
    groups.
    """
    declared = holding(rows)
    if declared is None or one_row_each(rows):
        return None
    enforced = _fitted(declared if cap is None else cap, groups)
    if rows_of(enforced) > MOST_ROWS:
        raise QueryError(
            f"after these joins, one person could have {rows_of(enforced):,} rows ({reason(rows)}); the limit is 2^30",
            remedy=replace(_CAP, advice="Set a smaller cap on a table or on the query"),
        )
    return enforced


def people(rows: Operator, cap: Cap | None, groups: int) -> int:
    """The maximum number of groups of an answer in which one person is counted."""
    return min(groups, *(groups_of(each) for each in (cap, holding(rows)) if each is not None))


def is_own(rows: Operator, cap: Cap | None, groups: int, *, counted: bool = False) -> bool:
    """Whether the query's own cap decides how many rows, or groups, one person has."""
    declared = holding(rows)
    if cap is None or declared is None:
        return False
    return not counted or groups_of(cap) <= groups_of(declared)


def _fitted(cap: Cap, groups: int) -> Cap:
    return cap if isinstance(cap, AtMostRows) else AtMostGroups(min(cap.groups, groups), cap.rows)


# --- in words -------------------------------------------------------------------------------------------


def some(count: int, what: str) -> str:
    """A number and a noun: 1 row, 2 rows."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def in_words(cap: Cap) -> str:
    """A cap in words."""
    if isinstance(cap, AtMostRows):
        return some(cap.rows, "row")
    return f"{some(cap.groups, 'group')} with {some(cap.rows, 'row')} each"


def reason(rows: Operator) -> str:
    """The caps that the joins multiply; empty without a join."""
    joined = rows
    while not isinstance(joined, JoinPerson):
        if isinstance(joined, Scan | PerPerson):
            return ""
        joined = joined.input
    return " x ".join(map(_side, sides(joined)))


def _side(rows: Operator) -> str:
    names = " and ".join(table.name for table in tables(rows))
    declared = holding(rows)
    assert declared is not None
    return f"{names} 1 after grouping by person" if one_row_each(rows) else f"{names} {rows_of(declared):,}"


BOUNDS_INSTEAD = write(
    'pv.col("total").clip(0, 1000)',
    sql="CLIP(total, 0, 1000)",
    advice="Remove the cap, and choose bounds for the values instead",
)


def lowered(cap: Cap) -> Remedy:
    """How to ask for this cap."""
    named = {"max_rows": cap.rows}
    if isinstance(cap, AtMostGroups):
        named = {"max_groups": cap.groups, "max_rows_per_group": cap.rows}
    flags = " ".join(f"--{name.replace('_', '-')} {rows}" for name, rows in named.items())
    return write(call(cap), terminal=flags, http=", ".join(f'"{name}": {rows}' for name, rows in named.items()))


def call(cap: Cap) -> str:
    """The call that sets this cap."""
    if isinstance(cap, AtMostRows):
        return f"cap(max_rows={cap.rows})"
    return f"cap(max_groups={cap.groups}, max_rows_per_group={cap.rows})"


# --- bounds that follow from a cap ------------------------------------------------------------------------


def of_person(operator: Operator, name: str) -> tuple[Exact, Exact, int] | None:
    """The bounds of a count or a sum per person, and the number of rows, if a person has no more rows than the cap.

    Without a cap such a value has no bound, so one must be chosen: the steward's cap is the natural choice. None for
    any other column.
    """
    match operator:
        case PerPerson(inner, columns):
            value, declared = dict(columns).get(name), holding(inner)
            if value is None or declared is None or value.function not in ("count", "sum"):
                return None
            rows = min(rows_of(declared), CEILING)
            kind = value.type(inner.types())
            assert isinstance(kind, NumberType)
            return kind.lower / CEILING * rows, kind.upper / CEILING * rows, rows
        case JoinPerson(left, right):
            return of_person(left, name) or of_person(right, name)
        case WithColumns(inner, columns) if name in dict(columns):
            same = dict(columns)[name]
            return of_person(inner, same.name) if isinstance(same, Column) else None
        case Scan():
            return None
        case _:
            return of_person(operator.input, name)
