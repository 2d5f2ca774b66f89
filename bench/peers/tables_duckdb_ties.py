"""DuckDB, no privacy at all: as tables_duckdb.py, with ties in the hash broken by the values, as privacy needs it."""

import duckdb
from tables_common import serve

connection = duckdb.connect()


def query(path, epsilon, rows_per_person, bounds):
    order = "hash(user_id, region, income, 1), region, income"
    ranked = f"row_number() OVER (PARTITION BY user_id ORDER BY {order}) <= {rows_per_person}"
    rows = f"SELECT * FROM read_parquet('{path}') QUALIFY {ranked}"
    found = connection.execute(f"SELECT region, count(*), sum(income) FROM ({rows}) GROUP BY region").fetchall()
    columns = {name: {row[0]: row[i] for row in found} for i, name in enumerate(("count", "sum"), 1)}
    return {**columns, "rows_kept": sum(columns["count"].values())}


serve(query, "no privacy")
