"""Spark's SQL. Comments say what Spark would do otherwise.

It does not depend on settings: it is written for a session whether `spark.sql.ansi.enabled` is on (what does not fit is
an error, which tells the value) or off, and in every time zone.
"""

from __future__ import annotations

import json
from datetime import date, datetime
from zlib import crc32

from privet.engines.base import Unsupported
from privet.engines.spark.types import identifier
from privet.engines.sql.dialect import Dialect, Kind, Part, Period, Size, Span, scientific
from privet.engines.sql.text import Context
from privet.exact import Exact
from privet.tables.stored_types import StoredType

WIDEST = 10**38 - 1
"""The largest decimal."""
_ROWS = 40  # a sum has at most 2^40 rows: the ceiling of `privet.tables.schema`
_SUMMED = 63 - _ROWS  # bits of an integer that so many of can be added in 64 bits
_BASE = 2**63
_PIECE = 39  # bits; the highest of three pieces of a float has more
_FEW = 8  # texts up to this are compared one by one; of more, those with the same checksum
_PLACE = "from_json({}, 'array<array<string>>')"
_NUMBER = "from_json({}, 'array<array<int>>')"


class SparkDialect(Dialect):
    """What the compiler asks of Spark.

    Example:
        >>> dialect = SparkDialect()
        >>> dialect.integer(-5), dialect.integer(2**70), dialect.integer(3, "wide")
        ('(-5L)', 'CAST(1180591620717411303424 AS DECIMAL(38, 0))', 'CAST(3 AS DECIMAL(38, 0))')
        >>> dialect.floor_divided("x", 4, 0), dialect.floor_divided("x", 3, -4), dialect.divided("x", "y")
        ('shiftright(CAST(x AS bigint), 2)', '(((x + 6) div 3) - 2)', '(x div y)')
        >>> dialect.float(Exact(1, 10)), dialect.total("x", 1), dialect.total("x")
        ('1e-1D', 'sum(x)', 'sum(CAST(x AS DECIMAL(38, 0)))')
    """

    types = {"narrow": "bigint", "wide": "DECIMAL(38, 0)"}  # noqa: RUF012
    widest = WIDEST
    small = "INT"
    text = "STRING"
    double = "DOUBLE"
    boolean = "BOOLEAN"
    moments = {"date": "DATE", "time": "TIMESTAMP_NTZ"}  # noqa: RUF012
    word_bits = 63  # there are no unsigned integers

    def name(self, text: str) -> str:
        return identifier(text)

    def parameter(self, number: int) -> str:
        return f":p{number}"

    def literal(self, number: int, type_: str) -> str:
        if type_ == self.types["narrow"]:
            return f"({number}L)" if number < 0 else f"{number}L"
        return f"CAST({number} AS {type_})"

    def float(self, number: Exact | float | int) -> str:
        text = f"{scientific(number)}D"  # without the letter it would be a decimal
        return f"({text})" if text.startswith("-") else text

    def moment(self, value: date) -> str:
        if isinstance(value, datetime):
            return f"TIMESTAMP_NTZ '{value.isoformat(' ', 'microseconds')}'"
        return f"DATE '{value.isoformat()}'"

    def instant(self, value: datetime) -> str:
        return f"TIMESTAMP_LTZ '{value.isoformat(' ', 'microseconds')} UTC'"

    # --- casts ------------------------------------------------------------------------------------

    def try_cast(self, sql: str, type_: str, stored: StoredType | None = None) -> str:
        if stored is None:
            return f"try_cast({sql} AS {type_})"
        narrow, wide = self.types["narrow"], self.types["wide"]
        match stored.family, type_:
            case "integer" | "decimal" | "float" | "boolean" | "date" | "timestamp" | "text" | "nothing", self.text:
                return f"CAST({sql} AS {type_})"
            case "integer" | "float" | "decimal" | "boolean", self.double:
                return f"CAST({sql} AS {type_})"
            case "integer" | "decimal" | "boolean", str() if type_ in (narrow, wide):
                return f"try_cast({sql} AS {type_})"
            case "date" | "timestamp", "DATE" | "TIMESTAMP_NTZ":
                return f"try_cast({sql} AS {type_})"
        raise Unsupported(f"Spark can't read {stored.name} as {type_}")

    def shortest(self, stored: StoredType, sql: str) -> str:
        # a cast would write 0.0000001 as 1E-7
        return f"format_number({sql}, '0.{'#' * stored.scale}')" if stored.scale else super().shortest(stored, sql)

    def fractional(self, d: str) -> str:
        # from 1e7 on a cast would write an exponent
        text = f"CAST({d} AS STRING)"
        plain = f"format_number(try_cast({text} AS DECIMAL(38, 19)), '0.{'#' * 19}')"
        return f"CASE WHEN abs({d}) BETWEEN {self.float(10**7)} AND {self.float(10**18)} THEN {plain} ELSE {text} END"

    def bit(self, sql: str) -> str:
        return f"CAST(({sql}) AS INT)"

    def digits(self, stored: StoredType, sql: str) -> str | None:
        digits, places = stored.precision, stored.scale
        type_ = self.types["narrow" if digits <= 18 else "wide"]
        if places == 0:
            return f"try_cast({sql} AS {type_})"
        if digits + places + 1 > 38:
            return None
        # of more than 38 digits Spark would keep fewer behind the point: here these are all 0
        return f"try_cast({sql} * CAST({10**places} AS DECIMAL({places + 1}, 0)) AS {type_})"

    # --- integers and floats ----------------------------------------------------------------------

    def divided(self, sql: str, by: str, size: Size = "narrow") -> str:
        if size == "narrow":
            return f"({sql} div {by})"
        # of decimals too the quotient is a bigint, which wraps
        if by.isdigit():
            return self._whole_part(sql, int(by))
        one = f"CAST(({sql} div {by}) AS {self.types['wide']})"  # of less than 2^126, it is below 2^63
        return f"CASE WHEN {by} < {10**19} THEN {self._two_digits(sql, f'({by} * {_BASE})', by)} ELSE {one} END"

    def _whole_part(self, sql: str, by: int) -> str:
        """A decimal divided by a public number, rounded towards 0."""
        if by * _BASE > WIDEST:
            return f"CAST(({sql} div {by}) AS {self.types['wide']})"
        return self._two_digits(sql, str(by * _BASE), str(by))

    def _two_digits(self, sql: str, much: str, by: str) -> str:
        """A quotient that a bigint does not hold, as two digits of the base 2^63; `much` is the divisor times that."""
        high, low = (
            f"CAST({each} AS {self.types['wide']})" for each in (f"({sql} div {much})", f"(({sql} % {much}) div {by})")
        )
        return f"({high} * {_BASE} + {low})"

    def floor_divided(self, sql: str, by: int, least: int, size: Size = "narrow") -> str:
        if size == "narrow" or by == 1:
            return super().floor_divided(sql, by, least, size)
        whole = self._whole_part(sql, by)
        return whole if least >= 0 else f"({whole} - CAST({sql} % {by} < 0 AS INT))"

    def shifted(self, sql: str, places: int, size: Size = "narrow") -> str:
        if size == "narrow":
            # negative numbers too are rounded down; a decimal, should there be one, would be cast to 32 bits
            return f"shiftright(CAST({sql} AS bigint), {places})"
        return self.floor_divided(sql, 2**places, -1, size)

    def negated(self, sql: str) -> str:
        return f"(0 - {sql})"  # of a decimal, - and abs would keep 34 digits

    def absolute(self, sql: str, size: Size = "narrow") -> str:
        return f"abs({sql})" if size == "narrow" else f"greatest({sql}, 0 - {sql})"

    def low_bits(self, sql: str, places: int) -> str:
        return f"({sql} & {(1 << places) - 1}L)"

    def is_nan(self, sql: str) -> str:
        return f"({sql} = CAST('NaN' AS DOUBLE))"  # isnan would be false for NULL; NaN is equal to itself

    def is_whole(self, sql: str) -> str:
        return f"rint({sql}) = {sql}"  # floor would be a bigint

    def whole(self, sql: str) -> str:
        # the greatest double below 2^63: 2^63 would be cast to 2^63 - 1
        ends = f"{self.float(-(2**63))} AND {self.float(2**63 - 1024)}"
        return f"CASE WHEN {sql} BETWEEN {ends} THEN try_cast(rint({sql}) AS bigint) END"

    def floored(self, sql: str, d: str, near_zero: Span | None, size: Size) -> str:
        if size == "narrow":
            return f"floor({sql})"  # a bigint, and the nearest one for what does not fit
        return self._exact(f"(rint({sql}) - CAST(rint({sql}) > {sql} AS DOUBLE))")

    def _exact(self, whole: str) -> str:
        """A double that is a whole number below 2^140, as a decimal: a cast would keep 17 digits of it.

        Three pieces, each a bigint, rounded towards 0. Products with powers of two, and what is left, are exact.
        """
        piece, both = self.float(2**_PIECE), self.float(2 ** (2 * _PIECE))
        high = f"try_cast({whole} / {both} AS bigint)"
        rest = f"({whole} - CAST({high} AS DOUBLE) * {both})"
        middle = f"try_cast({rest} / {piece} AS bigint)"
        low = f"try_cast({rest} - CAST({middle} AS DOUBLE) * {piece} AS bigint)"
        high, middle, low = (f"CAST({part} AS {self.types['wide']})" for part in (high, middle, low))
        return f"({high} * {2 ** (2 * _PIECE)} + {middle} * {2**_PIECE} + {low})"

    # --- words ------------------------------------------------------------------------------------

    def word(self, sql: str) -> str:
        return f"CAST({sql} AS bigint)"

    def shifted_left(self, sql: str, places: int) -> str:
        return f"shiftleft({sql}, {places})"

    def hashed(self, key: int, columns: list[str]) -> str:
        # of values by their types: ids are of one type
        seed = key - 2**64 if key >= 2**63 else key
        return f"(xxhash64({self.literal(seed, 'bigint')}, {', '.join(columns)}) & {_BASE - 1}L)"

    # --- texts and keys ---------------------------------------------------------------------------

    def bytewise(self, sql: str) -> str:
        return f"CAST({sql} AS STRING)"  # this has the collation UTF8_BINARY

    def starts_with(self, sql: str, prefix: str) -> str:
        return f"startswith({sql}, {prefix})"

    def place(self, text: str, values: tuple[str, ...], context: Context) -> str:
        if len(values) <= _FEW:
            cases = " ".join(f"WHEN {context.bind(value)} THEN {i}" for i, value in enumerate(values))
            return f"CASE {text} {cases} END"
        # Spark looks through a map from its beginning: so the texts are in buckets, by a checksum
        many = len(values)
        if values not in context.lists:
            buckets: list[list[tuple[str, int]]] = [[] for _ in values]
            for i, value in enumerate(values):
                buckets[crc32(value.encode()) % many].append((value, i))
            texts, numbers = ([[each[part] for each in bucket] for bucket in buckets] for part in (0, 1))
            context.lists[values] = f"{context.bind(json.dumps(texts))} {context.bind(json.dumps(numbers))}"
        texts_, numbers_ = context.lists[values].split()
        bucket = f"CAST(crc32(CAST({text} AS BINARY)) % {many} AS INT)"
        at = f"array_position(get({_PLACE.format(texts_)}, {bucket}), {text})"
        return f"get(get({_NUMBER.format(numbers_)}, {bucket}), CAST({at} AS INT) - 1)"

    def is_listed(self, text: str, values: tuple[str, ...], context: Context) -> str:
        return f"({self.place(text, values, context)} IS NOT NULL)"

    def can_be_sent(self, sql: str) -> str | None:
        return f"is_valid_utf8({sql})"  # others would come back altered, or not at all

    # --- dates ------------------------------------------------------------------------------------

    def part(self, part: Part, sql: str) -> str:
        match part:
            case "weekday":
                number = f"weekday({sql}) + 1"
            case "hour":
                number = f"hour(CAST({sql} AS TIMESTAMP_NTZ))"
            case _:
                number = f"{part}({sql})"
        return f"CAST({number} AS bigint)"

    def truncated(self, period: Period, sql: str, kind: Kind) -> str:
        # date_trunc would give a timestamp in the session's zone
        day = sql if kind == "date" else f"CAST({sql} AS DATE)"
        start = day if period in ("day", "hour") else f"trunc({day}, '{period}')"
        if kind == "date":
            return start
        start = f"CAST({start} AS TIMESTAMP_NTZ)"
        return f"timestampadd(HOUR, hour({sql}), {start})" if period == "hour" else start

    def days(self, last: str, first: str) -> str:
        return f"CAST(datediff({last}, {first}) AS bigint)"

    def periods(self, period: Period, first: str, last: str) -> str:
        def number(moment: str) -> str:
            days = f"datediff(CAST({moment} AS DATE), DATE '0001-01-01')"
            match period:
                case "year":
                    return f"year({moment})"
                case "quarter":
                    return f"(year({moment}) * 4 + quarter({moment}))"
                case "month":
                    return f"(year({moment}) * 12 + month({moment}))"
                case "week":
                    return f"({days} div 7)"  # it was a Monday
                case "day":
                    return days
                case "hour":
                    return f"({days} * 24 + hour({moment}))"

        return f"CAST({number(last)} - {number(first)} AS INT)"

    def in_utc(self, sql: str, inside: str) -> str:
        # a cast would be in the session's zone
        epoch = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
        return f"CASE WHEN {inside} THEN timestampadd(MICROSECOND, unix_micros({sql}), {epoch}) END"

    # --- rows -------------------------------------------------------------------------------------

    def total(self, sql: str, largest: int | None = None) -> str:
        wide = self.types["wide"]
        if largest is None:
            return f"sum(CAST({sql} AS {wide}))"
        if largest < 2**_SUMMED:
            return f"sum({sql})"
        # in pieces that can be added in 64 bits: many times as fast as decimals
        places = range(0, largest.bit_length(), _SUMMED)
        pieces = [self.shifted(sql, place) if place else sql for place in places]
        sums = [f"sum({self.low_bits(piece, _SUMMED)})" for piece in pieces[:-1]] + [f"sum({pieces[-1]})"]
        terms = [f"CAST({each} AS {wide}) * {2**place}" for each, place in zip(sums, places, strict=True)]
        return f"({' + '.join(terms)})"

    def count_where(self, condition: str) -> str:
        return f"count_if({condition})"

    def where(self, condition: str) -> str:
        # Spark would read `(SELECT ...) WHERE (c1)` as an alias, WHERE, with one column
        return f" AS rows_ WHERE {condition}"

    def once(self, rows: str, part: str, by: str) -> str:
        # each part in one place from the start: else rows are moved by all columns, and then again by the part
        return f"SELECT DISTINCT {part}, {by} FROM (SELECT * FROM ({rows}) DISTRIBUTE BY {part})"

    def numbered(self, rows: str, by: str, order: str, most: int) -> str:
        window = f"PARTITION BY {by} ORDER BY {order}"
        whole = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"  # the same order: else it is sorted again
        return f"SELECT *, row_number() OVER ({window}) AS i, count(*) OVER ({window} {whole}) AS n FROM ({rows})"
