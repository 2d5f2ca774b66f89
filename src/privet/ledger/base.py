"""What every ledger can do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from privet.ledger.balance import NO_CAPS, Balance, Caps
from privet.ledger.entries import Charge, Entry, Outcome, Ration
from privet.ledger.facts import Dataset, TableFacts
from privet.ledger.receipts import Receipt, Verified
from privet.privacy.accounting import Accountant
from privet.privacy.events import PrivacyEvent
from privet.privacy.guarantees import Budget
from privet.system.identity import Identity


class Ledger(Protocol):
    """What every ledger can do.

    Claim: `reserve` reads, prices, compares with every cap and appends as one step, durable before it returns: debits
    that together cost too much can't both pass. What is reserved is spent, whatever happens after.
    """

    @property
    def created(self) -> bool:
        """Whether this call created the ledger."""

    def create(self, dataset: Dataset, *, tables: Sequence[TableFacts] = (), same_budget: bool = True) -> bytes:
        """Make the dataset and its tables known, or check that they are what they were; gives the dataset's salt."""

    def reserve(
        self,
        *,
        dataset: str,
        analyst: str,
        request_id: str | None,
        events: Sequence[PrivacyEvent],
        asked: str = "",
        question: str = "",
        statement: str = "",
        version: str = "1",
        fresh: bool = False,
        share: bool = True,
        caps: Caps = NO_CAPS,
    ) -> Charge:
        """Debit all events or none; or find the debit, and the answer, that an earlier request made for the same."""

    def stored(
        self,
        *,
        dataset: str,
        analyst: str,
        events: Sequence[PrivacyEvent],
        question: str,
        version: str = "1",
        share: bool = True,
    ) -> Charge | None:
        """The answer that `reserve` would return without a debit, if there is one; nothing is written."""

    def wait(self, charge: Charge, *, seconds: float = ...) -> Charge:
        """How a running request ended: answered, failed or interrupted; `LedgerBusy` if it takes longer than this."""

    def settle(self, charge: Charge, outcome: Outcome, answer: str = "") -> None:
        """Say how a reserved question ended, and keep its answer; once."""

    def abandon(self, charge: Charge, outcome: Outcome) -> None:
        """Settle a question without an answer as soon as the ledger can be written: nobody was shown one."""

    def cap(
        self, dataset: str, cap: Budget | None, *, reason: str, analyst: str | None = None, query: bool = False
    ) -> None:
        """Set the dataset's budget, an analyst's cap, or the cap of each question: an act of the steward."""

    def declare(self, dataset: str, version: str, reason: str = "") -> None:
        """Name a version of the data, once. It does not renew the budget."""

    def reopen(self, dataset: str, reason: str) -> None:
        """Reopen a dataset that was closed after failures: an act of the steward."""

    def protect(self, dataset: str, table: str, person: str, *, reason: str) -> None:
        """Change the column of a table that identifies the person of a row: an act of the steward."""

    def allow_source(self, to: str, source: Identity | str | Path, *, reason: str) -> None:
        """Let a dataset use a source that another dataset was opened with: an act of the steward."""

    def datasets(self) -> tuple[str, ...]:
        """The names of all datasets."""

    def balance(self, dataset: str, analyst: str | None = None) -> Balance:
        """What was granted and what is spent; of an analyst's cap too, if one is named."""

    def analysts(self, dataset: str) -> dict[str, Ration]:
        """What each analyst has spent, and may."""

    def history(self, dataset: str) -> tuple[Entry, ...]:
        """Every entry, oldest first."""

    def reservation(self, dataset: str, number: int) -> tuple[Entry, Entry | None]:
        """A reservation, and how it ended, if it did."""

    def head(self) -> Receipt:
        """Where the chain ends now."""

    def verify(self, expect: Receipt | str | None = None, *, answers: bool = True) -> Verified:
        """Check the whole chain, and that a receipt's entry is in it; `LedgerError` names the first bad entry."""

    def replay(self, dataset: str, accountant: Accountant[Any]) -> Budget:
        """What the whole history would have cost under another accountant."""

    def export(self, dataset: str | None = None) -> Iterator[str]:
        """The chain as lines of JSON, without the answers; `verify_export` checks them.

        For one dataset, entries of the others are there by their dataset's name and their hash only.
        """

    def close(self) -> None:
        """Close the storage."""
