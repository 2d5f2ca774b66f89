"""An answer, a plan and a budget as JSON: the command line, a server and its clients print and read the same."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from privet.privacy.guarantees import Guarantee
from privet.privacy.guarantees.budgets import amount
from privet.release.render.frame import columns

if TYPE_CHECKING:
    from privet.planner import ReleasePlan
    from privet.release.answer import Release


def answer(of: Release) -> str:
    """The rows of an answer, and the facts about it; an infinite end of an interval is null."""
    return json.dumps(answer_tree(of), indent=2, ensure_ascii=False, default=str, allow_nan=False) + "\n"


def answer_tree(of: Release) -> dict[str, Any]:
    """The same as a tree; its dates are still dates."""
    rows = [{name: _plain(x) for name, x in row.items()} for row in columns(of).to_pylist()]
    return {"rows": rows, **_facts(of)}


def facts(of: Release) -> str:
    """The facts beside the rows, on one line: for a file's metadata."""
    return json.dumps(_facts(of), ensure_ascii=False)


def explanation(of: ReleasePlan, *, paid_before: Guarantee | None) -> str:
    """A plan: what was asked, what follows, what bounds the answer, and what a stored answer cost."""
    return json.dumps(explanation_tree(of, paid_before=paid_before), indent=2, ensure_ascii=False) + "\n"


def explanation_tree(of: ReleasePlan, *, paid_before: Guarantee | None) -> dict[str, Any]:
    """The same as a tree."""
    return {**of.to_json(), "paid_before": amount(paid_before)}


def _facts(of: Release) -> dict[str, Any]:
    return {
        "confidence": of.confidence,
        "guarantee": amount(of.guarantee),
        "paid_before": of.paid_before,
        "spent": amount(of.spent),
        "left": None if of.remaining is None else amount(of.remaining.guarantee),
        "limits": of.limits,
        "notes": of.notes(),
    }


def _plain(x: Any) -> Any:
    return None if isinstance(x, float) and not math.isfinite(x) else x
