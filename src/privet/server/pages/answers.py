"""The pages of an answer: its table and chart, its files, its certificate with the check, and the history."""

from __future__ import annotations

import json
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from starlette.responses import Response

from privet.errors import NotChecked, PrivetError, VerificationError
from privet.ledger.history.entries import Charge, Entry
from privet.payment import unanswered
from privet.privacy.guarantees import PureDP
from privet.release import Release
from privet.release.batch import ReleasedBatch
from privet.release.render import frame
from privet.release.render import json as as_json
from privet.release.verification import check
from privet.server import reading
from privet.server.accounts import Role
from privet.server.asking import Running
from privet.server.authorization import NOT_FOUND
from privet.server.call import Call, in_thread
from privet.server.pages import showing
from privet.server.pages.charts import charts
from privet.server.pages.frames import HEADERS, segment, show, when
from privet.server.problems import Refusal
from privet.tables import operators

_SECONDS = 2  # between two looks at a question that runs
_RECENT = 100  # entries of a page of the history
_CHUNKS = 5  # of entries that are read for a page
_OURS = ("reserved", "served")
_SIGNS = {"answered": "good", "failed": "bad", "interrupted": "warn", "running": ""}


_RULES = (
    "The checker, which shares no rule with the planner, worked out sensitivities, noise and cost from the statements "
    "that the engine was given. Then every value and every interval was computed anew."
)


@dataclass(frozen=True, slots=True)
class Found:
    """An answer, and the entry that asked for it, if that is known."""

    release: Release
    entry: Entry | None
    parts: tuple[str, ...]
    """The names of all answers, if it is a batch."""
    part: int

    @property
    def suffix(self) -> str:
        """What an address needs to name this part of a batch."""
        return f"?part={self.part}" if self.parts else ""

    @property
    def number(self) -> int:
        """The number of the debit."""
        return int(self.release.certificate.document["ledger"]["entry"])


async def answer_page(call: Call) -> Response:
    """An answer as chart and table, or that it is being computed."""
    found = await _found(call)
    if found is None:
        return show(call, "waiting.html", seconds=_SECONDS, dataset=call.path("dataset"), status=202, active="datasets")
    return await call.server.asking.written(call.me, _page, call, found)


def _page(call: Call, found: Found) -> Response:
    entry, here = found.entry, _here(call)
    origin = call.server.settings.origin
    statement = "" if entry is None else entry.statement
    sql = statement if statement.lstrip().upper().startswith(("SELECT", "WITH", "(")) else ""
    shown = showing.shown(
        found.release,
        entry=found.number,
        when="" if entry is None else when(entry.time),
        by="" if entry is None or entry.analyst == call.name else entry.analyst,
        sql=sql,
        origin=origin,
        dataset=call.path("dataset"),
        link=f"{origin}{here}",
    )
    names = {"parts": found.parts, "part": found.part, "suffix": found.suffix}
    return show(call, "answer.html", active="datasets", dataset=call.path("dataset"), here=here, answer=shown, **names)


async def answer_file(call: Call) -> Response:
    """A file of an answer: its numbers, its chart or its certificate."""
    found = await _found(call)
    if found is None:
        raise Refusal(404, NOT_FOUND)
    return await call.server.asking.written(call.me, _file, call.path("file"), found)


