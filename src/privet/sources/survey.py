"""A synthetic survey for demonstrations: people, and their visits to doctors. This is data, not noise.

Nobody in it exists. Every number is a hash of a row's position, so the files are the same each time and public. Noise
that protects people must never be drawn in this way.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privet.errors import UserError
from privet.exact import whole

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

REGIONS = {  # the share of people, and the typical income
    "north": (0.10, 34_000),
    "north-east": (0.08, 31_000),
    "east": (0.12, 33_000),
    "south-east": (0.16, 38_000),
    "south": (0.14, 41_000),
    "south-west": (0.11, 36_000),
    "west": (0.17, 39_000),
    "capital": (0.12, 52_000),
}
KINDS = {  # the share of visits of the young and of the old, the typical cost, the typical minutes
    "general": (0.50, 0.42, 60, 15),
    "dentist": (0.22, 0.13, 140, 35),
    "specialist": (0.13, 0.27, 180, 25),
    "therapy": (0.08, 0.13, 90, 45),
    "emergency": (0.07, 0.05, 420, 110),
}
FIRST_DAY = np.datetime64("2025-01-01")
DAYS = 365
MOST_COST = 2000.0


class Survey(NamedTuple):
    """The paths of the two files."""

    people: Path
    visits: Path


def make_survey(folder: str | Path, people: int = 100_000) -> Survey:
    """Write people.parquet and visits.parquet into a folder, with the same content each time."""
    count = whole(people, name="people", example="people=100_000")
    target = Path(folder)
    survey = Survey(target / "people.parquet", target / "visits.parquet")
    persons = _people(count)
    try:
        target.mkdir(parents=True, exist_ok=True)
        pq.write_table(persons, survey.people)
        pq.write_table(_visits(persons), survey.visits)
    except OSError as error:
        raise UserError(f"the survey can't be written to {str(folder)!r}: {error.strerror or error}") from None
    return survey


# --- numbers that look random ---------------------------------------------------------------------


def _uniform(label: str, count: int) -> Floats:
    """Numbers between 0 and 1, one per position: the finalizer of SplitMix64 (Steele, Lea, Flood 2014)."""
    start = np.uint64(int.from_bytes(label.encode()) % (2**64 - 59))
    x = np.full(count, start) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return np.asarray(((x >> np.uint64(11)).astype(np.float64) + 0.5) / 2**53)


def _normal(label: str, count: int) -> Floats:
    """Standard normal numbers, by Box and Muller."""
    radius = np.sqrt(-2 * np.log(_uniform(f"{label}/r", count)))
    return np.asarray(radius * np.cos(2 * np.pi * _uniform(f"{label}/a", count)))


def _choice(label: str, shares: Floats, count: int) -> Integers:
    """Indices into a list, with these shares."""
    return np.minimum(np.searchsorted(np.cumsum(shares / shares.sum()), _uniform(label, count)), len(shares) - 1)


# --- the tables -----------------------------------------------------------------------------------


def _people(count: int) -> pa.Table:
    shares, typical = np.array(list(REGIONS.values())).T
    region = _choice("region", shares, count)
    ages = np.arange(101)
    age = _choice("age", 1 / (1 + np.exp((ages - 78) / 7)) * (1 + 0.25 * np.exp(-(((ages - 50) / 15) ** 2))), count)
    career = 0.55 + 0.6 * np.exp(-(((age - 48) / 22) ** 2))  # incomes rise until about fifty
    income = np.round(typical[region] * career * np.exp(0.5 * _normal("income", count)), -1)
    unknown = (age < 16) | (_uniform("unknown", count) < 0.06)
    smokes = np.where(age < 16, 0.0, 0.28 - 0.0025 * np.abs(age - 35) - 0.05 * (region == len(REGIONS) - 1))
    return pa.table(
        {
            "person_id": np.arange(1, count + 1),
            "region": pa.array(list(REGIONS)).take(pa.array(region)),
            "age": age,
            "income": pa.array(income, mask=unknown),
            "smoker": _uniform("smoker", count) < smokes,
        }
    )


def _visits(people: pa.Table) -> pa.Table:
    age, smoker = people["age"].to_numpy(), people["smoker"].to_numpy()
    counts = _visits_each(age, smoker)
    person = np.repeat(np.arange(len(age)), counts)
    count = len(person)
    days = np.arange(DAYS)
    weekday = (days + 2) % 7  # 2025 begins on a Wednesday
    busy = (1 + 0.25 * np.cos(2 * np.pi * (days - 25) / DAYS)) * np.where(weekday < 5, 1.0, 0.25)
    day = _choice("day", busy, count)
    order = np.argsort(day, kind="stable")  # in order of time
    day, person = day[order], person[order]
    young, old, cost, minutes = np.array(list(KINDS.values())).T
    seniority = np.clip((age[person] - 20) / 60, 0, 1)
    share = young[:, None] + (old - young)[:, None] * seniority
    kind = (_uniform("kind", count) > np.cumsum(share, axis=0)[:-1]).sum(axis=0)
    price = cost[kind] * np.exp(0.6 * _normal("cost", count)) * (1 + 0.3 * seniority)
    spent = minutes[kind] * np.exp(0.35 * _normal("minutes", count))
    return pa.table(
        {
            "person_id": people["person_id"].to_numpy()[person],
            "day": FIRST_DAY + day,
            "kind": pa.array(list(KINDS)).take(pa.array(kind)),
            "cost": np.round(np.minimum(price, MOST_COST), 2),
            "minutes": np.clip(np.round(spent), 3, 480).astype(np.int64),
        }
    )


def _visits_each(age: Integers, smoker: NDArray[np.bool_]) -> Integers:
    """The number of visits per person: geometric, growing with age; one in 5,000 has 200 visits or more."""
    count = len(age)
    mean = (2.2 + 0.045 * age + 1.5 * np.exp(-age / 3)) * np.where(smoker, 1.25, 1.0)
    times = np.floor(np.log(_uniform("visits", count)) / np.log(mean / (1 + mean)))
    often = _uniform("often", count) < 1 / 5000
    return np.asarray(np.where(often, 200 + 40 * times, times).astype(np.int64))
