"""Parameters of a statement: each ? becomes a literal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral

from sqlglot.tokenizer_core import Token, TokenType

from privet.errors import QueryError, Remedy
from privet.sql.tokens import DIALECT, LONGEST, is_too_long

_MOST_DIGITS = 400


def bound(text: str, values: Sequence[object]) -> str:
    """A statement with these values in place of its question marks; those in texts, names and comments stay.

    Claim: the words and symbols of the result are those of the statement, with one literal for each question mark:
    no value can end its literal, or join what stands beside it. What can't be written so is refused.

    Example:
        >>> bound("SELECT COUNT(*) FROM people WHERE name = ? AND age > ?", ["O'Hara", -1])
        "SELECT COUNT(*) FROM people WHERE name = 'O''Hara' AND age > (-1)"
    """
    if is_too_long(text):
        raise QueryError(f"a statement can have at most {LONGEST // 1024} KB of text")
    tokens = _tokens(text)
    marks = [token for token in tokens if token.token_type is TokenType.PLACEHOLDER]
    if len(marks) != len(values):
        raise QueryError(f"the statement needs values for its ? ({len(marks)}), and {len(values)} were given")
    written = [_literal(value) for value in values]
    parts, end = [], 0
    for mark, literal in zip(marks, written, strict=True):
        parts += [text[end : mark.start], literal]
        end = mark.end + 1
    result = "".join([*parts, text[end:]])
    literals = iter(written)
    wanted = [
        each
        for token in tokens
        for each in (_tokens(next(literals)) if token.token_type is TokenType.PLACEHOLDER else [token])
    ]
    if is_too_long(result) or [_word(each) for each in _tokens(result)] != [_word(each) for each in wanted]:
        raise QueryError(
            "a value can't be written in place of its question mark",
            remedy=Remedy("Put blanks around question marks, or write the value itself"),
        )
    return result


def _word(token: Token) -> tuple[TokenType, str]:
    return token.token_type, token.text


def _tokens(text: str) -> list[Token]:
    try:
        return list(DIALECT.tokenize(text))
    except Exception:  # whatever the tokenizer raises, the text is at fault
        raise QueryError("this is not valid SQL") from None


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case Integral():
            return _signed(Decimal(int(value)))
        case float() if math.isfinite(value):
            return _signed(Decimal(float.__repr__(value)))
        case Decimal() if value.is_finite():
            return _signed(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime() if value.tzinfo is None:
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date() if not isinstance(value, datetime):
            return f"DATE '{value.isoformat()}'"
    kind = "a time with a time zone" if isinstance(value, datetime) else f"this value of type {type(value).__name__}"
    raise QueryError(
        f"a parameter can't be {kind}",
        allowed="Parameters are None, booleans, finite numbers, texts, dates and times without a time zone",
    )


def _signed(number: Decimal) -> str:
    if number and abs(number.adjusted()) > _MOST_DIGITS:
        raise QueryError(f"a parameter can have at most {_MOST_DIGITS} digits")
    digits = f"{number.copy_abs():f}"  # abs() would round it to 28 digits
    return f"(-{digits})" if number < 0 else digits  # in parentheses: two dashes would begin a comment
