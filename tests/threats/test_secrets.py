"""The password of a ledger's address is in no text: no error, no repr, no traceback, nothing that a command prints."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.effort import some

import privet as pv
from privet.errors import PrivetError
from privet.ledger import open_ledger
from privet.policy import load
from privet.policy.catalog import find

SECRET = "s3cretMARK"
NOWHERE = "127.0.0.1:1/base"
ADDRESSES = [
    f"postgresql://me:{SECRET}@{NOWHERE}",
    f"postgresql://me:a@{SECRET}@{NOWHERE}",
    f"postgresql://me:{SECRET}@b@{NOWHERE}",
    f"postgresql://me:a/{SECRET}@{NOWHERE}",
    f"postgresql://me:a:{SECRET}@{NOWHERE}",
    f"postgresql://me:a#{SECRET}@{NOWHERE}",
    f"postgresql://me:a?{SECRET}=1@{NOWHERE}",
    f"postgresql://me:a {SECRET}@{NOWHERE}",
    f"postgresql://me:a%40{SECRET}@{NOWHERE}",
    f"postgresql://me:{SECRET}/base",
    f"postgresql://me:{SECRET}",
    f"postgresql://me:{SECRET}@host:port/base",
    f"postgresql://{NOWHERE}?user=me&password={SECRET}",
    f"postgresql://{NOWHERE}?password=a@{SECRET}",
    f"postgresql://{NOWHERE}?password=a%26{SECRET}&sslmode=disable",
    f"postgresql://{NOWHERE}?sslpassword={SECRET}",
    f"postgresql://{NOWHERE}?PASSWORD={SECRET}",
    f"postgresql://{NOWHERE}?passfile=/{SECRET}",
    f"postgresql://{NOWHERE}?service={SECRET}",
    f"postgresql://{NOWHERE}?options=-c%20my.key%3D{SECRET}",
    f"postgresql://{NOWHERE}?plugin={SECRET}",
    f"postgresql://{NOWHERE}?{SECRET}",
    f"PostgreSQL://me:{SECRET}@{NOWHERE}",
    f" postgresql://me:{SECRET}@{NOWHERE} ",
    f"postgresql+asyncpg://me:{SECRET}@{NOWHERE}",
    f"mysql://me:{SECRET}@{NOWHERE}",
    f"mysql://{NOWHERE}?password={SECRET}",
    f"postgresql:/me:{SECRET}@host/base",
    f"postgresql:me:{SECRET}@host/base",
    f"postgresql:me:{SECRET}",
    f"me:{SECRET}@host/base",
    f"host=127.0.0.1 port=1 password={SECRET}",
    f"host=127.0.0.1 PASSWORD = '{SECRET} x'",
    f"password={SECRET}",
    f"dbname=base user=me password='a\\'{SECRET}' host=127.0.0.1",
    f"//me:{SECRET}@host/base",
    f" //me:{SECRET}@host/base",
    f"duckdb:md:?motherduck_token={SECRET}",
    f"md:base?motherduck_token={SECRET}",
    f"people.ledger?key={SECRET}",
    f"postgresql://{NOWHERE}?user=me:{SECRET}",
    f"postgresql://{NOWHERE}?user=me%3A{SECRET}",
    f"postgresql://me%3A{SECRET}@{NOWHERE}",
    f"postgresql://{NOWHERE}?dbname=host%3Dx%20password%3D{SECRET}",
]
POLICY = """
ledger = {ledger}
[datasets.people]
budget = {{ epsilon = 3 }}
adjacency = "add/remove"
[datasets.people.tables.people]
source = {source}
protect = {{ person = "id", max_rows = 1 }}
columns = {{ age = {{ integer = [0, 110] }} }}
"""
COUNT = "SELECT COUNT(*) AS n FROM people"

pytestmark = pytest.mark.parametrize("address", ADDRESSES)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"id": [1, 2, 3], "age": [10, 20, 30]}), tmp_path / "people.parquet")
    monkeypatch.chdir(tmp_path)


def written(address: str, source: str = "people.parquet") -> Path:
    path = Path("privet.toml")
    path.write_text(POLICY.format(ledger=literal(address), source=literal(source)), encoding="utf-8")
    return path


def literal(text: str) -> str:
    return '"' + text.replace("\\", "\\\\") + '"'


def hides(text: str) -> None:
    assert SECRET not in text, text
    assert SECRET.lower() not in text.lower(), text
    assert quote(SECRET) not in text, text


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(PrivetError) as caught:
        call()
    hides("".join(traceback.format_exception(caught.value, limit=0)))
    hides(repr(caught.value))
    return str(caught.value)


def test_opening(address: str) -> None:
    said = refused(lambda: open_ledger(address))
    assert NOWHERE in said or "can't be read" not in said, "a server that can't be reached is named"
    refused(lambda: open_ledger(Path(address)))
    refused(lambda: open_ledger(address, create=False))
    assert not [path for path in Path().rglob("*") if SECRET in str(path)], "no file has such a name"


def test_sessions_and_certificates(address: str) -> None:
    columns = {"age": pv.integer(0, 110)}
    people = pv.table("people", "people.parquet", protect=pv.person("id", max_rows=1), columns=columns)
    refused(lambda: pv.Session([people], budget=pv.PureDP(3), ledger=address))
    with pv.Session([people], budget=pv.PureDP(3), ledger=None) as session:
        answer = session.release(COUNT, epsilon=1)
        hides(repr(session) + str(answer.certificate))
    refused(lambda: pv.verify(answer.certificate, ledger=address))
    refused(lambda: pv.verify(address))
    refused(lambda: pv.verify(Path(address)))


def test_policies(address: str) -> None:
    path = written(address)
    try:
        policy = load(path)
    except PrivetError as error:
        hides(str(error) + repr(error))
    else:
        hides(f"{policy!r} {policy.shape!r} {policy.document!r} {policy.datasets!r}")
        refused(lambda: pv.Session.open(policy))
    refused(lambda: pv.Session.open(path))


@pytest.mark.parametrize("wrong", ["[{}]", "{{ url = {} }}", "{}\nledgers = {}", "{}\nxyz = 3"])
def test_policies_with_a_wrong_line(address: str, wrong: str) -> None:
    path = written("LEDGER")
    line = wrong.format(*[literal(address)] * 2)
    path.write_text(path.read_text(encoding="utf-8").replace('"LEDGER"', line), encoding="utf-8")
    refused(lambda: load(path))


def test_policies_with_the_address_elsewhere(address: str) -> None:
    if ":" not in address:
        return  # `name=path` is how files are named, and `year=2024` is the name of a folder
    path = written("people.ledger", address)
    refused(lambda: pv.Session.open(path))
    text = path.read_text(encoding="utf-8")
    for old, new in (
        (literal(address), f"{{ duckdb = {literal(address)}, tabel = 'x' }}"),
        (literal(address), f"[{literal(address)}]"),
        ("[datasets.people.tables.people]", f"ledger = {literal(address)}\n[datasets.people.tables.people]"),
    ):
        path.write_text(text.replace(old, new), encoding="utf-8")
        refused(lambda: pv.Session.open(path))
    refused(lambda: load(address))
    refused(lambda: find(address))


def test_an_engine_does_not_show_it(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from privet.ledger.storage.postgres import database as postgres

    made: list[postgres.Postgres] = []
    monkeypatch.setattr(postgres.Postgres, "prepare", lambda self, create: made.append(self))
    try:
        postgres.connect(address.strip(), create=True)
    except PrivetError as error:
        hides(str(error))
    for each in made:
        hides(f"{each.engine!r} {each.engine.url!r} {each.where} {each.engine.url.render_as_string(False)}")


COMMANDS = (
    ("budget", "{}"),
    ("ledger", "history", "{}"),
    ("query", COUNT, "--epsilon", "1"),
    ("explain", COUNT, "--epsilon", "1"),
    ("budget",),
    ("verify", "{}"),
    ("ledger", "verify", "{}.jsonl"),
    ("budget", "{}.toml"),
    ("budget", "--policy", "{}"),
)


def test_commands(address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses take turns in the commands; with `./dev test --all` each goes through all of them."""
    from privet import cli

    written(address)
    for command in some(COMMANDS, every=4, start=ADDRESSES.index(address)):
        monkeypatch.setattr(sys, "argv", ["privet", *(part.format(address) for part in command)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert stopped.value.code not in (None, 0, 70), command
        out, err = capsys.readouterr()
        hides(out + err)
        assert "Traceback" not in err


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.slow
def test_commands_in_a_process(address: str, environment: dict[str, str]) -> None:
    """What a driver writes to stderr by itself counts too."""
    if address not in ADDRESSES[::12]:
        return
    written(address)
    for command in COMMANDS[:1] + COMMANDS[2:3]:
        done = subprocess.run(
            [sys.executable, "-m", "privet", *(part.format(address) for part in command)],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert done.returncode not in (0, 70), done
        hides(done.stdout + done.stderr)
