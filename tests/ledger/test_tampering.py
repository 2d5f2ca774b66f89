"""L5: whoever can write into the database, and changes, removes, adds or moves something there, is found out.

Only an older copy that was whole is taken for what it says, unless a receipt is at hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from tests.ledger.common import PEOPLE, ask, cost, furnish, pay
from tests.ledger.conftest import Where

from privet.canonical import canonical
from privet.errors import LedgerError, UserError
from privet.guarantees import PureDP
from privet.ledger import Charge, DurableLedger, Receipt, chain, open_ledger, tables

Rows = dict[str, list[dict[str, Any]]]
SCHEMA, DATASETS, ENTRIES, ANSWERS, LEASES = (
    "privet_schema",
    "privet_datasets",
    "privet_entries",
    "privet_answers",
    "privet_leases",
)
HARMLESS = {
    (DATASETS, "salt"),  # which rows of a person are taken, and in which order: privacy holds for any salt
    (LEASES, "beats"),  # when a silent process counts as gone: its debit stays
}


def copied(rows: Rows) -> Rows:
    return {name: [dict(row) for row in content] for name, content in rows.items()}


class Storage:
    """A ledger with two datasets, and a way into its tables past all rules."""

    def __init__(self, where: Where) -> None:
        self.where = where
        with closing(open_ledger(where)) as ledger:
            for dataset in ("people", "visits"):
                furnish(ledger, dataset)
            self.receipts = {receipt.dataset: receipt for receipt in ledger.verify()}
        url = str(where).replace("postgresql:", "postgresql+psycopg:") if "://" in str(where) else f"sqlite:///{where}"
        self.engine = sa.create_engine(url)
        self.honest = self.read()
        self.stored: Rows = {}
        self.watch = open_ledger(where)

    def read(self) -> Rows:
        with self.engine.connect() as connection:
            return {
                name: [dict(row._mapping) for row in connection.execute(sa.text(f"SELECT * FROM {name} ORDER BY 1, 2"))]
                if name != SCHEMA
                else [dict(row._mapping) for row in connection.execute(sa.text(f"SELECT * FROM {name}"))]
                for name in (SCHEMA, DATASETS, ENTRIES, ANSWERS, LEASES)
            }

    def put(self, rows: Rows) -> bool:
        """Make the tables hold these rows; False if the database itself refuses them."""
        try:
            with self.engine.begin() as connection:
                for name, content in rows.items():
                    if content != self.stored.get(name):
                        connection.execute(sa.text(f"DELETE FROM {name}"))
                        if content:
                            columns, marks = ", ".join(content[0]), ", ".join(f":{column}" for column in content[0])
                            connection.execute(sa.text(f"INSERT INTO {name} ({columns}) VALUES ({marks})"), content)
        except DBAPIError:
            return False
        self.stored = copied(rows)
        return True

    def copy(self) -> Rows:
        return copied(self.honest)

    def check(self, expect: Receipt | str | None = None) -> None:
        """Open it, and verify all of it."""
        with closing(open_ledger(self.where)) as ledger:
            ledger.verify(expect)

    def refuses(self, rows: Rows, match: str = "") -> bool:
        """Whether these rows are refused when they are read anew; False if they can't even be stored."""
        if not self.put(rows):
            return False
        with pytest.raises(LedgerError, match=match or None):
            self.check()
        return True

    def finds(self, rows: Rows, match: str = "") -> bool:
        """The same by a ledger that is open already, which is faster; `close` asserts that it was not just broken."""
        if not self.put(rows):
            return False
        with pytest.raises(LedgerError, match=match or None):
            self.watch.verify()
        self.watch._database._broken = ""  # what was found to be bad is not used again, but here
        return True

    def close(self, *, sound: bool = True) -> None:
        if sound:
            assert self.put(self.honest)
            assert len(self.watch.verify()) == 2
        self.watch.close()
        self.engine.dispose()

    def entry(self, rows: Rows, dataset: str, number: int) -> dict[str, Any]:
        return next(row for row in rows[ENTRIES] if (row["dataset"], row["number"]) == (dataset, number))


@pytest.fixture
def storage(where: Where) -> Iterator[Storage]:
    made = Storage(where)
    yield made
    made.close()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Storage]:
    made = Storage(tmp_path / "people.ledger")
    yield made
    made.close()


