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

    from privet import (
        accounting,
        audit,
        distances,
        distributions,
        divergences,
        errors,
        events,
        exact,
        guarantees,
        ledger,
        mechanisms,
        noise,
        planner,
        release,
        sensitivity,
        sources,
        statistics,
    )
    from privet.distances import Adjacency, each_row, person
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
    from privet.guarantees import ApproxDP, PureDP, ZeroConcentratedDP
    from privet.ledger import open_ledger
    from privet.mechanisms import Laplace, epsilon_for
    from privet.planner import ReleasePlan
    from privet.query import PublicTable, Query, Table, greatest, least
    from privet.relation.aggregates import count, count_people, histogram, mean, std, sum, variance  # noqa: A004
    from privet.relation.language import bins, col, lit, when
    from privet.relation.schema import boolean, date, integer, keys, number, text, timestamp
    from privet.release import Certificate, Release, new_signing_key, verify
    from privet.session import Session
    from privet.sources import duckdb_file, import_csv, keys_from, public_table, table

__version__ = "0.1.0"

_HOMES = {
    "Adjacency": "distances",
    "ApproxDP": "guarantees",
    "BudgetError": "errors",
    "Certificate": "release",
    "DatasetClosed": "errors",
    "InternalError": "errors",
    "Laplace": "mechanisms",
    "LedgerBusy": "errors",
    "LedgerError": "errors",
    "NoAnswer": "errors",
    "PrivetError": "errors",
    "PublicTable": "query",
    "PureDP": "guarantees",
    "Query": "query",
    "Release": "release",
    "ReleasePlan": "planner",
    "Session": "session",
    "Table": "query",
    "UserError": "errors",
    "ZeroConcentratedDP": "guarantees",
    "bins": "relation.language",
    "boolean": "relation.schema",
    "col": "relation.language",
    "count": "relation.aggregates",
    "count_people": "relation.aggregates",
    "date": "relation.schema",
    "duckdb_file": "sources",
    "each_row": "distances",
    "epsilon_for": "mechanisms",
    "greatest": "query",
    "histogram": "relation.aggregates",
    "import_csv": "sources",
    "integer": "relation.schema",
    "keys": "relation.schema",
    "keys_from": "sources",
    "least": "query",
    "lit": "relation.language",
    "mean": "relation.aggregates",
    "new_signing_key": "release",
    "number": "relation.schema",
    "open_ledger": "ledger",
    "person": "distances",
    "public_table": "sources",
    "std": "relation.aggregates",
    "sum": "relation.aggregates",
    "table": "sources",
    "text": "relation.schema",
    "timestamp": "relation.schema",
    "variance": "relation.aggregates",
    "verify": "release",
    "when": "relation.language",
}

__all__ = [
    "Adjacency",
    "ApproxDP",
    "BudgetError",
    "Certificate",
    "DatasetClosed",
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
    "mean",
    "mechanisms",
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
        value = import_module(f"privet.{name}")
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
