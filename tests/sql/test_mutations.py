"""Whatever the text, a question or a refusal comes out, never anything else."""

from __future__ import annotations

import random

import pytest
from tests.effort import EFFORT
from tests.sql.catalogue import GOLDEN, asked, pairs

from privet.errors import QueryError
from privet.sql.tokens import DIALECT
from privet.tables.query import Query

VALID = [
    pair.sql
    for theme in ("aggregates", "rows", "expressions", "groups", "tables", "arrangements")
    for pair in pairs(GOLDEN / f"{theme}.txt", "= ")
]
FOREIGN = """
    ( ) , . * + - / = <> < <= > >= 1 0 -1 1e5 0.1 99999999999999999999999 1e400 1e-400 'x' '' '%' 'a%' NULL TRUE SELECT
    FROM WHERE GROUP BY ORDER LIMIT HAVING AND OR NOT IN BETWEEN LIKE IS CASE WHEN THEN ELSE END AS JOIN ON USING LEFT
    DISTINCT UNION OVER CAST DATE TIMESTAMP person_id region age income people visits regions t COUNT SUM AVG MIN MAX
    FLOOR CLIP LEAST YEAR EXTRACT IF COALESCE NULLIF ; -- /* */ " ' é 北 ﷽ ‮ 𝕏 \\ [ ] { } :: ? $1 @x % || -> self
    PRAGMA COPY ATTACH read_csv WITH RECURSIVE LATERAL PIVOT QUALIFY FILTER WINDOW DATE( INT( x.y.z "" "a b" 0x1F b'x'
""".split()  # noqa: SIM905
ROUNDS = 2_000 * EFFORT


def words(sql: str) -> list[str]:
    return [sql[token.start : token.end + 1] for token in DIALECT.tokenize(sql)]


def mutated(sql: str, chance: random.Random) -> str:
    parts = words(sql)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        place, other = chance.randrange(len(parts)), chance.randrange(len(parts))
        match chance.randrange(9):
            case 0:
                del parts[place]
            case 1:
                parts.insert(place, parts[place])
            case 2:
                parts[place], parts[other] = parts[other], parts[place]
            case 3:
                parts[place] = chance.choice(FOREIGN)
            case 4:
                parts.insert(place, chance.choice(FOREIGN))
            case 5:
                depth = chance.choice((1, 2, 5, 20, 30, 500))
                parts[place] = "(" * depth + parts[place] + ")" * depth
            case 6:
                parts[place:place] = parts[min(place, other) : max(place, other)]
            case 7:
                parts[place] = "".join(
                    chr(chance.choice((chance.randrange(128), chance.randrange(0xD800)))) for _ in "abc"
                )
            case 8:
                parts[place] = str(chance.choice((0, 7, -3, 10**30, 0.25, 2**63)))
        parts = parts or ["SELECT"]
    return " ".join(parts)


def outcome(sql: str) -> Query | QueryError:
    try:
        return asked(sql)
    except QueryError as error:
        return error


def test_mutations() -> None:
    chance = random.Random(20250131)
    for _ in range(ROUNDS):
        sql = mutated(chance.choice(VALID), chance)
        found = outcome(sql)
        assert isinstance(found, Query) or found.__cause__ is None, f"a bug, for {sql!r}: {found.__cause__!r}"


def test_some_mutations_are_questions() -> None:
    """So that the test above is not about refusals alone."""
    chance = random.Random(7)
    good = sum(isinstance(outcome(mutated(chance.choice(VALID), chance)), Query) for _ in range(500))
    assert 20 < good < 480


@pytest.mark.parametrize(
    "text", ["", " ", "\n", ";", "\x00", "\ud800", "SELECT", "(", "'", '"', "--", "/*", "\u202e", "\ufeff"]
)
def test_tiny_texts(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        asked(text)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("text", [None, 3, b"SELECT COUNT(*) FROM people", ["SELECT"]])
def test_what_is_no_text(text: object) -> None:
    with pytest.raises(QueryError, match="a statement must be a string"):
        asked(text)  # type: ignore[arg-type]
