"""A child of a fork asks Spark Connect through a session of its own, whatever its parent's threads were doing."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, suppress
from threading import Event, Thread

import pyarrow as pa
import pytest
from tests import in_spark
from tests.spark import SparkServer

from privet.engines.spark import sessions
from privet.engines.spark.engine import Spark
from privet.privacy.adjacency import each_row
from privet.tables import schema as declared
from privet.tables.operators import Scan
from privet.tables.schema import Schema
from privet.tables.statement import Rows, Statement, Unbounded

SCHEMA = Schema.declare("t", protect=each_row(), columns={"x": declared.integer(0, 9)})
COUNT = Statement(Scan(SCHEMA), (), Unbounded(), (Rows(),))
LONGEST = 120  # seconds; a child that hangs ends by then


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_child_has_a_session_and_locks_of_its_own(spark_server: SparkServer) -> None:
    """Another thread of the parent is just opening a session, with all locks of Spark's sessions, at the fork."""
    held, done = Event(), Event()
    with (
        in_spark.at(spark_server),
        Spark({"t": (SCHEMA, in_spark.stored(SCHEMA, pa.table({"x": [1, 2, 3]})))}, salt=b"salt") as engine,
    ):
        assert engine.answer(COUNT) == [[3]]
        before = engine._opened().spark.session_id

        def hold() -> None:
            with ExitStack() as locks:
                for lock in (sessions._LOCK, engine._home().opening, engine._home().changed):
                    locks.enter_context(lock)
                held.set()
                done.wait(LONGEST)

        thread = Thread(target=hold)
        thread.start()
        assert held.wait(LONGEST)
        child = os.fork()
        if child == 0:  # pragma: no cover
            signal.alarm(LONGEST)
            code = 1
            with suppress(BaseException):
                engine.ready()
                mine = engine._opened().spark.session_id
                code = 0 if engine.answer(COUNT) == [[3]] and mine != before else 2
                engine.close()
            os._exit(code)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        done.set()
        thread.join()
        assert ended == 0
        assert engine.answer(COUNT) == [[3]]
        assert engine._opened().spark.session_id == before
