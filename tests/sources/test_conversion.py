"""Total conversion: whatever a cell holds, no error, and no other cell changes."""

from __future__ import annotations

import math
import uuid
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet import each_row, person
from privet.errors import SourceError
from privet.sources import arrow, table
from privet.sources.objects import LEAST, MOST, convert, misfit
from privet.sources.readings import Reading
from privet.tables import schema
from privet.tables.schema import Column

DECLARED: dict[Reading, Column] = {
    "number": schema.number(0, 10),
    "integer": schema.integer(0, 10),
    "boolean": schema.boolean(),
    "text": schema.text(),
    "key": schema.keys(1, 2),
    "date": schema.date("2020-01-01", "2024-12-31"),
    "timestamp": schema.timestamp("2020-01-01", "2024-12-31"),
}


def read(frame: Any, kind: Reading) -> list[Any]:
    """Column x of a frame, read as one of this kind."""
    made = table("t", frame, protect=each_row(), columns={"x": DECLARED[kind]})
    found: list[Any] = made.source.rows.column("x").to_pylist()
    return found


def converted(values: list[Any], kind: Reading) -> list[Any]:
    """Python objects as values of a kind; a table would refuse some of them before it reads any."""
    found: list[Any] = arrow.from_objects(values, kind).to_pylist()
    return found


def objects(values: list[Any]) -> pd.DataFrame:
    column = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = value
    return pd.DataFrame({"x": pd.Series(column, dtype=object)})


class Raises(float):
    def __float__(self) -> float:
        raise RuntimeError("no")

    def __gt__(self, other: object) -> bool:
        raise RuntimeError("no")

    __eq__ = __ne__ = __lt__ = __ge__ = __le__ = __gt__
    __hash__ = float.__hash__


def _no_class(self: object) -> type:
    raise RuntimeError("no")


Liar = type("Liar", (), {"__class__": property(_no_class)})


class Overflows(int):
    def __float__(self) -> float:
        raise OverflowError

    def __gt__(self, other: object) -> bool:
        raise RuntimeError("no")


class OddText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no")


class SubFloat(float):
    def __float__(self) -> float:
        return SubFloat(1.0)  # a deprecated thing to do: Python warns


POISON: list[Any] = [
    None, True, False, 0, -0.0, 1, 1.5, 7, -3, 2**63, -(2**63), 10**400, -(10**400), math.nan, math.inf, -math.inf,
    5e-324, Decimal("1e999999999"), Decimal("-1e999999999"), Decimal("1e-999999999"), Decimal("NaN"), Decimal("sNaN"),
    Decimal("Infinity"), Decimal("2.5"), Fraction(1, 3), Fraction(10**500, 3), 1 + 2j, "", "7", "x", "\ud800",
    "a\x00b", "x" * 10_000, b"bytes", b"\xff", bytearray(b"x"), [1], (1, 2), {"a": 1}, {1}, object(), type, len,
    Raises(1.5), Liar(), Overflows(3), OddText("odd"), SubFloat(2.0), pd.NA, pd.NaT, pd.Timestamp("2024-01-01",
    tz="Asia/Tokyo"), pd.Timedelta(1), np.float32(1.5), np.float16(65504), np.int8(-1), np.uint64(2**64 - 1),
    np.bool_(True), np.datetime64("2024-01-01"), np.datetime64("NaT", "s"), np.datetime64(2**62, "s"), np.timedelta64(3,
    "D"), np.str_("np"), np.array([1, 2]), np.array(3), date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31),
    datetime(2024, 1, 1, 12, 30), datetime(2024, 1, 1, tzinfo=UTC), datetime(1, 1, 1,
    tzinfo=timezone(timedelta(hours=14))), datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-9))),
    timedelta(days=1), uuid.UUID(int=7), memoryview(b"x"), range(3), NotImplemented, ...,
]  # fmt: skip


@pytest.mark.parametrize("kind", list(DECLARED))
def test_no_object_breaks_a_column_or_changes_another(kind: Reading) -> None:
    neighbours: list[Any] = [1, "a", True, date(2024, 1, 1), None]
    alone = converted(neighbours, kind)
    for poison in POISON:
        for place in (0, 2, len(neighbours)):
            found = converted([*neighbours[:place], poison, *neighbours[place:]], kind)
            assert found[:place] + found[place + 1 :] == alone
    assert len(converted(POISON, kind)) == len(POISON)


