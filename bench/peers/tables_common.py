"""What the table peers share: the pipe, the clock and the memory.

In: {"path", "epsilon", "rows_per_person", "lower", "upper"}. Out: {"seconds", "cpu", "peak_mb", "count", "sum",
"mean", "rows_kept", "note"}. The first question should be about a tiny file: it pays for what a process pays once.
"""

import atexit
import contextlib
import gc
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

REGIONS = [f"region-{number:02}" for number in range(50)]
SPARK = {
    "driver.memory": "8g",
    "driver.extraJavaOptions": "-Dio.netty.tryReflectionSetAccessible=true",  # Arrow, from Java 11 on
    "sql.shuffle.partitions": "8",
    "ui.enabled": "false",
    "ui.showConsoleProgress": "false",
}


def serve(query: Callable[[str, float, int, tuple[float, float]], dict[str, Any]], note: str) -> None:
    """Answer each question with query(path, epsilon, rows_per_person, (lower, upper)) -> {"count", "sum", ...}."""
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else writes to standard output goes to standard error
    for line in sys.stdin:
        asked = json.loads(line)
        bounds = float(asked["lower"]), float(asked["upper"])
        gc.collect()
        for process in tree(os.getpid()):
            with contextlib.suppress(OSError):
                (process / "clear_refs").write_text("5")  # forget the peak
        start, before = time.perf_counter(), cpu_seconds(os.getpid())
        found = query(asked["path"], float(asked["epsilon"]), asked["rows_per_person"], bounds)
        seconds = time.perf_counter() - start
        cpu = cpu_seconds(os.getpid()) - before
        peak = sum(peak_mb(process) for process in tree(os.getpid()))
        if "mean" not in found:
            found["mean"] = {key: total / max(1, found["count"][key]) for key, total in found["sum"].items()}
        answer = {"seconds": seconds, "cpu": cpu, "peak_mb": peak, "rows_kept": None, "note": note, **found}
        print(json.dumps(answer), file=pipe, flush=True)


def spark() -> Any:
    """A Spark session for this machine; its defaults are for clusters."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[*]")
    scratch = tempfile.mkdtemp()  # else Spark writes to the working directory
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    for key, value in {**SPARK, "sql.warehouse.dir": scratch}.items():
        builder = builder.config(f"spark.{key}", value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def tree(pid: int | str) -> Iterator[Path]:
    """The process and all below it, as directories of /proc; a JVM and its workers among them."""
    home = Path("/proc", str(pid))
    yield home
    tasks: list[Path] = []
    with contextlib.suppress(OSError):
        tasks = list(home.glob("task/*"))
    for task in tasks:
        for child in _read(task / "children").split():
            yield from tree(child)


def cpu_seconds(pid: int | str) -> float:
    """What a process and all below it have computed so far, those that have ended included."""
    found = 0.0
    for process in tree(pid):
        fields = _read(process / "stat").rpartition(")")[2].split()
        found += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return found


def peak_mb(process: Path) -> float:
    """Peak resident memory since clear_refs, in MB."""
    lines = _read(process / "status").splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


def _read(path: Path) -> str:
    """What a file of /proc says; nothing if its thread or process has just ended."""
    try:
        return path.read_text()
    except OSError:
        return ""
