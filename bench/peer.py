"""Other libraries, each in its own environment, called over a pipe so that rounds can alternate."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent / ".bench"


class Peer:
    """A script in peers/, running in an environment that holds `requirement`; one JSON line in, one out.

    `requirement` may be several, with spaces between them; None stands for the environment of the benchmark itself.
    """

    def __init__(self, requirement: str | None, script: str) -> None:
        python = Path(sys.executable) if requirement is None else self._environment(requirement)
        self._process = subprocess.Popen(
            [str(python), str(HERE / "peers" / script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
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
    def _environment(requirement: str) -> Path:
        home = ENVIRONMENTS / f"{requirement.replace(' ', '_')}-py{sys.version_info.major}.{sys.version_info.minor}"
        python = home / "bin" / "python"
        if not (home / "ready").exists():
            print(f"bench: installing {requirement} into its own environment", file=sys.stderr)
            venv.create(home, with_pip=True, clear=True)
            pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
            subprocess.run([*pip, *requirement.split()], check=True)
            (home / "ready").touch()
        return python
