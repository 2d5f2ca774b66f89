"""What is not supported, by name, and the nearest thing that works."""

from __future__ import annotations

from difflib import get_close_matches

AGGREGATES = ("COUNT", "SUM", "AVG", "VAR_POP", "STDDEV_POP")
FUNCTIONS = (
    *AGGREGATES, "CLIP", "LEAST", "GREATEST", "ABS", "FLOOR", "CEIL", "COALESCE", "IF", "STARTS_WITH", "WIDTH_BUCKET",
    "DATE_TRUNC", "DATE_PART", "EXTRACT", "YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "ISODOW",
)  # fmt: skip

_SAMPLE = "divides by n - 1; what is released divides by n"
_NO_ROWS = "Rows are private: ask for numbers, such as COUNT(*) or AVG(income)"
_ONE = "One SELECT is one question: ask two of them"
_READ_ONLY = "Only SELECT can be asked"
_WINDOW = "Windows over rows are not supported. Group the rows: GROUP BY"
_PERSON = "A subquery can take it of each person's rows, grouped by the person. Or count bins: GROUP BY FLOOR(x / 10)"
_CAST = "Columns have the types that were declared; for a date write DATE '2025-01-31'"

WORDS: dict[str, str] = {
    **dict.fromkeys(("UNION", "INTERSECT", "EXCEPT"), f"{_ONE}, or one with OR in WHERE"),
    **dict.fromkeys(("OVER", "WINDOW", "PARTITION BY", "ROWS", "RANGE"), _WINDOW),
    "QUALIFY": "Choose groups with HAVING",
    "FILTER": "Put the condition inside: COUNT(CASE WHEN smoker THEN 1 END)",
    "DISTINCT": "COUNT(DISTINCT person_id) counts people; other values can't be told apart in private",
    "OFFSET": "The first groups are LIMIT 10",
    "FETCH": "Write LIMIT 10",
    "TOP": "Write ORDER BY n DESC LIMIT 10",
    "ALL": "Name what you mean",
    "ANY": "Write IN ('north', 'south')",
    "SOME": "Write IN ('north', 'south')",
    "EXISTS": "Join the tables on the person instead",
    "ILIKE": "Write LIKE 'North%', or several of them with OR",
    "RLIKE": "The beginning of a text is LIKE 'North%'",
    "SIMILAR TO": "The beginning of a text is LIKE 'North%'",
    "GLOB": "The beginning of a text is LIKE 'North%'",
    "ESCAPE": "The beginning of a text is LIKE 'North%'",
    "INTERVAL": "Compare with a date: day >= DATE '2025-01-31'",
    "CURRENT_DATE": "Today is not part of the data. Write a date: DATE '2025-01-31'",
    "CURRENT_TIMESTAMP": "Now is not part of the data. Write a date: DATE '2025-01-31'",
    **dict.fromkeys(("CAST", "TRY_CAST", "::"), _CAST),
    **dict.fromkeys(("RIGHT", "FULL", "CROSS", "NATURAL", "ASOF", "POSITIONAL", "SEMI", "ANTI", "STRAIGHT_JOIN"),
                    "Write JOIN ... ON ..., or LEFT JOIN with a public table"),
    **dict.fromkeys(("LATERAL", "UNNEST", "VALUES", "TABLE"), "FROM takes a table, or a SELECT in brackets"),
    **dict.fromkeys(("PIVOT", "UNPIVOT"), "Write GROUP BY with two keys"),
    **dict.fromkeys(("TABLESAMPLE", "USING SAMPLE"), "Rows can't be sampled"),
    "RECURSIVE": "A WITH may use the ones before it",
    "NULLS": "Released numbers and keys are never missing",
    "CUBE": "Name the keys: GROUP BY region, smoker",
    "ROLLUP": "Name the keys: GROUP BY region, smoker",
    "GROUPING SETS": "Name the keys: GROUP BY region, smoker",
    "?": "Write the value itself: a number, a text in '...', or DATE '2025-01-31'",
    "$": "Write the value itself: a number, a text in '...', or DATE '2025-01-31'",
    "@": "Write the value itself: a number, a text in '...', or DATE '2025-01-31'",
    ":": "Write the value itself: a number, a text in '...', or DATE '2025-01-31'",
    "%": "Bins are FLOOR(x / 10) * 10",
    "//": "Write FLOOR(x / 10)",
    "||": "Texts are compared, not put together",
    "^": "Write x * x",
    "**": "Write x * x",
    "!": "Write NOT",
    "`": 'A name with odd characters is written in double quotes: "my column"',
    "[": "Lists and maps are not supported",
    "{": "Lists and maps are not supported",
    **dict.fromkeys(
        ("INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP", "ALTER", "TRUNCATE", "COPY", "ATTACH", "DETACH",
         "PRAGMA", "SET", "USE", "SHOW", "DESCRIBE", "EXPLAIN", "CALL", "EXECUTE", "LOAD", "INSTALL", "EXPORT",
         "IMPORT", "GRANT", "REVOKE", "BEGIN", "COMMIT", "ROLLBACK", "VACUUM", "ANALYZE", "SUMMARIZE", "CHECKPOINT"),
        _READ_ONLY,
    ),
    "INTO": _READ_ONLY,
}  # fmt: skip
"""For words and signs of SQL: what to write instead."""