@pytest.mark.parametrize("kind", list(DECLARED))
def test_an_object_is_read_or_refused_when_the_table_is_made(kind: Reading) -> None:
    for poison in POISON:
        if misfit([poison], kind) is None:
            assert len(read(objects([poison, None]), kind)) == 2
        else:
            with pytest.raises(SourceError, match="column 'x' of the pandas DataFrame contains Python objects"):
                read(objects([poison, None]), kind)


def test_no_object_breaks_a_column_of_ids() -> None:
    ids = [one for one in POISON if misfit([one], "person") is None]
    frame = objects(ids).assign(y=1)
    made = table("t", frame, protect=person("x", max_rows=1), columns={"y": schema.integer(0, 1)})
    assert len(made.source.rows.column("x").to_pylist()) == len(ids) > 20
    assert made.source.types()["x"].family == "text"
    with pytest.raises(SourceError, match="contains Python objects"):
        table("t", objects(POISON).assign(y=1), protect=person("x", max_rows=1), columns={"y": schema.integer(0, 1)})


@pytest.mark.parametrize(
    ("kind", "values", "type_", "fix"),
    [
        ("number", ["1", "2.5", None], "str", 'frame["x"] = pd.to_numeric(frame["x"], errors="coerce")'),
        ("integer", [math.nan, 1, "2"], "str", 'frame["x"] = pd.to_numeric(frame["x"], errors="coerce")'),
        ("key", ["1", "2"], "str", 'frame["x"] = pd.to_numeric(frame["x"], errors="coerce")'),
        ("boolean", [0, 1], "int", 'frame["x"] = frame["x"].map({"yes": True, "no": False})'),
        ("text", [math.nan, "a", 1.5], "float", 'frame["x"] = frame["x"].astype(str)'),
        ("date", ["2024-01-02"], "str", 'frame["x"] = pd.to_datetime(frame["x"], errors="coerce")'),
    ],
)
def test_objects_of_another_type_are_refused_when_the_table_is_made(
    kind: Reading, values: list[Any], type_: str, fix: str
) -> None:
    with pytest.raises(SourceError) as caught:
        read(objects(values), kind)
    assert f"one of them is of type {type_!r}" in str(caught.value)
    assert str(caught.value).endswith(fix)


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("number", [1, 1.5, True, "1", Decimal("2.5"), Fraction(1, 2), 10**400, np.float32(0.5), b"1"],
         [1.0, 1.5, None, None, 2.5, 0.5, math.inf, 0.5, None]),
        ("integer", [1, 1.5, -2.5, 2.4999, True, 2**70, -math.inf, math.nan, Decimal("1e30"), np.uint64(2**64 - 1)],
         [1, 2, -2, 2, None, MOST, LEAST, None, MOST, MOST]),
        ("key", [1, 2.0, 2.5, True, "1", 2**63, math.inf, math.nan, np.int8(3)],
         [1, 2, None, None, None, None, None, None, 3]),
        ("boolean", [True, False, np.bool_(True), 1, 0, "true", None], [True, False, True, None, None, None, None]),
        ("text", ["a", OddText("b"), np.str_("c"), "\ud800", 1, b"d", None], ["a", "b", "c", None, None, None, None]),
        ("date", [date(2024, 1, 2), datetime(2024, 1, 2, 23), pd.NaT, np.datetime64("2024-01-02"), "2024-01-02", 7],
         [date(2024, 1, 2), date(2024, 1, 2), None, date(2024, 1, 2), None, None]),
        ("timestamp", [date(2024, 1, 2), pd.Timestamp("2024-01-02", tz="Asia/Tokyo"), pd.NaT, 7],
         [datetime(2024, 1, 2), datetime(2024, 1, 1, 15), None, None]),
        ("person", [7, 7.0, "7", Decimal("7.00"), Fraction(7), np.int8(7)], ["7"] * 6),
        ("person", [2.5, Decimal("2.50"), True, math.nan, math.inf, pd.NA, b"7"], ["5/2"] * 2 + [None] * 5),
        ("person", [uuid.UUID(int=7), date(2024, 1, 2)], [str(uuid.UUID(int=7)), "2024-01-02T00:00:00"]),
        ("person", [10**30, -1], [str(10**30), "-1"]),
    ],
)  # fmt: skip
def test_how_objects_are_read(kind: Reading, values: list[Any], expected: list[Any]) -> None:
    assert convert(values, kind) == expected


