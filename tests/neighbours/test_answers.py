"""What the engine counts is what was asked: against an evaluation in Python, row by row, of hostile tables."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.effort import some
from tests.neighbours.exact import Bench, added
from tests.neighbours.questions import planned
from tests.neighbours.reference import Reference
from tests.neighbours.worlds import ID, World, world

import privet as pv
from privet.engines.duckdb.engine import DuckDB
from privet.planner import plan
from privet.privacy.adjacency import Adjacency, Person
from privet.tables.types import NumberType

BATCHES = 4


def roomy(chance: Random) -> World | None:
    """A world in which nobody has more rows than the cap; without decimals, which Arrow rounds in its own way,
    and integers that are no floats: there the engine is more exact.
    """
    made = world(chance)
    declared = [what.declared.type for columns in made.columns.values() for what in columns.values()]
    if any(isinstance(kind, NumberType) and kind.integer and abs(kind.upper) > 2**53 for kind in declared):
        return None
    kinds = [what.arrow for columns in made.columns.values() for what in columns.values()]
    if any(pa.types.is_decimal(kind) for kind in [*kinds, *made.id_types.values()]):
        return None
    if isinstance(made.protect, Person):
        grouped = made.protect.max_groups is not None
        caps: dict[str, int] = {"max_groups": 500, "max_rows_per_group": 500} if grouped else {"max_rows": 500}
        made.protect = pv.person(ID, **caps)
        made.tables = {name: made.declare(name, rows) for name, rows in made.data.items()}
    return made


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_the_engine_counts_what_was_asked(batch: int, effort: int) -> None:
    cases = 0
    for number in range(60_000 + 8 * effort * batch, 60_000 + 8 * effort * (batch + 1)):
        chance = Random(number)
        made = roomy(chance)
        if made is None:
            continue
        reference = Reference(made, made.data)
        with Bench(made) as bench:
            for _ in range(6):
                asked = planned(chance, made)
                if asked is None:
                    continue
                for statement in asked.statements():
                    cases += 1
                    found, expected = bench.engine.answer(statement), reference.answer(statement)
                    assert found == expected, (number, str(asked.query))
    assert cases > 8


@pytest.mark.slow
def test_files_and_frames_give_the_same(tmp_path: Path, effort: int) -> None:
    """The same rows in Parquet, read where they are: other types reach the engine, and the answers are the same."""
    import pyarrow.parquet as pq

    for number in range(70_000, 70_000 + 8 * effort):
        chance = Random(number)
        made = world(chance)
        stored = {}
        for name, rows in made.data.items():
            path = tmp_path / f"{number}-{name}.parquet"
            pq.write_table(made.arrow(name, rows), path)
            try:
                stored[name] = made.declare(name, rows, source=path)
            except pv.errors.SourceError:  # a file's texts must be texts without NUL
                break
        if len(stored) < len(made.data):
            continue
        public = {table.name: (table.schema, table.source) for table in made.public}
        tables = {name: (table.schema, table.source) for name, table in stored.items()}
        with Bench(made) as frames, DuckDB(tables, public, salt=b"salt", threads=1) as files:
            for asked in filter(None, [planned(chance, made) for _ in range(6)]):
                statements = asked.statements()
                assert frames.tallies(statements) == [files.answer(s) for s in statements], (number, str(asked.query))


def stored(rows: Any, how: str, folder: Path) -> Any:
    """The rows in a file, as several libraries write it."""
    import duckdb
    import polars as pl
    import pyarrow.parquet as pq

    path = folder / f"{how}-{len(rows)}"
    if how == "pyarrow":
        pq.write_table(rows, f"{path}.parquet")
    elif how == "polars":
        pl.DataFrame(rows).write_parquet(f"{path}.parquet")
    else:
        with duckdb.connect(f"{path}.duckdb" if how == "database" else ":memory:") as connection:
            connection.register("given", rows)
            if how == "database":
                connection.execute("CREATE TABLE people AS SELECT * FROM given")
                return pv.duckdb_file(f"{path}.duckdb", "people")
            connection.execute(f"COPY given TO '{path}.parquet'")
    return f"{path}.parquet"


@pytest.mark.parametrize("how", ["pyarrow", "polars", "duckdb", "database"])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_t5_statistics_of_a_file_decide_nothing(how: str, kind: Any, tmp_path: Path) -> None:
    """A file says between which values a column lies, NaN left out. An optimizer that believes it reads all NaN of a
    file as numbers as soon as there is one number: a single row moved an answer by as many as there were.
    """
    columns = {"x": pv.number(0.1, 0.3), "y": pv.number(0, 1, required=True), "i": pv.integer(0, 9)}

    def tabled(rows: list[float]) -> Any:
        column = pa.array(rows, kind, from_pandas=False)
        made = pa.table({"x": column, "y": column, "i": column})
        return pv.table("t", stored(made, how, tmp_path), protect=pv.each_row(), columns=columns)

    table = tabled([0.0])
    x, y, i = pv.col("x"), pv.col("y"), pv.col("i")
    queries = [
        table.agg(n=pv.count("x"), s=pv.sum("x"), m=pv.mean("y"), v=pv.std("i"), h=pv.histogram("x", [0, 0.2, 1])),
        table.agg(s=pv.sum(x * 2 + y), n=pv.count(x > 0.15), t=pv.sum((x / y).clip(0, 5)), g=pv.sum(x.floor())),
        table.where((x > 0.15) | (i >= 0)).agg(n=pv.count()),
        table.where(x.is_missing() & (y <= 1)).group_by("i").agg(n=pv.count()),
        table.group_by(k=pv.bins("x", [0, 0.2, 1])).agg(n=pv.count(), s=pv.sum("i")),
    ]
    plans = [plan(query, epsilon=1) for query in queries]
    values = (0.2, 1.5, -7.0, 5e-324 if kind == pa.float64() else 1e-45, math.inf)
    for value in some(values, every=3, start=["pyarrow", "polars", "duckdb", "database"].index(how)):
        seen = []
        for rows in ([math.nan] * 90, [*[math.nan] * 90, value], [value]):
            for file in tmp_path.iterdir():
                file.unlink()
            table = tabled(rows)
            with DuckDB({"t": (table.schema, table.source)}, salt=b"", threads=1) as engine:
                seen.append([p.coordinates([engine.answer(s) for s in p.statements()]) for p in plans])
        for without, together, alone in zip(*seen, strict=True):
            assert added([without, alone]) == together, value


def test_a_few_answers_by_hand() -> None:
    """Booleans, missing values, keys and halves, where the right numbers are plain to see."""
    rows = pa.table(
        {
            "x": [1.0, 2.6, None, 99.0, -3.0],
            "b": [True, False, None, False, True],
            "k": ["a", "b", "c", None, "a"],
            "i": [1, 2, 3, 4, 50],
        }
    )
    columns = {"x": pv.number(0, 10, step=1), "b": pv.boolean(), "k": pv.keys("a", "b"), "i": pv.integer(1, 4)}
    table = pv.table("t", rows, protect=pv.each_row(), columns=columns)
    of = World(pv.each_row(), Adjacency.ADD_REMOVE, {"t": {}}, [], {}, {"t": []}, [])
    of.tables = {"t": table}
    expected: list[tuple[dict[str, Any], list[Any]]] = [
        ({"n": pv.count()}, [[(5,)]]),
        ({"n": pv.count("x")}, [[(4,)]]),
        ({"n": pv.count("b")}, [[(4,)]]),
        ({"n": pv.count(pv.col("x") > 2)}, [[(4,)]]),
        ({"s": pv.sum("x")}, [[(14,)]]),  # 1 + 3 + 10 + 0
        ({"m": pv.mean("x")}, [[(14, 26)]]),
        ({"m": pv.mean("b")}, [[(2, 2)]]),
        ({"m": pv.sum("b")}, [[(2,)]]),
        ({"v": pv.variance("b")}, [[(2, 0, 2)]]),
        ({"h": pv.histogram("x", [0, 1, 10])}, [[(1, 3)]]),
        ({"p": pv.count_people()}, [[(5,)]]),
    ]
    with Bench(of) as bench:
        for ask, vectors in expected:
            assert bench.vectors(plan(table.agg(**ask), epsilon=1)) == vectors, ask
        by_key = plan(table.group_by("k").agg(s=pv.sum("i")), epsilon=1)
        assert bench.vectors(by_key) == [[(5,), (2,)]]  # as a value 50 is 4
        by_number = plan(table.group_by("i").agg(n=pv.count()), epsilon=1)
        assert bench.vectors(by_number) == [[(1,)] * 4]  # as a key 50 is none
