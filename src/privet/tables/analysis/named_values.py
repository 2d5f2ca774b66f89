"""The texts that conditions name: `WHERE town IN ('Rome', 'Oslo') GROUP BY town` has two groups.

A text column has no declared values, and which of them occur is private. But values that the analyst writes are part of
the question, not of the data.

Claim: the key that `listed` gives is a function of one row, from the values that the conditions name, or missing; and
it is the value of the given key for every row that the conditions keep. The list follows from the question alone. So
neighbours have the same groups, every group is shown, empty or not, and a person moves the counts as with declared
keys: nothing is chosen by the data, and no delta is needed.
"""

from __future__ import annotations

from privet.system.remembered import remembered
from privet.tables.analysis.conditions import columns, in_terms, rows_of
from privet.tables.analysis.narrowing import possible
from privet.tables.expressions import nodes as e
from privet.tables.expressions.nodes import Node
from privet.tables.operators import Operator
from privet.tables.types import KeyType, TextType

MOST = 400
"""Maximum values that are listed: each is a part of an expression."""


def listed(rows: Operator, key: Node) -> Node:
    """The same key, with the values that the conditions on these rows name; itself, if they don't, or if it has others.

    Example:
        >>> import privet as pv
        >>> from privet.tables.operators import Scan, Where
        >>> from privet.tables.schema import Schema
        >>> homes = Scan(Schema.declare("homes", protect=pv.each_row(), columns={"town": pv.text()}))
        >>> some = Where(homes, (pv.col("town").is_in(["Rome", "Oslo"]) & (pv.col("town") != "Rome")).node)
        >>> listed(some, e.Column("town")).type(some.types()).keys()
        ('Oslo',)
    """
    if not isinstance(key.type(rows.types()), TextType):
        return key
    named = _named(rows, key)
    if not 1 <= len(named) <= MOST:
        return key
    return e.Case(tuple((e.Compare("==", key, e.Constant(text)), e.Constant(text)) for text in named), None)


@remembered(64)
def _named(rows: Operator, key: Node) -> tuple[str, ...]:
    source = rows_of(rows)
    node = in_terms(key, source)
    if node is None or columns(node) & source.modal:
        return ()
    related = [condition for condition in source.conditions if columns(condition) & columns(node)]
    lists = [named for condition in related if (named := _texts(condition, node)) is not None]
    texts = tuple(dict.fromkeys(lists[0])) if lists else ()
    if len(related) < 2 or len(texts) > MOST:
        return texts
    return tuple(str(text) for text in possible(node, KeyType(texts), source)) if texts else ()


def _texts(condition: Node, key: Node) -> list[str] | None:
    """The texts of which a key must be one where a condition is true; None if it names none."""
    match condition:
        case e.Compare("==", left, e.Constant(str() as text)) if left == key:
            return [text]
        case e.Compare("==", e.Constant(str() as text), right) if right == key:
            return [text]
        case e.IsIn(operand, values) if operand == key:
            return [value.value for value in values if isinstance(value.value, str)]
        case e.Logic("or", operands):
            every = [_texts(part, key) for part in operands]
            return None if None in every else [text for texts in every for text in texts or ()]
        case e.Logic("and", operands):
            return next((texts for part in operands if (texts := _texts(part, key)) is not None), None)
    return None
