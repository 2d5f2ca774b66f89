"""Exact integers from private tables: a statement in, one integer for each group and tally out.

`base` is the contract, `registry` has one line for each engine. `sql/` compiles statements for every database that
speaks SQL: `duckdb/` and `postgres/`. `reference/` computes the same row by row, in Python, without any SQL.
"""

from privet.engines.base import FAILED, ArrowRows, Engine, ParquetFiles, ParquetObjects, Source, Unsupported
from privet.engines.registry import ENGINES, choose, open_engine

__all__ = [
    "ENGINES", "FAILED", "ArrowRows", "Engine", "ParquetFiles", "ParquetObjects", "Source", "Unsupported",
    "choose", "open_engine",
]  # fmt: skip
