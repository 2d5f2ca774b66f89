"""Whose rows a source holds: one dataset's, unless the steward says otherwise.

Claim: a dataset gets no budget of its own for rows that a ledger knows under another name, as far as their place tells.
The column that identifies the person of a row stays the same for each table, and for each source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from privet.errors import Remedy, Subject, UserError, write
from privet.ledger.facts import Dataset, TableFacts
from privet.ledger.state import DatasetState, LedgerState
from privet.names.lookalikes import confusable, normalised
from privet.system.addresses import is_address
from privet.system.identity import Identity, of_database, of_files, pairs, shared, table_name


def check_name(ledger: LedgerState, name: str) -> None:
    """Refuse the name of a new dataset that people would take for another one."""
    for known in ledger.datasets:
        if confusable(known, name):
            raise UserError(
                f"the ledger has a dataset {known!r}, and {name!r} reads the same: it would get a budget of its own",
                subject=Subject("dataset", name),
                remedy=Remedy(f"Open it as {known!r}, or choose a name that differs more"),
            )
    if normalised(name) != name:
        raise UserError(
            f"the name {name!r} of a dataset would be taken for {normalised(name)!r}",
            subject=Subject("dataset", name),
            remedy=Remedy(f"Call it {normalised(name)!r}"),
        )


def check_unit(dataset: Dataset, tables: Sequence[TableFacts]) -> None:
    """Refuse tables that no dataset can have: an unlawful entry would end the ledger."""
    for table in tables:
        if bool(table.person) != (dataset.protect == "person"):
            raise UserError(
                f"the dataset {dataset.name!r} protects each {dataset.protect}, and the table {table.table!r} is "
                f"opened {'with' if table.person else 'without'} a column that identifies the person of a row",
                subject=Subject("table", table.table),
            )
    if len({table.table for table in tables}) < len(tables):
        raise UserError(f"two tables of the dataset {dataset.name!r} have the same name")


def arriving(ledger: LedgerState, dataset: str, tables: Sequence[TableFacts]) -> list[TableFacts]:
    """The tables and sources that a dataset is opened with and was not before: to be recorded; or refused."""
    state = ledger.datasets.get(dataset)
    tables_and_sources: list[TableFacts] = []
    for place, table in enumerate(tables):
        _check_together(state, tables[:place], table)
        if state is not None:
            _check_person(state, table)
        new = tuple(each for each in table.sources if state is None or not _is_recorded(state, table.table, each))
        if new:
            _check_owner(ledger, dataset, new)
        if new or state is None or table.table not in state.persons:
            tables_and_sources.append(replace(table, sources=new))
    return tables_and_sources


def _check_together(state: DatasetState | None, others: Sequence[TableFacts], table: TableFacts) -> None:
    """Two tables over the same rows identify people by the same column, unless the steward said otherwise."""
    stated = set() if state is None else state.protected
    for other in others:
        if other.person == table.person or stated & {table.table, other.table}:
            continue
        if shared(other.sources, table.sources):
            raise UserError(
                f"the tables {other.table!r} and {table.table!r} have the same rows, and one identifies people by "
                f"{other.person!r}, the other by {table.person!r}",
                subject=Subject("table", table.table),
                remedy=Remedy("Name the same column in both"),
            )


def _is_recorded(state: DatasetState, table: str, source: Identity) -> bool:
    """Whether a source is recorded as it is; when it was last written does not matter."""
    return any(
        (known.path, known.given, known.inode, known.table) == (source.path, source.given, source.inode, source.table)
        for known in state.sources.get(table, ())
    )


def _check_person(state: DatasetState, table: TableFacts) -> None:
    name, known = table.table, state.persons.get(table.table)
    if known in (None, table.person) and name not in state.protected:  # another table must not get round it
        for other, sources in state.sources.items():
            if state.persons[other] != table.person and shared(sources, table.sources):
                name, known = other, state.persons[other]
                break
    if known in (None, table.person):
        return
    raise UserError(
        f"the table {name!r} of the dataset {state.facts.name!r} was opened with {known!r} as the column that "
        f"identifies the person of a row, and now with {table.person!r}. Who is protected is fixed",
        subject=Subject("person", table.person, table.table),
        remedy=write(
            f'pv.open_ledger("people.ledger").protect({state.facts.name!r}, {table.table!r}, '
            f'{table.person!r}, reason="...")',
            terminal=f'privet ledger protect --table {table.table} --person {table.person} --reason "..."',
            advice=f"Open it with {known!r}, or let the steward change it",
            exact=True,
        ),
    )


def _check_owner(ledger: LedgerState, dataset: str, sources: Sequence[Identity]) -> None:
    for owner, taken in owners(ledger, dataset, sources):
        granted = [source for to, source in ledger.datasets[owner].allowed if to == dataset]
        allowed = {now for _, now in pairs(granted, taken)}
        for source in taken:
            if source not in allowed:
                named = f"{source.path}:{source.table}" if source.table else source.path
                raise UserError(
                    f"the rows of {str(source)!r} belong to the dataset {owner!r} of this ledger. Under the name "
                    f"{dataset!r} the same people would have a second budget",
                    subject=Subject("dataset", dataset),
                    remedy=write(
                        f'pv.open_ledger("people.ledger").allow_source({dataset!r}, {named!r}, reason="...")',
                        terminal=f'privet ledger allow-source --source "{named}" --to {dataset} --reason "..."',
                        advice=f"Ask for them as {owner!r}. If they are other people, the steward can allow it",
                        exact=True,
                    ),
                )


def named(source: str) -> Identity:
    """The identity of a source as a steward names it: a file, "people.duckdb:visits", or all of a database."""
    if is_address(source):
        return of_database(source)
    path, sign, table = source.rpartition(":")
    if sign and path.lower().endswith((".duckdb", ".ddb", ".db")):
        return of_files([path], table=table_name("main", table) if "." not in table else table.casefold())[0]
    return of_files([source])[0]


def known(ledger: LedgerState) -> list[str]:
    """Every source that the ledger knows, for people to read."""
    return sorted(
        {str(source) for state in ledger.datasets.values() for each in state.sources.values() for source in each}
    )


def owners(ledger: LedgerState, dataset: str, sources: Sequence[Identity]) -> Iterator[tuple[str, list[Identity]]]:
    """Each other dataset that was opened with some of these sources, and which."""
    for name, state in ledger.datasets.items():
        if name != dataset:
            known = [source for each in state.sources.values() for source in each]
            taken = list(dict.fromkeys(now for _, now in pairs(known, sources)))
            if taken:
                yield name, taken
