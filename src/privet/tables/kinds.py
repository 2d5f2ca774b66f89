"""The kinds of columns that a steward can declare: one record each, with all that differs from kind to kind.

Policies, the short lines of the command line, the import of CSV, the remedies of errors and the proposals of
`privet init` are made from these records. The type that a kind declares says the rest: the lattice or the keys, the
JSON, and how engines and sources read a value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from privet.tables.schema import Column, boolean, date, integer, keys, number, text, timestamp
from privet.tables.stored_types import Family

Form = Literal["integers", "numbers", "dates", "timestamps", "keys", "file", "text", "key", "step", "flag"]
"""How a parameter is written: two ends of a range, a list of keys, a path, a text, a key, a positive number, a flag."""

_LIFE = "birth born dob birthday birthdate yob death died deceased"
_BOUNDS = "The least and the greatest value, from what you know, never from the data."


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a declaration says besides its kind: the parameter that has the kind's name comes first, the others by name.

    `about` explains it to a steward. One that is not optional needs no name in a short line.
    """

    name: str
    form: Form
    about: str
    optional: bool = True


@dataclass(frozen=True, slots=True)
class Guess:
    """What to propose, after the name of the kind, if the column's name has a word of each of these groups.

    A bound that holds for everybody (an age, a percentage). `{year}` is the present year.
    """

    line: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of column."""

    name: str
    """Its name everywhere: the function that declares it, the key of a policy, the first word of a short line."""
    about: str
    """One sentence for a steward."""
    declare: Callable[..., Column]
    """The column, from the parameters."""
    parameters: tuple[Parameter, ...]
    python: str
    """An example in Python."""
    policy: str
    """An example in a policy."""
    line: str
    """An example as a short line."""
    needs: str = ""
    """What is missing if only the name is written; empty, if nothing is."""
    like: str = ""
    """The kind that its type has without a name of its own (`Type.kind`), if that is another one."""
    usual_for: tuple[Family, ...] = ()
    """The families of stored types for which this is the usual declaration."""
    blank: str = ""
    """The form to fill in where nothing is guessed; and what to fill in."""
    advice: str = ""
    guesses: tuple[Guess, ...] = ()
    """What `privet init` proposes by the name of a column: the first guess that fits, of all kinds."""

    @property
    def value(self) -> Parameter | None:
        """The parameter that is written right after the name."""
        return next((each for each in self.parameters if each.name == self.name), None)

    @property
    def base(self) -> str:
        """The kind that its type has without a name of its own."""
        return self.like or self.name


def usual(family: Family) -> Kind | None:
    """The kind that columns of this family usually are.

    Example:
        >>> usual("decimal").name, usual("uuid")
        ('number', None)
    """
    return next((kind for kind in KINDS.values() if family in kind.usual_for), None)


_OTHER = Parameter(
    "other", "key", "The key under which all other values count; without it, such rows are left out of groups."
)
_WITHIN = Parameter("within", "text", "The column of keys in which these lie, each in one; then list them by its keys.")
_REQUIRED = Parameter("required", "flag", "Whether a missing value counts as the lower bound.")

INTEGER = Kind(
    "integer", "A whole number, clamped to public bounds.", integer,
    (Parameter("integer", "integers", _BOUNDS, optional=False), _REQUIRED),
    python="pv.integer(0, 110)", policy="{ integer = [0, 110] }", line="integer 0 110",
    needs="an integer needs bounds, from what you know, never from the data",
    usual_for=("integer",), blank="{ integer = [LOWER, UPPER] }", advice="bounds that you know",
    guesses=(
        Guess("0 1", ("is has was",)), Guess("1900 {year}", ("year yob", _LIFE)), Guess("0 110", ("age",)),
        Guess("0 100", ("percent percentage pct",)), Guess("1 12", ("month",)), Guess("1 31", ("day",)),
        Guess("1 4", ("quarter",)), Guess("1 53", ("week",)), Guess("0 7", ("weekday",)), Guess("0 23", ("hour",)),
        Guess("0 59", ("minute",)), Guess("0 20", ("children kids siblings",)), Guess("1900 2100", ("year yob",)),
    ),
)  # fmt: skip
NUMBER = Kind(
    "number", "A real number, clamped to public bounds.", number,
    (
        Parameter("number", "numbers", _BOUNDS, optional=False),
        Parameter("step", "step", "The step to which it is rounded before summing; by default, 2^-32 of the range."),
        _REQUIRED,
    ),
    python="pv.number(0, 200_000)", policy="{ number = [0, 200_000] }", line="number 0 200000 step 0.01",
    needs="a number needs bounds, from what you know, never from the data",
    usual_for=("float", "decimal"), blank="{ number = [LOWER, UPPER] }", advice="bounds that you know",
    guesses=(
        Guess("0 110", ("age",)), Guess("0 100", ("percent percentage pct",)), Guess("-90 90", ("latitude lat",)),
        Guess("0 1", ("share fraction proportion probability",)), Guess("-180 180", ("longitude lon lng",)),
        Guess("10 80", ("bmi",)),
    ),
)  # fmt: skip
BOOLEAN = Kind(
    "boolean", "True or false.", boolean,
    (Parameter("required", "flag", "Whether a missing value counts as false."),),
    python="pv.boolean()", policy='"boolean"', line="boolean",
    usual_for=("boolean",), guesses=(Guess(""),),
)  # fmt: skip
KEYS = Kind(
    "keys", "One of a public list of values; every one of them appears in an answer.", keys,
    (Parameter("keys", "keys", "All values, texts or integers, from what you know.", optional=False), _OTHER, _WITHIN),
    python='pv.keys("north", "south")', policy='{ keys = ["north", "south"], other = "elsewhere" }',
    line="keys north south other elsewhere", needs="list the keys: each of them appears in every answer",
    usual_for=("text",), blank='{ keys = ["...", "..."], other = "other" }',
    advice='all values that you know; or "text", if you know none',
)  # fmt: skip
DATE = Kind(
    "date", "A date in a public range.", date,
    (Parameter("date", "dates", "The first and the last day.", optional=False),),
    python='pv.date("2024-01-01", "2024-12-31")', policy="{ date = [2024-01-01, 2024-12-31] }",
    line="date 2024-01-01 2024-12-31", needs="a date needs a range, from what you know, never from the data",
    usual_for=("date",), blank="{ date = [FIRST, LAST] }", guesses=(Guess("1900-01-01 {year}-12-31"),),
)  # fmt: skip
TIMESTAMP = Kind(
    "timestamp", "A date with a time of day, in UTC, in a public range.", timestamp,
    (Parameter("timestamp", "timestamps", "The first and the last moment.", optional=False),),
    python='pv.timestamp("2024-01-01", "2024-12-31")',
    policy="{ timestamp = [2024-01-01T00:00:00, 2024-12-31T23:59:59] }",
    line="timestamp 2024-01-01 2024-12-31T23:59:59",
    needs="a timestamp needs a range, from what you know, never from the data",
    usual_for=("timestamp",), blank="{ timestamp = [FIRST, LAST] }",
    guesses=(Guess("1900-01-01 {year}-12-31T23:59:59"),),
)  # fmt: skip
TEXT = Kind(
    "text",
    "Any text, for filters and for keys that are not public.",
    text,
    (),
    python="pv.text()",
    policy='"text"',
    line="text",
)

KINDS: dict[str, Kind] = {kind.name: kind for kind in (INTEGER, NUMBER, BOOLEAN, KEYS, DATE, TIMESTAMP, TEXT)}
"""Every kind, by its name."""

_OTHERS = {
    INTEGER: "int int32 int64 bigint smallint", NUMBER: "float float32 float64 double decimal numeric real",
    BOOLEAN: "bool bool_ logical", TEXT: "str string varchar object char", KEYS: "key enum category categorical factor",
    TIMESTAMP: "datetime datetime64",
}  # fmt: skip
FOREIGN: dict[str, Kind] = {word: kind for kind, words in _OTHERS.items() for word in words.split()}
"""Type names of other systems, and the kinds they mean."""


def meant(word: str) -> Kind | None:
    """The kind that a person may mean by this word.

    Example:
        >>> meant("Float").name, meant("boolean").name, meant("thing")
        ('number', 'boolean', None)
    """
    return KINDS.get(word.strip().lower()) or FOREIGN.get(word.strip().lower())
