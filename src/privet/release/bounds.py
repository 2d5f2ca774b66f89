"""Released bounds: a range, what is known of it, and the line that clips to it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from html import escape
from typing import Any

from privet.exact import Exact, down, show, up
from privet.ledger import Remaining
from privet.planner.bounds import Found, Range, plain
from privet.planner.outputs import Cell
from privet.privacy.guarantees import Guarantee
from privet.privacy.guarantees.budgets import amount
from privet.release.answer import Release
from privet.release.render.numerals import numerals
from privet.release.render.text import wrapped
from privet.tables.expressions.fluent import Expr
from privet.tables.expressions.nodes import Clip, Node
from privet.tables.expressions.rendering import in_python, in_sql
from privet.tables.expressions.rendering import show as show_node
from privet.tables.query import Query
from privet.tables.relation import Relation

NAME = "bounds"
"""The name of the aggregate in the question."""


@dataclass(frozen=True, slots=True, repr=False)
class ReleasedBounds:
    """Bounds for a column or an expression, found privately and paid for.

    Claim: everything here is computed from the noisy counts of the release and from public facts.
    """

    release: Release
    """The answer that they come from."""

    @property
    def query(self) -> Query:
        """The question that found them."""
        return self.release.plan.query

    @property
    def expression(self) -> Node:
        """What the bounds are for."""
        ((_, aggregate),) = self.query.aggregates
        return aggregate.expression  # type: ignore[return-value, union-attr]

    @property
    def range(self) -> Range:
        """The exact ends, and the bins between them."""
        plan = self.release.plan
        output = plan.columns[0][1]
        assert isinstance(output, Found)
        return output.ranges([[part[0] for part in self.release.noisy]], plan.noise)[0]

    @property
    def lower(self) -> Cell:
        """The lower bound."""
        return plain(self.range.lower, down)

    @property
    def upper(self) -> Cell:
        """The upper bound."""
        return plain(self.range.upper, up)

    @property
    def found(self) -> bool:
        """Whether values stood out from the noise. If not, these are the widest bounds there can be."""
        return self.range.found

    @property
    def inside(self) -> float:
        """The estimated share of the values between the bounds."""
        return float(self._share()[0])

    @property
    def inside_at_least(self) -> float:
        """The share of the values that are between the bounds, at least, with the confidence of the answer."""
        return float(self._share()[1])

    def _share(self) -> tuple[Cell, Cell, Cell]:
        cells = self.release.shown[f"{NAME} inside"]
        return cells.values[0], cells.low[0], cells.high[0]

    @property
    def clipped(self) -> Expr:
        """The expression, clipped to these bounds: for `pv.mean(found.clipped)`."""
        return Expr(self._clip())

    def _clip(self) -> Clip:
        return Clip(self.expression, self.range.lower, self.range.upper)

    @property
    def python(self) -> str:
        """The line to write in Python."""
        return in_python(self._clip())

    @property
    def sql(self) -> str:
        """The line to write in SQL."""
        return in_sql(self._clip())

    @property
    def meaning(self) -> str:
        """What is known of these bounds, in words: only what follows from the noisy counts."""
        name = show_node(self.expression)
        if not self.found:
            return (
                f"No range of {name} stood out from the noise, so these are the widest bounds that {name} can have. "
                f"Nothing was learned about its values. Ask with a larger epsilon, or about more rows."
            )
        share, least, most = self._share()
        if least == most:
            return (
                f"These are the widest bounds that {name} can have. Whether values were outside of them before the "
                "limits below is not known; `diagnose` tells."
            )
        about, _ = numerals(100 * share, 100 * least, 100 * most, around=False)
        level, sure = show(self.release.plan.confidence * 100), math.floor(100 * Exact(least))
        known = f"at least {sure} %, with {level} % confidence" if sure else "nothing is sure, the noise is too large"
        return f"About {about} % of the values of {name} lie inside: {known}."

    @property
    def spent(self) -> Guarantee:
        """The cost of this release."""
        return self.release.spent

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the answer, which is also its cost, whether paid now or before."""
        return self.release.guarantee

    @property
    def remaining(self) -> Remaining | None:
        """The budget that remains afterwards; None if unknown."""
        return self.release.remaining

    @property
    def paid_before(self) -> bool:
        """Whether the answer was already stored, so that nothing was spent now."""
        return self.release.paid_before

    @property
    def certificate(self) -> Any:
        """The claim, to be checked by anyone."""
        return self.release.certificate

    def notes(self) -> list[str]:
        """What the bounds mean, which limits shaped them, and what they cost."""
        limits = self.release.limits
        before = [f"The values are those that the limits leave: {'; '.join(limits)}."] if limits else []
        empty = "With probability 0.999 or more, values lie in the last bin at each end."
        return [self.meaning, *([empty] if self.found else []), *before, self.release.notes()[-1]]

    def to_json(self) -> dict[str, Any]:
        """The bounds for programs."""
        share, least, _ = self._share()
        return {
            "expression": show_node(self.expression),
            "lower": self.lower,
            "upper": self.upper,
            "found": self.found,
            "inside": share,
            "inside_at_least": least,
            "confidence": self.release.confidence,
            "meaning": self.meaning,
            "python": self.python,
            "sql": self.sql,
            "guarantee": amount(self.guarantee),
            "spent": amount(self.spent),
            "paid_before": self.paid_before,
            "limits": list(self.release.limits),
        }

    def __str__(self) -> str:
        head = f"{show_node(self.expression)}: {_number(self.range.lower)} to {_number(self.range.upper)}"
        lines = ["", f"In Python  {self.python}", f"In SQL     {self.sql}", ""]
        return "\n".join([head, *lines, *wrapped(self.notes())])

    def __repr__(self) -> str:
        return f"<Bounds of {show_node(self.expression)}: {json.dumps([self.lower, self.upper])}, {self.guarantee}>"

    def _repr_html_(self) -> str:
        ends = f"{_number(self.range.lower)} to {_number(self.range.upper)}"
        lines = "".join(f"<div><code>{escape(line)}</code></div>" for line in (self.python, self.sql))
        foot = "<br>".join(map(escape, self.notes()))
        return f"<div><b>{escape(show_node(self.expression))}</b>: {ends}</div>{lines}<small>{foot}</small>"


def _number(end: Exact) -> str:
    if end.denominator != 1:
        return show(end)
    return f"{end.numerator:,}" if abs(end) >= 10_000 else str(end.numerator)  # 1964 may be a year


def question(rows: Relation, of: Any) -> Query:
    """The question that finds the bounds of a column or an expression."""
    from privet.tables.aggregates import approx_bounds

    return rows.agg(**{NAME: approx_bounds(of)})
