"""A relay before a server: it hears what the server sends, and can be cut."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Relay:
    """Passes bytes between clients and a server at 127.0.0.1, while it is up."""

    def __init__(self, port: int) -> None:
        self.server = port
        self.heard = bytearray()
        """All that the server has sent."""
        self._threads: list[threading.Thread] = []
        self._ends: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._start(self._accept)

    def down(self) -> None:
        """Cuts every connection, and accepts no more."""
        for end in (self._listening, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for end in (self._listening, *self._ends):
            end.close()
        self._threads.clear()
        self._ends.clear()

    def up(self) -> None:
        """Accepts connections again, at the same port."""
        self._listening = socket.create_server(("127.0.0.1", self.port))
        self._start(self._accept)

    def _start(self, work: object, *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))  # type: ignore[arg-type]
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                try:
                    upstream = socket.create_connection(("127.0.0.1", self.server))
                except OSError:  # there is no server
                    client.close()
                    continue
                self._ends.extend([client, upstream])
                self._start(self._relay, client, upstream, False)
                self._start(self._relay, upstream, client, True)

    def _relay(self, source: socket.socket, target: socket.socket, keep: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if keep:
                    self.heard.extend(data)
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)


@contextmanager
def relayed(port: int) -> Iterator[Relay]:
    """A relay to this port."""
    relay = Relay(port)
    try:
        yield relay
    finally:
        relay.down()
