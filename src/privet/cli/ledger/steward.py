"""What the steward does, with a reason: `privet ledger cap`, `reopen`, `protect` and `allow-source`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli.accounts import cli_user
from privet.cli.ledger.opening import ByPolicy, Where, Which, one_dataset, opened, print_differences

if TYPE_CHECKING:
    from privet.privacy.guarantees import Budget

Why = Annotated[str, typer.Option(help="The reason, which is recorded in the ledger.")]


def cap(
    reason: Why,
    where: Where = None,
    policy: ByPolicy = None,
    epsilon: Annotated[
        str | None,
        typer.Option(help="The new cap, such as 3 or 1/3; omit it to remove an analyst's cap or the per-question cap."),
    ] = None,
    delta: Annotated[str | None, typer.Option(help="The delta of the cap, if the budget has one.")] = None,
    rho: Annotated[str | None, typer.Option(help="The new cap, if the budget is in rho.")] = None,
    analyst: Annotated[str | None, typer.Option(help="Set this analyst's cap.")] = None,
    query: Annotated[bool, typer.Option("--query", help="Set the cap for each single question.")] = False,
    dataset: Which = None,
) -> None:
    """Set a budget or a cap: the dataset's budget, an analyst's cap, or the per-question cap.

    Example: privet ledger cap people.ledger --analyst research --epsilon 1 --reason "the first year"
    """
    from privet.errors import Remedy, UserError, argument, write
    from privet.exact import literal
    from privet.ledger.shown import in_words
    from privet.privacy.guarantees import ApproxDP, PureDP, budget_of

    ledger, contract = opened(where, policy, read_only=False)
    name = one_dataset(ledger, dataset, contract)
    new: Budget | None = None
    if epsilon is rho is None and (delta is not None or (analyst is None and not query)):
        raise UserError(
            "the new budget is missing",
            allowed="Only an analyst's cap and the per-question cap can be removed",
            remedy=argument("epsilon", 3),
        )
    balance = ledger.balance(name)
    accountant, now = balance.accountant, balance.budget
    if isinstance(now, ApproxDP) and epsilon is not None and delta is None and analyst is None and not query:
        raise UserError(
            f"the budget of {name!r} has a delta, so a new one needs it too",
            remedy=write(terminal=f"--epsilon {epsilon} --delta {literal(now.delta).strip(chr(34))}"),
        )
    if delta is not None and accountant.promises is PureDP:
        raise UserError(f"the budget of {name!r} has no delta, which can't be changed", remedy=Remedy("Omit --delta"))
    if epsilon is not None or rho is not None:
        new = budget_of(accountant.promises, epsilon=epsilon, delta=delta, rho=rho)
    ledger.cap(name, new, reason=reason, analyst=analyst, query=query, by=cli_user())
    print(ledger.head())
    print("This is the receipt of the newest entry. Keep it elsewhere (see privet ledger head).", file=sys.stderr)
    balance = ledger.balance(name, analyst)
    spent = balance.total if analyst is None or balance.ration is None else balance.ration.spent
    if new is not None and not query and not accountant.share(spent, new):
        text = in_words(accountant.spent(spent, new))
        print(f"{text} is already spent, so nothing is left under this cap.", file=sys.stderr)
    print_differences(contract, ledger, name, analyst)


def reopen(reason: Why, where: Where = None, policy: ByPolicy = None, dataset: Which = None) -> None:
    """Reopen a dataset that was closed after failures.

    Example: privet ledger reopen people.ledger --reason "more memory for the engine"
    """
    ledger, contract = opened(where, policy, read_only=False)
    name = one_dataset(ledger, dataset, contract)
    failures, _ = ledger.failures(name)
    ledger.reopen(name, reason, by=cli_user())
    print(ledger.head())
    what = f"{name!r} is open to everybody" if failures else f"{name!r} was open: none of its questions had failed"
    print(f"The dataset {what}.", file=sys.stderr)


def protect(
    reason: Why,
    table: Annotated[str, typer.Option(help="The table.")],
    person: Annotated[str, typer.Option(help="The column that identifies people.")],
    where: Where = None,
    policy: ByPolicy = None,
    dataset: Which = None,
) -> None:
    """Change the column of a table that identifies people.

    Example: privet ledger protect people.ledger --table visits --person patient_id --reason "the column was renamed"
    """
    ledger, contract = opened(where, policy, read_only=False)
    ledger.protect(one_dataset(ledger, dataset, contract), table, person, reason=reason, by=cli_user())
    print(ledger.head())


def allow_source(
    reason: Why,
    source: Annotated[
        str, typer.Option(metavar="FILE", help="The file; for a table in a DuckDB file, people.duckdb:table.")
    ],
    to: Annotated[str, typer.Option(metavar="DATASET", help="The other dataset that may use it.")],
    where: Where = None,
    policy: ByPolicy = None,
) -> None:
    """Allow a dataset to use another dataset's file. People who are in both then lose privacy in both.

    Example: privet ledger allow-source people.ledger --source people.parquet --to trial --reason "a separate consent"
    """
    ledger, _ = opened(where, policy, read_only=False)
    ledger.allow_source(to, source, reason=reason, by=cli_user())
    print(ledger.head())
