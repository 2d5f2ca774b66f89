"""A column in one short line, as it is typed in a terminal: `integer 0 110`, `keys north south other elsewhere`."""

from __future__ import annotations

import re
from datetime import date as Date
from datetime import datetime as DateTime
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from privet.errors import Subject, UserError, write
from privet.policy import answers, problems, toml
from privet.policy.columns import declaration, kinds
from privet.tables.kinds import INTEGER, Kind, meant, usual
from privet.tables.schema import Column
from privet.tables.stored_types import Family

SKIP = "skip"
"""What leaves a column out."""

_DAY = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}|[0-9]{4}-?W[0-9]{2}(-?[0-9])?", re.ASCII)
_PLACE = ("datasets", "", "tables", "", "columns")


def examples() -> list[str]:
    """A line of each kind; integer, number and boolean may end in `required`."""
    return [kind.line for kind in kinds().values()]


def shorthand(name: str, line: str, *, family: Family = "anything") -> Any:
    """A column as a policy declares it; None if it is left out.

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
    if kind is None:
        return None
    value = _value(name, kind, words, textual=family == "text")
    try:
        declaration(value)
    except UserError as error:
        raise _refusal(name, error.what, kind, error.allowed) from None
    except ValidationError as error:
        tree = {"datasets": {"": {"tables": {"": {"columns": {name: value}}}}}}
        first = problems.of_column(error, (*_PLACE, name), tree)[0]
        raise _refusal(name, first.what, kind, first.allowed) from None
    return value


def kind_only(name: str, line: str) -> Column | str:
    """A column for the import of a CSV: its kind counts, and bounds and keys may be left out.

    Example:
        >>> print(kind_only("age", "integer"), kind_only("age", "integer 0 110"), sep=", ")
        integer, an integer in 0..110
    """
    kind, words = _split(name, line)
    if kind is None:
        raise _refusal(name, "to leave a column out, don't name it")
    if kind.value is not None and (not words or kind.value.form == "file"):
        return kind.base
    return declaration(shorthand(name, line)).column(str)


def _split(name: str, line: str, family: Family = "anything") -> tuple[Kind | None, list[str]]:
    """The kind, None if the column is left out; and the words after it."""
    try:
        head, *words = answers.canonical(line, (*kinds(), SKIP), family)
    except ValueError:
        raise _refusal(name, f"{line!r} is not a declaration") from None
    if head in kinds() or head == SKIP:
        return kinds().get(head), words
    if head[:1] in tuple("+-.0123456789"):
        what = f"{line!r} is not a range: give two numbers, without commas or exponents"
        raise _refusal(name, what, None if family == "text" else usual(family))
    allowed = f"The kinds are: {', '.join(sorted(kinds()))}, {SKIP}"
    raise _refusal(name, f"{head!r} is not a kind of column", meant(head) or usual(family), allowed=allowed)


def _value(name: str, kind: Kind, words: list[str], *, textual: bool) -> Any:
    """The column as a policy declares it."""
    options = {each.name: each for each in kind.parameters if each.optional}
    written: dict[str, Any] = {}
    while words:
        if words[-1] in options and options[words[-1]].form == "flag":
            *words, option = words
            written[option] = True
        elif words[-2:-1] and words[-2] in options and options[words[-2]].form != "flag":
            *words, option, word = words
            written[option] = _number(word) if options[option].form == "step" else word
        else:
            break
    if kind.value is None:
        if words:
            raise _refusal(name, f"{words[0]!r} is not expected here", kind)
        return {"type": kind.name, **written} if written else kind.name
    needed = [each.name for each in kind.parameters if not each.optional]
    if len(words) != len(needed) > 1 or (not words and kind.value.form == "keys"):
        raise _refusal(name, kind.needs, kind)
    match kind.value.form:
        case "file":
            written |= dict(zip(needed, words, strict=True))
        case "keys" if "within" in written or words[0].endswith(":"):
            written[kind.name] = _nested(name, words, within=written.get("within"), textual=textual)
        case "keys":
            values = _typed([*words, *([written["other"]] if "other" in written else [])], textual=textual)
            written |= {kind.name: values[: len(words)]} | ({"other": values[-1]} if "other" in written else {})
        case "dates" | "timestamps" as form:
            written[kind.name] = [_moment(word, day=form == "dates") for word in words]
        case _:
            written[kind.name] = [*map(_number, words)]
    return {each.name: written[each.name] for each in kind.parameters if each.name in written}


def _nested(name: str, words: list[str], *, within: str | None, textual: bool) -> dict[str, list[Any]]:
    """Keys that are listed by the key that they lie in: `north: Alta Bodo south: Cork`."""
    split = [part for word in words for part in (word.replace(": ", ":\n").split("\n") if ": " in word else [word])]
    if within is None or not split[0].endswith(":"):
        line = "keys north: Alta Bodo south: Cork within region"
        what = "name the column of keys that these lie within, and list them by its keys, each with a colon after it"
        raise UserError(f"{toml.key(name)}: {what}", subject=Subject("column", name), remedy=write(line, terminal=line))
    values = iter(_typed([word for word in split if not word.endswith(":")], textual=textual))
    found: dict[str, list[Any]] = {}
    below: list[Any] = []
    for word in split:
        if word.endswith(":"):
            below = found.setdefault(word[:-1].strip(), [])
        else:
            below.append(next(values))
    return found


def _typed(values: list[str], *, textual: bool) -> list[Any]:
    if textual or not all(re.fullmatch(r"-?(0|[1-9][0-9]{0,18})", value, re.ASCII) for value in values):
        return list(values)
    return [int(value) for value in values]


def _number(word: str) -> Any:
    if re.fullmatch(r"[+-]?[0-9][0-9_]{0,300}", word, re.ASCII):
        return int(word)
    if re.fullmatch(r"[+-]?[0-9_]*\.?[0-9_]+", word, re.ASCII):
        return Decimal(word)
    return word


def _moment(word: str, *, day: bool) -> Any:
    """A day, or an instant; a day without a time stays a day, because a policy means all of it."""
    try:
        return Date.fromisoformat(word) if day or _DAY.fullmatch(word) else DateTime.fromisoformat(word)
    except ValueError:
        return word


def _refusal(name: str, what: str, kind: Kind | None = None, allowed: str = "") -> UserError:
    line = (kind or INTEGER).line
    remedy = write(line, terminal=line)
    return UserError(f"{toml.key(name)}: {what}", allowed=allowed, subject=Subject("column", name), remedy=remedy)
