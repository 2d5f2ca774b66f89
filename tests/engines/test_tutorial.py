"""The tutorial's questions on every engine: one policy but for its `source`, and the same integers before noise."""

from __future__ import annotations

import re
import shlex
from contextlib import chdir
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests import in_postgres, in_spark
from tests.engines.agreement import noted
from tests.movers import reachable
from tests.test_docs import ROOT, SHELL, blocks, commands, run

import privet as pv
from privet.engines.registry import ENGINES

PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
ROWS = 900
"""Instead of 60,000: the reference reads them one by one."""


def steps(*names: str) -> list[Any]:
    """The commands of the page that begin so."""
    found = [each for block in blocks(PAGE) if block.language in SHELL for each in commands(block)]
    return [
        each for each in found if each.text.split()[1] in names and "visits" in each.text and "exit" not in each.text
    ]


QUESTIONS = [shlex.split(each.text)[2] for each in steps("query", "explain")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The steward's part of the page: a file, a policy, and the import."""
    made = tmp_path_factory.mktemp("tutorial")
    (data,) = (b.content for b in blocks(PAGE) if b.language == "python" and '"visits.csv"' in b.content)
    with chdir(made):
        exec(compile(data.replace("60_000", str(ROWS)), "tutorial", "exec"), {})
        for step in steps("init", "import"):
            run(step, made)
    return made


def test_the_page_has_questions() -> None:
    assert len(QUESTIONS) >= 4


def test_the_same_integers_on_every_engine(folder: Path, request: pytest.FixtureRequest) -> None:
    policy = (folder / "privet.toml").read_text(encoding="utf-8")
    assert policy.count('source = "visits.parquet"') == 1
    assert 'ledger = "visits.ledger"' in policy
    found: dict[str, list[Any]] = {}
    asked: list[Any] = []
    for name in ENGINES:
        with reachable(name, request):
            text = policy.replace('source = "visits.parquet"', f'source = "{source(name, folder, request)}"')
            text = text.replace('ledger = "visits.ledger"', f'ledger = "{name}.ledger"')
            if name == "reference":
                text = re.sub(r"(?m)^(budget = .*)$", r'\1\nengine = "reference"', text)
            (folder / f"{name}.toml").write_text(text, encoding="utf-8")
            with chdir(folder), pv.Session.open(f"{name}.toml") as session:
                assert session.dataset.engine.name == name
                asked = asked or noted(session, [(each, each, {"epsilon": 0.1}) for each in QUESTIONS])
                found[name] = [each.of(session.dataset.engine) for each in asked]
    assert len(asked) >= 3
    assert all(each == found["reference"] for each in found.values()), found
    assert next(sum(row[0] for row in each) for each in found["reference"] if isinstance(each[0], list)) == ROWS


def source(name: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """Where an engine finds the visits."""
    rows = pq.read_table(folder / "visits.parquet")
    if name == "postgres":
        in_postgres.execute("DROP TABLE IF EXISTS visits")
        in_postgres.written("visits", rows)
        return f"{request.getfixturevalue('server')}#visits"
    if name == "spark":
        return f"{request.getfixturevalue('spark_server').address}#{in_spark.written(rows)}"
    return "visits.parquet"
