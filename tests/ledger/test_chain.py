"""Entries as text, the chain over them, receipts, exports; and what a forger can't do who knows how to hash."""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from typing import Any, cast, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.common import KINDS, PATIENTS, PEOPLE, TABLE_KINDS, cost, furnish, furnish_tables, opened, pay

from privet.codec import canonical
from privet.errors import LedgerError, UserError
from privet.ledger import Dataset, Entry, Ration, Receipt, TableFacts, Totals, memory_ledger, verify_export
from privet.ledger.debits import serves
from privet.ledger.history import chain
from privet.ledger.history.entries import Kind
from privet.ledger.history.state import LedgerState
from privet.privacy import events
from privet.privacy.accounting import ACCOUNTANTS, ApproxAccountant, MeterAccountant, PureAccountant
from privet.privacy.accounting.meters import Readings
from privet.privacy.adjacency import Adjacency
from privet.privacy.events import Composed, Free, LaplaceNoise, PrivacyEvent, Repeated, Stated
from privet.privacy.guarantees import ApproxDP, Budget, PureDP
from privet.privacy.moves import L1Move
from privet.system.identity import Identity

# --- entries as text ------------------------------------------------------------------------------

rationals = st.fractions(0, 10**9) | st.builds(Fraction, st.integers(0, 2**300), st.integers(1, 2**300))
shares = st.fractions(0, 1).filter(lambda share: share < 1)
pure = rationals.map(lambda epsilon: PureDP(epsilon) if epsilon else PureDP.ZERO)
approx = st.builds(ApproxDP, rationals, shares)
readings = st.builds(
    Readings, st.none() | rationals, rationals, st.tuples(st.none() | rationals, st.none() | rationals)
)
leaf_events = st.one_of(
    st.just(Free()),
    st.builds(
        LaplaceNoise,
        move=st.builds(lambda l1, blocks: L1Move(l1, blocks=blocks), st.integers(0, 2**70), st.integers(1, 9)),
        scale=rationals.filter(bool),
    ),
    st.builds(Stated, epsilon=rationals, delta=shares),
)
some_events: st.SearchStrategy[PrivacyEvent] = st.recursive(
    leaf_events,
    lambda inner: st.builds(Composed, st.lists(inner, max_size=3)) | st.builds(Repeated, inner, st.integers(0, 9)),
    max_leaves=5,
)

identities = st.builds(Identity, st.text(min_size=1), st.text(), st.text(), st.integers(0, 2**62), st.text())
table_facts = st.builds(TableFacts, st.text(), st.text(), st.lists(identities, max_size=3).map(tuple))


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    """Any entry that can be made; facts stand in the first one, and repeat its dataset and its budget."""
    kind = draw(st.sampled_from(cast(tuple[Kind, ...], get_args(Kind))))
    name = draw(st.sampled_from(["pure", "approx", "meters"]))
    budgets: st.SearchStrategy[Budget] = pure if name == "pure" else approx
    prices: st.SearchStrategy[Any] = readings if name == "meters" else budgets
    maybe: st.SearchStrategy[Budget | None] = st.none() | budgets
    budget = draw(budgets)
    accountant = MeterAccountant((3, 20), (Fraction(1, 4), Fraction(1, 2))) if name == "meters" else ACCOUNTANTS[name]
    totals = Totals(accountant, budget, draw(prices), draw(st.integers(0, 9)), draw(maybe))
    dataset = draw(st.text())
    facts = None
    if kind == "created":
        protect, adjacency = draw(st.sampled_from(["row", "person"])), draw(st.sampled_from(Adjacency))
        closes = draw(st.integers(0, 9)), draw(st.integers(0, 9))
        facts = Dataset(dataset, protect, adjacency, totals.budget, name, *closes)  # type: ignore[arg-type]
    return Entry(
        number=draw(st.integers(0, 2**62)),
        dataset=dataset,
        kind=kind,
        time=draw(st.text()),
        totals=totals,
        analyst=draw(st.text()),
        ration=draw(st.none() | st.builds(Ration, prices, maybe, st.integers(0, 9))),
        request_id=draw(st.text()),
        asked=draw(st.text()),
        question=draw(st.text()),
        statement=draw(st.text()),
        version=draw(st.text()),
        events=tuple(draw(st.lists(some_events, max_size=3))) if kind == "reserved" else (),
        cost=draw(st.none() | prices),
        refers=draw(st.none() | st.integers(0, 2**62)),
        answer=draw(st.text()),
        note=draw(st.text()),
        by=draw(st.text()),
        facts=facts,
        salt=draw(st.text()),
        table=draw(st.none() | table_facts),
        to=draw(st.text()),
        hash=draw(st.text()),
    )


@given(entries())
@settings(max_examples=100)
def test_an_entry_is_read_back(entry: Entry) -> None:
    text = chain.write(entry)
    assert chain.read(text, entry.hash) == entry
    assert text.isascii()
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert "hash" not in json.loads(text)


@given(entries(), entries())
@settings(max_examples=50)
def test_entries_that_differ_have_different_texts(one: Entry, two: Entry) -> None:
    same = chain.write(one) == chain.write(two)
    assert same == (chain.read(chain.write(one)) == chain.read(chain.write(two)))


