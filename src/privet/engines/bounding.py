"""At most so many rows of each person: who survives is decided by that person's rows and the salt alone.

A row comes here as the person `u`, the group `g`, and what the statement reads of it: lattice codes and flags, small
integers all of them, packed into one word or a few. The rows of a person are numbered in the order of their words, and
every n/k-th of the n survives, counted from a place that a keyed hash of the person chooses.

Claim: of n rows of a person min(k, n) survive, and each is as likely to as any other, however often its values occur:
if the place is uniform in 0..n - 1, each survives in k of n cases. Rows with equal words are the same for the
statement, so the result does not depend on which of them has which number: not on the order of rows, on threads, or on
others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from privet.tables.statement import AtMostGroups, AtMostRows, Bounding, PeopleInGroups, Unbounded

Hash = Callable[[list[str]], str]
"""SQL of a keyed 64-bit hash (UBIGINT) of some columns."""

_FEW = 2**20  # below, a cap times twice the rows of a person fits into a BIGINT: there are no 2^42 rows


@dataclass(frozen=True, slots=True)
class Field:
    """What the statement reads of a row: a column of integers 0..largest, NULL if it may be missing and is."""

    name: str
    largest: int
    nullable: bool = False

    @property
    def bits(self) -> int:
        """How many bits hold it; with one value more if it can be missing."""
        return (self.largest + self.nullable).bit_length()

    @property
    def plain(self) -> str:
        """As a UBIGINT that is not NULL."""
        return f"COALESCE({self.name}, {self.largest + 1})::UBIGINT" if self.nullable else f"{self.name}::UBIGINT"


@dataclass(frozen=True, slots=True)
class Words:
    """Fields, packed into UBIGINT columns."""

    name: str
    fields: tuple[Field, ...]

    def _split(self) -> list[list[Field]]:
        words: list[list[Field]] = [[]]
        for part in self.fields:
            if sum(f.bits for f in words[-1]) + part.bits > 64:
                words.append([])
            words[-1].append(part)
        return words

    @property
    def columns(self) -> list[str]:
        """The names of the words, the first first."""
        return [f"{self.name}{i}" for i in range(len(self._split()))]

    def packed(self) -> list[str]:
        """The SQL of the words."""
        return [f"{_join(word)} AS {name}" for word, name in zip(self._split(), self.columns, strict=True)]

    def unpacked(self) -> list[str]:
        """The SQL of the fields, from the words."""
        found = []
        for name, word in zip(self.columns, self._split(), strict=True):
            offset = sum(f.bits for f in word)
            for part in word:
                offset -= part.bits
                value = f"({name} >> {offset}) & {(1 << part.bits) - 1}::UBIGINT" if part.bits else "0::UBIGINT"
                value = f"CAST({value} AS BIGINT)"
                value = f"nullif({value}, {part.largest + 1})" if part.nullable else value
                found.append(f"{value} AS {part.name}")
        return found


def _join(word: list[Field]) -> str:
    offset, parts = sum(f.bits for f in word), []
    for part in word:
        offset -= part.bits
        parts.append(f"({part.plain} << {offset})" if offset else part.plain)
    return "(" + " | ".join(parts) + ")" if parts else "0::UBIGINT"


def bounded(rows: str, bounding: Bounding, group: Field, fields: tuple[Field, ...], hashed: Hash) -> str:
    """The rows that survive: `rows` has the columns `u`, `g` and the fields; the result has `g` and the fields."""
    match bounding:
        case Unbounded():
            return rows
        case AtMostRows(most):
            return _rows(rows, most, (group, *fields), hashed)
        case AtMostGroups(groups, most):
            return _groups(rows, groups, most, group, fields, hashed)
        case PeopleInGroups(groups):
            return _people(rows, groups, group, hashed)


def _rows(rows: str, most: int, fields: tuple[Field, ...], hashed: Hash) -> str:
    words = Words("p", fields)
    packed = f"SELECT u, {', '.join(words.packed())} FROM ({rows})"
    kept = _evenly(packed, ["u"], words.columns, most, hashed(["u"]))
    return f"SELECT {', '.join(words.unpacked())} FROM ({kept})"


def _groups(rows: str, groups: int, most: int, group: Field, fields: tuple[Field, ...], hashed: Hash) -> str:
    words = Words("p", fields)
    few = f"SELECT u, {_chosen(group, hashed)} AS q, {', '.join(words.packed())} FROM ({rows})"
    if groups <= group.largest:
        few = f"SELECT * FROM ({few}) QUALIFY dense_rank() OVER (PARTITION BY u ORDER BY q) <= {groups}"
    kept = _evenly(few, ["u", "q"], words.columns, most, hashed(["u", "q"]))
    return f"SELECT {_group_of(group)}, {', '.join(words.unpacked())} FROM ({kept})"


def _people(rows: str, groups: int, group: Field, hashed: Hash) -> str:
    if groups > group.largest:
        return f"SELECT g FROM (SELECT DISTINCT u, g FROM ({rows}))"
    packed = f"SELECT u, {_chosen(group, hashed)} AS q FROM ({rows})"
    # of the rows of one person in one group the first stands for all
    ranked = f"SELECT q, lag(q) OVER w AS before, dense_rank() OVER w AS d FROM ({packed}) {_WINDOW}"
    kept = f"SELECT q FROM ({ranked}) WHERE d <= {groups} AND before IS DISTINCT FROM q"
    return f"SELECT {_group_of(group)} FROM ({kept})"


def _evenly(rows: str, by: list[str], order: list[str], most: int, hashed: str) -> str:
    """At most so many of the rows with the same `by`, spread evenly over them in this order."""
    window = f"WINDOW w AS (PARTITION BY {', '.join(by)} ORDER BY {', '.join(order)})"
    numbered = f"row_number() OVER w AS i, count(*) OVER (w {_WHOLE}) AS n"
    shifted = f"(i + CAST({hashed} % n::UBIGINT AS {'BIGINT' if most < _FEW else 'HUGEINT'}))"
    return f"SELECT * FROM (SELECT *, {numbered} FROM ({rows}) {window}) WHERE {shifted} * {most} % n < {most}"


def _chosen(group: Field, hashed: Hash) -> str:
    """A word that orders the groups of a person by a hash, and holds the group."""
    return f"((({hashed(['u', group.plain])}) >> {group.bits}) << {group.bits}) | {group.plain}"


def _group_of(group: Field) -> str:
    """The group, from such a word."""
    return f"CAST(q & {(1 << group.bits) - 1}::UBIGINT AS BIGINT) AS {group.name}"


_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_WINDOW = "WINDOW w AS (PARTITION BY u ORDER BY q)"
