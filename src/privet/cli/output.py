"""How an answer leaves the command line: as a table, a chart, CSV, JSON, Parquet or a picture."""

from __future__ import annotations

import json
import math
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # loaded when a command runs: `privet --help` is quick
    from privet.planner import ReleasePlan
    from privet.release import Release


class Format(StrEnum):
    """What an answer is printed as."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    CHART = "chart"


_BY_NAME = {".csv": Format.CSV, ".json": Format.JSON, ".parquet": Format.PARQUET, ".txt": Format.TABLE}
_PICTURES = {".png", ".svg", ".pdf"}


def writable(policy: Path, *files: Path | None) -> None:
    """Refused here, before anything is paid: what can't be written, and what must not be written over."""
    import os

    from privet.errors import UserError
    from privet.policy import load

    given = [file for file in files if file is not None]
    taken = load(policy).files() if given else set()
    for file in given:
        if not file.parent.is_dir():
            raise UserError(f"there is no folder {str(file.parent)!r}")
        if file.is_dir():
            raise UserError(f"{str(file)!r} is a folder. Name a file in it, such as {str(file / 'answer.csv')!r}")
        if not os.access(file if file.exists() else file.parent, os.W_OK):
            raise UserError(f"{str(file)!r} can't be written")
        if file.resolve() in taken or [other.resolve() for other in given].count(file.resolve()) > 1:
            raise UserError(f"{str(file)!r} is used already: choose another file")


def chosen(form: Format | None, output: Path | None) -> Format:
    """Refused here, before anything is paid."""
    from privet.errors import UserError

    suffix = "" if output is None else output.suffix.lower()
    if suffix in _PICTURES:
        if form not in (None, Format.CHART):
            raise UserError(f"a {suffix} file is a chart. Leave --format out")
        return Format.CHART
    if form is None:
        form = _BY_NAME.get(suffix, Format.TABLE)
        if suffix and suffix not in _BY_NAME:
            *names, last = *_BY_NAME, *sorted(_PICTURES)
            raise UserError(f"unknown file type {suffix!r}. Use {', '.join(names)} or {last}, or add --format")
    if form is Format.PARQUET and output is None:
        raise UserError("Parquet goes to a file. Write, for example: -o answer.parquet")
    return form


def styled(title: str | None, labels: list[str] | None, order: list[str] | None, output: Path | None) -> dict[str, Any]:
    """What is said about a picture: arguments of `Release.plot`."""
    from privet.errors import UserError

    if title is None and not labels and not order:
        return {}
    if output is None or output.suffix.lower() not in _PICTURES:
        raise UserError("--title, --label and --order are for pictures. Write, for example: -o answer.png")
    texts = {}
    for each in labels or ():
        name, sign, text = each.partition("=")
        if not sign or not name:
            raise UserError(f"a label is a name and its text, not {each!r}. Write, for example: --label n=People")
        texts[name] = text
    by_value = order in (["ascending"], ["descending"])
    return {"title": title, "labels": texts, "order": order[0] if order and by_value else order or None}


def shows(plan: ReleasePlan, form: Format, output: Path | None, style: dict[str, Any]) -> None:
    """Refuse, before anything is paid, an answer that could not be shown in this form."""
    from privet.errors import UserError
    from privet.plots import new_figure
    from privet.release.answer import BESIDE
    from privet.release.pictures import MOST_PANELS
    from privet.release.styles import Style

    if style:
        Style(**style).check(plan.query)
    shown = [name for name, _ in plan.columns if name not in plan.query.arrangement.hidden]
    if output is not None and output.suffix.lower() in _PICTURES:
        new_figure(1, 1)  # refused without matplotlib
        if len(shown) > MOST_PANELS:
            raise UserError(
                f"a picture shows at most {MOST_PANELS} columns, not {len(shown)}. Ask for fewer, or a table"
            )
    if form not in (Format.CSV, Format.JSON, Format.PARQUET):
        return
    names = [key.name for key in plan.query.keys]
    names += [name + end for name, _ in plan.columns for end in BESIDE]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(f"with intervals, two columns would be called {twice[0]!r}. Rename one with AS")


def write(answer: Release, form: Format, output: Path | None, style: dict[str, Any]) -> None:
    """Print the answer, or write it to a file; what stands beside it goes to stderr."""
    match form:
        case Format.PARQUET:
            import pyarrow.parquet as pq

            facts = json.dumps(_facts(answer), ensure_ascii=False)
            pq.write_table(answer.to_arrow().replace_schema_metadata({"privet": facts}), output)
        case Format.CHART if output is not None and output.suffix.lower() in _PICTURES:
            if why := _undrawn(answer, output, style):  # it is paid for, so it is shown in another form
                sys.stdout.write(f"{answer}\n")
                print(f"there is no picture: {why}", file=sys.stderr)
                raise SystemExit(1)
        case _:
            text = _text(answer, form)
            if output is None:
                sys.stdout.write(text)
            else:
                output.write_text(text, encoding="utf-8")
    if form not in (Format.TABLE, Format.CHART) or output is not None:
        from privet.release.printing import wrapped

        if output is not None:
            print(output, file=sys.stderr)
        for line in wrapped(answer.notes()):
            print(line, file=sys.stderr)


def _undrawn(answer: Release, output: Path, style: dict[str, Any]) -> str | None:
    """Draw the answer into a file; why there is none, if that fails."""
    from privet.release.pictures import save

    stored = "the answer is stored, asking again is free"
    if not len(answer):
        return f"no group is shown, so there is nothing to draw; {stored}"
    try:
        save(answer.plot(**style), output)
    except OSError as error:
        why = f"{str(output)!r} can't be written: {error.strerror or error}"
        return f"{why}; {stored}. Write, for example: -o answer.png"
    return None


def _text(answer: Release, form: Format) -> str:
    match form:
        case Format.CSV:
            import io

            import pyarrow.csv as pc

            sink = io.BytesIO()
            pc.write_csv(answer.to_arrow(), sink)
            return sink.getvalue().decode()
        case Format.JSON:
            rows = [{name: _plain(x) for name, x in row.items()} for row in answer.to_dicts()]
            tree = {"rows": rows, **_facts(answer)}
            return json.dumps(tree, indent=2, ensure_ascii=False, default=str, allow_nan=False) + "\n"
        case Format.CHART:
            import shutil

            width = shutil.get_terminal_size((100, 24)).columns
            return f"{answer.chart(width)}\n"
        case _:
            return f"{answer}\n"


def _facts(answer: Release) -> dict[str, Any]:
    """What stands beside the rows, in JSON and in a Parquet file's metadata."""
    from privet.cli.ledger import numbers

    return {
        "confidence": answer.confidence,
        "guarantee": numbers(answer.guarantee),
        "paid_before": answer.paid_before,
        "spent": numbers(answer.spent),
        "left": numbers(answer.remaining),
        "limits": answer.limits,
        "notes": answer.notes(),
    }


def _plain(x: Any) -> Any:
    """What is infinite is null: JSON has no word for it."""
    return None if isinstance(x, float) and not math.isfinite(x) else x
