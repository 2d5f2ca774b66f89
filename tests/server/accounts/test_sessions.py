"""S3: sessions of the page. A session can't be fixed, forged, kept after its end, or made from a copy of the store."""

from __future__ import annotations

import pytest
from itsdangerous import Signer
from tests.server.accounts.common import HERE, IN_A_FILE, OTHER, PASSWORD, Clock, Opener, analyst, steward

from privet.server.accounts import Accounts, Identity, WrongPassword
from privet.server.accounts.logins import IDLE, LONGEST, REMEMBERED, browser_mark, known_browser
from privet.server.accounts.tables import sessions


def test_a_session_knows_its_person(accounts: Accounts, open_accounts: Opener) -> None:
    analyst(accounts, datasets=["people"])
    cookie, identity = accounts.sign_in("ana", PASSWORD, address=HERE)
    assert (identity.person.name, identity.role, identity.datasets) == ("ana", "analyst", frozenset({"people"}))
    assert identity.token is None
    assert open_accounts().session(cookie) == identity == accounts.session(cookie)


@IN_A_FILE
def test_every_sign_in_makes_a_new_session(accounts: Accounts) -> None:
    """Fixation: an attacker's cookie, sent along by the victim, does not become the victim's session."""
    analyst(accounts)
    steward(accounts)
    fixed, before = accounts.sign_in("ana", PASSWORD, address=HERE)
    cookie, identity = accounts.sign_in("sam", PASSWORD, address=HERE, mark=browser_mark(fixed))
    assert cookie != fixed
    assert identity.session != before.session
    kept = accounts.session(fixed)
    assert kept is not None
    assert kept.person.name == "ana"
    assert len({accounts.sign_in("ana", PASSWORD, address=HERE)[0] for _ in range(5)} | {cookie, fixed}) == 7


def test_forged_cookies_open_nothing(accounts: Accounts) -> None:
    analyst(accounts)
    cookie, identity = accounts.sign_in("ana", PASSWORD, address=HERE)
    key, secret, signature = cookie.split(".")
    other = accounts.sign_in("ana", PASSWORD, address=HERE)[0].split(".")
    signer = accounts._signer()  # even the signing key does not help without the secret
    forged = [
        "", ".", "..", key, f"{key}.{secret}", f"{key}.{secret}.", cookie + "=", cookie + "\n", cookie[:-1],
        cookie.upper(),
        f"{key}.{other[1]}.{signature}", f"{other[0]}.{secret}.{signature}", f"{key}.{secret}.{other[2]}",
        signer.sign(f"{key}.{'0' * 64}").decode(), signer.sign(f"{other[0]}.{secret}").decode(),
        Signer("guess", salt="privet session").sign(f"{key}.{secret}").decode(),
        f"{key}.{secret}.\u00e9{signature[1:]}", "\ud800" * 50, "x" * 10_000, str(identity.session), "\x00",
    ]  # fmt: skip
    assert [value for value in forged if accounts.session(value) is not None] == []
    assert accounts.session(browser_mark(cookie)) is None, "a mark opens nothing"
    assert accounts.session(f"{browser_mark(cookie)}.{signature}") is None
    assert accounts.session(signer.sign(browser_mark(cookie)).decode()) is None
    for value in forged:
        accounts.sign_out(value)
    assert accounts.session(cookie) == identity


def test_sessions_end(accounts: Accounts, open_accounts: Opener, clock: Clock) -> None:
    analyst(accounts)

    def begun() -> str:
        return accounts.sign_in("ana", PASSWORD, address=HERE)[0]

    signed_out, idle, used = begun(), begun(), begun()
    accounts.sign_out(signed_out)
    assert open_accounts().session(signed_out) is None
    clock.pass_(IDLE - 1)
    assert accounts.session(used) is not None
    clock.pass_(1)
    assert accounts.session(idle) is None
    assert accounts.session(used) is not None
    alive = []
    for _ in range(LONGEST // IDLE):
        clock.pass_(IDLE - 600)
        alive.append(accounts.session(used) is not None)
    assert alive == [True] * (LONGEST // IDLE - 1) + [False], "in use all the time, but too old"


@IN_A_FILE
def test_a_new_password_ends_all_sessions_but_the_one_that_set_it(accounts: Accounts) -> None:
    analyst(accounts)
    analyst(accounts, "bo")
    mine, identity = accounts.sign_in("ana", PASSWORD, address=HERE)
    stolen, _ = accounts.sign_in("ana", PASSWORD, address=HERE)
    others, _ = accounts.sign_in("bo", PASSWORD, address=HERE)
    link = accounts.invite("ana")
    accounts.set_password("ana", OTHER, keep=identity.session)
    assert accounts.session(mine) == identity
    assert accounts.session(stolen) is None
    assert accounts.session(others) is not None
    assert accounts.invited(link) is None
    accounts.set_password("ana", PASSWORD)
    assert accounts.session(mine) is None


def test_a_person_who_is_disabled_while_the_password_is_compared_gets_no_session(open_accounts: Opener) -> None:
    accounts, other = open_accounts(), open_accounts()
    analyst(accounts)
    compare = accounts._passwords.matches

    def slowly(stored: str | None, password: str) -> bool:
        right = compare(stored, password)
        other.disable("ana")
        return right

    accounts._passwords.matches = slowly  # type: ignore[method-assign]
    with pytest.raises(WrongPassword):
        accounts.sign_in("ana", PASSWORD, address=HERE)
    with accounts._store.reading() as connection:
        assert connection.execute(sessions.select()).all() == []


@IN_A_FILE
def test_forms_need_the_value_of_their_own_session(accounts: Accounts) -> None:
    analyst(accounts)
    _, one = accounts.sign_in("ana", PASSWORD, address=HERE)
    _, two = accounts.sign_in("ana", PASSWORD, address=HERE)
    text, _ = accounts.create_token("ana", "notebook")
    bearer = accounts.bearer(text)
    assert bearer is not None
    assert accounts.csrf_ok(one, one.csrf)
    wrong: list[tuple[Identity, str]] = [
        (one, two.csrf),
        (one, ""),
        (one, "\ud800\u00e9"),
        (one, str(one.session)),
        (bearer, ""),
    ]
    assert not [value for identity, value in wrong if accounts.csrf_ok(identity, value)]


def test_marks_of_browsers_are_known_until_they_are_old(accounts: Accounts, clock: Clock) -> None:
    analyst(accounts)
    steward(accounts)
    cookie, _ = accounts.sign_in("ana", PASSWORD, address=HERE)
    mark, other = browser_mark(cookie), browser_mark(accounts.sign_in("sam", PASSWORD, address=HERE)[0])
    accounts.sign_out(cookie)

    def known(name: str, mark: str) -> bool:
        with accounts._store.reading() as connection:
            return known_browser(connection, mark, name) is not None

    assert known("ana", mark)
    wrong = [other, "", mark[:-1], mark.upper(), f"{mark[:17]}{other[17:]}", cookie, "\ud800", "\x00", f"{mark}\n"]
    assert not any(known("ana", each) for each in wrong)
    assert not known("sam", mark)
    clock.pass_(REMEMBERED + 1)
    accounts.begin_session("sam")
    assert not known("ana", mark)
