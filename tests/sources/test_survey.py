"""The bundled survey: the same each time, plausible, quick, and of nobody."""

from __future__ import annotations

import time
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from privet.errors import UserError
from privet.sources import survey
from privet.sources.survey import Survey, make_survey

FIRST = [(1, "south", 65, False), (2, "east", 71, True)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Survey:
    return make_survey(tmp_path_factory.mktemp("survey"))


def rows(made: Survey, query: str) -> list[Any]:
    text = query.replace("people", f"'{made.people}'").replace("visits", f"'{made.visits}'")
    return duckdb.execute(text).fetchall()


def test_people_are_as_described(made: Survey) -> None:
    people = pq.read_table(made.people)
    assert people.column_names == ["person_id", "region", "age", "income", "smoker"]
    assert [str(kind) for kind in people.schema.types] == ["int64", "string", "int64", "double", "bool"]
    assert people.num_rows == 100_000
    assert rows(made, "select count(distinct person_id), min(age), max(age) from people") == [(100_000, 0, 100)]
    shares = dict(rows(made, "select region, count(*) / 100000 from people group by 1"))
    assert shares.keys() == survey.REGIONS.keys()
    assert all(abs(shares[name] - share) < 0.005 for name, (share, _) in survey.REGIONS.items())
    (missing,) = rows(
        made, "select avg((income is null)::int), avg((income is null)::int) filter (age >= 16) from people"
    )
    assert 0.15 < missing[0] < 0.35
    assert 0.055 < missing[1] < 0.065
    ((smokers,),) = rows(made, "select avg(smoker::int) from people")
    assert 0.15 < smokers < 0.25
    medians = dict(rows(made, "select region, median(income) from people group by 1"))
    assert max(medians, key=lambda name: medians[name]) == "capital"


def test_visits_are_as_described(made: Survey) -> None:
    visits = pq.read_table(made.visits)
    assert visits.column_names == ["person_id", "day", "kind", "cost", "minutes"]
    assert [str(kind) for kind in visits.schema.types] == ["int64", "date32[day]", "string", "double", "int64"]
    assert rows(made, "select min(day), max(day) from visits") == [(date(2025, 1, 1), date(2025, 12, 31))]
    assert {name for (name,) in rows(made, "select distinct kind from visits")} == survey.KINDS.keys()
    ((least, most, short, long),) = rows(made, "select min(cost), max(cost), min(minutes), max(minutes) from visits")
    assert 0 <= least < 20
    assert most == 2000
    assert 3 <= short < long <= 480
    assert rows(made, "select count(*) from visits where person_id not in (select person_id from people)") == [(0,)]
    both = "people left join visits using (person_id)"
    each = f"select person_id, any_value(age) age, count(day) n from {both} group by 1"
    ((mean, middle, often),) = rows(made, f"select avg(n), median(n), count(*) filter (n >= 200) from ({each})")
    assert 3.5 < mean < 4.8
    assert middle < mean
    assert 3 <= often <= 50
    ((young, old),) = rows(made, f"select avg(n) filter (age < 30), avg(n) filter (age >= 70) from ({each})")
    assert old > 1.5 * young
    costs = dict(rows(made, "select kind, median(cost) from visits group by 1"))
    assert max(costs, key=lambda name: costs[name]) == "emergency"
    ((weekend,),) = rows(made, "select avg((dayofweek(day) in (0, 6))::int) from visits")
    assert 0.05 < weekend < 0.12


def test_it_is_the_same_each_time(tmp_path: Path) -> None:
    one, other = make_survey(tmp_path / "a" / "b", people=500), make_survey(str(tmp_path / "c"), people=500)
    for left, right in zip(one, other, strict=True):
        assert pq.read_table(left).equals(pq.read_table(right))
    first = pq.read_table(one.people).slice(0, 2).to_pylist()
    assert [(p["person_id"], p["region"], p["age"], p["smoker"]) for p in first] == FIRST


def test_more_people_begin_with_the_same_ones(tmp_path: Path) -> None:
    few, many = (pq.read_table(make_survey(tmp_path, people=n).people) for n in (10, 1000))
    assert many.slice(0, 10).equals(few)


@pytest.mark.parametrize("what", ["region", "minutes/r", "minutes/a"])
def test_its_numbers_look_uniform_and_unrelated(what: str) -> None:
    numbers = survey._uniform(what, 100_000)
    counts = np.histogram(numbers, bins=100, range=(0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 200  # chi square with 99 degrees of freedom
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 0.02
    assert abs(np.corrcoef(numbers, survey._uniform("age", 100_000))[0, 1]) < 0.02


def test_streams_of_long_names_differ() -> None:
    assert not np.array_equal(survey._uniform("minutes/r", 9), survey._uniform("minutes/a", 9))


@pytest.mark.parametrize("people", [0, -1, 2.5, "many"])
def test_numbers_of_people_that_make_no_sense_are_refused(people: int, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"people must be a whole number, 1 or greater.*people=100_000"):
        make_survey(tmp_path, people=people)


def test_one_person_is_a_survey(tmp_path: Path) -> None:
    assert pq.read_table(make_survey(tmp_path, people=1).people).num_rows == 1


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(UserError, match="can't be written to"):
        make_survey(tmp_path / "x", people=3)


def test_it_is_quick(tmp_path: Path) -> None:
    start = time.process_time()
    make_survey(tmp_path)
    assert time.process_time() - start < 4  # of all threads; about one second on a free machine
