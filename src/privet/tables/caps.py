"""How many rows of a person may take part: as the tables declare it, after joins, and as a query says.

Every way to bound a person is enforced by the engine, after everything else: a cap is a choice, and each of them is
sound. What is chosen here must not depend on the order in which tables are joined.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from privet.errors import QueryError, Remedy, write
from privet.exact import Exact, whole
from privet.privacy.adjacency import Person
from privet.tables.expressions import Column
from privet.tables.operators import JoinPerson, Operator, PerPerson, Scan, WithColumns, one_row_each, sides, tables
from privet.tables.schema import CEILING
from privet.tables.statement import AtMostGroups, AtMostRows
from privet.tables.types import NumberType

Cap = AtMostRows | AtMostGroups
"""How many rows of a person: in all, or in each of some groups."""

MOST_ROWS = 2**30
"""No cap is larger than this."""

_CAP = write("cap(max_rows=5)", terminal="--max-rows 5", http='"max_rows": 5')


def rows_of(cap: Cap) -> int:
    """How many rows that is in all."""
    return cap.rows if isinstance(cap, AtMostRows) else cap.groups * cap.rows


def groups_of(cap: Cap) -> int:
    """In how many groups these rows can be."""
    return cap.rows if isinstance(cap, AtMostRows) else cap.groups


def wanted(*, max_rows: int | None = None, max_groups: int | None = None, max_rows_per_group: int | None = None) -> Cap:
    """The cap that is asked for.

    Example:
        >>> wanted(max_groups=2, max_rows_per_group=1)
        AtMostGroups(groups=2, rows=1)
    """
    if (max_rows is None) == (max_groups is None) or (max_groups is None) != (max_rows_per_group is None):
        raise QueryError("a cap is max_rows, or max_groups and max_rows_per_group", remedy=_CAP)
    if max_groups is None:
        return AtMostRows(whole(max_rows, name="max_rows", example="cap(max_rows=5)"))
    line = "cap(max_groups=2, max_rows_per_group=1)"
    groups = whole(max_groups, name="max_groups", example=line)
    return AtMostGroups(groups, whole(max_rows_per_group, name="max_rows_per_group", example=line))


# --- what holds -----------------------------------------------------------------------------------------


def holding(of: Operator) -> Cap | None:
    """What the tables declare, after joins; None where each row is protected by itself.

    Claim: the same for every order and association of joins.
    """
    match of:
        case Scan(table):
            protect = table.protect
            if not isinstance(protect, Person):
                return None
            if protect.max_groups is not None and protect.max_rows_per_group is not None:
                return AtMostGroups(protect.max_groups, protect.max_rows_per_group)
            return AtMostRows(protect.max_rows)
        case PerPerson():
            return AtMostRows(1)
        case JoinPerson(left, right):
            return product(cap for side in (left, right) if (cap := holding(side)) is not None)
        case _:
            return holding(of.of)


def product(caps: Iterable[Cap]) -> Cap:
    """The cap of joined rows: as many as every row of one side with every row of the others; one row changes nothing.

    Example:
        >>> product([AtMostRows(3), AtMostRows(1), AtMostRows(2)]), product([AtMostRows(1), AtMostGroups(2, 4)])
        (AtMostRows(rows=6), AtMostGroups(groups=2, rows=4))
    """
    several = [cap for cap in caps if rows_of(cap) > 1]
    return several[0] if len(several) == 1 else AtMostRows(prod(map(rows_of, several)))


def checked(of: Operator, cap: Cap, *, before: Cap | None = None) -> None:
    """Refuse a cap that is more than what holds, or than what was asked for before."""
    held = holding(of)
    if held is None:
        raise QueryError(
            "each row is protected by itself here, so there is nothing to cap", remedy=Remedy("Leave the cap out")
        )
    if one_row_each(of) and cap != AtMostRows(1):
        raise QueryError("each person already has one row here, so a cap does nothing", remedy=BOUNDS_INSTEAD)
    for limit in (held, *([] if before is None else [before])):
        if not tightens(limit, cap):
            why, line = "", limit
            if isinstance(limit, AtMostGroups) and isinstance(cap, AtMostRows) and cap.rows <= rows_of(limit):
                why = (
                    ". So many rows could be in more groups, or more of them in one group: here a cap needs both "
                    "max_groups and max_rows_per_group"
                )
                groups = min(limit.groups, cap.rows)
                line = AtMostGroups(groups, min(limit.rows, cap.rows // groups))
            raise QueryError(
                f"a cap can only be lowered: you asked for {in_words(cap)}, and the limit per person is "
                f"{in_words(limit)}{why}",
                remedy=lowered(line),
            )


def tightens(held: Cap, cap: Cap) -> bool:
    """Whether no person can have more rows, or be in more groups, than before, however their rows are spread.

    m rows could be in m groups, or all in one: they are fewer than r in each of g groups if m <= min(g, r).

    Example:
        >>> tightens(AtMostGroups(2, 3), AtMostRows(6)), tightens(AtMostGroups(2, 3), AtMostRows(2))
        (False, True)
    """
    match held, cap:
        case AtMostGroups(groups, rows), AtMostGroups():
            return cap.groups <= groups and cap.rows <= rows
        case AtMostGroups(groups, rows), AtMostRows(most):
            return most <= min(groups, rows)
    return rows_of(cap) <= rows_of(held)


def effective(of: Operator, cap: Cap | None, groups: int) -> Cap | None:
    """What is enforced for an answer of so many groups; None where nothing need be: one row of each unit.

    Claim: a query's own cap is checked to tighten what holds, so with it a person has no more rows than without it,
    in no more groups.
    """
    held = holding(of)
    if held is None or one_row_each(of):
        return None
    found = _fitted(held if cap is None else cap, groups)
    if rows_of(found) > MOST_ROWS:
        raise QueryError(
            f"after these joins {rows_of(found):,} rows of one person could count ({reason(of)}), and at most 2^30 may",
            remedy=replace(_CAP, advice="Set a smaller cap on a table or on the query"),
        )
    return found


def people(of: Operator, cap: Cap | None, groups: int) -> int:
    """In how many groups of an answer one person may be counted."""
    return min(groups, *(groups_of(each) for each in (cap, holding(of)) if each is not None))


def is_own(of: Operator, cap: Cap | None, groups: int, *, counted: bool = False) -> bool:
    """Whether a query's own cap decides how many rows, or in how many groups a person is counted."""
    held = holding(of)
    if cap is None or held is None:
        return False
    return not counted or groups_of(cap) <= groups_of(held)


