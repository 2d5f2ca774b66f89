"""Device logins (RFC 8628): guessed, raced, denied, expired and impatient."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.server.accounts.common import HERE, IN_A_FILE, PASSWORD, THERE, Clock, analyst, everything, steward

from privet.exact import Exact
from privet.server.accounts import AccountError, Accounts, DeviceState, Identity, Role, Throttled, store
from privet.server.accounts.devices import LIFETIME
from privet.server.accounts.throttle import DEVICES, USER_CODES


def signed_in(accounts: Accounts, name: str = "ana") -> Identity:
    return accounts.sign_in(name, PASSWORD, address=HERE)[1]


def test_a_device_gets_a_token_of_the_person_who_approved_it(accounts: Accounts, clock: Clock) -> None:
    analyst(accounts, datasets=["people", "sales"])
    identity = signed_in(accounts)
    codes = accounts.begin_device("laptop of ana", address=THERE)
    assert (codes.expires_in, codes.interval) == (LIFETIME, 5)
    assert codes.device_code not in repr(codes)
    assert accounts.finish_device(codes.device_code).state is DeviceState.PENDING
    typed = f" {codes.user_code.replace('-', '').lower()} "
    request = accounts.device(typed, identity)
    assert request is not None
    assert request.label == "laptop of ana"
    with pytest.raises(AccountError, match="may not ask"):
        accounts.approve_device(typed, identity, datasets=["secrets"])
    accounts.approve_device(typed, identity, datasets=["people"], max_epsilon=Exact(1), days=2)
    clock.pass_(5)
    result = accounts.finish_device(codes.device_code)
    assert result.state is DeviceState.GRANTED
    assert result.token is not None
    assert result.text not in repr(result)
    bearer = accounts.bearer(result.text)
    assert bearer is not None
    assert (bearer.person.name, bearer.datasets, bearer.role) == ("ana", frozenset({"people"}), Role.ANALYST)
    assert (result.token.max_epsilon, result.token.label) == (Exact(1), "laptop of ana")
    assert (result.token.expires - result.token.created).days == 2
    clock.pass_(5)
    assert accounts.finish_device(codes.device_code).state is DeviceState.EXPIRED, "only once"
    assert accounts.device(codes.user_code, identity) is None


def test_devices_are_denied_expire_and_slow_down(accounts: Accounts, clock: Clock) -> None:
    analyst(accounts)
    identity = signed_in(accounts)
    denied, late, hasty = (accounts.begin_device(str(number), address=THERE) for number in range(3))
    accounts.deny_device(denied.user_code, identity)
    assert accounts.finish_device(denied.device_code).state is DeviceState.DENIED
    with pytest.raises(AccountError, match="used already"):
        accounts.approve_device(denied.user_code, identity)
    states = [accounts.finish_device(hasty.device_code).state]
    for seconds in (1, 5, 10, 20):
        clock.pass_(seconds)
        states.append(accounts.finish_device(hasty.device_code).state)
    assert states == ["authorization_pending", "slow_down", "slow_down", "slow_down", "authorization_pending"]
    accounts.approve_device(hasty.user_code, identity)
    assert accounts.finish_device(hasty.device_code).state is DeviceState.SLOW_DOWN
    clock.pass_(LIFETIME)
    assert accounts.device(late.user_code, identity) is None
    for code in (late.device_code, hasty.device_code, denied.device_code, "", "\ud800", "x" * 10_000):
        assert accounts.finish_device(code).state is DeviceState.EXPIRED
    assert accounts.tokens() == []


def test_exactly_one_of_twenty_devices_gets_the_token(accounts: Accounts) -> None:
    analyst(accounts)
    codes = accounts.begin_device("laptop", address=THERE)
    accounts.approve_device(codes.user_code, signed_in(accounts))
    with ThreadPoolExecutor(20) as pool:
        results = list(pool.map(accounts.finish_device, [codes.device_code] * 20))
    granted = [result for result in results if result.state is DeviceState.GRANTED]
    assert len(granted) == 1
    assert {result.state for result in results} == {DeviceState.GRANTED, DeviceState.EXPIRED}
    assert len(accounts.tokens()) == 1


@IN_A_FILE
def test_only_a_session_approves(accounts: Accounts) -> None:
    """A stolen token can't make further ones, which would outlive it."""
    steward(accounts)
    text, _ = accounts.create_token("sam", "notebook", role=Role.STEWARD)
    bearer = accounts.bearer(text)
    assert bearer is not None
    codes = accounts.begin_device("laptop", address=THERE)
    with pytest.raises(AccountError, match="Sign in to the page"):
        accounts.approve_device(codes.user_code, bearer)
    with pytest.raises(AccountError, match="Sign in to the page"):
        accounts.device(codes.user_code, bearer)


@IN_A_FILE
def test_an_approval_counts_only_if_its_person_still_may(accounts: Accounts, clock: Clock) -> None:
    steward(accounts)
    steward(accounts, "ana")
    codes = accounts.begin_device("laptop", address=THERE)
    accounts.approve_device(codes.user_code, signed_in(accounts), role=Role.STEWARD)
    accounts.set_access("ana", Role.ANALYST, ["people"])
    result = accounts.finish_device(codes.device_code)
    bearer = accounts.bearer(result.text)
    assert bearer is not None
    assert (bearer.role, bearer.datasets) == (Role.ANALYST, frozenset({"people"}))


@IN_A_FILE
def test_guessed_codes_and_floods_are_limited(accounts: Accounts, clock: Clock) -> None:
    analyst(accounts)
    identity = signed_in(accounts)
    codes = [accounts.begin_device("laptop", address=THERE) for _ in range(DEVICES.burst)]
    with pytest.raises(Throttled):
        accounts.begin_device("laptop", address=THERE)
    accounts.begin_device("laptop", address=HERE)
    for each in codes:
        assert accounts.device(each.user_code, identity) is not None, "right codes are not limited"
    for number in range(USER_CODES.burst):
        assert accounts.device(f"BBBBBB{'BCDFGHJKLMNPQRS'[number]}B", identity) is None
    for _ in range(5):
        with pytest.raises(Throttled) as raised:
            accounts.device("BBBBBBBB", identity)
        assert raised.value.retry_after == USER_CODES.seconds
    with pytest.raises(Throttled):
        accounts.approve_device(codes[0].user_code, identity)
    clock.pass_(LIFETIME)
    accounts.begin_device("laptop", address=HERE)
    assert everything(accounts).count("'laptop'") == 1, "expired logins are removed"
    for label in ("", "a\nb", "x" * 121):
        with pytest.raises(AccountError, match="printable"):
            accounts.begin_device(label, address=HERE)


@IN_A_FILE
def test_logins_that_nobody_approves_keep_nobody_out(
    accounts: Accounts, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_WAITING", 5)
    codes = []
    for number in range(6):
        codes.append(accounts.begin_device("laptop", address=f"192.0.2.{number}"))
        clock.pass_(1)
    clock.pass_(5)
    states = [accounts.finish_device(each.device_code).state for each in codes]
    assert states == [DeviceState.EXPIRED, *[DeviceState.PENDING] * 5], "the oldest is forgotten"