def test_the_text_of_an_entry_never_changes() -> None:
    """Ledgers are kept for years: these bytes, and their hash, are what they are."""
    time = "2026-01-01T00:00:00+00:00"
    first = Entry(
        number=6,
        dataset="people",
        kind="created",
        time=time,
        totals=Totals(PureAccountant(), PureDP(1), PureDP.ZERO),
        facts=Dataset("people", "person", Adjacency.ADD_REMOVE, PureDP(1)),
        salt="0f" * 16,
    )
    assert chain.write(first) == (
        '{"dataset":"people","facts":{"adjacency":"add/remove","closes_after":10,"closes_for":3,'
        '"protect":"person"},"kind":"created","number":6,"salt":"0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f",'
        '"time":"2026-01-01T00:00:00+00:00","totals":{"accountant":"pure",'
        '"budget":{"epsilon":"1/1","kind":"pure"},"failures":0,"spent":"0/1"}}'
    )
    table = TableFacts("visits", "id", (Identity("/d/v.csv", inode="1:2", written=3, table="a.b"), Identity("/e")))
    totals = Totals(PureAccountant(), PureDP(1), PureDP.ZERO)
    second = Entry(7, "people", "allowed", time, totals, note="why", table=table, to="others")
    assert chain.write(second) == (
        '{"dataset":"people","kind":"allowed","note":"why","number":7,"table":{"name":"visits","person":"id",'
        '"sources":[{"inode":"1:2","path":"/d/v.csv","table":"a.b","written":3},{"path":"/e"}]},'
        '"time":"2026-01-01T00:00:00+00:00","to":"others","totals":{"accountant":"pure",'
        '"budget":{"epsilon":"1/1","kind":"pure"},"failures":0,"spent":"0/1"}}'
    )
    third = Entry(
        number=8,
        dataset="people",
        kind="reserved",
        time=time,
        totals=Totals(ApproxAccountant(), ApproxDP(1, "1e-6"), ApproxDP("1/3", 0), 2, ApproxDP("0.5", 0)),
        analyst="änn",
        ration=Ration(ApproxDP("1/3", 0), ApproxDP("0.5", "1e-9"), 1),
        request_id="r",
        statement="SELECT 1",
        events=(LaplaceNoise(move=L1Move(1), scale=3),),
        cost=ApproxDP("1/3", 0),
    )
    assert chain.write(third) == (
        '{"analyst":"\\u00e4nn","cost":{"delta":"0/1","epsilon":"1/3"},"dataset":"people",'
        '"events":[{"kind":"laplace","move":{"blocks":1,"l1":1},"scale":"3/1"}],"kind":"reserved","number":8,'
        '"ration":{"cap":{"delta":"1/1000000000","epsilon":"1/2","kind":"approx"},"failures":1,'
        '"spent":{"delta":"0/1","epsilon":"1/3"}},"request_id":"r","statement":"SELECT 1",'
        '"time":"2026-01-01T00:00:00+00:00",'
        '"totals":{"accountant":"approx","budget":{"delta":"1/1000000","epsilon":"1/1","kind":"approx"},"failures":2,'
        '"per_query":{"delta":"0/1","epsilon":"1/2","kind":"approx"},"spent":{"delta":"0/1","epsilon":"1/3"}}}'
    )
    text = chain.write(third).encode()
    expected = hashlib.sha256(b"0" * 64 + b"\npeople\n" + hashlib.sha256(text).hexdigest().encode()).hexdigest()
    assert (
        chain.link(chain.GENESIS, third.dataset, chain.digest(chain.write(third)))
        == expected
        == ("4547384c38070427a01169991ee608f89552bac0cacfeba396f99915269cf6ca")
    )


def epsilon(text: str) -> dict[str, str]:
    """A pure budget, as entries have it."""
    return {"kind": "pure", "epsilon": text}


SOME = {"kind": "approx", "epsilon": "1/2", "delta": "1/100"}
TOTALS = {"accountant": "pure", "budget": epsilon("1/1"), "spent": "0/1", "failures": 0}
PLAIN: dict[str, Any] = {
    "number": 1,
    "dataset": "d",
    "kind": "failed",
    "time": "t",
    "totals": TOTALS,
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"kind":"reserved"}',
        "[" * 100_000,
        *(
            canonical({**PLAIN, **changes})
            for changes in cast(
                tuple[dict[str, Any], ...],
                (
                    {"kind": "lost"},
                    {"kind": []},
                    {"more": 1},
                    {"number": -1},
                    {"number": 1.0},
                    {"number": True},
                    {"events": 5},
                    {"refers": "1"},
                    {"totals": []},
                    {"totals": {name: value for name, value in TOTALS.items() if name != "failures"}},
                    {"totals": {**TOTALS, "accountant": "generous"}},
                    {"totals": {**TOTALS, "accountant": []}},
                    {"totals": {**TOTALS, "budget": epsilon("1/0")}},
                    {"totals": {**TOTALS, "budget": epsilon("-1/1")}},
                    {"totals": {**TOTALS, "budget": epsilon("2/2")}},
                    {"totals": {**TOTALS, "budget": epsilon("NaN/1")}},
                    {"totals": {**TOTALS, "budget": {"kind": "pure"}}},
                    {"totals": {**TOTALS, "budget": {**SOME, "kind": "pure"}}},
                    {"totals": {**TOTALS, "budget": {**SOME, "delta": "2/1"}}},
                    {"totals": {**TOTALS, "budget": 1}},
                    {"totals": {**TOTALS, "spent": "-1/1"}},
                    {"totals": {**TOTALS, "spent": "2/4"}},
                    {"totals": {**TOTALS, "spent": 0}},
                    {"totals": {**TOTALS, "failures": -1}},
                    {"ration": {"spent": "0/1"}},
                    {"ration": {"spent": "0/1", "failures": -1}},
                    {"table": {}},
                    {"table": {"name": "t", "person": "id"}},
                    {"table": {"name": "t", "person": "id", "sources": [], "more": 1}},
                    {"table": {"name": "t", "person": 5, "sources": []}},
                    {"table": {"name": "t", "person": "id", "sources": {}}},
                    {"table": {"name": "t", "person": "id", "sources": [5]}},
                    {"table": {"name": "t", "person": "id", "sources": [{"inode": "1:2"}]}},
                    {"table": {"name": "t", "person": "id", "sources": [{"path": "/x", "size": 5}]}},
                    {"table": {"name": "t", "person": "id", "sources": [{"path": "/x", "written": "5"}]}},
                ),
            )
        ),
    ],
)
def test_other_texts_stand_for_no_entry(text: str) -> None:
    assert chain.read(canonical(PLAIN)).kind == "failed"
    with pytest.raises(LedgerError, match="it was tampered with"):
        chain.read(text)


