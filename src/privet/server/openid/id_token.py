"""The ID token: who the provider says has signed in, if it is for this server, new, and signed by the provider.

References: OpenID Connect Core 1.0, section 3.1.3.7; RFC 8725 (algorithms are chosen by the reader, not the token).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from authlib.oidc.core import CodeIDToken
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import RSAKey

from privet.server.accounts import hashing
from privet.server.openid.errors import ProviderError
from privet.server.openid.fetching import document
from privet.server.openid.provider import Key, Provider

OF_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
OF_EC = ("ES256", "ES384", "ES512")
ALGORITHMS = (*OF_RSA, *OF_EC)
"""The algorithms of signatures that are accepted: none with a shared secret, and not `none`."""
LEEWAY = 60
"""Seconds by which the provider's clock may differ."""
OLDEST = 900
"""Seconds since a token was issued: it is fetched as soon as it is made."""


@dataclass(frozen=True, slots=True)
class Named:
    """Whom a provider names."""

    issuer: str
    subject: str
    claim: str | None
    """What it calls them by the claim of the policy; None if it does not say, or has not verified it."""


async def verified(text: object, provider: Provider, nonce: str) -> Named:
    """Whom an ID token names; ProviderError if anything about it is wrong."""
    if not isinstance(text, str):
        raise ProviderError("there is no ID token")
    header = header_of(text)
    key = await provider.key(header.get("kid"))
    claims = signed(text, header, key)
    check(claims, header, provider, nonce)
    return Named(provider.settings.issuer, claims["sub"], claim_of(claims, provider.settings.claim))


def header_of(text: str) -> dict[str, Any]:
    """The header of a token that nothing is known of yet."""
    try:
        header = jws.extract_compact(text.encode(), registry=_registry()).headers()
    except (JoseError, ValueError, TypeError, RecursionError):
        raise ProviderError("the ID token can't be read") from None
    if header.get("alg") not in ALGORITHMS:
        raise ProviderError("the ID token has an algorithm that is not allowed")
    if "crit" in header or not isinstance(header.get("kid", ""), str):
        raise ProviderError("the ID token has a header that is not understood")
    return dict(header)


def signed(text: str, header: Mapping[str, Any], key: Key) -> dict[str, Any]:
    """The claims, if this key signed them with an algorithm for keys of its kind."""
    if header["alg"] not in (OF_RSA if isinstance(key, RSAKey) else OF_EC):
        raise ProviderError("the ID token has an algorithm that is not the key's")
    try:
        payload = jws.deserialize_compact(text, key, registry=_registry()).payload
    except (JoseError, ValueError, TypeError):
        raise ProviderError("the signature of the ID token is wrong") from None
    return document(payload or b"")


def check(claims: dict[str, Any], header: Mapping[str, Any], provider: Provider, nonce: str) -> None:
    """Refuse a token of another issuer, for another server, for another sign-in, or of another time."""
    issuer, client, now = provider.settings.issuer, provider.settings.client_id, int(time.time())
    options = {
        "iss": {"essential": True, "values": [issuer]},
        "aud": {"essential": True, "values": [client]},
        "sub": {"essential": True},
    }
    try:
        CodeIDToken(claims, header, options, {"nonce": nonce, "client_id": client}).validate(now, LEEWAY)
    except JoseError as error:
        name = getattr(error, "claim", None)
        raise ProviderError(f"the ID token is refused: {name if name in _CLAIMS else 'claims'}") from None
    except (ValueError, TypeError, OverflowError):
        raise ProviderError("the ID token is refused: claims") from None
    if not hashing.same(str(claims.get("nonce")), nonce):
        raise ProviderError("the ID token is refused: nonce")
    if claims["iat"] < now - OLDEST:
        raise ProviderError("the ID token is refused: iat")


def claim_of(claims: Mapping[str, Any], name: str) -> str | None:
    """What the provider calls the person, if that can be relied on: an e-mail address must be verified."""
    value = claims.get(name)
    if not isinstance(value, str) or (name == "email" and claims.get("email_verified") is not True):
        return None
    return value


_CLAIMS = frozenset({"iss", "sub", "aud", "exp", "iat", "nbf", "azp", "nonce", "auth_time", "amr"})


def _registry() -> jws.JWSRegistry:
    return jws.JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
