"""How an answer is printed or saved: as a table, a chart, CSV, JSON, Parquet or an image."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from privet.cli.exits import tell

if TYPE_CHECKING:  # loaded when a command runs: `privet --help` is quick
    from privet.planner import ReleasePlan
    from privet.release import Release


def aligned(*rows: tuple[str, ...], right: bool = False) -> str:
    """Rows of cells in columns; with `right`, all columns but the first are aligned to the right.

    Example:
        >>> print(aligned(("north", "9"), ("south", "10"), right=True))
        north   9
        south  10
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, widths, strict=True)
        padded = [cell.rjust(width) if right and i else cell.ljust(width) for i, (cell, width) in enumerate(cells)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


class Format(StrEnum):
    """The formats of an answer."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"
    CHART = "chart"


_BY_NAME = {".csv": Format.CSV, ".json": Format.JSON, ".parquet": Format.PARQUET, ".txt": Format.TABLE}
_PICTURES = {".png", ".svg", ".pdf"}
_DEFAULT = Path("privet.toml")
STORED = "the answer is stored: asking again is free"


def stewards_files(policy: Path | None = None) -> Callable[[Path], bool]:
    """A test for the steward's files: those of this policy, or of the policy in the current folder."""
    from privet.errors import UserError
    from privet.policy import load
    from privet.system.files import among

    if policy is not None:
        return load(policy).owns
    try:
        return load(_DEFAULT).owns if _DEFAULT.exists() else lambda path: False
    except UserError:
        return lambda path: among(path, [_DEFAULT])


@dataclass(frozen=True, slots=True)
class Files:
    """The files that a command writes, checked before it does or spends anything."""

    force: bool
    taken: Callable[[Path], bool]

    @classmethod
    def checked(cls, *paths: Path | None, force: bool, taken: Callable[[Path], bool] | None = None) -> Files:
        """Refuse files that must not be written."""
        from privet.errors import Remedy, UserError
        from privet.system.files import among, check

        targets = [path for path in paths if path is not None]
        files = cls(force, taken or (stewards_files() if targets else lambda path: False))
        for number, target in enumerate(targets):
            check(target, overwrite=force, taken=files.taken)
            if among(target, targets[:number]):
                raise UserError(f"{str(target)!r} is given twice", remedy=Remedy("Choose another file"))
        return files

    def write(self, file: Path, content: bytes) -> None:
        """Write one of these files."""
        from privet.system.files import write

        write(file, content, overwrite=self.force, taken=self.taken)

    def try_write(self, file: Path, content: Callable[[], bytes]) -> str | None:
        """Write a file whose content is already paid for; returns the reason if that fails."""
        from privet.errors import UserError

        try:
            self.write(file, content())
        except OSError as error:
            return f"{str(file)!r} can't be written: {error.strerror or error}"
        except UserError as error:
            return error.render("terminal")
        return None


def choose_format(name: str | None, output: Path | None) -> Format:
    """The format of the answer; an impossible one is refused before anything is spent."""
    from privet.errors import Remedy, UserError, write

    if name is not None and name not in {*Format}:
        *names, last = (str(each) for each in Format)
        raise UserError(
            f"unknown format {name!r}",
            allowed=f"The formats are {', '.join(names)} and {last}",
            remedy=write(terminal="--format csv"),
        )
    form = None if name is None else Format(name)
    suffix = "" if output is None else output.suffix.lower()
    if suffix in _PICTURES:
        if form not in (None, Format.CHART):
            raise UserError(f"a {suffix} file is always a chart", remedy=Remedy("Omit --format"))
        return Format.CHART
    if form is None:
        form = _BY_NAME.get(suffix, Format.TABLE)
        if suffix and suffix not in _BY_NAME:
            *names, last = (*_BY_NAME, *sorted(_PICTURES))
            raise UserError(
                f"unknown file type {suffix!r}",
                allowed=f"The file types are {', '.join(names)} and {last}",
                remedy=Remedy("For another file type, add --format"),
            )
    if form is Format.PARQUET and output is None:
        raise UserError("Parquet can't be printed", remedy=write(terminal="-o answer.parquet"))
    return form


def chart_style(
    title: str | None, labels: list[str] | None, order: list[str] | None, output: Path | None
) -> dict[str, Any]:
    """The style of a chart: arguments of `Release.plot`."""
    from privet.errors import UserError, write

    if title is None and not labels and not order:
        return {}
    if output is None or output.suffix.lower() not in _PICTURES:
        raise UserError("--title, --label and --order apply only to charts", remedy=write(terminal="-o answer.png"))
    texts = {}
    for label in labels or ():
        name, equals, text = label.partition("=")
        if not equals or not name:
            raise UserError(f"a label is NAME=TEXT, not {label!r}", remedy=write(terminal="--label n=People"))
        texts[name] = text
    by_value = order in (["ascending"], ["descending"])
    return {"title": title, "labels": texts, "order": order[0] if order and by_value else order or None}


def check_output(plan: ReleasePlan, form: Format, output: Path | None, style: dict[str, Any]) -> None:
    """Refuse, before anything is spent, an answer that could not be shown in this format."""
    from privet.errors import Remedy, UserError
    from privet.plots import new_figure
    from privet.release.render.frame import layout, named_twice
    from privet.release.render.picture import MOST_PANELS
    from privet.release.render.style import Style

    if style:
        Style(**style).check(plan.query)
    shown = layout(plan, intervals=False)
    if output is not None and output.suffix.lower() in _PICTURES:
        new_figure(1, 1)  # an error without matplotlib
        if not shown:
            raise UserError(
                "an answer of keys alone has no numbers, so there is nothing to draw",
                remedy=Remedy("Ask for a number too, or for a table: -o answer.csv"),
            )
        if len(shown) > MOST_PANELS:
            raise UserError(
                f"a chart shows at most {MOST_PANELS} columns, not {len(shown)}",
                remedy=Remedy("Ask for fewer columns, or for a table"),
            )
    if form not in (Format.CSV, Format.JSON, Format.PARQUET):
        return
    twice = named_twice(plan)
    if twice is not None:
        raise UserError(f"with intervals, two columns would be named {twice!r}", remedy=Remedy("Rename one with AS"))


def write(answer: Release, form: Format, output: Path | None, style: dict[str, Any], files: Files) -> None:
    """Print the answer, or write it to a file; notes go to stderr."""
    if output is None:
        sys.stdout.write(_text(answer, form))
    else:
        what = "chart" if output.suffix.lower() in _PICTURES else "file"
        why = "no group is shown, so there is nothing to draw" if what == "chart" and not len(answer) else None
        if why := why or files.try_write(output, lambda: _content(answer, form, output, style)):
            _print_instead(answer, form, f"the {what} was not saved: {why}")
        print(output, file=sys.stderr)
    if form not in (Format.TABLE, Format.CHART) or output is not None:
        from privet.release.render.text import wrapped

        for line in wrapped(answer.notes()):
            print(line, file=sys.stderr)


def _print_instead(answer: Release, form: Format, why: str) -> NoReturn:
    """Print an answer that could not be saved, because it is paid for."""
    sys.stdout.write(_text(answer, form if form in (Format.CSV, Format.JSON) else Format.TABLE))
    sys.stdout.flush()
    tell("NoFile", 1, f"{why}; {STORED}", head="")
    raise SystemExit(1)


def _content(answer: Release, form: Format, output: Path, style: dict[str, Any]) -> bytes:
    if output.suffix.lower() in _PICTURES:
        from privet.release.render.picture import drawn

        return drawn(answer.plot(**style), output.suffix)
    if form is not Format.PARQUET:
        return _text(answer, form).encode()
    from privet.release.render import frame
    from privet.release.render.json import facts

    return frame.parquet(answer, facts(answer))


def _text(answer: Release, form: Format) -> str:
    match form:
        case Format.CSV:
            from privet.release.render.frame import csv

            return csv(answer)
        case Format.JSON:
            from privet.release.render.json import answer as to_json

            return to_json(answer)
        case Format.CHART:
            import shutil

            width = shutil.get_terminal_size((100, 24)).columns
            return f"{answer.chart(width)}\n"
        case _:
            return f"{answer}\n"
