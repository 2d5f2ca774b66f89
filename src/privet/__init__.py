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

    from privet import audit, errors, exact, ledger, mechanisms, noise, planner, release, sources
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
    from privet.mechanisms import Gaussian, Laplace, epsilon_for
    from privet.planner import ReleasePlan
    from privet.privacy import accounting, adjacency, divergences, events, guarantees
    from privet.privacy.adjacency import Adjacency, each_row, person
    from privet.privacy.guarantees import ApproxDP, PureDP, ZeroConcentratedDP
    from privet.release import Certificate, Release, new_signing_key, verify
    from privet.session import Session
    from privet.sources import duckdb_file, import_csv, keys_from, public_table, table
    from privet.tables.aggregates import count, count_people, histogram, mean, std, sum, variance  # noqa: A004
    from privet.tables.extremes import greatest, least, max, min  # noqa: A004
    from privet.tables.language import bins, col, lit, when
    from privet.tables.query import PublicTable, Query, Table
    from privet.tables.schema import boolean, date, integer, keys, number, text, timestamp
    from privet.textbook import distances, distributions, sensitivity, statistics

__version__ = "0.1.0"

_HOMES = {
    "Adjacency": "privacy.adjacency",
    "ApproxDP": "privacy.guarantees",
    "BudgetError": "errors",
    "Certificate": "release",
    "Dataset": "dataset",
    "DatasetClosed": "errors",
    "Gaussian": "mechanisms",
    "InternalError": "errors",
    "Laplace": "mechanisms",
    "LedgerBusy": "errors",
    "LedgerError": "errors",
    "NoAnswer": "errors",
    "PrivetError": "errors",
    "PublicTable": "tables.query",
    "PureDP": "privacy.guarantees",
    "Query": "tables.query",
    "Release": "release",
    "ReleasePlan": "planner",
    "Session": "session",
    "Table": "tables.query",
    "UserError": "errors",
    "ZeroConcentratedDP": "privacy.guarantees",
    "bins": "tables.language",
    "boolean": "tables.schema",
    "col": "tables.language",
    "count": "tables.aggregates",
    "count_people": "tables.aggregates",
    "date": "tables.schema",
    "duckdb_file": "sources",
    "each_row": "privacy.adjacency",
    "epsilon_for": "mechanisms",
    "greatest": "tables.extremes",
    "histogram": "tables.aggregates",
    "import_csv": "sources",
    "integer": "tables.schema",
    "keys": "tables.schema",
    "keys_from": "sources",
    "least": "tables.extremes",
    "lit": "tables.language",
    "max": "tables.extremes",
    "mean": "tables.aggregates",
    "min": "tables.extremes",
    "new_signing_key": "release",
    "number": "tables.schema",
    "open_ledger": "ledger",
    "person": "privacy.adjacency",
    "public_table": "sources",
    "std": "tables.aggregates",
    "sum": "tables.aggregates",
    "table": "sources",
    "text": "tables.schema",
    "timestamp": "tables.schema",
    "variance": "tables.aggregates",
    "verify": "release",
    "when": "tables.language",
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
    "Adjacency",
    "ApproxDP",
    "BudgetError",
    "Certificate",
    "Dataset",
    "DatasetClosed",
    "Gaussian",
    "InternalError",
    "Laplace",
    "LedgerBusy",
    "LedgerError",
    "NoAnswer",
    "PrivetError",
    "PublicTable",
    "PureDP",
    "Query",
    "Release",
    "ReleasePlan",
    "Session",
    "Table",
    "UserError",
    "ZeroConcentratedDP",
    "accounting",
    "adjacency",
    "audit",
    "bins",
    "boolean",
    "col",
    "count",
    "count_people",
    "date",
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
    "guarantees",
    "histogram",
    "import_csv",
    "integer",
    "keys",
    "keys_from",
    "least",
    "ledger",
    "lit",
    "max",
    "mean",
    "mechanisms",
    "min",
    "new_signing_key",
    "noise",
    "number",
    "open_ledger",
    "person",
    "planner",
    "public_table",
    "release",
    "sensitivity",
    "sources",
    "statistics",
    "std",
    "sum",
    "table",
    "text",
    "timestamp",
    "variance",
    "verify",
    "when",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"privet.{_HOMES[name]}"), name)
    elif name in __all__:
        value = import_module(f"privet.{_MODULES.get(name, name)}")
    else:
        from difflib import get_close_matches

        known = {each.lower(): each for each in __all__}
        near = [known[each] for each in get_close_matches(name.lower(), known, n=3, cutoff=0.6)]
        hint = f"Did you mean {' or '.join(near)}?" if near else "All names: dir(privet)"
        raise AttributeError(f"module 'privet' has no attribute {name!r}. {hint}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
