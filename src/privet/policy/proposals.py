"""What a column may be, by its name and its type alone: proposals, for a steward who knows better.

They are outer limits that hold for everybody (an age, a percentage), so that nothing need be looked up in the data.
Where a name tells nothing, nothing is proposed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from privet.policy.columns import EXAMPLES
from privet.tables.stored import Family

_PERSONS = (
    *("person", "patient", "user", "customer", "client", "member", "subject", "employee", "student", "citizen"),
    *("participant", "respondent", "individual", "resident", "pupil", "worker", "driver", "passenger", "donor"),
    *("player", "people", "athlete", "teacher", "voter", "author", "tenant", "household", "account", "buyer", "guest"),
    *("applicant", "borrower", "beneficiary", "owner", "visitor", "subscriber", "insured", "cust", "pat", "emp"),
)
_IDS = ("id", "uuid", "guid", "key", "no", "nr", "num", "number", "code", "uid")
_GLUED = frozenset(person + mark for person in _PERSONS for mark in _IDS) | {"username", "login", "ssn", "mrn"}
_ROWS = frozenset(
    (
        *("row", "rows", "rowid", "rownum", "rownumber", "index", "idx", "seq", "sequence", "serial", "line", "record"),
        *("obs", "observation", "unnamed", "counter", "entry", "event", "visit", "order", "transaction", "session"),
    )
)
"""What numbers rows, or things that happen to a person, and not persons."""

_GROUPS = frozenset(("group", "band", "class", "bin", "code", "category", "id", "bracket"))
_LIFE = frozenset(("birth", "born", "dob", "birthday", "birthdate", "yob", "death", "died", "deceased"))

_INTEGERS: tuple[tuple[str, int, int], ...] = (
    ("age", 0, 110),
    ("percent percentage pct", 0, 100),
    ("month", 1, 12),
    ("day", 1, 31),
    ("quarter", 1, 4),
    ("week", 1, 53),
    ("weekday", 0, 7),
    ("hour", 0, 23),
    ("minute", 0, 59),
    ("children kids siblings", 0, 20),
    ("year yob", 1900, 2100),
)
_NUMBERS: tuple[tuple[str, int, int], ...] = (
    ("age", 0, 110),
    ("percent percentage pct", 0, 100),
    ("share fraction proportion probability", 0, 1),
    ("latitude lat", -90, 90),
    ("longitude lon lng", -180, 180),
    ("bmi", 10, 80),
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a column may be: a line for `shorthand`, or only what would have to be filled in."""

    line: str | None
    form: str
    """The column as it would stand in a policy, with gaps."""
    note: str = ""


def words(name: str) -> frozenset[str]:
    """The words in a name, however they are put together.

    Example:
        >>> sorted(words("birthYear_of-Person"))
        ['birth', 'of', 'person', 'year']
    """
    return frozenset(word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name))


def person(columns: Iterable[tuple[str, Family]]) -> tuple[str | None, bool]:
    """The column that may tell whose row it is, and whether its name leaves no doubt.

    A name with a person and an id comes first (patient_id, playerID), then a person (customer), then a bare id. What
    numbers rows or visits is not proposed: each of its values would be another person.

    Example:
        >>> person([("id", "integer"), ("patient_id", "text")]), person([("row_id", "integer"), ("id", "integer")])
        (('patient_id', True), ('id', False))
    """
    able = [name for name, family in columns if family in ("integer", "text", "uuid", "decimal", "anything")]
    said = {name: words(name) for name in able if not words(name) & _ROWS}
    for name, parts in said.items():
        if (parts & {*_PERSONS} and parts & {*_IDS}) or (parts & _GLUED and len(parts) == 1):
            return name, True
    for wanted in (frozenset(_PERSONS), frozenset(_IDS[:3])):
        for name, parts in said.items():
            if len(parts) == 1 and parts & wanted:
                return name, False
    return None, False


def proposal(name: str, family: Family, today: date) -> Proposal:
    """What a column may be.

    Example:
        >>> proposal("age", "integer", date(2026, 1, 1)).line, proposal("income", "float", date(2026, 1, 1)).form
        ('integer 0 110', '{ number = [LOWER, UPPER] }')
    """
    said = words(name)
    last = f"{today.year}-12-31"
    match family:
        case "boolean":
            return Proposal("boolean", EXAMPLES["boolean"])
        case "integer":
            form = "{ integer = [LOWER, UPPER] }"
            if said & _GROUPS:
                return Proposal(None, form, "bounds that you know; or keys = [...], if the numbers are codes")
            if said & {"is", "has", "was"}:
                return Proposal("integer 0 1", form)
            if said & {"year", "yob"} and said & _LIFE:
                return Proposal(f"integer 1900 {today.year}", form)
            return Proposal(_bounded("integer", said, _INTEGERS), form, "bounds that you know")
        case "float" | "decimal":
            form = "{ number = [LOWER, UPPER] }"
            line = None if said & _GROUPS else _bounded("number", said, _NUMBERS)
            return Proposal(line, form, "bounds that you know")
        case "date":
            return Proposal(f"date 1900-01-01 {last}", "{ date = [FIRST, LAST] }")
        case "timestamp":
            return Proposal(f"timestamp 1900-01-01 {last}T23:59:59", "{ timestamp = [FIRST, LAST] }")
        case "text":
            form = '{ keys = ["...", "..."], other = "other" }'
            return Proposal(None, form, 'all values that you know; or "text", for filters only')
        case "anything" | "nothing":
            form = "{ integer = [LOWER, UPPER] }"
            return Proposal(None, form, "or number, keys, date or another: its type is not known")
        case _:
            return Proposal(None, "", "its type can't be asked about")


def _bounded(kind: str, said: frozenset[str], known: tuple[tuple[str, int, int], ...]) -> str | None:
    for names, lower, upper in known:
        if said & frozenset(names.split()):
            return f"{kind} {lower} {upper}"
    return None
