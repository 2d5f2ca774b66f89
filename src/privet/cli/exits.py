"""How a command ends with an error: a message, or JSON for a program, and an exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, NoReturn, TextIO

from privet.errors import (
    BudgetError,
    InternalError,
    LedgerBusy,
    LedgerError,
    NoAnswer,
    NoConnection,
    NotChecked,
    PrivetError,
    UserError,
    VerificationError,
)

EXITS: tuple[tuple[type[PrivetError], int], ...] = (
    (BudgetError, 3),
    (UserError, 2),
    (NotChecked, 2),
    (VerificationError, 1),
    (NoAnswer, 4),
    (LedgerBusy, 75),
    (NoConnection, 75),
    (LedgerError, 5),
    (InternalError, 70),
)
CLOSED = 141
"""The exit code if the reader closed the output, as in a shell: 128 plus the number of SIGPIPE."""


def for_programs(arguments: Sequence[str]) -> bool:
    """Whether a program reads the output. The arguments are read directly, because they may be what is wrong.

    Example:
        >>> for_programs(["query", "--format", "json"]), for_programs(["query", "--", "--json"])
        (True, False)
    """
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options or "--format=json" in options or ("--format", "json") in pairwise(options)


def tell(kind: str, code: int, message: str, *, head: str = "error: ") -> None:
    """Print an error on stderr."""
    _print(f"{head}{message}", {"kind": kind, "message": message, "exit": code})


def _print(text: str, fields: dict[str, Any]) -> None:
    if for_programs(sys.argv[1:]):
        text = json.dumps({"error": fields}, ensure_ascii=False)
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def failed(error: Exception) -> NoReturn:
    """End the command with an error."""
    kind = type(error).__name__
    match error:
        case PrivetError():
            code = next((code for kind, code in EXITS if isinstance(error, kind)), 70)
            _print(f"error: {error.render('terminal')}", {**error.to_json("terminal"), "exit": code})
        case OSError():
            code, stored = 2, "".join(f". {note}" for note in getattr(error, "__notes__", ()))
            tell(kind, code, f"the output could not be written: {error.strerror or error}{stored}")
        case _ if hasattr(error, "format_message"):  # a usage error that Typer raised
            code = int(getattr(error, "exit_code", 2))
            if for_programs(sys.argv[1:]) or not hasattr(error, "show"):
                tell("UsageError", code, error.format_message())
            else:
                with suppress(OSError):
                    error.show()
        case _:
            code = 1
            tell(kind, code, "stopped: a prompt was not answered")
    for stream in (sys.stdout, sys.stderr):
        _flushed(stream)
    raise SystemExit(code)


def bug(error: Exception) -> NoReturn:
    """End the command with an unexpected error."""
    import traceback

    if for_programs(sys.argv[1:]):
        tell(
            "InternalError", 70, f"a bug in Privet: {type(error).__name__}. Run it without --json to see the traceback"
        )
    else:
        with suppress(OSError):
            traceback.print_exception(error)
    _flushed(sys.stdout)
    raise SystemExit(70)


def closed() -> NoReturn:
    """End quietly, as other commands do on SIGPIPE, because the reader closed the output."""
    for stream in (sys.stdout, sys.stderr):
        _flushed(stream)
    raise SystemExit(CLOSED)


def _flushed(stream: TextIO) -> None:
    """Flush a stream. If that fails, discard the rest: Python would try again on exit, and print a warning."""
    try:
        stream.flush()
    except OSError:
        with suppress(OSError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)
