"""`privet check`: compare a policy with its data, before anybody asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli.options import AsJson
from privet.cli.output import aligned

if TYPE_CHECKING:  # loaded when the command runs: `privet --help` is quick
    from privet.dataset import Dataset
    from privet.policy import Policy
    from privet.sources.inspection import TableFound

NOT_PRIVATE = "Not private: exact counts and values of the data, for the steward's eyes only. Do not publish them."


def check(
    policy: Annotated[Path, typer.Argument(metavar="POLICY", help="The steward's policy.")] = Path("privet.toml"),
    as_json: AsJson = False,
) -> None:
    """Check that a policy fits its data: files, columns, types, rows over the cap, values outside bounds, and keys.

    For the steward: the output is exact, not private. Spends nothing, and neither creates nor changes a ledger. Ends
    with exit code 1 if something is wrong.

    Example: privet check privet.toml
    """
    from privet.ledger import memory_ledger
    from privet.policy import load
    from privet.sources.inspection import inspect

    found = load(policy)
    datasets = _opened(found)
    scratch = memory_ledger()
    for each in datasets:
        each.record(scratch)  # refuses rows that belong to two datasets, or are private and public at once
    tables = {each.name: [inspect(table) for table in each.tables.values()] for each in datasets}
    public = {each.name: {table.name: len(table.schema.columns) for table in each.public.values()} for each in datasets}
    for each in datasets:
        each.close()
    differences = _differences(found)
    problems = sum(table.problems for several in tables.values() for table in several)
    if as_json:
        _print_json(tables, public, differences, problems)
    else:
        _print(tables, public, differences)
        end = "Nothing was spent."
        if problems:
            print(f"{problems} problem{'s' * (problems > 1)}, marked with !. {end}")
        else:
            print(f"OK: {policy} fits its data. {end}")
    if problems:
        raise SystemExit(1)


def _print(
    tables: dict[str, list[TableFound]], public: dict[str, dict[str, int]], differences: list[tuple[str, str]]
) -> None:
    print(NOT_PRIVATE)
    for name, several in tables.items():
        print(f"{name}:")
        rows = [(table.name, _columns(len(table.columns)), "private") for table in several]
        rows += [(table, _columns(count), "public") for table, count in public[name].items()]
        heads = aligned(*rows).splitlines()
        for i, head in enumerate(heads):
            print(f"  {head}")
            if i < len(several):
                lines = list(several[i].lines())
                width = max(len(column) for _, column, _ in lines)
                for problem, column, what in lines:
                    print(f"  {'!' if problem else ' '} {column.ljust(width)}{'  ' * (width > 0)}{what}")
    for name, line in differences:
        print(f"{name}: {line}")


def _print_json(
    tables: dict[str, list[TableFound]],
    public: dict[str, dict[str, int]],
    differences: list[tuple[str, str]],
    problems: int,
) -> None:
    trees: dict[str, Any] = {
        name: {
            "tables": {table.name: table.to_json() for table in several},
            "public": public[name],
            "differences": [line for of, line in differences if of == name],
        }
        for name, several in tables.items()
    }
    tree = {"warning": NOT_PRIVATE, "fits": not problems, "problems": problems, "datasets": trees}
    print(json.dumps(tree, indent=2, ensure_ascii=False, default=str))


def _differences(policy: Policy) -> list[tuple[str, str]]:
    """Where the ledger and the policy allow different amounts."""
    from privet.ledger.opening import existing_ledger
    from privet.policy import agreement

    ledger = existing_ledger(policy.ledger)
    if ledger is None:
        return []
    try:
        names = [name for name in policy.datasets if name in set(ledger.datasets())]
        return [(name, line) for name in names for line in agreement.differences(policy.datasets[name], ledger)]
    finally:
        ledger.close()


def _columns(count: int) -> str:
    return f"{count} column{'s' * (count != 1)} fit"


def _opened(policy: Policy) -> list[Dataset]:
    """Every dataset, its sources checked; the error lists all that is wrong."""
    from privet.dataset import Dataset
    from privet.errors import PolicyError
    from privet.policy import problems

    made: list[Dataset] = []
    wrong: dict[str, PolicyError] = {}
    for name in policy.datasets:
        try:
            made.append(Dataset.open(policy, dataset=name, connect=False))
        except PolicyError as error:
            wrong |= {one.render("policy"): one for one in error.problems}  # type: ignore[misc]
    if wrong:
        raise problems.joined(policy.document.where, list(wrong.values()))
    return made
