"""Signing in by OpenID Connect in a real Chromium, without script, under the strict Content-Security-Policy."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.responses import RedirectResponse, Response
from tests.server.api.serving import Running
from tests.server.openid.company import Company
from tests.server.openid.conftest import at, provider, served  # noqa: F401
from tests.server.pages.test_browser import WIDTHS, violations

from privet.server.identity import cookie_name
from privet.server.pages import openid

pytestmark = pytest.mark.slow


def window(browser: Browser, running: Running, heard: list[str], **options: Any) -> Page:
    page = browser.new_context(base_url=running.server.settings.origin, reduced_motion="reduce", **options).new_page()
    page.set_default_timeout(15_000)
    page.on("console", lambda said: heard.append(said.text))
    return page


def test_through_the_button(browser: Browser, served: Running, at: Company, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    heard: list[str] = []
    page = window(browser, served, heard, java_script_enabled=False)
    page.goto(f"http://127.0.0.1:{served.port}/datasets/people")
    origin = served.server.settings.origin
    assert page.url == f"{origin}/sign-in?next=%2Fdatasets%2Fpeople", "the name that the provider knows"
    page.click("text=Sign in with Example & <b>Co</b>")
    page.wait_for_url("http://127.0.0.1:*/login?**")
    page.click("text=It is me")
    page.wait_for_url(f"{origin}/datasets/people")
    expect(page.locator(".who > a")).to_have_text("ann")
    page.click("text=Sign out")
    expect(page.locator("h1")).to_have_text("Sign in")
    assert heard == []

    def redirected(call: object, template: str, *, where: str, **values: object) -> Response:
        return RedirectResponse(where, status_code=303)

    monkeypatch.setattr(openid, "show", redirected)
    page.click("text=Sign in with")
    page.wait_for_timeout(300)
    assert page.url.endswith("/sign-in"), "a redirect after a form would be stopped, as form-action says"
    assert any("form-action" in each for each in heard)
    page.context.close()


def test_the_pages_are_accessible_and_fit(browser: Browser, served: Running, at: Company) -> None:  # noqa: F811
    heard: list[str] = []
    page = window(browser, served, heard)
    settings = served.server.settings
    link = f"/welcome/{served.server.accounts.invite('bob')}"
    session = {"name": cookie_name(settings), "url": settings.origin}
    steward = {**session, "value": served.server.accounts.begin_session("sam")[0]}
    for address in ("/sign-in", link, "/steward/people", "/steward/people/ann"):
        if address.startswith("/steward"):
            page.context.add_cookies([steward])  # type: ignore[list-item]
        page.goto(address)
        assert violations(page) == [], address
        page.emulate_media(color_scheme="dark")
        assert violations(page, ["color-contrast"]) == [], address
        page.emulate_media(color_scheme="light")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, (address, width)
    assert heard == []
    page.context.close()
