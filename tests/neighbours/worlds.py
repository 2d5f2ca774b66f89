"""Worlds from a seed: declared tables, hostile rows in them, and neighbours. The same seed, the same world, everywhere.

A world has one or two private tables about the same people (or one whose rows are protected each by itself), and public
tables. Rows are kept as Python dicts, so that neighbours are easy to make; `arrow` makes of them what users hand in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa

import privet as pv
from privet.exact import Exact, nearest
from privet.privacy.adjacency import Adjacency, Person, Protected
from privet.tables.relation import PublicTable, Table
from privet.tables.schema import Column
from privet.tables.types import NumberType

Row = dict[str, Any]
Data = dict[str, list[Row]]
"""The rows of each table."""

ID = "who"

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
FLOATS: list[Any] = [
    None, math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 1e-320, 1e308, -1.7976931348623157e308, 2.0**63,
    -(2.0**63), 2.0**53 + 2, 1e15 + 0.5, 0.49999999999999994, -0.5,
]  # fmt: skip
INTEGERS: list[Any] = [None, 0, 1, -1, INT64_MIN, INT64_MIN + 1, INT64_MAX, 2**53 + 1, -(2**62) - 1, 2**62 + 1]
TEXTS: list[Any] = [
    None, "", "a", "A", "a ", "b", "north", "NORTH", "élan", "e\u0301lan", "\u202eabc", "😀", "'; DROP TABLE t0; --",
    '"', "nul\x00nul", "NaN", "1e999", "ß", "x" * 3000, "\ufeff", "другое", "0", "7", "elsewhere", "true", "2024-01-01",
]  # fmt: skip

NUMBERS: list[tuple[Any, Any, Any]] = [
    (0, 1, None), (-1, 1, None), (0.1, 0.3, None), (0, 200_000, None), (-200_000, -7.5, None), ("1/3", "2/3", None),
    (0, 10, 3), (0, 10, "0.1"), (-0.5, 0.5, 0.25), (0, 1e6, 1e6), (-3, 8, "1/7"), (2**52 + 512, 2**52 + 513, None),
    (2**52 + 512, 2**52 + 513, 1), (0, 1e-100, None), (-1e-140, 1e-140, None), (-5, 1e140, None), (1e120, 1e121, None),
    (-(2**60), 2**60, 2**20), (5, 6, None), (0, 2**52, 1), (-7, 7, 2),
    # tenths, thirds and sevenths: not floats, nor are their sums
    (0, "0.3", "0.1"), ("0.1", "0.7", "0.1"), ("-0.3", "0.3", "0.1"), (0, 1, "1/3"), (-1, "5/3", "1/3"), (0, 1, "1/7"),
    ("0.1", "0.35", "0.05"), (0, 3, "0.25"), (0, "1.1", "0.01"), (2**53, 2**53 + 8, "0.5"), ("-1/3", "1/3", None),
]  # fmt: skip
WHOLES = [
    (0, 110), (-3, 3), (0, 1), (5, 6), (-(2**62), -(2**62) + 9), (2**62 - 9, 2**62), (0, 2**52), (-(2**51), 2**51),
    (-100, -90), (2**53 - 2, 2**53 + 2), (2**53 - 600, 2**53 + 600), (2**55 - 20, 2**55 + 20),
    (2**60 - 500, 2**60 + 500), (2**62 - 300, 2**62), (-(2**62), -(2**62) + 300), (2**62 - 257, 2**62 - 256),
]  # fmt: skip
TIMES = [("2024-02-01", "2024-03-10"), ("1999-12-31", "2000-01-01"), ("0002-01-01", "9000-12-31"), ("2020-02-29",) * 2]

DAYS: list[Any] = [None, 0, -719_162, 2_932_896, -(2**31) + 1, 2**31 - 1, -(2**31), 10**6 * 40]
"""Dates that Python has none of among them: DuckDB reads the extremes as infinite."""
MICROS: list[Any] = [None, 0, INT64_MAX, INT64_MIN, -INT64_MAX, 253_402_300_800_000_000, -62_135_596_800_000_001]


@dataclass(frozen=True)
class Made:
    """A declared column: how it is declared, its Arrow type, and the values that may stand in it."""

    declared: Column
    arrow: Any
    values: list[Any]


@dataclass
class World:
    """Declarations and rows."""

    protect: Protected
    adjacency: Adjacency
    columns: dict[str, dict[str, Made]]
    """By table, by name."""
    ids: list[Any]
    id_types: dict[str, Any]
    data: Data
    public: list[PublicTable]
    rows: int | None = None
    tables: dict[str, Table] = field(default_factory=dict)
    varied: tuple[str, ...] = ()
    """Columns in which rows of one person that are alike otherwise differ, some of the time."""

    @property
    def person(self) -> bool:
        return isinstance(self.protect, Person)

    @property
    def settled(self) -> bool:
        """Whether every row stays in every neighbour, and has every value."""
        columns = [what.declared for made in self.columns.values() for what in made.values()]
        return not self.person and self.adjacency is Adjacency.REPLACE and all(c.required for c in columns)

    def arrow(self, name: str, rows: Sequence[Row], chunks: int = 1) -> Any:
        """The rows of a table, as a user would hand them in."""
        made: dict[str, Any] = {}
        if self.person:
            made[ID] = array([row[ID] for row in rows], self.id_types[name])
        for column, what in self.columns[name].items():
            made[column] = array([row[column] for row in rows], what.arrow)
        table = pa.table(made)
        if chunks < 2 or len(rows) < 2:
            return table
        cut = len(rows) // 2
        return pa.concat_tables([table.slice(0, cut), table.slice(cut)])

    def declare(self, name: str, rows: Sequence[Row], chunks: int = 1, source: Any = None) -> Table:
        """The table, through the public API."""
        return self._declared(name, self.arrow(name, rows, chunks) if source is None else source, self.rows)

    def read(self, name: str, rows: Sequence[Row], chunks: int = 1) -> Any:
        """The rows as the public API reads them; a declared number of rows is not compared, which takes long."""
        return self._declared(name, self.arrow(name, rows, chunks), None).source.rows

    def _declared(self, name: str, source: Any, rows: int | None) -> Table:
        return pv.table(
            name,
            source,
            protect=self.protect,
            adjacency=self.adjacency,
            columns={column: what.declared for column, what in self.columns[name].items()},
            rows=rows,
        )


def array(values: Sequence[Any], kind: Any) -> Any:
    """An Arrow array; dates and timestamps are given as integers, so that every bit pattern can be."""
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    if pa.types.is_dictionary(kind):
        return pa.array(values, kind.value_type).dictionary_encode()
    return pa.array(values, kind, from_pandas=False)


def owner(value: Any) -> Any:
    """Whose row it is; None: nobody's."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value + 0.0 if isinstance(value, float) else value


