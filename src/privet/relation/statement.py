"""What an engine is asked to compute: exact integers for each group. Nothing here is private, and nothing is noisy."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from privet.exact import Exact
from privet.relation.expressions import Bin, Node
from privet.relation.fields import LATER
from privet.relation.operators import Operator
from privet.relation.types import KeyValue

# --- what is read of a row: the hull --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Code:
    """The lattice code of an expression: an integer in 0..width, or missing if `missing`.

    Claim: this holds for every row, whatever the expression gives. An engine clamps the code as its last step, and
    reads what is missing as 0 where `missing` is false. A value is lower + step * code.
    """

    of: Node
    lower: Exact
    step: Exact
    width: int
    missing: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Which of some bins a row is in: an integer in 0..size - 1, or missing. One row has one place, or none."""

    of: Bin
    size: int


@dataclass(frozen=True, slots=True)
class Given:
    """Whether an expression has a value: 1, or 0 if it is missing."""

    of: Node


# --- what an engine counts ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rows:
    """The number of rows."""


@dataclass(frozen=True, slots=True)
class Present:
    """The number of rows whose code, or whose value, is not missing."""

    of: Code | Given


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of the codes that are not missing."""

    of: Code


@dataclass(frozen=True, slots=True)
class Squares:
    """The sum of the squares of the codes that are not missing."""

    of: Code


@dataclass(frozen=True, slots=True)
class At:
    """The number of rows at one place."""

    of: Place
    index: int


Tally = Rows | Present | Total | Squares | At
"""What an engine can count or add up, exactly: a row adds a function of one code to each."""


# --- how many rows of a person may take part ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unbounded:
    """All rows: each is protected by itself, or each person has one at most."""


@dataclass(frozen=True, slots=True)
class AtMostRows:
    """At most this many rows of each person."""

    rows: int


@dataclass(frozen=True, slots=True)
class AtMostGroups:
    """At most this many groups for each person, and in each at most so many rows."""

    groups: int
    rows: int


@dataclass(frozen=True, slots=True)
class PeopleInGroups:
    """One row for each person and group, in at most this many groups for each person."""

    groups: int


Bounding = Unbounded | AtMostRows | AtMostGroups | PeopleInGroups
"""Every way of bounding there is."""


@dataclass(frozen=True, slots=True)
class Statement:
    """Rows, the expressions that group them, the bounding, and what is counted or added up in each group.

    Claim: the result is one integer for each group and tally, for every group there can be, in the order of
    `itertools.product` over the keys' values. A row with a key that is missing, or none of its values, takes no part,
    and is dropped before bounding. Bounding keeps, of each person, rows that are spread evenly over all of theirs in
    the order of what the statement reads of them, from a place that a keyed hash chooses: what survives of a person
    depends on that person's rows and the salt alone, and rows that are equal in this order are the same for the
    statement.

    `values` lists the values of each key, where conditions leave only some of those that its type has.
    """

    of: Operator
    keys: tuple[Node, ...]
    bounding: Bounding
    tallies: tuple[Tally, ...]
    values: tuple[tuple[KeyValue, ...], ...] | None = field(default=None, metadata=LATER)

    def domains(self) -> tuple[tuple[KeyValue, ...], ...]:
        """All values of each key."""
        if self.values is not None:
            return self.values
        types = self.of.types()
        return tuple(key.type(types).keys() for key in self.keys)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return prod(len(values) for values in self.domains())
