"""The error for a comparison that can never be true: the reason, and a likely correction in Python and in SQL."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches

from privet.errors import QueryError, Remedy, write
from privet.exact import Exact
from privet.exact import show as show_number
from privet.tables.analysis.constant_conditions import Never
from privet.tables.analysis.ranges import moment
from privet.tables.expressions import nodes as e
from privet.tables.expressions import trees
from privet.tables.expressions.nodes import Node
from privet.tables.expressions.rendering import in_python, in_sql, show
from privet.tables.types import KeyType, NumberType, TimeType, Type, truncate

_LISTED = 8
"""Maximum keys to show."""
_LONGEST = 80
"""Maximum characters of an expression in a sentence."""
_NUMBERS = {"==": "be", "<": "be below", "<=": "be at most", ">": "be above", ">=": "be at least"}
_TIMES = {"==": "be", "<": "be before", "<=": "be on or before", ">": "be after", ">=": "be on or after"}


@dataclass(frozen=True, slots=True)
class _Instead:
    """A comparison to suggest instead."""

    operator: str
    value: e.Constant
    meant: bool = False
    """Whether this is a likely correction, not just the nearest comparison that can be true."""


def never_true(never: Never) -> QueryError:
    """The error: what is wrong, what is allowed and what to write.

    Example:
        >>> country = KeyType(("CAN", "USA"))
        >>> constant = e.Constant("usa")
        >>> compare = e.Compare("==", e.Column("country"), constant)
        >>> print(never_true(Never(compare, e.Column("country"), "==", constant, country)).render("sql"))
        country can never be 'usa'. The keys of country are 'CAN', 'USA'. Write, for example: country = 'USA'
    """
    subject, value = _subject(never.compared), _constant(never.value)
    if isinstance(never.leaf, e.IsIn):
        return _in_list(never)
    if never.operator == "!=":
        what = f"{subject} differs from {value} for every key, so this only removes rows without a key"
    else:
        verbs = _TIMES if isinstance(never.kind, TimeType) else _NUMBERS
        what = f"{subject} can never {verbs.get(never.operator, 'begin with')} {value}"
    reason, instead = _reason(never)
    if instead is None:
        return QueryError(_capital(what), allowed=_capital(reason))
    node = _comparison(never.compared, instead.operator, _short(instead.value, never.kind))
    remedy = write(in_python(node), sql="" if _is_binned(never.compared) else in_sql(node))
    return QueryError(_capital(what), allowed=_capital(reason), remedy=remedy)


def _capital(text: str) -> str:
    """The text with a capital letter, unless it begins with the name of a column."""
    return text[:1].upper() + text[1:] if text.startswith("this expression") else text


def _comparison(left: Node, operator: str, value: e.Constant) -> Node:
    if operator == "starts_with":
        return e.StartsWith(left, str(value.value))
    return e.Compare(operator, left, value)  # type: ignore[arg-type]


def _is_binned(node: Node) -> bool:
    """Whether an expression contains bins, which SQL writes in another way."""
    return isinstance(node, e.Bin) or any(map(_is_binned, trees.parts(node)))


def _in_list(never: Never) -> QueryError:
    """The error for one value of a list."""
    value, subject = _constant(never.value), _subject(never.compared)
    outside = _beyond(never)
    if outside:
        what = f"{value} is outside {outside}, so it can never match {subject}"
        return QueryError(what, remedy=Remedy("Remove it from the list"))
    reason, instead = _reason(never)
    advice = f"Remove {value} from the list"
    if instead is not None and instead.meant:
        advice = f"Did you mean {_constant(instead.value)}?"
    return QueryError(f"{value} can never match {subject}", allowed=_capital(reason), remedy=Remedy(advice))


def _beyond(never: Never) -> str:
    """The range of the type, if the value is outside it; else an empty string."""
    at = never.value.value
    match never.kind:
        case NumberType(lower, upper, wide=False) if isinstance(at, Exact) and not lower <= at <= upper:
            return f"{_digits(lower)}..{_digits(upper)}"
        case TimeType(first, last) if isinstance(at, date) and not moment(first) <= moment(at) <= moment(last):
            return f"{first}..{last}"
    return ""


def _reason(never: Never) -> tuple[str, _Instead | None]:
    subject, at, strict = _subject(never.compared), never.value.value, never.operator in ("<", ">")
    match never.kind:
        case KeyType():
            return _no_key(never, never.kind)
        case NumberType(lower, wide=True) if (
            lower >= 0 and isinstance(at, Exact) and at <= 0 and never.operator != "!="
        ):
            return f"{subject} is never negative", None
        case NumberType() as kind if isinstance(at, Exact) and never.operator != "!=":
            if strict or (not kind.wide and not kind.lower <= at <= kind.upper):
                return _outside(never, e.Constant(kind.lower), e.Constant(kind.upper), below=at < kind.lower)
            step = kind.step if kind.step is not None else None if kind.rounded else kind.unit
            if step is not None:
                start = kind.lower if kind.step is not None else Exact(0)
                floor = start + math.floor((at - start) / step) * step
                near = [e.Constant(floor), e.Constant(floor + step if kind.wide else min(floor + step, kind.upper))]
                steps = f"counted in steps of {_digits(step)} from {_digits(start)}"
                what = "a whole number" if kind.integer and step == 1 else steps
                nearest = " and ".join(map(_constant, near))
                return f"{subject} is {what}; the nearest are {nearest}", _Instead("==", near[0])
        case TimeType() as kind if isinstance(at, date) and never.operator != "!=":
            if strict or not moment(kind.first) <= moment(at) <= moment(kind.last):
                below = moment(at) < moment(kind.first)
                return _outside(never, e.Constant(kind.first), e.Constant(kind.last), below=below)
            start_of = truncate(at, kind.unit or "day")
            near_by = e.Constant(start_of.date() if isinstance(start_of, datetime) and not kind.timed else start_of)
            unit = f"the start of {'an' if kind.unit == 'hour' else 'a'} {kind.unit}" if kind.unit else "a whole day"
            return f"{subject} is {unit}", _Instead("==", near_by)
    return f"{subject} is {never.kind}", None


def _outside(never: Never, low: e.Constant, high: e.Constant, *, below: bool) -> tuple[str, _Instead]:
    """For a value outside the range, suggest the end of the range, to which values are clamped."""
    match never.operator:
        case "<" | "<=":
            near = _Instead("<=", low)
        case ">" | ">=":
            near = _Instead(">=", high)
        case _:
            near = _Instead("==", low if below else high)
    clamped = "; values outside are clamped to it" if never.clamped else ""
    kind = str(never.kind)
    if isinstance(never.kind, NumberType) and not never.kind.wide:
        kind = f"{'an integer' if never.kind.integer else 'a number'} in {_digits(never.kind.lower)}"
        kind += f"..{_digits(never.kind.upper)}"
    return f"{_subject(never.compared)} is {kind}{clamped}", near


def _short(value: e.Constant, kind: Type) -> e.Constant:
    """The shortest number that compares in the same way: 0.1 for a value that was read as 0.1."""
    number = value.value
    if not isinstance(number, Exact) or not isinstance(kind, NumberType) or not kind.rounded:
        return value
    for digits in range(6, 18):
        short = Exact(show_number(number, digits))
        if kind.equal_to(short) == kind.equal_to(number):
            return e.Constant(short)
    return value


def _digits(number: Exact) -> str:
    """A number with all its digits if there are at most 17; else the first six."""
    every = show_number(number, 17)
    return every if Exact(every) == number else show_number(number)


def _no_key(never: Never, kind: KeyType) -> tuple[str, _Instead | None]:
    keys, subject = kind.keys(), _subject(never.compared)
    shown = ", ".join(_constant(_key(key)) for key in keys[:_LISTED])
    more = f", ... ({len(keys):,} in all)" if len(keys) > _LISTED else ""
    listed = f"The keys of {subject} are {shown}{more}" if len(keys) > 1 else f"The only key of {subject} is {shown}"
    if isinstance(never.leaf, e.StartsWith):
        length = len(never.leaf.prefix)
        near = nearest(never.leaf.prefix, [str(key)[:length] for key in keys])
        if kind.other is not None:
            listed += f". None of them begins with that; all other values count as {_constant(_key(kind.other))}"
        return listed, None if near is None else _Instead("starts_with", e.Constant(str(near)), meant=True)
    value = never.value.value
    near = nearest(int(value) if isinstance(value, Exact) else value, keys)
    instead = None if near is None else _Instead(never.operator, _key(near), meant=isinstance(near, str))
    if kind.other is not None:
        other = _key(kind.other)
        listed += f". {_constant(never.value)} is not listed, so it counts as {_constant(other)}"
        instead = instead or _Instead(never.operator, other)
    return listed, instead


def nearest(value: object, keys: Sequence[object]) -> object | None:
    """The most likely intended key: equal except for case, accents and spaces; else a similar one; else None.

    Example:
        >>> nearest("usa", ["CAN", "USA"]), nearest("Brasil", ["Brazil", "Chile"]), nearest(7, [1, 2, 9])
        ('USA', 'Brazil', 9)
    """
    if isinstance(value, int):
        return min((key for key in keys if isinstance(key, int)), key=lambda key: abs(key - value), default=None)
    folded: dict[str, object] = {}
    for key in keys:
        folded.setdefault(_folded(str(key)), key)
    target = _folded(str(value))
    if target in folded:
        return folded[target]
    close = get_close_matches(target, folded, n=1, cutoff=0.7)
    return folded[close[0]] if close else None


def _folded(text: str) -> str:
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(plain.casefold().split())


def _key(key: object) -> e.Constant:
    return e.Constant(Exact(key) if type(key) is int else key)  # type: ignore[arg-type]


def _constant(constant: e.Constant) -> str:
    """A constant as shown in a sentence."""
    match constant.value:
        case str() as text:
            return repr(text if len(text) <= 40 else text[:37] + "...")
        case bool() as truth:
            return str(truth).lower()
        case date() as at:
            return str(at)
        case number:
            return _digits(number)


def _subject(node: Node) -> str:
    """An expression as shown in a sentence."""
    shown = show(node)
    return shown if len(shown) <= _LONGEST else "this expression"
