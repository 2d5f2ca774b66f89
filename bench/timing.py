"""The clock of every benchmark."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(run: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
