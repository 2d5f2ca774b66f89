"""Conditions that no row can meet together: `age > 50 and age < 51` of integers, `name == 'a' and name == 'b'`.

Claim: whatever the tables hold, no row meets conditions that are `contradictory`. Numbers are compared here in the
integers of their unit, as engines compare them; what is not understood is taken to be possible.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import product

from privet.tables import expressions as e
from privet.tables.conditions import columns, is_strict
from privet.tables.expressions import Node, Types
from privet.tables.reach import FLIPPED, NEGATED, Known, moment, outcomes
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType, Type

MOST_CASES = 64
"""In so many ways a condition is taken apart; one with more is left whole."""

_DAY = 86_400_000_000


def contradictory(conditions: Sequence[Node], types: Types) -> bool:
    """Whether no row of these types can meet all of these conditions.

    Example:
        >>> from privet.exact import Exact
        >>> from privet.tables.language import col
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
        >>> from privet.tables.language import col
        >>> len(cases((~((col("a") > 1) & (col("b") > 2))).node))
        2
    """
    match node:
        case e.Not(of):
            return cases(of, holds=not holds)
        case e.Logic(operator, of):
            each = [cases(part, holds=holds) for part in of]
            together = (operator == "and") is holds
            count = math.prod(map(len, each)) if together else sum(map(len, each))
            if count <= MOST_CASES:
                if together:
                    return [tuple(one for part in parts for one in part) for parts in product(*each)]
                return [way for part in each for way in part]
        case e.Compare(operator, left, right) if not holds:
            return [(e.Compare(NEGATED[operator], left, right),)]  # type: ignore[arg-type]
    return [(node if holds else e.Not(node),)]


def _clash(plain: tuple[Node, ...], types: Types) -> bool:
    there = {name for one in plain if is_strict(one) for name in columns(one)}
    present = {name: _present(kind) if name in there else kind for name, kind in types.items()}
    known = Known(present)
    found: dict[Node, _Values] = {}
    for one in plain:
        if True not in outcomes(one, known):
            return True
        for of, operator, constants in _facts(one):
            kind = of.type(types)
            if isinstance(kind, NumberType) and kind.constant is not None:
                continue
            if of not in found:
                found[of] = _values(kind)
            found[of].narrow(kind, operator, constants)
            if found[of].none():
                return True
    return False


def _present(kind: Type) -> Type:
    """The type of a column that has a value; one with a single number stays as engines know it."""
    alone = isinstance(kind, NumberType) and kind.least == kind.most
    return kind if alone else replace(kind, missing=False)


def _facts(plain: Node) -> Iterator[tuple[Node, str, tuple[object, ...]]]:
    """What a plain condition says of an expression: how it compares with which constants."""
    match plain:
        case e.Compare(operator, e.Constant(value), of) if not isinstance(of, e.Constant):
            yield of, FLIPPED[operator], (value,)
        case e.Compare(operator, of, e.Constant(value)) if not isinstance(of, e.Constant):
            yield of, operator, (value,)
        case e.IsIn(of, values):
            yield of, "==", tuple(constant.value for constant in values)
        case e.Not(e.IsIn(of, values)):
            yield of, "!=", tuple(constant.value for constant in values)
        case e.StartsWith(of, prefix):
            yield of, "starts_with", (prefix,)
        case e.Column():
            yield plain, "==", (True,)
        case e.Not(e.Column() as of):
            yield of, "==", (False,)


@dataclass(slots=True)
class _Values:
    """The values that an expression can still have: a number or a time by its integer, in steps of `each`."""

    least: float = -math.inf
    most: float = math.inf
    start: int = 0
    each: int = 1
    some: set[object] | None = None
    """All that are left, where they are known one by one."""
    without: set[object] = field(default_factory=set)

    def narrow(self, kind: Type, operator: str, constants: tuple[object, ...]) -> None:
        """Keep what compares so."""
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
        """Whether nothing is left."""
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


def _values(kind: Type) -> _Values:
    match kind:
        case NumberType(lower, upper, wide=wide, step=step):
            start, each = 0, 1
            if step is not None and (upper - lower) % step == 0:
                start, each = int(lower / kind.unit), int(step / kind.unit)
            least, most = (kind.least, kind.most)
            return _Values(
                -math.inf if wide and least < 0 else least, math.inf if wide and most > 0 else most, start, each
            )
        case TimeType(first, last):
            return _Values(_moment(first), _moment(last), 0, 1 if kind.timed else _DAY)
        case KeyType():
            return _Values(some={_keyed(key) for key in kind.keys()})  # noqa: SIM118
        case BooleanType():
            return _Values(some={True, False})
        case TextType():
            return _Values()


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
    """A key as a text: integers are no codes here."""
    return value if isinstance(value, str) else f"#{int(value)}"  # type: ignore[call-overload]


def _moment(of: object) -> int:
    """A date or timestamp in microseconds."""
    return (moment(of) - datetime.min) // timedelta(microseconds=1)  # type: ignore[arg-type]
