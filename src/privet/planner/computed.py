"""Computed columns: formulas of released numbers, with intervals that follow from theirs.

Claim: a computed interval holds with the plan's confidence 1 - a, for the value of the formula at the true numbers. The
formula is read as one of k noisy *atoms*, each with an interval at confidence 1 - a/k: by Bonferroni all hold together
with 1 - a, and interval arithmetic encloses the formula. An atom is as large as possible: a linear form of counts and
sums of a group, which is one sum of independent noise; a quotient of two such forms, as for a ratio; a total over
groups, which is one sum as well, or on several levels a number of a coarser one; or any other column. Where a column is
just above the line of `marks`, its careful interval is used, and for a linear form the careful confidence.

A computed number is marked if a number that it reads is. Everything here depends on noisy integers and public facts
alone, and no number makes it fail: x / 0 is missing, and so is what is too large for a float.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from privet.errors import InternalError
from privet.exact import Exact, binary, nearest
from privet.exact.rounding import quotient_down, quotient_up
from privet.planner import marks, possible
from privet.planner.confidences import USUAL, careful
from privet.planner.intervals import Interval, ends
from privet.planner.linear import Linear, Noisy
from privet.planner.marks import Standing
from privet.planner.noise import Noise
from privet.planner.outputs import Cell, Cells, Fixed, Output, Quotient, Spread, Straight
from privet.tables.computed import Leaf, affine, leaves
from privet.tables.expressions.nodes import Arithmetic, Clip, Column, Constant, Grouping, Node, OfAnswer, Rounded
from privet.tables.expressions.trees import parts, replaced
from privet.tables.groups import Group

if TYPE_CHECKING:
    from privet.planner.plan import ReleasePlan

_FEW = 4
"""The number of terms up to which the error of a sum is sharp; with more, Bonferroni may be."""
_LARGEST = 1e300

Summed = Callable[[str, Sequence[int], Group], tuple[Output, Noise, Noisy | None]]


@dataclass(frozen=True)
class Groups:
    """The groups of an answer, or of one of its levels, with what is needed to compute their columns."""

    outputs: Mapping[str, Output]
    noise: Noise
    noisy: Sequence[Noisy]
    keys: Sequence[Group]
    """The keys of each group; needed only by formulas."""
    summed: Summed | None = None
    """On a level: the column that the groups with a group's values of some keys add up to, the noise of that, and its
    coordinates if not all of these groups are here. Otherwise each group has noise of its own."""

    def cells(self, plan: ReleasePlan) -> dict[str, Cells]:
        """All columns: first the measured ones, then those that are computed from them."""
        measured = {name: output.cells(self.noisy, self.noise, plan.level) for name, output in self.outputs.items()}
        reader = _Reader(plan, self, measured)
        return measured | {name: reader.column(node) for name, node in plan.query.arrangement.computed}

    def total(self, name: str, by: Sequence[int], some: Sequence[int]) -> tuple[Linear, Noise, Exact]:
        """The sum of a count or a sum over some groups, which agree in the keys at these places; and its value."""
        output = self.outputs[name]
        assert isinstance(output, Straight)
        value = sum((output.form.value(self.noisy[i]) for i in some), Exact(0))
        if self.summed is not None:
            output, noise, cell = self.summed(name, by, self.keys[some[0]])
            assert isinstance(output, Straight)
            return output.form, noise, value if cell is None else output.form.value(cell)
        several = ((m, len(some) * c + k, w) for k in range(len(some)) for m, c, w in output.form.terms)
        return Linear(tuple(several), output.form.offset * len(some)), self.noise, value


def is_plain(plan: ReleasePlan, node: Node) -> bool:
    """Whether a formula reads no noise beyond what is already stated: public numbers, and ends of intervals."""
    outputs = dict(plan.columns)
    return not any(_is_noisy(leaf, outputs) for leaf in leaves(node))


def is_public(plan: ReleasePlan, node: Node) -> bool:
    """Whether a formula reads public numbers alone."""
    outputs = dict(plan.columns)
    read = [leaf for leaf in leaves(node) if not isinstance(leaf, Grouping)]
    return bool(read) and all(isinstance(_output(leaf, outputs), Fixed) for leaf in read)


def is_whole(plan: ReleasePlan, name: str) -> bool:
    """Whether a column, measured or computed, has whole numbers, whatever they are."""
    return _is_whole(dict(plan.query.arrangement.computed).get(name, Column(name)), dict(plan.columns))


def expected(plan: ReleasePlan, node: Node) -> list[Exact] | None:
    """Bounds on the error of a formula, one for each level: of a linear form of counts and sums, or of a multiple of
    one column plus a number, if the error of that column is known; None for any other formula.
    """
    found: list[Exact | None] = []
    views = {name: plan.views(output) for name, output in plan.columns}
    if linear(node, dict(plan.columns)) is not None:
        for level, (_, noise) in enumerate(next(iter(views.values()))):
            form = linear(node, {name: each[level][0] for name, each in views.items()})
            assert form is not None
            found.append(noise.error(form, plan.level))
    elif (one := affine(node)) is not None and isinstance(dict(plan.columns)[one[0]], Quotient | Spread):
        errors = [output.expected(noise, plan.level, plan.assuming) for output, noise in views[one[0]]]
        found = [None if error is None else abs(one[1]) * error for error in errors]
    known = [error for error in found if error is not None]
    return known if known and len(known) == len(found) else None


def linear(node: Node, outputs: Mapping[str, Output]) -> Linear | None:
    """A formula as a linear form of one group's noisy coordinates; None if it is something else."""
    match node:
        case Constant(value):
            assert isinstance(value, Exact)
            return Linear((), value)
        case Column(name):
            output = outputs[name]
            if isinstance(output, Fixed):
                return Linear((), Exact(output.value))
            return output.form if isinstance(output, Straight) else None
        case Arithmetic(operator, a, b):
            left, right = linear(a, outputs), linear(b, outputs)
            if left is None or right is None:
                return None
            if operator in ("+", "-"):
                return left.plus(right if operator == "+" else right.times(Exact(-1)))
            if operator == "*" and not (left.terms and right.terms):
                return left.times(right.offset) if left.terms else right.times(left.offset)
            if operator == "/" and not right.terms and right.offset:
                return left.times(1 / right.offset)
    return None


