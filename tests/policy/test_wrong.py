"""Wrong policies: each is refused with the line, the key, the reason, and what to write instead."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest
from tests.policy.policies import Case, base, rewrite, wrong

from privet.errors import UserError
from privet.policy import PolicyError, load, parse


def said(text: str) -> str:
    with pytest.raises(PolicyError) as refused:
        parse(text)
    return str(refused.value)


if os.environ.get("PRIVET_GOLDEN") == "write":
    rewrite(said)
CASES = wrong()


def test_there_are_many() -> None:
    assert len(CASES) >= 100
    assert len({case.title for case in CASES}) == len(CASES)
    parse(base())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_what_is_said(case: Case) -> None:
    assert said(case.text) == case.said


@pytest.mark.parametrize(
    "case", [case for case in CASES if "=" in case.said.rpartition(": ")[2]], ids=lambda c: c.title
)
def test_what_to_write_is_toml(case: Case) -> None:
    if "this is not valid TOML" in case.said:
        return
    for line in re.findall(r"Write, for example: (.*)", case.said):
        tomllib.loads(line)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_what_to_write_fixes_it(case: Case) -> None:
    """One problem, one line of its own: written instead, the policy loads."""
    found = re.fullmatch(r"privet\.toml, line (\d+).*\n  Write, for example: (\w+ = .*)", case.said)
    lines = case.text.splitlines()
    if found is None or not lines[int(found[1]) - 1].startswith(f"{found[2].split()[0]} = "):
        return
    if "\n".join(lines).count("\n") != base().count("\n") - 1:
        return  # what is wrong goes over several lines
    lines[int(found[1]) - 1] = found[2]
    parse("\n".join(lines))


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no policy .*privet init people\.parquet -o"):
        load(tmp_path / "privet.toml")
    with pytest.raises(UserError, match=r"is a folder, not a policy"):
        load(tmp_path)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "privet.toml"
    path.write_bytes(b"# one\n# two\nledger = \xff\n")
    with pytest.raises(PolicyError, match=r"privet\.toml, line 3: this is not UTF-8"):
        load(path)


@pytest.mark.parametrize("depth", [100, 500, 3_000, 100_000])
def test_brackets_without_end(depth: int) -> None:
    with pytest.raises(PolicyError, match=r"nested too deeply|unknown key \"x\"|this is not valid TOML"):
        parse(f"x = {'[' * depth}{']' * depth}\n{base()}")


def test_numbers_without_end() -> None:
    for number in ("9" * 5_000, "1e999999999999999999999", "0." + "0" * 500 + "1"):
        with pytest.raises(PolicyError, match=r"privet\.toml, line 4"):
            parse(base().replace("epsilon = 3", f"epsilon = {number}"))


def test_windows_line_ends() -> None:
    with pytest.raises(PolicyError, match=r"line 12, .*\.age: lower"):
        parse(base().replace("[0, 110]", "[110, 0]").replace("\n", "\r\n"))


def test_the_number_of_zero_concentrated_budgets_is_rho(tmp_path: Path) -> None:
    file = tmp_path / "privet.toml"
    file.write_text('ledger = "a"\n[datasets.x]\nbudget = { zcdp = 1 }\n', encoding="utf-8")
    with pytest.raises(PolicyError, match=r"is called rho\.\n.*budget = \{ rho = 0\.1 \}"):
        load(file)
