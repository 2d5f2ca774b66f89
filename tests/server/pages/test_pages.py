"""The pages by HTTP: who may see what, forms that others send, what a page may contain, and what it may not say."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import get_args

import httpx
import pyarrow as pa
import pytest
from tests.server.pages.site import ANALYST, EVIL, KEY, PASSWORD, STATEMENT, Site, asked

import privet as pv
from privet.ledger import Balance, Charge
from privet.ledger.history.entries import Kind
from privet.privacy.accounting.registry import accountant_for
from privet.privacy.events import Stated
from privet.privacy.guarantees import ApproxDP, PureDP
from privet.server.accounts import Role, WrongPassword
from privet.server.authorization import Rule
from privet.server.pages import answers, budgets, questions, stewards, words
from privet.server.pages.rendering import contents, environment, segment
from privet.server.pages.routes import HANDLERS, PAGES

FORMS = [route for route in PAGES if route.method == "POST"]


class Forbidden(HTMLParser):
    """What a page must not have: inline scripts and styles, handlers, and elements that no template has."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        links = [value or "" for name, value in attrs if name in ("href", "src", "action")]
        wrong = tag in ("img", "style", "iframe", "object") or (tag == "script" and "src" not in names)
        wrong = wrong or any(name == "style" or name.startswith("on") for name in names)
        if wrong or any(not link.startswith(("/", "#")) or link.startswith("//") for link in links):
            self.found.append(self.get_starttag_text() or tag)


def filled(path: str, which: str = "1") -> str:
    return path.format(dataset="people", name="bob", which=which, file="answer.csv", secret="0" * 64)


def form_token(client: httpx.Client, address: str) -> str:
    found = re.search(r'name="csrf" value="([^"]*)"', client.get(address).text)
    assert found is not None
    return found[1]


def test_every_page_has_one_handler_and_a_summary() -> None:
    assert len({route.name for route in PAGES}) == len(PAGES) == len(HANDLERS)
    assert all(route.summary.endswith(".") for route in PAGES)


