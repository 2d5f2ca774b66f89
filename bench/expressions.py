"""The cost of exact arithmetic: expressions over 10^7 rows, compared with plain DuckDB in doubles.

Rounds alternate, in one process; medians, and the median ratio of the same round. Privet's time has noise, intervals,
certificate and debit in it.
"""

from __future__ import annotations

import statistics
from functools import partial
from itertools import pairwise

import duckdb
from rich.console import Console
from rich.table import Table

import privet as pv
from bench import people as people_data
from bench.peers.tables_common import REGIONS
from bench.timing import seconds
from privet.tables.query import Query

ROWS = 10**7
ROUNDS = 7


def main() -> None:
    path = people_data.file(ROWS)
    columns = {
        "region": pv.keys(*REGIONS),
        "income": pv.number(people_data.LOWER, people_data.UPPER),
        "age": pv.integer(0, 110),
    }
    people = pv.table("people", path, protect=pv.each_row(), columns=columns)
    income, age = pv.col("income"), pv.col("age")
    edges = [0, 20_000, 40_000, 200_000]
    counted = ", ".join(f"count_if(income >= {a} AND income < {b})" for a, b in pairwise(edges))
    questions: dict[str, tuple[Query, str]] = {
        "mean(income)": (people.agg(m=pv.mean("income")), "SELECT avg(income) FROM t"),
        "by region": (
            people.group_by("region").agg(n=pv.count(), m=pv.mean("income")),
            "SELECT region, count(*), avg(income) FROM t GROUP BY region",
        ),
        "where age >= 18": (
            people.where(age >= 18).agg(m=pv.mean("income")),
            "SELECT avg(income) FROM t WHERE age >= 18",
        ),
        "income / 12 + 100": (people.agg(m=pv.mean(income / 12 + 100)), "SELECT avg(income / 12 + 100) FROM t"),
        "income * age": (
            people.agg(m=pv.mean((income * age).clip(0, 10**7))),
            "SELECT avg(least(income * age, 1e7)) FROM t",
        ),
        "income / (age + 1)": (
            people.agg(m=pv.mean((income / (age + 1)).clip(0, 10**5))),
            "SELECT avg(least(income / (age + 1), 1e5)) FROM t",
        ),
        "histogram(income)": (people.agg(h=pv.histogram("income", edges)), f"SELECT {counted} FROM t"),
    }
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW t AS SELECT * FROM read_parquet('{path}')")
    table = Table("expression", "plain DuckDB", "Privet", "ratio", title=f"{ROWS:,} rows, each_row()", box=None)
    with pv.Session([people], budget=pv.PureDP(10**6), ledger=None) as session:
        for name, (question, sql) in questions.items():
            plain: list[float] = []
            ours: list[float] = []
            for _ in range(ROUNDS):
                plain.append(seconds(partial(connection.execute, sql)))
                ours.append(seconds(partial(session.release, question, epsilon=1, fresh=True)))
            ratio = statistics.median(a / b for a, b in zip(ours, plain, strict=True))
            table.add_row(name, f"{statistics.median(plain):.3f} s", f"{statistics.median(ours):.3f} s", f"{ratio:.2f}")
    Console(width=100, highlight=False).print(table)
