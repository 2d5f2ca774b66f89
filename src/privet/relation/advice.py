"""What to say of a comparison that can never be true: why, and what could have been meant, as Python or as SQL."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from typing import Literal

from privet.exact import Exact, literal
from privet.exact import show as show_number
from privet.relation import expressions as e
from privet.relation.constants import Never
from privet.relation.expressions import Node
from privet.relation.language import show
from privet.relation.reach import moment
from privet.relation.types import KeyType, NumberType, TimeType, Type, truncate

_LISTED = 8
"""So many keys are shown."""
_SHARED = (e.Column, e.Constant, e.Arithmetic, e.Rounded, e.Clip, e.DatePart)
"""What looks the same in SQL."""


@dataclass(frozen=True, slots=True)
class _Instead:
    """The comparison that could have been meant, and how it is proposed to those who can't be given a line of code."""

    operator: str
    value: e.Constant
    proposed: Literal["meant", "nearest", "named"] = "named"


def said(never: Never, *, sql: bool = False, written: str = "this comparison") -> str:
    """What is wrong, what is allowed and what to write; `written` is the comparison as it stands in SQL.

    Example:
        >>> country = KeyType(("CAN", "USA"))
        >>> constant = e.Constant("usa")
        >>> compare = e.Compare("==", e.Column("country"), constant)
        >>> said(Never(compare, e.Column("country"), "==", constant, country), sql=True)
        "country = 'usa' can never be true. The keys of country are 'CAN', 'USA'. Did you mean country = 'USA'?"
    """
    say, of = _Face(sql, written), never.of
    if isinstance(never.leaf, e.IsIn):
        return _listed(never, say)
    outcome = "can never be true"
    if never.operator == "!=":
        outcome = "holds for every key, and leaves out only rows without one"
    what = f"{say.leaf(of, never.operator, never.value)} {outcome}."
    reason, instead = _reason(never, say)
    text = f"{what} {reason if say.named(of) else reason[:1].upper() + reason[1:]}"
    if instead is None:
        return text
    if not sql and isinstance(of, e.Column):
        return f"{text} Write, for example: {say.line(of, instead.operator, _short(instead.value, never.kind))}"
    what, line = "value", say.constant(_short(instead.value, never.kind))
    if say.named(of):
        what, line = "condition", say.leaf(of, instead.operator, _short(instead.value, never.kind))
    match instead.proposed:
        case "meant":
            return f"{text} Did you mean {line}?"
        case "nearest":
            return f"{text} The closest {what} that can match is {line}."
    return text


def _listed(never: Never, say: _Face) -> str:
    """The same for one value of a list."""
    value, of = say.constant(never.value), say.subject(never.of)
    outside = _beyond(never)
    if outside:
        return f"{value} is outside {outside}, so it can never match {of}. Leave it out of the list."
    reason, instead = _reason(never, say)
    text = f"{value} can never match {of}. {reason if say.named(never.of) else reason[:1].upper() + reason[1:]}"
    if instead is not None and instead.proposed == "meant":
        return f"{text} Did you mean {say.constant(instead.value)}?"
    return f"{text} Leave {value} out of the list."


def _beyond(never: Never) -> str:
    """The range that a value is outside of; nothing if it is within."""
    at = never.value.value
    match never.kind:
        case NumberType(lower, upper, wide=False) if isinstance(at, Exact) and not lower <= at <= upper:
            return f"{_digits(lower)}..{_digits(upper)}"
        case TimeType(first, last) if isinstance(at, date) and not moment(first) <= moment(at) <= moment(last):
            return f"{first}..{last}"
    return ""


def _reason(never: Never, say: _Face) -> tuple[str, _Instead | None]:
    of, at, strict = say.subject(never.of), never.value.value, never.operator in ("<", ">")
    match never.kind:
        case KeyType():
            return _no_key(never, never.kind, say)
        case NumberType(lower, wide=True) if (
            lower >= 0 and isinstance(at, Exact) and at <= 0 and never.operator != "!="
        ):
            return f"{of} is never negative.", None
        case NumberType() as kind if isinstance(at, Exact) and never.operator != "!=":
            if strict or (not kind.wide and not kind.lower <= at <= kind.upper):
                return _outside(never, e.Constant(kind.lower), e.Constant(kind.upper), say, below=at < kind.lower)
            step = kind.step if kind.step is not None else None if kind.rounded else kind.unit
            if step is not None:
                start = kind.lower if kind.step is not None else Exact(0)
                floor = start + math.floor((at - start) / step) * step
                near = [e.Constant(floor), e.Constant(floor + step if kind.wide else min(floor + step, kind.upper))]
                steps = f"counted in steps of {_digits(step)} from {_digits(start)}"
                what = "a whole number" if kind.integer and step == 1 else steps
                nearest = " and ".join(map(say.constant, near))
                return f"{of} is {what}: the nearest are {nearest}.", _Instead("==", near[0])
        case TimeType() as kind if isinstance(at, date) and never.operator != "!=":
            if strict or not moment(kind.first) <= moment(at) <= moment(kind.last):
                below = moment(at) < moment(kind.first)
                return _outside(never, e.Constant(kind.first), e.Constant(kind.last), say, below=below)
            start_of = truncate(at, kind.unit or "day")
            near_by = e.Constant(start_of.date() if isinstance(start_of, datetime) and not kind.timed else start_of)
            unit = f"the start of {'an' if kind.unit == 'hour' else 'a'} {kind.unit}" if kind.unit else "a whole day"
            return f"{of} is {unit}.", _Instead("==", near_by, "nearest")
    return f"{of} is {never.kind}.", None


