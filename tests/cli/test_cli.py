"""The command line: pictures that are pictures, errors of one line, and a demo that says what it should."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
from tests.effort import some
from typer.testing import CliRunner

import privet as pv
from privet import cli

SIGNATURES = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}
COMMANDS = (
    "audit", "batch", "bounds", "budget", "curve", "demo", "diagnose", "explain", "import", "init", "login", "logout",
    "mcp", "query", "check", "schema", "serve", "verify",
)  # fmt: skip


def run(*arguments: str) -> str:
    """What a command prints; it must succeed."""
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 0, result.output
    assert result.exception is None
    return result.output


def refusal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str, code: int = 2) -> str:
    """The one line of a command that must fail, seen as the shell sees it."""
    monkeypatch.setattr(sys, "argv", ["privet", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert out == ""
    return err


def test_help_names_every_command() -> None:
    text = run("--help")
    registered = {info.name or getattr(info.callback, "__name__", "") for info in cli.app.registered_commands}
    assert registered == set(COMMANDS)
    for command in COMMANDS:
        assert re.search(rf"^ +{command} +\w", text, re.MULTILINE), command
        assert "--help" in run(command, "--help")


@pytest.mark.parametrize("suffix", [".svg", ".pdf", ".PNG"])
def test_curve_writes_a_picture(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"picture{suffix}"
    assert run("curve", "--epsilon", "1/3", "--sensitivity", "2.5", "-o", str(path)).strip() == str(path)
    content = path.read_bytes()
    assert content.startswith(SIGNATURES[suffix.lower()])
    assert len(content) > 10_000


def test_the_picture_is_not_blank(tmp_path: Path) -> None:
    path = tmp_path / "curve.png"
    run("curve", "--epsilon", "1", "-o", str(path))
    pixels = matplotlib.image.imread(path)
    assert pixels.shape[:2] == (630, 1950)
    thirds = np.split(pixels[:, :, :3], 3, axis=1)
    for panel in thirds:  # each of the three has lines in it, on a white ground
        dark = panel.min(axis=2) < 0.5
        assert 0.005 < dark.mean() < 0.3
        assert (panel.min(axis=2) > 0.99).mean() > 0.3


def test_the_picture_says_what_it_shows(tmp_path: Path) -> None:
    path = tmp_path / "curve.svg"
    run("curve", "--epsilon", "0.5", "--sensitivity", "3", "-o", str(path))
    text = path.read_text(encoding="utf-8")
    labels = re.findall(r"<!-- (.*?) -->", text)  # matplotlib draws text as paths, with the text in a comment
    for label in ("released value", "density", "ratio of the densities", "Privacy profile", "total variation 0.221"):
        assert any(label in drawn for drawn in labels), label
    assert any("noise of scale 6" in drawn for drawn in labels)
    assert any("sensitivity 3" in drawn for drawn in labels)


@pytest.mark.parametrize(
    ("price", "says"),
    [
        (["--rho", "0.1"], ["noise of sigma 2.236", "total variation 0.177", "1e-06 at $\\epsilon$ = 1.995"]),
        (["--sigma", "20", "--sensitivity", "2"], ["noise of sigma 20", "sensitivity 2", "$\\rho$ = 0.005"]),
        (["--epsilon", "1", "--delta", "1e-6"], ["noise of sigma 4.225", "$\\delta$ = 1e-06 at $\\epsilon$ = 1"]),
    ],
)
def test_a_picture_of_the_gaussian_mechanism(tmp_path: Path, price: list[str], says: list[str]) -> None:
    """0.177 is 2 Phi(1/(2 sigma)) - 1; 4.2247 is the sigma of Balle and Wang (2018) for (1, 1e-6)."""
    path = tmp_path / "curve.svg"
    run("curve", "--mechanism", "gaussian", *price, "-o", str(path))
    labels = re.findall(r"<!-- (.*?) -->", path.read_text(encoding="utf-8"))
    for text in ["The Gaussian mechanism", "only in the tails", *says]:
        assert any(text in drawn for drawn in labels), text


@pytest.mark.parametrize(
    "price", some([["--rho", "1e-9"], ["--sigma", "1e50", "--sensitivity", "1e50"], ["--rho", "1000"]], every=2)
)
def test_extremes_of_the_gaussian_mechanism(tmp_path: Path, price: list[str]) -> None:
    path = tmp_path / "curve.png"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run("curve", "--mechanism", "gaussian", *price, "-o", str(path))
    assert path.read_bytes().startswith(SIGNATURES[".png"])


@pytest.mark.parametrize(
    ("epsilon", "sensitivity"), some([("1e-6", "1"), ("50", "1"), ("1000", "1e-50"), ("1", "1e50")], every=2)
)
def test_extremes_are_drawn_without_a_warning(tmp_path: Path, epsilon: str, sensitivity: str) -> None:
    path = tmp_path / "curve.png"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run("curve", "--epsilon", epsilon, "--sensitivity", sensitivity, "-o", str(path))
    assert path.read_bytes().startswith(SIGNATURES[".png"])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--epsilon", "0"], "--epsilon must be a number greater than 0"),
        (["--epsilon", "-1"], "--epsilon must be a number greater than 0"),
        (["--epsilon", "nan"], "--epsilon must be a number"),
        (["--epsilon", "inf"], "--epsilon must be a number"),
        (["--epsilon", "one"], "--epsilon must be a number"),
        (["--epsilon", ""], "--epsilon must be a number"),
        (["--epsilon", "1", "--sensitivity", "0"], "--sensitivity must be a number greater than 0"),
        (["--epsilon", "1", "--sensitivity", "1e300"], "epsilon or sensitivity is out of range for a chart"),
        (["--epsilon", "1e-300"], "epsilon or sensitivity is out of range for a chart"),
        (["--epsilon", "1e12"], "epsilon or sensitivity is out of range for a chart"),
        (["--rho", "1"], "the Laplace mechanism needs epsilon, and nothing else"),
        (["--mechanism", "gaussian"], "the Gaussian mechanism needs rho, or sigma, or epsilon and delta"),
        (["--mechanism", "gaussian", "--epsilon", "1"], "needs rho, or sigma, or epsilon and delta"),
        (["--mechanism", "gaussian", "--rho", "0"], "--rho must be a number greater than 0"),
        (["--mechanism", "gaussian", "--rho", "1e9"], "the price is out of range for a chart"),
        (["--mechanism", "gaussian", "--epsilon", "1", "--delta", "1"], "the price is out of range for a chart"),
        (["--mechanism", "gauss", "--rho", "1"], "The mechanisms are laplace and gaussian"),
        (["--epsilon", "1", "-o", "curve.txt"], ".png, .svg and .pdf"),
        (["--epsilon", "1", "-o", "curve"], ".png, .svg and .pdf"),
        (["--epsilon", "1", "-o", "no/such/folder/curve.png"], "there is no folder"),
        (["--epsilon", "1", "-o", "folder.png"], "is a folder"),
    ],
    ids=" ".join,
)
def test_bad_arguments_get_one_line(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.png").mkdir()
    text = refusal(capsys, monkeypatch, "curve", *arguments)
    assert text.startswith("error: ")
    assert text.count("\n") == 1
    assert says in text
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["audit", "everything"], "'everything' can't be audited. The targets are noise and samplers."),
        (["audit", "noise", "--scale", "0"], "scale must be a number greater than 0"),
        (["audit", "noise", "--scale", "x"], "scale must be a number greater than 0"),
    ],
)
def test_bad_audits_get_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    text = refusal(capsys, monkeypatch, *arguments)
    assert text.startswith("error: ")
    assert text.count("\n") == 1
    assert says in text


@pytest.mark.parametrize("arguments", [["curve", "--wrong"], ["audit"], ["nonsense"]])
def test_usage_errors(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    text = refusal(capsys, monkeypatch, *arguments)
    assert "Usage: " in text
    assert "Error: " in text or "Missing" in text or "No such" in text


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = run("demo", "-o", "a [bold]folder")
    assert text.count("95 % intervals for each cell separately") == 3
    assert text.count("The certificate is valid: epsilon 0.5") == 3
    assert "Budget: epsilon 1.5 is spent, epsilon 0.5 is left." in text
    assert "this costs epsilon 2, but only epsilon 0.5 is left of epsilon 2. Nothing was spent." in text
    assert "62 %" in text
    folder = tmp_path / "a [bold]folder"
    assert text.rstrip().endswith(str(folder))
    assert sorted(path.name for path in folder.iterdir()) == [
        f"{name}{suffix}" for name in ("adults", "spending", "visits") for suffix in (".json", ".png")
    ]
    for picture in folder.glob("*.png"):
        assert picture.read_bytes().startswith(SIGNATURES[".png"])
    for certificate in folder.glob("*.json"):
        assert pv.verify(certificate).rules

    # The noise is small beside these numbers, so what is printed must be near the truth, which is printed below it.
    found = re.findall(r"^(\w[\w-]*) +([\d,]+) +(?:± [\d,]+ +)?([\d,.]+)", text, re.MULTILINE)
    answers = [row for row in found if row[0] in ("north", "capital")]
    assert len(answers) == 4
    for region in ("north", "capital"):
        adults, truth = (int(row[1].replace(",", "")) for row in answers if row[0] == region)
        assert abs(adults - truth) < 400
        assert adults > 5_000


def test_the_demo_goes_on_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = run("demo", "-o", str(tmp_path / "demo"))
    assert text.count("The certificate is valid: epsilon 0.5") == 3
    assert text.count("██") >= 10, "it is drawn in the terminal"
    assert "To save charts, install matplotlib. Write: pip install 'privet[plots]'\n" in text
    assert text.rstrip().endswith(f"Certificates: {tmp_path / 'demo'}")
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == [
        "adults.json",
        "spending.json",
        "visits.json",
    ]


def test_the_demo_does_not_overwrite_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes").write_text("mine")
    assert "is a file" in refusal(capsys, monkeypatch, "demo", "-o", str(tmp_path / "notes"))
    assert (tmp_path / "notes").read_text() == "mine"


def test_audit_noise() -> None:
    text = run("audit", "noise", "--scale", "2.5", "--scale", "1/3")
    lines = text.strip().splitlines()
    assert len(lines) == 2
    assert all(re.match(r"scale \S+: .*exact$", line) for line in lines)
    assert "NOT EXACT" not in text


@pytest.mark.slow
def test_as_a_program(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("privet")
    path = tmp_path / "curve.png"
    done = subprocess.run(
        [program, "curve", "--epsilon", "1", "-o", path], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert (done.stdout.strip(), done.stderr) == (str(path), "")
    assert path.read_bytes().startswith(SIGNATURES[".png"])
    failed = subprocess.run([program, "curve", "--epsilon", "x"], capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert failed.stdout == ""
    assert re.fullmatch(r"error: --epsilon must be .*\n", failed.stderr)
