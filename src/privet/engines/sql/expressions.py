"""Expressions over a row, as SQL.

Claim: for every node, a row whose columns are in their types' ranges, or NULL, gets a value in the range of the node's
type, or NULL, exactly by the rules of `privet.tables`; no row makes it fail. A number is the integer n of its type's
unit, so that there is no float.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from privet.engines.sql import arithmetic
from privet.engines.sql.dialect import Dialect, Kind, held
from privet.engines.sql.hull import encoded
from privet.engines.sql.leaves import Lattice, Mode, Test, number_of
from privet.engines.sql.text import Layers, Value
from privet.exact import Exact
from privet.tables.expressions.nodes import (
    CONDITIONS,
    Arithmetic,
    Beyond,
    Bin,
    Case,
    Clip,
    Column,
    Compare,
    Constant,
    DatePart,
    Grouping,
    IsIn,
    IsMissing,
    Logic,
    Node,
    Not,
    OfAnswer,
    Rounded,
    StartsWith,
    Truncate,
    Types,
    Which,
)
from privet.tables.expressions.trees import parts
from privet.tables.expressions.typing_rules import as_number, clipped_quotient, inverse
from privet.tables.types import BooleanType, KeyType, NumberType, TimeType, Type
from privet.tables.units import quotient

Wanted = Mode | Lattice | Test
"""What is asked of a column: its value, its key, the number of its key, its lattice code, or how it compares."""

_FEW = 16  # lists up to this are written out; longer ones are looked up
_SIGNS = {"==": "=", "!=": "<>"}
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(slots=True)
class Compiler:
    """Turns the nodes of one relation into SQL over its columns; `column` gives the SQL of a column, as wanted."""

    layers: Layers
    types: Types
    column: Callable[[str, Wanted], Value]
    _kinds: dict[int, tuple[Node, Type]] = field(default_factory=dict)

    @property
    def dialect(self) -> Dialect:
        """The dialect of the statement."""
        return self.layers.dialect

    def kind(self, node: Node) -> Type:
        """The type of a node."""
        if id(node) not in self._kinds:
            self._kinds[id(node)] = node, node.type(self.types)
        return self._kinds[id(node)][1]

    def value(self, node: Node, mode: Mode = "value") -> Value:
        """The value of a node; in mode "key" a column that is out of its range is missing instead of clamped.

        Conditions are the same everywhere: what they compare is clamped, in a key too.
        """
        kind = self.kind(node)
        mode = "value" if isinstance(node, CONDITIONS) else mode
        if isinstance(kind, NumberType) and kind.constant is not None:
            public = Value(self.dialect.integer(kind.least), "integer", atom=True, literal=True)
            if mode == "value" or not _reads(node):
                return public
            if not isinstance(node, Column | Case):  # public, but as a key it is missing where a part is
                some = [self.value(part, mode) for part in parts(node) if _reads(part)]
                known = " AND ".join(f"{part.sql} IS NOT NULL" for part in some)
                return _made(f"CASE WHEN {known} THEN {public.sql} END", "integer", *some)
        match node:
            case Column(name):
                return self.column(name, mode)
            case Constant(value):
                return self._constant(value)
            case Arithmetic(operator, left, right):
                return self._arithmetic(operator, left, right, kind, mode)
            case Rounded(function, of):
                return self._rounded(function, of, kind, mode)
            case Clip():
                assert isinstance(kind, NumberType)
                return arithmetic.clipped(self.layers, self._inside(node, mode), node.inner(self.types), kind)
            case Compare(operator, left, right):
                return self._compare(operator, left, right, mode)
            case Logic(operator, of):
                several = [self.value(part, mode) for part in of]
                return _made("(" + f" {operator.upper()} ".join(p.sql for p in several) + ")", "boolean", *several)
            case Not(of):
                x = self.value(of, mode)
                return Value(f"(NOT {x.sql})", "boolean", x.level)
            case IsIn(of, values):
                return self._is_in(of, values, mode)
            case IsMissing(of):
                x = self.value(of, mode)
                return Value(f"({x.sql} IS NULL)", "boolean", x.level)
            case StartsWith(of, prefix):
                x = self.value(of, mode)
                starts = self.dialect.starts_with(x.sql, self.layers.context.bind(prefix))
                return Value(starts, "boolean", x.level)
            case Case(branches, otherwise):
                return self._case(branches, otherwise, kind, mode)
            case DatePart(of, part):
                x = self.value(of, mode)
                return Value(self.dialect.part(part, x.sql), "integer", x.level)
            case Truncate(of, unit):
                x = self.value(of, mode)
                return Value(self.dialect.truncated(unit, x.sql, x.kind), x.kind, x.level)
            case Bin():
                assert isinstance(kind, KeyType)
                labels = [self.layers.context.bind(str(label)) for label in kind.values]
                return self._bin(node, labels, "text", mode)
            case Which(several, values):
                return self._which(several, values, mode)
            case OfAnswer() | Grouping():
                raise AssertionError(node)  # it has no type over rows
            case Beyond(of):
                return self._beyond(of)

    def number(self, node: Node, mode: Mode = "value") -> tuple[Value, NumberType]:
        """A number, or a boolean as 0 or 1, with its type."""
        kind, value = self.kind(node), self.value(node, mode)
        return numeric(self.dialect, value, kind), _as_number(kind)

    def _constant(self, value: object) -> Value:
        match value:
            case bool():
                return Value(str(value).lower(), "boolean", atom=True)
            case str():
                return Value(self.layers.context.bind(value), "text", atom=True)
            case datetime():
                return Value(self.dialect.moment(value), "time", atom=True)
        return Value(self.dialect.moment(value), "date", atom=True)  # type: ignore[arg-type]

    def _arithmetic(self, operator: str, left: Node, right: Node, kind: Type, mode: Mode) -> Value:
        if isinstance(self.kind(left), TimeType):
            a, b = self.value(left, mode), self.value(right, mode)
            return _made(self.dialect.days(a.sql, b.sql), "integer", a, b)
        assert isinstance(kind, NumberType)
        (a, x), (b, y) = self.number(left, mode), self.number(right, mode)
        if operator == "/" and not y.constant:
            return arithmetic.divided(self.layers, a, b, x.range, y.range, quotient(x.range, y.range))
        if operator in ("*", "/"):
            divisor = y.range
            if operator == "/" and y.constant:
                divisor = inverse(y.constant)
                if not b.literal:  # as a key it can be missing
                    one = self.dialect.integer(divisor.least)
                    b = replace(b, sql=f"CASE WHEN {b.sql} IS NOT NULL THEN {one} END")
            return _made(arithmetic.multiplied(self.dialect, a, b, x.range, divisor), "integer", a, b)
        return _made(arithmetic.added(self.dialect, operator, a, b, x.range, y.range, kind.range), "integer", a, b)

    def _inside(self, clip: Clip, mode: Mode) -> Value:
        """What is clipped; a quotient is computed as finely as the clip allows."""
        of = clip.operand
        if not isinstance(of, Arithmetic) or of.operator != "/" or _as_number(self.kind(of.right)).constant:
            return self.number(of, mode)[0]
        (a, x), (b, y) = self.number(of.left, mode), self.number(of.right, mode)
        quotient, _ = clipped_quotient(x, y, clip.lower, clip.upper)
        return arithmetic.divided(self.layers, a, b, x.range, y.range, quotient)

    def _rounded(self, function: str, of: Node, kind: Type, mode: Mode) -> Value:
        assert isinstance(kind, NumberType)
        x, number = self.number(of, mode)
        if number.range == kind.range:
            return x
        if function == "abs":
            return Value(self.dialect.absolute(x.sql, held(number.range.largest)), "integer", x.level)
        sql = arithmetic.to_whole(self.dialect, x, number.range, kind.range, up=function == "ceil")
        return Value(sql, "integer", x.level)

    # --- comparisons ----------------------------------------------------------------------------

    def _compare(self, operator: str, left: Node, right: Node, mode: Mode) -> Value:
        x, y = _numbers(self.kind(left), self.kind(right))
        if x is not None and y is not None and x.constant is None and y.constant is not None:
            return self._compare_constant(operator, left, x, y.constant, mode)
        if x is not None and y is not None and x.constant is not None and y.constant is None:
            return self._compare_constant(_MIRRORED.get(operator, operator), right, y, x.constant, mode)
        a, b = alike(
            self.dialect, (self.value(left, mode), self.kind(left)), (self.value(right, mode), self.kind(right))
        )
        return _made(f"({a.sql} {_SIGNS.get(operator, operator)} {b.sql})", "boolean", a, b)

    def _compare_constant(self, operator: str, of: Node, kind: NumberType, constant: Exact, mode: Mode) -> Value:
        if operator in ("==", "!="):
            k = kind.equal_to(constant)
            if k is None or not kind.least <= k <= kind.most:
                x = numeric(self.dialect, self.value(of, mode), self.kind(of))
                never = str(operator == "!=").lower()
                return Value(f"CASE WHEN {x.sql} IS NOT NULL THEN {never} END", "boolean", x.level)
        else:
            k = kind.compared(operator, constant)  # type: ignore[arg-type]
        if isinstance(of, Column) and mode == "value" and isinstance(self.kind(of), NumberType):
            return self.column(of.name, Test(operator, k))
        return compared(
            self.dialect, numeric(self.dialect, self.value(of, mode), self.kind(of)), kind, Test(operator, k)
        )

    def _is_in(self, of: Node, values: Sequence[Constant], mode: Mode) -> Value:
        value, kind = self.value(of, mode), self.kind(of)
        if value.kind == "text" and len(values) > _FEW:
            x = self.layers.named(value)
            texts = tuple(dict.fromkeys(str(v.value) for v in values))
            listed = self.dialect.is_listed(x.sql, texts, self.layers.context)
            return Value(f"CASE WHEN {x.sql} IS NOT NULL THEN {listed} END", "boolean", x.level)
        if value.kind == "integer":
            number = _as_number(kind)
            places = {number.equal_to(v.value) for v in values if isinstance(v.value, Exact)}
            few = sorted(k for k in places if k is not None and number.least <= k <= number.most)
            listed = ", ".join(self.dialect.integer(k) for k in few)
            is_listed = f"{value.sql} IN ({listed})" if few else f"CASE WHEN {value.sql} IS NOT NULL THEN false END"
            return Value(f"({is_listed})", "boolean", value.level)
        pairs = [alike(self.dialect, (value, kind), (self._constant(v.value), v.type(self.types))) for v in values]
        listed = ", ".join(b.sql for _, b in pairs)
        return Value(f"({pairs[0][0].sql} IN ({listed}))", "boolean", value.level)

    def _case(self, branches: Sequence[tuple[Node, Node]], otherwise: Node | None, kind: Type, mode: Mode) -> Value:
        conditions = [self.value(condition) for condition, _ in branches]
        nodes = [value for _, value in branches] + ([] if otherwise is None else [otherwise])
        if isinstance(kind, NumberType):
            numbers = [self.number(node, mode) for node in nodes]
            given, ranges = [x for x, _ in numbers], [number.range for _, number in numbers]
            terms, size = arithmetic.in_one_unit(self.dialect, given, ranges)
            level = max([x.level for x, _ in numbers], default=0)
            values = [
                Value(arithmetic.narrowed(self.dialect, sql, size, kind.range), "integer", level) for sql in terms
            ]
        else:
            values = [self.value(node, mode) for node in nodes]
        cases = " ".join(f"WHEN {c.sql} THEN {v.sql}" for c, v in zip(conditions, values, strict=False))
        end = f" ELSE {values[-1].sql}" if otherwise is not None else ""
        return _made(f"CASE {cases}{end} END", values[0].kind, *conditions, *values)

    def _bin(self, node: Bin, results: Sequence[str], kind: Kind, mode: Mode) -> Value:
        operand, number = self.number(node.operand, mode)
        x, places = self.layers.named(operand), [_near(self.dialect, k, number) for k in node.places(number)]

        def search(first: int, last: int) -> str:  # the bins first..last - 1: a tree, so that 1,000 bins are 10 steps
            if last - first == 1:
                return results[first]
            middle = (first + last) // 2
            below = f"{x.sql} < {places[middle]}"
            return f"CASE WHEN {below} THEN {search(first, middle)} ELSE {search(middle, last)} END"

        inside = f"{x.sql} BETWEEN {places[0]} AND {places[-1]}"
        return Value(f"CASE WHEN {inside} THEN {search(0, len(places) - 1)} END", kind, x.level)

    def _which(self, operands: Sequence[Node], values: Sequence[tuple[str | int, ...]], mode: Mode) -> Value:
        """The number of a combination: of the one value, or of the values' numbers, read as digits."""
        parts = [self.value(node, mode) for node in operands]
        if not values:
            return Value(self.dialect.cast("NULL", self.dialect.small), "integer", atom=True)
        dialect, context = self.dialect, self.layers.context
        columns = [tuple(dict.fromkeys(each[i] for each in values)) for i in range(len(parts))]
        places = [
            Value(number_of(KeyType(listed), part, context), "integer", part.level)  # type: ignore[arg-type]
            for listed, part in zip(columns, parts, strict=True)
        ]
        if len(places) == 1:
            return places[0]
        digits = dialect.cast(places[0].sql, dialect.types["wide"])
        numbers = [{value: i for i, value in enumerate(listed)} for listed in columns]
        codes = [numbers[0][each[0]] for each in values]
        for i, (place, number) in enumerate(zip(places[1:], numbers[1:], strict=True), 1):
            digits = f"({digits} * {len(number)} + {dialect.cast(place.sql, dialect.types['wide'])})"
            codes = [code * len(number) + number[each[i]] for code, each in zip(codes, values, strict=True)]
        which = dialect.place(dialect.cast(digits, dialect.text), tuple(map(str, codes)), context)
        return _made(which, "integer", *places)

    def _beyond(self, of: Node) -> Value:
        kind, x, key = self.kind(of), self.layers.named(self.value(of)), self.value(of, "key")
        assert isinstance(kind, NumberType | TimeType)
        least = self.dialect.moment(kind.first) if isinstance(kind, TimeType) else self.dialect.integer(kind.least)
        below, inside, above = (self.dialect.integer(n) for n in (-1, 0, 1))
        known = f"WHEN {key.sql} IS NOT NULL THEN {inside} WHEN {x.sql} = {least} THEN {below}"
        return _made(f"CASE {known} WHEN {x.sql} IS NOT NULL THEN {above} END", "integer", x, key)

    # --- codes and groups -----------------------------------------------------------------------

    def code(self, node: Node, code: Lattice) -> Value:
        """The lattice code of a number, or of a boolean as 0 or 1: clamped last of all, whatever the expression."""
        if isinstance(node, Column):
            return self.column(node.name, code)
        value, number = self.number(node)
        return encoded(self.layers, value, number, code.lower, code.step, code.width)

    def index(self, node: Node, mode: Mode = "key", kind: Type | None = None) -> Value:
        """Which value of its type, or of a part of its type, a key is, counted from 0; NULL if it is none."""
        kind = self.kind(node) if kind is None else kind
        match node, kind:
            case Column(name), KeyType() if mode == "key":
                return self.column(name, "index")
            case Bin(), KeyType():
                bins = [self.dialect.literal(i, self.dialect.small) for i in range(len(node.edges) - 1)]
                return self._bin(node, bins, "integer", mode)
        x = self.layers.named(self.value(node, mode))
        match kind:
            case KeyType():
                listed = KeyType(kind.keys())  # type: ignore[arg-type]
                return Value(number_of(listed, x, self.layers.context), "integer", x.level)
            case BooleanType():
                return Value(self.dialect.flag(x.sql, self.dialect.small), "integer", x.level)
            case NumberType():
                inside = f"{x.sql} BETWEEN {kind.least} AND {kind.most}"
                first = self.dialect.integer(kind.least, held(kind.range.largest))
                place = self.dialect.try_cast(f"{x.sql} - {first}", self.dialect.small)
                if kind.step is not None:
                    place = self.dialect.divided(place, str(int(kind.step / kind.unit)))
                return Value(f"CASE WHEN {inside} THEN {place} END", "integer", x.level)
            case TimeType():
                first, last = (self.dialect.moment(kind.keys()[i]) for i in (0, -1))  # type: ignore[arg-type]
                place = self.dialect.periods(kind.unit or "day", first, x.sql)
                return Value(f"CASE WHEN {x.sql} BETWEEN {first} AND {last} THEN {place} END", "integer", x.level)
        raise AssertionError(f"{kind} has no keys")


