"""One address leads every user of a Postgres to the same ledger, or is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count

import psycopg
import pytest
from tests.ledger.common import PEOPLE, ask

from privet.errors import LedgerError, PrivetError, UserError
from privet.ledger import open_ledger
from privet.privacy.guarantees import PureDP

_NUMBERS = count(1)


def run(where: str, *statements: str) -> None:
    with psycopg.connect(where, autocommit=True) as steward:
        for statement in statements:
            steward.execute(statement.encode())


@pytest.fixture
def users(server: str, postgres: str) -> Iterator[list[str]]:
    """Two users who may make tables in `public`; neither is a superuser."""
    names = [f"user_{id(server)}_{next(_NUMBERS)}" for _ in range(2)]
    for name in names:
        run(postgres, f"CREATE ROLE {name} LOGIN", f"GRANT ALL ON SCHEMA public TO {name}")
    yield names
    for name in names:
        run(postgres, f"DROP OWNED BY {name} CASCADE", f"DROP ROLE {name}")


def address(postgres: str, user: str) -> str:
    assert "postgres:@" in postgres
    return postgres.replace("postgres:@", f"{user}@")


def spend(where: str, epsilon: str) -> None:
    with closing(open_ledger(where)) as ledger:
        ledger.create(PEOPLE)
        ask(ledger, None, "42", epsilon)


def ledgers(postgres: str) -> int:
    with psycopg.connect(postgres) as steward:
        (number,) = steward.execute("SELECT count(*) FROM pg_class WHERE relname = 'privet_ledger'").fetchone() or (0,)
    return int(number)


@pytest.mark.parametrize("order", [1, -1], ids=["the owner of a schema first", "the other first"])
def test_a_schema_with_the_name_of_a_user(postgres: str, users: list[str], order: int) -> None:
    ann, bob = users
    run(postgres, f"CREATE SCHEMA {ann} AUTHORIZATION {ann}", f"GRANT ALL ON SCHEMA {ann} TO {bob}")
    first, second = users[::order]
    spend(address(postgres, first), "0.9")
    if order == 1:
        with pytest.raises(LedgerError, match=f"is in the schema '{ann}', which is not on this user's search path"):
            spend(address(postgres, second), "0.9")
    else:  # the ledger is in `public`, which is on everyone's path: the schema of ann is empty, and stays so
        with pytest.raises(PrivetError):
            spend(address(postgres, second), "0.9")
    assert ledgers(postgres) == 1


def test_a_schema_that_a_user_may_not_use(postgres: str, users: list[str]) -> None:
    ann, bob = users
    run(postgres, f"CREATE SCHEMA team AUTHORIZATION {ann}", f"CREATE SCHEMA {bob} AUTHORIZATION {bob}")
    run(postgres, f"ALTER ROLE {ann} SET search_path = team", f"ALTER ROLE {bob} SET search_path = team, {bob}, public")
    spend(address(postgres, ann), "0.9")
    with pytest.raises(LedgerError, match="is in the schema 'team', which this user may not use") as refused:
        spend(address(postgres, bob), "0.9")
    granted = f"GRANT USAGE ON SCHEMA team TO {bob}"
    assert str(refused.value).endswith(f"run in Postgres: {granted}")
    named = "&options=-csearch_path%3Dteam"
    with pytest.raises(
        LedgerError, match="names the schema 'team', which does not exist or which this user may not"
    ) as again:
        spend(address(postgres, bob) + named, "0.9")
    assert str(again.value).endswith(f"CREATE SCHEMA team, or GRANT USAGE ON SCHEMA team TO {bob}")
    with pytest.raises(LedgerError, match="is in the schema 'team'"):  # two schemas are not one
        spend(f"{address(postgres, bob)}{named},{bob}", "0.9")
    run(postgres, granted)
    assert ledgers(postgres) == 1


def test_an_address_that_names_the_schema_of_the_user(postgres: str, users: list[str]) -> None:
    for user in users:
        run(postgres, f"CREATE SCHEMA {user} AUTHORIZATION {user}")
    own = "&options=-csearch_path%3D%22$user%22"
    spend(address(postgres, users[0]) + own, "0.9")
    with pytest.raises(LedgerError, match="is in the schema"):
        spend(address(postgres, users[1]) + own, "0.9")
    assert ledgers(postgres) == 1


def test_an_address_that_names_one_schema_may_have_a_ledger_there(postgres: str) -> None:
    run(postgres, "CREATE SCHEMA one", "CREATE SCHEMA two")
    for schema in ("one", "two"):
        spend(f"{postgres}&options=-csearch_path%3D{schema}", "0.9")
    with pytest.raises(LedgerError, match="two ledgers, in the schemas 'one' and 'two'"):
        spend(postgres, "0.9")
    with closing(open_ledger(f"{postgres}&options=-c%20search_path%3Dtwo", read_only=True)) as ledger:
        assert ledger.balance("people").spent == PureDP("0.9")
    assert ledgers(postgres) == 2


def test_an_environment_does_not_name_a_schema(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run(postgres, "CREATE SCHEMA one", "CREATE SCHEMA two")
    monkeypatch.setenv("PGOPTIONS", "-csearch_path=one")
    spend(postgres, "0.9")
    monkeypatch.setenv("PGOPTIONS", "-csearch_path=two")
    with pytest.raises(LedgerError, match="is in the schema 'one'"):
        spend(postgres, "0.9")


def test_an_address_without_a_database_is_refused(server: str) -> None:
    """Its database would have the name of the user."""
    with pytest.raises(UserError, match="does not name a database"):
        open_ledger(server.replace("/postgres?", "/?"))


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("ALTER ROLE {user} SET", "ALTER ROLE {user} RESET"),
        ("ALTER ROLE {user} IN DATABASE {base} SET", "ALTER ROLE {user} IN DATABASE {base} RESET"),
        ("ALTER DATABASE {base} SET", "ALTER DATABASE {base} RESET"),
    ],
)
def test_what_to_do_about_a_setting_depends_on_where_it_was_made(
    postgres: str, users: list[str], setting: str, remedy: str
) -> None:
    base = psycopg.conninfo.conninfo_to_dict(postgres)["dbname"]
    run(postgres, f"{setting.format(user=users[0], base=base)} synchronous_commit = off")
    with pytest.raises(LedgerError, match="synchronous_commit is off") as refused:
        open_ledger(address(postgres, users[0]))
    command = f"{remedy.format(user=users[0], base=base)} synchronous_commit"
    assert command in str(refused.value)
    run(postgres, command)
    open_ledger(address(postgres, users[0])).close()
    with pytest.raises(LedgerError, match="Remove synchronous_commit from the options of the address"):
        open_ledger(f"{postgres}&options=-csynchronous_commit%3Doff")
