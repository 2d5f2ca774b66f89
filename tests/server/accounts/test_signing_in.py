"""S1: signing in. Unknown names and wrong passwords look and work the same; guesses are limited; nobody is shut out."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.server.accounts.common import (
    HERE,
    IN_A_FILE,
    OTHER,
    PASSWORD,
    THERE,
    Clock,
    Counting,
    Opener,
    analyst,
    steward,
)

from privet.server.accounts import AccountError, Accounts, Throttled, WrongPassword
from privet.server.accounts.logins import browser_mark
from privet.server.accounts.passwords import Passwords, production
from privet.server.accounts.throttle import BY_ADDRESS, BY_BROWSER, BY_NAME, SIGN_INS


class Eager(Passwords):
    """A broken twin: it answers at once if there is nothing to compare with."""

    def matches(self, stored: str | None, password: str) -> bool:
        return stored is not None and super().matches(stored, password)


FAILURES = {
    "wrong": ("ana", OTHER),
    "unknown": ("bob", PASSWORD),
    "disabled": ("dis", PASSWORD),
    "no password": ("new", PASSWORD),
    "not a name": ("a\x00\ud800", PASSWORD),
    "long name": ("x" * 100_000, PASSWORD),
    "empty": ("ana", ""),
    "long password": ("ana", "x" * 100_000),
    "not text": ("ana", "\ud800" * 20),
}


def work(accounts: Accounts, hasher: Counting) -> dict[str, tuple[str, int, int]]:
    """What each failure says, and what it costs."""
    found = {}
    for number, (what, (name, password)) in enumerate(FAILURES.items()):
        before = hasher.verified, hasher.hashed
        with pytest.raises(WrongPassword) as raised:
            accounts.sign_in(name, password, address=f"203.0.113.{number}")
        found[what] = repr(raised.value), hasher.verified - before[0], hasher.hashed - before[1]
    return found


def people(accounts: Accounts) -> None:
    steward(accounts)
    analyst(accounts)
    analyst(accounts, "dis")
    accounts.disable("dis")
    accounts.add("new")


def test_every_failure_says_and_costs_the_same(accounts: Accounts, hasher: Counting) -> None:
    people(accounts)
    found = work(accounts, hasher)
    first = found.pop("wrong")  # of this process: the decoy is made whoever is named
    assert first == ("WrongPassword('the name or the password is wrong')", 1, 1)
    assert set(found.values()) == {(first[0], 1, 0)}


@IN_A_FILE
def test_a_twin_that_skips_the_work_is_caught(accounts: Accounts, hasher: Counting) -> None:
    people(accounts)
    accounts._passwords = Eager(hasher)
    assert {cost for _, cost, _ in work(accounts, hasher).values()} == {0, 1}


@IN_A_FILE
def test_the_decoy_is_made_whoever_comes_first(open_accounts: Opener, hasher: Counting) -> None:
    people(open_accounts())
    costs = set()
    for name, password in FAILURES.values():
        before = hasher.verified + hasher.hashed
        with pytest.raises(WrongPassword):
            open_accounts().sign_in(name, password, address=HERE)
        costs.add(hasher.verified + hasher.hashed - before)
    assert costs == {2}


def test_real_passwords_use_the_profile_of_the_rfc() -> None:
    """RFC 9106, section 4, the second recommended option: t=3, p=4, m=64 MiB, 128-bit salt, 256-bit tag."""
    made = production()
    assert (made.time_cost, made.parallelism, made.memory_cost) == (3, 4, 64 * 1024)
    assert (made.salt_len, made.hash_len, made.type.name) == (16, 32, "ID")


@IN_A_FILE
def test_outdated_hashes_are_renewed(accounts: Accounts, open_accounts: Opener) -> None:
    analyst(accounts)
    stronger = Counting(time_cost=2)
    later = open_accounts(hasher=stronger)
    later.sign_in("ana", PASSWORD, address=HERE)
    assert stronger.hashed == 2, "the decoy and the new hash"
    later.sign_in("ana", PASSWORD, address=HERE)
    assert stronger.hashed == 2


@IN_A_FILE
def test_easily_guessed_passwords_are_refused(accounts: Accounts) -> None:
    accounts.add("ana")
    for password in ("short", "x" * 1001, "aaaabbbbaaaabbbb", "ana-ana-ana-ana", "AnaAnaAnaAna", "ana" * 4):
        with pytest.raises(AccountError) as raised:
            accounts.set_password("ana", password)
        assert password not in str(raised.value)
    assert not accounts.people()[0].has_password


@IN_A_FILE
def test_a_password_is_the_same_however_it_is_composed(accounts: Accounts) -> None:
    accounts.add("ana")
    accounts.set_password("ana", "caf\u00e9 cr\u00e8me br\u00fbl\u00e9e")
    accounts.sign_in(" ana ", "cafe\u0301 cre\u0300me bru\u0302le\u0301e", address=HERE)


# --- throttling -------------------------------------------------------------------------------------


def guesses(accounts: Accounts, names: list[str], addresses: list[str]) -> list[int]:
    """For each guess, 0 if it was compared, or the seconds to wait."""
    found = []
    for name, address in zip(names, addresses, strict=True):
        with pytest.raises((WrongPassword, Throttled)) as raised:
            accounts.sign_in(name, OTHER, address=address)
        found.append(getattr(raised.value, "retry_after", 0))
    return found


def addresses(count: int) -> list[str]:
    return [f"10.0.{number // 250}.{number % 250}" for number in range(count)]


@pytest.mark.parametrize("name", ["ana", "nobody"])
def test_guesses_for_a_name_are_limited_over_addresses_processes_and_restarts(
    open_accounts: Opener, clock: Clock, hasher: Counting, name: str
) -> None:
    """From 40 addresses, through a new process for each ten guesses; known and unknown names alike."""
    analyst(open_accounts())
    before, found = hasher.verified, []
    for start in range(0, 40, 10):
        with open_accounts() as process:
            found += guesses(process, [name] * 10, addresses(40)[start : start + 10])
    assert found == [0] * BY_NAME.burst + [BY_NAME.seconds] * 30
    assert hasher.verified - before == BY_NAME.burst, "a throttled guess is not even compared"
    again = open_accounts()
    clock.pass_(BY_NAME.seconds - 1)
    assert guesses(again, [name], [THERE]) == [1]
    clock.pass_(1)
    assert guesses(again, [name] * 2, [THERE] * 2) == [0, BY_NAME.seconds]
    clock.pass_(-(10**8))  # a clock that is set back locks nobody out for longer
    assert guesses(again, [name], [THERE])[0] <= BY_NAME.seconds


def test_guesses_from_an_address_are_limited_over_names(accounts: Accounts, clock: Clock) -> None:
    names = [f"name {number}" for number in range(40)]
    same = [f"2001:db8:0:1::{number}" for number in range(40)]  # one network of one user
    assert guesses(accounts, names, same) == [0] * BY_ADDRESS.burst + [BY_ADDRESS.seconds] * 10
    assert guesses(accounts, ["name 39"], ["2001:db8:0:2::1"]) == [0]
    with accounts._store.reading() as connection:
        stored = connection.exec_driver_sql("SELECT count(*) FROM privet_accounts_attempts").scalar()
    assert stored == BY_ADDRESS.burst + 3
    clock.pass_(10**6)
    assert guesses(accounts, ["name 39"], [HERE]) == [0]
    with accounts._store.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM privet_accounts_attempts").scalar() == 2


def test_racing_guesses_get_no_more_than_the_allowance(open_accounts: Opener) -> None:
    """An attempt is charged before it is made: 40 threads that guess at once still get 10 comparisons."""
    slow = Counting(pause=0.01)
    accounts = open_accounts(hasher=slow)
    analyst(accounts)
    before = slow.verified
    with ThreadPoolExecutor(40) as pool:
        list(pool.map(lambda address: guesses(accounts, ["ana"], [address]), addresses(40)))
    assert slow.verified - before == BY_NAME.burst


@IN_A_FILE
def test_sign_ins_that_succeed_cost_no_attempts(accounts: Accounts) -> None:
    analyst(accounts)
    for address in addresses(2 * BY_NAME.burst):
        accounts.sign_in("ana", PASSWORD, address=address)
    for _ in range(2 * BY_BROWSER.burst):
        accounts.check_password("ana", PASSWORD, address=HERE)


@IN_A_FILE
def test_nobody_can_shut_a_steward_out(accounts: Accounts, clock: Clock) -> None:
    """L16: an attacker takes every attempt for a day, also in the steward's office. A known browser or a link helps."""
    steward(accounts)
    cookie, _ = accounts.sign_in("sam", PASSWORD, address=HERE)
    accounts.sign_out(cookie)
    for _ in range(5):
        guesses(accounts, ["sam"] * 24, addresses(12) + [HERE] * 12)
        clock.pass_(BY_NAME.seconds)
        guesses(accounts, ["sam"] * 24, addresses(12) + [HERE] * 12)
        with pytest.raises(Throttled) as raised:  # in a new browser, with the right password
            accounts.sign_in("sam", PASSWORD, address=HERE)
        assert raised.value.retry_after <= BY_NAME.seconds
        accounts.sign_in("sam", PASSWORD, address=HERE, mark=browser_mark(cookie))
        clock.pass_(5 * 3600)
    guesses(accounts, ["sam"] * 24, addresses(12) + [HERE] * 12)
    accounts.accept(accounts.invite("sam"), OTHER)
    accounts.sign_in("sam", OTHER, address=HERE)


