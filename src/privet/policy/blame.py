"""Which line of a policy is to blame when a source is not what it declares, and what to write there instead."""

from __future__ import annotations

import re
from typing import Any

from privet.errors import UserError
from privet.policy import columns, problems, toml
from privet.policy.positions import Place
from privet.policy.problems import Problem
from privet.policy.shape import PersonShape, TableShape

_LOOKED = re.compile(r" \(looked for [^)]*\)")
_CALL = re.compile(r"pv\.([a-z_]+)\(")
_NEAREST = re.compile(r"Did you mean '([^']*)'\?")
_ROWS = re.compile(r"rows=(\d+)")


def _told(error: UserError) -> str:
    text = _LOOKED.sub("", problems.without_advice(str(error)))
    return text if text.endswith((".", "?")) else f"{text}."


def column(error: UserError, place: Place, tree: Any) -> Problem:
    """A column whose keys could not be read from their file."""
    return Problem(place, _told(error), problems.example(place, problems.value_at(tree, place)))


def table(error: UserError, place: Place, shape: TableShape, tree: Any) -> Problem:
    """A table whose source does not match it."""
    text, told = str(error), _told(error)
    person = shape.protect.person if isinstance(shape.protect, PersonShape) else None
    if person is not None and f"column {person!r}" in text and "id of" in text:
        near = _NEAREST.search(told)
        value = problems.value_at(tree, (*place, "protect"))
        value = {**value, "person": near[1] if near else "person_id"}
        return Problem((*place, "protect"), told, f"protect = {toml.value(value)}")
    for name in shape.columns:
        if f"column {name!r}" in text:
            return _of_column(text, told, (*place, "columns", name), tree)
    if found := _ROWS.search(text):
        return Problem((*place, "rows"), told, f"rows = {found[1]}")
    where = (*place, "source")
    return Problem(where, told, problems.example(where, problems.value_at(tree, where)))


def _of_column(text: str, told: str, place: Place, tree: Any) -> Problem:
    name, value = str(place[-1]), problems.value_at(tree, place)
    if near := _NEAREST.search(told):
        return Problem(place, told, f"{toml.key(near[1])} = {toml.value(value)}")
    called = _CALL.search(text)
    if called and called[1] in columns.EXAMPLES:
        return Problem(place, told, f"{toml.key(name)} = {columns.EXAMPLES[called[1]]}")
    return Problem(place, told)


def public(error: UserError, place: Place, key: str) -> Problem:
    """A public table that can't be used."""
    told = _told(error)
    where = "key" if f"{key!r}" in told and ("key" in told or "column" in told) else "source"
    return Problem((*place, where), told, problems.example((*place, where)))