@given(st.text(), st.text(), st.text(), st.text())
def test_a_link_tells_texts_and_what_came_before_apart(one: str, two: str, before: str, other: str) -> None:
    """Earlier hashes have a fixed length, so no text can be moved across the boundary."""
    first, second = chain.digest(before), chain.digest(other)
    same = chain.link(first, "people", chain.digest(one)) == chain.link(second, "people", chain.digest(two))
    assert same == ((first, one) == (second, two))


# --- a history with an entry of every kind --------------------------------------------------------


def _history() -> list[dict[str, Any]]:
    with closing(memory_ledger()) as ledger:
        furnish(ledger)
        furnish_tables(ledger)
        ledger.administer(["patients"], "cleo may no longer ask", by="dora")
        return [json.loads(json.loads(line)["entry"]) for line in ledger.export()]


HISTORY = _history()


def named(text: str) -> Any:
    """The dataset of an entry, whatever stands there."""
    try:
        return json.loads(text)["dataset"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return "people"


def hashed(trees: Iterable[Any], told: Callable[[Any], bool] = lambda tree: True) -> list[str]:
    """An export whose hashes are right, whatever the entries say; some of them may be left out."""
    lines, found = [], chain.GENESIS
    for tree in trees:
        text = tree if isinstance(tree, str) else canonical(tree)
        name = named(text)
        found = chain.link(found, name, chain.digest(text))
        shown = {"entry": text} if told(tree) else {"dataset": name, "digest": chain.digest(text)}
        lines.append(json.dumps({**shown, "hash": found}))
    return lines


def forged(number: int, changes: dict[str, Any]) -> list[dict[str, Any]]:
    """The history up to an entry, and that one changed; a path is written with dots, and None takes a field away."""
    trees = copy.deepcopy(HISTORY[:number])
    for path, value in changes.items():
        *way, last = path.split(".")
        place = trees[-1]
        for step in way:
            place = place[step]
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return trees


def test_the_honest_history_holds() -> None:
    assert [tree["kind"] for tree in HISTORY] == [*KINDS, *TABLE_KINDS, "administered"]
    assert {tree["kind"] for tree in HISTORY} == {*get_args(Kind)}, "every kind of entry"
    assert [tree["dataset"] for tree in HISTORY] == ["people"] * 12 + ["patients"] * 9
    for number in range(1, len(HISTORY) + 1):
        assert verify_export(hashed(HISTORY[:number])).head.number == number


def laplace(epsilon: str) -> list[Any]:
    return [json.loads(events.to_json(cost(epsilon)))]


def debit(epsilon: str, spent: str, mine: str, **more: Any) -> dict[str, Any]:
    """A debit whose price and totals all fit together."""
    money = {"cost": epsilon, "totals.spent": spent, "ration.spent": mine}
    return {"events": laplace(epsilon), **money, **more}


ANN = {"spent": "1/4", "cap": epsilon("1/2"), "failures": 0}
"""What holds for ann after entry 5."""


def aside(kind: str, **more: Any) -> dict[str, Any]:
    """An entry of people, the twelfth, that is of another kind and changes no cap."""
    return {"kind": kind, "totals.budget": epsilon("1/1"), **more}


def table(person: str = "", *sources: Any, name: str = "t") -> dict[str, Any]:
    return {"name": name, "person": person, "sources": [*sources]}


FORGERIES: dict[str, tuple[int, dict[str, Any], str]] = {
    "no beginning": (1, {"kind": "declared", "version": "1", "facts": None}, "does not create it"),
    "no facts": (1, {"facts": None}, "does not create it"),
    "spent at the beginning": (1, {"totals.spent": "1/10"}, "totals do not follow"),
    "failures at the beginning": (1, {"totals.failures": 1}, "totals do not follow"),
    "a cap at the beginning": (1, {"totals.per_query": epsilon("1/10")}, "totals do not follow"),
    "an unknown accountant": (1, {"totals.accountant": "generous"}, "no accountant"),
    "an accountant of another kind": (
        1,
        {"totals.accountant": "approx", "totals.spent": {"epsilon": "0/1", "delta": "0/1"}},
        "accountant needs",
    ),
    "an accountant that changes": (5, {"totals.accountant": "approx"}, "totals do not follow"),
    "an unknown unit": (1, {"facts.protect": "nobody"}, "neither a row nor a person"),
    "no salt": (1, {"salt": None}, "its salt is not 32"),
    "a short salt": (13, {"salt": "0f" * 15}, "its salt is not 32"),
    "a long salt": (1, {"salt": "0f" * 17}, "its salt is not 32"),
    "a salt in capital letters": (1, {"salt": "0F" * 16}, "its salt is not 32"),
    "a salt with blanks": (1, {"salt": "0f " * 10 + "0f"}, "its salt is not 32"),
    "a salt of other letters": (1, {"salt": "0g" * 16}, "its salt is not 32"),
    "it never closes": (1, {"facts.closes_for": None}, ""),
    "it closes after less than nothing": (1, {"facts.closes_after": -1}, ""),
    "facts that say more": (1, {"facts.gift": "1/1"}, ""),
    "created twice": (2, HISTORY[0] | {"number": 2, "version": None}, "kind is not allowed here"),
    "another number": (5, {"number": 6}, "is at position 5 but has number 6"),
    "another dataset": (5, {"dataset": "visits"}, "does not create it"),
    "an unknown kind": (5, {"kind": "refunded"}, "fields are not those of an entry"),
    "an unknown field": (5, {"gift": "1/1"}, "fields are not those of an entry"),
    "declared twice": (7, {"kind": "declared", "version": "1", "refers": None, "request_id": None}, "declared before"),
    # prices and totals
    "a lower price": (5, {"cost": "1/8", "totals.spent": "1/8", "ration.spent": "1/8"}, "charged 1/8.*cost 1/4"),
    "a price of nothing": (5, {"cost": "0/1", "totals.spent": "0/1", "ration.spent": "0/1"}, "cost 1/4"),
    "a higher price": (5, {"cost": "1/3", "totals.spent": "1/3", "ration.spent": "1/3"}, "cost 1/4"),
    "no price": (5, {"cost": None}, ""),
    "no events": (5, {"events": None}, ""),
    "other events": (5, {"events": laplace("1/3")}, "cost 1/3"),
    "events that can't be priced": (5, {"events": [{"kind": "stated", "epsilon": "1/4", "delta": "1/9"}]}, "pure"),
    "an unknown event": (5, {"events": [{"kind": "gift"}]}, "must be one of"),
    "a price of another kind": (5, {"cost": {"epsilon": "1/4", "delta": "0/1"}}, "cost 1/4"),
    "less is spent than before": (8, {"totals.spent": "1/5"}, "totals do not follow"),
    "more is spent than before": (8, {"totals.spent": "1/2"}, "totals do not follow"),
    "the analyst's part is forgotten": (11, {"ration.spent": "1/10"}, "totals do not follow"),
    "the analyst's cap is forgotten": (5, {"ration.cap": None}, "totals do not follow"),
    "the analyst's cap grows by itself": (5, {"ration.cap": epsilon("3/4")}, "totals do not follow"),
    "a debit without a ration": (5, {"ration": None}, "totals do not follow"),
    "a debit without an analyst": (5, {"analyst": None, "ration": None}, "does not name the analyst"),
    "a debit on another's account": (11, {"analyst": "bob"}, "totals do not follow"),
    "the budget grows by itself": (5, {"totals.budget": epsilon("3/1")}, "totals do not follow"),
    "the cap of questions goes by itself": (5, {"totals.per_query": None}, "totals do not follow"),
    "a refund by an answer": (6, {"totals.spent": "0/1"}, "totals do not follow"),
    "a refund by a failure": (9, {"totals.spent": "1/4"}, "totals do not follow"),
    "a refund by the steward": (10, {"totals.spent": "0/1"}, "totals do not follow"),
    "a refund by a cap": (12, {"totals.spent": "0/1"}, "totals do not follow"),
    "a refund of an analyst by a cap": (3, {"ration.spent": "1/10"}, "totals do not follow"),
    "a refund by a table": (14, {"totals.budget": epsilon("2/1")}, "totals do not follow"),
    "a refund by a column": (16, {"totals.budget": epsilon("2/1")}, "totals do not follow"),
    "a refund by a permission": (18, {"totals.budget": epsilon("2/1")}, "totals do not follow"),
    "a refund by an interruption": (20, {"totals.spent": "0/1"}, "totals do not follow"),
    # caps
    "over the cap of a question": (5, debit("9/20", "9/20", "9/20"), "more than one question may"),
    "over the analyst's cap": (11, debit("3/10", "3/4", "11/20"), "more than was left for 'ann'"),
    "over the budget": (11, debit("3/5", "21/20", "4/5", analyst="bob"), "more than was left of the budget"),
    "a budget of another kind": (12, {"totals.budget": SOME}, "accountant needs"),
    "a cap of another kind": (3, {"ration.cap": SOME}, "accountant needs"),
    "a cap of questions of another kind": (4, {"totals.per_query": SOME}, "accountant needs"),
    "a cap without a reason": (12, {"note": None}, ""),
    "a cap of an analyst without a ration": (3, {"ration": None}, "totals do not follow"),
    # how questions end
    "a request id used twice": (11, {"request_id": "r1"}, "request id was used before"),
    "a request id that was served": (8, {"request_id": "r2"}, "request id was used before"),
    "a debit without a request id": (8, {"request_id": None}, ""),
    "served under a used id": (7, {"request_id": "r1", "analyst": "ann", "ration": ANN}, "request id was used before"),
    "served from nothing": (7, {"refers": 4}, "serves an answer that does not exist"),
    "served without saying what": (7, {"refers": None}, ""),
    "served from what failed": (
        11,
        HISTORY[6] | {"number": 11, "refers": 8, "events": None, "cost": None},
        "does not exist",
    ),
    "served from another dataset": (
        19,
        {"kind": "served", "refers": 5, "totals.spent": "0/1", "ration.spent": "0/1", "events": None, "cost": None},
        "serves an answer that does not exist",
    ),
    "settled twice": (9, {"refers": 5}, ""),
    "settled a debit of another dataset": (20, {"refers": 11}, "settles entry 11, which is not reserved"),
    "settled from another dataset": (20, {"dataset": "people", "totals": HISTORY[11]["totals"]}, "not reserved"),
    "settled what is no debit": (6, {"refers": 4}, ""),
    "settled what is to come": (6, {"refers": 8}, ""),
    "settled nothing": (6, {"refers": None}, ""),
    "an answer without its hash": (6, {"answer": None}, ""),
    "a failure that does not count": (9, {"totals.failures": 0}, "totals do not follow"),
    "a failure that does not count for the analyst": (9, {"ration.failures": 0}, "totals do not follow"),
    "a failure of nobody": (9, {"analyst": None, "ration": None}, "analyst does not match"),
    "a failure of somebody else": (9, {"analyst": "ann", "ration": ANN | {"failures": 1}}, "analyst does not match"),
    "a failure without a ration": (9, {"ration": None}, "totals do not follow"),
    "an answer of somebody": (6, {"analyst": "ann", "ration": ANN}, "analyst does not match"),
    "an answer with a ration": (6, {"ration": ANN}, "totals do not follow"),
    "an interruption of somebody": (20, {"analyst": "cleo", "ration": HISTORY[18]["ration"]}, "analyst does not match"),
    "an interruption that counts as a failure": (20, {"totals.failures": 1}, "totals do not follow"),
    "an interruption in place of a failure": (9, {"kind": "interrupted"}, "analyst does not match"),
    "an interruption of what is no debit": (9, {"kind": "interrupted", "totals.failures": 0, "refers": 4}, ""),
    "reopened without a reason": (10, {"note": None}, ""),
    "reopened and still closed": (10, {"totals.failures": 1}, "totals do not follow"),
    # tables, and whose their rows are
    "a table of persons where rows are protected": (
        12,
        aside("attached", note=None, table=table("id")),
        "privacy unit differs",
    ),
    "a table of rows where persons are protected": (14, {"table.person": ""}, "privacy unit differs"),
    "another column": (17, {"table.person": "person"}, "differs from the recorded one"),
    "another column of the other table": (17, {"table.name": "drugs"}, "differs from the recorded one"),
    "attached without a table": (14, {"table": None}, ""),
    "a table without a name": (14, {"table.name": None}, ""),
    "a table that says more": (14, {"table.rows": 5}, ""),
    "a source that says more": (14, {"table.sources": [{"path": "/x", "size": 5}]}, ""),
    "a source that is nowhere": (14, {"table.sources": [{"path": ""}]}, ""),
    "protected where rows are": (12, aside("protected", table=table("id")), "does not name a valid column"),
    "protected without a column": (16, {"table.person": ""}, "does not name a valid column"),
    "protected with a source": (16, {"table.sources": [{"path": "/x"}]}, "does not name a valid column"),
    "protected without a reason": (16, {"note": None}, ""),
    "protected without a table": (16, {"table": None}, ""),
    "allowed without a reason": (18, {"note": None}, ""),
    "allowed to nobody": (18, {"to": None}, ""),
    "administered by nobody": (21, {"by": None}, ""),
    "administered without a word": (21, {"note": None}, ""),
    "administered and spent": (21, {"totals.spent": "0/1"}, "totals do not follow"),
    "allowed without saying what": (18, {"table": None}, ""),
    "allowed what is no source": (18, {"table.sources": ["/x"]}, ""),
    # texts that stand for something else, or for nothing
    "a number that is no integer": (5, {"number": 5.0}, ""),
    "a number that is a truth": (8, {"totals.failures": False}, ""),
    "a reference that is no integer": (6, {"refers": 5.0}, ""),
    "a dataset that is no text": (5, {"dataset": 1}, ""),
    "a time that is no text": (5, {"time": 5}, ""),
    "a note that is no text": (12, {"note": ["new consent"]}, ""),
    "a question that is no text": (5, {"question": 5}, ""),
    "an analyst that is no text": (5, {"analyst": ["ann"]}, ""),
    "totals that are none": (5, {"totals": "1/1"}, ""),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_unlawful_entries_are_refused_though_every_hash_is_right(name: str) -> None:
    number, changes, why = FORGERIES[name]
    trees = forged(number, changes)
    with pytest.raises(LedgerError, match=f"^(entry {number} of the ledger is invalid: .*{why}|line {number} )"):
        verify_export(hashed(trees))


def test_what_belongs_to_the_analyst_is_no_offence() -> None:
    """Request ids are each analyst's own: nobody learns that another one used it."""
    trees = forged(8, {"request_id": "r1"})
    assert (trees[4]["analyst"], trees[7]["analyst"]) == ("ann", "bob")
    assert verify_export(hashed(trees)).head.number == 8


def test_another_column_needs_the_steward() -> None:
    """Without the entry that says so, the next one is unlawful."""
    trees = copy.deepcopy([*HISTORY[:15], HISTORY[16]])
    trees[15]["number"] = 16
    with pytest.raises(LedgerError, match=r"^entry 16 of the ledger .* the column that identifies people differs"):
        verify_export(hashed(trees))
    before = copy.deepcopy([*HISTORY[:12], HISTORY[12], HISTORY[15]])  # said before the table is there
    before[13]["number"] = 14
    for number, tree in enumerate(copy.deepcopy([HISTORY[16], HISTORY[13]]), 15):
        before.append(tree | {"number": number})
    assert verify_export(hashed(before[:15])).head.number == 15
    with pytest.raises(LedgerError, match=r"^entry 16 of the ledger .* the column that identifies people differs"):
        verify_export(hashed(before))


@pytest.mark.parametrize(
    ("dataset", "tables"),
    [
        (PEOPLE, [TableFacts("visits", "id")]),
        (PATIENTS, [TableFacts("visits")]),
        (PATIENTS, [TableFacts("visits", "id"), TableFacts("visits", "number")]),
    ],
)
def test_tables_that_would_be_unlawful_are_not_written(dataset: Dataset, tables: list[TableFacts]) -> None:
    """They would end the ledger for good."""
    with closing(memory_ledger()) as ledger:
        for known in (0, 1):
            with pytest.raises(UserError, match=f"'{dataset.name}'"):
                ledger.create(dataset, tables=tables)
            assert ledger.verify().head.number == known
            ledger.create(dataset)


def failing() -> list[dict[str, Any]]:
    """Three of ann's questions fail (entries 5, 6, 7), and then ann (8) and bob (9) ask."""
    with closing(memory_ledger()) as ledger:
        ledger.create(replace(PEOPLE, closes_after=9, closes_for=9))
        charges = [pay(ledger, str(i), cost("1/10")) for i in range(3)]
        for charge in charges:
            ledger.settle(charge, "failed")
        pay(ledger, "more", cost("1/10"))
        pay(ledger, "more", cost("1/10"), analyst="bob")
        ledger.reopen("people", "more memory")
        pay(ledger, "again", cost("1/10"))
        return [json.loads(json.loads(line)["entry"]) for line in ledger.export()]


@pytest.mark.parametrize(
    ("after", "alone", "bad"),
    [
        (9, 9, None),
        (4, 4, None),
        (9, 3, 8),  # closed to ann
        (3, 9, 8),  # closed to all
        (9, 2, 8),
        (0, 9, 2),
        (9, 0, 2),
    ],
)
def test_failures_close_the_chain_too(after: int, alone: int, bad: int | None) -> None:
    trees = failing()
    trees[0]["facts"] |= {"closes_after": after, "closes_for": alone}
    if bad is None:
        assert verify_export(hashed(trees)).head.number == len(trees)
        return
    assert verify_export(hashed(trees[: bad - 1])).head.number == bad - 1
    with pytest.raises(LedgerError, match=rf"^entry {bad} of the ledger .* closed after failures"):
        verify_export(hashed(trees))


@pytest.mark.parametrize(("after", "alone", "lawful"), [(9, 3, True), (3, 3, False), (3, 9, False)])
def test_what_is_closed_to_one_is_open_to_others(after: int, alone: int, lawful: bool) -> None:
    trees = failing()
    trees[0]["facts"] |= {"closes_after": after, "closes_for": alone}
    trees[7] = trees[8] | {"number": 8, "totals": trees[7]["totals"]}  # bob asks in place of ann
    if lawful:
        assert verify_export(hashed(trees[:8])).head.number == 8
    else:
        with pytest.raises(LedgerError, match=r"^entry 8 of the ledger .* closed after failures"):
            verify_export(hashed(trees[:8]))


def test_a_dataset_that_is_open_again_forgets_the_failures_of_everyone() -> None:
    trees = failing()
    assert [tree.get("ration", {}).get("failures") for tree in trees[4:]] == [1, 2, 3, 3, 0, None, 0]
    trees[10]["ration"]["failures"] = 3
    with pytest.raises(LedgerError, match=r"^entry 11 of the ledger .* totals do not follow"):
        verify_export(hashed(trees))


def _places(tree: Any, path: tuple[Any, ...] = ()) -> Iterable[tuple[Any, ...]]:
    yield path
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield from _places(value, (*path, key))


PLACES = [(i, path) for i, tree in enumerate(HISTORY) for path in _places(tree)]
json_values: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, -1, 0, 1, 5, 5.0, 1e400, "", "1/1", "0/1", "1/0", "r1", "ann", [], {}]
)


