"""Certificates of several kinds of questions, from fixed noisy integers: no engine, no data, nothing random."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import privet as pv
from privet.ledger import Charge, Dataset, Ledger, memory_ledger
from privet.mechanisms import Laplace
from privet.planner import ReleasePlan, plan
from privet.planner.choice import Accounting
from privet.privacy.accounting import accountant_for
from privet.privacy.adjacency import Adjacency
from privet.privacy.events import PrivacyEvent
from privet.privacy.guarantees import ZeroConcentratedDP
from privet.release.certificate import Certificate, certify, of_query, of_value
from privet.tables.operators import Scan
from privet.tables.query import Query
from privet.tables.relation import Relation
from privet.tables.schema import Schema

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
PUBLIC = KEY.public_key()

COLUMNS: dict[str, Any] = {
    "age": pv.integer(0, 110),
    "pay": pv.number(-100, 200_000, step="1/4"),
    "hours": pv.integer(1, 60, required=True),
    "region": pv.keys("north", "süd", other="elsewhere"),
    "born": pv.date("2000-01-01", "2000-03-31"),
    "flag": pv.boolean(),
}


METERS = Accounting(accountant_for(pv.ApproxDP(1, 1e-6)), pv.ApproxDP(1, 1e-6))


def people(**how: Any) -> Relation:
    return Relation(Scan(Schema.declare("people", **{"protect": pv.each_row(), "columns": COLUMNS, **how})))


def persons(**how: Any) -> Relation:
    return people(**{"protect": pv.person("id", max_groups=2, max_rows_per_group=3), **how})


ASKED: dict[str, tuple[Callable[[], Query], dict[str, Any]]] = {
    "count": (lambda: people().agg(n=pv.count()), {"epsilon": 1}),
    "groups": (
        lambda: persons().where(pv.col("age") >= 18).group_by("region").agg(n=pv.count(), pay=pv.mean("pay")),
        {"epsilon": "1/3", "assuming": 500, "confidence": 0.9, "weights": {"n": 2}},
    ),
    "spread": (
        lambda: people(adjacency="replace").agg(v=pv.variance("age"), s=pv.std("age"), t=pv.sum("age")),
        {"epsilon": 0.5, "simultaneous": True},
    ),
    "within": (
        lambda: persons(adjacency="replace").agg(n=pv.count_people(), r=pv.sum("hours") / pv.sum("age")),
        {"within": {"n": 50, "r": 1}, "assuming": 1000},
    ),
    "histogram": (
        lambda: people().group_by(month=pv.col("born").truncate("month")).agg(h=pv.histogram("pay", [0, 10, 1000])),
        {"epsilon": 2},
    ),
    "public": (
        lambda: people(adjacency="replace", rows=1000).agg(n=pv.count(), hours=pv.mean("hours")),
        {"epsilon": 1},
    ),
    "public spread": (
        lambda: people(adjacency="replace", rows=1000).agg(v=pv.variance("hours"), m=pv.mean("hours")),
        {"epsilon": 1},
    ),
    "per person": (
        lambda: (
            people(protect=pv.person("id", max_rows=2))
            .per_person(total=pv.sum("hours"), most=pv.greatest("pay"))
            .with_columns(
                band=pv.when(pv.col("most") > 1000, "high").when(pv.col("most").is_missing(), "none").otherwise("low")
            )
            .group_by("band")
            .agg(m=pv.mean(pv.col("total").clip(0, 500)), share=pv.mean(pv.col("most") > 10))
        ),
        {"epsilon": 1, "assuming": 100},
    ),
    "rho": (lambda: people().group_by("region").agg(n=pv.count()), {"rho": "1/50"}),
    "rho on meters": (
        lambda: persons(adjacency="replace").group_by("region").agg(n=pv.count_people(), pay=pv.mean("pay")),
        {"rho": "1/50", "assuming": 100, "accounting": METERS},
    ),
    "approximate": (
        lambda: people(adjacency="replace").agg(v=pv.variance("age"), s=pv.std("age"), t=pv.sum("age")),
        {"epsilon": 1, "delta": 1e-6, "mechanism": "gaussian"},
    ),
    "approximate within": (
        lambda: persons().agg(n=pv.count_people(), t=pv.sum("hours")),
        {"within": {"n": 50, "t": 5000}, "delta": 1e-7, "mechanism": "gaussian"},
    ),
}


def noisy_of(made: ReleasePlan) -> list[list[list[int]]]:
    """Integers as noise might have left them: mostly sensible, some negative."""
    return [
        [
            [
                1000 + 37 * (i + 1) * (g + 2) + 11 * c if (g + c) % 4 else -3 * (c + 1)
                for c in range(part.measurement.size)
            ]
            for g in range(made.groups)
        ]
        for i, part in enumerate(made.noised)
    ]


def made_plan(name: str) -> ReleasePlan:
    ask, how = ASKED[name]
    return plan(ask(), **how)


LINK = {"entry": 2, "hash": "5" * 64, "request_id": "first", "analyst": "ann"}
"""The form of a link, for what is checked without a ledger."""


def certificate(name: str, *, key: Any = KEY, link: dict[str, Any] = LINK) -> Certificate:
    if name == "value":
        mechanism = Laplace(sensitivity="1/3", epsilon=0.5).fit([1.5, 2.5])
        body = of_value(mechanism, [float(mechanism.step) * 7, float(mechanism.step) * -9], "two medians")
    else:
        made = made_plan(name)
        noisy = noisy_of(made)
        body = of_query(made, noisy, made.cells(noisy))
    one, text = certify(body, dataset="people", link=link, version="0.1.0", key=key)
    assert one.to_json() == text
    return one


def event_of(name: str) -> Any:
    if name == "value":
        return Laplace(sensitivity="1/3", epsilon=0.5).fit([1.5, 2.5]).event()
    return made_plan(name).event()


def debit(
    ledger: Ledger, *done: PrivacyEvent, analyst: str = "ann", request_id: str = "first", budget: int = 10**6
) -> Charge:
    """A debit for these, in a ledger that may be new."""
    ledger.create(Dataset("people", "row", Adjacency.ADD_REMOVE, ZeroConcentratedDP(budget)))
    return ledger.reserve(dataset="people", analyst=analyst, request_id=request_id, events=done)


def link_to(charge: Charge, analyst: str = "ann") -> dict[str, Any]:
    """What a certificate says of its debit."""
    return {"entry": charge.number, "hash": charge.hash, "request_id": charge.request_id, "analyst": analyst}


def certified(name: str, *, ledger: Ledger | None = None, key: Any = KEY) -> tuple[Certificate, Ledger]:
    """A certificate, and the ledger that holds its debit and its text."""
    book: Ledger = memory_ledger() if ledger is None else ledger
    charge = debit(book, event_of(name))
    found = certificate(name, key=key, link=link_to(charge))
    book.settle(charge, "answered", found.to_json())
    return found, book


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
