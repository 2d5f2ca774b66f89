"""A statement as one SELECT of integers: a row for each group that is there, then what was counted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from privet.engines.sql.bounding import Bounds, Field
from privet.engines.sql.dialect import Dialect
from privet.engines.sql.dialect import held as held_as
from privet.engines.sql.expressions import Compiler
from privet.engines.sql.hull import enforced
from privet.engines.sql.leaves import Lattice, indexed
from privet.engines.sql.relations import Relations, Stored
from privet.engines.sql.text import Context, Layers, Value
from privet.tables.analysis.narrowing import spanned
from privet.tables.expressions.nodes import Column
from privet.tables.groups import Listed
from privet.tables.operators import Scan, Where
from privet.tables.statement import (
    At,
    Code,
    Distinct,
    Given,
    Place,
    Present,
    Rows,
    Squares,
    Statement,
    Tally,
    Total,
    Unbounded,
)
from privet.tables.types import KeyType, KeyValue, Type

_HALF = 26  # codes have up to 53 bits; a half of one squared fits into a narrow integer
_SMALL = 2**31
_HASHED = 62  # bits; one value more means that there is none


@dataclass(slots=True)
class Compiled:
    """SQL with its parameters, and how to put a row's integers together: a tally is a weighted sum of some of them."""

    sql: str
    context: Context
    groups: int
    tallies: list[dict[int, int]]
    """For each tally: columns of the result, and their weights."""

    def read(self, rows: list[tuple[int | None, ...]]) -> list[list[int]]:
        """Dense: every group, in order, with zeros where nothing was found."""
        counts = [[0] * len(self.tallies) for _ in range(self.groups)]
        for group, *numbers in rows:
            if (
                group is not None and 0 <= group < self.groups
            ):  # rows without a group are counted together, which is quicker than a filter
                counts[int(group)] = [
                    sum(int(numbers[column] or 0) * weight for column, weight in tally.items())
                    for tally in self.tallies
                ]
        return counts


@dataclass(slots=True)
class Reduced:
    """What the statement reads of each row: codes and flags, each once."""

    compiler: Compiler
    key: int
    """The key of the hash."""
    fields: list[tuple[Field, Value]] = field(default_factory=list)

    def add(self, value: Value, largest: int, *, nullable: bool) -> str:
        for known, same in self.fields:
            if (same.sql, same.level, known.largest, known.nullable) == (value.sql, value.level, largest, nullable):
                return known.name
        self.fields.append((Field(f"r{len(self.fields)}", largest, nullable), value))
        return self.fields[-1][0].name

    def code(self, of: Code) -> str:
        """The name of a column of codes, each in the hull."""
        code = self.compiler.code(of.expression, Lattice(of.lower, of.step, of.width))
        return self.add(enforced(self.compiler.dialect, code, missing=of.missing), of.width, nullable=of.missing)

    def place(self, of: Place) -> str:
        """The name of a column of places: one for each row, or NULL."""
        return self.add(self.compiler.index(of.expression, "value"), of.size - 1, nullable=True)

    def distinct(self, of: Given) -> str:
        """The name of a column of numbers that stand for values: a hash of 62 bits, the same for equal values."""
        dialect, value = self.compiler.dialect, self.compiler.layers.named(self.compiler.value(of.expression))
        word = dialect.shifted(dialect.hashed(self.key, [value.sql]), 64 - _HASHED)
        sql = f"CASE WHEN {value.sql} IS NOT NULL THEN {dialect.cast(word, dialect.types['narrow'])} END"
        return self.add(Value(sql, "integer", value.level), (1 << _HASHED) - 1, nullable=True)

    def given(self, of: Given) -> str:
        """The name of a flag: whether a value is not missing."""
        value = self.compiler.value(of.expression)
        flag = self.compiler.dialect.bit(f"{value.sql} IS NOT NULL")
        return self.add(Value(flag, "integer", value.level), 1, nullable=False)


