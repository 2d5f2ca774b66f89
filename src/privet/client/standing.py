"""What is left of a budget on a server, as it tells an analyst: nothing about others."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from privet.client.problems import clean
from privet.errors import NoConnection
from privet.exact import Exact, nonnegative
from privet.ledger import Limit, Remaining
from privet.privacy.accounting import Accountant
from privet.privacy.guarantees import Budget, budgets
from privet.terms import Terms


@dataclass(frozen=True, slots=True, repr=False)
class RemoteBalance:
    """What an analyst may spend, has spent, and has left."""

    budget: Budget
    """The analyst's cap, or the budget of the dataset if there is none."""
    spent: Budget | None
    """What the analyst has spent; None if only the server can tell."""
    per_query: Budget | None
    """What one question may cost; None for no such cap."""
    remaining: Remaining

    @property
    def left(self) -> str:
        """What is left, as text, rounded down."""
        return str(self.remaining)

    def __repr__(self) -> str:
        return f"<Balance: {self.left} left of {self.budget}>"

    def _repr_html_(self) -> str:
        return f"<div>{self.remaining._repr_html_()} of {escape(str(self.budget))}</div>"


def balance(tree: Any, terms: Terms) -> RemoteBalance:
    """The balance that a server states."""
    try:
        granted, standing = budgets.from_amount(tree["granted"]), tree["standing"]
        spent, per_query = (cost(tree[name]) for name in ("spent", "per_query"))
        share = min(nonnegative(standing["share"], name="share"), Exact(1))
        left, text = budgets.from_amount(standing["left"]), clean(standing["text"], most=200)
        if type(left) is not type(terms.budget):
            raise ValueError("a budget keeps its kind")
    except (LookupError, TypeError, ValueError):
        raise NoConnection("the server sent something else than a budget") from None
    accountant = terms.accounting.accountant
    return RemoteBalance(granted, spent, per_query, _remaining(left, share, text, accountant, per_query))


def cost(tree: Any) -> Budget | None:
    """A cost that a server states; None if there is none."""
    try:
        return None if tree is None else budgets.from_amount(tree)
    except ValueError:
        raise NoConnection("the server sent something else than a cost") from None


def _remaining(
    left: Budget, share: Exact, text: str, accountant: Accountant[Any], per_query: Budget | None
) -> Remaining:
    """What is left, for plans to be compared with: as far as one analyst can know, and no more."""
    limits = [Limit(str(left), accountant, left, accountant.zero)]
    if per_query is not None:
        limits.append(Limit(f"{per_query} for one question", accountant, per_query, accountant.zero, lasting=False))
    return Remaining(left, share, text, tuple(limits))
