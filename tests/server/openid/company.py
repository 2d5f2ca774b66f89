"""A company with a small, real provider of OpenID Connect on a loopback port: it can be told to lie."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

import uvicorn
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from tests.server.api.serving import free_port

CLIENT, SECRET = "privet", "s3cret-of-the-client-4711"
CANARY = "canary-of-the-provider"
Claims = dict[str, Any]
RSA, OTHER_RSA = (RSAKey.generate_key(2048) for _ in range(2))
EC = ECKey.generate_key("P-256")


@dataclass
class Company:
    """The provider, and what the tests can change of it."""

    port: int
    person: Claims = field(default_factory=dict)
    """Who signs in there."""
    keys: dict[str, RSAKey | ECKey] = field(default_factory=lambda: {"one": RSA})
    signs_with: str = "one"
    claims: Callable[[Claims], Claims] = lambda claims: claims
    token: Callable[[Claims], str] | None = None
    """Makes the ID token; by default it is signed as it should be."""
    discovery: Claims = field(default_factory=dict)
    """What its discovery document has besides."""
    replies: dict[str, Response | float] = field(default_factory=dict)
    """What it answers at a path instead, or after how many seconds."""
    checks_pkce: bool = True
    asked: list[str] = field(default_factory=list)
    """The paths that were asked for."""
    seen: list[str] = field(default_factory=list)
    """Bodies and headers that hold a secret."""
    _codes: dict[str, Claims] = field(default_factory=dict)

    @property
    def issuer(self) -> str:
        return f"http://localhost:{self.port}"

    def reset(self) -> None:
        fresh = Company(self.port)
        for name in ("person", "keys", "signs_with", "claims", "token", "discovery", "replies", "checks_pkce"):
            setattr(self, name, getattr(fresh, name))
        self.asked.clear()
        self.seen.clear()

    def code(self, query: Claims) -> str:
        """A code for whoever signs in now, as an answer to this request."""
        code = f"code{len(self._codes)}"
        self._codes[code] = {**query, "person": dict(self.person)}
        return code

    def way_back(self, query: Claims, **more: str) -> str:
        answer = {"code": self.code(query), "state": query["state"], "iss": self.issuer, **more}
        return f"{query['redirect_uri']}?{urlencode({name: value for name, value in answer.items() if value})}"

    def signed(self, claims: Claims) -> str:
        key = self.keys[self.signs_with]
        header = {"alg": "ES256" if isinstance(key, ECKey) else "RS256", "kid": self.signs_with}
        return jwt.encode(header, claims, key, algorithms=["RS256", "ES256"])

    # --- endpoints ------------------------------------------------------------------------------

    async def _configuration(self, request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize?tenant=1",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/keys",
                "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
                "response_types_supported": ["code"],
                **self.discovery,
            }
        )

    async def _authorize(self, request: Request) -> Response:
        """As with real companies: the browser is led to another site, where the person signs in."""
        query = dict(request.query_params)
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert {"openid", "email"} <= {*query["scope"].split()}
        return RedirectResponse(f"http://127.0.0.1:{self.port}/login?{urlencode(query)}", status_code=302)

    async def _login(self, request: Request) -> Response:
        if request.method == "POST":
            return RedirectResponse(self.way_back(dict(request.query_params)), status_code=303)
        head = "<!doctype html><title>Company</title><link rel=icon href=data:,>"
        return HTMLResponse(f"{head}<form method=post><button>It is me</button></form>")

    async def _token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        self.seen.append(json.dumps([form, dict(request.headers)]))
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        known = form.get("client_secret") == SECRET or request.headers.get("authorization") == f"Basic {basic}"
        begun = self._codes.pop(form.get("code", ""), None)
        if begun is None or not known or form["redirect_uri"] != begun["redirect_uri"]:
            return JSONResponse({"error": "invalid_grant", "error_description": CANARY}, status_code=400)
        hashed = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()
        if self.checks_pkce and challenge != begun["code_challenge"]:
            return JSONResponse({"error": "invalid_grant", "error_description": CANARY}, status_code=400)
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": begun["nonce"]}
        claims = self.claims({**claims, **begun["person"]})
        made = (self.token or self.signed)(claims)
        return JSONResponse({"access_token": CANARY, "token_type": "Bearer", "id_token": made})

    async def _keys(self, request: Request) -> Response:
        public = [{**key.as_dict(private=False), "kid": kid, "use": "sig"} for kid, key in self.keys.items()]
        shared = {**OctKey.generate_key(256).as_dict(), "kid": "shared"}
        return JSONResponse({"keys": [*public, shared, {"kty": "new", "kid": "unheard-of"}]})

    def app(self) -> Starlette:
        handlers = {
            "/.well-known/openid-configuration": self._configuration,
            "/authorize": self._authorize,
            "/login": self._login,
            "/token": self._token,
            "/keys": self._keys,
            "/elsewhere": self._elsewhere,
        }

        def as_told(handler: Callable[[Request], Any]) -> Callable[[Request], Any]:
            async def endpoint(request: Request) -> Response:
                self.asked.append(request.url.path)
                told = self.replies.get(request.url.path)
                if isinstance(told, Response):
                    return told
                await asyncio.sleep(told or 0)
                response: Response = await handler(request)
                return response

            return endpoint

        return Starlette(
            routes=[Route(path, as_told(handler), methods=["GET", "POST"]) for path, handler in handlers.items()]
        )

    async def _elsewhere(self, request: Request) -> Response:
        self.seen.append((await request.body()).decode())
        return JSONResponse({})


@contextmanager
def company() -> Iterator[Company]:
    """A provider that runs."""
    made = Company(free_port())
    config = uvicorn.Config(made.app(), port=made.port, log_config=None, access_log=False, lifespan="off", ws="none")
    runs = uvicorn.Server(config)
    thread = threading.Thread(target=runs.run, daemon=True)
    thread.start()
    while not runs.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield made
    finally:
        runs.should_exit = True
        thread.join(30)
    assert not thread.is_alive()
