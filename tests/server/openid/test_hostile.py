"""A provider that lies, and a browser that is led astray. On a careless twin, each attack succeeds."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
import math
import threading
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.responses import JSONResponse, RedirectResponse, Response
from tests.server.api.serving import Running
from tests.server.openid.company import CLIENT, OTHER_RSA, RSA, SECRET, Claims, Company
from tests.server.openid.visiting import BACK, Visitor

from privet.server.accounts.base import find
from privet.server.accounts.openid import Begun, OpenID
from privet.server.accounts.tables import openid as table
from privet.server.openid import ProviderError, fetching, flow, id_token, provider
from privet.server.pages import openid as pages

New = Callable[[], Visitor]
Patch = pytest.MonkeyPatch


# --- lies in the ID token ---------------------------------------------------------------------------


def unverified(part: str) -> Any:
    return json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def compact(header: Claims, claims: Claims, signature: Callable[[bytes], bytes]) -> str:
    parts = [urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims)]
    text = b".".join(parts)
    return b".".join([text, urlsafe_b64encode(signature(text)).rstrip(b"=")]).decode()


def with_shared_secret(key: bytes, **header: Any) -> Callable[[Claims], str]:
    """The public key, which everybody knows, used as if it were a shared secret."""
    sign = lambda text: hmac.new(key, text, hashlib.sha256).digest()  # noqa: E731
    return lambda claims: compact({"alg": "HS256", "kid": "one", **header}, claims, sign)


PEM = RSA.as_pem(private=False)
LIES: dict[str, Callable[[Claims], Claims]] = {
    "another nonce": lambda claims: claims | {"nonce": "0" * 64},
    "no nonce": lambda claims: {name: claims[name] for name in claims if name != "nonce"},
    "a nonce that is no text": lambda claims: claims | {"nonce": True},
    "another audience": lambda claims: claims | {"aud": "another-app"},
    "no audience": lambda claims: claims | {"aud": []},
    "an audience that begins alike": lambda claims: claims | {"aud": f"{CLIENT}-too"},
    "several audiences, and another party": lambda claims: claims | {"aud": [CLIENT, "b"], "azp": "b"},
    "several audiences, and no party": lambda claims: claims | {"aud": [CLIENT, "b"]},
    "another party": lambda claims: claims | {"azp": "another-app"},
    "another issuer": lambda claims: claims | {"iss": "https://evil.example"},
    "an issuer that looks alike": lambda claims: claims | {"iss": f"{claims['iss']}/"},
    "expired": lambda claims: claims | {"exp": time.time() - 100},
    "never expires": lambda claims: {name: claims[name] for name in claims if name != "exp"},
    "expires at no time": lambda claims: claims | {"exp": "tomorrow"},
    "expires at infinity": lambda claims: claims | {"exp": math.inf},
    "issued at no number": lambda claims: claims | {"iat": math.nan},
    "issued tomorrow": lambda claims: claims | {"iat": int(time.time()) + 86400},
    "issued yesterday": lambda claims: claims | {"iat": int(time.time()) - 86400},
    "not valid yet": lambda claims: claims | {"nbf": int(time.time()) + 86400},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_token_that_is_not_for_this_sign_in(at: Company, visitor: New, monkeypatch: Patch, lie: str) -> None:
    at.claims = LIES[lie]
    ann = visitor()
    met = ann.sign_in()
    assert met.status_code == 403
    assert "did not confirm who you are" in met.text
    assert ann.name is None
    monkeypatch.setattr(id_token, "check", lambda *_: None)
    monkeypatch.setattr(id_token, "document", json.loads)
    assert ann.sign_in().status_code == 303, "the careless twin reads the signature, and no claim"
    assert ann.name == "ann"


FORGED: dict[str, Callable[[Claims], str]] = {
    "no algorithm": lambda claims: compact({"alg": "none"}, claims, lambda text: b""),
    "no algorithm, in capitals": lambda claims: compact({"alg": "nOnE", "kid": "one"}, claims, lambda text: b""),
    "the public key as a secret": with_shared_secret(PEM),
    "the public key as a secret, without an id": with_shared_secret(PEM, kid=None),
    "somebody else's key": lambda claims: jwt.encode({"alg": "RS256", "kid": "one"}, claims, OTHER_RSA),
    "a key of its own": lambda claims: jwt.encode(
        {"alg": "RS256", "kid": "one", "jwk": OTHER_RSA.as_dict(private=False)}, claims, OTHER_RSA
    ),
    "no signature": lambda claims: jwt.encode({"alg": "RS256", "kid": "one"}, claims, RSA).rpartition(".")[0] + ".",
    "other claims under a good signature": lambda claims: spliced(claims),
}


def spliced(claims: Claims) -> str:
    head, _, signature = jwt.encode({"alg": "RS256", "kid": "one"}, claims | {"sub": "id-of-eve"}, RSA).split(".")
    return f"{head}.{urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b'=').decode()}.{signature}"


def as_it_says(text: str, header: Claims, key: RSAKey) -> Claims:
    """A careless reader: the token says how it is to be checked, and by which key."""
    head, claims, signature = text.split(".")
    match header.get("alg", "").lower():
        case "none":
            return dict(unverified(claims))
        case "hs256":
            good = hmac.new(PEM, f"{head}.{claims}".encode(), hashlib.sha256).digest()
            assert urlsafe_b64encode(good).rstrip(b"=").decode() == signature
            return dict(unverified(claims))
    own = RSAKey.import_key(header["jwk"]) if "jwk" in header else None
    if own is not None:
        registry = id_token._registry()
        registry.max_header_length = 5000
        return jwt.decode(text, own, registry=registry).claims
    return dict(unverified(claims))


@pytest.mark.parametrize("forged", FORGED)
def test_a_token_that_the_provider_did_not_sign(at: Company, visitor: New, monkeypatch: Patch, forged: str) -> None:
    at.token = FORGED[forged]
    ann = visitor()
    assert ann.sign_in().status_code == 403
    assert ann.name is None
    monkeypatch.setattr(id_token, "header_of", lambda text: unverified(text.split(".")[0]))
    monkeypatch.setattr(id_token, "signed", as_it_says)
    assert ann.sign_in().status_code == 303, "the careless twin lets the token choose"
    assert ann.name == "ann"


@pytest.mark.parametrize("odd", ["", "a", "a.b", "a.b.c", "....", "e30.e30.", "ä.ö.ü", "x" * 200_000, None, 7, ["a"]])
def test_a_token_that_is_none(at: Company, visitor: New, odd: Any) -> None:
    at.token = lambda claims: odd
    assert visitor().sign_in().status_code == 403


def test_keys_that_prove_nothing(at: Company) -> None:
    """A secret that is shared, a weak key, a key for something else, and what is no key at all."""
    good = RSA.as_dict(private=False)
    weak, endless = ({**good, "n": number} for number in (good["n"][:100], good["n"] * 10))
    listed = [
        {"kty": "oct", "k": "c2VjcmV0"},
        weak,
        endless,
        {**good, "use": "enc"},
        {"kty": "RSA"},
        {"kty": "EC", "x": 1},
        3,
    ]
    assert provider.keys_of({"keys": listed}) == {}
    assert [*provider.keys_of({"keys": [*listed, {**good, "kid": "a"}, {**good, "kid": 3}]})] == ["a", ""]
    private = provider.keys_of({"keys": [{**RSA.as_dict(private=True), "kid": "a"}]})
    assert not private["a"].is_private


# --- e-mail addresses -------------------------------------------------------------------------------


@pytest.mark.parametrize("verified", [False, None, "true", 1, "missing"])
def test_an_address_that_the_provider_did_not_verify(
    at: Company, visitor: New, monkeypatch: Patch, verified: object
) -> None:
    at.person = {"sub": "id-of-eve", "email": "ann@example.org", "email_verified": verified}
    if verified == "missing":
        del at.person["email_verified"]
    eve = visitor()
    assert eve.sign_in().status_code == 403
    monkeypatch.setattr(id_token, "claim_of", lambda claims, name: claims.get(name))
    assert eve.sign_in().status_code == 303
    assert eve.name == "ann"


def test_an_address_that_somebody_else_has_now(at: Company, visitor: New, monkeypatch: Patch) -> None:
    """Ann left the company, and Eve got her address."""
    assert visitor().sign_in().status_code == 303
    at.person = {"sub": "id-of-eve", "email": "ann@example.org", "email_verified": True}
    eve = visitor()
    assert eve.sign_in().status_code == 403

    def by_address(self: OpenID, connection: Any, issuer: str, subject: str, claim: str) -> Any:
        row = connection.execute(table.select().where(table.c.awaits == claim)).one()
        return find(connection, row.name)

    monkeypatch.setattr(OpenID, "_awaited", by_address)
    assert eve.sign_in().status_code == 303
    assert eve.name == "ann"


@pytest.mark.parametrize("email", ["ann@example.org\0", "аnn@example.org", "ann@example.org.evil.example", " ", "ann"])
def test_an_address_that_looks_alike(at: Company, visitor: New, email: str) -> None:
    at.person = {"sub": "id-of-eve", "email": email, "email_verified": True}
    assert visitor().sign_in().status_code == 403


# --- browsers that are led astray -------------------------------------------------------------------


def test_an_answer_that_was_used_already(served: Running, at: Company, visitor: New, monkeypatch: Patch) -> None:
    """Even with the cookie of the sign-in, and a new code."""
    ann = visitor()
    query = ann.leave()
    secret = ann.client.cookies["privet-openid"]
    assert ann.arrive(at.way_back(query)).status_code == 303

    def again() -> httpx.Response:
        eve = visitor()
        eve.client.cookies.set("privet-openid", secret, domain="localhost.local")
        return eve.arrive(at.way_back(query))

    met = again()
    assert met.status_code == 403
    assert "too old, or began in another browser" in met.text
    forgetful = lambda self, secret: Begun("/datasets", None, "")  # noqa: E731
    monkeypatch.setattr(OpenID, "complete_openid", forgetful)
    assert again().status_code == 303


def test_an_answer_that_is_too_old(served: Running, at: Company, visitor: New, monkeypatch: Patch) -> None:
    ann = visitor()
    url = at.way_back(ann.leave())
    monkeypatch.setattr(served.server.accounts, "_clock", lambda: time.time() + 601)
    assert ann.arrive(url).status_code == 403


def careless(at: Company, patch: Patch) -> None:
    """A client without state or nonce, at a provider that ignores PKCE."""
    at.checks_pkce = False
    patch.setattr(flow.Flow, "is_mine", lambda self, state: True)
    patch.setattr(id_token, "check", lambda *_: None)


def test_an_answer_of_another_browser(at: Company, visitor: New, monkeypatch: Patch) -> None:
    """Login CSRF: Eve signs in, and makes Ann's browser open her way back, so that Ann works in Eve's account."""
    eve, ann, nobody = visitor(), visitor(), visitor()
    at.person = {"sub": "id-of-eve", "email": "ann@example.org", "email_verified": True}
    url = at.way_back(eve.leave())
    ann.leave()
    assert ann.arrive(url).status_code == 403
    assert nobody.arrive(url).status_code == 403
    assert ann.name is None
    careless(at, monkeypatch)
    ann.leave()
    assert ann.arrive(url).status_code == 303


def test_a_code_of_another_browser(at: Company, visitor: New, monkeypatch: Patch) -> None:
    """Code injection: Eve has a code that was made for Ann, and sends it with her own state."""
    ann, eve = visitor(), visitor()

    def injected() -> httpx.Response:
        code = at.code(ann.leave())
        return eve.arrive(f"/sign-in/openid/callback?code={code}&state={eve.leave()['state']}")

    assert injected().status_code == 403, "PKCE"
    at.checks_pkce = False
    assert injected().status_code == 403, "the nonce"
    assert eve.name is None
    careless(at, monkeypatch)
    assert injected().status_code == 303
    assert eve.name == "ann"


def test_an_answer_of_another_provider(at: Company, visitor: New, monkeypatch: Patch) -> None:
    """Mix-up: the answer says that it comes from elsewhere, or does not say where, though the provider always does."""
    at.discovery = {"authorization_response_iss_parameter_supported": True}
    for issuer in ("https://evil.example", ""):
        ann = visitor()
        assert ann.arrive(at.way_back(ann.leave(), iss=issuer)).status_code == 403
        assert "/token" not in at.asked, "the code went nowhere"
    arrive = flow.Flow.arrive
    monkeypatch.setattr(
        flow.Flow, "arrive", lambda self, answer: arrive(self, {**answer, "iss": self.provider.settings.issuer})
    )
    ann = visitor()
    assert ann.arrive(at.way_back(ann.leave(), iss="https://evil.example")).status_code == 303


def test_an_answer_with_everything_twice(at: Company, visitor: New) -> None:
    ann = visitor()
    query = ann.leave()
    url = at.way_back(query)
    for more in ("state=x", "code=x", f"iss={at.issuer}"):
        assert ann.arrive(f"{url}&{more}").status_code == 403
        query = ann.leave()
        url = at.way_back(query)
    assert ann.arrive(url).status_code == 303


def test_answers_to_nothing(served: Running, at: Company, visitor: New) -> None:
    """What anybody can send to the way back, without having begun, or instead of what the provider sends."""
    ann = visitor()
    state = ann.leave()["state"]
    long = f"?code={'a' * 3800}"
    for query in ("", "?", "?state=", "?state=%00&code=%00", "?%ff", long, "?error=x", "?state=x&code=y"):
        assert ann.arrive(f"{BACK}{query}").status_code == 403, query
        state = ann.leave()["state"]
    assert ann.arrive(f"{BACK}?code={'a' * 5000}").status_code == 414
    for code in ("", "%00", "%E4", "a" * 3001):
        assert ann.arrive(f"{BACK}?state={state}&code={code}").status_code == 403, code
        state = ann.leave()["state"]
    assert "/token" not in at.asked
    ann.client.cookies.set("privet-openid", "x" * 64, domain="localhost.local")
    assert ann.arrive(f"{BACK}?state={state}&code=a").status_code == 403


def test_another_site_can_not_end_what_has_begun(at: Company, visitor: New) -> None:
    """It can lead the browser to the way back, and the cookie went with the page that said so."""
    ann = visitor()
    query = ann.leave()
    assert ann.arrive(f"{BACK}?state=x&code=y").status_code == 403
    assert ann.arrive(at.way_back(query)).status_code == 303
    assert ann.name == "ann"


def test_another_site_can_not_begin(served: Running, at: Company, visitor: New) -> None:
    for headers in ({}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        ann = visitor()  # the server closes a connection whose request it refuses unread
        ann.client.get("/sign-in")
        met = ann.client.post("/sign-in/openid", data={"csrf": "0" * 64}, headers=headers)
        assert met.status_code == 403
        assert "privet-openid" not in ann.client.cookies
    assert visitor().client.get("/sign-in/openid").status_code == 405


ASTRAY = (
    "https://evil.example",
    "//evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "\\\\evil.example",
    "javascript:alert(1)",
    "/datasets\r\nX: y",
)


def test_where_it_leads_in_the_end(at: Company, visitor: New, monkeypatch: Patch) -> None:
    """An open redirect by way of `next`."""
    for target in ASTRAY:
        assert visitor().sign_in(next=target).headers["location"] == "/datasets", target
    assert (
        visitor().sign_in(next="/datasets/people?sql=a%2F%2Fb").headers["location"] == "/datasets/people?sql=a%2F%2Fb"
    )
    monkeypatch.setattr(pages, "safe", lambda target: target)
    assert visitor().sign_in(next=ASTRAY[0]).headers["location"] == ASTRAY[0]


# --- what a provider sends --------------------------------------------------------------------------

PATHS = ("/.well-known/openid-configuration", "/token", "/keys")
DEEP = b"[" * 100_000
ODD: dict[str, Response] = {
    "huge": JSONResponse({"id_token": "x" * 300_000}),
    "a bomb": Response(gzip.compress(b" " * 10_000_000), headers={"Content-Encoding": "gzip"}),
    "deep": Response(DEEP),
    "a list": JSONResponse([]),
    "no text": Response(b"\xff\xfe"),
    "empty": Response(b""),
    "an error": JSONResponse({"error": "x"}, status_code=500),
    "a redirect": RedirectResponse("/elsewhere", status_code=307),
}


@pytest.mark.parametrize("path", PATHS)
def test_answers_that_are_odd(served: Running, at: Company, visitor: New, path: str) -> None:
    for odd, response in ODD.items():
        at.reset()
        at.replies[path] = response
        known = served.server.openid
        assert known is not None
        provider.Provider.__init__(known, known.settings, known.secret)
        ann = visitor()
        pressed = ann.press()
        if path.startswith("/.well"):
            assert pressed.status_code == 503, odd
            assert "can’t be reached" in pressed.text
        else:
            assert ann.sign_in().status_code == 403, odd
        assert "/elsewhere" not in at.asked


def test_answers_that_are_too_large_or_too_slow(at: Company, visitor: New, monkeypatch: Patch) -> None:
    signed = at.signed
    at.token = lambda claims: signed(claims | {"more": "x" * 60_000})
    assert visitor().sign_in().status_code == 303
    with monkeypatch.context() as patch:
        patch.setattr(fetching, "LARGEST", 50_000)
        assert visitor().sign_in().status_code == 403
    at.replies["/token"] = 0.4
    assert visitor().sign_in().status_code == 303
    with monkeypatch.context() as patch:
        patch.setattr(fetching, "SECONDS", 0.2)
        assert visitor().sign_in().status_code == 403
    monkeypatch.setattr(fetching, "AT_ONCE", 0)
    assert visitor().sign_in().status_code == 403


def test_nobody_waits_for_a_slow_provider_but_those_who_ask_it(served: Running, at: Company, visitor: New) -> None:
    at.replies[PATHS[0]] = 3.0
    waiting = threading.Thread(target=visitor().press)
    waiting.start()
    while not at.asked:
        time.sleep(0.01)
    try:
        assert served.token("ann").get("/me").status_code == 200
        assert visitor().client.get("/sign-in").status_code == 200
        assert waiting.is_alive()
    finally:
        waiting.join()


def test_somebody_who_is_disabled_meanwhile_is_not_let_in(served: Running, at: Company, visitor: New) -> None:
    ann = visitor()
    query = ann.leave()
    served.server.accounts.disable("ann")
    assert ann.arrive(at.way_back(query)).status_code == 403
    assert ann.name is None
    found = served.server.accounts.person("ann")
    assert found is not None
    assert not found.linked


def test_a_redirect_does_not_get_the_secret(at: Company, visitor: New, monkeypatch: Patch) -> None:
    at.replies["/token"] = RedirectResponse("/elsewhere", status_code=307)
    assert visitor().sign_in().status_code == 403
    assert at.seen == []

    class Obedient(httpx.AsyncClient):
        def __init__(self, **options: Any) -> None:
            super().__init__(**{**options, "follow_redirects": True})

    monkeypatch.setattr(httpx, "AsyncClient", Obedient)
    assert visitor().sign_in().status_code == 403
    assert SECRET in at.seen[0], "the twin sends it wherever it is told"


def test_a_provider_that_failed_is_left_alone_for_a_moment(served: Running, at: Company, visitor: New) -> None:
    at.replies[PATHS[0]] = ODD["an error"]
    assert [visitor().press().status_code for _ in range(5)] == [503] * 5
    assert at.asked == [PATHS[0]]
    at.replies.clear()
    known = served.server.openid
    assert known is not None
    now = known._clock()
    known._clock = lambda: now + 6
    assert visitor().sign_in().status_code == 303


def test_a_provider_whose_document_is_wrong_is_left_alone_too(served: Running, at: Company, visitor: New) -> None:
    """Nothing else limits how often strangers make the server ask: an attempt is charged when a browser leaves."""
    at.discovery["issuer"] = "https://other.example"
    assert [visitor().press().status_code for _ in range(5)] == [503] * 5
    assert at.asked == [PATHS[0]]


UNSAFE: dict[str, Any] = {
    "issuer": ("https://evil.example", "http://localhost:1/", None, 3),
    "authorization_endpoint": ("http://evil.example/a", "javascript:alert(1)", "https://a@e.x/", 'https://e.x/"', None),
    "token_endpoint": ("http://evil.example/a", "file://localhost/a", "//evil.example", "https://e.x/#a", 7),
    "jwks_uri": ("http://evil.example/a", "ftp://evil.example/", "", []),
}  # fmt: skip


def test_discovery_documents_that_lead_astray(served: Running) -> None:
    good = {
        "issuer": "https://login.example.org",
        "authorization_endpoint": "https://login.example.org/a",
        "token_endpoint": "https://api.example.org/t",
        "jwks_uri": "https://www.example.org/k",
    }
    read = partial(provider.endpoints_of, issuer=good["issuer"])
    assert read(good).token == good["token_endpoint"]
    assert not read(good).secret_in_body
    for name, values in UNSAFE.items():
        for value in (*values, "http://localhost:1/a", "https://127.0.0.1/a"):
            with pytest.raises(ProviderError):
                read({**good, name: value})
