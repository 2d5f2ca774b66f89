"""Privet: differentially private statistics with exact noise.

>>> import privet as pv
>>> mechanism = pv.Laplace(sensitivity=1, epsilon=0.5)
>>> mechanism.error(0.95)
6

Names are loaded when they are first used, so that `import privet` is quick.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as in `typing`, which takes some milliseconds to load
if TYPE_CHECKING:
    from typing import Any

    from privet import audit, dbapi, errors, exact, ledger, mechanisms, noise, planner, release, sources
    from privet.client import connect
    from privet.dataset import Dataset
    from privet.errors import (
        BudgetError,
        DatasetClosed,
        InternalError,
        LedgerBusy,
        LedgerError,
        NoAnswer,
        PrivetError,
        UserError,
    )
    from privet.ledger import open_ledger
    from privet.mechanisms import (
        AboveThreshold,
        Exponential,
        Gaussian,
        Laplace,
        PermuteAndFlip,
        RandomizedResponse,
        ReportNoisyMax,
        Staircase,
        epsilon_for,
    )
    from privet.planner import ReleasePlan
    from privet.privacy import accounting, adjacency, divergences, events, guarantees
    from privet.privacy.adjacency import Adjacency, each_row, person
    from privet.privacy.guarantees import ApproxDP, PureDP, ZeroConcentratedDP
    from privet.release import Certificate, Release, new_signing_key, verify
    from privet.session import Session
    from privet.sources import duckdb_file, import_csv, keys_from, public_table, table
    from privet.sources.survey import make_survey
    from privet.tables.aggregates import (
        approx_bounds,
        count,
        count_distinct,
        count_people,
        histogram,
        mean,
        std,
        sum,  # noqa: A004
        variance,
    )
    from privet.tables.expressions.fluent import bins, col, grouping, interval_high, interval_low, lit, total, when
    from privet.tables.extremes import greatest, least, max, min  # noqa: A004
    from privet.tables.query import Query
    from privet.tables.ranked import median, quantile, quantiles
    from privet.tables.relation import PublicTable, Table
    from privet.tables.schema import boolean, date, integer, keys, number, text, timestamp
    from privet.textbook import distances, distributions, sensitivity, statistics

__version__ = "0.1.0"

_HOMES = {
    "AboveThreshold": "mechanisms",
    "Adjacency": "privacy.adjacency",
    "ApproxDP": "privacy.guarantees",
    "BudgetError": "errors",
    "Certificate": "release",
    "Dataset": "dataset",
    "DatasetClosed": "errors",
    "Exponential": "mechanisms",
    "Gaussian": "mechanisms",
    "InternalError": "errors",
    "Laplace": "mechanisms",
    "LedgerBusy": "errors",
    "LedgerError": "errors",
    "NoAnswer": "errors",
    "PermuteAndFlip": "mechanisms",
    "PrivetError": "errors",
    "PublicTable": "tables.relation",
    "PureDP": "privacy.guarantees",
    "Query": "tables.query",
    "RandomizedResponse": "mechanisms",
    "Release": "release",
    "ReleasePlan": "planner",
    "ReportNoisyMax": "mechanisms",
    "Session": "session",
    "Staircase": "mechanisms",
    "Table": "tables.relation",
    "UserError": "errors",
    "ZeroConcentratedDP": "privacy.guarantees",
    "approx_bounds": "tables.aggregates",
    "bins": "tables.expressions.fluent",
    "boolean": "tables.schema",
    "col": "tables.expressions.fluent",
    "connect": "client",
    "count": "tables.aggregates",
    "count_distinct": "tables.aggregates",
    "count_people": "tables.aggregates",
    "date": "tables.schema",
    "duckdb_file": "sources",
    "each_row": "privacy.adjacency",
    "epsilon_for": "mechanisms",
    "greatest": "tables.extremes",
    "histogram": "tables.aggregates",
    "import_csv": "sources",
    "integer": "tables.schema",
    "grouping": "tables.expressions.fluent",
    "interval_high": "tables.expressions.fluent",
    "interval_low": "tables.expressions.fluent",
    "keys": "tables.schema",
    "keys_from": "sources",
    "least": "tables.extremes",
    "lit": "tables.expressions.fluent",
    "make_survey": "sources.survey",
    "max": "tables.extremes",
    "mean": "tables.aggregates",
    "median": "tables.ranked",
    "min": "tables.extremes",
    "new_signing_key": "release",
    "number": "tables.schema",
    "open_ledger": "ledger",
    "person": "privacy.adjacency",
    "public_table": "sources",
    "quantile": "tables.ranked",
    "quantiles": "tables.ranked",
    "std": "tables.aggregates",
    "sum": "tables.aggregates",
    "table": "sources",
    "text": "tables.schema",
    "timestamp": "tables.schema",
    "total": "tables.expressions.fluent",
    "variance": "tables.aggregates",
    "verify": "release",
    "when": "tables.expressions.fluent",
}

_MODULES = {
    "accounting": "privacy.accounting",
    "adjacency": "privacy.adjacency",
    "distances": "textbook.distances",
    "distributions": "textbook.distributions",
    "divergences": "privacy.divergences",
    "events": "privacy.events",
    "guarantees": "privacy.guarantees",
    "sensitivity": "textbook.sensitivity",
    "statistics": "textbook.statistics",
}

__all__ = [
    "AboveThreshold",
    "Adjacency",
    "ApproxDP",
    "BudgetError",
    "Certificate",
    "Dataset",
    "DatasetClosed",
    "Exponential",
    "Gaussian",
    "InternalError",
    "Laplace",
    "LedgerBusy",
    "LedgerError",
    "NoAnswer",
    "PermuteAndFlip",
    "PrivetError",
    "PublicTable",
    "PureDP",
    "Query",
    "RandomizedResponse",
    "Release",
    "ReleasePlan",
    "ReportNoisyMax",
    "Session",
    "Staircase",
    "Table",
    "UserError",
    "ZeroConcentratedDP",
    "accounting",
    "adjacency",
    "approx_bounds",
    "audit",
    "bins",
    "boolean",
    "col",
    "connect",
    "count",
    "count_distinct",
    "count_people",
    "date",
    "dbapi",
    "distances",
    "distributions",
    "divergences",
    "duckdb_file",
    "each_row",
    "epsilon_for",
    "errors",
    "events",
    "exact",
    "greatest",
    "grouping",
    "guarantees",
    "histogram",
    "import_csv",
    "integer",
    "interval_high",
    "interval_low",
    "keys",
    "keys_from",
    "least",
    "ledger",
    "lit",
    "make_survey",
    "max",
    "mean",
    "mechanisms",
    "median",
    "min",
    "new_signing_key",
    "noise",
    "number",
    "open_ledger",
    "person",
    "planner",
    "public_table",
    "quantile",
    "quantiles",
    "release",
    "sensitivity",
    "sources",
    "statistics",
    "std",
    "sum",
    "table",
    "text",
    "timestamp",
    "total",
    "variance",
    "verify",
    "when",
]


_ELSEWHERE = {
    "avg": "Use pv.mean",
    "average": "Use pv.mean",
    "stddev": "Use pv.std",
    "stdev": "Use pv.std",
    "var": "Use pv.variance",
    "percentile": "Use pv.quantile",
    "read_csv": "Use pv.import_csv, then pv.table",
    "read_parquet": "Use pv.table",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"privet.{_HOMES[name]}"), name)
    elif name in __all__:
        value = import_module(f"privet.{_MODULES.get(name, name)}")
    else:
        from difflib import get_close_matches

        known = {each.lower(): each for each in __all__}
        near = [known[each] for each in get_close_matches(name.lower(), known, n=3, cutoff=0.6)]
        hint = _ELSEWHERE.get(name) or (f"Did you mean {' or '.join(near)}?" if near else "All names: dir(privet)")
        raise AttributeError(f"module 'privet' has no attribute {name!r}. {hint}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
