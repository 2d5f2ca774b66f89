"""The compiler asks its dialect for everything: another dialect, closer to Postgres and Spark, gives the same integers.

It runs on DuckDB, too, but has no unsigned integers, no QUALIFY, no enumerations and another hash.
"""

from __future__ import annotations

import re
from random import Random

from tests.neighbours.questions import planned
from tests.neighbours.worlds import world

from privet.engines.duckdb.dialect import DuckDBDialect
from privet.engines.duckdb.engine import DuckDB
from privet.engines.spark.dialect import SparkDialect
from privet.engines.sql.dialect import Dialect
from privet.engines.sql.text import Context
from privet.tables.statement import AtMostGroups, Rows, Unbounded


class Plainer(DuckDBDialect):
    """Words of 63 bits, keys in a CASE, ranks in a subquery."""

    word_bits = 63
    ranked = Dialect.ranked

    def word(self, sql: str) -> str:
        return f"CAST({sql} AS BIGINT)"

    def bit(self, sql: str) -> str:
        return self.flag(sql)

    def hashed(self, key: int, columns: list[str]) -> str:
        return f"CAST(hash({key}, {', '.join(columns)}, 'other') >> 1 AS BIGINT)"

    def place(self, text: str, values: tuple[str, ...], context: Context) -> str:
        cases = " ".join(f"WHEN {context.bind(value)} THEN {i}" for i, value in enumerate(values))
        return f"CASE {text} {cases} END"

    def is_listed(self, text: str, values: tuple[str, ...], context: Context) -> str:
        return f"({text} IN ({', '.join(map(context.bind, values))}))"

    def count_where(self, condition: str) -> str:
        return f"count(*) FILTER (WHERE {condition})"


def test_another_dialect_gives_the_same_integers(effort: int) -> None:
    same = survivors = 0
    for number in range(80_000, 80_000 + 12 * effort):
        chance = Random(number)
        made = world(chance)
        tables = {name: (table.schema, table.source) for name, table in made.tables.items()}
        public = {table.name: (table.schema, table.source) for table in made.public}
        with DuckDB(tables, public, salt=b"", threads=1) as one, DuckDB(tables, public, salt=b"", threads=1) as other:
            other._dialect = Plainer()
            for _ in range(4):
                asked = planned(chance, made)
                for statement in () if asked is None else asked.statements():
                    sql = other.compile(statement).sql
                    assert not any(word in sql for word in ("UBIGINT", "QUALIFY", "enum_code", "UTINYINT"))
                    found, expected = other.answer(statement), one.answer(statement)
                    if isinstance(statement.bounding, Unbounded):
                        assert found == expected, (number, str(statement))
                        same += 1
                    elif not isinstance(statement.bounding, AtMostGroups) and Rows() in statement.tallies:
                        place = statement.tallies.index(Rows())
                        assert sum(row[place] for row in found) == sum(row[place] for row in expected), number
                        survivors += 1
    assert same > 5
    assert survivors


def test_no_where_of_spark_can_be_an_alias(effort: int) -> None:
    """Behind a parenthesis Spark would read `WHERE (c1)` as a name with one column."""
    seen = 0
    for number in range(81_000, 81_000 + 20 * effort):
        chance = Random(number)
        made = world(chance)
        tables = {name: (table.schema, table.source) for name, table in made.tables.items()}
        public = {table.name: (table.schema, table.source) for table in made.public}
        with DuckDB(tables, public, salt=b"", threads=1) as engine:
            engine._dialect = SparkDialect()
            for _ in range(8):
                asked = planned(chance, made)
                for statement in () if asked is None else asked.statements():
                    if engine.supports(statement) is None:
                        sql = engine.compile(statement).sql
                        assert not re.search(r"\)\s*WHERE", sql)
                        seen += "WHERE" in sql
    assert seen > 10
