"""`privet schema`: what an analyst may ask, by the policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # loaded when the command runs: `privet --help` is quick
    from privet.exact import Exact
    from privet.policy import DatasetPolicy, TablePolicy
    from privet.relation.schema import Column

_FEW = 8  # so many keys are named; of more, these
_ASK = "COUNT(*), COUNT(column), COUNT(DISTINCT person), SUM, AVG, VAR_POP, STDDEV_POP, SUM(a) / SUM(b), CLIP(x, 0, 9)"


def schema(
    policy: Annotated[Path, typer.Option(help="The steward's policy.")] = Path("privet.toml"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    of_policy: Annotated[
        bool, typer.Option("--of-policy", help="Print the JSON Schema of the policy file, for editor completion.")
    ] = False,
) -> None:
    """The tables and columns that an analyst may ask about, with their public bounds and keys.

    Example: privet schema
    """
    from privet.policy import load
    from privet.policy import schema as of_policies

    if of_policy:
        print(json.dumps(of_policies(), indent=2))
        return
    found = load(policy)
    if as_json:
        print(json.dumps([_tree(each) for each in found.datasets.values()], indent=2, ensure_ascii=False))
        return
    lines = []
    for number, dataset in enumerate(found.datasets.values()):
        lines.append("\n" * (number > 0) + f"{dataset.name}: {dataset.budget} for all questions, {dataset.adjacency}")
        lines += [line for table in dataset.declared.values() for line in _lines(table)]
    for public in found.public():
        columns = ", ".join(dict(public.schema.columns))
        lines.append(f"\n  {public.name}: public, joined on {public.schema.key}: {columns}")
    print("\n".join([*lines, f"\nAsk: {_ASK}"]))


def _lines(table: TablePolicy) -> list[str]:
    from privet.sql.quoting import quoted

    columns = {quoted(name): column for name, column in table.columns().items()}
    width = max(map(len, columns), default=0)
    described = [f"    {name.ljust(width)}  {_words(column)}" for name, column in columns.items()]
    return [f"\n  {quoted(table.name)}: {_protects(table)}", *described]


def _protects(table: TablePolicy) -> str:
    from privet.distances import Person

    protect = table.protect
    if not isinstance(protect, Person):
        return "each row is protected"
    if protect.max_groups is not None:
        return f"each {protect.id} is protected: {protect.max_groups} groups, {protect.max_rows_per_group} rows in each"
    return f"each {protect.id} is protected: at most {protect.max_rows} row{'s' * (protect.max_rows > 1)}"


def _words(column: Column) -> str:
    from privet.relation.types import KeyType

    kind = column.type
    if not isinstance(kind, KeyType):
        return str(kind)
    shown = ", ".join(str(value) for value in kind.values[:_FEW])
    more = f", ... ({len(kind.values):,} keys)" if len(kind.values) > _FEW else ""
    return f"{shown}{more}" + (f"; all others are {kind.other}" if kind.other is not None else "")


def _protected(table: TablePolicy) -> dict[str, Any]:
    from privet.distances import Person

    protect = table.protect
    if not isinstance(protect, Person):
        return {"unit": "row"}
    if protect.max_groups is not None:
        caps = {"max_groups": protect.max_groups, "max_rows_per_group": protect.max_rows_per_group}
        return {"unit": "person", "id": protect.id, **caps}
    return {"unit": "person", "id": protect.id, "max_rows": protect.max_rows}


def _column(column: Column) -> dict[str, Any]:
    """A column for programs: its kind, and all of its keys or its bounds."""
    from privet.relation.types import BooleanType, KeyType, NumberType, TimeType

    match column.type:
        case KeyType(values, other):
            return {"kind": "keys", "keys": list(values), "other": other}
        case NumberType() as kind:
            bounds = {"lower": _number(kind.lower), "upper": _number(kind.upper)}
            step = {} if kind.step is None else {"step": _number(kind.step)}
            return {"kind": "integer" if kind.integer else "number", **bounds, **step}
        case TimeType() as kind:
            ends = {"first": kind.first.isoformat(), "last": kind.last.isoformat()}
            return {"kind": "timestamp" if kind.timed else "date", **ends}
        case BooleanType():
            return {"kind": "boolean"}
        case _:
            return {"kind": "text"}


def _number(of: Exact) -> int | float:
    return int(of) if of.denominator == 1 else float(of)


def _tree(dataset: DatasetPolicy) -> dict[str, Any]:
    from privet.cli.ledger import numbers

    tables = {
        table.name: {
            "protects": _protected(table),
            "columns": {name: _column(column) for name, column in table.columns().items()},
        }
        for table in dataset.declared.values()
    }
    return {
        "dataset": dataset.name,
        "budget": numbers(dataset.budget),
        "adjacency": str(dataset.adjacency),
        "version": dataset.version,
        "tables": tables,
    }
