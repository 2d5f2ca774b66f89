"""Requests without an account: a small share of the server, short bodies, and little time to send them.

So nobody needs an account to sign in, and nobody without one can keep those out who have one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Message, Receive

from privet.server.accounts.throttle import network
from privet.server.problems import Refusal
from privet.server.queue import Crowd, Full

SHARE = 100
"""The most of them at a time, in a process."""
OF_AN_ADDRESS = 16
"""The most of them from one address."""
SECONDS = 5.0
"""Seconds in which the body of one must have arrived."""
SHORT = 16_000
"""Bytes of a body that is read at once. A sign-in has less."""


class Anonymous:
    """The places for requests without an account."""

    def __init__(self) -> None:
        self._all, self._each = Crowd(SHARE), Crowd(OF_AN_ADDRESS)

    @contextmanager
    def place(self, address: str) -> Iterator[None]:
        """A place, while the block lasts; refused if too many are taken, in all or by this address."""
        try:
            with self._each.place(network(address)), self._all.place(""):
                yield
        except Full:
            raise Refusal(503, "The server is busy. Try again", headers={"Retry-After": "1"}) from None


def hurried(receive: Receive) -> Receive:
    """The body, if it is short and comes soon."""
    until, received, complete = asyncio.get_running_loop().time() + SECONDS, 0, False

    async def limited() -> Message:
        nonlocal received, complete
        if complete:
            return await receive()
        try:
            async with asyncio.timeout_at(until):
                message = await receive()
        except TimeoutError:
            what = f"Without an account, a request must be complete within {SECONDS:g} seconds"
            raise Refusal(408, what, headers={"Connection": "close"}) from None
        received += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        if received > SHORT:
            what = f"Without an account, a body has at most {SHORT:,} bytes"
            raise Refusal(413, what, headers={"Connection": "close"})
        return message

    return limited
