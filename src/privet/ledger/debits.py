"""The rules of a debit: when it is granted, and when a stored answer makes it unnecessary."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from privet.errors import BudgetError, DatasetClosed, Remedy, Subject, write
from privet.ledger.balance import NO_CAPS, Balance, Caps, balance_of, nearest
from privet.ledger.history.datasets import Dataset
from privet.ledger.history.entries import Ration, Totals
from privet.privacy.accounting import guarantee_of
from privet.privacy.events import Composed, PrivacyEvent, leaves, opened
from privet.privacy.guarantees import show_down
from privet.privacy.guarantees.budgets import is_nothing


def debit(
    dataset: Dataset,
    totals: Totals,
    ration: Ration,
    analyst: str,
    events: Sequence[PrivacyEvent],
    price: Any,
    caps: Caps = NO_CAPS,
) -> tuple[Totals, Ration]:
    """The totals after a debit of this price from the dataset and the analyst; refused if it exceeds a cap."""
    if totals.failures >= dataset.closes_after or ration.failures >= dataset.closes_for:
        only_analyst = totals.failures < dataset.closes_after
        failures = f"{ration.failures} questions of {analyst!r}" if only_analyst else f"{totals.failures} questions"
        reopen = f'privet ledger reopen --dataset {shlex.quote(dataset.name)} --reason "what was done about it"'
        raise DatasetClosed(
            f"{failures} failed, so the dataset is closed{f' to {analyst!r}' if only_analyst else ''}. Nothing was "
            "spent",
            subject=Subject("dataset", dataset.name),
            remedy=write(
                'session.reopen("what was done about it")',
                terminal=reopen,
                advice="The steward can reopen it",
                exact=True,
            ),
        )
    balance = caps.lower(balance_of(totals, ration))
    if not all(limit.fits(price) for limit in balance.limits(analyst)):
        raise _over_budget(balance, analyst, events, price)
    add = totals.accountant.add
    return totals._replace(spent=add(totals.spent, price)), ration._replace(spent=add(ration.spent, price))


def _over_budget(balance: Balance, analyst: str, events: Sequence[PrivacyEvent], price: Any) -> BudgetError:
    """The error for a question over budget. It states what is left, but does not suggest spending all of it."""
    limit = nearest([limit for limit in balance.limits(analyst) if not limit.fits(price)])
    left = limit.left
    rest = "nothing" if is_nothing(left) else f"only {show_down(left)}"
    return BudgetError(
        f"this costs {guarantee_of(events)}, but {rest} is left of {limit.name}. Nothing was spent.",
        subject=Subject("argument", "epsilon"),
        remedy=Remedy("Ask the steward for a larger budget.") if is_nothing(left) else None,
    )


def serves(stored: Iterable[PrivacyEvent], asked: Iterable[PrivacyEvent]) -> bool:
    """Whether no part of a stored answer has more noise than the requested answer to the same question.

    Example:
        >>> from privet.privacy.events import LaplaceNoise
        >>> from privet.privacy.moves import L1Move
        >>> one, two = LaplaceNoise(move=L1Move(1), scale=1), LaplaceNoise(move=L1Move(1), scale=2)
        >>> serves([one], [two]), serves([two], [one])
        (True, False)
    """
    from privet import mechanisms  # importing numpy is slow, and most ledger operations do not need it

    old, new = (list(leaves(opened(Composed(events)))) for events in (stored, asked))
    if len(old) != len(new):
        return False
    return all(m == n and mechanisms.serves(a, b) for (_, a, m), (_, b, n) in zip(old, new, strict=True))