def test_an_honest_ledger_holds(storage: Storage) -> None:
    assert storage.put(storage.copy())
    storage.check()
    for receipt in storage.receipts.values():
        storage.check(receipt)
        storage.check(str(receipt))
    assert {name: len(rows) for name, rows in storage.honest.items()} == {
        SCHEMA: 1,
        DATASETS: 2,
        ENTRIES: 24,
        ANSWERS: 2,
        LEASES: 2,
    }


# --- changed -----------------------------------------------------------------------------------------


def others(value: Any) -> list[Any]:
    """Values of the same kind, near and far."""
    if value is None:
        return ["", "ann", 5]
    if isinstance(value, int):
        return [value + 1, value - 1, 0, -1, 10**6]
    return [value + "x", value[:-1], value.swapcase(), "", None, value.replace("people", "visits")]


def test_every_changed_column_is_found(storage: Storage) -> None:
    for table in storage.honest:
        tried = change_every_column(storage, table)
        assert tried >= {SCHEMA: 3, DATASETS: 8, ENTRIES: 150, ANSWERS: 6, LEASES: 5}[table]


def change_every_column(storage: Storage, table: str) -> int:
    """How many changes were tried, and found."""
    tried = 0
    for i, row in enumerate(storage.honest[table]):
        if row.get("dataset", row.get("name")) == "visits" or (table == ENTRIES and row["number"] in (4, 8, 11)):
            continue  # every kind of row, once, is enough
        for column, value in row.items():
            for other in others(value)[: None if (table, column) == (ENTRIES, "text") else 3]:
                if other == value:
                    continue
                rows = storage.copy()
                rows[table][i][column] = other
                if (table, column) in HARMLESS:
                    if storage.put(rows):
                        assert len(storage.watch.verify()) == 2
                        tried += 1
                    continue
                named = ""
                if table == ENTRIES and column not in ("dataset", "number"):
                    named = f"entry {row['number']} of the dataset '{row['dataset']}'"
                if table == ANSWERS and column == "text":
                    named = f"the answer of entry {row['number']} of the dataset '{row['dataset']}'"
                find = storage.refuses if table == SCHEMA else storage.finds
                tried += find(rows, named)
    return tried


def test_values_of_a_type_that_no_column_has_are_found(sqlite: Storage) -> None:
    """SQLite keeps values of any type in any column."""
    for table in sqlite.honest:
        tried = put_odd_values(sqlite, table)
        assert tried >= {SCHEMA: 4, DATASETS: 24, ENTRIES: 200, ANSWERS: 24, LEASES: 16}[table]


def put_odd_values(sqlite: Storage, table: str) -> int:
    tried = 0
    for i, row in enumerate(sqlite.honest[table]):
        if table == ENTRIES and row["number"] not in (1, 5, 12):
            continue
        for column in row:
            if (table, column) not in HARMLESS:
                for other in (b"\x00\xff", 1.5, "abc", 2**62):
                    rows = sqlite.copy()
                    rows[table][i][column] = other
                    tried += sqlite.refuses(rows) if table == SCHEMA else sqlite.finds(rows)
    return tried


def test_a_salt_that_is_none_is_refused_when_it_is_needed(sqlite: Storage) -> None:
    for salt in ("no hex", "", b"\x00\xff", 5):
        rows = sqlite.copy()
        rows[DATASETS][0]["salt"] = salt
        assert sqlite.put(rows)
        with closing(open_ledger(sqlite.where)) as ledger:
            try:
                found = ledger.create(replace(PEOPLE, budget=ledger.balance("people").budget))
            except LedgerError:
                continue
            assert isinstance(found, bytes)


