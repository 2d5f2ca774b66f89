r"""Every example in README.md and docs/ is run, and what it shows is compared with what it does.

- ```python blocks of one file run in order, in one namespace and one empty directory.
- A ```text (or ```output) block with nothing but blank lines before it is the expected output of the block above.
- ```sh and ```console blocks: lines `$ command`, each followed by its expected output, if any is shown (a line that
  ends in a backslash goes on in the next). `privet`, `python` and a few harmless commands run (`privet` in this
  process if the line needs nothing of a shell); `./dev` and `pip install` are checked for commands and extras that
  exist. A command that should fail ends in `# exit 2`.
- Noise is random, so any number matches any number, and spaces around numbers and the length of rules don't count;
  words, signs and lines do. `...` matches anything. After ```text exact (or ```console exact) every character counts.
- A block inside an HTML comment runs and isn't shown. `<!-- not run: reason -->` before a block excludes it.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from privet import cli

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINKED = sorted({*PAGES, *ROOT.glob("*.md")})
MOST_NOT_RUN = 3

OUTPUT = {"text", "output"}
SHELL = {"sh", "console"}
ALIASES = {"py", "python3", "pycon", "bash", "shell", "zsh", "shell-session", ""}  # would be left out unseen
WIDTH = "100"  # columns of the terminal that a command believes it has


class Mismatch(AssertionError):
    """A page says one thing and the program does another."""


# --- reading a page ---


@dataclass(frozen=True, slots=True)
class Block:
    line: int  # of its first line of content, counted from 1
    language: str
    exact: bool
    content: str
    follows: bool  # only blank lines stand between it and the block before
    not_run: str | None  # the reason


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a Markdown text."""
    lines = iter(enumerate(text.splitlines(), start=1))
    follows, reason = False, None
    for number, line in lines:
        if fence := re.fullmatch(r"(\s*)(`{3,}|~{3,})\s*([^`]*)", line):
            indent, mark, info = fence.groups()
            content = []
            for _, inner in lines:
                if re.fullmatch(rf"\s*{mark[0]}{{{len(mark)},}}\s*", inner):
                    break
                content.append(inner.removeprefix(indent))
            else:
                raise Mismatch(f"line {number}: this block has no end")
            language, *options = info.split() or [""]
            yield Block(number + 1, language, "exact" in options, "\n".join(content) + "\n", follows, reason)
            follows, reason = True, None
        elif comment := re.fullmatch(r"\s*<!--\s*not run:\s*(.*?)\s*-->\s*", line):
            follows, reason = False, comment[1]
            if not reason:
                raise Mismatch(f"line {number}: 'not run' needs a reason")
        elif line.strip():
            follows, reason = False, None


# --- comparing ---

NUMBER = re.compile(r"(?<![\w.])[-+−]?\d(?:[\d_]|,(?=\d))*(?:\.\d+)?(?:/\d+)?(?:[eE][-+]?\d+)?(?!\w)")
RULE = re.compile(r"([^\w\s.#()\[\]{}])\1{2,}")
ELLIPSIS = "..."


def normal(text: str) -> str:
    """A text with its numbers made alike, and with what depends on their width (padding, rules) taken out."""
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    text = RULE.sub(r"\1\1\1", NUMBER.sub("\0", "\n".join(lines)))
    text = re.sub(r"[ \t]*\0[ \t]*", "\0", text)
    return re.sub(r"[ \t]+", " ", text)


def matches(expected: str, actual: str, *, exact: bool = False) -> bool:
    if exact:
        return [line.rstrip() for line in expected.strip("\n").splitlines()] == [
            line.rstrip() for line in actual.strip("\n").splitlines()
        ]
    pattern = ".*".join(re.escape(part.strip()) for part in re.split(r"\.\.\.", normal(expected)))
    if ELLIPSIS not in expected:
        return normal(expected) == normal(actual)
    # Around an ellipsis spaces and line ends are free.
    return re.fullmatch(r"\s*" + pattern + r"\s*", normal(actual), flags=re.DOTALL) is not None