@given(place=st.sampled_from(PLACES), value=json_values)
@settings(max_examples=150)
def test_whatever_stands_in_an_entry_it_holds_or_is_refused(place: tuple[int, tuple[Any, ...]], value: Any) -> None:
    """No other error than `LedgerError`; and what holds can be read."""
    index, path = place
    trees = copy.deepcopy(HISTORY)
    if not path:
        trees[index] = value
    else:
        inside: Any = trees[index]
        for step in path[:-1]:
            inside = inside[step]
        inside[path[-1]] = value
    text = json.dumps(trees[index], sort_keys=True, separators=(",", ":"))
    try:
        verify_export(hashed([*HISTORY[:index], text]))
    except LedgerError:
        return
    assert chain.read(text).number == index + 1


@pytest.mark.parametrize("number", range(1, len(HISTORY) + 1))
def test_an_entry_has_one_text(number: int) -> None:
    tree = HISTORY[number - 1]
    text = canonical(tree)
    for other in (
        text + " ",
        text.replace(":", ": ", 1),
        json.dumps(dict(reversed(tree.items())), separators=(",", ":")),
        text[:-1] + f',"number":{number}}}',
        text.replace('"spent":"', '"spent":"0', 1),
    ):
        assert other != text
        with pytest.raises(LedgerError):
            verify_export(hashed([*HISTORY[: number - 1], other]))


