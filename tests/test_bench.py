"""The benchmarks: each module is listed, imports, and is named where its figures are published. None is run here."""

import importlib
from pathlib import Path

import pytest
from bench.__main__ import BENCHMARKS, main
from bench.peers.tables_common import REGIONS
from bench.people import LOWER, UPPER, error, make, truth

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


def test_the_peoples_table_and_its_truth(tmp_path: Path) -> None:
    make(tmp_path / "people.parquet", 2000)
    everyone, capped = truth(tmp_path / "people.parquet"), truth(tmp_path / "people.parquet", 5)
    assert list(everyone["count"]) == REGIONS
    assert sum(everyone["count"].values()) == 2000
    assert 0 < sum(capped["count"].values()) < 2000
    assert all(LOWER <= mean <= UPPER for mean in everyone["mean"].values())
    assert error(everyone, everyone) == {"count": 0, "sum": 0, "mean": 0}
    assert error(capped, everyone)["count"] > 0
