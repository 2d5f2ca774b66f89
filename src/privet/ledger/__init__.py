"""What was spent: every debit is an entry, made before data are read and never taken back."""

from privet.ledger.entries import Balance, Budget, Charge, Dataset, Entry, Ledger, Outcome
from privet.ledger.memory import MemoryLedger

__all__ = ["Balance", "Budget", "Charge", "Dataset", "Entry", "Ledger", "MemoryLedger", "Outcome"]
