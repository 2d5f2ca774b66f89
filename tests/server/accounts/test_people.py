"""Who has an account: names that can't be confused, roles, and people who are locked out at once."""

from __future__ import annotations

import pytest
from tests.server.accounts.common import HERE, IN_A_FILE, OTHER, PASSWORD, analyst, steward

from privet.server.accounts import AccountError, Accounts, Role, WrongPassword


def test_people_are_added_found_and_changed(accounts: Accounts) -> None:
    assert accounts.people() == []
    sam = accounts.add("sam", Role.STEWARD)
    ana = accounts.add("  ana  lee ", Role.ANALYST, ["people", "sales", "people"])
    assert (sam.name, sam.role, sam.datasets, sam.disabled, sam.has_password) == ("sam", "steward", None, False, False)
    assert (ana.name, ana.datasets) == ("ana lee", frozenset({"people", "sales"}))
    assert accounts.people() == [ana, sam]
    assert accounts.person("ana lee") == ana
    assert accounts.person("nobody") is None
    changed = accounts.set_access("ana lee", Role.STEWARD, None)
    assert (changed.role, changed.datasets) == (Role.STEWARD, None)
    assert accounts.set_access("ana lee", Role.ANALYST, []).datasets == frozenset()
    with pytest.raises(AccountError, match="nobody has the name 'bo'"):
        accounts.set_access("bo", Role.ANALYST, None)


REFUSED = {
    "ana": "is taken",
    " ana ": "is taken",
    "Ana": "looks like 'ana'",
    "аna": "looks like 'ana'",  # Cyrillic
    "": "1 to 120",
    "x" * 121: "1 to 120",
    "a\x00b": "1 to 120",
    "a\u202eb": "1 to 120",
    "cli:root": "can't have",
    "CLI:root": "can't have",
    "a/b": "can't have",
    "..": "can't have",
}


@IN_A_FILE
def test_names_that_could_be_confused_are_refused(accounts: Accounts) -> None:
    accounts.add("ana")
    for name, why in REFUSED.items():
        with pytest.raises(AccountError, match=why):
            accounts.add(name)
    assert len(accounts.people()) == 1


@IN_A_FILE
def test_a_wrong_scope_is_refused(accounts: Accounts) -> None:
    with pytest.raises(AccountError, match="a list of names"):
        accounts.add("ana", Role.ANALYST, "people")
    with pytest.raises(AccountError, match="printable"):
        accounts.add("ana", Role.ANALYST, ["a\nb"])
    assert accounts.people() == []


def test_a_disabled_person_is_locked_out_at_once(accounts: Accounts) -> None:
    steward(accounts)
    analyst(accounts)
    cookie, identity = accounts.sign_in("ana", PASSWORD, address=HERE)
    text, token = accounts.create_token("ana", "notebook")
    link = accounts.invite("ana")
    codes = accounts.begin_device("laptop", address=HERE)
    accounts.approve_device(codes.user_code, identity)

    assert accounts.disable("ana").disabled
    assert accounts.session(cookie) is None
    assert accounts.bearer(text) is None
    assert accounts.invited(link) is None
    assert accounts.finish_device(codes.device_code).text == ""
    with pytest.raises(WrongPassword):
        accounts.sign_in("ana", PASSWORD, address=HERE)
    with pytest.raises(AccountError):
        accounts.hold(token.id, 0)  # type: ignore[arg-type]
    for act in (accounts.invite, accounts.begin_session, lambda name: accounts.create_token(name, "x")):
        with pytest.raises(AccountError, match="disabled"):
            act("ana")

    accounts.enable("ana")
    assert accounts.sign_in("ana", PASSWORD, address=HERE)[1].person.name == "ana"
    assert accounts.session(cookie) is None
    assert accounts.bearer(text) is None, "a revoked token stays revoked"
    assert accounts.invited(link) is None, "so does a link"
    with pytest.raises(AccountError, match="wrong, was used already"):
        accounts.accept(link, OTHER)
    assert accounts.finish_device(codes.device_code).text == ""
    assert accounts.sign_in("ana", PASSWORD, address=HERE), "and the password is the old one"


@IN_A_FILE
def test_the_last_steward_stays(accounts: Accounts) -> None:
    steward(accounts)
    accounts.add("no password yet", Role.STEWARD)
    with pytest.raises(AccountError, match="only steward who can sign in"):
        accounts.disable("sam")
    with pytest.raises(AccountError, match="only steward who can sign in"):
        accounts.set_access("sam", Role.ANALYST, None)
    accounts.set_password("no password yet", OTHER)
    assert accounts.set_access("sam", Role.ANALYST, None).role is Role.ANALYST
    assert accounts.disable("no password yet", even_last=True).disabled


def test_a_change_of_access_counts_from_the_next_request(accounts: Accounts) -> None:
    steward(accounts)
    steward(accounts, "ana")
    cookie, identity = accounts.sign_in("ana", PASSWORD, address=HERE)
    text, _ = accounts.create_token("ana", "notebook", role=Role.STEWARD, datasets=["people", "sales"])
    assert identity.role is Role.STEWARD
    accounts.set_access("ana", Role.ANALYST, ["sales", "more"])
    session, bearer = accounts.session(cookie), accounts.bearer(text)
    assert session is not None
    assert bearer is not None
    assert (session.role, session.datasets) == (Role.ANALYST, frozenset({"sales", "more"}))
    assert (bearer.role, bearer.datasets) == (Role.ANALYST, frozenset({"sales"}))
    assert bearer.may_ask("sales")
    assert not bearer.may_ask("people"), "a dataset of the token that is not the person's"
    assert not bearer.may_ask("more"), "a dataset of the person that is not the token's"
