"""The table `[server]`: what it may say, and what follows from it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from starlette.requests import Request
from tests.policy.policies import base

from privet.engines.base import in_bytes
from privet.engines.duckdb.engine import DuckDB
from privet.errors import PolicyError, UserError
from privet.policy import load
from privet.policy.server_shape import checked_listen
from privet.server.limits import client_address
from privet.server.settings import Settings
from privet.server.state import question_memory, shares

from .serving import serving


def settings(folder: Path, server: str = "", listen: str | None = None) -> Settings:
    path = folder / "privet.toml"
    path.write_text(base() + f"\n[server]\n{server}\n", encoding="utf-8")
    return Settings.of(load(path), listen=listen)


def test_by_default_only_this_machine_is_served(tmp_path: Path) -> None:
    made = settings(tmp_path)
    assert (made.host, made.port, made.origin, made.secure) == ("127.0.0.1", 8765, "http://localhost:8765", False)
    assert made.hosts == {"localhost:8765", "127.0.0.1:8765", "[::1]:8765"}
    assert (made.proxies, made.workers, made.pace, made.wait) == ((), 1, 0.25, 30)
    assert made.accounts.endswith(".ledger.accounts")
    for listen in ("0.0.0.0:8765", "[::]:8765"):
        everywhere = settings(tmp_path, listen=listen)
        assert everywhere.host == listen.removesuffix(":8765").strip("[]")
        assert (everywhere.origin, everywhere.hosts) == (made.origin, made.hosts), (
            "others need an address in the policy"
        )


def test_an_address_behind_a_proxy(tmp_path: Path) -> None:
    made = settings(tmp_path, 'address = "https://Privet.Example.org"\nproxies = ["10.0.0.0/8"]\naccounts = "who.db"')
    assert (made.origin, made.secure) == ("https://privet.example.org", True)
    assert made.hosts >= {"privet.example.org", "privet.example.org:443", "127.0.0.1:8765"}
    assert made.origins >= {"https://privet.example.org"}
    assert not any("http://" in origin for origin in made.origins)
    assert made.accounts == str(tmp_path / "who.db")
    port = settings(tmp_path, 'address = "https://privet.example.org:8443/"')
    assert "privet.example.org:8443" in port.hosts
    assert "privet.example.org" not in port.hosts


@pytest.mark.parametrize(
    ("line", "write"),
    [
        ('listen = "8765"', 'listen = "127.0.0.1:8765"'),
        ('listen = "localhost:99999"', 'listen = "127.0.0.1:8765"'),
        ('address = "privet.example.org"', 'address = "https://privet.example.org"'),
        ('address = "https://user:secret@example.org"', 'address = "https://privet.example.org"'),
        ('address = "https://example.org/path"', 'address = "https://privet.example.org"'),
        ('address = "https://exa mple.org"', 'address = "https://privet.example.org"'),
        ('proxies = ["everyone"]', 'proxies = ["127.0.0.1"]'),
        ("workers = 0", "workers = 2"),
        ("pace = -1", "pace = 0.25"),
        ("deadline = 0", "deadline = 600"),
        ("workesr = 2", "workers"),
    ],
)
def test_what_is_wrong_names_its_line(tmp_path: Path, line: str, write: str) -> None:
    with pytest.raises(PolicyError) as refused:
        settings(tmp_path, line)
    told = str(refused.value)
    assert "privet.toml, line " in told
    assert write in told
    assert "secret" not in told


def test_whose_address_counts(tmp_path: Path) -> None:
    made = settings(tmp_path, 'proxies = ["10.0.0.1", "10.0.0.2"]')

    def seen(client: str, *forwarded: str) -> str:
        headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
        return client_address(Request({"type": "http", "headers": headers, "client": (client, 1)}), made)

    assert seen("9.9.9.9", "1.1.1.1") == "9.9.9.9", "nobody believes a stranger"
    assert seen("10.0.0.1") == "10.0.0.1"
    assert seen("10.0.0.1", "1.1.1.1") == "1.1.1.1"
    assert seen("10.0.0.1", "6.6.6.6, 1.1.1.1") == "1.1.1.1", "what the client wrote itself does not count"
    assert seen("10.0.0.1", "6.6.6.6, 1.1.1.1, 10.0.0.2") == "1.1.1.1"
    assert seen("10.0.0.1", "6.6.6.6", "1.1.1.1") == "1.1.1.1"
    assert seen("10.0.0.1", "nonsense") == "nonsense"
    assert seen("::ffff:10.0.0.1", "1.1.1.1") == "1.1.1.1", "as a socket for both families writes it"
    ports = ("1.1.1.1:50123", "[2001:db8::1]:50123", "[2001:db8::1]", "2001:db8::1", "6.6.6.6:1, 10.0.0.2:2")
    assert [seen("10.0.0.1", each) for each in ports] == ["1.1.1.1", *["2001:db8::1"] * 3, "6.6.6.6"]


def test_questions_have_equal_shares_of_the_memory(tmp_path: Path) -> None:
    made = settings(tmp_path, "workers = 2\nrunning = 5")
    assert question_memory(made, "2 GB") == "400000000B"
    assert question_memory(made, "100MiB") == f"{64 * 2**20}B"  # no less, whatever the policy says
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 64 * 2**20 <= in_bytes(question_memory(made, None) or "") <= machine // 20


def test_datasets_that_keep_what_they_read_have_parts_of_the_memory(tmp_path: Path) -> None:
    """A DuckDB keeps pages of a DuckDB file as long as it is open: those of several datasets are in memory together."""

    def parts(*sources: str) -> int:
        path = tmp_path / "privet.toml"
        made = [
            f"[datasets.d{i}]\nbudget = {{ epsilon = 1 }}\nadjacency = 'replace'\n"
            f"tables.t{i} = {{ source = {source}, protect = 'each row', columns.x.integer = [0, 9] }}"
            for i, source in enumerate(sources)
        ]
        path.write_text("\n".join(['ledger = "my.ledger"', *made]), encoding="utf-8")
        return shares(load(path))

    file, kept = "'a.parquet'", "{ duckdb = 'a.duckdb', table = 't' }"
    assert [parts(file), parts(file, file), parts(kept), parts(kept, file, file), parts(kept, kept)] == [1, 1, 1, 2, 2]
    made = settings(tmp_path, "running = 1")
    whole, half = (in_bytes(question_memory(made, None, each) or "") for each in (1, 2))
    assert half == max(whole // 2, 64 * 2**20)


def test_a_server_gives_each_question_its_share(tmp_path: Path) -> None:
    with serving(tmp_path, server="running = 5") as served:
        for dataset in served.server.datasets.values():
            assert isinstance(dataset.engine, DuckDB)
            starting = dataset.engine._starting
            assert starting.apart
            assert starting.resources["memory"] == question_memory(served.server.settings, None)


def test_an_address_to_listen_on_is_shown_as_an_option() -> None:
    with pytest.raises(UserError) as refused:
        checked_listen("8765")
    assert refused.value.render("terminal").endswith("Write, for example: --listen 127.0.0.1:8765")
