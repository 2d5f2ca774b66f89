"""An answer as JSON and as files: the same numbers everywhere, exact where they are exact."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import privet as pv
from privet.planner.outputs import Cells
from privet.release.render import frame
from privet.release.render import json as rendered

ROWS = pa.table({"id": list(range(40)), "region": ["N", "S"] * 20, "income": [float(i) for i in range(40)]})


@pytest.fixture(scope="module")
def session() -> pv.Session:
    columns = {"region": pv.keys("N", "S", "E"), "income": pv.number(0, 100)}
    people = pv.table("people", ROWS, protect=pv.person("id", max_rows=1), columns=columns)
    return pv.Session([people], budget=pv.PureDP("10/3"), ledger=None)


def test_rows_and_facts(session: pv.Session) -> None:
    answer = session.release("SELECT region, AVG(income) AS pay FROM people GROUP BY region", epsilon="1/3")
    tree = json.loads(rendered.answer(answer))
    assert [row["region"] for row in tree["rows"]] == ["N", "S", "E"]
    assert [row["pay"] for row in tree["rows"]] == answer.values("pay")
    assert tree["spent"] == tree["guarantee"] == {"epsilon": "1/3"}
    assert tree["left"] == {"epsilon": "3"}
    assert tree["notes"] == answer.notes()
    assert json.loads(rendered.facts(answer)) == {name: fact for name, fact in tree.items() if name != "rows"}


def test_an_infinite_end_is_null(session: pv.Session) -> None:
    answer = session.release("SELECT region, AVG(income) AS pay FROM people GROUP BY region", epsilon="1/3")
    cells = Cells((1.0, 2.0, 3.0), (-math.inf, 1.0, 2.0), (2.0, math.inf, 4.0), (True, True, False))
    rows = json.loads(rendered.answer(replace(answer, cells={"pay": cells})))["rows"]
    assert [(row["pay_low"], row["pay_high"]) for row in rows] == [(None, 2.0), (1.0, None), (2.0, 4.0)]


def test_files_have_the_columns_of_the_table(session: pv.Session) -> None:
    answer = session.release("SELECT region, COUNT(*) AS n FROM people GROUP BY region", epsilon="1/3")
    table = frame.arrow(answer)
    assert pc.read_csv(io.BytesIO(frame.csv(answer).encode())).to_pydict() == table.to_pydict()
    stored = pq.read_table(io.BytesIO(frame.parquet(answer, rendered.facts(answer))))
    assert stored.to_pydict() == table.to_pydict()
    assert stored.schema.metadata == {b"privet": rendered.facts(answer).encode()}


def test_an_explanation_says_what_a_stored_answer_cost(session: pv.Session) -> None:
    made = session.plan("SELECT COUNT(*) AS n FROM people", epsilon="1/3")
    assert json.loads(rendered.explanation(made, paid_before=None)) == {**made.to_json(), "paid_before": None}
    tree = json.loads(rendered.explanation(made, paid_before=pv.PureDP(1)))
    assert tree["paid_before"] == {"epsilon": "1"}
