"""Tumult Analytics, on Spark."""

from tables_common import REGIONS, serve, spark
from tmlt.analytics import AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder, Session

machine = spark()


def query(path, epsilon, rows_per_person, bounds):
    machine.catalog.clearCache()
    rows = machine.read.parquet(path)
    session = Session.from_dataframe(PureDPBudget(epsilon), "rows", rows, protected_change=AddRowsWithID("user_id"))
    # Bounded once and kept for both queries. The mean is their quotient: its average would need a budget of its own.
    session.create_view(QueryBuilder("rows").enforce(MaxRowsPerID(rows_per_person)), "bounded", cache=True)
    regions = QueryBuilder("bounded").groupby(KeySet.from_dict({"region": REGIONS}))
    half = PureDPBudget(epsilon / 2)
    count = session.evaluate(regions.count("value"), half).collect()
    total = session.evaluate(regions.sum("income", *bounds, "value"), half).collect()
    session.delete_view("bounded")
    return {name: {row["region"]: row["value"] for row in found} for name, found in (("count", count), ("sum", total))}


serve(query, "5 rows a person, by a hash; public keys; epsilon / 2 for count and for sum")
