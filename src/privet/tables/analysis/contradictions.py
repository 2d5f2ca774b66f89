"""Conditions that no row can satisfy together: `age > 50 and age < 51` for integers, `name == 'a' and name == 'b'`.

Claim: whatever the tables contain, no row satisfies conditions that are `contradictory`. Numbers are compared here as
integers of their unit, as engines compare them; anything not understood counts as possible.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import product

from privet.tables.analysis.conditions import columns, is_strict
from privet.tables.analysis.outcomes import FLIPPED, NEGATED, Known, outcomes
from privet.tables.analysis.ranges import moment
from privet.tables.expressions import nodes as e
from privet.tables.expressions.nodes import Node, Types
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType, Type

MOST_CASES = 64
"""Maximum number of cases to split a condition into; one with more is not split."""

_DAY = 86_400_000_000


def contradictory(conditions: Sequence[Node], types: Types) -> bool:
    """Whether no row of these types can satisfy all of these conditions.

    Example:
        >>> from privet.exact import Exact
        >>> from privet.tables.expressions.fluent import col
        >>> age = {"age": NumberType(Exact(0), Exact(110), integer=True)}
        >>> contradictory([(col("age") > 50).node, (col("age") < 51).node], age)
        True
        >>> contradictory([(col("age") > 50).node, (col("age") <= 51).node], age)
        False
    """
    ways: list[tuple[Node, ...]] = [()]
    for condition in conditions:
        parts = cases(condition)
        if len(ways) * len(parts) > MOST_CASES:
            parts = [(condition,)]
        ways = [(*way, *part) for way in ways for part in parts]
    return all(_clash(way, types) for way in ways)


def cases(node: Node, *, holds: bool = True) -> list[tuple[Node, ...]]:
    """The ways in which a condition can be true (or false): in each, some plain conditions are all true.

    Example:
        >>> from privet.tables.expressions.fluent import col
        >>> len(cases((~((col("a") > 1) & (col("b") > 2))).node))
        2
    """
    match node:
        case e.Not(inner):
            return cases(inner, holds=not holds)
        case e.Logic(operator, inner):
            ways = [cases(part, holds=holds) for part in inner]
            together = (operator == "and") is holds
            count = math.prod(map(len, ways)) if together else sum(map(len, ways))
            if count <= MOST_CASES:
                if together:
                    return [tuple(condition for part in parts for condition in part) for parts in product(*ways)]
                return [way for part in ways for way in part]
        case e.Compare(operator, left, right) if not holds:
            return [(e.Compare(NEGATED[operator], left, right),)]  # type: ignore[arg-type]
    return [(node if holds else e.Not(node),)]


def _clash(plain: tuple[Node, ...], types: Types) -> bool:
    names = {name for condition in plain if is_strict(condition) for name in columns(condition)}
    present = {name: _present(kind) if name in names else kind for name, kind in types.items()}
    known = Known(present)
    remaining: dict[Node, _Remaining] = {}
    for condition in plain:
        if True not in outcomes(condition, known):
            return True
        for node, operator, constants in _facts(condition):
            kind = node.type(types)
            if isinstance(kind, NumberType) and kind.constant is not None:
                continue
            if node not in remaining:
                remaining[node] = _values(kind)
            remaining[node].narrow(kind, operator, constants)
            if remaining[node].none():
                return True
    return False


def _present(kind: Type) -> Type:
    """The type of a column that is not missing; a type with a single number stays as it is."""
    alone = isinstance(kind, NumberType) and kind.least == kind.most
    return kind if alone else replace(kind, missing=False)


def _facts(plain: Node) -> Iterator[tuple[Node, str, tuple[object, ...]]]:
    """The fact that a plain condition states: an expression, an operator and constants."""
    match plain:
        case e.Compare(operator, e.Constant(value), node) if not isinstance(node, e.Constant):
            yield node, FLIPPED[operator], (value,)
        case e.Compare(operator, node, e.Constant(value)) if not isinstance(node, e.Constant):
            yield node, operator, (value,)
        case e.IsIn(node, values):
            yield node, "==", tuple(constant.value for constant in values)
        case e.Not(e.IsIn(node, values)):
            yield node, "!=", tuple(constant.value for constant in values)
        case e.StartsWith(node, prefix):
            yield node, "starts_with", (prefix,)
        case e.Column():
            yield plain, "==", (True,)
        case e.Not(e.Column() as node):
            yield node, "==", (False,)


@dataclass(slots=True)
class _Remaining:
    """The values that remain possible for an expression; numbers and times as integers, in steps of `each`."""

    least: float = -math.inf
    most: float = math.inf
    start: int = 0
    each: int = 1
    some: set[object] | None = None
    """The remaining values, if they can be listed."""
    without: set[object] = field(default_factory=set)

    def narrow(self, kind: Type, operator: str, constants: tuple[object, ...]) -> None:
        """Keep only the values for which this comparison is true."""
        if operator == "starts_with":
            if self.some is not None:
                self.some = {one for one in self.some if str(one).startswith(str(constants[0]))}
        elif operator in ("==", "!="):
            codes = {code for constant in constants if (code := _code(kind, constant)) is not None}
            if operator == "!=":
                self.without |= codes
            else:
                self.some = codes if self.some is None else self.some & codes
        else:
            k = kind.compared(operator, constants[0]) if isinstance(kind, NumberType) else _moment(constants[0])  # type: ignore[arg-type]
            if operator in ("<", "<="):
                self.most = min(self.most, k - (operator == "<"))
            else:
                self.least = max(self.least, k + (operator == ">"))

    def none(self) -> bool:
        """Whether no value remains."""
        if self.some is not None:
            return not any(one not in self.without and self._within(one) for one in self.some)
        if math.isinf(self.least) or math.isinf(self.most):
            return self.least > self.most
        first = self.start + -(-(int(self.least) - self.start) // self.each) * self.each
        if (int(self.most) - first) // self.each >= len(self.without):
            return False
        return all(one in self.without for one in range(first, int(self.most) + 1, self.each))

    def _within(self, one: object) -> bool:
        if not isinstance(one, int) or isinstance(one, bool):
            return True
        return self.least <= one <= self.most and (one - self.start) % self.each == 0


def _values(kind: Type) -> _Remaining:
    match kind:
        case NumberType(lower, upper, wide=wide, step=step):
            start, each = 0, 1
            if step is not None and (upper - lower) % step == 0:
                start, each = int(lower / kind.unit), int(step / kind.unit)
            least, most = (kind.least, kind.most)
            return _Remaining(
                -math.inf if wide and least < 0 else least, math.inf if wide and most > 0 else most, start, each
            )
        case TimeType(first, last):
            return _Remaining(_moment(first), _moment(last), 0, 1 if kind.timed else _DAY)
        case KeyType():
            return _Remaining(some={_keyed(key) for key in kind.keys()})  # noqa: SIM118
        case BooleanType():
            return _Remaining(some={True, False})
        case TextType():
            return _Remaining()


def _code(kind: Type, constant: object) -> object | None:
    """The value of a type that equals a constant; None if there is none."""
    match kind:
        case NumberType():
            return kind.equal_to(constant)  # type: ignore[arg-type]
        case TimeType():
            return _moment(constant)
        case KeyType():
            return _keyed(constant)
    return constant


def _keyed(value: object) -> str:
    """A key as text, so that integer keys are not taken for codes."""
    return value if isinstance(value, str) else f"#{int(value)}"  # type: ignore[call-overload]


def _moment(time: object) -> int:
    """A date or timestamp in microseconds."""
    return (moment(time) - datetime.min) // timedelta(microseconds=1)  # type: ignore[arg-type]
