"""How a name is written in SQL: as it is, or in double quotes where the reader of statements needs them."""

from __future__ import annotations

import re
from functools import lru_cache

from privet.errors import QueryError
from privet.privacy.adjacency import each_row
from privet.sql import parse
from privet.tables.query import Table
from privet.tables.schema import Schema, boolean

_PLAIN = re.compile(r"[^\W\d]\w*")


@lru_cache(maxsize=10_000)
def quoted(name: str) -> str:
    """The name as it must be written in a statement.

    Claim: a statement with the result in the place of a column or of a table means just this name.

    Example:
        >>> print(quoted("age"), quoted("limit"), quoted("2B"), quoted("net pay"))
        age "limit" "2B" "net pay"
    """
    safe = '"' + name.replace('"', '""') + '"'
    if not _PLAIN.fullmatch(name):
        return safe
    table = Table(Schema.declare(name, protect=each_row(), columns={name: boolean()}), None)
    asked = "SELECT {0}, COUNT(*) AS n_ FROM {0} WHERE {0} GROUP BY {0}"
    try:
        same = parse(asked.format(name), {name: table}) == parse(asked.format(safe), {name: table})
    except QueryError:
        same = False
    return name if same else safe
