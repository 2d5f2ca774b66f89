"""Renew the sample output in README.md and docs/*.md: run each example, and write its output into the block below it.

    python docs/renew.py [PAGE ...]

Blocks with an ellipsis stay as they are. Check the diff before you commit it.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import types
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.test_docs import OUTPUT, PAGES, RUN, SHELL, WIDTH, blocks, commands, run, run_python  # noqa: E402


def renewed(text: str, name: str) -> str:
    """The page with the output of its blocks as it is today."""
    module = types.ModuleType("__docs__")
    sys.modules["__docs__"] = module
    lines = text.splitlines()
    changes: list[tuple[int, int, str]] = []  # first line, last line, new text
    printed: str | None = None
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in blocks(text):
            before, printed = printed, None
            if block.language == "python" and not block.not_run:
                printed = run_python(block, module, name)
            elif block.language in SHELL and not block.not_run:
                for command in commands(block):
                    if command.text.split()[0] in RUN:
                        output, shown = run(command, Path(folder)), command.expected
                        start = command.line
                        while lines[start - 1].endswith("\\"):
                            start += 1
                        if shown.strip() and "..." not in shown:
                            changes.append((start, start + len(shown.splitlines()), output))
            elif block.language in OUTPUT and block.follows and before is not None and "..." not in block.content:
                changes.append((block.line - 1, block.line - 1 + len(block.content.splitlines()), before))
    for start, end, output in reversed(changes):
        lines[start:end] = [line.rstrip() for line in output.strip("\n").splitlines()]
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> None:
    """Renew these pages, or all."""
    os.environ |= {"COLUMNS": WIDTH, "NO_COLOR": "1", "MPLBACKEND": "Agg"}
    pages = [Path(name).resolve() for name in names] or [page for page in PAGES if page.name != "reference.md"]
    for page in pages:
        old = page.read_text(encoding="utf-8")
        new = renewed(old, page.name)
        if re.sub(r"\s+", "", old) != re.sub(r"\s+", "", new):
            page.write_text(new, encoding="utf-8")
            sys.stdout.write(f"renewed {page.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
