"""A small dataset with a policy, and the command line as the shell sees it."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privet import cli
from privet.cli.exits import for_programs
from privet.release.signing import new_signing_key

REGIONS = ("north", "south", "elsewhere")
COUNT = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
POLICY = """
ledger = "people.ledger"

[datasets.people]
budget = { epsilon = 3 }
adjacency = "add/remove"
signing_key = "steward.key"

[datasets.people.analysts]
press = { epsilon = 0.25 }

[datasets.people.tables.people]
source = "people.parquet"
protect = { person = "person_id", max_rows = 1 }

[datasets.people.tables.people.columns]
region = { keys = ["north", "south"], other = "elsewhere" }
age = { integer = [0, 110] }
income = { number = [0, 200_000] }
smoker = "boolean"
day = { date = [2025-01-01, 2025-03-31] }
"""


def made(folder: Path, policy: str = POLICY) -> Path:
    """A folder with 300 people: 200 in the north, 50 in the south, 50 in the west."""
    rows = {
        "person_id": list(range(300)),
        "region": ["north"] * 200 + ["south"] * 50 + ["west"] * 50,
        "age": [20 + i % 60 for i in range(300)],
        "income": [100.0 * i for i in range(300)],
        "smoker": [i % 3 == 0 for i in range(300)],
        "day": pa.array([20_100 + i % 60 for i in range(300)], pa.int32()).cast(pa.date32()),
    }
    pq.write_table(pa.table(rows), folder / "people.parquet", compression="none", use_dictionary=False)
    (folder / "privet.toml").write_text(policy, encoding="utf-8")
    new_signing_key(folder / "steward.key")
    return folder


def damaged(file: Path, column: str) -> None:
    """Break a Parquet file where a column of numbers begins; its footer stays whole."""
    group = pq.ParquetFile(file).metadata.row_group(0)
    (chunk,) = (group.column(i) for i in range(group.num_columns) if group.column(i).path_in_schema == column)
    content = bytearray(file.read_bytes())
    content[chunk.data_page_offset : chunk.data_page_offset + 40] = b"\xff" * 40
    file.write_bytes(content)


NEW = re.compile(
    r"^Created a new ledger, \S+\. If there was one before, stop: the new one does not know what was spent\.\n"
)


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Shell:
    """Runs commands in this process, as `privet` does."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch
        self.made = False
        """Whether the last command said that it made a ledger."""

    def run(self, *arguments: str | Path, stdin: str | bytes | io.TextIOBase = "") -> Done:
        """Whatever comes of it, with nothing of an earlier command."""
        self._capsys.readouterr()
        given = stdin.encode() if isinstance(stdin, str) else stdin
        file = io.TextIOWrapper(io.BytesIO(given), encoding="utf-8") if isinstance(given, bytes) else given
        self._monkeypatch.setattr(sys, "stdin", file)
        self._monkeypatch.setattr(sys, "argv", ["privet", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        code = stopped.value.code
        assert code is None or isinstance(code, int)
        out, err = self._capsys.readouterr()
        self.made = NEW.search(err) is not None
        return Done(code or 0, out, NEW.sub("", err))

    def __call__(self, *arguments: str | Path, stdin: str | bytes = "") -> Done:
        """A command that must succeed."""
        done = self.run(*arguments, stdin=stdin)
        assert done.code == 0, done.err
        return done

    def out(self, *arguments: str | Path) -> str:
        """What it prints."""
        return self(*arguments).out

    def json(self, *arguments: str | Path) -> Any:
        """What it prints, as strict JSON."""
        return strictly(self.out(*arguments))

    def refused(self, code: int, *arguments: str | Path, stdin: str | bytes | io.TextIOBase = "") -> str:
        """The error of a command that must fail with this code: of one shape, and nothing on stdout."""
        done = self.run(*arguments, stdin=stdin)
        assert done.code == code, done
        assert done.out == ""
        assert done.err.startswith('{"error": ' if for_programs([*map(str, arguments)]) else "error: ")
        assert "Traceback" not in done.err
        return done.err

    def spent(self, ledger: str = "people.ledger", analyst: str | None = None) -> Fraction:
        """What the ledger says; nothing, if there is none yet."""
        if not Path(ledger).exists():
            return Fraction(0)
        lines: Sequence[dict[str, Any]] = self.json("budget", ledger, "--json")
        return sum((Fraction(x["spent"]["epsilon"]) for x in lines if x["analyst"] == analyst), Fraction(0))


def strictly(text: str) -> Any:
    """JSON as the standard has it: no NaN, no Infinity."""
    return json.loads(text, parse_constant=_no_json)


def _no_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
