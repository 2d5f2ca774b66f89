"""Which ledger and which dataset a command is about, and what the policy says about it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.system.addresses import is_address, shown

if TYPE_CHECKING:  # loaded when a command runs: `privet --help` is quick
    from privet.ledger import Caps, Ledger
    from privet.policy import Policy

Where = Annotated[
    str | None,
    typer.Argument(
        metavar="LEDGER", help="The ledger: a file, or a postgresql:// address; by default, the policy's ledger."
    ),
]
ByPolicy = Annotated[
    Path | None, typer.Option("--policy", help="The policy that names the ledger; by default privet.toml.")
]
Which = Annotated[str | None, typer.Option("--dataset", help="The dataset; required if the ledger has several.")]

_DEFAULT = Path("privet.toml")


def opened(where: str | None, policy: Path | None, *, read_only: bool = True) -> tuple[Ledger, Policy | None]:
    """The ledger of the argument or of the policy, and the policy if that was used."""
    from privet.errors import Remedy, Subject, UserError, write
    from privet.ledger import open_ledger

    if where is not None:
        if policy is not None:
            raise UserError("name either a ledger or a policy, not both")
        if where.lower().endswith(".toml"):
            line = write(terminal=f"--policy {shlex.quote(shown(where))}", exact=True)
            raise UserError(f"{shown(where)!r} is a policy, not a ledger", subject=Subject("ledger"), remedy=line)
        return open_ledger(where, create=False, read_only=read_only), None
    if policy is None and not _DEFAULT.exists():
        raise UserError(
            f"no ledger was named, and there is no {_DEFAULT} in this folder",
            subject=Subject("ledger"),
            remedy=write(terminal="--policy folder/privet.toml", advice="Name the ledger, or its policy"),
        )
    from privet.policy import load

    contract = load(policy or _DEFAULT)
    if not is_address(contract.ledger) and not Path(contract.ledger).exists():
        raise UserError(
            f"the ledger {contract.ledger!r} of {contract.document.where} does not exist",
            allowed="The first question creates it",
            subject=Subject("ledger"),
            remedy=Remedy("If there was one before, restore it"),
        )
    return open_ledger(contract.ledger, create=False, read_only=read_only), contract


def one_dataset(ledger: Ledger, dataset: str | None, policy: Policy | None) -> str:
    """The name of the dataset: the given one, or the only one."""
    from privet.errors import Subject, UserError, argument

    names = ledger.datasets()
    declared = [name for name in names if policy is None or name in policy.datasets]
    if dataset is None and len(declared) == 1:
        return declared[0]
    if dataset is None or dataset not in names:
        raise UserError(
            "the ledger has several datasets" if dataset is None else f"the ledger has no dataset {dataset!r}",
            allowed=f"The datasets are: {', '.join(names) or 'none'}",
            subject=Subject("dataset", dataset or ""),
            remedy=argument("dataset", names[0] if names else "people"),
        )
    return dataset


def policy_caps(policy: Policy | None, name: str, analyst: str = "") -> Caps:
    """The caps of a policy, if there is one."""
    from privet.ledger import Caps
    from privet.policy.agreement import caps

    return caps(policy.datasets[name], analyst) if policy is not None and name in policy.datasets else Caps()


def print_differences(policy: Policy | None, ledger: Ledger, name: str, analyst: str | None = None) -> None:
    """Say where the policy and the ledger differ."""
    from privet.policy.agreement import differences

    if policy is not None and name in policy.datasets:
        for line in differences(policy.datasets[name], ledger, analyst):
            print(line, file=sys.stderr)