def test_texts_that_are_cut_are_found(storage: Storage) -> None:
    for row in storage.honest[ENTRIES][:12]:
        for size in (0, 1, len(row["text"]) // 2, len(row["text"]) - 1):
            rows = storage.copy()
            storage.entry(rows, "people", row["number"])["text"] = row["text"][:size]
            assert storage.finds(rows, f"entry {row['number']} of the dataset 'people'")


def test_a_forger_who_hashes_anew_is_found_by_a_receipt(storage: Storage) -> None:
    """Rules hold for every entry, so a debit can't be made cheaper; but a lawful history can be put in its place."""
    rows = storage.copy()
    found = chain.GENESIS
    for row in rows[ENTRIES][:12]:
        tree = json.loads(row["text"])
        if row["number"] == 12:
            tree["note"] = "another reason"
        row["text"] = canonical(tree)
        row["hash"] = found = chain.link(found, row["text"])
    rows[DATASETS][0]["hash"] = found
    assert storage.put(rows)
    storage.check()
    storage.check(storage.receipts["visits"])
    with pytest.raises(
        LedgerError, match=r"receipt for entry 12 of the dataset 'people' does not fit: .* another entry"
    ):
        storage.check(storage.receipts["people"])


def test_a_forger_who_takes_a_debit_out_and_hashes_anew_is_found(storage: Storage) -> None:
    """What comes after it says that it was spent."""
    rows = storage.copy()
    kept = [row for row in rows[ENTRIES] if row["dataset"] == "people" and row["number"] not in (8, 9)]
    found = chain.GENESIS
    for number, row in enumerate(kept, 1):
        tree = json.loads(row["text"]) | {"number": number}
        row["text"] = canonical(tree)
        row["hash"] = found = chain.link(found, row["text"])
        row["number"] = number
    rows[ENTRIES] = kept + [row for row in rows[ENTRIES] if row["dataset"] == "visits"]
    rows[DATASETS][0] |= {"hash": found, "head": len(kept)}
    rows[LEASES][0]["number"] = 9
    assert storage.refuses(rows, "entry 8 of the dataset 'people' does not hold: its totals do not follow")


# --- removed, added, moved ---------------------------------------------------------------------------


def test_removed_rows_are_found(storage: Storage) -> None:
    for table in (SCHEMA, DATASETS, ENTRIES, ANSWERS, LEASES):
        for i, row in enumerate(storage.honest[table]):
            rows = storage.copy()
            del rows[table][i]
            says = {
                SCHEMA: "which version",
                DATASETS: f"the dataset '{row.get('name')}' was removed",
                ENTRIES: f"(entry {row.get('number')} of|ends at entry 11, and should end at entry 12)",
                ANSWERS: "the answer of entry 5 of the dataset",
                LEASES: "leases of the dataset",
            }[table]
            assert storage.refuses(rows, says)


def test_a_removed_table_is_found(where: Where) -> None:
    storage = Storage(where)
    for table in (LEASES, ANSWERS, ENTRIES, DATASETS):
        with storage.engine.begin() as connection:
            connection.execute(sa.text(f"DROP TABLE {table}"))
        with pytest.raises(LedgerError, match="can't be read or written"):
            storage.check()
    storage.close(sound=False)


def test_added_rows_are_found(storage: Storage) -> None:
    last = storage.entry(storage.honest, "people", 12)
    more = chain.read(last["text"])._replace(number=13, note="more")
    text = chain.write(more)
    honest_looking = last | {"number": 13, "text": text, "hash": chain.link(last["hash"], text)}
    for table, row, says in (
        (ENTRIES, last | {"number": 13}, "entry 13 of the dataset 'people'"),
        (ENTRIES, honest_looking, "ends at entry 13, and should end at entry 12"),
        (ENTRIES, last | {"number": 0}, "entry 1 of the dataset 'people'"),
        (ENTRIES, last | {"dataset": "strangers"}, "the dataset 'strangers'"),
        (ANSWERS, {"dataset": "people", "number": 8, "text": "it did not fail"}, "the answer of entry 8"),
        (ANSWERS, {"dataset": "people", "number": 99, "text": "no such question"}, "the answer of entry 99"),
        (ANSWERS, {"dataset": "strangers", "number": 5, "text": ""}, "the dataset 'strangers'"),
        (LEASES, {"dataset": "people", "number": 5, "beats": 0}, "leases of the dataset 'people'"),
        (LEASES, {"dataset": "people", "number": 99, "beats": 0}, "leases of the dataset 'people'"),
        (LEASES, {"dataset": "strangers", "number": 5, "beats": 0}, "the dataset 'strangers'"),
        (DATASETS, storage.honest[DATASETS][0] | {"name": "strangers"}, "the dataset 'strangers'"),
        (DATASETS, {"name": "strangers", "salt": "00", "head": 0, "hash": chain.GENESIS}, "the dataset 'strangers'"),
        (SCHEMA, {"version": 1}, "which version"),
    ):
        rows = storage.copy()
        rows[table].append(row)
        assert storage.refuses(rows, says), row


def test_moved_entries_are_found(storage: Storage) -> None:
    """Two entries in each other's places: their texts, their texts and hashes, or all but their numbers."""
    for one, two in combinations(range(1, 13), 2):
        if two - one > 2 and (one, two) != (1, 12):
            continue
        for columns in (("text",), ("hash",), ("text", "hash"), ("kind", "analyst", "refers", "text", "hash")):
            rows = storage.copy()
            first, second = storage.entry(rows, "people", one), storage.entry(rows, "people", two)
            for column in columns:
                first[column], second[column] = second[column], first[column]
            assert storage.finds(rows, f"entry {one} of the dataset 'people'")


def test_what_was_moved_between_datasets_is_found(storage: Storage) -> None:
    swap = {"people": "visits", "visits": "people"}
    everything = (ENTRIES, ANSWERS, LEASES)
    for where in ((DATASETS,), (DATASETS, *everything), everything, (ENTRIES,), (ANSWERS,)):
        rows = storage.copy()
        for table in where:
            for row in rows[table]:
                column = "name" if table == DATASETS else "dataset"
                row[column] = swap[row[column]]
        assert storage.refuses(rows), where
    rows = storage.copy()
    for row in rows[ENTRIES]:
        row["dataset"] = swap[row["dataset"]]
        row["text"] = row["text"].replace('"people"', '"x"').replace('"visits"', '"people"').replace('"x"', '"visits"')
    assert storage.refuses(rows, "entry 1 of the dataset 'people'")


# --- older copies ------------------------------------------------------------------------------------


def earlier(storage: Storage, number: int, *, whole: bool) -> Rows:
    """The ledger as it was after an entry of the first dataset; or, if not whole, its entries only."""
    rows = storage.copy()
    rows[ENTRIES] = [row for row in rows[ENTRIES] if row["dataset"] == "visits" or row["number"] <= number]
    rows[DATASETS][0] |= {"head": number, "hash": storage.entry(rows, "people", number)["hash"]}
    if whole:
        rows[ANSWERS] = [row for row in rows[ANSWERS] if row["dataset"] == "visits" or number >= 6]
        open_then = [place for place, end in ((5, 6), (8, 9), (11, 99)) if place <= number < end]
        others_open = [row for row in rows[LEASES] if row["dataset"] == "visits"]
        rows[LEASES] = [{"dataset": "people", "number": place, "beats": 0} for place in open_then] + others_open
    return rows


def test_a_dataset_without_entries_is_found(storage: Storage) -> None:
    rows = storage.copy()
    for table in (ENTRIES, ANSWERS, LEASES):
        rows[table] = [row for row in rows[table] if row["dataset"] == "visits"]
    rows[DATASETS][0] |= {"head": 0, "hash": chain.GENESIS}
    assert storage.refuses(rows, "'people'")


def test_a_chain_that_was_cut_is_found_unless_it_is_an_older_copy(storage: Storage) -> None:
    for number in (1, 4, 5, 6, 8, 11):
        cut = earlier(storage, number, whole=True)
        cut[DATASETS] = storage.copy()[DATASETS]
        assert storage.refuses(cut, f"ends at entry {number}, and should end at entry 12: entries were removed")
        if number < 11:
            assert storage.refuses(earlier(storage, number, whole=False), "leases|answer")
        assert storage.put(earlier(storage, number, whole=True))
        with closing(open_ledger(storage.where)) as ledger:
            ledger.verify()
            ledger.verify(storage.receipts["visits"])
            for receipt in (storage.receipts["people"], str(storage.receipts["people"])):
                with pytest.raises(LedgerError, match=f"ends at entry {number}, so it is an older copy"):
                    ledger.verify(receipt)


def test_an_older_copy_that_went_on_is_found_by_a_receipt(storage: Storage) -> None:
    assert storage.put(earlier(storage, 10, whole=True))
    with closing(open_ledger(storage.where)) as ledger:
        storage.stored = {}
        assert ledger.balance("people").spent.epsilon * 20 == 9, "what was spent since is forgotten"
        for i in range(4):
            ledger.reopen("people", f"reason {i}")
    storage.check()
    with pytest.raises(LedgerError, match="has another entry there"):
        storage.check(storage.receipts["people"])


def test_a_dropped_dataset_is_found_unless_nothing_of_it_is_left(storage: Storage) -> None:
    everything = (DATASETS, ENTRIES, ANSWERS, LEASES)
    for kept in everything:
        rows = storage.copy()
        for table in everything:
            if table != kept:
                rows[table] = [row for row in rows[table] if row.get("dataset", row.get("name")) != "people"]
        assert storage.refuses(rows, "'people'"), kept
    rows = storage.copy()
    for table in everything:
        rows[table] = [row for row in rows[table] if row.get("dataset", row.get("name")) != "people"]
    assert storage.put(rows)
    storage.check(storage.receipts["visits"])
    with pytest.raises(LedgerError, match="the receipt is for the dataset 'people', which is not in this ledger"):
        storage.check(storage.receipts["people"])


def test_an_older_file_is_found_by_a_receipt_only(tmp_path: Path) -> None:
    path, copied = tmp_path / "people.ledger", tmp_path / "copy"
    with closing(open_ledger(path)) as ledger:
        ledger.create(PEOPLE)
        ask(ledger, "one", "42")
    copied.write_bytes(path.read_bytes())
    with closing(open_ledger(path)) as ledger:
        ask(ledger, "two", "43")
        receipt = str(ledger.head("people"))
    path.write_bytes(copied.read_bytes())
    with closing(open_ledger(path)) as ledger:
        assert [found.number for found in ledger.verify()] == [3]
        with pytest.raises(LedgerError, match="ends at entry 3, so it is an older copy"):
            ledger.verify(receipt)


def test_what_is_no_receipt(storage: Storage) -> None:
    with pytest.raises(UserError, match="this is not a receipt"):
        storage.check("people:12")


# --- answers -----------------------------------------------------------------------------------------


def ask_by_request(ledger: DurableLedger) -> Charge:
    return pay(ledger, "r1", cost("1/4"), asked="a", question="q")


def ask_by_a_served_request(ledger: DurableLedger) -> Charge:
    return pay(ledger, "r2", cost("1/4"), asked="a", question="q", analyst="bob")


def ask_the_same_question(ledger: DurableLedger) -> Charge:
    return pay(ledger, None, cost("1/5"), asked="a", question="q", analyst="cleo")


WAYS: list[Callable[[DurableLedger], Charge]] = [ask_by_request, ask_by_a_served_request, ask_the_same_question]


def test_a_changed_answer_is_never_served(storage: Storage) -> None:
    """Opening does not hash the answers, which can be many; whoever asks for one is told, and nothing is debited."""
    for text in ("the answer of visits", "", "the answer of people "):
        rows = storage.copy()
        rows[ANSWERS][0]["text"] = text
        assert storage.put(rows)
        with closing(open_ledger(storage.where)) as ledger:
            before = ledger.history("people")
            for way in WAYS:
                with pytest.raises(LedgerError, match="the answer of entry 5 of the dataset 'people' is not the one"):
                    way(ledger)
            assert ledger.history("people") == before
            with pytest.raises(LedgerError, match="the answer of entry 5 of the dataset 'people' is not the one"):
                ledger.verify()
            with pytest.raises(LedgerError):  # from now on it is not trusted
                ledger.balance("people")
    assert storage.put(storage.copy())
    storage.stored = {}
    with closing(open_ledger(storage.where)) as ledger:
        assert [way(ledger).answer for way in WAYS] == ["the answer of people"] * 3


def test_an_answer_that_is_removed_while_the_ledger_is_open_is_not_drawn_again_for_a_request(storage: Storage) -> None:
    with closing(open_ledger(storage.where)) as ledger:
        rows = storage.copy()
        del rows[ANSWERS][0]
        assert storage.put(rows)
        before = ledger.history("people")
        with pytest.raises(LedgerError, match="is not the one that was given"):
            ask_by_request(ledger)
        assert ledger.history("people") == before
        storage.stored = {}
        assert ask_the_same_question(ledger).state == "reserved", "a new draw is a new payment"
        assert ledger.balance("people").spent == PureDP("3/4")


def test_every_column_is_looked_at() -> None:
    """A further column must be looked at by the tests above."""
    columns = {table.name: [column.name for column in table.columns] for table in tables.metadata.sorted_tables}
    assert columns == {
        SCHEMA: ["version"],
        DATASETS: ["name", "salt", "head", "hash"],
        ENTRIES: ["dataset", "number", "kind", "analyst", "request", "question", "refers", "text", "hash"],
        ANSWERS: ["dataset", "number", "text"],
        LEASES: ["dataset", "number", "beats"],
    }
