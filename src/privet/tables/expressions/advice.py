"""Conditions to suggest in place of one that is not allowed."""

from __future__ import annotations

import math

from privet.errors import Remedy, write
from privet.exact import Exact
from privet.tables.expressions.nodes import Column, Compare, Constant, Node
from privet.tables.expressions.rendering import in_python, in_sql
from privet.tables.types import BooleanType, KeyType, NumberType, TimeType, Type


def allowed_condition(name: str, kind: Type, ordered: bool) -> Remedy:
    """A condition on this column that its type allows; a comparison by order if it is `ordered` and the type is.

    Example:
        >>> allowed_condition("paid", BooleanType(missing=False), ordered=True).render("sql")
        'A boolean is a condition. Write, for example: paid, or NOT paid'
    """
    node = Column(name)
    condition: Node
    match kind:
        case BooleanType():
            python, sql = in_python(node), in_sql(node)
            return write(f"{python}, or ~{python}", sql=f"{sql}, or NOT {sql}", advice="A boolean is a condition")
        case NumberType():
            middle = Exact(math.floor((kind.lower + kind.upper) / 2))
            sensible = Exact(100) if kind.wide else middle if kind.lower < middle else kind.upper
            condition = Compare(">=" if ordered else "==", node, Constant(sensible))
        case TimeType():
            condition = Compare(">=", node, Constant(kind.first))
        case KeyType():
            key = kind.values[0]
            condition = Compare("==", node, Constant(Exact(key) if isinstance(key, int) else key))
        case _:
            condition = Compare("==", node, Constant("north"))
    return write(in_python(condition), sql=in_sql(condition))
