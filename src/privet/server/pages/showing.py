"""An answer for a page: its table, its charts, its notes, and what can be taken away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR
from urllib.parse import urlencode

from markupsafe import Markup

from privet.exact import show
from privet.privacy.guarantees import ZeroConcentratedDP
from privet.release import Release
from privet.release.render.view import marks
from privet.server.pages.charts import MOST_ROWS, charts
from privet.server.pages.rendering import segment
from privet.tables.expressions.rendering import show as show_node
from privet.tables.operators import JoinPerson, JoinPublic, Operator, PerPerson, Scan, Where, WithColumns
from privet.tables.wording import worded

MOST_LINES = 1000
"""Groups that a page shows; files have all."""
_SHORT = 12  # groups up to which two charts stand side by side


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column."""

    name: str
    right: bool


@dataclass(frozen=True, slots=True)
class CellShown:
    """A number, its interval, and whether it is too noisy."""

    value: str
    interval: str
    noisy: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A group: its keys and its numbers."""

    labels: tuple[str, ...]
    cells: tuple[CellShown, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page shows of an answer."""

    title: str
    where: tuple[str, ...]
    entry: int
    when: str
    by: str
    charts: Sequence[tuple[str, Markup]]
    short: bool
    confidence: str
    any_hollow: bool
    not_drawn: str
    heads: tuple[Head, ...]
    rows: tuple[Row, ...]
    more_rows: str
    notes: tuple[str, ...]
    limits: tuple[str, ...]
    cost: str
    cost_words: str
    sql: str
    python: str
    csv: str
    link: str
    again: str


def shown(release: Release, *, entry: int, when: str, by: str, sql: str, origin: str, dataset: str, link: str) -> Shown:
    """An answer for its page. `origin` is the server's own address, and `link` that of the page."""
    view = release.view()
    groups = view.groups
    lines = range(min(groups, MOST_LINES))
    texts = [key.texts() for key in view.keys]
    rows = tuple(
        Row(
            tuple(text[i] for text in texts),
            tuple(
                CellShown(value, interval, marks(each.cells)[i])
                for each in view.columns
                for value, interval in [each.texts(i)]
            ),
        )
        for i in lines
    )
    drawn = charts(view) if groups else []
    limits = release.limits
    left = [note for note in view.notes if not note.startswith(("Limits: ", "Spent ", "Paid for before"))]
    return Shown(
        title=_title(release),
        where=_only_where(release.plan.query.input),
        entry=entry,
        when=when,
        by=by,
        charts=drawn,
        short=groups <= _SHORT,
        confidence=show(release.plan.confidence * 100, rounding=ROUND_FLOOR),
        any_hollow=any(any(marks(each.cells)) for each in view.columns),
        not_drawn=f"The first {MOST_ROWS} of {groups:,} groups are drawn." if groups > MOST_ROWS else "",
        heads=(*(Head(key.name, False) for key in view.keys), *(Head(each.name, True) for each in view.columns)),
        rows=rows,
        more_rows=f"The first {MOST_LINES:,} of {groups:,} groups. The files have all." if groups > MOST_LINES else "",
        notes=tuple(left),
        limits=limits,
        cost=str(release.guarantee),
        cost_words="Paid once. Looking at it again is free.",
        sql=sql,
        python=in_python(release, origin=origin, dataset=dataset, sql=sql),
        csv=release.to_csv(),
        link=link,
        again=_again(dataset, sql),
    )


def in_python(release: Release, *, origin: str, dataset: str, sql: str) -> str:
    """The call that asks the same through the client; it is free, because the answer is stored."""
    price = release.plan.price
    epsilon = getattr(price, "epsilon", None)
    amount = f"rho={show(price.rho)}" if isinstance(price, ZeroConcentratedDP) else f"epsilon={show(epsilon or 0)}"
    plain = '"""' not in sql and "\\" not in sql and not sql.endswith('"')
    statement = f'"""{sql}"""' if "\n" in sql and plain else repr(sql)
    return "\n".join(
        [
            "import privet as pv",
            "",
            f"session = pv.connect({origin!r}, token=..., dataset={dataset!r})",
            f"answer = session.release({statement if sql else '...'}, {amount})",
            "print(answer)",
        ]
    )


def _only_where(of: Operator) -> tuple[str, ...]:
    """The conditions on the rows of a question, innermost first."""
    match of:
        case Where(inner, condition):
            return (*_only_where(inner), f"Only where {show_node(condition)}.")
        case WithColumns(inner) | JoinPublic(inner) | PerPerson(inner):
            return _only_where(inner)
        case JoinPerson(left, right):
            return (*_only_where(left), *_only_where(right))
        case Scan():
            return ()


def _title(release: Release) -> str:
    """The question in few words: what was measured, by what."""
    query = release.plan.query
    names = ", ".join(query.shown())
    by = ", ".join(key.name for key in query.keys)
    title = f"{names} by {by}" if names and by else names or by
    return title or worded(query)


_LONGEST = 3000  # characters of an address


def _again(dataset: str, sql: str) -> str:
    """The editor with this statement, if an address can hold it."""
    here, query = f"/datasets/{segment(dataset)}", urlencode({"sql": sql})
    return f"{here}?{query}" if sql and len(query) < _LONGEST else here
