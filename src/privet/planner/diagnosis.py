"""What to ask to find out how much caps and bounds take from an answer: ordinary questions, one for each kind of rows.

- *Rows*: of each person, how many rows the question has for them. A row per person, so no cap is needed. People are
  counted by their number of rows; rows over the cap are added up to a public ceiling.
- *Groups*: of each person, in how many groups they are, if a cap on groups applies; the same sums, of groups.
- *Values*: of each number that is clamped or clipped, on which side of its bounds a row is: below, inside or above.

Claim: each is a query like any other, so that its sensitivity is the planner's. A person with n rows adds 1 to one bin,
min(n, k) to the rows that are kept and min(max(n - k, 0), m - k) to those that are left out, for the cap k and the
ceiling m, both public. A row adds 1 to one of three bins for each number, and of a person as many rows count as in the
question itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from privet.errors import QueryError, argument
from privet.exact import Exact
from privet.planner.origins import origin_of
from privet.tables import caps, schema
from privet.tables.aggregates import CountPeople, Histogram, OfValues, Sum, parts
from privet.tables.caps import Cap
from privet.tables.expressions import nodes as e
from privet.tables.expressions import trees
from privet.tables.expressions.rendering import show
from privet.tables.expressions.typing_rules import as_number
from privet.tables.groups import Listed
from privet.tables.operators import OfPerson, Operator, PerPerson, Where
from privet.tables.query import Query
from privet.tables.ranked import Extreme, Quantiles
from privet.tables.schema import CEILING
from privet.tables.statement import AtMostGroups
from privet.tables.types import NumberType, TimeType

ROWS, GROUPS = "rows", "groups"
"""The names of the values per person."""
TIMES = 4
"""The ceiling, in multiples of the cap, if none is given."""
DOUBLED = 6
"""People are counted by whether they have more rows than the cap, than twice the cap, and so on: so many times."""


@dataclass(frozen=True, slots=True)
class RowsAsked:
    """How many rows people have, and how many of them the cap leaves out."""

    query: Query
    cap: Cap
    ceiling: int
    own: bool
    """Whether the question set the cap, and not the steward."""
    by_groups: bool
    """Whether a person can be in more groups than the cap allows: then their rows there are left out too."""

    @property
    def steps(self) -> tuple[int, ...]:
        """The numbers of rows at which people are counted: the cap, and its doubles."""
        return tuple(caps.rows_of(self.cap) << i for i in range(DOUBLED))


@dataclass(frozen=True, slots=True)
class GroupsAsked:
    """In how many groups people are, and how many of them the cap leaves out."""

    query: Query
    cap: int
    """The maximum groups per person."""
    ceiling: int


@dataclass(frozen=True, slots=True)
class Clamp:
    """A number that is moved to its nearer bound where it is outside."""

    name: str
    lower: Exact | date
    upper: Exact | date
    clip: bool
    """Whether the question clips it; else the table declares its bounds."""
    side: e.Node
    """-1 below the bounds, 1 above, 0 inside; missing where there is no value."""

    def label(self, number: int) -> str:
        """The name of its column in the question."""
        if self.clip:
            return f"clip {number}"
        return self.name


@dataclass(frozen=True, slots=True)
class ValuesAsked:
    """On which side of its bounds each number is."""

    query: Query
    clamps: tuple[Clamp, ...]


def asked(query: Query, ceiling: int | None = None) -> tuple[RowsAsked | None, tuple[ValuesAsked, ...]]:
    """The questions about a question; none about rows if no cap applies."""
    return _rows(query, ceiling), tuple(_values(query))


# --- rows -------------------------------------------------------------------------------------------------------


def _rows(query: Query, ceiling: int | None) -> RowsAsked | None:
    cap = caps.effective(query.input, query.at_most, query.groups.most)
    counts = [part for _, aggregate in query.aggregates for part in parts(aggregate)]
    if cap is None or all(isinstance(part, CountPeople) for part in counts):
        return None
    kept = caps.rows_of(cap)
    most = TIMES * kept if ceiling is None else ceiling
    if type(most) is not int or not kept < most <= CEILING:
        raise QueryError(
            f"ceiling must be a number of rows above the cap, which is {kept:,}",
            remedy=argument("ceiling", TIMES * kept),
        )
    rows = e.Column(ROWS)
    over = e.Arithmetic("-", rows, e.Constant(Exact(kept)))
    edges = tuple(Exact(edge) for edge in (1, *((kept << i) + 1 for i in range(DOUBLED)), CEILING))
    aggregates = (
        ("people", Histogram(e.Bin(rows, edges))),
        ("kept", Sum(e.Clip(rows, Exact(0), Exact(kept)))),
        ("left out", Sum(e.Clip(over, Exact(0), Exact(most - kept)))),
    )
    per_person = PerPerson(_in_groups(query), ((ROWS, OfPerson("count")),))
    own = caps.is_own(query.input, query.at_most, query.groups.most)
    by_groups = isinstance(cap, AtMostGroups) and cap.groups < query.groups.most
    return RowsAsked(Query(per_person, (), aggregates), cap, most, own, by_groups)


def groups_asked(query: Query) -> GroupsAsked | None:
    """The question about groups; None if no cap on groups can leave one out, or if groups are not public.

    Claim: a person is in one row of the outer rows, with the number of groups that their own rows are in.
    """
    cap = caps.effective(query.input, query.at_most, query.groups.most)
    if cap is None or not isinstance(query.groups, Listed):
        return None
    counts = [part for _, aggregate in query.aggregates for part in parts(aggregate)]
    if isinstance(cap, AtMostGroups):
        kept = cap.groups
    elif any(isinstance(part, CountPeople) for part in counts):
        kept = caps.people(query.input, query.at_most, query.groups.most)
    else:
        return None
    most = min(query.groups.most, TIMES * kept)
    if most <= kept:
        return None
    keys = tuple((f"key {i}", key.expression) for i, key in enumerate(query.keys))
    each = PerPerson(_in_groups(query), ((ROWS, OfPerson("count")),), keys)
    groups = e.Column(GROUPS)
    over = e.Arithmetic("-", groups, e.Constant(Exact(kept)))
    aggregates = (
        ("people", Histogram(e.Bin(groups, (Exact(1), Exact(kept + 1), Exact(CEILING))))),
        ("kept", Sum(e.Clip(groups, Exact(0), Exact(kept)))),
        ("left out", Sum(e.Clip(over, Exact(0), Exact(most - kept)))),
    )
    return GroupsAsked(Query(PerPerson(each, ((GROUPS, OfPerson("count")),)), (), aggregates), kept, most)


def _in_groups(query: Query) -> Operator:
    """The rows that are in a group: a row whose key is missing, or out of its range, is left out before the cap."""
    types, rows = query.input.types(), query.input
    conditions: list[e.Node] = []
    for key in query.keys:
        if key.expression.type(types).missing:
            conditions.append(e.Not(e.IsMissing(key.expression)))
        conditions += [
            e.Compare("==", e.Beyond(e.Column(name)), e.Constant(Exact(0)))
            for name in sorted(_columns(key.expression))
            if isinstance(types[name], NumberType | TimeType) and _declared(name, rows) is not None
        ]
    return Where(rows, trees.joined("and", conditions)) if conditions else rows


def _columns(node: e.Node) -> set[str]:
    return {node.name} if isinstance(node, e.Column) else set().union(*map(_columns, trees.parts(node)))


def _declared(name: str, rows: Operator) -> schema.Column | None:
    found, _ = origin_of(name, rows)
    return found if isinstance(found, schema.Column) else None


# --- values -----------------------------------------------------------------------------------------------------


def _values(query: Query) -> Iterator[ValuesAsked]:
    """One question for each kind of rows: those of the query, and those that are combined per person."""
    found: dict[Operator, dict[Clamp, None]] = {}
    for _, aggregate in query.aggregates:
        for part in parts(aggregate):
            node = part.expression.operand if isinstance(part, Histogram) else getattr(part, "expression", None)
            if isinstance(part, OfValues | Histogram | Quantiles | Extreme) and node is not None:
                for rows, clamp in _clamps(node, query.input, query.input):
                    found.setdefault(rows, {})[clamp] = None
    for rows, clamps in found.items():
        own, capped = rows == query.input, caps.holding(rows) == caps.holding(query.input)
        counted = tuple(
            (clamp.label(i), Histogram(e.Bin(clamp.side, tuple(map(Exact, (-1, 0, 1, 2))))))
            for i, clamp in enumerate(clamps, 1)
        )
        asked = Query(_in_groups(query) if own else rows, (), counted, at_most=query.at_most if capped else None)
        yield ValuesAsked(asked, tuple(clamps))


def _clamps(node: e.Node, of: Operator, base: Operator) -> Iterator[tuple[Operator, Clamp]]:
    """The clamps that an expression over the rows `of` meets, each with the rows that are asked about it.

    These are `base`, the last ones, if a column still means the same there; else `of`, before it was redefined.
    """
    match node:
        case e.Clip(inner, lower, upper):
            rows = base if _same(inner, of, base) else of
            yield rows, _clip(inner, lower, upper, rows)
            if not isinstance(inner, e.Column) or _declared(inner.name, of) is None:
                yield from _clamps(inner, of, base)
        case e.Column(name):
            found, below = origin_of(name, of)
            if isinstance(found, schema.Column):
                kind, rows = found.type, base if _same(node, of, base) else of
                if isinstance(kind, NumberType):
                    yield rows, Clamp(name, kind.lower, kind.upper, False, e.Beyond(node))
                elif isinstance(kind, TimeType):
                    yield rows, Clamp(name, kind.first, kind.last, False, e.Beyond(node))
            elif isinstance(found, OfPerson):
                if found.expression is not None and found.function != "count":
                    yield from _clamps(found.expression, below, below)
            elif found is not None:
                yield from _clamps(found, below, base)
        case _ if not isinstance(node, e.CONDITIONS):
            values = [v for v in trees.parts(node) if not isinstance(node, e.Case) or not isinstance(v, e.CONDITIONS)]
            for part in values:
                yield from _clamps(part, of, base)


def _same(node: e.Node, of: Operator, base: Operator) -> bool:
    """Whether an expression over rows means the same over the rows that come of them later."""
    names = _columns(node)
    return all(name in base.types() and origin_of(name, base) == origin_of(name, of) for name in names)


def _clip(inner: e.Node, lower: Exact, upper: Exact, rows: Operator) -> Clamp:
    """A clip: below, above or inside. At an end of the declared range, the source is asked."""
    kind = as_number(inner.type(rows.types()), "clip")
    raw = (
        isinstance(inner, e.Column)
        and _declared(inner.name, rows) is not None
        and isinstance(inner.type(rows.types()), NumberType)
    )
    sides: list[tuple[e.Node, e.Node]] = []
    for inside, sign, side, bound in ((kind.lower < lower, "<", -1, lower), (upper < kind.upper, ">", 1, upper)):
        value = e.Constant(Exact(side))
        if inside:
            sides.append((e.Compare(sign, inner, e.Constant(bound)), value))  # type: ignore[arg-type]
        elif raw:
            sides.append((e.Compare("==", e.Beyond(inner), value), value))
    rest = e.Not(e.IsMissing(inner)), e.Constant(Exact(0))
    return Clamp(show(inner), lower, upper, True, e.Case((*sides, rest), None))
