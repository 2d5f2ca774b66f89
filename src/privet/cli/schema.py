"""`privet schema`: what the policy lets an analyst ask about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli.options import AsJson, PolicyFile

if TYPE_CHECKING:  # loaded when the command runs: `privet --help` is quick
    from privet.policy import Policy, TablePolicy


def schema(
    policy: PolicyFile = Path("privet.toml"),
    as_json: AsJson = False,
    every: Annotated[bool, typer.Option("--all", help="Show every key; otherwise long lists are shortened.")] = False,
    of_policy: Annotated[
        bool, typer.Option("--of-policy", help="Print the JSON Schema of the policy file, for editor completion.")
    ] = False,
) -> None:
    """Show the tables and columns that an analyst may ask about, with their public bounds and keys.

    Example: privet schema
    """
    from privet.policy import load
    from privet.policy import schema as of_policies
    from privet.policy.description import describe
    from privet.tables.wording import is_shortened

    if of_policy:
        print(json.dumps(of_policies(), indent=2))
        return
    found = load(policy)
    if as_json:
        print(json.dumps(describe(found), indent=2, ensure_ascii=False))
        return
    lines = []
    for number, dataset in enumerate(found.datasets.values()):
        lines.append("\n" * (number > 0) + f"{dataset.name}: {dataset.budget} for all questions, {dataset.adjacency}")
        lines += [line for table in dataset.declared.values() for line in _lines(table, every=every)]
    for public in found.public():
        columns = ", ".join(dict(public.schema.columns))
        lines.append(f"\n  {public.name}: public, joined on {public.schema.key}: {columns}")
    lines.append(f"\nIn SQL: {_aggregates(found)}")
    tables = [table for dataset in found.datasets.values() for table in dataset.declared.values()]
    if not every and any(is_shortened(column) for table in tables for column in table.columns().values()):
        lines.append("All keys: privet schema --all")
    print("\n".join(lines))


def _aggregates(policy: Policy) -> str:
    """The aggregates that can be asked for in SQL, and a ratio of them."""
    from privet.privacy.adjacency import Person
    from privet.sql.functions import FUNCTIONS
    from privet.sql.quoting import quoted

    units = [table.protect for dataset in policy.datasets.values() for table in dataset.declared.values()]
    person = next((quoted(unit.id) for unit in units if isinstance(unit, Person)), None)
    every = [form for each in FUNCTIONS.values() if each.is_aggregate and each.suggested for form in each.forms]
    asked = [form.replace("person_id", person or "") for form in every if person or "person_id" not in form]
    return ", ".join([*asked, "SUM(x) / SUM(y)"])


def _lines(table: TablePolicy, *, every: bool) -> list[str]:
    from privet.sql.quoting import quoted
    from privet.tables.wording import declared

    columns = {quoted(name): column for name, column in table.columns().items()}
    width = max(map(len, columns), default=0)
    described = [f"    {name.ljust(width)}  {declared(column, every=every)}" for name, column in columns.items()]
    return [f"\n  {quoted(table.name)}: {_protects(table)}", *described]


def _protects(table: TablePolicy) -> str:
    from privet.privacy.adjacency import Person
    from privet.tables.caps import some

    protect = table.protect
    if not isinstance(protect, Person):
        return "protects each row"
    if protect.max_groups is not None:
        return (
            f"protects each {protect.id}; uses at most {some(protect.max_groups, 'group')} per person, "
            f"with {some(protect.max_rows_per_group or 1, 'row')} each"
        )
    return f"protects each {protect.id}; uses at most {some(protect.max_rows, 'row')} per person"