def _outside(never: Never, low: e.Constant, high: e.Constant, say: _Face, *, below: bool) -> tuple[str, _Instead]:
    """Past the range: what is clamped to its end is what can still be found."""
    match never.operator:
        case "<" | "<=":
            near = _Instead("<=", low, "nearest")
        case ">" | ">=":
            near = _Instead(">=", high, "nearest")
        case _:
            near = _Instead("==", low if below else high, "nearest")
    clamped = ", and values beyond that are clamped to it" if never.clamped else ""
    kind = str(never.kind)
    if isinstance(never.kind, NumberType) and not never.kind.wide:
        kind = f"{'an integer' if never.kind.integer else 'a number'} in {_digits(never.kind.lower)}"
        kind += f"..{_digits(never.kind.upper)}"
    return f"{say.subject(never.of)} is {kind}{clamped}.", near


def _short(value: e.Constant, kind: Type) -> e.Constant:
    """The shortest number that is compared as this one is: 0.1 for what was read as 0.1."""
    number = value.value
    if not isinstance(number, Exact) or not isinstance(kind, NumberType) or not kind.rounded:
        return value
    for digits in range(6, 18):
        short = Exact(show_number(number, digits))
        if kind.equal_to(short) == kind.equal_to(number):
            return e.Constant(short)
    return value


def _digits(number: Exact) -> str:
    """A number with all its digits, where they are no more than 17; else the first six."""
    every = show_number(number, 17)
    return every if Exact(every) == number else show_number(number)


def _no_key(never: Never, kind: KeyType, say: _Face) -> tuple[str, _Instead | None]:
    keys, of = kind.keys(), say.subject(never.of)
    few = ", ".join(say.constant(_constant(key)) for key in keys[:_LISTED])
    more = f", ... ({len(keys):,} in all)" if len(keys) > _LISTED else ""
    listed = f"The keys of {of} are {few}{more}." if len(keys) > 1 else f"The only key of {of} is {few}."
    if isinstance(never.leaf, e.StartsWith):
        length = len(never.leaf.prefix)
        near = nearest(never.leaf.prefix, [str(key)[:length] for key in keys])
        if kind.other is not None:
            listed += f" None of them begins so, and other values count under {say.constant(_constant(kind.other))}."
        return listed, None if near is None else _Instead("starts_with", e.Constant(str(near)), "meant")
    value = never.value.value
    near = nearest(int(value) if isinstance(value, Exact) else value, keys)
    how: Literal["meant", "nearest"] = "meant" if isinstance(near, str) else "nearest"
    instead = None if near is None else _Instead(never.operator, _constant(near), how)
    if kind.other is not None:
        other = _constant(kind.other)
        listed += f" {say.constant(never.value)} is not listed, so it counts under {say.constant(other)}."
        instead = instead or _Instead(never.operator, other)
    return listed, instead


def nearest(value: object, keys: Sequence[object]) -> object | None:
    """The key that was most likely meant: the same but for case, accents and blanks; else a similar one; else None.

    Example:
        >>> nearest("usa", ["CAN", "USA"]), nearest("Brasil", ["Brazil", "Chile"]), nearest(7, [1, 2, 9])
        ('USA', 'Brazil', 9)
    """
    if isinstance(value, int):
        return min((key for key in keys if isinstance(key, int)), key=lambda key: abs(key - value), default=None)
    folded: dict[str, object] = {}
    for key in keys:
        folded.setdefault(_folded(str(key)), key)
    wanted = _folded(str(value))
    if wanted in folded:
        return folded[wanted]
    close = get_close_matches(wanted, folded, n=1, cutoff=0.7)
    return folded[close[0]] if close else None


def _folded(text: str) -> str:
    plain = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(plain.casefold().split())


def _constant(key: object) -> e.Constant:
    return e.Constant(Exact(key) if type(key) is int else key)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Face:
    """How comparisons are written."""

    sql: bool
    written: str
    """A comparison that looks different in SQL, as it stands there."""

    def constant(self, of: e.Constant) -> str:
        match of.value:
            case str() as text:
                short = text if len(text) <= 40 else text[:37] + "..."
                return "'" + short.replace("'", "''") + "'" if self.sql else repr(short)
            case bool() as truth:
                return str(truth).upper() if self.sql else str(truth)
            case date() as at:
                return f"'{at}'" if self.sql else str(at)
            case number:
                return _digits(number)

    def named(self, of: Node) -> bool:
        """Whether an expression is written here as it was there: SQL has other words for bins, months and cases."""
        return not self.sql or (isinstance(of, _SHARED) and all(map(self.named, e.parts(of))))

    def subject(self, of: Node) -> str:
        """What is compared, in words."""
        return show(of) if self.named(of) else "this expression"

    def leaf(self, of: Node, operator: str, value: e.Constant) -> str:
        """A comparison to read."""
        if not self.named(of):
            return self.written
        shown = f"({show(of)})" if isinstance(of, e.Arithmetic | e.Compare | e.Logic | e.Not) else show(of)
        if operator == "starts_with":
            how, constant = ("LIKE", e.Constant(f"{value.value}%")) if self.sql else ("starts with", value)
            return f"{shown} {how} {self.constant(constant)}"
        sign = {"==": "=", "!=": "<>"}.get(operator, operator) if self.sql else operator
        return f"{shown} {sign} {self.constant(value)}"

    def line(self, of: e.Column, operator: str, value: e.Constant) -> str:
        """A comparison to write in Python."""
        match value.value:
            case str() as text:
                written = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
            case Exact() as number:
                written = literal(number)
            case other:
                written = repr(other)
        column = f'pv.col("{of.name}")'
        return f"{column}.starts_with({written})" if operator == "starts_with" else f"{column} {operator} {written}"
