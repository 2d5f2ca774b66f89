"""Who may do what: a matrix of every route and every kind of account, made from the routes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import httpx
import pytest
from starlette.responses import Response
from tests.server.api.serving import Running, serving

from privet.server import app
from privet.server.accounts import Role
from privet.server.authorization import ADMITS, OF_A_DATASET, Rule
from privet.server.call import Call
from privet.server.identity import cookie_name
from privet.server.route import Route
from privet.server.routes import API

ADMITTED = 299


async def _admitted(call: Call) -> Response:
    return Response(status_code=ADMITTED)


async def _no_body(request: object, route: Route, in_turn: object) -> None:
    return None


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server whose handlers do nothing but say that they were reached."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "HANDLES", {route.name: _admitted for route in app.EVERY})
        patch.setattr(app, "read_body", _no_body)
        with serving(tmp_path_factory.mktemp("probed")) as running:
            yield running


WHO: dict[str, Callable[[Running], httpx.Client]] = {
    "nobody": lambda running: running.client(),
    "analyst": lambda running: running.browser("ann"),
    "analyst's token": lambda running: running.token("ann"),
    "analyst of another dataset": lambda running: running.token("tim"),
    "analyst's token for another dataset": lambda running: running.token("bob", datasets=["trips"]),
    "steward": lambda running: running.browser("sam"),
    "steward's token": lambda running: running.token("sam", role=Role.STEWARD),
    "steward's token as analyst": lambda running: running.token("sam", role=Role.ANALYST),
    "steward's token for the dataset": lambda running: running.token("sam", role=Role.STEWARD, datasets=["people"]),
    "steward's token for another": lambda running: running.token("sam", role=Role.STEWARD, datasets=["trips"]),
    "steward's token with a limit": lambda running: running.token("sam", role=Role.STEWARD, max_epsilon=Fraction(1)),
}
ALL = frozenset(WHO)
SOMEBODY = ALL - {"nobody"}
ELSEWHERE = frozenset(who for who in WHO if "another" in who)
STEWARDS = frozenset({"steward", "steward's token", "steward's token with a limit"})
MAY: dict[Rule, frozenset[str]] = {
    Rule.ANYONE: ALL,
    Rule.SIGNED_IN: SOMEBODY,
    Rule.ASKS: SOMEBODY - ELSEWHERE,
    Rule.STEWARD_OF: STEWARDS | {"steward's token for the dataset"},
    Rule.STEWARD: STEWARDS,
    Rule.IN_PERSON: frozenset({"analyst", "steward", "steward's token"}),
    Rule.ADMINISTERS: frozenset({"steward", "steward's token"}),
}
"""Written by hand, from what each account is; the server's own table must agree."""


def expected(route: Route, who: str) -> int:
    if who in MAY[route.rule]:
        return ADMITTED
    if who == "nobody":
        return 401
    return 404 if route.rule in OF_A_DATASET and who in ELSEWHERE else 403


def address(route: Route) -> str:
    return "/".join("people" if part.startswith("{") else part for part in route.path.split("/"))


@pytest.mark.parametrize("who", WHO)
def test_every_route_admits_whom_its_rule_says(probed: Running, who: str) -> None:
    client = WHO[who](probed)
    root = probed.url.removesuffix(API)
    wrong = []
    for route in app.EVERY:
        response = client.request(route.method, root + address(route), headers={"Sec-Fetch-Site": "same-origin"})
        told = (
            401 if response.status_code == 303 and "/sign-in" in response.headers["location"] else response.status_code
        )
        if told != expected(route, who):
            wrong.append((route.method, route.path, told, expected(route, who)))
    assert wrong == []


def test_every_route_has_a_rule_and_a_handler() -> None:
    assert {*ADMITS} | {Rule.ANYONE} == {*Rule} == {*MAY}
    names = [route.name for route in app.EVERY]
    assert len(names) == len({*names})
    assert {*names} == {*app.HANDLES}
    assert len({(route.method, route.path) for route in app.EVERY}) == len(names)
    for route in app.EVERY:
        assert ("{dataset}" in route.path) == (route.rule in OF_A_DATASET), route.path
    with pytest.raises(TypeError, match="rule"):
        Route(method="GET", path="/new", name="new", summary="A route that nobody has thought through.")  # type: ignore[call-arg]


def test_the_matrix_notices_a_rule_that_is_too_wide(probed: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ADMITS, Rule.STEWARD, lambda identity: True)
    client = probed.token("ann")
    assert (
        client.get("/ledger/head").status_code
        == ADMITTED
        != expected(next(route for route in app.EVERY if route.name == "ledger_head"), "analyst's token")
    )


# --- browsers -------------------------------------------------------------------------------------


def test_a_browser_needs_the_csrf_token_and_the_same_site(probed: Running) -> None:
    url = f"{probed.url}/datasets/people/query"
    good = probed.browser("ann")
    assert good.post(url).status_code == ADMITTED
    csrf, origin = good.headers["x-csrf-token"], good.headers["origin"]
    cookies = dict(good.cookies)
    other = probed.browser("bob").headers["x-csrf-token"]
    for headers in (
        {},
        {"Origin": origin},
        {"X-CSRF-Token": ""},
        {"X-CSRF-Token": "wrong", "Origin": origin},
        {"X-CSRF-Token": other, "Origin": origin},
        {"X-CSRF-Token": csrf, "Origin": "https://evil.example"},
        {"X-CSRF-Token": csrf, "Origin": "null"},
        {"X-CSRF-Token": csrf, "Origin": f"{origin}.evil.example"},
        {"X-CSRF-Token": csrf, "Sec-Fetch-Site": "cross-site"},
        {"X-CSRF-Token": csrf, "Sec-Fetch-Site": "same-site"},
    ):
        with httpx.Client(cookies=cookies, trust_env=False) as client:
            assert client.post(url, headers=headers).status_code == 403, headers
    with httpx.Client(cookies=cookies, trust_env=False) as client:
        assert client.get(f"{probed.url}/me").status_code == ADMITTED, "reading needs none"


def test_a_wrong_token_is_refused_whatever_cookie_comes_with_it(probed: Running) -> None:
    browser = probed.browser("sam")
    good = probed.token("ann").headers["authorization"]
    for value in (
        "Bearer wrong",
        "Bearer",
        "Basic c2FtOnNhbQ==",
        "Bearer privet_0000000000000000_" + "0" * 64,
        "x" * 5000,
    ):
        assert browser.get("/me", headers={"Authorization": value}).status_code == 401
    two = [("Authorization", good), ("Authorization", good)]
    assert probed.client().get("/me", headers=two).status_code == 401
    # a token beside a cookie: the token counts, also for what the steward's cookie would allow
    assert browser.get("/ledger/head", headers={"Authorization": good}).status_code == 403


def test_a_forged_cookie_is_nobody(probed: Running) -> None:
    name = cookie_name(probed.server.settings)
    value = str(probed.browser("sam").cookies[name])
    for forged in (value[:-1] + ("A" if value[-1] != "A" else "B"), value.replace(".", ""), "", "x", value * 30):
        assert probed.client(cookies={name: forged}).get("/me").status_code == 401
