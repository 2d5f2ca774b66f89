"""A plan in words: from the source to the guarantee, rule by rule, with numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import ROUND_FLOOR

from privet import markup
from privet.errors import Face, argument, write
from privet.exact import Exact, show, show_up, sqrt_up
from privet.planner import computed, finding, level_notes, possible, rounding
from privet.planner.bounds import Found
from privet.planner.limits import few
from privet.planner.plan import NoisyMeasurement, Part, ReleasePlan, bounding
from privet.planner.pricing import amount
from privet.planner.rank_outputs import RankedCode
from privet.planner.rank_words import chosen_in_words, rank_error
from privet.planner.ranks import ChosenRanks
from privet.privacy.adjacency import Adjacency, Person
from privet.privacy.guarantees import ApproxDP, PureDP, ZeroConcentratedDP, budgets
from privet.privacy.moves import L1Move
from privet.system.lines import folded
from privet.tables import caps, nesting, operators
from privet.tables.analysis import narrowing
from privet.tables.arrangement import EVERYTHING
from privet.tables.computed import leaves
from privet.tables.discovered import Discovered
from privet.tables.expressions.nodes import Column, OfAnswer
from privet.tables.expressions.rendering import show as show_node
from privet.tables.operators import (
    JoinPerson,
    JoinPublic,
    Operator,
    PerPerson,
    Scan,
    Where,
    WithColumns,
)
from privet.tables.statement import AtMostGroups, AtMostRows, Bounding, PeopleInGroups, Total, Unbounded
from privet.tables.types import KeyType
from privet.tables.wording import of_person

_WIDTH = 100
_TITLE = 11  # the width of titles
_MANY_ROWS = 5  # from this cap on, a lower one is worth a word
_TINY = Exact(1, 10**9)  # the delta at which a rho is explained


class Explanation(str):
    r"""An explanation: a text of sections, which a notebook shows as a table.

    Example:
        >>> words = Explanation("Guarantee  epsilon 1.\n           It is pure.")
        >>> words
        Guarantee  epsilon 1.
                   It is pure.
        >>> words.sections()
        [('Guarantee', 'epsilon 1.\nIt is pure.')]
    """

    __slots__ = ()

    def sections(self) -> list[tuple[str, str]]:
        """The title and the lines of each section."""
        found: list[tuple[str, list[str]]] = []
        for line in self.splitlines():
            if line[:_TITLE].strip() or not found:
                found.append((line[:_TITLE].strip(), []))
            found[-1][1].append(line[_TITLE:])
        return [(title, "\n".join(lines)) for title, lines in found]

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return markup.sections(self.sections())


def explain(plan: ReleasePlan, face: Face = "python") -> Explanation:
    """The whole plan in words."""
    noises = [
        (f"{'Choice' if isinstance(part, ChosenRanks) else 'Noise'} {i}", list(_noise(plan, part)))
        for i, part in enumerate(plan.noised, 1)
    ]
    if level_notes.is_on_levels(plan):
        noises = list(level_notes.noises(plan, _phi))
    sections = [
        ("Query", [str(plan.query)]),
        ("Rows", list(_rows(plan.query.input))),
        ("Conditions", plan.conditions),
        ("Rounded", rounding.rounded(plan.query)),
        ("Groups", list(_groups(plan))),
        ("Shown", list(_shown(plan))),
        ("Bounding", list(_bounding(plan, face))),
        ("Levels", list(level_notes.levels(plan)) if level_notes.is_on_levels(plan) else []),
        *noises,
        ("Mechanism", [plan.choice]),
        ("Shares", [plan.design.reason]),
        ("Guarantee", list(_guarantee(plan))),
        ("Errors", list(_errors(plan, argument("assuming", 500).line(face)))),
        ("Meaning", [_meaning(plan)]),
    ]
    out = []
    for title, lines in sections:
        if title == "Shares" and len(plan.design.measurements) < 2 and "relative" not in plan.design.reason:
            continue
        out += section(title, lines)
    return Explanation("\n".join(out))


def section(title: str, lines: Sequence[str]) -> list[str]:
    """The lines of a section, folded, with its title before the first."""
    parts = [part for line in lines for part in folded(line, _WIDTH - _TITLE)]
    return [f"{title if i == 0 else '':<{_TITLE}}{line}" for i, line in enumerate(parts)]


def _rows(of: Operator) -> Iterator[str]:
    match of:
        case Scan(table):
            how = "added or removed" if table.adjacency is Adjacency.ADD_REMOVE else "replaced by any other"
            who = f"each person ({table.protect.id}), who" if isinstance(table.protect, Person) else "each row, which"
            yield f"{table.name}: protects {who} may be {how}."
        case Where(inner, condition):
            yield from _rows(inner)
            yield f"Only where {show_node(condition)}."
        case WithColumns(inner, columns):
            yield from _rows(inner)
            yield from (f"With {name} = {show_node(node)}." for name, node in columns)
        case JoinPublic(inner, table, on, how):
            yield from _rows(inner)
            kept = "rows without a match are left out" if how == "inner" else "rows without a match are kept"
            yield f"Joined with the public table {table.name} on its unique key ({on} = {table.key}); {kept}."
        case JoinPerson(left, right):
            yield from _rows(left)
            yield from (f"Joined by person: {line}" for line in _rows(right))
        case PerPerson(inner, columns, keys):
            yield from _rows(inner)
            by = "".join(f" and {name if node == Column(name) else show_node(node)}" for name, node in keys)
            yield f"One row per person{by}: {', '.join(f'{name} = {of_person(v)}' for name, v in columns)}."


def _groups(plan: ReleasePlan) -> Iterator[str]:
    types = plan.query.input.types()
    if not plan.query.keys:
        yield "None: one answer for all rows."
    public = list(zip(plan.query.keys, plan.query.domains(), strict=True))
    if plan.discovery is not None:
        yield from finding.explained(plan, plan.discovery)
        assert isinstance(plan.query.groups, Discovered)
        public = [each for i, each in enumerate(public) if i not in plan.query.groups.unknown]
    for key, left in public:
        values = [str(value) for value in left]
        shown = ", ".join(values) if len(values) <= 6 else f"{', '.join(values[:3])}, ... {values[-1]}"
        kind = key.expression.type(types)
        rest = "rows with any other value are left out"
        if isinstance(kind, KeyType) and kind.other is not None:
            rest = f"any other value counts as {kind.other}, rows without a value are left out"
        yield f"{key.name}: {len(values)} public value{'s' if len(values) > 1 else ''} ({shown}); {rest}."
    for each in nesting.nested(plan.query.input, [key.expression for key in plan.query.keys]):
        child, above = (plan.query.keys[place].name for place in (each.child, each.above))
        yield f"Each {child} lies in one {above}: rows with another {above} are left out."
    if plan.discovery is not None:
        yield f"At most {plan.most_groups:,} groups."
    elif plan.query.keys:
        if narrowing.left(plan.query.input, tuple(key.expression for key in plan.query.keys)) is not None:
            yield "Values that the conditions exclude are not listed."
        yield f"{plan.groups} groups; each appears in the answer, empty or not."


def _shown(plan: ReleasePlan) -> Iterator[str]:
    arranged = plan.query.arrangement
    for name, node in arranged.computed:
        yield f"Computed from the answer: {name} = {show_node(node)}."
    if any(isinstance(leaf, OfAnswer) and leaf.function == "total" for _, n in arranged.computed for leaf in leaves(n)):
        yield "A total is of all groups, shown or not."
    if arranged.having is not None:
        yield f"Only groups where {show_node(arranged.having)}."
    if arranged.order:
        yield f"Sorted by {', '.join(map(str, arranged.order))}."
    if arranged.limit is not None:
        yield f"Only the first {arranged.limit if arranged.limit > 1 else 'one'} of them."
    if arranged.hidden:
        yield f"Measured and paid for, but not shown: {', '.join(arranged.hidden)}."
    if arranged != EVERYTHING:
        yield "This uses only the released answer, so it costs nothing."


def _bounding(plan: ReleasePlan, face: Face) -> Iterator[str]:
    kinds = dict.fromkeys((part.measurement.people, part.measurement.distinct) for part in plan.noised)
    lines = []
    for people, distinct in kinds:
        how, rows = bounding(plan.query, people=people, distinct=distinct)
        lines.append(_how(plan, how, rows, "" if distinct is None else show_node(distinct.value.expression)))
        if isinstance(how, AtMostRows) and distinct is None and how.rows >= _MANY_ROWS:
            fewer = how.rows // 2
            cap = write(
                f"cap(max_rows={fewer})",
                sql=f"OPTIONS (max_rows_contributed = {fewer})",
                terminal=f"--max-rows {fewer}",
                http=f'"max_rows": {fewer}',
            ).line(face)
            share = show(Exact(100 * fewer, how.rows), 3)
            lines.append(f"Noise grows with this cap: with {cap} it is {share} % of this, and more rows are left out.")
    yield from dict.fromkeys(lines)


def _how(plan: ReleasePlan, how: Bounding, rows: int, distinct: str) -> str:
    why = _reason(plan, counted=isinstance(how, PeopleInGroups))
    match how:
        case Unbounded():
            if isinstance(operators.protected(plan.query.input), Person):
                return "Each person has one row, computed from all their rows, so no cap is needed."
            return "Each row is protected on its own, so no cap is needed."
        case AtMostRows(most):
            return f"Uses at most {few(most, distinct)} per person{why}, chosen by a keyed hash; others are left out."
        case AtMostGroups(groups, most):
            each = f"at most {_some(groups, 'group')} per person with at most {few(most, distinct)} in each"
            return f"Uses {each}, so {few(rows, distinct)} in total{why}, chosen by a keyed hash."
        case PeopleInGroups(groups):
            return f"Counts a person once per group, in at most {_some(groups, 'group')}{why}, chosen by a keyed hash."


def _reason(plan: ReleasePlan, *, counted: bool) -> str:
    """The reason for this number of rows: a product of joined caps, or the query's own cap."""
    product = caps.reason(plan.query.input)
    held = caps.holding(plan.query.input)
    if held is None or not caps.is_own(plan.query.input, plan.query.at_most, plan.most_groups, counted=counted):
        return f" (the caps multiply: {product})" if product else ""
    return f" (set by this query; otherwise {caps.in_words(held)}{f': {product}' if product else ''})"


