"""A real Spark that is started for the tests: one Spark Connect server, in one JVM, for all of their processes.

The first process that needs it starts a keeper, which starts the JVM. Every process that uses it holds a shared lock,
which the system takes back however the process ends. The keeper ends the JVM when nobody holds one any more, and the
system ends the JVM with the keeper. With PRIVET_TEST_SPARK=NAME, several runs of the tests share one server, which
`python tests/spark.py NAME` keeps until Ctrl-C: to start a JVM takes longer than most tests.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

_PATIENCE = 180  # seconds for a JVM to start on a busy machine
_KEEPERS: list[subprocess.Popen[bytes]] = []
_STARTED = re.compile(r"Spark Connect server started at: \S*:(\d+)")
_LOG4J = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%ex
"""

QUICK = (
    "-XX:TieredStopAtLevel=1",
    "-XX:ReservedCodeCacheSize=256m",  # the default, 48m, is soon full, and then swept all the time
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",  # half of the time to start is to load classes
)
"""Options for a JVM that lives for minutes."""

_DYING = (
    "import ctypes, os, signal, sys; ctypes.CDLL(None).prctl(1, signal.SIGKILL); os.execv(sys.argv[1], sys.argv[1:])"
)
_WITH_PARENT = [sys.executable, "-I", "-c", _DYING] if sys.platform == "linux" else []
"""The system ends a process when its parent ends. Said after exec: before it, gRPC can end the child."""

_ODD = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "Asia/Kathmandu",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.groupByOrdinal": "false",
}
"""What the server sets for sessions that set nothing: if a result of ours depended on it, it would be seen."""


@dataclass(frozen=True)
class SparkServer:
    """A Spark Connect server, and where it keeps everything."""

    address: str
    folder: Path

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.address.rpartition(":")[2])

    @property
    def log(self) -> Path:
        """The log of the driver and of its executors, from the level INFO on."""
        return self.folder / "spark.log"

    @property
    def events(self) -> Path:
        """The folder of Spark's event log."""
        return self.folder / "events"


# --- the JVM --------------------------------------------------------------------------------------


