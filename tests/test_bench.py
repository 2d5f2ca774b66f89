"""The benchmarks: each module is listed, imports, and is named where its figures are published. None is run here."""

import importlib
import math
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench import engines, optimum, people, samples, scale
from bench import error as error_bench
from bench.__main__ import BENCHMARKS, main
from bench.peers.tables_common import REGIONS
from bench.people import LOWER, UPPER, error, make, truth
from bench.places import PLACES
from rich.console import Console

from privet.engines.registry import ENGINES

ROOT = Path(__file__).parents[1]


def test_every_benchmark_is_listed() -> None:
    modules = {
        path.stem for path in (ROOT / "bench").glob("*.py") if "\ndef main() -> None:" in path.read_text("utf-8")
    }
    assert modules == set(BENCHMARKS)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_imports_and_is_documented(name: str) -> None:
    assert callable(importlib.import_module(f"bench.{name}").main)
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert f"`./dev bench {name}`" in pages


def test_an_unknown_name_is_refused_with_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nosie"])
    message = capsys.readouterr().err
    assert "there is no benchmark 'nosie'" in message
    assert all(name in message for name in BENCHMARKS)


def test_the_error_benchmark_in_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Privet alone, few draws, made-up rows: near the optimum, and the page is written."""
    monkeypatch.setattr(samples, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(error_bench, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(error_bench, "EPSILONS", (1.0,))
    monkeypatch.setitem(error_bench.DRAWS, "Privet", (400, 25, 10**6))
    sample = samples.Sample("tiny", "made up", 0, 10, ("a", "b"))
    rows = pa.table({"unit": range(40), "place": ["a", "a", "b", "c"] * 10, "value": [i / 4 for i in range(40)]})
    (tmp_path / "data").mkdir()
    pq.write_table(rows, tmp_path / "data" / "error-tiny.parquet")
    asked = [error_bench.Question(sample, each) for each in ("count", "sum", "mean", "quantile", "keys")]
    asked.append(error_bench.Question(sample, "count", grouped=True))
    asked.append(error_bench.Question(sample, "quantile", 0.5, told="values"))
    found = {(question, epsilon): each for question, epsilon, each in error_bench.measured("Privet", asked)}
    assert len(found) == len(asked)
    for question in (asked[0], asked[1], asked[5]):
        measured, best = found[question, 1.0], error_bench.reference(question, question.truth(), 1.0)
        assert isinstance(measured, error_bench.Figure)
        assert best is not None
        assert 0.6 < measured.value / best < 1.6  # 400 draws: more than 8 standard errors to either side
    page = tmp_path / "error.md"
    page.write_text(f"# Error\n{error_bench.START}yesterday\n{error_bench.END}The rest.\n")
    error_bench.publish(error_bench.report(asked, {"Privet": found}), page)
    assert "yesterday" not in page.read_text()
    assert page.read_text().count("| tiny |") == len(asked)
    assert page.read_text().endswith("The rest.\n")


def test_the_optimum() -> None:
    assert optimum.keep([1, 2, 3, 4, 5], math.log(2), 0.1) == pytest.approx(
        [0.1, 0.3, 0.7, 0.9, 1]
    )  # Google's own test
    assert optimum.counting(1, 1) == pytest.approx(math.sqrt(2 * math.exp(-1)) / (1 - math.exp(-1)))  # geometric
    assert optimum.additive(8, 1) == pytest.approx(optimum.counting(8, 1), rel=0.02)
    assert optimum.additive(1, 0.01) == pytest.approx(math.sqrt(2) / 0.01, rel=0.001)  # Laplace
    # The exponential mechanism, once more, code by code.
    values, q, rank = np.array([1.0, 1, 2, 5, 5, 9]), 0.5, 3.0
    codes = np.arange(11.0)
    below, ties = np.array([(values < c).sum() for c in codes]), np.array([(values == c).sum() for c in codes])
    weights = np.exp(-np.maximum(0, np.maximum(below - rank, rank - below - ties)) / (2 * 0.5))
    squared = np.maximum(0, np.maximum(2 - codes, codes - 5)) ** 2
    expected = math.sqrt((weights * squared).sum() / weights.sum())
    assert optimum.quantile(values, q, (0.0, 10.0), True, 1, 1.0) == pytest.approx(expected, rel=0.15)


def test_the_peoples_table_and_its_truth(tmp_path: Path) -> None:
    make(tmp_path / "people.parquet", 2000)
    everyone, capped = truth(tmp_path / "people.parquet"), truth(tmp_path / "people.parquet", 5)
    assert list(everyone["count"]) == REGIONS
    assert sum(everyone["count"].values()) == 2000
    assert 0 < sum(capped["count"].values()) < 2000
    assert all(LOWER <= mean <= UPPER for mean in everyone["mean"].values())
    assert error(everyone, everyone) == {"count": 0, "sum": 0, "mean": 0}
    assert error(capped, everyone)["count"] > 0


def test_every_engine_has_a_place() -> None:
    assert set(PLACES) | {"reference"} == set(ENGINES)
    assert set(PLACES) == set(engines.SIZES) == set(scale.FITTED) == set(scale.CHECKED)


@pytest.mark.parametrize("name", ["duckdb", "postgres"])
def test_the_benchmarks_of_engines_in_small(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All questions, three ways; and a model of a thousand rows."""
    monkeypatch.setattr(people, "ENVIRONMENTS", tmp_path)
    console = Console(width=200, file=StringIO())
    with PLACES[name]() as place:
        lines = list(engines.measured(place, 1000, 1))
        assert [line[2] for line in lines] == [each.name for each in engines.QUESTIONS]
        assert all(
            line[6] and (line[7] or not each.capped) for line, each in zip(lines, engines.QUESTIONS, strict=True)
        )
        (tmp_path / "scale").mkdir()
        found = list(scale.measured(place, 1000, tmp_path / "scale"))
        assert [each.work.people for each in found].count(0) == 6
        assert not list((tmp_path / "scale").iterdir())
        model = scale.report(console, name, found[1:], found[:1])
    assert all(each.cpu > 0 for each in found)
    assert all(coefficient >= 0 for coefficient in model.coefficients)
    assert "not fitted" in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_model_finds_what_a_cost_is_made_of() -> None:
    works = [scale.Work(n, g, k, p) for n in (10**6, 10**7) for g, k in ((1, 0), (9, 1), (99, 2)) for p in (0, n // 10)]
    works += [scale.Work(10**6, 7, 1, 10**4)]
    true = scale.Model((0.05, 2e-8, 1e-8, 1e-4, 5e-8, 1e-7))
    found = scale.fitted([scale.Measured(work, true.seconds(work), 0) for work in works])
    assert found.coefficients == pytest.approx(true.coefficients, rel=1e-6)
    assert found.seconds(scale.Work(10**9, 50)) == pytest.approx(true.seconds(scale.Work(10**9, 50)))
    none = scale.fitted([scale.Measured(work, 1.0 + 1e-9 * (10**8 - work.rows), 0) for work in works])
    assert none.coefficients[1] == 0  # rows never make a question cheaper
