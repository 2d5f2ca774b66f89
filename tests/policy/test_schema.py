"""The JSON Schema of a policy: it accepts what is right, and refuses what it can see to be wrong."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.policy.policies import EVERYTHING, Case, base, wrong
from tests.policy.schemas import fits, plain

from privet.policy import parse, schema

GOLDEN = Path(__file__).with_name("schema.json")
CASES = [case for case in wrong() if "this is not valid TOML" not in case.said]


def accepts(text: str) -> bool:
    made = schema()
    return fits(plain(tomllib.loads(text)), made, made)


@pytest.mark.parametrize("text", [base(), EVERYTHING], ids=["small", "everything"])
def test_what_is_right(text: str) -> None:
    parse(text)
    assert accepts(text)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_what_is_wrong(case: Case) -> None:
    assert accepts(case.text) is case.blind


def test_it_is_stable() -> None:
    """Renew it, after a look at the change: python -m tests.policy.test_schema."""
    assert schema() == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_every_field_is_explained() -> None:
    fields = list(_fields(schema()))
    assert len(fields) > 40
    for name, field in fields:
        assert field["title"] == name
        assert field["description"].endswith(".")
    for name, part in schema()["$defs"].items():
        assert part["description"].endswith("."), name


def _fields(tree: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(tree, dict):
        yield from tree.get("properties", {}).items()
        for part in tree.values():
            yield from _fields(part)


def test_everything_is_in_the_example() -> None:
    """The valid policy of these tests has every key that the schema knows."""
    written = json.dumps(plain(tomllib.loads(EVERYTHING)))
    for name, _ in _fields(schema()):
        assert f'"{name}"' in written


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
