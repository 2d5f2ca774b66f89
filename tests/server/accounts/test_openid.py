"""Who is let in by OpenID Connect, in the store: bound once, completed once, and stores of the first version."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from tests.server.accounts.common import HERE, IN_A_FILE, PASSWORD, THERE, Clock, Opener, analyst, opened, steward

from privet.server.accounts import AccountError, Accounts, NotLetIn, Role, StoreError, Throttled, store, tables
from privet.server.accounts.openid import LIFETIME, Begun
from privet.server.accounts.tables import ADDED
from privet.server.accounts.throttle import SIGN_INS

ISSUER = "https://login.example.org"
SECRET = "5" * 64


def begun(accounts: Accounts, link: str | None = None, secret: str = SECRET) -> Begun:
    accounts.begin_openid(secret, address=HERE, target="/datasets", link=link)
    found = accounts.complete_openid(secret)
    assert found is not None
    return found


def enters(accounts: Accounts, subject: str, claim: str | None = None, link: str | None = None) -> str:
    """Who that is, or why nobody."""
    try:
        cookie, identity = accounts.enter(begun(accounts, link), ISSUER, subject, claim)
    except NotLetIn as error:
        return error.reason
    assert accounts.session(cookie) is not None
    return identity.person.name


def test_the_first_sign_in_binds(accounts: Accounts) -> None:
    steward(accounts)
    accounts.add("ana", openid="Ana@Example.org")
    assert enters(accounts, "1", "eve@example.org") == "unknown"
    assert enters(accounts, "1", None) == "unknown"
    assert enters(accounts, "1", "ANA@example.org") == "ana"
    assert enters(accounts, "2", "ana@example.org") == "bound to another subject"
    assert enters(accounts, "1", "somebody@else.example") == "ana"
    with pytest.raises(NotLetIn, match="no access here"):
        accounts.enter(begun(accounts), "https://other.example", "1", "ana@example.org")
    accounts.disable("ana")
    assert enters(accounts, "1", "ana@example.org") == "disabled"
    accounts.enable("ana")
    for subject in ("", "x" * 256, "a\0b", "ü"):
        assert enters(accounts, subject, "ana@example.org") == "subject"
    accounts.set_access("ana", Role.ANALYST, None, openid="ana@example.org")
    assert enters(accounts, "2", "ana@example.org") == "bound to another subject", "nothing was changed"
    accounts.set_access("ana", Role.ANALYST, None, openid="")
    assert enters(accounts, "1", "ana@example.org") == "unknown"
    accounts.set_access("ana", Role.ANALYST, None, openid="ana@example.org")
    assert enters(accounts, "2", "ana@example.org") == "ana", "the steward made room for another"


@IN_A_FILE
def test_an_address_is_of_one_account(accounts: Accounts) -> None:
    steward(accounts)
    accounts.add("ana", openid="ana@example.org")
    with pytest.raises(AccountError, match="how 'ana' signs in"):
        accounts.add("bo", openid="ANA@example.org")
    assert accounts.person("bo") is None, "all or nothing"
    accounts.add("bo")
    for wrong in ("a\nb", "аna@example.org", "x" * 256):
        with pytest.raises(AccountError, match="OpenID"):
            accounts.set_access("bo", Role.ANALYST, None, openid=wrong)
    assert enters(accounts, "1", "") == "unknown", "nobody waits for nothing"


@IN_A_FILE
def test_links(accounts: Accounts) -> None:
    steward(accounts)
    analyst(accounts)
    cookie, _ = accounts.begin_session("ana")
    assert enters(accounts, "1", link=accounts.invite("ana")) == "ana"
    assert accounts.session(cookie) is None, "whoever was signed in before is not"
    accounts.set_access("ana", Role.ANALYST, None, openid="")
    assert enters(accounts, "1") == "unknown", "a steward ended it"
    assert enters(accounts, "1", link=accounts.invite("ana")) == "ana"
    assert enters(accounts, "1", link="wrong") == "link", "a wrong link opens nothing, not even for a known person"
    assert enters(accounts, "1", link=accounts.invite("sam")) == "bound to another account"
    link = accounts.invite("sam")
    accounts.disable("ana")
    first = begun(accounts, link)
    accounts.enter(first, ISSUER, "2", None)
    with pytest.raises(NotLetIn):
        accounts.enter(first, ISSUER, "3", None)
    once = accounts.invite("sam")
    assert accounts.enter_by_link(once)[1].person.name == "sam"
    with pytest.raises(AccountError, match="used already"):
        accounts.enter_by_link(once)
    with pytest.raises(AccountError, match="is disabled"):
        accounts.invite("ana")


@IN_A_FILE
def test_the_first_steward_may_come_by_openid_or_by_a_link(open_accounts: Opener, accounts: Accounts) -> None:
    """After that, a start makes no new link; and the last steward who can sign in is not locked out by mistake."""
    first = accounts.first_steward()
    assert first is not None
    assert enters(accounts, "1", link=first[1]) == "steward"
    assert accounts.first_steward() is None
    with pytest.raises(AccountError, match="the only steward"):
        accounts.disable("steward")


def test_a_sign_in_is_completed_once(accounts: Accounts, clock: Clock) -> None:
    for round_ in range(3):
        secret = str(round_) * 64
        accounts.begin_openid(secret, address=HERE, target="/", link=None)
        with ThreadPoolExecutor(4) as pool:
            found = [*pool.map(accounts.complete_openid, [secret] * 8)]
        assert len([each for each in found if each is not None]) == 1
    accounts.begin_openid(SECRET, address=HERE, target="/", link=None)
    clock.pass_(LIFETIME)
    assert accounts.complete_openid(SECRET) is None
    assert accounts.complete_openid("6" * 64) is None


@IN_A_FILE
def test_attempts(accounts: Accounts, clock: Clock) -> None:
    """Sign-ins that are not completed count for an address, those that are do not; passwords are counted apart."""
    analyst(accounts)
    accounts.set_access("ana", Role.ANALYST, None, openid="ana@example.org")
    for _ in range(40):
        assert enters(accounts, "1", "ana@example.org") == "ana"
    for number in range(30):
        accounts.begin_openid(f"{number:064}", address=HERE, target="/")
    with pytest.raises(Throttled):
        accounts.begin_openid(SECRET, address=HERE, target="/")
    accounts.begin_openid(SECRET, address=THERE, target="/")
    accounts.sign_in("ana", PASSWORD, address=HERE)
    clock.pass_(15)
    accounts.begin_openid("7" * 64, address=HERE, target="/")


@IN_A_FILE
def test_a_person_does_not_make_sessions_without_end(accounts: Accounts, clock: Clock) -> None:
    """Sign-ins that succeed cost an address nothing, so nothing stopped somebody from making millions of sessions."""
    analyst(accounts)
    accounts.set_access("ana", Role.ANALYST, None, openid="ana@example.org")
    for _ in range(SIGN_INS.burst):
        assert enters(accounts, "1", "ana@example.org") == "ana"
    with pytest.raises(Throttled):
        enters(accounts, "1", "ana@example.org")
    clock.pass_(SIGN_INS.seconds)
    assert enters(accounts, "1", "ana@example.org") == "ana"


@IN_A_FILE
def test_those_who_begin_and_do_not_come_back_keep_nobody_out(
    accounts: Accounts, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once so many waited, nobody could sign in for ten minutes, from wherever: 340 addresses were enough for that."""
    monkeypatch.setattr(store, "MOST_WAITING", 5)
    for number in range(5):
        accounts.begin_openid(f"{number:064}", address=f"192.0.2.{number}", target="/")
        clock.pass_(1)
    accounts.begin_openid(SECRET, address=THERE, target="/")
    assert accounts.complete_openid(f"{0:064}") is None, "the oldest is forgotten"
    assert accounts.complete_openid(f"{1:064}") is not None
    assert accounts.complete_openid(SECRET) is not None


