"""Receipts: where a ledger's chain ended, to be kept elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass

from privet.errors import UserError, write

_RECEIPT = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Receipt:
    """Where a ledger's chain ended. Kept elsewhere, it shows when an older copy was put back.

    Example:
        >>> str(Receipt(12, "ab" * 32))[:20], Receipt.read("12:" + "ab" * 32).number
        ('12:ababababababababa', 12)
    """

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"

    @classmethod
    def read(cls, text: str) -> Receipt:
        """A receipt from its text."""
        parts = _RECEIPT.fullmatch(str(text).strip())
        if parts is None:
            raise UserError(
                f"this is not a receipt: {str(text)[:60]!r}",
                remedy=write("str(session.ledger.head())", terminal="privet ledger head people.ledger"),
            )
        return cls(int(parts[1]), parts[2])


def as_receipt(given: Receipt | str | None) -> Receipt | None:
    """A receipt, from itself or from its text."""
    return Receipt.read(given) if isinstance(given, str) else given


@dataclass(frozen=True, slots=True)
class Verified:
    """A ledger that verifies: where its chain ends, and how many entries each dataset has."""

    head: Receipt
    entries: dict[str, int]
