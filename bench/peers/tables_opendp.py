"""OpenDP, its context interface on Polars."""

import time
import warnings

import opendp.prelude as dp
import polars as pl
from tables_common import REGIONS, serve

dp.enable_features("contrib")
warnings.simplefilter("ignore")
NOTE = "5 rows a person, sampled; public keys; epsilon / 2 for count and for sum"


def query(path, epsilon, rows_per_person, bounds):
    # One query with both columns: half of epsilon each. The mean is their quotient: OpenDP's own mean wants group
    # lengths that are public. A sum of floats needs a bound on the rows of one region, and its noise grows with that
    # bound: a fifth of the file is safe here, and adds little noise below 10^7 rows.
    rows = pl.scan_parquet(path)
    longest = rows.select(pl.len()).collect().item() // 5
    context = dp.Context.compositor(
        data=rows,
        privacy_unit=dp.unit_of(contributions=1, identifier="user_id"),
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["region"], max_length=longest)],
    )
    asked = (
        context.query()
        .truncate_per_group(rows_per_person)
        .group_by("region")
        .agg(count=dp.len(), sum=pl.col("income").fill_nan(0.0).fill_null(0.0).dp.sum(bounds))
        .with_keys(pl.LazyFrame({"region": REGIONS}))
    )
    start = time.perf_counter()
    release = asked.release()
    before = time.perf_counter() - start
    found = release.collect()
    columns = {name: dict(zip(found["region"], found[name], strict=True)) for name in ("count", "sum")}
    return {**columns, "note": f"{NOTE}; {before:.1f} s of it before it reads a row"}


serve(query, NOTE)