@IN_A_FILE
def test_an_address_does_not_tell_who_has_an_account(accounts: Accounts) -> None:
    """Somebody in the office of a person who signed in there learns no more of them than of a name that nobody has."""
    analyst(accounts)
    accounts.sign_in("ana", PASSWORD, address=HERE)
    seen = [guesses(accounts, [name] * 14, [HERE] * 7 + [THERE] * 7) for name in ("ana", "nobody")]
    assert seen[0] == seen[1]
    guesses(accounts, [f"name {number}" for number in range(40)], [HERE] * 40)
    assert guesses(accounts, ["ana"], [HERE]) != [0]


@IN_A_FILE
def test_a_browser_has_no_attempts_for_somebody_else(accounts: Accounts) -> None:
    steward(accounts)
    analyst(accounts)
    cookie, _ = accounts.sign_in("ana", PASSWORD, address=HERE)
    found = []
    for address in addresses(BY_NAME.burst + 5):
        with pytest.raises((WrongPassword, Throttled)) as raised:
            accounts.sign_in("sam", OTHER, address=address, mark=browser_mark(cookie))
        found.append(type(raised.value))
    assert found == [WrongPassword] * BY_NAME.burst + [Throttled] * 5
    own = []
    for _ in range(BY_BROWSER.burst + 5):
        with pytest.raises((WrongPassword, Throttled)) as raised:
            accounts.sign_in("ana", OTHER, address=THERE, mark=browser_mark(cookie))
        own.append(type(raised.value))
    assert own == [WrongPassword] * BY_BROWSER.burst + [Throttled] * 5


def test_right_passwords_are_limited_too(accounts: Accounts, clock: Clock, hasher: Counting) -> None:
    """Each makes a session and takes the work of a hash; before, there was no end to them."""
    analyst(accounts)
    cookie = ""
    for _ in range(SIGN_INS.burst):
        cookie, _ = accounts.sign_in("ana", PASSWORD, address=HERE)
    for _ in range(BY_NAME.burst):
        with pytest.raises(Throttled) as refused:
            accounts.sign_in("ana", PASSWORD, address=HERE)
        assert refused.value.retry_after <= SIGN_INS.seconds
    worked = hasher.verified
    with pytest.raises(Throttled):
        accounts.sign_in("ana", PASSWORD, address=HERE)
    assert hasher.verified == worked, "in the end without the work"
    assert accounts.session(cookie) is not None, "sessions go on"
    clock.pass_(BY_NAME.seconds)
    accounts.sign_in("ana", PASSWORD, address=HERE)
    for _ in range(BY_NAME.burst):
        with pytest.raises((WrongPassword, Throttled)):
            accounts.sign_in("ana", OTHER, address=THERE)
    assert accounts.sign_in("ana", PASSWORD, address=HERE, mark=browser_mark(cookie)), "wrong ones do not count"
