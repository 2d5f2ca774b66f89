"""How a command that fails says so: in words, or as JSON for a program; and with which exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, NoReturn, TextIO

from privet.cli.wording import in_terminal
from privet.errors import (
    BudgetError,
    InternalError,
    LedgerBusy,
    LedgerError,
    NoAnswer,
    PolicyError,
    PrivetError,
    UserError,
    VerificationError,
)

EXITS: tuple[tuple[type[PrivetError], int], ...] = (
    (BudgetError, 3),
    (UserError, 2),
    (VerificationError, 1),
    (NoAnswer, 4),
    (LedgerBusy, 75),
    (LedgerError, 5),
    (InternalError, 70),
)
CLOSED = 141
"""The exit code if nobody reads the output, as shells have it: 128 and the number of SIGPIPE."""


def for_programs(arguments: Sequence[str]) -> bool:
    """Whether a program reads the answer. The options are read by themselves: they may be what is wrong.

    Example:
        >>> for_programs(["query", "--format", "json"]), for_programs(["query", "--", "--json"])
        (True, False)
    """
    given = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in given or "--format=json" in given or ("--format", "json") in pairwise(given)


def tell(kind: str, code: int, message: str, *, head: str = "error: ", **more: Any) -> None:
    """Say on stderr what went wrong."""
    text = f"{head}{message}"
    if for_programs(sys.argv[1:]):
        text = json.dumps({"error": {"kind": kind, "exit": code, "message": message, **more}}, ensure_ascii=False)
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def failed(error: Exception) -> NoReturn:
    """End with what went wrong."""
    kind = type(error).__name__
    match error:
        case PrivetError():
            code = next((code for kind, code in EXITS if isinstance(error, kind)), 70)
            tell(kind, code, in_terminal(str(error)), **_more(error))
        case OSError():
            code, stored = 2, "".join(f". {note}" for note in getattr(error, "__notes__", ()))
            tell(kind, code, f"the output could not be written: {error.strerror or error}{stored}")
        case _ if hasattr(error, "format_message"):  # an option that is missing or wrong, as Typer tells it
            code = int(getattr(error, "exit_code", 2))
            if for_programs(sys.argv[1:]) or not hasattr(error, "show"):
                tell("UsageError", code, error.format_message())
            else:
                with suppress(OSError):
                    error.show()
        case _:
            code = 1
            tell(kind, code, "stopped: there was no answer to a question")
    for stream in (sys.stdout, sys.stderr):
        _flushed(stream)
    raise SystemExit(code)


def bug(error: Exception) -> NoReturn:
    """End with an error that no code foresaw."""
    import traceback

    if for_programs(sys.argv[1:]):
        tell("InternalError", 70, f"a bug in Privet: {type(error).__name__}. Without --json there is a traceback")
    else:
        with suppress(OSError):
            traceback.print_exception(error)
    _flushed(sys.stdout)
    raise SystemExit(70)


def closed() -> NoReturn:
    """End quietly, as others do whom SIGPIPE ends: nobody reads any more."""
    for stream in (sys.stdout, sys.stderr):
        _flushed(stream)
    raise SystemExit(CLOSED)


def spending(error: PrivetError, spent: dict[str, str] | None) -> None:
    """Note what was spent all the same, for programs."""
    vars(error)["spent"] = spent


def _more(error: PrivetError) -> dict[str, Any]:
    from privet.policy import toml

    more = {name: value for name, value in vars(error).items() if name == "spent" and value is not None}
    if isinstance(error, PolicyError):
        more["problems"] = [
            {"place": toml.dotted(each.place), "line": each.line, "what": each.what} for each in error.problems
        ]
    return more


def _flushed(stream: TextIO) -> None:
    """Write what is left. If that fails it is dropped: Python would try again at its end, and complain."""
    try:
        stream.flush()
    except OSError:
        with suppress(OSError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)