@IN_A_FILE
@pytest.mark.parametrize(
    "claim", [" ana@example.org", "ana@example.org\n", "\u3000ana@example.org", "\x1cana@example.org"]
)
def test_a_claim_with_more_around_it_is_another(accounts: Accounts, claim: str) -> None:
    steward(accounts)
    accounts.add("ana", openid=" ana@example.org ")
    assert enters(accounts, "1", claim) == "unknown"
    assert enters(accounts, "1", "ana@example.org") == "ana", "what a steward types is read kindly"


@IN_A_FILE
def test_a_new_claim_ends_a_link_for_somebody_else(accounts: Accounts) -> None:
    """From then on only the person of the new claim is let in; but a link that was sent before still let others in."""
    steward(accounts)
    analyst(accounts)
    for before in ("awaited", "bound"):
        accounts.set_access("ana", Role.ANALYST, None, openid=f"{before}@example.org")
        if before == "bound":
            assert enters(accounts, "1", "bound@example.org") == "ana"
        link = accounts.invite("ana")
        late = begun(accounts, link)
        accounts.set_access("ana", Role.ANALYST, None, openid=f"new-{before}@example.org")
        assert accounts.invited(link) is None
        with pytest.raises(NotLetIn) as refused:
            accounts.enter(late, ISSUER, "2", "mallory@example.org")
        assert refused.value.reason == "link"
    accounts.set_access("ana", Role.ANALYST, None, openid="")
    link = accounts.invite("ana")
    accounts.set_access("ana", Role.ANALYST, None, openid="first@example.org")
    assert accounts.invited(link) is not None, "nobody else was expected: both lead to the account"