def _output(leaf: Column | OfAnswer, outputs: Mapping[str, Output]) -> Output:
    return outputs[leaf.name if isinstance(leaf, Column) else leaf.column]


def _is_noisy(atom: Node, outputs: Mapping[str, Output]) -> bool:
    """Whether an atom has noise of its own; the end of an interval is a number that is stated."""
    if isinstance(atom, Grouping) or (isinstance(atom, OfAnswer) and atom.function != "total"):
        return False
    return not isinstance(atom, Column | OfAnswer) or not isinstance(_output(atom, outputs), Fixed)


def _atoms(node: Node, noise: Noise, outputs: Mapping[str, Output]) -> Iterator[Node]:
    """The largest parts of a formula whose error is known: the whole formula, if it is one."""
    if isinstance(node, Leaf) or _is_sum(node, noise, outputs) or _quotient(node, outputs) is not None:
        yield node
    else:
        for part in parts(node):
            yield from _atoms(part, noise, outputs)


def _is_sum(node: Node, noise: Noise, outputs: Mapping[str, Output]) -> bool:
    """Whether a formula is a linear form of several columns with a sharp error."""
    form = linear(node, outputs)
    if form is None or len({leaf for leaf in leaves(node) if _is_noisy(leaf, outputs)}) < 2:
        return False
    scales = form.scales(noise.scales)
    equal = len({(abs(weight), scale) for weight, scale in zip(form.weights(), scales, strict=True)}) <= 1
    return equal or len(form.terms) <= _FEW


def _quotient(node: Node, outputs: Mapping[str, Output]) -> Quotient | None:
    """A formula as the quotient of two linear forms that both have noise."""
    if not isinstance(node, Arithmetic) or node.operator != "/" or node.left == node.right:
        return None
    top, bottom = linear(node.left, outputs), linear(node.right, outputs)
    if top is None or bottom is None or not top.terms or not bottom.terms or top.offset or bottom.offset:
        return None
    return Quotient(top, bottom, most=None, lower=Exact(0), unit=Exact(1), each=Exact(1), at=Exact(0))


def _is_whole(node: Node, outputs: Mapping[str, Output]) -> bool:
    """Whether a formula is an integer, whatever the counts are."""
    match node:
        case Constant(value):
            return isinstance(value, Exact) and value.denominator == 1
        case Arithmetic(operator, a, b):
            return operator != "/" and _is_whole(a, outputs) and _is_whole(b, outputs)
        case Rounded("abs", of):
            return _is_whole(of, outputs)
        case Rounded(digits=digits):
            return digits <= 0
        case Clip(of, lower, upper):
            return _is_whole(of, outputs) and lower.denominator == upper.denominator == 1
        case Column() | OfAnswer():
            output = _output(node, outputs)
            return isinstance(output, Fixed) or (isinstance(output, Straight) and output.integer and output.whole)
        case Grouping():
            return True
    return False


