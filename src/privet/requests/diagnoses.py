"""A diagnosis: questions about a question, asked as one batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privet.errors import QueryError, Remedy, write
from privet.planner import diagnosis
from privet.planner.diagnosis import GROUPS, ROWS, GroupsAsked, RowsAsked, ValuesAsked
from privet.release.batch import ReleasedBatch
from privet.release.diagnosis import Diagnosis
from privet.tables.query import Query
from privet.tables.wording import worded

Looked = tuple[RowsAsked | None, GroupsAsked | None, tuple[ValuesAsked, ...]]


def asked(query: object, ceiling: int | None) -> Looked:
    """The questions about a question; refused if it has neither a cap nor a number that is clamped."""
    if not isinstance(query, Query):
        raise QueryError(
            f"{type(query).__name__} is not a query",
            remedy=write('session.diagnose(people.agg(pay=pv.mean("income")), epsilon=0.1)'),
        )
    (rows, values), groups = diagnosis.asked(query, ceiling), diagnosis.groups_asked(query)
    if rows is None and groups is None and not values:
        raise QueryError(
            "there is nothing to diagnose: no cap leaves out rows of this question, and no number in it is clamped",
            remedy=Remedy("Ask the question itself"),
        )
    return rows, groups, values


def named(looked: Looked) -> dict[str, Query]:
    """The questions by their names in the batch."""
    rows, groups, values = looked
    first = {name: each.query for name, each in ((ROWS, rows), (GROUPS, groups)) if each is not None}
    return first | {f"values {i}" if i > 1 else "values": each.query for i, each in enumerate(values, 1)}


def check_price(options: Mapping[str, Any]) -> None:
    """Refuse a diagnosis without a price; a batch divides it equally between its questions."""
    if sum(options.get(name) is not None for name in ("epsilon", "rho")) != 1:
        line = write("session.diagnose(query, epsilon=0.1)", terminal="--epsilon 0.1")
        raise QueryError("a diagnosis needs an epsilon or a rho", remedy=line)


def answered(query: Query, looked: Looked, batch: ReleasedBatch) -> Diagnosis:
    """The diagnosis, from the answers of the batch."""
    rows, groups, values = looked
    names = (name for name in batch if name not in (ROWS, GROUPS))
    return Diagnosis(worded(query), batch, rows, groups, dict(zip(names, values, strict=True)))
