"""How amounts of privacy are shown: in words, and for programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privet.privacy.accounting import Share
    from privet.privacy.guarantees import Guarantee


def print_json(tree: Any) -> None:
    """Print a result for programs."""
    print(json.dumps(tree, indent=2, ensure_ascii=False))


def in_words(budget: Guarantee | Share | None) -> str:
    """An amount for people; nothing for no amount."""
    from privet.privacy.accounting import Share
    from privet.privacy.accounting.base import percent_up
    from privet.privacy.guarantees import show_down

    if isinstance(budget, Share):
        return percent_up(budget.used)
    return "" if budget is None else show_down(budget)


def in_json(spent: Guarantee | Share) -> dict[str, str] | None:
    """An amount for programs."""
    from privet.exact import literal
    from privet.privacy.accounting import Share
    from privet.privacy.guarantees.budgets import amount

    return {"share": literal(spent.used).strip('"')} if isinstance(spent, Share) else amount(spent)
