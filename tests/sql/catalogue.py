"""The tables that the statements of these tests ask, and how a golden file is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import privet as pv
from privet.sql import parse
from privet.tables.query import Query
from privet.tables.relation import PublicTable, Table
from privet.tables.schema import PublicSchema, Schema
from privet.tables.types import KeyType, NumberType

GOLDEN = Path(__file__).parents[1] / "golden" / "sql"

PEOPLE = Table(
    Schema.declare(
        "people",
        protect=pv.person("person_id", max_rows=1),
        columns={
            "region": pv.keys("north", "south", other="elsewhere"),
            "zone": pv.keys(1, 2, 3),
            "age": pv.integer(0, 110),
            "income": pv.number(0, 200_000),
            "hours": pv.integer(1, 60, required=True),
            "rate": pv.number(-0.5, 0.5),
            "smoker": pv.boolean(),
            "name": pv.text(),
            "day": pv.date("2024-01-01", "2025-12-31"),
            "born": pv.date("1950-01-01", "1950-12-31"),
            "seen": pv.timestamp("2025-01-01", "2025-01-07T23:59:59"),
            "Work Place": pv.keys("home", "office"),
        },
    ),
    None,
)
VISITS = Table(
    Schema.declare(
        "visits",
        protect=pv.person("person_id", max_rows=20),
        columns={
            "amount": pv.number(0, 2_000),
            "kind": pv.keys("call", "stay"),
            "visited": pv.date("2025-01-01", "2025-12-31"),
        },
    ),
    None,
)
ROWS = Table(
    Schema.declare(
        "readings", protect=pv.each_row(), columns={"value": pv.integer(-10, 10), "Value": pv.integer(0, 1)}
    ),
    None,
)
REGIONS = PublicTable(
    PublicSchema(
        "regions",
        "code",
        (
            ("code", KeyType(("north", "south"), missing=False)),
            ("area", NumberType(Fraction(1), Fraction(9))),
            ("coast", KeyType(("yes", "no"), missing=False)),
        ),
        "0" * 64,
    ),
    None,
)
_REGIONS = {"X": ["north", "south"], "Y": ["west"]}
_TOWNS = {"north": ["a", "b"], "south": ["c"], "west": ["d", "e", "f"]}
PLACES = Table(
    Schema.declare(
        "places",
        protect=pv.each_row(),
        columns={
            "country": pv.keys(*_REGIONS),
            "region": pv.keys(_REGIONS, within="country"),
            "town": pv.keys(_TOWNS, within="region"),
            "year": pv.integer(2023, 2025),
        },
    ),
    None,
)
TABLES = {table.name: table for table in (PEOPLE, VISITS, ROWS)}
PUBLIC = {"regions": REGIONS}


def asked(text: str) -> Query:
    """What a statement asks of these tables."""
    more = {"places": PLACES} if "places" in str(text) else {}  # errors about the others don't list it
    return parse(text, TABLES | more, PUBLIC)


@dataclass(frozen=True, slots=True)
class Pair:
    """A statement, and what belongs to it."""

    name: str
    sql: str
    other: str


def pairs(path: Path, mark: str) -> Iterator[Pair]:
    """The entries of a golden file: `-- name`, the statement, then lines that begin with a mark."""
    for block in path.read_text(encoding="utf-8").split("\n-- ")[1:]:
        name, _, rest = block.partition("\n")
        sql, _, other = rest.partition(f"\n{mark}")
        yield Pair(name, sql, other.strip("\n"))
