"""Rules that ruff does not know: no source of randomness but our own, and nothing of one machine in the repository."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "privet"

# Generators that are predictable, inexact, or both. Bits come from privet.noise.entropy and nowhere else.
FORBIDDEN_MODULES = ("random", "secrets", "numpy.random", "np.random", "scipy.stats")
FORBIDDEN_NAMES = {"default_rng", "RandomState", "SystemRandom", "randbits", "randbelow"}
# Passwords and tokens are no noise: one module makes all secrets, with the library that is made for it.
MAKES_SECRETS = {"server/accounts/hashing.py"}
# A seed, once it can be passed, will be: there is no such parameter outside tests, which inject a bit source.
FORBIDDEN_PARAMETERS = {"seed", "random_state", "rng"}


def randomness(source: str) -> list[str]:
    """Uses of a foreign random number generator, or of a seed, in a source text."""
    return sorted({f"line {line}: {what}" for line, what in _randomness(ast.parse(source))})


def _randomness(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names if _is_forbidden(name.name))
            case ast.ImportFrom(module=str(module), names=names, level=0):
                dotted = (f"{module}.{name.name}" for name in names)
                yield from ((node.lineno, name) for name in dotted if _is_forbidden(name))
            case ast.Attribute(attr=attr) if _is_forbidden(ast.unparse(node)) or attr in FORBIDDEN_NAMES:
                yield node.lineno, ast.unparse(node)
            case ast.Name(id=name) if name in FORBIDDEN_NAMES:
                yield node.lineno, name
            case ast.keyword(arg=str(name)) | ast.arg(arg=name) if name in FORBIDDEN_PARAMETERS:
                yield node.lineno, f"{name}="
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ) if _is_forbidden(name):
                yield node.lineno, name


def _is_forbidden(dotted: str) -> bool:
    return any(dotted == module or dotted.startswith(module + ".") for module in FORBIDDEN_MODULES)


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: Path(path).relative_to(PACKAGE).as_posix()
)
def test_the_package_draws_from_its_own_entropy_only(path: Path) -> None:
    makes_secrets = path.relative_to(PACKAGE).as_posix() in MAKES_SECRETS
    found = randomness(path.read_text(encoding="utf-8"))
    assert [each for each in found if not (makes_secrets and " secrets" in each)] == []


@pytest.mark.parametrize(
    "source",
    [
        "import random",
        "import os, random as r",
        "from random import gauss",
        "import secrets",
        "from secrets import token_bytes",
        "import numpy.random",
        "import numpy.random as npr",
        "from numpy import random",
        "from numpy import array, random as r",
        "from numpy.random import default_rng",
        "def f():\n    import random",
        "import numpy as np\nx = np.random.laplace(0, 1)",
        "import numpy\nx = numpy.random.default_rng()",
        "x = default_rng()",
        "x = some.where.default_rng",
        "import importlib\nr = importlib.import_module('random')",
        "r = __import__('numpy.random')",
        "def draw(n, seed=None): ...",
        "def draw(n, *, rng): ...",
        "draw(3, seed=1)",
        "model(random_state=0)",
        "from scipy import stats",
    ],
)
def test_a_broken_twin_is_reported(source: str) -> None:
    assert len(randomness(source)) >= 1


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos.urandom(32)",
        "from privet.noise import entropy\nrandom_bits = entropy.bits(16)",
        "from .random_response import randomized\nx = randomized(seeded=True)",
        "text = 'import random'",
    ],
)
def test_honest_sources_pass(source: str) -> None:
    assert randomness(source) == []


def test_no_address_and_no_path_of_one_machine_is_written_down() -> None:
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{number}: {line.strip()[:80]}"
        for pattern in (
            "*",
            ".ci/*",
            ".github/**/*.yml",
            "src/**/*.py",
            "tests/**/*.py",
            "docs/**/*.md",
            "bench/**/*.py",
        )
        for path in sorted(ROOT.glob(pattern))
        if path.is_file() and path != Path(__file__) and path.name != ".git"  # a file in a worktree
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if is_of_one_machine(line)
    ]
    assert found == []


def is_of_one_machine(line: str) -> bool:
    home_or_scratch = re.search(r"(?<![\w.$}])/(root|home/\w+|Users/\w+|work|opt|tmp|var/folders)/\w", line)
    registry = re.search(r"--(extra-)?index-url|--find-links|file:///\w|https?://[^/ ]*/simple\b", line)
    return home_or_scratch is not None or registry is not None


@pytest.mark.parametrize(
    ("line", "bad"),
    [
        ("-r /home/ann/privet/requirements.lock", True),
        ("path = '/root/x/y'", True),
        ("--index-url https://mirror.example/simple", True),
        ("--find-links wheels", True),
        ("see https://example.org/home/ann", False),
        ("$HOME/tmp/x", False),
        ("PYTHON=/path/to/python", False),
    ],
)
def test_the_machine_check_itself(line: str, bad: bool) -> None:
    assert is_of_one_machine(line) == bad


def test_the_lock_satisfies_the_project() -> None:
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = whole["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values(), *whole["dependency-groups"].values()]
    wanted = {r.name: r for group in groups for r in map(Requirement, group) if r.name != project["name"]}
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pinned: dict[str, list[Version]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", lock, flags=re.MULTILINE):
        pinned.setdefault(name, []).append(Version(version))
    unmet = [
        str(requirement)
        for name, requirement in wanted.items()
        if not pinned.get(name) or not all(version in requirement.specifier for version in pinned[name])
    ]
    assert unmet == [], "pyproject.toml has moved on: run ./dev lock"
    assert lock.count("--hash=sha256:") >= len(pinned), "every pin carries its hashes"


def test_the_citation_names_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (\S+)$", citation, re.MULTILINE)[1] == project["version"]  # type: ignore[index]


def test_ci_runs_every_python_that_is_promised() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    promised = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert f"python: {promised}".replace("'", '"') in workflow
    assert all(f"run: ./dev {step}\n" in workflow for step in ("lint", "test"))