def _reads(node: Node) -> bool:
    """Whether a key that is out of its range can make this missing."""
    return isinstance(node, Column) or (not isinstance(node, CONDITIONS) and any(map(_reads, parts(node))))


def compared(dialect: Dialect, x: Value, kind: NumberType, test: Test) -> Value:
    """How an integer n compares with a public one."""
    operator = _SIGNS.get(test.operator, test.operator)
    return Value(f"({x.sql} {operator} {_near(dialect, test.k, kind)})", "boolean", x.level)


def _near(dialect: Dialect, k: int, kind: NumberType) -> str:
    """An integer to compare n with; beyond the range of n, the next one, which compares the same and is short."""
    return dialect.integer(min(max(k, kind.least - 1), kind.most + 1))


def numeric(dialect: Dialect, value: Value, kind: Type) -> Value:
    """A number as it is; a boolean as 0 or 1."""
    if not isinstance(kind, BooleanType):
        return value
    return Value(dialect.flag(value.sql), "integer", value.level)


def _as_number(kind: Type) -> NumberType:
    """The type of a number, a boolean as 0 or 1, or an integer key."""
    if isinstance(kind, KeyType):
        listed = kind.keys()
        values = [int(value) for value in listed]  # type: ignore[arg-type]
        return NumberType(Exact(min(values)), Exact(max(values)), integer=True, missing=True)
    return as_number(kind, "a comparison")


