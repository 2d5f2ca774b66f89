"""Whatever is done in whatever order, by two processes: who is let in follows a model of a few lines."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.server.accounts.common import HERE, PASSWORD, Clock, Counting

from privet.errors import BudgetError
from privet.server.accounts import AccountError, Accounts, Identity, Role
from privet.server.accounts.logins import IDLE, LONGEST

NAMES = st.sampled_from(["sam", "ana", "bob"])
ROLES = st.sampled_from(Role)
SCOPES = st.sampled_from([None, frozenset[str](), frozenset({"people"}), frozenset({"people", "sales"})])
DAY = 24 * 3600
Scope = frozenset[str] | None


@dataclass(frozen=True)
class Human:
    role: Role
    scope: Scope
    disabled: bool = False
    password: bool = False


@dataclass(frozen=True)
class Ticket:
    """A token."""

    owner: str
    role: Role
    scope: Scope
    most: Fraction
    expires: float
    spent: Fraction = Fraction(0)
    revoked: bool = False


def narrowed(one: Scope, other: Scope) -> Scope:
    return other if one is None else one if other is None else one & other


def picked(data: st.DataObject, held: Mapping[str, object]) -> str:
    """One of the secrets, by its place: the secrets themselves are random."""
    return [*held][data.draw(st.integers(0, len(held) - 1))]


class Model(RuleBasedStateMachine):
    """Two processes on one store, and what they should know."""

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.clock, self.turn = Clock(), 0
        options: dict[str, Any] = {"hasher": Counting(), "clock": self.clock}
        self.processes = [Accounts.open(self.folder / "x.accounts", **options) for _ in range(2)]
        self.people: dict[str, Human] = {}
        self.sessions: dict[str, tuple[str, float]] = {}
        self.tokens: dict[str, Ticket] = {}
        self.links: dict[str, tuple[str, float]] = {}
        self.over: set[str] = set()  # cookies and links that are over, and must stay so
        for name in ("sam", "ana"):
            self.add(name, Role.STEWARD if name == "sam" else Role.ANALYST, None)
            self.accounts.set_password(name, PASSWORD)
            self.people[name] = replace(self.people[name], password=True)
            self.sign_in(name)
            self.create(name, self.people[name].role, None, 1)

    def drop(self, name: str) -> None:
        """The sessions and links of a person are over."""
        for held in (self.sessions, self.links):
            for key in [key for key, each in held.items() if each[0] == name]:
                del held[key]
                self.over.add(key)

    def teardown(self) -> None:
        for accounts in self.processes:
            accounts.close()
        shutil.rmtree(self.folder)

    @property
    def accounts(self) -> Accounts:
        self.turn += 1
        return self.processes[self.turn % 2]

    def done(self, act: Callable[[], object], expected: bool, error: type[Exception] = AccountError) -> bool:
        """Whether it was done, which must be as expected."""
        try:
            act()
        except error:
            assert not expected
            return False
        assert expected
        return True

    def last(self, name: str) -> bool:
        able = [
            each
            for each, human in self.people.items()
            if human.role is Role.STEWARD and human.password and not human.disabled
        ]
        return able == [name]

    @rule(name=NAMES, role=ROLES, scope=SCOPES)
    def add(self, name: str, role: Role, scope: Scope) -> None:
        if self.done(lambda: self.accounts.add(name, role, scope), name not in self.people):
            self.people[name] = Human(role, scope)

    @rule(name=NAMES, role=ROLES, scope=SCOPES)
    def access(self, name: str, role: Role, scope: Scope) -> None:
        allowed = name in self.people and not (role is not Role.STEWARD and self.last(name))
        if self.done(lambda: self.accounts.set_access(name, role, scope), allowed):
            self.people[name] = replace(self.people[name], role=role, scope=scope)

    @rule(name=NAMES)
    def disable(self, name: str) -> None:
        if self.done(lambda: self.accounts.disable(name), name in self.people and not self.last(name)):
            self.people[name] = replace(self.people[name], disabled=True)
            self.drop(name)
            for text, token in self.tokens.items():
                self.tokens[text] = replace(token, revoked=token.revoked or token.owner == name)

    @rule(name=NAMES)
    def enable(self, name: str) -> None:
        if self.done(lambda: self.accounts.enable(name), name in self.people):
            self.people[name] = replace(self.people[name], disabled=False)

    @rule(name=NAMES)
    def invite(self, name: str) -> None:
        with suppress(AccountError):
            secret = self.accounts.invite(name)
            assert not self.people[name].disabled
            for key in [key for key, each in self.links.items() if each[0] == name]:
                self.over.add(key)
                del self.links[key]
            self.links[secret] = name, self.clock.now + 72 * 3600

    @rule(data=st.data())
    def accept(self, data: st.DataObject) -> None:
        if not self.links:
            return
        secret = picked(data, self.links)
        name, expires = self.links[secret]
        if self.done(lambda: self.accounts.accept(secret, PASSWORD), self.clock.now < expires):
            self.people[name] = replace(self.people[name], password=True)
            self.drop(name)

    @rule(name=NAMES)
    def sign_in(self, name: str) -> None:
        human = self.people.get(name, Human(Role.ANALYST, None, disabled=True))
        if human.password and not human.disabled:  # otherwise attempts are used up
            cookie, _ = self.accounts.sign_in(name, PASSWORD, address=HERE)
            self.sessions[cookie] = name, self.clock.now

    @rule(data=st.data())
    def sign_out(self, data: st.DataObject) -> None:
        if self.sessions:
            cookie = picked(data, self.sessions)
            self.accounts.sign_out(cookie)
            del self.sessions[cookie]
            self.over.add(cookie)

    @rule(name=NAMES, role=ROLES, scope=SCOPES, days=st.sampled_from([1, 30]))
    def create(self, name: str, role: Role, scope: Scope, days: int) -> None:
        human = self.people.get(name, Human(Role.ANALYST, None, disabled=True))
        within = human.scope is None or scope is None or scope <= human.scope
        allowed = not human.disabled and within and (role is Role.ANALYST or human.role is Role.STEWARD)

        def act() -> None:
            most = Fraction(1, 2)
            text, _ = self.accounts.create_token(name, "x", role=role, datasets=scope, max_epsilon=most, days=days)
            self.tokens[text] = Ticket(name, role, scope, most, self.clock.now + days * DAY)

        self.done(act, allowed)

    @rule(data=st.data())
    def revoke(self, data: st.DataObject) -> None:
        if self.tokens:
            text = picked(data, self.tokens)
            self.accounts.revoke_token(text.split("_")[1])
            self.tokens[text] = replace(self.tokens[text], revoked=True)

    @rule(data=st.data(), epsilon=st.sampled_from([Fraction(1, 3), Fraction(1, 10), Fraction(0)]), back=st.booleans())
    def hold(self, data: st.DataObject, epsilon: Fraction, back: bool) -> None:
        if not self.tokens:
            return
        text = picked(data, self.tokens)
        token = self.tokens[text]
        live = not token.revoked and self.clock.now < token.expires
        fits = token.spent + epsilon <= token.most
        error = AccountError if not live else BudgetError
        if self.done(lambda: self.accounts.hold(text.split("_")[1], epsilon), live and fits, error):
            if back:
                self.accounts.give_back(text.split("_")[1], epsilon)
            self.tokens[text] = replace(token, spent=token.spent + (0 if back else epsilon))

    @rule(seconds=st.sampled_from([60, 10 * 3600, 11 * 3600, DAY]))
    def wait(self, seconds: int) -> None:
        self.clock.pass_(seconds)
        for cookie, (_, begun) in [*self.sessions.items()]:
            if seconds >= IDLE or self.clock.now >= begun + LONGEST:  # nobody has sent a request meanwhile
                del self.sessions[cookie]
                self.over.add(cookie)

    def check(self, identity: Identity | None, name: str, role: Role, scope: Scope) -> None:
        human = self.people[name]
        assert identity is not None
        assert identity.person.name == name
        assert identity.role is (Role.STEWARD if role is human.role is Role.STEWARD else Role.ANALYST)
        assert identity.datasets == narrowed(human.scope, scope)

    @invariant()
    def everybody_is_who_they_are(self) -> None:
        accounts = self.accounts
        found = {each.name: (each.role, each.datasets, each.disabled, each.has_password) for each in accounts.people()}
        assert found == {
            name: (each.role, each.scope, each.disabled, each.password) for name, each in self.people.items()
        }
        for cookie, (name, _) in self.sessions.items():
            self.check(accounts.session(cookie), name, self.people[name].role, None)
        for each in self.over:
            assert accounts.session(each) is None
            assert accounts.invited(each) is None
        for text, token in self.tokens.items():
            identity = accounts.bearer(text)
            if token.revoked or self.clock.now >= token.expires or self.people[token.owner].disabled:
                assert identity is None
            else:
                self.check(identity, token.owner, token.role, token.scope)
            stored = accounts.token(text.split("_")[1])
            assert stored is not None
            assert stored.spent == token.spent <= token.most
        for secret, (name, expires) in self.links.items():
            person = accounts.invited(secret)
            assert (None if person is None else person.name) == (name if self.clock.now < expires else None)


def test_accounts_follow_a_model_of_a_few_lines(effort: int) -> None:
    run_state_machine_as_test(Model, settings=settings(max_examples=12 * effort, stateful_step_count=30))