def compiled(
    statement: Statement, tables: Mapping[str, Stored], public: Mapping[str, Stored], dialect: Dialect, key: int
) -> Compiled:
    """The statement as SQL; `key` is that of the hash which chooses whose rows survive."""
    context = Context(dialect)
    person = not isinstance(statement.bounding, Unbounded)
    relations = Relations(context, tables, public)
    rows = relations.start(statement.input, person=person)
    layers = Layers(context)
    compiler = Compiler(layers, statement.input.types(), rows.ask)
    text = _text_key(statement)
    group = layers.named(group_number(compiler, statement)) if text is None else compiler.column(text[0], "text")
    reduced = Reduced(compiler, key)
    columns: list[str] = []
    shared = set() if person else _added_once(statement, dialect)
    tallies = [_tally(dialect, tally, reduced, columns, shared) for tally in statement.tallies]
    layers.source = f"({rows.select()})"
    once = {reduced.code(of) for of in shared}
    counted = [name for sql in columns for name in re.findall(r"\br\d+\b", sql) if name not in once]
    # else nothing would be computed twice, or only the fields of a word
    fence = dialect.fence if len(set(counted)) < len(counted) and not person else ""
    if text is not None:
        read = [f"{group.sql} AS k", *(f"{value.sql} AS {f.name}" for f, value in reduced.fields)]
        few = ", ".join(f"{sql} AS n{i}" for i, sql in enumerate(columns))
        by_text = f"SELECT k, {few} FROM ({layers.select(read)}{fence}) GROUP BY k"
        numbered = Layers(context, f"({by_text})")
        g = _chosen(numbered, indexed(text[1], Value("k", "text"), context), text[1], statement.domains()[0])
        names = [f"n{i}" for i in range(len(columns))]
        by_group = numbered.select([f"{g.sql} AS g", *names])
        if text[1].other is None:
            # each group is one text. A condition on g alone would be asked of each row, before rows are added up
            known = "CASE WHEN COALESCE(n0, 0) >= 0 THEN g END IS NOT NULL"
            sql = f"SELECT g, {', '.join(names)} FROM ({by_group}){dialect.where(known)}"
        else:
            sql = f"SELECT g, {', '.join(map(dialect.total, names))} FROM ({by_group}) GROUP BY g"
        return Compiled(sql, context, statement.groups, tallies)
    kept = survivors(statement, layers, group, reduced, Bounds(dialect, key, relations.who))
    by = " GROUP BY g" if statement.keys else ""
    sql = f"SELECT {'g' if statement.keys else '0'}, {', '.join(columns)} FROM ({kept}{fence}){by}"
    return Compiled(sql, context, statement.groups, tallies)


def survivors(statement: Statement, layers: Layers, group: Value, reduced: Reduced, bounds: Bounds) -> str:
    """The rows that survive bounding: their group `g`, and what the statement reads of them."""
    person = not isinstance(statement.bounding, Unbounded)
    read = [f"{group.sql} AS g", *(f"{value.sql} AS {f.name}" for f, value in reduced.fields)]
    base = layers.select(["u"] * person + read)
    if person:
        fence = layers.dialect.fence if statement.keys else ""  # or the number of a group would be computed twice
        base = f"SELECT * FROM ({base}{fence}){layers.dialect.where('g IS NOT NULL AND u IS NOT NULL')}"
    fields = tuple(f for f, _ in reduced.fields)
    if person and statement.is_distinct:
        known = " OR ".join(f"{f.name} IS NOT NULL" for f in fields)
        base = f"SELECT DISTINCT * FROM ({base}){layers.dialect.where(known)}"
    return bounds.kept(base, statement.bounding, Field("g", max(statement.groups - 1, 0)), fields)


def _text_key(statement: Statement) -> tuple[str, KeyType] | None:
    """The column, if rows of a table are grouped by one text: adding up by texts, then numbering them, is quicker."""
    rows = statement.input.input if isinstance(statement.input, Where) else statement.input
    if not isinstance(statement.bounding, Unbounded) or len(statement.keys) != 1 or not isinstance(rows, Scan):
        return None
    if any(isinstance(tally, Distinct) for tally in statement.tallies):  # these don't add up over texts
        return None
    key, kind = statement.keys[0], statement.keys[0].type(rows.types())
    return (key.name, kind) if isinstance(key, Column) and isinstance(kind, KeyType) and kind.textual else None


def group_number(compiler: Compiler, statement: Statement) -> Value:
    """The number of the group, in the order of `itertools.product`; NULL if a key is none, or with these others."""
    if not statement.keys:
        return Value(compiler.dialect.literal(0, compiler.dialect.small), "integer", atom=True)
    place: Value | None = None
    many = 0 if statement.listed.only is None else prod(map(len, statement.domains()))
    held = compiler.dialect.types[held_as(many)] if many else compiler.dialect.small
    for key, values in zip(statement.keys, statement.domains(), strict=True):
        kind = spanned(key.type(compiler.types), values)
        index = _chosen(compiler.layers, compiler.index(key, kind=kind), kind, values)
        if place is None:
            place = index
        else:
            dialect = compiler.dialect
            first, second = dialect.cast(place.sql, held), dialect.cast(index.sql, held)
            sql = f"({first} * {len(values)} + {second})"
            place = Value(sql, "integer", max(place.level, index.level))
    assert place is not None
    return place if statement.listed.only is None else _possible(compiler, statement.listed, place)


