"""Signing in through a real provider: who is let in, and as whom."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.server.accounts.common import everything
from tests.server.api.serving import Running
from tests.server.openid.company import CANARY, EC, OTHER_RSA, SECRET, Company
from tests.server.openid.visiting import Visitor

from privet.server.accounts import Role, throttle
from privet.server.identity import cookie_name

New = Callable[[], Visitor]


def test_somebody_whom_a_steward_added_signs_in_and_out(served: Running, at: Company, visitor: New) -> None:
    ann = visitor()
    button = ann.client.get("/datasets/people").headers["location"]
    page = ann.client.get(button).text
    assert "Sign in with Example &amp; &lt;b&gt;Co&lt;/b&gt;" in page
    arrived = ann.sign_in(button)
    assert arrived.status_code == 303
    assert arrived.headers["location"] == "/datasets/people"
    assert ann.name == "ann"
    assert "privet-openid" not in ann.client.cookies
    person = served.server.accounts.person("ann")
    assert person is not None
    assert person.linked
    home = ann.client.get("/datasets").text
    csrf = home.split('name="csrf" value="')[1].split('"')[0]
    assert ann.client.post("/sign-out", data={"csrf": csrf}).headers["location"] == "/sign-in"
    assert ann.name is None
    assert ann.sign_in().headers["location"] == "/datasets"
    assert ann.name == "ann"


def test_an_account_belongs_to_the_person_who_signed_in_first(served: Running, at: Company, visitor: New) -> None:
    """After the first sign-in, only the issuer's subject counts: a new address changes nothing."""
    assert visitor().sign_in().status_code == 303
    at.person = {"sub": "id-of-ann", "email": "ann.married@example.org", "email_verified": True}
    married = visitor()
    married.sign_in()
    assert married.name == "ann"
    at.person = {"sub": "id-of-ann"}
    quiet = visitor()
    quiet.sign_in()
    assert quiet.name == "ann"
    served.server.accounts.set_access("ann", Role.ANALYST, ["people"], openid="ann@elsewhere.example")
    assert quiet.name is None, "the steward named somebody else, so the sessions have ended"
    assert quiet.sign_in().status_code == 403


def test_the_others_get_one_answer(served: Running, at: Company, visitor: New) -> None:
    """Unknown, disabled, not verified, or with another's address: the same page, and the log says why."""
    assert visitor().sign_in().status_code == 303
    served.server.accounts.disable("ann")
    kept_out = {
        "disabled": at.person,
        "unknown": {"sub": "id-of-eve", "email": "eve@example.org", "email_verified": True},
        "bound to another subject": {"sub": "id-of-eve", "email": "ann@example.org", "email_verified": True},
        "subject": {"sub": "x" * 256, "email": "ann@example.org", "email_verified": True},
    }
    pages = set()
    for reason, person in kept_out.items():
        at.person = person
        somebody = visitor()
        met = somebody.sign_in()
        assert met.status_code == 403
        assert somebody.name is None
        refused = [line for line in served.log.getvalue().splitlines() if "sign-in refused" in line]
        assert f'"reason": "{reason}"' in refused[-1]
        pages.add(met.text.split("<form")[0])
    assert len(pages) == 1
    assert "You have no access here. Ask a steward for it." in pages.pop()
    served.server.accounts.enable("ann")


def test_a_one_time_link_binds_whoever_opens_it(served: Running, at: Company, visitor: New) -> None:
    """For providers that verify no address: the steward sends a link, and nothing else is believed."""
    accounts, bob = served.server.accounts, visitor()
    at.person = {"sub": "id-of-bob"}
    assert bob.sign_in().status_code == 403
    link = f"/welcome/{accounts.invite('bob')}"
    assert bob.sign_in(link).status_code == 303
    assert bob.name == "bob"
    again = visitor()
    assert again.client.get(link).status_code == 404
    again.sign_in()
    assert again.name == "bob"
    # one person at the provider has one account; a new link gives an account to somebody else
    assert visitor().sign_in(f"/welcome/{accounts.invite('ann')}").status_code == 403
    at.person = {"sub": "id-of-robert"}
    robert = visitor()
    robert.sign_in(f"/welcome/{accounts.invite('bob')}")
    assert robert.name == "bob"
    assert again.name is None


