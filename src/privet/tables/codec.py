"""Schemas, expressions, operators, aggregates, queries and statements as JSON, and back: a closed vocabulary."""

from __future__ import annotations

from privet.codec import Codec
from privet.privacy.adjacency import EachRow, Person
from privet.tables import aggregates, arrangement, groups, holders, query, schema, statement, within
from privet.tables import operators as o
from privet.tables import types as t
from privet.tables.expressions import nodes as e

KINDS: dict[str, type] = {
    # declarations
    "schema": schema.Schema, "public schema": schema.PublicSchema, "declared": schema.Column, "within": within.Within,
    "each row": EachRow, "person": Person,
    "number type": t.NumberType, "boolean type": t.BooleanType, "key type": t.KeyType, "text type": t.TextType,
    "time type": t.TimeType,
    # expressions
    "column": e.Column, "constant": e.Constant, "arithmetic": e.Arithmetic, "rounded": e.Rounded, "clip": e.Clip,
    "compare": e.Compare, "logic": e.Logic, "not": e.Not, "is in": e.IsIn, "is missing": e.IsMissing,
    "starts with": e.StartsWith, "case": e.Case, "date part": e.DatePart, "truncate": e.Truncate, "bin": e.Bin,
    "which": e.Which,
    "of answer": e.OfAnswer, "grouping": e.Grouping,
    "beyond": e.Beyond,
    # operators
    "scan": o.Scan, "where": o.Where, "with columns": o.WithColumns, "join public": o.JoinPublic,
    "join person": o.JoinPerson, "of person": o.OfPerson, "per person": o.PerPerson,
    # aggregates
    **aggregates.KINDS,
    # questions, and the arrangement of an answer
    "query": query.Query, "key": query.Key,
    "arrangement": arrangement.Arrangement, "arrangement in order": arrangement.InOrder, "order": arrangement.Order,
    # requests to an engine
    "code": statement.Code, "place": statement.Place, "given": statement.Given,
    "rows": statement.Rows, "present": statement.Present, "total": statement.Total, "squares": statement.Squares,
    "at": statement.At, "distinct": statement.Distinct,
    "unbounded": statement.Unbounded, "at most rows": statement.AtMostRows, "at most groups": statement.AtMostGroups,
    "people in groups": statement.PeopleInGroups, "statement": statement.Statement,
    "listed": groups.Listed, "holders": holders.Holders,
}  # fmt: skip
"""Every kind of record. A name that was once written into a certificate keeps its meaning forever."""


RECORDS = Codec(KINDS)
encode, decode = RECORDS.encode, RECORDS.decode
