"""Arithmetic at its limits: the SQL of every rule, at the ends of ranges near 2^62, 2^63, 2^125 and 2^126.

No integer on the way may leave its SQL type, which would be an error that depends on a row, and the result must be that
of Python's integers by the rules of `privet.tables.units`. The references here say what each rule does to n, without
SQL; where no bits are dropped, the result must also be the number itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests import movers
from tests.engines.databases import Checks, Database, InDuckDB, InPostgres, InSpark, Row

import privet as pv
from privet.engines.duckdb.dialect import DuckDBDialect
from privet.engines.duckdb.types import stored
from privet.engines.spark import addresses, sessions
from privet.engines.sql import arithmetic, hull, numbers
from privet.engines.sql.dialect import held
from privet.engines.sql.text import Layers, Value
from privet.errors import QueryError
from privet.exact.lattice import Bounds, to_steps
from privet.planner import plan
from privet.tables import schema as declared
from privet.tables import units
from privet.tables.schema import CEILING
from privet.tables.types import NumberType
from privet.tables.types import clipped as clipped_type
from privet.tables.units import LIMIT, NARROW, Range, shifted

SIZES = [1, 2, 3, 2**31, 2**61, NARROW - 1, NARROW, 2**63 - 1, 2**63, 2**64, 2**124, 2**125 - 1, 2**125, LIMIT - 1]
UNITS = [Fraction(1), Fraction(1, 2**32), Fraction(1, 10), Fraction(2**63), Fraction(3, 7), Fraction(1, 2**63)]


def spans() -> list[tuple[int, int]]:
    """Least and most of n: about 0, to one side of it, one value alone, and just below and above a limit."""
    found = [(-s, s) for s in SIZES] + [(0, s) for s in SIZES] + [(-s, 0) for s in SIZES]
    found += [(-s, s - 1) for s in SIZES] + [(-s + 1, s) for s in SIZES] + [(s, s) for s in SIZES]
    found += [(-s, -s) for s in SIZES] + [(s - 1, s) for s in SIZES] + [(1 - s, s // 2) for s in SIZES]
    return sorted(set(found))


SPANS = spans()


def corners(of: Range, more: Sequence[int] = ()) -> list[int | None]:
    """The ends of a range, what is beside them and beside 0, and missing."""
    near = {end + d for end in (of.least, of.most, 0, (of.least + of.most) // 2, *more) for d in (-1, 0, 1)}
    return [None, *sorted(n for n in near if of.least <= n <= of.most)]


@pytest.fixture(scope="module", params=["duckdb", "postgres", "spark"])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    if request.param == "duckdb":
        yield InDuckDB()
    elif request.param == "postgres":
        made = InPostgres(request.getfixturevalue("server"))
        yield made
        made.connection.close()
    else:
        server = request.getfixturevalue("spark_server")
        with sessions.reading(addresses.parsed(server.address)) as session:
            yield InSpark(session)


@pytest.fixture(scope="module")
def in_duckdb() -> InDuckDB:
    return InDuckDB()


def pairs(seed: int, many: int) -> list[tuple[Range, Range]]:
    """All spans with all others in the same unit would be too many: these are drawn, and each span stands somewhere."""
    chance = Random(seed)
    found = []
    for i in range(many):
        (a, b), (c, d) = SPANS[i % len(SPANS)], chance.choice(SPANS)
        ranges = [Range(chance.choice(UNITS), a, b), Range(chance.choice(UNITS), c, d)]
        chance.shuffle(ranges)
        found.append((ranges[0], ranges[1]))
    return found


# --- what each rule does, in Python -------------------------------------------------------------------


def in_unit(together: units.Together, ranges: Sequence[Range], row: Sequence[int]) -> list[int]:
    """Numbers as integers of one unit; what is public has been rounded before."""
    return [
        together.parts[i].least
        if ranges[i].constant is not None
        else shifted(n, together.shifts[i]) * together.factors[i]
        for i, n in enumerate(row)
    ]


def half_up(top: int, bottom: int) -> int:
    return (2 * top + bottom) // (2 * bottom)


@pytest.mark.parametrize("operator", ["+", "-"])
def test_sums_and_differences(database: Database, operator: str) -> None:
    def case(x: Range, y: Range) -> Checks:
        signed = y if operator == "+" else Range(y.unit, -y.most, -y.least)
        together = units.together(x, signed)
        ends = [sum(side) for side in zip(*((p.least, p.most) for p in together.parts), strict=True)]
        result = Range(together.unit, ends[0], ends[1])
        rows = list(product(corners(x), corners(y)))
        found = yield lambda made, v: arithmetic.added(made.dialect, operator, v[0], v[1], x, y, result), [x, y], rows
        for (a, b), got in zip(rows, found, strict=True):
            if a is None or b is None:
                assert got is None
                continue
            sign = 1 if operator == "+" else -1
            want = sum(in_unit(together, [x, signed], [a, sign * b]))
            assert got == want, (x, y, a, b)
            assert result.least <= got <= result.most
            reach = max(x.reach, y.reach)
            assert abs(together.unit * got - (x.unit * a + sign * y.unit * b)) <= reach / 2**31

    def fits(x: Range, y: Range) -> bool:
        return fit(units.together, x, y if operator == "+" else Range(y.unit, -y.most, -y.least))

    tried = database.check(case(x, y) for x, y in pairs(1, 400) if fits(x, y))
    assert len(tried) > 150 / database.thinned


def fit(rule: Callable[..., object], *given: Any) -> bool:
    """Whether a rule allows this: steps may not fit together."""
    try:
        rule(*given)
    except QueryError:
        return False
    return True


def test_any_number_of_values_in_one_unit(database: Database) -> None:
    """The branches of a case: constants that can be missing among them."""
    chance = Random(2)

    def case(ranges: list[Range]) -> Checks:
        together = units.together(*ranges)
        rows = [tuple(chance.choice(corners(r)) for r in ranges) for _ in range(20)]

        def sql(layers: Layers, v: list[Value]) -> str:
            terms = arithmetic.in_one_unit(layers.dialect, v, ranges)[0]
            texts = (f"coalesce(CAST({term} AS {layers.dialect.text}), 'null')" for term in terms)
            return "',' || " + " || ',' || ".join(texts)

        found = yield sql, ranges, rows
        for row, got in zip(rows, found, strict=True):
            want = in_unit(together, ranges, [n or 0 for n in row])
            assert got == [None if n is None else w for n, w in zip(row, want, strict=True)], (ranges, row)

    every = [
        [Range(chance.choice(UNITS), *chance.choice(SPANS)) for _ in range(chance.randint(1, 4))] for _ in range(300)
    ]
    tried = database.check(case(each) for each in every if fit(units.together, *each))
    assert len(tried) > 100 / database.thinned


def test_a_constant_that_can_be_missing_is_rounded_as_the_type_says(database: Database) -> None:
    """2^60 + 2^-63, where something is not missing, beside 1 or 2."""
    x, y = Range(Fraction(1, 2**63), 2**123 + 1, 2**123 + 1), Range(Fraction(1), 1, 2)
    together = units.together(x, y)
    result = Range(together.unit, *(sum(p) for p in zip(*((q.least, q.most) for q in together.parts), strict=True)))
    got = database.run(
        lambda made, v: arithmetic.added(made.dialect, "+", v[0], v[1], x, y, result),
        [x, y],
        [(2**123 + 1, 2), (None, 2)],
    )
    assert got == [result.most, None]


def test_products(database: Database) -> None:
    def case(x: Range, y: Range) -> Checks:
        made = units.product(x, y)
        rows = list(product(corners(x), corners(y)))
        found = yield lambda made, v: arithmetic.multiplied(made.dialect, v[0], v[1], x, y), [x, y], rows
        for (a, b), got in zip(rows, found, strict=True):
            if a is None or b is None:
                assert got is None
                continue
            assert got == shifted(a, made.shifts[0]) * shifted(b, made.shifts[1]), (x, y, a, b)
            assert made.result.least <= got <= made.result.most

    assert database.check(case(x, y) for x, y in pairs(3, 400))


@pytest.mark.parametrize("within", [None, Fraction(10), Fraction(2**90)])
def test_quotients(database: Database, within: Fraction | None) -> None:
    def case(x: Range, y: Range) -> Checks:
        made = units.quotient(x, y, within)
        rows = list(product(corners(x), corners(y)))
        found = yield lambda layers, v: arithmetic.divided(layers, v[0], v[1], x, y, made).sql, [x, y], rows
        for (a, b), got in zip(rows, found, strict=True):
            d = None if b is None else shifted(b, made.shifts[1])
            if a is None or not d:
                assert got is None
                continue
            n, bottom = shifted(a, made.shifts[0]) * made.top, d * made.bottom
            assert got == half_up(n * (1 if bottom > 0 else -1), abs(bottom)), (x, y, a, b)
            assert made.result.least <= got <= made.result.most

    every = [(x, y) for x, y in pairs(4, 250) if fit(units.quotient, x, y, within)]
    assert len(database.check(case(x, y) for x, y in every)) > 150 / database.thinned


def test_means_and_sums_of_a_person(database: Database) -> None:
    def case(of: Range) -> Checks:
        made, bits = units.mean(of, CEILING), units.summable(of, CEILING)
        x = of.coarser(made.shift)
        counts = (1, 2, 3, CEILING - 1, CEILING)
        rows: list[Row] = [
            (total, many)
            for many in counts
            for total in sorted({x.least * many, x.most * many, x.least * many + (x.most - x.least) // 2})
            if x.least * many <= total <= x.most * many
        ]
        total = Range(Fraction(1), -x.largest * CEILING, x.largest * CEILING)
        assert total.largest < LIMIT
        assert of.coarser(bits).largest * CEILING < LIMIT

        def sql(layers: Layers, v: list[Value]) -> str:
            wide = layers.dialect.types["wide"]
            return arithmetic.mean(layers.dialect, f"CAST({v[0].sql} AS {wide})", v[1].sql, made).sql

        got = yield sql, [total, Range(Fraction(1), 0, CEILING)], [*rows, (None, 0)]
        assert got == [*(half_up(t * made.top, n * made.bottom) for t, n in rows), None], of  # type: ignore[operator]
        assert all(made.result.least <= n <= made.result.most for n in got[:-1])
        plain = [(n,) for n in corners(of)]
        shorter = yield (
            lambda made, _: arithmetic.coarser(made.dialect, "x0", bits, of.largest, held(of.largest)), [of], plain,
        )  # fmt: skip
        assert shorter == [None if n is None else shifted(n, bits) for (n,) in plain]

    assert database.check(case(Range(unit, *span)) for unit, span in product(UNITS[:3], SPANS))


def test_rounding_to_multiples_of_a_power_of_two(database: Database) -> None:
    def case(of: Range, places: int) -> Checks:
        name = held(of.largest << (places > 0))
        rows = [(n,) for n in corners(of)]

        def sql(layers: Layers, v: list[Value]) -> str:
            value = arithmetic.cast(layers.dialect, v[0], of.largest, name)
            return arithmetic.coarser(layers.dialect, value, places, of.largest, name)

        got = yield sql, [of], rows
        assert got == [None if n is None else shifted(n, places) for (n,) in rows]

    every = product(SPANS, (0, 1, 2, 31, 62, 63, 64, 125))
    assert database.check(case(Range(Fraction(1), *span), places) for span, places in every)


def test_floor_and_ceil(database: Database) -> None:
    def case(of: Range, up: bool) -> Checks:
        way, how = units.to_whole(of), math.ceil if up else math.floor
        inner = of.coarser(way.shift)
        rows = [(n,) for n in corners(of)]
        result = Range(Fraction(1), how(inner.unit * inner.least), how(inner.unit * inner.most))
        got = yield lambda made, v: arithmetic.to_whole(made.dialect, v[0], of, result, up=up), [of], rows
        assert got == [None if n is None else how(inner.unit * shifted(n, way.shift)) for (n,) in rows], of
        for (n,), m in zip(rows, got, strict=True):  # what the claim of `units.to_whole` says
            assert n is None or abs(m - of.unit * n) < 1 + of.reach / 2**33

    steps = [*UNITS, Fraction(2**60 - 1, 2**60), Fraction(2**125 + 1, 2)]
    every = [Range(unit, *span) for unit, span in product(steps, SPANS)]
    allowed = [of for of in every if fit(units.to_whole, of)]
    assert len(allowed) < len(every)
    assert database.check(case(of, up) for of, up in product(allowed, (False, True)))


def test_clips(database: Database) -> None:
    chance = Random(5)

    def case(of: NumberType, kind: NumberType) -> Checks:
        mine, wanted = of.range, kind.range
        first = math.floor(wanted.least * wanted.unit / mine.unit), math.ceil(wanted.most * wanted.unit / mine.unit)
        rows = [(n,) for n in corners(mine, first)]
        found = yield lambda made, v: arithmetic.clipped(made, v[0], of, kind).sql, [mine], rows
        for (n,), got in zip(rows, found, strict=True):
            if n is None:
                assert got is None
                continue
            inside = min(max(mine.unit * n, wanted.unit * wanted.least), wanted.unit * wanted.most)
            assert got * wanted.unit == inside, (of, kind, n)

    cases = []
    for unit, (least, most), _ in product(UNITS, SPANS, range(2)):
        of = NumberType.of(Range(unit, least, most), rounded=False, missing=True)
        ends = [unit * n + d for n in (least, most, 0, (least + most) // 2) for d in (-1, 0, 1, Fraction(1, 3), unit)]
        low, high = sorted(chance.sample(ends, 2))
        with suppress(QueryError):
            cases.append(case(of, clipped_type(of, low, high)))
    assert len(cases) > 300
    assert database.check(cases)


# --- the last step: any integer that the engine can hold -----------------------------------------------

ANYTHING = [
    s * (n + d) for s in (1, -1) for n in (0, 2**61, 2**62, 2**63, 2**64, 2**125, 2**126) for d in (-2, -1, 0, 1, 2)
]
ANYTHING += [2**127 - 1, 2**127 - 2, -(2**127) + 1, -(2**127) + 2]


def codes(database: Database, kind: NumberType, lattice: Bounds) -> Checks:
    """The code of every integer, in the range or not."""
    lower, step, width = lattice.lower, lattice.step, lattice.width
    least, by = int(lower / kind.unit), int(step / kind.unit)
    edges = [least, least + width * by, least + by // 2, least + (width - 1) * by + by // 2, kind.most, kind.least]
    near = [edge + d for edge in edges for d in (-1, 0, 1)]
    every = sorted({n for n in [*ANYTHING, *near] if abs(n) <= min(database.dialect.widest, 2**127 - 1)})
    for size in ("wide", "narrow"):
        promised = held(kind.range.largest)
        if size != promised and (promised == "wide" or not database.mixed):
            continue
        rows = [(n,) for n in every if size == "wide" or -(2**63) <= n < 2**63]
        holding = Range(Fraction(1), 0, 2**126 if size == "wide" else 0)

        def sql(layers: Layers, v: list[Value]) -> str:
            return hull.encoded(layers, v[0], kind, lower, step, width).sql

        got = yield sql, [holding], [*rows, (None,)]
        public = kind.range.constant
        for (n,), code in zip(rows, got, strict=False):
            value = kind.unit * n if public is None else public
            assert code == min(max(to_steps(value - lower, step), 0), width), (kind, n)
        assert got[-1] is None


def test_codes_of_every_integer(database: Database) -> None:
    chance, cases = Random(6), []
    for (least, most), rounded in product(SPANS, (False, True)):
        kind = NumberType.of(Range(Fraction(1, 8), least, most), rounded=rounded, missing=True)
        cases.append(codes(database, kind, kind.bounds()))
    for least, most in chance.sample(SPANS, 60):  # lattices whose step is no power of two, of any size
        if least == most:
            continue
        kind = NumberType.of(Range(Fraction(1), least, most), rounded=False, missing=True)
        for parts in (1, 3, 1000):
            by = max(1, (most - least) // parts)
            steps = [each for each in sorted({by, by + 1, by | 1}) if most - least >= each]
            cases += [codes(database, kind, Bounds(kind.lower, kind.upper, step=each)) for each in steps]
    assert database.check(cases)


# --- leaves -------------------------------------------------------------------------------------------

DUCKDB = DuckDBDialect()
LEAVES: list[NumberType] = [
    column.type  # type: ignore[misc]
    for column in (
        declared.integer(-5, 20),
        declared.integer(2**62 - 2**40, 2**62),
        declared.integer(-(2**62), -(2**62) + 2**52),
        declared.integer(-(2**51), 2**51),
        declared.number(0, 1),
        declared.number("0.1", "1.1"),
        declared.number(2**52 + 512, 2**52 + 513),
        declared.number(-(2**125), 2**125),
        declared.number(2**126 - 2**90, 2**126),
        declared.number(-(2**300), 2**300),
        declared.number("1e-100", "4e-100"),
        declared.number(1, 9, step=3),
        declared.number(-(2**62), 2**62, step=2**40 - 1),
        declared.number(-(2**100 + 1) * 2**24, 2**125, step=2**100 + 1),
        declared.number("0.05", 5, step="0.3"),
        declared.number(-1, 8, step="0.1"),
    )
]
WHOLE = ["TINYINT", "UTINYINT", "BIGINT", "UINTEGER", "UBIGINT", "HUGEINT", "UHUGEINT"]
DECIMALS = ["DECIMAL(4,1)", "DECIMAL(18,0)", "DECIMAL(18,2)", "DECIMAL(18,17)", "DECIMAL(38,0)", "DECIMAL(38,2)"]


def values(connection: duckdb.DuckDBPyConnection, kind: NumberType, source: str) -> list[Any]:
    """Numbers that the source can hold, exactly: at and beside the bounds, the steps and the ends of all types."""
    grid = numbers.Grid.of(kind)
    at = [kind.lower, kind.upper, grid.base, grid.base + grid.step * grid.width, grid.base + grid.step / 2]
    at += [kind.lower - grid.step, kind.upper + grid.step, kind.upper + Fraction(2, 5), kind.lower - Fraction(2, 5)]
    at += [Fraction(s * 2**e + d) for s in (1, -1) for e in (0, 7, 8, 31, 32, 61, 62, 63, 64, 126) for d in (-1, 0, 1)]
    texts = sorted({f"{math.floor(x * 10**k)}e-{k}" for x in at if abs(x) < 2**128 for k in (0, 1, 2, 17)})
    if source == "DOUBLE":
        texts += [repr(math.nextafter(float(x), to)) for x in at for to in (-math.inf, float(x), math.inf)]
    if source not in ("DOUBLE", *DECIMALS):
        texts = sorted({text.removesuffix("e-0") for text in texts if text.endswith("e-0")})
    connection.execute(f"CREATE OR REPLACE TABLE v AS SELECT DISTINCT TRY_CAST(x AS {source}) AS x FROM "
                       "(SELECT unnest($1::VARCHAR[]) AS x)", [texts])  # fmt: skip
    found = [x for (x,) in connection.execute("SELECT x FROM v WHERE x IS NOT NULL ORDER BY x").fetchall()]
    assert len(found) >= 5
    return found


def read(kind: NumberType, raw: Any, *, keyed: bool) -> int | None:
    """The code of a value, by the claim of `privet.engines.sql.numbers`."""
    grid, x = numbers.Grid.of(kind), Fraction(raw)
    if keyed:
        if kind.integer and kind.step is None:
            inside: bool = kind.lower <= math.floor(x + Fraction(1, 2)) <= kind.upper
        elif isinstance(raw, float):
            inside = float(kind.lower) <= raw <= float(kind.upper)
        else:
            inside = kind.lower <= x <= kind.upper
        if not inside:
            return None
    return grid.code(min(max(x, kind.lower), kind.upper))


@pytest.mark.parametrize("source", [*WHOLE, *DECIMALS, "DOUBLE"])
def test_leaves(in_duckdb: InDuckDB, source: str) -> None:
    connection = in_duckdb.connection
    for kind in LEAVES:
        every = values(connection, kind, source)
        grid = numbers.Grid.of(kind)
        divided = source == "DOUBLE" and kind.step is not None  # in floats, as IEEE 754 says
        for keyed in (False, True):
            code = numbers._code(DUCKDB, kind, grid, None, stored(source), "x", keyed=keyed)
            n = numbers.read(DUCKDB, kind, None, stored(source), "x", keyed=keyed)
            assert n is not None
            got = connection.execute(f"SELECT x, {code}, {n.sql} FROM v WHERE x IS NOT NULL ORDER BY x").fetchall()
            first, each = int(grid.base / kind.unit), int(grid.step / kind.unit)
            for raw, (_, found, place) in zip(every, got, strict=True):
                assert place == (None if found is None else found * each + first)
                assert found is None or 0 <= found <= grid.width
                far = abs(Fraction(raw) - kind.lower) / grid.step % 1 if divided else Fraction(0)
                want = read(kind, raw, keyed=keyed)
                if divided and abs(far - Fraction(1, 2)) < Fraction(1, 2**20):
                    assert (found is None) == (want is None)
                elif _exactly(kind, source):
                    assert found == want, (str(kind), source, raw, keyed)


def _exactly(kind: NumberType, source: str) -> bool:
    """Whether the source's values are read as they are; else as 64-bit floats, which is right but for rounding."""
    if source == "DOUBLE":
        return kind.step is None or float(kind.step) == kind.step
    grid = numbers.Grid.of(kind)
    return numbers._of_whole(DUCKDB, kind, grid, stored(source), "x", keyed=False) is not None


