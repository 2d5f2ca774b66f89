"""Values per person: what `per_person` computes from all rows of one person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from privet.errors import NoBounds, QueryError, write
from privet.exact import Exact
from privet.tables.expressions.nodes import Clip, Node, Types
from privet.tables.expressions.rendering import in_python, in_sql, show
from privet.tables.expressions.trees import sized
from privet.tables.expressions.typing_rules import as_number
from privet.tables.schema import CEILING
from privet.tables.types import NumberType, Type
from privet.tables.units import Range, mean, summable
from privet.tables.units import sized as sized_range


@dataclass(frozen=True, slots=True)
class OfPerson:
    """A value per person: the number of rows, or the sum, mean, minimum or maximum of an expression."""

    function: Literal["count", "sum", "mean", "min", "max"]
    expression: Node | None = None

    def __post_init__(self) -> None:
        if self.function not in ("count", "sum", "mean", "min", "max"):
            raise QueryError(f"{self.function!r} can't be computed per person")
        if self.expression is not None:
            sized(self.expression)
        elif self.function != "count":
            raise QueryError(f"{self.function} needs an expression")

    def type(self, schema: Types) -> Type:
        if self.function == "count":
            if self.expression is not None:
                self.expression.type(schema)
            return NumberType(Exact(0), Exact(CEILING), integer=True, missing=False, wide=True)
        assert self.expression is not None
        number = as_number(self.expression.type(schema), self.function)
        if self.function in ("min", "max"):
            return number
        if number.wide:
            clipped = Clip(self.expression, Exact(0), Exact(1000))
            raise NoBounds(
                f"the {self.function} of {show(self.expression)} per person needs bounds",
                remedy=write(in_python(clipped), sql=in_sql(clipped)),
            )
        if self.function == "mean":
            found = mean(number.range, CEILING)
            exact = number.range.constant is not None and found.shift == 0 and not number.rounded
            return NumberType.of(found.result, rounded=not exact, missing=number.missing)
        each = number.range.coarser(summable(number.range, CEILING))
        total = sized_range(Range(each.unit, min(each.least, 0) * CEILING, max(each.most, 0) * CEILING))
        return NumberType.of(total, rounded=number.rounded, missing=number.missing, wide=True)
