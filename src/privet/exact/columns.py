"""Private columns as floats: lists, and numpy, Arrow, pandas and polars columns.

Errors depend only on the declared type and the shape, which are public, never on a row.
"""

from __future__ import annotations

import array
import math
import numbers
import re
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import DataError, write

Floats = NDArray[np.float64]

# by name, because these libraries need not be installed
_ARROW = re.compile(r"(u?int(8|16|32|64)|halffloat|float|double|decimal\d+\(.+\)|bool|null)\Z")
_POLARS = re.compile(r"(U?Int(8|16|32|64)|Float(32|64)|Decimal\(.+\)|Boolean|Null)\Z")


def as_floats(data: Any) -> Floats:
    """Each value as the nearest 64-bit float; NaN if it is missing or not a number.

    Claim: a total function of each value, independent of the others.

    Example:
        >>> as_floats([1, None, "x", 10**400, True]).tolist()
        [1.0, nan, nan, inf, 1.0]
    """
    with np.errstate(all="ignore"):  # a warning would depend on a row
        if isinstance(data, list | tuple | range):
            return _each(data)
        library = type(data).__module__.partition(".")[0]
        if library == "pyarrow":
            return _from_arrow(data)
        if library == "pandas":
            return _from_pandas(data)
        if library == "polars" and hasattr(data, "dtype"):
            if not _POLARS.match(str(data.dtype)):
                raise _refusal(f"polars {type(data).__name__} of {data.dtype.base_type().__name__}")
            return _from_arrow(data.to_arrow())
        if isinstance(data, np.ndarray | array.array):
            return _from_numpy(np.ma.asanyarray(data))
    raise _refusal(type(data).__name__, a_table=hasattr(data, "columns"))


def _each(values: Any) -> Floats:
    return np.array([_float(value) for value in values], dtype=np.float64)


def _from_numpy(column: np.ma.MaskedArray[Any, Any]) -> Floats:
    if column.ndim != 1 or column.dtype.kind not in "fiubO":
        raise _refusal(f"{column.ndim}-dimensional array of {column.dtype.type.__name__}")
    floats = _each(column.data) if column.dtype.kind == "O" else np.array(column.data, dtype=np.float64)
    floats[np.ma.getmaskarray(column)] = np.nan  # masked values are missing
    return floats


def _from_arrow(column: Any) -> Floats:
    kind = str(getattr(column, "type", ""))
    if not _ARROW.match(kind) or not hasattr(column, "to_numpy"):
        raise _refusal(f"{type(column).__name__} of {kind}" if kind else type(column).__name__, a_table=not kind)
    return _from_numpy(np.ma.asanyarray(column.to_numpy(zero_copy_only=False)))


def _from_pandas(column: Any) -> Floats:
    """A numpy column, a nullable column of numbers, or an Arrow column; not categories, text or dates."""
    dtype = getattr(column, "dtype", None)
    if dtype is None or column.ndim != 1:
        raise _refusal(type(column).__name__, a_table=True)
    if hasattr(dtype, "pyarrow_dtype"):
        return _from_arrow(column.array.__arrow_array__())
    if isinstance(dtype, np.dtype):
        return _from_numpy(np.ma.asanyarray(column.to_numpy()))
    if getattr(dtype, "kind", "") in tuple("fiub") and hasattr(dtype, "numpy_dtype"):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    raise _refusal(f"{type(column).__name__} of {dtype.name if hasattr(dtype, 'name') else dtype}")


def _float(value: Any) -> float:
    if isinstance(value, numbers.Real | Decimal | np.bool_):
        try:
            return float(value)
        except OverflowError:
            pass
        except Exception:  # a signalling NaN, or an object that only looks like a number
            return math.nan
        try:
            return math.inf if value > 0 else -math.inf  # type: ignore[operator]
        except Exception:
            return math.nan
    return math.nan


def _refusal(kind: str, *, a_table: bool = False) -> DataError:
    example = 'table["salary"]' if a_table else "[52_000, 61_000]"
    return DataError(
        f"data must be a list of numbers, or one column of numbers (numpy, Arrow, pandas, polars), not {kind}",
        remedy=write(f"mean({example}, lower=0, upper=200_000, epsilon=0.5)"),
    )
