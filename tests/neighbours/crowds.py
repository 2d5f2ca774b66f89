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
