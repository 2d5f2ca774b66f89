"""L5: whoever can write into the database, and changes, removes, adds or moves something there, is found out.

Only an older copy that was whole is taken for what it says, unless a receipt is at hand or the ledger was open before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from tests.ledger.common import PEOPLE, ask, cost, furnish, furnish_tables, pay
from tests.ledger.conftest import Where

from privet.codec import canonical
from privet.errors import InternalError, LedgerError, UserError
from privet.ledger import Charge, Ledger, Receipt, open_ledger
from privet.ledger.history import chain
from privet.ledger.history.state import LedgerState
from privet.ledger.storage import tables
from privet.privacy.guarantees import PureDP

Rows = dict[str, list[dict[str, Any]]]
LEDGER, ENTRIES, ANSWERS, LEASES = "privet_ledger", "privet_entries", "privet_answers", "privet_leases"
HARMLESS = {(LEASES, "beats")}  # when a silent process counts as gone: its debit stays
LAST = 32
"""The number of the last entry: people have the first twelve, visits the next twelve, patients the rest."""

ONE = {"kind": "pure", "epsilon": "1/1"}
"""A pure budget, as entries have it."""


def copied(rows: Rows) -> Rows:
    return {name: [dict(row) for row in content] for name, content in rows.items()}


class Storage:
    """A ledger with three datasets, and a way into its tables past all rules."""

    def __init__(self, where: Where) -> None:
        self.where = where
        with closing(open_ledger(where)) as ledger:
            for dataset in ("people", "visits"):
                furnish(ledger, dataset)
            furnish_tables(ledger)
            self.receipt = ledger.verify().head
        url = str(where).replace("postgresql:", "postgresql+psycopg:") if "://" in str(where) else f"sqlite:///{where}"
        self.engine = sa.create_engine(url)
        self.honest = self.read()
        self.receipts = [Receipt(row["number"], row["hash"]) for row in self.honest[ENTRIES]]
        self.stored: Rows = {}
        self.watch = open_ledger(where)

    def read(self) -> Rows:
        with self.engine.connect() as connection:
            return {
                name: [
                    dict(row._mapping) for row in connection.execute(sa.text(f"SELECT * FROM {name} ORDER BY number"))
                ]
                for name in (LEDGER, ENTRIES, ANSWERS, LEASES)
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
        with pytest.raises(LedgerError, match=match or None) as caught:
            self.watch.verify()
        assert "has changed since" not in str(caught.value), "found without knowing what was there before"
        self.watch._database._broken = ""  # what was found to be bad is not used again, but here
        return True

    def fits_before(self, number: int) -> None:
        """Assert that it holds, and that every receipt shows that it is another history from an entry on."""
        with closing(open_ledger(self.where)) as ledger:
            ledger.verify()
            for receipt in self.receipts:
                if receipt.number < number:
                    ledger.verify(receipt)
                    continue
                with pytest.raises(
                    LedgerError, match=rf"receipt for entry {receipt.number} does not match: .* different entry there"
                ):
                    ledger.verify(receipt)

    def close(self, *, sound: bool = True) -> None:
        if sound:
            self.stored = {}
            assert self.put(self.honest)
            assert self.watch.verify().head == self.receipt
        self.watch.close()
        self.engine.dispose()


def changed(rows: Rows, number: int, **fields: Any) -> None:
    """Let an entry say something else; its hash stays."""
    row = rows[ENTRIES][number - 1]
    row["text"] = canonical(json.loads(row["text"]) | fields)


def rehashed(rows: Rows) -> Rows:
    """With hashes that are right, from the first entry to the row that says where the chain ends."""
    found = chain.GENESIS
    for row in rows[ENTRIES]:
        row["hash"] = found = chain.link(found, json.loads(row["text"])["dataset"], chain.digest(row["text"]))
    rows[LEDGER][0] |= {"number": len(rows[ENTRIES]), "hash": found}
    return rows


def without(rows: Rows, unwanted: Callable[[dict[str, Any]], bool]) -> Rows:
    """Without some entries and what is beside them: the others are numbered and hashed anew."""
    kept = [json.loads(row["text"]) for row in rows[ENTRIES]]
    kept = [tree for tree in kept if not unwanted(tree)]
    now = {tree["number"]: number for number, tree in enumerate(kept, 1)}
    rows[ENTRIES] = [
        {"number": now[tree["number"]], "text": canonical({**tree, **_renumbered(tree, now)}), "hash": ""}
        for tree in kept
    ]
    for table in (ANSWERS, LEASES):
        rows[table] = [row | {"number": now[row["number"]]} for row in rows[table] if row["number"] in now]
    return rehashed(rows)


def _renumbered(tree: dict[str, Any], now: dict[int, int]) -> dict[str, int]:
    return {name: now[tree[name]] for name in ("number", "refers") if name in tree}


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
    with closing(open_ledger(storage.where)) as ledger:
        for receipt in storage.receipts:
            for given in (receipt, str(receipt)):
                found = ledger.verify(given)
                assert found.head == storage.receipt == storage.receipts[-1] == ledger.head()
                assert found.entries == {"patients": 8, "people": 12, "visits": 12}
    assert {name: len(rows) for name, rows in storage.honest.items()} == {
        LEDGER: 1,
        ENTRIES: LAST,
        ANSWERS: 2,
        LEASES: 2,
    }
    rows = storage.copy()
    assert rehashed(rows) == storage.honest, "the helpers of these tests hash as the ledger does"
    assert without(rows, lambda tree: False) == storage.honest


# --- changed -----------------------------------------------------------------------------------------


def others(value: Any) -> list[Any]:
    """Values of the same kind, near and far."""
    if isinstance(value, int):
        return [value + 1, value - 1, 0, -1, 10**6]
    return [value + "x", value[:-1], value.swapcase(), "", None, value.replace("people", "visits")]


def test_every_changed_column_is_found(storage: Storage) -> None:
    for table in storage.honest:
        tried = change_every_column(storage, table)
        assert tried >= {LEDGER: 9, ENTRIES: 130, ANSWERS: 8, LEASES: 8}[table]


def change_every_column(storage: Storage, table: str) -> int:
    """How many changes were tried, and found."""
    tried = 0
    for i, row in enumerate(storage.honest[table]):
        if table == ENTRIES and row["number"] in {4, 8, 11, *range(14, 25), 27}:
            continue  # every kind of row, once, is enough
        for column, value in row.items():
            for other in others(value)[: None if (table, column) == (ENTRIES, "text") else 3]:
                if other == value:
                    continue
                rows = storage.copy()
                rows[table][i][column] = other
                if (table, column) in HARMLESS:
                    assert storage.put(rows)
                    assert storage.watch.verify().head == storage.receipt
                    tried += 1
                    continue
                named = ""
                if table == ENTRIES and column != "number":
                    named = f"entry {row['number']} of the ledger is invalid"
                if table == ANSWERS and column == "text":
                    named = f"the stored answer to entry {row['number']} of the ledger does not match"
                if table == LEDGER:
                    named = (
                        "has format version" if column == "version" else "the chain ends at entry 32, but should end"
                    )
                find = storage.refuses if table == LEDGER else storage.finds
                tried += find(rows, named)
    return tried


def test_values_of_a_type_that_no_column_has_are_found(sqlite: Storage) -> None:
    """SQLite keeps values of any type in any column."""
    for table in sqlite.honest:
        tried = put_odd_values(sqlite, table)
        assert tried >= {LEDGER: 11, ENTRIES: 30, ANSWERS: 16, LEASES: 2}[table]


def put_odd_values(sqlite: Storage, table: str) -> int:
    tried = 0
    for i, row in enumerate(sqlite.honest[table]):
        if table == ENTRIES and row["number"] not in (1, 5, 26, LAST):
            continue
        for column in row:
            if (table, column) not in HARMLESS:
                for other in (b"\x00\xff", 1.5, "abc", 2**62):
                    rows = sqlite.copy()
                    rows[table][i][column] = other
                    tried += sqlite.refuses(rows) if table == LEDGER else sqlite.finds(rows)
    return tried


def test_a_changed_salt_is_found(storage: Storage) -> None:
    """It decides which rows of a person are taken, and in which order."""
    for number in (1, 13, 25):
        rows = storage.copy()
        changed(rows, number, salt="0f" * 16)
        assert storage.finds(rows, f"entry {number} of the ledger is invalid")
        assert storage.refuses(rows, f"entry {number} of the ledger is invalid")
        assert storage.put(rehashed(rows))
        storage.fits_before(number)
        for odd in ("no hex", "0f" * 15, "0F" * 16, "0f " * 10 + "0f"):
            changed(rows, number, salt=odd)
            assert storage.refuses(rehashed(rows), f"entry {number} of the ledger .* salt")


def test_texts_that_are_cut_are_found(storage: Storage) -> None:
    for row in storage.honest[ENTRIES][:12] + storage.honest[ENTRIES][24:]:
        for size in (0, 1, len(row["text"]) // 2, len(row["text"]) - 1):
            rows = storage.copy()
            rows[ENTRIES][row["number"] - 1]["text"] = row["text"][:size]
            assert storage.finds(rows, f"entry {row['number']} of the ledger is invalid")


def test_a_forger_who_hashes_anew_is_found_by_a_receipt(storage: Storage) -> None:
    """Rules hold for every entry, so a debit can't be made cheaper; but a lawful history can be put in its place."""
    rows = storage.copy()
    changed(rows, 12, note="another reason")
    assert storage.put(rehashed(rows))
    storage.fits_before(12)  # receipts of other datasets tell as well


