"""Many processes on one store, and processes that are killed in the middle."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from tests.ledger.workers import Nursery
from tests.server.accounts.common import Opener, analyst, creates, holds, shows_tokens

from privet.exact import Exact

LOADED = (
    "tests.server.accounts.common",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "sqlalchemy.dialects.postgresql.psycopg",
    "privet.ledger.storage.postgres.deadlines",
)


def ready(nursery: Nursery) -> None:
    """Load what children import, once."""
    for module in LOADED:
        nursery.load(module)


def test_racing_processes_create_one_store_and_never_pass_a_limit(
    where: str, open_accounts: Opener, nursery: Nursery, tmp_path: Path
) -> None:
    ready(nursery)
    (tmp_path / "a").mkdir()
    assert len(set(nursery.race(creates, tmp_path / "a", where=[where] * 6))) == 1, "one signing key"
    accounts = open_accounts()
    analyst(accounts)
    _, token = accounts.create_token("ana", "raced", max_epsilon=Exact(1))
    granted = nursery.race(holds, tmp_path, where=[where] * 16, token=[token.id] * 16, times=[8] * 16)
    assert sum(granted) == 100
    (stored,) = accounts.tokens()
    assert stored.spent == 1


def shown_but_unknown(nursery: Nursery, open_accounts: Opener, where: str, log: Path, die: str, careless: bool) -> int:
    """How many tokens a process showed before it was killed that the store does not know."""
    log.touch()
    child = nursery.start(shows_tokens, where=where, log=log, die=die, careless=careless)
    if die == "":
        while log.stat().st_size < 300:
            time.sleep(0.005)
        os.kill(child.pid, signal.SIGKILL)
    code = child.join()
    assert code == -signal.SIGKILL, child.output.read_text()[-1500:]
    texts = log.read_text(encoding="utf-8").split()
    assert len(texts) >= 2
    with open_accounts() as accounts:  # opens and is whole
        unknown = [text for text in texts if accounts.bearer(text) is None]
        accounts.create_token("ana", "after the crash")
    return len(unknown)


def test_a_token_is_never_shown_without_being_stored(
    where: str, open_accounts: Opener, nursery: Nursery, tmp_path: Path
) -> None:
    ready(nursery)
    analyst(open_accounts())
    for number, die in enumerate(("before commit", "after commit", "", "")):
        log = tmp_path / f"{number}.log"
        assert shown_but_unknown(nursery, open_accounts, where, log, die, careless=False) == 0
    log = tmp_path / "careless.log"
    assert shown_but_unknown(nursery, open_accounts, where, log, "before commit", careless=True) == 1, "the twin"


def test_a_store_that_was_open_at_a_fork_is_refused_in_the_child(open_accounts: Opener, nursery: Nursery) -> None:
    accounts = open_accounts()
    analyst(accounts)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            accounts.people()
        except Exception as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as said:
        assert "was opened before a fork" in said.read()
    assert len(accounts.people()) == 1


pytestmark = pytest.mark.slow
