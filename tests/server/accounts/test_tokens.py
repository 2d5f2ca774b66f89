"""API tokens: stolen, expired, revoked, of another dataset or role; how many, and what they may spend."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
from tests.server.accounts.common import HERE, IN_A_FILE, Clock, Opener, analyst, everything, steward

from privet.errors import BudgetError, NumberError, UserError
from privet.exact import Exact
from privet.server.accounts import AccountError, Accounts, Role, Throttled
from privet.server.accounts.grants import MOST_DAYS, MOST_TOKENS
from privet.server.accounts.tables import tokens
from privet.server.accounts.throttle import TOKENS

DAY = 24 * 3600


class Careless(Accounts):
    """A broken twin: it compares in one transaction and adds in another."""

    def hold(self, token_id: str, epsilon: Exact) -> None:
        token = self.token(token_id)
        assert token is not None
        if token.max_epsilon is not None and token.spent + epsilon > token.max_epsilon:
            raise BudgetError("too much")
        time.sleep(0.01)
        with self._store.writing() as connection:
            row = connection.execute(tokens.select()).one()
            self._spend(connection, row, Exact(row.spent) + epsilon)


def test_a_token_is_its_owner_with_less(accounts: Accounts, open_accounts: Opener, clock: Clock) -> None:
    steward(accounts)
    text, token = accounts.create_token("sam", "notebook", datasets=["people"], max_epsilon=Exact("0.5"), days=1)
    assert text == f"privet_{token.id}_{text[-64:]}"
    assert (token.name, token.label, token.max_epsilon, token.spent) == ("sam", "notebook", Exact(1, 2), Exact(0))
    assert (token.expires - token.created).total_seconds() == DAY
    clock.pass_(7)
    identity = open_accounts().bearer(text)
    assert identity is not None
    assert (identity.person.role, identity.role, identity.datasets) == (
        Role.STEWARD,
        Role.ANALYST,
        frozenset({"people"}),
    )
    assert (identity.session, identity.csrf) == (None, "")
    (stored,) = accounts.tokens("sam")
    assert stored.last_used is not None
    assert (stored.last_used - token.created).total_seconds() == 7
    assert accounts.token(token.id) == stored
    assert accounts.tokens("nobody") == []


def test_wrong_texts_are_nobody(accounts: Accounts) -> None:
    analyst(accounts)
    (text, token), (other, _) = (accounts.create_token("ana", str(number)) for number in range(2))
    secret = text[-64:]
    wrong = [
        "", "privet", f"privet_{token.id}", f"privet_{token.id}_", secret, f"{text} ", f" {text}", f"{text}\n",
        text[:-1], text.upper(), f"privet_{token.id}_{other[-64:]}", f"{other[:24]}{secret}",
        f"privet_{'0' * 16}_{secret}",
        f"privet_{token.id}_{'0' * 64}", "\ud800", "x" * 100_000, text.replace("privet_", "privet_\u00e9"), "\x00",
        f"Bearer {text}", f"privet_{token.id}_' OR '1'='1",
    ]  # fmt: skip
    assert [each for each in wrong if accounts.bearer(each) is not None] == []
    assert accounts.bearer(text) is not None
    for key in ("", "0" * 16, "\x00", "' OR '1'='1", "\ud800", text):
        assert accounts.token(key) is None
        with pytest.raises(AccountError, match="no such token"):
            accounts.revoke_token(key)


def test_tokens_end_at_once(open_accounts: Opener, clock: Clock) -> None:
    accounts, other = open_accounts(), open_accounts()
    analyst(accounts)
    (short, _), (stolen, token) = (accounts.create_token("ana", str(days), days=days) for days in (1, 30))
    assert other.bearer(stolen) is not None
    assert accounts.revoke_token(token.id).revoked is not None
    assert other.bearer(stolen) is None
    with pytest.raises(AccountError, match="no longer valid"):
        accounts.hold(token.id, Exact(0))
    clock.pass_(DAY - 1)
    assert other.bearer(short) is not None
    clock.pass_(1)
    assert other.bearer(short) is None
    assert accounts.revoke_token(token.id) == accounts.token(token.id), "revoking twice changes nothing"


@IN_A_FILE
def test_a_token_can_not_be_more_than_its_owner(accounts: Accounts) -> None:
    analyst(accounts, datasets=["people", "sales"])
    refused: list[tuple[dict[str, object], type[UserError]]] = [
        ({"role": Role.STEWARD}, AccountError),
        ({"datasets": ["people", "secrets"]}, AccountError),
        ({"datasets": "people"}, AccountError),
        ({"max_epsilon": 0}, NumberError),
        ({"max_epsilon": float("nan")}, NumberError),
        ({"days": 0}, NumberError),
        ({"days": 367}, AccountError),
        ({"days": 1.5}, NumberError),
    ]
    for arguments, kind in refused:
        with pytest.raises(kind):
            accounts.create_token("ana", "notebook", **arguments)  # type: ignore[arg-type]
    for label in ("", "a\nb", "x" * 121):
        with pytest.raises(AccountError, match="printable"):
            accounts.create_token("ana", label)
    with pytest.raises(AccountError, match="nobody"):
        accounts.create_token("bob", "notebook")
    assert accounts.tokens() == []


@IN_A_FILE
def test_a_person_has_a_limited_number_of_tokens(accounts: Accounts, clock: Clock) -> None:
    analyst(accounts)
    for number in range(100):
        accounts.create_token("ana", str(number), days=1)
    with pytest.raises(AccountError, match="Revoke one"):
        accounts.create_token("ana", "one more")
    clock.pass_(DAY)
    accounts.create_token("ana", "one more")


# --- what a token may spend -------------------------------------------------------------------------


def test_holds_add_up_exactly(accounts: Accounts) -> None:
    analyst(accounts)
    _, token = accounts.create_token("ana", "thirds", max_epsilon=Exact(1))
    for _ in range(3):
        accounts.hold(token.id, Exact(1, 3))
    with pytest.raises(BudgetError, match="may spend 1 and has 0 left"):
        accounts.hold(token.id, Exact(1, 10**30))
    accounts.give_back(token.id, Exact(1, 3))
    accounts.hold(token.id, Exact("0.3"))
    accounts.hold(token.id, Exact(0))
    with pytest.raises(NumberError):
        accounts.hold(token.id, Exact(-1))
    with pytest.raises(NumberError):
        accounts.give_back(token.id, Exact(-1))
    stored = accounts.token(token.id)
    assert stored is not None
    assert stored.spent == Exact(2, 3) + Exact("0.3")
    accounts.give_back(token.id, Exact(5))
    (stored,) = accounts.tokens()
    assert stored.spent == 0, "never negative: nobody gains by giving back twice"
    _, free = accounts.create_token("ana", "free")
    accounts.hold(free.id, Exact(1000))


@IN_A_FILE
def test_odd_fractions_do_not_grow_for_ever_and_are_never_forgotten(accounts: Accounts) -> None:
    analyst(accounts)
    _, token = accounts.create_token("ana", "odd", max_epsilon=Exact(1))
    total = Exact(0)
    for number in range(60):
        accounts.hold(token.id, Exact(1, 10**20 + 2 * number + 1))
        total += Exact(1, 10**20 + 2 * number + 1)
    (stored,) = accounts.tokens()
    assert 0 < stored.spent - total < Exact(1, 2**500)
    assert stored.spent.denominator.bit_length() <= 513
    assert len(everything(accounts)) < 5000


def spent_by_threads(accounts: Accounts) -> Fraction:
    analyst(accounts)
    _, token = accounts.create_token("ana", "raced", max_epsilon=Exact(1, 4))

    def hold(_: int) -> int:
        try:
            accounts.hold(token.id, Exact(1, 100))
        except BudgetError:
            return 0
        return 1

    with ThreadPoolExecutor(16) as pool:
        granted = sum(pool.map(hold, range(48)))
    (stored,) = accounts.tokens()
    assert stored.spent == Exact(granted, 100)
    return stored.spent


def test_racing_threads_never_pass_the_limit(open_accounts: Opener) -> None:
    assert spent_by_threads(open_accounts()) == Exact(1, 4)


@IN_A_FILE
def test_a_twin_that_compares_first_passes_the_limit(open_accounts: Opener) -> None:
    assert spent_by_threads(open_accounts(Careless)) > Exact(1, 4)


def test_a_person_has_so_many_tokens_and_makes_new_ones_so_fast(accounts: Accounts, clock: Clock) -> None:
    analyst(accounts)
    made = [accounts.create_token("ana", str(number), days=MOST_DAYS)[1] for number in range(MOST_TOKENS)]
    clock.pass_(TOKENS.burst * TOKENS.seconds)
    with pytest.raises(AccountError, match="has 100 tokens, which is the maximum"):
        accounts.create_token("ana", "one more")
    for token in made:
        accounts.revoke_token(token.id)
    for number in range(TOKENS.burst):  # made and revoked: none is live, and each is a row
        accounts.revoke_token(accounts.create_token("ana", str(number))[1].id)
    with pytest.raises(Throttled) as refused:
        accounts.create_token("ana", "one more")
    assert 0 < refused.value.retry_after <= TOKENS.seconds
    codes = accounts.begin_device("laptop", address=HERE)
    accounts.approve_device(codes.user_code, accounts.begin_session("ana")[1])
    with pytest.raises(Throttled):
        accounts.finish_device(codes.device_code)
    accounts.add("bo")
    accounts.create_token("bo", "of another")
    clock.pass_(TOKENS.seconds)
    accounts.create_token("ana", "later")
