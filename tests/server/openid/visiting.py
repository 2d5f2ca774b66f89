"""A browser without a screen that signs in through the button, step by step, so that a test can come in between."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
from tests.server.api.serving import Running
from tests.server.openid.company import Company

from privet.server.identity import cookie_name

BACK = "/sign-in/openid/callback"


@dataclass
class Visitor:
    """Somebody with a browser."""

    running: Running
    company: Company
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        origin = self.running.server.settings.origin
        options: dict[str, Any] = {"base_url": origin, "timeout": 30, "trust_env": False, "verify": False}
        self.client = httpx.Client(headers={"Origin": origin}, **options)
        self.running.clients[f"visitor {len(self.running.clients)}"] = self.client

    def press(self, page: str = "/sign-in", **more: str) -> httpx.Response:
        """Press the button on a page."""
        shown = self.client.get(page).text
        form = re.search(r'action="/sign-in/openid">(.*?)</form>', shown, re.DOTALL)
        assert form is not None, shown
        fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form[1]))
        return self.client.post("/sign-in/openid", data={**fields, **more})

    def leave(self, page: str = "/sign-in", **more: str) -> dict[str, Any]:
        """Press the button; returns what the provider is asked."""
        return asked(self.press(page, **more))

    def arrive(self, url: str) -> httpx.Response:
        """Come back from the provider."""
        return self.client.get(url)

    def sign_in(self, page: str = "/sign-in", **more: str) -> httpx.Response:
        """The whole way."""
        return self.arrive(self.company.way_back(self.leave(page, **more)))

    @property
    def name(self) -> str | None:
        """Who is signed in, to the server."""
        identity = self.running.server.accounts.session(
            self.client.cookies.get(cookie_name(self.running.server.settings)) or ""
        )
        return None if identity is None else identity.person.name


def asked(response: httpx.Response) -> dict[str, Any]:
    """What the provider is asked, from the page on which the browser leaves."""
    found = re.search(r'http-equiv="refresh" content="0;url=([^"]+)"', response.text)
    assert response.status_code == 200, response.text
    assert found is not None, response.text
    return dict(parse_qsl(urlsplit(html.unescape(found[1])).query))
