"""A company and a server that trusts it, for each file of tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.server.api.serving import Running, serving
from tests.server.openid.company import CLIENT, SECRET, Company, company
from tests.server.openid.visiting import Visitor

from privet.policy.openid_shape import SECRET as VARIABLE
from privet.server.accounts import Role
from privet.server.openid import Provider

POLICY = """pace = 0
{more}
[server.openid]
issuer = "{issuer}"
client_id = "{client}"
name = "Example & <b>Co</b>"
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[Company]:
    with company() as made:
        yield made


@pytest.fixture(scope="module")
def served(provider: Company, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, f"{SECRET}\n")
        text = POLICY.format(issuer=provider.issuer, client=CLIENT, more="")
        with serving(tmp_path_factory.mktemp("openid"), server=text) as running:
            yield running


@pytest.fixture
def at(provider: Company, served: Running) -> Company:
    """The company, honest again, where Ann signs in; and a server that has not met her."""
    provider.reset()
    provider.person = {"sub": "id-of-ann", "email": "Ann@Example.org", "email_verified": True}
    accounts = served.server.accounts
    accounts.enable("ann")
    for name in ("ann", "bob"):
        accounts.set_access(name, Role.ANALYST, ["people"], openid="")
    accounts.set_access("ann", Role.ANALYST, ["people"], openid="ann@example.org")
    known = served.server.openid
    assert known is not None
    Provider.__init__(known, known.settings, known.secret)  # it has met nobody yet
    with accounts._store.writing() as connection:
        connection.exec_driver_sql("DELETE FROM privet_accounts_attempts")
    return provider


@pytest.fixture
def visitor(served: Running, at: Company) -> Callable[[], Visitor]:
    return lambda: Visitor(served, at)
