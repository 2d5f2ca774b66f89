"""A new policy: the steward's answers as a file with comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privet.exact import Exact
from privet.policy import toml


@dataclass(frozen=True, slots=True)
class ColumnTemplate:
    """A column: its declaration, or, without a value, a comment to fill in."""

    name: str
    value: Any = None
    form: str = ""
    note: str = ""

    def line(self) -> str:
        """Its line in the policy."""
        head = f"{toml.key(self.name)} = "
        if self.value is not None:
            return head + toml.value(self.value) + (f"    # {toml.printable(self.note)}" if self.note else "")
        told = f"{head}{self.form}" if self.form else toml.key(self.name)
        return f"# {told}" + (f"    # {self.note}" if self.note else "")


@dataclass(frozen=True, slots=True)
class TableTemplate:
    """A table."""

    name: str
    source: Any
    protect: Any
    columns: tuple[ColumnTemplate, ...]
    notes: tuple[str, ...] = ()
    guessed: str = ""
    """Which parts of its protection are guesses."""


@dataclass(frozen=True, slots=True)
class PolicyTemplate:
    """A policy with one dataset."""

    dataset: str
    ledger: str
    budget: Mapping[str, Any]
    adjacency: str
    tables: tuple[TableTemplate, ...]

    def text(self) -> str:
        """The policy.

        Example:
            >>> age = ColumnTemplate("age", {"integer": [0, 110]})
            >>> table = TableTemplate("people", "people.parquet", {"person": "id", "max_rows": 1}, (age,))
            >>> policy = PolicyTemplate("health", "health.ledger", {"epsilon": 1}, "add/remove", (table,))
            >>> print(policy.text().splitlines()[-1])
            age = { integer = [0, 110] }
        """
        place = ("datasets", self.dataset)
        half = {"epsilon": Exact(1, 2)} if "epsilon" in self.budget else {"rho": self.budget["rho"] / 2}
        cap = toml.value(half | ({"delta": self.budget["delta"]} if "delta" in self.budget else {}))
        lines = [
            "# The steward's policy: who is protected, what may be asked, what it may cost. Analysts can't change it.",
            "# Bounds, keys and ranges come from what you know, never from the data. Numbers are exact.",
            "",
            f"ledger = {toml.text(self.ledger)}    # every debit is recorded here: never delete it",
            "",
            f"[{toml.dotted(place)}]    # all tables about the same people; they share one budget",
            f"budget = {toml.value(self.budget)}    # for all questions together, for the whole life of the dataset",
            f"adjacency = {toml.text(self.adjacency)}    # neighbouring tables differ in one person, who is "
            + ("added or removed" if self.adjacency == "add/remove" else "replaced by another"),
            'version = "1"    # change it when the data change; this does not renew the budget',
            f"# per_query = {cap}    # the cost allowed for one question",
            "# min_epsilon = 0.001    # the minimum cost of a question, which limits how many can be asked",
            f"# per_analyst = {cap}    # how much every analyst not named below may spend",
            "# share_answers = false    # then an answer that one analyst paid for is not free for others",
            "",
            f"# [{toml.dotted((*place, 'analysts'))}]    # how much each of these analysts may spend",
            f"# research = {cap}",
        ]
        for table in self.tables:
            lines += ["", *self._table((*place, "tables", table.name), table)]
        return "\n".join(lines) + "\n"

    def _table(self, place: tuple[str, ...], table: TableTemplate) -> list[str]:
        caps = isinstance(table.protect, Mapping)
        said = "an answer uses no more rows per person" if caps else "only if no person has two rows"
        if table.guessed:
            said = f"{table.guessed}: check this line"
        return [
            f"[{toml.dotted(place)}]",
            *(f"# {toml.printable(note)}" for note in table.notes),
            f"source = {toml.value(table.source)}",
            f"protect = {toml.value(table.protect)}    # {said}",
            "",
            f"[{toml.dotted((*place, 'columns'))}]    # analysts can use only these columns",
            *(column.line() for column in table.columns),
            *_hierarchy(table.columns),
        ]


def _hierarchy(columns: Sequence[ColumnTemplate]) -> list[str]:
    """A comment with the form of keys that lie within others, if two columns have keys."""
    listed = [each for each in columns if isinstance(each.value, Mapping) and "keys" in each.value]
    if len(listed) < 2 or any("within" in each.value for each in listed):
        return []
    above, *_, below = sorted(listed, key=lambda each: len(each.value["keys"]))
    form = {"keys": {str(key): ["..."] for key in above.value["keys"][:2]}, "within": above.name}
    said = toml.printable(f"instead, if each {below.name} lies in one {above.name}")
    return [f"# {toml.key(below.name)} = {toml.value(form)}    # {said}"]
