"""Public tables and keys: their types come from their contents, which everybody knows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sources.common import rows

from privet.errors import SourceError, UserError
from privet.sources import keys_from, public_table
from privet.sources import public as module
from privet.tables.codec import decode, encode
from privet.tables.relation import PublicTable
from privet.tables.types import BooleanType, KeyType, NumberType, TextType, TimeType

DATA: dict[str, list[Any]] = {
    "region": ["south", "north"],
    "people": [7, 9],
    "rate": [0.1, None],
    "since": [date(1990, 1, 1), date(2000, 1, 1)],
    "open": [True, None],
}


def as_csv(folder: Path) -> Any:
    pd.DataFrame(DATA).to_csv(folder / "regions.csv", index=False)
    return folder / "regions.csv"


def as_parquet(folder: Path) -> Any:
    pq.write_table(pa.table(DATA), folder / "regions.parquet")
    return str(folder / "regions.parquet")


@pytest.fixture(params=["parquet", "csv", "arrow", "pandas", "polars"])
def regions(request: pytest.FixtureRequest, tmp_path: Path) -> PublicTable:
    makers: dict[str, Callable[[Path], Any]] = {
        "parquet": as_parquet, "csv": as_csv, "arrow": lambda _: pa.table(DATA), "pandas": lambda _: pd.DataFrame(DATA),
        "polars": lambda _: pl.DataFrame(DATA),
    }  # fmt: skip
    return public_table("regions", makers[request.param](tmp_path), key="region")


def test_types_come_from_the_contents(regions: PublicTable) -> None:
    assert regions.schema.columns == (
        ("region", KeyType(("north", "south"), missing=False)),
        ("people", NumberType(Fraction(7), Fraction(9), integer=True, missing=False)),
        ("rate", NumberType(Fraction(0.1), Fraction(0.1))),
        ("since", TimeType(date(1990, 1, 1), date(2000, 1, 1), missing=False)),
        ("open", BooleanType()),
    )
    assert rows(regions.source) == [
        ("north", 9, None, date(2000, 1, 1), None),
        ("south", 7, 0.1, date(1990, 1, 1), True),
    ]
    assert decode(encode(regions.schema)) == regions.schema


def test_the_digest_is_of_the_contents(regions: PublicTable) -> None:
    backwards = pa.table({name: values[::-1] for name, values in DATA.items()})
    assert public_table("other name", backwards, key="region").schema.digest == regions.schema.digest
    for change in ({"people": [7, 10]}, {"region": ["south", "nörth"]}, {"rate": [0.1, 0.0]}, {"open": [None, None]}):
        assert public_table("r", pa.table(DATA | change), key="region").schema.digest != regions.schema.digest


def test_the_contents_are_kept() -> None:
    frame = pd.DataFrame({"k": [1, 2], "x": [1.0, 2.0]})
    made = public_table("t", frame, key="k")
    frame["x"] = 0.0
    assert rows(made.source) == [(1, 1.0), (2, 2.0)]


def test_odd_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KEYS", 2)
    made = public_table(
        "t",
        pa.table(
            {
                "k": pa.array([1, 2, 3]),
                "many": ["a", "b", "c"],
                "long": ["x" * 300, None, None],
                "gone": pa.nulls(3),
                "no number": pa.nulls(3, pa.float64()),
                "no date": pa.nulls(3, pa.date32()),
                "large": pa.array([2**63, 0, 1], pa.uint64()),
                "nan": [float("nan"), 1.0, 2.0],
                "list": [[1], [2], [3]],
                "seen": [datetime(2024, 1, 1), None, None],
            }
        ),
        key="k",
    )
    assert dict(made.schema.columns) == {
        "k": NumberType(Fraction(1), Fraction(3), integer=True, missing=False),
        "many": TextType(missing=False),
        "long": TextType(),
        "gone": TextType(),
        "no number": NumberType(Fraction(0), Fraction(0)),
        "no date": TimeType(date(2000, 1, 1), date(2000, 1, 1)),
        "large": NumberType(Fraction(0), Fraction(2**63), missing=False),
        "nan": NumberType(Fraction(1), Fraction(2)),
        "seen": TimeType(datetime(2024, 1, 1), datetime(2024, 1, 1)),
    }
    assert decode(encode(made.schema)) == made.schema


def refused(source: Any, key: str = "k") -> str:
    with pytest.raises(SourceError) as caught:
        public_table("t", source, key=key)
    return str(caught.value)


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(pa.table({"k": ["a", "b", "a"]})) == (
        "the key 'k' of 't' has 'a' twice. A key must be unique, or a join would multiply rows"
    )
    assert refused(pa.table({"k": ["a", None]})) == "the key 'k' of 't' is missing in a row. Every row needs one"
    assert refused(pa.table({"K": ["a"]})).startswith(
        "there is no column 'k' in the Arrow table. The columns are: K. Did you mean 'K'?"
    )
    assert (
        refused(pa.table({"k": [1.5]}))
        == "the key 'k' of 't' contains double. A key contains integers, texts, dates or booleans"
    )
    assert refused(pa.table({"k": pa.array([], pa.int64())})) == "'t' has no rows, so nothing can be joined with it"
    assert refused(pa.table({"k": [1], "x": [1e300]})).startswith("column 'x' has a number beyond 2^500")
    assert refused(pa.table({"k": [1], "x": [float("inf")]})).startswith("column 'x' has a number beyond 2^500")
    assert refused(pa.table({"k": [date(1, 1, 1)]})).startswith("column 'k' has a date in the year 1.")
    assert refused(7).startswith("a public table is a path to Parquet or CSV, or a frame, not int.")
    (tmp_path / "junk.parquet").write_bytes(b"junk")
    assert "can't be read as Parquet" in refused(tmp_path / "junk.parquet")
    monkeypatch.setattr(module, "MOST_ROWS", 2)
    assert refused(pa.table({"k": [1, 2, 3]})) == "'t' has 3 rows. A public table has at most 2"


def test_keys_in_the_order_in_which_they_stand(tmp_path: Path) -> None:
    values = ["south", None, "north", "south", "east"]
    pq.write_table(pa.table({"region": values}), tmp_path / "k.parquet")
    for source in (tmp_path / "k.parquet", pa.table({"region": values}), pd.DataFrame({"region": values})):
        assert keys_from(source, "region", other="else").type == KeyType(("south", "north", "east"), "else")
    assert keys_from(pl.DataFrame({"n": [3, 1, 3]}), "n").type == KeyType((3, 1))
    with pytest.raises(SourceError, match=r"'x' of the Arrow table contains double\. Keys are texts or integers"):
        keys_from(pa.table({"x": [1.5]}), "x")
    with pytest.raises(SourceError, match=r"there is no column 'regin'.*Did you mean 'region'"):
        keys_from(tmp_path / "k.parquet", "regin")
    with pytest.raises(SourceError, match=r"has 0 keys\. 1 to 10,000 are allowed"):
        keys_from(pa.table({"x": pa.array([None], pa.string())}), "x")
    with pytest.raises(UserError, match="all texts or all integers"):
        keys_from(pa.table({"x": ["a"]}), "x", other=3)
