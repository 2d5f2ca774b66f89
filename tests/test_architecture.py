"""The layers of the design, kept by walking the syntax tree of every module.

A tier imports only tiers above it in this list; inside a tier nothing imports a neighbour. The modules of one
subpackage (noise/*, mechanisms/*) may import each other. Imports inside functions and under TYPE_CHECKING count.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "privet"

TIERS: tuple[frozenset[str], ...] = tuple(
    frozenset(line.split())
    for line in """
        errors
        codec names system markup
        exact
        noise
        privacy
        accuracy plots
        mechanisms tables
        textbook
        sql planner engines ledger
        sources
        policy release
        connection payment publication questions requests
        terms view
        dataset preview session
        audit client
        allowance
        assistants dbapi server
        cli
        __main__
    """.strip().splitlines()
)  # fmt: skip

# Allowed by the tiers, forbidden all the same: an engine computes exact integers and can't change a guarantee.
NEVER = {("engines", "noise")}

# DuckDB is one engine of several. Whoever looks into files with it uses `engines/duckdb/files.py`.
WRITES_FILES_WITH_DUCKDB = {"cli/demo.py"}
DUCKDB_WORDS = re.compile(
    r"\b(U?(TINY|SMALL|BIG|HUGE)INT|UINTEGER|VARCHAR|TIMESTAMPTZ|TIMESTAMP_(S|MS|NS)|TRY_CAST|QUALIFY|enum_code|epoch_us)\b"
)
# What analysts may write, or may not, in SQL; and a function for texts, declared to the reader of files.
SAYS_DUCKDB_WORDS = {"sql/tokens.py", "sql/hints.py", "sources/csv/profile.py"}

# Sides of one thing: a dataset makes sessions; a session is a preview that can pay, and opens a dataset of its own.
SIDES = {"dataset", "preview", "session"}

# `import privet` pulls in the public face, so only what stands above it may: everything else names the module it needs.
ABOVE_THE_FACE = {"audit", "cli", "server", "__main__"}


@dataclass(frozen=True, slots=True)
class Import:
    line: int
    module: str  # absolute dotted name, with the imported name as its last part where there is one


def imports(path: Path, package: Path) -> Iterator[Import]:
    """Every import in a file, however written: absolute, relative, in a function, or by import_module("...")."""
    here = (package.name, *path.relative_to(package).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        match node:
            case ast.Import(names=names):
                yield from (Import(node.lineno, name.name) for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = here[: len(here) - level + 1] if level else ()
                prefix = ".".join((*base, *([module] if module else [])))
                yield from (Import(node.lineno, f"{prefix}.{name.name}") for name in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                dots = len(name) - len(name.lstrip("."))
                base = here[: len(here) - dots + 1] if dots else ()
                yield Import(node.lineno, ".".join((*base, name.lstrip("."))))


def modules(package: Path) -> dict[Path, str]:
    """Each source file with the top-level module it belongs to: noise/laplace.py belongs to noise."""
    return {path: path.relative_to(package).with_suffix("").parts[0] for path in sorted(package.rglob("*.py"))}


def violations(package: Path) -> list[str]:
    """Imports that break the layers, one line each; a module without a tier is one too."""
    tier_of = {module: tier for tier, members in enumerate(TIERS) for module in members}
    owners = modules(package)
    known = set(owners.values())
    found = [
        f"{owner}: has no tier; give it one in {Path(__file__).name}" for owner in known - tier_of.keys() - {"__init__"}
    ]
    for path, owner in owners.items():
        if owner == "__init__" or owner not in tier_of:
            continue
        for imported in imports(path, package):
            root, _, rest = imported.module.partition(".")
            if root != package.name:
                continue
            target = rest.partition(".")[0]
            where = f"{path.relative_to(package).as_posix()}:{imported.line}: {owner} imports"
            if target not in known or target == "__init__":
                if owner not in ABOVE_THE_FACE:
                    found.append(f"{where} {imported.module}: the package's face, not a module below it")
            elif target == owner or target not in tier_of:
                continue
            elif tier_of[target] > tier_of[owner]:
                found.append(f"{where} {target}: it stands above")
            elif tier_of[target] == tier_of[owner] and not {owner, target} <= SIDES:
                found.append(f"{where} {target}: its neighbour")
            elif (owner, target) in NEVER:
                found.append(f"{where} {target}: forbidden by name")
    return sorted(found)


def duckdb_outside(package: Path) -> list[str]:
    """Imports of DuckDB, and names of its types and functions, outside of its engine and of those listed above."""
    found = []
    for path in modules(package):
        where = path.relative_to(package).as_posix()
        if where.startswith("engines/duckdb/"):
            continue
        if where not in WRITES_FILES_WITH_DUCKDB:
            lines = [each.line for each in imports(path, package) if each.module.partition(".")[0] == "duckdb"]
            found += [f"{where}:{line}: imports duckdb" for line in lines]
        if where not in SAYS_DUCKDB_WORDS and not where.startswith("engines/spark/"):  # Spark has some of these, too
            for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                found += [f"{where}:{line}: {match[0]}" for match in DUCKDB_WORDS.finditer(text)]
    return found


def undeclared(package: Path, allowed: frozenset[str]) -> list[str]:
    """Imports from outside that are neither the standard library nor declared in pyproject.toml."""
    return sorted(
        f"{path.relative_to(package).as_posix()}:{imported.line}: {imported.module}"
        for path in modules(package)
        for imported in imports(path, package)
        if (root := imported.module.partition(".")[0]) not in {package.name, "__future__"}
        if root not in sys.stdlib_module_names and root not in allowed
    )


def declared() -> frozenset[str]:
    """What pyproject.toml lets the package import: its dependencies and the users' extras, by import name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    requirements = [*project["dependencies"], *(line for extra in extras for line in extra)]
    names = {re.split(r"[\[<>=!~ ;]", line)[0].lower() for line in requirements}
    imported = {"python-flint": "flint", "argon2-cffi": "argon2"}
    return frozenset(imported.get(name, name.replace("-", "_")) for name in names)