@dataclass
class _Reader:
    """Computes columns of one answer, or of one of its levels."""

    plan: ReleasePlan
    of: Groups
    measured: Mapping[str, Cells]
    known: dict[tuple[Node, Exact], Cells] = field(default_factory=dict)
    halves: dict[tuple[Linear, Noise, Exact], Exact] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.outputs, self.noise, self.groups = self.of.outputs, self.of.noise, self.of.noisy
        self.places = {key.name: place for place, key in enumerate(self.plan.query.keys)}
        self.level = self.plan.level

    def column(self, node: Node) -> Cells:
        """The cells of a formula."""
        node = replaced(node, self._alone(node))
        atoms = list(dict.fromkeys(_atoms(node, self.noise, self.outputs)))
        count = sum(_is_noisy(atom, self.outputs) for atom in atoms)
        level = 1 - (1 - self.level) / max(1, count)
        read = {atom: self._cells(atom, level) for atom in atoms}
        shown = {leaf: self._cells(leaf, self.level) for leaf in dict.fromkeys(leaves(node))}
        whole, can_be = _is_whole(node, self.outputs), possible.formula(node, self.outputs)
        shown_at: list[dict[Node, Interval | None]] = [
            {leaf: ends(each.values[i], each.values[i]) for leaf, each in shown.items()}
            for i in range(len(self.groups))
        ]
        found = []
        for i, at in enumerate(shown_at):
            value = _value(evaluated(node, at))
            between = evaluated(node, {atom: ends(each.low[i], each.high[i]) for atom, each in read.items()})
            found.append(_cell(value, between, whole=whole, rounded=isinstance(node, Rounded)))
        noisy = [any(each.noisy[i] for each in (*read.values(), *shown.values())) for i in range(len(self.groups))]
        cells = _cells(found, noisy)
        if isinstance(node, Arithmetic) and node.operator == "/" and possible.is_not_negative(node.right, self.outputs):
            sides = [[evaluated(side, at) for at in shown_at] for side in (node.left, node.right)]
            tops, bottoms = ([_value(each) or Exact(0) for each in side] for side in sides)
            cells = cells.without_size(tops, bottoms, (can_be.low, can_be.high))
        return cells.cut((can_be.low, can_be.high))

    def _alone(self, node: Node) -> dict[Node, Node]:
        """The totals that are of one group alone: such a total is the column itself."""
        kept = [self.of.keys[0][place] is not None for place in self.places.values()]
        totals = (leaf for leaf in leaves(node) if isinstance(leaf, OfAnswer) and leaf.function == "total")
        needed = {name for name, place in self.places.items() if kept[place]}
        return {leaf: Column(leaf.column) for leaf in totals if needed <= {*leaf.by}}

    def _cells(self, atom: Node, level: Exact) -> Cells:
        """The cells of an atom at a confidence."""
        if (atom, level) not in self.known:
            self.known[atom, level] = self._read(atom, level)
        return self.known[atom, level]

    def _read(self, atom: Node, level: Exact) -> Cells:
        if isinstance(atom, Grouping):
            return self._grouping(atom)
        if not isinstance(atom, Column | OfAnswer):
            quotient = _quotient(atom, self.outputs)
            return self._sum(atom, level) if quotient is None else quotient.cells(self.groups, self.noise, level)
        output = _output(atom, self.outputs)
        if isinstance(atom, Column):
            same = level == self.level or isinstance(output, Fixed)
            return self.measured[atom.name] if same else output.cells(self.groups, self.noise, level)
        column = self.measured[atom.column]
        if atom.function == "total":
            return self._total(atom, output, column, level)
        end = column.low if atom.function == "low" else column.high
        return Cells(end, end, end, column.noisy)

    def _sum(self, node: Node, level: Exact) -> Cells:
        """The cells of a linear form of several columns; more careful where one of them is just above the line."""
        form = linear(node, self.outputs)
        assert form is not None
        halves = [self.noise.half_width(form, each) for each in (level, careful(level))]
        stands = [
            marks.standings(output.form, self.groups, self.noise, level, signed=not output.integer)
            for leaf in dict.fromkeys(leaves(node))
            if not isinstance(leaf, Grouping) and isinstance(output := _output(leaf, self.outputs), Straight)
        ]
        found = []
        for i, noisy in enumerate(self.groups):
            half = halves[any(each[i] is Standing.NEAR for each in stands)]
            x = form.value(noisy)
            found.append(_cell(x, Interval(x - half, x + half), whole=False))
        return _cells(found, [any(each[i] is Standing.MARKED for each in stands) for i in range(len(self.groups))])

    def _total(self, leaf: OfAnswer, output: Output, column: Cells, level: Exact) -> Cells:
        """The sum of a column over the groups that have the same keys: one sum of independent noise."""
        whole = _is_whole(leaf, self.outputs)
        found: list[tuple[Cell, Cell, Cell]] = [(0, 0, 0)] * len(self.groups)
        noisy = [False] * len(self.groups)
        by = [self.places[name] for name in leaf.by]
        for some in self._together(by):
            value = sum((binary(column.values[i]) for i in some), Exact(0))
            x, half, stand = value, Exact(0), Standing.CLEAR
            if isinstance(output, Straight):
                form, noise, x = self.of.total(leaf.column, by, some)
                value = value if output.whole else x
                half, usual = (self._half(form, noise, each) for each in (level, max(level, USUAL)))
                unit = math.lcm(x.denominator, usual.denominator)
                stand = marks.standing(int((x if output.integer else abs(x)) * unit), int(usual * unit))
                if stand is Standing.NEAR:
                    half = self._half(form, noise, careful(level))
            cell = _cell(value, Interval(x - half, x + half), whole=whole)
            for i in some:
                found[i], noisy[i] = cell, stand is Standing.MARKED
        return _cells(found, noisy)

    def _half(self, form: Linear, noise: Noise, level: Exact) -> Exact:
        """Half the width of the interval of a total."""
        if (form, noise, level) not in self.halves:
            self.halves[form, noise, level] = noise.half_width(form, level)
        return self.halves[form, noise, level]

    def _together(self, by: Sequence[int]) -> list[list[int]]:
        """The groups that have the same values of the keys at these places."""
        found: dict[tuple[object, ...], list[int]] = {}
        for i in range(len(self.groups)):
            found.setdefault(tuple(self.of.keys[i][place] for place in by), []).append(i)
        return list(found.values())

    def _grouping(self, leaf: Grouping) -> Cells:
        """The bits of the keys that are added up."""
        bits = []
        for group in self.of.keys:
            added = (group[self.places[key]] is None for key in leaf.keys)
            bits.append(sum(2**place for place, is_added in enumerate(reversed([*added])) if is_added))
        return Cells(tuple(bits), tuple(bits), tuple(bits), (False,) * len(bits))


