"""The provider: where its endpoints are (its discovery document), and its keys.

References: OpenID Connect Discovery 1.0; RFC 7517 (keys).
"""

from __future__ import annotations

import asyncio
import math
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from authlib.oidc.discovery import get_well_known_url
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey

from privet.policy.openid_shape import is_loopback, is_safe_url
from privet.server.openid.errors import ProviderError
from privet.server.openid.fetching import Fetcher
from privet.server.settings import OpenIDSettings

FRESH = 3600.0
"""Seconds for which a discovery document and its keys are used."""
PAUSE = 60.0
"""Seconds between two looks for keys that are not known yet."""
RETRY = 5.0
"""Seconds after which a provider that failed is asked again."""
LEAST_BITS, MOST_BITS = 2048, 16_384
"""Of an RSA key: enough to be safe, and not so many that a signature takes long."""
_MOST_KEYS = 100
Key = RSAKey | ECKey
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What the server needs of a discovery document."""

    authorization: str
    token: str
    keys: str
    secret_in_body: bool
    """Whether the client secret is sent in the form; otherwise in the header Authorization."""
    names_itself: bool
    """Whether its answers name it (`iss`, RFC 9207): then an answer without it is refused."""


class Provider:
    """A provider, as the policy names it."""

    def __init__(
        self,
        settings: OpenIDSettings,
        secret: str,
        *,
        fetcher: Fetcher | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings, self.secret = settings, secret
        self.fetcher = fetcher or Fetcher()
        self._clock = clock
        self._endpoints: Endpoints | None = None
        self._keys: dict[str, Key] = {}
        self._found = self._looked = self._failed = -math.inf
        self._turn = asyncio.Lock()

    def __repr__(self) -> str:
        return f"Provider({self.settings.issuer!r})"

    async def endpoints(self) -> Endpoints:
        """Where it is asked what; from its discovery document, which is kept for a while."""
        async with self._turn:
            if self._endpoints is None or self._clock() >= self._found + FRESH:
                url = get_well_known_url(self.settings.issuer, external=True)
                self._endpoints = await self._fetched(url, lambda found: endpoints_of(found, self.settings.issuer))
                self._found = self._clock()
            return self._endpoints

    async def key(self, kid: str | None) -> Key:
        """The key with this id. One that is not known is looked for once in a while, as keys change."""
        endpoints = await self.endpoints()
        async with self._turn:
            seconds = self._clock() - self._looked
            if seconds >= FRESH or (self._one(kid) is None and seconds >= PAUSE):
                self._keys = await self._fetched(endpoints.keys, keys_of)
                self._looked = self._clock()
            found = self._one(kid)
        if found is None:
            raise ProviderError("the ID token is signed with an unknown key")
        return found

    async def _fetched(self, url: str, read: Callable[[dict[str, Any]], _T]) -> _T:
        """What a document says; after a failure, those who wait for it fail too, and nobody asks again for a while."""
        if self._clock() < self._failed + RETRY:
            raise ProviderError("the provider failed a moment ago")
        try:
            return read(await self.fetcher.get(url))
        except ProviderError:
            self._failed = self._clock()
            raise

    def _one(self, kid: str | None) -> Key | None:
        """The key with this id; without an id, the only one."""
        if kid is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(kid)


def endpoints_of(found: dict[str, Any], issuer: str) -> Endpoints:
    """A discovery document, if it is this issuer's and leads nowhere without TLS."""
    if found.get("issuer") != issuer:
        raise ProviderError("the discovery document names another issuer")
    names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
    urls = [found.get(name) for name in names]
    for name, url in zip(names, urls, strict=True):
        if not isinstance(url, str) or not is_safe_url(url) or (_is_local(url) and not _is_local(issuer)):
            raise ProviderError(f"the discovery document has no safe {name}")
    methods = found.get("token_endpoint_auth_methods_supported")
    in_body = isinstance(methods, list) and "client_secret_post" in methods
    authorization, token, keys = map(str, urls)
    return Endpoints(
        authorization, token, keys, in_body, found.get("authorization_response_iss_parameter_supported") is True
    )


def _is_local(url: str) -> bool:
    return is_loopback(urlsplit(url).hostname or "")


def keys_of(found: dict[str, Any]) -> dict[str, Key]:
    """The keys for signatures, by their ids. Only public ones count: a shared secret signs nothing here."""
    listed = found.get("keys")
    if not isinstance(listed, list) or len(listed) > _MOST_KEYS:
        raise ProviderError("the provider's keys are not a list of keys")
    keys: dict[str, Key] = {}
    for each in listed:
        if not isinstance(each, dict) or each.get("use", "sig") != "sig":
            continue
        key = _key(each)
        if key is not None:
            kid = each.get("kid", "")
            keys[kid if isinstance(kid, str) else ""] = key
    return keys


def bits(number: str) -> int:
    """The length of a number in base64url.

    Example:
        >>> bits("AQAB")
        17
    """
    return int.from_bytes(urlsafe_b64decode(number + "=" * (-len(number) % 4))).bit_length()


def _key(tree: dict[str, Any]) -> Key | None:
    """A public key; None for one of another kind, or one that is too weak."""
    try:
        if tree.get("kty") == "RSA" and LEAST_BITS <= bits(tree["n"]) <= MOST_BITS:
            return RSAKey.import_key({"kty": "RSA", "n": tree["n"], "e": tree["e"]})
        if tree.get("kty") == "EC":
            return ECKey.import_key({name: tree[name] for name in ("kty", "crv", "x", "y")})
    except (JoseError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return None
