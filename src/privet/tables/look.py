"""Declarations and questions as HTML, for notebooks: never a row, a source or an address."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from privet import markup
from privet.tables import caps, operators, wording
from privet.tables.query import Query
from privet.tables.schema import PublicSchema, Schema

if TYPE_CHECKING:
    from privet.tables.relation import PublicTable, Relation, Table

_HEADS = ("column", "kind", "values")


def of_table(table: Schema) -> str:
    """A private table: what it protects, and its columns with their public bounds and keys."""
    rows = [(name, column.kind_name, wording.declared(column)) for name, column in table.columns]
    note = f"The rows of this table are private. It {wording.protected(table)} ({table.adjacency})."
    return markup.table(_HEADS, rows, title=table.name, note=note)


def of_public(table: PublicSchema) -> str:
    """A public table to join with."""
    rows = [(name, kind.kind, wording.values(kind)) for name, kind in table.columns]
    return markup.table(_HEADS, rows, title=table.name, note=f"Public, joined on {table.key}.")


def of_tables(private: Iterable[Table], public: Iterable[PublicTable], title: str) -> str:
    """The tables of a session."""
    rows = [(each.name, wording.protected(each.schema), wording.few(dict(each.schema.columns))) for each in private]
    rows += [(each.name, "public", wording.few(dict(each.schema.columns))) for each in public]
    return markup.table(("table", "protects", "columns"), rows, title=title)


def named(relation: Relation) -> str:
    """Rows in one line, with their cap and the names of their columns."""
    cap = "" if relation.at_most is None else f".{caps.call(relation.at_most)}"
    return f"{wording.rows(relation.input)}{cap}: {wording.few(relation.columns)}"


def of_rows(relation: Relation) -> str:
    """Rows to ask about: where they come from, and their columns."""
    rows = [(name, kind.kind, wording.values(kind)) for name, kind in relation.input.types().items()]
    people = ", ".join(f"{each.name} {wording.protected(each)}" for each in operators.tables(relation.input))
    return markup.table(_HEADS, rows, title=named(relation).partition(": ")[0], note=f"The rows are private: {people}.")


def of_query(query: Query) -> str:
    """A question: rows, keys, aggregates, and how the answer is arranged."""
    hidden = query.arrangement.hidden
    shown = [f"{name} = {what}" for name, what in query.aggregates if name not in hidden]
    pairs = [
        ("Rows", wording.rows(query.input)),
        ("Groups", "\n".join(map(wording.key, query.keys)) or "one, of all rows"),
        ("Columns", "\n".join(shown)),
        ("Arranged", str(query.arrangement).strip()),
        ("Cap", "" if query.at_most is None else f"at most {caps.in_words(query.at_most)} per person"),
        ("Not shown", ", ".join(hidden)),
    ]
    return markup.sections((name, text) for name, text in pairs if text)
