"""What was spent: every debit is an entry, made before data are read and never taken back."""

from privet.ledger.durable import DurableLedger
from privet.ledger.entries import (
    CLOSES_AFTER,
    CLOSES_FOR,
    Balance,
    Budget,
    Caps,
    Charge,
    Dataset,
    Entry,
    Ledger,
    Outcome,
    Ration,
    Receipt,
    TableFacts,
    Totals,
    Verified,
    smaller,
    words,
)
from privet.ledger.opening import MemoryLedger, open_ledger
from privet.ledger.verification import verify_export

__all__ = [
    "CLOSES_AFTER",
    "CLOSES_FOR",
    "Balance",
    "Budget",
    "Caps",
    "Charge",
    "Dataset",
    "DurableLedger",
    "Entry",
    "Ledger",
    "MemoryLedger",
    "Outcome",
    "Ration",
    "Receipt",
    "TableFacts",
    "Totals",
    "Verified",
    "open_ledger",
    "smaller",
    "verify_export",
    "words",
]
