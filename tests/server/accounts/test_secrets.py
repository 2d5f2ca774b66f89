"""No secret is stored, logged, shown by repr or said by an error."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests.server.accounts.common import HERE, OTHER, PASSWORD, Opener, analyst, everything

from privet.errors import PrivetError
from privet.exact import Exact
from privet.server.accounts import WrongPassword


def test_secrets_are_nowhere(open_accounts: Opener, where: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        accounts = open_accounts()
        analyst(accounts)
        link = accounts.invite("ana")
        said: list[object] = [accounts.accept(link, OTHER)]
        cookie, identity = accounts.sign_in("ana", OTHER, address=HERE)
        text, token = accounts.create_token("ana", "notebook", max_epsilon=Exact(1))
        codes = accounts.begin_device("laptop", address=HERE)
        accounts.approve_device(codes.user_code, identity)
        result = accounts.finish_device(codes.device_code)
        unused, pending = accounts.invite("ana"), accounts.begin_device("phone", address=HERE)
        typed = "my password in the wrong field"
        with pytest.raises(WrongPassword) as wrong:
            accounts.sign_in(typed, PASSWORD, address=HERE)
        said += [accounts.session(cookie), accounts.bearer(text), accounts.people(), accounts.tokens(), accounts]
        said += [identity, token, codes, result, accounts._store, accounts._store.engine, accounts._store.engine.url]
        errors: list[PrivetError] = [wrong.value]
        for act in (
            lambda: accounts.accept(link, OTHER),
            lambda: accounts.set_password("ana", PASSWORD[:5]),
            lambda: accounts.hold(text, Exact(1)),
            lambda: accounts.revoke_token(text),
            lambda: accounts.approve_device(codes.user_code, identity),
        ):
            with pytest.raises(PrivetError) as raised:
                act()
            errors.append(raised.value)
    secrets = [
        PASSWORD,
        PASSWORD[:5],
        OTHER,
        typed,
        link,
        unused,
        cookie,
        cookie.split(".")[1],
        text,
        text[-64:],
        identity.csrf,
    ]
    secrets += [
        codes.device_code,
        codes.user_code,
        pending.device_code,
        pending.user_code,
        result.text,
        result.text[-64:],
    ]
    secrets += [each.replace("-", "") for each in (codes.user_code, pending.user_code)]
    shown = {
        "store": everything(accounts),
        "file": Path(where).read_bytes().decode("latin-1") if Path(where).exists() else "",
        "repr": repr(said),
        "errors": repr([(str(error), error.to_json(), repr(error), error.__cause__) for error in errors]),
        "logs": caplog.text,
    }
    assert "ana" in shown["store"]
    assert "ana" in shown["repr"]
    assert [(place, secret) for place, text in shown.items() for secret in secrets if secret in text] == []
    assert HERE not in shown["store"], "addresses are hashed, too"


def test_an_error_of_the_database_shows_no_values(open_accounts: Opener, caplog: pytest.LogCaptureFixture) -> None:
    accounts = open_accounts()
    analyst(accounts)
    with accounts._store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM privet_accounts_tokens")
    store = accounts._store
    with caplog.at_level(logging.DEBUG), pytest.raises(PrivetError) as raised, store.writing() as connection:
        connection.exec_driver_sql("SELECT 'a secret in a statement', nonsense FROM privet_accounts")
    assert "a secret" not in str(raised.value) + repr(raised.value.__cause__) + caplog.text
