"""A server for each file of tests, and one browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright
from tests.server.pages.site import Site, chromium, site_over


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site_over(tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; without it these tests are skipped, which on CI is a failure."""
    where = chromium()
    if where is None:
        pytest.skip("the pages are tested in Chromium; ./dev test installs it, as root")
    quiet = ("--disable-background-networking", "--disable-component-update", "--disable-sync")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=where, args=["--no-sandbox", "--disable-gpu", *quiet])
        yield browser
        browser.close()