# --- receipts and exports ---------------------------------------------------------------------------


@given(st.integers(0, 10**18 - 1), st.text("0123456789abcdef", min_size=64, max_size=64))
def test_a_receipt_is_read_back(number: int, found: str) -> None:
    receipt = Receipt(number, found)
    assert Receipt.read(str(receipt)) == receipt
    assert Receipt.read(f"  {receipt}\n") == receipt


@pytest.mark.parametrize(
    "text", ["", "people", "1:people", f"x:{'a' * 64}", f"-1:{'a' * 64}", f"1:{'a' * 63}", f"1:{'a' * 65}",
             f"1:{'A' * 64}", f"1:{'a' * 64}:", f"1:{'a' * 64}:people", f"{'9' * 19}:{'a' * 64}", f"²:{'a' * 64}"]
)  # fmt: skip
def test_other_texts_are_no_receipts(text: str) -> None:
    with pytest.raises(UserError, match="is not a receipt"):
        Receipt.read(text)


def test_an_export_is_the_chain_without_the_answers() -> None:
    ledger = opened(memory_ledger())
    ledger.settle(pay(ledger, "r", cost("0.1")), "answered", "the answer is a secret")
    lines = list(ledger.export("people"))
    assert lines == list(ledger.export())
    assert verify_export(lines) == ledger.verify() == verify_export(iter(lines), str(ledger.head()))
    assert [chain.read(json.loads(line)["entry"], json.loads(line)["hash"]) for line in lines] == [
        *ledger.history("people")
    ]
    assert "secret" not in "".join(lines)
    assert all("\n" not in line for line in lines)
    ledger.close()


