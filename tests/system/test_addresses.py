"""What is an address, and what of it may be shown."""

from __future__ import annotations

import string
import time
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.errors import UserError
from privet.system.addresses import is_address, is_postgres, masked, shown, without_password

MARK = "zqMARKqz"

schemes = st.sampled_from(
    [
        "postgresql",
        "postgres",
        "PostgreSQL",
        "postgresql+psycopg",
        "postgresql+asyncpg",
        "mysql",
        "jdbc:mysql",
        "x-y.z+1",
    ]
)
names = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=6)
odd = st.text(string.ascii_letters + string.digits + "@/:#?!$&*()+,;=%[]{}<>|~^`\"'\\ .-_é日", max_size=8)
encoded = odd.map(lambda text: quote(text, safe=""))
words = st.sampled_from(
    ["", "error: ", "can't connect to ", "tried '", '(psycopg.OperationalError) "', "at 12:30 <", "\n"]
)
secret_keys = st.sampled_from(
    [
        "password",
        "PASSWORD",
        "sslpassword",
        "passfile",
        "service",
        "options",
        "Pwd",
        "token",
        "%70assword",
        "x",
        "пароль",
    ]
)
public_parts = st.sampled_from(["host=h", "port=5432", "dbname=b", "user=me", "sslmode=require", "connect_timeout=2"])


@st.composite
def secrets(draw: st.DrawFn, around: st.SearchStrategy[str]) -> str:
    return draw(around) + draw(st.sampled_from([MARK, f"{MARK[:4]}%{ord(MARK[4]):02X}{MARK[5:]}"])) + draw(around)


@st.composite
def with_a_user(draw: st.DrawFn) -> str:
    """A secret before the last @: whatever is in it."""
    slashes = draw(st.sampled_from(["//", "/", "", "///"])) if draw(st.booleans()) else "//"
    scheme = draw(schemes) if slashes != "" else "postgresql"
    end = draw(st.sampled_from(["", "/base", ":5432/base", "/base?sslmode=require", "?host=/run&sslmode=x"]))
    return f"{scheme}:{slashes}{draw(names)}:{draw(secrets(odd))}@{draw(names)}{end}"


@st.composite
def with_a_query(draw: st.DrawFn) -> str:
    before = draw(st.lists(public_parts, max_size=2))
    after = draw(st.lists(public_parts, max_size=2))
    secret = f"{draw(secret_keys)}={draw(secrets(encoded))}"
    return f"{draw(schemes)}://{draw(names)}/base?{'&'.join([*before, secret, *after])}"


@st.composite
def with_keys(draw: st.DrawFn) -> str:
    """As libpq takes it; in quotes, anything may follow."""
    value = draw(secrets(odd)).replace("\\", "\\\\").replace("'", "\\'")
    pair = f"{draw(secret_keys)}{draw(st.sampled_from(['=', ' = ', '= ']))}'{value}'"
    plain = f"{draw(secret_keys)}={draw(secrets(names))}"
    return " ".join([*draw(st.lists(public_parts, max_size=2)), draw(st.sampled_from([pair, plain])), "host=x"])


addresses = with_a_user() | with_a_query() | with_keys()


def hides(text: str) -> None:
    assert MARK.lower() not in text.lower(), text
    assert MARK.lower() not in unquote(text).lower(), text


@settings(max_examples=200)
@given(addresses, words, words)
def test_no_secret_is_shown(address: str, before: str, after: str) -> None:
    hides(masked(address))
    hides(masked(f"{before}{address}{after}"))
    hides(masked(repr(f"{before}{address}")))


@settings(max_examples=200)
@given(st.lists(addresses, min_size=2, max_size=3), st.sampled_from([" ", ", ", " and then ", "\n", "' '"]))
def test_nor_one_of_several(several: list[str], between: str) -> None:
    hides(masked(between.join(several)))


@settings(max_examples=200)
@given(addresses | st.text() | odd)
def test_masking_twice_is_masking_once(text: str) -> None:
    assert masked(masked(text)) == masked(text)


@settings(max_examples=300)
@given(with_a_user() | with_a_query())
def test_no_password_is_written(address: str) -> None:
    address = f"postgresql://{address.partition('://')[2]}"
    secret = not any(f"{name}=" in address for name in ("passfile", "service", "options"))
    try:
        kept = without_password(address)
    except UserError as error:
        hides(str(error))
    else:
        if secret:
            hides(kept)
        assert without_password(kept) == kept


@pytest.mark.parametrize(
    ("address", "seen"),
    [
        ("postgresql://me:hush@host:5432/base", "postgresql://***@host:5432/base"),
        ("postgresql://me@host/base?sslmode=require", "postgresql://***@host/base?sslmode=require"),
        ("postgresql://host/base?password=hush&sslmode=require", "postgresql://host/base?***&sslmode=require"),
        ("postgresql://me:hush@[::1]:5432,b:1/base", "postgresql://***@[::1]:5432,b:1/base"),
        ("postgresql://me:hush", "postgresql://***"),
        ("postgresql:me:hush", "postgresql:***"),
        ("me:hush@host/base", "***@host/base"),
        ("host=h port=1 password=hush", "host=h port=1 ***"),
        ('connection to server at "127.0.0.1", port 1 failed: Connection refused', None),
        ('FATAL:  password authentication failed for user "me"', None),
        ("disk I/O error", None),
        ("[Errno 28] No space left on device: '/home/me@work/x'", None),
        ("", None),
    ],
)
def test_what_is_useful_stays(address: str, seen: str | None) -> None:
    assert masked(address) == (address if seen is None else seen)


def test_known_secrets_are_hidden_wherever_they_stand() -> None:
    assert masked('definition of service "hush" not found', ["hush", ""]) == 'definition of service "***" not found'


@pytest.mark.parametrize(
    "text", ["people.ledger", "~/x/people.ledger", "year=2024/a&b.ledger", "C:\\x\\me@home", "a?b"]
)
def test_files_are_shown_as_they_are(text: str) -> None:
    assert not is_address(text)
    assert shown(text) == text


def test_postgres_however_it_is_written() -> None:
    for text in ("postgresql://h/b", " postgres://h/b", "PostgreSQL+Psycopg://h/b"):
        assert is_postgres(text)
    for text in ("postgresql:/h/b", "postgresql+asyncpg://h/b", "mysql://h/b", "people.ledger", "x postgresql://h"):
        assert not is_postgres(text)


SIZE = 200_000
"""A regex that takes quadratic time takes minutes for a text of this length."""


@pytest.mark.parametrize(
    "part",
    [
        "a",
        "@",
        ":",
        "=",
        "a=",
        "host=",
        "&",
        "?a",
        "x:/",
        "postgres:",
        "postgresql://a:b@",
        "[",
        "password",
        "'",
        " ",
        "a,",
    ],
)
def test_long_texts_take_no_time(part: str) -> None:
    for text in (part * (SIZE // len(part)), f"x://{part * (SIZE // len(part))}:y", f"{part * (SIZE // 10)}@"):
        start = time.process_time()
        masked(text)
        assert time.process_time() - start < 5