def compare(expected: str, actual: str, *, exact: bool, line: int) -> None:
    if not matches(expected, actual, exact=exact):
        manner = "exactly" if exact else "with any numbers"
        raise Mismatch(f"line {line}: expected ({manner})\n{expected.strip()}\n--- but the output is\n{actual.strip()}")


# --- running ---


@dataclass(frozen=True, slots=True)
class Command:
    line: int
    text: str
    expected: str


def commands(block: Block) -> Iterator[Command]:
    """The commands of a shell block. Without any `$` every line is one, and no output is shown."""
    lines = block.content.splitlines()
    prompts = any(line.startswith("$ ") for line in lines)
    position = 0
    while position < len(lines):
        start, text = position, lines[position].removeprefix("$ ")
        if not text.strip() or text.startswith("#"):
            position += 1
            continue
        if prompts and not lines[position].startswith("$ "):
            raise Mismatch(f"line {block.line + position}: output before the first command")
        while text.endswith("\\") and position + 1 < len(lines):
            position += 1
            text = text[:-1] + lines[position].removeprefix("> ").lstrip()
        position += 1
        expected = []
        while prompts and position < len(lines) and not lines[position].startswith("$ "):
            expected.append(lines[position])
            position += 1
        yield Command(block.line + start, text, "\n".join(expected))


RUN = {"privet", "python", "cat", "echo", "head", "ls", "mkdir", "wc"}
SAID_ONLY = {"cd", "git"}  # how to fetch the repository


def run(command: Command, directory: Path) -> str:
    """What a command prints, both streams together; it must end with the status it says, 0 if it says none."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "HOME": str(directory),
        "COLUMNS": WIDTH,
        "NO_COLOR": "1",
        "TERM": "dumb",
        "PYTHONUTF8": "1",
    }
    words = privet_alone(command.text)
    code, printed = in_shell(command.text, directory, environment) if words is None else in_process(words, environment)
    stated = re.search(r"#\s*exit (\d+)\s*$", command.text)
    if code != (int(stated[1]) if stated else 0):
        raise Mismatch(f"line {command.line}: `{command.text}` ended with {code}\n{printed}")
    return printed


def privet_alone(text: str) -> list[str] | None:
    """The arguments of a line that starts `privet` and asks nothing else of a shell."""
    bare = re.sub(r"\"[^\"$`\\]*\"|'[^']*'", "", text)
    words = shlex.split(text, comments=True) if re.fullmatch(r"privet(\s[\w\s.,:=/%-]*)?(#.*)?", bare) else []
    return words[1:] if words else None


def in_shell(text: str, directory: Path, environment: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        ["sh", "-c", text],
        cwd=directory,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout


def in_process(arguments: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """The same without the second that a process takes to load; tests/cli has the processes."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["privet", *arguments])
        patch.setattr(sys, "stdin", io.StringIO())
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    code = stopped.value.code
    assert code is None or isinstance(code, int)
    assert isinstance(out.buffer, io.BytesIO)
    return code or 0, out.buffer.getvalue().decode()


def check_only(command: Command) -> None:
    """Commands that a page names and no test should run: that they exist."""
    words = command.text.split("#")[0].split()
    match words:
        case ["./dev"]:
            return
        case ["./dev", subcommand, *_] if subcommand not in dev_commands():
            raise Mismatch(f"line {command.line}: ./dev has no command '{subcommand}'")
        case ["pip", "install", *targets] | ["uv", "add" | "pip", *targets]:
            for extra in re.findall(r"\w+", "".join(re.findall(r"privet\[([^\]]*)\]", " ".join(targets)))):
                if extra not in extras():
                    raise Mismatch(f"line {command.line}: there is no extra '{extra}'")
        case ["./dev", *_] | ["bash", ".ci/run"]:
            return
        case [name, *_] if name in SAID_ONLY:
            return
        case _:
            raise Mismatch(
                f"line {command.line}: can't run `{command.text}`; if it is right so, write"
                " <!-- not run: reason --> before the block"
            )


