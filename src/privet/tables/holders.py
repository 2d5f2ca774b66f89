"""What an engine is asked about keys that are not public: how many people hold each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from privet.errors import QueryError
from privet.tables.expressions.nodes import Column, Node, Types
from privet.tables.expressions.trees import sized
from privet.tables.operators import Operator
from privet.tables.statement import PeopleInGroups, Unbounded
from privet.tables.types import MOST_GROUPS, NumberType, TextType

LONGEST = 200
"""The maximum characters of a text that can appear as a key."""

MOST_BYTES = 4 * LONGEST
"""The maximum bytes of such a text in UTF-8: what engines ask, since a database knows them without reading the text."""

MOST_KEYS = 5
"""The maximum number of unknown keys in one question."""

Found = tuple[str | int, ...]
"""One value for each unknown key."""


def is_unknown(key: Node, types: Types) -> bool:
    """Whether the values of a key are not public: any text, and a column of more whole numbers than can be listed."""
    kind = key.type(types)
    if isinstance(kind, NumberType):
        whole = isinstance(key, Column) and kind.integer and kind.unit == 1 and kind.step is None and not kind.wide
        return whole and kind.most - kind.least >= MOST_GROUPS
    return isinstance(kind, TextType)


def is_held(value: object) -> bool:
    """Whether a value counts as a key of a person: a whole number, or a text that is not too long in bytes.

    Example:
        >>> is_held("Köln"), is_held("x" * 801), is_held(None)
        (True, False, False)
    """
    return len(value.encode()) <= MOST_BYTES if isinstance(value, str) else type(value) is int


def can_appear(value: object) -> bool:
    r"""Whether a value can be a key of an answer: whole numbers, and printable texts that are not too long.

    Example:
        >>> can_appear("Köln"), can_appear("a\x00b"), can_appear("x" * 201), can_appear(None)
        (True, False, False, False)
    """
    if isinstance(value, str):
        return len(value) <= LONGEST and value.isprintable()
    return type(value) is int


class Held(NamedTuple):
    """How many people hold a key, of those who hold this many keys in all."""

    key: Found
    keys: int
    """As many as anybody may hold, if the statement does not weigh people by it."""
    people: int


@dataclass(frozen=True, slots=True)
class Holders:
    """How many people hold each combination of some private values.

    Claim: a person is counted once for each combination that they hold, in at most as many as the bounding allows.
    Which of theirs are kept depends on that person's own rows and the salt alone. A row takes part only if each of its
    values can be held (`is_held`). Of the combinations that are counted, those stay whose values can appear
    (`can_appear`): Python decides that, the same for every engine. Nothing that other people hold leaves a combination
    out, however many there are. So one person changes the count of each of their own by one, and no other.
    """

    input: Operator
    keys: tuple[Node, ...]
    bounding: PeopleInGroups | Unbounded
    weighed: bool = True
    """Whether it matters how many keys each person holds, which takes longer to count."""

    def __post_init__(self) -> None:
        types: Types = self.input.types()
        if not 1 <= len(self.keys) <= MOST_KEYS:
            raise QueryError(f"an answer can have at most {MOST_KEYS} keys that are not declared")
        if not all(is_unknown(sized(key), types) for key in self.keys):
            raise QueryError("holders are counted only for keys that are not public")

    @property
    def most(self) -> int:
        """The maximum number of combinations that count for one person."""
        return self.bounding.groups if isinstance(self.bounding, PeopleInGroups) else 1
