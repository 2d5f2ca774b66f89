"""Worlds whose keys lie within others, and questions about them, from a seed.

Parents have one to four children. Rows contradict the declaration, lack the parent or the child, or have values that
are not declared.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
from tests.neighbours.further import sometimes_lowered
from tests.neighbours.worlds import ID, Made, World, row

import privet as pv
from privet.errors import UserError
from privet.planner import ReleasePlan, plan
from privet.privacy.adjacency import Adjacency, Protected
from privet.tables.groups import rollup
from privet.tables.query import Query

REGIONS = ["north", "south", "east", "west"]


def forest(chance: Random) -> World:
    """A world with towns in regions in countries, of people three times in four."""
    person = chance.random() < 0.75
    protect: Protected = pv.each_row()
    if person:
        protect = chance.choice(
            [
                pv.person(ID, max_rows=chance.choice([1, 2, 3])),
                pv.person(ID, max_groups=chance.choice([2, 3, 4]), max_rows_per_group=chance.choice([1, 2])),
            ]
        )
    made = World(
        protect, Adjacency(chance.choice(["add/remove", "replace"])), {"one": _columns(chance)}, [1, 2, 3, None],
        {"one": pa.int64()}, {}, [],
    )  # fmt: skip
    made.data = {"one": [row(chance, made, "one") for _ in range(chance.randint(0, 8))]}
    made.tables = {"one": made.declare("one", made.data["one"])}
    return made


def _columns(chance: Random) -> dict[str, Made]:
    regions = chance.sample(REGIONS, chance.randint(2, 4))
    cut = chance.randint(1, len(regions) - 1)
    countries = {"X": regions[:cut], "Y": regions[cut:]}
    towns = {region: [f"{region[0]}{i}" for i in range(chance.randint(1, 4))] for region in regions}
    others = [chance.choice([None, name]) for name in ("Z", "elsewhere", "countryside")]
    every = [town for some in towns.values() for town in some]
    lower, upper = chance.choice([(0, 5), (-4, 4), (-3, 0)])
    return {
        "country": _keys(pv.keys(*countries, other=others[0]), [*countries]),
        "region": _keys(pv.keys(countries, within="country", other=others[1]), regions),
        "town": _keys(pv.keys(towns, within="region", other=others[2]), every),
        "year": Made(pv.integer(2023, 2024), pa.int64(), [2023, 2024]),
        "v": Made(pv.integer(lower, upper, required=chance.random() < 0.5), pa.int64(), [lower, upper, upper, None]),
    }


def _keys(declared: Any, values: list[str]) -> Made:
    return Made(declared, pa.string(), values * 6 + [None, "Z", "elsewhere", "countryside", "?"])


def planned(chance: Random, of: World) -> ReleasePlan | None:
    """A question by towns and what they lie in, and its plan."""
    try:
        return plan(sometimes_lowered(chance, _asked(chance, of)), epsilon=1)
    except UserError:
        return None


def _asked(chance: Random, of: World) -> Query:
    keys = chance.choice(
        [
            ["region", "town"], ["region", "town"], ["country", "region", "town"], ["country", "town"],
            ["year", "region", "town"], ["region", "town", "year"], ["town", "region"],
        ]
    )  # fmt: skip
    rows = of.tables["one"]
    where = chance.choice(
        [None, None, pv.col("v") >= 0, pv.col("town") != "n0", pv.col("region").is_in(REGIONS[:2]), pv.col("v") < 0]
    )
    asked: dict[str, Any] = {
        "n": pv.count(), "s": pv.sum("v"), "m": pv.mean("v"), "h": pv.histogram("v", [-4, 0, 5]), "k": pv.count("v"),
    }  # fmt: skip
    name = chance.choice(["n", "n", *asked])
    filtered = rows if where is None else rows.where(where)
    sets = [[*keys[:size]] for size in range(len(keys), -1, -1)]
    match chance.randrange(4):
        case 0:
            return filtered.group_by(*keys).agg(**{name: asked[name]})
        case 1:
            return filtered.grouping_sets([sets[0], *chance.sample(sets[1:], 1)]).agg(**{name: asked[name]})
        case 2:
            return filtered.grouping_sets(sets[:-1]).agg(**{name: asked[name]})
    assert len(rollup(len(keys))) == len(sets)
    return filtered.rollup(*keys).agg(**{name: asked[name]})
