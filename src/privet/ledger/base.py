"""The contract of every ledger."""

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
    """The contract of every ledger.

    Claim: `reserve` reads, prices, compares with every cap and appends in one atomic step that is durable before it
    returns, so two debits that together exceed a cap cannot both pass. A reservation is spent, whatever happens next.
    """

    @property
    def created(self) -> bool:
        """Whether this call created the ledger."""

    def create(
        self,
        dataset: Dataset,
        *,
        tables: Sequence[TableFacts] = (),
        public: Sequence[Identity] = (),
        same_budget: bool = True,
    ) -> bytes:
        """Record the dataset and its tables, or check that they match the record; returns the dataset's salt.

        The sources of its public tables (`public`) must not be those of any private table.
        """

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
        """Debit all events or none, or return the debit and answer of an earlier request for the same question."""

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
        """Wait until a running request is answered, failed or interrupted; raises `LedgerBusy` after `seconds`."""

    def settle(self, charge: Charge, outcome: Outcome, answer: str = "") -> None:
        """Record how a reserved question ended, and store its answer. A reservation is settled once."""

    def abandon(self, charge: Charge, outcome: Outcome) -> None:
        """Settle a question whose answer was not shown, as soon as the ledger can be written."""

    def cap(
        self, dataset: str, cap: Budget | None, *, reason: str, analyst: str | None = None, query: bool = False
    ) -> None:
        """Set the dataset's budget, an analyst's cap, or the per-query cap: an action of the steward."""

    def declare(self, dataset: str, version: str, reason: str = "") -> None:
        """Declare a version of the data. This does not renew the budget; declaring it again does nothing."""

    def reopen(self, dataset: str, reason: str) -> None:
        """Reopen a dataset that was closed after failures: an action of the steward."""

    def protect(self, dataset: str, table: str, person: str, *, reason: str) -> None:
        """Change the column of a table that identifies people: an action of the steward."""

    def allow_source(self, to: str, source: Identity | str | Path, *, reason: str) -> None:
        """Allow a dataset to use a source of another dataset: an action of the steward."""

    def datasets(self) -> tuple[str, ...]:
        """The names of all datasets."""

    def balance(self, dataset: str, analyst: str | None = None) -> Balance:
        """The budget and what is spent; for a named analyst, also that analyst's cap and spending."""

    def analysts(self, dataset: str) -> dict[str, Ration]:
        """Each analyst's spending and cap."""

    def history(self, dataset: str) -> tuple[Entry, ...]:
        """Every entry, oldest first."""

    def reservation(self, dataset: str, number: int) -> tuple[Entry, Entry | None]:
        """A reservation, and the entry that settled it, if there is one."""

    def head(self) -> Receipt:
        """The receipt of the newest entry."""

    def verify(self, expect: Receipt | str | None = None, *, answers: bool = True) -> Verified:
        """Check the whole chain, and that it contains a receipt's entry; a `LedgerError` names the first bad entry."""

    def replay(self, dataset: str, accountant: Accountant[Any]) -> Budget:
        """What the whole history would have cost under another accountant."""

    def export(self, dataset: str | None = None) -> Iterator[str]:
        """The chain as lines of JSON, without the answers; `verify_export` checks them.

        With `dataset`, entries of other datasets show only the dataset's name and a hash.
        """

    def close(self) -> None:
        """Close the storage."""
