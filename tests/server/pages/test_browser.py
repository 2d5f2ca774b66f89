"""The pages in a real Chromium: every page as steward and analyst, with and without script, and hostile texts."""

from __future__ import annotations

import io
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from tests.server.pages.site import ANALYST, COLUMN, EVIL, KEY, PASSWORD, STATEMENT, TABLE, Site, Visitor, asked

from privet.server.accounts import Role
from privet.server.authorization import Rule
from privet.server.openid.flow import CALLBACK
from privet.server.pages.rendering import segment
from privet.server.pages.routes import PAGES

pytestmark = pytest.mark.slow
WIDTHS = (375, 768, 1280)
SIDEWAYS = """innerWidth > 400 ? 0 :
    Math.max(0, ...[...document.querySelectorAll('.scroll:has(table.stacked)')]
        .map(each => each.scrollWidth - each.clientWidth))"""
"""How far a table that has a form for phones must be scrolled there."""
PLAIN = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
_DATASET = "/datasets/{dataset}"
NO_PAGES = {"/static/{file}", f"{_DATASET}/answers/{{which}}/{{file}}", CALLBACK}
"""What is a file, or a way back from a provider."""
LEADS_ON = {"/", "/steward"}
"""What leads to another page."""


def addresses(site: Site, name: str) -> dict[str, list[str]]:
    """Every page that somebody may look at, by its route, with what it is about filled in."""
    dataset = "people"
    answer = asked(site, name)
    evil = segment(EVIL)
    secret = site.server.accounts.invite("bob")
    found: dict[str, list[str]] = {}
    for route in PAGES:
        if route.method != "GET" or route.path in NO_PAGES:
            continue
        steward = route.rule in (Rule.STEWARD, Rule.STEWARD_OF, Rule.ADMINISTERS)
        if steward and site.server.accounts.person(name).role is not Role.STEWARD:  # type: ignore[union-attr]
            continue
        path = route.path.replace(f"{_DATASET}/answers/{{which}}", answer)
        several = [path.replace("{dataset}", dataset)]
        if "{dataset}" in path and name in (ANALYST, "sam"):
            several.append(path.replace("{dataset}", evil))
        found[route.path] = [each.format(name=segment(ANALYST), secret=secret) for each in several]
    found[_DATASET] += ["/datasets/people?mode=form", f"/datasets/people?sql={quote(STATEMENT)}"]
    found[_DATASET].append(f"/datasets/people?sql={quote('SELECT AVG(incom) AS x FROM people')}")
    return found


@pytest.mark.parametrize("name", ["sam", ANALYST])
def test_every_page_is_accessible_and_keeps_to_the_policy(browser: Browser, site: Site, name: str) -> None:
    site.server.accounts.create_token(ANALYST, EVIL, datasets=["people"], days=1)
    asked(site, ANALYST, f'SELECT "{COLUMN.replace(chr(34), chr(34) * 2)}", COUNT(*) AS "{EVIL}" FROM "{TABLE}" '
          f'GROUP BY "{COLUMN.replace(chr(34), chr(34) * 2)}"', dataset=EVIL)  # fmt: skip
    visited = 0
    with Visitor(browser, site, name) as visitor:
        page = visitor.page
        for path, several in addresses(site, name).items():
            for address in several:
                response = page.goto(address)
                assert response is not None
                assert response.status == 200, (path, response.status, page.text_content("main"))
                if path in LEADS_ON:
                    continue
                expect(page.locator(".busy")).to_have_count(0)
                visited += 1
                assert (wrong := violations(page)) == [], (address, wrong)
                if name == "sam":  # of what an analyst sees, nothing differs in the dark or in width
                    page.emulate_media(color_scheme="dark")
                    assert (wrong := violations(page, ["color-contrast"])) == [], (address, wrong)
                    page.emulate_media(color_scheme="light")
                    for width in WIDTHS:
                        page.set_viewport_size({"width": width, "height": 900})
                        over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
                        assert over <= 0, (address, width, over)
                        assert page.evaluate(SIDEWAYS) <= 0, (address, width)
        assert page.evaluate("window.hacked") is None
        assert visitor.complaints == []
    assert visited >= (24 if name == "sam" else 12)


