"""Write docs/reference.md from the code: `.venv/bin/python docs/make_reference.py`. A test compares the two."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from typer import Typer

import privet
from privet.cli import app

PAGE = Path(__file__).parent / "reference.md"

MODULES = (
    "statistics",
    "mechanisms",
    "sensitivity",
    "adjacency",
    "guarantees",
    "distances",
    "distributions",
    "divergences",
    "events",
    "accounting",
    "noise",
    "audit",
    "sources",
    "planner",
    "ledger",
    "release",
    "exact",
    "errors",
)

HEAD = """# Reference

Every public name, with the first sentence of its documentation; `help(name)` has the rest. This page is made from the
code by `docs/make_reference.py`.
"""


def public_names(module: ModuleType) -> list[str]:
    """The names that a module offers: its `__all__`, or what it defines without an underscore."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    defined = (name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__)
    return sorted(name for name in defined if not name.startswith("_"))


def sentence(value: Any) -> str:
    """The first line of a docstring."""
    text = inspect.getdoc(value)
    return text.splitlines()[0].replace("|", "\\|") if text and (callable(value) or inspect.ismodule(value)) else ""


def reference() -> str:
    """The whole page."""
    top = [name for name in privet.__all__ if name not in MODULES]
    lines = [HEAD, "## `import privet as pv`\n", "| name | what it is |", "|---|---|"]
    lines += [f"| `pv.{name}` | {sentence(getattr(privet, name))} |" for name in top]
    for name in MODULES:
        module = getattr(privet, name)
        lines += [f"\n## `privet.{name}`\n", sentence(module) + "\n", "| name | what it is |", "|---|---|"]
        described = ((each, sentence(getattr(module, each))) for each in public_names(module))
        lines += [f"| `{each}` | {what} |" for each, what in described if what]  # types have no docstring of their own
    lines += ["\n## The command line\n", "| command | what it does |", "|---|---|"]
    lines += [f"| `{name}` | {what} |" for name, what in commands(app, "privet")]
    return "\n".join(lines) + "\n"


def commands(of: Typer, before: str) -> Iterator[tuple[str, str]]:
    """Every command with its sentence, those of groups included."""
    for command in of.registered_commands:
        assert command.callback is not None
        yield f"{before} {command.name or command.callback.__name__.replace('_', '-')}", sentence(command.callback)
    for group in of.registered_groups:
        assert group.typer_instance is not None
        yield from commands(group.typer_instance, f"{before} {group.name}")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
