"""Noise off, in Spark: the exact vectors of a plan over any rows, through files whose rows are exchanged."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import in_spark
from tests.neighbours.exact import Vectors
from tests.neighbours.search import Vectorize
from tests.neighbours.worlds import Data, World
from tests.spark import SparkServer

from privet.engines.spark.engine import Spark
from privet.planner import ReleasePlan

AT = "PRIVET_TEST_SPARK_ADDRESS"
"""The variable with the address of the server, which the processes of a soak share."""


@contextmanager
def by_spark(of: World) -> Iterator[Vectorize]:
    """The exact vectors, by Spark."""
    with in_spark.at(SparkServer(os.environ[AT], Path())):
        tables = {name: in_spark.moved(table) for name, table in of.tables.items()}
        engine = Spark(
            {name: (table.schema, table.source) for name, table in tables.items()},
            {table.name: (table.schema, table.source) for table in of.public},
            salt=b"salt",
        )
        here: list[Any] = [None]

        def counted(plan: ReleasePlan, data: Data) -> Vectors:
            if data is not here[0]:
                for name, rows in data.items():
                    source: Any = tables[name].source
                    in_spark.written(of.read(name, rows), Path(source.address.path))
                here[0] = data
            return plan.coordinates([engine.answer(statement) for statement in plan.statements()])

        with engine:
            yield counted
