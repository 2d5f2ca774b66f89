"""A policy that is right, and many that are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

WRONG = Path(__file__).with_name("wrong.txt")

EVERYTHING = """
ledger = "people.ledger" # beside this file

[datasets.health]
budget = { epsilon = 3, delta = 1e-6 }
adjacency = "add/remove"
version = "2026-11"
accountant = "approx"
per_query = { epsilon = "1/3" }
min_epsilon = 0.01
delta_share = 0.02
per_analyst = { epsilon = 0.5 }
share_answers = false
signing_key = "keys/steward.key"
population = 100_000
engine = "duckdb"
memory = "2GB"
threads = 2

[datasets.health.analysts]
research = { epsilon = 1, delta = 1e-7 }
"the press" = { epsilon = 0.1 }

[datasets.health.tables.people]
source = "people/*.parquet"
protect = { person = "person_id", max_groups = 2, max_rows_per_group = 5 }

[datasets.health.tables.people.columns]
region = { keys = ["north", "south"], other = "elsewhere" }
district = { keys_from = "regions.csv", column = "region" }
town = { keys = { north = ["Alta", "Bodo"], south = ["Cork"] }, within = "region" }
floor = { keys = [-1, 0, 1, 2] }
age = { integer = [0, 110], required = true }
income = { number = [0, 200_000], step = 0.01 }
share = { number = ["-1/3", "1/3"], required = false }
smoker = "boolean"
employed = { type = "boolean", required = true }
born = { date = [1900-01-01, 2026-12-31] }
moved = { date = ["1900-01-01", "2026-12-31"] }
seen = { timestamp = [2024-01-01T00:00:00, 2024-12-31T23:59:59] }
left = { timestamp = [2024-01-01, "2024-12-31"] }
note = "text"
remark = { type = "text" }

[datasets.health.tables.visits]
source = ["2023.parquet", "2024.parquet"]
protect = { person = "patient", max_rows = 20 }
columns.cost.number = [0, 2_000]

[datasets.homes]
budget.rho = 0.1
adjacency = "replace"
[datasets.homes.tables."all homes"]
source = { duckdb = "homes.db", table = "homes", schema = "raw" }
protect = "each row"
rows = 10_000
columns = { rooms = { integer = [0, 20] } }

[public.regions]
source = "regions.csv"
key = "region"

[server]
listen = "0.0.0.0:8765"
address = "https://privet.example.org"
proxies = ["127.0.0.1", "10.0.0.0/8"]
accounts = "people.accounts"
workers = 2
running = 4
waiting = 64
waiting_each = 8
wait = 30
deadline = 600
pace = 0.25
passwords = false

[server.openid]
issuer = "https://login.example.org"
client_id = "privet"
secret_file = "openid.secret"
name = "Example"
claim = "email"
"""


class Case(NamedTuple):
    """A wrong policy, and what is said of it."""

    title: str
    text: str
    said: str
    blind: bool
    """Whether a JSON Schema can't see what is wrong."""


def base() -> str:
    """The policy from which the wrong ones are made."""
    lines = WRONG.read_text(encoding="utf-8").splitlines()
    return "".join(f"{line[2:]}\n" for line in lines if line.startswith("|"))


def wrong() -> list[Case]:
    """All wrong policies."""
    _, *blocks = WRONG.read_text(encoding="utf-8").split("\n=== ")
    return [_case(block) for block in blocks]


def rewrite(said: Callable[[str], str]) -> None:
    """Write down what is said of each wrong policy now."""
    head, *blocks = WRONG.read_text(encoding="utf-8").split("\n=== ")
    made = [head]
    for block in blocks:
        title, *rest = block.rstrip("\n").split("\n")
        edits = [line for line in rest if line.startswith("@")]
        made.append("\n".join([title, *edits, said(_case(block).text), ""]))
    WRONG.write_text("\n=== ".join(made), encoding="utf-8")


def _case(block: str) -> Case:
    title, *rest = block.rstrip("\n").split("\n")
    lines = base().splitlines()
    edits: dict[int, list[str]] = {}
    said = []
    for line in rest:
        if line.startswith("@"):
            number, _, new = line[1:].partition(" ")
            edits.setdefault(int(number), []).append(new)
        else:
            said.append(line)
    for place, new_lines in edits.items():
        lines[place - 1] = "\n".join(new_lines)
    return Case(title.removesuffix(" ~"), "\n".join(lines) + "\n", "\n".join(said), title.endswith(" ~"))
