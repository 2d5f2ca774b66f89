"""What differs between databases that speak SQL: types, casts, literals, bits, calendars.

The compiler asks a dialect for all of it. Whatever a dialect writes is total: for no row does it raise an error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import date, datetime
from typing import TYPE_CHECKING, ClassVar, Literal

from privet.errors import InternalError
from privet.exact import Exact, nearest
from privet.tables.stored_types import StoredType
from privet.tables.units import NARROW

if TYPE_CHECKING:
    from privet.engines.sql.text import Context

Size = Literal["narrow", "wide"]
"""An integer type of 64 bits, or one that holds 127 bits and a sign."""

Kind = Literal["integer", "boolean", "text", "date", "time"]
"""How a value is held: an integer (narrow or wide), a boolean, a text, a date, a timestamp without a zone; or NULL."""

Span = tuple[Exact, Exact]
"""All numbers between two."""

Period = Literal["year", "quarter", "month", "week", "day", "hour"]
Part = Literal["year", "quarter", "month", "day", "weekday", "hour"]


def held(largest: int) -> Size:
    """The size that holds integers up to this, either sign.

    Example:
        >>> held(2**61), held(2**62)
        ('narrow', 'wide')
    """
    if largest >= 2**127:
        raise InternalError("an integer of more than 127 bits has no type. This is a bug in Privet.")
    return "narrow" if largest < NARROW else "wide"


def scientific(number: Exact | float | int) -> str:
    """The nearest float, in digits that read back to the last bit.

    Example:
        >>> scientific(Exact(1, 10)), scientific(-3), scientific(2**70)
        ('1e-1', '-3e0', '1.1805916207174113e21')
    """
    value = nearest(Exact(number))
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        digits = repr(value).removesuffix(".0")
        whole, _, fraction = digits.partition(".")
        sign = "-" if whole.startswith("-") else ""
        mantissa = f"{sign}{int(whole.lstrip('-') + fraction)}" if fraction else digits
        exponent = str(-len(fraction))
    return f"{mantissa}e{int(exponent)}"


class Dialect(ABC):
    """One database's SQL.

    Claim: every method writes a total expression, which can stand beside any operator. A cast that can fail gives
    NULL; a divisor is greater than 0, or NULL.
    """

    types: ClassVar[dict[Size, str]]
    """The types of integers. Sums and products of up to 126 bits are computed in the wide one."""
    widest: ClassVar[int] = 2**127 - 1
    """The largest wide integer."""
    small: ClassVar[str]
    """The type of group numbers: integers below 2^31."""
    text: ClassVar[str]
    double: ClassVar[str]
    boolean: ClassVar[str]
    moments: ClassVar[dict[Literal["date", "time"], str]]
    """The types of dates and of timestamps without a zone."""
    word_bits: ClassVar[int]
    """How many bits of a row bounding packs into one integer: 64 where there are unsigned integers, else 63."""

    most_parameters: ClassVar[int | None] = None
    """How many parameters a question can have, where the database has a limit."""

    fence: ClassVar[str] = ""
    """What ends a subquery whose columns are to be computed once, where a database would write their expressions
    wherever they are used: layer by layer, the text could double."""

    # --- names and literals ---------------------------------------------------------------------

    def name(self, text: str) -> str:
        """A name in quotes."""
        return '"' + text.replace('"', '""') + '"'

    @abstractmethod
    def parameter(self, number: int) -> str:
        """A placeholder for the text that is bound with this number, counted from 1."""

    def integer(self, number: int, size: Size | None = None) -> str:
        """An integer of this size, or of the one that holds it."""
        own = size or ("narrow" if abs(number) <= NARROW else held(abs(number)))
        return self.literal(number, self.types[own])

    @abstractmethod
    def literal(self, number: int, type_: str) -> str:
        """An integer of this type."""

    @abstractmethod
    def float(self, number: Exact | float | int) -> str:
        """The nearest double, which is read back to the last bit."""

    def moment(self, value: date) -> str:
        """A date, or a date with a time of day."""
        if isinstance(value, datetime):
            return f"TIMESTAMP '{value.isoformat(' ', 'microseconds')}'"
        return f"DATE '{value.isoformat()}'"

    @abstractmethod
    def instant(self, value: datetime) -> str:
        """A timestamp with a zone, from one in UTC."""

    # --- casts ----------------------------------------------------------------------------------

    def cast(self, sql: str, type_: str) -> str:
        """A value as a type that holds every value of its own type."""
        return f"CAST({sql} AS {type_})"

    @abstractmethod
    def try_cast(self, sql: str, type_: str, stored: StoredType | None = None) -> str:
        """A value as another type, rounded half away from 0 to an integer; NULL where it does not fit.

        `stored` is the type of a column of a source, if it is one. Else it is a value that fits, or that nobody looks
        at where it does not: then it may be any.
        """

    def shortest(self, stored: StoredType, sql: str) -> str:
        """A decimal as a text, without zeros behind the last digit that counts: equal numbers are equal texts."""
        text = self.try_cast(sql, self.text, stored)
        return f"rtrim(rtrim({text}, '0'), '.')" if stored.scale else text

    def fractional(self, d: str) -> str:
        """A double as a text; from 1e-3 up to 1e18, of one that is not whole, digits and a point alone."""
        return self.try_cast(d, self.text)

    def flag(self, sql: str, type_: str | None = None) -> str:
        """A boolean as 0 or 1."""
        return self.cast(sql, type_ or self.types["narrow"])

    @abstractmethod
    def bit(self, sql: str) -> str:
        """A boolean as 0 or 1, of the type that is summed fastest."""

    @abstractmethod
    def digits(self, stored: StoredType, sql: str) -> str | None:
        """A decimal times 10^scale, exactly, as an integer; None where the database can't compute it."""

    # --- integers and floats ----------------------------------------------------------------------

    @abstractmethod
    def divided(self, sql: str, by: str, size: Size = "narrow") -> str:
        """An integer that is not negative, divided by one that is greater than 0, or NULL; rounded down.

        `size` is that of the integers, here and below: not every database divides both in the same way.
        """

    @abstractmethod
    def shifted(self, sql: str, places: int, size: Size = "narrow") -> str:
        """An integer of either sign, divided by 2^places, rounded down."""

    def negated(self, sql: str) -> str:
        """An integer with the other sign."""
        return f"(-{sql})"

    def absolute(self, sql: str, size: Size = "narrow") -> str:
        """The absolute value of an integer."""
        return f"abs({sql})"

    def whole(self, sql: str) -> str:
        """A float, rounded to a narrow integer; NULL where it does not fit."""
        return self.try_cast(sql, self.types["narrow"])

    def floored(self, sql: str, d: str, near_zero: Span | None, size: Size) -> str:
        """The floor of `sql`, as an integer of this size; `sql` is a float that is computed from the float `d`.

        In the span, if there is one, the floor is 0 or -1, no matter which: a database that raises errors for products
        that are too near to 0 need not compute them.
        """
        return self.try_cast(f"floor({sql})", self.types[size])

    def clamped_integer(self, m: str, ends: tuple[int, int], inside: str, codes: tuple[str, str]) -> str:
        """`inside`, where the integer `m` is between the ends; beyond, the first or the last code; NULL for NULL.

        `inside` is NULL for NULL, and may fail for what is beyond.
        """
        (low, high), (first, last) = ends, codes
        outside = f"WHEN {m} < {low} THEN {first} WHEN {m} > {high} THEN {last}"
        return f"CASE WHEN {m} BETWEEN {low} AND {high} THEN {inside} {outside} END"

    def clamped_float(self, d: str, ends: tuple[str, str], inside: str, codes: tuple[str, str]) -> str:
        """The same of a float `d`; NULL for NaN, too."""
        (low, high), (first, last) = ends, codes
        outside = f"WHEN {d} < {low} THEN {first} WHEN NOT {self.is_nan(d)} THEN {last}"
        return f"CASE WHEN {d} BETWEEN {low} AND {high} THEN {inside} {outside} END"

    @abstractmethod
    def low_bits(self, sql: str, places: int) -> str:
        """The lowest bits of an integer that is not negative."""

    @abstractmethod
    def is_nan(self, sql: str) -> str:
        """Whether a float is NaN; NULL for NULL."""

    def is_whole(self, sql: str) -> str:
        """Whether a float has no fraction."""
        return f"floor({sql}) = {sql}"

    def floor_divided(self, sql: str, by: int, least: int, size: Size = "narrow") -> str:
        """An integer that is at least `least`, divided and rounded down.

        Databases round towards 0, so that what can be negative is moved above 0 first.
        """
        if by == 1:
            return sql
        if least < 0:
            ahead = -(least // by)
            return f"({self.divided(f'({sql} + {ahead * by})', str(by), size)} - {ahead})"
        if by & (by - 1) == 0:
            return self.shifted(sql, by.bit_length() - 1, size)
        return self.divided(sql, str(by), size)

    # --- words: what bounding reads of a row, packed into integers -----------------------------------

    @abstractmethod
    def word(self, sql: str) -> str:
        """An integer that is not negative, or a literal, as a word."""

    @abstractmethod
    def shifted_left(self, sql: str, places: int) -> str:
        """A word times 2^places; what it loses at the top is lost."""

    @abstractmethod
    def hashed(self, key: int, columns: list[str]) -> str:
        """A keyed hash, as a word. Privacy holds for every one: it chooses evenly who survives, no more."""

    # --- texts and keys ---------------------------------------------------------------------------

    @abstractmethod
    def bytewise(self, sql: str) -> str:
        """A text that is equal to another one if their bytes are, whatever collation the column has."""

    @abstractmethod
    def starts_with(self, sql: str, prefix: str) -> str:
        """Whether a text starts with another one."""

    @abstractmethod
    def place(self, text: str, values: tuple[str, ...], context: Context) -> str:
        """Which of some public texts it is, counted from 0; NULL if none."""

    @abstractmethod
    def is_listed(self, text: str, values: tuple[str, ...], context: Context) -> str:
        """Whether a text that is not NULL is one of some public texts."""

    def is_short(self, sql: str, most: int) -> str:
        """Whether a text has at most so many bytes, which is known without reading it; NULL for NULL."""
        return f"octet_length({sql}) <= {most}"

    def can_be_sent(self, sql: str) -> str | None:
        """Whether a text can come back as it is; None where every text can."""
        return None

    # --- dates ------------------------------------------------------------------------------------

    @abstractmethod
    def part(self, part: Part, sql: str) -> str:
        """A part of a date or timestamp; Monday is weekday 1."""

    @abstractmethod
    def truncated(self, period: Period, sql: str, kind: Kind) -> str:
        """The start of the year, quarter, month, week (Monday), day or hour."""

    @abstractmethod
    def days(self, last: str, first: str) -> str:
        """How many days lie between two dates."""

    @abstractmethod
    def periods(self, period: Period, first: str, last: str) -> str:
        """How many starts of periods lie between two moments; NULL where that is not below 2^31."""

    @abstractmethod
    def in_utc(self, sql: str, inside: str) -> str:
        """A timestamp with a zone as one in UTC without, where `inside` is true; else NULL."""

    # --- rows -------------------------------------------------------------------------------------

    def total(self, sql: str, largest: int | None = None) -> str:
        """The sum of integers, as a wide one: it can't overflow; `largest` is the greatest absolute value, if known."""
        return f"sum({sql})"

    def how_many(self, sql: str) -> str | None:
        """How many of at most 2^40 integers, each greater than 0, are not NULL, where their sum tells it; else None.

        It is for databases that compute an expression again for each aggregate.
        """
        return None

    @abstractmethod
    def count_where(self, condition: str) -> str:
        """How many rows meet a condition."""

    def where(self, condition: str) -> str:
        """What stands behind a subquery of which only the rows that meet a condition are kept."""
        return f" WHERE {condition}"

    def once(self, rows: str, part: str, by: str) -> str:
        """The values of `part` and `by`, each once; what follows is done part by part."""
        return f"SELECT DISTINCT {part}, {by} FROM ({rows})"

    def ranked(self, rows: str, rank: str, condition: str) -> str:
        """The rows of a SELECT whose rank (a window function) meets a condition; another column may be added."""
        return f"SELECT * FROM (SELECT *, {rank} AS rank_ FROM ({rows})){self.where(f'rank_ {condition}')}"

    def numbered(self, rows: str, by: str, order: str, most: int) -> str:
        """The rows of a SELECT with two columns more, in each part `by`: `i`, their numbers in this order, and `n`.

        In a part of at most `most` rows `i` can be any number, and `n` any from 1 to `most`: all of them survive.
        """
        window = f"WINDOW w AS (PARTITION BY {by} ORDER BY {order})"
        whole = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        return f"SELECT *, row_number() OVER w AS i, count(*) OVER (w {whole}) AS n FROM ({rows}) {window}"
