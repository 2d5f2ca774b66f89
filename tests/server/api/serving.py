"""A real server on a loopback port, in a thread: two datasets, some people, and a client for each of them."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
from tests.server.threads import in_thread

from privet.server.accounts import Role
from privet.server.identity import cookie_name
from privet.server.state import Server

CANARY = "canary-7f3a"
CANARY_NUMBER = 987_654_321

POLICY = """
ledger = "people.ledger"

[server]
listen = "127.0.0.1:{port}"
{server}

[datasets.people]
budget = {{ epsilon = {epsilon} }}
adjacency = "add/remove"

[datasets.people.tables.people]
source = "people.parquet"
protect = {{ person = "person_id", max_rows = 1 }}

[datasets.people.tables.people.columns]
region = {{ keys = ["north", "south"], other = "elsewhere" }}
age = {{ integer = [0, 110] }}
income = {{ number = [0, 200_000] }}

[datasets.trips]
budget = {{ epsilon = 3 }}
adjacency = "add/remove"

[datasets.trips.tables.trips]
source = "trips.parquet"
protect = "each row"

[datasets.trips.tables.trips.columns]
miles = {{ integer = [0, 100] }}
"""

COUNT = "SELECT COUNT(*) AS n FROM people"
BY_REGION = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def write_data(folder: Path) -> None:
    """Fifty people, among them some whose cells are marked; and twenty trips."""
    regions = ["north", "south", CANARY, f"{CANARY}-too", None] * 10
    people = {
        "person_id": [f"{CANARY}-{i}" for i in range(50)],
        "region": regions,
        "age": [20 + i for i in range(49)] + [CANARY_NUMBER],
        "income": [1000.0 * i for i in range(49)] + [float(CANARY_NUMBER)],
    }
    pq.write_table(pa.table(people), folder / "people.parquet")
    pq.write_table(pa.table({"miles": list(range(20))}), folder / "trips.parquet")


@dataclass
class Running:
    """A server that runs, and what the tests know of it."""

    url: str
    port: int
    server: Server
    log: io.StringIO
    clients: dict[str, httpx.Client] = field(default_factory=dict)

    def client(self, headers: Mapping[str, str] | None = None, **options: Any) -> httpx.Client:
        made = httpx.Client(base_url=self.url, headers=dict(headers or {}), timeout=30, trust_env=False, **options)
        self.clients[f"{len(self.clients)}"] = made
        return made

    def token(self, name: str, **options: Any) -> httpx.Client:
        """A client with a new token of this person."""
        given = {"role": Role.ANALYST, "datasets": None, "max_epsilon": None, "days": 1, **options}
        text, _ = self.server.accounts.create_token(name, "test", **given)
        return self.client({"Authorization": f"Bearer {text}"})

    def browser(self, name: str) -> httpx.Client:
        """A client with a session of the page, which sends the CSRF token."""
        cookie, identity = self.server.accounts.begin_session(name)
        cookies = {cookie_name(self.server.settings): cookie}
        return self.client({"X-CSRF-Token": identity.csrf, "Origin": self.server.settings.origin}, cookies=cookies)

    def raw(self, data: bytes, *, wait: float = 10.0) -> bytes:
        """What the server says to these bytes, until it closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as sock:
            sock.sendall(data)
            return received(sock)

    def request(self, line: str, *headers: str, body: bytes = b"") -> bytes:
        """What the server says to a request, written by hand; the connection is closed after it."""
        head = [line, f"Host: 127.0.0.1:{self.port}", *headers, "Connection: close"]
        return self.raw("\r\n".join([*head, "", ""]).encode("latin-1") + body)


def received(sock: socket.socket) -> bytes:
    parts = []
    try:
        while part := sock.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def status(response: bytes) -> int:
    return int(response.split(b" ", 2)[1]) if response.startswith(b"HTTP/1.1 ") else 0


@contextmanager
def serving(folder: Path, *, server: str = "pace = 0", epsilon: str = "1000") -> Iterator[Running]:
    """A server over new data in this folder."""
    write_data(folder)
    policy = folder / "privet.toml"
    policy.write_text(POLICY.format(port=8765, server=server, epsilon=epsilon), encoding="utf-8")
    with in_thread(policy) as up:
        up.accounts.add("sam", Role.STEWARD)
        for name, datasets in {"ann": ["people"], "bob": ["people", "trips"], "tim": ["trips"]}.items():
            up.accounts.add(name, Role.ANALYST, datasets)
        running = Running(f"http://127.0.0.1:{up.port}/api/v1", up.port, up.server, up.log)
        try:
            yield running
        finally:
            for client in running.clients.values():
                client.close()