def _fitted(cap: Cap, groups: int) -> Cap:
    return cap if isinstance(cap, AtMostRows) else AtMostGroups(min(cap.groups, groups), cap.rows)


# --- in words -------------------------------------------------------------------------------------------


def some(count: int, what: str) -> str:
    """So many of them."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def in_words(cap: Cap) -> str:
    """A cap in words."""
    if isinstance(cap, AtMostRows):
        return some(cap.rows, "row")
    return f"{some(cap.groups, 'group')} with {some(cap.rows, 'row')} each"


def reason(of: Operator) -> str:
    """How the cap after joins came about: the caps of their sides; nothing without a join."""
    joined = of
    while not isinstance(joined, JoinPerson):
        if isinstance(joined, Scan | PerPerson):
            return ""
        joined = joined.of
    return " x ".join(map(_side, sides(joined)))


def _side(of: Operator) -> str:
    names = " and ".join(table.name for table in tables(of))
    held = holding(of)
    assert held is not None
    return f"{names} 1 after grouping by person" if one_row_each(of) else f"{names} {rows_of(held):,}"


BOUNDS_INSTEAD = write(
    'pv.col("total").clip(0, 1000)',
    sql="CLIP(total, 0, 1000)",
    advice="Leave the cap out, and choose bounds for the values instead",
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


# --- what that many rows can come to --------------------------------------------------------------------


def of_person(of: Operator, name: str) -> tuple[Exact, Exact, int] | None:
    """What as many rows as a person may have can come to, for a count or a sum of each person, and how many rows.

    A person with more rows than that has no bound of their own, so that something must be chosen: this is what the
    steward's cap means. None for all else.
    """
    match of:
        case PerPerson(inner, columns):
            value, held = dict(columns).get(name), holding(inner)
            if value is None or held is None or value.function not in ("count", "sum"):
                return None
            rows = min(rows_of(held), CEILING)
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
            return of_person(of.of, name)