@pytest.mark.parametrize("route", FORMS, ids=lambda route: route.name)
def test_a_form_from_elsewhere_is_refused(site: Site, route) -> None:  # type: ignore[no-untyped-def]
    """Without the token of its session, or from another site, nothing is done."""
    entries = site.server.ledger.head().number
    name = "sam"
    for headers in (
        {},
        {"X-CSRF-Token": "0" * 64},
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        csrf = "Origin" in headers or "Sec-Fetch-Site" in headers
        client = site.client(name, csrf=csrf) if route.rule is not Rule.ANYONE else site.client()
        sent = client.post(filled(route.path), data={"name": "mallory", "reason": "x", "epsilon": "5"}, headers=headers)
        assert sent.status_code in (403, 404), (route.path, headers, sent.status_code)
        assert "mallory" not in {each.name for each in site.server.accounts.people()}
    assert site.server.ledger.head().number == entries


@pytest.mark.parametrize("route", PAGES, ids=lambda route: f"{route.method} {route.name}")
def test_nobody_and_analysts_are_kept_out(site: Site, route) -> None:  # type: ignore[no-untyped-def]
    if route.rule is Rule.ANYONE:
        return
    path = filled(route.path)
    met = site.client().request(route.method, path)
    assert met.status_code == 303
    assert met.headers["location"].startswith("/sign-in")
    if route.rule in (Rule.STEWARD, Rule.STEWARD_OF, Rule.ADMINISTERS):
        refused = site.client("ann", csrf=True).request(route.method, path)
        assert refused.status_code == 403
        assert "Stewardship" not in refused.text
    if "{dataset}" in route.path:
        hidden = site.client("ann", csrf=True).request(route.method, path.replace("people", segment(EVIL)))
        assert hidden.status_code == 404


def test_answers_of_others_are_not_found(site: Site) -> None:
    address = asked(site, "bob", "SELECT COUNT(*) AS n FROM people WHERE age > 30", price="0.5")
    entry = next(e.number for e in site.server.ledger.recent("people", analyst="bob")[0] if e.kind == "reserved")
    request_id = address.rpartition("/")[2]
    for which in (str(entry), request_id, "0", "999999", "9" * 30, "x", "%00", "１"):
        for end in ("", "/certificate", "/answer.csv", "/certificate.json", "/chart-1.svg"):
            assert site.client("ann").get(f"/datasets/people/answers/{which}{end}").status_code == 404, which
    assert site.client("bob").get(f"/datasets/people/answers/{entry}").status_code == 200
    assert site.client("sam").get(f"/datasets/people/answers/{entry}").status_code == 200
    mine = site.client("ann").get("/datasets/people/history").text
    assert "age &gt; 30" not in mine
    assert "age &gt; 30" in site.client("sam").get("/datasets/people/history").text


def test_files_of_an_answer(site: Site) -> None:
    here, client = asked(site, "ann", STATEMENT, price="2"), site.client("ann")
    for name in ("answer.csv", "answer.parquet", "answer.json", "certificate.json", "chart-1.svg", "chart-2.svg"):
        got = client.get(f"{here}/{name}")
        assert got.status_code == 200, name
        assert got.headers["content-disposition"].startswith("attachment; filename=")
    assert client.get(f"{here}/chart-3.svg").status_code == 404
    assert client.get(f"{here}/answer.exe").status_code == 404
    svg = ET.fromstring(client.get(f"{here}/chart-1.svg").content)
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    assert json.loads(client.get(f"{here}/certificate.json").content)["document"]["dataset"] == "people"


def test_the_same_click_is_one_question(site: Site) -> None:
    client = site.client("ann", csrf=True)
    page = client.get("/datasets/people").text
    found = re.search(r'name="request_id" value="([^"]+)"', page)
    assert found is not None
    sent = {
        "act": "ask",
        "sql": "SELECT COUNT(*) AS n FROM people WHERE age < 40",
        "price": "0.25",
        "request_id": found[1],
    }
    before = site.server.datasets["people"].ledger.balance("people").spent.epsilon
    places = {client.post("/datasets/people/ask", data=sent).headers["location"] for _ in range(3)}
    assert len(places) == 1
    assert float(site.server.datasets["people"].ledger.balance("people").spent.epsilon - before) == 0.25
    other = client.post("/datasets/people/ask", data={**sent, "sql": "SELECT COUNT(*) AS n FROM people"})
    assert other.status_code == 409
    assert found[1] not in re.findall(r'name="request_id" value="([^"]+)"', other.text)


def test_explaining_costs_nothing_and_a_question_that_costs_too_much_is_refused(site: Site) -> None:
    client = site.client("ann", csrf=True)
    before = site.server.ledger.head().number
    asked_for = {"sql": "SELECT COUNT(*) AS n FROM people WHERE age = 33", "price": "5000"}
    shown = client.post("/datasets/people/preview", data=asked_for).json()
    assert "not enough is left" in shown["explained"]
    assert shown["problem"] == ""
    refused = client.post("/datasets/people/ask", data={**asked_for, "act": "ask"})
    assert refused.status_code == 402
    for wrong in ("", "0", "-1", "nan", "1e999999999", "１", "x", EVIL, "1/0"):
        answer = client.post("/datasets/people/preview", data={**asked_for, "price": wrong})
        assert answer.status_code == 200
        assert EVIL not in answer.text
    for wrong in ("x", "0", "-1", "9" * 30):
        assert client.post("/datasets/people/preview", data={**asked_for, "assuming": wrong}).json()["problem"]
        sent = client.post("/datasets/people/ask", data={**asked_for, "act": "ask", "assuming": wrong})
        assert sent.status_code == 422
    own = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.75) COUNT(*) AS n FROM people WHERE age = 34"
    assert (
        "epsilon 0.75" in client.post("/datasets/people/preview", data={"sql": own, "price": "0.1"}).json()["explained"]
    )
    wrong_place = client.post("/datasets/people/preview", data={"sql": "SELECT AVG(incom) AS x FROM people"}).json()
    assert wrong_place["at"] == [11, 16]
    assert site.server.ledger.head().number == before