def _some(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count > 1 else ''}"


def _exactly(number: Exact) -> str:
    """A number, exact if that is short (0.5, 1/3), else rounded."""
    text = show(number)
    exact = "e" not in text and Exact(text) == number
    return text if exact or len(str(number)) > 12 else str(number)


def _phi(part: NoisyMeasurement) -> Iterator[str]:
    what = part.measurement
    yield f"{what.quantity[:1].upper()}{what.quantity[1:]}: a row contributes phi = {what.phi} (rule {what.rule})."
    for tally in what.tallies:
        if isinstance(tally, Total):
            code = tally.value
            top = show(code.lower + code.width * code.step)
            yield (
                f"{show_node(code.expression)} is clamped to {show(code.lower)}..{top} and counted in steps of "
                f"{show(code.step)}: v = 0..{code.width}."
            )


def _noise(plan: ReleasePlan, part: Part) -> Iterator[str]:
    if isinstance(part, ChosenRanks):
        yield from chosen_in_words(part)
        return
    yield from _phi(part)
    rule = "the radius of phi" if part.adjacency is Adjacency.ADD_REMOVE else "the diameter of phi and zero"
    if part.same_rows:
        rule = "the diameter of phi, because every neighbour has the same rows"
    elif part.adjacency is Adjacency.REPLACE and part.groups > 1:
        rule = "twice the radius of phi, because a row can move to another group"
    if isinstance(part.move, L1Move):
        once = part.move.total // part.rows
        yield f"L1 sensitivity: {_some(part.rows, 'row')} x {once} ({rule}) = {part.move.total}."
    else:
        squared = part.move.squared
        root = math.isqrt(squared)
        size = str(root) if root * root == squared else f"sqrt({squared}) = {show_up(sqrt_up(Exact(squared)))}"
        yield f"L2 sensitivity: {size}, for {_some(part.rows, 'row')} and {rule}."
    if isinstance(part.price, PureDP) and part.scale * part.price.epsilon == part.move.total:
        price = _exactly(part.price.epsilon)
        made_of = f"{part.move.total} / {f'({price})' if '/' in price else price} = "
        scale = f"scale {made_of}{_exactly(part.scale)}"
    else:
        scale = part.mechanism.show(scale=part.scale)
    numbers = _some(part.coordinates, "number") if plan.discovery is None else "every number"
    cut = finding.cut(plan.discovery) if plan.discovery is not None else ""
    yield f"{part.mechanism.label} of {scale}{cut} on {numbers}."