def start(folder: Path, *, port: int = 0, master: str = "local[2]", **settings: str) -> subprocess.Popen[bytes]:
    """A server of one's own, which ends with this process at the latest."""
    import pyspark

    (folder / "events").mkdir(parents=True, exist_ok=True)
    (folder / "log4j2.properties").write_text(_LOG4J.format(log=folder / "spark.log"))
    options = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{folder / 'events'}",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",  # or nothing could be found in it
        **_ODD,
        **settings,
    }
    java = [
        f"-Dlog4j.configurationFile=file:{folder / 'log4j2.properties'}",
        f"-Dderby.system.home={folder}",
        f"-Djava.io.tmpdir={folder}",
        *QUICK,
    ]
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-submit"), "--master", master, "--driver-memory", "768m"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += ["--driver-java-options", " ".join(java)]
    command += [part for name, value in options.items() for part in ("--conf", f"{name}={value}")]
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder),
    }
    for name in ("SPARK_REMOTE", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
        environment.pop(name, None)
    (folder / "spark.log").unlink(missing_ok=True)
    with (folder / "out").open("wb") as out:
        return subprocess.Popen(
            [*_WITH_PARENT, *command, "spark-internal"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )


def port_of(process: subprocess.Popen[bytes], folder: Path) -> int:
    """The port of a server, once it accepts connections."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and process.poll() is None:
        with suppress(FileNotFoundError):
            if found := _STARTED.search((folder / "spark.log").read_text(errors="replace")):
                return int(found[1])
        time.sleep(0.1)
    raise RuntimeError(f"Spark did not start: {(folder / 'out').read_text(errors='replace')[-2000:]}")


def end(process: subprocess.Popen[bytes]) -> None:
    """End a server, with everything that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def running(**options: str) -> Iterator[tuple[SparkServer, subprocess.Popen[bytes]]]:
    """A server for one test, which may kill it."""
    folder = Path(tempfile.mkdtemp(prefix="spark-"))
    process = start(folder, **options)  # type: ignore[arg-type]
    try:
        yield SparkServer(f"sc://127.0.0.1:{port_of(process, folder)}", folder), process
    finally:
        end(process)
        shutil.rmtree(folder, ignore_errors=True)


# --- one for all processes ------------------------------------------------------------------------


def _keep(folder: Path) -> None:
    """The keeper: it runs the JVM for as long as a process holds the lock."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process = start(folder)
    port = 0
    try:
        port = port_of(process, folder)
        (folder / "address.new").write_text(f"sc://127.0.0.1:{port}")
        (folder / "address.new").rename(folder / "address")
        with (folder / "users").open("rb") as users:
            while process.poll() is None:
                with suppress(BlockingIOError):
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                time.sleep(0.5)
    finally:
        (folder / "users").unlink(missing_ok=True)  # who comes now, begins anew
        end(process)
        if port:  # else the one who waits reads why
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def shared(run: str) -> Iterator[SparkServer]:
    """The server of one run of the tests, started if nobody has."""
    folder = Path(tempfile.gettempdir()) / f"privet-spark-{run}"
    until = time.monotonic() + 2 * _PATIENCE
    while time.monotonic() < until:
        folder.mkdir(exist_ok=True)
        with (folder / "users").open("ab") as users:
            fcntl.flock(users, fcntl.LOCK_SH)
            if not _is_at(folder / "users", users.fileno()):
                continue  # the keeper has just ended
            with (folder / "starting").open("ab") as starting:
                fcntl.flock(starting, fcntl.LOCK_EX)
                if not (folder / "address").exists():
                    _begin(folder)
            yield SparkServer((folder / "address").read_text(), folder)
            return
    raise RuntimeError("Spark did not start")


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False


def _begin(folder: Path) -> None:
    with (folder / "keeper").open("wb") as out:
        keeper = subprocess.Popen(
            [sys.executable, "-P", __file__, str(folder)], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            start_new_session=True,
        )  # fmt: skip
    _KEEPERS.append(keeper)  # it outlives this process, perhaps
    until = time.monotonic() + _PATIENCE
    while not (folder / "address").exists():
        if keeper.poll() is not None or time.monotonic() > until:
            why = (folder / "keeper").read_text(errors="replace")
            shutil.rmtree(folder, ignore_errors=True)
            raise RuntimeError(f"Spark did not start: {why[-2000:]}")
        time.sleep(0.1)


@pytest.fixture(scope="session")
def java() -> None:
    """A Java runtime that Spark can use; without one its tests are skipped, which on CI is a failure."""
    home = os.environ.get("JAVA_HOME")
    try:
        said = subprocess.run(
            [f"{home}/bin/java" if home else "java", "-version"], capture_output=True, text=True, check=False
        )
        found = re.search(r'version "(\d+)', said.stderr)
    except OSError:
        found = None
    if found is None or int(found[1]) < 17:
        pytest.skip("Spark needs Java 17 or newer; ./dev test installs it, as root")


@pytest.fixture(scope="session")
def spark_server(java: None, request: pytest.FixtureRequest) -> Iterator[SparkServer]:
    """A Spark Connect server, one for all processes of the tests; and a session that stays open, which saves time."""
    from privet.engines.spark import sessions
    from privet.engines.spark.addresses import parsed

    given = getattr(request.config, "workerinput", {})
    run = os.environ.get("PRIVET_TEST_SPARK") or str(given.get("testrunuid", os.getpid()))
    with shared(run) as server, sessions.reading(parsed(server.address)):
        yield server


if __name__ == "__main__":
    if Path(sys.argv[1]).is_absolute():
        _keep(Path(sys.argv[1]))
    else:
        with shared(sys.argv[1]) as kept, suppress(KeyboardInterrupt):
            print(kept.address, flush=True)
            signal.pause()
