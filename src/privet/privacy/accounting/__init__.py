"""Accounting, from events to guarantees: accountants price events, add prices, and enforce budgets.

An accountant knows events, not mechanisms, so a better accountant can replay an old ledger. It owns its state: a ledger
stores totals as the accountant writes them, and never adds or compares them itself.

Example:
    >>> from privet.privacy.events import Composed, LaplaceNoise
    >>> from privet.privacy.moves import L1Move
    >>> half = LaplaceNoise(move=L1Move(1), scale=2)
    >>> for accountant in (PureAccountant(), ApproxAccountant(), ConcentratedAccountant()):
    ...     print(accountant.name, accountant.account(Composed([half, half])))
    pure epsilon 1
    approx epsilon 1, delta 0
    concentrated rho 0.25
"""

from privet.privacy.accounting.approx import ApproxAccountant
from privet.privacy.accounting.base import Accountant, Share, Shown
from privet.privacy.accounting.batches import BatchAccountant, fixed_batch
from privet.privacy.accounting.concentrated import ConcentratedAccountant
from privet.privacy.accounting.guarantee import guarantee_of
from privet.privacy.accounting.meters import MeterAccountant
from privet.privacy.accounting.pure import PureAccountant
from privet.privacy.accounting.registry import ACCOUNTANTS, accountant_for, accountant_named

__all__ = [
    "ACCOUNTANTS",
    "Accountant",
    "ApproxAccountant",
    "BatchAccountant",
    "ConcentratedAccountant",
    "MeterAccountant",
    "PureAccountant",
    "Share",
    "Shown",
    "accountant_for",
    "accountant_named",
    "fixed_batch",
    "guarantee_of",
]
