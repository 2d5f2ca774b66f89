"""The process that starts the others, and replaces those that end.

A process that can't start is tried again after 1, 2, 4 ... seconds, at most `TRIES` times in a row, so that a database
has time to come back. Then the server ends, unless other processes are up. A process that ends by itself at the first
start is not tried again: waiting would not help.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe, wait
from socket import socket

from uvicorn.config import STARTUP_FAILURE, Config
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import SIGNALS, Process

from privet.errors import InternalError, PrivetError

__all__ = ["SIGNALS", "TRIES", "Supervisor", "Worker", "pause"]
TRIES = 12
"""How often in a row a process is started that does not come up: for about six minutes."""
_LONGEST = 60.0  # seconds between two tries


class Worker(Process):
    """A process that answers requests. If it ends while it is asked whether it is well, that is known at once."""

    def __init__(self, config: Config, sockets: list[socket]) -> None:
        self._heard: Connection
        self._told: Connection
        self._heard, self._told = Pipe(duplex=False)
        self.tries = 1
        """How often in a row it was started."""
        super().__init__(config, sockets)

    def target(self, sockets: list[socket] | None = None) -> None:
        """What the process does: serve, or tell why it can't; it ends when the supervisor is gone."""
        logging.getLogger("uvicorn").setLevel(logging.ERROR)
        assert self.server is not None  # made here, before another thread asks for it
        for work in (self.always_pong, _follow):
            threading.Thread(target=work, daemon=True).start()
        try:
            self.config.load()
        except PrivetError as error:
            self._told.send(error)
            sys.exit(STARTUP_FAILURE)
        self.server.run(sockets)

    @property
    def error(self) -> PrivetError | None:
        """Why it could not start, if it has told."""
        found = self._heard.recv() if self._heard.poll() else None
        return found if isinstance(found, PrivetError) else None

    def _healthcheck(self, timeout: float) -> bool | None:
        """Whether it has started; None if it has ended, or does not answer in time.

        The pipe alone does not tell that it has ended: this process holds its other end, too.
        """
        try:
            self.parent_conn.send(b"ping")
            if self.parent_conn not in wait([self.parent_conn, self.process.sentinel], timeout):
                return None
            return bool(self.parent_conn.recv())
        except (OSError, EOFError):
            return None


class Supervisor(Multiprocess):
    """Starts the processes, also a single one, and replaces those that end, whatever ended them."""

    def __init__(self, config: Config, sockets: list[socket], ready: Callable[[], None] = lambda: None) -> None:
        super().__init__(config, sockets)
        self._ready, self._was_up = ready, False
        self._again: dict[int, float] = {}  # for the processes that ended: when they are started again
        self._error: PrivetError | None = None

    def run(self) -> None:
        """Serve until a signal ends it; an error if the processes can't start. `ready` is called once one is up."""
        super().run()
        if self._error is not None:
            raise self._error

    def init_processes(self) -> None:
        """Start all of them."""
        self.processes = [self._started() for _ in range(self.processes_num)]

    def keep_subprocess_alive(self) -> None:
        """Replace those that ended or do not respond."""
        for at, process in enumerate(self.processes):
            assert isinstance(process, Worker)
            if self.should_exit.is_set():
                return
            if at in self._again:
                if time.monotonic() >= self._again[at]:
                    del self._again[at]
                    self.processes[at] = self._started(process.tries + 1)
                continue
            up = process._healthcheck(self.config.timeout_worker_healthcheck) if process.process.is_alive() else None
            if up:
                process.tries = 0
                if not self._was_up:
                    self._was_up = True
                    self._ready()
            elif up is None:
                process.kill()
                process.join()
                self._replace(at, process)

    def _replace(self, at: int, process: Worker) -> None:
        """Start another in place of one that ended: at once if it had come up, and otherwise after a while."""
        others = any(each.tries == 0 for each in self.processes if isinstance(each, Worker) and each.process.is_alive())
        code = process.exitcode or 0
        hopeless = not self._was_up and code >= 0  # it was not killed
        if process.tries and (hopeless or (process.tries >= TRIES and not others)):
            how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
            self._error = process.error or InternalError(f"a process of the server {how} before it was up")
            self.should_exit.set()
        else:
            self._again[at] = time.monotonic() + pause(process.tries)

    def _started(self, tries: int = 1) -> Worker:
        worker = Worker(self.config, self.sockets)
        worker.tries = tries
        worker.start()
        return worker

    def terminate_all(self) -> None:
        """End all that run."""
        for at, process in enumerate(self.processes):
            if at not in self._again and process.process.is_alive():
                process.terminate()

    def handle_hup(self) -> None:
        """The terminal was closed: end."""
        self.should_exit.set()

    def handle_ttin(self) -> None:
        """The number of processes is the policy's."""

    def handle_ttou(self) -> None:
        """The number of processes is the policy's."""


def pause(tries: int) -> float:
    """Seconds before a process is started again that was tried so often in a row; 0 if it had come up.

    Example:
        >>> [pause(tries) for tries in (0, 1, 2, 3, 20)]
        [0.0, 1.0, 2.0, 4.0, 60.0]
    """
    return min(2.0 ** min(tries - 1, 10), _LONGEST) if tries else 0.0


def _follow() -> None:
    """End when the supervisor is gone: its port must be free for the next one."""
    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        supervisor.join()
        os.kill(os.getpid(), signal.SIGTERM)
