"""How to write a name in SQL: as it is, or in double quotes where the parser needs them."""

from __future__ import annotations

import re
from functools import lru_cache

from privet.errors import QueryError
from privet.privacy.adjacency import each_row
from privet.sql import parse
from privet.tables.relation import Table
from privet.tables.schema import Schema, boolean

_PLAIN = re.compile(r"[^\W\d]\w*")


@lru_cache(maxsize=10_000)
def quoted(name: str) -> str:
    """The name as it must be written in a statement.

    Claim: in a statement, the result used as a column or a table means exactly this name.

    Example:
        >>> print(quoted("age"), quoted("limit"), quoted("2B"), quoted("net pay"))
        age "limit" "2B" "net pay"
    """
    safe = '"' + name.replace('"', '""') + '"'
    if not _PLAIN.fullmatch(name):
        return safe
    table = Table(Schema.declare(name, protect=each_row(), columns={name: boolean()}), None)
    statement = "SELECT {0}, COUNT(*) AS n_ FROM {0} WHERE {0} GROUP BY {0}"
    try:
        same = parse(statement.format(name), {name: table}) == parse(statement.format(safe), {name: table})
    except QueryError:
        same = False
    return name if same else safe
