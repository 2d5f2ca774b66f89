"""Exact integers from private tables: a statement in, one integer for each group and tally out, on DuckDB."""

from privet.engines.duckdb import FAILED, DuckDB, Source

__all__ = ["FAILED", "DuckDB", "Source"]
