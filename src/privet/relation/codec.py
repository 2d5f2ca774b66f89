"""Schemas, expressions, operators and aggregates as JSON, and back: a closed vocabulary, append-only.

A record is an object with its `kind`; a rational is "p/q" in lowest terms, or {"exact": "p/q"} where a text may stand
too; dates are {"date": "2024-12-31"} and {"datetime": "2024-12-31T23:59:59"}; tuples are lists. Floats never occur.
What fields a record has, and of what types, is read from its class, so that the two can't drift apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from privet.distances import EachRow, Person
from privet.errors import UserError
from privet.relation import aggregates as a
from privet.relation import arrangement, schema, statement
from privet.relation import expressions as e
from privet.relation import operators as o
from privet.relation import types as t
from privet.relation.fields import Form, forms, later
from privet.relation.wellformed import rebuilt

DEEPEST = 200
"""How deep objects and lists may be nested."""

BITS = 4096
"""How long a number may be."""

_RATIO = re.compile(r"(-?(?:0|[1-9][0-9]*))/([1-9][0-9]*)", re.ASCII)

KINDS: dict[str, type] = {
    # what is declared
    "schema": schema.Schema, "public schema": schema.PublicSchema, "declared": schema.Column,
    "each row": EachRow, "person": Person,
    "number type": t.NumberType, "boolean type": t.BooleanType, "key type": t.KeyType, "text type": t.TextType,
    "time type": t.TimeType,
    # expressions
    "column": e.Column, "constant": e.Constant, "arithmetic": e.Arithmetic, "rounded": e.Rounded, "clip": e.Clip,
    "compare": e.Compare, "logic": e.Logic, "not": e.Not, "is in": e.IsIn, "is missing": e.IsMissing,
    "starts with": e.StartsWith, "case": e.Case, "date part": e.DatePart, "truncate": e.Truncate, "bin": e.Bin,
    # operators
    "scan": o.Scan, "where": o.Where, "with columns": o.WithColumns, "join public": o.JoinPublic,
    "join person": o.JoinPerson, "of person": o.OfPerson, "per person": o.PerPerson,
    # aggregates
    "count": a.Count, "count people": a.CountPeople, "sum": a.Sum, "mean": a.Mean, "variance": a.Variance,
    "std": a.Std, "histogram": a.Histogram, "ratio": a.Ratio,
    # how an answer is arranged
    "arrangement": arrangement.Arrangement, "order": arrangement.Order,
    # what an engine is asked
    "code": statement.Code, "place": statement.Place, "given": statement.Given,
    "rows": statement.Rows, "present": statement.Present, "total": statement.Total, "squares": statement.Squares,
    "at": statement.At,
    "unbounded": statement.Unbounded, "at most rows": statement.AtMostRows, "at most groups": statement.AtMostGroups,
    "people in groups": statement.PeopleInGroups, "statement": statement.Statement,
}  # fmt: skip
"""Every kind of record there is. A name, once written into a certificate, keeps its meaning for ever."""

_NAMES = {made: kind for kind, made in KINDS.items()}


def encode(value: Any, *, also: Mapping[str, type] | None = None) -> Any:
    """A record as a tree of dicts, lists, texts, integers, booleans and None; `also` names further classes.

    Claim: decode(encode(x)) == x.

    Example:
        >>> encode(e.Clip(e.Column("age"), Fraction(0), Fraction(1, 2)))
        {'kind': 'clip', 'of': {'kind': 'column', 'name': 'age'}, 'lower': '0/1', 'upper': '1/2'}
    """
    names = _NAMES | {made: kind for kind, made in (also or {}).items()}
    return _write(value, Form(records=frozenset(names)), names, "", 1)


def decode(tree: Any, *, also: Mapping[str, type] | None = None) -> Any:
    """The record that a tree stands for; whatever else it may be, it is refused, with the path to what is wrong.

    Claim: encode(decode(t)) == t, and nothing is made that the builders would refuse.

    Example:
        >>> decode({"kind": "not", "of": {"kind": "column", "name": 7}})
        Traceback (most recent call last):
        privet.errors.UserError: of.name: must be a text, not 7
    """
    kinds = KINDS | dict(also or {})
    found = _read(tree, Form(records=frozenset(kinds.values())), kinds, "", 1)
    if encode(found, also=also) != tree:  # what follows from other fields was written otherwise
        raise _refusal("", "it says of itself what does not follow from it")
    return found


# --- writing and reading ------------------------------------------------------------------------------


def _write(value: Any, form: Form, names: Mapping[type, str], path: str, depth: int) -> Any:
    kind = type(value)
    if depth > DEEPEST:
        raise _refusal(path, f"objects and lists are nested deeper than {DEEPEST}")
    if kind in form.records and kind in names:
        made: dict[str, Any] = {"kind": names[kind]}
        absent = later(kind)
        for name, inner in forms(kind).items():
            if name in absent and getattr(value, name) == absent[name]:
                continue
            made[name] = _write(getattr(value, name), inner, names, _join(path, name), depth + 1)
        return made
    if kind is tuple:
        for items in form.items(len(value)):
            if all(map(_may_hold, items, value)):
                return [
                    _write(x, s, names, f"{path}[{i}]", depth + 1)
                    for i, (x, s) in enumerate(zip(value, items, strict=True))
                ]
    elif kind in form.enums or (kind is str and value in form.texts):
        return str(value)
    elif kind in form.plain:
        return _write_plain(value, form, path)
    raise _refusal(path, f"must be {form}, not {kind.__name__}")


def _may_hold(form: Form, value: Any) -> bool:
    return type(value) in form.plain | form.records | {*form.enums} or type(value) is tuple or value in form.texts


def _write_plain(value: Any, form: Form, path: str) -> Any:
    match value:
        case Fraction():
            if max(abs(value.numerator), value.denominator).bit_length() > BITS:
                raise _refusal(path, f"a number of more than {BITS} bits can't be written")
            ratio = f"{value.numerator}/{value.denominator}"
            return {"exact": ratio} if str in form.plain else ratio
        case datetime() if value.tzinfo is not None:
            raise _refusal(path, "timestamps are in UTC, without a zone")
        case date():
            return {"datetime" if isinstance(value, datetime) else "date": value.isoformat()}
        case int() if value.bit_length() > BITS:
            raise _refusal(path, f"a number of more than {BITS} bits can't be written")
    return value


def _read(tree: Any, form: Form, kinds: Mapping[str, type], path: str, depth: int) -> Any:
    if depth > DEEPEST:
        raise _refusal(path, f"objects and lists are nested deeper than {DEEPEST}")
    shape = type(tree)
    if shape is dict:
        if len(tree) == 1 and "kind" not in tree:
            return _read_plain(tree, form, path)
        kind = tree.get("kind")
        made = kinds.get(kind) if type(kind) is str else None
        if made is None or made not in form.records:
            allowed = ", ".join(name for name, one in kinds.items() if one in form.records)
            raise _refusal(_join(path, "kind"), f"must be one of {allowed or 'none'}, not {_shown(kind)}")
        inner, absent = forms(made), later(made)
        if {*tree} | {*absent} != {*inner, "kind"}:
            raise _refusal(path, f"the fields of {kind} are: {', '.join(inner) or 'none'}; not {_listed(tree)}")
        values = {
            name: _read(tree[name], one, kinds, _join(path, name), depth + 1)
            for name, one in inner.items()
            if name in tree
        }
        for name, default in absent.items():
            if name in values and values[name] == default:
                raise _refusal(_join(path, name), "says nothing, so it must be left out")
        return _made(made, values, path)
    if shape is list:
        for items in form.items(len(tree)):
            if all(_may_be(one, item) for one, item in zip(items, tree, strict=True)):
                read = (
                    _read(x, s, kinds, f"{path}[{i}]", depth + 1)
                    for i, (x, s) in enumerate(zip(tree, items, strict=True))
                )
                return tuple(read)
    return _read_plain(tree, form, path)


def _may_be(form: Form, tree: Any) -> bool:
    """Whether an item is of the right shape; only needed to tell texts from integers."""
    return type(tree) in (dict, list) or type(tree) in form.plain or (type(tree) is str and int not in form.plain)


def _read_plain(tree: Any, form: Form, path: str) -> Any:
    value = _plain(tree, form)
    if value is _NOTHING:
        raise _refusal(path, f"must be {form}, not {_shown(tree)}")
    return value


_NOTHING = object()


def _plain(tree: Any, form: Form) -> Any:
    match tree:
        case str() if tree in form.texts:
            return form.enums[0](tree) if form.enums else tree
        case str() if str in form.plain:
            return tree
        case str() if Fraction in form.plain:
            return _ratio(tree)
        case {"exact": str(text), **rest} if not rest and {str, Fraction} <= form.plain:
            return _ratio(text)
        case {"date": str(text), **rest} if not rest and date in form.plain:
            return _moment(date, text)
        case {"datetime": str(text), **rest} if not rest and datetime in form.plain:
            return _moment(datetime, text)
        case int() if type(tree) is int and int in form.plain and tree.bit_length() <= BITS:
            return tree
        case bool() | None if type(tree) in form.plain:
            return tree
    return _NOTHING


def _ratio(text: str) -> Any:
    found = _RATIO.fullmatch(text) if len(text) <= BITS else None
    if found is None:
        return _NOTHING
    number = Fraction(int(found[1]), int(found[2]))
    short = max(abs(number.numerator), number.denominator).bit_length() <= BITS
    return number if short and text == f"{number.numerator}/{number.denominator}" else _NOTHING


def _moment(kind: type[date], text: str) -> Any:
    try:
        moment = kind.fromisoformat(text)
    except ValueError:
        return _NOTHING
    return moment if moment.isoformat() == text and getattr(moment, "tzinfo", None) is None else _NOTHING


def _made(made: type, values: dict[str, Any], path: str) -> Any:
    """The record, if those who build such records would have built it."""
    try:
        return rebuilt(made, values)
    except UserError as error:
        raise _refusal(path, str(error)) from None
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, AssertionError, RecursionError):
        raise _refusal(path, "this is not well formed") from None


def _refusal(path: str, why: str) -> UserError:
    return UserError(f"{path or 'the record'}: {why}")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(value: object) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 200 else "a long number"
    return text if len(text) <= 40 else text[:37] + "..."


def _listed(tree: Mapping[Any, Any]) -> str:
    return ", ".join(str(name)[:40] for name in list(tree)[:20] if name != "kind") or "none"
