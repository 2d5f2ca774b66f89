"""The ledger: every debit is an entry, recorded before data are read and never taken back.

Its operations are `reservations` (questions), `steward` and `inspection`; `balance` and `debits` are the rules.
`history/` has the entries, their chain and the state after them; `storage/` keeps them.
"""

from privet.ledger.balance import Balance, Caps, Limit, Remaining
from privet.ledger.history.datasets import CLOSES_AFTER, CLOSES_FOR, Dataset, TableFacts
from privet.ledger.history.entries import Charge, Entry, Outcome, Ration, Totals
from privet.ledger.history.export import verify_export
from privet.ledger.history.receipts import Receipt, Verified
from privet.ledger.opening import Ledger, memory_ledger, open_ledger

__all__ = [
    "CLOSES_AFTER",
    "CLOSES_FOR",
    "Balance",
    "Caps",
    "Charge",
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
