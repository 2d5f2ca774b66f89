"""A mark in every cell of a table, and questions that read all of it (T22)."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa

import privet as pv
from privet.tables import schema as declared
from privet.tables.expressions.fluent import col
from privet.tables.relation import Table

TEXT, NUMBER, SMALL = "zqcanaryqz", 7_316_952_084, 0.618033981234
MARKS = [TEXT, str(NUMBER), str(SMALL)[:10], "2025-02-17", "13:59:47", TEXT.encode().hex()]
"""What a cell could be shown as. All lie within the declared ranges, and none of them is a bound, a key or a step."""
COLUMNS = {
    "region": declared.keys("north", other="other"), "name": declared.text(), "n": declared.integer(0, 10**10),
    "share": declared.number(0, 1), "price": declared.number(0, 10**10),
    "day": declared.date("2024-12-31", "2025-12-31"),
    "seen": declared.timestamp("2024-12-31", "2025-12-31"),
}  # fmt: skip


def rows(people: int) -> pa.Table:
    """Four rows of each of these many people."""
    many = range(people * 4)
    return pa.table({
        "id": [f"{TEXT}{i % people}" for i in many], "region": ["north" if i % 3 == 0 else TEXT for i in many],
        "name": [TEXT] * len(many), "n": [NUMBER] * len(many), "share": [SMALL] * len(many),
        "price": pa.array([Decimal(NUMBER)] * len(many), pa.decimal128(12, 2)),
        "day": [date(2025, 2, 17)] * len(many),
        "seen": pa.array([datetime(2025, 2, 17, 13, 59, 47, 618034)] * len(many), pa.timestamp("us")),
    })  # fmt: skip


def ask_everything(table: Table, session: pv.Session) -> list[pv.Release]:
    """Questions of every kind; their answers."""
    by = table.group_by("region")
    queries = (
        by.agg(n=pv.count(), s=pv.sum("n"), m=pv.mean("share"), v=pv.variance("price")),
        table.where(col("name") == "somebody").agg(n=pv.count_people()),
        table.agg(q=pv.median("price")),
        table.group_by(col("day").month()).agg(n=pv.count()),
        table.per_person(s=pv.sum("share")).agg(s=pv.sum(col("s").clip(0, 3))),
    )
    return [session.release(query, epsilon=1) for query in queries]
