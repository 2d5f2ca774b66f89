"""The table that the benchmarks query: people in regions, with an age and an income; with any number of rows."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.peer import ENVIRONMENTS
from bench.peers.tables_common import REGIONS

LOWER, UPPER = 0, 200_000
ROW_GROUP = 1_000_000
_SCATTER = 2_654_435_761  # a prime: multiplying by it modulo the number of people reorders them

Answer = dict[str, dict[str, float]]


def file(rows: int) -> Path:
    """The Parquet file of this many rows; made once and kept."""
    path = ENVIRONMENTS / "data" / f"people-{rows}.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(".part")
        make(scratch, rows)
        scratch.rename(path)
    return path


def make(path: str | os.PathLike[str], rows: int, *, people: int | None = None, seed: int = 1) -> None:
    """Write `rows` rows of `people` (a tenth as many) to a Parquet file, a row group at a time.

    The rows of one person lie anywhere in the file. Most people have 5 to 10 rows, one in a hundred 50 or more, the
    first few thousands. Seven of ten rows are in the person's own region, so that some have rows in many regions.
    """
    people = people or max(1, rows // 10)
    generator = np.random.default_rng(seed)
    names = pa.array(REGIONS)
    schema = pa.schema(
        [("user_id", pa.int64()), ("region", pa.string()), ("age", pa.int32()), ("income", pa.float64())]
    )
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, rows, ROW_GROUP):
            size = min(ROW_GROUP, rows - start)
            rank = (people * generator.random(size) ** 2).astype(np.int64)
            user = rank * _SCATTER % people
            home = user * 7919 // 13 % len(REGIONS)
            away = (len(REGIONS) * generator.random(size) ** 1.5).astype(np.int64)
            region = np.where(generator.random(size) < 0.7, home, away)
            age = np.clip(generator.normal(42, 22, size), 0, 110).astype(np.int32)
            income = generator.lognormal(10.3, 0.7, size) * (0.75 + 0.01 * region)
            table = pa.table(
                {
                    "user_id": user,
                    "region": names.take(pa.array(region)),
                    "age": age,
                    "income": np.clip(np.round(income, 2), LOWER, UPPER),
                },
                schema=schema,
            )
            writer.write_table(table, row_group_size=ROW_GROUP)


def truth(path: str | os.PathLike[str], rows_per_person: int | None = None) -> Answer:
    """Count, sum and mean of income by region: of all rows or, with `rows_per_person`, what a bounded table has of them
    on average, if the rows kept of each person are a uniform sample.
    """
    file = pq.ParquetFile(path, read_dictionary=["region"])
    groups = range(file.num_row_groups)
    weights = np.ones(1)
    if rows_per_person is not None:
        rows = np.zeros(1, dtype=np.int64)
        for group in groups:
            found = np.bincount(file.read_row_group(group, columns=["user_id"])["user_id"].to_numpy())
            rows, found = (rows, found) if len(rows) >= len(found) else (found, rows)
            rows[: len(found)] += found
        weights = np.minimum(1.0, rows_per_person / np.maximum(rows, 1))
    count, total = np.zeros(len(REGIONS)), np.zeros(len(REGIONS))
    for group in groups:
        table = file.read_row_group(group, columns=["user_id", "region", "income"]).combine_chunks()
        codes = table["region"].chunk(0)
        places = np.array([REGIONS.index(name) for name in codes.dictionary.to_pylist()])[codes.indices.to_numpy()]
        weight = np.ones(len(places)) if rows_per_person is None else weights[table["user_id"].to_numpy()]
        count += np.bincount(places, weight, minlength=len(REGIONS))
        total += np.bincount(places, weight * table["income"].to_numpy(), minlength=len(REGIONS))
    mean = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
    columns = {"count": count, "sum": total, "mean": mean}
    return {name: dict(zip(REGIONS, values.tolist(), strict=True)) for name, values in columns.items()}


def error(found: Answer, true: Answer) -> dict[str, float]:
    """The mean absolute error of each column, over the regions; a region that is missing counts as 0."""
    return {
        name: sum(abs(found[name].get(region, 0.0) - value) for region, value in column.items()) / len(column)
        for name, column in true.items()
    }
