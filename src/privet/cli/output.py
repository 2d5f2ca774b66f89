"""How an answer leaves the command line: as a table, a chart, CSV, JSON, Parquet or a picture."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from privet.cli.failing import tell
from privet.cli.wording import in_terminal

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
_DEFAULT = Path("privet.toml")
STORED = "the answer is stored, asking again is free"


def kept(policy: Path | None = None) -> Callable[[Path], bool]:
    """Which files are the steward's: of this policy, or of the one in this folder, if there is one."""
    from privet.errors import UserError
    from privet.files import among
    from privet.policy import load

    if policy is not None:
        return load(policy).owns
    try:
        return load(_DEFAULT).owns if _DEFAULT.exists() else lambda path: False
    except UserError:
        return lambda path: among(path, [_DEFAULT])


@dataclass(frozen=True, slots=True)
class Files:
    """Where a command writes to, checked before anything is done or paid for."""

    force: bool
    taken: Callable[[Path], bool]

    @classmethod
    def checked(cls, *given: Path | None, force: bool, taken: Callable[[Path], bool] | None = None) -> Files:
        """Refuse what must not be written to."""
        from privet.errors import UserError
        from privet.files import among, check

        files = [file for file in given if file is not None]
        made = cls(force, taken or (kept() if files else lambda path: False))
        for number, file in enumerate(files):
            check(file, overwrite=force, taken=made.taken)
            if among(file, files[:number]):
                raise UserError(f"{str(file)!r} is used already: choose another file")
        return made

    def write(self, file: Path, content: bytes) -> None:
        """Write one of them."""
        from privet.files import write

        write(file, content, overwrite=self.force, taken=self.taken)

    def tried(self, file: Path, content: Callable[[], bytes]) -> str | None:
        """Why it could not be written, after it was paid for."""
        from privet.errors import UserError

        try:
            self.write(file, content())
        except OSError as error:
            return f"{str(file)!r} can't be written: {error.strerror or error}"
        except UserError as error:
            return in_terminal(str(error))
        return None


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


def write(answer: Release, form: Format, output: Path | None, style: dict[str, Any], files: Files) -> None:
    """Print the answer, or write it to a file; what stands beside it goes to stderr."""
    if output is None:
        sys.stdout.write(_text(answer, form))
    else:
        what = "picture" if output.suffix.lower() in _PICTURES else "file"
        why = "no group is shown, so there is nothing to draw" if what == "picture" and not len(answer) else None
        if why := why or files.tried(output, lambda: _content(answer, form, output, style)):
            _printed(answer, form, f"there is no {what}: {why}")
        print(output, file=sys.stderr)
    if form not in (Format.TABLE, Format.CHART) or output is not None:
        from privet.release.printing import wrapped

        for line in wrapped(answer.notes()):
            print(line, file=sys.stderr)


def _printed(answer: Release, form: Format, why: str) -> NoReturn:
    """It is paid for, so it is shown all the same."""
    sys.stdout.write(_text(answer, form if form in (Format.CSV, Format.JSON) else Format.TABLE))
    sys.stdout.flush()
    tell("NoFile", 1, f"{why}; {STORED}", head="")
    raise SystemExit(1)


def _content(answer: Release, form: Format, output: Path, style: dict[str, Any]) -> bytes:
    if output.suffix.lower() in _PICTURES:
        from privet.release.pictures import drawn

        return drawn(answer.plot(**style), output.suffix)
    if form is not Format.PARQUET:
        return _text(answer, form).encode()
    import io

    import pyarrow.parquet as pq

    facts = json.dumps(_facts(answer), ensure_ascii=False)
    pq.write_table(answer.to_arrow().replace_schema_metadata({"privet": facts}), sink := io.BytesIO())
    return sink.getvalue()


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
