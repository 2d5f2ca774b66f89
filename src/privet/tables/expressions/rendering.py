"""An expression as text: for people, and as source code in Python and in SQL, which errors suggest.

Claim: source code, parsed again, is the same expression (in SQL except for bins, which SQL writes with WIDTH_BUCKET and
FLOOR; here they appear as shown to people).
"""

from __future__ import annotations

import re
from datetime import date, datetime

from privet.exact import Exact, literal
from privet.exact import show as show_number
from privet.tables.expressions import nodes as e
from privet.tables.expressions.trees import listed

_RESERVED = frozenset({
    "all", "and", "any", "as", "asc", "between", "by", "case", "cast", "cross", "desc", "distinct", "else", "end",
    "except", "exists", "false", "fetch", "for", "from", "full", "group", "having", "if", "in", "inner", "intersect",
    "interval", "into", "is", "join", "lateral", "left", "like", "limit", "natural", "not", "null", "offset", "on",
    "or", "order", "outer", "over", "partition", "qualify", "right", "rows", "select", "set", "some", "table", "then",
    "true", "union", "unnest", "using", "values", "when", "where", "window", "with",
})  # fmt: skip
_SIGNS = {"==": "=", "!=": "<>"}
_NESTED = (e.Arithmetic, e.Compare, e.Logic, e.Not)


def show(node: e.Node) -> str:
    """An expression as a person would write it: the same in every language, so equality is a plain =.

    Example:
        >>> from privet.tables.expressions.fluent import col
        >>> print(show(((col("region") == "north") & (col("age") != 3)).node))
        (region = 'north') and (age != 3)
    """

    def inner(part: e.Node) -> str:
        return f"({show(part)})" if isinstance(part, (*_NESTED, e.Case)) else show(part)

    match node:
        case e.Column(name):
            return name
        case e.Constant(value):
            if isinstance(value, Exact):
                return show_number(value)
            return repr(value) if isinstance(value, str) else str(value)
        case e.Arithmetic(operator, a, b) | e.Compare(operator, a, b):
            return f"{inner(a)} {'=' if operator == '==' else operator} {inner(b)}"
        case e.Rounded(function, of, digits):
            return f"{function}({show(of)}{f', {digits}' if digits else ''})"
        case e.Clip(of, lower, upper):
            return f"clip({show(of)}, {show_number(lower)}, {show_number(upper)})"
        case e.Logic(operator, of):
            return f" {operator} ".join(map(inner, of))
        case e.Not(of):
            return f"not {inner(of)}"
        case e.IsIn(of, values):
            return f"{inner(of)} in ({', '.join(map(show, values))})"
        case e.IsMissing(of):
            return f"{inner(of)} is missing"
        case e.StartsWith(of, prefix):
            return f"{inner(of)} starts with {prefix!r}"
        case e.Case() if (key := listed(node)) is not None:
            return show(key)
        case e.Case(((condition, value),), None):
            return f"{inner(value)} where {show(condition)}"
        case e.Case(branches, otherwise):
            cases = " ".join(f"when {show(c)} then {show(v)}" for c, v in branches)
            return f"case {cases}{'' if otherwise is None else f' else {show(otherwise)}'} end"
        case e.DatePart(of, part):
            return f"{part}({show(of)})"
        case e.Truncate(of, unit):
            return f"{show(of)} by {unit}"
        case e.Bin(of, edges):
            return f"bins({show(of)}, [{', '.join(map(show_number, edges))}])"
        case e.Which(several, values):
            return f"which of {len(values)} ({', '.join(map(show, several))})"
        case e.OfAnswer(function, name, by):
            return f"{function}({name}{''.join(f', by {key}' for key in by)})"
        case e.Grouping(keys):
            return f"grouping({', '.join(keys)})"
        case e.Beyond(of):
            return f"beyond({show(of)})"


