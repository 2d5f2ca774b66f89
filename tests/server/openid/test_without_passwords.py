"""A server without passwords, its secret in a file: who can still come in, also when the provider is down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.responses import Response
from tests.server.api.serving import Running, serving
from tests.server.openid.company import CLIENT, SECRET, Company
from tests.server.openid.conftest import POLICY
from tests.server.openid.visiting import Visitor

from privet.cli.serve import serve
from privet.errors import UserError
from privet.policy.openid_shape import SECRET as VARIABLE
from privet.server.openid import client_secret
from privet.server.settings import Settings

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def without(provider: Company, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("without")
    (folder / "openid.secret").write_text(f"{SECRET}\n", encoding="utf-8")
    text = POLICY.format(issuer=provider.issuer, client=CLIENT, more="passwords = false")
    with serving(folder, server=f'{text}secret_file = "openid.secret"\n') as running:
        running.server.accounts.set_password("sam", PASSWORD)
        yield running


def filled(client: httpx.Client, page: str) -> dict[str, str]:
    found = re.search(r'name="csrf" value="([^"]*)"', client.get(page).text)
    assert found is not None
    return {"csrf": found[1]}


def test_no_password_opens_anything(without: Running, provider: Company) -> None:
    sam = Visitor(without, provider)
    page = sam.client.get("/sign-in").text
    assert "password" not in page.lower()
    sent = sam.client.post("/sign-in", data={**filled(sam.client, "/sign-in"), "name": "sam", "password": PASSWORD})
    assert sent.status_code == 403
    assert "Passwords are turned off" in sent.text
    assert sam.name is None
    browser = without.browser("sam")
    root = without.server.settings.origin
    assert "Change your password" not in browser.get(f"{root}/account").text
    data = {"old": PASSWORD, "password": "another horse battery", "again": "another horse battery"}
    assert browser.post(f"{root}/account/password", data=data).status_code == 403


def test_a_link_lets_in_once_also_when_the_provider_is_down(without: Running, provider: Company) -> None:
    """What a steward with a terminal does: privet users invite sam."""
    provider.replies["/.well-known/openid-configuration"] = Response(status_code=503)
    sam = Visitor(without, provider)
    link = f"/welcome/{without.server.accounts.invite('sam')}"
    page = sam.client.get(link).text
    assert "password" not in page.lower()
    assert sam.press(link).status_code == 503
    assert sam.client.post(link, data={"csrf": "0" * 64}).status_code == 403
    sent = sam.client.post(link, data=filled(sam.client, link))
    assert sent.status_code == 303
    assert sam.name == "sam"
    assert Visitor(without, provider).client.get(link).status_code == 404
    person = without.server.accounts.person("sam")
    assert person is not None
    assert not person.linked
    provider.reset()


def test_stewards_say_who_signs_in_and_it_is_recorded(without: Running, provider: Company) -> None:
    sam, root = without.browser("sam"), without.server.settings.origin
    data = {"name": "una", "dataset": "people", "openid": "Una@Example.org"}
    added = sam.post(f"{root}/steward/people", data=data)
    assert added.status_code == 200, added.text
    assert "signs in as una@example.org" in latest(without)
    page = sam.get(f"{root}/steward/people/una").text
    assert 'value="una@example.org"' in page
    assert "not signed in yet" in page
    provider.person = {"sub": "id-of-una", "email": "una@example.org", "email_verified": True}
    known = without.server.openid
    assert known is not None
    known._failed = -1e9
    una = Visitor(without, provider)
    assert una.sign_in().status_code == 303
    assert una.name == "una"
    sam.post(f"{root}/steward/people/una/access", data={"dataset": "people", "openid": "una@example.org"})
    assert una.name == "una", "nothing was changed"
    sam.patch(f"{without.url}/people/una", json={"openid": "una.b@example.org"})
    assert una.name is None
    assert "signs in as una.b@example.org" in latest(without)
    again = sam.post(f"{root}/steward/people", data={"name": "uno", "openid": "una.b@example.org"})
    assert again.status_code == 422
    assert 'value="una.b@example.org"' in again.text, "the form keeps what was typed"
    made = sam.post(f"{without.url}/people", json={"name": "uno", "datasets": [], "openid": "uno@example.org"}).json()
    assert made["person"]["openid"] == "uno@example.org"


def latest(running: Running) -> str:
    return next(entry.note or "" for entry in running.server.ledger.recent("people")[0] if entry.kind == "administered")


def test_the_secret_is_in_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "openid.secret"
    for wrong in ("", "\n", f"{SECRET}\nmore", f"{SECRET}ü", "x" * 3000):
        file.write_text(wrong, encoding="utf-8")
        monkeypatch.setenv(VARIABLE, wrong)
        for where in (str(file), None):
            with pytest.raises(UserError, match=VARIABLE) as refused:
                client_secret(where)
            assert SECRET not in str(refused.value)
    monkeypatch.delenv(VARIABLE)
    for where in (str(tmp_path / "missing"), str(tmp_path), None):
        with pytest.raises(UserError, match="secret_file"):
            client_secret(where)
    file.write_text(f"  {SECRET}\r\n", encoding="utf-8")
    assert client_secret(str(file)) == SECRET


def test_no_server_starts_without_its_secret(without: Running, tmp_path: Path) -> None:
    written = without.server.policy.path.read_text(encoding="utf-8")
    policy = tmp_path / "privet.toml"
    policy.write_text(written, encoding="utf-8")
    with pytest.raises(UserError, match=r"needs a client secret, but the file '.*openid.secret' is missing"):
        serve(policy)
    assert [*tmp_path.iterdir()] == [policy], "nothing was begun"


def test_cookies_behind_tls(without: Running, provider: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cookie of a sign-in is sent back from the provider's site, and no other site can set or read it."""
    monkeypatch.setattr(Settings, "secure", property(lambda self: True))
    ann = Visitor(without, provider)
    page = ann.client.get("/sign-in")
    form = page.cookies["__Host-privet-form"]
    field = re.search(r'name="csrf" value="([^"]*)"', page.text)
    assert field is not None
    cookie = {"Cookie": f"__Host-privet-form={form}"}
    sent = ann.client.post("/sign-in/openid", data={"csrf": field[1]}, headers=cookie)
    given = sent.headers["set-cookie"]
    assert re.match(r"__Host-privet-openid=[0-9a-f]{64}; ", given)
    assert {*given.split("; ")[1:]} >= {"HttpOnly", "Path=/", "SameSite=lax", "Secure", "Max-Age=600"}
