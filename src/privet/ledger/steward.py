"""The acts of the steward: datasets and their tables, caps, versions, reopening. Each is an entry."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from privet.errors import Remedy, Subject, UserError, write
from privet.ledger import ownership
from privet.ledger.entries import Totals
from privet.ledger.facts import Dataset, TableFacts
from privet.ledger.state import DatasetState
from privet.ledger.transactions import Transactions
from privet.noise.entropy import SystemBits
from privet.privacy.guarantees import Budget
from privet.system.identity import Identity
from privet.tables.schema import check_name


class Steward(Transactions):
    """What changes a dataset, and spends nothing."""

    def create(self, dataset: Dataset, *, tables: Sequence[TableFacts] = (), same_budget: bool = True) -> bytes:
        """Record the dataset and its tables, or check that they are what they were; returns the dataset's salt.

        A session by a policy keeps to the smaller of two budgets, so its budget may be another one.
        """
        name = check_name(dataset.name, "dataset")
        ownership.check_unit(dataset, tables)
        with self._reading():
            known = self._agreed(dataset, same_budget=same_budget)
            if known is not None and not ownership.arriving(self._state, name, tables):
                return known.salt
        with self._writing() as journal:
            known = self._agreed(dataset, same_budget=same_budget)
            arriving = ownership.arriving(self._state, name, tables)
            accountant = dataset.accounting
            totals = Totals(accountant, dataset.budget, accountant.zero) if known is None else known.totals
            salt = SystemBits().take(16).hex() if known is None else known.salt.hex()
            if known is None:
                ownership.check_name(self._state, name)
                journal.append(name, "created", totals, facts=dataset, salt=salt)
            for table in arriving:
                journal.append(name, "attached", totals, table=table)
        return bytes.fromhex(salt)

    def _agreed(self, dataset: Dataset, *, same_budget: bool) -> DatasetState | None:
        """The dataset as the ledger knows it, if it does; refused if it is opened as another one."""
        state = self._state.datasets.get(dataset.name)
        if state is None:
            return None
        known, budget = state.facts, state.totals.budget
        for what in ("protect", "adjacency", "accountant"):
            was, is_now = getattr(known, what), getattr(dataset, what)
            if was != is_now:
                raise UserError(
                    f"the dataset {known.name!r} was made with {what} {was}, and is opened with {is_now}. "
                    "These facts are fixed for its whole life",
                    subject=Subject("dataset", known.name),
                    remedy=Remedy("Open it as it was made"),
                )
        if same_budget and budget != dataset.budget:
            raise UserError(
                f"the dataset {known.name!r} has a budget of {budget}, and is opened with {dataset.budget}",
                subject=Subject("argument", "budget"),
                remedy=write(
                    f"budget=pv.{budget!r}; or, as the steward: "
                    f'pv.open_ledger("people.ledger").cap({known.name!r}, pv.{dataset.budget!r}, reason="new consent")',
                    terminal='privet ledger cap --epsilon 3 --reason "new consent"',
                    advice="Open it with the budget that it has, or let the steward change it",
                ),
            )
        return state

    def cap(
        self, dataset: str, cap: Budget | None, *, reason: str, analyst: str | None = None, query: bool = False
    ) -> None:
        """Set the dataset's budget, an analyst's cap, or the cap of each question; None takes one of the latter off."""
        why = reason_given(reason, "cap")
        if analyst is not None:
            check_name(analyst, "analyst")
        if query and analyst is not None:
            raise UserError("a cap is for the dataset, for an analyst, or for each question: name one of these")
        with self._writing() as journal:
            state = self._dataset(dataset)
            totals = state.totals
            if cap is not None:
                state.facts.check_budget(cap)
            if analyst is not None:
                mine = state.ration(analyst)._replace(cap=cap)
                journal.append(dataset, "capped", totals, analyst=analyst, ration=mine, note=why)
            elif query:
                journal.append(dataset, "capped", totals._replace(per_query=cap), note=why)
            elif cap is not None:
                journal.append(dataset, "capped", totals._replace(budget=cap), note=why)
            else:
                raise UserError(
                    "the budget of a dataset can't be removed, only changed",
                    subject=Subject("argument", "cap"),
                    remedy=write(
                        'ledger.cap("people", pv.PureDP(3), reason="new consent")',
                        terminal='privet ledger cap --epsilon 3 --reason "new consent"',
                    ),
                )

    def declare(self, dataset: str, version: str, reason: str = "") -> None:
        """Name a version of the data, once. It does not renew the budget."""
        check_name(version, "version")
        why = reason_given(reason, "declare") if reason else ""
        with self._reading():
            if version in self._dataset(dataset).versions:
                return
        with self._writing() as journal:
            state = self._dataset(dataset)
            if version not in state.versions:
                journal.append(dataset, "declared", state.totals, version=version, note=why)

    def reopen(self, dataset: str, reason: str) -> None:
        """Reopen a dataset that was closed after failures, to all analysts."""
        why = reason_given(reason, "reopen")
        with self._writing() as journal:
            journal.append(dataset, "reopened", self._dataset(dataset).totals._replace(failures=0), note=why)

    def protect(self, dataset: str, table: str, person: str, *, reason: str) -> None:
        """Change the column of a table that identifies the person of a row: an act of the steward."""
        why = reason_given(reason, "protect")
        named = TableFacts(check_name(table, "table"), check_name(person, "column"))
        with self._writing() as journal:
            state = self._dataset(dataset)
            if state.facts.protect != "person":
                raise UserError(f"the dataset {dataset!r} protects each row, for ever: there is no column to name")
            journal.append(dataset, "protected", state.totals, table=named, note=why)

    def allow_source(self, to: str, source: Identity | str | Path, *, reason: str) -> None:
        """Let a dataset use a source that another dataset was opened with: an act of the steward.

        A source is a file, or for a table in a DuckDB file "people.duckdb:visits".
        """
        why = reason_given(reason, "allow_source")
        check_name(to, "dataset")
        identity = source if isinstance(source, Identity) else ownership.named(str(source))
        with self._writing() as journal:
            owners = list(ownership.owners(self._state, to, [identity]))
            if not owners:
                raise UserError(
                    f"no other dataset of this ledger was opened with {str(identity)!r}, so there is nothing to allow",
                    allowed=f"There are: {', '.join(ownership.known(self._state)) or 'none'}",
                )
            for owner, taken in owners:
                table = TableFacts("", "", tuple(taken))
                journal.append(owner, "allowed", self._dataset(owner).totals, table=table, to=to, note=why)


def reason_given(reason: object, act: str) -> str:
    """The reason for an act of the steward, or a refusal."""
    if isinstance(reason, str) and reason.strip() and reason.isprintable() and len(reason) <= 1000:
        return reason.strip()
    example = 'reason="more memory for the engine"'
    raise UserError(
        "a reason must be given, in up to 1,000 printable characters",
        subject=Subject("argument", "reason"),
        remedy=write(f"{act}(..., {example})", terminal='--reason "more memory for the engine"'),
    )