def in_python(node: e.Node) -> str:
    """An expression in Python.

    Example:
        >>> from privet.tables.expressions.fluent import col
        >>> print(in_python(((col("age") >= 18) & col("region").is_in(["north"])).node))
        (pv.col("age") >= 18) & pv.col("region").is_in(["north"])
    """

    def inner(part: e.Node) -> str:
        return f"({in_python(part)})" if isinstance(part, _NESTED) else in_python(part)

    match node:
        case e.Column(name):
            return f"pv.col({_quoted(name)})"
        case e.Constant(value):
            return constant_in_python(value)
        case e.Arithmetic(operator, a, b) | e.Compare(operator, a, b):
            return f"{inner(a)} {operator} {inner(b)}"
        case e.Rounded("abs", of):
            return f"abs({in_python(of)})"
        case e.Rounded(function, of, digits):
            return f"{inner(of)}.{function}({digits or ''})"
        case e.Clip(of, lower, upper):
            return f"{inner(of)}.clip({literal(lower)}, {literal(upper)})"
        case e.Logic(operator, several):
            return {"and": " & ", "or": " | "}[operator].join(map(inner, several))
        case e.Not(of):
            return f"~{inner(of)}"
        case e.IsIn(of, values):
            return f"{inner(of)}.is_in([{', '.join(map(in_python, values))}])"
        case e.IsMissing(of):
            return f"{inner(of)}.is_null()"
        case e.StartsWith(of, prefix):
            return f"{inner(of)}.starts_with({_quoted(prefix)})"
        case e.Case(branches, otherwise):
            cases = ".".join(f"when({in_python(when)}, {in_python(then)})" for when, then in branches)
            return f"pv.{cases}.otherwise({'' if otherwise is None else in_python(otherwise)})"
        case e.DatePart(of, part):
            return f"{inner(of)}.{part}()"
        case e.Truncate(of, unit):
            return f"{inner(of)}.truncate({_quoted(unit)})"
        case e.Bin(of, edges):
            return f"pv.bins({in_python(of)}, [{', '.join(map(literal, edges))}])"
        case e.Which():  # only Privet itself writes these
            return show(node)
        case e.OfAnswer(function, name, by):
            keys = f", by=[{', '.join(map(_quoted, by))}]" if by else ""
            return f"pv.{'' if function == 'total' else 'interval_'}{function}({_quoted(name)}{keys})"
        case e.Grouping(keys):
            return f"pv.grouping({', '.join(map(_quoted, keys))})"
        case e.Beyond():
            return show(node)


def in_sql(node: e.Node) -> str:
    """An expression in SQL.

    Example:
        >>> from privet.tables.expressions.fluent import col
        >>> print(in_sql((col("limit").clip(0, 10) != 3).node))
        CLIP("limit", 0, 10) <> 3
    """

    def inner(part: e.Node) -> str:
        return f"({in_sql(part)})" if isinstance(part, _NESTED) else in_sql(part)

    match node:
        case e.Column(name):
            plain = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) and name.lower() not in _RESERVED
            return name if plain else '"' + name.replace('"', '""') + '"'
        case e.Constant(value):
            return constant_in_sql(value)
        case e.Arithmetic(operator, a, b) | e.Compare(operator, a, b):
            return f"{inner(a)} {_SIGNS.get(operator, operator)} {inner(b)}"
        case e.Rounded(function, of, digits):
            return f"{function.upper()}({in_sql(of)}{f', {digits}' if digits else ''})"
        case e.Clip(of, lower, upper):
            return f"CLIP({in_sql(of)}, {_digits(lower)}, {_digits(upper)})"
        case e.Logic(operator, several):
            return f" {operator.upper()} ".join(map(inner, several))
        case e.Not(of):
            return f"NOT {inner(of)}"
        case e.IsIn(of, values):
            return f"{inner(of)} IN ({', '.join(map(in_sql, values))})"
        case e.IsMissing(of):
            return f"{inner(of)} IS NULL"
        case e.StartsWith(of, prefix):
            return f"{inner(of)} LIKE {constant_in_sql(prefix + '%')}"
        case e.Case(branches, otherwise):
            cases = " ".join(f"WHEN {in_sql(when)} THEN {in_sql(then)}" for when, then in branches)
            return f"CASE {cases}{'' if otherwise is None else f' ELSE {in_sql(otherwise)}'} END"
        case e.DatePart(of, part):
            return f"{'ISODOW' if part == 'weekday' else part.upper()}({in_sql(of)})"
        case e.Truncate(of, unit):
            return f"DATE_TRUNC('{unit}', {in_sql(of)})"
        case e.OfAnswer("total", name, by):
            keys = f"PARTITION BY {', '.join(in_sql(e.Column(key)) for key in by)}" if by else ""
            return f"SUM({in_sql(e.Column(name))}) OVER ({keys})"
        case e.OfAnswer(end, name):
            return f"DP_INTERVAL_{end.upper()}({in_sql(e.Column(name))})"
        case e.Grouping(by):
            return f"GROUPING({', '.join(in_sql(e.Column(key)) for key in by)})"
        case e.Bin() | e.Which() | e.Beyond():
            return show(node)


def constant_in_python(value: object) -> str:
    """A public value in Python."""
    match value:
        case str():
            return _quoted(value)
        case Exact():
            return literal(value)
    return repr(value)


def constant_in_sql(value: object) -> str:
    """A public value in SQL."""
    match value:
        case str():
            return "'" + value.replace("'", "''") + "'"
        case bool():
            return str(value).upper()
        case datetime():
            return f"TIMESTAMP '{value}'"
        case date():
            return f"DATE '{value}'"
        case Exact():
            return _digits(value)
    return str(value)


def _digits(number: Exact) -> str:
    """A number with all its digits, or as a quotient if it has too many."""
    every = show_number(number, 17)
    return every if Exact(every) == number else f"({number.numerator} / {number.denominator})"


def _quoted(text: str) -> str:
    escaped = repr(text)[1:-1]
    return '"' + (escaped.replace("\\'", "'") if "'" in text else escaped).replace('"', '\\"') + '"'
