"""Public tables, sent to Spark with each question that joins them: nothing is written there."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from privet.engines.base import Source
from privet.engines.spark.types import identifier, stored
from privet.errors import Remedy, UserError
from privet.tables.stored_types import StoredType

LARGEST = 32_000_000
"""Characters of a public table as it is sent: Spark Connect takes messages of up to 128 megabytes."""
_TYPES = {
    "integer": "bigint",
    "float": "double",
    "boolean": "boolean",
    "text": "string",
    "date": "date",
    "timestamp": "timestamp_ntz",
}
_READ = {
    "date": "date_from_unix_date({})",
    "timestamp_ntz": "timestampadd(MICROSECOND, {}, TIMESTAMP_NTZ '1970-01-01 00:00:00')",
}
_SENT = {"date": "int", "timestamp_ntz": "bigint"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Shipped:
    """A public table as JSON, which is bound as a parameter."""

    number: int
    types: Mapping[str, StoredType]
    text: str = field(repr=False)

    @property
    def parameter(self) -> str:
        """The name of the parameter."""
        return f"public{self.number}"

    @property
    def rows(self) -> str:
        """Its rows, as a subquery."""
        fields = ", ".join(f"c{i}: {_SENT.get(kind.name, kind.name)}" for i, kind in enumerate(self.types.values()))
        columns = [
            f"{_READ.get(kind.name, '{}').format(f'c{i}')} AS {identifier(name)}"
            for i, (name, kind) in enumerate(self.types.items())
        ]
        rows = f"SELECT inline(from_json(:{self.parameter}, 'array<struct<{fields}>>'))"
        return f"(SELECT {', '.join(columns)} FROM ({rows}))"


def shipped(source: Source, number: int) -> Shipped:
    """The rows of a public table."""
    rows: Any = getattr(source, "rows", None)
    kinds = {name: _TYPES.get(kind.family) for name, kind in source.types().items()}
    if rows is None or not all(kinds.values()):
        raise UserError("the engine 'spark' can't read a public table of this kind")
    types = {name: stored(kind) for name, kind in kinds.items() if kind is not None}
    columns = [map(_plain, rows.column(name).to_pylist()) for name in types]
    text = json.dumps([{f"c{i}": v for i, v in enumerate(row) if v is not None} for row in zip(*columns, strict=True)])
    if len(text) > LARGEST:
        raise UserError(
            "a public table is too large to be sent to Spark with each question",
            allowed=f"It may take {LARGEST:,} characters, and takes {len(text):,}",
            remedy=Remedy("Keep only the rows and the columns that are joined"),
        )
    return Shipped(number, types, text)


def _plain(value: Any) -> Any:
    """What JSON has for it: days and microseconds since 1970; NaN is missing."""
    match value:
        case float() if math.isnan(value):
            return None
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case datetime():
            since = value.replace(tzinfo=UTC) - _EPOCH
            return (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
        case date():
            return (value - _EPOCH.date()).days
    return value
