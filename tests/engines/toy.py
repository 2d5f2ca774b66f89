"""A toy engine: the reference, which also counts its statements. One file, and one line in the registry."""

from __future__ import annotations

from typing import ClassVar

from privet.engines.reference.engine import Reference
from privet.tables.holders import Holders
from privet.tables.statement import Statement


class Counting(Reference):
    """Counts the statements that it was asked, and can't compute those with more than 50 groups."""

    name: ClassVar[str] = "counting"
    asked: ClassVar[int] = 0

    def supports(self, statement: Statement | Holders) -> str | None:
        if isinstance(statement, Statement) and statement.groups > 50:
            return "it has more than 50 groups"
        return super().supports(statement)

    def answer(self, statement: Statement) -> list[list[int]]:
        Counting.asked += 1
        return super().answer(statement)