def people(data: Data) -> list[Any]:
    """Everybody who has a row."""
    found = dict.fromkeys(owner(row[ID]) for rows in data.values() for row in rows)
    return [who for who in found if who is not None]


# --- columns --------------------------------------------------------------------------------------


def _number(chance: Random, required: float = 0.4) -> Made:
    lower, upper, step = chance.choice(NUMBERS)
    declared = pv.number(lower, upper, step=step, required=chance.random() < required)
    low, high = float(declared.type.lower), float(declared.type.upper)  # type: ignore[union-attr]
    inside = [low, high, low, high, (low + high) / 2, low + (high - low) * chance.random()]
    inside += [math.nextafter(x, side) for x in (low, high) for side in (-math.inf, math.inf)]
    if step is not None:  # on a step, half way to the next, and beside
        at = float(declared.type.lower + declared.type.step * chance.randrange(4))  # type: ignore[union-attr,operator]
        half = at + float(declared.type.step) / 2  # type: ignore[union-attr,arg-type]
        inside += [at, half, math.nextafter(half, math.inf), math.nextafter(half, -math.inf)]
    outside = [low - 1, high + 1, -low, 2 * high]
    kind = chance.choices(["float64", "float32", "int64", "uint64", "decimal"], [6, 1, 1, 1, 1])[0]
    if kind == "float64":
        return Made(declared, pa.float64(), inside * 2 + outside + FLOATS)
    if kind == "float32":
        return Made(declared, pa.float32(), [None, math.nan, math.inf, -math.inf, 0.0, 1.5, -3.25, 3.4e38, 1e-45])
    if kind == "int64":
        return Made(declared, pa.int64(), [max(min(int(x), INT64_MAX), INT64_MIN) for x in inside + outside] + INTEGERS)
    if kind == "uint64":
        return Made(declared, pa.uint64(), [None, 0, 1, 7, 2**63, 2**64 - 1, 2**52 + 513])
    wide = [Decimal(10) ** 27, -(Decimal(10) ** 27), Decimal("0.3333333333"), Decimal("-7.5"), Decimal(0), None]
    return Made(declared, pa.decimal128(38, 10), wide)


