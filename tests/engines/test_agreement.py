"""One suite for every engine: for each question of the golden files and of generated worlds, the reference's integers.

Before bounding matters they are the same everywhere; after it, wherever the survivors are determined: nobody has more
rows than the caps let through, or those of each person are equal. Where bounding chooses, an engine has its own hash.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.effort import some
from tests.engines.agreement import Asked, Expected, determined, differences, expected, taken
from tests.movers import opened, reachable
from tests.neighbours.questions import planned
from tests.neighbours.worlds import FLOATS, INTEGERS, TEXTS, world
from tests.session import real
from tests.session.test_questions import ASKED as QUESTIONS
from tests.sql.catalogue import PEOPLE, PLACES, VISITS
from tests.sql.test_pairs import PAIRS

import privet as pv
from privet.engines.base import ArrowRows
from privet.engines.registry import ENGINES
from privet.tables.holders import Holders
from privet.tables.relation import PublicTable, Table
from privet.tables.statement import AtMostGroups, AtMostRows, Buckets, PeopleInGroups, Rows, Unbounded


@dataclass(frozen=True)
class Corpus:
    """Tables, what a session asks of them, and what the reference finds."""

    tables: list[Table]
    public: list[PublicTable]
    asked: list[Expected]


# --- the statements of tests/golden/sql -----------------------------------------------------------

_MOMENTS = [date(2024, 2, 29), date(2025, 12, 31), date(1950, 1, 1), date(1950, 12, 31), date(1582, 10, 4), None]
_TIMES = [datetime(2025, 1, 1), datetime(2025, 1, 7, 23, 59, 59, 999_999), datetime(1969, 12, 31, 23), None]
_VALUES: dict[str, list[Any]] = {
    "region": ["north", "south", "west", *TEXTS], "zone": [1, 2, 3, *INTEGERS], "age": [0, 17, 64, 110, 111, *INTEGERS],
    "income": [0.0, 200_000.0, 49_999.5, 12.345, *FLOATS], "hours": [1, 40, 60, 61, None],
    "rate": [-0.5, 0.5, 0.125, 0.49999999999999994, math.nan, None, -0.0], "smoker": [True, False, None],
    "name": TEXTS, "day": [date(2024, 1, 1), date(2025, 6, 15), *_MOMENTS], "born": [date(1950, 7, 1), *_MOMENTS],
    "seen": [datetime(2025, 1, 3, 12, 30), *_TIMES], "Work Place": ["home", "office", "Home", None],
    "amount": [0.0, 2_000.0, 0.05, *FLOATS], "kind": ["call", "stay", "CALL", None],
    "visited": [date(2025, 1, 1), date(2025, 3, 31), *_MOMENTS], "value": [-10, 10, 3, *INTEGERS],
    "Value": [0, 1, *INTEGERS], "country": ["X", "Y", None], "town": list("abcdefg"), "year": [2023, 2025, 2026, None],
}  # fmt: skip
_TYPES = {"day": pa.date32(), "born": pa.date32(), "visited": pa.date32(), "seen": pa.timestamp("us")}


def _rows(of: Table, counts: list[int], chance: Random, *, equal: bool) -> Table:
    """So many rows of each of some people: different ones, or equal ones."""
    names = [name for name, _ in of.schema.columns]
    rows: list[dict[str, Any]] = []
    for who, count in enumerate(counts):
        mine = [{name: chance.choice(_VALUES[name]) for name in names} for _ in range(count)]
        rows += [{"person_id": who} | (mine[0] if equal else each) for each in mine]
    arrow = {name: pa.array([row[name] for row in rows], _TYPES.get(name)) for name in ("person_id", *names)}
    return Table(of.schema, ArrowRows(pa.table(arrow)))


REGIONS = pv.public_table(
    "regions", pa.table({"code": ["north", "south"], "area": [1.0, 9.0], "coast": ["yes", "no"]}), key="code"
)


FEW = ([1] * 16, [0, 1, 2, 3] * 4)
"""Rows of each person in the first table and in the second: no more than caps let through, unless a question asks."""
EQUAL = ([1, 3, 2] * 5, [25, 1, 0, 4, 2] * 3)
"""More than caps let through; those of each person are equal."""


@cache
def golden_sql() -> list[Corpus]:
    """Every statement that has a pair, over a few rows of each person, and over many that are equal."""
    made = []
    for tables, public in (([PEOPLE, VISITS], [REGIONS]), ([PLACES], [])):
        names = [table.name for table in tables]
        pairs_ = [pair for _, pair in PAIRS if re.search(rf"(?i)\b({'|'.join(names)})\b", pair.sql)]
        asked: list[Asked] = []
        for counts in (FEW, EQUAL):
            chance, equal = Random(1), counts is EQUAL
            filled = [_rows(each, many, chance, equal=equal) for each, many in zip(tables, counts, strict=False)]
            asked = asked or taken(filled, public, [(pair.name, pair.sql, _options(pair.sql)) for pair in pairs_])
            made.append(Corpus(filled, public, expected(filled, public, asked, equal=equal)))
    return made


def _options(sql: str) -> dict[str, Any]:
    return {} if re.search(r"OPTIONS \(.*epsilon", sql) else {"epsilon": 1, "delta": "1e-6"}


# --- the questions of tests/golden/questions.toml -------------------------------------------------


@cache
def golden_questions() -> list[Corpus]:
    """Every question of a new user, about some of the people."""
    made = []
    rows = {name: frame.head(160 if name == "years" else 60) for name, frame in real.frames().items()}
    for tables, public in real.declared(rows):
        names = [table.name for table in tables]
        texts = [each["ask"] for each in QUESTIONS if "refused" not in each]
        texts = [text for text in texts if re.search(rf"\b(FROM|JOIN) ({'|'.join(names)})\b", text)]
        asked = taken(tables, public, [(text, text, _options(text)) for text in texts])
        made.append(Corpus(tables, public, expected(tables, public, asked)))
    return made


# --- the tests ------------------------------------------------------------------------------------

OTHERS = [each for each in ENGINES if each != "reference"]
SLOW = {"spark": 16}
"""Engines that take long for each statement, however few rows it reads: without --all, every n-th statement."""


@pytest.fixture(params=OTHERS)
def other(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every engine but the reference."""
    with reachable(request.param, request) as name:
        yield name


