"""The options of a question, as GoogleSQL writes them: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, ...).

They are read from the tokens, before the parser: the price of the question, caps on what a person contributes, and the
column that identifies people. A cap only lowers the declared one, and the column must be the declared one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from privet.errors import QueryError, UserError, write
from privet.exact import Exact, exact, show
from privet.names.spelling import there_are
from privet.privacy.adjacency import Person
from privet.sql.literals import number
from privet.sql.source import Span, SqlText
from privet.sql.tokens import span
from privet.tables import caps, operators
from privet.tables.query import Query
from privet.tables.statement import AtMostGroups, AtMostRows

PRICES = ("epsilon", "delta", "rho")
ROWS, GROUPS, UNIT = "max_rows_contributed", "max_groups_contributed", "privacy_unit_column"
KNOWN = (*PRICES, ROWS, GROUPS, UNIT)
_FORM = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5)"
_NAMES = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a statement asks: the question, and the price that it names, if it does."""

    query: Query
    price: Mapping[str, Exact] = field(default_factory=dict)
    """An epsilon, a delta and a rho, as far as the statement names them."""

    def priced(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the question, with the price of the statement; refused if the two differ."""
        options = dict(given)
        for name, value in self.price.items():
            also = options.get(name)
            if also is not None and exact(also, name=name) != value:
                raise QueryError(
                    f"the statement says {name} = {show(value)}, but {name} is also set to {show(exact(also))}",
                    allowed="Set it once",
                    remedy=write(f"{name}={show(value)}", terminal=f"--{name} {show(value)}", exact=True),
                )
            options[name] = value
        return options


@dataclass(frozen=True, slots=True)
class Options:
    """Options as they are written: each value with its position."""

    source: SqlText
    prices: Mapping[str, Exact] = field(default_factory=dict)
    most: Mapping[str, tuple[int, Span]] = field(default_factory=dict)
    unit: tuple[str, Span] | None = None

    def asked(self, query: Query) -> Asked:
        """The question with these options: its caps are part of it, its price stands beside it."""
        if self.unit is not None:
            self._check_unit(query, *self.unit)
        if self.most:
            try:
                query = _capped(query, **{name: most for name, (most, _) in self.most.items()})
            except UserError as error:
                raise self.source.placed(next(iter(self.most.values()))[1], error) from None
        return Asked(query, {name: price for name, price in self.prices.items() if price or name != "delta"})

    def _check_unit(self, query: Query, name: str, at: Span) -> None:
        declared = {
            table.protect.id if isinstance(table.protect, Person) else None for table in operators.tables(query.input)
        }
        if declared == {None}:
            raise self.source.refusal(at, "here each row is protected on its own", f"Remove {UNIT}")
        if name.casefold() not in {str(each).casefold() for each in declared}:
            ids = " and ".join(sorted(map(str, declared)))
            why = f"people are identified by {ids}, as the steward declared, not by {name}"
            raise self.source.refusal(at, why, f"Remove {UNIT}, or write {UNIT} = {min(map(str, declared))}")


def _capped(query: Query, **most: int) -> Query:
    """The question with these caps.

    Claim: no person has more than `max_rows_contributed` rows in total, nor rows in more than `max_groups_contributed`
    groups, and the declared caps hold. Rows are shared equally among the groups: 5 rows in 2 groups are 2 in each.
    """
    rows, groups = most.get(ROWS), most.get(GROUPS) if query.keys else None
    if rows is None and groups is None:
        return query
    declared = query.at_most or caps.holding(query.input)
    if declared is None or (rows is not None and rows > caps.rows_of(declared)):
        return query.cap(max_rows=rows or groups)  # refused: there is nothing to cap, or this is higher
    if isinstance(declared, AtMostRows):
        if groups is None or (rows is not None and groups >= rows):
            return query.cap(max_rows=rows)
        if rows is None and groups >= declared.rows:  # that many rows are in no more groups
            if groups > declared.rows:
                held = caps.some(declared.rows, "row")
                raise QueryError(f"a cap can only be lowered: people have at most {held}, in no more groups than that")
            return query
        return query.cap(max_groups=groups, max_rows_per_group=(rows or declared.rows) // groups)
    assert isinstance(declared, AtMostGroups)
    wide = declared.groups if groups is None else groups
    if rows is None:
        return query.cap(max_groups=wide, max_rows_per_group=declared.rows)
    wide = min(wide, rows)
    return query.cap(max_groups=wide, max_rows_per_group=min(declared.rows, rows // wide))


def split(source: SqlText, tokens: list[Token]) -> tuple[list[Token], Options]:
    """The tokens without the options of the outermost SELECT, and the options."""
    depth = 0
    found: tuple[list[Token], Options] | None = None
    for place, token in enumerate(tokens):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        words = [each.text.upper() for each in tokens[place : place + 3]]
        if words[:2] != ["SELECT", "WITH"] or token.token_type is not TokenType.SELECT:
            continue
        if len(words) < 3 or words[2] not in ("DIFFERENTIAL_PRIVACY", "ANONYMIZATION"):
            raise source.refusal(span(tokens[place + 1]), "WITH is not supported here", f"Write {_FORM}")
        if depth or found is not None:
            why = "options are allowed only in the outermost SELECT"
            raise source.refusal(Span(tokens[place + 1].start, tokens[place + 2].end), why)
        options, end = _Reader(source, tokens, place + 3).read()
        found = [*tokens[: place + 1], *tokens[end:]], options
    return found or (tokens, Options(source))


@dataclass(slots=True)
class _Reader:
    """Reads OPTIONS (name = value, ...) from a place on."""

    source: SqlText
    tokens: list[Token]
    place: int
    given: dict[str, Token] = field(default_factory=dict)

    def read(self) -> tuple[Options, int]:
        if not self._at("OPTIONS"):
            return Options(self.source), self.place
        self.place += 1
        self._expect("(")
        while not self._at(")"):
            self._option()
            if not self._at(")"):
                self._expect(",")
        self.place += 1
        return self._options(), self.place

    def _option(self) -> None:
        name = self._next()
        word = name.text.lower()
        if name.token_type not in (TokenType.VAR, TokenType.IDENTIFIER) or word not in KNOWN:
            raise self.source.refusal(
                span(name), f"there is no option {name.text}", allowed=there_are(word, KNOWN, "options", str)
            )
        if word in self.given:
            raise self.source.refusal(span(name), f"the option {word} is given twice")
        self._expect("=")
        value = self._next()
        if value.token_type is TokenType.DASH:
            raise self.source.refusal(span(value), f"{word} can't be negative")
        self.given[word] = value

    def _options(self) -> Options:
        unit = self.given.get(UNIT)
        if unit is not None and unit.token_type not in _NAMES:
            raise self.source.refusal(span(unit), f"{UNIT} must be the name of a column")
        return Options(
            self.source,
            {name: self._number(name) for name in PRICES if name in self.given},
            {name: (self._whole(name), span(self.given[name])) for name in (ROWS, GROUPS) if name in self.given},
            None if unit is None else (unit.text, span(unit)),
        )

    def _number(self, name: str) -> Exact:
        token = self.given[name]
        value = None
        if token.token_type is TokenType.NUMBER:
            literal = exp.Literal.number(token.text)
            literal.meta.update(start=token.start, end=token.end)
            value = number(self.source, literal)
        if value is None or (not value and name != "delta"):
            why = f"{name} must be a number above 0"
            raise self.source.refusal(span(token), why, remedy=write(sql=f"OPTIONS ({name} = 0.5)"))
        return value

    def _whole(self, name: str) -> int:
        token = self.given[name]
        if token.token_type is TokenType.NUMBER and token.text.isdecimal() and 1 <= int(token.text[:20]) < 2**31:
            return int(token.text)
        why = f"{name} must be a whole number of 1 or more"
        raise self.source.refusal(span(token), why, remedy=write(sql=f"OPTIONS ({name} = 5)"))

    def _at(self, text: str) -> bool:
        return self.place < len(self.tokens) and self.tokens[self.place].text.upper() == text

    def _next(self) -> Token:
        if self.place >= len(self.tokens):
            raise self.source.refusal(span(self.tokens[-1]), "the options end here, without )", f"Write {_FORM}")
        self.place += 1
        return self.tokens[self.place - 1]

    def _expect(self, sign: str) -> None:
        token = self._next()
        if token.text != sign:
            raise self.source.refusal(span(token), f"here must be {sign}", f"Write {_FORM}")
