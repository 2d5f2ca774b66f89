"""A folder with a dataset and its policy, and a shell in it."""

from functools import cache
from pathlib import Path

import pytest
import typer.testing
from tests.cli.asking import Shell, made
from typer.main import get_command

# Typer's runner builds all commands anew for each one that it runs; here they are built once.
vars(typer.testing)["_get_command"] = cache(get_command)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """300 people and a policy, in the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return made(tmp_path)


@pytest.fixture
def shell(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The command line in that folder."""
    return Shell(capsys, monkeypatch)