def test_an_export_that_was_changed_is_refused() -> None:
    lines = hashed(HISTORY)
    last, size = verify_export(lines).head, len(lines)
    for i in range(size):
        text = json.loads(lines[i])["entry"]
        changed = json.dumps({**json.loads(lines[i]), "entry": text.replace('"dataset":"p', '"dataset":"q', 1)})
        assert changed != lines[i]
        for bad, first in (
            ([*lines[:i], changed, *lines[i + 1 :]], i + 1),  # changed
            ([*lines[:i], *lines[i + 1 :]], i + 1),  # removed
            ([*lines[: i + 1], lines[i], *lines[i + 1 :]], i + 2),  # twice
            ([*lines[:i], lines[(i + 1) % size], lines[i], *lines[i + 2 :]], i + 1),  # moved
        ):
            removed_last = bad == lines[:-1]
            if not removed_last:
                with pytest.raises(LedgerError, match=f"^(entry|line) {first} "):
                    verify_export(bad)
            with pytest.raises(LedgerError):
                verify_export(bad, last)


def test_an_older_or_another_export_is_refused_with_a_receipt_only() -> None:
    lines = hashed(HISTORY)
    receipts = [verify_export(lines[:number]).head for number in range(1, len(lines) + 1)]
    for older in receipts:
        assert verify_export(lines, older).head == receipts[-1], "a chain that went on still has the entry"
    with pytest.raises(LedgerError, match="ends at entry 4, so it is an older copy"):
        verify_export(lines[:4], receipts[4])
    other = hashed([*HISTORY[:3], HISTORY[3] | {"note": "another history"}])
    assert verify_export(other).head.number == 4
    with pytest.raises(LedgerError, match=r"receipt for entry 4 .* has a different entry there"):
        verify_export(other, receipts[3])
    for odd in (Receipt(4, receipts[4].hash), Receipt(0, receipts[3].hash), Receipt(99, chain.GENESIS)):
        with pytest.raises(LedgerError, match=f"receipt for entry {odd.number} does not match"):
            verify_export(lines, odd)
    assert verify_export(lines, Receipt(0, chain.GENESIS)).head == receipts[-1], "every ledger began with nothing"