def test_a_forger_who_takes_a_debit_out_and_hashes_anew_is_found(storage: Storage) -> None:
    """What comes after it says that it was spent."""
    rows = without(storage.copy(), lambda tree: tree["number"] in (8, 9))
    assert storage.refuses(rows, "entry 8 of the ledger is invalid: its totals do not follow")


def test_a_forger_who_gives_a_debit_to_another_dataset_is_found(storage: Storage) -> None:
    for number in (5, 8, 11):
        rows = storage.copy()
        changed(rows, number, dataset="visits")
        assert storage.refuses(rehashed(rows), f"entry {number} of the ledger is invalid")
    for number in (17, 20, 23):
        rows = storage.copy()
        changed(rows, number, dataset="people")
        assert storage.refuses(rehashed(rows), f"entry {number} of the ledger is invalid")


# --- removed, added, moved ---------------------------------------------------------------------------


def test_removed_rows_are_found(storage: Storage) -> None:
    for table in (LEDGER, ENTRIES, ANSWERS, LEASES):
        for i, row in enumerate(storage.honest[table]):
            rows = storage.copy()
            del rows[table][i]
            says = {
                LEDGER: "must record its end in exactly one row",
                ENTRIES: f"entry {row['number']} of the ledger is invalid",
                ANSWERS: f"the stored answer to entry {row['number']} of the ledger",
                LEASES: "the leases of the ledger",
            }[table]
            if table == ENTRIES and row["number"] == LAST:
                says = "ends at entry 31, but should end at entry 32: entries were removed"
            assert storage.refuses(rows, says)