# --- whole questions ------------------------------------------------------------------------------------

P, A, B, M, K = (pv.col(name) for name in ("p", "a", "b", "m", "k"))
MISSING = pv.when(P, 2**60).otherwise(None) + Fraction(1, 2**63) + pv.when(P, 1).otherwise(2)
WIDE = declared.integer(-(2**51), 2**51)
QUESTIONS = {
    "a constant that can be missing": MISSING * MISSING,
    "codes of constants near 2^126": pv.when(P, 2**63).otherwise(1 - 2**63) * pv.when(P, 2**63 - 1).otherwise(1),
    "codes of columns near 2^126": (A * B) * (M.clip(1 - 2**51, 2**51 - 1) * K),
}


@pytest.mark.parametrize("what", QUESTIONS)
def test_no_row_makes_a_question_fail(name: str, what: str) -> None:
    small = declared.integer(-(2**12), 2**12)
    columns = {"p": declared.boolean(), "a": WIDE, "b": small, "m": WIDE, "k": small}
    ends = [(s * 2**51, t * 2**12) for s in (1, -1) for t in (1, -1)]
    rows = [(p, *x, *y) for p in (True, False, None) for x in ends for y in ends]
    made = pa.table({name: pa.array(column) for name, column in zip(columns, zip(*rows, strict=True), strict=True)})
    table = pv.table("t", made, protect=pv.each_row(), columns=columns)
    asked = plan(table.agg(s=pv.sum(QUESTIONS[what])), epsilon=1)
    engine = movers.opened(name, table)
    if name == "reference" and any(map(engine.supports, asked.statements())):  # numbers of more than 126 bits
        return
    assert asked.coordinates([engine.answer(s) for s in asked.statements()])
    engine.close()


def test_a_floor_that_would_lose_more_than_its_last_bits_is_refused() -> None:
    """(2^125 + 1) / 2 or twice that: a common unit of 125 bits leaves none for the halves."""
    large = pv.when(P, 2**125 + 1).otherwise(Fraction(2**125 + 1, 2))
    rows = pa.table({"p": [True]})
    table = pv.table("t", rows, protect=pv.each_row(), columns={"p": declared.boolean(required=True)})
    table.agg(s=pv.sum(large))
    for rounded in (large.floor(), large.ceil()):
        with pytest.raises(QueryError, match="too precise"):
            table.agg(s=pv.sum(rounded))


# --- twins --------------------------------------------------------------------------------------------


def test_a_last_addition_that_overflows_is_caught(in_duckdb: InDuckDB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hull, "_nearest", lambda _, moved, by, size: f"(({moved} + {by // 2}) // {by})")
    kind = NumberType.of(Range(Fraction(1), -LIMIT + 1, LIMIT - 1), rounded=False, missing=True)
    with pytest.raises(duckdb.Error, match=r"(?i)overflow|out of range"):
        in_duckdb.check([codes(in_duckdb, kind, kind.bounds())])
