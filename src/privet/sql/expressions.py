"""Expressions over one row: from the parsed tree to the same nodes that the fluent interface builds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import Any, cast

from sqlglot import exp

from privet.errors import QueryError, UserError, write
from privet.exact import Exact
from privet.names.spelling import there_are
from privet.sql import bounds, hints, patterns
from privet.sql.functions import called, is_aggregate
from privet.sql.grammar import Tree, bare, span, whole
from privet.sql.literals import constant, fitted
from privet.sql.source import SqlText
from privet.tables.analysis.advice import never_true
from privet.tables.analysis.constant_conditions import nevers
from privet.tables.expressions import nodes as e
from privet.tables.expressions import trees
from privet.tables.expressions.fluent import Expr
from privet.tables.expressions.trees import MOST_NODES
from privet.tables.types import UNITS, KeyType

_ARITHMETIC = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_COMPARE = {exp.EQ: "==", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_PARTS = {
    "YEAR": "year", "QUARTER": "quarter", "MONTH": "month", "DAY": "day", "HOUR": "hour", "ISODOW": "weekday",
}  # fmt: skip


@dataclass(slots=True)
class ExpressionReader:
    """Reads expressions; `leaf` gives the node of a column, or of any larger part that has a name."""

    source: SqlText
    types: e.Types
    leaf: Callable[[Tree], e.Node | None]
    _nodes: list[tuple[Tree, e.Node]] = field(default_factory=list)
    _sizes: dict[int, int] = field(default_factory=dict)

    def read(self, tree: Tree) -> e.Node:
        """The node, well typed; an error is shown at the smallest part that causes it."""
        self._nodes.clear()
        self._sizes.clear()
        node = self.operand(tree)
        try:
            trees.sized(node).type(self.types)
        except UserError as error:
            where, why = tree, error
            for part, inner in self._nodes:
                try:
                    inner.type(self.types)
                except UserError as first:
                    where, why = part, first
                    break
            raise self.source.placed(whole(where), why) from None
        self._can_match(node)
        return node

    def _can_match(self, node: e.Node) -> None:
        """Refuse a comparison that no row can satisfy, at the smallest part that contains it."""
        unmet = {(never.leaf, never.value) for never in nevers(node, self.types)}
        for part, inner in self._nodes if unmet else ():
            for never in nevers(inner, self.types):
                if (never.leaf, never.value) not in unmet:  # under NOT
                    continue
                raise self.source.placed(whole(part), never_true(never))

    def condition(self, tree: Tree, where: str) -> e.Node:
        """The node, which must be a condition."""
        node = self.read(tree)
        kind = node.type(self.types)
        if not hasattr(kind, "as_number"):
            raise self.source.refusal(whole(tree), f"{where} needs a condition, such as age >= 18, but this is {kind}")
        return node

    def key(self, tree: Tree) -> e.Node:
        """A key to group by: FLOOR(x / 10) * 10 and WIDTH_BUCKET(x, ...) are bins."""
        inner = bare(tree)
        if isinstance(inner, exp.WidthBucket):
            node = self.read(inner.this)
            return bounds.buckets(self.source, inner, node, bounds.numeric(self.source, inner.this, node, self.types))
        binning = bounds.binned(tree, self.source)
        if binning is None:
            return self.read(tree)
        operand, width = binning
        node = self.read(operand)
        return bounds.bins_of(
            self.source, tree, node, bounds.numeric(self.source, operand, node, self.types, width), width
        )

    # --- nodes ----------------------------------------------------------------------------------

    def operand(self, tree: Tree) -> e.Node:
        """The node of a part; whether it is well typed is checked when the whole is read."""
        node = self.leaf(tree)
        if node is None:
            node = constant(self.source, tree)
        if node is None:
            node = self._compound(tree)
        self._nodes.append((tree, node))
        if self._size(node) > MOST_NODES:  # a part that is used twice, as in COALESCE, counts twice
            raise self._no(
                tree,
                f"an expression can have at most {MOST_NODES:,} parts",
                "Define parts of it in a WITH clause",
            )
        return node

    def _size(self, node: e.Node) -> int:
        if id(node) not in self._sizes:
            self._sizes[id(node)] = 1 + sum(map(self._size, trees.parts(node)))
        return self._sizes[id(node)]

    def _compound(self, tree: Tree) -> e.Node:
        kind: Any = type(tree)
        match tree:
            case exp.Paren():
                return self.operand(tree.this)
            case exp.Neg():
                return e.Arithmetic("-", e.Constant(Exact(0)), self.operand(tree.this))
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
                left, right = self.operand(tree.this), self.operand(tree.expression)
                return e.Arithmetic(cast(Any, _ARITHMETIC[kind]), left, right)
            case exp.And() | exp.Or():
                return trees.joined("and" if kind is exp.And else "or", [self.operand(part) for part in _chain(tree)])
            case exp.Not():
                return e.Not(self.operand(tree.this))
            case exp.EQ() | exp.NEQ() if patterns.cased(tree.this) or patterns.cased(tree.expression):
                return self._same_key(tree)
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                return self._compare(_COMPARE[kind], self._side(tree.this), tree)
            case exp.Between():
                operand = self._side(tree.this)
                low = self._compare(">=", operand, tree, tree.args["low"])
                high = self._compare("<=", operand, tree, tree.args["high"])
                if _turned(low.right, high.right) and not isinstance(tree.parent, exp.Not):
                    ends = [self.source.words(whole(tree.args[end])) for end in ("high", "low")]
                    line = f"BETWEEN {ends[0]} AND {ends[1]}"
                    why = "the bounds are in the wrong order"
                    raise self.source.refusal(whole(tree), why, remedy=write(sql=line, exact=True))
                return e.Logic("and", (low, high))
            case exp.In():
                return self._is_in(tree)
            case exp.Is():
                if not isinstance(tree.expression, exp.Null):
                    sides = [self.source.words(whole(side)) for side in (tree.this, tree.expression)]
                    line = f"{sides[0]} {'<>' if isinstance(tree.parent, exp.Not) else '='} {sides[1]}"
                    why = "IS can be followed only by NULL or NOT NULL"
                    raise self.source.refusal(span(tree), why, remedy=write(sql=line, exact=True))
                return e.IsMissing(self.operand(tree.this))
            case exp.Like() | exp.ILike():
                return self._like(tree)
            case exp.Case():
                return self.case(tree)
        function = called(tree)
        if function is None or function.read is None:
            raise self._refused(tree)
        return function.read(self, tree)

    def _compare(self, operator: str, left: e.Node, tree: Tree, right: Tree | None = None) -> e.Compare:
        """A comparison of `left` with the right side of the tree, or with `right`."""
        right = tree.expression if right is None else right
        other = self._side(right)
        return e.Compare(cast(Any, operator), self._fitted(left, other, tree.this), self._fitted(other, left, right))

    def _side(self, tree: Tree) -> e.Node:
        if isinstance(bare(tree), exp.Null):
            raise self._no(tree, "a comparison with NULL is never true", "Write IS NULL or IS NOT NULL")
        return self.operand(tree)

    def _fitted(self, value: e.Node, like: e.Node, at: Tree) -> e.Node:
        if not isinstance(value, e.Constant):
            return value
        try:
            kind = like.type(self.types)
        except UserError:
            return value  # the other side is ill-typed: the whole is refused later
        return fitted(self.source, bare(at), value, kind)

    def _same_key(self, tree: exp.EQ | exp.NEQ) -> e.Node:
        """LOWER(region) = 'north': one of the keys that are this text in lower case."""
        sides = (tree.this, tree.expression)
        of, text = sides if patterns.cased(tree.this) else sides[::-1]
        match = self._keys_like(tree, of, (self.text(text),))
        return e.Not(match) if isinstance(tree, exp.NEQ) else match

    def _keys_like(self, tree: Tree, of: Tree, texts: tuple[str, ...]) -> e.Node:
        """The keys that are one of these texts, as LOWER or UPPER writes them; each text must be some key."""
        operand, fold = cast(Any, patterns.cased(of))
        node = self.operand(operand)
        every = [
            patterns.matching(self.source, tree, node, self.types, lambda key, text=text: fold(key) == text, text)  # type: ignore[misc]
            for text in texts
        ]
        return e.IsIn(node, tuple(dict.fromkeys(value for one in every for value in one.values)))

    def _is_in(self, tree: exp.In) -> e.Node:
        if patterns.cased(tree.this) and tree.expressions:
            return self._keys_like(tree, tree.this, tuple(map(self.text, tree.expressions)))
        operand = self.operand(tree.this)
        values = []
        for item in tree.expressions:
            value = constant(self.source, item)
            if value is None:
                raise self._no(item, "IN takes a list of values, such as ('north', 'south')")
            values.append(cast(e.Constant, self._fitted(value, operand, item)))
        if not values:
            raise self._no(tree, "IN takes a list of values, such as ('north', 'south')")
        return e.IsIn(operand, tuple(values))

    def _like(self, tree: exp.Like | exp.ILike) -> e.Node:
        """The beginning of a text; or, of declared keys, any pattern."""
        pattern = self.text(tree.expression)
        folded = patterns.cased(tree.this)
        operand = self.operand(tree.this if folded is None else folded[0])
        match: e.Node
        if isinstance(tree, exp.Like) and folded is None and patterns.is_prefix(pattern):
            match = e.StartsWith(operand, pattern[:-1])
        elif "\\" in pattern:
            raise self._no(tree.expression, "a pattern can't contain a backslash", "Write IN ('north', 'south')")
        elif isinstance(tree, exp.Like) and folded is None and not self._is_key(operand):
            raise self._no(tree.expression, "LIKE can match only the beginning of a text, such as 'North%'")
        else:
            matches = patterns.like(pattern, ignore_case=isinstance(tree, exp.ILike))
            fold = str if folded is None else folded[1]
            match = patterns.matching(
                self.source, tree, operand, self.types, lambda key: matches(fold(key)), pattern.strip("%")
            )
        return e.Not(match) if tree.args.get("negate") else match

    def _is_key(self, node: e.Node) -> bool:
        try:
            kind = node.type(self.types)
        except UserError:
            return False  # ill-typed: the whole is refused later
        return isinstance(kind, KeyType) and kind.textual

    def case(self, tree: exp.Case | exp.If) -> e.Node:
        """CASE WHEN, or IF."""
        operand, ifs = (tree.this, tree.args["ifs"]) if isinstance(tree, exp.Case) else (None, [tree])
        compared = None if operand is None else self._side(operand)
        last = tree.args.get("default" if isinstance(tree, exp.Case) else "false")
        branches = []
        for branch in ifs:
            value = branch.args["true"]
            if isinstance(bare(value), exp.Null):
                raise self._no(value, "NULL is allowed only after ELSE", "Negate the condition")
            when = self.operand(branch.this) if compared is None else self._compare("==", compared, tree, branch.this)
            branches.append((when, self.operand(value)))
        if last is None or isinstance(bare(last), exp.Null):
            return e.Case(tuple(branches), None)
        return e.Case(tuple(branches), self.operand(last))

    def coalesce(self, values: list[Tree]) -> e.Node:
        """The first that is not missing."""
        node = self.operand(values[-1])
        for value in reversed(values[:-1]):
            operand = self.operand(value)
            node = e.Case(((e.IsMissing(operand), node),), operand)
        return node

    def truncate(self, tree: Tree) -> e.Node:
        """DATE_TRUNC('month', day)."""
        unit = _word(tree.args["unit"]).lower()
        if unit not in UNITS:
            known = there_are(unit, UNITS, "units", str)
            raise self.source.refusal(span(tree), f"a date can't be truncated to {unit or 'this'}", allowed=known)
        return Expr(self.operand(tree.this)).truncate(cast(Any, unit)).node

    def part(self, part: Tree, moment: Tree) -> e.Node:
        """A part of a date."""
        name = _word(part).upper()
        if name not in _PARTS:
            raise self.source.refusal(
                span(part),
                f"{name} is not a supported part of a date" if name else "this is not a part of a date",
                hints.CALLS.get(name, ""),
                allowed=there_are(name, _PARTS, "parts", str),
            )
        return e.DatePart(self.operand(moment), cast(e.Part, _PARTS[name]))

    def named_part(self, tree: exp.Anonymous) -> e.Node:
        """DATE_PART('year', day)."""
        if len(tree.expressions) != 2:
            raise self._no(tree, "DATE_PART takes a part and a date", "Write DATE_PART('year', day)")
        return self.part(*tree.expressions)

    def clip(self, tree: exp.Anonymous) -> e.Node:
        """CLIP(x, 0, 100)."""
        if len(tree.expressions) != 3:
            raise self._no(tree, "CLIP takes an expression and two numbers", "Write CLIP(income, 0, 100000)")
        operand, *ends = tree.expressions
        low, high = (bounds.bound(self.source, end) for end in ends)
        return e.Clip(self.operand(operand), low, high)

    def one_sided(self, tree: exp.Least | exp.Greatest) -> e.Node:
        """LEAST(GREATEST(x, 0), 10) and the other way round; or one end, if the other is declared."""
        operand, end = bounds.one_end(self.source, tree)
        inner = bare(operand)
        if isinstance(inner, exp.Least | exp.Greatest) and type(inner) is not type(tree):
            operand, other = bounds.one_end(self.source, inner)
            node = self.operand(operand)
        else:
            node = self.operand(operand)
            declared = bounds.numeric(self.source, operand, node, self.types)
            other = declared.lower if isinstance(tree, exp.Least) else declared.upper
        return e.Clip(node, *((other, end) if isinstance(tree, exp.Least) else (end, other)))

    # --- refusals -------------------------------------------------------------------------------

    def text(self, tree: Tree) -> str:
        """A text that is written out."""
        literal = constant(self.source, tree)
        if literal is None or not isinstance(literal.value, str):
            raise self._no(tree, "this must be text in quotes, such as 'North%'")
        return literal.value

    def _no(self, at: Tree, what: str, advice: str = "") -> QueryError:
        return self.source.refusal(span(at), what, advice)

    def _refused(self, tree: Tree) -> QueryError:
        name = self.source.words(span(tree))
        if is_aggregate(tree):
            return self._no(tree, f"the aggregate {name} can't be combined with the values of single rows")
        match tree:
            case exp.Null():
                return self._no(tree, "NULL is not allowed here", "It is allowed in IS NULL and ELSE NULL")
            case exp.WidthBucket():
                return self._no(tree, "WIDTH_BUCKET is supported only in GROUP BY", "Elsewhere, write FLOOR(x / 10)")
            case exp.Grouping() | exp.GroupingId():
                advice = f"Put {name} into a column of its own; in the totals, the key itself is NULL"
                return self._no(tree, f"{name} is a number of the answer, so rows and keys can't be made of it", advice)
            case exp.Nullif() | exp.Round():
                return self._no(tree, *hints.call(name))
            case exp.Anonymous() if name.upper().startswith("DP_INTERVAL"):
                return self._no(tree, f"{name} takes a column of the answer", f"Write COUNT(*) AS n, {name}(n)")
            case exp.Lower() | exp.Upper():
                text = "'NORTH'" if isinstance(tree, exp.Upper) else "'north'"
                why = f"{name} is supported only in comparisons with text, such as {name}(region) = {text}"
                return self._no(tree, why)
            case exp.Select() | exp.Subquery():
                return self._no(tree, "a SELECT is not allowed here", "Put it in FROM or WITH")
        return self._no(tree, f"{name} is not allowed here")


def _turned(low: e.Node, high: e.Node) -> bool:
    """Whether the first of two numbers or moments is the larger."""
    if not isinstance(low, e.Constant) or not isinstance(high, e.Constant):
        return False
    ordered = all(isinstance(end.value, Exact | date) for end in (low, high))
    return ordered and type(low.value) is type(high.value) and low.value > high.value  # type: ignore[operator]


def _chain(tree: Tree) -> list[Tree]:
    """The operands of a chain of ANDs or of ORs."""
    kind: type[Tree] = type(tree)
    operands: list[Tree] = []
    while type(tree) is kind:
        operands.append(tree.expression)
        tree = tree.this
    return [tree, *reversed(operands)]


def _word(tree: object) -> str:
    """A word, with or without quotes: year, 'year'."""
    match tree:
        case exp.Var() | exp.Literal():
            return str(tree.this)
        case exp.Column() if tree.args.get("table") is None:
            return str(tree.this.this)
    return ""
