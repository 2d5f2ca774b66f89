"""The gate before the parser: a statement's size and every token in it are checked before it is parsed.

sqlglot's parser is permissive, recursive, and in some cases exponential (a type name before a parenthesis, joins
without a condition). So only tokens of this list reach it, in a text of bounded length and nesting.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, zip_longest

from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from privet.errors import QueryError, write
from privet.sql import hints
from privet.sql.comments import blanked
from privet.sql.source import Span, SqlText

_COUNT = "SELECT COUNT(*) FROM people"
EXAMPLE = write(_COUNT, sql=_COUNT, terminal=f'"{_COUNT}"', http=_COUNT)
LONGEST = 16 * 1024
"""Maximum bytes in a statement."""
MOST_TOKENS = 2_000
"""Maximum words and symbols in a statement."""
DEEPEST = 24
"""Maximum nesting of parentheses, CASEs and signs: the parser makes about 30 calls for each; Python allows 1,000."""
MOST_JOINS = 15

DIALECT = DuckDB()

_T = TokenType
_SIGNS = {
    _T.L_PAREN, _T.R_PAREN, _T.COMMA, _T.DOT, _T.STAR, _T.PLUS, _T.DASH, _T.SLASH, _T.EQ, _T.NEQ, _T.LT, _T.LTE,
    _T.GT, _T.GTE,
}  # fmt: skip
KEYWORDS = {
    _T.SELECT, _T.FROM, _T.WHERE, _T.GROUP_BY, _T.HAVING, _T.ORDER_BY, _T.LIMIT, _T.ALIAS, _T.AND, _T.OR, _T.NOT,
    _T.IN, _T.BETWEEN, _T.LIKE, _T.ILIKE, _T.IS, _T.NULL, _T.TRUE, _T.FALSE, _T.CASE, _T.WHEN, _T.THEN, _T.ELSE, _T.END,
    _T.WITH, _T.JOIN, _T.INNER, _T.LEFT, _T.OUTER, _T.ON, _T.USING, _T.ASC, _T.DESC,
    _T.ROLLUP, _T.CUBE, _T.GROUPING_SETS,
}  # fmt: skip
_CLAUSES = {_T.FROM, _T.WHERE, _T.GROUP_BY, _T.HAVING, _T.ORDER_BY, _T.LIMIT, _T.SELECT}
_NAMES = {_T.VAR, _T.IDENTIFIER, _T.NUMBER, _T.STRING}
_LITERALS = {"DATE": _T.DATE, "TIMESTAMP": _T.TIMESTAMPNTZ}
_TYPES = DIALECT.parser_class.TYPE_TOKENS


def is_too_long(text: str) -> bool:
    """Whether a statement is refused for its length alone; then nothing may read its words."""
    return len(text) > LONGEST or len(text.encode(errors="replace")) > LONGEST


def read(source: SqlText, names: frozenset[str]) -> list[Token]:
    """The tokens of a statement, if all are allowed; `names` are the catalogue's, in lower case."""
    text = source.text
    if is_too_long(text):
        raise QueryError(
            f"a statement can have at most {LONGEST // 1024} KB of text; this one has {len(text):,} characters"
        )
    for place, sign in enumerate(text):
        if (not sign.isprintable() and not sign.isspace()) or sign in "\x1c\x1d\x1e\x1f\x85\u2028\u2029\x0b\x0c":
            raise source.refusal(Span(place, place), f"the character {sign!a} is not allowed in a statement")
    tokens = _without_comments(source)
    if len(tokens) > MOST_TOKENS:
        raise QueryError(
            f"a statement can have at most {MOST_TOKENS:,} words and symbols; this one has {len(tokens):,}"
        )
    tokens = _one_statement(source, tokens)
    known = names | {after.text.casefold() for token, after in pairwise(tokens) if _is(token, _T.ALIAS)}
    for place in range(len(tokens)):
        _check(source, tokens, place, known)
    _check_nesting(source, tokens)
    _check_joins(source, tokens)
    return tokens


def span(token: Token) -> Span:
    """The position of a token."""
    return Span(token.start, token.end)


