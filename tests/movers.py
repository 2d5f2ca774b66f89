"""Where each engine reads rows: tables of tests are moved there. An engine that reads rows in memory has no mover."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
from tests import in_postgres, in_spark

from privet.engines.registry import engine_class
from privet.tables.relation import Table

MOVERS: dict[str, tuple[ModuleType, str]] = {"postgres": (in_postgres, "server"), "spark": (in_spark, "spark_server")}
"""By engine: a module with `at`, `moved` and `lose`, and the fixture with the address that `at` takes."""


@contextmanager
def reachable(name: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """An engine by name; while this lasts, tables can be moved to it."""
    if name not in MOVERS:
        yield name
        return
    module, fixture = MOVERS[name]
    with module.at(request.getfixturevalue(fixture)):
        yield name


def moved(name: str, table: Table) -> Table:
    """The table where this engine reads it."""
    there: Table = MOVERS[name][0].moved(table) if name in MOVERS else table
    return there


def lose(engine: object) -> None:
    """The tables that an engine reads are gone."""
    for module, _ in MOVERS.values():
        module.lose(engine)


def opened(name: str, *tables: Table, public: Any = (), salt: bytes = b"salt") -> Any:
    """An engine over tables as a dataset opens it."""
    given = {table.name: (table.schema, moved(name, table).source) for table in tables}
    return engine_class(name)(given, {p.name: (p.schema, p.source) for p in public}, salt=salt, threads=2)