CALLS: dict[str, str] = {
    **dict.fromkeys(("VARIANCE", "VAR_SAMP", "VARIANCE_SAMP"), f"It {_SAMPLE}. Write VAR_POP"),
    **dict.fromkeys(("STDDEV", "STDDEV_SAMP", "STD", "STDEV"), f"It {_SAMPLE}. Write STDDEV_POP"),
    "VARIANCE_POP": "Write VAR_POP",
    **dict.fromkeys(("MIN", "MAX", "FIRST", "LAST", "ANY_VALUE", "ARG_MIN", "ARG_MAX"),
                    f"It is the value of one person. {_PERSON}"),
    **dict.fromkeys(("MEDIAN", "QUANTILE", "QUANTILE_CONT", "PERCENTILE_CONT", "PERCENTILE_DISC", "MODE",
                     "APPROX_QUANTILE"),
                    f"Supported are {', '.join(AGGREGATES)}; for a distribution count bins: GROUP BY FLOOR(x / 10)"),
    "APPROX_COUNT_DISTINCT": "COUNT(DISTINCT person_id) counts people",
    **dict.fromkeys(("COUNT_IF", "COUNTIF", "SUM_IF"), "Write COUNT(CASE WHEN smoker THEN 1 END)"),
    **dict.fromkeys(("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE"),
                    f"Supported are {', '.join(AGGREGATES)}, of products too: AVG(a * b)"),
    **dict.fromkeys(("CAST", "TRY_CAST", "CONVERT", "DATE", "TIMESTAMP", "DATETIME", "STRFTIME", "STRPTIME", "TO_DATE"),
                    _CAST),
    **dict.fromkeys(("ROUND", "TRUNC", "TRUNCATE", "MOD"), "Write FLOOR(x) or CEIL(x)"),
    **dict.fromkeys(("POW", "POWER", "SQRT", "EXP", "LN", "LOG", "LOG10", "SIGN"),
                    "There are + - * /; a square is x * x"),
    **dict.fromkeys(("DAYOFWEEK", "DOW", "WEEKDAY"), "Write ISODOW(day): 1 is Monday, 7 is Sunday"),
    **dict.fromkeys(("WEEK", "DAYOFYEAR", "WEEKOFYEAR"), "Write DATE_TRUNC('week', day)"),
    **dict.fromkeys(("DATEDIFF", "DATE_DIFF", "AGE"), "The days between two dates are last - first"),
    **dict.fromkeys(("NOW", "TODAY", "CURRENT_DATE", "GETDATE"), "Write a date: DATE '2025-01-31'"),
    **dict.fromkeys(("REGEXP_MATCHES", "REGEXP_LIKE", "CONTAINS", "PREFIX", "LEFT", "SUBSTR", "SUBSTRING"),
                    "The beginning of a text is LIKE 'North%'"),
    **dict.fromkeys(("ROW_NUMBER", "RANK", "DENSE_RANK", "LAG", "LEAD", "NTILE"), _WINDOW),
    **dict.fromkeys(("RANDOM", "RAND", "UUID"), "Answers have noise of their own"),
    "NULLIF": "It can stand below a ratio, SUM(a) / NULLIF(SUM(b), 0); else write CASE WHEN a <> b THEN a END",
    **dict.fromkeys(("IFNULL", "NVL"), "Write COALESCE(income, 0)"),
    **dict.fromkeys(("MEAN", "AVERAGE"), "Write AVG"),
    "TOTAL": "Write SUM",
    "HISTOGRAM": "Count bins: GROUP BY FLOOR(x / 10) * 10",
    **dict.fromkeys(("READ_CSV", "READ_CSV_AUTO", "READ_PARQUET", "PARQUET_SCAN", "READ_JSON", "GLOB", "READ_TEXT",
                     "GENERATE_SERIES", "RANGE"), "FROM takes a table that the steward declared"),
}  # fmt: skip
"""For functions: what to write instead."""


def word(text: str) -> str:
    """That a word or a sign is not supported."""
    hint = WORDS.get(text.upper())
    return f"{text} is not supported." if hint is None else f"{text} is not supported. {hint}."


def call(name: str, *, cast: bool = False) -> str:
    """That a function is not supported; with `cast`, that the name of a type is none."""
    hint = CALLS.get(name.upper(), _CAST if cast else None)
    if hint is None:
        others = [each for each in FUNCTIONS if each != name.upper()]
        near = [] if len(others) < len(FUNCTIONS) else get_close_matches(name.upper(), others, n=1, cutoff=0.75)
        hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(FUNCTIONS)}."
        return f"the function {name} is not supported. {hint}"
    return f"{name} is not supported. {hint}."
