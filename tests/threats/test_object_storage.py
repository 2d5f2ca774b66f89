"""T22, T24, L14, L15 in object storage: a changed object, a dead server, denied access, and no secret anywhere."""

from __future__ import annotations

import logging
import os
import traceback
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.object_storage import ACCESS, SECRET, Bucket, enforce, s3_server, use

import privet as pv
from privet.engines.duckdb import object_files
from privet.errors import NoAnswer, SourceError, UserError

CANARY = "zqcanaryqz"
NUMBER = 7_316_952
ROWS = {"id": [1, 2, 3, 4], "note": [CANARY] * 4, "pay": [NUMBER] * 4}
COLUMNS = {"note": pv.text(), "pay": pv.integer(0, 10_000_000)}


def people(address: str) -> pv.Table:
    return pv.table("people", address, protect=pv.person("id", max_rows=1), columns=COLUMNS)


def asked(session: pv.Session, n: int) -> Any:
    rows = session.tables["people"].where(pv.col("pay") > n)
    return session.release(rows.agg(n=pv.count(), s=pv.sum("pay")), epsilon=1)


def test_what_changed_is_noticed_before_the_debit(s3: Bucket) -> None:
    address = s3.put("people.parquet", ROWS)
    with pv.Session([people(address)], budget=pv.PureDP(10), ledger=None) as session:
        asked(session, 0)
        before = session.remaining
        s3.put("people.parquet", ROWS | {"pay": [1, 2, 3, 4]})
        for _ in range(2):
            with pytest.raises(
                SourceError, match=r"'people' changed since it was opened.*Nothing was spent"
            ) as refused:
                asked(session, 1)
            assert address not in str(refused.value)
        s3.remove("people.parquet")
        with pytest.raises(SourceError, match="changed since it was opened, or one is gone"):
            asked(session, 1)
        assert session.remaining == before
        s3.put("people.parquet", ROWS)  # the same content again
        asked(session, 1)
        assert session.remaining != before


def test_denied_access_is_noticed_before_the_debit(s3: Bucket) -> None:
    with pv.Session([people(s3.put("people.parquet", ROWS))], budget=pv.PureDP(10), ledger=None) as session:
        asked(session, 0)
        before = session.remaining
        enforce(s3.server, credentials=True)
        try:
            with pytest.raises(SourceError, match=r"denied access.*Nothing was spent"):
                asked(session, 1)
        finally:
            enforce(s3.server, credentials=False)
        assert session.remaining == before


def test_a_server_that_dies_in_the_middle(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """One constant error, the debit stays; afterwards nothing is spent. No value, no secret, in any text."""
    caplog.set_level(logging.DEBUG)
    dying = s3_server()
    use(monkeypatch, dying)
    address = s3.put("people.parquet", ROWS)
    told = []
    with pv.Session([people(address)], budget=pv.PureDP(10), ledger=None) as session:
        asked(session, 0)
        before = session.remaining
        read = object_files._File.read

        def last(self: Any, length: int = -1) -> bytes:
            dying.stop()
            monkeypatch.setattr(object_files._File, "read", read)
            return read(self, length)

        monkeypatch.setattr(object_files._File, "read", last)
        with pytest.raises(NoAnswer) as failed:
            asked(session, 1)
        told.append("".join(traceback.format_exception(failed.value)))
        assert session.remaining != before
        before = session.remaining
        with pytest.raises(SourceError, match=r"can't be reached.*Nothing was spent") as refused:
            asked(session, 2)
        told.append("".join(traceback.format_exception(refused.value)))
        assert session.remaining == before
    out = capfd.readouterr()
    told += [out.out, out.err, caplog.text]
    for text in told:
        assert not any(
            word in text for word in (CANARY, str(NUMBER), f"{NUMBER:,}", ACCESS, SECRET, "curl", "AWS Error")
        )
    assert str(failed.value) == "The question could not be answered. It was paid for, and nothing was released."


def test_the_same_objects_under_another_name(s3: Bucket, tmp_path: Path) -> None:
    address = s3.put("people.parquet", ROWS)
    s3.put("others.parquet", ROWS)
    ledger = tmp_path / "people.ledger"
    pv.Session([people(address)], budget=pv.PureDP(1), ledger=ledger, name="one").close()
    for source in (address, s3.at("*.parquet")):
        with pytest.raises(UserError, match="belong to the dataset 'one'"):
            pv.Session([people(source)], budget=pv.PureDP(1), ledger=ledger, name="two")
    with closing(pv.open_ledger(ledger)) as steward:
        steward.allow_source("two", address, reason="other people")
    pv.Session([people(address)], budget=pv.PureDP(1), ledger=ledger, name="two").close()
    held = ledger.read_bytes()
    assert not any(word.encode() in held for word in (ACCESS, SECRET, people(address).source.objects[0].tag))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_asks_on_its_own(s3: Bucket, tmp_path: Path) -> None:
    address = s3.put("people.parquet", pa.table(ROWS))
    with pv.Session([people(address)], budget=pv.PureDP(10), ledger=tmp_path / "people.ledger") as session:
        asked(session, 0)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                asked(session, 1)
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
