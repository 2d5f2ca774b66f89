"""The limits on an answer besides the noise, in words: every cap on rows, and every bound on values.

They follow from the question and public facts alone, so the words are the same for all data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time

from privet.exact import Exact, show
from privet.planner import finding
from privet.planner.plan import ReleasePlan
from privet.planner.rank_words import beyond
from privet.planner.ranks import ChosenRanks
from privet.privacy.adjacency import Person
from privet.tables import aggregates, caps, nesting, operators, schema
from privet.tables.aggregates import Aggregate, ApproxBounds, Count, CountDistinct, Histogram, OfValues
from privet.tables.analysis import named_values
from privet.tables.caps import some
from privet.tables.computed import reads
from privet.tables.expressions import nodes as e
from privet.tables.expressions import trees
from privet.tables.expressions.rendering import show as show_node
from privet.tables.expressions.trees import conjuncts
from privet.tables.expressions.typing_rules import as_number
from privet.tables.operators import JoinPerson, JoinPublic, OfPerson, Operator, PerPerson, Scan, Where, WithColumns
from privet.tables.query import Key, Query
from privet.tables.ranked import Extreme, Quantiles
from privet.tables.statement import AtMostGroups, AtMostRows, Bounding, Distinct, PeopleInGroups
from privet.tables.types import BooleanType, KeyType, NumberType, TimeType, Type

LONGEST = 60
"""Maximum characters of an expression to show."""


def limits(plan: ReleasePlan) -> tuple[str, ...]:
    """Every cap and clamp that affects the answer, each in a few words; none for a public answer.

    Example:
        >>> import privet as pv
        >>> from privet.planner import plan
        >>> from privet.tables.relation import Relation
        >>> from privet.tables.schema import Schema
        >>> protect, columns = pv.person("id", max_rows=3), {"income": pv.number(0, 200_000)}
        >>> people = Relation(Scan(Schema.declare("people", protect=protect, columns=columns)))
        >>> print("; ".join(limits(plan(people.agg(pay=pv.mean("income")), epsilon=1))))
        at most 3 rows per person; rows without id left out; income clamped to 0..200,000; missing income skipped
    """
    if not plan.noised:
        return ()
    of = plan.query.input
    groups = list(dict.fromkeys(clause for key in plan.query.keys for clause in _key(key, of)))
    groups += nesting.left_out(of, [key.expression for key in plan.query.keys], [key.name for key in plan.query.keys])
    values = _Values(named={key.expression.name for key in plan.query.keys if isinstance(key.expression, e.Column)})
    for step in operators.steps(of):
        values.step(step)
    for key in plan.query.keys:
        values.conditions(key.expression, of)
    for aggregate in _matter(plan.query):
        for part in aggregates.parts(aggregate):
            values.read(part, of)
    if plan.discovery is not None:
        groups += finding.limits(plan)
    return (*dict.fromkeys(_rows(plan)), *_edges(plan), *groups, *values.clauses())


def _edges(plan: ReleasePlan) -> Iterator[str]:
    """How far inside of the smallest or the largest value an answer aims."""
    for part in plan.noised:
        if isinstance(part, ChosenRanks):
            for largest in part.measurement.edges:
                quantity = Extreme(part.measurement.code.expression, largest)
                told = beyond(part, largest=largest)
                yield f"{quantity} taken {some(part.inside, 'row')} inside of the edge ({told})"


def _matter(query: Query) -> Iterator[Aggregate]:
    """The aggregates that are shown, computed with, or decide what is shown; a batch measured the others for others."""
    columns, arranged = query.columns(), query.arrangement
    deciding = {*arranged.chooses_by(), *(order.column for order in arranged.order)}
    deciding |= {name for _, formula in arranged.computed for name in reads(formula)}
    for name, aggregate in query.aggregates:
        if name not in arranged.hidden or deciding & {*columns[name]}:
            yield aggregate


def of_cap(plan: ReleasePlan, how: Bounding, distinct: str = "") -> str:
    """The cap on the rows per person, and its reason; empty if no row is left out for it."""
    counted = isinstance(how, PeopleInGroups)
    own = caps.is_own(plan.query.input, plan.query.at_most, plan.most_groups, counted=counted)
    reason = "set by this query" if own else caps.reason(plan.query.input)
    reasons = [*_one_for_each(plan.query.input), *([reason] if reason else [])]
    because = f" ({'; '.join(reasons)})" if reasons else ""
    match how:
        case AtMostRows(1) if not own:
            because = f" ({told})" if (told := "".join(_one_for_each(plan.query.input))) else ""
            return f"at most {few(1, distinct)} per person{because}"
        case AtMostRows(rows) | AtMostGroups(1, rows):
            return f"at most {few(rows, distinct)} per person{because}"
        case AtMostGroups(groups, rows):
            return f"at most {some(groups, 'group')} per person with {few(rows, distinct)} in each{because}"
        case PeopleInGroups(groups) if groups < plan.most_groups:
            return f"each person counted in at most {some(groups, 'group')}{because}"
    return ""


def _one_for_each(of: Operator) -> Iterator[str]:
    """What a row stands for, if the rows of a person were combined by some keys."""
    while isinstance(of, Where | WithColumns | JoinPublic):
        of = of.input
    if isinstance(of, PerPerson) and of.keys:
        yield f"one row for each {' and '.join(name for name, _ in of.keys)}"


def few(count: int, distinct: str) -> str:
    """A number of rows, or of different values of an expression."""
    return f"{some(count, 'value')} of {distinct}" if distinct else some(count, "row")


def _rows(plan: ReleasePlan) -> Iterator[str]:
    bounded = [statement.bounding for statement in plan.statements()]
    for how, statement in zip(bounded, plan.statements(), strict=True):
        distinct = next((tally for tally in statement.tallies if isinstance(tally, Distinct)), None)
        told = of_cap(plan, how, "" if distinct is None else _named(distinct.value.expression))
        same = any(isinstance(one, AtMostGroups) and how == PeopleInGroups(one.groups) for one in bounded)
        if told and not same:
            yield told
    people = [table.protect for table in operators.tables(plan.query.input) if isinstance(table.protect, Person)]
    if people:
        yield f"rows without {' or '.join(dict.fromkeys(person.id for person in people))} left out"


def _key(key: Key, of: Operator) -> Iterator[str]:
    kind = key.expression.type(of.types())
    if (inner := trees.listed(key.expression)) is not None and named_values.listed(of, inner) == key.expression:
        return  # the conditions keep no other value
    if isinstance(kind, KeyType) and kind.other is not None:
        yield f"any other {key.name} counted as {kind.other}, rows with no {key.name} left out"
        return
    for name, each, gone in dict.fromkeys(_read_as_key(key.expression, of, "in no group", set())):
        if told := _range_of(each):
            yield f"{name} outside {told} {gone}"  # as a key, what is out of range is missing
        if isinstance(each, KeyType) and each.other is not None:
            yield f"any other {name} counted as {each.other}"
        if isinstance(each, NumberType) and each.step is not None and each.step != 1:
            yield f"{name} rounded to steps of {_number(each.step)}"
    if isinstance(kind, KeyType) and isinstance(key.expression, e.Column):
        origin, _ = origin_of(key.expression.name, of)
        if origin is not None:
            yield f"rows whose {key.name} is missing or not listed left out"
        elif kind.missing:
            yield f"rows with no {key.name} left out"
    elif kind.missing:
        yield f"rows with no {key.name} left out"


def _range_of(kind: Type) -> str:
    match kind:
        case NumberType(lower, upper, wide=False):
            return _range(lower, upper)
        case TimeType(first, last):
            return f"{_moment(first)}..{_moment(last)}"
    return ""


def _read_as_key(node: e.Node, of: Operator, gone: str, seen: set[tuple[str, int]]) -> Iterator[tuple[str, Type, str]]:
    """The declared columns that a key uses, with their types, and the effect on a value out of range.

    What a condition inside a key compares is read as a value.
    """
    if isinstance(node, e.CONDITIONS):
        return
    if isinstance(node, e.Case):
        for value in (*(value for _, value in node.branches), node.otherwise):
            if value is not None:
                yield from _read_as_key(value, of, gone, seen)
    elif not isinstance(node, e.Column):
        for part in trees.parts(node):
            yield from _read_as_key(part, of, gone, seen)
    else:
        origin, inner = origin_of(node.name, of)
        if (node.name, id(inner)) in seen:
            return
        seen.add((node.name, id(inner)))
        if isinstance(origin, schema.Column):
            yield node.name, origin.type, gone
        elif isinstance(origin, OfPerson):
            if origin.expression is not None:
                yield from _read_as_key(origin.expression, inner, "read as missing", seen)
        elif origin is not None:
            yield from _read_as_key(origin, inner, gone, seen)


def origin_of(name: str, of: Operator) -> tuple[schema.Column | OfPerson | e.Node | None, Operator]:
    """The origin of a column: its declaration, or its definition and the rows that it reads; None if it is public."""
    match of:
        case Scan(table):
            return dict(table.columns)[name], of
        case WithColumns(inner, columns) if name in dict(columns):
            return dict(columns)[name], inner
        case PerPerson(inner, values, keys):
            return (dict(keys)[name] if name in dict(keys) else dict(values)[name]), inner
        case JoinPerson(left, right):
            return origin_of(name, left if name in left.types() else right)
        case JoinPublic(inner):
            return origin_of(name, inner) if name in inner.types() else (None, of)
        case Where(inner) | WithColumns(inner):
            return origin_of(name, inner)


# --- values ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Values:
    """The changes to values before they are compared or summed, with the affected columns."""

    named: set[str]
    """Columns that the answer is grouped by; their other values are described with the groups."""
    changes: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)
    seen: set[tuple[str, int, bool | None]] = field(default_factory=set)
    """Columns that were read: as values, only in comparisons, or only for the conditions inside."""

    def clauses(self) -> Iterator[str]:
        in_order = sorted(self.changes.items(), key=lambda change: change[0][0])  # what is missing, last
        for (before, after), names in in_order:
            yield f"{before}{', '.join(names)} {after}"

    def add(self, before: str, name: str, after: str) -> None:
        self.changes.setdefault((before, after), {})[name] = None

    def step(self, step: Operator) -> None:
        """A condition on rows, or the key of a join with a public table."""
        match step:
            case Where(of, condition):
                for part in conjuncts(condition):
                    if not _finds_listed(part, of):
                        self.node(part, of)
            case JoinPublic(of, table, on, how):
                for name, kind, _ in _read_as_key(e.Column(on), of, "", set()):
                    if told := _range_of(kind):
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
                    self.add("missing ", _named(node), "skipped")
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
                    self.add("", _named(node), f"outside {_range(edges[0], edges[-1])} in no bin")
                if number.missing:
                    self.add("missing ", _named(node), "in no bin")
            case ApproxBounds(node):
                self.node(node, of)
                if node.type(types).missing:
                    self.add("missing ", _named(node), "skipped")

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
                self.add("", _named(inner), f"clipped to {_range(lower, upper)}{_because(node, of)}")
                number = node.inner(of.types())
                if number.unit * 2**12 > upper - lower and number.rounded:  # what is left of it has few values
                    self.add("", _named(inner), f"read in steps of {_number(number.unit)}")
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
                    self.add("", name, f"rounded to steps of {_number(step)}")
            case TimeType(first, last):
                if compared is None or first in compared or last in compared:
                    self.add("", name, f"clamped to {_moment(first)}..{_moment(last)}")
            case KeyType(other=other) if name not in self.named:
                self.add("any other ", name, "read as missing" if other is None else f"counted as {other}")
        if column.default is not None:
            default = "false" if isinstance(column.default, bool) else _number(column.default)
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


def _named(node: e.Node) -> str:
    """An expression in words, without bounds that are described separately."""
    text = _named(node.operand) if isinstance(node, e.Clip) else show_node(node)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _range(lower: Exact, upper: Exact) -> str:
    return f"{_number(lower)}..{_number(upper)}"


def _number(number: Exact) -> str:
    if number.denominator != 1 or abs(number) >= 10**15:
        return show(number)
    return f"{number.numerator:,}" if abs(number) >= 10_000 else str(number.numerator)  # 1871..2020 may be years


def _moment(moment: date) -> str:
    if isinstance(moment, datetime) and moment.time() != time():
        return moment.isoformat(" ")
    return moment.strftime("%Y-%m-%d") if moment.year >= 1000 else moment.isoformat()[:10]
