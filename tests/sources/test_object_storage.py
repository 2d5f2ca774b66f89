"""Tables in object storage: found, checked and refused as files are, in the words of the steward."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.object_storage import ACCESS, SECRET, Bucket, behind, enforce, s3_server, use
from tests.sources.common import EXPECTED, arrow, people, rows

import privet as pv
from privet.engines import object_store
from privet.engines.base import ParquetObjects
from privet.errors import SourceError, UserError
from privet.sources import checked_files, parquet
from privet.system.object_addresses import ObjectAddress
from privet.tables.relation import Table

NOTE = {"note": pv.text()}
X = {"x": pv.integer(0, 100)}


def opened(source: Any, columns: Any = X) -> Table:
    return pv.table("t", source, protect=pv.each_row(), columns=columns)


def names(table: Table) -> list[str]:
    assert isinstance(table.source, ParquetObjects)
    return [each.address.key for each in table.source.objects]


def test_every_kind_of_value(s3: Bucket) -> None:
    address = s3.put("people.parquet", arrow())
    table = people(address)
    assert sorted(rows(table.source), key=str) == sorted(EXPECTED, key=str)


def test_google(gs: Bucket) -> None:
    parts = [gs.put(f"people/{i}.parquet", arrow().slice(i, 1)) for i in range(4)]
    found = [people(source) for source in (parts, gs.at("people/*.parquet"))]
    for each in found:
        assert sorted(rows(each.source), key=str) == sorted(EXPECTED, key=str)
    table = found[0]
    object_store.check(table.source.objects)
    gs.put("people/2.parquet", arrow())
    with pytest.raises(object_store.Changed):
        object_store.check(table.source.objects)
    with pytest.raises(SourceError, match=r"there is no object 'gs://survey/people.parquet'"):
        opened(gs.at("people.parquet"))


def test_patterns(s3: Bucket) -> None:
    keys = [
        "a/1.parquet",
        "a/2.parquet",
        "a/b/3.parquet",
        "a/.hidden.parquet",
        "a/_SUCCESS",
        "year=2024/it's [x].parquet",
    ]
    for key in keys:
        s3.put(key, {"x": [1]})
    assert names(opened(s3.at("a/*.parquet"))) == ["a/1.parquet", "a/2.parquet"]
    assert names(opened(s3.at("a/**/*.parquet"))) == ["a/1.parquet", "a/2.parquet", "a/b/3.parquet"]
    assert names(opened(s3.at("a/?.parquet"))) == ["a/1.parquet", "a/2.parquet"]
    assert names(opened(s3.at("*/b/*.parquet"))) == ["a/b/3.parquet"]
    assert names(opened(s3.at("year=*/*"))) == ["year=2024/it's [x].parquet"]
    assert names(opened([s3.at("a/2.parquet"), s3.at("a/1.parquet")])) == ["a/2.parquet", "a/1.parquet"]
    with pytest.raises(SourceError, match="no object matches"):
        opened(s3.at("b/*.parquet"))
    with pytest.raises(SourceError, match="listed twice"):
        opened([s3.at("a/1.parquet"), s3.at("a/*.parquet")])
    with pytest.raises(SourceError, match=r"'people.parquet' is a file, and others"):
        opened([s3.at("a/1.parquet"), "people.parquet"])


def test_the_list_is_fixed_at_registration(s3: Bucket) -> None:
    s3.put("1.parquet", {"x": [1]})
    table = opened(s3.at("*.parquet"))
    s3.put("2.parquet", {"x": [2]})
    assert rows(table.source) == [(1,)]


def test_300_objects(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "FOOTER", 16_384)
    one = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [1, 2]}), one)
    content = one.getvalue().to_pybytes()
    for i in range(300):
        behind(s3, f"part-{i:03}.parquet", content)
    table = opened(s3.at("part-*.parquet"))
    assert len(names(table)) == 300
    assert len(rows(table.source)) == 600
    monkeypatch.setattr(parquet, "_KEPT", 0)
    assert [each.end for each in opened(s3.at("part-00*.parquet")).source.objects] == [b""] * 10


def test_schemas_are_checked_in_every_object(s3: Bucket) -> None:
    s3.put("1.parquet", {"x": [1]})
    s3.put("2.parquet", {"x": ["a"]})
    with pytest.raises(SourceError, match=r"column 'x' of 's3://.*/2.parquet' is declared as .*, but contains VARCHAR"):
        opened(s3.at("*.parquet"))
    s3.put("2.parquet", {"x": [1.5]})
    with pytest.raises(SourceError, match=r"BIGINT in 's3://.*/1.parquet', but DOUBLE in 's3://.*/2.parquet'"):
        opened(s3.at("*.parquet"))
    s3.put("2.parquet", {"y": [1]})
    with pytest.raises(SourceError, match="there is no column 'x'"):
        opened(s3.at("*.parquet"))
    s3.put("2.parquet", b"PAR1 not Parquet PAR1")
    with pytest.raises(SourceError, match=r"'s3://.*/2.parquet' is not a readable Parquet file"):
        opened(s3.at("*.parquet"))


def test_texts_that_are_not_utf8(s3: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """They are read to the end once for each content, as in files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"ok", b"\xff\xfe"]).buffers())
    address = s3.put("bad.parquet", {"note": bad})
    with pytest.raises(SourceError, match="bytes that are not UTF-8 text"):
        opened(address, NOTE)
    s3.put("bad.parquet", {"note": ["a", "b"]})
    opened(address, NOTE)
    monkeypatch.setattr(checked_files, "remember", lambda marks: pytest.fail("it was read again"))
    opened(address, NOTE)
    s3.put("bad.parquet", {"note": bad})
    with pytest.raises(SourceError, match="bytes that are not UTF-8 text"):
        opened(address, NOTE)


