"""How much a run of the tests searches: `./dev test`, or ten times as much with `./dev test --all`."""

import os
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

EFFORT = 10 if os.environ.get("PRIVET_TEST_ALL") else 1


def some(cases: Sequence[T], *, every: int, start: int = 0) -> list[T]:
    """Every n-th of these cases; all of them with `./dev test --all`. `start` lets several lists take turns."""
    return list(cases) if EFFORT > 1 else list(cases[start % every :: every])
