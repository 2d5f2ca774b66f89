"""DuckDB, no privacy at all: the plain query (0 rows a person), or the obvious way to keep some rows of each person."""

import duckdb
from tables_common import serve

connection = duckdb.connect()


def query(path, epsilon, rows_per_person, bounds):
    rows = f"read_parquet('{path}')"
    if rows_per_person:
        ranked = "row_number() OVER (PARTITION BY user_id ORDER BY hash(user_id, region, income, 1))"
        rows = f"(SELECT * FROM {rows} QUALIFY {ranked} <= {rows_per_person})"
    sql = f"SELECT region, count(*), sum(income), avg(income) FROM {rows} GROUP BY region"
    found = connection.execute(sql).fetchall()
    columns = {name: {row[0]: row[i] for row in found} for i, name in enumerate(("count", "sum", "mean"), 1)}
    return {**columns, "rows_kept": sum(columns["count"].values())}


serve(query, "no privacy")