# --- typed columns --------------------------------------------------------------------------------------

NUMBERS: list[Any] = [
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(),
    pa.float32(), pa.float64(), pa.decimal32(9, 2), pa.decimal128(38, 3), pa.decimal256(76, 10),
]  # fmt: skip
TEXTS: list[Any] = [
    pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
]  # fmt: skip
TIMES: list[Any] = [
    pa.date32(), pa.date64(),
    *[pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "Asia/Tokyo")],
]  # fmt: skip


def chunked(values: list[Any], kind: Any) -> Any:
    """In several chunks, one of them empty."""
    return pa.chunked_array([pa.array(values[:1], kind), pa.array([], kind), pa.array(values[1:], kind)])


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_numbers_of_every_arrow_type(kind: Any) -> None:
    decimal = pa.types.is_decimal(kind)
    values = [Decimal(3) if decimal else np.float16(3) if kind == pa.float16() else 3, None, None]
    frame = pa.table({"x": chunked(values, kind)})
    assert read(frame, "number") == [3.0, None, None]
    assert read(frame, "integer") == [3, None, None]
    if pa.types.is_integer(kind):
        assert read(frame, "key") == [3, None, None]
    empty = pa.table({"x": pa.chunked_array([], kind)})
    assert read(empty, "number") == read(empty, "integer") == []


@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_texts_of_every_arrow_type(kind: Any) -> None:
    assert read(pa.table({"x": chunked(["a", None, "a", ""], kind)}), "text") == ["a", None, "a", ""]
    assert read(pa.table({"x": pa.chunked_array([], kind)}), "text") == []


@pytest.mark.parametrize("kind", TIMES, ids=str)
def test_times_of_every_arrow_type(kind: Any) -> None:
    zone = UTC if getattr(kind, "tz", None) else None
    moment = date(2024, 2, 29) if pa.types.is_date(kind) else datetime(2024, 2, 29, tzinfo=zone)
    frame = pa.table({"x": chunked([moment, None], kind)})
    assert read(frame, "date") == [date(2024, 2, 29), None]
    assert read(frame, "timestamp") == [datetime(2024, 2, 29), None]


@pytest.mark.parametrize("kind", TIMES, ids=str)
@pytest.mark.parametrize("raw", [2**63 - 1, -(2**63), 2**62, -1, 0, 1])
def test_times_beyond_the_calendar_are_clamped(kind: Any, raw: int) -> None:
    width = 32 if kind == pa.date32() else 64
    clipped = min(max(raw, -(2 ** (width - 1))), 2 ** (width - 1) - 1)
    array = pa.array([clipped, None], pa.int32() if width == 32 else pa.int64()).view(kind)
    (day, gone), (moment, gone_too) = (read(pa.table({"x": array}), k) for k in ("date", "timestamp"))
    assert gone is gone_too is None
    assert moment.date() == day
    if abs(raw) <= 1:
        assert day == date(1970, 1, 1) + timedelta(days=raw if width == 32 else min(raw, 0))
    elif getattr(kind, "unit", "") != "ns":
        assert day == (date.max if raw > 0 else date.min)


def test_extreme_numbers_are_clamped_where_they_do_not_fit() -> None:
    floats = [math.inf, -math.inf, math.nan, 1e300, -1e300, 2.0**63, -(2.0**63), 0.5, -0.5, 5e-324]
    expected = [MOST, LEAST, None, MOST, LEAST, MOST, LEAST, 1, 0, 0]
    for frame in (pa.table({"x": floats}), pd.DataFrame({"x": floats}), pl.DataFrame({"x": floats}), objects(floats)):
        assert read(frame, "integer") == expected
    assert read(pa.table({"x": pa.array([2**64 - 1, 2**63, 5], pa.uint64())}), "integer") == [MOST, MOST, 5]
    huge = pa.table({"x": pa.array([Decimal(10) ** 60, None], pa.decimal256(76, 2))})
    assert read(huge, "integer") == [MOST, None]
    assert read(huge, "number") == [1e60, None]