@pytest.mark.parametrize(("corpora", "least"), [(golden_sql, 250), (golden_questions, 40)], ids=["sql", "questions"])
def test_golden(other: str, corpora: Callable[[], list[Corpus]], least: int) -> None:
    found = [
        each
        for corpus in corpora()
        for each in differences(other, corpus.tables, corpus.public, some(corpus.asked, every=SLOW.get(other, 1)))
    ]
    assert found == []
    assert sum(len(corpus.asked) for corpus in corpora()) >= least


@pytest.mark.parametrize("kind", [AtMostRows, AtMostGroups, PeopleInGroups, Unbounded, Holders, Buckets])
def test_every_kind_is_compared(kind: type) -> None:
    compared = [each.asked for corpus in (*golden_sql(), *golden_questions()) for each in corpus.asked]
    parts = [part for each in compared for part in (each.statement, each.statement.bounding, *each.more)]
    assert any(isinstance(part, kind) for part in parts)


def test_worlds(other: str, effort: int) -> None:
    """Statements of the search for neighbours; where bounding chooses, as many rows survive."""
    compared = 0
    for number in range(70_000, 70_000 + max(3, 16 // SLOW.get(other, 1)) * effort):
        chance = Random(number)
        made = world(chance)
        tables = list(made.tables.values())
        with closing(opened(other, *tables, public=made.public)) as engine:
            reference = opened("reference", *tables, public=made.public)
            plans = [planned(chance, made) for _ in range(4)]
            for statement in (each for asks in plans if asks is not None for each in asks.statements()):
                if reference.supports(statement) is not None:
                    continue
                assert engine.supports(statement) is None, number
                chosen = not determined(reference, Asked("", "answer", statement))
                if chosen and isinstance(statement.bounding, AtMostGroups):
                    continue
                asked = replace(statement, tallies=(Rows(),)) if chosen else statement
                found, right = engine.answer(asked), reference.answer(asked)
                if chosen:
                    found, right = ([[sum(row[0] for row in each)]] for each in (found, right))
                assert found == right, (number, statement)
                compared += 1
    assert compared >= 5


def test_another_integer_is_noticed() -> None:
    corpus = golden_sql()[0]
    right = corpus.asked[0]
    wrong = replace(right, integers=[[right.integers[0][0] + 1]])
    assert list(differences("reference", corpus.tables, corpus.public, [right])) == []
    (told,) = differences("reference", corpus.tables, corpus.public, [wrong])
    assert "answer found" in told