def dev_commands() -> set[str]:
    listing = subprocess.run([ROOT / "dev", "help"], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    return set(re.findall(r"^  (\w+)", listing, flags=re.MULTILINE))


def extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"])


def run_page(text: str, directory: Path, name: str = "page.md") -> int:
    """Runs a page in a directory; the number of its blocks that are excluded. Raises at the first mismatch."""
    module = types.ModuleType("__docs__")
    sys.modules["__docs__"] = module  # dataclasses and pickle look there
    not_run = 0
    actual: str | None = None  # what the block before printed
    with contextlib.chdir(directory):
        for block in blocks(text):
            previous, actual = actual, None
            if block.not_run:
                not_run += 1
            elif block.language in ALIASES:
                raise Mismatch(f"line {block.line}: name the block python, sh, console or text, not {block.language!r}")
            elif block.language == "python":
                actual = run_python(block, module, name)
            elif block.language in SHELL:
                for command in commands(block):
                    if command.text.split()[0] not in RUN:
                        check_only(command)
                        continue
                    actual = run(command, directory)
                    if command.expected.strip():
                        compare(command.expected, actual, exact=block.exact, line=command.line)
            elif block.language in OUTPUT and block.follows and previous is not None:
                compare(block.content, previous, exact=block.exact, line=block.line)
            elif block.exact or block.language == "output":
                raise Mismatch(f"line {block.line}: there is no run block directly before this output")
    return not_run


def run_python(block: Block, module: types.ModuleType, name: str) -> str:
    padded = "\n" * (block.line - 1) + block.content  # so that a traceback names the line of the page
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(padded, name, "exec"), module.__dict__)
    except Exception as error:
        error.add_note(f"in the example at {name}:{block.line}")
        raise
    return out.getvalue()


# --- links ---


def prose(text: str) -> str:
    """A Markdown text without its blocks and its code, where a bracket is only a bracket."""
    text = re.sub(r"^(\s*)(`{3,}|~{3,}).*?^\s*\2\s*$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+).+?\1", "", text)


