"""`privet budget`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privet.cli.ledger.amounts import in_json, in_words, print_json
from privet.cli.ledger.opening import ByPolicy, Where, Which, one_dataset, opened, policy_caps, print_differences
from privet.cli.options import AsJson
from privet.cli.output import aligned

if TYPE_CHECKING:
    from privet.privacy.accounting import Share
    from privet.privacy.guarantees import Budget, Guarantee


def budget(where: Where = None, policy: ByPolicy = None, dataset: Which = None, as_json: AsJson = False) -> None:
    """Show budgets: granted, spent and left, for every dataset and analyst.

    Example: privet budget people.ledger
    """
    from privet.ledger import Balance
    from privet.ledger.balance import how_often
    from privet.privacy.guarantees import stricter
    from privet.privacy.guarantees.budgets import amount

    ledger, contract = opened(where, policy)
    lines: list[tuple[str, str, Budget | None, Guarantee | Share, Budget | None, str]] = []
    more: dict[str, str] = {}
    for name in ledger.datasets() if dataset is None else (one_dataset(ledger, dataset, contract),):
        balance = policy_caps(contract, name).lower(ledger.balance(name))
        lines.append((name, "", balance.budget, balance.spent, balance.remaining.guarantee, balance.left))
        latest = ledger.latest(name)
        if latest is not None:
            more[name] = how_often(balance.remaining.times(latest))
        accountant = balance.accountant
        for analyst, ration in ledger.analysts(name).items():
            cap = stricter(ration.cap, policy_caps(contract, name, analyst).analyst)
            capped = None if cap is None else Balance(accountant, cap, ration.spent)
            left = (None, "") if capped is None else (capped.remaining.guarantee, capped.left)
            lines.append((name, analyst, cap, accountant.spent(ration.spent, cap or balance.budget), *left))
        print_differences(contract, ledger, name)
    others = {name: each.per_analyst for name, each in ({} if contract is None else contract.datasets).items()}
    if as_json:
        names = "dataset", "analyst", "granted", "spent", "left"
        tree = [
            dict(
                zip(names, (line[0], line[1] or None, amount(line[2]), in_json(line[3]), amount(line[4])), strict=True)
            )
            for line in lines
        ]
        print_json([row if row["analyst"] else _with_others(row, others) for row in tree])
        return
    rows = []
    for i, line in enumerate(lines):
        rows.append(("" if line[1] else line[0], line[1], in_words(line[2]), in_words(line[3]), line[5]))
        last = i + 1 == len(lines) or not lines[i + 1][1]
        if last and others.get(line[0]) is not None:
            rows.append(("", "every other", in_words(others[line[0]]), "", ""))
    print(aligned(("dataset", "analyst", "granted", "spent", "left"), *rows))
    for name, words in more.items():
        print(f"{name}: enough for {words} like the latest.")


def _with_others(row: dict[str, Any], others: dict[str, Budget | None]) -> dict[str, Any]:
    """A dataset's row for programs, with the cap of every other analyst."""
    from privet.privacy.guarantees.budgets import amount

    cap = others.get(row["dataset"])
    return row if cap is None else {**row, "per_analyst": amount(cap)}
