"""Renew the sample output in README.md and docs/*.md: what the examples print goes into the ```text block after them.

    python docs/renew.py [PAGE ...]

Blocks with an ellipsis are left as they are. Look at the difference before it is committed.
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

from tests.test_docs import OUTPUT, PAGES, WIDTH, Block, blocks, run_python  # noqa: E402


def renewed(text: str, name: str) -> str:
    """The page with the output of its Python blocks as it is today."""
    module = types.ModuleType("__docs__")
    sys.modules["__docs__"] = module
    lines = text.splitlines()
    changes: list[tuple[Block, str]] = []
    printed: str | None = None
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in blocks(text):
            before, printed = printed, None
            if block.language == "python" and not block.not_run:
                printed = run_python(block, module, name)
            elif block.language in OUTPUT and block.follows and before is not None and "..." not in block.content:
                changes.append((block, before))
    for block, output in reversed(changes):
        start = block.line - 1
        end = next(i for i in range(start, len(lines)) if lines[i].strip().startswith("```"))
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