def test_emptied_tables_are_found(storage: Storage) -> None:
    """Whichever of them: a ledger that holds nothing is not taken for a new one."""
    everything = (LEDGER, ENTRIES, ANSWERS, LEASES)
    for count in range(1, 5):
        for emptied in combinations(everything, count):
            says = "leases|answer"
            if LEDGER in emptied:
                says = "must record its end in exactly one row, but does not: it was emptied"
            elif ENTRIES in emptied:
                says = "ends at entry 0, but should end at entry 32"
            assert storage.refuses(storage.copy() | {table: [] for table in emptied}, says)
            with pytest.raises(LedgerError):
                storage.watch.verify()
            storage.watch._database._broken = ""


def test_a_ledger_that_was_made_anew_is_found_by_whoever_has_it_open_or_has_a_receipt(storage: Storage) -> None:
    new: Rows = {LEDGER: [{"version": 1, "number": 0, "hash": chain.GENESIS}], ENTRIES: [], ANSWERS: [], LEASES: []}
    with closing(open_ledger(storage.where)) as ledger:
        assert storage.put(new)
        with pytest.raises(
            LedgerError, match="entry 32 of the ledger has changed since it was read: debits were removed"
        ):
            ledger.datasets()
    with closing(open_ledger(storage.where)) as ledger:
        assert ledger.head() == Receipt(0, chain.GENESIS)
        assert ledger.verify(str(ledger.head())).entries == {}
        for receipt in (storage.receipts[0], storage.receipt):
            with pytest.raises(LedgerError, match="ends at entry 0, so it is an older copy"):
                ledger.verify(receipt)


