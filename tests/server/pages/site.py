"""A real server whose names are hostile texts, visitors with browsers, and what a page must never do."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
from playwright.sync_api import Browser, BrowserContext, Page
from tests.server.threads import in_thread

from privet.server.accounts import Role
from privet.server.identity import cookie_name
from privet.server.pages.rendering import segment
from privet.server.state import Server

EVIL = "<img src=x onerror=window.hacked=1>"
"""A text that runs a script wherever it is taken for HTML."""
TABLE, COLUMN = f"t {EVIL}", f'c" onfocus=window.hacked=1 autofocus x="{EVIL}'
KEY = "</textarea></script><script>window.hacked=1</script>{{7*191}}"
ANALYST = f"eve {EVIL}"
STATEMENT = f"SELECT region, COUNT(*) AS n, AVG(income) AS pay FROM people GROUP BY region /* {KEY} {EVIL} */"
PASSWORD = "correct horse battery"

POLICY = """
ledger = "site.ledger"

[server]
pace = 0

[datasets.people]
budget = {{ epsilon = 1000 }}
adjacency = "add/remove"

[datasets.people.tables.people]
source = "people.parquet"
protect = {{ person = "person_id", max_rows = 1 }}

[datasets.people.tables.people.columns]
region = {{ keys = ["north", "south"], other = "elsewhere" }}
age = {{ integer = [0, 110] }}
income = {{ number = [0, 200_000] }}

[datasets.{evil}]
budget = {{ epsilon = 10 }}
adjacency = "add/remove"

[datasets.{evil}.tables.{table}]
source = "evil.parquet"
protect = "each row"

[datasets.{evil}.tables.{table}.columns]
{column} = {{ keys = [{key}, "b"] }}
"""


def chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


def _toml(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclass
class Site:
    """A server that runs."""

    url: str
    server: Server
    log: io.StringIO
    open: list[httpx.Client] = field(default_factory=list)

    def cookie(self, name: str) -> str:
        return self.server.accounts.begin_session(name)[0]

    def client(self, name: str | None = None, *, csrf: bool = False) -> httpx.Client:
        """A client with a session of the page, perhaps with its CSRF token; without a name, nobody's."""
        headers = {"Origin": self.server.settings.origin}
        cookies = {}
        if name is not None:
            value, identity = self.server.accounts.begin_session(name)
            cookies = {cookie_name(self.server.settings): value}
            headers |= {"X-CSRF-Token": identity.csrf} if csrf else {}
        made = httpx.Client(base_url=self.url, headers=headers, cookies=cookies, timeout=30, trust_env=False)
        self.open.append(made)
        return made


@contextmanager
def site_over(folder: Path) -> Iterator[Site]:
    rows = {
        "person_id": list(range(60)),
        "region": ["north", "south", "east"] * 20,
        "age": [20 + i for i in range(60)],
        "income": [1000.0 * i for i in range(60)],
    }
    pq.write_table(pa.table(rows), folder / "people.parquet")
    pq.write_table(pa.table({COLUMN: [KEY, "b", None] * 5}), folder / "evil.parquet")
    names = {"evil": _toml(EVIL), "table": _toml(TABLE), "column": _toml(COLUMN), "key": _toml(KEY)}
    policy = folder / "privet.toml"
    policy.write_text(POLICY.format(**names), encoding="utf-8")
    with in_thread(policy) as up:
        up.accounts.add("sam", Role.STEWARD)
        for name, datasets in {"ann": ["people"], "bob": ["people"], ANALYST: ["people", EVIL]}.items():
            up.accounts.add(name, Role.ANALYST, datasets)
        for name in ("sam", "ann", "bob", ANALYST):
            up.accounts.set_password(name, PASSWORD)
        site = Site(up.server.settings.origin, up.server, up.log)
        try:
            yield site
        finally:
            for client in site.open:
                client.close()


def asked(site: Site, name: str, sql: str = STATEMENT, *, price: str = "1", dataset: str = "people") -> str:
    """Ask through the page, without a browser; returns the address of the answer."""
    client = site.client(name, csrf=True)
    here = f"/datasets/{segment(dataset)}"
    sent = client.post(f"{here}/ask", data={"act": "ask", "mode": "sql", "sql": sql, "price": price})
    assert sent.status_code == 303, sent.text
    return sent.headers["location"]


class Visitor:
    """A browser's window that is signed in, and everything that it complained about."""

    def __init__(
        self, browser: Browser, site: Site, name: str | None, *, script: bool = True, dark: bool = False
    ) -> None:
        scheme = "dark" if dark else "light"
        self.context: BrowserContext = browser.new_context(
            base_url=site.url,
            java_script_enabled=script,
            color_scheme=scheme,  # type: ignore[arg-type]
            viewport={"width": 1280, "height": 900},
            reduced_motion="reduce",
        )
        self.context.set_default_timeout(15_000)
        if name is not None:
            cookie = {"name": cookie_name(site.server.settings), "value": site.cookie(name), "url": site.url}
            self.context.add_cookies([cookie])  # type: ignore[list-item]
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda said: self._heard(said.type, said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._asked(site, request.url))
        self.page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))

    def _heard(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def _asked(self, site: Site, url: str) -> None:
        if not url.startswith((f"{site.url}/", "data:")):
            self.complaints.append(f"asked another server: {url}")

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()
