"""Postgres's SQL. Comments say what Postgres would do otherwise.

Postgres has no cast that gives NULL, and raises errors for floats that overflow or underflow. So every cast and every
product of floats is under a CASE, whose branches are computed only where they are needed.
"""

from __future__ import annotations

import json
import re
from datetime import datetime

from privet.engines.base import Unsupported
from privet.engines.sql.dialect import Dialect, Kind, Part, Period, Size, Span, scientific
from privet.engines.sql.text import Context
from privet.exact import Exact
from privet.tables.stored_types import StoredType

_PARTS = {"weekday": "isodow"}
_NONNEGATIVE = 2**63 - 1
_PIECE = 39  # bits; the highest of three pieces of a float has more
_WORD, _BYTES = re.compile(r"CAST\([^()]+ AS bigint\)"), re.compile(r"\(\w+ COLLATE \"C\"\)")
_FEW, _SHORT = 128, 40  # how many texts are listed in a statement, if what is compared with them is no longer


class PostgresDialect(Dialect):
    """What the compiler asks of Postgres.

    Example:
        >>> dialect = PostgresDialect()
        >>> dialect.integer(-5), dialect.integer(2**70), dialect.integer(3, "wide")
        ('(-5)::bigint', '1180591620717411303424::numeric', '3::numeric')
        >>> dialect.floor_divided("x", 4, 0), dialect.floor_divided("x", 3, -4), dialect.divided("x", "3", "wide")
        ('(x >> 2)', '(((x + 6) / 3) - 2)', 'div(x, 3)')
        >>> dialect.float(Exact(1, 10)), dialect.bytewise("x")
        ("'1e-1'::float8", '(x COLLATE "C")')
    """

    types = {"narrow": "bigint", "wide": "numeric"}  # noqa: RUF012
    small = "integer"
    text = "text"
    double = "float8"
    boolean = "boolean"
    moments = {"date": "date", "time": "timestamp"}  # noqa: RUF012
    word_bits = 63  # there are no unsigned integers
    most_parameters = 2**16 - 1 - 8 * _FEW  # those that are left hold private keys that are found, up to 6 lists
    fence = " OFFSET '0'::bigint"  # a 0 without quotes is cast later, and nothing below would run in parallel

    def parameter(self, number: int) -> str:
        return f"${number}::text"

    def literal(self, number: int, type_: str) -> str:
        return f"({number})::{type_}" if number < 0 else f"{number}::{type_}"

    def float(self, number: Exact | float | int) -> str:
        return f"'{scientific(number)}'::float8"  # without quotes it would be a decimal

    def instant(self, value: datetime) -> str:
        return f"TIMESTAMP WITH TIME ZONE '{value.isoformat(' ', 'microseconds')}+00'"

    # --- casts ------------------------------------------------------------------------------------

    def try_cast(self, sql: str, type_: str, stored: StoredType | None = None) -> str:
        if stored is not None:
            return self._read(sql, type_, stored)
        if type_ == self.types["narrow"]:  # a wide integer: one that does not fit is another, and not an error
            return f"CAST({sql} % {2**63} AS {type_})"
        return f'(CAST({sql} AS text) COLLATE "C")' if type_ == self.text else f"CAST({sql} AS {type_})"

    def _read(self, sql: str, type_: str, stored: StoredType) -> str:
        """A column of a source; `privet.engines.postgres.types` knows which there are."""
        match stored.family, type_:
            case _, self.text:
                return f'(CAST({sql} AS text) COLLATE "C")'
            case "boolean", self.double | "bigint" | "numeric":
                return f"CAST(CAST({sql} AS integer) AS {type_})"
            case "decimal", "bigint":
                return f"CASE WHEN {sql} BETWEEN {-(2**63)} AND {2**63 - 1} THEN CAST({sql} AS bigint) END"
            case "integer" | "float" | "decimal", self.double | "numeric":
                return f"CAST({sql} AS {type_})"
            case "integer", "bigint":
                return f"CAST({sql} AS bigint)"
            case "date" | "timestamp", "date" | "timestamp":
                return f"CAST({sql} AS {type_})"
        raise Unsupported(f"Postgres can't read {stored.name} as {type_}")

    def fractional(self, d: str) -> str:
        # from 1e15 on a cast would write an exponent, and one to numeric alone would keep 15 digits
        text = f"CAST({d} AS text)"
        many = f"abs({d}) BETWEEN {self.float(10**15)} AND {self.float(10**18)}"
        return f'(CASE WHEN {many} THEN CAST(CAST({text} AS numeric) AS text) ELSE {text} END COLLATE "C")'

    def flag(self, sql: str, type_: str | None = None) -> str:
        # there is no cast from booleans to bigint
        return self.cast(f"CAST(({sql}) AS integer)", type_ or self.types["narrow"])

    def bit(self, sql: str) -> str:
        return f"CAST(({sql}) AS integer)"

    def digits(self, stored: StoredType, sql: str) -> str | None:
        digits, places = stored.precision, stored.scale
        if places and digits + places + 1 > 38:
            return None
        whole = f"{sql} * {10**places}" if places else sql
        return f"CAST({whole} AS {self.types['narrow' if digits <= 18 else 'wide']})"

    # --- integers and floats ----------------------------------------------------------------------

    def divided(self, sql: str, by: str, size: Size = "narrow") -> str:
        return f"({sql} / {by})" if size == "narrow" else f"div({sql}, {by})"  # a decimal would be divided on

    def shifted(self, sql: str, places: int, size: Size = "narrow") -> str:
        if size == "narrow":
            return f"({sql} >> {places})"  # negative numbers too are rounded down
        return f"(div({sql} + {2**127}, {2**places}) - {2 ** (127 - places)})"  # div rounds towards 0

    def low_bits(self, sql: str, places: int) -> str:
        return f"({sql} & {(1 << places) - 1})"

    def is_nan(self, sql: str) -> str:
        return f"({sql} = 'NaN'::float8)"  # NaN is equal to itself

    def whole(self, sql: str) -> str:
        # the greatest double below 2^63; NaN is greater than every number
        ends = f"{self.float(-(2**63))} AND {self.float(2**63 - 1024)}"
        return f"CASE WHEN {sql} BETWEEN {ends} THEN CAST({sql} AS bigint) END"

    def clamped_integer(self, m: str, ends: tuple[int, int], inside: str, codes: tuple[str, str]) -> str:
        # BETWEEN is two conditions and an AND, which take longer for each row
        (low, high), (first, last) = ends, codes
        return f"CASE WHEN {m} > {high} THEN {last} WHEN {m} < {low} THEN {first} ELSE {inside} END"

    def clamped_float(self, d: str, ends: tuple[str, str], inside: str, codes: tuple[str, str]) -> str:
        (low, high), (first, last) = ends, codes  # NaN is greater than every number
        above = f"CASE WHEN {d} < 'NaN'::float8 THEN {last} END"
        return f"CASE WHEN {d} > {high} THEN {above} WHEN {d} < {low} THEN {first} ELSE {inside} END"

    def floored(self, sql: str, d: str, near_zero: Span | None, size: Size) -> str:
        floor = f"floor({sql})"
        floor = f"CAST({floor} AS bigint)" if size == "narrow" else self._exact(floor)
        if near_zero is None:
            return floor
        first, last = map(self.float, near_zero)
        return f"CASE WHEN {d} BETWEEN {first} AND {last} THEN 0 ELSE {floor} END"

    def _exact(self, whole: str) -> str:
        """A double that is a whole number below 2^140, as a decimal: a cast would keep 15 digits of it.

        Three pieces, each a bigint, rounded towards 0: rounded down, 2^78 - 1 would be left of -1, and no double is
        that. So products with powers of two, and what is left, are exact.
        """
        piece, both = self.float(2**_PIECE), self.float(2 ** (2 * _PIECE))
        high = f"trunc({whole} / {both})"
        rest = f"({whole} - {high} * {both})"
        middle = f"trunc({rest} / {piece})"
        low = f"({rest} - {middle} * {piece})"
        high, middle, low = (f"CAST(CAST({part} AS bigint) AS numeric)" for part in (high, middle, low))
        return f"({high} * {2 ** (2 * _PIECE)} + {middle} * {2**_PIECE} + {low})"

    # --- words ------------------------------------------------------------------------------------

    def word(self, sql: str) -> str:
        return f"CAST({sql} AS bigint)"

    def shifted_left(self, sql: str, places: int) -> str:
        return f"({sql} << {places})"

    def hashed(self, key: int, columns: list[str]) -> str:
        hashed = self.literal(key - 2**64 if key >= 2**63 else key, "bigint")
        for each in columns:
            if _WORD.fullmatch(each):
                hashed = f"hashint8extended({each}, {hashed})"
            elif _BYTES.fullmatch(each):
                hashed = f"hashtextextended({each}, {hashed})"
            else:  # of values, whatever their type: 1 and 1.0, 0.0 and -0.0 have the same. It is looked up for each row
                hashed = f"hash_record_extended(ROW({each}), {hashed})"
        return f"({hashed} & {_NONNEGATIVE})"

    # --- texts and keys ---------------------------------------------------------------------------

    def bytewise(self, sql: str) -> str:
        return f'({sql} COLLATE "C")'

    def starts_with(self, sql: str, prefix: str) -> str:
        return f"starts_with({sql}, {prefix})"

    def place(self, text: str, values: tuple[str, ...], context: Context) -> str:
        if len(values) <= _FEW and len(text) <= _SHORT:
            return _searched(text, values, context)
        return f"CAST({_numbered(values, context)} -> {text} AS integer)"

    def is_listed(self, text: str, values: tuple[str, ...], context: Context) -> str:
        return f"({_numbered(values, context)} -> {text} IS NOT NULL)"

    # --- dates ------------------------------------------------------------------------------------

    def part(self, part: Part, sql: str) -> str:
        return f"CAST(extract({_PARTS.get(part, part)} FROM {sql}) AS bigint)"

    def truncated(self, period: Period, sql: str, kind: Kind) -> str:
        # of a date it would be a timestamp in the session's zone
        start = f"date_trunc('{period}', CAST({sql} AS timestamp))"
        return f"CAST({start} AS date)" if kind == "date" else start

    def days(self, last: str, first: str) -> str:
        return f"CAST({last} - {first} AS bigint)"

    def periods(self, period: Period, first: str, last: str) -> str:
        def number(moment: str) -> str:
            year = f"extract(year FROM {moment})"
            match period:
                case "year":
                    return year
                case "quarter":
                    return f"({year} * 4 + extract(quarter FROM {moment}))"
                case "month":
                    return f"({year} * 12 + extract(month FROM {moment}))"
                case "week":
                    return f"((CAST(date_trunc('week', CAST({moment} AS timestamp)) AS date) - DATE '0001-01-01') / 7)"
                case "day":
                    return f"(CAST({moment} AS date) - DATE '0001-01-01')"
                case "hour":
                    return f"((CAST({moment} AS date) - DATE '0001-01-01') * 24 + extract(hour FROM {moment}))"

        return f"CAST({number(last)} - {number(first)} AS integer)"

    def in_utc(self, sql: str, inside: str) -> str:
        return f"CASE WHEN {inside} THEN {sql} AT TIME ZONE 'UTC' END"

    # --- rows -------------------------------------------------------------------------------------

    def how_many(self, sql: str) -> str | None:
        # Postgres computes the argument of each aggregate anew, but sum and avg of the same bigint share one state. So
        # the number is sum / avg: a count beside the sum takes 41 % more CPU time, or 14 % more with a subquery that
        # computes the argument once. avg has 16 significant digits or more, so up to 2^40 numbers sum / avg is less
        # than 1/2 off, and rounding finds the number. None of them is 0; if all were, nullif would prevent an error.
        return f"round(sum({sql}) / nullif(avg({sql}), 0))"

    def count_where(self, condition: str) -> str:
        return f"count(*) FILTER (WHERE {condition})"

    def numbered(self, rows: str, by: str, order: str, most: int) -> str:
        # one window for both: two would keep and number all rows twice
        whole = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        window = f"WINDOW w AS (PARTITION BY {by} ORDER BY {order} {whole})"
        return f"SELECT *, row_number() OVER w AS i, count(*) OVER w AS n FROM ({rows}) {window}"


def _searched(text: str, values: tuple[str, ...], context: Context) -> str:
    """Which of a few public texts it is, found by comparing: a third faster than in `_numbered`."""
    x = f'({text} COLLATE "C")'
    numbers = {value: i for i, value in enumerate(values) if "\x00" not in value}

    def search(some: list[str]) -> str:
        if len(some) == 1:
            return f"CASE WHEN {x} = {context.bind(some[0])} THEN {numbers[some[0]]} END"
        half = len(some) // 2
        return f"CASE WHEN {x} < {context.bind(some[half])} THEN {search(some[:half])} ELSE {search(some[half:])} END"

    return search(sorted(numbers, key=str.encode)) if numbers else "CAST(NULL AS integer)"


def _numbered(values: tuple[str, ...], context: Context) -> str:
    """Public texts with their numbers, in which Postgres finds one by bisection; bound as one parameter."""
    if values not in context.lists:
        # no text of Postgres contains the character 0, so what does is not there
        numbers = {value: i for i, value in enumerate(values) if "\x00" not in value}
        context.lists[values] = f"CAST({context.bind(json.dumps(numbers))} AS jsonb)"
    return context.lists[values]