@pytest.mark.parametrize(
    ("series", "kind", "expected"),
    [
        (pd.Series(["a", None, "b"], dtype="category"), "text", ["a", None, "b"]),
        (pd.Series([1, None, 2], dtype="category"), "number", [1.0, None, 2.0]),
        (pd.Series(pd.Categorical(["x", "x", None], categories=["x", "y"])), "text", ["x", "x", None]),
        (pd.Series(pd.Categorical([1, 2.5], categories=pd.Index([1, 2.5], dtype=object))), "integer", [1, 3]),
        (pd.Series([1, None], dtype="Int64"), "integer", [1, None]),
        (pd.Series([1, None], dtype="UInt8"), "key", [1, None]),
        (pd.Series([1.5, None], dtype="Float32"), "number", [1.5, None]),
        (pd.Series([True, None], dtype="boolean"), "boolean", [True, None]),
        (pd.Series(["a", None], dtype="string"), "text", ["a", None]),
        (pd.Series(["a", None]), "text", ["a", None]),
        (pd.Series([1, 2], dtype="int8"), "integer", [1, 2]),
        (pd.Series([Decimal(1), None], dtype=pd.ArrowDtype(pa.decimal128(5, 2))), "integer", [1, None]),
        (pd.Series([pd.Timestamp("2024-01-01"), pd.NaT]), "date", [date(2024, 1, 1), None]),
        (pd.Series([None, None]), "text", [None, None]),
    ],
    ids=lambda x: str(getattr(x, "dtype", "")),
)  # fmt: skip
def test_pandas_columns(series: Any, kind: Reading, expected: list[Any]) -> None:
    frame = pd.DataFrame({"x": series})
    assert read(frame, kind) == expected
    frame.index = pd.Index([7] * len(frame))  # what rows are called does not matter
    assert read(frame, kind) == expected


@pytest.mark.parametrize(
    ("series", "kind", "expected"),
    [
        (pl.Series(["a", None, "b"], dtype=pl.Categorical), "text", ["a", None, "b"]),
        (pl.Series(["a", None], dtype=pl.Enum(["a", "b"])), "text", ["a", None]),
        (pl.Series([Decimal("1.5"), None]), "number", [1.5, None]),
        (pl.Series([1, None, 2**100], dtype=pl.Int128), "integer", [1, None, MOST]),
        (pl.Series([None, None]), "number", [None, None]),
        (pl.Series([None, 3, 2.5], dtype=pl.Object), "integer", [None, 3, 3]),
        (pl.Series([datetime(2024, 1, 1), None], dtype=pl.Datetime("ms")), "timestamp", [datetime(2024, 1, 1), None]),
        (pl.Series([True, None]), "boolean", [True, None]),
    ],
    ids=lambda x: str(getattr(x, "dtype", "")),
)  # fmt: skip
def test_polars_columns(series: Any, kind: Reading, expected: list[Any]) -> None:
    assert read(pl.DataFrame({"x": series}), kind) == expected


anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.decimals(), st.fractions(), st.text(), st.binary(),
    st.dates(), st.datetimes(), st.datetimes(timezones=st.timezones()), st.timedeltas(), st.complex_numbers(),
    st.uuids(), st.lists(st.integers()), st.dictionaries(st.text(), st.none()),
    st.sampled_from([one for one in POISON if type(one) is not Liar]),  # Hypothesis can't print that one
)  # fmt: skip


@settings(max_examples=120)
@given(st.lists(anything, max_size=6), st.sampled_from(list(DECLARED)))
def test_each_object_is_converted_by_itself(values: list[Any], kind: Reading) -> None:
    assert converted(values, kind) == [one for value in values for one in converted([value], kind)]


@settings(max_examples=100)
@given(st.lists(st.one_of(st.none(), st.floats(), st.floats(width=32)), max_size=8))
def test_floats_are_read_alike_in_every_library(values: list[Any]) -> None:
    frames = [pa.table({"x": pa.array(values, pa.float64())}), pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)})]
    frames += [pd.DataFrame({"x": pd.Series(values, dtype="float64")}), objects(values)]
    kinds: tuple[Reading, ...] = ("number", "integer")
    for kind in kinds:
        found = [read(frame, kind) for frame in frames]
        assert found == [found[0]] * 4


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, min_size=2, max_size=8),
    st.sampled_from(["arrow", "objects"]),
)
def test_different_ids_stay_different(ids: list[int], form: str) -> None:
    columns = {"y": schema.integer(0, 1)}
    frame: Any = pa.table({"x": ids, "y": [1] * len(ids)}) if form == "arrow" else objects(ids).assign(y=1)
    made = table("t", frame, protect=person("x", max_rows=1), columns=columns)
    assert len(set(made.source.rows.column("x").to_pylist())) == len(ids)
