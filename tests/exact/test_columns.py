"""Private columns: real numpy, Arrow, pandas and polars ones."""

import array
import datetime
import math
from collections.abc import Callable
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

from privet.errors import DataError
from privet.exact.columns import as_floats

VALUES: list[float | None] = [1.5, None, -2.0, math.inf]

FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "numpy": lambda values: np.array([math.nan if v is None else v for v in values]),
    "numpy objects": lambda values: np.array(values, dtype=object),
    "masked": lambda values: np.ma.array([v or 0 for v in values], mask=[v is None for v in values]),
    "masked objects": lambda values: np.ma.array(values, mask=[v is None for v in values], dtype=object),
    "Arrow": pa.array,
    "Arrow chunks": lambda values: pa.chunked_array([values[:1], values[1:]], type=pa.float64()),
    "pandas": lambda values: pd.Series(values, dtype="float64"),
    "pandas objects": lambda values: pd.Series(values, dtype="object"),
    "pandas nullable": lambda values: pd.Series(values, dtype="Float64"),
    "pandas on Arrow": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.float64())),
    "pandas index": lambda values: pd.Index(values, dtype="float64"),
    "polars": lambda values: pl.Series(values, dtype=pl.Float64),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_reads_the_same(form: str) -> None:
    got = as_floats(FORMS[form](VALUES))
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, [1.5, math.nan, -2.0, math.inf])


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40)
@given(rows=st.lists(st.one_of(st.none(), st.floats(allow_nan=False)), min_size=1, max_size=6), data=st.data())
def test_a_row_is_read_by_itself(form: str, rows: list[float | None], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(rows) - 1))
    other = list(rows)
    other[at] = data.draw(st.one_of(st.none(), st.floats()))
    one, two = as_floats(FORMS[form](rows)), as_floats(FORMS[form](other))
    np.testing.assert_array_equal(np.delete(one, at), np.delete(two, at))


@pytest.mark.parametrize(
    ("column", "floats"),
    [
        (range(3), [0, 1, 2]),
        (array.array("i", [1, 2]), [1, 2]),
        (pd.Series([1, None], dtype="Int64"), [1, math.nan]),
        (pd.Series([True, None], dtype="boolean"), [1, math.nan]),
        (pd.Series([1, 2], dtype="uint8"), [1, 2]),
        (pd.Series([Decimal("1.5"), "x", pd.NA], dtype="object"), [1.5, math.nan, math.nan]),
        (pl.Series([1, None], dtype=pl.Int32), [1, math.nan]),
        (pl.Series([True, None]), [1, math.nan]),
        (pl.Series([Decimal("1.50"), None]), [1.5, math.nan]),
        (pl.Series([None, None]), [math.nan, math.nan]),
        (pa.array([Decimal("1.5"), None]), [1.5, math.nan]),
        (pa.array([None, 2**63 - 1]), [math.nan, 2.0**63]),
        ([Fraction(1, 3), 10**400, -(10**400), "7", b"7", 1j, datetime.date(2020, 1, 1), Decimal("sNaN")], None),
    ],
)
def test_other_columns_of_numbers(column: Any, floats: list[float] | None) -> None:
    wanted = [1 / 3, math.inf, -math.inf, *[math.nan] * 5] if floats is None else floats
    np.testing.assert_array_equal(as_floats(column), wanted)


def strange(values: list[Any]) -> list[Any]:
    """Columns that hold no numbers by their declared type, whatever is in them."""
    texts = [None if v is None else str(v) for v in values]
    dates = [None if v is None else datetime.date(2020, 1, 1 + int(v)) for v in values]
    return [
        pd.Series(texts, dtype="string"),
        pd.Series(texts, dtype="category"),
        pd.Series(pd.to_datetime(dates)),
        pd.Series(texts, dtype=pd.ArrowDtype(pa.string())),
        pd.Series(dates, dtype=pd.ArrowDtype(pa.date32())),
        pl.Series(texts, dtype=pl.String),
        pl.Series(dates, dtype=pl.Date),
        pl.Series(texts, dtype=pl.Categorical),
        pl.Series([None if v is None else [v] for v in values], dtype=pl.List(pl.Int64)),
        pl.Series(values, dtype=pl.Int128),
        pa.array(texts, pa.string()),
        pa.array(values, pa.int64()).dictionary_encode(),
        pa.array(dates, pa.date32()),
        np.array([str(v) for v in values]),
        np.array(dates, dtype="datetime64[D]"),
        np.array([[v or 0] for v in values]),
        pd.DataFrame({"a": values}),
        pl.DataFrame({"a": values}),
        pa.table({"a": values}),
        {"a": values},
        set(values),
        "12",
        b"12",
        7,
        None,
    ]


def test_what_is_refused_depends_on_the_type_alone() -> None:
    texts = []
    for values in ([1, 2, 3], [1, None, 3], [None, None, 9]):
        said = []
        for column in strange(values):
            with pytest.raises(DataError, match="Write, for example") as caught:
                as_floats(column)
            said.append(str(caught.value))
        texts.append(said)
    assert texts[0] == texts[1] == texts[2]


def test_a_bad_byte_in_text_on_arrow_does_not_show() -> None:
    bad = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    for column in (bad, pd.Series(pd.arrays.ArrowExtensionArray(bad)), pl.Series([b"\xff"])):
        with pytest.raises(DataError) as caught:
            as_floats(column)
        assert "\\xff" not in str(caught.value)
        assert "�" not in str(caught.value)


def test_nulls_inside_a_dictionary_are_not_read() -> None:
    """Arrow fails to unify such chunks only if one row is null: refused before, by type."""
    for last in (8, None):
        chunks = [pa.array(part).dictionary_encode(null_encoding="encode") for part in ([3, 4], [7, last])]
        column = pa.chunked_array(chunks)
        for form in (column, pd.Series(pd.arrays.ArrowExtensionArray(column))):
            with pytest.raises(DataError, match="dictionary"):
                as_floats(form)