@pytest.mark.parametrize("first", [LEDGER, ENTRIES, ANSWERS, LEASES])
def test_a_removed_table_is_found(where: Where, first: str) -> None:
    storage = Storage(where)
    rest = [table for table in (LEASES, ANSWERS, ENTRIES, LEDGER) if table != first]
    for table in (first, *rest[:2]):
        with storage.engine.begin() as connection:
            connection.execute(sa.text(f"DROP TABLE {table}"))
        for how in ({}, {"create": False}, {"read_only": True}):
            with pytest.raises(LedgerError, match=r"has no (table )?'privet_"):
                open_ledger(where, **how)
        with pytest.raises(LedgerError):
            storage.watch.balance("people")
    storage.close(sound=False)


def test_added_rows_are_found(storage: Storage) -> None:
    last = storage.honest[ENTRIES][-1]
    more = chain.read(storage.honest[ENTRIES][11]["text"])._replace(number=33, note="more")
    text = chain.write(more)
    honest_looking = {"number": 33, "text": text, "hash": chain.link(last["hash"], more.dataset, chain.digest(text))}
    for table, row, says in (
        (ENTRIES, last | {"number": 33}, "entry 33 of the ledger"),
        (ENTRIES, last | {"number": 10**9}, "entry 33 of the ledger"),
        (ENTRIES, honest_looking, "ends at entry 33, but should end at entry 32"),
        (
            ENTRIES,
            honest_looking | {"number": 34},
            "entry 33 of the ledger is invalid: it is at position 33 but has number 34",
        ),
        (ENTRIES, last | {"number": 0}, "entry 1 of the ledger"),
        (ENTRIES, last | {"number": -5}, "entry 1 of the ledger"),
        (ANSWERS, {"number": 8, "text": "it did not fail"}, "the stored answer to entry 8"),
        (ANSWERS, {"number": 99, "text": "no such question"}, "the stored answer to entry 99"),
        (ANSWERS, {"number": 0, "text": "no such question"}, "the stored answer to entry 0"),
        (ANSWERS, {"number": -5, "text": "no such question"}, "the stored answer to entry -5"),
        (LEASES, {"number": 5, "beats": 0}, "the leases of the ledger"),
        (LEASES, {"number": 99, "beats": 0}, "the leases of the ledger"),
        (LEASES, {"number": -5, "beats": 0}, "the leases of the ledger"),
        (LEDGER, storage.honest[LEDGER][0], "must record its end in exactly one row"),
        (LEDGER, {"version": 1, "number": 0, "hash": chain.GENESIS}, "must record its end in exactly one row"),
    ):
        rows = storage.copy()
        rows[table].append(row)
        assert storage.refuses(rows, says), row


def test_moved_entries_are_found(storage: Storage) -> None:
    """Two entries in each other's places: their texts, their hashes, or both."""
    pairs = [(one, two) for one, two in combinations(range(1, 13), 2) if two - one < 3]
    for one, two in [*pairs, (1, 12), (1, 13), (5, 17), (11, 23), (12, 13), (31, 32), (1, 32)]:
        for columns in (("text",), ("hash",), ("text", "hash")):
            rows = storage.copy()
            first, second = rows[ENTRIES][one - 1], rows[ENTRIES][two - 1]
            for column in columns:
                first[column], second[column] = second[column], first[column]
            assert storage.finds(rows, f"entry {one} of the ledger is invalid")


