"""Requests to a server over HTTP: tried again where that is safe, and never sent elsewhere.

Claim: everything that is tried again is free, or has the same Idempotency-Key each time, so nothing is paid for twice.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from privet.client.addresses import Address
from privet.client.problems import clean, error_of
from privet.client.tokens import Token
from privet.codec import parsed
from privet.errors import NoConnection, PrivetError, Remedy, UserError, install, write

if TYPE_CHECKING:
    import httpx

_LARGEST = 256 * 2**20  # bytes of an answer
_ATTEMPTS = 6  # without any reply
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 8.0
_SHORTEST_PAUSE = 0.05  # whatever the server says
_BUSY = frozenset({429, 503})
_IN_BETWEEN = frozenset({500, 502, 504})  # from a proxy or a server that restarts, unless it is an error of Privet's
_PASSING = frozenset({"LedgerBusy", "Throttled"})
sleep, now = time.sleep, time.monotonic


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server said: its code, its JSON, and after how many seconds to ask again."""

    status: int
    tree: Any
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it is sent, each time the same."""

    method: str
    url: str
    body: bytes | None
    headers: Mapping[str, str]
    request_id: str


class Wire:
    """One server, and the token for it."""

    def __init__(self, address: Address, token: Token | None, *, timeout: float = 300.0) -> None:
        self.address = address
        self.timeout = timeout
        self._token = token
        self._client: httpx.Client | None = None
        self._process = 0

    def __repr__(self) -> str:
        return f"Wire({self.address})"

    def deadline(self) -> float:
        """When a request that begins now is given up."""
        return now() + self.timeout

    def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client is not None and self._process == os.getpid():
            client.close()

    def get(self, *path: str, deadline: float | None = None, missing: bool = False) -> Reply:
        """Read something, which may be `missing`."""
        return self._call(self._sent("GET", path, None, ""), deadline, missing=missing)

    def post(self, *path: str, body: Any, request_id: str = "", deadline: float | None = None) -> Reply:
        """Send something: free of charge, or with a request id."""
        return self._call(self._sent("POST", path, body, request_id), deadline)

    def delete(self, *path: str) -> Reply:
        """Remove something."""
        return self._call(self._sent("DELETE", path, None, ""), None)

    def post_once(self, *path: str, body: Any) -> Reply:
        """Send something once, and return whatever the server says."""
        tried = self._try(self._sent("POST", path, body, ""), self.deadline())
        if isinstance(tried, str):
            raise self._unreached(tried, "")
        return tried

    # --- trying -----------------------------------------------------------------------------------

    def _sent(self, method: str, path: tuple[str, ...], body: Any, request_id: str) -> Sent:
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"privet/{version('privet')}",
        }
        if self._token is not None:
            headers["Authorization"] = self._token.header()
        if request_id:
            headers["Idempotency-Key"] = request_id
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        return Sent(method, self.address.path(*(quote(part, safe="") for part in path)), content, headers, request_id)

    def _call(self, sent: Sent, deadline: float | None, *, missing: bool = False) -> Reply:
        """The reply to a request; an error that the server reports is raised as Privet's own."""
        until = self.deadline() if deadline is None else deadline
        pause, unanswered, maybe_paid = _FIRST_PAUSE, 0, False
        while True:
            tried = self._try(sent, until)
            if isinstance(tried, Reply):
                if tried.status < 300 or (missing and tried.status == 404):
                    return tried
                error = self._error(tried)
                if _kind(tried) is None:  # it says nothing of what became of earlier attempts
                    maybe_paid = maybe_paid or tried.status >= 500 or isinstance(error, NoConnection)
                    error = perhaps_paid(error, sent.request_id) if maybe_paid and sent.request_id else error
                elif sent.request_id and tried.status in _BUSY:
                    error.what += f". The request id is {sent.request_id}"
                if not _may_pass(tried):
                    raise error
                after = tried.retry_after
            else:
                error, after = self._unreached(tried, sent.request_id), None
                unanswered, maybe_paid = unanswered + 1, True
            wait = pause * _jitter() if after is None else max(after, _SHORTEST_PAUSE)
            if unanswered >= _ATTEMPTS or now() + wait > until:
                raise error
            sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _try(self, sent: Sent, until: float) -> Reply | str:
        """The reply, or why there was none."""
        httpx = _httpx()
        left = until - now()
        if left <= 0:
            return "it took too long"
        timeout = httpx.Timeout(min(left, 90.0), connect=min(left, 10.0))
        try:
            with self._connected().stream(
                sent.method, sent.url, content=sent.body, headers=dict(sent.headers), timeout=timeout
            ) as response:
                status, headers = response.status_code, response.headers
                content = _read(response, until)
        except httpx.TimeoutException:
            return "it took too long"
        except httpx.ConnectError as error:
            return _why(error)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError):
            return "the connection broke"
        if isinstance(content, str):
            return content
        if self._token is not None:
            content = self._token.hidden_in(content)
        if 300 <= status < 400:
            raise self._redirected(headers.get("location", ""))
        try:
            tree = parsed(content) if content else None
        except (ValueError, RecursionError):
            tree = None
            if status < 300:
                return "its reply is not JSON"
        return Reply(status, tree, _retry_after(headers.get("retry-after"), tree))

    def _connected(self) -> httpx.Client:
        """The connections of this process: those of the process that forked it belong to that one."""
        if self._client is None or self._process != os.getpid():
            # Without TLS nothing is read from the environment, since a proxy could read the token; and there are no
            # certificates to load, which takes longer than most requests.
            secure = self.address.secure
            self._client = _httpx().Client(follow_redirects=False, trust_env=secure, verify=secure)
            self._process = os.getpid()
        return self._client

    # --- errors -----------------------------------------------------------------------------------

    def _error(self, reply: Reply) -> PrivetError:
        if reply.status == 401:
            return UserError(
                f"{self.address} does not accept the token, or it has expired",
                remedy=write(
                    f'pv.connect("{self.address}", token=...)',
                    terminal=f"privet login {self.address}",
                    advice=f"Sign in again: privet login {self.address}",
                ),
            )
        if not isinstance(reply.tree, dict) or "detail" not in reply.tree:
            return self._unreached(f"it answered with {reply.status}", "")
        return error_of(reply.tree, reply.status)

    def _unreached(self, why: str, request_id: str) -> NoConnection:
        if not request_id:
            return NoConnection(
                f"{self.address} can't be reached: {why}", remedy=Remedy("Check the address, and try again")
            )
        return NoConnection(
            f"{self.address} did not answer: {why}. The question may have been paid for; "
            f"its request id is {request_id}",
            request_id=request_id,
            remedy=later(request_id),
        )

    def _redirected(self, location: str) -> NoConnection:
        if self._token is not None:
            location = self._token.hidden_in(location.encode()).decode()
        return NoConnection(
            f"{self.address} redirects to {clean(location, most=200) or 'nowhere'}. The token is not sent there",
            remedy=Remedy("If you trust that address, use it"),
        )


