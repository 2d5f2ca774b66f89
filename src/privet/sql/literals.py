"""Public values, exactly as they are written: 0.1 is one tenth."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import cast

from sqlglot import exp

from privet.errors import UserError
from privet.exact import Exact
from privet.sql.grammar import Tree, span
from privet.sql.source import SqlText
from privet.tables.expressions.fluent import lit
from privet.tables.expressions.nodes import Constant
from privet.tables.types import NumberType, TimeType, Type
from privet.tables.units import LARGEST

_NUMBER = re.compile(r"([0-9]{0,400})(?:\.([0-9]{0,400}))?(?:[eE]([+-]?[0-9]{1,3}))?", re.ASCII)
_SIGNED = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?", re.ASCII)


def number(source: SqlText, node: Tree) -> Exact | None:
    """The number that is written here, with its sign; None if it is something else."""
    sign = 1
    while isinstance(node, exp.Neg | exp.Paren):
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    match = _NUMBER.fullmatch(str(node.this))
    if match is None or not (match[1] or match[2]):
        raise source.refusal(span(node), f"{source.words(span(node))} is not a number, or is too long")
    digits, after, exponent = match[1], match[2] or "", int(match[3] or 0)
    value = Exact(int(digits + after or "0")) * Exact(10) ** (exponent - len(after))
    if value and not 1 / LARGEST <= value <= LARGEST:
        raise source.refusal(span(node), "this number is too large or too small")
    return sign * value


def constant(source: SqlText, node: Tree) -> Constant | None:
    """The number, text, boolean, date or timestamp that is written here; None if it is something else."""
    while isinstance(node, exp.Paren):
        node = node.this
    match node:
        case exp.Literal() if node.is_string:
            return _text(source, node, str(node.this))
        case exp.Boolean():
            return Constant(bool(node.this))
        case exp.Cast():
            return _moment(source, node)
    value = number(source, node)
    return None if value is None else Constant(value)


def fitted(source: SqlText, at: Tree, value: Constant, like: Type) -> Constant:
    """A quoted date or timestamp becomes one if it is compared with one: `day >= '2025-01-31'`.

    It is an error if the text is not a date, or if a number in quotes is compared with numbers.
    """
    if isinstance(value.value, str) and isinstance(like, NumberType) and _SIGNED.fullmatch(value.value):
        raise source.refusal(span(at), "this is text, not a number", f"Write {value.value} without quotes")
    if not isinstance(value.value, str) or not isinstance(like, TimeType):
        return value
    moment = _read(value.value, timed=like.timed)
    if moment is None:
        kind, form = ("timestamp", "'2019-12-31 12:00:00'") if like.timed else ("date", "'2019-12-31'")
        raise source.refusal(span(at), f"{source.words(span(at))} is not a {kind}", f"Write {kind}s as {form}")
    return Constant(moment)


def _moment(source: SqlText, node: exp.Cast) -> Constant:
    """DATE '2025-01-31' and TIMESTAMP '2025-01-31 12:00:00', which the parser reads as casts."""
    kind, text = node.args["to"].this, node.this
    if not isinstance(text, exp.Literal) or not text.is_string or kind not in _KINDS:
        raise source.refusal(span(node), "casts are not supported", "For a date, write DATE '2025-01-31'")
    moment = _read(str(text.this), timed=_KINDS[kind])
    if moment is None:
        name, form = ("timestamp", "TIMESTAMP '2019-12-31 12:00:00'") if _KINDS[kind] else ("date", "DATE '2019-12-31'")
        raise source.refusal(span(text), f"{source.words(span(text))} is not a {name}", f"Write {name}s as {form}")
    return Constant(moment)


_KINDS = {
    exp.DataType.Type.DATE: False,
    exp.DataType.Type.TIMESTAMP: True,
    exp.DataType.Type.TIMESTAMPNTZ: True,
}


def _read(text: str, *, timed: bool) -> date | None:
    if not _MOMENT.fullmatch(text) or (len(text) > 10 and not timed):
        return None
    try:
        return datetime.fromisoformat(text) if timed else date.fromisoformat(text)
    except ValueError:
        return None


def _text(source: SqlText, node: Tree, value: str) -> Constant:
    try:
        return cast(Constant, lit(value).node)
    except UserError as error:
        raise source.placed(span(node), error) from None
