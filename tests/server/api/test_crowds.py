"""One analyst with many or large requests: the others are answered as before."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.responses import Response
from tests.server.api.serving import COUNT, Running, received, serving, status

from privet.server import anonymous, app, call, reading


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server on which each analyst has two requests at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "EACH", 2)
        with serving(tmp_path_factory.mktemp("crowds")) as server:
            yield server


def test_one_analyst_never_has_all_requests(
    running: Running, ann: httpx.Client, bob: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, end = threading.Semaphore(0), threading.Event()

    async def held(_: call.Call) -> Response:
        begun.release()
        while not end.is_set():
            await asyncio.sleep(0.01)
        return Response(status_code=204)

    monkeypatch.setattr(app, "HANDLES", {**app.HANDLES, "budget": held})
    threads = [threading.Thread(target=ann.get, args=("/datasets/people/budget",)) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        assert all(begun.acquire(timeout=20) for _ in threads)
        crowded = ann.get("/me")
        assert (crowded.status_code, crowded.headers["retry-after"]) == (429, "1")
        page = ann.get(f"http://127.0.0.1:{running.port}/datasets")
        assert page.status_code == 429
        assert "Too many of your requests" in page.text
        assert bob.get("/me").status_code == 200
    finally:
        end.set()
        for thread in threads:
            thread.join()
    assert ann.get("/me").status_code == 200


def test_answers_are_written_in_a_thread(ann: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large answer takes a second to write, in which the event loop would answer nobody."""
    where: list[str] = []
    answer = reading.answer

    def noted(*arguments: Any) -> dict[str, Any]:
        where.append(threading.current_thread().name)
        return answer(*arguments)

    monkeypatch.setattr(reading, "answer", noted)
    first = ann.post("/datasets/people/query", json={"sql": COUNT, "epsilon": 1}, headers={"Idempotency-Key": "w"})
    again = ann.get("/datasets/people/answers/w")
    assert first.json()["rows"] == again.json()["rows"]
    assert ["worker" in name for name in where] == [True, True], where


def test_long_bodies_are_read_in_turn(
    running: Running, ann: httpx.Client, nobody: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body of 1 MB takes a second to read; without an account, nobody needs one."""
    where: list[str] = []
    parsed = call.parsed

    def noted(*arguments: Any, **options: Any) -> Any:
        where.append(threading.current_thread().name)
        return parsed(*arguments, **options)

    monkeypatch.setattr(call, "parsed", noted)
    long = {"sql": COUNT, "epsilon": 1, "within": {f"c{i}": [] for i in range(anonymous.SHORT // 10)}}
    refused = ann.post("/datasets/people/explain", json=long)
    assert refused.status_code == 422
    assert "values in it are wrong" in refused.json()["detail"]
    assert "errors" not in refused.json()
    assert ["worker" in name for name in where] == [True], where
    assert nobody.post("/device/code", json={"label": "x" * anonymous.SHORT}).status_code == 413
    page = nobody.post(f"http://127.0.0.1:{running.port}/sign-in", data={"name": "x" * anonymous.SHORT})
    assert page.status_code == 413
    assert len(where) == 1


def test_slow_strangers_keep_nobody_out(running: Running, ann: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sends a body for as long as it may: a thousand of them filled the server for half a minute."""
    monkeypatch.setattr(anonymous, "SECONDS", 1.0)
    host, few = f"Host: 127.0.0.1:{running.port}", anonymous.OF_AN_ADDRESS
    head = f"POST /api/v1/device/code HTTP/1.1\r\n{host}\r\nContent-Type: application/json\r\nContent-Length: 15000\r\n"
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", running.port))) for _ in range(2 * few)]
        for each in slow:
            each.settimeout(20)
            each.sendall(f"{head}\r\n{{".encode())
        assert ann.get("/me").status_code == 200, "those who have an account are let in"
        answers = [received(each) for each in slow]
    assert sorted(map(status, answers)) == [408] * few + [503] * few
    assert all(b"\r\nconnection: close\r\n" in each for each in answers if status(each) == 408)
    assert running.client().post("/device/code", json={"label": "later"}).status_code == 200
    long = running.raw(f"{head.replace('15000', '900000')}\r\n".encode() + b"x" * 20_000)
    assert (status(long), b"16,000" in long) == (413, True), "without the rest of it"