def _tokens(source: SqlText, text: str) -> list[Token]:
    try:
        return list(DIALECT.tokenize(text))
    except TokenError:
        pass
    except Exception:  # whatever the tokenizer raises, the text is at fault
        raise source.refusal(Span(0, 0), "this is not valid SQL") from None
    opened = _open_quote(text)
    raise source.refusal(Span(opened, opened), "this quote or comment is never closed")


def _open_quote(text: str) -> int:
    """The position of the quote or comment that is never closed."""
    place = 0
    while place < len(text):
        for mark, end in (("'", "'"), ('"', '"'), ("/*", "*/"), ("--", "\n")):
            if text.startswith(mark, place):
                stop = text.find(end, place + len(mark))
                if stop < 0:
                    return place
                place = stop + len(end) - 1
                break
        place += 1
    return 0


def _begins(source: SqlText, tokens: Sequence[Token]) -> None:
    if not tokens or (len(tokens) == 1 and _is(tokens[0], _T.SEMICOLON)):
        raise QueryError("the statement is empty", remedy=EXAMPLE)
    first = tokens[0].text
    if not _is(tokens[0], _T.SELECT, _T.WITH):
        why = hints.word(first) if first.upper() in hints.WORDS else ("a question must begin with SELECT or WITH", "")
        raise source.refusal(span(tokens[0]), *why)


def _without_comments(source: SqlText) -> list[Token]:
    """The tokens of the statement without its comments; refused if the tokenizer reads other words without them.

    What the tokenizer alone takes for a comment, such as a template's, is refused too.
    """
    text = blanked(source.text)
    every = tokens = _tokens(source, source.text)
    if text != source.text:
        tokens = _tokens(source, text)
    _begins(source, tokens)
    ends = [0, *(token.end + 1 for token in tokens)]
    starts = [*(token.start for token in tokens), len(text)]
    for begin, end in zip(ends, starts, strict=True):
        between = text[begin:end]
        if between.strip():
            at = begin + len(between) - len(between.lstrip())
            why = "this kind of comment is not supported"
            raise source.refusal(Span(at, at + 1), why, "Write -- to the end of a line, or /* between these */")
    for one, other in zip_longest(every, tokens):
        if one is None or other is None or (one.token_type, one.start, one.end) != (
            other.token_type, other.start, other.end
        ):  # fmt: skip
            first = one or other
            assert first is not None
            why = "a comment here can be read in two ways"
            raise source.refusal(span(first), why, "Write -- to the end of a line, or one /* without another inside */")
    return tokens


def _one_statement(source: SqlText, tokens: list[Token]) -> list[Token]:
    if tokens and _is(tokens[-1], _T.SEMICOLON):
        tokens = tokens[:-1]
    for token, after in zip(tokens, [*tokens[1:], tokens[-1]], strict=True):
        if _is(token, _T.SEMICOLON):
            raise source.refusal(span(after), "only one statement is allowed", "Ask one question at a time")
    return tokens


def _check(source: SqlText, tokens: Sequence[Token], place: int, known: frozenset[str]) -> None:
    token = tokens[place]
    before = tokens[place - 1] if place else None
    after = tokens[place + 1] if place + 1 < len(tokens) else None
    called = after is not None and _is(after, _T.L_PAREN)
    text = source.text[token.start : token.end + 1]
    word = text.upper()
    if _is(token, _T.COMMA) and (after is None or _is(after, _T.COMMA, _T.R_PAREN, *_CLAUSES)):
        raise source.refusal(span(token), "something is missing after this comma")
    if _is(token, *_SIGNS):
        return
    if _is(token, *KEYWORDS) and not (word == "!" or (word == "LEFT" and called)):
        if _is(token, _T.FROM, _T.JOIN) and after is not None and _is(after, _T.STRING):
            raise source.refusal(span(after), "files can't be read here", "Use a table that the steward declared")
        return
    if called and (token.token_type in _TYPES or word in ("CAST", "TRY_CAST", "LEFT")):
        raise source.refusal(span(token), *hints.call(text, cast=True))
    if _is(token, _T.VAR) and after is not None and _is(after, _T.DASH):
        _no_dashes(source, tokens, place, known)
    if _is(token, *_NAMES):
        touching = after is not None and after.start == token.end + 1
        if (
            touching
            and after is not None
            and _is(token, _T.NUMBER, _T.VAR)
            and _is(after, _T.VAR, _T.STRING, _T.NUMBER)
        ):
            both = Span(token.start, after.end)
            raise source.refusal(both, f"{source.words(both)} is not a number, a name or quoted text")
        if word == "NULLS" and after is not None and after.text.upper() in ("FIRST", "LAST"):
            raise source.refusal(span(token), *hints.word(text))
        return
    if _is(token, _T.FILTER) and called and before is not None and _is(before, _T.R_PAREN):
        return
    if _is(token, _T.OVER) and called and before is not None and _is(before, _T.R_PAREN):
        return
    if _is(token, _T.PARTITION_BY) and [t.text.upper() for t in tokens[max(0, place - 2) : place]] == ["OVER", "("]:
        return
    if word in _LITERALS and after is not None and _is(after, _T.STRING):
        return
    if _is(token, _T.DISTINCT) and [t.text.upper() for t in tokens[max(0, place - 2) : place]] == ["COUNT", "("]:
        return
    if text[0].isalpha() or text[0] == "_":
        if (before is not None and _is(before, _T.ALIAS, _T.DOT)) or text.casefold() in known:
            return
        raise source.refusal(span(token), *(hints.call(text) if called and word in hints.CALLS else hints.word(text)))
    raise source.refusal(span(token), *hints.word(text if len(text) <= 20 else text[:20] + "..."))


