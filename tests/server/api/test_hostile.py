"""Requests that no client of ours makes: refused by their form, and cut off if they take too long."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest
from tests.server.api.serving import COUNT, Running, received, serving, status

from privet.server import connections
from privet.server.limits import BODY, CSP

HEAD, SLOW_BODY = 0.5, 0.7
_LONGEST = 60.0  # seconds after which a slow client was not cut off


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that is less patient."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "HEAD_SECONDS", HEAD)
        patch.setattr(connections, "BODY_SECONDS", SLOW_BODY)
        with serving(tmp_path_factory.mktemp("hostile")) as server:
            yield server


def test_every_response_has_the_headers_of_security(running: Running, ann: httpx.Client, nobody: httpx.Client) -> None:
    root = f"http://127.0.0.1:{running.port}"
    responses = [
        ann.get("/me"),
        ann.get("/nothing"),
        nobody.get("/me"),
        ann.post("/datasets/people/query", json={"sql": "nonsense"}),
        ann.put("/me"),
        ann.options("/me"),
        ann.head("/me"),
        nobody.get(f"{root}/"),
        nobody.get(f"{root}/nothing"),
        nobody.get(f"{root}/sign-in"),
        nobody.get(f"{root}/favicon.ico"),
    ]
    for response in responses:
        assert response.headers["content-security-policy"].startswith("default-src 'none'"), response.url
        assert "unsafe" not in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["x-frame-options"] == "DENY"
        assert response.headers["cache-control"]
        assert "server" not in response.headers
        assert "access-control-allow-origin" not in response.headers
    assert responses[0].headers["content-security-policy"] == CSP


def test_methods(ann: httpx.Client) -> None:
    for method in ("PUT", "DELETE", "PATCH", "TRACE", "PROPFIND", "POST"):
        response = ann.request(method, "/me")
        assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD, OPTIONS"), method
    assert (ann.options("/me").status_code, ann.options("/datasets/people/query").headers["allow"]) == (
        204,
        "OPTIONS, POST",
    )
    head = ann.head("/me")
    assert (head.status_code, head.content) == (200, b"")
    assert ann.options("/nothing").status_code == 404


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/../v1/health",
        "/api/v1/./health",
        "/api//v1/health",
        "//api/v1/health",
        "/api/v1/health/",
        "/api/v1/%68ealth",
        "/api/v1/health%00",
        "/api/v1/health%2f",
        "/api/v1/health%2F..%2Fme",
        "/api/v1/datasets/people%2Fbudget",
        "/api/v1/datasets/%2e%2e/people",
        "/api/v1/health;x=1",
        "/api/v1/HEALTH",
        "/api/v1/health%20",
        "/api/v1\\\\health",
        "/api/v1/%5c../health",
        "/api/v1/health%0d%0aX-Injected:1",
        "/static/../privet.toml",
        "/static/%2e%2e/%2e%2e/routes.py",
        "/static/..%2froutes.py",
        "/../../etc/passwd",
        "/api/v1/%c0%ae%c0%ae/health",
        "http://127.0.0.1/api/v1/health",
        "*",
    ],
)
def test_tricks_with_paths_are_not_found(running: Running, target: str) -> None:
    response = running.request(f"GET {target} HTTP/1.1")
    assert status(response) in (400, 404), response[:200]
    assert b"X-Injected" not in response
    assert b"ledger" not in response


def test_hosts(running: Running) -> None:
    def ask(*hosts: str) -> int:
        lines = "".join(f"Host: {host}\r\n" for host in hosts)
        return status(running.raw(f"GET /api/v1/health HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode()))

    port = running.port
    assert [ask(f"{name}:{port}") for name in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]")] == [200] * 4
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{port + 1}",
        "",
        f"127.0.0.1:{port}@evil",
    ):
        assert ask(host) in (400, 421), host
    assert ask() == 400
    assert ask(f"127.0.0.1:{port}", "evil.example") in (400, 421)
    forwarded = running.request("GET /api/v1/device/code HTTP/1.1", "X-Forwarded-Host: evil.example")
    assert b"evil" not in forwarded


def test_what_a_link_says_does_not_come_from_headers(running: Running, nobody: httpx.Client) -> None:
    headers = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "Forwarded": "host=evil.example"}
    codes = nobody.post("/device/code", json={}, headers=headers).json()
    assert codes["verification_uri"] == f"http://localhost:{running.port}/device"


def test_long_requests(running: Running, ann: httpx.Client) -> None:
    long = ann.post("/datasets/people/query", json={"sql": "x" * (BODY + 1), "epsilon": 1})
    assert long.status_code == 413

    def chunks() -> Iterator[bytes]:
        for _ in range(30):
            yield b" " * 50_000

    headers = {"Content-Type": "application/json"}
    with suppress(httpx.WriteError):  # the server closes the connection, since nobody reads the rest
        assert ann.post("/datasets/people/query", content=chunks(), headers=headers).status_code == 413
    near = ann.post("/datasets/people/query", json={"sql": "x" * 100_001, "epsilon": 1})
    assert near.status_code == 422
    assert ann.get("/me", headers={"X-Long": "x" * 60_000}).status_code in (400, 431)
    assert ann.get("/me", headers=[(f"X-{i}", "x") for i in range(200)]).status_code == 431
    assert ann.get("/me", params={"x": "x" * 5_000}).status_code == 414
    lying = running.request("POST /api/v1/device/code HTTP/1.1", "Content-Length: 99999999999999999999", body=b"{}")
    assert status(lying) in (400, 413)
    assert ann.get("/me").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff\xfe",
        b'{"sql": "SELECT 1", "sql": "SELECT 2"}',
        b'{"sql": "x", "epsilon": NaN}',
        b'{"sql": "x", "epsilon": 1e999999999}',
        b'{"sql": "x", "epsilon": ' + b"9" * 10_000 + b"}",
        b"[" * 100_000,
        b'{"query": ' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000 + b"}",
        b'{"query": {"kind": ' + b"[" * 900 + b"]" * 900 + b'}, "epsilon": 1}',
        b'"' + b"\\ud800" * 100 + b'"',
        b'{"sql": "\\ud800", "epsilon": 1}',
        b'{"sql": "\\u0000", "epsilon": 1}',
        b"",
        b"null",
        b"[]" * 200 + b'"' + b'\\"' * 400_000,  # takes hours if each quote is where a scanner begins anew
        b"[]" * 200 + b'"' + b'\\"' * 400_000 + b"\\",
    ],
    ids=range(16),
)
def test_bodies_that_are_no_question(running: Running, ann: httpx.Client, body: bytes) -> None:
    for path in ("query", "explain", "batch", "explain_batch", "parse"):
        response = ann.post(f"/datasets/people/{path}", content=body, headers={"Content-Type": "application/json"})
        assert response.status_code in (400, 422), response.text[:300]
        assert response.headers["content-type"] == "application/problem+json"


def test_other_media_are_refused(ann: httpx.Client) -> None:
    body = json.dumps({"sql": COUNT, "epsilon": 1})
    for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        response = ann.post("/datasets/people/query", content=body, headers={"Content-Type": media})
        assert response.status_code == 415, media


# --- what is no HTTP, and smuggling ---------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        ["Content-Length: 5", "Transfer-Encoding: chunked"],
        ["Transfer-Encoding: chunked", "Content-Length: 0"],
        ["Content-Length: 5", "Content-Length: 6"],
        ["Content-Length: +5"],
        ["Content-Length: 5 "],
        ["Content-Length : 5"],
        ["Content-Length: -1"],
        ["Content-Length: 0x5"],
        ["Transfer-Encoding: xchunked"],
        ["Transfer-Encoding: chunked, identity"],
        ["Transfer-Encoding:\x0bchunked"],
        [" Folded: x"],
        ["X: a\nTransfer-Encoding: chunked"],
        ["X: a\rHost: evil"],
        ["X: \x00"],
    ],
)
def test_smuggling_is_refused(running: Running, headers: list[str]) -> None:
    inside = b"0\r\n\r\nGET /api/v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
    response = running.request("POST /api/v1/device/code HTTP/1.1", *headers, body=inside)
    assert response.count(b"HTTP/1.1 ") <= 1
    assert status(response) in (0, 400, 408, 413, 415, 421, 422, 431, 501), response[:200]
    assert b'"device_code"' not in response


@pytest.mark.parametrize(
    "data",
    [
        b"GET /api/v1/health\r\n\r\n",
        b"GET /api/v1/health HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x00" * 100,
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X" * 20_000,
    ],
)
def test_what_is_no_http_is_refused(running: Running, data: bytes) -> None:
    response = running.raw(data)
    assert status(response) in (0, 400, 421)
    assert b"Traceback" not in response
    assert response.count(b"HTTP/1.1 ") <= 1


def test_web_sockets_are_not_spoken(running: Running) -> None:
    upgrade = [
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
    ]
    assert status(running.request("GET /api/v1/nothing HTTP/1.1", *upgrade)) == 404


def test_requests_in_one_packet_are_answered_in_order(running: Running) -> None:
    one = f"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n\r\n"
    two = one.replace("health", "nothing").replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
    response = running.raw((one + two).encode())
    assert response.index(b"HTTP/1.1 200") < response.index(b"HTTP/1.1 404")


def test_a_connection_that_ends_says_so(running: Running) -> None:
    """A client that is not told sends its next request into a connection that is closed."""
    head = f"POST /api/v1/tokens HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nContent-Length: 40\r\n\r\n"
    unread = running.raw(f"{head}{{".encode())
    assert (status(unread), unread.lower().count(b"\r\nconnection: close\r\n")) == (401, 1)
    last = f"GET /api/v1/health HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nConnection: close\r\n\r\n"
    whole = running.raw(f"{head}{'x' * 40}{last}".encode())
    refused, _, answered = whole.partition(b"HTTP/1.1 200")
    assert (status(refused), b"connection: close" in refused.lower(), answered != b"") == (401, False, True)


def test_browsers_get_a_page_whatever_is_refused(running: Running, nobody: httpx.Client) -> None:
    browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"
    root = f"http://127.0.0.1:{running.port}"
    for path, headers, code in (
        ("/datasets", {"Host": "elsewhere.example"}, 421),
        (f"/datasets?{'x' * 5000}", {}, 414),
        ("/a/../b%2e", {}, 404),
        ("/datasets", {f"X-{i}": "x" for i in range(200)}, 431),
    ):
        page = nobody.get(f"{root}{path}", headers={"Accept": browser, **headers})
        assert (page.status_code, page.headers["content-type"]) == (code, "text/html; charset=utf-8"), path
        assert page.headers["connection"] == "close"
        assert "<h1>" in page.text
        for accept in ("application/json", "*/*", "text/html;q=0.1, application/problem+json", "text/html;q=x"):
            document = nobody.get(f"{root}{path}", headers={"Accept": accept, **headers})
            assert (document.status_code, document.json()["status"]) == (code, code), accept


# --- slow clients ---------------------------------------------------------------------------------


def _seconds_until_cut_off(running: Running, first: bytes, drip: bytes) -> float:
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as sock:
        sock.sendall(first)
        sock.settimeout(0.05)
        while time.monotonic() - start < _LONGEST:
            try:
                sock.sendall(drip)
                if sock.recv(1000) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
    return time.monotonic() - start


@pytest.mark.parametrize(
    ("first", "drip"),
    [
        (b"", b""),
        (b"", b"\r\n"),
        (b"GET /api/v1/health HTTP/1.1\r\n", b"X: y\r\n"),
        (
            b"POST /api/v1/verify HTTP/1.1\r\nHost: {host}\r\nContent-Length: 900\r\n\r\n",
            b" ",
        ),
        (b"POST /api/v1/device/code HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (b"GET /api/v1/health HTTP/1.1\r\nHost: {host}\r\n\r\n", b"X"),  # slow with the second request
    ],
    ids=["silent", "blank lines", "head", "body", "chunks", "second"],
)
def test_slow_clients_are_cut_off(running: Running, first: bytes, drip: bytes) -> None:
    first = first.replace(b"{host}", f"127.0.0.1:{running.port}".encode())
    assert _seconds_until_cut_off(running, first, drip) < _LONGEST


def test_others_are_served_while_many_are_slow(running: Running, ann: httpx.Client) -> None:
    socks = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(200)]
    try:
        for sock in socks:
            sock.sendall(b"GET / HTTP/1.1\r\n")
        assert ann.get("/me").status_code == 200
        time.sleep(HEAD)
        for sock in socks[:5]:
            sock.settimeout(_LONGEST)
            assert received(sock) == b""
    finally:
        for sock in socks:
            sock.close()


def test_the_log_has_no_secrets(running: Running, ann: httpx.Client) -> None:
    token = ann.headers["authorization"].rpartition("_")[2]
    ann.get("/me", params={"secret": "in-the-query"})
    ann.post("/datasets/people/query", json={"sql": "SELECT 'in-the-statement' FROM people", "epsilon": 1})
    ann.get("/datasets/people/answers/in-the-path")
    deadline = time.monotonic() + 30  # a line is written when its response is sent
    while '"route": "answer"' not in running.log.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    text = running.log.getvalue()
    lines = [json.loads(line) for line in text.splitlines()]
    assert {"time", "method", "route", "status", "ms", "who"} <= {*lines[-1]}
    assert lines[-1]["route"] == "answer"
    for secret in (token, "in-the-query", "in-the-statement", "in-the-path"):
        assert secret not in text
