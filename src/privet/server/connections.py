"""Connections: clients that send or read too slowly are cut off, and there are only so many."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from privet.server.problems import Refusal, refused

HEAD_SECONDS, BODY_SECONDS, READ_SECONDS = 10.0, 30.0, 30.0
"""Seconds in which a client must have sent the head of a request, and its body, and must go on reading."""
CONNECTIONS = 2_000
"""The most connections of a process."""
HEAD_BYTES = 16_384
"""The most bytes of the head of a request."""


class Connection(H11Protocol):
    """A connection of uvicorn's, with time limits of its own."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.app = self._told(self.app)
        self._sending: asyncio.TimerHandle | None = None
        self._awaited = ""
        self._served = False
        self._reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch the client."""
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
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
