"""A policy before it is one: what a steward answered, as a text with comments that loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privet.policy import toml


@dataclass(frozen=True, slots=True)
class DraftColumn:
    """A column: as it stands in a policy, or, without a value, as a comment to fill in."""

    name: str
    value: Any = None
    form: str = ""
    note: str = ""

    def line(self) -> str:
        """Its line."""
        head = f"{toml.key(self.name)} = "
        if self.value is not None:
            return head + toml.value(self.value) + (f"    # {toml.printable(self.note)}" if self.note else "")
        told = f"{head}{self.form}" if self.form else toml.key(self.name)
        return f"# {told}" + (f"    # {self.note}" if self.note else "")


@dataclass(frozen=True, slots=True)
class DraftTable:
    """A table."""

    name: str
    source: Any
    protect: Any
    columns: tuple[DraftColumn, ...]
    notes: tuple[str, ...] = ()
    guessed: str = ""
    """What of its protection nobody has said."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A policy of one dataset."""

    dataset: str
    ledger: str
    budget: Mapping[str, Any]
    adjacency: str
    tables: tuple[DraftTable, ...]

    def text(self) -> str:
        """The policy.

        Example:
            >>> age = DraftColumn("age", {"integer": [0, 110]})
            >>> table = DraftTable("people", "people.parquet", {"person": "id", "max_rows": 1}, (age,))
            >>> print(Draft("health", "health.ledger", {"epsilon": 1}, "add/remove", (table,)).text().splitlines()[-1])
            age = { integer = [0, 110] }
        """
        place = ("datasets", self.dataset)
        lines = [
            "# The steward's policy: who is protected, what may be asked, what may be spent. Analysts can't change it.",
            "# Bounds, keys and ranges come from what you know, never from the data. Numbers are exact.",
            "",
            f"ledger = {toml.text(self.ledger)}    # every debit is kept here: never delete it",
            "",
            f"[{toml.dotted(place)}]    # all tables about the same people: one budget",
            f"budget = {toml.value(self.budget)}    # for the whole life of the dataset, all questions together",
            f"adjacency = {toml.text(self.adjacency)}    # neighbours differ in a person who is "
            + ("added or removed" if self.adjacency == "add/remove" else "replaced by another"),
            'version = "1"    # the name of the data: a new one when they change. It does not renew the budget',
            "# per_query = { epsilon = 0.5 }    # what one question may cost",
            "# min_epsilon = 0.001    # what one question costs at least: it bounds how many can be asked",
            "# per_analyst = { epsilon = 0.5 }    # what each analyst may spend who is not named below",
            "# share_answers = false    # an answer that one analyst paid for is then not free for others",
            "",
            f"# [{toml.dotted((*place, 'analysts'))}]    # what single analysts may spend",
            "# research = { epsilon = 0.5 }",
        ]
        for table in self.tables:
            lines += ["", *self._table((*place, "tables", table.name), table)]
        return "\n".join(lines) + "\n"

    def _table(self, place: tuple[str, ...], table: DraftTable) -> list[str]:
        caps = isinstance(table.protect, Mapping)
        said = "more rows of a person are left out of an answer" if caps else "right only if no person has two rows"
        if table.guessed:
            said = f"{table.guessed}: check this line"
        return [
            f"[{toml.dotted(place)}]",
            *(f"# {toml.printable(note)}" for note in table.notes),
            f"source = {toml.value(table.source)}",
            f"protect = {toml.value(table.protect)}    # {said}",
            "",
            f"[{toml.dotted((*place, 'columns'))}]    # what is not named here, analysts can't use",
            *(column.line() for column in table.columns),
        ]
