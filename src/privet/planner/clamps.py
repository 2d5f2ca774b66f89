"""The changes to values before they are compared or summed, in words: clamps, clips, steps, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time

from privet.exact import Exact, show
from privet.planner.origins import origin_of, read_as_key
from privet.tables import caps, schema
from privet.tables.aggregates import Aggregate, ApproxBounds, Count, CountDistinct, Histogram, OfValues
from privet.tables.caps import some
from privet.tables.expressions import nodes as e
from privet.tables.expressions import trees
from privet.tables.expressions.rendering import show as show_node
from privet.tables.expressions.trees import conjuncts
from privet.tables.expressions.typing_rules import as_number
from privet.tables.operators import JoinPublic, OfPerson, Operator, Where
from privet.tables.ranked import Extreme, Quantiles
from privet.tables.types import BooleanType, KeyType, NumberType, TimeType, Type

LONGEST = 60
"""Maximum characters of an expression to show."""


@dataclass(slots=True)
class Clamps:
    """The changes to values before they are compared or summed, with the affected columns."""

    named: set[str]
    """Columns that the answer is grouped by; their other values are described with the groups."""
    changes: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)
    seen: set[tuple[str, int, bool | None]] = field(default_factory=set)
    """Columns that were read: as values, only in comparisons, or only for the conditions inside."""

    def clauses(self) -> Iterator[str]:
        """Each change with its columns."""
        in_order = sorted(self.changes.items(), key=lambda change: change[0][0])  # what is missing, last
        for (before, after), names in in_order:
            yield f"{before}{', '.join(names)} {after}"

    def add(self, before: str, name: str, after: str) -> None:
        """A change of a column: the words around its name."""
        self.changes.setdefault((before, after), {})[name] = None

    def step(self, step: Operator) -> None:
        """A condition on rows, or the key of a join with a public table."""
        match step:
            case Where(of, condition):
                for part in conjuncts(condition):
                    if not _finds_listed(part, of):
                        self.node(part, of)
            case JoinPublic(of, table, on, how):
                for name, kind, _ in read_as_key(e.Column(on), of, "", set()):
                    if told := range_of(kind):
                        self.add("", name, f"outside {told} not found in {table.name}")
                    elif isinstance(kind, KeyType):
                        self.add("any other ", name, f"counted as {kind.other}" if kind.other else "read as missing")
                if how == "inner":
                    self.add("rows whose ", on, f"is not in {table.name} left out")

    def conditions(self, node: e.Node, of: Operator) -> None:
        """The conditions inside a key; the rest of it is described with the groups."""
        if isinstance(node, e.CONDITIONS):
            self.node(node, of)
            return
        if isinstance(node, e.Column):
            origin, inner = origin_of(node.name, of)
            if isinstance(origin, e.Node) and (node.name, id(inner), None) not in self.seen:
                self.seen.add((node.name, id(inner), None))
                self.conditions(origin, inner)
        for part in trees.parts(node):
            self.conditions(part, of)

    def read(self, aggregate: Aggregate, of: Operator) -> None:
        """An aggregate of these rows."""
        types = of.types()
        match aggregate:
            case OfValues(node) | Quantiles(node) | Extreme(node):
                self.node(node, of)
                if node.type(types).missing:
                    self.add("missing ", named(node), "skipped")
            case CountDistinct(node):
                self.node(node, of)
            case Count(node) if node is not None:
                if isinstance(node, e.Column):
                    self.column(node.name, of, compared=())
                else:
                    self.node(node, of)
            case Histogram(e.Bin(node, edges)):
                self.node(node, of)
                number = as_number(node.type(types), "a histogram")
                if number.lower < edges[0] or number.upper > edges[-1]:
                    self.add("", named(node), f"outside {_range(edges[0], edges[-1])} in no bin")
                if number.missing:
                    self.add("missing ", named(node), "in no bin")
            case ApproxBounds(node):
                self.node(node, of)
                if node.type(types).missing:
                    self.add("missing ", named(node), "skipped")

    def node(self, node: e.Node, of: Operator) -> None:
        """An expression over these rows: the clamps of the columns that it reads, and its own."""
        match node:
            case e.Column(name):
                self.column(name, of)
            case e.Compare(_, e.Column(name), e.Constant(value)) | e.Compare(_, e.Constant(value), e.Column(name)):
                self.column(name, of, compared=(value,))
            case e.IsIn(e.Column(name), values):
                self.column(name, of, compared=tuple(constant.value for constant in values))
            case e.Beyond():  # the source is asked, before it is clamped
                pass
            case e.IsMissing(e.Column(name)) | e.StartsWith(e.Column(name)):
                self.column(name, of, compared=())
            case e.Clip(inner, lower, upper):
                if not _within(node, of):
                    self.node(inner, of)
                self.add("", named(inner), f"clipped to {_range(lower, upper)}{_because(node, of)}")
                number = node.inner(of.types())
                if number.unit * 2**12 > upper - lower and number.rounded:  # what is left of it has few values
                    self.add("", named(inner), f"read in steps of {number_in_words(number.unit)}")
            case _:
                for part in trees.parts(node):
                    self.node(part, of)

    def column(self, name: str, of: Operator, *, compared: tuple[object, ...] | None = None) -> None:
        """A column of these rows, from its declaration or definition.

        With `compared` it is only compared with these constants, or asked whether it is missing. A clamp changes no
        comparison with a constant between the bounds.
        """
        origin, below = origin_of(name, of)
        if (name, id(below), compared is None) in self.seen and not compared:
            return
        self.seen.add((name, id(below), compared is None))
        if isinstance(origin, OfPerson):
            if origin.expression is not None and origin.function != "count":
                self.node(origin.expression, below)
        elif isinstance(origin, schema.Column):
            self.declared(name, origin, compared)
        elif origin is not None:
            self.node(origin, below)

    def declared(self, name: str, column: schema.Column, compared: tuple[object, ...] | None) -> None:
        """The effect of reading a declared column on values out of its range, off its step, or not listed."""
        match column.type:
            case NumberType(lower, upper):
                if compared is None or lower in compared or upper in compared:
                    self.add("", name, f"clamped to {_range(lower, upper)}")
                step = column.type.step
                if step is not None and step != 1 and compared != ():
                    self.add("", name, f"rounded to steps of {number_in_words(step)}")
            case TimeType(first, last):
                if compared is None or first in compared or last in compared:
                    self.add("", name, f"clamped to {_moment(first)}..{_moment(last)}")
            case KeyType(other=other) if name not in self.named:
                self.add("any other ", name, "read as missing" if other is None else f"counted as {other}")
        if column.default is not None:
            default = "false" if isinstance(column.default, bool) else number_in_words(column.default)
            self.add("missing ", name, f"read as {default}")


def _finds_listed(condition: e.Node, of: Operator) -> bool:
    """Whether a condition selects only listed keys, so that other values make no difference."""
    match condition:
        case e.Compare("==", e.Column() as key, e.Constant(value)):
            asked: tuple[object, ...] = (value,)
        case e.IsIn(e.Column() as key, values):
            asked = tuple(constant.value for constant in values)
        case _:
            return False
    kind = key.type(of.types())
    return isinstance(kind, KeyType) and kind.other not in asked


def _within(clip: e.Clip, of: Operator) -> bool:
    """Whether a clip makes the declared bounds of its operand irrelevant."""
    kind = clip.operand.type(of.types())
    number = kind.as_number() if isinstance(kind, BooleanType) else kind
    if not isinstance(clip.operand, e.Column) or not isinstance(number, NumberType) or number.wide:
        return False
    return number.lower <= clip.lower and clip.upper <= number.upper


def _because(clip: e.Clip, of: Operator) -> str:
    ends = caps.of_person(of, clip.operand.name) if isinstance(clip.operand, e.Column) else None
    return f" (the most {some(ends[2], 'row')} can add up to)" if ends is not None and ends[:2] == _ends(clip) else ""


def _ends(clip: e.Clip) -> tuple[Exact, Exact]:
    return clip.lower, clip.upper


def named(node: e.Node) -> str:
    """An expression in words, without bounds that are described separately."""
    text = named(node.operand) if isinstance(node, e.Clip) else show_node(node)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _range(lower: Exact, upper: Exact) -> str:
    return f"{number_in_words(lower)}..{number_in_words(upper)}"


def number_in_words(number: Exact) -> str:
    """A number with separators; years have none."""
    if number.denominator != 1 or abs(number) >= 10**15:
        return show(number)
    return f"{number.numerator:,}" if abs(number) >= 10_000 else str(number.numerator)  # 1871..2020 may be years


def _moment(moment: date) -> str:
    if isinstance(moment, datetime) and moment.time() != time():
        return moment.isoformat(" ")
    return moment.strftime("%Y-%m-%d") if moment.year >= 1000 else moment.isoformat()[:10]


def range_of(kind: Type) -> str:
    """The bounds of a type; empty if it has none."""
    match kind:
        case NumberType(lower, upper, wide=False):
            return _range(lower, upper)
        case TimeType(first, last):
            return f"{_moment(first)}..{_moment(last)}"
    return ""