def write(package: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return package


def test_layers_hold() -> None:
    assert violations(PACKAGE) == []


def test_duckdb_is_one_engine_of_several() -> None:
    assert duckdb_outside(PACKAGE) == []
    assert not [path for path in (PACKAGE / "engines" / "reference").rglob("*.py") if "engines.sql" in path.read_text()]


@pytest.mark.parametrize(
    "source", ["import duckdb", "def f():\n    from duckdb import connect", "x = 'CAST(a AS BIGINT)'"]
)
def test_duckdb_elsewhere_is_reported(tmp_path: Path, source: str) -> None:
    package = write(tmp_path / "privet", SOUND | {"engines/sql/numbers.py": source})
    (report,) = duckdb_outside(package)
    assert report.startswith(f"engines/sql/numbers.py:{len(source.splitlines())}: ")


def test_only_declared_dependencies_are_imported() -> None:
    assert undeclared(PACKAGE, declared()) == []


def test_design_rules_follow_from_the_tiers() -> None:
    order = {module: tier for tier, members in enumerate(TIERS) for module in members}
    assert order["privacy"] < order["mechanisms"], "an old ledger can be replayed by a better accountant"
    above = {module for module in order if order[module] > order["audit"]}
    assert above == {"allowance", "assistants", "cli", "dbapi", "server", "__main__"}


SOUND = {
    "__init__.py": "from privet.mechanisms import laplace\nfrom .exact import x",
    "errors.py": "",
    "exact.py": "from privet.errors import UserError",
    "noise/__init__.py": "from .laplace import draw",
    "noise/laplace.py": "import numpy as np\nfrom .. import exact\nfrom .entropy import bits\nimport privet.noise",
    "noise/entropy.py": "import os",
    "privacy.py": "from privet.exact import x",
    "mechanisms/__init__.py": "",
    "mechanisms/laplace.py": "from ..noise.laplace import draw\nfrom privet import privacy",
    "engines/__init__.py": "from privet.mechanisms import laplace",
    "cli.py": "import privet\nfrom privet import __version__",
}


def test_the_checker_accepts_a_sound_tree(tmp_path: Path) -> None:
    package = write(tmp_path / "privet", SOUND)
    assert violations(package) == []
    assert undeclared(package, frozenset({"numpy"})) == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        pytest.param("noise/laplace.py", "from privet.mechanisms.laplace import Laplace", id="absolute"),
        pytest.param("noise/laplace.py", "from ..mechanisms import laplace", id="relative"),
        pytest.param("noise/laplace.py", "from .. import mechanisms", id="relative-to-the-package"),
        pytest.param("exact.py", "from .noise import draw", id="relative-from-a-module"),
        pytest.param("noise/laplace.py", "def f():\n    import privet.mechanisms", id="in-a-function"),
        pytest.param("noise/laplace.py", "import privet.mechanisms as m", id="import-as"),
        pytest.param("noise/laplace.py", "import os, privet.mechanisms", id="second-of-two"),
        pytest.param("noise/laplace.py", "from privet import errors, mechanisms", id="from-the-package"),
        pytest.param(
            "noise/laplace.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from privet.mechanisms import laplace",
            id="type-checking",
        ),
        pytest.param(
            "noise/laplace.py", "import importlib\nimportlib.import_module('privet.mechanisms')", id="by-name"
        ),
        pytest.param("noise/laplace.py", "__import__('privet.mechanisms')", id="dunder-import"),
        pytest.param("accuracy.py", "from privet.plots import svg", id="neighbour"),
        pytest.param("privacy.py", "from privet.mechanisms import laplace", id="accounting-mechanisms"),
        pytest.param("errors.py", "from privet.exact import Exact", id="errors-exact"),
        pytest.param("engines/__init__.py", "from privet.noise import laplace", id="engine-noise"),
        pytest.param("mechanisms/laplace.py", "import privet", id="the-face"),
        pytest.param("mechanisms/laplace.py", "from privet import Laplace", id="a-name-of-the-face"),
        pytest.param("mechanisms/laplace.py", "from .. import *", id="the-whole-face"),
        pytest.param("utils.py", "", id="no-tier"),
    ],
)
def test_the_checker_reports_a_broken_twin(tmp_path: Path, file: str, source: str) -> None:
    package = write(tmp_path / "privet", SOUND | {file: source})
    (report,) = violations(package)
    assert report.startswith("utils: has no tier" if file == "utils.py" else f"{file}:{len(source.splitlines())}: ")


@pytest.mark.parametrize("source", ["import scipy.stats", "def f():\n    from pandas import DataFrame"])
def test_an_undeclared_dependency_is_reported(tmp_path: Path, source: str) -> None:
    package = write(tmp_path / "privet", SOUND | {"exact.py": source})
    (report,) = undeclared(package, frozenset({"numpy"}))
    assert report.startswith("exact.py:")
