"""L8: an older copy of a ledger is put back beside the journal of the newer one, and the next process sees it.

Every state of a ledger is kept, with the journal of every transaction, both as a commit leaves it (spent) and as a kill
in the middle of the commit leaves it (hot). No state that a crash leaves may be refused.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from tests.ledger.attacks import hot
from tests.ledger.common import cost
from tests.ledger.workers import opened

from privet.errors import LedgerError
from privet.ledger import open_ledger
from privet.ledger.storage.sqlite import recovery

PAGE = 4096


@dataclass
class Past:
    """A ledger after each of its transactions, and the journal that each left."""

    folder: Path
    files: list[bytes] = field(default_factory=list)
    journals: list[bytes] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def keep(self, path: Path) -> None:
        side = Path(f"{path}-journal")
        self.journals.append(side.read_bytes() if side.exists() else b"")
        self.files.append(path.read_bytes())

    def refused(self, file: bytes, journal: bytes | None, *, read_only: bool = False) -> bool:
        """Whether it is refused because it is older than its journal."""
        path = self.folder / f"{next(self.numbers)}.ledger"
        path.write_bytes(file)
        if journal is not None:
            Path(f"{path}-journal").write_bytes(journal)
        try:
            open_ledger(path, read_only=read_only).close()
        except LedgerError as error:
            text = str(error)
        else:
            return False
        return "is older than its journal: an older copy was put back" in text and path.read_bytes() == file


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    folder = tmp_path_factory.mktemp("past")
    path, made = folder / "people.ledger", Past(folder)
    with closing(opened(path)) as ledger:
        made.keep(path)
        for i in range(8):
            charge = ledger.reserve(dataset="people", analyst="ann", request_id=f"{i}", events=[cost("1/100")])
            made.keep(path)
            ledger.settle(charge, "answered", f"{i}" * (9000 if i % 4 == 3 else 10))
            made.keep(path)
            ledger._renew([charge.number])  # changes nothing
            made.keep(path)
    return made


def test_an_older_copy_beside_the_newer_journal(past: Past) -> None:
    newest = len(past.files) - 1
    for n in range(0, newest - 4, 3):
        for read_only in (False, True):
            assert past.refused(past.files[n], past.journals[-1], read_only=read_only), n
        assert past.refused(past.files[n], hot(past.files[newest - 1], past.journals[-1])), n
        assert not past.refused(past.files[n], None), "whoever removes the journal has been told"


def test_a_twin_that_does_not_look_grants_again(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "check_not_older", lambda *_: None)
    assert not past.refused(past.files[3], past.journals[-1])


def test_what_commits_leave_is_not_refused(past: Past) -> None:
    for file, journal in zip(past.files, past.journals, strict=True):
        assert not past.refused(file, journal)


def test_what_kills_and_power_failures_leave_is_not_refused(past: Past) -> None:
    """Any pages of the file are written, and any sectors of the journal, which is spent or hot."""
    draws = random.Random(1)
    for n in range(1, len(past.files)):
        old, new = past.files[n - 1], past.files[n]
        before, after = past.journals[n - 1], past.journals[n]
        for _ in range(3):
            file = bytearray(old.ljust(len(new), b"\0"))
            for at in range(0, len(new), PAGE):
                if draws.random() < 0.5:
                    file[at : at + PAGE] = new[at : at + PAGE]
            torn = bytearray(before.ljust(len(after), b"\0"))
            for at in range(0, len(after), 512):
                if draws.random() < 0.5:
                    torn[at : at + 512] = after[at : at + 512]
            for content, journal in (
                (bytes(file), hot(old, after)),
                (old, hot(old, after)),
                (new, hot(old, after)),
                (old, bytes(torn)),
                (old, hot(old, after)[: draws.randrange(len(after))]),
            ):
                recovery.check_not_older(content, journal, "the ledger")


def test_what_is_not_the_first_page_of_a_ledger_is_not_believed(past: Past) -> None:
    draws = random.Random(2)
    for text in (b"", b"\0" * 9000, draws.randbytes(40_000), past.files[-1], b"\0" * 512 + past.files[-1]):
        recovery.check_not_older(past.files[0], text, "the ledger")
    first = (1).to_bytes(4) + past.files[-1][:PAGE] + b"\0\0\0\7"
    recovery.check_not_older(past.files[0], bytes(512) + first, "the ledger")  # alone, its checksum says nothing
