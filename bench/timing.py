"""The clock of every benchmark."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(run: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def cpu_seconds(run: Callable[[], object]) -> float:
    """How long a call computes, whatever else runs on the machine: for calls in one thread that wait for nothing."""
    start = time.process_time()
    run()
    return time.process_time() - start
