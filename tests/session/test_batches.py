"""Batches: planned first, all or none, one debit, and certificates that name their batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.session.test_session import a_session, people

import privet as pv
from privet.codec import canonical
from privet.engines.sql.engine import SQLLooks
from privet.errors import AccountingError, BudgetError, NoAnswer, NotChecked, QueryError, UserError, VerificationError
from privet.ledger import open_ledger
from privet.privacy import pld
from privet.privacy.events import Composed, FixedBatch
from privet.release import Certificate
from privet.release.batch import ReleasedBatch
from privet.tables.query import Query

BUDGET = pv.ApproxDP(2, 1e-5)
DELTA = 1e-6


def questions(count: int = 30, first: int = 20) -> dict[str, Query]:
    return {
        f"from {age}": people().where(pv.col("age") >= age).agg(n=pv.count()) for age in range(first, first + count)
    }


@pytest.fixture
def session(tmp_path: Path) -> Iterator[pv.Session]:
    with closing(a_session(budget=BUDGET, ledger=tmp_path / "people.ledger", accountant="approx")) as opened:
        yield opened


def each(session: pv.Session, asked: Any, epsilon: Any, **how: Any) -> ReleasedBatch:
    """A batch whose questions cost the same."""
    return session.release_all(asked, epsilon=dict.fromkeys(asked, epsilon), **how)


def reservations(session: pv.Session) -> list[Any]:
    return [entry for entry in session.ledger.history(session.name) if entry.kind == "reserved"]


def test_a_batch_is_one_debit_that_costs_less_than_the_sum(session: pv.Session) -> None:
    batch = each(session, questions(), 0.05, delta=DELTA)
    assert list(batch) == list(questions())
    assert len(batch) == 30
    (entry,) = reservations(session)
    (event,) = entry.events
    assert isinstance(event, FixedBatch)
    assert event.method == "pld/1"
    assert entry.statement.startswith("batch of 30: from 20: people.where(age >= 20).agg(n=count()); from 21: ")
    assert event.events == tuple(session.plan(each, epsilon=0.05).event() for each in questions().values())
    assert batch.guarantee == pv.ApproxDP(event.epsilon, DELTA)
    assert event.epsilon < 1.15, "the sum is 1.5"
    assert batch.remaining is not None
    assert not batch.paid_before
    for release in batch.values():
        assert release.guarantee == pv.PureDP(0.05), "each has its own as well"
        assert abs(release.values("n")[0] - 400) < 1000
    session.ledger.verify()


def test_without_a_delta_it_costs_the_sum_and_needs_no_extra(
    session: pv.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pld, "_pmfs", lambda: None)
    batch = each(session, questions(3), 0.1)
    assert batch.guarantee == pv.PureDP("0.3")
    (entry,) = reservations(session)
    assert isinstance(entry.events[0], Composed)
    pv.verify(batch["from 20"].certificate, ledger=session.ledger)
    with pytest.raises(AccountingError, match="needs dp-accounting"):
        each(session, questions(), 0.051, delta=DELTA)
    assert len(reservations(session)) == 1


def test_it_works_with_budgets_that_have_no_delta_too() -> None:
    session = a_session()
    assert each(session, questions(3), 0.1).guarantee == pv.PureDP("0.3")
    with pytest.raises(UserError, match="a batch can't have a delta, since the budget has none: epsilon 3"):
        each(session, questions(3), 0.1, delta=DELTA)
    with pytest.raises(UserError, match="the budget has none"):
        a_session(budget=pv.ZeroConcentratedDP(1)).release_all(questions(3), epsilon=0.1, delta=DELTA)


def test_the_cheaper_price_is_paid() -> None:
    meters = a_session(budget=BUDGET)
    few = each(meters, questions(), 0.05, delta=DELTA)
    assert few.guarantee == pv.PureDP(1.5), "by the Renyi meter that is less than a batch of epsilon 1.09"
    assert meters.remaining.share > 0.6
    both = a_session(budget=pv.ApproxDP(1, 1e-6))
    many = questions(24)
    with pytest.raises(BudgetError):
        each(both, many, 0.05)
    assert each(both, many, 0.05, delta=5e-7).guarantee.implies(pv.ApproxDP(1, 5e-7))


def test_all_or_none_is_decided_before_data_are_read(session: pv.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: Any) -> Any:
        raise AssertionError("data were read")

    monkeypatch.setattr(SQLLooks, "answer", read)
    with pytest.raises(BudgetError, match="Nothing was spent"):
        each(session, questions(80, first=10), 0.1, delta=DELTA)
    with pytest.raises(BudgetError, match="Nothing was spent"):
        each(session, questions(30), 0.1)
    with pytest.raises(QueryError):
        session.release_all({"a": people().agg(n=pv.count()), "b": "SELECT nothing FROM nowhere"}, epsilon=0.1)
    assert reservations(session) == []


def test_one_failure_fails_all_and_the_debit_stays(session: pv.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = SQLLooks.answer, []

    def breaks(looks: SQLLooks, statement: Any) -> Any:
        asked.append(statement)
        if len(asked) == 3:
            raise RuntimeError("row 17 says so")
        return real(looks, statement)

    monkeypatch.setattr(SQLLooks, "answer", breaks)
    with pytest.raises(NoAnswer) as failure:
        each(session, questions(5), 0.05, delta=DELTA)
    assert "17" not in str(failure.value)
    assert len(reservations(session)) == 1


def test_a_retry_and_the_same_batch_are_free(session: pv.Session) -> None:
    first = each(session, questions(), 0.05, delta=DELTA, request_id="monday")
    retry = each(session, questions(), 0.05, delta=DELTA, request_id="monday")
    again = each(session, {str(i): q for i, q in enumerate(questions().values())}, 0.05, delta=DELTA)
    louder = each(session, questions(), 0.04, delta=DELTA)
    assert len(reservations(session)) == 1
    for batch in (retry, again, louder):
        assert batch.paid_before
        assert batch.guarantee == first.guarantee
        assert [each.noisy for each in batch.values()] == [each.noisy for each in first.values()]
    for other in (questions(29), dict(reversed(questions().items()))):
        with pytest.raises(UserError, match="was already used for a different question"):
            each(session, other, 0.05, delta=DELTA, request_id="monday")
    fresh = each(session, questions(5), 0.05, fresh=True)
    assert not fresh.paid_before
    quieter = each(session, questions(5), 0.06)
    assert not quieter.paid_before, "less noise is a new draw"


def test_plans_and_sql_may_be_mixed(session: pv.Session) -> None:
    plan = session.plan(people().agg(n=pv.count()), epsilon=0.2)
    batch = session.release_all({"plan": plan, "sql": "SELECT count(*) AS n FROM people WHERE age > 50"}, epsilon=0.1)
    assert batch.guarantee == pv.PureDP("0.3")
    with pytest.raises(QueryError, match="a plan already says its epsilon"):
        session.release_all({"plan": plan}, epsilon=0.1)


@pytest.mark.parametrize(
    ("given", "how", "said"),
    [
        ({}, {}, "a dict of questions by name"),
        ([people().agg(n=pv.count())], {}, "a dict of questions by name"),
        ({3: people().agg(n=pv.count())}, {}, "name"),
        ({"a": people().agg(n=pv.count())}, {"delta": 0}, "delta"),
        ({"a": people().agg(n=pv.count())}, {"delta": 1}, "delta must be less than 1"),
        ({"a": people().agg(n=pv.count())}, {"delta": "x"}, "delta"),
        ({"a": people().agg(n=pv.count())}, {"fresh": "yes"}, "fresh must be True or False"),
    ],
)
def test_wrong_calls(given: Any, how: Any, said: str, session: pv.Session) -> None:
    with pytest.raises(UserError, match=said):
        session.release_all(given, epsilon=0.1, **how)
    assert reservations(session) == []


# --- certificates ----------------------------------------------------------------------------------------


def altered(certificate: Certificate, **batch: Any) -> Certificate:
    document = certificate.document
    link = {**document["ledger"], "batch": {**document["ledger"]["batch"], **batch}}
    return Certificate({**document, "ledger": link}, None)


def test_certificates_of_a_batch_are_checked(session: pv.Session, tmp_path: Path) -> None:
    batch = each(session, questions(), 0.05, delta=DELTA)
    certificate = batch["from 30"].certificate
    said = str(pv.verify(certificate, ledger=tmp_path / "people.ledger"))
    assert "epsilon 0.05, for n = count() where age >= 30. In its batch of 30 parts: epsilon 1.0" in said
    assert "delta 1e-6 together (computed anew)" in said
    event = certificate.document["ledger"]["batch"]["event"]
    cheaper = {**event, "epsilon": "1/2"}
    with pytest.raises(VerificationError, match="delta is too small for these events"):
        pv.verify(altered(certificate, event=cheaper))
    with pytest.raises(VerificationError, match="there is no such part"):
        pv.verify(altered(certificate, part=30))
    other = {**event, "events": [{"kind": "free"}] * 30}
    with pytest.raises(VerificationError, match="this part is another question"):
        pv.verify(altered(certificate, event=other))
    with pytest.raises(VerificationError, match="must be a batch of events, and a part of it"):
        pv.verify(altered(certificate, extra=1))
    dearer = {**event, "epsilon": "2/1"}
    pv.verify(altered(certificate, event=dearer))
    with pytest.raises(VerificationError, match="the entry paid for something else"):
        pv.verify(altered(certificate, event=dearer), ledger=session.ledger)
    with pytest.raises(VerificationError, match="the entry has a different answer"):
        pv.verify(altered(certificate, part=3), ledger=session.ledger)  # a part of the same price
    alone = {key: value for key, value in certificate.document["ledger"].items() if key != "batch"}
    with pytest.raises(VerificationError, match="the entry paid for something else"):
        pv.verify(Certificate({**certificate.document, "ledger": alone}, None), ledger=session.ledger)


@pytest.mark.parametrize("times", [0, 1])
def test_a_batch_inside_of_another_is_not_taken_at_its_word(session: pv.Session, times: int) -> None:
    certificate = each(session, questions(3), 0.05)["from 20"].certificate
    event = certificate.document["ledger"]["batch"]["event"]
    inside: Any = {
        "kind": "fixed_batch",
        "events": [{"kind": "stated", "epsilon": "50/1", "delta": "0/1"}],
        "epsilon": "0/1",
        "delta": "0/1",
        "method": "pld/1",
    }
    if times:
        inside = {"kind": "repeated", "event": {"kind": "composed", "events": [inside]}, "count": times}
    with pytest.raises(VerificationError, match="a batch can't have another one inside"):
        pv.verify(altered(certificate, event={**event, "events": [*event["events"], inside]}))


def test_a_batch_whose_privacy_loss_is_not_computed_is_not_called_checked(
    session: pv.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = each(session, questions(), 0.05, delta=DELTA)["from 30"].certificate
    monkeypatch.setattr(pld, "_pmfs", lambda: None)
    with pytest.raises(NotChecked, match=r"not checked: .* needs dp-accounting. Write: pip install 'privet\[pld\]'"):
        pv.verify(certificate, ledger=session.ledger)
    link = {**certificate.document["ledger"], "entry": 1}
    with pytest.raises(VerificationError, match="no such entry"):  # what is wrong comes first
        pv.verify(Certificate({**certificate.document, "ledger": link}, None), ledger=session.ledger)


def test_a_stored_batch_that_was_tampered_with_is_not_accepted(session: pv.Session, tmp_path: Path) -> None:
    batch = each(session, questions(3), 0.05)
    certificate = batch["from 20"].certificate
    forged = Certificate({**certificate.document, "answer": {}}, None)
    with pytest.raises(VerificationError):
        pv.verify(forged, ledger=session.ledger)
    text = session.ledger.answer(session.name, reservations(session)[0].number)
    assert text == canonical({"batch": [each.certificate.to_json() for each in batch.values()]})


def test_another_process_reads_the_same_ledger(session: pv.Session, tmp_path: Path) -> None:
    each(session, questions(), 0.05, delta=DELTA)
    with closing(open_ledger(str(tmp_path / "people.ledger"))) as opened:
        opened.verify()
        (event,) = next(entry.events for entry in opened.history(session.name) if entry.kind == "reserved")
        assert isinstance(event, FixedBatch)
