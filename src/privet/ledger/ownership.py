"""Ownership of sources: each source belongs to one dataset, unless the steward allows another.

Claim: rows that the ledger already knows get no second budget under another dataset's name, as far as their location
can tell. The column that identifies people stays the same for each table and for each source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from privet.errors import Remedy, Subject, UserError, write
from privet.ledger.history.datasets import Dataset, TableFacts
from privet.ledger.history.state import DatasetState, LedgerState
from privet.names.lookalikes import confusable, normalised
from privet.system.addresses import is_address
from privet.system.identity import Identity, of_database, of_files, pairs, shared, table_name
from privet.system.object_addresses import ObjectAddress, is_object_address


def check_name(ledger: LedgerState, name: str) -> None:
    """Refuse the name of a new dataset that looks like another dataset's name."""
    for other in ledger.datasets:
        if confusable(other, name):
            raise UserError(
                f"{name!r} looks like {other!r}, a dataset of this ledger, but would get a separate budget",
                subject=Subject("dataset", name),
                remedy=Remedy(f"Open it as {other!r}, or choose a name that is easier to tell apart"),
            )
    if normalised(name) != name:
        raise UserError(
            f"the dataset name {name!r} looks like {normalised(name)!r}, but is spelled with other characters",
            subject=Subject("dataset", name),
            remedy=Remedy(f"Call it {normalised(name)!r}"),
        )


def check_unit(dataset: Dataset, tables: Sequence[TableFacts]) -> None:
    """Refuse tables that do not fit the dataset's privacy unit: an invalid entry would make the ledger unusable."""
    for table in tables:
        if bool(table.person) != (dataset.protect == "person"):
            raise UserError(
                f"the dataset {dataset.name!r} protects each {dataset.protect}, but the table {table.table!r} "
                f"{'names a' if table.person else 'does not name a'} column that identifies people",
                subject=Subject("table", table.table),
            )
    if len({table.table for table in tables}) < len(tables):
        raise UserError(f"two tables of the dataset {dataset.name!r} have the same name")


def check_public(ledger: LedgerState, tables: Sequence[TableFacts], public: Sequence[Identity]) -> None:
    """Refuse public tables with the rows of a private one: their values would be used without protection."""
    for table in tables:
        _check_public(table.sources, public, f"the private table {table.table!r}")
    for name, state in ledger.datasets.items():
        recorded = [source for sources in state.sources.values() for source in sources]
        _check_public(recorded, public, f"the dataset {name!r} of this ledger")


def _check_public(private: Sequence[Identity], public: Sequence[Identity], owner: str) -> None:
    both = shared(private, public)
    if both is not None:
        raise UserError(
            f"the rows of {str(both[1])!r} belong to {owner}, so they can't be public: each value would be "
            "used without protection",
            subject=Subject("argument", "public"),
            remedy=Remedy("Use another file, which contains nothing but what is public"),
        )


def arriving(ledger: LedgerState, dataset: str, tables: Sequence[TableFacts]) -> list[TableFacts]:
    """The tables and sources that are new for a dataset and must be recorded; refused if they belong to another."""
    state = ledger.datasets.get(dataset)
    arriving: list[TableFacts] = []
    for index, table in enumerate(tables):
        _check_together(state, tables[:index], table)
        if state is not None:
            _check_person(state, table)
        new = tuple(one for one in table.sources if state is None or not _is_recorded(state, table.table, one))
        if new:
            _check_owner(ledger, dataset, new)
        if new or state is None or table.table not in state.persons:
            arriving.append(replace(table, sources=new))
    return arriving


def _check_together(state: DatasetState | None, others: Sequence[TableFacts], table: TableFacts) -> None:
    """Two tables over the same rows must identify people by the same column, unless the steward set another."""
    stated = set() if state is None else state.protected
    for other in others:
        if other.person == table.person or stated & {table.table, other.table}:
            continue
        if shared(other.sources, table.sources):
            raise UserError(
                f"the tables {other.table!r} and {table.table!r} have the same rows, but one identifies people by "
                f"{other.person!r} and the other by {table.person!r}",
                subject=Subject("table", table.table),
                remedy=Remedy("Name the same column in both"),
            )


def _is_recorded(state: DatasetState, table: str, source: Identity) -> bool:
    """Whether a source is already recorded, regardless of when it was last written."""
    return any(
        (other.path, other.given, other.inode, other.table) == (source.path, source.given, source.inode, source.table)
        for other in state.sources.get(table, ())
    )


def _check_person(state: DatasetState, table: TableFacts) -> None:
    name, recorded = table.table, state.persons.get(table.table)
    if recorded in (None, table.person) and name not in state.protected:  # a second table must not bypass the first
        for other, sources in state.sources.items():
            if state.persons[other] != table.person and shared(sources, table.sources):
                name, recorded = other, state.persons[other]
                break
    if recorded in (None, table.person):
        return
    raise UserError(
        f"the table {name!r} of the dataset {state.facts.name!r} identifies people by {recorded!r}, but is opened with "
        f"{table.person!r}",
        subject=Subject("person", table.person, table.table),
        remedy=write(
            f'pv.open_ledger("people.ledger").protect({state.facts.name!r}, {table.table!r}, '
            f'{table.person!r}, reason="...")',
            terminal=f'privet ledger protect --table {table.table} --person {table.person} --reason "..."',
            advice=f"Open it with {recorded!r}, or let the steward change it",
            exact=True,
        ),
    )


def _check_owner(ledger: LedgerState, dataset: str, sources: Sequence[Identity]) -> None:
    for owner, owned in owners(ledger, dataset, sources):
        granted = [source for to, source in ledger.datasets[owner].allowed if to == dataset]
        allowed = {now for _, now in pairs(granted, owned)}
        for source in owned:
            if source not in allowed:
                name = f"{source.path}:{source.table}" if source.table else source.path
                raise UserError(
                    f"the rows of {str(source)!r} belong to the dataset {owner!r} of this ledger. As {dataset!r}, the "
                    "same people would get a second budget",
                    subject=Subject("dataset", dataset),
                    remedy=write(
                        f'pv.open_ledger("people.ledger").allow_source({dataset!r}, {name!r}, reason="...")',
                        terminal=f'privet ledger allow-source --source "{name}" --to {dataset} --reason "..."',
                        advice=f"Open the dataset {owner!r} instead. If these are different people, the steward can "
                        "allow it",
                        exact=True,
                    ),
                )


def identity_of(source: str) -> Identity:
    """The identity of a source as a steward writes it: a file, an object, "people.duckdb:visits", or a database."""
    if is_object_address(source):
        return Identity(str(ObjectAddress.parse(source)))
    if is_address(source):
        return of_database(source)
    path, sign, table = source.rpartition(":")
    if sign and path.lower().endswith((".duckdb", ".ddb", ".db")):
        return of_files([path], table=table_name("main", table) if "." not in table else table.casefold())[0]
    return of_files([source])[0]


def all_sources(ledger: LedgerState) -> list[str]:
    """Every source in the ledger, as text."""
    return sorted(
        {str(source) for state in ledger.datasets.values() for sources in state.sources.values() for source in sources}
    )


def owners(ledger: LedgerState, dataset: str, sources: Sequence[Identity]) -> Iterator[tuple[str, list[Identity]]]:
    """Each other dataset that was opened with some of these sources, and those sources."""
    for name, state in ledger.datasets.items():
        if name != dataset:
            recorded = [source for table in state.sources.values() for source in table]
            owned = list(dict.fromkeys(now for _, now in pairs(recorded, sources)))
            if owned:
                yield name, owned
