"""docs/reference.md says what the code says."""

import importlib.util
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from tests.test_public_api import MODULES
from typer.main import get_command

import privet
from privet.cli import app
from privet.cli.exits import CLOSED, EXITS
from privet.cli.interrupts import INTERRUPTED
from privet.policy import columns
from privet.policy.fields import Part
from privet.policy.shape import FileShape
from privet.sql.grammar import CALLED

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


PAGE = (DOCS / "reference.md").read_text(encoding="utf-8")


def every_command(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield from (
        each for name, sub in getattr(command, "commands", {}).items() for each in every_command(sub, f"{path} {name}")
    )
    if not hasattr(command, "commands"):
        yield path, command


def section(page: str, title: str) -> str:
    """The text below a heading, up to the next one of its level or above."""
    level = title.split(" ", 1)[0]
    below = page.partition(f"\n{title}\n")[2]
    return re.split(rf"(?m)^#{{1,{len(level)}}} ", below, maxsplit=1)[0]


def commands() -> Iterator[tuple[str, str]]:
    """Every command, argument and option: the heading that it belongs below, and how it is written."""
    for path, command in every_command(get_command(app), "privet"):
        yield f"### `{path}`", command.help.splitlines()[0]
        for each in command.params:
            names = each.opts if each.param_type_name == "option" else [(each.metavar or each.name).upper()]
            yield from ((f"### `{path}`", f"`{name}`") for name in names)
            yield f"### `{path}`", each.help


def functions() -> Iterator[tuple[str, str]]:
    yield from (("## SQL functions", f"| `{name}` |") for several in CALLED.values() for name in several)


def policy_keys() -> Iterator[tuple[str, str]]:
    """Every key of every part of a policy and of every kind of column, found by walking the classes that read it."""
    pile: list[Any] = [FileShape, *map(columns.model, columns.kinds().values())]
    seen: set[Any] = set()
    while pile:
        part = pile.pop()
        if isinstance(part, type) and issubclass(part, Part) and part not in seen:
            seen.add(part)
            for name, key in part.model_fields.items():
                yield "## The policy", f"| `{key.alias or name}` | {key.description}"
                pile += [key.annotation, *key.metadata]
        elif not isinstance(part, type):
            pile += [*get_args(part), *getattr(part, "__metadata__", ())]
    names = {each.__name__ for each in seen}
    assert {"BudgetShape", "DatasetShape", "Integer", "PersonShape", "PublicShape", "ServerShape"} <= names


def names() -> Iterator[tuple[str, str]]:
    for name in privet.__all__:
        value = getattr(privet, name)
        if not isinstance(value, ModuleType):
            yield "## Python", f"| `pv.{name}` |"
            continue
        callables = (each for each in MODULES[name].split() if inspect.getdoc(getattr(value, each)))
        for each in callables:
            if inspect.isfunction(getattr(value, each)) or inspect.isclass(getattr(value, each)):
                yield f"### `privet.{name}`", f"| `{each}` |"


EVERYTHING = {"commands": commands, "SQL functions": functions, "policy keys": policy_keys, "public names": names}


@pytest.mark.parametrize("kind", EVERYTHING.values(), ids=EVERYTHING.keys())
def test_the_reference_documents_everything(kind: Callable[[], Iterator[tuple[str, str]]]) -> None:
    every = [(title, text.replace("|", "\\|") if not text.startswith("|") else text) for title, text in kind()]
    assert len(every) > 20
    assert [(title, text) for title, text in every if not text or text not in section(PAGE, title)] == []
    title, text = every[-1]
    assert text not in section(PAGE.replace(text, "-"), title), "what is missing is noticed"


def test_every_key_and_option_says_what_it_means() -> None:
    assert [title for title, text in (*commands(), *policy_keys()) if not text or "None" in text] == []


def test_the_ledger_s_commands_are_among_them() -> None:
    every = {path for path, _ in every_command(get_command(app), "privet")}
    verbs = ("history", "verify", "head", "export", "replay", "cap", "reopen", "protect", "allow-source")
    assert {f"privet ledger {verb}" for verb in verbs} <= every


def test_every_exit_code_is_documented() -> None:
    codes = {*re.findall(r"(?m)^\| (\d+) \|", section(PAGE, "## Exit codes"))}
    assert codes == {"0", "1", str(INTERRUPTED), str(CLOSED), *(str(code) for _, code in EXITS)}


def test_the_tests_that_the_docs_name_exist() -> None:
    root = DOCS.parent
    pages = [*DOCS.glob("*.md"), *root.glob("*.md")]
    named = {
        path for page in pages for path in re.findall(r"`((?:tests|docs|bench|src)/[^`]+)`", page.read_text("utf-8"))
    }
    assert len(named) > 10
    assert [path for path in sorted(named) if not (root / path).exists()] == []
