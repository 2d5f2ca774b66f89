"""Which table or column a name means: the catalogue, and the names that are visible at one place of a statement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from privet.names.spelling import nearest
from privet.privacy.adjacency import Person
from privet.sql.grammar import Tree, span
from privet.sql.source import Source
from privet.tables.expressions import Types
from privet.tables.query import PublicTable, Relation, Table


@dataclass(frozen=True, slots=True)
class Visible:
    """A table in FROM, by the name that it has there; what each of its columns is called below; and the person's id."""

    name: str | None
    columns: tuple[tuple[str, str], ...]
    person: str | None


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to ask about, and the names by which their columns can be called."""

    relation: Relation
    visible: tuple[Visible, ...]
    tables: int = 1
    """How many private tables are read, each counted as often as it is."""

    @property
    def types(self) -> Types:
        return self.relation.of.types()

    def called(self, name: str | None) -> Rows:
        """The same rows as one table with this name."""
        columns = tuple(column for one in self.visible for column in one.columns)
        person = next((one.person for one in self.visible if one.person is not None), None)
        return Rows(self.relation, (Visible(name, columns, person),), self.tables)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tables that a statement may name: declared ones, and those that it makes itself in WITH."""

    source: Source
    tables: Mapping[str, Table]
    public: Mapping[str, PublicTable]
    made: dict[str, Rows] = field(default_factory=dict)

    def names(self) -> frozenset[str]:
        """Every name of a table or a column, in lower case."""
        return frozenset(name.casefold() for name in self.spelled_out())

    def spelled_out(self) -> frozenset[str]:
        """Every name of a table or a column."""
        found = {*self.tables, *self.public}
        for table in self.tables.values():
            found |= {name for name, _ in table.schema.columns}
            found |= {table.schema.protect.id} if isinstance(table.schema.protect, Person) else set()
        for public in self.public.values():
            found |= {name for name, _ in public.schema.columns}
        return frozenset(found)

    def table(self, name: exp.Identifier) -> Rows | PublicTable:
        """The table with this name: one of WITH, else a declared one."""
        for place in (self.made, {**self.tables, **self.public}):
            found = matching(name, place)
            if len(found) > 1:
                raise self._ambiguous(name, found)
            if found and place is self.made:
                return self.made[found[0]]
            if found and found[0] in self.public:
                return self.public[found[0]]
            if found:
                return _declared(self.tables[found[0]])
        there = [*self.made, *self.tables, *(f"{each} (public)" for each in self.public)]
        raise self.source.refusal(
            span(name),
            f"there is no table {name.name}",
            _meant(name, [*self.made, *self.tables, *self.public]),
            allowed=f"The tables are: {', '.join(there)}",
        )

    def column(self, rows: Rows, column: exp.Column) -> str | None:
        """What a column is called below; None if no visible column has this name."""
        name = _name(column)
        found = {(sql, below) for one in self._in_sight(rows, column) for sql, below in one.columns if _same(name, sql)}
        if len({below for _, below in found}) > 1:
            raise self._ambiguous(name, sorted(sql for sql, _ in found))
        return next((below for _, below in found), None)

    def spelled(self, rows: Rows, column: exp.Column) -> str:
        """The name of a column where it is used, which can differ from what it is called below."""
        found = {sql for one in self._in_sight(rows, column) for sql, _ in one.columns if _same(_name(column), sql)}
        return min(found, default=str(column.this.this))

    def is_person(self, rows: Rows, node: Tree) -> bool:
        """Whether this column identifies the person."""
        return isinstance(node, exp.Column) and any(
            one.person is not None and _same(_name(node), one.person) for one in self._in_sight(rows, node)
        )

    def no_column(self, rows: Rows, column: exp.Column) -> Exception:
        """The error for a name that is not a column here."""
        shown = self.source.words(span(column))
        if self.is_person(rows, column):
            return self.source.refusal(
                span(column),
                f"{shown} identifies a person, so its values can't be used",
                allowed=f"It can be counted, COUNT(DISTINCT {shown}), joined on, and grouped by in a subquery",
            )
        there = dict.fromkeys(sql for one in self._in_sight(rows, column) for sql, _ in one.columns)
        unlike = column.name.casefold() not in map(str.casefold, there)
        text = f"For a text, use single quotes: '{column.name}'"
        hint = _meant(_name(column), there) or (text if unlike and column.this.args.get("quoted") else "")
        allowed = f"The columns are: {', '.join(there)}" if there else "There are no columns here"
        return self.source.refusal(span(column), f"there is no column {shown}", hint, allowed=allowed)

    def _in_sight(self, rows: Rows, column: exp.Column) -> tuple[Visible, ...]:
        table = column.args.get("table")
        if table is None:
            return rows.visible
        found = [one for one in rows.visible if one.name is not None and _same(table, one.name)]
        if len(found) == 1:
            return (found[0],)
        there = [one.name for one in rows.visible if one.name is not None]
        why = f"there is no table {table.name} in this FROM" if not found else f"two tables here are named {table.name}"
        allowed = f"The tables in FROM are: {', '.join(there)}" if there else "The rows in FROM have no name"
        raise self.source.refusal(span(table), why, "" if found else _meant(table, there), allowed=allowed)

    def _ambiguous(self, name: exp.Identifier, found: Iterable[str]) -> Exception:
        several = ", ".join(f'"{each}"' for each in dict.fromkeys(found))
        why = f"{name.name} is ambiguous: it can mean {several}"
        return self.source.refusal(span(name), why, "Write one of them in double quotes, or with its table")


def matching(name: exp.Identifier, among: Iterable[str]) -> list[str]:
    """The names that an identifier can mean: the exact name if it is quoted, else in any case."""
    return [each for each in among if _same(name, each)]


def _same(name: exp.Identifier, other: str) -> bool:
    written = str(name.this)
    return written == other if name.args.get("quoted") else written.casefold() == other.casefold()


def _meant(name: exp.Identifier, among: Iterable[str]) -> str:
    """The suggestion of a similar name, as SQL writes it."""
    from privet.sql.quoting import quoted  # which reads statements itself

    near = nearest(name.name, among)
    return "" if near in (None, name.name) else f"Did you mean {quoted(near)}?"


def _name(column: exp.Column) -> exp.Identifier:
    name = column.this
    assert isinstance(name, exp.Identifier)
    return name


def _declared(table: Table) -> Rows:
    protect = table.schema.protect
    person = protect.id if isinstance(protect, Person) else None
    columns = tuple((name, name) for name, _ in table.schema.columns)
    return Rows(table.relation, (Visible(table.name, columns, person),))
