"""The search for neighbours that move a measurement too far, on Spark. The long form: `./dev soak spark`."""

from __future__ import annotations

import pytest
from tests.neighbours import in_spark
from tests.neighbours.search import search
from tests.spark import SparkServer

WORLD = 91_022  # a statement takes long: so it is one world, in which a twin without bounding is found


@pytest.fixture(autouse=True)
def home(spark_server: SparkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(in_spark.AT, spark_server.address)


@pytest.mark.slow
def test_no_neighbour_moves_a_measurement_too_far(effort: int) -> None:
    found = search(range(WORLD, WORLD + effort), measure=in_spark.by_spark, forms=1)
    assert found.violations == []
    assert found.cases > 5
