"""A process of the server that ends at a bad moment."""

from __future__ import annotations

import multiprocessing
import threading
import time

import uvicorn

from privet.server.supervisor import Worker


def test_a_process_that_ends_while_it_is_asked_how_it_is_does_not_keep_the_others_waiting() -> None:
    worker = Worker(uvicorn.Config("no.such:app"), [])
    worker.process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(100,))
    worker.start()  # it never answers, as a process that is still starting
    found: list[bool] = []
    asking = threading.Thread(target=lambda: found.append(worker.is_alive(timeout=3600)), daemon=True)
    asking.start()
    time.sleep(0.2)
    worker.process.kill()
    asking.join(60)
    assert found == [False]
    worker.join()
