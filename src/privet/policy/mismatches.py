"""The line of a policy to fix when a source does not match its declaration, and what to write there."""

from __future__ import annotations

from typing import Any

from privet.errors import Subject, UserError
from privet.policy import problems, toml
from privet.policy.positions import Place
from privet.policy.problems import Problem
from privet.policy.shape import PersonShape, TableShape


def column(error: UserError, place: Place, tree: Any) -> Problem:
    """A column whose keys could not be read from their file."""
    return problems.of_error(error, place, problems.example(place, problems.value_at(tree, place)))


def table(error: UserError, place: Place, shape: TableShape, tree: Any) -> Problem:
    """A table whose source does not match it; the subject of the error decides the line."""
    subject = error.subject or Subject("table")
    if subject.kind == "person" and isinstance(shape.protect, PersonShape):
        where = (*place, "protect")
        value = {**problems.value_at(tree, where), "person": _line(error) or "person_id"}
        return problems.of_error(error, where, f"protect = {toml.value(value)}")
    if subject.kind == "column" and subject.name in shape.columns:
        return _column(error, (*place, "columns", subject.name), tree)
    if subject.kind == "argument" and subject.name == "rows":
        return problems.of_error(error, (*place, "rows"), _line(error))
    where = (*place, "source")
    imports = error.remedy is not None and "privet import" in error.remedy.advice  # the line is right
    value = problems.value_at(tree, where)
    if problems.is_in_place(value):  # a file would not help
        return problems.of_error(error, where, _line(error))
    return problems.of_error(error, where, "" if imports else problems.example(where, value))


def public(error: UserError, place: Place) -> Problem:
    """A public table that can't be used."""
    where = (*place, "key" if error.subject is not None and error.subject.kind == "key" else "source")
    return problems.of_error(error, where, problems.example(where))


def _column(error: UserError, place: Place, tree: Any) -> Problem:
    line = _line(error)
    if line and error.remedy is not None and error.remedy.advice.startswith("Did you mean"):  # it has another name
        return problems.of_error(error, place, f"{toml.key(line)} = {toml.value(problems.value_at(tree, place))}")
    return problems.of_error(error, place, f"{toml.key(str(place[-1]))} = {line}" if line else "")


def _line(error: UserError) -> str:
    return "" if error.remedy is None else error.remedy.policy
