"""The allowed values of each field of a record, from the annotations of its class."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from enum import StrEnum
from fractions import Fraction
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from privet.errors import InternalError


@dataclass(frozen=True, slots=True)
class Form:
    """The allowed values of a field: plain types, listed texts, records, and tuples."""

    plain: frozenset[type] = frozenset()
    texts: tuple[str, ...] = ()
    enums: tuple[type[StrEnum], ...] = ()
    records: frozenset[type] = frozenset()
    lists: tuple[Form, ...] = ()
    pairs: tuple[tuple[Form, ...], ...] = ()

    def __str__(self) -> str:
        words = [word for kind, word in _WORDS.items() if kind in self.plain]
        words += [f"one of {', '.join(self.texts)}"] if self.texts else []
        words += ["a list"] if self.lists or self.pairs else []
        words += ["an object with a kind"] if self.records else []
        return " or ".join(words)

    def items(self, length: int) -> Iterator[Sequence[Form]]:
        """The allowed values of each item in a list of this length."""
        yield from ((one,) * length for one in self.lists)
        yield from (pair for pair in self.pairs if len(pair) == length)


_WORDS: dict[type, str] = {
    str: "a text", int: "a whole number", bool: "true or false", Fraction: 'a text such as "3/2" in lowest terms',
    datetime: "a timestamp", date: "a date", types.NoneType: "null",
}  # fmt: skip


def forms(record: type) -> dict[str, Form]:
    """The fields of a class, and their allowed values."""
    if record not in _FORMS:
        hints, stored = get_type_hints(record), [field for field in fields(record) if field.init and field.compare]
        _FORMS[record] = {field.name: _form(hints[field.name]) for field in stored}
    return _FORMS[record]


_FORMS: dict[type, dict[str, Form]] = {}


def _form(hint: Any) -> Form:
    plain: set[type] = set()
    texts: list[str] = []
    enums: list[type[StrEnum]] = []
    records: set[type] = set()
    lists: list[Form] = []
    pairs: list[tuple[Form, ...]] = []
    for part in get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,):
        inner = get_args(part)
        if get_origin(part) is Literal:
            texts += inner
        elif get_origin(part) is tuple and inner[-1] is Ellipsis:
            lists.append(_form(inner[0]))
        elif get_origin(part) is tuple:
            pairs.append(tuple(_form(one) for one in inner))
        elif part in _WORDS:
            plain |= {date, datetime} if part is date else {part}
        elif isinstance(part, type) and issubclass(part, StrEnum):
            enums.append(part)
            texts += [member.value for member in part]
        elif isinstance(part, type) and is_dataclass(part):
            records.add(part)
        else:
            raise InternalError(f"the codec has no form for {part}")
    return Form(frozenset(plain), tuple(texts), tuple(enums), frozenset(records), tuple(lists), tuple(pairs))
