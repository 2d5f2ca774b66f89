"""Questions from a seed: every operator, every node of an expression, every kind of group and of aggregate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from random import Random
from typing import Any
from zlib import crc32

from tests.neighbours.worlds import World

import privet as pv
from privet.errors import UserError
from privet.exact import Exact
from privet.planner import ReleasePlan, plan
from privet.tables.expressions.fluent import Expr
from privet.tables.expressions.nodes import Beyond, Column
from privet.tables.expressions.typing_rules import comparable
from privet.tables.query import Query
from privet.tables.relation import PublicTable, Relation
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType, Type

PARTS: list[Any] = ["year", "quarter", "month", "day", "weekday", "hour"]
UNITS: list[Any] = ["year", "quarter", "month", "week", "day", "hour"]


CONSTANTS: list[Any] = [
    0, 1, -1, 0.1, 3, 1e-9, -250, Exact(1, 3), 0.3, -0.7, Exact(2, 7), 0.25, 2**53 + 1, 2**62 - 256, -(2**62), 1.1, 0.5
]  # fmt: skip
LARGE = [10**9, -(10**9), 2**40, 2**62]
"""Added to what is summed: a row that lacks a value then moves the sum far."""


def _sometimes(of: Expr) -> bool:
    """Yes for a third of all expressions, without drawing: the cases that were numbered before stay as they were."""
    return crc32(repr(of.node).encode()) % 3 == 0


class Asker:
    """Expressions over the columns of a relation."""

    def __init__(self, chance: Random, types: dict[str, Type]) -> None:
        self.chance = chance
        self.types = types

    def of_kind(self, *kinds: type) -> list[str]:
        """The columns of these types."""
        return [name for name, kind in self.types.items() if isinstance(kind, kinds)]

    def column(self, *kinds: type) -> Expr | None:
        """A column of one of these types."""
        names = self.of_kind(*kinds)
        return pv.col(self.chance.choice(names)) if names else None

    def kind(self, of: Expr) -> Type:
        """The type of an expression."""
        return of.node.type(self.types)

    # --- numbers ----------------------------------------------------------------------------------

    def number(self, depth: int = 2) -> Expr:
        """A number."""
        ways: list[Callable[[int], Expr | None]] = [self._plain] * 3
        if depth:
            ways += [self._arithmetic, self._rounded, self._clip, self._case, self._part, self._days, self._flag]
            ways += [self._copies, self._told, self._quotient]
        made = self.chance.choice(ways)(depth - 1)
        return pv.lit(self.chance.choice([0, 1, -2.5])) if made is None else made

    def _plain(self, depth: int) -> Expr | None:
        if self.chance.random() < 0.15:
            return pv.lit(self.chance.choice(CONSTANTS))
        return self.column(NumberType, NumberType, BooleanType)

    def _arithmetic(self, depth: int) -> Expr:
        a, b = self.number(depth), self.number(depth)
        match self.chance.choice("+-*/"):
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
        return a / b

    def _copies(self, depth: int) -> Expr:
        """A number added to itself, or times a constant: over rationals the end of its range is reached exactly."""
        of = self._fraction(depth) if self.chance.random() < 0.75 else self.number(depth)
        if self.chance.random() < 0.4:
            return of * self.chance.choice([3, 7, 10, -3, 0.1, Exact(1, 3)])
        made = of
        for _ in range(self.chance.choice([1, 2, 2, 2, 3, 5])):
            made = made + of if self.chance.random() < 0.95 else made - of
        return made

    def _fraction(self, depth: int) -> Expr:
        """A fraction where a condition holds, and another where not."""
        values: list[Any] = [0.1, 0.2, 0.7, 1.1, Exact(1, 3), Exact(2, 3), Exact(1, 7), -0.1, 0.01]
        then, other = self.chance.sample(values, 2)
        return pv.when(self.secret(), then).otherwise(self.chance.choice([0, other]))

    def secret(self) -> Expr:
        """A condition that holds for some values of a column and not for others."""
        name = self.chance.choice(self.of_kind(BooleanType, NumberType) or [""])
        match self.types.get(name):
            case BooleanType():
                return pv.col(name)
            case NumberType(lower, upper):
                return pv.col(name) >= lower + (upper - lower) * self.chance.choice(
                    [Exact(1, 2), Exact(1, 3), Exact(1)]
                )
        return self.condition(0)

    def _told(self, depth: int) -> Expr:
        """Whether a number is in its bin, as a number."""
        told = self.binned(depth)
        return told + 0 if self.chance.random() < 0.7 else pv.when(told, self.number(0)).otherwise(self.number(0))

    def _quotient(self, depth: int) -> Expr:
        return self.number(depth) / self.chance.choice([3, 10, -7, 0.1, Exact(1, 3), 2**53 + 1])

    def binned(self, depth: int = 1) -> Expr:
        """Whether a number is in one bin, in some, or in none."""
        copies: Callable[[int], Expr] = self._copies
        of = self.chance.choice([*[copies] * 5, self.number, self._arithmetic])(max(depth, 0))
        made = pv.bins(of, self.edges(of, whole=0.7))
        labels = made.node.type(self.types).keys()
        label = self.chance.choice(labels)
        match self.chance.randrange(8):
            case 0:
                return made != label
            case 1:
                return made.is_in(list(labels[: self.chance.randint(1, len(labels))]))
            case 2:
                return made.is_missing()
        return made == label

    def _rounded(self, depth: int) -> Expr:
        of = self.number(depth)
        made = self.chance.choice([of.floor, of.ceil, of.__abs__])()
        if isinstance(of.node, Column) and isinstance(self.kind(of), NumberType) and _sometimes(of):
            return Expr(Beyond(of.node))  # whether the source has more than was declared
        return made

    def _clip(self, depth: int) -> Expr:
        return self.clipped(self.number(depth))

    def clipped(self, of: Expr) -> Expr:
        """The number with bounds of one's own."""
        kind = self.kind(of)
        if isinstance(kind, BooleanType):
            kind = kind.as_number()
        assert isinstance(kind, NumberType)
        if kind.wide or kind.upper - kind.lower > 2**100 or kind.lower == kind.upper:
            return of.clip(*self.chance.choice([(0, 1000), (-1, 1), (-0.5, 2.25), (0, 3)]))
        span = kind.upper - kind.lower
        low, high = sorted(self.chance.sample([Exact(i, 8) for i in range(-1, 10)], 2))
        return of.clip(kind.lower + low * span, kind.lower + high * span)

    def _case(self, depth: int) -> Expr:
        made = pv.when(self.condition(depth), self.number(depth))
        if self.chance.random() < 0.4:
            made = made.when(self.condition(depth), self.number(depth))
        return made.otherwise(self.chance.choice([None, self.number(depth), 0]))

    def _part(self, depth: int) -> Expr | None:
        of = self.time(depth)
        made = None if of is None else of.part(self.chance.choice(PARTS))
        return Expr(Beyond(of.node)) if of is not None and _sometimes(of) else made

    def _days(self, depth: int) -> Expr | None:
        names = [name for name in self.of_kind(TimeType) if not self.types[name].timed]  # type: ignore[union-attr]
        if not names:
            return None
        return pv.col(self.chance.choice(names)) - pv.col(self.chance.choice(names))

    def _flag(self, depth: int) -> Expr:
        return self.condition(depth)

    # --- times, texts -----------------------------------------------------------------------------

    def time(self, depth: int = 1) -> Expr | None:
        """A date or a timestamp."""
        of = self.column(TimeType)
        if of is not None and depth > 0 and self.chance.random() < 0.4:
            return of.truncate(self.chance.choice(UNITS))
        return of

    # --- conditions -------------------------------------------------------------------------------

    def condition(self, depth: int = 2) -> Expr:
        """A condition."""
        ways: list[Callable[[int], Expr | None]] = [
            self._compared, self._compared, self._key_is, self._text_is, self._boolean, self._missing, self._time_is
        ]  # fmt: skip
        if depth > 0:
            ways += [self._logic, self._not, self._between, self.binned]
        made = self.chance.choice(ways)(depth - 1)
        return self.number(0) + 0 >= 0 if made is None else made

    def _compared(self, depth: int) -> Expr:
        a, b = self.number(max(depth, 0)), self.number(max(depth, 0))
        if isinstance(self.kind(a), BooleanType) or isinstance(self.kind(b), BooleanType):
            a, b = a + 0, b + 0
        return self.chance.choice([a.__eq__, a.__ne__, a.__lt__, a.__le__, a.__gt__, a.__ge__])(b)

    def _key_is(self, depth: int) -> Expr | None:
        names = self.of_kind(KeyType)
        if not names:
            return None
        name = self.chance.choice(names)
        kind = self.types[name]
        assert isinstance(kind, KeyType)
        value = self.chance.choice([*kind.keys(), "nowhere" if kind.textual else 12345])
        if kind.textual and self.chance.random() < 0.3:
            return pv.col(name).starts_with(str(value)[:1])
        if self.chance.random() < 0.3:
            return pv.col(name).is_in([value, *kind.keys()[:2]] * self.chance.choice([1, 10]))
        return pv.col(name) == value if self.chance.random() < 0.5 else pv.col(name) != value

    def _text_is(self, depth: int) -> Expr | None:
        of = self.column(TextType)
        if of is None:
            return None
        value = self.chance.choice(["", "a", "😀", "élan", "'; DROP TABLE t0; --", "x" * 3000])
        return self.chance.choice([of == value, of != value, of.starts_with(value), of.is_in([value, "A"])])

    def _boolean(self, depth: int) -> Expr | None:
        return self.column(BooleanType)

    def _missing(self, depth: int) -> Expr:
        if self.chance.random() < 0.5:
            return self.number(max(depth, 0)).is_missing()
        return pv.col(self.chance.choice(list(self.types))).is_missing()

    def _time_is(self, depth: int) -> Expr | None:
        name = next(iter(self.chance.sample(names, 1)), None) if (names := self.of_kind(TimeType)) else None
        if name is None:
            return None
        kind = self.types[name]
        assert isinstance(kind, TimeType)
        of = pv.col(name)
        return self.chance.choice([of >= kind.first, of < kind.last, of == kind.last, of.truncate("month") == of])

    def _logic(self, depth: int) -> Expr:
        a, b = self.condition(depth), self.condition(depth)
        return a & b if self.chance.random() < 0.5 else a | b

    def _not(self, depth: int) -> Expr:
        return ~self.condition(depth)

    def _between(self, depth: int) -> Expr:
        return (self.number(depth) + 0).is_between(-1, self.chance.choice([1, 100]))

    # --- keys -------------------------------------------------------------------------------------

    def key(self) -> Expr:
        """Something to group by; it may make too many groups, and is refused then."""
        ways: list[Callable[[], Expr | None]] = [
            lambda: self.column(KeyType), lambda: self.column(KeyType), self._bins, self._bins, self._cut,
            lambda: self.column(BooleanType), lambda: self.condition(1), self._whole, self._named_case,
        ]  # fmt: skip
        made = self.chance.choice(ways)()
        return self.condition(0) if made is None else made

    def edges(self, of: Expr, whole: float = 0.4) -> list[Exact]:
        """Edges over and beyond a number's range; some of the time they hold just this range."""
        kind = self.kind(of)
        if isinstance(kind, BooleanType):
            kind = kind.as_number()
        assert isinstance(kind, NumberType)
        low, span = (Exact(0), Exact(10)) if kind.wide else (kind.lower, kind.upper - kind.lower or Exact(1))
        if self.chance.random() < whole:
            inner = self.chance.sample(range(1, 12), self.chance.choice([0, 0, 1, 2]))
            return [low + span * Exact(i, 12) for i in sorted([0, *inner, 12])]
        if self.chance.random() < (
            0.8 if abs(low) > 2**53 else 0.4
        ):  # whole numbers and fractions close together, far from the ends
            at = math.floor(low + span * Exact(self.chance.randrange(9), 8))
            part = self.chance.choice([Exact(1, 2), Exact(1, 3), Exact(1, 10)])
            far = 2 * max(abs(at), 10)
            return [Exact(-far), Exact(at), at + part, Exact(far)][self.chance.choice([0, 0, 1]) :]
        chosen = self.chance.sample(range(-1, 10), self.chance.randint(2, 4))
        return [low + span * Exact(i, 8) for i in sorted(chosen)]

    def _bins(self) -> Expr:
        of = self.number(1)
        return pv.bins(of, self.edges(of))

    def _cut(self) -> Expr | None:
        of = self.column(TimeType)
        if of is None:
            return None
        if self.chance.random() < 0.3:
            return of.part(self.chance.choice(PARTS))
        return of.truncate(self.chance.choice(UNITS))

    def _whole(self) -> Expr | None:
        names = [n for n in self.of_kind(NumberType) if self.types[n].integer]  # type: ignore[union-attr]
        return pv.col(self.chance.choice(names)) if names else None

    def _named_case(self) -> Expr:
        first = pv.when(self.condition(1), "yes")
        return first.when(self.condition(0), "perhaps").otherwise(self.chance.choice([None, "no"]))

    # --- aggregates -------------------------------------------------------------------------------

    def summed(self) -> Expr:
        """Something to sum."""
        if self.chance.random() < 0.35:
            return self._told(1) + self.chance.choice(LARGE)
        of = self.number(self.chance.choice([0, 1, 2]))
        if self.chance.random() < 0.2:
            of = of + self.chance.choice(LARGE)
        kind = self.kind(of)
        if (isinstance(kind, NumberType) and kind.wide) or self.chance.random() < 0.25:
            return self.clipped(of)
        return of

    def aggregate(self, settled: bool = False) -> Any:
        """Something to ask; sums above all, where every row stays."""
        match 3 if settled and self.chance.random() < 0.6 else self.chance.randrange(13):
            case 0:
                return pv.count()
            case 1:
                name = next(iter(self.types))
                return self.chance.choice(
                    [pv.count(self.number(1)), pv.count(self.condition(1)), pv.count_distinct(name)]
                )
            case 2:
                return pv.count_people()
            case 3 | 4:
                return pv.sum(self.summed())
            case 5 | 6:
                return pv.mean(self.summed())
            case 7:
                return pv.variance(self.summed())
            case 8:
                return pv.std(self.summed())
            case 9 | 10 | 11:
                column = self._whole() if self.chance.random() < 0.7 else None
                of = self.number(1) if column is None else column
                binned = pv.histogram(of, self.edges(of, whole=0.1))
                return pv.approx_bounds(of) if _sometimes(of) else binned
        return pv.sum(self.summed()) / self.chance.choice([pv.count(), pv.count_people(), pv.sum(self.summed())])