def _guarantee(plan: ReleasePlan) -> Iterator[str]:
    if plan.discovery is not None and not plan.noised:
        yield (
            f"epsilon {_exactly(plan.discovery.epsilon)}, delta {show_up(plan.price.delta)} for the keys (approximate "  # type: ignore[union-attr]
            f"differential privacy); recomputed from the noise: {plan.guarantee()}."
        )
        return
    if not plan.noised:
        yield "The answer uses no private data, so it is public."
        return
    amounts = [amount(part.price) for part in plan.noised]
    if level_notes.is_on_levels(plan):
        amounts = level_notes.prices(plan)
    numbers = [_exactly(each) for each in amounts]
    whole = _exactly(sum((amount(part.price) for part in plan.noised), Exact(0)))
    total = f"{' + '.join(numbers)} = {whole}" if len(numbers) > 1 else whole
    again = ", ".join(f"{name} {_exactly(number)}" for name, number in budgets.numbers(plan.guarantee()).items())
    match plan.price:
        case ApproxDP() if plan.discovery is not None:
            keys = f"{_exactly(plan.discovery.epsilon)} for the keys + {whole} for the numbers = "
            yield (
                f"epsilon {'' if plan.discovery.counts else keys}{_exactly(plan.price.epsilon)}, delta "
                f"{show_up(plan.price.delta)} (approximate differential privacy); recomputed from the noise: "
                f"{plan.guarantee()}."
            )
        case PureDP():
            yield f"epsilon {total}, delta 0 (pure differential privacy); recomputed from the noise: {again}."
        case ZeroConcentratedDP():
            yield f"rho {total} (zero-concentrated differential privacy); recomputed from the noise: {again}."
        case ApproxDP(epsilon, delta):
            yield (
                f"epsilon {show_up(epsilon)}, delta {show_up(delta)} (approximate differential privacy), by way of "
                f"rho {total}; recomputed from the noise: {plan.guarantee()}."
            )
    if plan.raised_to is not None:
        least = f"epsilon {_exactly(plan.raised_to)}"
        if not isinstance(plan.price, PureDP):
            least += f", which is rho {show(plan.raised_to**2 / 2)}"
        yield f"The requested errors would cost less; raised to the minimum price of {least}."


