"""Computed columns through a session: free, verified, in every format, and never an error that depends on noise."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import privet as pv
from privet.errors import VerificationError
from privet.release import recall
from privet.release.answer import Release
from privet.release.render import frame
from privet.release.render import json as rendered

PEOPLE = pa.table({"region": ["north", "south", "north"] * 400, "income": [float(i % 300) for i in range(1200)]})
ASKED = "SELECT region, COUNT(*) AS n, AVG(income) AS pay FROM people GROUP BY region"
COMPUTED = """
SELECT region, COUNT(*) AS n, AVG(income) AS pay, pay - 180 AS above, n / SUM(n) OVER () AS share,
  DP_INTERVAL_LOW(n) AS n_low, ROUND(pay, 1) AS round, n / (n - n) AS never
FROM people GROUP BY region HAVING share > 0.01 ORDER BY share DESC -- free
"""


@pytest.fixture(scope="module")
def session() -> Iterator[pv.Session]:
    columns: dict[str, Any] = {"region": pv.keys("north", "south", "west"), "income": pv.number(0, 300)}
    people = pv.table("people", PEOPLE, protect=pv.each_row(), columns=columns)
    with pv.Session([people], budget=pv.PureDP(5), ledger=None) as opened:
        yield opened


@pytest.fixture(scope="module")
def answer(session: pv.Session) -> Release:
    session.release(ASKED, epsilon=1)
    return session.release(COMPUTED, epsilon=1)


def test_other_arithmetic_on_the_same_measurement_is_free(session: pv.Session, answer: Release) -> None:
    plain, computed = session.plan(ASKED, epsilon=1), session.plan(COMPUTED, epsilon=1)
    assert recall.question_digest(plain) == recall.question_digest(computed)
    assert recall.asked_digest(plain) != recall.asked_digest(computed)
    assert answer.paid_before
    assert session.spent == pv.PureDP(1)
    again = session.release(ASKED + " HAVING 2 * n > 300", epsilon=1)
    assert again.paid_before
    assert again.values("n") == answer.values("n")


def test_values(answer: Release) -> None:
    assert answer.columns == ("region", "n", "pay", "above", "share", "n_low", "round", "never")
    assert answer.values("region") == ["north", "south"]
    assert 0.6 < answer.values("share")[0] < 0.7
    assert answer.values("above") == pytest.approx([x - 180 for x in answer.values("pay")])
    assert answer.values("n_low") == answer.interval("n")[0]
    assert answer.values("round") == pytest.approx(answer.values("pay"), abs=0.051)
    assert all(map(math.isnan, answer.values("never")))
    low, high = answer.interval("share")
    assert all(a < x < b for x, a, b in zip(answer.values("share"), low, high, strict=True))


def test_every_format_shows_them(answer: Release) -> None:
    assert "missing" in str(answer)
    assert "0.66" in str(answer)
    assert "never" in answer.chart()
    assert "missing" in answer._repr_html_()
    rows = json.loads(rendered.answer(answer))["rows"]
    assert rows[0]["never"] is None
    assert set(rows[0]) >= {"share", "share_low", "share_high", "share_noisy", "n_low"}
    table = answer.to_arrow()
    assert "round_low" in table.column_names
    assert table.column_names.count("n_low") == 1  # an end of an interval is not told twice
    assert frame.csv(answer)
    assert answer.to_pandas().attrs["notes"]
    assert answer.plot("share") is not None
    assert answer.plot() is not None


def test_the_certificate_of_a_fresh_answer_is_verified_and_a_changed_value_is_not(session: pv.Session) -> None:
    fresh = session.release(COMPUTED, epsilon=0.5, fresh=True)
    assert "share" in fresh.certificate.document["answer"]
    pv.verify(fresh.certificate, ledger=session.ledger)
    text = fresh.certificate.to_json()
    share = json.dumps(fresh.certificate.document["answer"]["share"]["values"][0])
    forged = pv.Certificate.from_json(text.replace(share, "0.5", 1))
    with pytest.raises(VerificationError, match="share"):
        pv.verify(forged)


def test_explain_says_what_is_computed(session: pv.Session) -> None:
    text = " ".join(session.explain(COMPUTED, epsilon=1).split())
    assert "Computed from the answer: share = n / total(n)." in text
    assert "A total is of all groups, shown or not." in text
    assert "share follows from the columns" in text
    plan = session.plan("SELECT COUNT(*) AS n, COUNT(income) AS k, n - k AS gone FROM people", epsilon=1)
    assert "gone within" in " ".join(plan.explain().split())
