"""Which rows and columns of an answer are shown, and in which order: post-processing, which costs nothing.

It reads released numbers and public keys only. What it hides was measured and paid for like everything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from privet.errors import QueryError
from privet.relation.expressions import Column, Compare, Constant, IsIn, Logic, Node, Not, Types, parts, sized
from privet.relation.language import show
from privet.relation.rules import as_boolean
from privet.relation.types import MOST_GROUPS
from privet.spelling import there_are

READABLE = (Column, Constant, Compare, Logic, Not, IsIn)
"""What a condition on an answer may be made of."""


@dataclass(frozen=True, slots=True)
class Order:
    """A column of the answer that rows are sorted by; keys have the order in which they are declared."""

    column: str
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.column} descending" if self.descending else self.column


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The rows for which `having` is true, in this order, the first `limit` of them; `hidden` columns are not shown.

    Claim: a function of the released answer alone, whatever the order in which its parts were given.
    """

    having: Node | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    hidden: tuple[str, ...] = ()

    def check(self, keys: Types, numbers: Types, columns: Mapping[str, Sequence[str]]) -> None:
        """Refuse what an answer with these keys, numbers and columns (by aggregate) can't be arranged by."""
        known = {**keys, **numbers}
        if self.having is not None:
            _readable(sized(self.having))
            as_boolean(self.having.type(known), "having")
        names = [order.column for order in self.order]
        for name in names:
            if name not in known:
                raise QueryError(f"order_by: the answer has no column {name!r}. {there_are(name, known)}")
        if len(set(names)) < len(names):
            raise QueryError("order_by: a column stands there twice")
        if self.limit is not None and not 1 <= self.limit <= MOST_GROUPS:
            raise QueryError(f"limit must be 1 to {MOST_GROUPS:,}. Write, for example: limit(10)")
        for name in self.hidden:
            if name not in columns:
                raise QueryError(f"hide: the answer has no numbers {name!r}. There are: {', '.join(columns)}")
        if list(self.hidden) != sorted({*self.hidden}):
            raise QueryError("hide: give each name once")
        if len(self.hidden) == len(columns):
            raise QueryError("an answer shows at least one number. Leave one of them in sight")

    def chooses_by(self) -> frozenset[str]:
        """The columns that decide which rows are shown."""
        sorted_by = {order.column for order in self.order} if self.limit is not None else set()
        return frozenset(sorted_by | (set() if self.having is None else names(self.having)))

    def __str__(self) -> str:
        said = [] if self.having is None else [f" having {show(self.having)}"]
        said += [f" order by {', '.join(map(str, self.order))}"] if self.order else []
        said += [] if self.limit is None else [f" limit {self.limit}"]
        return "".join(said)


EVERYTHING = Arrangement()
"""All rows in the fixed order of their keys, with all columns."""


def names(node: Node) -> set[str]:
    """The columns that an expression reads."""
    return {node.name} if isinstance(node, Column) else {name for part in parts(node) for name in names(part)}


def _readable(node: Node) -> None:
    if not isinstance(node, READABLE):
        raise QueryError(
            f"having compares columns of the answer with each other and with values, and this is {show(node)}. "
            'Write, for example: having(pv.col("n") >= 100)'
        )
    for part in parts(node):
        _readable(part)
