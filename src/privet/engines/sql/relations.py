"""Operators as SQL: each asks those below it only for the columns, and the forms of them, that are needed.

What comes of an operator is a SELECT whose columns have names of our own: `u` is the person; `c0`, `c1`, ... values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Generic, TypeVar

from privet.engines.sql import arithmetic
from privet.engines.sql.dialect import Dialect, held
from privet.engines.sql.expressions import Compiler, Wanted, alike, compared, numeric
from privet.engines.sql.hull import encoded
from privet.engines.sql.leaves import Lattice, Test, compare_raw, id_class, person_id, read, read_code
from privet.engines.sql.text import Context, Layers, Value
from privet.errors import InternalError
from privet.privacy.adjacency import Person
from privet.tables import units
from privet.tables.expressions.typing_rules import as_number
from privet.tables.operators import (
    JoinPerson,
    JoinPublic,
    OfPerson,
    Operator,
    PerPerson,
    Scan,
    Where,
    WithColumns,
    tables,
)
from privet.tables.schema import CEILING, Column, PublicSchema, Schema
from privet.tables.stored_types import StoredType
from privet.tables.types import NumberType, Type


@dataclass(frozen=True, slots=True)
class Stored:
    """A table of the engine: its declaration, its name there, and the types that the source gives its columns."""

    schema: Schema | PublicSchema
    name: str
    types: Mapping[str, StoredType]

    def column(self, column: str, declared: Column, wanted: Wanted, raw: str, layers: Layers) -> Value:
        """A declared column, as wanted; `raw` is the name of its unread value."""
        stored, dialect = self.types[column], layers.dialect
        match wanted:
            case Test():
                value, kind = read(declared, stored, raw, "value", layers.context), declared.type
                assert isinstance(kind, NumberType)
                return compare_raw(dialect, declared, stored, raw, wanted) or compared(dialect, value, kind, wanted)
            case Lattice():
                value = read(declared, stored, raw, "value", layers.context)
                code = read_code(dialect, declared, stored, raw, wanted)
                return code or _encoded(layers, value, declared.type, wanted)
            case _:
                return read(declared, stored, raw, wanted, layers.context)


def _encoded(layers: Layers, value: Value, kind: Type, wanted: Lattice) -> Value:
    number = as_number(kind, "a sum")
    return encoded(layers, numeric(layers.dialect, value, kind), number, wanted.lower, wanted.step, wanted.width)


@dataclass(slots=True)
class Relations:
    """Compiles the operators of one statement."""

    context: Context
    tables: Mapping[str, Stored]
    public: Mapping[str, Stored]
    texts: bool = False
    """Whether ids are compared as texts: where the tables that are read have ids of several types."""
    who: str = "u"
    """What is hashed of a person: an integer in one form, whatever integers the tables have."""

    def stored(self, schema: Schema | PublicSchema) -> Stored:
        """The engine's own table for a declaration; the declaration must be the one it was made with."""
        bound = (self.tables if isinstance(schema, Schema) else self.public).get(schema.name)
        if bound is None or bound.schema != schema:
            raise InternalError(f"the engine has no table {schema.name!r} with this declaration")
        return bound

    def start(self, of: Operator, *, person: bool) -> Opened[Operator]:
        """The rows of a statement; with `person`, and who each belongs to."""
        protected = [(self.stored(table), table.protect) for table in tables(of)]
        ids = {id_class(stored.types[who.id]) for stored, who in protected if isinstance(who, Person)}
        self.texts = len(ids) > 1
        self.who = self.context.dialect.cast("u", self.context.dialect.types["narrow"]) if ids == {"integer"} else "u"
        return self.open(of, person=person)

    def open(self, of: Operator, *, person: bool) -> Opened[Operator]:
        """The rows of an operator, to be asked for columns."""
        match of:
            case Scan():
                return OpenedScan(self, of, person)
            case Where():
                return OpenedWhere(self, of, person)
            case WithColumns():
                return OpenedWithColumns(self, of, person)
            case JoinPublic():
                return OpenedJoinPublic(self, of, person)
            case JoinPerson():
                return OpenedJoinPerson(self, of, person)
            case PerPerson():
                return OpenedPerPerson(self, of, person)


