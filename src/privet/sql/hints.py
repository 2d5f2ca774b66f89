"""SQL features that Privet does not support, and what to write instead."""

from __future__ import annotations

from difflib import get_close_matches

from privet.sql.functions import suggested

AGGREGATES = suggested(aggregates=True)
FUNCTIONS = suggested()

_SAMPLE = "divides by n - 1, but a released variance divides by n"
_ONE = "Ask one question per statement, or combine the conditions with OR in WHERE"
_READ_ONLY = "Only SELECT statements are supported"
_WINDOW = "Use GROUP BY instead of a window"
_PERSON = (
    "It would reveal one person's value. Compute it per person in a subquery, or count bins: GROUP BY FLOOR(x / 10)"
)
_CAST = (
    "Columns already have their declared types, so write the column itself; FLOOR(x) makes whole numbers, and a date "
    "is DATE '2025-01-31'"
)
_PREFIX = "To match the beginning of a text, write LIKE 'North%'"
_VALUE = "Write the value itself: a number, text in '...', or DATE '2025-01-31'"

WORDS: dict[str, str] = {
    **dict.fromkeys(("UNION", "INTERSECT", "EXCEPT"), _ONE),
    **dict.fromkeys(("OVER", "PARTITION BY"), "A share of the total is COUNT(*) / SUM(COUNT(*)) OVER ()"),
    **dict.fromkeys(("WINDOW", "ROWS", "RANGE"), _WINDOW),
    "QUALIFY": "Filter groups with HAVING",
    "FILTER": "Write it after an aggregate: COUNT(*) FILTER (WHERE smoker)",
    "DISTINCT": "COUNT(DISTINCT x) counts different values, or people; for the groups, write GROUP BY x",
    "OFFSET": "To show the first groups, write LIMIT 10",
    "FETCH": "Write LIMIT 10",
    "TOP": "Write ORDER BY n DESC LIMIT 10",
    "ALL": "List the keys, as in GROUP BY region; elsewhere, remove it",
    "ANY": "Write IN ('north', 'south')",
    "SOME": "Write IN ('north', 'south')",
    "EXISTS": "Join the tables on the person id instead",
    "RLIKE": _PREFIX,
    "SIMILAR TO": _PREFIX,
    "GLOB": _PREFIX,
    "ESCAPE": _PREFIX,
    "INTERVAL": "Compare with a date: day >= DATE '2025-01-31'",
    "CURRENT_DATE": "Write the date itself: DATE '2025-01-31'",
    "CURRENT_TIMESTAMP": "Write the time itself: TIMESTAMP '2025-01-31 12:00:00'",
    **dict.fromkeys(("CAST", "TRY_CAST", "::"), _CAST),
    **dict.fromkeys(("RIGHT", "FULL", "CROSS", "NATURAL", "ASOF", "POSITIONAL", "SEMI", "ANTI", "STRAIGHT_JOIN"),
                    "Write JOIN ... ON ..., or LEFT JOIN with a public table"),
    **dict.fromkeys(("LATERAL", "UNNEST", "VALUES", "TABLE"), "Use a table in FROM, or a SELECT in parentheses"),
    **dict.fromkeys(("PIVOT", "UNPIVOT"), "Group by two keys: GROUP BY region, smoker"),
    **dict.fromkeys(("TABLESAMPLE", "USING SAMPLE"), "Privet uses every row; remove it"),
    "RECURSIVE": "A WITH clause can use only names that are defined before it",
    "NULLS": "Released keys and numbers are never NULL; remove it",
    "CUBE": "Write GROUP BY CUBE (region, smoker)",
    "ROLLUP": "Write GROUP BY ROLLUP (region, smoker)",
    "GROUPING SETS": "Write GROUP BY GROUPING SETS ((region, smoker), (region), ())",
    "?": _VALUE,
    "$": _VALUE,
    "@": _VALUE,
    ":": _VALUE,
    "%": "The rest of a division is x - FLOOR(x / 10) * 10; for bins, write FLOOR(x / 10) * 10",
    "//": "Write FLOOR(x / 10)",
    "||": "Texts can be compared, but not concatenated",
    "^": "Write x * x",
    "**": "Write x * x",
    "!": "Write NOT",
    "`": 'Write the name in double quotes: "my column"',
    "[": "Privet has no list or map types",
    "{": "Privet has no list or map types",
    **dict.fromkeys(
        ("INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP", "ALTER", "TRUNCATE", "COPY", "ATTACH", "DETACH",
         "PRAGMA", "SET", "USE", "SHOW", "DESCRIBE", "EXPLAIN", "CALL", "EXECUTE", "LOAD", "INSTALL", "EXPORT",
         "IMPORT", "GRANT", "REVOKE", "BEGIN", "COMMIT", "ROLLBACK", "VACUUM", "ANALYZE", "SUMMARIZE", "CHECKPOINT"),
        _READ_ONLY,
    ),
    "INTO": _READ_ONLY,
}  # fmt: skip
"""What to write instead of an SQL keyword or symbol."""

PER_PERSON = "In a subquery, a value per person is a COUNT, SUM, AVG, MIN or MAX of that person's rows"
_QUANTILES = ("QUANTILE", "QUANTILE_DISC", "PERCENTILE_DISC", "APPROX_QUANTILE")
_SPREADS = ("VARIANCE", "VAR_SAMP", "VARIANCE_SAMP", "VARIANCE_POP", "STDDEV", "STDDEV_SAMP", "STD", "STDEV")
_PAIRS = ("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE")
_STATISTICS = frozenset((*_QUANTILES, "MODE", *_SPREADS, *_PAIRS, "FIRST", "LAST", "ANY_VALUE", "ARG_MIN", "ARG_MAX"))

