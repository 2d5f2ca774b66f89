"""`./dev soak [NAME]`: the searches and kills that take too long for every run of the tests, on all cores.

Each soak has a short form among the tests. To add one, write a function that returns a `Result` and list it in SOAKS.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.neighbours import cubes, hierarchies, in_postgres, in_spark, ranks, unknown_keys  # noqa: E402
from tests.neighbours import further as further_questions  # noqa: E402
from tests.neighbours.crowds import crowd  # noqa: E402
from tests.neighbours.findings import Findings  # noqa: E402
from tests.neighbours.search import FORMS, Case, cases, in_world, search  # noqa: E402
from tests.postgres import running  # noqa: E402
from tests.privacy.adaptive import attack, some_meters  # noqa: E402
from tests.server.api.fuzzing import fuzzed  # noqa: E402
from tests.server.api.serving import serving  # noqa: E402
from tests.server.api.test_trees import outcomes  # noqa: E402
from tests.server.fire.kills import killed  # noqa: E402
from tests.spark import running as spark_running  # noqa: E402

from privet.server.accounts import Role  # noqa: E402

CASES = 100_000
ANALYSTS = 32_000
REQUESTS = 10_000
ROUNDS = 200
_ANALYSTS = 100  # analysts that a process tries before it reports
_CHUNK = 4  # worlds that a process searches before it reports
_SHOWN = 10  # violations that are printed
_FORMS = 20  # of the unit in which neighbours of quantiles and keys differ

T = TypeVar("T")


@dataclass(frozen=True)
class Result:
    """A line of the closing table."""

    what: str
    counted: str
    failed: int
    seconds: float


# --- neighbours -------------------------------------------------------------------------------------


SEARCHES: dict[str, dict[str, Any]] = {
    "neighbours": {},
    "levels": {"ask": cubes.planned, "make": crowd, "forms": 12},
    "trees": {"ask": hierarchies.planned, "make": hierarchies.forest, "forms": 12},
    "further": {"ask": further_questions.planned, "make": crowd, "forms": 12},
    "postgres": {"measure": in_postgres.by_postgres},
    "spark": {"measure": in_spark.by_spark},
}
"""The searches for measurements, by their names: what is asked of which worlds."""


def neighbours(options: argparse.Namespace) -> Result:
    """No neighbour moves a measurement further than its plan claims."""
    return moving("neighbours", options)


def levels(options: argparse.Namespace) -> Result:
    """No neighbour moves a level of a rollup or a cube further than its plan claims."""
    return moving("levels", options)


def trees(options: argparse.Namespace) -> Result:
    """No neighbour moves a tier of a tree of keys further than its plan claims."""
    return moving("trees", options)


def further(options: argparse.Namespace) -> Result:
    """The same for lower caps, different values, filtered aggregates and batches; see tests/neighbours/further.py."""
    return moving("further", options)


def postgres(options: argparse.Namespace) -> Result:
    """No neighbour moves a measurement further than its plan claims, counted by Postgres."""
    with running() as address:
        os.environ[in_postgres.AT] = address
        return moving("postgres", options)


def spark(options: argparse.Namespace) -> Result:
    """No neighbour moves a measurement further than its plan claims, counted by Spark. A case takes it a second."""
    with spark_running() as (server, _):
        os.environ[in_spark.AT] = server.address
        return moving("spark", options)


def moving(name: str, options: argparse.Namespace) -> Result:
    """A search for neighbours that move a measurement too far."""
    numbers = in_world(SEARCHES[name].get("forms", FORMS))
    if options.case is not None:
        return one_case(name, options.case, numbers)
    began, seconds, found = time.monotonic(), 0.0, Findings()
    first = options.start // numbers
    for done, part in enumerate(searched(partial(search, **SEARCHES[name]), first, options.jobs), start=1):
        found.add(part)
        for line in part.violations[: _SHOWN if len(found.violations) <= _SHOWN else 0]:
            print(line, flush=True)
        seconds = time.monotonic() - began
        if done % 25 == 0 or found.cases >= options.cases:
            rate = f"{found.cases / seconds:.0f} cases/s, {len(found.violations)} violations, {seconds:.0f} s"
            print(
                f"{found.cases:,} cases of {found.questions:,} questions in {found.worlds:,} worlds, {rate}", flush=True
            )
        if found.cases >= options.cases:
            break
    for key, reached in sorted(found.reached.items()):
        print(f"  {key:24} reached {reached:.3g} of its claim")
    if found.first is not None:
        print(f"look at the first again: ./dev soak {name} --case {found.first}")
    print(f"go on from here: ./dev soak {name} --start {(first + found.worlds) * numbers}")
    counted = f"{found.cases:,} cases ({found.questions:,} questions, {found.worlds:,} worlds)"
    return Result(f"{name}: moved beyond the claim", counted, len(found.violations), seconds)


def searched(run: Callable[[range], T], first: int, jobs: int) -> Iterator[T]:
    """What is found in the worlds from the first on, some at a time, without end: in their order, on all cores."""
    numbers = count(first, _CHUNK)
    # New processes from time to time: an engine's memory does not all come back.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), max_tasks_per_child=50) as pool:
        waiting: list[Future[T]] = []
        try:
            while True:
                while len(waiting) < 3 * jobs:
                    start = next(numbers)
                    waiting.append(pool.submit(run, range(start, start + _CHUNK)))
                wait(waiting, return_when=FIRST_COMPLETED)
                while waiting and waiting[0].done():
                    yield waiting.pop(0).result()
        finally:
            for each in waiting:
                each.cancel()


def one_case(name: str, number: int, numbers: int) -> Result:
    """One case, with all that belongs to it."""
    began = time.monotonic()
    found = [case for case in cases(number // numbers, **SEARCHES[name]) if case.number == number]
    if not found:
        sys.exit(f"there is no case {number}: some numbers of a world are not used")
    failed = show(found[0])
    return Result(f"case {number}: moved beyond the claim", "1 case", failed, time.monotonic() - began)


def show(case: Case) -> int:
    """Prints a case; how many of its measurements moved too far."""
    of = case.of
    print(f"case {case.number}")
    print(f"{of.protect}, {of.adjacency}{'' if of.rows is None else f', {of.rows} rows'}")
    for table, columns in of.columns.items():
        for name, made in columns.items():
            print(f"  {table}.{name}: {made.declared}, as {made.arrow}")
    print(f"question: {case.plan.query}")
    for title, data in (("one table", case.left), ("the other", case.right)):
        print("the same rows in another order" if case.ordered and title == "the other" else title)
        for table, rows in data.items():
            for row in rows:
                print(f"  {table}: {row}")
    failed = 0
    for (part, change), before, after in zip(case.changes(), case.before, case.after, strict=True):
        allowed = 0 if case.ordered else part.move.total
        failed += change > allowed
        print(f"{part.measurement.rule}: {part.measurement.quantity}: moved by {change}, {allowed} is allowed")
        print(f"  {before}\n  {after}")
    return failed


# --- unknown keys, choices by rank ------------------------------------------------------------------


def keys(options: argparse.Namespace) -> Result:
    """No neighbour changes more unknown keys than claimed, or moves more in their groups."""
    return seeing("keys: changed beyond the claim", partial(unknown_keys.search, forms=_FORMS), options)


def quantiles(options: argparse.Namespace) -> Result:
    """No neighbour moves a choice by rank further than its plan claims; see tests/neighbours/ranks.py."""
    return seeing("quantiles: moved beyond the claim", partial(ranks.search, forms=_FORMS), options)


def seeing(what: str, run: Callable[[range], Findings], options: argparse.Namespace) -> Result:
    """A search whose cases have no numbers of their own: `--start` is a world."""
    began, seen = time.monotonic(), Findings()
    for done, part in enumerate(searched(run, options.start, options.jobs), start=1):
        seen.add(part)
        print(*part.violations[:_SHOWN], sep="\n", end="\n" if part.violations else "", flush=True)
        if done % 10 == 0 or seen.cases >= options.cases:
            seconds = time.monotonic() - began
            print(f"{seen.cases:,} cases, {len(seen.violations)} violations, {seconds:.0f} s", flush=True)
        if seen.cases >= options.cases:
            break
    for key, reached in sorted(seen.reached.items()):
        print(f"  {key:24} reached {reached:.3g} of its claim")
    counted = f"{seen.cases:,} cases ({seen.questions:,} questions, {seen.worlds:,} worlds)"
    return Result(what, counted, len(seen.violations), time.monotonic() - began)


# --- kills ------------------------------------------------------------------------------------------


def kills(options: argparse.Namespace) -> Result:
    """1,000 kills of processes that answer questions; see tests/ledger/test_crashes.py."""
    began = time.monotonic()
    tests = ["tests/ledger/test_crashes.py", "-k", "test_kills", "-rP", "-q", "-n", str(options.jobs)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *tests],
        cwd=ROOT,
        env={**os.environ, "PRIVET_TEST_ALL": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    print(done.stdout, flush=True)
    rounds = sum(int(n) for n in re.findall(r"^test_kills\S*: (\d+) rounds", done.stdout, re.MULTILINE))
    failed = done.returncode if not (counted := re.search(r"(\d+) failed", done.stdout)) else int(counted[1])
    return Result("kills: an answer without its debit", f"{rounds:,} kills", failed, time.monotonic() - began)


# --- adaptive analysts ------------------------------------------------------------------------------


def adaptive(options: argparse.Namespace) -> Result:
    """No adaptive analyst gets more than delta past the meters; see tests/privacy/adaptive.py."""
    began, done, found, largest = time.monotonic(), 0, 0, (0.0, 0)
    last = options.start + min(options.cases, ANALYSTS)
    chunks = [range(at, min(at + _ANALYSTS, last)) for at in range(options.start, last, _ANALYSTS)]
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        for cases_, (worst, case, beyond) in zip(chunks, pool.map(attacked, chunks), strict=True):
            done, found, largest = done + len(cases_), found + beyond, max(largest, (worst, case))
            if beyond:
                print(f"case {case} reached {worst:.6f} of delta", flush=True)
            if done % (20 * _ANALYSTS) == 0 or done == last - options.start:
                seconds = time.monotonic() - began
                print(f"{done:,} cases, at most {largest[0]:.3f} of delta, {found} beyond, {seconds:.0f} s", flush=True)
    counted = f"{done:,} cases (at most {largest[0]:.3f} of delta, case {largest[1]})"
    return Result("adaptive: more than delta", counted, found, time.monotonic() - began)


def attacked(numbers: range) -> tuple[float, int, int]:
    """The largest share of delta in these cases, its case, and how many of them exceed delta."""
    shares = [(attack(case, some_meters), case) for case in numbers]
    return *max(shares), sum(share > 1 for share, _ in shares)


# --- the server -------------------------------------------------------------------------------------


def requests(options: argparse.Namespace) -> Result:
    """10,000 requests with mutated query trees, and those of schemathesis, to a server."""
    began, number = time.monotonic(), min(options.cases, REQUESTS)
    with TemporaryDirectory() as folder, serving(Path(folder)) as server:
        found, wrong = outcomes(server.token("ann"), number, seed=options.start)
        print(f"statuses of mutated trees: {found}", *wrong[:_SHOWN], sep="\n", flush=True)
        made, failed = fuzzed(server, Path(folder), examples=100, phases="coverage,fuzzing", role=Role.STEWARD)
        print(failed, flush=True)
    counted = f"{number + made:,} requests"
    return Result(
        "requests: an answer that is not documented", counted, len(wrong) + bool(failed), time.monotonic() - began
    )


def server(options: argparse.Namespace) -> Result:
    """200 kills of the processes of a server, and as many of them or of Postgres; see tests/server/fire/kills.py."""
    began, rounds, wrong = time.monotonic(), min(options.cases, ROUNDS), []
    for postgres in (False, True):
        with TemporaryDirectory() as folder, running() if postgres else nullcontext():
            found = killed(Path(folder), rounds, postgres=postgres, seed=options.start)
        print(f"{'Postgres' if postgres else 'SQLite'}: {found}", *found.wrong[:_SHOWN], sep="\n", flush=True)
        wrong += found.wrong
    counted = f"{2 * rounds:,} kills"
    return Result("server: an answer without its debit", counted, len(wrong), time.monotonic() - began)


SOAKS: dict[str, Callable[[argparse.Namespace], Result]] = {
    "neighbours": neighbours,
    "keys": keys,
    "quantiles": quantiles,
    "levels": levels,
    "trees": trees,
    "further": further,
    "postgres": postgres,
    "spark": spark,
    "kills": kills,
    "adaptive": adaptive,
    "requests": requests,
    "server": server,
}
"""Every soak there is, by its name."""


def main(arguments: list[str]) -> int:
    reader = argparse.ArgumentParser(prog="./dev soak", description="The searches and kills that take long.")
    listed = "; ".join(f"{name}: {run.__doc__}" for name, run in SOAKS.items())
    reader.add_argument("name", nargs="?", choices=list(SOAKS), help=f"one of them alone. {listed}")
    reader.add_argument(
        "--cases",
        type=int,
        default=CASES,
        help=f"how many cases (default: %(default)s; of analysts, at most {ANALYSTS}; of kills of a server, {ROUNDS})",
    )
    reader.add_argument("--start", type=int, default=0, help="the number of the case to start from")
    reader.add_argument("--case", type=int, help="show the case with this number, and nothing else")
    reader.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    options = reader.parse_args(arguments)
    names = [options.name] if options.name else ["neighbours"] if options.case is not None else list(SOAKS)
    if options.case is not None and names[0] not in SEARCHES:
        reader.error(f"--case shows a case of {', '.join(SEARCHES)}")
    results = []
    for name in names:
        print(f"--- {name}", flush=True)
        results.append(SOAKS[name](options))
    print("\n| soak | counted | found | seconds |\n|---|---|---|---|")
    for result in results:
        print(f"| {result.what} | {result.counted} | {result.failed} | {result.seconds:.0f} |")
    return int(any(result.failed for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