def test_entries_that_were_moved_and_hashed_anew_are_found(storage: Storage) -> None:
    """Each says its number."""
    for one in (1, 4, 5, 11, 12, 24, 31):
        rows = storage.copy()
        first, second = rows[ENTRIES][one - 1], rows[ENTRIES][one]
        first["text"], second["text"] = second["text"], first["text"]
        says = f"entry {one} of the ledger is invalid: it is at position {one} but has number {one + 1}"
        assert storage.refuses(rehashed(rows), says)


def test_what_was_moved_between_datasets_is_found(storage: Storage) -> None:
    rows = storage.copy()
    one, two = rows[ANSWERS]
    one["text"], two["text"] = two["text"], one["text"]
    assert storage.finds(rows, "the stored answer to entry 5 of the ledger")
    rows = storage.copy()
    for row in rows[ENTRIES]:
        row["text"] = row["text"].replace('"people"', '"x"').replace('"visits"', '"people"').replace('"x"', '"visits"')
    assert storage.refuses(rows, "entry 1 of the ledger")
    assert storage.put(rehashed(rows))
    storage.fits_before(1)


# --- older copies ------------------------------------------------------------------------------------


def earlier(storage: Storage, number: int, *, whole: bool) -> Rows:
    """The ledger as it was after an entry; or, if not whole, its entries only."""
    rows = storage.copy()
    rows[ENTRIES] = rows[ENTRIES][:number]
    rows[LEDGER][0] |= {"number": number, "hash": rows[ENTRIES][-1]["hash"]}
    if whole:
        rows[ANSWERS] = [row for row in rows[ANSWERS] if row["number"] < number]
        ends = ((5, 6), (8, 9), (11, 99), (17, 18), (20, 21), (23, 99), (31, 32))
        rows[LEASES] = [{"number": place, "beats": 0} for place, end in ends if place <= number < end]
    return rows


def test_a_chain_that_was_cut_is_found_unless_it_is_an_older_copy(storage: Storage) -> None:
    for number in (1, 4, 5, 6, 8, 11, 12, 13, 20, 31):
        cut = earlier(storage, number, whole=True)
        cut[LEDGER] = storage.copy()[LEDGER]
        assert storage.refuses(cut, f"ends at entry {number}, but should end at entry 32: entries were removed")
        assert storage.refuses(earlier(storage, number, whole=False), "leases|answer")
        assert storage.put(earlier(storage, number, whole=True))
        with closing(open_ledger(storage.where)) as ledger:
            ledger.verify()
            ledger.verify(storage.receipts[number - 1])
            for receipt in (storage.receipts[number], storage.receipt, str(storage.receipt)):
                with pytest.raises(LedgerError, match=f"ends at entry {number}, so it is an older copy"):
                    ledger.verify(receipt)


def test_an_older_copy_is_found_by_whoever_has_the_ledger_open(storage: Storage) -> None:
    for number in (1, 11, 31):
        assert storage.put(storage.copy())
        with closing(open_ledger(storage.where)) as ledger, closing(open_ledger(storage.where)) as other:
            assert storage.put(earlier(storage, number, whole=True))
            with pytest.raises(LedgerError, match="entry 32 of the ledger has changed since it was read"):
                pay(ledger, "x", cost("1/100"))
            with pytest.raises(LedgerError, match="entry 32 of the ledger has changed since it was read"):
                other.verify()
            for way in (ledger, other):
                with pytest.raises(LedgerError, match="has changed since it was read"):  # from now on it is not trusted
                    way.head()
        assert len(storage.read()[ENTRIES]) == number


def test_an_older_copy_that_went_on_is_found(storage: Storage) -> None:
    with closing(open_ledger(storage.where)) as before:
        assert storage.put(earlier(storage, 10, whole=True))
        with closing(open_ledger(storage.where)) as ledger:
            assert ledger.balance("people").spent.epsilon * 20 == 9, "what was spent since is forgotten"
            for i in range(30):
                ledger.reopen("people", f"reason {i}")
            assert ledger.head().number == 40
        storage.fits_before(11)
        with pytest.raises(LedgerError, match="entry 32 of the ledger has changed since it was read"):
            before.balance("people")


