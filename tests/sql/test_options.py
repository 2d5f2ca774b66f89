"""Options in the statement: its price, its caps, and the column that identifies people; and comments beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import privet as pv
from privet.errors import QueryError
from privet.sql.comments import blanked
from privet.sql.options import _capped
from privet.tables import caps
from privet.tables.statement import AtMostGroups, AtMostRows

VISITS = pa.table({"who": [i % 40 for i in range(200)], "kind": ["call", "stay"] * 100})
HALF = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, max_rows_contributed = 2) COUNT(*) AS n FROM visits"


def visits(**cap: Any) -> pv.Table:
    return pv.table(
        "visits", VISITS, protect=pv.person("who", **cap), columns={"kind": pv.keys("call", "stay", "letter")}
    )


@pytest.fixture
def session() -> Iterator[pv.Session]:
    with pv.Session([visits(max_rows=4)], budget=pv.ApproxDP(10, 1e-5), ledger=None) as opened:
        yield opened


def test_the_price_is_that_of_the_question(session: pv.Session) -> None:
    plan = session.plan(HALF)
    assert plan.price == pv.PureDP(0.5)
    assert plan.query == session.tables["visits"].cap(max_rows=2).agg(n=pv.count())
    assert "epsilon 0.5" in session.explain(HALF)
    answer = session.release(HALF)
    assert answer.spent == pv.PureDP(0.5)
    pv.verify(answer.certificate, ledger=session.ledger)
    both = session.plan(HALF.replace("0.5,", "0.5, delta = 1e-7,"))
    assert both.asked == pv.ApproxDP(0.5, 1e-7)


def test_two_prices_must_agree(session: pv.Session) -> None:
    assert session.plan(HALF, epsilon="1/2") == session.plan(HALF, epsilon=0.5)
    for other in ({"epsilon": 0.25}, {"epsilon": 1}, {"rho": 1}, {"within": {"n": 5}}):
        with pytest.raises(QueryError, match=r"the statement says epsilon = 0\.5, but epsilon|both epsilon and"):
            session.plan(HALF, **other)
    with pytest.raises(QueryError, match="the price is missing"):
        session.plan("SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM visits")


@pytest.mark.parametrize("declared", [{"max_rows": m} for m in (1, 4, 6)] + [
    {"max_groups": g, "max_rows_per_group": r} for g in (1, 2, 3) for r in (1, 2, 5)
])  # fmt: skip
def test_every_cap_keeps_to_the_options_and_to_the_policy(declared: dict[str, int]) -> None:
    """Whatever the options are, they are refused, or hold, and the declared cap still holds."""
    table, made = visits(**declared), 0
    query = table.group_by("kind").agg(n=pv.count())
    held = caps.holding(query.input)
    assert held is not None
    for rows in (None, 1, 2, 3, 5, 7):
        for groups in (None, 1, 2, 3, 4):
            asked = {"max_rows_contributed": rows, "max_groups_contributed": groups}
            try:
                cap = _capped(query, **{name: most for name, most in asked.items() if most}).at_most or held
            except QueryError:
                continue
            made += 1
            assert caps.tightens(held, cap)
            assert rows is None or caps.rows_of(cap) <= rows
            assert groups is None or caps.groups_of(cap) <= groups
    assert made >= 3


def test_they_are_as_generous_as_they_can_be() -> None:
    query = visits(max_rows=6).group_by("kind").agg(n=pv.count())
    assert _capped(query, max_groups_contributed=2).at_most == AtMostGroups(2, 3)
    assert _capped(query, max_rows_contributed=5, max_groups_contributed=2).at_most == AtMostGroups(2, 2)
    assert _capped(query, max_rows_contributed=2, max_groups_contributed=5).at_most == AtMostRows(2)
    assert _capped(query, max_groups_contributed=6).at_most is None
    assert _capped(visits(max_rows=6).agg(n=pv.count()), max_groups_contributed=2).at_most is None  # one group


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a--b", "a   "),
        ("a /* b */ c", "a         c"),
        ("'--' \"/*\" -- '", "'--' \"/*\"     "),
        ("'it''s -- x' /*'*/y", "'it''s -- x'      y"),
        ("/* a\n-- b */\nc", "    \n       \nc"),
        ("/* open", "/* open"),
        ("/*+ hint */", "/*+ hint */"),
        ("-- a /* b\nc */", "         \nc */"),
    ],
)
def test_comments_are_blank_and_nothing_moves(text: str, expected: str) -> None:
    assert blanked(text) == expected


def test_a_comment_can_hide_no_part_of_a_statement(session: pv.Session) -> None:
    """Whatever the tokenizer and our own reading of comments disagree about is refused."""
    plain = session.parse("SELECT COUNT(*) AS n FROM visits WHERE kind = 'call'")
    for comment in ("/* ' */", '/* " */', "-- '\n", '-- "\n', "/**/", "/* ; DROP TABLE visits */", "--\n"):
        assert session.parse(f"SELECT COUNT(*) AS n {comment} FROM visits WHERE kind = {comment} 'call'") == plain
    for trick in ("/* /* */ */", "/* a */ */", "e'\\' -- '", "$$ -- $$", "{# x #}", "/*+ x */", "# x\n", "'/*' */"):
        with pytest.raises(QueryError):
            session.parse(f"SELECT COUNT(*) AS n {trick} FROM visits WHERE kind = 'call'")
