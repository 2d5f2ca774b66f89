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
    draws: random.Random
    journals: list[bytes] = field(default_factory=list)

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
        """Journals as kills leave them, hot or not."""
        journal = self.files().get(Path(f"{self.where}-journal"))
        if journal is not None:
            self.journals.append(journal)

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
    "garbage for a journal": _garbage_journal,
    "garbage for a log": _garbage_log,
    "hard link": _hard_link,
}
