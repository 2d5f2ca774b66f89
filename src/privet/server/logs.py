"""The log: a line of JSON for each request, and for what went wrong. No statement, value, token or query string."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from threading import Lock
from typing import Any, TextIO

from privet.errors import PrivetError
from privet.server.problems import is_constant


class Log:
    """Writes lines of JSON; by default to stderr."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._lock = Lock()

    def request(self, **fields: Any) -> None:
        """A request that was answered."""
        self._write({"event": "request", **fields})

    def kept_out(self, where: str, reason: str) -> None:
        """Somebody was not let in by OpenID Connect, for one of a few reasons."""
        self._write({"event": "sign-in refused", "route": where, "reason": reason})

    def error(self, error: BaseException, where: str) -> None:
        """An error whose text is not told to whoever asked.

        Of an unexpected error only its kind and the lines of the program are written: its text could hold a value.
        """
        if isinstance(error, PrivetError):
            if is_constant(error):
                self._write({"event": "error", "route": where, "kind": type(error).__name__, "message": error.what})
            return
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-20:]]
        self._write({"event": "bug", "route": where, "kind": type(error).__name__, "at": lines})

    def _write(self, fields: Mapping[str, Any]) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, **fields}, ensure_ascii=True, default=str)
        with self._lock, suppress(OSError, ValueError):
            stream = self._stream or sys.stderr
            stream.write(f"{line}\n")
            stream.flush()
