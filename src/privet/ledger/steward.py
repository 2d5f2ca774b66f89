"""The steward's actions: datasets and their tables, caps, versions, reopening. Each is an entry."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from privet.errors import Remedy, Subject, UserError, write
from privet.exact import literal
from privet.ledger import ownership
from privet.ledger.history.datasets import Dataset, TableFacts
from privet.ledger.history.entries import Totals
from privet.ledger.history.state import DatasetState
from privet.ledger.transactions import Transactions
from privet.noise.entropy import SystemBits
from privet.privacy.guarantees import Budget
from privet.privacy.guarantees.budgets import different_kind, numbers
from privet.system.identity import Identity
from privet.tables.schema import check_name


class Steward(Transactions):
    """The operations that change a dataset without spending."""

    def create(
        self,
        dataset: Dataset,
        *,
        tables: Sequence[TableFacts] = (),
        public: Sequence[Identity] = (),
        same_budget: bool = True,
    ) -> bytes:
        """Record the dataset and its tables, or check that they match the record; returns the dataset's salt.

        The sources of its public tables (`public`) must not be those of any private table, of any dataset.
        A session that uses a policy applies the smaller of two budgets, so its budget may differ (`same_budget`).
        """
        name = check_name(dataset.name, "dataset")
        ownership.check_unit(dataset, tables)
        with self._reading():
            ownership.check_public(self._state, tables, public)
            state = self._agreed(dataset, same_budget=same_budget)
            if state is not None and not ownership.arriving(self._state, name, tables):
                return state.salt
        with self._writing() as book:
            ownership.check_public(self._state, tables, public)
            state = self._agreed(dataset, same_budget=same_budget)
            arriving = ownership.arriving(self._state, name, tables)
            accountant = dataset.new_accountant()
            totals = Totals(accountant, dataset.budget, accountant.zero) if state is None else state.totals
            salt = SystemBits().take(16).hex() if state is None else state.salt.hex()
            if state is None:
                ownership.check_name(self._state, name)
                book.append(name, "created", totals, facts=dataset, salt=salt)
            for table in arriving:
                book.append(name, "attached", totals, table=table)
        return bytes.fromhex(salt)

    def _agreed(self, dataset: Dataset, *, same_budget: bool) -> DatasetState | None:
        """The recorded dataset, or None; refused if it is opened with different facts."""
        state = self._state.datasets.get(dataset.name)
        if state is None:
            return None
        recorded, budget = state.facts, state.totals.budget
        if type(budget) is not type(dataset.budget):
            raise different_kind(recorded.name, budget, dataset.budget)
        for name in ("protect", "adjacency", "accountant"):
            was, is_now = getattr(recorded, name), getattr(dataset, name)
            if was != is_now:
                raise UserError(
                    f"the dataset {recorded.name!r} was created with {name} {was}, but is opened with {is_now}. "
                    "This can't be changed",
                    subject=Subject("dataset", recorded.name),
                    remedy=Remedy(f"Open it with {name} {was}"),
                )
        if same_budget and budget != dataset.budget:
            raise UserError(
                f"the dataset {recorded.name!r} has a budget of {budget}, but is opened with {dataset.budget}",
                subject=Subject("argument", "budget"),
                remedy=write(
                    f"budget=pv.{budget!r}; or, as the steward: "
                    f'pv.open_ledger("people.ledger").cap({recorded.name!r}, pv.{dataset.budget!r}, reason="new '
                    'consent")',
                    terminal=f'privet ledger cap {_flags(dataset.budget)} --reason "new consent"',
                    advice="Open it with its recorded budget, or let the steward change that",
                ),
            )
        return state

    def cap(
        self,
        dataset: str,
        cap: Budget | None,
        *,
        reason: str,
        analyst: str | None = None,
        query: bool = False,
        by: str = "",
    ) -> None:
        """Set the dataset's budget, an analyst's cap, or the per-query cap; None removes a cap, but not the budget.

        `by` names the steward, as for every other act.
        """
        note, by = check_reason(reason, "cap"), check_by(by)
        if analyst is not None:
            check_name(analyst, "analyst")
        if query and analyst is not None:
            raise UserError("a cap applies to an analyst or to each question, not to both: leave one of them out")
        with self._writing() as book:
            state = self._dataset(dataset)
            totals = state.totals
            if cap is not None:
                state.facts.check_budget(cap)
            if analyst is not None:
                ration = state.ration(analyst)._replace(cap=cap)
                book.append(dataset, "capped", totals, analyst=analyst, ration=ration, note=note, by=by)
            elif query:
                book.append(dataset, "capped", totals._replace(per_query=cap), note=note, by=by)
            elif cap is not None:
                book.append(dataset, "capped", totals._replace(budget=cap), note=note, by=by)
            else:
                raise UserError(
                    "the budget of a dataset can't be removed, only changed",
                    subject=Subject("argument", "cap"),
                    remedy=write(
                        'ledger.cap("people", pv.PureDP(3), reason="new consent")',
                        terminal=f'privet ledger cap {_flags(state.totals.budget)} --reason "new consent"',
                    ),
                )

    def declare(self, dataset: str, version: str, reason: str = "") -> None:
        """Declare a version of the data. This does not renew the budget; declaring it again does nothing."""
        check_name(version, "version")
        note = check_reason(reason, "declare") if reason else ""
        with self._reading():
            if version in self._dataset(dataset).versions:
                return
        with self._writing() as book:
            state = self._dataset(dataset)
            if version not in state.versions:
                book.append(dataset, "declared", state.totals, version=version, note=note)

    def reopen(self, dataset: str, reason: str, *, by: str = "") -> None:
        """Reopen a dataset that was closed after failures, for all analysts."""
        note, by = check_reason(reason, "reopen"), check_by(by)
        with self._writing() as book:
            book.append(dataset, "reopened", self._dataset(dataset).totals._replace(failures=0), note=note, by=by)

    def administer(self, datasets: Collection[str], note: str, *, by: str) -> None:
        """Record what a steward did that concerns these datasets, such as giving somebody access: all or none."""
        note, by = check_reason(note, "administer"), check_by(by)
        if not by:
            raise UserError("an act of a steward needs the steward's name", subject=Subject("argument", "by"))
        with self._writing() as book:
            for dataset in sorted(datasets):
                book.append(dataset, "administered", self._dataset(dataset).totals, note=note, by=by)

    def protect(self, dataset: str, table: str, person: str, *, reason: str, by: str = "") -> None:
        """Change the column of a table that identifies people: an action of the steward."""
        note, by = check_reason(reason, "protect"), check_by(by)
        facts = TableFacts(check_name(table, "table"), check_name(person, "column"))
        with self._writing() as book:
            state = self._dataset(dataset)
            if state.facts.protect != "person":
                raise UserError(
                    f"the dataset {dataset!r} protects each row, so it has no column that identifies people. This "
                    "can't be changed"
                )
            book.append(dataset, "protected", state.totals, table=facts, note=note, by=by)

    def allow_source(self, to: str, source: Identity | str | Path, *, reason: str, by: str = "") -> None:
        """Allow a dataset to use a source of another dataset: an action of the steward.

        A source is a file, or a table in a DuckDB file, such as "people.duckdb:visits".
        """
        note, by = check_reason(reason, "allow_source"), check_by(by)
        check_name(to, "dataset")
        identity = source if isinstance(source, Identity) else ownership.identity_of(str(source))
        with self._writing() as book:
            owners = list(ownership.owners(self._state, to, [identity]))
            if not owners:
                raise UserError(
                    f"no other dataset of this ledger uses {str(identity)!r}, so there is nothing to allow",
                    allowed="The ledger knows these sources: "
                    f"{', '.join(ownership.all_sources(self._state)) or 'none'}",
                )
            for owner, owned in owners:
                table = TableFacts("", "", tuple(owned))
                book.append(owner, "allowed", self._dataset(owner).totals, table=table, to=to, note=note, by=by)


def _flags(budget: Budget) -> str:
    return " ".join(f"--{name} {literal(number).strip(chr(34))}" for name, number in numbers(budget).items())


def check_by(by: object) -> str:
    """The name of the steward who acts; empty if it is not given."""
    if isinstance(by, str) and by.isprintable() and len(by) <= 200:
        return by
    raise UserError("by must be the steward's name", subject=Subject("argument", "by"))


def check_reason(reason: object, action: str) -> str:
    """The reason for an action of the steward; refused if it is missing."""
    if isinstance(reason, str) and reason.strip() and reason.isprintable() and len(reason) <= 1000:
        return reason.strip()
    example = 'reason="more memory for the engine"'
    raise UserError(
        "a reason is required, with at most 1,000 printable characters",
        subject=Subject("argument", "reason"),
        remedy=write(f"{action}(..., {example})", terminal='--reason "more memory for the engine"'),
    )