def relation(chance: Random, of: World, tables: dict[str, Relation]) -> Relation:
    """Rows to ask about: up to four operators."""
    made = tables["one"]
    joined = False
    if of.settled and chance.random() < 0.7:  # nothing is left out
        asker = Asker(chance, dict(made.input.types()))
        return made if chance.random() < 0.7 else made.with_columns(new=asker.number())
    for _ in range(chance.choice([0, 0, 1, 2, 3, 4])):
        asker = Asker(chance, dict(made.input.types()))
        match chance.choice(["where", "where", "with", "with", "public", "person", "per_person"]):
            case "where":
                made = made.where(asker.condition())
            case "with":
                name = chance.choice([f"new{chance.randrange(3)}", chance.choice(list(asker.types))])
                value = chance.choice([asker.number, asker.number, asker.condition, asker.key])()
                made = made.with_columns(**{name: value})
            case "public":
                made = _joined(chance, made, chance.choice(of.public))
            case "person" if "two" in tables and not joined:
                other = tables["two"]
                if chance.random() < 0.3:
                    other = _per_person(chance, other)
                made, joined = made.join(other), True
            case "per_person" if of.person:
                made = _per_person(chance, made)
    return made


def _joined(chance: Random, made: Relation, table: PublicTable) -> Relation:
    theirs = dict(table.schema.columns)[table.schema.key]
    fitting = [name for name, kind in made.input.types().items() if comparable(kind, theirs)]
    if not fitting:
        return made
    return made.join(table, on=chance.choice(fitting), how=chance.choice(["inner", "left"]))


