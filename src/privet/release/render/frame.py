"""An answer as columns: Arrow tables, and files of them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from privet.errors import UserError, write
from privet.exact import Exact, nearest
from privet.planner.outputs import Cell
from privet.tables.types import KeyValue

if TYPE_CHECKING:
    import pyarrow as pa

    from privet.release.answer import Release

BESIDE = ("", "_low", "_high", "_noisy")
"""How the columns of a frame are called, after the name: the value, its interval, and its mark."""


def arrow(answer: Release, *, intervals: bool = True) -> pa.Table:
    """Each column `n` is followed by `n_low`, `n_high` and `n_noisy`; the notes are in the metadata."""
    import pyarrow as pa

    columns: list[tuple[str, list[Any], pa.DataType]] = [
        (name, values, _key_type(every[0]))
        for every, (name, values) in zip(answer.plan.query.domains(), answer.shown_keys(), strict=True)
    ]
    for name, cells in answer.shown.items():
        kind = _number_type(_every(answer, name))
        numbers = [(cells.values, kind), (cells.low, kind), (cells.high, kind), (cells.noisy, pa.bool_())]
        columns += [
            (name + end, [_fitting(x, of) for x in part], of)
            for end, (part, of) in zip(BESIDE, numbers, strict=True)
            if intervals or not end
        ]
    names = [name for name, _, _ in columns]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(
            f"with intervals, two columns would be called {twice[0]!r}",
            remedy=write("to_arrow(intervals=False)", sql=f"{twice[0]} AS another_name"),
        )
    table = pa.table([pa.array(values, kind) for _, values, kind in columns], names=names)
    return table.replace_schema_metadata({"notes": "\n".join(answer.notes())})


def csv(answer: Release, *, intervals: bool = True, notes: bool = False) -> str:
    """The columns of `arrow` as CSV; with `notes`, they stand before it in lines that begin with #."""
    import pyarrow.csv as pc

    pc.write_csv(arrow(answer, intervals=intervals), sink := io.BytesIO())
    above = [f"# {line}\n" for note in answer.notes() for line in note.splitlines()] if notes else []
    return "".join(above) + sink.getvalue().decode()


def parquet(answer: Release, facts: str) -> bytes:
    """The columns of `arrow` as a Parquet file, with facts about the answer, as JSON, in its metadata."""
    import pyarrow.parquet as pq

    pq.write_table(arrow(answer).replace_schema_metadata({"privet": facts}), sink := io.BytesIO())
    return sink.getvalue()


def _every(answer: Release, column: str) -> tuple[Cell, ...]:
    """All numbers of a column, of groups that are not shown too: its type must not follow from what is shown."""
    assert answer.cells is not None
    cells = answer.cells[column]
    return (*cells.values, *cells.low, *cells.high)


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


def _fitting(x: Cell, kind: pa.DataType) -> Cell | Decimal:
    import pyarrow as pa

    if pa.types.is_floating(kind):
        return x if isinstance(x, float) else nearest(Exact(x))
    return Decimal(x) if pa.types.is_decimal(kind) else x
