"""`privet check`: compare a policy with its data, before anybody asks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli.output import aligned

if TYPE_CHECKING:  # loaded when the command runs: `privet --help` is quick
    from privet.dataset import Dataset
    from privet.policy import Policy


def check(
    policy: Annotated[Path, typer.Argument(metavar="POLICY", help="The steward's policy.")] = Path("privet.toml"),
) -> None:
    """Check that a policy fits its data. Opens every source and compares its columns and types with the policy.

    Spends nothing, and creates no ledger.

    Example: privet check privet.toml
    """
    from privet.ledger import memory_ledger
    from privet.ledger.opening import existing_ledger
    from privet.policy import agreement, load

    found = load(policy)
    datasets = _opened(found)
    scratch = memory_ledger()
    for each in datasets:
        each.record(scratch)  # refuses rows that belong to two datasets, or are private and public at once
    for dataset in datasets:
        print(f"{dataset.name}:")
        rows = [(table.name, _columns(len(table.schema.columns)), "private") for table in dataset.tables.values()]
        rows += [(table.name, _columns(len(table.schema.columns)), "public") for table in dataset.public.values()]
        print("\n".join(f"  {line}" for line in aligned(*rows).splitlines()))
        dataset.close()
    ledger = existing_ledger(found.ledger)
    if ledger is not None:
        for name in set(ledger.datasets()).intersection(found.datasets):
            for line in agreement.differences(found.datasets[name], ledger):
                print(f"{name}: {line}")
        ledger.close()
    print(f"OK: {policy} fits its data. Nothing was spent.")


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
