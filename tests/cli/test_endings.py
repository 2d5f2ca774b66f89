"""How commands end: errors as JSON for programs, closed pipes, full disks, and Ctrl-C while they start."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.asking import COUNT, POLICY, Done, Shell, damaged, strictly
from tests.cli.processes import NOBODY, ran
from tests.effort import some
from tests.ledger.workers import Nursery

import privet
from privet import cli
from privet.cli import query as commands
from privet.errors import LedgerBusy, LedgerError

HERE = {**os.environ, "PYTHONPATH": str(Path(privet.__file__).parents[1])}
MEAN = "SELECT AVG(income) AS pay FROM people"


def error(shell: Shell, code: int, *arguments: str) -> dict[str, Any]:
    """The error of a command, for programs: one line of JSON, and nothing on stdout."""
    done = shell.run(*arguments)
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done
    found: dict[str, Any] = strictly(done.err)["error"]
    assert found["exit"] == code
    return found


# --- JSON ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [["--json"], ["--format", "json"], ["--format=json"]])
def test_a_refusal(shell: Shell, form: list[str]) -> None:
    found = error(shell, 3, "query", COUNT, "--epsilon", "50", *form)
    assert (found["kind"], found["spent"]) == ("BudgetError", {"epsilon": "0"})
    assert shell.refused(3, "query", COUNT, "--epsilon", "50") == f"error: {found['message']}\n"
    found = error(shell, 2, "query", COUNT, "--epsilon", "0", *form)
    assert (found["kind"], "spent" in found) == ("NumberError", False)
    assert "--epsilon" in found["message"], "in the words of the terminal"


def test_what_was_paid_for_and_not_answered(shell: Shell, here: Path) -> None:
    damaged(here / "people.parquet", "income")
    found = error(shell, 4, "query", MEAN, "--epsilon", "0.5", "--json")
    assert (found["kind"], found["spent"]) == ("NoAnswer", {"epsilon": "0.5"})


@pytest.mark.parametrize(
    "arguments",
    [
        ["query", COUNT, "--epsilon"],
        ["query", COUNT, "--nonsense", "1"],
        ["query", COUNT, "two"],
        ["verify"],
        ["ledger", "history", "a", "b"],
        ["nonsense"],
    ],
    ids=" ".join,
)
def test_usage(shell: Shell, arguments: list[str]) -> None:
    path = 2 if arguments[0] == "ledger" else 1
    given = [*arguments[:path], "--json", *arguments[path:]]
    found = error(shell, 2, *given)
    assert found["kind"] == "UsageError"
    assert f"Error: {found['message']}\n" in shell.run(*arguments).err


def test_a_policy_with_problems(shell: Shell, here: Path) -> None:
    (here / "privet.toml").write_text(POLICY.replace("[0, 110]", "[110, 0]").replace("add/remove", "add"))
    found = error(shell, 2, "schema", "--json")
    assert (found["kind"], [each["subject"]["at"]["line"] for each in found["problems"]]) == ("PolicyError", [6, 18])
    assert found["problems"][1]["subject"]["name"] == "datasets.people.tables.people.columns.age"
    assert found["problems"][1]["what"] == "lower must be less than upper, not [110, 0]"
    assert found["problems"][1]["remedy"]["write"] == "age = { integer = [0, 110] }"


def test_a_busy_ledger(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object) -> None:
        raise LedgerBusy("another process holds the lock of people.ledger. Try again")

    monkeypatch.setattr(commands, "session_for", busy)
    assert error(shell, 75, "query", COUNT, "--epsilon", "1", "--json")["kind"] == "LedgerBusy"
    assert shell.refused(75, "query", COUNT, "--epsilon", "1").endswith("Try again\n")
    assert issubclass(LedgerBusy, LedgerError)
    assert privet.LedgerBusy is LedgerBusy


def test_a_bug(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("someone's value")

    monkeypatch.setattr(commands, "session_for", broken)
    found = error(shell, 70, "query", COUNT, "--epsilon", "1", "--json")
    assert found["message"] == "a bug in Privet: KeyError. Run it without --json to see the traceback"
    done = shell.run("query", COUNT, "--epsilon", "1")
    assert (done.code, "Traceback" in done.err) == (70, True)


def test_interrupted(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)

    monkeypatch.setattr(commands, "session_for", pressed)
    found = error(shell, 130, "query", COUNT, "--epsilon", "1", "--json")
    assert found == {"kind": "Interrupted", "exit": 130, "message": "interrupted; nothing was spent"}


def test_the_codes_are_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference.md").read_text()
    for code in {0, 130, 141, *(code for _, code in cli.EXITS)}:
        assert f"\n| {code} | " in page, code


# --- where output goes --------------------------------------------------------------------------------


def piped(folder: Path, *arguments: str) -> Done:
    """How a command ends whose reader leaves at once, in a process that starts for it."""
    running = subprocess.Popen(
        [sys.executable, "-m", "privet", *arguments],
        cwd=folder, env=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.close()
    told = running.stderr.read().decode()
    running.stderr.close()
    return Done(running.wait(), "", told)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["query", "--help"],
        ["query", COUNT, "--epsilon", "0.5"],
        ["query", COUNT, "--epsilon", "0.5", "--json"],
        ["schema"],
        ["ledger", "export"],
        ["ledger", "history"],
    ],
    ids=" ".join,
)
def test_a_reader_that_leaves(shell: Shell, here: Path, nursery: Nursery, arguments: list[str]) -> None:
    shell("query", COUNT, "--epsilon", "0.5")
    ends = [ran(nursery, here, *arguments, stdout=NOBODY)]
    if "--json" in arguments:
        ends.append(piped(here, *arguments))
    for done in ends:
        assert done.code == 141
        assert "error" not in done.err.lower()
        assert "Traceback" not in done.err
        assert "ignored" not in done.err


FULL = "error: the output could not be written: No space left on device"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_disk(shell: Shell, here: Path, nursery: Nursery) -> None:
    def on_full(*arguments: str) -> Done:
        return ran(nursery, here, *arguments, stdout="/dev/full")

    done = on_full("query", COUNT, "--epsilon", "0.5")
    assert (done.code, done.err.splitlines()[-1]) == (2, f"{FULL}. The answer is stored: asking again is free")
    done = on_full("query", COUNT, "--epsilon", "0.5", "--json")
    assert json.loads(done.err.splitlines()[-1])["error"]["exit"] == 2
    for arguments in (["ledger", "export"], ["schema"], ["--help"], ["query", COUNT, "--epsilon", "1", "--dry-run"]):
        assert on_full(*arguments) == (2, "", f"{FULL}\n"), arguments
    assert shell.spent() == 0.5


IMPORT = ("import", "people.csv", "-o", "new.parquet", "--id", "person_id", "--column", "age=integer")
LIMITED = """
import resource, signal, sys
sys.dont_write_bytecode = True  # Python would keep the half of it that fits
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))
from privet.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "command",
    [
        IMPORT,
        (
            "init",
            "people.parquet",
            "--yes",
            "-o",
            "new.toml",
            "--column",
            f"region=keys {' '.join(map(str, range(999)))}",
        ),
        ("curve", "--epsilon", "1", "-o", "new.png"),
    ],
    ids=lambda command: command[0],
)
def test_a_file_that_can_t_grow_speaks_of_no_payment(here: Path, command: tuple[str, ...]) -> None:
    (here / "people.csv").write_text("person_id,age\n" + "".join(f"{i * 7919},{i % 97}\n" for i in range(5_000)))
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *command],
        cwd=here, env=HERE, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.startswith("error: ")
    assert "File too large" in done.stderr
    assert "paid" not in done.stderr.lower()
    assert "answer" not in done.stderr
    assert not list(here.glob("*new.*")) + list(here.glob(".new*"))


