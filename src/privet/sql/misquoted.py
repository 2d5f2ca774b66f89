"""Names that should be in double quotes; checked only in statements with an error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from privet.errors import QueryError
from privet.sql import hints
from privet.sql.source import Span, SqlText
from privet.sql.tokens import DIALECT, is_too_long

_BEFORE = {TokenType.SELECT, TokenType.GROUP_BY, TokenType.ORDER_BY}


def better(source: SqlText, names: Iterable[str]) -> QueryError | None:
    """A clearer error if the statement contains a name with spaces without quotes, else None."""
    if is_too_long(source.text):
        return None
    try:
        tokens = list(DIALECT.tokenize(source.text))
        spaced = [(name, list(DIALECT.tokenize(name))) for name in sorted(names, key=len, reverse=True) if " " in name]
    except Exception:  # whatever the tokenizer raises, there is nothing to add
        return None
    for place, token in enumerate(tokens):
        if token.token_type is TokenType.STRING:
            error = _as_text(source, tokens, place, names)
            if error is not None:
                return error
            continue
        for name, parts in spaced:
            window = tokens[place : place + len(parts)]
            if _same(window, parts) and parts[0].text.upper() not in hints.FUNCTIONS:
                at = Span(window[0].start, window[-1].end)
                return source.refusal(at, f"put a name with spaces in double quotes: {_quoted(name)}")
    return None


def _same(tokens: Sequence[Token], parts: Sequence[Token]) -> bool:
    return [_word(token) for token in tokens] == [_word(token) for token in parts]


def _word(token: Token) -> tuple[bool, str]:
    return token.token_type in (TokenType.STRING, TokenType.IDENTIFIER), token.text.casefold()


def _as_text(source: SqlText, tokens: Sequence[Token], place: int, names: Iterable[str]) -> QueryError | None:
    """An error for a name in single quotes where text makes no sense: alone in a call, or first in a clause."""
    text = tokens[place].text.casefold()
    name = next((each for each in names if each.casefold() == text), None)
    before, after = tokens[max(0, place - 2) : place], tokens[place + 1 : place + 2]
    kinds = [token.token_type for token in before]
    called = len(before) == 2 and kinds[1] is TokenType.L_PAREN and before[0].text.upper() in hints.FUNCTIONS
    alone = called and [token.token_type for token in after] == [TokenType.R_PAREN]
    if name is None or not (alone or (kinds[-1:] and kinds[-1] in _BEFORE)):
        return None
    written = _quoted(name)
    how = "in double quotes" if written.startswith('"') else "without quotes"
    at = Span(tokens[place].start, tokens[place].end)
    return source.refusal(at, "single quotes are for text values", f"Write the column's name {how}: {written}")


def _quoted(name: str) -> str:
    from privet.sql.quoting import quoted  # circular: it parses statements

    return quoted(name)
