"""DuckDB's SQL. Comments say what DuckDB would do otherwise."""

from __future__ import annotations

from datetime import datetime

from privet.engines.sql.dialect import Dialect, Kind, Part, Period, Size, scientific
from privet.engines.sql.text import Context
from privet.exact import Exact
from privet.tables.stored_types import StoredType

_MANY = 10
"""The rows of a person that not many have more than, as far as one can know beforehand."""
_PARTS = {"weekday": "isodow"}


class DuckDBDialect(Dialect):
    """What the compiler asks of DuckDB.

    Example:
        >>> dialect = DuckDBDialect()
        >>> dialect.integer(-5), dialect.integer(2**70), dialect.integer(3, "wide")
        ('(-5)::BIGINT', '1180591620717411303424::HUGEINT', '3::HUGEINT')
        >>> dialect.floor_divided("x", 4, 0), dialect.floor_divided("x", 3, -4)
        ('(x >> 2)', '(((x + 6) // 3) - 2)')
        >>> dialect.float(Exact(1, 10)), dialect.float(-3)
        ('1e-1', '(-3e0)')
        >>> dialect.moment(datetime(2024, 2, 29).date()), dialect.moment(datetime(2024, 2, 29, 12))
        ("DATE '2024-02-29'", "TIMESTAMP '2024-02-29 12:00:00.000000'")
    """

    types = {"narrow": "BIGINT", "wide": "HUGEINT"}  # noqa: RUF012
    small = "INTEGER"
    text = "VARCHAR"
    double = "DOUBLE"
    boolean = "BOOLEAN"
    moments = {"date": "DATE", "time": "TIMESTAMP"}  # noqa: RUF012
    word_bits = 64

    def parameter(self, number: int) -> str:
        return f"${number}::VARCHAR"

    def literal(self, number: int, type_: str) -> str:
        return f"({number})::{type_}" if number < 0 else f"{number}::{type_}"

    def float(self, number: Exact | float | int) -> str:
        text = scientific(number)
        return f"({text})" if text.startswith("-") else text

    def instant(self, value: datetime) -> str:
        return f"TIMESTAMPTZ '{value.isoformat(' ', 'microseconds')}+00'"

    def try_cast(self, sql: str, type_: str, stored: StoredType | None = None) -> str:
        return f"TRY_CAST({sql} AS {type_})"

    def shortest(self, stored: StoredType, sql: str) -> str:
        text = self.try_cast(sql, self.text, stored)
        if not stored.scale:
            return text
        if stored.scale == stored.precision:  # a half would be .50, and 0 no digit at all
            text = rf"regexp_replace({text}, '^(-?)[.]', '\10.')"
        return f"rtrim(rtrim({text}, '0'), '.')"

    def bit(self, sql: str) -> str:
        return f"CAST(({sql}) AS UTINYINT)"

    def digits(self, stored: StoredType, sql: str) -> str | None:
        digits, places = stored.precision, stored.scale
        type_ = self.types["narrow" if digits <= 18 else "wide"]
        if places == 0:
            return f"TRY_CAST({sql} AS {type_})"
        if digits + places + 1 > 38:
            return None
        # a product of decimals of up to 18 digits overflows where it needs more
        roomy = sql if digits + places + 1 <= 18 else f"CAST({sql} AS DECIMAL(38, {places}))"
        whole = f"{roomy} * CAST({10**places} AS DECIMAL({places + 1}, 0))"
        return f"TRY_CAST({whole} AS {type_})"

    # --- integers and floats ----------------------------------------------------------------------

    def divided(self, sql: str, by: str, size: Size = "narrow") -> str:
        return f"({sql} // {by})"

    def shifted(self, sql: str, places: int, size: Size = "narrow") -> str:
        return f"({sql} >> {places})"  # negative numbers too are rounded down

    def low_bits(self, sql: str, places: int) -> str:
        return f"({sql} & {(1 << places) - 1})"

    def is_nan(self, sql: str) -> str:
        return f"isnan({sql})"  # a comparison would not tell: NaN is greater than every number, and equal to itself

    # --- words ------------------------------------------------------------------------------------

    def word(self, sql: str) -> str:
        return f"{sql}::UBIGINT"

    def shifted_left(self, sql: str, places: int) -> str:
        return f"({sql} << {places})"

    def hashed(self, key: int, columns: list[str]) -> str:
        hashed = f"hash({key}::UBIGINT, {', '.join(columns)})"
        # of several it is an XOR of their hashes: for all people alike, the same groups would come first most often
        return f"hash({hashed})" if len(columns) > 1 else hashed

    # --- texts and keys ---------------------------------------------------------------------------

    def bytewise(self, sql: str) -> str:
        return f"({sql} COLLATE C)"

    def starts_with(self, sql: str, prefix: str) -> str:
        return f"starts_with({sql}, {prefix})"

    def place(self, text: str, values: tuple[str, ...], context: Context) -> str:
        return f"enum_code(TRY_CAST({text} AS {context.listed(values)}))"

    def is_listed(self, text: str, values: tuple[str, ...], context: Context) -> str:
        return f"TRY_CAST({text} AS {context.listed(values)}) IS NOT NULL"

    def is_short(self, sql: str, most: int) -> str:
        return f"strlen({sql}) <= {most}"

    # --- dates ------------------------------------------------------------------------------------

    def part(self, part: Part, sql: str) -> str:
        return f"{_PARTS.get(part, part)}({sql})"

    def truncated(self, period: Period, sql: str, kind: Kind) -> str:
        # date_trunc gives a timestamp for a date too
        type_ = self.moments["date" if kind == "date" else "time"]
        return f"TRY_CAST(date_trunc('{period}', {sql}) AS {type_})"

    def days(self, last: str, first: str) -> str:
        return f"CAST({last} - {first} AS BIGINT)"

    def periods(self, period: Period, first: str, last: str) -> str:
        return f"TRY_CAST(datediff('{period}', {first}, {last}) AS INTEGER)"

    def in_utc(self, sql: str, inside: str) -> str:
        return f"make_timestamp(CASE WHEN {inside} THEN epoch_us({sql}) END)"

    # --- rows -------------------------------------------------------------------------------------

    def count_where(self, condition: str) -> str:
        return f"count_if({condition})"

    def ranked(self, rows: str, rank: str, condition: str) -> str:
        return f"SELECT * FROM ({rows}) QUALIFY {rank} {condition}"

    def numbered(self, rows: str, by: str, order: str, most: int) -> str:
        if most < _MANY:
            return super().numbered(rows, by, order, most)
        # only the rows of those who have more are sorted, which takes longer than to count and to join
        more = f"SELECT {by}, count(*) AS n FROM every GROUP BY {by} HAVING n > {most}"
        few = f"SELECT *, 0 AS i, 1 AS n FROM every ANTI JOIN more USING ({by})"
        many = f"SELECT every.*, row_number() OVER (PARTITION BY {by} ORDER BY {order}) AS i, n"
        both = f"{few} UNION ALL {many} FROM every JOIN more USING ({by})"
        return f"WITH every AS MATERIALIZED ({rows}), more AS MATERIALIZED ({more}) {both}"