def test_a_deleted_dataset_is_revealed_by_any_receipt_that_is_younger_than_it(storage: Storage) -> None:
    """Its entries are gone, and those of the others numbered and hashed anew: a ledger that holds, and another one."""
    for dataset, first in (("people", 1), ("visits", 13), ("patients", 25)):
        rows = without(storage.copy(), lambda tree, dataset=dataset: tree["dataset"] == dataset)  # type: ignore[misc]
        assert storage.put(storage.copy())
        with closing(open_ledger(storage.where)) as before:
            assert storage.put(rows)
            with pytest.raises(LedgerError, match="entry 32 of the ledger has changed since it was read"):
                before.verify()
        with closing(open_ledger(storage.where)) as ledger:
            assert dataset not in ledger.verify().entries
            assert len(ledger.datasets()) == 2
            for receipt in storage.receipts:
                if receipt.number < first:
                    ledger.verify(receipt)
                    continue
                older = receipt.number > len(rows[ENTRIES])
                with pytest.raises(LedgerError, match="is an older copy" if older else "has a different entry there"):
                    ledger.verify(receipt)


def test_a_deleted_dataset_whose_place_is_left_empty_is_found(storage: Storage) -> None:
    for dataset in ("people", "visits", "patients"):
        rows = storage.copy()
        gone = {row["number"] for row in rows[ENTRIES] if f'"dataset":"{dataset}"' in row["text"]}
        for table in (ENTRIES, ANSWERS, LEASES):
            rows[table] = [row for row in rows[table] if row["number"] not in gone]
        says = "ends at entry 24, but should" if dataset == "patients" else f"entry {min(gone)} of the ledger"
        assert storage.refuses(rows, says)
        whole = without(storage.copy(), lambda tree, gone=gone: tree["number"] in gone)  # type: ignore[misc]
        for kept in (ANSWERS, LEASES):
            if gone & {row["number"] for row in storage.honest[kept]}:
                assert storage.refuses(whole | {kept: storage.copy()[kept]}, "leases|answer")


def test_an_older_file_is_found_by_a_receipt_only(tmp_path: Path) -> None:
    path, copied = tmp_path / "people.ledger", tmp_path / "copy"
    with closing(open_ledger(path)) as ledger:
        ledger.create(PEOPLE)
        ask(ledger, "one", "42")
    copied.write_bytes(path.read_bytes())
    with closing(open_ledger(path)) as ledger:
        ask(ledger, "two", "43")
        receipt = str(ledger.head())
    path.write_bytes(copied.read_bytes())
    Path(f"{path}-journal").unlink()  # otherwise the older file is refused: see threats/test_older_copies.py
    with closing(open_ledger(path)) as ledger:
        assert ledger.verify().head.number == 3
        with pytest.raises(LedgerError, match="ends at entry 3, so it is an older copy"):
            ledger.verify(receipt)


def test_what_is_no_receipt(storage: Storage) -> None:
    for text in ("people:12", f"{storage.receipt}:people"):
        with pytest.raises(UserError, match="is not a receipt"):
            storage.check(text)


# --- while a ledger is open --------------------------------------------------------------------------


def test_the_newest_entry_is_looked_at_before_every_step(storage: Storage) -> None:
    """Its text, its hash, and both."""
    for how in ("text", "hash", "rehashed", "an earlier one rehashed"):
        rows = storage.copy()
        if how == "hash":
            rows[ENTRIES][-1]["hash"] = chain.digest("x")
        else:
            changed(rows, 12 if how.startswith("an earlier") else LAST, note="another reason")
        if how.endswith("rehashed"):
            rehashed(rows)
        steps: list[Callable[[Ledger], object]] = [
            lambda ledger: ledger.balance("people"),
            lambda ledger: pay(ledger, "x", cost("1/100")),
            lambda ledger: ledger.reopen("people", "a reason"),
            lambda ledger: ledger.verify(),
        ]
        for step in steps:
            assert storage.put(storage.copy())
            with closing(open_ledger(storage.where)) as ledger:
                assert storage.put(rows)
                says = "entry 32 of the ledger (has changed since it was read|is invalid)"
                with pytest.raises(LedgerError, match=says):
                    step(ledger)
                with pytest.raises(LedgerError, match=says):  # from now on it is not trusted
                    ledger.datasets()
            assert storage.read() == rows, "nothing was written"


