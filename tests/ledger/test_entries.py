"""What is written can be read again: no call leaves a ledger that nobody can open."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from tests.ledger.common import PATIENTS, PEOPLE, ask, cost, pay
from tests.ledger.conftest import Where

from privet.errors import PrivetError
from privet.ledger import Ledger, TableFacts, open_ledger
from privet.system.identity import Identity

Call = Callable[[Ledger], object]


def closing_after(number: Any, field: str = "closes_after") -> Call:
    return lambda ledger: ledger.create(replace(PEOPLE, name="others", **{field: number}))


def attaching(*sources: Any, table: Any = "visits", person: Any = "person") -> Call:
    facts = TableFacts(table, person, sources)
    return lambda ledger: ledger.create(replace(PATIENTS, name="others"), tables=[facts])


def asking(**how: Any) -> Call:
    return lambda ledger: pay(ledger, "r", cost("0.1"), **how)


CALLS: dict[str, Call] = {
    **{f"closes_after={number!r}": closing_after(number) for number in (-1, True, 3.0, "3", None)},
    **{f"closes_for={number!r}": closing_after(number, "closes_for") for number in (-1, False)},
    "an empty source": attaching(Identity("/x"), Identity("")),
    "a source of the wrong type": attaching(Identity("/x", written=True)),
    "a table of the wrong type": attaching(table=5),
    "a person of the wrong type": attaching(person=True),
    "a statement of the wrong type": asking(statement=5),
    "a statement in bytes": asking(statement=b"x"),
    "a digest of the wrong type": asking(asked=7),
    "a question of the wrong type": asking(question=7, statement=object()),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_could_not_be_read_again_is_not_written(where: Where, call: str) -> None:
    with closing(open_ledger(where)) as ledger:
        ledger.create(PEOPLE)
        before = ledger.head()
        with pytest.raises(PrivetError, match=r"can't be recorded in the ledger: .* Nothing was written"):
            CALLS[call](ledger)
        assert ledger.head() == before
        ask(ledger, "next", "42", "0.1")
    with closing(open_ledger(where)) as ledger:
        ledger.verify()
        assert len(list(ledger.export())) == len(ledger.history("people")) == 3
