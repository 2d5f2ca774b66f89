"""The questions of a new user, in tests/golden/questions.toml: each is answered or refused as it says there."""

import math
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.session import real

import privet as pv

FILE = Path(__file__).parents[1] / "golden" / "questions.toml"
FOUND = tomllib.loads(FILE.read_text("utf-8"))
QUESTIONS = FOUND["question"]
ASKED = [question for question in QUESTIONS if question.get("needs") in (None, *FOUND["built"])]
CONFIDENCE = 1 - 1e-9
"""Of each cell: some 400 cells are wrong once in two million runs."""


@pytest.fixture(scope="module")
def asking() -> Iterator[tuple[dict[str, pv.Session], Any]]:
    """A session for each table, one open dataset for all tables of the same people; and plain DuckDB."""
    opened = real.datasets()
    sessions = {name: dataset.session() for name, dataset in opened.items()}
    yield sessions, real.plain()
    for dataset in set(opened.values()):
        dataset.close()


def test_there_are_enough_questions() -> None:
    assert len(ASKED) >= 60
    needed = {question["needs"] for question in QUESTIONS if "needs" in question}
    assert needed == {"quantiles", "keys", "sql", "cubes", "distinct"}
    assert len({question["ask"] for question in QUESTIONS}) == len(QUESTIONS)


@pytest.mark.parametrize("question", ASKED, ids=lambda question: " ".join(question["ask"].split())[:70])
def test_question(question: dict[str, Any], asking: tuple[dict[str, pv.Session], Any]) -> None:
    sessions, plain = asking
    text = question["ask"]
    session = sessions[next(iter(re.findall(r"\b(?:FROM|JOIN) (years|men|couples|women)\b", text)), "couples")]
    options: dict[str, Any] = {"epsilon": question.get("epsilon", 5), "confidence": CONFIDENCE}
    if "delta" in question:
        options["delta"] = question["delta"]
    if "OPTIONS" in text:
        del options["epsilon"]
    if "refused" in question:
        before = session.remaining
        with pytest.raises(pv.UserError) as refused:
            session.release(text, **options)
        assert first_sentence(str(refused.value)) == question["refused"]
        assert session.remaining == before
        return
    compare(question, session.release(text, **options), plain)


def test_a_wrong_answer_is_noticed(asking: tuple[dict[str, pv.Session], Any]) -> None:
    sessions, plain = asking
    release = sessions["couples"].release("SELECT COUNT(*) FROM couples", epsilon=5, confidence=CONFIDENCE)
    wrong = {"ask": "SELECT COUNT(*) + 50 FROM couples", "columns": ["count"]}
    with pytest.raises(AssertionError):
        compare(wrong, release, plain)
    assert "\n99.9999 % intervals" in str(release)  # and not 100 %


def first_sentence(message: str) -> str:
    return re.split(r"(?<=\.)\s", message, maxsplit=1)[0]


def compare(question: dict[str, Any], release: pv.Release, plain: Any) -> None:
    """Columns, groups, and every interval against the exact value of its cell."""
    frame = release.to_pandas()
    columns = question["columns"]
    values = [name for name in columns if f"{name}_low" in frame]
    keys = [name for name in columns if name not in values]
    assert [name for name in frame if name in columns] == columns
    assert len(frame) == question.get("groups", len(frame) if "shown" in question else 1)
    if "near" in question:
        low, high = plain.execute(question["near"]).fetchone()
        assert frame[f"{columns[0]}_low"][0] <= high
        assert low <= frame[f"{columns[0]}_high"][0]
        return
    found = plain.execute(question.get("truth", question["ask"])).fetchall()
    exact = {tuple(map(plainly, row[: len(keys)])): row[len(keys) :] for row in found}
    groups = [tuple(plainly(value) for value in row) for row in frame[keys].itertuples(index=False)]
    assert len(exact) >= question.get("shown", 0)
    assert set(exact) <= set(groups)
    for place, group in enumerate(groups):
        for position, name in enumerate(values):
            right = exact[group][position] if group in exact else empty(release, name)
            if right is not None:
                low, high = frame[f"{name}_low"][place], frame[f"{name}_high"][place]
                assert low - 1e-6 * abs(right) <= float(right) <= high + 1e-6 * abs(right), (
                    group,
                    name,
                    right,
                    low,
                    high,
                )
                assert math.isfinite(low)
                assert math.isfinite(high)


def plainly(value: Any) -> Any:
    """A key as a text that is the same for both: a bin is its lower end, a date its day."""
    if hasattr(value, "left"):
        value = value.left
    text = "None" if value is None or value != value else str(value)
    if (bin_ := re.fullmatch(r"\[(.+), .+[)\]]", text)) is not None:
        text = bin_[1]
    try:
        return f"{float(text):g}"
    except ValueError:
        return text.removesuffix(" 00:00:00")


def empty(release: pv.Release, name: str) -> int | None:
    """What an empty group has: no rows; a mean it has not."""
    kind = next(type(output).__name__ for column, output in release.plan.columns if column == name)
    return 0 if kind in ("Count", "CountPeople", "Sum") else None
