"""Accounting, from events to guarantees: accountants price events, add prices, and enforce budgets.

An accountant knows events, not mechanisms, so a better accountant can replay an old ledger. It owns its state: a ledger
stores totals as the accountant writes them, and never adds or compares them itself.

Example:
    >>> from privet.privacy.events import Composed, LaplaceNoise
    >>> from privet.privacy.moves import L1Move
    >>> half = LaplaceNoise(move=L1Move(1), scale=2)
    >>> for accountant in ACCOUNTANTS.values():
    ...     print(accountant.name, accountant.account(Composed([half, half])))
    pure epsilon 1
    approx epsilon 1, delta 0
"""

from privet.privacy.accounting.approx import ApproxAccountant
from privet.privacy.accounting.base import Accountant, Shown
from privet.privacy.accounting.pure import PureAccountant
from privet.privacy.accounting.registry import ACCOUNTANTS, accountant_for, accountant_named

__all__ = [
    "ACCOUNTANTS",
    "Accountant",
    "ApproxAccountant",
    "PureAccountant",
    "Shown",
    "accountant_for",
    "accountant_named",
]