# --- exports of one dataset -------------------------------------------------------------------------


def woven() -> list[dict[str, Any]]:
    """Two datasets, whose entries take turns: those of people have odd numbers."""
    with closing(memory_ledger()) as ledger:
        names = ("people", "visits")
        for name in names:
            ledger.create(replace(PEOPLE, name=name))
        for i in range(3):
            for name in names:
                ask = {"dataset": name, "analyst": f"{name}' analyst", "request_id": str(i), "events": [cost("1/9")]}
                charge = ledger.reserve(**ask)  # type: ignore[arg-type]
                if i:
                    ledger.settle(charge, "answered", "a secret")
        return [json.loads(json.loads(line)["entry"]) for line in ledger.export()]


WOVEN = woven()


def of_people(tree: Any) -> bool:
    return bool(tree["dataset"] == "people")


def test_an_export_of_one_dataset_tells_nothing_of_others_but_how_many_entries_they_have() -> None:
    with closing(memory_ledger()) as ledger:
        furnish(ledger)
        furnish_tables(ledger)
        ledger.declare("people", "2")
        everything = list(ledger.export())
        for dataset, count in (("people", 13), ("patients", 8)):
            lines = list(ledger.export(dataset))
            trees = [json.loads(line) for line in lines]
            told = [tree["entry"] for tree in trees if "entry" in tree]
            assert [chain.read(text) for text in told] == [entry._replace(hash="") for entry in ledger.history(dataset)]
            assert len(told) == count
            assert {*map(frozenset, trees)} == {frozenset({"entry", "hash"}), frozenset({"dataset", "digest", "hash"})}
            assert [tree["hash"] for tree in trees] == [json.loads(line)["hash"] for line in everything]
            other = "patients" if dataset == "people" else "people"
            assert f'\\"dataset\\":\\"{other}\\"' in "".join(everything)
            assert f'\\"dataset\\":\\"{other}\\"' not in "".join(lines)
            assert ("ann" in "".join(lines), "cleo" in "".join(lines)) == (dataset == "people", dataset == "patients")
            verified = verify_export(lines)
            assert verified.head == ledger.head()
            assert verify_export(everything) == ledger.verify()
            assert (verified.entries, verified.hidden) == (
                {dataset: count},
                {other: len(everything) - count},
            )
        with pytest.raises(UserError, match="there is no dataset 'nobody'"):
            list(ledger.export("nobody"))


def test_a_receipt_of_any_entry_fits_an_export_of_one_dataset() -> None:
    lines, everything = hashed(WOVEN, of_people), hashed(WOVEN)
    for number in range(1, len(WOVEN) + 1):
        receipt = verify_export(everything[:number]).head
        assert verify_export(lines, receipt).head.number == len(WOVEN)
        if number > 1:
            with pytest.raises(LedgerError, match=f"ends at entry {number - 1}, so it is an older copy"):
                verify_export(lines[: number - 1], receipt)


def test_an_export_of_one_dataset_that_was_changed_is_refused() -> None:
    lines = hashed(WOVEN, of_people)
    size, last = len(lines), verify_export(hashed(WOVEN)).head
    for i, line in enumerate(lines):
        tree = json.loads(line)
        wrong = [{**tree, "hash": chain.digest("x")}]
        if "digest" in tree:
            wrong += [{**tree, "digest": chain.digest("x")}, {**tree, "digest": tree["digest"].upper()}]
            wrong.append({**tree, "dataset": "others"})
            wrong.append({"entry": canonical(WOVEN[i] | {"note": "x"}), "hash": tree["hash"]})
        else:
            wrong.append({**tree, "entry": tree["entry"].replace('"dataset":"p', '"dataset":"q', 1)})
        for each in wrong:
            with pytest.raises(LedgerError, match=f"^entry {i + 1} of the ledger is invalid"):
                verify_export([*lines[:i], json.dumps(each), *lines[i + 1 :]])
        for bad, first in (
            ([*lines[:i], *lines[i + 1 :]], i + 1),  # removed
            ([*lines[: i + 1], line, *lines[i + 1 :]], i + 2),  # twice
            ([*lines[:i], lines[(i + 1) % size], line, *lines[i + 2 :]], i + 1),  # moved
        ):
            if bad != lines[:-1]:
                with pytest.raises(LedgerError, match=f"^entry {first} of the ledger is invalid"):
                    verify_export(bad)
            with pytest.raises(LedgerError):
                verify_export(bad, last)


