"""The seam: a mechanism that is registered in one place answers a question about a table from end to end."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.mechanisms.toys import Exponential, Squares, Twice
from tests.prices import loss

import privet as pv
from privet import mechanisms
from privet.errors import QueryError, VerificationError
from privet.mechanisms import NoiseMechanism
from privet.privacy.accounting import PureAccountant
from privet.privacy.moves import L1Move, L2Move

ROWS = pa.table(
    {
        "who": [i // 2 for i in range(600)],
        "region": [["north", "south", "west"][i % 3] for i in range(600)],
        "income": [float(i % 100) for i in range(600)],
    }
)


def people() -> Any:
    return pv.table(
        "people",
        ROWS,
        protect=pv.person("who", max_groups=2, max_rows_per_group=1),
        columns={"region": pv.keys("north", "south", "west"), "income": pv.number(0, 100, step=1)},
    )


@pytest.fixture(params=[Twice(), Squares()], ids=lambda each: each.name)
def toy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> NoiseMechanism:
    made: NoiseMechanism = request.param
    monkeypatch.setitem(mechanisms.NOISE, made.name, made)  # the one place
    return made


def test_a_toy_answers_a_question_from_end_to_end(toy: NoiseMechanism, tmp_path: Path) -> None:
    with pv.Session([people()], budget=pv.PureDP(20), ledger=tmp_path / "people.ledger") as session:
        query = (
            session.tables["people"]
            .group_by("region")
            .agg(n=pv.count(), who=pv.count_people(), pay=pv.mean("income"), spread=pv.variance("income"))
        )
        made = session.plan(query, epsilon=4, mechanism=toy.name, assuming=200)
        plain = session.plan(query, epsilon=4, assuming=200)
        assert loss(made.guarantee()) == made.epsilon == 4
        for part, other in zip(made.noised, plain.noised, strict=True):
            assert part.scale == toy.calibrate(part.move, part.price, coordinates=part.coordinates) >= other.scale
            assert isinstance(part.move, L1Move if toy.norm == "L1" else L2Move)
        assert made.expected("n") > plain.expected("n")  # type: ignore[operator]
        text = session.explain(query, epsilon=4, mechanism=toy.name)
        assert f"{toy.label} of scale" in text
        assert f"{toy.norm} sensitivity" in text

        release = session.release(query, epsilon=4, mechanism=toy.name, assuming=200)
        assert release.spent == pv.PureDP(4)
        assert session.spent == pv.PureDP(4)
        cells = release.plan.cells(release.noisy)
        for column, truth in (("n", 200.0), ("pay", 49.5), ("spread", 833.25)):
            for low, value, high in zip(cells[column].low, cells[column].values, cells[column].high, strict=True):
                assert low <= value <= high
                assert abs(value - truth) < 50 * (high - low) + 1
        measured = release.certificate.document["derived"]["measurements"]
        assert {part["mechanism"] for part in measured} == {toy.name}
        for ledger in (None, session.ledger):
            pv.verify(release.certificate, ledger=ledger)

        again = session.release(query, epsilon=4, mechanism=toy.name, assuming=200)
        assert again.noisy == release.noisy, "the stored answer"
        louder = session.release(query, epsilon=3, mechanism=toy.name)
        assert (louder.noisy, louder.plan.scales) == (release.noisy, release.plan.scales), (
            "serves for one with more noise"
        )
        assert session.spent == pv.PureDP(4)
        assert session.paid_before(query, epsilon=3, mechanism=toy.name) == pv.PureDP(4)
        assert session.paid_before(query, epsilon=3) is None, "another mechanism is another question"
        assert session.release(query, epsilon=5, mechanism=toy.name).noisy != release.noisy

        within = session.plan(query, within={"n": 500, "who": 500, "pay": 50, "spread": 5000}, assuming=200,
                              mechanism=toy.name)  # fmt: skip
        assert loss(within.guarantee()) == within.epsilon
        for name, most in (("n", 500), ("who", 500), ("pay", 50), ("spread", 5000)):
            assert within.expected(name) <= most  # type: ignore[operator]


def test_a_toy_that_is_not_registered_is_refused_before_and_after(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Twice()
    with pv.Session([people()], budget=pv.PureDP(20), ledger=None) as session:
        query = session.tables["people"].agg(n=pv.count())
        with pytest.raises(QueryError, match="no mechanism 'twice/1'"):
            session.release(query, epsilon=1, mechanism=toy.name)
        with monkeypatch.context() as patched:
            patched.setitem(mechanisms.NOISE, toy.name, toy)
            certificate = session.release(query, epsilon=1, mechanism=toy.name).certificate
        with pytest.raises(VerificationError, match="no mechanism 'twice/1'"):
            pv.verify(certificate)


def test_a_toy_whose_event_costs_more_than_its_price_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan's guarantee is recomputed from the event, whatever the mechanism says of itself."""

    class Cheap(Twice):
        name = "cheap/1"

        def scale(self, move: Any, *, epsilon: Fraction) -> Fraction:
            return move.total / epsilon  # type: ignore[no-any-return]

    monkeypatch.setitem(mechanisms.NOISE, "cheap/1", Cheap())
    with pv.Session([people()], budget=pv.PureDP(20), ledger=None) as session:
        with pytest.raises(pv.errors.InternalError, match="promises epsilon 2, but epsilon 1 was requested"):
            session.release(session.tables["people"].agg(n=pv.count()), epsilon=1, mechanism="cheap/1")
        assert session.spent == pv.PureDP.ZERO


def test_a_toy_selection_chooses_by_what_the_engine_counted() -> None:
    """Scores from a statement's integers in, a candidate and an event out: one person moves each count by one."""
    toy = Exponential()
    with pv.Session([people()], budget=pv.PureDP(20), ledger=None) as session:
        table = session.tables["people"]
        made = session.plan(table.where(pv.col("income") < 40).group_by("region").agg(n=pv.count()), epsilon=1)
        (counted,) = (session.dataset.engine.answer(statement) for statement in made.statements())
        scores = [row[0] for row in counted]
        scale = toy.scale(1, epsilon=Fraction(1, 2))
        chosen = toy.select(scores, scale=scale)
        assert 0 <= chosen < 3
        assert PureAccountant().account(toy.event(1, scale=scale)) == pv.PureDP(0.5)