def _found(plan: ReleasePlan, output: Found) -> str:
    """What it takes to find bounds, in words."""
    if output.part == "inside":
        return "the share of values between them, with an interval"
    rows = output.needed(plan.noise, plan.groups, plan.level)
    return f"the {'first' if output.part == 'lower' else 'last'} bin that stands out; {rows:,} rows are enough"


def _meaning(plan: ReleasePlan) -> str:
    guarantee, adjacency = plan.guarantee(), operators.adjacency(plan.query.input)
    if isinstance(guarantee, ZeroConcentratedDP):
        return guarantee.meaning(adjacency, delta=_TINY)
    return guarantee.meaning(adjacency)


def _errors(plan: ReleasePlan, assume: str) -> Iterator[str]:
    if not plan.noised:
        yield "None: keys have no numbers." if plan.discovery is not None else "None, because there is no noise."
        return
    together = "all cells together" if plan.simultaneous else "each cell separately"
    yield f"From the noise alone, {show(plan.confidence * 100, rounding=ROUND_FLOOR)} % of the time, for {together}:"
    formulas = plan.query.arrangement.computed
    width = max(len(name) for name, _ in (*plan.columns, *formulas))
    for name, output in plan.columns:
        error = plan.expected(name)
        if isinstance(output, RankedCode):
            part = plan.noised[output.measurement]
            assert isinstance(part, ChosenRanks)
            yield f"  {name:<{width}}  {rank_error(part, output, plan.level)}"
        elif isinstance(output, Found):
            yield f"  {name:<{width}}  {_found(plan, output)}"
        elif error is None:
            yield f"  {name:<{width}}  depends on the size of a group; assume one with {assume}"
        else:
            where = "a group has" if plan.query.keys else "there are"
            rows = "" if plan.assuming is None or not plan.depends(name) else f" if {where} {plan.assuming} rows"
            if level_notes.is_on_levels(plan):
                yield f"  {name:<{width}}  within {level_notes.each(plan, level_notes.errors(plan, name))}{rows}"
                continue
            yield f"  {name:<{width}}  within {show_up(error)}{rows}"
    for name, node in formulas:
        bounds = computed.expected(plan, node)
        if bounds is not None:
            where = "a group has" if plan.query.keys else "there are"
            exact = computed.linear(node, dict(plan.columns)) is not None
            rows = "" if exact else f" if {where} {plan.assuming} rows"
            yield f"  {name:<{width}}  within {level_notes.each(plan, bounds)}{rows}"
        elif not computed.is_plain(plan, node):
            yield f"  {name:<{width}}  follows from the columns that it is computed from"
    if cut := possible.in_words(plan):
        yield cut
    if plan.chosen_by_noise:
        yield "Noisy values decide which groups are shown; their errors exceed these more often than stated."
    if plan.limits:
        yield f"These errors do not include the effect of the limits: {'; '.join(plan.limits)}."