def test_an_older_entry_that_was_changed_is_found_when_all_is_verified(storage: Storage) -> None:
    with closing(open_ledger(storage.where)) as ledger:
        rows = storage.copy()
        changed(rows, 5, cost="1/1000", totals={"accountant": "pure", "budget": ONE, "failures": 0, "spent": "1/1000"})
        assert storage.put(rows)
        assert ledger.balance("people").spent == PureDP("11/20"), "what this process has read is not read again"
        with pytest.raises(LedgerError, match="entry 5 of the ledger is invalid"):
            ledger.verify()
        with pytest.raises(LedgerError, match="entry 5 of the ledger is invalid"):
            pay(ledger, "x", cost("1/100"))
        assert storage.read() == rows


def test_what_another_writer_adds_must_be_lawful(storage: Storage) -> None:
    """The entries of others are read before every step, with all rules."""
    last = json.loads(storage.honest[ENTRIES][11]["text"])
    lawful = last | {"number": 33, "note": "more", "totals": last["totals"] | {"budget": {**ONE, "epsilon": "3/1"}}}
    refund = lawful | {"totals": last["totals"] | {"spent": "0/1"}}
    for tree, says in ((lawful, ""), (refund, "entry 33 of the ledger is invalid: its totals do not follow")):
        assert storage.put(storage.copy())
        with closing(open_ledger(storage.where)) as ledger:
            rows = storage.copy()
            rows[ENTRIES].append({"number": 33, "text": canonical(tree), "hash": ""})
            assert storage.put(rehashed(rows))
            if says:
                with pytest.raises(LedgerError, match=says):
                    pay(ledger, "x", cost("1/100"))
                with pytest.raises(LedgerError, match=says):
                    ledger.balance("people")
                assert storage.read() == rows
            else:
                assert ledger.balance("people").budget == PureDP(3)


def test_entries_that_are_added_or_removed_without_moving_the_end_are_found(storage: Storage) -> None:
    with closing(open_ledger(storage.where)) as ledger:
        rows = storage.copy()
        rows[ENTRIES].append(rows[ENTRIES][-1] | {"number": 33})
        assert storage.put(rows)
        with pytest.raises(LedgerError, match="entry 33 of the ledger is invalid"):
            pay(ledger, "x", cost("1/100"))
    assert storage.put(storage.copy())
    with closing(open_ledger(storage.where)) as ledger:
        rows = storage.copy()
        rows[LEDGER][0] |= {"number": 31, "hash": rows[ENTRIES][30]["hash"]}
        assert storage.put(rows)
        with pytest.raises(LedgerError, match="ends at entry 32, but should end at entry 31"):
            pay(ledger, "x", cost("1/100"))
        assert storage.read() == rows


@pytest.mark.parametrize("where_in", ["_apply", "_advance"])
def test_a_signal_while_entries_are_read_is_no_tampering(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, where_in: str
) -> None:
    """What was taken in by half is read again; and what was known before must still be there."""
    honest = getattr(LedgerState, where_in)

    def interrupted(self: LedgerState, *args: Any) -> None:
        honest(self, *args)
        monkeypatch.undo()
        raise KeyboardInterrupt

    for older in (False, True):
        assert storage.put(storage.copy())
        with closing(open_ledger(storage.where)) as ledger, closing(open_ledger(storage.where)) as other:
            spent = ledger.balance("people").spent
            pay(other, "x", cost("1/100"), analyst="bob")
            monkeypatch.setattr(LedgerState, where_in, interrupted)
            with pytest.raises(KeyboardInterrupt):
                ledger.balance("people")
            if older:
                storage.stored = {}
                assert storage.put(earlier(storage, 31, whole=True))
                with pytest.raises(LedgerError, match=r"entry 3[23] of the ledger has changed since it was read"):
                    ledger.balance("people")
            else:
                assert ledger.balance("people").spent == spent.compose(PureDP("1/100"))
                assert ledger.verify().head == other.head() == ledger.head()
        storage.stored = {}


