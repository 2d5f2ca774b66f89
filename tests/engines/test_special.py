"""The table of special values (special.py) on every engine."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from itertools import compress
from pathlib import Path
from typing import Any

import pytest
from tests.effort import some
from tests.engines.special import REFUSED, TOPICS, Topic, expressions, right, statement, table
from tests.movers import opened

from privet.engines.base import ArrowRows
from privet.engines.registry import ENGINES
from privet.tables.relation import Table

SCHEMA, ROWS = table()


@pytest.fixture
def engine(name: str) -> Iterator[Any]:
    made = opened(name, Table(SCHEMA, ArrowRows(ROWS)))
    yield made
    made.close()


def wrong(topics: list[Topic], found: list[list[int]]) -> list[str]:
    """Every case and row with other integers than are written there."""
    told = []
    names = [f"{topic.name}, case {i}" for topic in topics for i in range(len(topic.cases))]
    types = statement(SCHEMA, topics).input.types()
    sizes = [len(case.tallies(ask, types)) for topic in topics for case, ask in expressions(topic)]
    for row, (got, expected) in enumerate(zip(found, right(SCHEMA, topics), strict=True)):
        place = 0
        for name, size, integers in zip(names, sizes, expected, strict=True):
            if integers is not None and got[place : place + size] != integers:
                told.append(f"{name}, row {row}: {got[place : place + size]}, not {integers}")
            place += size
    return told


def test_special_values(engine: Any) -> None:
    refused = {topic.name: engine.supports(statement(SCHEMA, [topic])) for topic in TOPICS}
    marks = {topic: reason for (each, topic), reason in REFUSED.items() if each == engine.name}
    assert {topic: reason for topic, reason in refused.items() if reason is not None} == marks
    topics = [topic for topic in TOPICS if topic.name not in marks]
    found = engine.answer(statement(SCHEMA, topics))
    assert wrong(topics, found) == []
    few = some(topics, every=3)
    types = statement(SCHEMA, topics).input.types()
    kept = [topic in few for topic in topics for case, ask in expressions(topic) for _ in case.tallies(ask, types)]
    together = [sum(each) for each in compress(zip(*found, strict=True), kept)]
    assert engine.answer(statement(SCHEMA, few, by_row=False)) == [together]


def test_another_integer_is_noticed() -> None:
    reference = opened("reference", Table(SCHEMA, ArrowRows(ROWS)))
    topics = [topic for topic in TOPICS if ("reference", topic.name) not in REFUSED]
    found = reference.answer(statement(SCHEMA, topics))
    for column in range(0, len(found[0]), 16):
        twin = [[*row] for row in found]
        twin[0][column] += 1
        assert len(wrong(topics, twin)) == 1


def test_marks_are_about_what_there_is() -> None:
    assert {engine for engine, _ in REFUSED} <= set(ENGINES)
    assert {topic for _, topic in REFUSED} <= {topic.name for topic in TOPICS}
    assert len({topic.name for topic in TOPICS}) == len(TOPICS)


def test_the_page_has_this_table() -> None:
    """If not: python docs/make_engines.py."""
    path = Path(__file__).parents[2] / "docs" / "make_engines.py"
    found = runpy.run_path(str(path))
    page = found["PAGE"].read_text(encoding="utf-8")
    assert found["renewed"](page) == page
    assert page.count("| yes |") > 20
