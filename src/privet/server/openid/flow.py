"""One sign-in: the code flow with PKCE, bound to the browser in which it began.

The browser has a secret in a cookie. State, nonce and code verifier are keyed hashes of it, for this provider and this
client, so an answer that belongs to another browser, another sign-in or another provider does not fit.

References: OpenID Connect Core 1.0, section 3.1; RFC 7636 (PKCE); RFC 9207 (`iss`); RFC 9700 (best practice).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge

from privet.server.accounts import hashing
from privet.server.openid.errors import ProviderError
from privet.server.openid.id_token import Named, verified
from privet.server.openid.provider import Provider

CALLBACK = "/sign-in/openid/callback"
"""Where the provider sends the browser back."""
SCOPE = "openid email profile"
_LONGEST = 3000  # characters of a code
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def redirect_uri(origin: str) -> str:
    """The address to register with the provider."""
    return f"{origin}{CALLBACK}"


@dataclass(frozen=True, slots=True)
class Flow:
    """A sign-in of the browser that has this secret."""

    provider: Provider
    origin: str
    secret: str = field(repr=False)

    def _derived(self, what: str) -> str:
        settings = self.provider.settings
        return hashing.keyed(self.secret.encode(), what, settings.issuer, settings.client_id)

    @property
    def state(self) -> str:
        """What the provider sends back with the browser."""
        return self._derived("state")

    @property
    def nonce(self) -> str:
        """What the ID token must contain."""
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        """What proves to the provider that the code comes from whoever began (PKCE)."""
        return self._derived("verifier")

    async def leave(self) -> str:
        """Where to send the browser."""
        endpoints = await self.provider.endpoints()
        found: str = prepare_grant_uri(
            endpoints.authorization,
            client_id=self.provider.settings.client_id,
            response_type="code",
            redirect_uri=redirect_uri(self.origin),
            scope=SCOPE,
            state=self.state,
            nonce=self.nonce,
            code_challenge=create_s256_code_challenge(self.verifier),
            code_challenge_method="S256",
        )
        return found

    def is_mine(self, state: str) -> bool:
        """Whether an answer belongs to this browser's sign-in."""
        return hashing.same(self.state, state)

    async def arrive(self, answer: Mapping[str, str]) -> Named:
        """Whom the provider names, for its answer in the query string; ProviderError if that can't be relied on."""
        endpoints = await self.provider.endpoints()
        issuer = answer.get("iss")
        if issuer != self.provider.settings.issuer and (issuer is not None or endpoints.names_itself):
            raise ProviderError("another provider answered")
        code = answer.get("code", "")
        if "error" in answer or not code or len(code) > _LONGEST or not code.isascii() or not code.isprintable():
            raise ProviderError("the provider sent no code")
        form = prepare_token_request(
            "authorization_code", code=code, redirect_uri=redirect_uri(self.origin), code_verifier=self.verifier
        )
        method = "client_secret_post" if endpoints.secret_in_body else "client_secret_basic"
        auth = ClientAuth(self.provider.settings.client_id, self.provider.secret, method)
        url, headers, body = auth.prepare("POST", endpoints.token, {**_FORM}, form)
        answered = await self.provider.fetcher.post(url, headers, body)
        return await verified(answered.get("id_token"), self.provider, self.nonce)
