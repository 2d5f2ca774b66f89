"""All accountants, and the choice of one for a budget."""

from __future__ import annotations

from typing import Any

from privet.errors import Subject, UserError, argument, write
from privet.privacy.accounting.approx import ApproxAccountant
from privet.privacy.accounting.base import Accountant
from privet.privacy.accounting.batches import BatchAccountant
from privet.privacy.accounting.concentrated import ConcentratedAccountant
from privet.privacy.accounting.meters import MeterAccountant
from privet.privacy.accounting.pure import PureAccountant
from privet.privacy.guarantees import Guarantee

ACCOUNTANTS: dict[str, Accountant[Any]] = {
    accountant.name: accountant
    for accountant in (
        PureAccountant(),
        MeterAccountant(),
        ApproxAccountant(),
        ConcentratedAccountant(),
        BatchAccountant(),
    )
}
"""All accountants, by name. The default for a budget is the first accountant that promises its kind."""


def accountant_named(name: str) -> Accountant[Any]:
    """The accountant with this name."""
    accountant = ACCOUNTANTS.get(name)
    if accountant is None:
        raise UserError(
            f"there is no accountant {name!r}",
            allowed=f"The accountants are: {', '.join(ACCOUNTANTS)}",
            subject=Subject("argument", "accountant"),
            remedy=argument("accountant", next(iter(ACCOUNTANTS))),
        )
    return accountant


def to_tree(accountant: Accountant[Any]) -> str | dict[str, Any]:
    """An accountant for JSON: its name, with its settings if it has any.

    Example:
        >>> from privet.privacy.guarantees import ApproxDP
        >>> to_tree(accountant_for(ApproxDP(1, 1e-6)))
        {'name': 'meters', 'orders': [23], 'shares': ['1/2']}
    """
    settings = accountant.settings()
    return {"name": accountant.name, **settings} if settings else accountant.name


def from_tree(tree: Any) -> Accountant[Any]:
    """The inverse of `to_tree`; a `ValueError` for anything else.

    Claim: from_tree(to_tree(accountant)) == accountant.
    """
    settings = dict(tree) if isinstance(tree, dict) else {"name": tree}
    name = settings.pop("name", "")
    if not isinstance(name, str) or (isinstance(tree, dict) and not settings):
        raise ValueError("this is not an accountant")
    return accountant_named(name).with_settings(settings)


def accountant_for(budget: object, name: str = "") -> Accountant[Any]:
    """The accountant for a new dataset: the named one, or the first that promises this kind of guarantee.

    Example:
        >>> from privet.privacy.guarantees import ApproxDP, PureDP
        >>> accountant_for(PureDP(3)).name, accountant_for(ApproxDP(3, 1e-6)).name
        ('pure', 'meters')
        >>> accountant_for(PureDP(3), "approx")
        Traceback (most recent call last):
        privet.errors.UserError: the approx accountant needs a budget of type ApproxDP, not PureDP(3)
    """
    subject, remedy = Subject("argument", "budget"), write("budget=pv.PureDP(3)", policy="budget = { epsilon = 3 }")
    if not isinstance(budget, Guarantee):
        raise UserError(f"budget must be a guarantee, not {budget!r}", subject=subject, remedy=remedy)
    if name:
        accountant = accountant_named(name)
        if not accountant.adaptive:
            raise UserError(
                f"the {name} accountant is for fixed batches: it can't enforce a budget for questions that depend on "
                "earlier answers",
                subject=Subject("argument", "accountant"),
            )
        if type(budget) is not accountant.promises:
            raise UserError(
                f"the {name} accountant needs a budget of type {accountant.promises.__name__}, not {budget!r}",
                subject=subject,
            )
        return accountant.for_budget(budget)
    for accountant in ACCOUNTANTS.values():
        if accountant.adaptive and type(budget) is accountant.promises:
            return accountant.for_budget(budget)
    kinds = dict.fromkeys(one.promises.__name__ for one in ACCOUNTANTS.values() if one.adaptive)
    raise UserError(
        f"no accountant supports {type(budget).__name__} budgets, such as {budget!r}",
        allowed=f"A budget must be one of: {', '.join(kinds)}",
        subject=subject,
        remedy=remedy,
    )