def test_a_question_that_runs_and_one_that_fails(site: Site) -> None:
    """While it runs the page waits; a failure always has the same words, and closes the dataset at last."""
    ledger, client, steward = site.server.datasets[EVIL].ledger, site.client(ANALYST), site.client("sam", csrf=True)
    here = f"/datasets/{segment(EVIL)}"

    def reserved() -> Charge:
        text = f"SELECT COUNT(*) FROM t /* {EVIL} */"
        events = [Stated(epsilon="0.01", delta=0)]
        return ledger.reserve(dataset=EVIL, analyst=ANALYST, request_id=None, events=events, statement=text)

    charge = reserved()
    waiting = client.get(f"{here}/answers/{charge.number}")
    assert waiting.status_code == 202
    assert 'http-equiv="refresh"' in waiting.text
    assert client.get(f"{here}/answers/{charge.request_id}").status_code == 202
    assert client.get(f"{here}/answers/{charge.number}/answer.csv").status_code == 404
    ledger.settle(charge, "failed")
    told = set()
    for each in (charge, reserved(), reserved()):
        if each is not charge:
            ledger.settle(each, "failed")
        shown = client.get(f"{here}/answers/{each.number}")
        assert shown.status_code == 502
        told |= {*re.findall(r'role="alert">(.*?)</div>', shown.text, re.DOTALL)}
    assert len(told) == 1
    assert "This dataset is closed." in client.get(here).text
    assert client.get(f"{here}/history").text.count('<span class="tag bad">failed</span>') == 3
    refused = site.client(ANALYST, csrf=True).post(f"{here}/ask", data={"act": "ask", "mode": "form"})
    assert refused.status_code == 503
    listed = steward.get("/steward/failures").text
    assert "3 failures since it was last opened." in listed
    assert "closed to some" in listed
    assert EVIL not in listed
    opened = steward.post(f"/steward/failures/{segment(EVIL)}/reopen", data={"reason": EVIL})
    assert "is open, and failures are counted anew" in opened.text
    assert "This dataset is closed." not in client.get(here).text