def links(text: str) -> list[str]:
    text = prose(text)
    return [
        *re.findall(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)", text),
        *re.findall(r"^\s*\[[^\]]+\]:\s*(\S+)", text, flags=re.MULTILINE),
        *re.findall(r"(?:src|href|srcset)=\"([^\"\s]+)", text),
    ]


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    found: set[str] = set()
    text = re.sub(r"^(\s*)(`{3,}|~{3,}).*?^\s*\2\s*$", "", text, flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", text, flags=re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        copies = sum(1 for name in found if re.fullmatch(rf"{re.escape(slug)}(-\d+)?", name))
        found.add(f"{slug}-{copies}" if copies else slug)
    return found | set(re.findall(r"(?:id|name)=\"([^\"]+)\"", text))


def broken_links(page: Path, root: Path) -> list[str]:
    """Relative links of a page that lead nowhere, or out of the repository."""
    text = page.read_text(encoding="utf-8")
    broken = []
    for link in links(text):
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if (
            file.startswith("/")
            or not target.is_relative_to(root.resolve())
            or not target.exists()
            or (anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8")))
        ):
            broken.append(link)
    return broken


# --- the tests ---


def name_of(page: object) -> str:
    return Path(str(page)).relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_do_what_they_show(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", WIDTH)
    monkeypatch.setenv("NO_COLOR", "1")
    run_page(page.read_text(encoding="utf-8"), tmp_path, name_of(page))


def test_few_examples_are_excluded() -> None:
    excluded = [
        f"{name_of(page)}:{block.line}: {block.not_run}"
        for page in PAGES
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.not_run
    ]
    assert len(excluded) <= MOST_NOT_RUN, excluded


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page, ROOT) == []


# --- and the tests of the test: each rule, with a twin that must fail ---

PRINT = "```python\nprint('spent', 3)\n```\n"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(PRINT + "```text\nspent 3\n```\n", id="same"),
        pytest.param(PRINT + "\n```text\nspent -12.5e3\n```\n", id="another-number"),
        pytest.param(PRINT + "```text exact\nspent 3\n```\n", id="exact"),
        pytest.param(PRINT + "Prose.\n\n```text\na diagram\n```\n", id="text-after-prose-is-no-output"),
        pytest.param("```python\nx = 1\n```\nProse.\n```python\nassert x == 1\n```\n", id="one-namespace"),
        pytest.param("<!--\n```python\nx = 1\n```\n-->\n```python\nassert x == 1\n```\n", id="hidden"),
        pytest.param("- item\n  ```python\n  if True:\n      y = 1\n  ```\n", id="indented"),
        pytest.param("<!-- not run: needs a server -->\n```python\n1 / 0\n```\n", id="not-run"),
        pytest.param("```console\n$ echo 12 rows\n15 rows\n$ echo done\n```\n", id="console"),
        pytest.param("```sh\n$ echo one \\\n>   two\none two\n```\n", id="continued"),
        pytest.param("```sh\n$ echo one; exit 3  # exit 3\none\n```\n", id="exit-status"),
        pytest.param("```sh\n$ python -c 'import privet'\n```\n", id="python"),
        pytest.param("```sh\ngit clone somewhere\ncd privet\n./dev demo\n./dev test --all\n```\n", id="dev"),
        pytest.param('```sh\npip install privet "privet[plots]"\n```\n', id="pip"),
        pytest.param("```python\nopen('a', 'w').close()\n```\n```sh\n$ ls\na\n```\n", id="one-directory"),
        pytest.param("```toml\n[x]\n```\n```text\nfree\n```\n", id="other-languages"),
    ],
)
def test_a_right_page_passes(page: str, tmp_path: Path) -> None:
    assert run_page(page, tmp_path) == page.count("<!-- not run:")


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(PRINT + "```text\nkept 3\n```\n", id="another-word"),
        pytest.param(PRINT + "```text\nspent\n```\n", id="no-number"),
        pytest.param(PRINT + "```text\nspent 3\nspent 3\n```\n", id="another-line"),
        pytest.param(PRINT + "```text exact\nspent 4\n```\n", id="exact"),
        pytest.param(PRINT + "Prose.\n```output\nspent 3\n```\n", id="output-of-nothing"),
        pytest.param("```python\n1 / 0\n```\n", id="error"),
        pytest.param("```python\nx = 1\n", id="no-end"),
        pytest.param("<!-- not run: -->\n```python\n1 / 0\n```\n", id="no-reason"),
        pytest.param("<!-- not run: why -->\nProse.\n```python\n1 / 0\n```\n", id="reason-not-before-the-block"),
        pytest.param("```py\n1\n```\n", id="alias"),
        pytest.param("```\n1\n```\n", id="no-language"),
        pytest.param("```console\n$ echo 12 rows\n15 columns\n```\n", id="console"),
        pytest.param("```console exact\n$ echo 12 rows\n15 rows\n```\n", id="console-exact"),
        pytest.param("```console\n12 rows\n$ echo 12 rows\n```\n", id="output-first"),
        pytest.param("```sh\n$ echo one\n```\n```text\ntwo\n```\n", id="sh-then-text"),
        pytest.param("```sh\n$ echo one; exit 3\n```\n", id="exit-status"),
        pytest.param("```sh\n$ echo one  # exit 3\n```\n", id="no-failure"),
        pytest.param("```sh\n$ ./dev fly\n```\n", id="dev"),
        pytest.param('```sh\npip install "privet[plots,wings]"\n```\n', id="pip"),
        pytest.param("```sh\n$ curl somewhere\n```\n", id="unknown-command"),
    ],
)
def test_a_broken_twin_fails(page: str, tmp_path: Path) -> None:
    with pytest.raises((Mismatch, ZeroDivisionError)):
        run_page(page, tmp_path)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("privet", []),
        (
            'privet query "SELECT a > 1 FROM t; --" --epsilon 0.5',
            ["query", "SELECT a > 1 FROM t; --", "--epsilon", "0.5"],
        ),
        ("privet import a.csv --separator ';'  # exit 2", ["import", "a.csv", "--separator", ";"]),
        ("privet ledger verify a.ledger | head", None),
        ("privet curve > curve.txt", None),
        ('privet query "$(cat question.sql)"', None),
        ("privet verify *.json", None),
        ("privet budget; privet ledger head", None),
        ("privets", None),
        ("echo privet", None),
    ],
)
def test_what_needs_a_shell(text: str, arguments: list[str] | None) -> None:
    assert privet_alone(text) == arguments


