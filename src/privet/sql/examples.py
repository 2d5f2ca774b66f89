"""The names in examples: what a refusal suggests is about columns that the analyst's tables have.

Refusals are written for a table of people with an income, an age, a region and so on. Where no table has such a column,
and the statement does not name it, a column of the same kind takes its place; if there is none, a placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from privet.errors import QueryError
from privet.tables.expressions.nodes import Column
from privet.tables.expressions.rendering import in_sql
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType, Type

_KINDS: dict[str, tuple[type, ...]] = {
    "income": (NumberType,), "age": (NumberType,), "pay": (NumberType,), "hours": (NumberType,),
    "region": (KeyType, BooleanType), "town": (KeyType, BooleanType, TextType), "smoker": (BooleanType,),
    "day": (TimeType,), "name": (TextType, KeyType),
}  # fmt: skip
_PLACEHOLDERS: dict[type, str] = {
    NumberType: "some_number", KeyType: "some_key", TimeType: "some_date", BooleanType: "some_boolean",
    TextType: "some_text",
}  # fmt: skip
_ANY = "|".join(_KINDS)
NAME = re.compile(
    rf"(?:(?<=\()|(?<=, )|(?<=BY )|(?<=WHERE )|(?<=WHEN ))(?:{_ANY})(?![\w'\"])|(?<![\w'\"])(?:{_ANY})(?= [-<>=/*+] ?)"
)
"""A name where it is part of SQL, not of a sentence."""


def fitted(error: QueryError, statement: str, columns: Mapping[str, Type]) -> QueryError:
    """The same error, with these columns in what it suggests.

    Example:
        >>> from privet.errors import Remedy
        >>> from privet.exact import Exact
        >>> error = QueryError("a cast", remedy=Remedy("Write COALESCE(income, 0)"))
        >>> salary = NumberType(Exact(0), Exact(9))
        >>> print(fitted(error, "SELECT CAST(x)", {"Work Place": KeyType(("a",)), "salary": salary}))
        a cast. Write COALESCE(salary, 0)
    """
    known = {name.casefold() for name in columns} | {word.casefold() for word in re.findall(r"\w+", statement)}

    chosen: dict[str, str] = {}

    def instead(found: re.Match[str]) -> str:
        name = found[0]
        if name in known:
            return name
        if name not in chosen:
            kinds = _KINDS[name]
            fitting = [in_sql(Column(each)) for kind in kinds for each, its in columns.items() if isinstance(its, kind)]
            free = [each for each in fitting if each not in chosen.values() and each not in _KINDS]
            chosen[name] = free[0] if free else _PLACEHOLDERS[kinds[0]]
        return chosen[name]

    error.allowed = NAME.sub(instead, error.allowed)
    if error.remedy is not None:
        advice, line = (NAME.sub(instead, text) for text in (error.remedy.advice, error.remedy.sql))
        error.remedy = replace(error.remedy, advice=advice, sql=line)
    return error
