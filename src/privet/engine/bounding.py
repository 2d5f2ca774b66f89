"""At most so many rows of each person: who survives is decided by that person's rows and the salt alone.

A row comes here as the person `u`, the group `g`, and what the statement reads of it: lattice codes and flags, small
integers all of them. They are packed, behind a keyed hash of the person and of themselves, into one word or a few: the
order of the words is the order of the hash, ties broken by the values themselves.

Claim: the rows of a person that survive are those with the least words (of two: the least and the greatest, which is
as even a choice and needs no sorting). Rows with equal words are the same for the statement, so the result does not
depend on which of them survive: not on the order of rows, on threads, or on others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from privet.relation.statement import AtMostGroups, AtMostRows, Bounding, PeopleInGroups, Unbounded

Hash = Callable[[list[str]], str]
"""SQL of a keyed 64-bit hash (UBIGINT) of some columns."""

_HASHED = 24  # so many bits of the hash, at least, stand before the values in one word


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
    """Fields, packed into UBIGINT columns whose order is that of a hash, then that of the fields."""

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
    def together(self) -> bool:
        """Whether hash and fields fit into one word."""
        return sum(f.bits for f in self.fields) <= 64 - _HASHED

    @property
    def columns(self) -> list[str]:
        """The names of the words, the first first."""
        return [self.name] if self.together else [f"{self.name}{i}" for i in range(len(self._split()) + 1)]

    def packed(self, hashed: str) -> list[str]:
        """The SQL of the words."""
        words = [_join(word) for word in self._split()]
        if not self.together:
            return [f"{sql} AS {name}" for sql, name in zip([hashed, *words], self.columns, strict=True)]
        bits = sum(f.bits for f in self.fields)
        return [f"((({hashed}) >> {bits}) << {bits}) | {words[0]} AS {self.name}"]

    def unpacked(self) -> list[str]:
        """The SQL of the fields, from the words."""
        found = []
        for name, word in zip(self.columns if self.together else self.columns[1:], self._split(), strict=True):
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
    packed = words.packed(hashed(["u", *(f.plain for f in fields)]))
    order = ", ".join(words.columns)
    both = f"SELECT u, {', '.join(packed)} FROM ({rows})"
    if words.together and most <= len(_ENDS):
        ends = f"SELECT {', '.join(_ENDS[:most])}, count(*) AS n FROM ({both}) GROUP BY u"
        kept = f"SELECT least AS p FROM ({ends})"
        if most == 2:
            kept = f"SELECT unnest(CASE WHEN n > 1 THEN [least, greatest] ELSE [least] END) AS p FROM ({ends})"
    else:
        ranked = f"row_number() OVER (PARTITION BY u ORDER BY {order})"
        kept = f"SELECT {order} FROM ({both}) QUALIFY {ranked} <= {most}"
    return f"SELECT {', '.join(words.unpacked())} FROM ({kept})"


def _groups(rows: str, groups: int, most: int, group: Field, fields: tuple[Field, ...], hashed: Hash) -> str:
    chosen, words = Words("q", (group,)), Words("p", fields)
    of_row = hashed(["u", *(f.plain for f in (group, *fields))])
    packed = [*chosen.packed(hashed(["u", group.plain])), *words.packed(of_row)]
    order = ", ".join(words.columns)
    few = f"SELECT u, {', '.join(packed)} FROM ({rows})"
    if groups <= group.largest:
        few = f"SELECT u, q, {order} FROM ({few}) QUALIFY dense_rank() OVER (PARTITION BY u ORDER BY q) <= {groups}"
    ranked = f"row_number() OVER (PARTITION BY u, q ORDER BY {order})"
    kept = f"SELECT q, {order} FROM ({few}) QUALIFY {ranked} <= {most}"
    return f"SELECT {', '.join([*chosen.unpacked(), *words.unpacked()])} FROM ({kept})"


def _people(rows: str, groups: int, group: Field, hashed: Hash) -> str:
    if groups > group.largest:
        return f"SELECT g FROM (SELECT DISTINCT u, g FROM ({rows}))"
    words = Words("q", (group,))
    packed = f"SELECT u, {words.packed(hashed(['u', group.plain]))[0]} FROM ({rows})"
    # of the rows of one person in one group the first stands for all
    ranked = f"SELECT q, lag(q) OVER w AS before, dense_rank() OVER w AS d FROM ({packed}) {_WINDOW}"
    kept = f"SELECT q FROM ({ranked}) WHERE d <= {groups} AND before IS DISTINCT FROM q"
    return f"SELECT {words.unpacked()[0]} FROM ({kept})"


_ENDS = "min(p) AS least", "max(p) AS greatest"
_WINDOW = "WINDOW w AS (PARTITION BY u ORDER BY q)"
