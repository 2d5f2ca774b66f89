"""At most so many rows of each person: who survives is decided by that person's rows and the salt alone.

A row comes here as the person `u`, the group `g`, and what the statement reads of it: lattice codes and flags, small
integers all of them, packed into one word or a few. The rows of a person are numbered in the order of their words, and
every n/k-th of the n survives, counted from a place that a keyed hash of the person chooses.

One row is chosen without n, which takes longer to find than the numbers: row i is marked if i divides a keyed hash of
the person and i, and the last that is marked survives. The first always is.

Claim: of n rows of a person min(k, n) survive, and each is as likely to as any other, however often its values occur:
if the place is uniform in 0..n - 1, each survives in k of n cases; if the hashes are uniform and independent, row i is
marked and no later one is in 1/i (1 - 1/(i + 1)) ... (1 - 1/n) = 1/n of cases. Rows with equal words are the same for
the statement, so the result does not depend on which of them has which number: not on the order of rows, on threads, or
on others.
"""

from __future__ import annotations

from dataclasses import dataclass

from privet.engines.sql.dialect import Dialect
from privet.tables.statement import AtMostGroups, AtMostRows, Bounding, PeopleInGroups, Unbounded

_FEW = 2**20  # below, a cap times twice the rows of a person fits into 63 bits: there are no 2^42 rows


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

    def word(self, dialect: Dialect) -> str:
        """As a word that is not NULL."""
        return dialect.word(f"COALESCE({self.name}, {self.largest + 1})" if self.nullable else self.name)


@dataclass(frozen=True, slots=True)
class Words:
    """Fields, packed into columns of words."""

    dialect: Dialect
    name: str
    fields: tuple[Field, ...]

    def _split(self) -> list[list[Field]]:
        words: list[list[Field]] = [[]]
        for part in self.fields:
            if sum(f.bits for f in words[-1]) + part.bits > self.dialect.word_bits:
                words.append([])
            words[-1].append(part)
        return words

    @property
    def columns(self) -> list[str]:
        """The names of the words, the first first."""
        return [f"{self.name}{i}" for i in range(len(self._split()))]

    def packed(self) -> list[str]:
        """The SQL of the words."""
        return [f"{self._join(word)} AS {name}" for word, name in zip(self._split(), self.columns, strict=True)]

    def unpacked(self) -> list[str]:
        """The SQL of the fields, from the words."""
        fields = []
        for name, word in zip(self.columns, self._split(), strict=True):
            offset = sum(f.bits for f in word)
            for part in word:
                offset -= part.bits
                value = _low_bits(self.dialect, self.dialect.shifted(name, offset), part.bits)
                value = f"nullif({value}, {part.largest + 1})" if part.nullable else value
                fields.append(f"{value} AS {part.name}")
        return fields

    def _join(self, word: list[Field]) -> str:
        offset, parts = sum(f.bits for f in word), []
        for part in word:
            offset -= part.bits
            plain = part.word(self.dialect)
            parts.append(self.dialect.shifted_left(plain, offset) if offset else plain)
        return "(" + " | ".join(parts) + ")" if parts else self.dialect.word("0")


def _low_bits(dialect: Dialect, word: str, bits: int) -> str:
    """The lowest bits of a word, as a narrow integer."""
    few = f"{word} & {dialect.word(str((1 << bits) - 1))}" if bits else dialect.word("0")
    return dialect.cast(few, dialect.types["narrow"])


