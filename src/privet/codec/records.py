"""Frozen dataclasses to JSON and back, by their fields.

A record is an object with its `kind`; a rational is "p/q" in lowest terms, or {"exact": "p/q"} if the field also allows
texts; dates are {"date": "2024-12-31"} and {"datetime": "2024-12-31T23:59:59"}; tuples are lists. Floats never occur.
The fields and their types come from the class itself, so that the two can't drift apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from typing import Any, TypeAlias

from privet.codec.forms import Form, forms
from privet.codec.text import BITS, is_short, ratio, read_ratio
from privet.errors import UserError

DEEPEST = 200
"""The maximum depth of nested objects and lists."""

_AS_THEY_ARE = frozenset({str, int, bool, type(None)})  # in Python as in JSON
_SHORT = 2**62
_Path: TypeAlias = "tuple[()] | tuple[_Path, str | int]"
"""Where a value is, from the innermost step outwards; put into words only in errors."""


@dataclass(frozen=True, slots=True)
class Codec:
    """A closed vocabulary: the classes that can be written, by their kinds.

    Claim: decode(encode(x)) == x, and encode(decode(t)) == t. A record validates itself when it is created, so
    nothing is decoded that could not be built; any other tree is refused, with the path to the error.

    Example:
        >>> from dataclasses import make_dataclass
        >>> Box = make_dataclass("Box", [("size", Fraction), ("labels", tuple[str, ...])], frozen=True)
        >>> boxes = Codec({"box": Box})
        >>> boxes.encode(Box(Fraction(1, 2), ("a",)))
        {'kind': 'box', 'size': '1/2', 'labels': ['a']}
        >>> boxes.decode({"kind": "box", "size": "2/4", "labels": []})
        Traceback (most recent call last):
        privet.errors.UserError: size: must be a text such as "3/2" in lowest terms, not '2/4'
    """

    kinds: Mapping[str, type]
    error: type[UserError] = UserError
    noun: str = "the record"
    """The name of the whole record in errors."""
    deepest: int = DEEPEST
    _names: Mapping[type, str] = field(init=False, repr=False)
    _any: Form = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_names", {record: kind for kind, record in self.kinds.items()})
        object.__setattr__(self, "_any", Form(records=frozenset(self.kinds.values())))

    def encode(self, value: Any) -> Any:
        """A record as a tree of dicts, lists, texts, integers, booleans and None."""
        return self._write(value, self._any, (), 1)

    def decode(self, tree: Any) -> Any:
        """The record that a tree encodes."""
        record = self._read(tree, self._any, "", 1)
        if self.encode(record) != tree:  # a derived field has another value
            raise self._refusal("", "a field does not follow from the others")
        return record

    # --- writing ------------------------------------------------------------------------------------

    def _write(self, value: Any, form: Form, path: _Path, depth: int) -> Any:
        kind = type(value)
        if depth > self.deepest:
            raise self._too_deep(_text(path))
        if kind in _AS_THEY_ARE and kind in form.plain and (kind is not int or -_SHORT < value < _SHORT):
            return value
        if kind in form.records and kind in self._names:
            inner = forms(kind).items()
            return {"kind": self._names[kind]} | {
                name: self._write(getattr(value, name), one, (path, name), depth + 1) for name, one in inner
            }
        if kind is tuple:
            for items in form.items(len(value)):
                if all(map(_may_hold, items, value)):
                    several = enumerate(zip(value, items, strict=True))
                    return [self._write(x, one, (path, i), depth + 1) for i, (x, one) in several]
        elif kind in form.enums or (kind is str and value in form.texts):
            return str(value)
        elif kind in form.plain:
            return self._write_plain(value, form, path)
        raise self._refusal(_text(path), f"must be {form}, not {kind.__name__}")

    def _write_plain(self, value: Any, form: Form, path: _Path) -> Any:
        match value:
            case Fraction() | int() if not is_short(value):
                raise self._refusal(_text(path), f"a number of more than {BITS} bits can't be written")
            case Fraction():
                return {"exact": ratio(value)} if str in form.plain else ratio(value)
            case datetime() if value.tzinfo is not None:
                raise self._refusal(_text(path), "a timestamp must be in UTC, without a time zone")
            case date():
                return {"datetime" if isinstance(value, datetime) else "date": value.isoformat()}
        return value

    # --- reading ------------------------------------------------------------------------------------

    def _read(self, tree: Any, form: Form, path: str, depth: int) -> Any:
        if depth > self.deepest:
            raise self._too_deep(path)
        if type(tree) is dict and not (len(tree) == 1 and "kind" not in tree):
            return self._read_record(tree, form, path, depth)
        if type(tree) is list:
            for items in form.items(len(tree)):
                if all(map(_may_be, items, tree)):
                    several = enumerate(zip(tree, items, strict=True))
                    return tuple(self._read(x, one, f"{path}[{i}]", depth + 1) for i, (x, one) in several)
        value = _read_plain(tree, form)
        if value is _NOTHING:
            raise self._refusal(path, f"must be {form}, not {_shown(tree)}")
        return value

    def _read_record(self, tree: dict[Any, Any], form: Form, path: str, depth: int) -> Any:
        kind = tree.get("kind")
        record = self.kinds.get(kind) if type(kind) is str else None
        if record is None or record not in form.records:
            allowed = ", ".join(name for name, one in self.kinds.items() if one in form.records)
            raise self._refusal(_join(path, "kind"), f"must be one of {allowed or 'none'}, not {_shown(kind)}")
        inner = forms(record)
        if {*tree} != {*inner, "kind"}:
            raise self._refusal(path, f"{kind} must have the fields {', '.join(inner) or 'none'}, not {_listed(tree)}")
        values = {name: self._read(tree[name], one, _join(path, name), depth + 1) for name, one in inner.items()}
        try:
            return record(**values)
        except UserError as error:
            raise self._refusal(path, str(error)) from None

    def _too_deep(self, path: str) -> UserError:
        return self._refusal(path, f"objects and lists are nested more than {self.deepest} deep")

    def _refusal(self, path: str, why: str) -> UserError:
        return self.error(f"{path or self.noun}: {why}")


def _may_hold(form: Form, value: Any) -> bool:
    kind = type(value)
    return kind in form.plain or kind in form.records or kind is tuple or kind in form.enums or value in form.texts


def _may_be(form: Form, tree: Any) -> bool:
    """Whether an item has the right shape; needed only to distinguish texts from integers."""
    return type(tree) in (dict, list) or type(tree) in form.plain or (type(tree) is str and int not in form.plain)


_NOTHING = object()


def _read_plain(tree: Any, form: Form) -> Any:
    match tree:
        case str() if tree in form.texts:
            return form.enums[0](tree) if form.enums else tree
        case str() if str in form.plain:
            return tree
        case str() if Fraction in form.plain:
            return _or_nothing(read_ratio(tree))
        case {"exact": str(text), **rest} if not rest and {str, Fraction} <= form.plain:
            return _or_nothing(read_ratio(text))
        case {"date": str(text), **rest} if not rest and date in form.plain:
            return _read_moment(date, text)
        case {"datetime": str(text), **rest} if not rest and datetime in form.plain:
            return _read_moment(datetime, text)
        case int() if type(tree) is int and int in form.plain and is_short(tree):
            return tree
        case bool() | None if type(tree) in form.plain:
            return tree
    return _NOTHING


def _or_nothing(number: Fraction | None) -> Any:
    return _NOTHING if number is None else number


def _read_moment(kind: type[date], text: str) -> Any:
    try:
        moment = kind.fromisoformat(text)
    except ValueError:
        return _NOTHING
    return moment if moment.isoformat() == text and getattr(moment, "tzinfo", None) is None else _NOTHING


def _text(path: _Path) -> str:
    steps: list[str] = []
    while path:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(value: object) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 200 else "a long number"
    return text if len(text) <= 40 else text[:37] + "..."


def _listed(tree: Mapping[Any, Any]) -> str:
    return ", ".join(str(name)[:40] for name in list(tree)[:20] if name != "kind") or "none"
