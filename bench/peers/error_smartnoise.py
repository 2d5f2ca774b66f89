"""SmartNoise SQL, on pandas; it has no quantiles, and rounds nothing here."""

import warnings

import pandas as pd
from error_common import Absent, cells, per_copy, serve
from snsql import Privacy, from_connection

warnings.simplefilter("ignore")
COLUMNS = {"count": "COUNT(*)", "sum": "SUM(value)", "mean": "AVG(value)", "variance": "VARIANCE(value)"}


def answer(asked):
    if asked.adjacency != "add/remove" or asked.statistic not in (*COLUMNS, "keys"):
        raise Absent("none")
    table = {
        "max_ids": asked.cap,
        "sample_max_ids": asked.cap > 1,
        "row_privacy": asked.cap == 1,
        "censor_dims": asked.statistic == "keys",
        "clamp_columns": True,
        "copy": {"type": "int"},
        "place": {"type": "string"},
        "mark": {"type": "string"},
        "value": {"type": "float", "lower": asked.lower, "upper": asked.upper},
    }
    if asked.cap > 1:
        table["unit"] = {"type": "int", "private_id": True}
    frame = pd.read_parquet(asked.path)
    by = "mark" if asked.statistic == "keys" else "copy, place" if asked.grouped else "copy"
    sql = f"SELECT {by}, {COLUMNS.get(asked.statistic, 'COUNT(*)')} AS answer FROM dbo.sample GROUP BY {by}"

    def reader(epsilon):
        privacy = Privacy(epsilon=epsilon, delta=asked.delta)
        return from_connection(frame, privacy=privacy, metadata={"": {"dbo": {"sample": table}}}, engine="pandas")

    # Its epsilon is for each column that it measures: ask what that costs together, and lower it.
    cost = reader(asked.epsilon).get_privacy_cost(sql)[0]
    final = reader(asked.epsilon * asked.epsilon / cost)
    assert final.get_privacy_cost(sql)[0] <= asked.epsilon * 1.0001
    found = final.execute(sql)[1:]
    if asked.statistic == "keys":
        return per_copy(asked, [row[0] for row in found])
    return cells(asked, {(int(row[0]), row[1] if asked.grouped else ""): row[-1] for row in found})


serve(answer)
