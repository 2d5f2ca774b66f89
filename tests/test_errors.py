"""Errors are data: what is wrong holds for every face, and a line to write stands in the language of its face only."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

from privet import errors
from privet.errors import NumberError, Place, PolicyError, QueryError, Remedy, Subject, UserError, argument, write

SOURCE = Path(errors.__file__).parent
KINDS = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
PYTHON = re.compile(r"\bpv\.|\bsession\.|=True\b|=False\b|\bWrite\b[^.]*:|\w\(\.\.\.")
"""What no sentence of an error says: lines to write, and Python, stand in the remedy."""
TEXTBOOK = ("textbook", "audit", "mechanisms", "noise", "plots")
"""What only Python reaches."""


@cache
def sites() -> list[tuple[str, ast.Call]]:
    """Every call that makes an error, in every module that a statement, a policy or a command can reach."""
    files = [file for file in sorted(SOURCE.rglob("*.py")) if file.relative_to(SOURCE).parts[0] not in TEXTBOOK]
    return [
        (f"{file.relative_to(SOURCE)}:{node.lineno}", node)
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]


def texts(node: ast.AST | None) -> str:
    """The constant parts of a text, with x in place of what is filled in."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(texts(part) or "x" for part in parts)
        case ast.BinOp(left=left, right=right):
            return texts(left) + texts(right)
        case ast.IfExp(body=body, orelse=other):
            return f"{texts(body)} {texts(other)}"
    return ""


def given(call: ast.Call, name: str, place: int | None = None) -> str:
    """What a call gives for an argument, as far as it is constant."""
    by_name = next((each.value for each in call.keywords if each.arg == name), None)
    if by_name is None and place is not None and len(call.args) > place:
        by_name = call.args[place]
    return texts(by_name)


def test_no_sentence_of_an_error_is_a_line_of_python() -> None:
    made = [(where, call) for where, call in sites() if call.func.id in KINDS]  # type: ignore[attr-defined]
    assert len(made) > 300
    wrong = [
        f"{where}: {text}"
        for where, call in made
        for text in (given(call, "what", 0), given(call, "allowed"))
        if PYTHON.search(text)
    ]
    assert wrong == []


def test_no_line_of_another_face_is_python() -> None:
    made = [(where, call) for where, call in sites() if call.func.id in ("write", "Remedy", "write_line")]  # type: ignore[attr-defined]
    assert len(made) > 30
    python = re.compile(r"\bpv\.|\bsession\.|=True\b")
    faces = ("advice", "sql", "terminal", "policy", "http")
    lines = [(where, given(call, face)) for where, call in made for face in faces]
    assert [f"{where}: {line}" for where, line in lines if python.search(line)] == []


def test_each_face_gets_its_own_line() -> None:
    error = NumberError("epsilon must be greater than 0, not -1", remedy=argument("epsilon", 0.5))
    ends = {"python": "epsilon=0.5", "terminal": "--epsilon 0.5", "policy": "epsilon = 0.5", "http": '"epsilon": 0.5'}
    for face, line in ends.items():
        assert error.render(face) == f"{error.what}. Write, for example: {line}"  # type: ignore[arg-type]
    assert error.render("sql") == error.what
    assert str(error) == error.render("python")


def test_a_face_without_a_line_is_told_none() -> None:
    error = UserError("no rows yet", remedy=write("frame.collect()", advice="Collect the frame first"))
    assert error.render("terminal") == "no rows yet. Collect the frame first"
    assert error.to_json()["remedy"] == {"advice": "Collect the frame first", "write": ""}


@pytest.mark.parametrize("face", ["python", "terminal", "policy", "http"])
def test_an_error_of_a_statement_speaks_sql_on_every_face(face: errors.Face) -> None:
    subject = Subject("statement", "MEDIAN", at=Place(1, 8, 7, 13, excerpt="  SELECT MEDIAN(x)\n         ^^^^^^"))
    error = QueryError("MEDIAN is not supported", subject=subject, remedy=write("pv.mean", sql="AVG(x)", exact=True))
    shown = "line 1, column 8: MEDIAN is not supported. Write: AVG(x)\n  SELECT MEDIAN(x)\n         ^^^^^^"
    assert error.render(face) == shown
    assert error.to_json(face)["remedy"]["write"] == "AVG(x)"


def test_an_error_of_a_policy_speaks_toml_and_names_every_line() -> None:
    problems = tuple(
        UserError(
            "rows are missing",
            subject=Subject("policy", "datasets.a.rows", at=Place(line, file="privet.toml")),
            remedy=argument("rows", 10),
        )
        for line in (3, 7)
    )
    error = PolicyError("privet.toml has 2 errors", problems)
    assert error.render("terminal").splitlines() == [
        "privet.toml, line 3, datasets.a.rows: rows are missing.",
        "  Write, for example: rows = 10",
        "privet.toml, line 7, datasets.a.rows: rows are missing.",
        "  Write, for example: rows = 10",
    ]
    assert [each["subject"]["at"]["line"] for each in error.to_json()["problems"]] == [3, 7]


def test_everything_is_in_the_fields() -> None:
    error = UserError(
        "there is no table", allowed="The tables are: a", subject=Subject("table", "b"), remedy=Remedy("x")
    )
    error.spent = {"epsilon": "0"}
    told = error.to_json()
    assert told == json.loads(json.dumps(told))
    assert {"kind", "message", "what", "allowed", "subject", "remedy", "spent"} == told.keys()
    assert told["message"] == "there is no table. The tables are: a. x"
    assert (told["subject"]["kind"], told["subject"]["name"]) == ("table", "b")
