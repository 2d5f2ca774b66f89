"""The limits on an answer besides the noise, in words: every cap on rows, and every bound on values.

They follow from the question and public facts alone, so the words are the same for all data.
"""

from __future__ import annotations

from collections.abc import Iterator

from privet.planner import finding
from privet.planner.clamps import Clamps, named, number_in_words, range_of
from privet.planner.origins import origin_of, read_as_key
from privet.planner.plan import ReleasePlan
from privet.planner.rank_words import beyond
from privet.planner.ranks import ChosenRanks
from privet.privacy.adjacency import Person
from privet.tables import aggregates, caps, nesting, operators
from privet.tables.aggregates import Aggregate
from privet.tables.analysis import named_values
from privet.tables.caps import some
from privet.tables.computed import reads
from privet.tables.expressions import nodes as e
from privet.tables.expressions import trees
from privet.tables.operators import JoinPublic, Operator, PerPerson, Where, WithColumns
from privet.tables.query import Key, Query
from privet.tables.ranked import Extreme
from privet.tables.statement import AtMostGroups, AtMostRows, Bounding, Distinct, PeopleInGroups
from privet.tables.types import KeyType, NumberType


def limits(plan: ReleasePlan) -> tuple[str, ...]:
    """Every cap and clamp that affects the answer, each in a few words; none for a public answer.

    Example:
        >>> import privet as pv
        >>> from privet.planner import plan
        >>> from privet.tables.operators import Scan
        >>> from privet.tables.relation import Relation
        >>> from privet.tables.schema import Schema
        >>> protect, columns = pv.person("id", max_rows=3), {"income": pv.number(0, 200_000)}
        >>> people = Relation(Scan(Schema.declare("people", protect=protect, columns=columns)))
        >>> print("; ".join(limits(plan(people.agg(pay=pv.mean("income")), epsilon=1))))
        at most 3 rows per person; rows without id left out; income clamped to 0..200,000; missing income skipped
    """
    if not plan.noised and plan.discovery is None:
        return ()
    of = plan.query.input
    groups = list(dict.fromkeys(clause for key in plan.query.keys for clause in _key(key, of)))
    groups += nesting.left_out(of, [key.expression for key in plan.query.keys], [key.name for key in plan.query.keys])
    values = Clamps(named={key.expression.name for key in plan.query.keys if isinstance(key.expression, e.Column)})
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
        case AtMostRows(rows):
            return f"at most {few(rows, distinct)} per person{because}"
        case AtMostGroups(1, rows) if rows == 1 or plan.most_groups == 1:
            return f"at most {few(rows, distinct)} per person{because}"
        case AtMostGroups(groups, rows):
            each = "each" if groups > 1 else "it"
            return f"at most {some(groups, 'group')} per person with {few(rows, distinct)} in {each}{because}"
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
        told = of_cap(plan, how, "" if distinct is None else named(distinct.value.expression))
        same = any(isinstance(one, AtMostGroups) and how == PeopleInGroups(one.groups) for one in bounded)
        if told and not same:
            yield told
    if plan.discovery is not None and not bounded:
        yield from filter(None, [of_cap(plan, plan.discovery.holders.bounding)])
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
    for name, each, gone in dict.fromkeys(read_as_key(key.expression, of, "in no group", set())):
        if told := range_of(each):
            yield f"{name} outside {told} {gone}"  # as a key, what is out of range is missing
        if isinstance(each, KeyType) and each.other is not None:
            yield f"any other {name} counted as {each.other}"
        if isinstance(each, NumberType) and each.step is not None and each.step != 1:
            yield f"{name} rounded to steps of {number_in_words(each.step)}"
    if isinstance(kind, KeyType) and isinstance(key.expression, e.Column):
        origin, _ = origin_of(key.expression.name, of)
        if origin is not None:
            yield f"rows whose {key.name} is missing or not listed left out"
        elif kind.missing:
            yield f"rows with no {key.name} left out"
    elif kind.missing:
        yield f"rows with no {key.name} left out"
