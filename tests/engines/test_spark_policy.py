"""The tutorial's questions through a policy in which only the source is changed, and the commands of a steward."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.asking import Shell
from tests.spark import SparkServer

import privet as pv
from privet.engines.spark import sessions
from privet.engines.spark.addresses import parsed
from privet.planner import plan

from .test_postgres_roles import POLICY, questions, visits  # noqa: F401 (a fixture)


@pytest.fixture
def table(spark_server: SparkServer, visits: Path) -> Iterator[str]:  # noqa: F811
    """The tutorial's table in Spark's catalogue, in a database of its own."""
    database = f"clinic{os.getpid()}"
    with sessions.reading(parsed(spark_server.address)) as session:
        sessions.run(session, f"CREATE DATABASE {database}")
        sessions.run(session, f"CREATE TABLE {database}.visits USING parquet AS SELECT * FROM parquet.`{visits}`")
        sessions.run(session, f"CREATE VIEW {database}.viewed AS SELECT 1 AS x")
        try:
            yield f"{spark_server.address}#{database}.visits"
        finally:
            sessions.run(session, f"DROP DATABASE {database} CASCADE")


def test_the_tutorials_questions_and_the_command_line(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file.toml").write_text(POLICY.format(ledger="file.ledger", source="visits.parquet"))
    (tmp_path / "base.toml").write_text(POLICY.format(ledger="base.ledger", source=table))
    with pv.Session.open("file.toml") as file, pv.Session.open("base.toml") as base:
        assert (file.dataset.engine.name, base.dataset.engine.name) == ("duckdb", "spark")
        assert len(questions()) >= 4
        for sql in questions():  # nobody has more rows than the cap, so no hash chooses
            plans = [plan(session.parse(sql), epsilon=1) for session in (file, base)]
            first, second = (
                [session.dataset.engine.answer(s) for s in each.statements()]
                for session, each in zip((file, base), plans, strict=True)
            )
            assert first == second, sql

    shell = Shell(capsys, monkeypatch)
    database = table.rpartition(".")[0].replace("#", "/;user_id=hush#")
    made = shell.run("init", database, "--yes", "--person", "patient", "--max-rows", "5", "--epsilon", "9")
    assert made.code == 0, made.err
    assert "The policy has no token. Set SPARK_CONNECT_AUTHENTICATE_TOKEN" in made.err
    policy = (tmp_path / "privet.toml").read_text()
    assert ".visits" in policy
    assert "viewed" not in policy, "a view can't be read"
    assert "hush" not in policy
    (tmp_path / "privet.toml").write_text(POLICY.format(ledger="l.ledger", source=table))
    for arguments in (["check"], ["schema"], ["explain", questions()[0], "--epsilon", "1"]):
        done = shell.run(*arguments)
        assert done.code == 0, done.err
    asked = shell.run("query", questions()[0], "--epsilon", "50", "--format", "json")
    assert asked.code == 0, asked.err
    assert len(json.loads(asked.out)["rows"]) == 3
    (tmp_path / "privet.toml").write_text(POLICY.format(ledger="l.ledger", source=table.replace("visits", "vists")))
    wrong = shell.run("check")
    assert wrong.code != 0
    assert "privet.toml, line" in wrong.err
    assert "Did you mean 'visits'?" in wrong.err
