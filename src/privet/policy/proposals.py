"""What a column may be, by its name and its type alone: proposals, for a steward who knows better.

They are outer limits that hold for everybody (an age, a percentage), so that nothing need be looked up in the data.
Where a name tells nothing, nothing is proposed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from privet.tables.kinds import INTEGER, KINDS, usual
from privet.tables.stored_types import Family

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

_PERSONAL = ("name", "surname", "email", "mail", "phone", "mobile", "passport", "ref", "pseudonym", "hash")
"""What belongs to one person, as a rule."""

_NUMERIC = ("integer", "float", "decimal")
_GROUPS = frozenset(("group", "band", "class", "bin", "code", "category", "id", "bracket"))


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a column may be: a line for `shorthand`, or only what would have to be filled in."""

    line: str | None
    form: str
    """The column as a policy would declare it, with gaps to fill in."""
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
    numbers rows or visits is not proposed: each of its values would count as a different person.

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


def doubtful(columns: Iterable[tuple[str, Family]]) -> list[str]:
    """The columns that may tell whose row it is, by their names: an id, or something about a person.

    Example:
        >>> doubtful([("nr", "integer"), ("visit_id", "integer"), ("member_ref", "text"), ("age", "integer")])
        ['nr', 'member_ref']
    """
    able = [name for name, family in columns if family in ("integer", "text", "uuid", "decimal", "anything")]
    marks = {*_PERSONS, *_IDS, *_GLUED, *_PERSONAL} - {"key", "number", "code", "account", "people"}
    return [name for name in able if words(name) & marks and not words(name) & _ROWS]


def proposal(name: str, family: Family, today: date) -> Proposal:
    """What a column may be.

    Example:
        >>> proposal("age", "integer", date(2026, 1, 1)).line, proposal("income", "float", date(2026, 1, 1)).form
        ('integer 0 110', '{ number = [LOWER, UPPER] }')
    """
    said, kind = words(name), usual(family)
    if kind is None:
        if family in ("anything", "nothing"):
            return Proposal(None, INTEGER.blank, "or number, keys, date or another: its type is not known")
        return Proposal(None, "", "its type can't be asked about")
    coded = bool(said & _GROUPS) and family in _NUMERIC
    for each in KINDS.values():
        for guess in () if coded or KINDS[each.base] is not kind else each.guesses:
            if all(said & {*group.split()} for group in guess.words):
                line = f"{each.name} {guess.line}".strip().format(year=today.year)
                return Proposal(line, each.blank or each.policy, each.advice)
    note = f"{kind.advice}; or keys = [...], if the numbers are codes" if coded and family == "integer" else kind.advice
    return Proposal(None, kind.blank, note)
