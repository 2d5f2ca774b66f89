"""Connections: clients that send or read too slowly are cut off, and there are only so many."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from functools import cache
from ipaddress import IPv4Network, IPv6Network
from typing import Any
from weakref import WeakKeyDictionary

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from privet.server.accounts.throttle import network
from privet.server.limits import is_proxy
from privet.server.problems import Refusal, refused

HEAD_SECONDS, BODY_SECONDS, READ_SECONDS = 10.0, 30.0, 30.0
"""Seconds in which a client must have sent the head of a request, and its body, and must go on reading."""
CONNECTIONS = 2_000
"""The most connections of a process; half of them from one address, unless it is a proxy that the policy names."""
BACKLOG = 512
"""The most connections that are accepted at once."""
FILES = 8_192
"""Open files that a process asks the system for. Each connection is one."""
HEAD_BYTES = 16_384
"""The most bytes of the head of a request."""
_PRESENT: WeakKeyDictionary[ServerState, Counter[str]] = WeakKeyDictionary()  # connections by address


def open_files() -> int:
    """The files that this process may have open, after asking for as many as it needs. Its children inherit that."""
    try:
        import resource
    except ImportError:  # not on this system
        return FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return FILES if soft == resource.RLIM_INFINITY else soft
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft


def backlog() -> int:
    """How many connections are accepted at once."""
    return min(BACKLOG, open_files() // 8)


@cache
def room() -> int:
    """The most connections. The other files stay free for the ledger and the data, even if all connections are taken.

    Before one too many is closed, a backlog is accepted, and perhaps another.
    """
    return min(CONNECTIONS, open_files() // 2)


class Connection(H11Protocol):
    """A connection of uvicorn's, with time limits of its own."""

    def __init__(self, *arguments: Any, proxies: tuple[IPv4Network | IPv6Network, ...] = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._proxies = proxies
        self._present = _PRESENT.setdefault(self.server_state, Counter())
        self._from = ""
        self.app = self._told(self.app)
        self._sending: asyncio.TimerHandle | None = None
        self._awaited = ""
        self._served = False
        self._reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch the client."""
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        self._from = "" if is_proxy(address, self._proxies) else network(address)
        self._present[self._from] += 1
        if len(self.connections) > room() or (self._from and self._present[self._from] > room() // 2):
            transport.abort()
            return
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take what the client sent."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Go on to the next request, unless the client is still sending a body that nobody reads."""
        if self.conn.their_state is h11.SEND_BODY:
            self.transport.close()
        self._served = True
        super().on_response_complete()
        self._watch()

    def _told(self, app: Any) -> Any:
        """The application, which says in its response that the connection ends if the request is not complete."""

        async def telling(scope: Any, receive: Any, send: Any) -> None:
            async def sending(message: Any) -> None:
                if message["type"] == "http.response.start" and self.conn.their_state is h11.SEND_BODY:
                    others = [(name, value) for name, value in message["headers"] if name.lower() != b"connection"]
                    message = {**message, "headers": [*others, (b"connection", b"close")]}
                await send(message)

            await app(scope, receive, sending)

        return telling

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching."""
        self._present[self._from] -= 1
        if not self._present[self._from]:
            del self._present[self._from]
        for timer in (self._sending, self._reading):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """The client must soon have sent what it has begun. An idle connection is closed by uvicorn."""
        state = self.conn.their_state
        begun = not self._served or bool(self.conn.trailing_data[0])
        awaited = "body" if state is h11.SEND_BODY else "head" if state is h11.IDLE and begun else ""
        if awaited == self._awaited:
            return
        self._awaited = awaited
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None
        if awaited:
            seconds = BODY_SECONDS if awaited == "body" else HEAD_SECONDS
            self._sending = self.loop.call_later(seconds, self.transport.abort)

    def pause_writing(self) -> None:
        """The client does not read: it must soon."""
        super().pause_writing()
        self._reading = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads."""
        super().resume_writing()
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, and close the connection."""
        response = refused(Refusal(400, "This is not a valid HTTP request"))
        with suppress(h11.LocalProtocolError):  # a response has begun already
            head = h11.Response(status_code=400, headers=[*response.raw_headers, (b"connection", b"close")])
            parts = (head, h11.Data(data=bytes(response.body)), h11.EndOfMessage())
            self.transport.write(b"".join(self.conn.send(part) or b"" for part in parts))
        self.transport.close()
