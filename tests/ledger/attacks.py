"""What is done to a ledger between two kills: to the files beside it, to its name, to its schema."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

Undo = Callable[[], object]
UNDO = "DELETE FROM privet_entries WHERE number > 3"


@dataclass
class Attacker:
    """Has a way to the storage, and a memory of what was there."""

    where: str | Path
    draws: random.Random = field(default_factory=random.Random)
    journals: list[bytes] = field(default_factory=list)
    copies: list[bytes] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """What can be done to this kind of ledger."""
        both = ["nothing", "fork in the worker", "trigger"]
        return [*both, *FILES] if isinstance(self.where, Path) else both

    def files(self) -> dict[Path, bytes | None]:
        """What is there now."""
        if not isinstance(self.where, Path):
            return {}
        found = [Path(f"{self.where}{end}") for end in ("", "-journal", "-wal", "-shm")]
        return {path: path.read_bytes() if path.exists() else None for path in found}

    def remember(self) -> None:
        """The file, and journals as kills leave them; those that are spent are made hot again."""
        if isinstance(self.where, Path):
            file, journal = self.where.read_bytes(), Path(f"{self.where}-journal")
            self.copies.append(file)
            if journal.exists():
                self.journals.append(hot(file, journal.read_bytes()))

    def attack(self, name: str) -> Undo:
        """Do it; gives what takes it back."""
        before = self.files()
        if name == "trigger":
            self._run(*self._trigger())
            return lambda: self._run(self._no_trigger())
        if name in FILES:
            assert isinstance(self.where, Path)
            FILES[name](self, self.where)
            return lambda: restore(before, self.where)
        return lambda: None

    def _run(self, *statements: str) -> None:
        if isinstance(self.where, Path):
            with closing(sqlite3.connect(self.where, isolation_level=None)) as file:
                for statement in statements:
                    file.execute(statement)
        else:
            with psycopg.connect(self.where, autocommit=True) as server:
                for statement in statements:
                    server.execute(statement.encode())

    def _trigger(self) -> list[str]:
        table = self.draws.choice(["privet_entries", "privet_leases", "privet_answers"])
        if isinstance(self.where, Path):
            return [f"CREATE TRIGGER undo AFTER INSERT ON {table} BEGIN {UNDO}; END"]
        return [
            f"CREATE OR REPLACE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {UNDO}; RETURN NULL; END'",
            f"CREATE TRIGGER undo AFTER INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION undo()",
        ]

    def _no_trigger(self) -> str:
        return "DROP TRIGGER undo" if isinstance(self.where, Path) else "DROP FUNCTION undo CASCADE"


MAGIC = bytes.fromhex("d9d505f920a163d7")


def checksum(page: bytes, nonce: int = 0) -> int:
    """Of a page in a journal."""
    return (nonce + sum(page[len(page) - 200 : 0 : -200])) % 2**32


def head(count: int, nonce: int, pages: int, size: int) -> bytes:
    """Of a journal."""
    return (MAGIC + b"".join(number.to_bytes(4) for number in (count, nonce, pages, 512, size))).ljust(512, b"\0")


def hot(before: bytes, spent: bytes) -> bytes:
    """A journal as it is in the middle of a commit, from how it is kept after that: only its head was overwritten."""
    size = int.from_bytes(before[16:18])
    record, body = 4 + size + 4, spent[512:]
    if spent.startswith(MAGIC) or len(body) < record:
        return spent
    records = [body[n : n + record] for n in range(0, len(body) - record + 1, record)]
    checked = [(int.from_bytes(each[-4:]) - checksum(each[4:-4])) % 2**32 for each in records]
    count = next((n for n, each in enumerate(checked) if each != checked[0]), len(checked))
    return head(count, checked[0], len(before) // size, size) + body[: count * record]


def forged(older: bytes) -> bytes:
    """A journal that makes any file an older one."""
    size = int.from_bytes(older[16:18])
    pages = [older[n : n + size] for n in range(0, len(older), size)]
    records = [n.to_bytes(4) + page + checksum(page, 7).to_bytes(4) for n, page in enumerate(pages, 1)]
    return head(len(pages), 7, len(pages), size) + b"".join(records)


def restore(before: dict[Path, bytes | None], where: str | Path) -> None:
    """As a steward does who kept a copy."""
    for link in Path(where).parent.glob("link *"):
        link.unlink()
    for path, content in before.items():
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
            path.chmod(0o600)


def _remove_journal(_: Attacker, path: Path) -> None:
    Path(f"{path}-journal").unlink(missing_ok=True)


def _older_journal(attacker: Attacker, path: Path) -> None:
    if attacker.journals:
        Path(f"{path}-journal").write_bytes(attacker.draws.choice(attacker.journals[-3:]))


def _forged_journal(attacker: Attacker, path: Path) -> None:
    Path(f"{path}-journal").write_bytes(forged(attacker.draws.choice(attacker.copies[-3:])))


def _garbage_journal(attacker: Attacker, path: Path) -> None:
    magic = bytes.fromhex("d9d505f920a163d7") if attacker.draws.random() < 0.5 else b""
    Path(f"{path}-journal").write_bytes(magic + attacker.draws.randbytes(attacker.draws.choice([0, 20, 5000, 40_000])))


def _garbage_log(attacker: Attacker, path: Path) -> None:
    Path(f"{path}-wal").write_bytes(attacker.draws.randbytes(attacker.draws.choice([0, 32, 9000])))


def _hard_link(attacker: Attacker, path: Path) -> None:
    path.with_name(f"link {path.name}").hardlink_to(path)


FILES: dict[str, Callable[[Attacker, Path], None]] = {
    "no journal": _remove_journal,
    "older journal": _older_journal,
    "forged journal": _forged_journal,
    "garbage for a journal": _garbage_journal,
    "garbage for a log": _garbage_log,
    "hard link": _hard_link,
}
