"""Plans of questions that were asked a moment ago, kept so that they need not be made again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from privet.planner import ReleasePlan

_ANALYSTS, _EACH = 64, 16  # analysts whose plans are kept, and plans of each
_LARGEST = 2000  # cells of a plan that is kept
_COLUMN = 100  # a column takes as much memory as so many groups, however few there are


class Plans:
    """The plans of the latest questions of each analyst, by what they sent.

    Claim: a plan follows from the policy and the question alone. Each analyst has their own, so the time of a plan
    tells nobody what others ask. Whether somebody may ask is not part of it.
    """

    def __init__(self, analysts: int = _ANALYSTS, each: int = _EACH) -> None:
        self._analysts, self._each = analysts, each
        self._kept: OrderedDict[tuple[str, str], OrderedDict[str, ReleasePlan]] = OrderedDict()
        self._lock = Lock()

    def kept(self, whose: tuple[str, str], asked: str, make: Callable[[], ReleasePlan]) -> ReleasePlan:
        """The plan of what an analyst asked of a dataset, made if it is not there. What is refused is not kept."""
        with self._lock:
            own = self._kept.get(whose)
            plan = None if own is None else own.get(asked)
            if own is not None and plan is not None:
                self._kept.move_to_end(whose)
                own.move_to_end(asked)
                return plan
        plan = make()
        if max(plan.groups, _COLUMN) * len(plan.columns) <= _LARGEST:
            with self._lock:
                own = self._kept.setdefault(whose, OrderedDict())
                self._kept.move_to_end(whose)
                own[asked] = plan
                own.move_to_end(asked)
                if len(own) > self._each:
                    own.popitem(last=False)
                if len(self._kept) > self._analysts:
                    self._kept.popitem(last=False)
        return plan
