"""Noise off, in Postgres: the exact vectors of a plan over any rows, through tables whose rows are exchanged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests import in_postgres
from tests.neighbours.exact import Vectors
from tests.neighbours.search import Vectorize
from tests.neighbours.worlds import Data, World

from privet.engines.postgres.engine import Postgres
from privet.planner import ReleasePlan

AT = "PRIVET_TEST_POSTGRES"
"""The variable with the address of the server, which the processes of a soak share."""


@contextmanager
def by_postgres(of: World) -> Iterator[Vectorize]:
    """The exact vectors, by Postgres."""
    with in_postgres.at(os.environ[AT]):
        tables = {name: in_postgres.moved(table) for name, table in of.tables.items()}
        engine = Postgres(
            {name: (table.schema, table.source) for name, table in tables.items()},
            {table.name: (table.schema, table.source) for table in of.public},
            salt=b"salt",
        )
        here: list[Any] = [None]

        def counted(plan: ReleasePlan, data: Data) -> Vectors:
            if data is not here[0]:
                for name, rows in data.items():
                    source: Any = tables[name].source
                    in_postgres.execute(f'TRUNCATE "{source.table}"')
                    in_postgres.filled(source.table, of.read(name, rows))
                here[0] = data
            return plan.coordinates([engine.answer(statement) for statement in plan.statements()])

        try:
            yield counted
        finally:
            engine.close()
            in_postgres.execute(*(f'DROP TABLE "{table.source.table}"' for table in tables.values()))