def later(request_id: str) -> Remedy:
    """How an answer is had later, without paying twice."""
    return write(
        f'session.release(question, ..., request_id="{request_id}")',
        terminal=f"--request-id {request_id}",
        advice="Ask the same again: with this request id, it is paid for once",
    )


def perhaps_paid(error: PrivetError, request_id: str) -> NoConnection:
    """An error after which nobody here knows whether the question was paid for."""
    return NoConnection(
        f"{error.what}. The question may have been paid for; its request id is {request_id}",
        request_id=request_id,
        remedy=later(request_id),
    )


def _kind(reply: Reply) -> Any:
    """The kind of Privet's error; None if a proxy refused, or the server before it looked at the question."""
    return reply.tree.get("kind") if isinstance(reply.tree, dict) else None


def _may_pass(reply: Reply) -> bool:
    """Whether a refusal is about this moment only: an error of Privet's own is not, unless it says so."""
    kind = _kind(reply)
    return reply.status in (_BUSY if kind in _PASSING else _BUSY | _IN_BETWEEN if kind is None else ())


def _read(response: httpx.Response, until: float) -> bytes | str:
    """The whole body, or why it is not taken."""
    content = bytearray()
    for chunk in response.iter_raw():
        content += chunk
        if len(content) > _LARGEST:
            return "its reply is too long"
        if now() > until:
            return "it took too long"
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return "it compressed its reply, which was not asked for"
    return bytes(content)


def _retry_after(header: str | None, tree: Any) -> float | None:
    """The seconds to wait, from a number or a date."""
    given = header if header is not None else tree.get("retry_after") if isinstance(tree, dict) else None
    if given is None:
        return None
    try:
        if isinstance(given, int | float) or given.strip().isdecimal():
            return min(max(float(given), 0.0), 86_400.0)
        return max((parsedate_to_datetime(given) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError, AttributeError, OverflowError):
        return None


def _jitter() -> float:
    """A factor from 1/2 to 1, so that many clients do not come back at the same moment."""
    return (512 + int.from_bytes(os.urandom(2)) % 513) / 1024


def _why(error: Exception) -> str:
    """Why no connection was made, in a few words of the system or of TLS."""
    text = clean(str(error), most=200)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return "its TLS certificate is not valid"
    return text.partition("] ")[2] or text or "the connection failed"


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise UserError("a server is reached with httpx, which is not installed", remedy=install("client")) from None
    return httpx
