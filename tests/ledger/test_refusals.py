"""What a refused ledger says: what is wrong, and nothing that would lead to a second budget."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.ledger.common import PEOPLE, ask, cost, pay

from privet.errors import LedgerError
from privet.ledger import open_ledger

_NOBODY = 65534


@contextmanager
def without_rights() -> Iterator[None]:
    """As a user who is not root: root may write everything."""
    if os.geteuid():
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that another user can reach."""
    made = Path(tempfile.mkdtemp(prefix="ledgers-"))
    made.chmod(0o777)
    yield made
    made.chmod(0o777)
    shutil.rmtree(made)


@pytest.fixture
def path(folder: Path) -> Path:
    with without_rights(), closing(open_ledger(folder / "people.ledger")) as ledger:
        ledger.create(PEOPLE)
        ask(ledger, "first", "42", "0.1")
    return folder / "people.ledger"


def journal(path: Path) -> Path:
    return path.with_name(f"{path.name}-journal")


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(LedgerError) as refused:
        call()
    return str(refused.value)


def test_a_file_that_is_emptied_while_it_is_open(path: Path) -> None:
    with closing(open_ledger(path)) as ledger:
        os.truncate(path, 0)
        told = refusal(lambda: pay(ledger, "second", cost("0.1")))
    assert "it was emptied. Restore a copy that verifies" in told


def test_a_mark_that_was_changed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 1")
    assert "its application id was changed" in refusal(lambda: open_ledger(path))


@pytest.mark.parametrize(
    ("replace", "why"),
    [
        (lambda file: file.mkdir(), "it is not a regular file"),
        (lambda file: os.mkfifo(file), "it is not a regular file"),
        (lambda file: file.symlink_to("elsewhere"), "it is a symbolic link"),
        (lambda file: (file.touch(), file.with_name("second").hardlink_to(file)), "it has several hard links"),
    ],
    ids=["a folder", "a pipe", "a link", "two names"],
)
def test_a_journal_that_is_something_else(path: Path, replace: Callable[[Path], object], why: str) -> None:
    journal(path).unlink()
    replace(journal(path))
    told = refusal(lambda: open_ledger(path))
    assert f"{str(journal(path))!r} has the name of the ledger's journal, but is not a journal ({why})" in told


def test_a_folder_that_may_not_be_written(path: Path, folder: Path) -> None:
    journal(path).unlink()
    folder.chmod(0o555)
    with without_rights():
        told = refusal(lambda: open_ledger(path))
        assert told.endswith(f"permission to create the ledger's journal in the folder {str(folder)!r}. Ask its owner")
        told = refusal(lambda: open_ledger(folder / "new.ledger"))
        assert f"you do not have permission to create the ledger {str(folder / 'new.ledger')!r} in the folder" in told
        with closing(open_ledger(path, read_only=True)) as ledger:
            assert ledger.head().number == 3


def test_a_journal_that_may_not_be_written(path: Path) -> None:
    journal(path).chmod(0o444)
    with without_rights():
        told = refusal(lambda: open_ledger(path))
    assert f"you do not have permission to write the ledger's journal {str(journal(path))!r}" in told
