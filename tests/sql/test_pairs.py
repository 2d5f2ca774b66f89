"""A statement and the same question in Python: equal, by value."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from typing import Any

import pytest
from tests.sql.catalogue import GOLDEN, PEOPLE, PLACES, REGIONS, ROWS, VISITS, Pair, asked, pairs

import privet as pv
from privet.tables.codec import decode, encode
from privet.tables.query import Query

THEMES = ("aggregates", "rows", "expressions", "groups", "cubes", "hierarchies", "tables", "arrangements", "formulas")
PAIRS = [(theme, pair) for theme in THEMES for pair in pairs(GOLDEN / f"{theme}.txt", "= ")]
IDS = [f"{theme}: {pair.name}" for theme, pair in PAIRS]
NAMES: dict[str, Any] = {
    "pv": pv, "Fraction": Fraction, "date": date, "datetime": datetime,
    "people": PEOPLE, "visits": VISITS, "readings": ROWS, "regions": REGIONS, "places": PLACES,
    "a": pv.col("age"), "i": pv.col("income"), "r": pv.col("rate"), "h": pv.col("hours"), "d": pv.col("day"),
}  # fmt: skip


def in_python(pair: Pair) -> Query:
    made: Query = eval(pair.other, dict(NAMES))
    return made


@pytest.mark.parametrize(("theme", "pair"), PAIRS, ids=IDS)
def test_they_are_equal(theme: str, pair: Pair) -> None:
    found, expected = asked(pair.sql), in_python(pair)
    assert found == expected
    assert hash(found) == hash(expected)
    assert str(found) == str(expected)
    assert decode(encode(found)) == found


def test_there_are_enough_and_all_different() -> None:
    assert len(PAIRS) >= 100
    assert len(set(IDS)) == len(PAIRS)
    different = {asked(pair.sql) for _, pair in PAIRS}
    assert len(different) > 0.8 * len(PAIRS)


def test_every_theme_is_read() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {*THEMES, "refused"}
