"""What Spark's client would write to the standard error stream: an engine's error text, perhaps with a row's value.

Claim: nothing is logged in this process on behalf of our own statements. What others do with Spark is logged as before.
"""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")
_GATEWAYS = ("py4j.clientserver", "py4j.java_gateway")  # at the level DEBUG all that they send and receive
_ROOT = ""  # where py4j itself logs each Ctrl-C


class _Silence(logging.Filter):
    """Drops what is logged in a thread while it runs a statement of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        return not getattr(self.calls, "depth", 0)


@cache
def _silence() -> _Silence:
    from pyspark.logger import PySparkLogger  # a logger of another class would fail where pyspark uses it

    # of pyspark, in place of the error itself
    warnings.filterwarnings("ignore", category=UserWarning, module=r"pyspark\.sql\.connect\.client\.retries")
    made = _Silence()
    for name in _LOGGERS:
        PySparkLogger.getLogger(name).addFilter(made)
    for name in (*_GATEWAYS, _ROOT):
        logging.getLogger(name).addFilter(made)
    return made


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing is logged by this thread while this lasts."""
    calls = _silence().calls
    calls.depth = getattr(calls, "depth", 0) + 1
    try:
        yield
    finally:
        calls.depth -= 1
