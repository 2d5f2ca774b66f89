"""The pages of a dataset: its tables, the editor and the form, what a question would cost, and asking it."""

from __future__ import annotations

import json
import re
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response

from privet.errors import PrivetError, UserError
from privet.exact import Exact
from privet.planner import ReleasePlan
from privet.preview import Preview
from privet.privacy.guarantees import ApproxDP, Budget, ZeroConcentratedDP
from privet.server.call import Call, in_thread
from privet.server.models import Question
from privet.server.pages import budgets, explaining, forms, problems, words
from privet.server.pages.explaining import Explained
from privet.server.pages.frames import HEADERS, fields, first, go, segment, show
from privet.server.pages.problems import ProblemShown
from privet.server.pages.rendering import environment
from privet.sql.quoting import quoted
from privet.tables.types import BooleanType, KeyType

_USUAL = "0.1"
_CONFIDENCES = ("0.8", "0.9", "0.95", "0.99")
_ID = re.compile(r"page-[0-9a-f]{32}")
_LONGEST = 100_000  # characters of a statement


@dataclass(frozen=True, slots=True)
class QuestionShown:
    """What somebody has written so far."""

    mode: str
    sql: str
    request_id: str
    example: str
    as_sql: str
    as_form: str
    confidence: str
    assuming: str
    fresh: bool

    @property
    def options_open(self) -> bool:
        """Whether an option differs from the usual."""
        return self.fresh or self.confidence != "0.95"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as a form sends it: the statement, its price and its options."""

    sql: str
    price: str
    unit: str
    confidence: str
    assuming: str
    fresh: bool

    def options(self, preview: Preview) -> dict[str, Any]:
        """The options of a plan; numbers are exact, as they are written. A price in the statement comes first."""
        options: dict[str, Any] = {self.unit: self.price, "confidence": self.confidence}
        with suppress(UserError):  # which planning reports
            if preview.dataset.asked(self.sql).price:
                del options[self.unit]
        if self.assuming:
            if not re.fullmatch(r"[1-9][0-9]{0,14}", self.assuming):
                raise UserError("the rows in a group must be a whole number", allowed="For example: 500")
            options["assuming"] = int(self.assuming)
        return options


async def datasets_page(call: Call) -> Response:
    """The datasets that somebody may ask, with what is left of each budget."""
    return show(call, "datasets.html", datasets=await in_thread(_datasets, call), active="datasets")


def _datasets(call: Call) -> list[dict[str, Any]]:
    found = []
    for name, dataset in call.server.datasets.items():
        if not call.me.may_ask(name):
            continue
        preview = Preview(dataset, call.name)
        tables = [*preview.tables, *preview.public]
        count = f"{len(tables)} table{'' if len(tables) == 1 else 's'}"
        found.append(
            {
                "name": name,
                "budget": _budget(preview),
                "summary": f"{count}: {', '.join(tables)}.",
                "closed": budgets.is_closed(dataset.ledger, name, call.name),
            }
        )
    return found


async def tables_page(call: Call) -> Response:
    """The tables of a dataset with their bounds in words."""
    shown = await in_thread(_dataset, Preview(call.dataset, call.name))
    return show(call, "tables.html", dataset=shown, active="datasets")


async def dataset_page(call: Call) -> Response:
    """The editor or the form, perhaps with a question that a link brings."""
    query = call.request.query_params
    given = {name: query.getlist(name) for name in query}
    return await _planned(call, given, explain=bool(query.get("sql", "").strip()))


async def ask(call: Call) -> Response:
    """Ask the question of the form and pay for it, or only say what it would cost."""
    given = await fields(call.request)
    if first(given, "act") != "ask":
        return await _planned(call, given, explain=first(given, "act") == "explain")
    preview = Preview(call.dataset, call.name)
    asked = _asked(given, preview)
    request_id = _request_id(given)
    try:
        options = await call.server.asking.planned(call.me, asked.options, preview)
        question = Question(sql=asked.sql, fresh=asked.fresh, **options)
        await call.server.asking.ask(call.dataset, call.me, question, request_id=request_id)
    except PrivetError as error:
        return await _planned(call, given, error=error)
    return go(f"/datasets/{segment(call.path('dataset'))}/answers/{request_id}")


async def preview(call: Call) -> Response:
    """What the question would cost, as pieces of the page: for the script that asks while somebody writes."""
    given = await fields(call.request)
    tree = await call.server.asking.planned(call.me, _preview, call, given)
    headers = {**HEADERS, "Content-Type": "application/json"}
    return Response(json.dumps(tree, ensure_ascii=False), headers=headers)


def _preview(call: Call, given: dict[str, list[str]]) -> dict[str, Any]:
    preview = Preview(call.dataset, call.name)
    asked = _asked(given, preview)
    explained, problem = _explained(preview, asked)
    pieces = environment().get_template("parts/pieces.html").module
    return {
        "sql": asked.sql,
        "explained": environment().get_template("parts/explained.html").render(explained=explained, problem=problem),
        "problem": "" if problem is None else str(pieces.problem(problem)),  # type: ignore[attr-defined]
        "at": [int(each) for each in problem.at.split()] if problem is not None and problem.at else None,
    }


async def _planned(call: Call, given: dict[str, list[str]], **how: Any) -> Response:
    return await call.server.asking.planned(call.me, _shown, call, given, **how)


# --- what is shown ----------------------------------------------------------------------------------


def _shown(
    call: Call, given: dict[str, list[str]], *, explain: bool = False, error: PrivetError | None = None
) -> Response:
    preview = Preview(call.dataset, call.name)
    asked = _asked(given, preview)
    mode = _mode(given)
    form = _form(given, preview) if mode == "form" else None
    explained: Explained | None = None
    problem: ProblemShown | None = None
    status = 200
    if error is not None:
        problem, status = problems.shown(error), problems.status(error)
        if not problem.at:
            explained, _ = _explained(preview, asked)
    elif asked.sql.strip() and (explain or mode == "form"):
        explained, problem = _explained(preview, asked)
    elif explain:
        problem = ProblemShown("Write a question first.")
    balance = preview.balance
    kept = {"price": asked.price, "confidence": asked.confidence}
    question = QuestionShown(
        mode,
        asked.sql if mode == "sql" else "",
        _request_id({} if error is not None else given),
        _example(preview),
        urlencode({"mode": "sql", **({"sql": asked.sql} if mode == "form" else {}), **kept}),
        urlencode({"mode": "form", **kept}),
        asked.confidence,
        asked.assuming,
        asked.fresh,
    )
    return show(
        call,
        "dataset.html",
        active="datasets",
        status=status,
        dataset=_dataset(preview),
        question=question,
        form=form,
        words=words.completions(preview.tables, preview.public) if mode == "sql" else "",
        price=explaining.price(balance.budget, _left(balance.remaining.guarantee), asked.price),
        explained=explained,
        problem=problem,
        budget=_budget(preview),
        here=f"/datasets/{segment(preview.name)}",
        closed=budgets.is_closed(preview.ledger, preview.name, preview.analyst),
    )


def _dataset(preview: Preview) -> dict[str, Any]:
    return {"name": preview.name, "tables": words.tables(preview.tables, preview.public)}


def _budget(preview: Preview) -> budgets.BudgetShown:
    return budgets.shown(preview.balance, preview.ledger.latest(preview.name, preview.analyst))


def _left(guarantee: Budget) -> Exact:
    return guarantee.rho if isinstance(guarantee, ZeroConcentratedDP) else guarantee.epsilon


def _form(given: dict[str, list[str]], preview: Preview) -> forms.Form:
    return forms.filled(given, preview.tables, texts=isinstance(preview.balance.budget, ApproxDP))


def _mode(given: dict[str, list[str]]) -> str:
    return "form" if first(given, "mode") == "form" else "sql"


def _asked(given: dict[str, list[str]], preview: Preview) -> Asked:
    sql = first(given, "sql")[:_LONGEST]
    if _mode(given) == "form":
        sql = _form(given, preview).sql
    unit = "rho" if isinstance(preview.balance.budget, ZeroConcentratedDP) else "epsilon"
    confidence = first(given, "confidence", "0.95")
    return Asked(
        sql,
        first(given, "price", _USUAL).strip()[:100] or _USUAL,
        unit,
        confidence if confidence in _CONFIDENCES else "0.95",
        first(given, "assuming", "500").strip()[:20],
        first(given, "fresh") == "1",
    )


def _request_id(given: dict[str, list[str]]) -> str:
    """The id that makes a second click the same request."""
    value = first(given, "request_id")
    return value if _ID.fullmatch(value) else f"page-{uuid.uuid4().hex}"


def _explained(preview: Preview, asked: Asked) -> tuple[Explained | None, ProblemShown | None]:
    try:
        options = asked.options(preview)
        plan = preview.plan(asked.sql, **options)
        before = None if asked.fresh else preview.paid_before(plan)
        sections = preview.explain(plan, fresh=asked.fresh, face="http").sections()

        def other(**price: str) -> ReleasePlan:
            return preview.dataset.plan(asked.sql, **{**options, **price})

        at = explaining.other_price(other, asked.unit)
        found = explaining.explained(plan, preview.balance, before=before, sections=sections, at=at)
    except PrivetError as error:
        return None, problems.shown(error)
    return found, None


def _example(preview: Preview) -> str:
    """A question that can be asked about the first table."""
    name, table = next(iter(preview.tables.items()))
    groups = forms.filled({"table": [name]}, {name: table}, texts=False).groupable
    types = {each: column.type for each, column in table.schema.columns}
    few = (each for each in groups if isinstance(types[each], KeyType | BooleanType))
    by = quoted(next(few, groups[0])) if groups else ""
    return (
        f"SELECT {by}, COUNT(*) AS n FROM {quoted(name)} GROUP BY {by}"
        if by
        else f"SELECT COUNT(*) AS n FROM {quoted(name)}"
    )
