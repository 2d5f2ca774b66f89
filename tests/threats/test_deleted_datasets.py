"""L5 for a dataset as a whole: taken out of a ledger, with all that belongs to it, it is missed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from tests.effort import some
from tests.threats.peers import REFUSALS, Where, ask, session, write_people

from privet.codec import canonical
from privet.errors import LedgerError
from privet.ledger import open_ledger
from privet.ledger.history import chain

PRICE = "1/10"
Row = dict[str, Any]
Rows = dict[str, list[Row]]
TABLES = ("privet_ledger", "privet_entries", "privet_answers", "privet_leases")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rows, list[str]]:
    """A ledger with two datasets, one question in turn for each, and a third at the end; and its receipts."""
    folder = tmp_path_factory.mktemp("asked")
    kept = []
    for name in ("people", "visits", "people", "visits", "others"):
        source = folder / f"{name}.parquet"
        if not source.exists():
            write_people(source)
        with closing(session(folder / "a.ledger", source, name=name)) as asking:
            ask(asking, PRICE)
        with closing(open_ledger(folder / "a.ledger")) as ledger:
            kept.append(str(ledger.head()))
    return read(folder / "a.ledger"), kept


@pytest.fixture
def receipts(where: Where, asked: tuple[Rows, list[str]]) -> list[str]:
    """Of that ledger, which is put here."""
    rows, kept = asked
    open_ledger(where).close()
    put(where, rows)
    with closing(open_ledger(where)) as ledger:
        for receipt in kept:
            ledger.verify(receipt)
    return kept


@contextmanager
def inside(where: Where) -> Iterator[sa.Connection]:
    url = f"sqlite:///{where}" if isinstance(where, Path) else where.replace("postgresql:", "postgresql+psycopg:")
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def read(where: Where) -> Rows:
    with inside(where) as connection:
        return {
            name: [dict(row._mapping) for row in connection.execute(sa.text(f"SELECT * FROM {name} ORDER BY number"))]
            for name in TABLES
        }


def put(where: Where, rows: Rows) -> None:
    with inside(where) as connection:
        for name, content in rows.items():
            connection.execute(sa.text(f"DELETE FROM {name}"))
            if content:
                marks = ", ".join(f":{column}" for column in content[0])
                connection.execute(sa.text(f"INSERT INTO {name} ({', '.join(content[0])}) VALUES ({marks})"), content)


def without(rows: Rows, dataset: str) -> Rows:
    """All of the dataset is gone, and nothing else is touched but the end."""
    gone = {row["number"] for row in rows["privet_entries"] if json.loads(row["text"])["dataset"] == dataset}
    assert gone
    left = {name: [dict(row) for row in content if row["number"] not in gone] for name, content in rows.items()}
    left["privet_ledger"] = [dict(row) for row in rows["privet_ledger"]]
    return left


def with_its_end(rows: Rows) -> Rows:
    last = rows["privet_entries"][-1]
    rows["privet_ledger"][0] |= {"number": last["number"], "hash": last["hash"]}
    return rows


def renumbered(rows: Rows) -> Rows:
    places = {row["number"]: place for place, row in enumerate(rows["privet_entries"], 1)}
    for name in ("privet_entries", "privet_answers", "privet_leases"):
        for row in rows[name]:
            row["number"] = places[row["number"]]
    return with_its_end(rows)


def retold(rows: Rows) -> Rows:
    """With other numbers in the texts too, but the old hashes."""
    places = {row["number"]: place for place, row in enumerate(rows["privet_entries"], 1)}
    for row in rows["privet_entries"]:
        tree = json.loads(row["text"])
        tree["number"] = places[tree["number"]]
        if "refers" in tree:
            tree["refers"] = places[tree["refers"]]
        row["text"] = canonical(tree)
    return renumbered(rows)


def rehashed(rows: Rows) -> Rows:
    """A whole new history, as only somebody could make who means to."""
    found = chain.GENESIS
    for row in retold(rows)["privet_entries"]:
        row["hash"] = found = chain.link(found, json.loads(row["text"])["dataset"], chain.digest(row["text"]))
    return with_its_end(rows)


def only_rows(rows: Rows) -> Rows:
    return rows


BY_TURNS = [
    (only_rows, "people"), (only_rows, "visits"), (with_its_end, "visits"), (with_its_end, "people"),
    (renumbered, "people"), (renumbered, "visits"), (retold, "visits"), (retold, "people"),
]  # fmt: skip


@pytest.mark.parametrize(("how", "dataset"), some(BY_TURNS, every=2))
def test_a_deleted_dataset_is_missed(
    where: Where, receipts: list[str], how: Callable[[Rows], Rows], dataset: str
) -> None:
    whole = read(where)
    put(where, how(without(whole, dataset)))
    with pytest.raises(REFUSALS):
        open_ledger(where)
    put(where, whole)
    with closing(open_ledger(where)) as ledger:
        for receipt in receipts:
            ledger.verify(receipt)


@pytest.mark.parametrize("dataset", ["people", "visits"])
def test_a_whole_new_history_is_revealed_by_any_receipt(where: Where, receipts: list[str], dataset: str) -> None:
    put(where, rehashed(without(read(where), dataset)))
    try:
        opened = open_ledger(where)
    except LedgerError:
        return
    with closing(opened) as ledger:
        revealed = 0
        for receipt in receipts[1 if dataset == "visits" else 0 :]:
            with pytest.raises(LedgerError):
                ledger.verify(receipt)
            revealed += 1
        assert revealed >= 4


def test_the_last_dataset_is_missed_by_its_receipt(where: Where, receipts: list[str]) -> None:
    """At the end of the chain it is an older copy, which verifies; a receipt shows it."""
    put(where, with_its_end(without(read(where), "others")))
    with closing(open_ledger(where)) as ledger:
        for receipt in receipts[:-1]:
            ledger.verify(receipt)
        with pytest.raises(LedgerError, match="older"):
            ledger.verify(receipts[-1])


def test_a_dataset_that_is_deleted_while_the_ledger_is_open(where: Where, receipts: list[str]) -> None:
    with closing(open_ledger(where)) as ledger:
        put(where, rehashed(without(read(where), "visits")))
        with pytest.raises(LedgerError):
            ledger.balance("people")


def test_tables_that_were_emptied_are_no_new_ledger(where: Where, receipts: list[str]) -> None:
    whole = read(where)
    for emptied in (TABLES, TABLES[1:], TABLES[:1], TABLES[1:2]):
        put(where, {name: [] if name in emptied else content for name, content in whole.items()})
        with pytest.raises(REFUSALS):
            open_ledger(where)


def test_tables_that_were_dropped_are_no_new_ledger(postgres: str, tmp_path: Path) -> None:
    with closing(session(postgres, write_people(tmp_path / "people.parquet"))) as asking:
        ask(asking, PRICE)
    for name in TABLES[:-1]:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"DROP TABLE {name}".encode())
        with pytest.raises(REFUSALS):
            open_ledger(postgres)
