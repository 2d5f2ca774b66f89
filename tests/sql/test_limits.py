"""Limits are checked before anything is parsed, and nothing that passes them takes long."""

from __future__ import annotations

import sys

import pytest
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import Token
from tests.sql.catalogue import asked

from privet.errors import QueryError
from privet.sql import grammar, misquoted, tokens
from privet.sql.source import SqlText

COUNT = "SELECT COUNT(*) AS n FROM people WHERE "


def refused(sql: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        asked(sql)
    assert caught.value.__cause__ is None


def test_length() -> None:
    longest = COUNT + "smoker" + " " * (tokens.LONGEST - len(COUNT) - 6)
    asked(longest)
    refused(longest + " ", "at most 16 KB")
    refused(COUNT + "name = '" + "é" * 9_000 + "'", "at most 16 KB")
    refused("SELECT " * 10**6, "at most 16 KB")


def test_a_text_that_is_too_long_is_not_even_split_into_words(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted:
        seen = 0

        def tokenize(self, text: str) -> list[Token]:
            self.seen += 1
            return list(DuckDB().tokenize(text))

    counted = Counted()
    for module in (tokens, misquoted):
        monkeypatch.setattr(module, "DIALECT", counted)
    refused("SELECT " * 5_000, "at most 16 KB")
    assert counted.seen == 0
    refused("SELECT a, b", "FROM")
    assert counted.seen > 0


def test_number_of_words() -> None:
    refused(COUNT + "age IN (" + "1," * 1_500 + "1)", "at most 2,000 words")
    asked(COUNT + "age IN (" + "1," * 900 + "1)")


@pytest.mark.parametrize(
    ("before", "after"), [("(", ")"), ("NOT ", ""), ("CASE WHEN smoker THEN ", " END"), ("NOT (", ")")]
)
def test_nesting(before: str, after: str) -> None:
    most = tokens.DEEPEST
    asked(COUNT + before * most + "smoker" + after * most)
    refused(COUNT + before * (most + 1) + "smoker" + after * (most + 1), "nested more than 24 levels deep")
    refused(COUNT + before * 300 + "smoker" + after * 300, "nested more than 24 levels deep")


def test_subqueries_nest_as_deep() -> None:
    def sql(depth: int) -> str:
        return "SELECT COUNT(*) AS n FROM " + "(SELECT age FROM " * depth + "people" + ")" * depth

    asked(sql(tokens.DEEPEST))
    refused(sql(tokens.DEEPEST + 1), "nested more than 24 levels deep")


def test_nesting_is_refused_where_it_stands_from_a_deep_stack_too() -> None:
    """A caller that has used up its stack gets a refusal, not a RecursionError."""

    def deep(left: int) -> None:
        if left:
            deep(left - 1)
        else:
            refused(COUNT + "(" * 24 + "smoker" + ")" * 24, "nested too deeply")

    deep(sys.getrecursionlimit() - 400)


def test_long_chains() -> None:
    asked(COUNT + " AND ".join(["age > 1"] * 350))
    asked(COUNT + "age" + " + 1" * 50 + " > 3")
    refused(COUNT + "age" + " + 1" * 80 + " > 3", "nested at most 64 levels deep")
    refused(COUNT + "age" + " + 1" * 500 + " > 3", "nested more than 100 levels deep")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(" + "COALESCE(" * 20 + "age" + ", 0)" * 20 + ") AS s FROM people",
        COUNT + "(" * 20 + "age" + " BETWEEN 1 AND 2)" * 20,
        "SELECT SUM(" + "CASE " * 20 + "age" + " WHEN 1 THEN 2 WHEN 3 THEN 4 END" * 20 + ") AS s FROM people",
    ],
    ids=["coalesce", "between", "case"],
)
def test_what_doubles_with_every_level_is_refused(sql: str) -> None:
    refused(sql, "at most 2,000 parts")


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (COUNT + "DATE(" * 20 + "1" + ")" * 20, "DATE is not supported"),
        (COUNT + "VARCHAR(" * 20 + "1" + ")" * 20, "VARCHAR is not supported"),
        ("SELECT COUNT(*) AS n FROM people " + "JOIN people " * 30, "joins"),
        ("SELECT COUNT(*) AS n FROM people " + "JOIN people " * 14, "JOIN needs a condition"),
        ("SELECT COUNT(*) AS n FROM people " + "JOIN people " * 14 + "ON TRUE " * 14, "JOIN needs a condition"),
    ],
    ids=["date", "varchar", "many joins", "joins", "late conditions"],
)
def test_what_takes_the_parser_exponential_time_never_reaches_it(sql: str, message: str) -> None:
    refused(sql, message)


def test_doubling_joins_are_refused() -> None:
    """Each WITH reads the one before it twice; the number of tables is limited, so that nothing grows."""
    parts = ["a0 AS (SELECT person_id, COUNT(*) AS x0 FROM visits GROUP BY person_id)"]
    for i in range(1, 6):
        before = f"(SELECT person_id, CLIP(x{i - 1}, 0, 9) AS z FROM a{i - 1})"
        parts += [
            f"b{i} AS (SELECT person_id, SUM(z) AS y{i} FROM {before} AS t GROUP BY person_id)",
            f"c{i} AS (SELECT person_id, MAX(z) AS w{i} FROM {before} AS t GROUP BY person_id)",
            f"a{i} AS (SELECT person_id, y{i} + w{i} AS x{i} FROM b{i} JOIN c{i} USING (person_id))",
        ]
    refused(f"WITH {', '.join(parts)} SELECT COUNT(*) AS n FROM a5", "at most 16 private tables")


def test_groups() -> None:
    refused("SELECT COUNT(*) FROM people GROUP BY age, hours, smoker", "groups; at most 10,000 are allowed")


def test_numbers() -> None:
    refused(COUNT + "age > 1e999999999", "is too long|too large")
    refused(COUNT + "age > " + "9" * 5_000, "is too long")


def test_the_allow_list_is_of_classes_that_exist_and_arguments_that_they_have() -> None:
    for made, arguments in grammar.ARGUMENTS.items():
        assert arguments <= set(made.arg_types), made
    assert {exp.WindowSpec, exp.Union, exp.Command, exp.Pivot, exp.Placeholder}.isdisjoint(grammar.ARGUMENTS)


@pytest.mark.parametrize(
    "name", ["distinct", "hint", "qualify", "windows", "sample", "locks", "pivots", "into", "offset"]
)
def test_an_argument_that_is_not_listed_is_refused_whatever_it_is(name: str) -> None:
    """Also where the words before the parser let it pass: the tree fails closed by itself."""
    source = SqlText("SELECT 1")
    tree = exp.Select(expressions=[exp.Literal.number(1)], **{name: exp.Literal.number(2)})
    with pytest.raises(QueryError):
        grammar._check(source, tree)


def test_a_node_that_is_not_listed_is_refused() -> None:
    for made in (exp.WindowSpec, exp.Bracket, exp.Placeholder, exp.Lambda, exp.Command, exp.Anonymous):
        with pytest.raises(QueryError):
            grammar._check(SqlText("SELECT 1"), exp.Select(expressions=[made(this=exp.Literal.number(1))]))
