"""The data that analysts can ask about: datasets, tables and columns with their public bounds and keys."""

from __future__ import annotations

from typing import Any

from privet.exact import Exact
from privet.policy.policy import DatasetPolicy, Policy, TablePolicy
from privet.privacy.adjacency import Person
from privet.privacy.guarantees.budgets import amount
from privet.tables.relation import PublicTable
from privet.tables.schema import Column
from privet.tables.types import KeyType, NumberType, TimeType
from privet.tables.wording import declared, values


def describe(policy: Policy) -> list[dict[str, Any]]:
    """The datasets of a policy, for programs."""
    return [dataset(each) for each in policy.datasets.values()]


def dataset(policy: DatasetPolicy) -> dict[str, Any]:
    """A dataset: its budget and its tables."""
    return {
        "dataset": policy.name,
        "budget": amount(policy.budget),
        "adjacency": str(policy.adjacency),
        "version": policy.version,
        "tables": {table.name: _table(table) for table in policy.declared.values()},
        "public": {table.name: _public(table) for table in policy.public()},
    }


def _public(table: PublicTable) -> dict[str, Any]:
    columns = {name: {"kind": "public", "words": values(kind)} for name, kind in table.schema.columns}
    return {"key": table.schema.key, "columns": columns}


def _table(table: TablePolicy) -> dict[str, Any]:
    columns = {name: _column(column) for name, column in table.columns().items()}
    return {"protects": _protected(table), "columns": columns}


def _protected(table: TablePolicy) -> dict[str, Any]:
    protect = table.protect
    if not isinstance(protect, Person):
        return {"unit": "row"}
    caps: dict[str, int | None] = {"max_rows": protect.max_rows}
    if protect.max_groups is not None:
        caps = {"max_groups": protect.max_groups, "max_rows_per_group": protect.max_rows_per_group}
    return {"unit": "person", "id": protect.id, **caps}


def _column(column: Column) -> dict[str, Any]:
    """A column: its kind, and its bounds or all of its keys."""
    match column.type:
        case KeyType(values, other):
            facts: dict[str, Any] = {"keys": list(values), "other": other}
            if column.within is not None:
                facts |= {"keys": column.within.grouped(values), "within": column.within.column}
        case NumberType(lower, upper, step=step):
            facts = {"lower": _number(lower), "upper": _number(upper)}
            facts |= {} if step is None else {"step": _number(step)}
        case TimeType(first, last):
            facts = {"first": first.isoformat(), "last": last.isoformat()}
        case _:
            facts = {}
    return {"kind": column.kind_name, **facts, "words": declared(column)}


def _number(number: Exact) -> int | float:
    return int(number) if number.denominator == 1 else float(number)
