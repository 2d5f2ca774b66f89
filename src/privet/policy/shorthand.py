"""A column in one short line, as it is typed in a terminal: `integer 0 110`, `keys north south other elsewhere`."""

from __future__ import annotations

import re
from datetime import date as Date
from datetime import datetime as DateTime
from decimal import Decimal
from typing import Any

from pydantic import TypeAdapter, ValidationError

from privet.errors import Subject, UserError, write
from privet.policy import answers, problems, toml
from privet.policy.columns import ColumnShape, declared
from privet.tables.schema import Column
from privet.tables.stored import Family

EXAMPLES = (
    "integer 0 110",
    "number 0 200000 step 0.01",
    "boolean",
    "keys north south other elsewhere",
    "keys_from regions.csv region",
    "date 2024-01-01 2024-12-31",
    "timestamp 2024-01-01 2024-12-31T23:59:59",
    "text",
)
"""A line of each kind; integer, number and boolean may end in `required`."""

SKIP = "skip"
"""What leaves a column out."""

_KINDS = {line.split()[0] for line in EXAMPLES}
_OF_FAMILY: dict[Family, str] = {"float": "number", "decimal": "number", "date": "date", "timestamp": "timestamp"}
_PLACE = ("datasets", "", "tables", "", "columns")


def shorthand(name: str, line: str, *, family: Family = "anything") -> Any:
    """A column as it stands in a policy; None if it is left out.

    `family` is what the column holds: keys of texts are texts, even if all of them look like integers; and the kind can
    be left out, as in `0 110` or `north, south`.

    Example:
        >>> shorthand("age", "integer 0 110 required")
        {'integer': [0, 110], 'required': True}
        >>> shorthand("age", "integer 110 0")
        Traceback (most recent call last):
        privet.errors.UserError: age: lower must be less than upper, not [110, 0]. Write, for example: integer 0 110
    """
    kind, words = _split(name, line, family)
    if kind == SKIP:
        return None
    made = _made(name, kind, words, {"text": True, "integer": False}.get(family))
    try:
        TypeAdapter(ColumnShape).validate_python(made)
    except ValidationError as error:
        tree = {"datasets": {"": {"tables": {"": {"columns": {name: made}}}}}}
        first = problems.of_column(error, (*_PLACE, name), tree)[0]
        raise _refusal(name, first.what, kind, first.allowed) from None
    return made


def kind_only(name: str, line: str) -> Column | str:
    """A column for the import of a CSV: its kind counts, and bounds and keys may be left out.

    Example:
        >>> print(kind_only("age", "integer"), kind_only("age", "integer 0 110"), sep=", ")
        integer, an integer in 0..110
    """
    kind, words = _split(name, line)
    if kind == SKIP:
        raise _refusal(name, "to leave a column out, don't name it", "integer")
    if not words or kind == "keys_from":
        return "text" if kind in ("keys", "keys_from") else kind
    made = TypeAdapter(ColumnShape).validate_python(shorthand(name, line))
    return declared(made).column(str)


def _split(name: str, line: str, family: Family = "anything") -> tuple[str, list[str]]:
    try:
        kind, *words = answers.canonical(line, (*_KINDS, SKIP), family)
    except ValueError:
        raise _refusal(name, f"{line!r} is not a declaration") from None
    if kind not in _KINDS and kind != SKIP and kind[:1] in tuple("+-.0123456789"):
        what = f"{line!r} is not a range: give two numbers, without commas or exponents"
        raise _refusal(name, what, _OF_FAMILY.get(family, "integer"))
    if kind not in _KINDS and kind != SKIP:
        kinds = f"The kinds are: {', '.join(sorted(_KINDS))}, {SKIP}"
        raise _refusal(name, f"{kind!r} is not a kind of column", allowed=kinds)
    return kind, words


def _made(name: str, kind: str, words: list[str], textual: bool | None) -> Any:
    options: dict[str, Any] = {}
    if kind in ("integer", "number", "boolean") and words[-1:] == ["required"]:
        options["required"] = True
        words = words[:-1]
    match kind:
        case "boolean" | "text":
            if words:
                raise _refusal(name, f"{words[0]!r} is not expected here", kind)
            return {"type": kind, **options} if options else kind
        case "number" if len(words) == 4 and words[2] == "step":
            return {"number": [*map(_number, words[:2])], "step": _number(words[3]), **options}
        case "integer" | "number":
            return {kind: [*map(_number, words)], **options}
        case "date" | "timestamp":
            return {kind: [_moment(word, Date if kind == "date" else DateTime) for word in words]}
    values, has_other, other = _listed(words)
    if kind == "keys_from":
        if len(values) != 2:
            raise _refusal(name, "keys_from needs a file and its column", kind)
        return {"keys_from": values[0], "column": values[1], **({"other": other} if has_other else {})}
    if not values:
        raise _refusal(name, "list the keys", kind)
    typed = _typed([*values, other] if has_other else values, textual)
    return {"keys": typed[: len(values)], **({"other": typed[-1]} if has_other else {})}


def _listed(words: list[str]) -> tuple[list[str], bool, str]:
    """The values, whether there is a place for others, and which."""
    if len(words) >= 2 and words[-2] == "other":
        return words[:-2], True, words[-1]
    return words, False, ""


def _typed(values: list[str], textual: bool | None) -> list[Any]:
    if textual or not all(re.fullmatch(r"-?(0|[1-9][0-9]{0,18})", value, re.ASCII) for value in values):
        return list(values)
    return [int(value) for value in values]


def _number(word: str) -> Any:
    if re.fullmatch(r"[+-]?[0-9][0-9_]{0,300}", word, re.ASCII):
        return int(word)
    if re.fullmatch(r"[+-]?[0-9_]*\.?[0-9_]+", word, re.ASCII):
        return Decimal(word)
    return word


def _moment(word: str, kind: type[Date]) -> Any:
    try:
        return kind.fromisoformat(word)
    except ValueError:
        return word


def _refusal(name: str, what: str, kind: str = "integer", allowed: str = "") -> UserError:
    example = next((line for line in EXAMPLES if line.split()[0] == kind), EXAMPLES[0])
    remedy = write(example, terminal=example)
    return UserError(f"{toml.key(name)}: {what}", allowed=allowed, subject=Subject("column", name), remedy=remedy)