def _integer(chance: Random, required: float = 0.4) -> Made:
    lower, upper = chance.choice(WHOLES)
    declared = pv.integer(lower, upper, required=chance.random() < required)
    values = [
        lower,
        upper,
        (lower + upper) // 2,
        chance.randint(lower, upper),
        lower - 1,
        upper + 1,
        lower + 1,
        upper - 1,
    ]
    kind = chance.choices(["int64", "float64", "int8"], [5, 2, 1])[0]
    if kind == "float64":
        return Made(declared, pa.float64(), [float(x) for x in values] * 2 + FLOATS)
    if kind == "int8":
        return Made(declared, pa.int8(), [None, -128, 127, 0, 1, 5, -3])
    return Made(declared, pa.int64(), values * 2 + INTEGERS)


def _boolean(chance: Random, required: float = 0.4) -> Made:
    return Made(pv.boolean(required=chance.random() < required), pa.bool_(), [True, False, None])


def _keys(chance: Random) -> Made:
    if chance.random() < 0.6:
        names = chance.sample(["a", "b", "north", "élan", "😀", "0", "7", "'; DROP TABLE t0; --"], chance.randint(1, 5))
        other = chance.choice([None, "elsewhere"])
        kind = pa.string() if chance.random() < 0.7 else pa.dictionary(pa.int32(), pa.string())
        return Made(pv.keys(*names, other=other), kind, names * 3 + TEXTS)
    numbers = chance.choice([[1, 2, 3], [0], [-5, 7, 2**62], [10, 20, -(2**62)]])
    other_number = chance.choice([None, 99])
    return Made(pv.keys(*numbers, other=other_number), pa.int64(), numbers * 3 + [99, *INTEGERS])


def _text(chance: Random) -> Made:
    return Made(pv.text(), chance.choice([pa.string(), pa.large_string()]), TEXTS)