def _no_dashes(source: SqlText, tokens: Sequence[Token], place: int, known: frozenset[str]) -> None:
    """Refuse an unquoted name with dashes: in FROM, where nothing is subtracted, or a declared one."""
    last = place
    while last + 2 < len(tokens) and all(
        tokens[i + 1].start == tokens[i].end + 1 for i in (last, last + 1)
    ) and _is(tokens[last + 1], _T.DASH) and _is(tokens[last + 2], _T.VAR, _T.NUMBER):  # fmt: skip
        last += 2
    both = Span(tokens[place].start, tokens[last].end)
    name = source.text[both.start : both.end + 1]
    table = place > 0 and _is(tokens[place - 1], _T.FROM, _T.JOIN)
    plain = name.replace("-", "_")
    if last > place and table and name.casefold() not in known and plain.casefold() in known:
        raise source.refusal(both, f"there is no table {source.words(both)}", f"Write {plain}")
    if last > place and (table or (name.casefold() in known and tokens[place].text.casefold() not in known)):
        raise source.refusal(both, f'put a name with a dash in double quotes: "{source.words(both)}"')


def _check_nesting(source: SqlText, tokens: Sequence[Token]) -> None:
    open_: list[TokenType] = []
    signs = 0
    for token in tokens:
        kind = token.token_type
        signs = signs + 1 if _is(token, _T.NOT, _T.DASH, _T.PLUS) else 0
        if _is(token, _T.L_PAREN, _T.CASE):
            open_.append(kind)
        elif _is(token, _T.R_PAREN, _T.END) and open_:
            open_.pop()
        if len(open_) + signs > DEEPEST:
            raise source.refusal(
                span(token), f"this is nested more than {DEEPEST} levels deep", "Define parts of it in a WITH clause"
            )


def _check_joins(source: SqlText, tokens: Sequence[Token]) -> None:
    waiting: list[Token | None] = [None]
    joins = [token for token in tokens if _is(token, _T.JOIN)]
    if len(joins) > MOST_JOINS:
        raise source.refusal(span(joins[MOST_JOINS]), f"a statement can have at most {MOST_JOINS} joins")
    for token in [*tokens, None]:
        if token is None or _is(token, _T.JOIN, _T.R_PAREN):
            if (missing := waiting[-1]) is not None:
                raise source.refusal(span(missing), "JOIN needs a condition", "Write JOIN ... ON a.key = b.key")
            if token is not None and _is(token, _T.R_PAREN) and len(waiting) > 1:
                waiting.pop()
        if token is not None and _is(token, _T.L_PAREN):
            waiting.append(None)
        elif token is not None and _is(token, _T.JOIN):
            waiting[-1] = token
        elif token is not None and _is(token, _T.ON, _T.USING):
            waiting[-1] = None


def _is(token: Token, *kinds: TokenType) -> bool:
    return token.token_type in kinds
