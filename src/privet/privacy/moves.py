"""Moves: bounds on how far one unit (a row, a person) can move a vector of integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from privet.exact import whole

Norm = Literal["L1", "L2"]
"""The norms in which moves are measured."""


@dataclass(frozen=True, slots=True, init=False)
class L1Move:
    """The coordinates that move can be divided into at most `blocks` blocks, each moving by at most `l1` in L1.

    Claim: the whole vector moves by at most `total` = blocks * l1. Each pair of neighbours may have different
    blocks; a coordinate is in at most one. With independent noise on each coordinate, the losses of blocks add up.

    Example:
        >>> L1Move(3, blocks=2).total
        6
    """

    norm: ClassVar[Norm] = "L1"
    l1: int
    blocks: int

    def __init__(self, l1: int, *, blocks: int = 1) -> None:
        object.__setattr__(self, "l1", whole(l1, name="l1", least=0, example="L1Move(3, blocks=2)"))
        object.__setattr__(self, "blocks", whole(blocks, name="blocks", example="L1Move(3, blocks=2)"))

    @property
    def total(self) -> int:
        """The bound on the L1 norm of the whole move."""
        return self.blocks * self.l1

    def __str__(self) -> str:
        return f"{self.l1} in L1" if self.blocks == 1 else f"{self.blocks} blocks by {self.l1} each in L1"


@dataclass(frozen=True, slots=True, init=False)
class L2Move:
    """The vector moves by at most the square root of `squared` in L2.

    Example:
        >>> print(L2Move(18))
        sqrt(18) in L2
    """

    norm: ClassVar[Norm] = "L2"
    squared: int

    def __init__(self, squared: int) -> None:
        object.__setattr__(self, "squared", whole(squared, name="squared", least=0, example="L2Move(18)"))

    @property
    def total(self) -> int:
        """The bound on the squared L2 norm of the whole move."""
        return self.squared

    def __str__(self) -> str:
        return f"sqrt({self.squared}) in L2"


Move = L1Move | L2Move
"""A bound on how far a vector moves, in one of the norms."""
