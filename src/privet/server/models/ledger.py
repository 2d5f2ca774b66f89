"""Certificates, the ledger, and what stewards do to budgets."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, JsonValue, RootModel

from privet.server.models.base import Model, Name, Number


class Certificate(RootModel[dict[str, Any]]):
    """A certificate, whole."""


class Verify(Model):
    """A certificate to check."""

    certificate: dict[str, JsonValue]
    receipt: Name | None = None
    """A receipt that the ledger must contain."""


class Verified(Model):
    """What was checked, as `privet verify --json` prints it."""

    model_config = ConfigDict(extra="allow")
    promise: str


class Head(Model):
    """The end of the ledger's chain."""

    receipt: str
    """A receipt, to be kept elsewhere."""


class VerifyLedger(Model):
    """A check of the whole ledger."""

    receipt: Name | None = None
    """A receipt that the ledger must contain."""


class VerifiedLedger(Model):
    """The ledger was read from its first entry, and is sound."""

    head: str
    entries: dict[str, int]
    """The number of entries, by dataset."""


class ReceiptOf(Model):
    """The receipt of an entry."""

    receipt: str
    time: str
    dataset: str
    kind: str


class Receipts(Model):
    """Receipts of the latest entries, newest first."""

    receipts: list[ReceiptOf]


Reason = Annotated[str, Field(min_length=1, max_length=1000)]


class Cap(Model):
    """A new budget or cap. Without an amount, an analyst's cap or the cap of each question is removed."""

    epsilon: Number | None = None
    delta: Number | None = None
    rho: Number | None = None
    analyst: Name | None = None
    """Whose cap; without a name, the dataset's budget."""
    query: bool = False
    """Whether it is the cap of each single question."""
    reason: Reason
    """Recorded in the ledger."""


class Reopen(Model):
    """A dataset that was closed after failures is opened again."""

    reason: Reason
    """Recorded in the ledger."""


class Done(Model):
    """What a steward did, as the ledger records it."""

    entry: int
    """The number of the entry."""
