"""Other libraries, each in its own environment, called over a pipe so that rounds can alternate."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".bench"


class Peer:
    """A script in peers/, running in an environment that holds `requirement`; one JSON line in, one out.

    `requirement` may be several, with spaces between them; None stands for the environment of the benchmark itself.
    `python`: another version than that of the benchmark, such as "3.12".
    """

    def __init__(self, requirement: str | None, script: str, *, python: str = "", **environment: str) -> None:
        chosen = Path(sys.executable) if requirement is None else self._environment(requirement, python)
        self._process = subprocess.Popen(
            [str(chosen), str(HERE / "peers" / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def ask(self, **question: Any) -> Any:
        """The script's answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the peer's process ended; see its message above")
        return json.loads(line)

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        self._process.stdout.close()

    @staticmethod
    def _environment(requirement: str, version: str) -> Path:
        version = version or f"{sys.version_info.major}.{sys.version_info.minor}"
        home = ENVIRONMENTS / f"{requirement.replace(' ', '_')}-py{version}"
        python = home / "bin" / "python"
        if not (home / "ready").exists():
            print(f"bench: installing {requirement} into its own environment", file=sys.stderr)
            subprocess.run([_interpreter(version), "-m", "venv", "--clear", str(home)], check=True)
            pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
            subprocess.run([*pip, *requirement.split()], check=True)
            (home / "ready").touch()
        return python


def _interpreter(version: str) -> str:
    """A Python of this version: ours, one on the path, or one of pyenv."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    managed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{version}.*/bin/python")
    for found in (shutil.which(f"python{version}"), *sorted(map(str, managed), reverse=True)):
        # Started, not only looked up: a version manager's shim can be on the path and yet fail.
        if found and subprocess.run([found, "-V"], capture_output=True, check=False).returncode == 0:
            return found
    raise RuntimeError(f"there is no Python {version} on this machine")
