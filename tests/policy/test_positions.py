"""Where keys stand: every key of every TOML text that tomllib reads, on its line."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.policies import EVERYTHING

from privet.policy import toml
from privet.policy.positions import Place, line_of, positions

TRICKY = '''# [not.a.header]
a = "# no comment" # a comment with "quotes" and [brackets
b.c . "d e".'f.g' = 1
"q\\"uo\\u0074e" = """
x = 1
[no.header]
\\""" still here""""
'single' = \'\'\'
y = 2 \'\'\'\'
long = [ # first
  1, [2,
    3], { k = "v]", l.m = [
  4] },
  "#", # last
]
when = 1979-05-27 07:32:00
inf = -inf

[  t . "u v"  ] # [x]
w = {}
[t."u v".x]
[[list]]
n = 1
[[list]]
n = 2
  [list.sub]
  o = { p = { q = true } }
[[list.more]]
[[list.more]]
r = 1'''


def paths(tree: Any, place: Place = ()) -> Iterator[Place]:
    """Every key and every place in an array."""
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield (*place, key)
        if isinstance(value, dict | list):
            yield from paths(value, (*place, key))


@pytest.mark.parametrize("text", [TRICKY, TRICKY.replace("\n", "\r\n"), EVERYTHING, ""])
def test_every_key_has_a_line(text: str) -> None:
    assert set(positions(text)) == set(paths(tomllib.loads(text)))


def test_lines() -> None:
    lines = positions(TRICKY)
    assert lines["a",] == 2
    assert lines["b", "c", "d e", "f.g"] == 3
    assert lines['q"uote',] == 4
    assert lines["single",] == 8
    assert [lines["long", place] for place in range(4)] == [11, 11, 12, 14]
    assert lines["long", 1, 1] == 12
    assert lines["long", 2, "l", "m", 0] == 13
    assert lines["t", "u v", "w"] == 20
    assert lines["t", "u v", "x"] == 21
    assert lines["list", 0, "n"] == 23
    assert lines["list", 1, "sub", "o", "p", "q"] == 27
    assert lines["list", 1, "more", 1, "r"] == 30
    assert line_of(lines, ("t", "u v", "missing", "keys")) == 19
    assert line_of(lines, ("nowhere",)) == 1


KEYS = st.text(min_size=0, max_size=6)
VALUES = st.recursive(
    st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.text(max_size=12)
    | st.dates()
    | st.datetimes()
    | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=6), st.integers(0, 3))
def test_any_tree(tree: dict[str, Any], gap: int) -> None:
    text = "".join(f"{toml.key(name)} = {toml.value(value)}\n" + "\n" * gap for name, value in tree.items())
    assert tomllib.loads(text) == tree
    lines = positions(text)
    assert set(lines) == set(paths(tree))
    for number, name in enumerate(tree):
        assert {lines[place] for place in lines if place[0] == name} == {1 + number * (1 + gap)}
