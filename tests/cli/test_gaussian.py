"""Prices in rho, or in epsilon and delta, on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.asking import COUNT, POLICY, Shell, made


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    capped = "\n[datasets.people.analysts]\npress = { epsilon = 0.25 }\n"
    made(tmp_path, POLICY.replace("{ epsilon = 3 }", "{ epsilon = 1, delta = 1e-6 }").replace(capped, ""))
    return Shell(capsys, monkeypatch)


def test_a_question_in_rho(shell: Shell) -> None:
    tree = shell.json("query", COUNT, "--rho", "1/100", "--json", "--certificate", "answer.json")
    assert tree["spent"] == tree["guarantee"] == {"rho": "0.01"}
    assert shell.out("verify", "answer.json", "--ledger", "people.ledger").startswith("rules      passed: rho 0.01")
    again = shell.json("query", COUNT, "--rho", "1/200", "--json")
    assert (again["paid_before"], again["rows"]) == (True, tree["rows"])


def test_a_question_in_epsilon_and_delta_gets_the_better_noise(shell: Shell) -> None:
    explained = " ".join(shell.out("explain", COUNT, "--epsilon", "0.5", "--delta", "1e-7").split())
    assert "Mechanism Discrete Laplace noise: the errors of discrete Gaussian noise would be" in explained
    done = shell("query", COUNT, "--epsilon", "0.5", "--delta", "1e-7", "--mechanism", "gaussian")
    assert "Spent epsilon 0.5, delta 1e-7; " in done.out


def test_errors_may_be_paid_for_with_a_delta(shell: Shell) -> None:
    tree = shell.json("explain", COUNT, "--within", "n=60", "--delta", "1e-8", "--mechanism", "gaussian", "--json")
    price = tree["derived"]["price"]
    assert (price["kind"], price["delta"]) == ("approx", "1/100000000")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--mechanism", "gaussian", "--epsilon", "1"], "Write, for example: --rho 0.01"),
        (["--mechanism", "laplace", "--rho", "1"], "Write, for example: --epsilon 0.5"),
        (["--mechanism", "gauss", "--rho", "1"], "The mechanisms are: laplace, gaussian"),
        (["--delta", "1e-6"], "Write, for example: --epsilon 0.5 --delta 1e-6"),
        (["--rho", "1", "--epsilon", "1"], "both epsilon and rho are set"),
        (["--rho", "1/10000000"], "Write, for example: --rho 0.0000005"),
    ],
)
def test_refusals_in_the_words_of_the_terminal(shell: Shell, options: list[str], message: str) -> None:
    error = shell.refused(2, "query", COUNT, *options)
    assert message in " ".join(error.split())
    assert not Path("people.ledger").exists()