# --- stores of version 1 ----------------------------------------------------------------------------

FIRST = (*(f"DROP TABLE {table.name}" for table in ADDED), "UPDATE privet_accounts SET version = 1")


def test_a_store_of_the_first_version_is_upgraded(where: str) -> None:
    with opened(where) as accounts:
        steward(accounts)
        token, _ = accounts.create_token("sam", "notebook")
    run(where, *FIRST)
    with opened(where) as accounts:
        assert accounts.bearer(token) is not None
        accounts.add("ana", openid="ana@example.org")
        assert enters(accounts, "1", "ana@example.org") == "ana"


def test_an_upgrade_that_is_cut_short_is_made_again_and_only_one_of_several_makes_it(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(where) as accounts:
        steward(accounts)
        token, _ = accounts.create_token("sam", "notebook")
    run(where, *FIRST)
    upgrade, made = tables.upgrade, []

    def cut_short(connection: sa.Connection) -> None:
        upgrade(connection)
        raise OSError("the machine stops before the commit")

    monkeypatch.setattr(tables, "upgrade", cut_short)
    with pytest.raises(StoreError):
        Accounts.open(where)

    def counted(connection: sa.Connection) -> None:
        made.append(connection)
        upgrade(connection)

    monkeypatch.setattr(tables, "upgrade", counted)
    with ThreadPoolExecutor(4) as pool:
        stores = [*pool.map(Accounts.open, [where] * 4)]
    assert [each.bearer(token) is not None for each in stores] == [True] * 4
    assert len(made) == 1
    for each in stores:
        each.close()


def test_a_store_of_the_first_version_with_more_in_it_is_refused(tmp_path: Path, databases: Callable[[], str]) -> None:
    half = FIRST[1:]  # one of the tables is there already
    for where in (str(tmp_path / "x.accounts"), databases()):
        with opened(where) as accounts:
            steward(accounts)
        run(where, *half)
        with pytest.raises(StoreError):
            Accounts.open(where)


def run(where: str, *statements: str) -> None:
    if where.startswith("postgresql"):
        with psycopg.connect(where, autocommit=True) as other:
            for statement in statements:
                other.execute(statement.encode())
        return
    with closing(sqlite3.connect(where, isolation_level=None)) as file:
        for statement in statements:
            file.execute(statement)