@dataclass(frozen=True, slots=True)
class Bounds:
    """Chooses rows; `key` is that of the hash, `who` is what it reads of the person `u`."""

    dialect: Dialect
    key: int
    who: str = "u"

    def kept(self, rows: str, bounding: Bounding, group: Field, fields: tuple[Field, ...]) -> str:
        """The rows that survive: `rows` has the columns `u`, `g` and the fields; the result has `g` and the fields."""
        match bounding:
            case Unbounded():
                return rows
            case AtMostRows(most):
                return self._rows(rows, most, (group, *fields))
            case AtMostGroups(groups, most):
                return self._groups(rows, groups, most, group, fields)
            case PeopleInGroups(groups):
                return self._people(rows, groups, group)

    def _rows(self, rows: str, most: int, fields: tuple[Field, ...]) -> str:
        words = Words(self.dialect, "p", fields)
        packed = f"SELECT u, {', '.join(words.packed())} FROM ({rows})"
        kept = self._evenly(packed, ["u"], words.columns, most)
        return f"SELECT {', '.join(words.unpacked())} FROM ({kept})"

    def _groups(self, rows: str, groups: int, most: int, group: Field, fields: tuple[Field, ...]) -> str:
        words = Words(self.dialect, "p", fields)
        few = f"SELECT u, {self._chosen(group)} AS q, {', '.join(words.packed())} FROM ({rows})"
        if groups <= group.largest:
            few = self.dialect.ranked(few, "dense_rank() OVER (PARTITION BY u ORDER BY q)", f"<= {groups}")
        kept = self._evenly(few, ["u", "q"], words.columns, most)
        return f"SELECT {', '.join([self._group_of(group), *words.unpacked()])} FROM ({kept})"

    def _people(self, rows: str, groups: int, group: Field) -> str:
        if group.largest == 0:
            return f"SELECT {self.dialect.literal(0, self.dialect.small)} AS g FROM (SELECT DISTINCT u FROM ({rows}))"
        if groups > group.largest:
            return f"SELECT g FROM (SELECT DISTINCT u, g FROM ({rows}))"
        packed = f"SELECT u, {self._chosen(group)} AS q FROM ({rows})"
        # of the rows of one person in one group only the first is kept
        ranked = f"SELECT q, lag(q) OVER w AS before, dense_rank() OVER w AS d FROM ({packed}) {_WINDOW}"
        kept = f"SELECT q FROM ({ranked}){self.dialect.where(f'd <= {groups} AND before IS DISTINCT FROM q')}"
        return f"SELECT {self._group_of(group)} FROM ({kept})"

    def _evenly(self, rows: str, by: list[str], order: list[str], most: int) -> str:
        """At most so many of the rows with the same `by`, spread evenly over them in this order."""
        dialect = self.dialect
        if most == 1 and len(order) == 1:
            return self._one(rows, by, order[0])
        start = f"{dialect.hashed(self.key, self._hashed(by))} % {dialect.word('n')}"
        shifted = f"(i + {dialect.cast(start, dialect.types['narrow' if most < _FEW else 'wide'])})"
        numbered = dialect.numbered(rows, ", ".join(by), ", ".join(order), most)
        return f"SELECT * FROM ({numbered}){dialect.where(f'n <= {most} OR {shifted} * {most} % n < {most}')}"

    def _hashed(self, by: list[str]) -> list[str]:
        return [self.who, *map(self.dialect.word, by[1:])]

    def _one(self, rows: str, by: list[str], word: str) -> str:
        """One of the rows with the same `by`: of those that are marked the last, which has the largest word."""
        part = ", ".join(by)
        numbered = f"SELECT *, row_number() OVER (PARTITION BY {part} ORDER BY {word}) AS i FROM ({rows})"
        number = self.dialect.word("i")
        marked = f"{self.dialect.hashed(self.key, [*self._hashed(by), number])} % {number} = 0"
        return f"SELECT {part}, max({word}) AS {word} FROM ({numbered}){self.dialect.where(marked)} GROUP BY {part}"

    def _chosen(self, group: Field) -> str:
        """A word that orders the groups of a person by a hash, and holds the group."""
        number = group.word(self.dialect)
        high = self.dialect.shifted(self.dialect.hashed(self.key, [self.who, number]), group.bits)
        return f"({self.dialect.shifted_left(high, group.bits)} | {number})"

    def _group_of(self, group: Field) -> str:
        """The group, from such a word."""
        return f"{_low_bits(self.dialect, 'q', group.bits)} AS {group.name}"


_WINDOW = "WINDOW w AS (PARTITION BY u ORDER BY q)"
