"""The allow-list for parsed trees: every kind of node, with every argument that it may have. All else is refused.

The tree is sqlglot's, which can express far more than a question. A node or an argument that is not listed here is
refused, whatever a later version of the parser accepts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise

from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.tokenizer_core import Token, TokenType

from privet.sql import functions, hints
from privet.sql.source import Span, SqlText
from privet.sql.tokens import DIALECT, KEYWORDS

MOST_NODES = 2_000
DEEPEST = 100
"""The maximum number of nodes, and the maximum depth; a chain of AND or OR counts once."""

Tree = exp.Expr

_BINARY = (exp.Add, exp.Sub, exp.Mul, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Is)
_UNARY = (exp.Paren, exp.Neg, exp.Not, exp.Where, exp.Having, exp.From)
_ARGUMENTS: dict[type[Tree], str] = {
    exp.Select: "expressions from_ joins where group having order limit with_",
    exp.Subquery: "this alias",
    exp.With: "expressions",
    exp.CTE: "this alias",
    exp.Table: "this alias",
    exp.TableAlias: "this",
    exp.Join: "this on using side kind",
    exp.Group: "expressions",
    exp.Rollup: "expressions",
    exp.Cube: "expressions",
    exp.GroupingSets: "expressions",
    exp.Tuple: "expressions",
    exp.Order: "expressions",
    exp.Ordered: "this desc nulls_first",
    exp.Limit: "expression",
    exp.Alias: "this alias",
    exp.Identifier: "this quoted",
    exp.Column: "this table",
    exp.Star: "",
    exp.Literal: "this is_string",
    exp.Boolean: "this",
    exp.Null: "",
    exp.Var: "this",
    exp.Cast: "this to",
    exp.DataType: "this nested",
    **dict.fromkeys(_BINARY, "this expression"),
    **dict.fromkeys(_UNARY, "this"),
    exp.Div: "this expression typed safe",
    exp.In: "this expressions",
    exp.Between: "this low high",
    exp.Like: "this expression negate",
    exp.ILike: "this expression negate",
    exp.Filter: "this expression",
    exp.Window: "this partition_by over",
    exp.Case: "this ifs default",
    exp.If: "this true false",
    exp.Distinct: "expressions",
    exp.WithinGroup: "this expression",
    **functions.arguments(),
}
ARGUMENTS = {kind: frozenset(names.split()) for kind, names in _ARGUMENTS.items()}
"""Every allowed kind of node, and its arguments."""

SHAPES: dict[tuple[type[Tree], str], tuple[type[Tree], ...]] = {
    (exp.Column, "this"): (exp.Identifier,),
    (exp.Column, "table"): (exp.Identifier,),
    (exp.Alias, "alias"): (exp.Identifier,),
    (exp.TableAlias, "this"): (exp.Identifier,),
    (exp.CTE, "alias"): (exp.TableAlias,),
    (exp.Table, "alias"): (exp.TableAlias,),
    (exp.Table, "this"): (exp.Identifier,),
    (exp.Subquery, "alias"): (exp.TableAlias,),
    (exp.Subquery, "this"): (exp.Select, exp.Subquery),
    (exp.From, "this"): (exp.Table, exp.Subquery),
    (exp.Join, "this"): (exp.Table, exp.Subquery),
    (exp.Join, "using"): (exp.Identifier,),
    (exp.With, "expressions"): (exp.CTE,),
    (exp.Order, "expressions"): (exp.Ordered,),
    (exp.Case, "ifs"): (exp.If,),
    (exp.Filter, "expression"): (exp.Where,),
    (exp.Cast, "to"): (exp.DataType,),
    (exp.WithinGroup, "expression"): (exp.Order,),
}
"""The kinds of node that are allowed in structural arguments."""

INSIDE: dict[type[Tree], tuple[type[Tree], ...]] = {
    exp.Rollup: (exp.Group, exp.GroupingSets),
    exp.Cube: (exp.Group, exp.GroupingSets),
    exp.GroupingSets: (exp.Group, exp.GroupingSets),
    exp.Tuple: (exp.Rollup, exp.Cube, exp.GroupingSets),
}
"""The kinds of node that are allowed only inside certain others."""

CALLED = functions.names()
"""The allowed names of each function; other names for the same node can mean something else."""

_STAR = "Rows are private; ask for aggregates, such as COUNT(*)"
_STAR_INSIDE = "Name the columns that the outer SELECT needs, or ask the table itself"
_PARTS: dict[str, hints.Refusal] = {
    "query": ("a subquery in IN is not supported", "Join the tables on the person id instead"),
    "joins": ("a join in parentheses is not supported", "Write the joins one after the other"),
    "expressions": ("only one argument is allowed here", ""),
    "columns": ("column names after a table's alias are not supported", "Name the columns with AS inside its SELECT"),
    "db": ("schema names are not supported", "Write only the table's name"),
    "laterals": hints.word("LATERAL"),
    "offset": hints.word("OFFSET"),
    "distinct": hints.word("DISTINCT"),
    "method": ("this kind of join is not supported", "Write JOIN ... ON ..., or LEFT JOIN with a public table"),
    "decimals": ("rounding to a number of digits is not supported", "Write FLOOR(x) or CEIL(x)"),
    "order": ("ORDER BY is not supported with OVER", "A total is SUM(COUNT(*)) OVER ()"),
    "sample": hints.word("USING SAMPLE"),
    "rollup": ("WITH ROLLUP is not supported", "Write GROUP BY ROLLUP (region, town)"),
    "cube": ("WITH CUBE is not supported", "Write GROUP BY CUBE (region, town)"),
    "materialized": ("MATERIALIZED is not supported", "Remove it"),
    "recursive": hints.word("RECURSIVE"),
}


def parsed(source: SqlText, tokens: list[Token], names: Collection[str] = ()) -> exp.Select:
    """The tree of a statement; an error if a part of it is not allowed. `names` are the catalogue's, in lower case."""
    try:
        trees = DIALECT.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, source.text)
    except ParseError as error:
        raise _unreadable(source, tokens, error, names) from None
    except RecursionError:
        raise source.refusal(
            Span(0, 0), "the statement is nested too deeply", "Define parts of it in a WITH clause"
        ) from None
    except Exception:  # whatever the parser raises, the text is at fault
        raise source.refusal(Span(0, 0), "this is not valid SQL") from None
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Expr):
        raise source.refusal(Span(0, 0), "this is not valid SQL")
    _place(tree, tokens)
    _check(source, tree)
    if not isinstance(tree, exp.Select):
        raise source.refusal(span(tree), "a question must begin with SELECT or WITH")
    return tree


