"""Files by their paths, patterns and lists of them."""

from __future__ import annotations

import glob
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from privet.errors import Remedy, SourceError, Subject, write
from privet.system.addresses import COPY, SOURCES, is_address, masked


def paths_of(source: Any) -> tuple[str, ...]:
    """The absolute paths of the files that a path, a pattern or a list of them names, in order."""
    if isinstance(source, list | tuple):
        if not source:
            raise SourceError("the list of files is empty", remedy=_FILES)
        listed = [path for one in source for path in paths_of(one)]
        for path, times in Counter(listed).items():
            if times > 1:
                raise SourceError(
                    f"{path!r} is listed twice, so its rows would count twice",
                    subject=Subject("file", path),
                    remedy=Remedy("List each file once"),
                )
        return tuple(listed)
    if not isinstance(source, str | Path):
        raise SourceError(f"a path is a text or a Path, not {type(source).__name__}", remedy=_FILE)
    text = str(source)
    if is_address(text):
        raise SourceError(
            f"{masked(text)!r} is not a source that Privet can read",
            allowed=SOURCES,
            subject=Subject("file", masked(text)),
            remedy=replace(_FILE, advice=COPY),
        )
    if "\x00" in text or not text:
        raise SourceError(f"{text!r} is not a path", remedy=_FILE)
    given = Path(text).expanduser().absolute()
    if given.is_dir():
        inside = str(Path(text) / "*.parquet")
        raise SourceError(
            f"{text!r} is a folder",
            subject=Subject("file", text),
            remedy=write(repr(inside), policy=f'source = "{inside}"'),
        )
    if given.is_file():
        return (_named(str(given)),)
    if glob.has_magic(text):
        matched = sorted(path for path in glob.glob(str(given), recursive=True) if Path(path).is_file())  # noqa: PTH207
        if matched:
            return tuple(map(_named, matched))
        raise _absent(f"no file matches {text!r}", text, given)
    raise _absent(f"there is no file {text!r}", text, given)


def fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether the parts of a path match those of a pattern, of which ** are any number.

    Example:
        >>> fits(("data", "2024", "a.parquet"), ("data", "**", "*.parquet")), fits(("data", "b", "a"), ("data", "*"))
        (True, False)
    """
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(fits(parts[start:], pattern[1:]) for start in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and fits(parts[1:], pattern[1:])


_FILE = write('"people.parquet", or "people/*.parquet"', policy='source = "people.parquet"')
_FILES = write('["2023.parquet", "2024.parquet"]', policy='source = ["2023.parquet", "2024.parquet"]')


def _named(path: str) -> str:
    if glob.has_magic(path):  # DuckDB would take it for a pattern, and read what it matches
        raise SourceError(
            f"the path {path!r} contains a character that patterns use (* ? [)",
            subject=Subject("file", path),
            remedy=Remedy("Rename the file or its folder"),
        )
    return path


def _absent(what: str, given: str, path: Path) -> SourceError:
    """There is no such file; with the readable files in the same folder, of which one may be meant."""
    told = what if given == str(path) else f"{what} (looked for {str(path)!r})"
    subject, allowed, remedy = Subject("file", given), "", _FILE
    if not glob.has_magic(str(path.parent)) and not path.parent.is_dir():
        allowed, remedy = f"There is no folder {str(path.parent)!r} either", Remedy()
    elif not glob.has_magic(str(path.parent)):
        names = sorted(one.name for one in path.parent.iterdir() if one.suffix.lower() in (".parquet", ".pq"))
        more = ", ..." if len(names) > 10 else ""
        allowed = f"That folder contains: {', '.join(names[:10])}{more}" if names else "That folder has no Parquet file"
        remedy = Remedy() if names else _FILE
        csv = next((each for each in (path.with_suffix(end) for end in (".csv", ".tsv")) if each.is_file()), None)
        if csv is not None and not glob.has_magic(str(path)):
            line = f"privet import {shlex.quote(str(csv))} -o {shlex.quote(str(path))}"
            remedy = Remedy(f"There is {csv.name}: import it first, in a terminal: {line}")
    return SourceError(told, allowed=allowed, subject=subject, remedy=remedy)