def _numbers(left: Type, right: Type) -> tuple[NumberType | None, NumberType | None]:
    """The types of two numbers that are compared as numbers, integer keys among them."""
    for kind in (left, right):
        if not isinstance(kind, NumberType | KeyType) or (isinstance(kind, KeyType) and kind.textual):
            return None, None
    return _as_number(left), _as_number(right)


def _made(sql: str, kind: Kind, *parts: Value) -> Value:
    return Value(sql, kind, max(part.level for part in parts))


def alike(dialect: Dialect, left: tuple[Value, Type], right: tuple[Value, Type]) -> tuple[Value, Value]:
    """Two values, in one unit and of one SQL type: a database would choose casts that can fail."""
    (a, left_kind), (b, right_kind) = left, right
    if a.kind == b.kind == "integer":
        ranges = [_as_number(left_kind).range, _as_number(right_kind).range]
        (x, y), _ = arithmetic.in_one_unit(dialect, [a, b], ranges)
        return Value(x, "integer", a.level), Value(y, "integer", b.level)
    if {a.kind, b.kind} == {"date", "time"}:
        timed = dialect.moments["time"]
        both = [v if v.kind == "time" else Value(dialect.cast(v.sql, timed), "time", v.level) for v in (a, b)]
        return both[0], both[1]
    return a, b