# --- Ctrl-C while it starts ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("script", [False, True])
def test_ctrl_c_at_any_moment(here: Path, script: bool) -> None:
    """One line and 130, or it ended before. What Python does before our first line is Python's own."""
    started = "from privet.__main__ import main; main()"
    program = [sys.executable, "-c", started] if script else [sys.executable, "-m", "privet"]
    seen = set()
    moments = (0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5)
    for moment in (*some(moments, every=2, start=script), 0.6, 0.8, 1.0, 1.5):
        if moment > 0.5 and 130 in seen:
            break  # only a busy machine starts later
        running = subprocess.Popen(
            [*program, "explain", COUNT, "--epsilon", "1"],
            cwd=here, env=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        time.sleep(moment)
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=60)
        said = "".join(line for line in told.splitlines(keepends=True) if not line.startswith("Created a new ledger"))
        if "Traceback" in said:  # before our first line
            assert re.search(r"privet/__main__\.py., line \d+, in main|/cli/", said) is None, said
        elif running.returncode == 0:
            assert said == "", said
        else:  # Python itself ends by the signal if it came while a text was executed; shells show 130 for both
            assert running.returncode in (130, -signal.SIGINT), said
            assert said in ("interrupted; nothing was spent\n", "interrupted\n", ""), said
        seen.add(running.returncode)
    assert 130 in seen
