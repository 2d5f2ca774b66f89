"""The Spark of this process: the one that is active, or one that is started, silent and without ports for browsers."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from privet.engines.spark.logs import quiet
from privet.errors import Remedy, SourceError
from privet.system.interrupts import interruptible

_JAVA = "It needs Java 17 or newer: on the PATH, or where JAVA_HOME says"
_REMOTE = Remedy(
    "Install Java, such as openjdk-17-jre-headless, or use a Spark elsewhere: sc://host:15002#sales.people. If Java is "
    "there, start pyspark in a terminal: it says what is wrong"
)
_END = 5.0  # seconds that Java has to end by itself


def here() -> Any:
    """A new session beside the one that is active in this process, or that its configuration leads to."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None:
        try:
            if not (os.environ.get("SPARK_REMOTE") or os.environ.get("PYSPARK_GATEWAY_PORT")):
                _start()
            with _same_handler():
                active = SparkSession.builder.getOrCreate()
        except Exception as error:
            if getattr(error, "getCondition", str)() == "JAVA_GATEWAY_EXITED":
                raise SourceError("Spark did not start in this process", allowed=_JAVA, remedy=_REMOTE) from None
            raise
    return active.newSession()


def _start() -> None:
    """Start Spark as the machine's configuration says, unless it runs already. On Ctrl-C, what was started is ended.

    Claim: it writes nothing to the terminal, where its log could show a row, and opens no port for browsers.
    """
    from pyspark import SparkConf, SparkContext, java_gateway

    if SparkContext._gateway is not None:
        return
    settings = SparkConf(loadDefaults=False).setAppName("privet")
    settings.set("spark.ui.showConsoleProgress", "false").set("spark.ui.enabled", "false")
    nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    children: list[subprocess.Popen[bytes]] = []

    def child(*given: Any, **named: Any) -> subprocess.Popen[bytes]:
        children.append(subprocess.Popen(*given, **named))
        return children[-1]

    # pyspark tells nobody of a child that has not answered yet
    plain = java_gateway.launch_gateway
    launch = FunctionType(plain.__code__, {**vars(java_gateway), "Popen": child}, argdefs=plain.__defaults__)

    def start() -> None:
        with quiet():
            SparkContext(conf=settings, gateway=launch(settings, popen_kwargs=nowhere))

    try:
        # in a thread of its own, where pyspark takes no Ctrl-C for itself
        interruptible(start, lambda: _end(children))
    except BaseException:
        if any(each.poll() is not None for each in children):
            SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        raise


def _end(children: Iterable[subprocess.Popen[bytes]]) -> None:
    for each in children:
        each.terminate()  # Java removes its files
        try:
            each.wait(_END)
        except subprocess.TimeoutExpired:
            each.kill()


@contextmanager
def _same_handler() -> Iterator[None]:
    """A new context of Spark would take Ctrl-C for itself; `interruptible` ends our statements without it."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
