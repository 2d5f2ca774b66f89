"""The rules by which expressions are typed: what counts as a number, what can be equal, what holds several types."""

from __future__ import annotations

from collections.abc import Callable

from privet.errors import QueryError
from privet.exact import Exact
from privet.relation.types import BooleanType, KeyType, NumberType, TextType, TimeType, Type


def as_number(of: Type, where: str) -> NumberType:
    """A number, or a boolean as 0 or 1."""
    match of:
        case NumberType():
            return of
        case BooleanType():
            return of.as_number()
    raise QueryError(f"{where} needs a number, and this is {of}. Numbers are declared with pv.number(lower, upper)")


def comparable(left: Type, right: Type) -> bool:
    """Whether two values can be equal."""
    match left, right:
        case (NumberType(), NumberType()) | (BooleanType(), BooleanType()) | (TimeType(), TimeType()):
            return True
        case (KeyType() as key, NumberType() as number) | (NumberType() as number, KeyType() as key):
            return not key.textual and number.integer
        case (KeyType() as a, KeyType() as b):
            return a.textual == b.textual
        case (TextType(), TextType()):
            return True
        case (KeyType() as key, TextType()) | (TextType(), KeyType() as key):
            return key.textual
    return False


def union(types: list[Type]) -> Type:
    """The type that holds all of these."""
    missing = any(t.missing for t in types)
    first = types[0]
    if all(isinstance(t, BooleanType) for t in types):
        return BooleanType(missing)
    if all(isinstance(t, NumberType | BooleanType) for t in types):
        numbers = [as_number(t, "when") for t in types]
        return NumberType(
            min(t.lower for t in numbers),
            max(t.upper for t in numbers),
            integer=all(t.integer for t in numbers),
            missing=missing,
            wide=any(t.wide for t in numbers),
        )
    if all(isinstance(t, KeyType) and t.textual for t in types):
        values = dict.fromkeys(key for t in types for key in t.keys())  # noqa: SIM118
        return KeyType(tuple(str(v) for v in values), missing=missing)
    if all(isinstance(t, TimeType) and t.timed == first.timed for t in types if isinstance(first, TimeType)):
        times = [t for t in types if isinstance(t, TimeType)]
        if len(times) == len(types):
            return TimeType(min(t.first for t in times), max(t.last for t in times), missing=missing)
    raise QueryError(
        "the values of a case must be of one kind (numbers, texts, dates, booleans), not "
        f"{', '.join(map(str, types))}. Write, for example: "
        'pv.when(pv.col("age") < 18, "child").otherwise("adult")'
    )


def as_boolean(of: Type, where: str) -> BooleanType:
    """A condition."""
    if isinstance(of, BooleanType):
        return of
    raise QueryError(f'{where} needs a condition, and this is {of}. Write, for example: pv.col("age") >= 18')


def as_time(of: Type, where: str) -> TimeType:
    """A date, or a date with a time."""
    if isinstance(of, TimeType):
        return of
    raise QueryError(f"{where} needs a date or a timestamp, and this is {of}")


def shortened(bound: Exact, outwards: Callable[[Exact], int]) -> Exact:
    """A bound that is short: itself; or, from 1,024 bits on, 128 significant ones of it, down to 2^-1000, outwards."""
    if max(bound.numerator.bit_length(), bound.denominator.bit_length()) <= 1024:
        return bound
    exponent = bound.numerator.bit_length() - bound.denominator.bit_length() - 128
    unit = Exact(2) ** max(exponent, -1000)
    return outwards(bound / unit) * unit


def days_between(left: TimeType, right: TimeType) -> NumberType:
    """The days between two dates."""
    if left.timed or right.timed:
        raise QueryError('the days between two dates need dates. Write, for example: .truncate("day") in the source')
    low, high = (left.first - right.last).days, (left.last - right.first).days
    return NumberType(Exact(low), Exact(high), integer=True, missing=left.missing or right.missing)