def _date(chance: Random) -> Made:
    first, last = chance.choice(TIMES)
    low, high = ((date.fromisoformat(x) - date(1970, 1, 1)).days for x in (first, last))
    values = [low, high, (low + high) // 2, chance.randint(low, high), low - 1, high + 1]
    return Made(pv.date(first, last), pa.date32(), values * 2 + DAYS)


def _timestamp(chance: Random) -> Made:
    first, last = chance.choice(TIMES)
    declared = pv.timestamp(first, last)
    epoch = datetime(1970, 1, 1)
    low, high = (int((datetime.fromisoformat(x) - epoch).total_seconds()) * 1_000_000 for x in (first, last))
    values = [low, high, (low + high) // 2, chance.randint(low, high), low - 1, high + 1]
    zone = chance.choice([None, None, "UTC", "Asia/Tokyo"])
    return Made(declared, pa.timestamp("us", tz=zone), values * 2 + MICROS)


KINDS: dict[str, Callable[..., Made]] = {
    "x": _number, "y": _number, "i": _integer, "b": _boolean, "k": _keys, "c": _keys, "t": _text, "d": _date,
    "s": _timestamp,
}  # fmt: skip


def column_set(chance: Random, suffix: str = "") -> dict[str, Made]:
    """Some columns: numbers and keys nearly always."""
    names = [name for name in KINDS if chance.random() < (0.9 if name in "xk" else 0.8 if name == "i" else 0.5)] or [
        "x"
    ]
    return {name + suffix: KINDS[name](chance) for name in names}


def settled_columns(chance: Random) -> dict[str, Made]:
    """Numbers and booleans, each of them required: no row of such a table can lack a value."""
    made = {name: KINDS[kind](chance, 1.0) for name, kind in zip("xyijb", "xyiib", strict=True)}
    return {name: made[name] for name in made if chance.random() < 0.7} or {"b": made["b"]}


# --- worlds ---------------------------------------------------------------------------------------

IDS: list[tuple[Any, list[Any]]] = [
    (pa.int64(), [1, 2, 3, INT64_MIN, INT64_MAX, None]),
    (pa.float64(), [1.0, 2.0, 0.0, -0.0, math.inf, math.nan, None, 5e-324]),
    (pa.string(), ["a", "A", "", "a ", "e\u0301", "é", None, "1"]),
]


SETTLED = 0.35
"""How many of the worlds are such that every row stays, and has every value, in every neighbour."""


def world(chance: Random, *, person: bool | None = None, adjacency: str | None = None) -> World:
    """A world: declarations, public tables, and rows."""
    if person is None and adjacency is None and chance.random() < SETTLED:
        return settled(chance)
    protects_person = chance.random() < 0.5 if person is None else person
    protect: Protected = pv.each_row()
    if protects_person:
        protect = chance.choice(
            [
                pv.person(ID, max_rows=chance.choice([1, 2, 3, 5])),
                pv.person(ID, max_groups=chance.choice([1, 2, 3]), max_rows_per_group=chance.choice([1, 2, 4])),
            ]
        )
    how = Adjacency(adjacency or chance.choice(["add/remove", "replace"]))
    columns = {"one": column_set(chance)}
    if protects_person and chance.random() < 0.5:
        columns["two"] = column_set(chance, "2")
    id_type, ids = chance.choice(IDS)
    id_types = dict.fromkeys(columns, id_type)
    if "two" in columns and chance.random() < 0.3 and id_type == pa.int64():
        ids, id_types["two"] = [1, 2, 3, 2**40, None], chance.choice([pa.float64(), pa.decimal128(30)])
    made = World(protect, how, columns, ids, id_types, {}, publics())
    most = chance.choice([0, 3, 8, 14])
    made.data = {name: [row(chance, made, name) for _ in range(chance.randint(0, most))] for name in columns}
    if not protects_person and how is Adjacency.REPLACE and made.data["one"] and chance.random() < 0.6:
        made.rows = len(made.data["one"])
    made.tables = {name: made.declare(name, rows) for name, rows in made.data.items()}
    return made


def settled(chance: Random) -> World:
    """A world where each row is protected and replaced, and lacks nothing: a sum then hides no more than its range."""
    columns = {"one": settled_columns(chance)}
    made = World(pv.each_row(), Adjacency.REPLACE, columns, [None], {"one": pa.int64()}, {}, publics())
    made.data = {"one": [row(chance, made, "one") for _ in range(chance.choice([1, 1, 2, 5]))]}
    if chance.random() < 0.5:
        made.rows = len(made.data["one"])
    made.tables = {"one": made.declare("one", made.data["one"])}
    return made


@cache
def publics() -> list[PublicTable]:
    """Public tables to join with: by a text, by an integer."""
    texts = pa.table(
        {"place": ["a", "north", "élan", "0", "elsewhere"], "area": [1.5, -2.0, None, 1e9, 0.25], "land": list("uvuvw")}
    )
    numbers = pa.table(
        {"code": [0, 1, 3, 99, 2**53 + 1], "big": [True, False, None, True, False], "size": [5, 6, 7, 8, 9]}
    )
    return [pv.public_table("places", texts, key="place"), pv.public_table("codes", numbers, key="code")]


def row(chance: Random, of: World, name: str, who: Any = None, told: Sequence[Exact] = ()) -> Row:
    """A row, of this person or of anybody."""
    made: Row = {}
    if of.person:
        made[ID] = chance.choice(of.ids) if who is None else who
    for column, what in of.columns[name].items():
        made[column] = chance.choice(what.values)
        kind = what.declared.type
        if isinstance(kind, NumberType) and chance.random() < 0.5:
            spoken = [n for n in told if kind.lower - 1 <= n <= kind.upper + 1]
            beside = near(chance, chance.choice(spoken), what) if spoken else None
            made[column] = made[column] if beside is None else beside
    return made


def near(chance: Random, number: Exact, what: Made) -> Any:
    """A value of a column at a number that a question speaks of, or beside it; None if the column can't hold it."""
    if pa.types.is_float64(what.arrow):
        at = nearest(number)
        return chance.choice([at, at, math.nextafter(at, math.inf), math.nextafter(at, -math.inf), -at])
    if pa.types.is_int64(what.arrow):
        beside = math.floor(number) + chance.choice(
            [0, 0, 1, -1, -1, 2, -2, chance.randint(-99, 0), chance.randint(0, 99)]
        )
        return beside if INT64_MIN <= beside <= INT64_MAX else None
    return None


def rows_of(chance: Random, of: World, name: str, who: Any, most: int = 9, told: Sequence[Exact] = ()) -> list[Row]:
    """Rows of one person: none, one, many; often many times the same, or the same but for the columns that vary."""
    count = chance.choice([0, 1, 2, most, most])
    apart = [column for column in of.varied if column in of.columns[name]]
    if apart and chance.random() < 0.6:
        alike = row(chance, of, name, who, told)
        return [alike | {c: chance.choice(of.columns[name][c].values) for c in apart} for _ in range(count)]
    if chance.random() < 0.5:
        return [row(chance, of, name, who, told)] * count
    return [row(chance, of, name, who, told) for _ in range(count)]


# --- neighbours -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Star:
    """Tables that differ in one unit alone: the others as they are, and this one without it or in several forms."""

    adjacency: Adjacency
    without: Data | None
    """Without the unit; None if every neighbour has as many rows."""
    forms: list[Data]

    def tables(self) -> list[Data]:
        """All of them."""
        return self.forms if self.without is None else [self.without, *self.forms]

    def pairs(self) -> list[tuple[int, int]]:
        """Which of them are neighbours."""
        size = len(self.tables())
        if self.adjacency is Adjacency.ADD_REMOVE:
            return [(0, i) for i in range(1, size)]
        return [(i, j) for i in range(size) for j in range(i + 1, size)]


def star(chance: Random, of: World, forms: int, told: Sequence[Exact] = ()) -> Star:
    """The world about one unit, by what is protected and by the adjacency; `told` are numbers to put into it."""
    if of.person:
        return _by_person(chance, of, forms, told)
    rows = of.data["one"]
    place = chance.randint(0, len(rows))
    if of.adjacency is Adjacency.REPLACE and rows:
        place = min(place, len(rows) - 1)
        before, after = rows[:place], rows[place + 1 :]
    else:
        before, after = rows[:place], rows[place:]
    made: list[Data] = [
        {"one": [*before, new, *after]} for new in (row(chance, of, "one", told=told) for _ in range(forms))
    ]
    if of.adjacency is Adjacency.ADD_REMOVE:
        return Star(of.adjacency, {"one": [*before, *after]}, made)
    return Star(of.adjacency, None, [{"one": list(rows)}, *made] if rows else [{"one": []}])


def _by_person(chance: Random, of: World, forms: int, told: Sequence[Exact]) -> Star:
    here = [i for i in of.ids if owner(i) is not None]
    who = chance.choice(here)
    others = {name: [r for r in rows if owner(r[ID]) != owner(who)] for name, rows in of.data.items()}
    made = [of.data] if owner(who) in people(of.data) else []
    while len(made) < forms:
        data = {name: list(rows) for name, rows in others.items()}
        for name, rows in data.items():
            for new in rows_of(chance, of, name, who, told=told):
                rows.insert(chance.randint(0, len(rows)), new)
        made.append(data)
    return Star(of.adjacency, others, made)


def shuffled(chance: Random, data: Data) -> Data:
    """The same rows in another order."""
    return {name: chance.sample(rows, len(rows)) for name, rows in data.items()}


def with_nobody(chance: Random, of: World) -> Data:
    """The same with further rows that belong to nobody."""
    nobody = [None, math.nan] if of.id_types["one"] == pa.float64() else [None]
    made = {name: list(rows) for name, rows in of.data.items()}
    for name, rows in made.items():
        for _ in range(4):
            new = row(chance, of, name)
            new[ID] = chance.choice(nobody)
            rows.insert(chance.randint(0, len(rows)), new)
    return made
