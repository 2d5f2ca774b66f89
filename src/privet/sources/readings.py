"""How declared columns are read from a source, and which of its types can hold them.

A source's type belongs to a family (integers, floats, texts, ...); a declaration can be read from some families. Both
are public: no value is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from privet.errors import Remedy, SourceError, Subject, write
from privet.names.spelling import listed, nearest
from privet.privacy.adjacency import Person
from privet.tables.kinds import KINDS, usual
from privet.tables.schema import Column, Schema
from privet.tables.stored_types import Family, StoredType
from privet.tables.types import KeyType, Type

Reading = Literal["number", "integer", "boolean", "text", "key", "date", "timestamp", "person"]
"""What values are read as; `text` are keys of texts too, `key` keys of integers, `person` the id of a person."""

HOLD: dict[Reading, tuple[Family, ...]] = {
    "number": ("integer", "float", "decimal"),
    "integer": ("integer", "float", "decimal"),
    "boolean": ("boolean",),
    "text": ("text",),
    "key": ("integer",),
    "date": ("date", "timestamp"),
    "timestamp": ("timestamp", "date"),
    "person": ("integer", "text", "uuid", "decimal", "float"),
}
"""What can be read as what, besides `anything` and `nothing`, of which all that does not convert is missing."""

NAMES: dict[Family, str] = {
    "integer": "integers",
    "float": "floats",
    "decimal": "decimals",
    "boolean": "booleans",
    "text": "texts",
    "date": "dates",
    "timestamp": "timestamps",
    "uuid": "UUIDs",
}
_PERSON = 'protect=pv.person("person_id", max_rows=3)'


def reading_of(declared: Column | Type | str) -> Reading:
    """How a column is read: by its type or, where nothing but its kind is declared, by that.

    Example:
        >>> reading_of(KeyType((1, 2))), reading_of(KeyType(("a", "b"))), reading_of("integer")
        ('key', 'text', 'integer')
    """
    kind = declared.type if isinstance(declared, Column) else declared
    if isinstance(kind, KeyType) and not kind.textual:
        return "key"
    base = KINDS[kind].base if isinstance(kind, str) else kind.kind
    return "text" if base == "keys" else base  # type: ignore[return-value]


def kinds(schema: Schema) -> dict[str, Reading]:
    """What must be read: the person's id first, then the declared columns; an id is read as one, declared or not."""
    person: dict[str, Reading] = {schema.protect.id: "person"} if isinstance(schema.protect, Person) else {}
    return person | {name: reading_of(column) for name, column in schema.columns if name not in person}


def check(schema: Schema, stored: Mapping[str, StoredType], where: str) -> None:
    """Refuse a source that lacks a column, or can't hold what one was declared to be."""
    wanted = kinds(schema)
    folded: dict[str, str] = {}
    for name in wanted:
        other = folded.setdefault(name.casefold(), name)
        if other != name:
            raise SourceError(
                f"the columns {other!r} and {name!r} of {schema.name!r} differ only in capital letters, and engines "
                "can't tell them apart",
                subject=Subject("column", name, schema.name),
                remedy=Remedy("Rename one of them in the source"),
            )
    for name in wanted:
        if name not in stored:
            raise missing_column(name, list(stored), where, _subject(schema, name))
    types = {name: column.type for name, column in schema.columns}
    for name, kind in wanted.items():
        subject = _subject(schema, name)
        _fits(subject, kind, stored[name], where, types.get(name))
        if name in types and kind == "person":  # an id that is asked about, too
            _fits(subject, reading_of(types[name]), stored[name], where, types[name])


def missing_column(
    name: str, existing: Sequence[str], where: str, subject: Subject | None = None, line: Remedy | None = None
) -> SourceError:
    """The refusal of a name that does not exist, with the nearest one that does: for a policy, that name alone."""
    near = nearest(name, existing)
    remedy = Remedy() if line is None else line
    if near is not None:
        remedy = replace(remedy, advice=f"Did you mean {near!r}?", policy=near)
    subject = Subject("column", name) if subject is None else subject
    if subject.kind == "person" and near is not None:
        remedy = replace(remedy, python=f'protect=pv.person("{near}", max_rows=3)')
    return SourceError(
        f"there is no column {name!r} in {where}",
        allowed=listed(existing),
        subject=subject,
        remedy=remedy,
    )


def _subject(schema: Schema, name: str) -> Subject:
    person = isinstance(schema.protect, Person) and name == schema.protect.id
    return Subject("person" if person else "column", name, schema.name)


def _any_of(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def _fits(subject: Subject, kind: Reading, stored: StoredType, where: str, of: Type | None) -> None:
    if stored.family in HOLD[kind] or stored.family in ("anything", "nothing"):
        return
    name, allowed = subject.name, _any_of([NAMES[family] for family in HOLD[kind]])
    if kind == "person" or of is None:
        raise SourceError(
            f"column {name!r} of {where} identifies the person, but contains {stored.name}",
            allowed=f"An id is read from {allowed}",
            subject=subject,
            remedy=write(_PERSON),
        )
    if kind == "key" and stored.family in ("float", "decimal"):  # pandas, where an integer is missing
        cast = f'frame.astype({{"{name}": "Int64"}})'
        remedy = write(cast, advice="Convert them to integers first, in pandas with Int64")
    elif kind == "boolean" and stored.family == "integer":
        remedy = write(
            f'columns={{"{name}": pv.integer(0, 1)}}',
            policy="{ integer = [0, 1] }",
            advice="Declare a 0 or 1 as an integer",
        )
    elif (proper := usual(stored.family)) is not None:
        advice = "Convert it in the source, or declare it as it is" if stored.family == "text" else ""
        remedy = write(f'columns={{"{name}": {proper.python}}}', policy=proper.policy, advice=advice)
    else:
        remedy = Remedy("Leave the column out, or convert it in the source")
    raise SourceError(
        f"column {name!r} of {where} is declared as {of}, but contains {stored.name}",
        allowed=f"This is read from {allowed}",
        subject=Subject("column", name, subject.table),
        remedy=remedy,
    )
