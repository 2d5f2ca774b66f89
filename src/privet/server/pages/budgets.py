"""What is left of a budget, for a page: in words and as a gauge."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from privet.exact import nearest as nearest_float
from privet.ledger import Balance, Ledger
from privet.ledger.balance import how_often, nearest
from privet.privacy.events import PrivacyEvent
from privet.privacy.guarantees import show_down
from privet.server.pages.curves import gauge


@dataclass(frozen=True, slots=True)
class BudgetShown:
    """What a page shows of a budget."""

    left: str
    granted: str
    gauge: Markup
    more: str


def shown(balance: Balance, latest: PrivacyEvent | None, *, yours: bool = True) -> BudgetShown:
    """What is left of the tightest cap, and for how many questions like the latest that is enough."""
    remaining = balance.remaining
    tightest = nearest([limit for limit in balance.limits() if limit.lasting])
    granted = show_down(tightest.cap)  # rounded as what is left of it, or all of it would not look like all of it
    more = ""
    if latest is not None:
        times = remaining.times(latest)
        like = "like your last" if yours else "like the last one that was asked"
        more = (
            f"Enough for {how_often(times, 'more question')} {like}."
            if times
            else f"Not enough for another question {like}."
        )
    label = f"{remaining.text} left of {granted}"
    return BudgetShown(remaining.text, granted, gauge(nearest_float(remaining.share), label), more)


def is_closed(ledger: Ledger, dataset: str, analyst: str | None = None) -> bool:
    """Whether a dataset is closed after failures: to everybody, or to this analyst."""
    if ledger.failures(dataset)[1]:
        return True
    found = None if analyst is None else ledger.analysts(dataset).get(analyst)
    return found is not None and found.failures >= ledger.dataset(dataset).closes_for


def closed_to(ledger: Ledger, dataset: str) -> list[str]:
    """The analysts to whom a dataset is closed, because their questions failed."""
    most = ledger.dataset(dataset).closes_for
    return [name for name, ration in ledger.analysts(dataset).items() if ration.failures >= most]
