"""A call without what only the caller can decide is told what to write."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import privet as pv
from privet.errors import UserError


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        (partial(pv.table, "people", "people.parquet"), "protect= and columns= are missing"),
        (partial(pv.table, "people", "people.parquet", protect=pv.each_row()), "columns= is missing"),
        (partial(pv.public_table, "regions", "regions.csv"), "key= is missing"),
        (partial(pv.import_csv, "people.csv", "people.parquet"), "columns= is missing"),
        (partial(pv.Session, []), "budget= and ledger= are missing"),
        (partial(pv.Session, [], budget=pv.PureDP(1)), "ledger= is missing"),
        (partial(pv.Dataset, [], ledger=None), "budget= is missing"),
    ],
)
def test_what_is_missing_and_what_to_write(call: Callable[[], Any], missing: str) -> None:
    with pytest.raises(UserError) as caught:
        call()
    assert str(caught.value).startswith(f"{missing}. Write, for example: pv.")


@pytest.mark.parametrize("function", [pv.table, pv.public_table, pv.import_csv, pv.Session, pv.Dataset])
def test_the_example_has_every_required_argument(function: Callable[..., Any]) -> None:
    required = [
        each.name
        for each in inspect.signature(function).parameters.values()
        if each.kind is each.KEYWORD_ONLY and each.default is each.empty
    ]
    with pytest.raises(UserError) as caught:
        function()
    example = str(caught.value).partition("Write, for example: ")[2]
    assert required
    assert all(f"{name}=" in example for name in required)
    with pytest.raises(TypeError):
        function(**dict.fromkeys(required))  # what is given by position is Python's to ask for
