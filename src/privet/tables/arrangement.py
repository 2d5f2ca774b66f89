"""Which rows and columns of an answer are shown, and in which order: post-processing, which costs nothing.

It reads only released numbers and public keys. Hidden columns are measured and paid for like all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

from privet.errors import QueryError, Remedy, Subject, write
from privet.names.spelling import there_are
from privet.tables import computed
from privet.tables.analysis.advice import never_true
from privet.tables.analysis.constant_conditions import nevers
from privet.tables.analysis.outcomes import Known, outcomes
from privet.tables.analysis.ranges import only
from privet.tables.expressions.nodes import Column, Compare, Constant, IsIn, Logic, Node, Not, Types
from privet.tables.expressions.rendering import show
from privet.tables.expressions.trees import parts, sized
from privet.tables.expressions.typing_rules import as_boolean
from privet.tables.operators import Columns
from privet.tables.types import MOST_GROUPS, KeyValue, NumberType
from privet.tables.units import LARGEST

Values = tuple[KeyValue, ...]
RELEASED = NumberType(-LARGEST, LARGEST, missing=False, wide=True)
"""The type of a released number, before it is known."""

READABLE = (Column, Constant, Compare, Logic, Not, IsIn)
"""The nodes that a condition on an answer may contain."""


@dataclass(frozen=True, slots=True)
class Order:
    """A column of the answer to sort by; keys sort in the order of their declaration."""

    column: str
    descending: bool = False

    def __post_init__(self) -> None:
        if type(self.column) is not str or type(self.descending) is not bool:
            raise QueryError("an order needs the name of a column, and whether it is descending")

    def __str__(self) -> str:
        return f"{self.column} descending" if self.descending else self.column


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The rows for which `having` is true, in this order, the first `limit` of them; `hidden` columns are not shown.

    Claim: it depends only on the released answer, not on the order in which its parts were set.
    """

    having: Node | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    hidden: tuple[str, ...] = ()
    computed: tuple[tuple[str, Node], ...] = ()
    """Further columns: formulas of the others."""
    first: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        computed.checked(self.computed)
        if self.having is not None:
            _readable(sized(self.having))
        if not all(isinstance(order, Order) for order in self.order):
            raise QueryError("an answer can be sorted only by its columns")
        names = [order.column for order in self.order]
        if len(set(names)) < len(names):
            raise QueryError("order_by: each column can be listed only once")
        if self.limit is not None and (type(self.limit) is not int or not 1 <= self.limit <= MOST_GROUPS):
            raise QueryError(f"limit must be 1 to {MOST_GROUPS:,}", remedy=write("limit(10)", sql="LIMIT 10"))
        if list(self.hidden) != sorted({*self.hidden}):
            raise QueryError("hide: each name can be listed only once")

    def check(
        self, keys: Types, numbers: Types, columns: Mapping[str, Sequence[str]], values: Mapping[str, Values]
    ) -> None:
        """Refuse an arrangement that does not fit these keys, numbers, columns (by aggregate) and groups."""
        known_columns = Columns({**keys, **numbers}, frozenset(keys))
        if self.having is not None:
            as_boolean(self.having.type(known_columns), "having")
            for never in nevers(self.having, known_columns):
                raise never_true(never)
            if {*keys} & names(self.having) <= {*values} and not can_pass(self.having, keys, values):
                raise QueryError(
                    f"having: no group can satisfy {show(self.having)}, whatever its numbers are",
                    remedy=Remedy("Remove one of the conditions"),
                )
        for name in (order.column for order in self.order):
            if name not in known_columns:
                raise QueryError(
                    f"order_by: the answer has no column {name!r}",
                    allowed=there_are(name, known_columns),
                    subject=Subject("column", name),
                )
        for name in self.hidden:
            if name not in columns:
                raise QueryError(
                    f"hide: the answer has no column {name!r}", allowed=f"The columns are: {', '.join(columns)}"
                )
        for name in self.first:
            if name not in columns or name in self.hidden:
                shown = [each for each in columns if each not in self.hidden]
                raise QueryError(f"in_order: the answer shows no column {name!r}", allowed=there_are(name, shown))
        if self.hidden and len(self.hidden) == len(columns):
            raise QueryError("hide: at least one column of numbers must remain visible")

    def chooses_by(self) -> frozenset[str]:
        """The columns that decide which rows are shown."""
        sorted_by = {order.column for order in self.order} if self.limit is not None else set()
        chosen = frozenset(sorted_by | (set() if self.having is None else names(self.having)))
        return chosen.union(*(computed.reads(node) for name, node in self.computed if name in chosen))

    def __str__(self) -> str:
        clauses = (
            [f" with {', '.join(f'{name} = {show(node)}' for name, node in self.computed)}"] if self.computed else []
        )
        clauses += [] if self.having is None else [f" having {show(self.having)}"]
        clauses += [f" order by {', '.join(map(str, self.order))}"] if self.order else []
        clauses += [] if self.limit is None else [f" limit {self.limit}"]
        return "".join(clauses)


@dataclass(frozen=True, slots=True)
class InOrder(Arrangement):
    """The same, with columns in an order of their own."""

    first: tuple[str, ...] = ()  # type: ignore[misc]
    """The columns that come first, in this order; the others follow, measured ones before computed ones."""

    def __post_init__(self) -> None:
        Arrangement.__post_init__(self)
        if not self.first or len({*self.first}) < len(self.first):
            raise QueryError("in_order: at least one column must be named, and each only once")


EVERYTHING = Arrangement()
"""All rows in the fixed order of their keys, with all columns."""


def names(node: Node) -> set[str]:
    """The columns that an expression reads."""
    return {node.name} if isinstance(node, Column) else {name for part in parts(node) for name in names(part)}


def can_pass(having: Node, keys: Types, values: Mapping[str, Values]) -> bool:
    """Whether some group can satisfy a condition on the answer, judging by its keys; numbers can be anything.

    Example:
        >>> from privet.tables.expressions.fluent import col
        >>> from privet.tables.types import KeyType
        >>> key, listed = {"k": KeyType(("a", "b"))}, {"k": ("a", "b")}
        >>> can_pass(((col("k") == "a") & (col("n") > 5)).node, key, listed)
        True
        >>> can_pass(((col("k") != "a") & (col("k") != "b")).node, key, listed)
        False
    """
    read = [name for name in keys if name in names(having)]
    numbers = {name: RELEASED for name in names(having) if name not in keys}
    for group in product(*(values[name] for name in read)):
        named = dict(zip(read, group, strict=True))
        kinds = {name: only(value, keys[name]) for name, value in named.items()}
        truths = {name: value for name, value in named.items() if isinstance(value, bool)}
        if True in outcomes(having, Known({**numbers, **kinds}, truths=truths)):
            return True
    return False


def _readable(node: Node) -> None:
    if not isinstance(node, READABLE):
        raise QueryError(
            f"having can only compare columns of the answer with each other and with values, but this is {show(node)}",
            remedy=write('having(pv.col("n") >= 100)', sql="HAVING n >= 100"),
        )
    for part in parts(node):
        _readable(part)
