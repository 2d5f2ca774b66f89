"""What an engine is asked to compute: exact integers for each group. Nothing here is private, and nothing is noisy."""

from __future__ import annotations

from dataclasses import dataclass

from privet.errors import QueryError
from privet.exact import Exact
from privet.tables.expressions.nodes import Bin, Node
from privet.tables.expressions.trees import sized
from privet.tables.expressions.typing_rules import as_number
from privet.tables.groups import Listed
from privet.tables.operators import Operator
from privet.tables.types import KeyValue

# --- what is read of a row: the hull --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Code:
    """The lattice code of an expression: an integer in 0..width, or missing if `missing`.

    Claim: this holds for every row, whatever the expression gives. An engine clamps the code as its last step, and
    reads what is missing as 0 where `missing` is false. A value is lower + step * code.
    """

    expression: Node
    lower: Exact
    step: Exact
    width: int
    missing: bool

    def __post_init__(self) -> None:
        if self.width < 1 or self.step <= 0:
            raise QueryError("a lattice has one step or more, each greater than 0")


@dataclass(frozen=True, slots=True)
class Place:
    """Which of some bins a row is in: an integer in 0..size - 1, or missing. One row has one place, or none."""

    expression: Bin
    size: int

    def __post_init__(self) -> None:
        if type(self.expression) is not Bin or self.size != len(self.expression.edges) - 1:
            raise QueryError("a row has one place for each bin")


@dataclass(frozen=True, slots=True)
class Given:
    """Whether an expression has a value: 1, or 0 if it is missing."""

    expression: Node


# --- what an engine counts ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rows:
    """The number of rows."""


@dataclass(frozen=True, slots=True)
class Present:
    """The number of rows whose code, or whose value, is not missing."""

    value: Code | Given


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of the codes that are not missing."""

    value: Code


@dataclass(frozen=True, slots=True)
class Squares:
    """The sum of the squares of the codes that are not missing."""

    value: Code


@dataclass(frozen=True, slots=True)
class At:
    """The number of rows at one place."""

    value: Place
    index: int

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.value.size:
            raise QueryError("there is no such bin")


@dataclass(frozen=True, slots=True)
class Distinct:
    """The number of different values that are not missing.

    Claim: rows that are added change it by at most one each, and never lower it. So k rows of one person change it by k
    at most; rows in place of k others too, since both differ from what is left without either by 0 to k.

    If a statement counts nothing else, of several equal rows of a person only one counts towards the bounding, and rows
    with no value don't.
    """

    value: Given


Tally = Rows | Present | Total | Squares | At | Distinct
"""What an engine can count or add up, exactly: a row adds a function of one code to each, or one value to a set."""


# --- how many rows per person are used ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unbounded:
    """All rows: each is protected by itself, or each person has one at most."""

    def caps(self) -> tuple[int, ...]:
        """How many rows and groups it leaves."""
        return ()


@dataclass(frozen=True, slots=True)
class AtMostRows:
    """At most this many rows of each person."""

    rows: int

    def __post_init__(self) -> None:
        _caps(self.rows)

    def caps(self) -> tuple[int, ...]:
        """How many rows it leaves."""
        return (self.rows,)


@dataclass(frozen=True, slots=True)
class AtMostGroups:
    """At most this many groups for each person, and in each at most so many rows."""

    groups: int
    rows: int

    def __post_init__(self) -> None:
        _caps(self.groups, self.rows)

    def caps(self) -> tuple[int, ...]:
        """How many groups, and rows in each, it leaves."""
        return self.groups, self.rows


@dataclass(frozen=True, slots=True)
class PeopleInGroups:
    """One row for each person and group, in at most this many groups for each person."""

    groups: int

    def __post_init__(self) -> None:
        _caps(self.groups)

    def caps(self) -> tuple[int, ...]:
        """How many groups it leaves."""
        return (self.groups,)


def _caps(*most: int) -> None:
    if any(type(one) is not int or one < 1 for one in most):
        raise QueryError("a cap is a whole number, 1 or greater")


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

    `listed` has the groups: all values that the keys' types have, unless conditions leave only some of them.
    """

    input: Operator
    keys: tuple[Node, ...]
    bounding: Bounding
    tallies: tuple[Tally, ...]
    listed: Listed = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        types = self.input.types()
        kinds = [sized(key).type(types) for key in self.keys]
        if self.listed is None:
            object.__setattr__(self, "listed", Listed.whole(self.input, self.keys))
        else:
            self.listed.check(kinds)
        if not self.tallies:
            raise QueryError("a statement counts something")
        if any(most > 2**30 for most in self.bounding.caps()):
            raise QueryError("a person has at most 2^30 rows and groups in an answer")
        for tally in self.tallies:
            if not isinstance(tally, Tally):
                raise QueryError(f"an engine can't count {type(tally).__name__}")
            if not isinstance(tally, Rows):
                kind = sized(tally.value.expression).type(types)
                if isinstance(tally.value, Code):
                    as_number(kind, "a total")

    @property
    def is_distinct(self) -> bool:
        """Whether it counts different values only, so that equal rows of a person are one."""
        return all(isinstance(tally, Distinct) for tally in self.tallies)

    def domains(self) -> tuple[tuple[KeyValue, ...], ...]:
        """All values of each key."""
        return self.listed.values

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return self.listed.most


def counted_code(statement: Statement) -> Code:
    """The code of a statement that counts the rows with one code, and nothing else: its buckets can be asked for."""
    match statement.tallies:
        case (Present(Code() as code),):
            return code
    raise QueryError("only a statement that counts the rows of one code has buckets")


@dataclass(frozen=True, slots=True)
class Buckets:
    """Which buckets of codes to count: code >> shift, of all codes, or of those in some coarser buckets of some groups.

    Which ones may follow from the data: nobody sees them.
    """

    shift: int
    only: frozenset[tuple[int, int]] | None = None
    """Pairs of a group and code >> coarse; None for all."""
    coarse: int = 0
