"""The ledger: every debit is an entry, recorded before data are read and never taken back."""

from privet.ledger.balance import Balance, Caps, Limit, Remaining
from privet.ledger.base import Ledger
from privet.ledger.entries import Charge, Entry, Outcome, Ration, Totals
from privet.ledger.facts import CLOSES_AFTER, CLOSES_FOR, Dataset, TableFacts
from privet.ledger.opening import DatabaseLedger, memory_ledger, open_ledger
from privet.ledger.receipts import Receipt, Verified
from privet.ledger.verification import verify_export

__all__ = [
    "CLOSES_AFTER",
    "CLOSES_FOR",
    "Balance",
    "Caps",
    "Charge",
    "DatabaseLedger",
    "Dataset",
    "Entry",
    "Ledger",
    "Limit",
    "Outcome",
    "Ration",
    "Receipt",
    "Remaining",
    "TableFacts",
    "Totals",
    "Verified",
    "memory_ledger",
    "open_ledger",
    "verify_export",
]
