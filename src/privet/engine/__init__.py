"""Exact integers from private tables: a statement in, one integer for each group and tally out, on DuckDB."""

from privet.engine.duckdb import FAILED, DuckDB, Source

__all__ = ["FAILED", "DuckDB", "Source"]
