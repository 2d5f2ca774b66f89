"""`privet budget`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from privet.cli.ledger.amounts import print_json
from privet.cli.ledger.opening import ByPolicy, Where, Which, one_dataset, opened, policy_caps, print_differences
from privet.cli.options import AsJson
from privet.cli.output import aligned

if TYPE_CHECKING:
    from privet.privacy.guarantees import Budget


def budget(where: Where = None, policy: ByPolicy = None, dataset: Which = None, as_json: AsJson = False) -> None:
    """Show budgets: granted, spent and left, for every dataset and analyst.

    Example: privet budget people.ledger
    """
    from privet.ledger.balance import how_often
    from privet.ledger.shown import BudgetLine, budget_lines, in_words

    ledger, contract = opened(where, policy)
    lines: list[BudgetLine] = []
    more: dict[str, str] = {}
    for name in ledger.datasets() if dataset is None else (one_dataset(ledger, dataset, contract),):
        caps = partial(policy_caps, contract, name)
        lines += budget_lines(ledger, name, caps)
        latest = ledger.latest(name)
        if latest is not None:
            more[name] = how_often(caps("").lower(ledger.balance(name)).remaining.times(latest))
        print_differences(contract, ledger, name)
    others = {name: each.per_analyst for name, each in ({} if contract is None else contract.datasets).items()}
    if as_json:
        tree = [line.to_json() for line in lines]
        print_json([row if row["analyst"] else _with_others(row, others) for row in tree])
        return
    rows = []
    for i, line in enumerate(lines):
        named = "" if line.analyst else line.dataset
        rows.append((named, line.analyst, in_words(line.granted), in_words(line.spent), line.words))
        last = i + 1 == len(lines) or not lines[i + 1].analyst
        if last and others.get(line.dataset) is not None:
            rows.append(("", "every other", in_words(others[line.dataset]), "", ""))
    print(aligned(("dataset", "analyst", "granted", "spent", "left"), *rows))
    for name, words in more.items():
        print(f"{name}: enough for {words} like the latest.")


def _with_others(row: dict[str, Any], others: dict[str, Budget | None]) -> dict[str, Any]:
    """A dataset's row for programs, with the cap of every other analyst."""
    from privet.privacy.guarantees.budgets import amount

    cap = others.get(row["dataset"])
    return row if cap is None else {**row, "per_analyst": amount(cap)}
