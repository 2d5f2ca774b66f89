"""Name resolution: the tables of the catalogue, and the columns that are visible at one place of a statement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from privet.names.spelling import nearest
from privet.privacy.adjacency import Person
from privet.sql.grammar import Tree, span
from privet.sql.source import SqlText
from privet.tables.expressions.nodes import Types
from privet.tables.relation import PublicTable, Relation, Table


@dataclass(frozen=True, slots=True)
class Visible:
    """A table in FROM: its name there, the inner name of each of its columns, and the person id."""

    name: str | None
    columns: tuple[tuple[str, str], ...]
    person: str | None


@dataclass(frozen=True, slots=True)
class NamedRows:
    """A relation, and the names under which a statement can use its columns."""

    relation: Relation
    visible: tuple[Visible, ...]
    tables: int = 1
    """The number of private tables read, counting repeats."""

    @property
    def types(self) -> Types:
        return self.relation.input.types()

    def renamed(self, name: str | None) -> NamedRows:
        """The same rows, visible as one table with this name."""
        columns = tuple(column for one in self.visible for column in one.columns)
        person = next((one.person for one in self.visible if one.person is not None), None)
        return NamedRows(self.relation, (Visible(name, columns, person),), self.tables)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tables that a statement can use: declared ones, and those it defines in WITH."""

    source: SqlText
    tables: Mapping[str, Table]
    public: Mapping[str, PublicTable]
    defined: dict[str, NamedRows] = field(default_factory=dict)

    def names(self) -> frozenset[str]:
        """Every name of a table or a column, in lower case."""
        return frozenset(name.casefold() for name in self.spelled_out())

    def spelled_out(self) -> frozenset[str]:
        """Every name of a table or a column."""
        names = {*self.tables, *self.public}
        for table in self.tables.values():
            names |= {name for name, _ in table.schema.columns}
            names |= {table.schema.protect.id} if isinstance(table.schema.protect, Person) else set()
        for public in self.public.values():
            names |= {name for name, _ in public.schema.columns}
        return frozenset(names)

    def table(self, name: exp.Identifier) -> NamedRows | PublicTable:
        """The table with this name; WITH hides a declared table."""
        for scope in (self.defined, {**self.tables, **self.public}):
            matches = matching(name, scope)
            if len(matches) > 1:
                raise self._ambiguous(name, matches)
            if matches and scope is self.defined:
                return self.defined[matches[0]]
            if matches and matches[0] in self.public:
                return self.public[matches[0]]
            if matches:
                return _declared(self.tables[matches[0]])
        tables = [*self.defined, *self.tables, *(f"{each} (public)" for each in self.public)]
        raise self.source.refusal(
            span(name),
            f"there is no table {name.name}",
            _meant(name, [*self.defined, *self.tables, *self.public]),
            allowed=f"The tables are: {', '.join(tables)}",
        )

    def column(self, rows: NamedRows, column: exp.Column) -> str | None:
        """The inner name of a column; None if no visible column has this name."""
        name = _name(column)
        matches = {
            (sql, below) for one in self._in_sight(rows, column) for sql, below in one.columns if _same(name, sql)
        }
        if len({below for _, below in matches}) > 1:
            raise self._ambiguous(name, sorted(sql for sql, _ in matches))
        return next((below for _, below in matches), None)

    def spelled(self, rows: NamedRows, column: exp.Column) -> str:
        """The visible name of a column, which can differ from its inner name."""
        spellings = {sql for one in self._in_sight(rows, column) for sql, _ in one.columns if _same(_name(column), sql)}
        return min(spellings, default=str(column.this.this))

    def is_person(self, rows: NamedRows, node: Tree) -> bool:
        """Whether this column identifies the person."""
        return isinstance(node, exp.Column) and any(
            one.person is not None and _same(_name(node), one.person) for one in self._in_sight(rows, node)
        )

    def no_column(self, rows: NamedRows, column: exp.Column) -> Exception:
        """The error for a name that is not a column here."""
        shown = self.source.words(span(column))
        if self.is_person(rows, column):
            return self.source.refusal(
                span(column),
                f"{shown} identifies a person, so its values can't be used",
                allowed=f"You can count it, COUNT(DISTINCT {shown}), join on it, and group by it in a subquery",
            )
        columns = dict.fromkeys(sql for one in self._in_sight(rows, column) for sql, _ in one.columns)
        unlike = column.name.casefold() not in map(str.casefold, columns)
        text = f"Put a text value in single quotes: '{column.name}'"
        compared = isinstance(column.parent, exp.EQ | exp.NEQ | exp.In) and column.arg_key != "this"
        unquoted = compared and column.args.get("table") is None
        hint = _meant(_name(column), columns)
        hint = hint or (text if unlike and (column.this.args.get("quoted") or unquoted) else "")
        allowed = f"The columns are: {', '.join(columns)}" if columns else "No columns are available here"
        return self.source.refusal(span(column), f"there is no column {shown}", hint, allowed=allowed)

    def _in_sight(self, rows: NamedRows, column: exp.Column) -> tuple[Visible, ...]:
        table = column.args.get("table")
        if table is None:
            return rows.visible
        matches = [one for one in rows.visible if one.name is not None and _same(table, one.name)]
        if len(matches) == 1:
            return (matches[0],)
        tables = [one.name for one in rows.visible if one.name is not None]
        why = (
            f"there is no table {table.name} in this FROM" if not matches else f"two tables here are named {table.name}"
        )
        allowed = f"The tables in FROM are: {', '.join(tables)}" if tables else "The subquery in FROM has no alias"
        raise self.source.refusal(span(table), why, "" if matches else _meant(table, tables), allowed=allowed)

    def _ambiguous(self, name: exp.Identifier, candidates: Iterable[str]) -> Exception:
        listing = ", ".join(f'"{each}"' for each in dict.fromkeys(candidates))
        why = f"{name.name} is ambiguous: it can mean {listing}"
        return self.source.refusal(span(name), why, "Write one of them in double quotes, or with its table")


def matching(name: exp.Identifier, among: Iterable[str]) -> list[str]:
    """The names that an identifier matches: exactly if it is quoted, else ignoring case."""
    return [each for each in among if _same(name, each)]


def _same(name: exp.Identifier, other: str) -> bool:
    written = str(name.this)
    return written == other if name.args.get("quoted") else written.casefold() == other.casefold()


def _meant(name: exp.Identifier, among: Iterable[str]) -> str:
    """A suggestion of a similar name, as SQL writes it."""
    from privet.sql.quoting import quoted  # circular: it parses statements

    near = nearest(name.name, among)
    return "" if near in (None, name.name) else f"Did you mean {quoted(near)}?"


def _name(column: exp.Column) -> exp.Identifier:
    name = column.this
    assert isinstance(name, exp.Identifier)
    return name


def _declared(table: Table) -> NamedRows:
    protect = table.schema.protect
    person = protect.id if isinstance(protect, Person) else None
    columns = tuple((name, name) for name, _ in table.schema.columns)
    return NamedRows(table.relation, (Visible(table.name, columns, person),))