def test_a_lease_of_what_is_settled_does_not_settle_it_again(storage: Storage) -> None:
    with closing(open_ledger(storage.where)) as ledger:
        charge = pay(ledger, "x", cost("1/100"))
        ledger.settle(charge, "answered", "42")
        rows = storage.read()
        rows[LEASES].append({"number": charge.number, "beats": 0})
        assert storage.put(rows)
        for outcome in ("answered", "failed", "interrupted"):
            with pytest.raises(InternalError, match="already settled as answered"):
                ledger.settle(charge, outcome, "43")
        assert storage.read() == rows


def test_leases_that_are_not_those_of_the_chain_are_found_before_debits_fail(storage: Storage) -> None:
    with closing(open_ledger(storage.where, lease=0.001)) as ledger:
        rows = storage.copy()
        rows[LEASES].append({"number": 99, "beats": 0})
        assert storage.put(rows)
        time.sleep(0.01)
        ledger._sweep()
        time.sleep(0.01)  # now those that were open at the start could be dead
        with pytest.raises(LedgerError, match="the leases of the ledger do not match its unsettled reservations"):
            pay(ledger, "x", cost("1/100"))
        assert storage.read() == rows


# --- answers -----------------------------------------------------------------------------------------


def ask_by_request(ledger: Ledger) -> Charge:
    return pay(ledger, "r1", cost("1/4"), asked="a", question="q")


def ask_by_a_served_request(ledger: Ledger) -> Charge:
    return pay(ledger, "r2", cost("1/4"), asked="a", question="q", analyst="bob")


def ask_the_same_question(ledger: Ledger) -> Charge:
    return pay(ledger, None, cost("1/5"), asked="a", question="q", analyst="cleo")


WAYS: list[Callable[[Ledger], Charge]] = [ask_by_request, ask_by_a_served_request, ask_the_same_question]


def test_a_changed_answer_is_never_served(storage: Storage) -> None:
    """Opening does not hash the answers, which can be many; whoever asks for one is told, and nothing is debited."""
    for text in ("the answer of visits", "", "the answer of people "):
        rows = storage.copy()
        rows[ANSWERS][0]["text"] = text
        assert storage.put(rows)
        with closing(open_ledger(storage.where)) as ledger:
            before = ledger.history("people")
            for way in WAYS:
                with pytest.raises(LedgerError, match="the stored answer to entry 5 of the ledger does not match"):
                    way(ledger)
            assert ledger.history("people") == before
            with pytest.raises(LedgerError, match="the stored answer to entry 5 of the ledger does not match"):
                ledger.verify()
            with pytest.raises(LedgerError):  # from now on it is not trusted
                ledger.balance("people")
    assert storage.put(storage.copy())
    storage.stored = {}
    with closing(open_ledger(storage.where)) as ledger:
        assert [way(ledger).answer for way in WAYS] == ["the answer of people"] * 3


def test_an_answer_that_is_removed_while_the_ledger_is_open_is_not_drawn_again(storage: Storage) -> None:
    with closing(open_ledger(storage.where)) as ledger:
        rows = storage.copy()
        del rows[ANSWERS][0]
        assert storage.put(rows)
        for way in WAYS:
            with pytest.raises(LedgerError, match="the stored answer to entry 5 of the ledger does not match"):
                way(ledger)
        assert storage.read() == rows
        with pytest.raises(LedgerError, match="the stored answer to entry 5 of the ledger does not match"):
            ledger.verify()


def test_every_column_is_looked_at() -> None:
    """A further column must be looked at by the tests above."""
    columns = {table.name: [column.name for column in table.columns] for table in tables.metadata.sorted_tables}
    assert columns == {
        LEDGER: ["version", "number", "hash"],
        ENTRIES: ["number", "text", "hash"],
        ANSWERS: ["number", "text"],
        LEASES: ["number", "beats"],
    }
