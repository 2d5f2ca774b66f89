"""The command line and policies with tables in object storage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.asking import Shell
from tests.object_storage import ACCESS, SECRET, Bucket

import privet as pv
from privet.errors import SourceError

CANARY = "zqcanaryqz"
ROWS = {"id": [1, 2, 3, 4], "note": [CANARY] * 4, "pay": [7_316_952] * 4}
POLICY = """
ledger = "people.ledger"
[datasets.people]
budget = {{ epsilon = 3 }}
adjacency = "add/remove"
[datasets.people.tables.people]
source = {source}
protect = {{ person = "id", max_rows = 1 }}
columns = {{ pay = {{ integer = [0, 10_000_000] }}, note = "text" }}
"""


def test_policies_and_the_command_line(s3: Bucket, shell: Shell, tmp_path: Path) -> None:
    s3.put("people/1.parquet", ROWS)
    address = s3.at("people/*.parquet")
    made = shell("init", address, "--yes", "--person", "id", "--max-rows", "1", "--epsilon", "3", "-o", "made.toml")
    assert made.code == 0, made.err
    assert f'source = "{address}"' in (tmp_path / "made.toml").read_text()
    (tmp_path / "privet.toml").write_text(POLICY.format(source=json.dumps([s3.at("people/1.parquet")])))
    checked = shell("check")
    assert "4 rows of 4 people" in checked.out, checked.err
    answered = shell("query", "SELECT COUNT(*) AS n FROM people", "--epsilon", "1", "--json")
    assert answered.code == 0, answered.err
    s3.remove("people/1.parquet")
    refused = shell.run("query", "SELECT COUNT(*) AS n FROM people WHERE pay > 3", "--epsilon", "1")
    assert refused.code != 0
    assert "there is no object" in refused.err
    assert "Traceback" not in refused.err
    for text in (made, checked, answered, refused):
        assert not any(word in text.out + text.err for word in (ACCESS, SECRET, CANARY))


def test_a_missing_object_is_not_replaced_by_a_file(s3: Bucket, shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "privet.toml").write_text(POLICY.format(source=json.dumps(s3.at("gone.parquet"))))
    checked = shell.run("check")
    assert "there is no object" in checked.err
    assert "Write, for example" not in checked.err


def test_init_says_how_a_folder_is_written(shell: Shell) -> None:
    refused = shell.run("init", "s3://bucket/2024/", "--yes", "-o", "new.toml")
    assert "Write, for example: 's3://bucket/2024/*.parquet'" in refused.err


@pytest.mark.parametrize("form", ["s3://AKIA:{}@bucket/a.parquet", "s3://bucket/a.parquet?secret_key={}"])
def test_credentials_in_addresses_are_never_repeated(form: str, shell: Shell, tmp_path: Path) -> None:
    address = form.format("zqHush")
    (tmp_path / "privet.toml").write_text(POLICY.format(source=json.dumps(address)))
    lines = (["init", address, "--yes", "-o", "new.toml"], ["check"], ["query", "SELECT COUNT(*) FROM people"])
    for each in (shell.run(*line) for line in lines):
        assert each.code != 0
        assert "zqHush" not in each.out + each.err
        assert "Credentials come from the environment" in " ".join(each.err.split())
    with pytest.raises(SourceError) as refused:
        pv.table("people", address, protect=pv.each_row(), columns={"pay": pv.integer(0, 1)})
    assert "zqHush" not in str(refused.value)
