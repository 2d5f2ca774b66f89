"""One-time links: the first start, single use, expiry, and twenty people who use one link at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.server.accounts.common import (
    HERE,
    IN_A_FILE,
    OTHER,
    PASSWORD,
    Clock,
    Counting,
    Opener,
    analyst,
    everything,
    steward,
)

from privet.server.accounts import AccountError, Accounts, Person, Role
from privet.server.accounts.tables import people


class Careless(Accounts):
    """A broken twin: it looks at the link once, before the password is hashed."""

    def accept(self, secret: str, password: str) -> Person:
        person = self.invited(secret)
        if person is None:
            raise AccountError("this link was used already")
        hashed = self._passwords.hashed(password)
        with self._store.writing() as connection:
            self._set_password(connection, self._existing(connection, person.name), hashed)
        return person


def test_the_first_start_makes_a_steward(open_accounts: Opener) -> None:
    accounts = open_accounts()
    first, second = accounts.first_steward(), open_accounts().first_steward()
    assert first is not None
    assert second is not None
    assert (first[0], second[0]) == ("steward", "steward")
    assert accounts.invited(first[1]) is None, "a second start replaces the link of the first"
    assert accounts.first_steward(invite=False) == ("steward", ""), "and one that shows none leaves it"
    assert [(person.name, person.role) for person in accounts.people()] == [("steward", Role.STEWARD)]
    assert accounts.accept(second[1], PASSWORD).has_password
    assert accounts.sign_in("steward", PASSWORD, address=HERE)[1].role is Role.STEWARD
    assert accounts.first_steward() is None


def test_a_store_without_people_that_had_some_is_not_a_new_one(accounts: Accounts) -> None:
    steward(accounts)
    with accounts._store.writing() as connection:
        connection.execute(people.delete())
    assert accounts.people() == []
    assert accounts.first_steward() is None


@IN_A_FILE
def test_the_first_start_invites_a_steward_who_was_added_before(accounts: Accounts) -> None:
    accounts.add("sam", Role.STEWARD)
    first = accounts.first_steward()
    assert first is not None
    invited = accounts.invited(first[1])
    assert invited is not None
    assert (invited.name, len(accounts.people())) == ("sam", 1)


def test_a_link_is_used_once(accounts: Accounts, clock: Clock) -> None:
    accounts.add("ana")
    earlier, link = accounts.invite("ana"), accounts.invite("ana", hours=1)
    assert accounts.invited(earlier) is None
    with pytest.raises(AccountError, match="characters"):
        accounts.accept(link, "short")
    cookie, _ = accounts.begin_session("ana")
    accounts.accept(link, PASSWORD)
    assert accounts.session(cookie) is None
    for useless in (link, earlier, "", "x" * 10_000, "\ud800", "' OR 1=1 --", link.upper()):
        assert accounts.invited(useless) is None
        with pytest.raises(AccountError, match="wrong, was used already or has expired"):
            accounts.accept(useless, OTHER)
    late = accounts.invite("ana", hours=1)
    clock.pass_(3600)
    assert accounts.invited(late) is None
    with pytest.raises(AccountError, match="expired"):
        accounts.accept(late, OTHER)
    accounts.sign_in("ana", PASSWORD, address=HERE)


def race(accounts: Accounts) -> int:
    """How many of twenty people who use one link at once succeed."""
    analyst(accounts)
    link = accounts.invite("ana")

    def accept(number: int) -> bool:
        try:
            accounts.accept(link, f"{PASSWORD} {number}")
        except AccountError:
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        won = [number for number, done in enumerate(pool.map(accept, range(20))) if done]
    if len(won) == 1:
        accounts.sign_in("ana", f"{PASSWORD} {won[0]}", address=HERE)
    return len(won)


def test_exactly_one_of_twenty_racers_wins(open_accounts: Opener) -> None:
    assert race(open_accounts(hasher=Counting(pause=0.01))) == 1


@IN_A_FILE
def test_a_twin_that_looks_only_once_lets_several_win(open_accounts: Opener) -> None:
    assert race(open_accounts(Careless, hasher=Counting(pause=0.01))) > 1


@IN_A_FILE
def test_links_are_not_stored(accounts: Accounts) -> None:
    accounts.add("ana")
    assert accounts.invite("ana") not in everything(accounts)
