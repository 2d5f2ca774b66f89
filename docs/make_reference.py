"""Write docs/reference.md from the code: `.venv/bin/python docs/make_reference.py`. A test compares the two."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from typer.main import get_command

import privet
from privet.cli import app
from privet.cli.exits import CLOSED, EXITS
from privet.cli.interrupts import INTERRUPTED
from privet.policy.shape import schema
from privet.sql.functions import FUNCTIONS
from privet.tables.expressions.fluent import Expr

PAGE = Path(__file__).parent / "reference.md"

MODULES = (
    "statistics",
    "mechanisms",
    "sensitivity",
    "guarantees",
    "adjacency",
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
    "dbapi",
    "exact",
    "errors",
)

HEAD = """# Reference

This page is made from the code by `docs/make_reference.py`. Each name has the first sentence of its documentation;
`help(name)` shows the rest, with examples.

- [Commands](#commands) and their [exit codes](#exit-codes)
- [SQL functions](#sql-functions)
- [The policy](#the-policy): every key of `privet.toml`
- [Python](#python): `import privet as pv`
- [Modules](#modules)
"""

Rows = Iterable[tuple[str, ...]]


def reference() -> str:
    """The whole page."""
    parts = (HEAD, *commands(), *exit_codes(), *functions(), *policy(), *face(), *modules())
    return "\n".join(parts).rstrip("\n") + "\n"


def table(head: tuple[str, ...], rows: Rows) -> str:
    """A table of Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"


def sentence(value: Any) -> str:
    """The first line of a docstring."""
    text = inspect.getdoc(value)
    return text.splitlines()[0] if text else ""


# --- the command line ---------------------------------------------------------------------------


def every_command(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every command with its full name, the ones of groups included."""
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from every_command(inner, f"{path} {name}")
    else:
        yield path, command


def commands() -> Iterator[str]:
    """A section for each command: what it does, its arguments and its options."""
    yield "## Commands\n"
    yield "`privet --help` lists the commands, `privet COMMAND --help` the options of one.\n"
    for name, command in every_command(get_command(app), "privet"):
        yield f"### `{name}`\n"
        yield inspect.cleandoc(command.help).splitlines()[0] + "\n"
        if command.params:
            yield table(("", "meaning", "default"), (option(each) for each in command.params))


def option(each: Any) -> tuple[str, str, str]:
    """How an argument or an option is written, what it means, and its default."""
    if each.param_type_name == "argument":
        return f"`{(each.metavar or each.name).upper()}`", each.help or "", "" if each.required else "optional"
    names = ", ".join(f"`{name}`" for name in (*each.opts, *each.secondary_opts))
    default = each.default() if callable(each.default) else each.default
    if each.required:
        shown = "required"
    elif default in (None, False, "") or default == [] or default == ():
        shown = ""
    else:
        shown = f"`{' '.join(map(str, default)) if isinstance(default, list | tuple) else default}`"
    return names, each.help or "", shown


def exit_codes() -> Iterator[str]:
    """What each exit code means."""
    unwritten = "`audit`: a check failed. `query`: the answer was paid for, but its file could not be written"
    errors = sorted(EXITS, key=lambda each: each[1])
    codes = [
        ("0", "success"),
        ("1", unwritten),
        *((str(code), f"`{kind.__name__}`: {sentence(kind)}") for kind, code in errors),
        (str(INTERRUPTED), "Ctrl-C"),
        (str(CLOSED), "nobody reads the output, as in `privet query ... | head`"),
    ]
    yield "## Exit codes\n"
    yield "Answers go to stdout, everything else to stderr. With `--json`, an error is one line of JSON.\n"
    yield table(("code", "meaning"), codes)


# --- SQL and the policy -------------------------------------------------------------------------


def functions() -> Iterator[str]:
    """Every function of SQL."""
    yield "## SQL functions\n"
    yield "Clauses, operators and limits are in [SQL](sql.md). Any other function is refused.\n"
    yield table(("function", "use"), ((f"`{each.name}`", each.use) for each in FUNCTIONS.values()))


PLACES = {
    "File": "The file",
    "Dataset": "`[datasets.NAME]`",
    "Table": "`[datasets.NAME.tables.NAME]`",
    "Public": "`[public.NAME]`",
    "Server": "`[server]`",
    "OpenID": "`[server.openid]`",
    "Budget": "A budget or a cap",
    "Person": "`protect`",
    "DuckDB": "`source`: a table in a DuckDB file",
}
"""Where each part of a policy is written; the other parts are kinds of columns."""


def policy() -> Iterator[str]:
    """Every key of a policy, table by table."""
    whole = schema()
    yield "## The policy\n"
    yield f"{whole['description']} `privet schema --of-policy` prints this as a JSON Schema, for editors.\n"
    for name, part in (("File", whole), *whole["$defs"].items()):
        if "properties" not in part:
            continue
        yield f"### {PLACES.get(name, f'Column: {name}')}\n"
        if part is not whole and part.get("description"):
            yield part["description"] + "\n"
        needed = set(part.get("required", ()))
        keys = part["properties"].items()
        yield table(
            ("key", "meaning", ""),
            ((f"`{key}`", about.get("description", ""), "required" if key in needed else "") for key, about in keys),
        )


# --- Python -------------------------------------------------------------------------------------


def public_names(module: ModuleType) -> list[str]:
    """The names that a module offers: its `__all__`, or what it defines without an underscore."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    defined = (name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__)
    return sorted(name for name in defined if not name.startswith("_"))


def methods(kind: type) -> Iterator[tuple[str, str]]:
    """The public methods and properties of a class, with what they say of themselves."""
    for name in dir(kind):
        value = inspect.getattr_static(kind, name)
        value = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)) and sentence(value):
            yield f"`.{name}`", sentence(value)


CLASSES = ("Session", "Dataset", "Table", "Query", "Release", "ReleasePlan", "Certificate", "Laplace")


def face() -> Iterator[str]:
    """The names of `import privet as pv`, and the methods of its classes."""
    yield "## Python\n"
    names = [name for name in privet.__all__ if name not in MODULES]
    yield table(("name", "meaning"), ((f"`pv.{name}`", sentence(getattr(privet, name))) for name in names))
    for name in CLASSES:
        yield f"### `pv.{name}`\n"
        yield table(("method", "meaning"), methods(getattr(privet, name)))
    yield "### Expressions\n"
    yield "`pv.col`, `pv.lit`, `pv.when` and the operators `+ - * / == != < <= > >= & | ~` make expressions.\n"
    yield table(("method", "meaning"), methods(Expr))


def modules() -> Iterator[str]:
    """The names of each module."""
    yield "## Modules\n"
    for name in MODULES:
        module = getattr(privet, name)
        yield f"### `privet.{name}`\n"
        yield sentence(module) + "\n"
        described = ((each, getattr(module, each)) for each in public_names(module))
        rows = ((f"`{each}`", sentence(value)) for each, value in described if callable(value))
        yield table(("name", "meaning"), (row for row in rows if row[1]))  # types have no docstring of their own


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