Kind = TypeVar("Kind", bound=Operator, covariant=True)


@dataclass(slots=True)
class Opened(Generic[Kind]):
    """An operator that is being compiled: `ask` for columns, then `select`."""

    relations: Relations
    operator: Kind
    person: bool
    layers: Layers = field(init=False)
    computes: ClassVar[bool] = True
    """Whether its columns are more than those below it, so that others should not compute them again."""
    asked: dict[tuple[str, Wanted], Value] = field(init=False, default_factory=dict)
    columns: dict[str, str] = field(init=False, default_factory=dict)
    """The names of the columns of the SELECT, with their SQL."""

    def __post_init__(self) -> None:
        self.layers = Layers(self.relations.context)
        self.begin()

    @property
    def dialect(self) -> Dialect:
        """The dialect of the statement."""
        return self.layers.dialect

    def begin(self) -> None:
        """Opens what is below."""
        raise NotImplementedError

    def find(self, column: str, wanted: Wanted) -> Value:
        """The SQL of a column, over what is below."""
        raise NotImplementedError

    def source(self) -> str:
        """What is below, and `u` if there are persons."""
        raise NotImplementedError

    def filter(self) -> str | None:
        """The condition that rows must meet."""
        return None

    def ask(self, column: str, wanted: Wanted) -> Value:
        """A column of the SELECT that this will be."""
        if (column, wanted) not in self.asked:
            value = self.find(column, wanted)
            passed_on = value.atom and value.level == 0 and re.fullmatch(r"c\d+", value.sql)
            alias = value.sql if passed_on else self.layers.context.fresh()
            self.columns[alias] = value.sql
            self.asked[column, wanted] = Value(alias, value.kind, atom=True)
        return self.asked[column, wanted]

    def select(self) -> str:
        """The SELECT of all columns that were asked for, and of `u`, the person, if wanted."""
        columns = [f"{sql} AS {alias}" if sql != alias else alias for alias, sql in self.columns.items()]
        condition = self.filter()
        self.layers.source = self.source()
        selected = self.layers.select((["u"] if self.person else []) + columns or ["1 AS one"], condition)
        return selected + self.dialect.fence if self.computes else selected


class OpenedScan(Opened[Scan]):
    """The declared columns of a table."""

    __slots__ = ("raw",)
    computes = False  # what is read of a source is short, and a condition can then be asked of it first

    def begin(self) -> None:
        self.raw: dict[str, str] = {}

    def find(self, column: str, wanted: Wanted) -> Value:
        if column not in self.raw:
            self.raw[column] = self.layers.context.fresh()
        raw = self.raw[column]
        declared = dict(self.operator.table.columns)[column]
        return self.relations.stored(self.operator.table).column(column, declared, wanted, raw, self.layers)

    def source(self) -> str:
        stored, protect = self.relations.stored(self.operator.table), self.operator.table.protect
        columns = [f"{self.dialect.name(column)} AS {raw}" for column, raw in self.raw.items()]
        if self.person:
            assert isinstance(protect, Person)
            who = self.dialect.name(protect.id)
            who = person_id(self.dialect, stored.types[protect.id], who, shared=self.relations.texts)
            columns.append(f"{who} AS u")
        return f"(SELECT {', '.join(columns) or '1 AS one'} FROM {stored.name})"


class OpenedWhere(Opened[Where]):
    """The columns below, and a condition."""

    __slots__ = ("condition", "inner")
    computes = False

    def begin(self) -> None:
        self.inner = self.relations.open(self.operator.input, person=self.person)
        self.condition = Compiler(self.layers, self.operator.input.types(), self.inner.ask).value(
            self.operator.condition
        )

    def find(self, column: str, wanted: Wanted) -> Value:
        return self.inner.ask(column, wanted)

    def source(self) -> str:
        return f"({self.inner.select()})"

    def filter(self) -> str:
        return self.condition.sql


