"""The tables of a dataset by name: the private ones, all about the same people, and the public ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privet.errors import QueryError, Remedy, Subject, UserError, write
from privet.tables import operators
from privet.tables.query import Query
from privet.tables.relation import PublicTable, Table

OPEN = write('pv.Session([people], budget=pv.PureDP(3), ledger="people.ledger")')
"""How tables are opened."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """The declared tables that questions can be about."""

    tables: dict[str, Table]
    public: dict[str, PublicTable]

    @classmethod
    def of(cls, tables: Sequence[Table], public: Sequence[PublicTable] = ()) -> Catalog:
        """The catalog of these tables; refused if they are not about the same people, or two have one name."""
        return cls(_private(tables), _named(public, PublicTable, "public"))

    def check(self, query: Query) -> None:
        """Refuse a question about other tables."""
        for schema in operators.tables(query.input):
            known = self.tables.get(schema.name)
            if known is None or known.schema != schema:
                raise QueryError(
                    f"the session has no table {schema.name!r}"
                    if known is None
                    else f"the session's table {schema.name!r} is declared differently from the one in the question",
                    allowed=f"It has: {', '.join(self.tables)}" if known is None else "",
                    subject=Subject("table", schema.name),
                )
        for public in operators.public_tables(query.input):
            table = self.public.get(public.name)
            if table is None or table.schema != public:
                raise QueryError(
                    f"the session does not have the public table {public.name!r}",
                    subject=Subject("table", public.name),
                    remedy=write(f"pv.Session([people], public=[{public.name}], ...)"),
                )


def _named(tables: Any, kind: Any, what: str) -> dict[str, Any]:
    named: dict[str, Any] = {}
    if not isinstance(tables, list | tuple):
        raise UserError(f"{what} must be a list", remedy=OPEN)
    for table in tables:
        if isinstance(table, PublicTable) and kind is not PublicTable:
            raise UserError(
                f"{table.name} is a public table, but {what} is for the tables of people",
                remedy=write(f"pv.Session([people], public=[{table.name}], ...)"),
            )
        if not isinstance(table, kind):
            maker = "pv.public_table" if kind is PublicTable else "pv.table"
            raise UserError(
                f"{what} contains a {type(table).__module__}.{type(table).__qualname__}",
                allowed="It takes declared tables",
                remedy=write(f"{maker}(...)"),
            )
        if table.name in named:
            raise UserError(f"two tables are called {table.name!r}", remedy=Remedy("Rename one of them"))
        named[table.name] = table
    return named


def _private(tables: Sequence[Table]) -> dict[str, Table]:
    named: dict[str, Table] = _named(tables, Table, "tables")
    if not named:
        raise UserError("a session needs a table", remedy=OPEN)
    units = {type(table.schema.protect) for table in named.values()}
    kinds = {table.schema.adjacency for table in named.values()}
    if len(units) > 1 or len(kinds) > 1:
        raise UserError(
            "all tables of a dataset are about the same people: they must protect the same unit (each row, or each "
            "person) with the same adjacency",
            remedy=Remedy("Open another session for tables about other people"),
        )
    return named
