"""An answer from the ledger: it tells its epsilon and that nothing was spent now, in every form; so does `explain`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import privet as pv
from privet.ledger import memory_ledger
from privet.privacy.guarantees import PureDP
from privet.release import Release
from privet.tables.query import Query
from privet.tables.relation import Table

REGIONS = ["north", "south"]


def people() -> Table:
    rows = pa.table({"region": ["north"] * 300 + ["south"] * 200, "pay": [10.0] * 500})
    return pv.table(
        "people", rows, protect=pv.each_row(), columns={"region": pv.keys(*REGIONS), "pay": pv.number(0, 20)}
    )


def by_region(**named: Any) -> Query:
    return people().group_by("region").agg(**(named or {"n": pv.count()}))


@pytest.fixture
def session() -> Iterator[pv.Session]:
    with pv.Session([people()], budget=pv.PureDP(3), ledger=None) as made:
        yield made


@pytest.fixture
def again(session: pv.Session) -> Release:
    """Asked at 0.25 after it was answered at 0.5."""
    session.release(by_region(), epsilon=0.5)
    return session.release(by_region(), epsilon=0.25)


COST = "Paid for before, at epsilon 0.5: nothing was spent now; 2.5 left."


def test_a_recalled_answer_knows_its_epsilon(again: Release) -> None:
    assert (again.guarantee, again.spent, again.paid_before) == (PureDP(0.5), PureDP.ZERO, True)


def test_an_answer_that_is_paid_for_now(session: pv.Session) -> None:
    now = session.release(by_region(), epsilon=0.5)
    assert (now.guarantee, now.spent, now.paid_before) == (PureDP(0.5), PureDP(0.5), False)
    assert now.notes()[-1] == "Spent epsilon 0.5; 2.5 left."
    assert "before" not in f"{now}{now!r}{now.chart()}{now._repr_html_()}"


def test_every_text_says_so(again: Release) -> None:
    assert str(again).splitlines()[-1] == COST
    assert again.notes()[-1] == COST
    assert COST in again.chart(120)
    assert COST in again._repr_html_()
    assert repr(again) == "<Release of n = count() by region: 2 groups, epsilon 0.5, paid for before>"


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_picture_is_the_same_whenever_it_is_drawn(session: pv.Session, tmp_path: Path, suffix: str) -> None:
    now, again = (session.release(by_region(), epsilon=0.5) for _ in range(2))
    assert (now.paid_before, again.paid_before) == (False, True)
    pictures = []
    for answer, name in ((now, "now"), (again, "again")):
        caption: str = answer.plot(path=(tmp_path / name).with_suffix(suffix)).get_supxlabel()
        assert " ".join(caption.split()).endswith("Differentially private, epsilon 0.5.")
        pictures.append((tmp_path / name).with_suffix(suffix).read_bytes())
    assert pictures[0] == pictures[1]


def test_a_public_answer_is_not_paid_for() -> None:
    table = pv.table(
        "people",
        pa.table({"pay": [1.0] * 500}),
        protect=pv.each_row(),
        adjacency="replace",
        rows=500,
        columns={"pay": pv.number(0, 20, required=True)},
    )
    with pv.Session([table], budget=pv.PureDP(3), ledger=None) as session:
        query = table.agg(n=pv.count())
        for _ in range(2):
            answer = session.release(query, epsilon=1)
            assert not answer.paid_before
            assert answer.notes()[-1] == "Nothing was spent; 3 left."
            assert session.paid_before(query, epsilon=1) is None
            assert "Stored" not in session.explain(query, epsilon=1)


# --- before asking ------------------------------------------------------------------------------------


def stored(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("Stored")]


def test_explain_says_what_is_paid_for(session: pv.Session) -> None:
    assert stored(session.explain(by_region(), epsilon=0.5)) == []
    session.release(by_region(), epsilon=0.5)
    found = "Stored     Already paid for, at epsilon 0.5: asking returns the stored answer and spends nothing."
    for epsilon in (0.5, 0.25):
        assert stored(session.explain(by_region(), epsilon=epsilon)) == [found]
    renamed = session.explain("SELECT region AS r, COUNT(*) AS people FROM people GROUP BY region", epsilon=0.5)
    assert stored(renamed) == [found], "names do not matter when asking"
    assert stored(session.explain(by_region(), epsilon=0.6)) == [], "less noise is paid for"
    assert stored(session.explain(by_region(m=pv.mean("pay")), epsilon=0.5)) == []
    fresh = session.explain(by_region(), epsilon=0.5, fresh=True)
    assert stored(fresh) == [
        "Stored     An answer at epsilon 0.5 is stored and would be free; a fresh one costs budget."
    ]
    assert session.spent == PureDP(0.5)
    assert len(session.ledger.history(session.name)) == 5, "nothing was written"


def test_what_is_stored_needs_no_budget(session: pv.Session) -> None:
    session.release(by_region(), epsilon=2.5)
    assert "not enough" not in session.explain(by_region(), epsilon=2)
    assert "not enough" in session.explain(by_region(), epsilon=2, fresh=True)


def test_paid_before_is_what_asking_does() -> None:
    """The same for every analyst, version and epsilon: what it says is what `release` then does."""
    ledger = memory_ledger()
    for version in ("1", "2"):
        for analyst in ("ann", "bob"):
            with pv.Session(
                [people()], budget=pv.PureDP(10), ledger=ledger, analyst=analyst, version=version
            ) as session:
                for epsilon in (0.25, 0.5, 0.375, 0.75):
                    said = session.paid_before(by_region(), epsilon=epsilon)
                    done = session.release(by_region(), epsilon=epsilon)
                    assert (said is not None) is done.paid_before
                    assert said in (None, done.guarantee)
                assert session.paid_before(by_region(), epsilon=0.75) == PureDP(0.75)
