"""Questions in SQL: a SELECT becomes the same value that the fluent interface builds, or an error that marks the cause.

An analyst's text never reaches a database. A statement passes a list of allowed words and limits (`tokens`), sqlglot's
parser, a list of allowed nodes and arguments (`grammar`), and is then read into a `Query`; all lists fail closed.
"""

from __future__ import annotations

from collections.abc import Mapping

from privet.errors import QueryError, Remedy
from privet.sql import examples, grammar, misquoted, options, tokens
from privet.sql.names import Catalogue
from privet.sql.options import Asked
from privet.sql.questions import SelectReader
from privet.sql.source import SqlText
from privet.sql.tokens import EXAMPLE as _EXAMPLE
from privet.tables.query import Query
from privet.tables.relation import PublicTable, Table

__all__ = ["Asked", "parse", "read"]


def parse(text: str, tables: Mapping[str, Table], public: Mapping[str, PublicTable] | None = None) -> Query:
    """The question that a SELECT asks about these tables; an error marks the part that is not supported.

    A price that the SELECT names in its options is not part of the question: see `read`.

    Claim: equal to what `where`, `group_by` and `agg` build; for any text, the result is a Query or a QueryError.

    Example:
        >>> import privet as pv
        >>> from privet.tables.schema import Schema
        >>> columns = {"age": pv.integer(0, 110), "region": pv.keys("north", "south")}
        >>> people = Table(Schema.declare("people", protect=pv.each_row(), columns=columns), None)
        >>> text = "SELECT region, COUNT(*) AS n FROM people WHERE age >= 18 GROUP BY region"
        >>> query = parse(text, {"people": people})
        >>> query == people.where(pv.col("age") >= 18).group_by("region").agg(n=pv.count())
        True
    """
    return read(text, tables, public).query


def read(text: str, tables: Mapping[str, Table], public: Mapping[str, PublicTable] | None = None) -> Asked:
    """The question that a SELECT asks, and the price in its options.

    Example:
        >>> import privet as pv
        >>> from privet.tables.schema import Schema
        >>> people = Table(Schema.declare("people", protect=pv.each_row(), columns={"age": pv.integer(0, 110)}), None)
        >>> text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5) COUNT(*) AS n FROM people"
        >>> read(text, {"people": people}).price
        {'epsilon': Fraction(1, 2)}
    """
    if not isinstance(text, str):
        raise QueryError(f"a statement must be a string, not {type(text).__name__}", remedy=_EXAMPLE)
    source = SqlText(text)
    catalogue = Catalogue(source, tables, public or {})
    try:
        words, chosen = options.split(source, tokens.read(source, catalogue.names()))
        return chosen.asked(SelectReader(catalogue, grammar.parsed(source, words, catalogue.names())).query())
    except QueryError as error:
        found = misquoted.better(source, catalogue.spelled_out()) or error
        columns = {name: column.type for table in tables.values() for name, column in table.schema.columns}
        raise examples.fitted(found, text, columns) from None
    except RecursionError:
        raise QueryError(
            "the statement is nested too deeply", remedy=Remedy("Define parts of it in a WITH clause")
        ) from None
    except Exception as error:  # a bug: tests see the cause, analysts do not
        raise QueryError("this statement is not a supported question") from error
