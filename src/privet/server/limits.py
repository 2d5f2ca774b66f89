"""What every request must obey, whatever it asks: its host, its path, its size. And what every response says."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privet.server.authorization import NOT_FOUND
from privet.server.logs import Log
from privet.server.problems import Refusal, refused
from privet.server.settings import Settings

BODY = 1_000_000
"""The most bytes of a body."""
HEADERS = 100
"""The most headers of a request."""
HEADER_BYTES = 16_000
"""The most bytes of all headers."""
TARGET = 4_000
"""The most bytes of a path with its query string."""
IN_FLIGHT = 1_000
"""The most requests at a time, in a process."""

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_ALWAYS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_UNLESS_SET = {"cache-control": "no-store"}
_TLS = {"strict-transport-security": "max-age=31536000"}
_SAFE = "/-._~!$&'()*+,;=:@"  # what a path may contain as it is (RFC 3986)

NOTES = "privet.notes"
"""Where the scope has what the log says of a request."""


class Guard:
    """The outermost part of the application."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        log: Log,
        page: Callable[[Request, Refusal], Response] = lambda _, refusal: refused(refusal),
    ) -> None:
        self._app, self._settings, self._log = app, settings, log
        self._page = page  # what a browser sees of a refusal
        self._in_flight = 0
        always = _ALWAYS | (_TLS if settings.secure else {})
        self._always = [(name.encode(), value.encode()) for name, value in always.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, notes = time.monotonic(), {"method": scope["method"], "route": "", "status": 0, "bytes": 0}
        scope[NOTES] = notes
        self._in_flight += 1
        try:
            await self._guarded(scope, receive, self._noting(send, notes))
        finally:
            self._in_flight -= 1
            self._log.request(**notes, ms=round((time.monotonic() - start) * 1000, 1))

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if self._in_flight > IN_FLIGHT:
                raise Refusal(503, "The server is busy. Try again", headers={"Retry-After": "1"})
            check(scope, self._settings)
        except Refusal as refusal:
            refusal.headers["Connection"] = "close"  # what follows may be no request at all
            request = Request(scope)
            shown = self._page(request, refusal) if prefers_html(request) else refused(refusal)
            await shown(scope, receive, send)
            return
        await self._app(scope, _limited(receive), send)

    def _noting(self, send: Send, notes: dict[str, Any]) -> Send:
        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                notes["status"] = message["status"]
                present = {name.lower() for name, _ in message["headers"]}
                more = [(name, value) for name, value in self._always if name not in present]
                more += [(n.encode(), v.encode()) for n, v in _UNLESS_SET.items() if n.encode() not in present]
                message = {**message, "headers": [*message["headers"], *more]}
            elif message["type"] == "http.response.body":
                notes["bytes"] += len(message.get("body", b""))
            await send(message)

        return noted


def check(scope: Scope, settings: Settings) -> None:
    """Refuse a request for its form: browsers and our own clients never send one like it."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    if len(headers) > HEADERS or sum(len(name) + len(value) for name, value in headers) > HEADER_BYTES:
        raise Refusal(431, f"A request has at most {HEADERS} headers, and they have at most {HEADER_BYTES:,} bytes")
    if len(scope["raw_path"]) + len(scope["query_string"]) > TARGET:
        raise Refusal(414, f"An address has at most {TARGET:,} characters")
    hosts = _of(headers, b"host")
    if len(hosts) != 1 or hosts[0].lower() not in settings.hosts:
        raise Refusal(421, "This server is not at this address. The steward sets it in the policy: [server] address")
    lengths = _of(headers, b"content-length")
    if lengths and _of(headers, b"transfer-encoding"):
        raise Refusal(400, "Send Content-Length or Transfer-Encoding, not both")
    if any(not length.isdigit() or int(length[:20]) > BODY for length in lengths):
        raise Refusal(413, f"A body has at most {BODY:,} bytes")
    if not is_plain(scope["path"], scope["raw_path"]):
        raise Refusal(404, NOT_FOUND)


def is_plain(path: str, raw: bytes) -> bool:
    """Whether a path is written in the one way that it should be.

    Example:
        >>> [is_plain(path, raw) for path, raw in (("/a b", b"/a%20b"), ("/a/../b", b"/a/../b"), ("/a", b"/%61"))]
        [True, False, False]
    """
    parts = path.split("/")[1:]
    plain = all(part not in (".", "..") and part.isprintable() and "\\" not in part for part in parts)
    no_gap = all(parts) or path == "/"
    return plain and no_gap and path.startswith("/") and quote(path, safe=_SAFE).encode() == raw


def prefers_html(request: Request) -> bool:
    """Whether a request asks for a page rather than for JSON, as browsers do for what they show.

    Example:
        >>> def asked(accept: bytes) -> bool:
        ...     return prefers_html(Request({"type": "http", "headers": [(b"accept", accept)]}))
        >>> asked(b"text/html,*/*;q=0.8"), asked(b"*/*"), asked(b"text/html;q=0.5,application/json")
        (True, False, False)
    """
    weights = {"html": 0.0, "json": 0.0}
    for part in ",".join(request.headers.getlist("accept")).split(","):
        media, *parameters = part.lower().replace(" ", "").split(";")
        weight = next((each[2:] for each in parameters if each.startswith("q=")), "1")
        kind = media.rpartition("/")[2].rpartition("+")[2]
        if kind in weights and re.fullmatch(r"[01](\.[0-9]{0,3})?", weight):
            weights[kind] = max(weights[kind], float(weight))
    return weights["html"] > weights["json"]


def _of(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for key, value in headers if key == name]


def _limited(receive: Receive) -> Receive:
    """The body, as long as it is not too long."""
    received = 0

    async def limited() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > BODY:
            raise Refusal(413, f"A body has at most {BODY:,} bytes", headers={"Connection": "close"})
        return message

    return limited


def client_address(request: Request, settings: Settings) -> str:
    """The address of whoever makes the request; behind proxies that the policy names, as the last of them saw it."""
    address = request.client.host if request.client is not None else ""
    forwarded = [_bare(part.strip()) for each in request.headers.getlist("x-forwarded-for") for part in each.split(",")]
    while forwarded and is_proxy(address, settings.proxies):
        address = forwarded.pop()
    return address


def _bare(address: str) -> str:
    """An address without its port, which some proxies add: with it, each connection would have another."""
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::[0-9]{1,5})?", address)
    return address if found is None else found[1] or found[2]


def is_proxy(address: str, proxies: Iterable[IPv4Network | IPv6Network]) -> bool:
    """Whether this is the address of a proxy; an IPv4 address may be written as one of IPv6, as some sockets do.

    Example:
        >>> [is_proxy(address, [IPv4Network("127.0.0.0/8")]) for address in ("127.0.0.1", "::ffff:127.0.0.1", "::1")]
        [True, True, False]
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return any((parsed if mapped is None else mapped) in each or parsed in each for each in proxies)
