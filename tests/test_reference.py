"""docs/reference.md says what the code says."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from typer.main import get_command

import privet
from privet.cli import app

DOCS = Path(__file__).parents[1] / "docs"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", DOCS / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_what_the_code_says() -> None:
    made = generator().reference()
    written = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert written == made, "run: .venv/bin/python docs/make_reference.py"


def test_the_reference_names_everything_public() -> None:
    written = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert [name for name in privet.__all__ if f"pv.{name}`" not in written and f"privet.{name}`" not in written] == []


def test_the_reference_names_every_command() -> None:
    written = (DOCS / "reference.md").read_text(encoding="utf-8")

    def named(command: Any, path: str) -> Iterator[str]:
        yield from (
            name for each, sub in getattr(command, "commands", {}).items() for name in named(sub, f"{path} {each}")
        )
        if not hasattr(command, "commands"):
            yield path

    every = list(named(get_command(app), "privet"))
    assert "privet ledger verify" in every
    assert [path for path in every if f"| `{path}` |" not in written] == []


def test_the_tests_that_the_docs_name_exist() -> None:
    root = DOCS.parent
    pages = [*DOCS.glob("*.md"), *root.glob("*.md")]
    named = {
        path for page in pages for path in re.findall(r"`((?:tests|docs|bench|src)/[^`]+)`", page.read_text("utf-8"))
    }
    assert len(named) > 10
    assert [path for path in sorted(named) if not (root / path).exists()] == []