def violations(page: Page, only: list[str] | None = None) -> list[Any]:
    """What axe finds wrong with a page."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    options = {"resultTypes": ["violations"], **({} if only is None else {"runOnly": only})}
    found = page.evaluate("options => axe.run(document, options).then(found => found.violations)", options)
    return [(each["id"], each["nodes"][0]["html"]) for each in found]


def test_an_analyst_asks_with_help_of_the_script(browser: Browser, site: Site) -> None:
    with Visitor(browser, site, None) as visitor:
        page = visitor.page
        page.goto("/datasets/people")
        assert "/sign-in?next=" in page.url
        page.fill("#name", "ann")
        page.fill("#password", PASSWORD)
        page.keyboard.press("Enter")
        page.wait_for_url("**/datasets/people")
        # completion, by keyboard alone
        page.focus("#sql")
        page.keyboard.type("SELECT reg")
        expect(page.locator("#completions li[aria-selected=true]")).to_contain_text("region")
        page.keyboard.press("Enter")
        page.keyboard.type(", COUNT(*) AS n FROM peo")
        page.keyboard.press("Tab")
        page.keyboard.type(" WHERE region = 'no")
        expect(page.locator("#completions li[aria-selected=true]")).to_contain_text("'north'")
        page.keyboard.press("Escape")
        assert page.input_value("#sql") == "SELECT region, COUNT(*) AS n FROM people WHERE region = 'no"
        page.keyboard.type("r")
        expect(page.locator("#completions")).to_be_visible()
        page.keyboard.type("'")  # which ends the text, and begins none
        expect(page.locator("#completions")).to_be_hidden()
        # an error is marked where it is
        page.fill("#sql", "SELECT region, AVG(incom) AS pay FROM people GROUP BY region")
        expect(page.locator(".mirror mark")).to_have_text("incom")
        expect(page.locator("#problem")).to_contain_text("Did you mean income?")
        # cost and error follow the question and the slider
        page.fill("#sql", PLAIN)
        expect(page.locator("#explained")).to_contain_text("epsilon 0.1")
        page.fill("#sql", "")
        expect(page.locator("#explained")).to_have_text("The cost and the expected error appear here.")
        page.fill("#sql", PLAIN)
        expect(page.locator("#explained")).to_contain_text("epsilon 0.1")
        before = page.locator("#explained dd").first.inner_text()
        page.focus("#slider")
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        expect(page.locator("#explained")).to_contain_text("epsilon 0.7")
        assert float(page.locator("#explained dd").first.inner_text()[2:]) < float(before[2:])
        assert page.locator("#explained svg.costs path.curve").count() == 1
        assert page.locator(".mirror mark").count() == 0
        page.focus("#sql")
        page.keyboard.press("Control+Enter")
        page.wait_for_url("**/answers/page-*")
        assert page.locator("table.answer tbody tr").count() == 3
        assert page.locator("svg.chart .row").count() == 3
        visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.click("text=Copy CSV")
        expect(page.locator("#copied")).to_have_text("Copied.")
        assert "region,n,n_low,n_high,n_noisy" in page.evaluate("navigator.clipboard.readText()").replace('"', "")
        with page.expect_download() as downloaded:
            page.click("text=Parquet")
        raw = downloaded.value.path().read_bytes()
        assert pq.read_table(io.BytesIO(raw)).column_names == ["region", "n", "n_low", "n_high", "n_noisy"]
        page.click("text=Check it now")
        expect(page.locator("h1")).to_have_text("The certificate holds")
        # the form shows the column that its SQL is about
        page.goto("/datasets/people?mode=form")
        expect(page.locator("#f-column")).to_be_disabled()
        page.select_option("#f-measure", "mean")
        expect(page.locator("#made-sql")).to_contain_text("AVG(")
        assert f"AVG({page.input_value('#f-column')})" in page.inner_text("#made-sql")
        page.goto("/history")
        page.click(f"text={PLAIN}")
        assert page.locator("table.answer tbody tr").count() == 3
        assert visitor.complaints == []


def test_everything_works_without_script(browser: Browser, site: Site) -> None:
    with Visitor(browser, site, None, script=False) as visitor:
        page = visitor.page
        page.goto("/sign-in")
        page.fill("#name", "sam")
        page.fill("#password", PASSWORD)
        page.click("main button")
        page.wait_for_url("**/datasets")
        page.goto("/datasets/people?mode=form")
        page.select_option("#f-measure", "mean")
        page.select_option("#f-column", "income")
        page.select_option("#f-by", "region")
        page.locator("[name=where]").first.select_option("age")
        page.locator("[name=how]").first.select_option(">=")
        page.locator("[name=value]").first.fill("18")
        page.fill("#price", "0.5")
        page.click("text=What would it cost?")
        expect(page.locator("#made-sql")).to_contain_text("WHERE age >= 18")
        expect(page.locator("#explained")).to_contain_text("epsilon 0.5")
        page.click("button[value=ask]")
        page.wait_for_url("**/answers/page-*")
        assert page.locator("table.answer tbody tr").count() == 3
        assert page.locator("svg.chart .dot").count() == 3
        page.goto("/datasets/people")
        page.fill("#sql", "SELECT AVG(incom) AS x FROM people")
        page.click("button[value=ask]")
        expect(page.locator("#problem")).to_contain_text("^^^^^")
        # a steward adds somebody, who sets a password with the link that was shown once
        page.goto("/steward/people")
        page.fill("#p-name", "zoe")
        page.check("[name=dataset][value=people]")
        page.click("text=Add and make a link")
        link = page.inner_text("#the-secret")
        page.reload()
        page.goto("/steward/people")
        assert page.locator("#the-secret").count() == 0
    with Visitor(browser, site, None, script=False) as visitor:
        page = visitor.page
        page.goto(link)
        for _ in range(2):
            page.fill("#password", "several words in a row")
            page.fill("#again", "another text entirely")
            page.click("main button")
            expect(page.locator("[role=alert]")).to_contain_text("differ")
        page.fill("#password", "several words in a row")
        page.fill("#again", "several words in a row")
        page.click("main button")
        page.wait_for_url("**/datasets")
        expect(page.locator("main h2")).to_have_text("people")
        page.click("text=Sign out")
        page.wait_for_url("**/sign-in")
        page.goto(link)
        expect(page.locator("[role=alert]")).to_contain_text("used already")


def test_a_program_is_let_in_by_its_code(browser: Browser, site: Site) -> None:
    codes = site.server.accounts.begin_device(EVIL, address="127.0.0.1")
    with Visitor(browser, site, "ann") as visitor:
        page = visitor.page
        page.goto("/device")
        page.fill("#code", codes.user_code.lower())
        page.keyboard.press("Enter")
        expect(page.locator("dl")).to_contain_text(EVIL)
        page.click("text=Connect >> nth=-1")
        expect(page.locator("[role=status]")).to_contain_text("Connected")
        assert visitor.complaints == []
    assert site.server.accounts.finish_device(codes.device_code).token is not None


def test_hostile_texts_stay_texts(browser: Browser, site: Site) -> None:
    with Visitor(browser, site, ANALYST) as visitor:
        page = visitor.page
        here = f"/datasets/{segment(EVIL)}"
        page.goto(here)
        page.fill("#sql", f"{KEY}{EVIL}")
        page.wait_for_selector("#problem .note")
        page.keyboard.type("<")
        for typed in ("c", "<", '"c'):
            page.fill("#sql", "")
            page.focus("#sql")
            page.keyboard.type(typed)
            page.wait_for_timeout(50)
        page.goto(f"{here}?sql={quote(KEY)}&price={quote(EVIL)}&mode={quote(EVIL)}&confidence={quote(EVIL)}")
        assert page.input_value("#sql") == KEY
        page.goto(f"{here}?mode=form&table={quote(EVIL)}&by={quote(COLUMN)}")
        page.wait_for_selector("#explained dl")
        page.click("button[value=ask]")
        page.wait_for_url("**/answers/page-*")
        assert KEY in page.locator("table.answer").inner_text()
        assert page.evaluate("window.hacked") is None
        assert visitor.complaints == []


def test_the_browser_keeps_a_page_that_is_broken_into_from_running(browser: Browser, site: Site) -> None:
    """The check of complaints would see a script: without the template's escaping, the policy still stops it."""
    with Visitor(browser, site, "ann") as visitor:
        page = visitor.page
        page.goto("/datasets")
        page.evaluate(
            "document.querySelector('main').innerHTML = '<p style=\"color: red\">x</p><img src=x onerror=\"hacked=1\">'"
        )
        page.wait_for_timeout(100)
        assert page.evaluate("window.hacked") is None
        assert any(
            "Content Security Policy" in each or "content security policy" in each.lower()
            for each in visitor.complaints
        )