CALLS: dict[str, str] = {
    **dict.fromkeys(("VARIANCE", "VAR_SAMP", "VARIANCE_SAMP"), f"It {_SAMPLE}. Write VAR_POP"),
    **dict.fromkeys(("STDDEV", "STDDEV_SAMP", "STD", "STDEV"), f"It {_SAMPLE}. Write STDDEV_POP"),
    "VARIANCE_POP": "Write VAR_POP",
    **dict.fromkeys(("FIRST", "LAST", "ANY_VALUE", "ARG_MIN", "ARG_MAX"), _PERSON),
    **dict.fromkeys(_QUANTILES, "Write QUANTILE_CONT(x, 0.9)"),
    "MODE": f"Use {', '.join(AGGREGATES)}; for a distribution, count bins: GROUP BY FLOOR(x / 10)",
    "APPROX_COUNT_DISTINCT": "COUNT(DISTINCT ...) of the column that identifies people counts them",
    **dict.fromkeys(("COUNT_IF", "COUNTIF", "SUM_IF"), "Write COUNT(*) FILTER (WHERE smoker)"),
    **dict.fromkeys(_PAIRS,
                    f"Use {', '.join(AGGREGATES)}; they also take products: AVG(a * b)"),
    **dict.fromkeys(("CAST", "TRY_CAST", "CONVERT", "DATE", "TIMESTAMP", "DATETIME", "STRFTIME", "STRPTIME", "TO_DATE"),
                    _CAST),
    "ROUND": "It is allowed for numbers of the answer: ROUND(AVG(income), 1). For rows, write FLOOR(x) or CEIL(x)",
    **dict.fromkeys(("TRUNC", "TRUNCATE"), "Write FLOOR(x) or CEIL(x)"),
    "MOD": "The rest of a division is x - FLOOR(x / 10) * 10",
    **dict.fromkeys(("POW", "POWER", "EXP", "LN", "LOG", "LOG10", "SIGN"),
                    "The operators are + - * /; write a square as x * x"),
    "SQRT": "The operators are + - * /; the root of a variance is STDDEV_POP(x)",
    "CONCAT": "Texts can be compared, but not concatenated; group by several columns",
    **dict.fromkeys(("DATE_FORMAT", "TO_CHAR", "FORMAT_DATE"), "Write YEAR(day), or DATE_TRUNC('month', day)"),
    **dict.fromkeys(("DAYOFWEEK", "DOW", "WEEKDAY"), "Write ISODOW(day): 1 is Monday, 7 is Sunday"),
    **dict.fromkeys(("WEEK", "DAYOFYEAR", "WEEKOFYEAR"), "Write DATE_TRUNC('week', day)"),
    **dict.fromkeys(("DATEDIFF", "DATE_DIFF", "AGE"), "For the days between two dates, write last - first"),
    **dict.fromkeys(("NOW", "TODAY", "CURRENT_DATE", "GETDATE"), "Write the date itself: DATE '2025-01-31'"),
    **dict.fromkeys(("REGEXP_MATCHES", "REGEXP_LIKE", "CONTAINS", "PREFIX", "LEFT", "SUBSTR", "SUBSTRING"), _PREFIX),
    **dict.fromkeys(("ROW_NUMBER", "RANK", "DENSE_RANK", "LAG", "LEAD", "NTILE"), _WINDOW),
    **dict.fromkeys(("RANDOM", "RAND", "UUID"), "Privet adds the noise itself; remove it"),
    "NULLIF": "It is allowed only in the denominator of a ratio: SUM(a) / NULLIF(SUM(b), 0). Elsewhere, write "
              "CASE WHEN a <> b THEN a END",
    **dict.fromkeys(("IFNULL", "NVL"), "Write COALESCE(income, 0)"),
    **dict.fromkeys(("MEAN", "AVERAGE"), "Write AVG"),
    "TOTAL": "Write SUM",
    "HISTOGRAM": "Count bins: GROUP BY FLOOR(x / 10) * 10",
    **dict.fromkeys(("READ_CSV", "READ_CSV_AUTO", "READ_PARQUET", "PARQUET_SCAN", "READ_JSON", "GLOB", "READ_TEXT",
                     "GENERATE_SERIES", "RANGE"), "Use a table that the steward declared"),
}  # fmt: skip
"""What to write instead of a function."""

Refusal = tuple[str, str]
"""What is wrong, and what to write instead."""


def word(text: str) -> Refusal:
    """The refusal of a keyword or a symbol."""
    return f"{text} is not supported", WORDS.get(text.upper(), "")


def call(name: str, *, cast: bool = False, per_person: bool = False) -> Refusal:
    """The refusal of a function; `cast`: the name is that of a type; `per_person`: it is in a subquery."""
    hint = CALLS.get(name.upper(), _CAST if cast else None)
    if hint is not None and per_person and name.upper() in _STATISTICS:
        hint = PER_PERSON
    if hint is not None:
        return f"{name} is not supported", hint
    others = [each for each in FUNCTIONS if each != name.upper()]
    near = [] if len(others) < len(FUNCTIONS) else get_close_matches(name.upper(), others, n=1, cutoff=0.75)
    hint = f"Did you mean {near[0]}?" if near else f"The functions are: {', '.join(FUNCTIONS)}"
    return f"the function {name} is not supported", hint