def _possible(compiler: Compiler, listed: Listed, product: Value) -> Value:
    """Which of the possible combinations it is, from its number among all; NULL if it is none of them."""
    assert listed.only is not None
    places = [{value: i for i, value in enumerate(values)} for values in listed.values]
    numbers = []
    for each in listed.only:
        number = 0
        for value, place in zip(each, places, strict=True):
            number = number * len(place) + place[value]
        numbers.append(number)
    found = _renumbered(compiler.layers, product, numbers)
    return Value(compiler.dialect.cast(found.sql, compiler.dialect.small), "integer", found.level)


def _chosen(layers: Layers, index: Value, kind: Type, values: tuple[KeyValue, ...]) -> Value:
    """Which of some values of a key it is, from the number among all that it has; NULL if it is none of them."""
    if not values:
        return Value(layers.dialect.cast("NULL", layers.dialect.small), "integer", atom=True)
    every = kind.keys()
    if values == every:
        return index
    place = {value: i for i, value in enumerate(every)}
    return _renumbered(layers, index, [place[value] for value in values])


def _renumbered(layers: Layers, index: Value, numbers: list[int]) -> Value:
    """At which place of these rising numbers it is; NULL if it is none of them."""
    if not numbers:
        return Value(layers.dialect.cast("NULL", layers.dialect.small), "integer", atom=True)
    x = layers.named(index)
    runs: list[tuple[int, int, int]] = []  # the first and the last of values that follow each other, and its new number
    for new, old in enumerate(numbers):
        if runs and old == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], old, runs[-1][2])
        else:
            runs.append((old, old, new))

    def search(some: list[tuple[int, int, int]]) -> str:  # a tree, so that 1,000 runs are 10 steps
        if len(some) == 1:
            ((first, last, new),) = some
            return f"CASE WHEN {x.sql} BETWEEN {first} AND {last} THEN {x.sql} - {first - new} END"
        half = len(some) // 2
        return f"CASE WHEN {x.sql} < {some[half][0]} THEN {search(some[:half])} ELSE {search(some[half:])} END"

    return Value(search(runs), "integer", x.level)


def _added_once(statement: Statement, dialect: Dialect) -> set[Code]:
    """The codes whose number follows from what the database keeps for their sum, and that nothing else is asked of."""
    if dialect.how_many("x") is None:
        return set()
    asked = [(type(tally), tally.value) for tally in statement.tallies if isinstance(tally, Present | Total | Squares)]
    present, total, squares = ({of for kind, of in asked if kind is one} for one in (Present, Total, Squares))
    return {of for of in (present & total) - squares if isinstance(of, Code)}


def _tally(dialect: Dialect, tally: Tally, reduced: Reduced, columns: list[str], shared: set[Code]) -> dict[int, int]:
    def column(sql: str) -> int:
        if sql not in columns:
            columns.append(sql)
        return columns.index(sql)

    def many(of: Code) -> str:
        name = reduced.code(of)
        return (of in shared and dialect.how_many(f"({name} + 1)")) or f"count({name})"

    match tally:
        case Rows():
            return {column("count(*)"): 1}
        case Present(of):
            if isinstance(of, Given):
                return {column(dialect.total(reduced.given(of), 1)): 1}
            return {column(many(of)): 1}
        case Distinct(of):
            return {column(f"count(DISTINCT {reduced.distinct(of)})"): 1}
        case At(of, index):
            return {column(dialect.count_where(f"{reduced.place(of)} = {index}")): 1}
        case Total(of) if of in shared:
            return {column(dialect.total(f"({reduced.code(of)} + 1)", of.width + 1)): 1, column(many(of)): -1}
        case Total(of):
            return {column(dialect.total(reduced.code(of), of.width)): 1}
        case Squares(of):
            name = reduced.code(of)
            if of.width < _SMALL:
                return {column(dialect.total(f"{name} * {name}", of.width**2)): 1}
            high, low = dialect.shifted(name, _HALF), dialect.low_bits(name, _HALF)
            most = max(of.width >> _HALF, 1 << _HALF) ** 2
            return {
                column(dialect.total(f"{high} * {high}", most)): 1 << 2 * _HALF,
                column(dialect.total(f"{high} * {low}", most)): 1 << _HALF + 1,
                column(dialect.total(f"{low} * {low}", most)): 1,
            }