def test_what_is_left_out_of_an_export_is_missed() -> None:
    """Who hides an entry of the dataset itself is found, though every hash is right: its dataset's name is in it."""
    odd = [tree["number"] for tree in WOVEN if of_people(tree)]
    for hidden in odd:
        lines = hashed(WOVEN, lambda tree, hidden=hidden: of_people(tree) and tree["number"] != hidden)  # type: ignore[misc]
        with pytest.raises(LedgerError, match=r"some entries of|does not create it"):
            verify_export(lines)
    with pytest.raises(LedgerError, match="the export has no entries"):
        verify_export(hashed(WOVEN, lambda tree: False))


def test_a_state_remembers_the_hash_that_it_watches() -> None:
    lines = [json.loads(line) for line in hashed(HISTORY)]
    for watch in (0, 1, 7, 20, 21):
        state = LedgerState(watch=watch)
        for number, line in enumerate(lines, 1):
            state.append_hidden(named(line["entry"]), chain.digest(line["entry"]), line["hash"])
            assert state.head == Receipt(number, line["hash"])
            assert state.watched == (lines[watch - 1]["hash"] if 1 <= watch <= number else "")


def test_what_no_hash_covers_is_refused() -> None:
    for lines in (hashed(HISTORY), hashed(WOVEN, of_people)):
        for i, line in enumerate(lines):
            tree = json.loads(line)
            for more in ({"note": "forged"}, {"digest": "x"} if "entry" in tree else {"entry": "x"}, {"hash": 5}):
                with pytest.raises(LedgerError, match=f"^line {i + 1} is not an entry of an exported ledger"):
                    verify_export([*lines[:i], json.dumps({**tree, **more}), *lines[i + 1 :]])


@pytest.mark.parametrize("line", ["", "x", "{}", "[]", "5", '{"entry":5,"hash":"a"}', '{"entry":"{}","hash":"a"}'])
def test_lines_that_are_no_entries(line: str) -> None:
    with pytest.raises(LedgerError, match="line 1 is not an entry of an exported ledger"):
        verify_export([line])
    with pytest.raises(LedgerError, match="line 13 is not an entry of an exported ledger"):
        verify_export([*hashed(HISTORY[:12]), line, *hashed(HISTORY)[12:]])
    with pytest.raises(LedgerError, match="the export has no entries"):
        verify_export([])


# --- which answers serve ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "asked", "does"),
    [
        ([cost("0.5")], [cost("0.5")], True),
        ([cost("0.5")], [cost("0.4")], True),
        ([cost("0.5")], [cost("0.6")], False),
        ([cost("0.5"), cost("0.1")], [cost("0.4"), cost("0.2")], False),  # less noise here and more there
        ([Composed([cost("0.5"), cost("0.2")])], [cost("0.4"), cost("0.2")], True),
        ([cost("0.5")], [cost("0.1"), cost("0.1")], False),
        ([], [cost("0.1")], False),
        ([], [], True),
        (
            [LaplaceNoise(move=L1Move(2), scale=1)],
            [LaplaceNoise(move=L1Move(1), scale=1)],
            False,
        ),  # another measurement
        ([Repeated(cost("0.5"), 2)], [Repeated(cost("0.5"), 3)], False),
        ([Stated(epsilon=1, delta=0)], [Stated(epsilon="0.5", delta=0)], False),  # nothing is known of its noise
        ([Stated(epsilon=1, delta=0)], [Stated(epsilon=1, delta=0)], True),
        ([Free()], [cost("0.1")], False),
    ],
)
def test_an_answer_serves_where_it_has_nowhere_more_noise(
    stored: list[PrivacyEvent], asked: list[PrivacyEvent], does: bool
) -> None:
    assert serves(stored, asked) is does


@given(pure | approx)
def test_budgets_are_exact_in_texts(budget: Budget) -> None:
    totals = Totals(ACCOUNTANTS["pure" if isinstance(budget, PureDP) else "approx"], budget, budget)
    assert chain.read(chain.write(Entry(1, PEOPLE.name, "failed", "", totals))).totals == totals


# --- sums: the accountant's, and the same added up naively -------------------------------------------


def rounded_up(number: Fraction) -> Fraction:
    """The rule for long denominators, written another way than in the accountants."""
    return number if number.denominator < 2**256 else Fraction(math.ceil(number * 2**320), 2**320)


@given(st.lists(st.tuples(rationals, shares), max_size=8))
@settings(max_examples=40, deadline=None)
def test_the_state_after_any_sequence_is_the_naive_sum(prices: list[tuple[Fraction, Fraction]]) -> None:
    """In the accountant's hands, in a ledger, and for whoever verifies its export."""
    for name, kind in (("pure", PureDP), ("approx", ApproxDP)):
        accountant, large = ACCOUNTANTS[name], 2**400
        budget = PureDP(large) if kind is PureDP else ApproxDP(large, Fraction(2**400 - 1, 2**400))
        with closing(opened(memory_ledger(), budget, name)) as ledger:
            total, epsilon, delta = accountant.zero, Fraction(0), Fraction(0)
            for e, d in prices:
                event = Stated(epsilon=e, delta=d if kind is ApproxDP else 0)
                if rounded_up(delta + rounded_up(event.delta)) >= 1:
                    break
                total = accountant.add(total, accountant.price(event))
                epsilon = rounded_up(epsilon + rounded_up(event.epsilon))
                delta = rounded_up(delta + rounded_up(event.delta))
                ledger.settle(pay(ledger, None, event), "answered", "x")
            naive = PureDP.derived(epsilon) if kind is PureDP else ApproxDP(epsilon, delta)
            assert total == naive == ledger.balance("people").total == ledger.history("people")[-1].totals.spent
            assert ledger.balance("people", "ann").ration == Ration(naive)
            assert max(epsilon.denominator, delta.denominator) <= 2**320
            assert verify_export(ledger.export()).head.number == len(ledger.history("people"))
