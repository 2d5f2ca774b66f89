"""How far one person can move a tier of a tree of groups, from a certificate and nothing else.

A statement lists its possible groups, the leaves. A level names the keys of its nodes; with `within`, the keys of the
nodes above them and a weight for each of these that has several nodes below.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from privet.codec import canonical
from privet.errors import VerificationError


@dataclass(frozen=True, slots=True)
class Tree:
    """What a tier says of its tree: its nodes, how many of them are measured, and how long columns are."""

    nodes: int
    measured: int
    leaves: int
    most: int
    """The most leaves in one node."""
    column: int
    """The square of the longest column of the matrix."""
    stretch: int
    """The square of the greatest factor by which the matrix stretches."""

    @classmethod
    def of(cls, statement: Any, level: Any) -> Tree:
        """The tree of a level; refused if a node lies in two nodes above it.

        Claim: the matrix has a block for each node above: w (n I - J), for n nodes below it. Its columns have the
        square a = w^2 ((n - 1)^2 + n - 1), and the inner product b = -w^2 n with each other. On vectors that add up to
        0 the block stretches by sqrt(a - b), on equal ones by 0.
        """
        if set(level) != {"keys", "within", "weights"}:
            raise VerificationError("measurements.level: must have keys, within and weights")
        leaves = statement["listed"]["only"]
        nodes = [_group(leaf, level["keys"]) for leaf in leaves]
        counts = Counter(nodes)
        if len({canonical(leaf) for leaf in leaves}) < len(leaves):
            raise VerificationError("statements.listed: a group is listed twice")
        if level["within"] is None:
            if level["weights"] != []:
                raise VerificationError("measurements.level: weights are of what lies within others")
            return cls(len(counts), len(counts), len(leaves), max(counts.values()), 1, 1)
        above = dict(zip(nodes, (_group(leaf, level["within"]) for leaf in leaves), strict=True))
        if any(above[node] != _group(leaf, level["within"]) for node, leaf in zip(nodes, leaves, strict=True)):
            raise VerificationError("measurements.level: a node lies in two others")
        sizes = [n for n in Counter(above.values()).values() if n > 1]
        weights = level["weights"]
        if len(weights) != len(sizes) or not all(type(w) is int and w >= 1 for w in weights):
            raise VerificationError("measurements.level: needs a weight for each node with several below it")
        columns = [w * w * ((n - 1) ** 2 + n - 1) for n, w in zip(sizes, weights, strict=True)]
        stretches = [a + w * w * n for a, n, w in zip(columns, sizes, weights, strict=True)]
        return cls(
            len(counts), sum(sizes), len(leaves), max(counts.values()), max(columns, default=0),
            max(stretches, default=0),
        )  # fmt: skip


def _group(leaf: Any, keys: Any) -> str:
    """The group of a leaf by some keys, as a text."""
    if not isinstance(keys, list) or not all(type(key) is int and 0 <= key < len(leaf) for key in keys):
        raise VerificationError("measurements.level: must list positions of keys")
    return str(canonical([leaf[key] for key in keys]))