def test_what_the_store_denies(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain words, without the credentials and without the store's own text."""
    address, found = s3.put("people.parquet", {"x": [1]}), []

    def told(source: str) -> str:
        with pytest.raises(SourceError) as refused:
            opened(source)
        assert refused.value.__cause__ is None
        found.append(str(refused.value))
        return found[-1]

    assert "there is no object 's3://" in told(s3.at("other.parquet"))
    assert "there is no object 's3://" in told("s3://no-such-bucket/people.parquet")
    assert "there is no bucket 'no-such-bucket'" in told("s3://no-such-bucket/*.parquet")
    enforce(s3.server, credentials=True)
    try:
        assert "denied access" in told(address)
        assert "denied access" in told(s3.at("*.parquet"))
    finally:
        enforce(s3.server, credentials=False)
    stopped = s3_server()
    use(monkeypatch, stopped)
    stopped.stop()
    assert "can't be reached" in told(address)
    for each in found:
        assert not any(word in each for word in (ACCESS, SECRET, "AWS Error", "curl", "HeadObject", "Request"))


def test_public_buckets_only_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import fs

    asked: list[Any] = []
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(fs, "S3FileSystem", lambda **options: asked.append(options["anonymous"]))
    address = ObjectAddress("s3", "bucket", "key")
    object_store.store(address)
    monkeypatch.setenv("PRIVET_ANONYMOUS_STORAGE", "1")
    object_store.store(address)
    assert asked == [False, True]


def test_no_secret_is_kept(s3: Bucket) -> None:
    table = opened(s3.put("people.parquet", {"x": [1]}))
    tag = table.source.objects[0].tag
    shown = repr(table) + repr(table.source) + str(table.identities)
    assert not any(secret in shown for secret in (ACCESS, SECRET, tag))


def test_other_formats_are_refused(s3: Bucket) -> None:
    for key in ("people.csv", "people.duckdb"):
        with pytest.raises(SourceError, match="is not a Parquet file"):
            opened(s3.at(key))


def test_without_fsspec(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    address, real = s3.put("people.parquet", {"x": [1]}), builtins.__import__

    def absent(name: str, *rest: Any) -> Any:
        if name.startswith("fsspec"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(UserError, match=r"object storage needs fsspec.*privet\[objects\]"):
        opened(address)