def span(node: Tree) -> Span:
    """The position of a node: its name if it has one, else all of its parts, else its parent."""
    if "start" in node.meta:
        return Span(node.meta["start"], node.meta["end"])
    return whole(node)


def bare(node: Tree) -> Tree:
    """The node without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def whole(node: Tree) -> Span:
    """From the first to the last known character of a node."""
    places = [part.meta for part in node.walk() if "start" in part.meta]
    if places:
        return Span(min(meta["start"] for meta in places), max(meta["end"] for meta in places))
    return span(node.parent) if node.parent is not None else Span(0, 0)


_CLAUSES: dict[type[Tree], str] = {
    exp.Select: "SELECT", exp.Group: "GROUP BY", exp.Having: "HAVING", exp.Order: "ORDER BY", exp.Limit: "LIMIT",
    exp.Join: "JOIN", exp.Where: "WHERE",
}  # fmt: skip


def _place(tree: Tree, tokens: list[Token]) -> None:
    """Set the positions of clauses and of functions with special syntax; the parser leaves them out."""
    for word, words in ((exp.Null, ("NULL",)), (exp.Boolean, ("TRUE", "FALSE"))):
        nodes = [node for node in tree.walk(bfs=False) if isinstance(node, word)]
        for literal, token in zip(nodes, [token for token in tokens if _is_word(token, words)], strict=False):
            literal.meta.update(start=token.start, end=token.end)
    for node in reversed(list(tree.walk())):  # the deepest first: a call begins before everything in its parentheses
        kind = type(node)
        call = isinstance(node, exp.Func) and (kind in CALLED or kind not in ARGUMENTS)
        if "start" in node.meta or not (call or kind in _CLAUSES):
            continue
        items = node.args.get("expressions") if kind is exp.Select else None
        first = whole(items[0] if items else node).start
        before = [token for token in tokens if token.start < first]
        name = _call_name(before) if call else None
        for token in reversed(before) if name is None else (name,):
            if token is name or token.text.upper() == _CLAUSES.get(kind):
                node.meta.update(start=token.start, end=token.end)
                break


def _is_word(token: Token, words: tuple[str, ...]) -> bool:
    return token.token_type in (TokenType.NULL, TokenType.TRUE, TokenType.FALSE) and token.text.upper() in words


def _call_name(before: list[Token]) -> Token | None:
    """The name of the innermost call whose parenthesis is still open after these tokens."""
    closed = 0
    for name, bracket in reversed(list(pairwise(before))):
        if bracket.token_type is TokenType.R_PAREN:
            closed += 1
        elif bracket.token_type is TokenType.L_PAREN and closed:
            closed -= 1
        elif bracket.token_type is TokenType.L_PAREN and name.text[:1].isalpha() and name.token_type not in KEYWORDS:
            return name
    return None


def _check(source: SqlText, tree: Tree) -> None:
    pile: list[tuple[Tree, int]] = [(tree, 1)]
    left = MOST_NODES
    while pile:
        node, depth = pile.pop()
        left -= 1
        if left < 0:
            raise source.refusal(
                Span(0, 0), f"a statement can have at most {MOST_NODES:,} parts", "Split it into several questions"
            )
        if depth > DEEPEST:
            raise source.refusal(
                span(node), f"this is nested more than {DEEPEST} levels deep", "Define parts of it in a WITH clause"
            )
        _check_node(source, node)
        chain = isinstance(node, exp.And | exp.Or)
        children = list(_children(node))
        pile += [(part, depth + (not (chain and type(part) is type(node)))) for part in reversed(children)]


def _check_node(source: SqlText, node: Tree) -> None:
    allowed = ARGUMENTS.get(type(node))
    if type(node) in INSIDE and not isinstance(node.parent, INSIDE[type(node)]):
        allowed = None
    nested = node.find_ancestor(exp.Subquery, exp.CTE) is not None
    called = source.text[node.meta["start"] : node.meta["end"] + 1] if "start" in node.meta else ""
    if allowed is None:
        inner = next((part for part in node.walk() if isinstance(part, exp.Func) and type(part) not in ARGUMENTS), node)
        if inner is not node:
            _check_node(source, inner)
        is_call = called.upper() in hints.CALLS or (isinstance(node, exp.Func) and called[:1].isalpha())
        placed = any("start" in part.meta for part in node.walk())
        name = called or (source.words(whole(node)) if placed else type(node).key.upper())
        raise source.refusal(span(node), *(hints.call(name, per_person=nested) if is_call else hints.word(name)))
    if type(node) in CALLED and called.upper() not in CALLED[type(node)]:
        raise source.refusal(span(node), *hints.call(called or type(node).key.upper(), per_person=nested))
    if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
        raise source.refusal(span(node), "* is not supported", _STAR_INSIDE if nested else _STAR)
    for name, value in node.args.items():
        if name not in allowed and value not in (None, False, "", []):
            part = next(_children_of(value), node)
            where = span(part) if name in ("query", "joins", "columns", "db", "laterals", "offset") else span(node)
            why = _PARTS.get(name, (f"{name.strip('_')} is not supported here", ""))
            raise source.refusal(where, *why)
        shape = SHAPES.get((type(node), name))
        odd = next((part for part in _children_of(value) if shape is not None and not isinstance(part, shape)), None)
        if (
            odd is not None and type(odd) in ARGUMENTS and not isinstance(odd, exp.Star)
        ):  # otherwise its own name is refused later
            select = isinstance(node, exp.Subquery)
            raise source.refusal(
                span(odd), "only a SELECT is allowed in these parentheses" if select else "this must be a name"
            )


def _children(node: Tree) -> Iterator[Tree]:
    for value in node.args.values():
        yield from _children_of(value)


def _children_of(value: object) -> Iterator[Tree]:
    if isinstance(value, exp.Expr):
        yield value
    elif isinstance(value, list):
        yield from (part for part in value if isinstance(part, exp.Expr))


_WORDS = {TokenType.VAR, TokenType.IDENTIFIER}


def _unreadable(source: SqlText, tokens: list[Token], error: ParseError, names: Collection[str]) -> Exception:
    """The parser's error, at the position that it names, with the likely cause."""
    details = error.errors[0] if error.errors else {}
    line, column = details.get("line"), details.get("col")
    place = next((i for i, token in enumerate(tokens) if (token.line, token.col) == (line, column)), len(tokens) - 1)
    at, before = tokens[place], tokens[max(place - 2, 0) : place]
    for token in (at, *reversed(before)):
        reserved = token.token_type not in _WORDS and token.token_type not in (TokenType.STRING, TokenType.NUMBER)
        if reserved and token.text.casefold() in names:
            name = source.text[token.start : token.end + 1]
            why = f"{name} is a word of SQL"
            return source.refusal(Span(token.start, token.end), why, f'As a name, write it in double quotes: "{name}"')
    kinds = [token.token_type for token in (*before, at)]
    if before and before[-1].text.upper() in hints.WORDS:
        return source.refusal(Span(before[-1].start, before[-1].end), *hints.word(before[-1].text))
    if kinds[-3:-1] == [TokenType.ALIAS, TokenType.VAR] and kinds[-1] is TokenType.VAR:
        name = f"{before[-1].text} {at.text}"
        why = f'put a name with spaces in double quotes: "{name}"'
        return source.refusal(Span(before[-1].start, at.end), why)
    if kinds[-1] is TokenType.STRING and kinds[-2:-1] == [TokenType.R_PAREN]:
        return source.refusal(
            Span(at.start, at.end), "single quotes are for text values", "Name a column with AS, without single quotes"
        )
    opened = [token.token_type for token in tokens].count(TokenType.L_PAREN)
    if opened > [token.token_type for token in tokens].count(TokenType.R_PAREN):
        return source.refusal(Span(at.start, at.end), "a parenthesis before this is never closed")
    near = f"'{source.words(Span(at.start, at.end))}'"
    why = f"this is not valid SQL near {near}"
    if at is tokens[-1]:
        why = f"this is not valid SQL: {near} is unexpected, or something is missing after it"
    return source.refusal(Span(at.start, at.end), why)
