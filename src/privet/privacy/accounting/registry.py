"""All accountants, and the choice of one for a budget."""

from __future__ import annotations

from typing import Any

from privet.errors import Subject, UserError, argument, write
from privet.privacy.accounting.approx import ApproxAccountant
from privet.privacy.accounting.base import Accountant
from privet.privacy.accounting.pure import PureAccountant
from privet.privacy.guarantees import Guarantee

ACCOUNTANTS: dict[str, Accountant[Any]] = {
    accountant.name: accountant
    for accountant in (
        PureAccountant(),
        ApproxAccountant(),
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


def accountant_for(budget: object, name: str = "") -> Accountant[Any]:
    """The accountant for a budget: the named one, or the first that promises this kind of guarantee.

    Example:
        >>> from privet.privacy.guarantees import ApproxDP, PureDP, ZeroConcentratedDP
        >>> accountant_for(PureDP(3)).name, accountant_for(ApproxDP(3, 1e-6), "approx").name
        ('pure', 'approx')
        >>> accountant_for(ZeroConcentratedDP(0.1))
        Traceback (most recent call last):
        privet.errors.UserError: no accountant supports ZeroConcentratedDP budgets, such as ZeroConcentratedDP(0.1).
        A budget must be one of: PureDP, ApproxDP. Write, for example: budget=pv.PureDP(3)
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
        return accountant
    for accountant in ACCOUNTANTS.values():
        if accountant.adaptive and type(budget) is accountant.promises:
            return accountant
    kinds = dict.fromkeys(one.promises.__name__ for one in ACCOUNTANTS.values() if one.adaptive)
    raise UserError(
        f"no accountant supports {type(budget).__name__} budgets, such as {budget!r}",
        allowed=f"A budget must be one of: {', '.join(kinds)}",
        subject=subject,
        remedy=remedy,
    )
