"""Write the table of special values into docs/engines.md: `.venv/bin/python docs/make_engines.py`. A test compares."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.engines.special import REFUSED, TOPICS  # noqa: E402

from privet.engines.registry import ENGINES  # noqa: E402

PAGE = Path(__file__).parent / "engines.md"
BEGIN, END = "<!-- made by docs/make_engines.py -->\n", "<!-- end -->\n"


def support() -> str:
    """A line for each topic, a column for each engine; what is refused has its reason below."""
    reasons = list(dict.fromkeys(REFUSED.values()))
    lines = [f"| | {' | '.join(f'`{each}`' for each in ENGINES)} |", "|---" * (len(ENGINES) + 1) + "|"]
    for topic in TOPICS:
        told = [REFUSED.get((each, topic.name)) for each in ENGINES]
        cells = ["yes" if each is None else f"refused ({reasons.index(each) + 1})" for each in told]
        lines.append(f"| {topic.name} | {' | '.join(cells)} |")
    notes = [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
    return "\n".join([*lines, "", *notes]) + "\n"


def renewed(page: str) -> str:
    """The page, with the table as it is today."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{support()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
