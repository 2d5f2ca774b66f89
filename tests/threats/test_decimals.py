"""A decimal with more digits than its type says: Parquet does not rule it out, and it must not make a question fail."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from tests.effort import some

import privet as pv
from privet.engines.sql import leaves

MARK = 1234567890123456789  # a value that is found in the file by its bytes
BEYOND = (2**127 - 1, -(2**127), 10**37, -(10**37), 10**38)
TYPES = ((20, 2), (25, 3), (30, 6), (36, 1), (38, 0), (38, 10))


def parquet(path: Path, digits: int, places: int, raw: int) -> str:
    """Two rows, of which the second has this integer in place of a decimal's digits."""
    text = str(MARK)
    value = f"{text[: len(text) - places]}.{text[len(text) - places :]}" if places else text
    kind = f"DECIMAL({digits}, {places})"
    with duckdb.connect() as connection:
        rows = f"SELECT unnest([1, 2])::BIGINT AS id, unnest(['1'::{kind}, '{value}'::{kind}]) AS x"
        connection.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet, COMPRESSION uncompressed, PARQUET_VERSION v1)")
    content, mark = path.read_bytes(), MARK.to_bytes(16, "big", signed=True)
    assert mark in content
    path.write_bytes(content.replace(mark, raw.to_bytes(16, "big", signed=True)))
    return str(path)


def answered(path: str) -> list[str]:
    """What becomes of questions that read the decimal as a number, a key, a condition and an id."""
    table = pv.table("t", path, protect=pv.each_row(), columns={"x": pv.number(0, 100)})
    by_id = pv.table("u", path, protect=pv.person("x", max_rows=1), columns={"id": pv.integer(0, 9)})
    outcomes = []
    for source, question in (
        (table, table.agg(v=pv.sum("x"))),
        (table, table.where(pv.col("x") > 3).agg(v=pv.mean("x"))),
        (table, table.group_by(k=pv.bins("x", [0, 50, 100])).agg(n=pv.count())),
        (by_id, by_id.agg(n=pv.count_people())),
    ):
        with pv.Session([source], budget=pv.PureDP(3), ledger=None) as session:
            try:
                session.release(question, epsilon=1)
                outcomes.append("answered")
            except pv.NoAnswer:
                outcomes.append("failed")
    return outcomes


@pytest.mark.parametrize(("digits", "places", "raw"), some([(*kind, raw) for raw in BEYOND for kind in TYPES], every=5))
def test_a_decimal_beyond_its_precision_makes_no_question_fail(
    tmp_path: Path, digits: int, places: int, raw: int
) -> None:
    assert answered(parquet(tmp_path / "t.parquet", digits, places, raw)) == ["answered"] * 4


def test_a_broken_twin_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves, "within_precision", lambda stored, sql: sql)
    assert "failed" in answered(parquet(tmp_path / "t.parquet", 20, 2, 10**37))