def _file(name: str, found: Found) -> Response:
    release = replace(found.release, remaining=None)  # the balance of today is not that of the answer
    stem, _, kind = name.rpartition(".")
    if name == "answer.csv":
        return _download(release.to_csv().encode(), f"answer-{found.number}.csv", "text/csv; charset=utf-8")
    if name == "answer.parquet":
        raw = frame.parquet(release, as_json.facts(release))
        return _download(raw, f"answer-{found.number}.parquet", "application/vnd.apache.parquet")
    if name == "answer.json":
        return _download(as_json.answer(release).encode(), f"answer-{found.number}.json", "application/json")
    if name == "certificate.json":
        return _download(release.certificate.to_bytes(), f"certificate-{found.number}.json", "application/json")
    if kind == "svg" and stem.startswith("chart-") and stem[6:].isdecimal() and len(stem) < 12:
        drawn = charts(release.view())
        at = int(stem[6:]) - 1
        if 0 <= at < len(drawn):
            svg = str(drawn[at][1]).replace('width="100%"', 'width="640"', 1)
            return _download(svg.encode(), f"chart-{found.number}-{at + 1}.svg", "image/svg+xml")
    raise Refusal(404, NOT_FOUND)


def _download(body: bytes, name: str, media: str) -> Response:
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"', "Content-Type": media}
    return Response(body, headers=headers)


async def certificate_page(call: Call) -> Response:
    """The certificate of an answer, checked while the page is made."""
    found = await _found(call)
    if found is None:
        raise Refusal(404, NOT_FOUND)
    return await call.server.asking.written(call.me, _certificate, call, found)


def _certificate(call: Call, found: Found) -> Response:
    release, dataset = found.release, call.dataset
    certificate = release.certificate
    start = time.perf_counter()
    steps, promise = [], ""
    try:
        promise = check(certificate).promise
        steps.append({"sign": "good", "name": "Rules", "words": _RULES})
    except NotChecked as error:
        steps.append({"sign": "none", "name": "Rules", "words": str(error)})
    except VerificationError as error:
        steps.append({"sign": "bad", "name": "Rules", "words": str(error)})
    key = dataset.signing_key
    if key is None:
        words = "Not checked: this dataset has no signing key."
        steps.append({"sign": "none", "name": "Signature", "words": words})
    else:
        steps.append(_step("Signature", "The steward’s key has signed every byte.", certificate, key=key.public_key()))
    debit = (
        f"Entry {found.number} of the ledger is its debit, made before any row was read, and names this certificate."
    )
    steps.append(_step("Debit", debit, certificate, ledger=nullcontext(dataset.ledger)))
    took = time.perf_counter() - start
    passed = all(step["sign"] != "bad" for step in steps)
    guarantee = release.guarantee
    meaning = ""
    if hasattr(guarantee, "meaning") and not hasattr(guarantee, "rho"):
        meaning = str(guarantee.meaning(operators.adjacency(release.plan.query.input)))
    return show(
        call,
        "certificate.html",
        active="datasets",
        dataset=call.path("dataset"),
        entry=found.number,
        back=_here(call),
        suffix=found.suffix,
        passed=passed,
        took=f"{took * 1000:.0f} ms",
        steps=steps,
        promise=promise or "Nothing, since it does not hold.",
        meaning=meaning,
        document=json.dumps(certificate.document, indent=2, ensure_ascii=False),
    )


def _step(name: str, words: str, certificate: Any, **how: Any) -> dict[str, str]:
    try:
        check(certificate, **how)
    except NotChecked:
        return {"sign": "good", "name": name, "words": words}
    except PrivetError as error:
        return {"sign": "bad", "name": name, "words": str(error)}
    return {"sign": "good", "name": name, "words": words}


# --- finding ----------------------------------------------------------------------------------------


async def _found(call: Call) -> Found | None:
    """The answer that a path names, by the number of an entry or by a request id; None while it is computed."""
    which, dataset = call.path("which"), call.dataset
    entry = await in_thread(_entry, call, which)
    if which.isdecimal() and which.isascii():
        if entry is None:
            raise Refusal(404, NOT_FOUND)
        number = entry.number if entry.refers is None else entry.refers
        state = (await in_thread(dataset.ledger.states, [number]))[number]
        if state == "running":
            return None
        text = await in_thread(dataset.ledger.answer, dataset.name, number)
        if text is None:
            raise unanswered(
                Charge(number, dataset.name, PureDP.ZERO, "interrupted" if state == "interrupted" else "failed")
            )
        session = call.server.asking.session(dataset, call.me)
        released = await call.server.asking.planned(call.me, reading.reopened, session, text)
    else:
        answered = await call.server.asking.answer(dataset, call.me, which, wait=1.0)
        if answered is None:
            raise Refusal(404, NOT_FOUND)
        if isinstance(answered, Running):
            return None
        released = answered.released
    if isinstance(released, ReleasedBatch):
        names = tuple(released)
        part = min(call.number("part") or 0, len(names) - 1)
        return Found(released[names[part]], entry, names, part)
    return Found(released, entry, (), 0)


