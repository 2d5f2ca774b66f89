"""An answer as columns: Arrow tables, and files of them."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from privet.errors import UserError, write
from privet.exact import Exact, nearest
from privet.planner import ReleasePlan
from privet.planner.computed import is_plain, is_whole
from privet.planner.outputs import Cell
from privet.tables.expressions.nodes import OfAnswer, Types
from privet.tables.query import Key
from privet.tables.types import KeyValue, TextType

if TYPE_CHECKING:
    import pyarrow as pa

    from privet.release.answer import Release

BESIDE = ("", "_low", "_high", "_noisy")
"""How the columns of a frame are called, after the name: the value, its interval, and its mark."""


def layout(plan: ReleasePlan, *, intervals: bool = True) -> list[tuple[str, str, int]]:
    """The columns of numbers that a frame has: the name, the column of the answer, and which part of it, as in BESIDE.

    An end of an interval, or what is computed from ends alone, has no interval beside it; and `n_low`, if it is the
    lower end of `n`, stands beside `n` anyway.
    """
    query = plan.query
    formulas, shown = dict(query.arrangement.computed), query.shown()
    found = []
    for name in shown:
        node = formulas.get(name)
        plain = node is not None and is_plain(plan, node)
        beside = isinstance(node, OfAnswer) and node.column in shown and name == f"{node.column}_{node.function}"
        if not (intervals and beside):
            found += [(name + end, name, i) for i, end in enumerate(BESIDE) if not i or (intervals and not plain)]
    return found


def named_twice(plan: ReleasePlan, *, intervals: bool = True) -> str | None:
    """A name that two columns of a frame would have."""
    names = [key.name for key in plan.query.keys] + [name for name, _, _ in layout(plan, intervals=intervals)]
    return min((name for name in names if names.count(name) > 1), default=None)


def arrow(answer: Release, *, intervals: bool = True) -> pa.Table:
    """Each column `n` is followed by `n_low`, `n_high` and `n_noisy`; the notes are in the metadata."""
    return columns(answer, intervals=intervals).replace_schema_metadata({"notes": "\n".join(answer.notes())})


def columns(answer: Release, *, intervals: bool = True) -> pa.Table:
    """The same without the notes."""
    import pyarrow as pa

    query, types = answer.plan.query, answer.plan.query.input.types()
    found: list[tuple[str, list[Any], pa.DataType]] = [
        (name, values, _key_type(every[0] if every else _unknown(key, types)))
        for key, every, (name, values) in zip(query.keys, query.domains(), answer.shown_keys(), strict=True)
    ]
    twice = named_twice(answer.plan, intervals=intervals)
    if twice is not None:
        raise UserError(
            f"with intervals, two columns would be called {twice!r}",
            remedy=write("to_arrow(intervals=False)", sql=f"{twice} AS another_name"),
        )
    kinds = {name: _number_type(_every(answer, name)) for name in answer.shown}
    for name, column, place in layout(answer.plan, intervals=intervals):
        cells = answer.shown[column]
        part = (cells.values, cells.low, cells.high, cells.noisy)[place]
        kind = pa.bool_() if place == len(BESIDE) - 1 else kinds[column]
        found.append((name, [_fitting(x, kind) for x in part], kind))
    return pa.table([pa.array(values, kind) for _, values, kind in found], names=[name for name, _, _ in found])


def csv(answer: Release, *, intervals: bool = True, notes: bool = False) -> str:
    """The columns of `arrow` as CSV; with `notes`, they stand before it in lines that begin with #.

    Texts that a spreadsheet would read as a formula are marked as texts (`inert`).
    """
    import pyarrow as pa
    import pyarrow.csv as pc

    table = columns(answer, intervals=intervals)
    for place, column in enumerate(table.columns):
        if pa.types.is_string(column.type):
            texts = [None if text is None else inert(text) for text in column.to_pylist()]
            table = table.set_column(place, table.field(place), pa.array(texts, pa.string()))
    pc.write_csv(table.rename_columns([inert(name) for name in table.column_names]), sink := io.BytesIO())
    above = [f"# {line}\n" for note in answer.notes() for line in note.splitlines()] if notes else []
    return "".join(above) + sink.getvalue().decode()


_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def inert(text: str) -> str:
    """A text for a spreadsheet: an apostrophe stands before one that would be a formula.

    Claim: no two texts become the same: an apostrophe is added where removing it leaves a formula, and nowhere else.

    Example:
        >>> inert("=1+2"), inert("'=1+2"), inert("-"), inert("Köln"), inert("'s-Gravenhage")
        ("'=1+2", "''=1+2", "'-", 'Köln', "'s-Gravenhage")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def parquet(answer: Release, facts: str) -> bytes:
    """The columns of `arrow` as a Parquet file, with facts about the answer, as JSON, in its metadata."""
    import pyarrow.parquet as pq

    pq.write_table(columns(answer).replace_schema_metadata({"privet": facts}), sink := io.BytesIO())
    return sink.getvalue()


def _every(answer: Release, column: str) -> tuple[Cell, ...]:
    """All numbers of a column, of groups that are not shown too: its type must not follow from what is shown."""
    assert answer.cells is not None
    cells = answer.cells[column]
    if not cells.values:  # a number such as those of a column in which no group was found
        return (0,) if is_whole(answer.plan, column) else (0.0,)
    return (*cells.values, *cells.low, *cells.high)


def _unknown(key: Key, types: Types) -> KeyValue:
    """A value such as those of a key of which none was found."""
    return "" if isinstance(key.expression.type(types), TextType) else 0


def _key_type(value: KeyValue) -> pa.DataType:
    import pyarrow as pa

    match value:
        case bool():
            return pa.bool_()
        case int():
            return pa.int64()
        case datetime():
            return pa.timestamp("us")
        case date():
            return pa.date32()
        case str():
            return pa.string()


def _number_type(numbers: Sequence[Cell]) -> pa.DataType:
    """The type that holds all of them: the values of a column, and the ends of its intervals."""
    import pyarrow as pa

    if not all(isinstance(x, int) for x in numbers):
        return pa.float64()
    most = max(map(abs, numbers))
    return pa.int64() if most < 2**63 else pa.decimal128(38) if most < 10**38 else pa.float64()


def _fitting(x: Cell, kind: pa.DataType) -> Cell | Decimal | None:
    import pyarrow as pa

    if isinstance(x, float) and math.isnan(x):
        return None
    if pa.types.is_floating(kind):
        return x if isinstance(x, float) else nearest(Exact(x))
    return Decimal(x) if pa.types.is_decimal(kind) else x
