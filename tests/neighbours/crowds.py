"""Worlds like those of `worlds`, mostly of people, with what chooses and ranks stumble over.

Equal values in many rows, the same people in many groups, numbers at the ends of buckets of codes, texts that other
engines take for equal or that can't appear as keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
from tests.neighbours.worlds import Made, World, world
from tests.neighbours.worlds import row as any_row

import privet as pv
from privet.tables.types import NumberType, TextType

KEYS: list[Any] = [
    "x" * 199, "x" * 200, "x" * 201, "é" * 200, "é" * 201, "😀" * 200, "😀" * 201, "a\n", "a\t", "\u00a0", " ",
    "a\u200b", "\u00ad", "\u0130", "\u0131", "i", "I", "SS", "ss", "\u017fs", "\u00c5", "A\u030a", "\u212b", "\ufb01",
    "fi", "\ue000", "\u0378", "None", "null", "-0", "1", "01", "%", "_", "\\", "\\n", "{}",
]  # fmt: skip
"""Texts at the length that can still appear, that can't be printed, or that are equal under some collation."""

CROWDED = 0.6
"""How many of the columns have few values, so that rows are equal."""


def crowd(chance: Random, *, text: bool = False, rows: Sequence[int] = (3, 8, 14)) -> World:
    """A world, of people four times in five; `text`: with a column of texts in every table."""
    made = world(chance, person=chance.random() < 0.8, adjacency=chance.choice(["add/remove", "replace"]))
    for table, columns in made.columns.items():
        if text:
            columns["word" + table] = Made(pv.text(), pa.string(), [])
        for name, what in columns.items():
            columns[name] = replace(what, values=_values(chance, what))
    most = chance.choice(rows)
    made.data = {name: [any_row(chance, made, name) for _ in range(chance.randint(0, most))] for name in made.columns}
    made.rows = None
    made.tables = {name: made.declare(name, data) for name, data in made.data.items()}
    return made


def holders(chance: Random) -> World:
    """A crowd with texts; in half of them people hold many keys, in rows that are alike otherwise and at the bounds.

    What is claimed for groups of unknown keys is reached only by people with as many keys as count, none of which they
    share with the person who replaces them.
    """
    made = crowd(chance, text=True)
    if chance.random() < 0.5:
        made.varied = ("wordone",)
        columns = made.columns["one"]
        columns["wordone"] = replace(columns["wordone"], values=[f"k{i}" for i in range(chance.choice([2, 4, 8, 24]))])
        for name, what in columns.items():
            if isinstance(what.declared.type, NumberType) and (ends := _ends(what)):
                columns[name] = replace(what, values=[*ends, chance.choice(what.values)])
        made.data["one"] = [any_row(chance, made, "one") for _ in range(chance.choice([0, 3, 14, 40]))]
        made.tables["one"] = made.declare("one", made.data["one"])
    return made


def _ends(what: Made) -> list[Any]:
    """The bounds of a number, as the column can hold them."""
    kind = what.declared.type
    assert isinstance(kind, NumberType)
    if pa.types.is_float64(what.arrow):
        return [float(kind.lower), float(kind.upper)]
    whole = pa.types.is_int64(what.arrow) and kind.lower.denominator == kind.upper.denominator == 1
    return [int(kind.lower), int(kind.upper)] if whole and abs(kind.lower) + abs(kind.upper) < 2**63 else []


def _values(chance: Random, what: Made) -> list[Any]:
    kind, values = what.declared.type, list(what.values)
    if isinstance(kind, TextType):
        values += KEYS * 2
    if isinstance(kind, NumberType) and pa.types.is_float64(what.arrow):
        low, span = float(kind.lower), float(kind.upper) - float(kind.lower)
        places = [low + span * chance.randrange(2**bits + 1) / 2**bits for bits in (1, 3, 6, 16, 17) for _ in range(2)]
        values += [math.nextafter(x, side) for x in places for side in (-math.inf, x, x, math.inf)]
    if chance.random() < CROWDED:
        return chance.sample(values, min(len(values), chance.choice([1, 2, 3])))
    return values