class OpenedWithColumns(Opened[WithColumns]):
    """The columns below, and further ones."""

    __slots__ = ("compiler", "defined", "inner")

    def begin(self) -> None:
        self.inner = self.relations.open(self.operator.input, person=self.person)
        self.compiler = Compiler(self.layers, self.operator.input.types(), self.inner.ask)
        self.defined = dict(self.operator.columns)

    def find(self, column: str, wanted: Wanted) -> Value:
        if column not in self.defined:
            return self.inner.ask(column, wanted)
        if isinstance(wanted, Lattice):
            return self.compiler.code(self.defined[column], wanted)
        if isinstance(wanted, Test):
            return compared(self.dialect, *self.compiler.number(self.defined[column]), wanted)
        if wanted == "index":
            return self.compiler.index(self.defined[column])
        return self.compiler.value(self.defined[column], wanted)

    def source(self) -> str:
        return f"({self.inner.select()})"


class OpenedJoinPublic(Opened[JoinPublic]):
    """Each row with the one row of a public table that has its key: as a key, so that what is out of range has none."""

    __slots__ = ("added", "inner", "mine", "theirs")

    def begin(self) -> None:
        self.inner = self.relations.open(self.operator.input, person=self.person)
        stored, key = self.relations.stored(self.operator.table), self.operator.table.key
        self.layers.context.joined[stored.name] = len(stored.types)
        kinds = dict(self.operator.table.columns)
        theirs = read(Column(kinds[key]), stored.types[key], self.dialect.name(key), "key", self.layers.context)
        mine = self.inner.ask(self.operator.on, "key")
        left = replace(mine, sql=f"l.{mine.sql}"), self.operator.input.types()[self.operator.on]
        self.mine, self.theirs = alike(self.dialect, left, (replace(theirs, sql="r.k"), kinds[key]))
        self.added = {"k": theirs.sql}

    def find(self, column: str, wanted: Wanted) -> Value:
        kinds = {n: kind for n, kind in self.operator.table.columns if n != self.operator.table.key}
        if column not in kinds:
            return self.inner.ask(column, wanted)
        raw = f"r_{self.layers.context.fresh()}"
        self.added[raw] = self.dialect.name(column)
        return self.relations.stored(self.operator.table).column(
            column, Column(kinds[column]), wanted, raw, self.layers
        )

    def source(self) -> str:
        stored = self.relations.stored(self.operator.table)
        left = (["l.u"] if self.person else []) + [f"l.{alias}" for alias in self.inner.columns]
        right = [f"r.{alias}" for alias in self.added if alias != "k"]
        theirs = ", ".join(f"{sql} AS {alias}" for alias, sql in self.added.items())
        join = "LEFT JOIN" if self.operator.how == "left" else "JOIN"
        # enforced, not inferred: no row has two matches, whatever the keys are read as
        number = f"row_number() OVER (PARTITION BY {self.theirs.sql.replace('r.k', 'k')} ORDER BY k)"
        public = self.dialect.ranked(f"SELECT {theirs} FROM {stored.name}", number, "= 1")
        both = f"({self.inner.select()}) AS l {join} ({public}) AS r"
        return f"(SELECT {', '.join(left + right)} FROM {both} ON {self.mine.sql} = {self.theirs.sql})"


class OpenedJoinPerson(Opened[JoinPerson]):
    """Every row of a person on one side with every row of the same person on the other."""

    __slots__ = ("left", "right")

    def begin(self) -> None:
        self.left = self.relations.open(self.operator.left, person=True)
        self.right = self.relations.open(self.operator.right, person=True)

    def find(self, column: str, wanted: Wanted) -> Value:
        return (self.left if column in self.operator.left.types() else self.right).ask(column, wanted)

    def source(self) -> str:
        columns = [f"l.{alias}" for alias in self.left.columns] + [f"r.{alias}" for alias in self.right.columns]
        both = f"({self.left.select()}) AS l JOIN ({self.right.select()}) AS r ON l.u = r.u"
        return f"(SELECT {', '.join(['l.u', *columns])} FROM {both})"


