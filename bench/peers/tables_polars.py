"""Polars, no privacy at all: the same rows bounded and summed by its streaming engine. How fast it could be."""

import polars as pl
from tables_common import serve


def query(path, epsilon, rows_per_person, bounds):
    found = (
        pl.scan_parquet(path)
        .with_row_index()
        .filter(pl.col("index").hash(seed=1).rank("ordinal").over("user_id") <= rows_per_person)
        .group_by("region")
        .agg(count=pl.len(), sum=pl.col("income").clip(*bounds).sum())
        .collect(engine="streaming")
    )
    columns = {name: dict(zip(found["region"], found[name], strict=True)) for name in ("count", "sum")}
    return {**columns, "rows_kept": sum(columns["count"].values())}


serve(query, "no privacy; 5 rows a person by rank of a hash")
