"""PipelineDP, with its local backend."""

import pipeline_dp
import polars as pl
from tables_common import REGIONS, serve

METRICS = [pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM, pipeline_dp.Metrics.MEAN]


def query(path, epsilon, rows_per_person, bounds):
    rows = pl.read_parquet(path, columns=["user_id", "region", "income"]).iter_rows()
    budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=0)
    engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
    # Asked together, the three are made of one count and one sum (of the distances from the middle), epsilon / 2 each.
    parameters = pipeline_dp.AggregateParams(
        metrics=METRICS,
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_contributions=rows_per_person,
        min_value=bounds[0],
        max_value=bounds[1],
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    answers = engine.aggregate(rows, parameters, extractors, public_partitions=REGIONS)
    budget.compute_budgets()
    found = {region: answer._asdict() for region, answer in answers}
    return {
        name: {region: float(answer[name]) for region, answer in found.items()} for name in ("count", "sum", "mean")
    }


serve(query, "5 rows a person, sampled; public keys; epsilon / 2 for count and for centred sum")
