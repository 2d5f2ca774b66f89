"""PipelineDP, with its local backend."""

import pipeline_dp
import polars as pl
from error_common import Absent, cells, per_copy, serve

METRICS = {
    "count": (pipeline_dp.Metrics.COUNT, "count"),
    "sum": (pipeline_dp.Metrics.SUM, "sum"),
    "mean": (pipeline_dp.Metrics.MEAN, "mean"),
    "variance": (pipeline_dp.Metrics.VARIANCE, "variance"),
}
EXTRACTORS = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: row[2],
)


def answer(asked):
    if asked.adjacency != "add/remove":
        raise Absent("none")
    frame = pl.read_parquet(asked.path)
    budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=asked.epsilon, total_delta=asked.delta)
    engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
    if asked.statistic == "keys":
        rows = frame.select("unit", "mark", "value").rows()
        chosen = pipeline_dp.SelectPartitionsParams(max_partitions_contributed=asked.cap)
        found = engine.select_partitions(rows, chosen, EXTRACTORS)
        budget.compute_budgets()
        return per_copy(asked, found)
    rows = [(unit, (copy, place), value) for unit, copy, place, value in table(frame, asked)]
    metric, name = METRICS.get(asked.statistic) or (pipeline_dp.Metrics.PERCENTILE(100 * asked.q), None)
    groups = asked.cap if asked.grouped else 1
    parameters = pipeline_dp.AggregateParams(
        metrics=[metric],
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        min_value=asked.lower,
        max_value=asked.upper,
        **limits(asked, groups),
    )
    keys = [(copy, place) for copy in range(asked.draws) for place in (asked.keys if asked.grouped else [""])]
    answers = engine.aggregate(rows, parameters, EXTRACTORS, public_partitions=keys)
    budget.compute_budgets()
    return cells(asked, {key: answer._asdict()[name] if name else answer[0] for key, answer in answers})


def table(frame, asked):
    place = pl.col("place") if asked.grouped else pl.lit("").alias("place")
    return frame.select("unit", "copy", place, "value").iter_rows()


def limits(asked, groups):
    """A limit for all rows of a person, where it is accepted; else one for groups and one for rows in each."""
    if asked.cap > 1 and asked.statistic in ("count", "sum", "mean"):
        return {"max_contributions": asked.cap}
    return {"max_partitions_contributed": groups, "max_contributions_per_partition": asked.cap}


serve(answer)