def test_a_long_history_has_pages(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for age in range(5):
        asked(site, "bob", f"SELECT COUNT(*) AS n FROM people WHERE age = {50 + age}", price="0.1")
    monkeypatch.setattr(answers, "_RECENT", 2)
    client, address, seen = site.client("bob"), "/datasets/people/history", []
    while address:
        text = client.get(address).text
        seen += [int(age) for age in re.findall(r"age = (5\d)<", text)]
        older = re.search(r'href="([^"]+before=\d+)">Older', text)
        address = older[1] if older else ""
    assert seen == [54, 53, 52, 51, 50]


def test_signing_in(site: Site) -> None:
    client = site.client()
    token = form_token(client, "/sign-in?next=//evil.example/x")
    wrong = client.post("/sign-in", data={"csrf": token, "name": "ann", "password": "wrong wrong wrong"})
    unknown = client.post(
        "/sign-in", data={"csrf": form_token(client, "/sign-in"), "name": "nobody", "password": "wrong wrong wrong"}
    )
    assert wrong.status_code == unknown.status_code == 401
    told = [re.findall(r'role="alert">(.*?)</div>', each.text, re.DOTALL) for each in (wrong, unknown)]
    assert told[0] == told[1] != []
    stale = client.post("/sign-in", data={"csrf": "0" * 64, "name": "ann", "password": PASSWORD})
    assert stale.status_code == 403
    for target in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/\tx", ""):
        client = site.client()
        token = form_token(client, "/sign-in")
        sent = client.post("/sign-in", data={"csrf": token, "name": "ann", "password": PASSWORD, "next": target})
        assert sent.status_code == 303
        assert sent.headers["location"] == "/datasets", target
        cookie = sent.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=lax" in cookie


def test_a_one_time_link_works_in_a_browser_that_is_signed_in(site: Site) -> None:
    client, link = site.client("ann"), f"/welcome/{site.server.accounts.invite('bob')}"
    token = form_token(client, link)
    again = {"password": PASSWORD, "again": PASSWORD}
    assert client.post(link, data={"csrf": "0" * 64, **again}).status_code == 403
    assert client.post(link, data={"csrf": token, **again}).status_code == 303
    assert client.get("/api/v1/me").json()["name"] == "bob"


def test_changing_the_password(site: Site) -> None:
    accounts, new = site.server.accounts, "another horse battery"
    accounts.add("pat", Role.ANALYST, ["people"])
    accounts.set_password("pat", PASSWORD)
    mine, other, link = site.client("pat", csrf=True), site.client("pat"), accounts.invite("pat")

    def change(client: httpx.Client, **given: str) -> httpx.Response:
        return client.post("/account/password", data={"old": PASSWORD, "password": new, "again": new, **given})

    assert change(other).status_code == 403, "a form of another site"
    assert change(site.client()).headers["location"].startswith("/sign-in"), "nobody"
    for wrong, why in (
        ({"again": f"{new} "}, "The two new passwords differ"),
        ({"old": f"{PASSWORD} "}, "The present password is wrong"),
        ({"old": ""}, "The present password is wrong"),
        ({"password": "short", "again": "short"}, "12"),
    ):
        refused = change(mine, **wrong)
        assert (refused.status_code, why in refused.text, PASSWORD in refused.text) == (422, True, False), why
    assert other.get("/datasets").status_code == 200
    assert accounts.sign_in("pat", PASSWORD, address="192.0.2.1"), "nothing has changed"
    assert "The password is changed" in change(mine).text
    assert mine.get("/datasets").status_code == 200, "this session goes on"
    assert other.get("/datasets").status_code == 303, "others have ended"
    assert accounts.invited(link) is None
    assert accounts.sign_in("pat", new, address="192.0.2.1")
    with pytest.raises(WrongPassword):
        accounts.sign_in("pat", PASSWORD, address="192.0.2.1")
    guesses = [change(mine) for _ in range(20)]  # the old password, again and again
    assert {each.status_code for each in guesses} == {422, 429}
    assert guesses[-1].status_code == 429
    assert int(guesses[-1].headers["retry-after"]) > 0


def test_tokens_of_others_can_not_be_revoked(site: Site) -> None:
    _, token = site.server.accounts.create_token("bob", "bobs", days=1)
    assert site.client("ann", csrf=True).post("/account/tokens/revoke", data={"id": token.id}).status_code == 404
    found = site.server.accounts.token(token.id)
    assert found is not None
    assert found.revoked is None
    made = site.client("ann", csrf=True).post("/account/tokens", data={"label": EVIL, "days": "9", "max_epsilon": "1"})
    text = re.search(r"privet_[0-9a-f]{16}_[0-9a-f]{64}", made.text)
    assert text is not None
    assert text[0] not in site.client("ann").get("/account").text
    identity = site.server.accounts.bearer(text[0])
    assert identity is not None
    assert identity.role is Role.ANALYST


def test_acts_of_a_steward_are_entries_with_the_name(site: Site) -> None:
    client = site.client("sam", csrf=True)
    assert (
        client.post("/steward/people", data={"name": "newton", "role": "analyst", "dataset": "people"}).status_code
        == 200
    )
    capped = client.post("/steward/budgets/people", data={"what": "analyst:newton", "epsilon": "2", "reason": EVIL})
    assert capped.status_code == 200
    bad = client.post("/steward/budgets/people", data={"what": "dataset", "epsilon": "x", "reason": "y"})
    assert bad.status_code == 422
    assert client.post("/steward/people/newton/disable").status_code == 200
    assert client.post("/steward/people/nobody/disable").status_code == 404
    kinds = [(each.kind, each.by) for each in site.server.ledger.recent("people", limit=3)[0]]
    assert kinds == [("administered", "sam"), ("capped", "sam"), ("administered", "sam")]
    verified = client.post("/steward/ledger/verify", data={"receipt": str(site.server.ledger.head())}).text
    assert "The ledger verifies." in verified
    assert "It contains the entry of your receipt" in verified
    false = client.post("/steward/ledger/verify", data={"receipt": "1:" + "0" * 64}).text
    assert "The ledger does not verify." in false
    assert client.post("/steward/failures/people/reopen", data={"reason": ""}).status_code == 422
    checked = client.post("/steward/check").text
    assert "Not private" in checked
    assert "60 rows" in checked


def test_the_policy_shows_the_lines_of_its_problems_and_no_password(site: Site) -> None:
    path = site.server.policy.path
    text = path.read_text(encoding="utf-8")
    broken = text.replace("age = { integer = [0, 110] }", "age = { integer = [0, 'x'] }").replace(
        'ledger = "site.ledger"', 'ledger = "postgresql://me:hush@host/base"'
    )
    try:
        path.write_text(broken, encoding="utf-8")
        shown = site.client("sam").get("/steward/policy").text
    finally:
        path.write_text(text, encoding="utf-8")
    line = 1 + broken[: broken.index("'x'")].count("\n")
    assert f'<li id="line-{line}" class="wrong">' in shown
    assert "hush" not in shown
    assert "No problem was found." in site.client("sam").get("/steward/policy").text


FIELDS = (
    "act", "again", "assuming", "by", "by2", "code", "column", "confidence", "dataset", "days", "delta", "epsilon",
    "every", "fresh", "how", "id", "label", "max_epsilon", "measure", "mode", "name", "next", "old", "password",
    "price", "reason", "receipt", "request_id", "rho", "role", "sql", "table", "value", "what", "where",
)  # fmt: skip
VALUES = (
    "", "0", "-1", "1", "1/3", "1e400", "nan", "x" * 5000, "\x00", "\ud7ff\u202e", EVIL, "people", "form", "ask",
    "query", "analyst:bob", "analyst:", "region", "income", ">=", "SELECT 1", "1:" + "0" * 64, "9" * 20, "steward",
    "approve",
)  # fmt: skip


def test_no_form_breaks_the_server(site: Site, effort: int) -> None:
    """Fields with values of other fields, repeated, missing, too long: refused or done, never a bug."""
    chosen, seen = Random(17), Counter[tuple[str, int]]()
    client = site.client("sam", csrf=True)
    for route in FORMS:
        if route.name in ("sign_out", "check_data"):
            continue
        for _ in range(12 * effort):
            data = {name: chosen.choices(VALUES, k=chosen.choice([1, 1, 2])) for name in chosen.sample(FIELDS, 14)}
            if route.name == "ask":
                data |= {"act": ["ask"], "mode": [chosen.choice(["sql", "form"])]}
            address = filled(route.path.replace("{dataset}", chosen.choice(["people", segment(EVIL)])))
            sent = client.post(address, data=data)
            seen[route.name, sent.status_code] += 1
            assert sent.status_code in (200, 202, 303, 401, 402, 403, 404, 409, 422, 429, 502, 503), (route.path, data)
    for address in ("/datasets/people", "/device", "/steward/ledger", "/datasets/people/history", "/sign-in"):
        for _ in range(12 * effort):
            query = {name: chosen.choices(VALUES) for name in [*chosen.sample(FIELDS, 5), "before", "part"]}
            got = client.get(address, params={name: value[:1000] for name, value in query.items()})
            assert got.status_code in (200, 303, 404, 414, 422, 429), (address, query)
    assert {status for name, status in seen if name == "ask"} >= {303, 422}
    assert len(seen) > 20
    assert '"event": "bug"' not in site.log.getvalue()


@pytest.mark.parametrize("name", ["sam", ANALYST, None])
def test_no_page_has_inline_script_or_style_or_an_unescaped_text(site: Site, name: str | None) -> None:
    here = asked(site, name or "ann")
    client, seen = site.client(name), 0
    paths = [filled(route.path, here.rpartition("/")[2]) for route in PAGES if route.method == "GET"]
    paths += [
        f"/datasets/{segment(EVIL)}",
        f"/datasets/people?sql={segment(KEY)}",
        f"/device?code={segment(EVIL)}",
        "/x",
        f"/{segment(EVIL)}",
    ]
    for path in paths:
        got = client.get(path)
        if not got.headers.get("content-type", "").startswith("text/html"):
            continue
        seen += 1
        assert Forbidden(got.text).found == [], path
        assert EVIL not in got.text
        assert re.search(r"\b1337\b", got.text) is None
        assert "script-src 'self'" in got.headers["content-security-policy"]
        assert "unsafe" not in got.headers["content-security-policy"]
        assert got.headers["cache-control"] == "no-store"
    assert seen > (3 if name is None else 10)


def test_the_search_for_unescaped_texts_finds_them() -> None:
    """A twin of the templates that does not escape."""
    careless = environment().overlay(autoescape=False)
    page = careless.from_string("<p onclick={{ x }}>{{ x }}</p>").render(x=EVIL)
    assert EVIL in page
    assert len(Forbidden(page).found) == 2
    assert len(Forbidden('<a href="javascript:x()">a</a><a href="//evil">b</a><script>x</script>').found) == 3


def test_static_files(site: Site) -> None:
    client = site.client()
    css = client.get("/static/privet.css")
    assert css.headers["content-type"].startswith("text/css")
    assert "immutable" in css.headers["cache-control"]
    for name in ("../routes.py", "privet.css.bak", "x.css", "..%2froutes.py", "%2e%2e", ".css", "privet"):
        assert client.get(f"/static/{name}").status_code in (303, 404), name
        assert contents(name) is None


def test_a_file_of_an_answer_states_no_balance_of_another_day(site: Site) -> None:
    where = asked(site, "ann", "SELECT COUNT(*) AS n FROM people WHERE age > 33", price="0.1")
    client = site.client("ann")
    first = client.get(f"{where}/answer.csv").text
    asked(site, "ann", "SELECT COUNT(*) AS n FROM people WHERE age > 34", price="0.1")
    assert client.get(f"{where}/answer.csv").text == first
    assert "left" not in first.partition("Limits")[0]
    assert client.get(f"{where}/answer.json").json()["left"] is None


def test_the_ledger_and_the_budgets_are_in_plain_words(site: Site) -> None:
    asked(site, "ann", "SELECT COUNT(*) AS n FROM people WHERE age > 35", price="0.1")
    steward = site.client("sam")
    assert '<span class="tag " title="reserved">paid</span>' in steward.get("/steward/ledger").text
    assert {*stewards._WORDS} == {*get_args(Kind)}, "every kind has a word"
    page = steward.get("/steward/budgets").text
    assert "like the last one that was asked" in page


def test_the_page_of_an_answer_names_its_conditions(site: Site) -> None:
    link = asked(site, "ann", "SELECT COUNT(*) AS n FROM people WHERE age > 36", price="0.1")
    assert '<p class="lead">Only where age &gt; 36.</p>' in site.client("ann").get(link).text


def test_a_budget_that_nobody_used_is_all_there() -> None:
    """1/3 has no decimal text: all of it was "0.333333 left of 0.333334"."""
    for budget in (PureDP("1/3"), ApproxDP("1/3", 1e-6)):
        accountant = accountant_for(budget)
        shown = budgets.shown(Balance(accountant, budget, accountant.zero), None)
        assert shown.left.split(" (")[0].split(",")[0] == shown.granted.split(",")[0] == "epsilon 0.333333"


def test_columns_are_shown_as_sql_writes_them_with_what_happens_outside(tmp_path: Path) -> None:
    rows = pa.table({"who": [1], "Visit Date": [date(2024, 1, 1)], "union": [1], "town": ["x"]})
    columns = {
        "Visit Date": pv.date("2024-01-01", "2024-12-31"),
        "union": pv.integer(0, 1),
        "town": pv.keys("a", "b"),
    }
    visits = pv.table("visits", rows, protect=pv.person("who", max_rows=2), columns=columns)
    (shown,) = words.tables({"visits": visits}, {})
    page = (
        environment()
        .from_string("{% from 'parts/pieces.html' import columns %}{{ columns(table) }}{{ columns(table, true) }}")
        .render(table=shown)
    )
    assert page.count("&#34;Visit Date&#34;</") == page.count("&#34;union&#34;</") == 3
    outside = "Values outside are clamped, or in no group."
    assert [each.words.partition(". ")[2] for each in shown.columns] == [
        outside, outside, "Any other value counts as missing.",
    ]  # fmt: skip
    with pv.Session([visits], budget=PureDP(1), ledger=tmp_path / "visits.ledger") as session:
        example = questions._example(session)
    assert example == "SELECT town, COUNT(*) AS n FROM visits GROUP BY town", "not each of many days"
