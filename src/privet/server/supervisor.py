"""The process that starts the others, and replaces those that end."""

from __future__ import annotations

from multiprocessing.connection import wait

from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process


class Worker(Process):
    """A process that answers requests. If it ends while it is asked whether it is well, that is known at once."""

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
    """Starts the processes, and replaces those that end, whatever ended them."""

    def init_processes(self) -> None:
        """Start all of them."""
        self.processes = [self._started() for _ in range(self.processes_num)]

    def keep_subprocess_alive(self) -> None:
        """Replace those that ended or do not respond."""
        for at, process in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            if not process.is_alive(timeout=self.config.timeout_worker_healthcheck):
                process.kill()
                process.join()
                self.processes[at] = self._started()

    def _started(self) -> Worker:
        worker = Worker(self.config, self.sockets)
        worker.start()
        return worker