def _per_person(chance: Random, made: Relation) -> Relation:
    asker = Asker(chance, dict(made.input.types()))
    suffix = chance.randrange(10**6)
    ways: list[Callable[[Expr], Any]] = [pv.sum, pv.mean, pv.least, pv.greatest, pv.count, lambda e: pv.count()]
    names = [f"p{suffix}_{i}" for i in range(chance.randint(1, 3))]
    values = {name: chance.choice(ways)(asker.summed()) for name in names}
    if chance.random() < 0.6:
        return made.per_person(**values)
    keys = {f"q{suffix}_{i}": asker.key() for i in range(chance.choice([1, 1, 2]))}
    return made.with_columns(**keys).per_person(*keys, **values)


def question(chance: Random, of: World, most_groups: int = 60) -> Query | None:
    """A question that can be asked; None if what came up can't be."""
    tables = {name: table.relation for name, table in of.tables.items()}
    try:
        rows = relation(chance, of, tables)
        asker = Asker(chance, dict(rows.input.types()))
        asked = {f"a{i}": asker.aggregate(of.settled) for i in range(chance.choice([1, 1, 2, 3, 4]))}
        counts = [0, 0, 0, 0, 0, 1] if of.settled else [0, 0, 1, 1, 2, 3]
        keys = {f"k{i}": asker.key() for i in range(chance.choice(counts))}
        made = rows.group_by(**keys).agg(**asked) if keys else rows.agg(**asked)
        if plan(made, epsilon=1).groups > most_groups:
            return None
    except UserError:
        return None
    return made


def planned(chance: Random, of: World) -> ReleasePlan | None:
    """A question and its plan."""
    made = question(chance, of)
    return None if made is None else plan(made, epsilon=1)


def numbers(of: object) -> list[Exact]:
    """The public numbers that stand in a question: constants, edges, bounds."""
    if isinstance(of, Exact):
        return [of]
    if isinstance(of, tuple):
        return [number for part in of for number in numbers(part)]
    if is_dataclass(of):
        return [number for part in fields(of) for number in numbers(getattr(of, part.name))]
    return []
