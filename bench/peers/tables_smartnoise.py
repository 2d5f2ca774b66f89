"""SmartNoise SQL, on Spark; its pandas reader (SQLite in memory) is slower and larger at 10^7 rows."""

import warnings

from snsql import Privacy, from_connection
from tables_common import serve, spark

warnings.simplefilter("ignore")
SQL = "SELECT region, COUNT(income) AS n, SUM(income) AS total, AVG(income) AS mean FROM dbo.people GROUP BY region"
machine = spark()


def query(path, epsilon, rows_per_person, bounds):
    table = {
        "max_ids": rows_per_person,
        "sample_max_ids": True,
        "censor_dims": False,  # the regions are public; one without rows is missing in the answer
        "clamp_columns": True,
        "user_id": {"type": "int", "private_id": True},
        "region": {"type": "string"},
        "income": {"type": "float", "lower": bounds[0], "upper": bounds[1]},
    }
    machine.read.parquet(path).createOrReplaceTempView("people")
    # Its epsilon is for each column; the mean is made of the two others and costs nothing.
    privacy = Privacy(epsilon=epsilon / 2, delta=0.0)
    reader = from_connection(machine, privacy=privacy, metadata={"": {"dbo": {"people": table}}}, engine="spark")
    spent, _ = reader.get_privacy_cost(SQL)
    assert spent <= epsilon * 1.0001
    found = reader.execute(SQL).collect()
    return {name: {row[0]: row[place] for row in found} for place, name in enumerate(("count", "sum", "mean"), 1)}


serve(query, "5 rows a person, sampled in SQL; public keys; epsilon / 2 for count and for sum")
