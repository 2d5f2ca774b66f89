"""Joined and capped questions, all the way: paid for once in every order, certified, and told with the answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import privet as pv
from privet.errors import VerificationError
from privet.release import Certificate
from privet.tables.query import Query
from privet.tables.relation import Table
from privet.tables.statement import AtMostRows


def tables() -> list[Table]:
    return [
        pv.table(
            name,
            pa.table({"id": pa.array([i % 40 for i in range(400)]), column: pa.array([i % 10 for i in range(400)])}),
            protect=pv.person("id", max_rows=most),
            columns={column: pv.integer(0, 9)},
        )
        for name, column, most in (("visits", "minutes", 20), ("buys", "items", 3), ("people", "children", 1))
    ]


VISITS, BUYS, PEOPLE = tables()


@pytest.fixture
def session() -> Iterator[pv.Session]:
    with pv.Session([VISITS, BUYS, PEOPLE], budget=pv.PureDP(100), ledger=None, threads=1) as made:
        yield made


def sql(*names: str) -> str:
    joins = "".join(f" JOIN {name} USING (id)" for name in names[1:])
    return f"SELECT minutes, COUNT(*) AS n, SUM(items) AS s FROM {names[0]}{joins} GROUP BY minutes"


def test_both_orders_are_one_question_in_sql_and_python_and_paid_for_once(session: pv.Session) -> None:
    def asked(rows: Any) -> Query:
        return rows.group_by("minutes").agg(n=pv.count(), s=pv.sum("items"))  # type: ignore[no-any-return]

    ways: list[Any] = [
        sql("visits", "buys", "people"),
        sql("people", "buys", "visits"),
        sql("buys", "visits", "people"),
        asked(VISITS.join(BUYS).join(PEOPLE)),
        asked(PEOPLE.join(BUYS.join(VISITS))),
    ]
    queries = [session.parse(way) if isinstance(way, str) else way for way in ways]
    assert all(query == queries[0] for query in queries)
    first, *others = [session.release(way, epsilon=1) for way in ways]
    assert first.spent == pv.PureDP(1)
    for other in others:
        assert other.spent == pv.PureDP.ZERO
        assert other.noisy == first.noisy
    assert session.spent == pv.PureDP(1)


def test_the_answer_names_the_cap_in_every_format(session: pv.Session) -> None:
    answer = session.release(sql("visits", "buys"), epsilon=1)
    cap = "at most 60 rows per person (buys 3 x visits 20)"
    assert answer.limits[0] == cap
    assert f"Limits: {cap};" in str(answer)
    assert cap in answer._repr_html_()
    assert cap in answer.to_arrow().schema.metadata[b"notes"].decode()
    assert any(cap in note for note in answer.to_pandas().attrs["notes"])
    assert cap in " ".join(answer.plot().get_supxlabel().split())
    again = session.release(sql("buys", "visits"), epsilon=1)
    assert (again.spent, again.limits) == (pv.PureDP.ZERO, answer.limits)


def test_caps_are_other_questions(session: pv.Session) -> None:
    """Of the same number of rows too: two rows anywhere are not one row in each of two groups."""
    query = session.parse(sql("visits", "buys"))
    asked = [
        query,
        query.cap(max_rows=2),
        query.cap(max_groups=2, max_rows_per_group=1),
        query.cap(max_groups=1, max_rows_per_group=2),
    ]
    answers = [session.release(each, epsilon=1) for each in asked]
    assert [answer.spent for answer in answers] == [pv.PureDP(1)] * 4
    assert [answer.limits[0] for answer in answers] == [
        "at most 60 rows per person (buys 3 x visits 20)",
        "at most 2 rows per person (set by this query)",
        "at most 2 groups per person with 1 row in each (set by this query)",
        "at most 1 group per person with 2 rows in it (set by this query)",
    ]
    for each, answer in zip(asked, answers, strict=True):
        assert session.release(each, epsilon=1).noisy == answer.noisy


def test_a_certificate_of_a_capped_question_is_checked(session: pv.Session) -> None:
    query = session.parse(sql("visits", "buys")).cap(max_rows=2)
    answer = session.release(query, epsilon=1)
    pv.verify(answer.certificate, ledger=session.ledger)
    tree = json.loads(answer.certificate.to_json())
    at_most = tree["document"]["asked"]["query"]["at_most"]
    assert at_most == {"kind": "at most rows", "rows": 2}
    for other in (1, 3):
        at_most["rows"] = other
        with pytest.raises(VerificationError):
            pv.verify(Certificate.from_json(json.dumps(tree)))
    assert [statement.bounding for statement in answer.plan.statements()] == [AtMostRows(2)]


def test_a_cap_leaves_rows_out(session: pv.Session) -> None:
    """40 people with 10 rows in visits: with a cap of 2 rows each, 80 are counted."""
    whole = session.release(VISITS.agg(n=pv.count()), epsilon=20).values("n")[0]
    few = session.release(VISITS.agg(n=pv.count()).cap(max_rows=2), epsilon=20).values("n")[0]
    assert abs(whole - 400) < 60
    assert abs(few - 80) < 10
