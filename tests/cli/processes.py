"""Commands as processes of their own that need not load Privet again: children of a nursery (tests/ledger/workers)."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.asking import Done
from tests.ledger.workers import Nursery

LOADED = (
    "tests.cli.processes", "privet.cli", "privet.policy.agreement", "privet.policy.description",
    "privet.planner.limits", "privet.engines.duckdb.engine", "privet.engines.duckdb.attaching", "privet.sql",
    "privet.sql.quoting", "privet.release.render.json", "sqlglot.dialects.duckdb",
)  # fmt: skip
"""What commands import when they need it."""


@contextmanager
def warm(folder: Path) -> Iterator[Nursery]:
    """A nursery that has loaded what commands and sessions use."""
    with Nursery(folder) as nursery:
        for module in LOADED:
            nursery.load(module)
        yield nursery


PRIVET = "from privet.__main__ import main; main()"
NOBODY = "nobody reads it"


def ran(nursery: Nursery, folder: Path, *arguments: str, program: str = PRIVET, stdout: str | None = None) -> Done:
    """How a command ended; its output goes to a file, to a pipe that nobody reads, or to a device."""
    out, err = folder / ".stdout", folder / ".stderr"
    child = nursery.start(
        command, program=program, arguments=arguments, folder=folder, stdout=stdout or out, stderr=err
    )
    code = child.join()
    printed = "" if stdout else out.read_text(encoding="utf-8")
    said = err.read_text(encoding="utf-8")
    err.unlink()
    out.unlink(missing_ok=True)
    return Done(code, printed, said)


def command(program: str, arguments: list[str], folder: str, stdout: str, stderr: str) -> None:
    """What the child does. It ends as Python does, with all that is flushed and said at the end."""
    os.chdir(folder)
    for number, path in ((1, stdout), (2, stderr)):
        if path == NOBODY:
            reader, writer = os.pipe()
            os.close(reader)
        else:
            writer = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(writer, number)
    sys.argv = ["-c", *arguments]
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 (until the end)
    code: object = 0
    try:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as stopped:
        code = stopped.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    assert isinstance(code, int)
    ctypes.pythonapi.Py_Exit(code)