def _entry(call: Call, which: str) -> Entry | None:
    """The entry that asked: one's own, or for a steward anybody's."""
    ledger, name = call.dataset.ledger, call.path("dataset")
    analyst = None if call.me.role is Role.STEWARD else call.name
    if which.isdecimal() and which.isascii() and len(which) < 16:
        entries, _ = ledger.recent(name, analyst=analyst, before=int(which) + 1, limit=1)
        return next((each for each in entries if each.number == int(which) and each.kind in _OURS), None)
    entries, _ = ledger.recent(name, analyst=call.name, limit=_RECENT)
    return next((each for each in entries if each.request_id == which and each.kind in _OURS), None)


def _here(call: Call) -> str:
    return f"/datasets/{segment(call.path('dataset'))}/answers/{segment(call.path('which'))}"


# --- history ----------------------------------------------------------------------------------------


async def history_page(call: Call) -> Response:
    """What was asked about a dataset: by oneself, or for stewards by everybody."""
    name = call.path("dataset")
    everyone = call.me.role is Role.STEWARD
    before = call.number("before", least=1)
    entries, older = await in_thread(_asked, call, name, None if everyone else call.name, before)
    here = f"/datasets/{segment(name)}/history"
    return show(
        call,
        "history.html",
        active="datasets",
        dataset=name,
        everyone=everyone,
        entries=entries,
        newer=here if before is not None else "",
        older=f"{here}?before={older}" if older is not None else "",
    )


async def own_history_page(call: Call) -> Response:
    """What one has asked lately, about every dataset."""
    found: list[dict[str, Any]] = []
    for name in call.server.datasets:
        if call.me.may_ask(name):
            found += (await in_thread(_asked, call, name, call.name, None))[0]
    found.sort(key=lambda each: str(each["time"]), reverse=True)
    entries = found[:_RECENT]
    values = {"dataset": "", "everyone": False, "entries": entries, "newer": "", "older": ""}
    return show(call, "history.html", active="history", **values)


def _asked(call: Call, name: str, analyst: str | None, before: int | None) -> tuple[list[dict[str, Any]], int | None]:
    """The questions before an entry, newest first, and where to continue."""
    ledger = call.server.datasets[name].ledger
    entries: list[Entry] = []
    for _ in range(_CHUNKS):
        some, before = ledger.recent(name, analyst=analyst, before=before, limit=_RECENT)
        entries += [each for each in some if each.kind in _OURS]
        if before is None or len(entries) >= _RECENT:
            break
    if len(entries) > _RECENT:
        entries = entries[:_RECENT]
        before = entries[-1].number
    states = ledger.states([each.number if each.refers is None else each.refers for each in entries])
    rows = []
    for each in entries:
        state = states[each.number if each.refers is None else each.refers]
        link = f"/datasets/{segment(name)}/answers/{each.number}" if state in ("answered", "running") else ""
        rows.append(
            {
                "statement": each.statement or "(no statement)",
                "link": link,
                "analyst": each.analyst,
                "dataset": name,
                "cost": "free" if each.price is None else str(each.price),
                "time": each.time,
                "when": when(each.time),
                "state": "stored answer" if each.kind == "served" and state == "answered" else state,
                "sign": _SIGNS.get(state, ""),
            }
        )
    return rows, before