class OpenedPerPerson(Opened[PerPerson]):
    """One row for each person, or for each person and key.

    Claim: sums are sums of lattice codes, which are integers, so that nothing depends on the order of rows.
    """

    __slots__ = ("by", "compiler", "grouped", "inner", "keys")

    def begin(self) -> None:
        self.inner = self.relations.open(self.operator.input, person=True)
        self.compiler = Compiler(Layers(self.layers.context), self.operator.input.types(), self.inner.ask)
        self.grouped: dict[str, str] = {}
        self.keys = dict(self.operator.keys)
        layers = self.compiler.layers
        self.by = {name: layers.named(self.compiler.value(node, "key")) for name, node in self.keys.items()}

    def find(self, column: str, wanted: Wanted) -> Value:
        if column in self.keys:
            return self._key(column, wanted)
        what = dict(self.operator.columns)[column]
        value, kind = self._of_person(what, keyed=wanted == "key"), what.type(self.operator.input.types())
        assert isinstance(kind, NumberType)
        match wanted:
            case Lattice():
                return _encoded(self.layers, value, kind, wanted)
            case Test():
                return compared(self.dialect, value, kind, wanted)
        return value

    def _key(self, name: str, wanted: Wanted) -> Value:
        """A key: the same for all rows of a group, and read as a key, whatever is wanted."""
        if wanted == "index":
            index = self.compiler.index(self.keys[name])
            return Value(self._grouped(f"min({index.sql})"), "integer", atom=True)
        value = Value(self._grouped(self.by[name].sql), self.by[name].kind, atom=True)
        kind = self.operator.types()[name]
        match wanted:
            case Lattice():
                return _encoded(self.layers, value, kind, wanted)
            case Test():
                assert isinstance(kind, NumberType)
                return compared(self.dialect, value, kind, wanted)
        return value

    def _of_person(self, what: OfPerson, *, keyed: bool) -> Value:
        if what.expression is None:
            return Value(self._grouped("count(*)"), "integer", atom=True)
        if what.function == "count":
            value = self.compiler.value(what.expression, "key" if keyed else "value")
            return Value(self._grouped(f"count({value.sql})"), "integer", atom=True)
        value, kind = self.compiler.number(what.expression, "key" if keyed else "value")
        mine = kind.range
        if what.function in ("min", "max"):
            return Value(self._grouped(f"{what.function}({value.sql})"), "integer", atom=True)
        if what.function == "sum":
            each = arithmetic.coarser(
                self.dialect, value.sql, units.summable(mine, CEILING), mine.largest, held(mine.largest)
            )
            result = what.type(self.operator.input.types())
            assert isinstance(result, NumberType)
            summed = self._grouped(self.dialect.total(each))
            return Value(arithmetic.narrowed(self.dialect, summed, "wide", result.range), "integer")
        mean = units.mean(mine, CEILING)
        each = arithmetic.coarser(self.dialect, value.sql, mean.shift, mine.largest, held(mine.largest))
        total, many = self._grouped(self.dialect.total(each)), self._grouped(f"count({each})")
        return arithmetic.mean(self.dialect, total, many, mean)

    def _grouped(self, sql: str) -> str:
        for alias, known in self.grouped.items():
            if known == sql:
                return alias
        alias = self.layers.context.fresh()
        self.grouped[alias] = sql
        return alias

    def source(self) -> str:
        layers = self.compiler.layers
        layers.source = f"({self.inner.select()})"
        columns = ["u", *(f"{sql} AS {alias}" for alias, sql in self.grouped.items())]
        by = ", ".join(["u", *(key.sql for key in self.by.values())])
        return f"({layers.select(columns, 'u IS NOT NULL')} GROUP BY {by})"
