"""Requests to a provider, with limits: no redirects, so many bytes, so many seconds, and only so many at a time."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from functools import cache
from typing import Any, NoReturn

import httpx

from privet.policy.openid_shape import is_loopback
from privet.server.openid.errors import ProviderError

LARGEST = 256_000
"""Bytes of an answer."""
SECONDS = 10.0
"""For a whole answer, however slowly its bytes come."""
AT_ONCE = 16
"""Requests at a time, in a process."""
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "privet"}


class Fetcher:
    """Fetches JSON from a provider."""

    def __init__(self) -> None:
        self._busy = 0

    async def get(self, url: str) -> dict[str, Any]:
        """A document."""
        return await self._json("GET", url, {}, None)

    async def post(self, url: str, headers: Mapping[str, str], body: str) -> dict[str, Any]:
        """The answer to a form."""
        return await self._json("POST", url, headers, body.encode())

    async def _json(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> dict[str, Any]:
        if self._busy >= AT_ONCE:
            raise ProviderError("too many sign-ins at a time")
        self._busy += 1
        try:
            async with asyncio.timeout(SECONDS):
                raw = await _fetched(method, url, headers, body)
        except (TimeoutError, httpx.TimeoutException):
            raise ProviderError("the provider is too slow") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError):
            raise ProviderError("the provider can't be reached") from None
        finally:
            self._busy -= 1
        return document(raw)


@cache
def _certificates() -> ssl.SSLContext:
    """Whom TLS believes: the usual authorities, or those of the file that SSL_CERT_FILE names."""
    return httpx.create_ssl_context()


async def _fetched(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    local = is_loopback(httpx.URL(url).host)  # no proxy knows this machine
    options: dict[str, Any] = {
        "follow_redirects": False,
        "timeout": SECONDS,
        "trust_env": not local,
        "verify": _certificates(),
    }
    async with (
        httpx.AsyncClient(**options) as client,
        client.stream(method, url, headers={**_HEADERS, **headers}, content=body) as response,
    ):
        if response.status_code != 200:
            raise ProviderError(f"the provider answers with status {response.status_code}")
        if response.headers.get("content-encoding", "identity") != "identity":
            raise ProviderError("the provider answers in a compressed form")
        raw = b""
        async for part in response.aiter_raw():
            raw += part
            if len(raw) > LARGEST:
                raise ProviderError("the provider's answer is too large")
        return raw


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def document(raw: bytes) -> dict[str, Any]:
    """A JSON object, without NaN and Infinity, which would be neither before nor after any time."""
    try:
        tree = json.loads(raw.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise ProviderError("the provider's answer is not JSON") from None
    if not isinstance(tree, dict):
        raise ProviderError("the provider's answer is not a JSON object")
    return tree
