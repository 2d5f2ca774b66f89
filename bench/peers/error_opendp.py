"""OpenDP: its context interface on Polars; for `replace` and a public number of rows, its constructors."""

import warnings

import opendp.prelude as dp
import polars as pl
from error_common import Absent, candidates, cells, moments, per_copy, radius, serve

dp.enable_features("contrib", "honest-but-curious")
warnings.simplefilter("ignore")


def answer(asked):
    if asked.adjacency == "replace":
        return replaced(asked)
    rows = pl.scan_parquet(asked.path)
    by = ["mark"] if asked.statistic == "keys" else ["copy", "place"] if asked.grouped else ["copy"]
    longest = 2 * rows.select(pl.len()).collect().item() // asked.draws
    loss = dp.loss_of(epsilon=asked.epsilon, delta=asked.delta) if asked.delta else dp.loss_of(epsilon=asked.epsilon)
    persons = asked.cap > 1
    context = dp.Context.compositor(
        data=rows,
        privacy_unit=dp.unit_of(contributions=1, identifier="unit") if persons else dp.unit_of(contributions=1),
        privacy_loss=loss,
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=by, max_length=longest)],
    )
    query = context.query().truncate_per_group(asked.cap) if persons else context.query()
    if asked.statistic == "keys":
        return per_copy(asked, query.group_by("mark").agg(n=dp.len()).release().collect()["mark"])
    # One query: its columns share epsilon equally.
    found = query.group_by(by).agg(**columns(asked)).with_keys(all_keys(asked)).release().collect()
    return cells(asked, {(row["copy"], row.get("place", "")): put_together(row, asked) for row in found.to_dicts()})


def all_keys(asked):
    keys = pl.LazyFrame({"copy": range(asked.draws)}, schema={"copy": pl.Int64})
    return keys.join(pl.LazyFrame({"place": asked.keys}), how="cross") if asked.grouped else keys


def columns(asked):
    half = radius(asked)
    number = pl.Int64 if asked.whole else pl.Float64
    bounds = tuple(int(bound) if asked.whole else bound for bound in (asked.lower, asked.upper))
    count = dp.len()
    centred = pl.col("centred").fill_nan(0.0).fill_null(0.0).dp.sum((-half, half))
    match asked.statistic:
        case "count":
            return {"count": count}
        case "sum":
            value = pl.col("value").cast(number).fill_null(0)
            return {"sum": (value if asked.whole else value.fill_nan(0.0)).dp.sum(bounds)}
        case "mean":  # its own mean wants lengths of groups that are public
            return {"count": count, "centred": centred}
        case "variance":
            square = pl.col("square").fill_nan(0.0).fill_null(0.0).dp.sum((0.0, half**2))
            return {"count": count, "centred": centred, "square": square}
        case "quantile":
            filled = pl.col("value").fill_nan(asked.lower).fill_null(asked.lower)
            return {"quantile": filled.dp.quantile(asked.q, candidates(asked))}
    raise Absent("none")


def put_together(row, asked):
    if asked.statistic in ("mean", "variance"):
        return moments(row["count"], row["centred"], asked, row.get("square"))
    return row[asked.statistic]


def replaced(asked):
    if asked.statistic not in ("mean", "variance") or asked.grouped:
        raise Absent("none")
    values = pl.read_parquet(asked.path).filter(pl.col("copy") == 0)["value"].to_list()
    space = dp.vector_domain(dp.atom_domain(bounds=(asked.lower, asked.upper), nan=False), size=len(values))
    make = dp.t.then_mean() if asked.statistic == "mean" else dp.t.then_variance(ddof=0)
    transformed = (space, dp.symmetric_distance()) >> make
    measure = dp.binary_search_chain(lambda scale: transformed >> dp.m.then_laplace(scale), d_in=2, d_out=asked.epsilon)
    return [[measure(values)] for _ in range(asked.draws)]


serve(answer)
