"""Whose rows a source holds: one dataset's, unless the steward says otherwise.

Claim: a dataset gets no budget of its own for rows that a ledger knows under another name, as far as their place tells.
The column that says whose a row is stays what it was for each table, and for each source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from privet.addresses import is_address
from privet.errors import UserError
from privet.identity import Identity, of_database, of_files, pairs, shared, table_name
from privet.ledger.book import Book, DatasetBook
from privet.ledger.entries import Dataset, TableFacts
from privet.names import confusable, normalised


def check_name(book: Book, name: str) -> None:
    """Refuse the name of a new dataset that people would take for another one."""
    for known in book.datasets:
        if confusable(known, name):
            raise UserError(
                f"the ledger has a dataset {known!r}, and {name!r} reads the same: it would get a budget of its own. "
                f"Open it as {known!r}, or choose a name that differs more"
            )
    if normalised(name) != name:
        raise UserError(f"the name {name!r} of a dataset would be taken for {normalised(name)!r}. Write it so")


def check_unit(dataset: Dataset, tables: Sequence[TableFacts]) -> None:
    """Refuse tables that no dataset can have: an unlawful entry would end the ledger."""
    for table in tables:
        if bool(table.person) != (dataset.protect == "person"):
            raise UserError(
                f"the dataset {dataset.name!r} protects each {dataset.protect}, and the table {table.table!r} is "
                f"opened {'with' if table.person else 'without'} a column that says whose a row is"
            )
    if len({table.table for table in tables}) < len(tables):
        raise UserError(f"two tables of the dataset {dataset.name!r} have the same name")


def arriving(book: Book, dataset: str, tables: Sequence[TableFacts]) -> list[TableFacts]:
    """What a dataset is opened with and was not before: to be written down; or refused."""
    of = book.datasets.get(dataset)
    found: list[TableFacts] = []
    for place, table in enumerate(tables):
        _check_together(of, tables[:place], table)
        if of is not None:
            _check_person(of, table)
        new = tuple(each for each in table.sources if of is None or not _is_recorded(of, table.table, each))
        if new:
            _check_owner(book, dataset, new)
        if new or of is None or table.table not in of.persons:
            found.append(replace(table, sources=new))
    return found


def _check_together(of: DatasetBook | None, others: Sequence[TableFacts], table: TableFacts) -> None:
    """Two tables over the same rows say in the same column whose they are, unless the steward said otherwise."""
    stated = set() if of is None else of.protected
    for other in others:
        if other.person == table.person or stated & {table.table, other.table}:
            continue
        if shared(other.sources, table.sources):
            raise UserError(
                f"the tables {other.table!r} and {table.table!r} have the same rows, and one says with "
                f"{other.person!r} whose they are, the other with {table.person!r}. Name the same column in both"
            )


def _is_recorded(of: DatasetBook, table: str, source: Identity) -> bool:
    """Whether a source is written down as it is; when it was last written does not matter."""
    return any(
        (known.path, known.given, known.inode, known.table) == (source.path, source.given, source.inode, source.table)
        for known in of.sources.get(table, ())
    )


def _check_person(of: DatasetBook, table: TableFacts) -> None:
    name, known = table.table, of.persons.get(table.table)
    if known in (None, table.person) and name not in of.protected:  # another table must not get round it
        for other, sources in of.sources.items():
            if of.persons[other] != table.person and shared(sources, table.sources):
                name, known = other, of.persons[other]
                break
    if known in (None, table.person):
        return
    raise UserError(
        f"the table {name!r} of the dataset {of.facts.name!r} was opened with {known!r} as the column that says whose "
        f"a row is, and now with {table.person!r}. Who is protected is fixed: open it with {known!r}. If the steward "
        f'means to change it, write: privet ledger protect --table {table.table} --person {table.person} --reason "..."'
    )


def _check_owner(book: Book, dataset: str, sources: Sequence[Identity]) -> None:
    for owner, taken in owners(book, dataset, sources):
        allowed = {now for _, now in pairs([each for to, each in book.datasets[owner].allowed if to == dataset], taken)}
        for source in taken:
            if source not in allowed:
                named = f"{source.path}:{source.table}" if source.table else source.path
                raise UserError(
                    f"the rows of {str(source)!r} belong to the dataset {owner!r} of this ledger. Under the name "
                    f"{dataset!r} the same people would have a second budget. Ask for them as {owner!r}. If they are "
                    "other people, or the steward means it, write: privet ledger allow-source "
                    f'--source "{named}" --to {dataset} --reason "..."'
                )


def named(source: str) -> Identity:
    """The identity of a source as a steward names it: a file, "people.duckdb:visits", or all of a database."""
    if is_address(source):
        return of_database(source)
    path, sign, table = source.rpartition(":")
    if sign and path.lower().endswith((".duckdb", ".ddb", ".db")):
        return of_files([path], table=table_name("main", table) if "." not in table else table.casefold())[0]
    return of_files([source])[0]


def known(book: Book) -> list[str]:
    """Every source that the ledger knows, for people to read."""
    return sorted({str(source) for of in book.datasets.values() for each in of.sources.values() for source in each})


def owners(book: Book, dataset: str, sources: Sequence[Identity]) -> Iterator[tuple[str, list[Identity]]]:
    """Each other dataset that was opened with some of these sources, and which."""
    for name, of in book.datasets.items():
        if name != dataset:
            known = [source for each in of.sources.values() for source in each]
            taken = list(dict.fromkeys(now for _, now in pairs(known, sources)))
            if taken:
                yield name, taken
