"""Values that can be released: a number, a list of numbers, or an array."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.errors import DataError, write
from privet.exact import Exact, binary
from privet.exact.lattice import Integers, array_to_steps, to_steps


@dataclass(frozen=True, slots=True)
class Value:
    """A parsed value: an int, a Fraction, or an array of integers, of floats or (from a list) of both."""

    content: Any
    real: bool
    listed: bool = False

    @property
    def scalar(self) -> bool:
        """Whether it is one number."""
        return not isinstance(self.content, np.ndarray)

    @property
    def array(self) -> NDArray[Any]:
        """Its numbers as an array, with no dimensions for a single number."""
        return np.asarray(self.content, dtype=object) if self.scalar else self.content

    @property
    def length(self) -> int:
        """The number of coordinates."""
        return max(1, self.array.size)

    def steps(self, step: Exact) -> Integers:
        """Its coordinates as a flat array of lattice steps."""
        flat: Integers = self.array.ravel()
        if flat.dtype == np.float64:
            return array_to_steps(flat, step)
        if step == 1 and not self.real:
            return flat
        return np.array([to_steps(Fraction(x), step) for x in flat.tolist()], dtype=object)

    def like(self, entries: NDArray[Any]) -> Any:
        """Numbers in the form of this value: one number, a list, or an array of its shape."""
        if self.scalar:
            return entries.item()
        return entries.tolist() if self.listed else entries.reshape(self.content.shape)


def read(value: Any) -> Value:
    """Parse a value; errors depend on its type and, for floats, on whether they are finite."""
    if type(value) is int:  # the two most frequent types first, because the other checks are slow
        return Value(value, real=False)
    if type(value) is float and math.isfinite(value):
        return Value(binary(value), real=True)
    if isinstance(value, np.ma.MaskedArray):  # masked values would be released without noise
        raise DataError("a masked array can't be released", remedy=write("release(values.filled(0))"))
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        return Value(np.asarray(value), real=False)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.dtype.itemsize <= 8:
        if not np.isfinite(value).all():
            raise _not_finite()
        return Value(np.asarray(value).astype(np.float64), real=True)
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        lines = {"b": "release(values.astype(int))", "f": "release(values.astype(float))"}
        line = lines.get(value.dtype.kind, "release(np.array([1.5, 2.5]))")
        raise DataError(f"an array of {value.dtype} can't be released", remedy=write(line))
    if isinstance(value, list | tuple | np.ndarray):
        items = [_scalar(item) for item in (value.ravel() if isinstance(value, np.ndarray) else value)]
        content = np.empty(len(items), dtype=object)
        content[:] = [item.content for item in items]
        shaped = content.reshape(value.shape) if isinstance(value, np.ndarray) else content
        return Value(shaped, any(item.real for item in items), listed=not isinstance(value, np.ndarray))
    return _scalar(value)


def _scalar(value: Any) -> Value:
    """A number by its exact value: a float wider than 64 bits is not rounded first, which would move it."""
    if not isinstance(value, bool | np.timedelta64):
        if isinstance(value, numbers.Integral):
            return Value(int(value), real=False)
        if isinstance(value, numbers.Real | Decimal) and hasattr(value, "as_integer_ratio"):
            try:
                return Value(Fraction(*value.as_integer_ratio()), real=True)
            except (ValueError, OverflowError):
                raise _not_finite() from None
    line = "release(column.to_numpy())" if hasattr(value, "to_numpy") else "release(1234)"
    raise DataError(
        f"a released value must be a number, a list of numbers or a numpy array, not {type(value).__name__}",
        remedy=write(line),
    )


def _not_finite() -> DataError:
    return DataError(
        "NaN and infinity can't be released: no sensitivity covers them",
        remedy=write("release(value if math.isfinite(value) else 0)"),
    )
