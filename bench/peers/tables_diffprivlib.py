"""diffprivlib, after Polars: it has no person bounding of its own, nor groups."""

import numpy as np
import polars as pl
from diffprivlib import tools
from tables_common import REGIONS, serve


def query(path, epsilon, rows_per_person, bounds):
    order = pl.struct("user_id", "region", "income", "age").hash(seed=1)
    kept = (
        pl.scan_parquet(path)
        .with_columns(order=order, place=pl.col("region").cast(pl.Enum(REGIONS)).to_physical())
        .filter(pl.col("order").rank("ordinal").over("user_id") <= rows_per_person)
        .select("place", "income")
        .collect(engine="streaming")
    )
    # Its guarantee is for one row, so a person's rows divide epsilon; a row is in one region only, so regions do not.
    # The counts are a histogram: count_nonzero of a group's rows would never be above the true count.
    share = epsilon / 2 / rows_per_person
    places = kept["place"].to_numpy()
    count, _ = tools.histogram(places, epsilon=share, bins=len(REGIONS), range=(-0.5, len(REGIONS) - 0.5))
    groups = {key[0]: group["income"].to_numpy() for key, group in kept.partition_by("place", as_dict=True).items()}
    total = [tools.sum(groups.get(place, np.zeros(0)), epsilon=share, bounds=bounds) for place in range(len(REGIONS))]
    return {
        "count": dict(zip(REGIONS, map(float, count), strict=True)),
        "sum": dict(zip(REGIONS, map(float, total), strict=True)),
        "rows_kept": len(kept),
    }


serve(query, "no person bounding of its own: 5 rows a person in Polars first; epsilon / 10 a row for count and for sum")
