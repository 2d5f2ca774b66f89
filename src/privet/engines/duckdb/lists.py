"""Lists of public texts as types of DuckDB. A cursor keeps the last few: to create one takes as long as a small query.

Claim: what a cursor keeps depends on declarations and questions, and on no row. The name of a list follows from its
texts, so a type that is kept is always the one that a statement means.
"""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from duckdb import DuckDBPyConnection

_MOST_LISTS, _MOST_TEXTS = 32, 100_000  # for each cursor
_LISTED = "SELECT v FROM (SELECT unnest($1::VARCHAR[]) AS v, unnest(range(len($1::VARCHAR[]))) AS i) ORDER BY i"


class Lists:
    """The types of each cursor: their names, the one used last at the end, and how many texts each has."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[DuckDBPyConnection, dict[str, int]] = WeakKeyDictionary()

    def provide(self, cursor: DuckDBPyConnection, lists: Mapping[tuple[str, ...], str]) -> None:
        """Create those of these types that the cursor does not have."""
        kept = self._kept.setdefault(cursor, {})
        for texts, name in lists.items():
            if kept.pop(name, None) is None:
                cursor.execute(f"CREATE TEMP TYPE {name} AS ENUM ({_LISTED})", [list(texts)])  # of this cursor alone
            kept[name] = len(texts)

    def tidy(self, cursor: DuckDBPyConnection) -> None:
        """Remove types until few enough are left, those first that were not used for the longest time."""
        kept = self._kept.get(cursor, {})
        while len(kept) > _MOST_LISTS or sum(kept.values()) > _MOST_TEXTS:
            name = next(iter(kept))
            cursor.execute(f"DROP TYPE {name}")
            del kept[name]
