"""Receipts: the end of a ledger's chain, to be kept elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from privet.errors import UserError, write

_RECEIPT = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Receipt:
    """The end of a ledger's chain. Kept elsewhere, it reveals that somebody restored an older copy.

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
        """Parse a receipt."""
        match = _RECEIPT.fullmatch(str(text).strip())
        if match is None:
            raise UserError(
                f"{str(text)[:60]!r} is not a receipt",
                remedy=write("str(session.ledger.head())", terminal="privet ledger head people.ledger"),
            )
        return cls(int(match[1]), match[2])


def as_receipt(receipt: Receipt | str | None) -> Receipt | None:
    """A receipt, parsed if it is text."""
    return Receipt.read(receipt) if isinstance(receipt, str) else receipt


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of a successful verification."""

    head: Receipt
    entries: dict[str, int]
    """The number of entries that were read and checked, by dataset."""
    hidden: dict[str, int] = field(default_factory=dict)
    """The number of entries of which an export shows only a hash, by dataset. What they say was not checked."""