def evaluated(node: Node, at: Mapping[Node, Interval | None]) -> Interval | None:
    """A formula by interval arithmetic, from what its atoms lie between; None if it has no value anywhere.

    Claim: contains the value of the formula at every choice of numbers in these intervals, where it has one.
    """
    if node in at:
        return at[node]
    match node:
        case Constant(value):
            assert isinstance(value, Exact)
            return Interval(value, value)
        case Arithmetic(operator, a, b):
            left, right = evaluated(a, at), evaluated(b, at)
            if left is None or right is None:
                return None
            if operator == "/" and a == b:  # 1, except where it is 0 / 0
                return None if right == Interval(Exact(0), Exact(0)) else Interval(Exact(1), Exact(1))
            return left.combined(operator, right)
        case Rounded(function, of, digits):
            inner = evaluated(of, at)
            return None if inner is None else inner.rounded(function, digits)
        case Clip(of, lower, upper):
            inner = evaluated(of, at)
            return None if inner is None else inner.clipped(lower, upper)
    raise InternalError(f"{type(node).__name__} in a formula. This is a bug in Privet.")


def _cells(found: Sequence[tuple[Cell, Cell, Cell]], noisy: Sequence[bool]) -> Cells:
    values, low, high = zip(*found, strict=True)
    return Cells(values, low, high, tuple(noisy))


def _value(at: Interval | None) -> Exact | None:
    """The one number of an interval between equal ends; None if it has none."""
    return at.low if at is not None and at.low == at.high else None


def _cell(
    value: Exact | None, between: Interval | None, *, whole: bool, rounded: bool = False
) -> tuple[Cell, Cell, Cell]:
    """A value and its interval as they are shown: rounded outwards, and around the value.

    What is `rounded` has few digits, and so has the true number: all become floats in the same way.
    """
    if value is None or abs(value) > _LARGEST:
        return math.nan, -math.inf, math.inf
    low, high = (None, None) if between is None else (between.low, between.high)
    low = None if low is None or low < -_LARGEST else min(low, value)
    high = None if high is None or high > _LARGEST else max(high, value)
    if whole:  # so is the true number
        least = -math.inf if low is None else min(math.ceil(low), int(value))
        most = math.inf if high is None else max(math.floor(high), int(value))
        spare = int(least == most and low != high)
        return int(value), least - spare, most + spare
    down, up = (nearest, nearest) if rounded else (_down, _up)
    least = -math.inf if low is None else down(low)
    most = math.inf if high is None else up(high)
    if least == most and low != high:
        least, most = math.nextafter(least, -math.inf), math.nextafter(most, math.inf)
    return nearest(value), least, most


def _down(x: Exact) -> float:
    return quotient_down(x.numerator, x.denominator)


def _up(x: Exact) -> float:
    return quotient_up(x.numerator, x.denominator)