def test_a_process_and_this_one_print_the_same(tmp_path: Path) -> None:
    for text, code in (("privet budget no.ledger", 2), ("privet audit nothing", 2), ("privet --version", 0)):
        with contextlib.chdir(tmp_path):
            here = in_process(text.split()[1:], {"COLUMNS": WIDTH})
        assert here == in_shell(f"{Path(sys.executable).parent}/{text}", tmp_path, {"COLUMNS": WIDTH})
        assert here[0] == code


def test_an_error_names_the_line_of_the_page(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_page("# Title\n\n```python\nx = 1\nx / 0\n```\n", tmp_path)
    assert caught.traceback[-1].lineno + 1 == 5


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("n = 1,234.5 ± 7", "n = 99 ± 10.25"),
        ("[1, -2]", "[-1, 2]"),
        ("epsilon 1/2", "epsilon 3"),
        ("p = 1e-9", "p = 0.5"),
        ("north   12 %\nsouth 1234 %", "north  8888 %\nsouth     1 %"),
        ("| n |\n|-----|\n| 5 |", "| n   |\n|-------|\n| 555 |"),
        ("┃ n  ┃\n━━━━━\n  5", "┃ n   ┃\n━━━━━━━\n555"),
        ("key ... end", "key 8f3a end"),
        ("first\n...\nlast", "first\na\nb\nlast"),
        ("max 200,000.00, 95 % sure", "max 0, 95 % sure"),
        ("a  \nb\n\n", "\na\nb"),
    ],
)
def test_what_matches(expected: str, actual: str) -> None:
    assert matches(expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("n = 5", "m = 5"),
        ("n = 5", "n = x"),
        ("n = 5", "n = nan"),
        ("[1, 2]", "[1, 2, 3]"),
        ("sha256", "sha512"),
        ("x1", "x2"),
        ("5 %", "5"),
        ("a\nb", "a b"),
        ("first\n...\nlast", "first\nlost"),
        ("first ... last", "the first one, the last"),
    ],
)
def test_what_does_not_match(expected: str, actual: str) -> None:
    assert not matches(expected, actual)


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "b.md").write_text("# A `b` title: it's\n\n## Twice\n\n## Twice\n\n[up](../a.md)\n")
    (tmp_path / "a.md").write_text(
        "[ok](docs/b.md) [ok](docs/b.md#a-b-title-its) [ok](docs/b.md#twice-1) [ok](#here) "
        "[ok](https://example.org/x)\n"
        '![gone](gone.png) [gone](docs/b.md#gone) [gone](#gone) <img src="gone.svg"> [gone](../../etc) [ref]\n'
        "`[code](no-link)`\n\n```text\n[code](no-link)\n```\n\n# Here\n\n[ref]: gone.md\n"
    )
    assert broken_links(tmp_path / "docs" / "b.md", tmp_path) == []
    assert sorted(broken_links(tmp_path / "a.md", tmp_path)) == sorted(
        ["gone.png", "docs/b.md#gone", "#gone", "gone.svg", "../../etc", "gone.md"]
    )
