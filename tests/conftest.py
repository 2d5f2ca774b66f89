"""How the whole suite runs: the same examples every time, no process idle at the end, and on CI nothing left out.

`./dev test` runs 3/5 of the examples that a Hypothesis test names, and `./dev test --all` (PRIVET_TEST_ALL=1) `EFFORT`
times as many. A test that counts for itself takes the fixture `effort`, and one that runs through a product of cases
thins it with `tests.effort.some`.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, is_hypothesis_test, settings
from tests.effort import EFFORT
from tests.object_storage import gs, s3, s3_running  # noqa: F401 (fixtures)
from tests.postgres import databases, emptied, postgres, server  # noqa: F401 (fixtures)
from tests.spark import java, spark_server  # noqa: F401 (fixtures)

if TYPE_CHECKING:
    from tests.ledger.workers import Nursery

ATTRIBUTE = "_hypothesis_internal_use_settings"

# Plots are drawn to files; there may be no screen.
os.environ["MPLBACKEND"] = "Agg"

# What Privet and its libraries remember of files is kept apart from what the user's own programs remember.
os.environ["XDG_CACHE_HOME"] = str(Path(__file__).parent.parent / ".pytest_cache" / "xdg")

# A shell that starts the suite in the background lets it ignore Ctrl-C; the tests of interruptions need to feel it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Derandomized: a failure is the same on every machine, and a run that passes says so about the code and not about luck.
# No deadline, and no complaint about slow examples: a busy machine is no bug.
settings.register_profile(
    "privet",
    max_examples=30 if EFFORT == 1 else 50,
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("privet")


@pytest.fixture(scope="session")
def effort() -> int:
    """1, or 10 with `./dev test --all`: what a test multiplies its own counts by."""
    return EFFORT


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Forks children for tests of processes; one for each process of the tests, because its start takes seconds."""
    from tests.cli.processes import warm

    with warm(tmp_path_factory.mktemp("nursery")) as made:
        yield made


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Examples in docstrings are in src; to look for them in the tests took seconds in each process."""
    return [each for each in (yield) if not isinstance(each, DoctestModule)]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = [item for item in items if item.get_closest_marker("slow") is not None]
    quick = [item for item in items if item.get_closest_marker("slow") is None]
    items[:] = _shared(quick, slow, getattr(config, "workerinput", {}).get("workercount", 1))
    for test in {_function(item) for item in items if is_hypothesis_test(_function(item))}:
        _multiply_examples(test)


def _shared(quick: list[pytest.Item], slow: list[pytest.Item], processes: int) -> list[pytest.Item]:
    """In one process, slow tests last: most errors are seen early. In several, each begins with its part of them.

    A long test that begins last would leave the other processes idle. xdist (`--dist worksteal`) gives each process an
    equal part of the list, in order, and lets those that are done take from the ends of the others'.
    """
    if processes == 1:
        return quick + slow
    order: list[pytest.Item] = []
    for left in range(processes, 0, -1):
        size = (len(quick) + len(slow)) // left
        begin = len(slow) // left
        order += slow[:begin] + quick[: size - begin]
        slow, quick = slow[begin:], quick[size - begin :]
    return order


def pytest_configure() -> None:
    """Nothing that is imported or collected is garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end: the garbage collector need not look at it each time."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)  # fewer looks for little garbage: they took a tenth of the time


def _function(item: pytest.Item) -> object:
    return getattr(getattr(item, "obj", None), "__func__", getattr(item, "obj", None))


def _multiply_examples(test: object) -> None:
    # Hypothesis has no public way to change a test's settings from outside. If this name changes, this fails aloud.
    own = getattr(test, ATTRIBUTE) or settings.default
    assert isinstance(own, settings)
    many = own.max_examples * EFFORT if EFFORT > 1 else -(-own.max_examples * 3 // 5)
    setattr(test, ATTRIBUTE, settings(own, max_examples=many))


def _left_out(config: pytest.Config) -> list[str]:
    """What was skipped, if this is CI; a skipped test is a test that nobody knows to be broken."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("CI"):
        return []
    return [report.nodeid for report in reporter.stats.get("skipped", [])]


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    gc.unfreeze()
    if _left_out(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if left_out := _left_out(terminalreporter.config):
        terminalreporter.section("skipped on CI", red=True, bold=True)
        terminalreporter.line("On CI nothing may be skipped; make these run, or remove them:")
        for nodeid in left_out:
            terminalreporter.line(f"  {nodeid}")