def test_keys_change(at: Company, visitor: New, served: Running) -> None:
    assert visitor().sign_in().status_code == 303
    at.keys, at.signs_with = {"one": OTHER_RSA, "two": EC}, "two"
    known = served.server.openid
    assert known is not None
    assert visitor().sign_in().status_code == 403, "it looked for keys a moment ago"
    now = known._clock()
    known._clock = lambda: now + 61
    assert visitor().sign_in().status_code == 303
    at.keys, at.signs_with = {"three": OTHER_RSA}, "three"
    assert [visitor().sign_in().status_code for _ in range(5)] == [403] * 5
    assert at.asked.count("/keys") == 2, "who sends unknown keys can't make the server ask all the time"
    known._clock = lambda: now + 122
    assert visitor().sign_in().status_code == 303
    assert at.asked.count("/.well-known/openid-configuration") == 1


def test_nothing_of_the_provider_or_of_the_secret_is_told(served: Running, at: Company, visitor: New) -> None:
    """Neither on a page, nor in the log, nor in the store."""
    pages = []
    ann = visitor()
    query = ann.leave()
    url = at.way_back(query)
    pages.append(ann.arrive(f"{url}&error_description={CANARY}").text)
    denied = visitor()
    back = f"/sign-in/openid/callback?state={denied.leave()['state']}&error=access_denied&error_description={CANARY}"
    pages.append(denied.arrive(back).text)
    wrong = visitor()
    pages.append(wrong.arrive(f"/sign-in/openid/callback?state={wrong.leave()['state']}&code=wrong").text)
    ann.arrive(url)
    told = served.log.getvalue() + everything(served.server.accounts) + repr(served.server.openid) + "".join(pages)
    for secret in (CANARY, SECRET, query["state"], query["nonce"], "code0", "id-of-nobody"):
        assert secret not in told
    assert '"who"' in told
    assert "invalid_grant" not in told
    assert at.seen, "the provider got the secret"
    assert SECRET in at.seen[-1]


def test_a_new_session_replaces_what_the_browser_had(served: Running, at: Company, visitor: New) -> None:
    """Fixation: no value that somebody planted before is worth anything after."""
    accounts, ann = served.server.accounts, visitor()
    planted, _ = accounts.begin_session("bob")
    name = cookie_name(served.server.settings)
    query = ann.leave()
    ann.client.cookies.set(name, planted, domain="localhost.local")
    assert ann.arrive(at.way_back(query)).status_code == 303
    assert accounts.session(planted) is None
    assert [cookie.value for cookie in ann.client.cookies.jar if cookie.name == name] != [planted]


def test_sign_ins_that_succeed_are_limited_too(
    served: Running, at: Company, visitor: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "SIGN_INS", throttle.Rule(2, 60))
    assert [visitor().sign_in().status_code for _ in range(2)] == [303] * 2
    late = visitor().sign_in()
    assert (late.status_code, 1 <= int(late.headers["retry-after"]) <= 60) == (429, True)
    assert "There were too many attempts. Try again in" in late.text


def test_attempts_are_limited(served: Running, at: Company, visitor: New) -> None:
    """Sign-ins that are begun count for an address, until they succeed."""
    ann, eve = visitor(), visitor()
    for _ in range(3):
        assert visitor().sign_in().status_code == 303
    assert ann.sign_in().status_code == 303
    ann.client.cookies.delete(cookie_name(served.server.settings))
    statuses = [eve.press().status_code for _ in range(31)]
    assert statuses == [200] * 30 + [429]
    last = eve.press()
    assert 1 <= int(last.headers["retry-after"]) <= 15
    assert "There were too many attempts. Try again in" in last.text
    assert ann.press().status_code == 200, "a browser that is known has attempts of its own"
    assert visitor().press().status_code == 429
    assert at.asked.count("/.well-known/openid-configuration") == 1
