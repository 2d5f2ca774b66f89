"""Levels that form a tree: towns below regions below the total. Each parent has its own number of children.

Grouping sets form a tree if each of them, the finer after the coarser, divides the groups of the one before. Noise in
L2 is added to the residual of each tier (`privacy.tiers`), noise in L1 to its nodes (`planner.least_squares`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isqrt
from typing import Any

from privet.accuracy.sums import Terms
from privet.exact import Exact
from privet.privacy.adjacency import Adjacency
from privet.privacy.tiers import Tier, balanced
from privet.system.remembered import remembered
from privet.tables.groups import Group, Sets, Values

Keys = tuple[int, ...]
Vectors = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Hierarchy:
    """The possible groups, which are the leaves, and the grouping sets.

    Example:
        >>> towns = (("north", "a"), ("north", "b"), ("south", "c"))
        >>> tree = Hierarchy(towns, ((0, 1), (0,), ()))
        >>> tree.chain, tree.parents[2], tree.children[2]
        (((), (0,), (0, 1)), (0, 0, 1), (2, 1))
    """

    leaves: tuple[Values, ...]
    sets: tuple[Keys, ...]

    @classmethod
    def of(cls, groups: Sets) -> Hierarchy:
        assert groups.listed.only is not None
        return cls(groups.listed.only, groups.sets)

    @cached_property
    def _numbers(self) -> dict[Keys, dict[Values, int]]:
        return {}

    def numbers(self, keys: Keys) -> dict[Values, int]:
        """The number of each group of some keys, as they appear."""
        if keys not in self._numbers:
            cells = dict.fromkeys(tuple(leaf[key] for key in keys) for leaf in self.leaves)
            self._numbers[keys] = {cell: i for i, cell in enumerate(cells)}
        return self._numbers[keys]

    @cached_property
    def _nodes(self) -> dict[Keys, tuple[int, ...]]:
        return {}

    def nodes(self, keys: Keys) -> tuple[int, ...]:
        """The group of each leaf, by some keys."""
        if keys not in self._nodes:
            numbers = self.numbers(keys)
            self._nodes[keys] = tuple(numbers[tuple(leaf[key] for key in keys)] for leaf in self.leaves)
        return self._nodes[keys]

    def node(self, keys: Keys, group: Group) -> int:
        """The group of some keys that another one is in."""
        return self.numbers(keys)[tuple(value for key in keys if (value := group[key]) is not None)]

    def has(self, keys: Keys) -> bool:
        """Whether a tier has the groups of these keys."""
        return any(self.nodes(each) == self.nodes(keys) for each in self.chain)

    @cached_property
    def chain(self) -> tuple[Keys, ...]:
        """A grouping set for each tier, the coarsest first; sets that divide the leaves alike are one tier."""
        by_nodes: dict[tuple[int, ...], Keys] = {}
        for keys in sorted(self.sets, key=len):
            by_nodes.setdefault(self.nodes(keys), keys)
        return tuple(sorted(by_nodes.values(), key=lambda keys: max(self.nodes(keys))))

    @property
    def is_tree(self) -> bool:
        """Whether each tier divides the nodes of the one above it, down to the leaves."""
        tiers = [self.nodes(keys) for keys in self.chain]
        pairs = pairwise(tiers)
        return max(tiers[-1]) + 1 == len(self.leaves) and all(
            len({*zip(upper, lower, strict=True)}) == max(lower) + 1 for upper, lower in pairs
        )

    def plain(self, keys: Keys) -> Keys:
        """The grouping set of the tier that has the nodes of this one."""
        return next(each for each in self.chain if self.nodes(each) == self.nodes(keys))

    @property
    def margins(self) -> tuple[Keys, ...]:
        return self.chain

    def depth(self, keys: Keys) -> int:
        """How many tiers are above this one."""
        return self.chain.index(keys)

    @cached_property
    def parents(self) -> tuple[tuple[int, ...], ...]:
        """For each tier, the node above each of its nodes; none for the first."""
        found: list[tuple[int, ...]] = [()]
        for upper, lower in pairwise(self.chain):
            above = dict(zip(self.nodes(lower), self.nodes(upper), strict=True))
            found.append(tuple(above[node] for node in range(len(above))))
        return tuple(found)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each tier, how many of its nodes each node above has; none for the first."""
        return tuple(tuple(count for _, count in sorted(Counter(tier).items())) for tier in self.parents)

    def tiers(self, adjacency: Adjacency, *, residual: bool) -> tuple[Branches, ...]:
        """What is measured: the nodes of the first tier and the residuals of the others, or all nodes."""
        made = []
        for depth, keys in enumerate(self.chain):
            counts, leaves = Counter(self.nodes(keys)), len(self.leaves)
            few = self.children[depth] if residual else ()
            tier = Tier(len(counts), leaves, max(counts.values()), few, balanced(few, adjacency))
            made.append(Branches(self, depth, tier))
        return tuple(made)


@dataclass(frozen=True)
class Branches:
    """What is measured of a tier: its nodes, or their residual, without the nodes that have no sibling."""

    of: Hierarchy
    depth: int
    tier: Tier

    @property
    def keys(self) -> Keys:
        return self.of.chain[self.depth]

    @property
    def residual(self) -> bool:
        return bool(self.tier.children)

    @property
    def cells(self) -> int:
        """How many vectors are measured."""
        return self.tier.measured

    @property
    def order(self) -> list[int]:
        """The nodes that are measured."""
        if not self.residual:
            return list(range(self.tier.nodes))
        above = self.of.parents[self.depth]
        return [node for node in range(self.tier.nodes) if self.tier.weights[above[node]]]

    def vectors(self, leaves: Vectors) -> list[tuple[int, ...]]:
        """Its exact numbers, from those of the leaves."""
        size = len(leaves[0])
        sums = [[0] * size for _ in range(self.tier.nodes)]
        for node, vector in zip(self.of.nodes(self.keys), leaves, strict=True):
            for i, x in enumerate(vector):
                sums[node][i] += x
        if not self.residual:
            return list(map(tuple, sums))
        above, children, weights = self.of.parents[self.depth], self.tier.children, self.tier.weights
        whole = [[0] * size for _ in children]
        for node, vector in enumerate(sums):
            for i, x in enumerate(vector):
                whole[above[node]][i] += x
        return [
            tuple(weights[v] * (children[v] * x - y) for x, y in zip(sums[node], whole[v], strict=True))
            for node in self.order
            for v in [above[node]]
        ]

    def facts(self) -> dict[str, Any]:
        """What a certificate says of it; the groups are in the statement."""
        if not self.residual:
            return {"keys": list(self.keys), "within": None, "weights": []}
        within = self.of.chain[self.depth - 1]
        return {"keys": list(self.keys), "within": list(within), "weights": [w for w in self.tier.weights if w]}


@dataclass(frozen=True)
class Residuals:
    """The nodes of every tier from noisy residuals.

    Claim: let v have n children, of weight w, and let z be its block of the noisy residual, *centred again*: less its
    mean. A child is (v + z / w) / n, or v itself if n = 1. As z adds up to 0, the children add up to v, exactly. The
    variance of a child is that of v over n^2, plus s (n - 1) / (n^3 w^2) where s is that of the noise.

    Nodes are of one kind, and have the same variance, if the same numbers of siblings are above them.
    """

    of: Hierarchy
    measured: tuple[Branches, ...]

    @cached_property
    def kinds(self) -> tuple[tuple[int, ...], ...]:
        """For each tier, the kind of each node."""
        found = [(0,) * self.measured[0].tier.nodes]
        for above, children in zip(self.of.parents[1:], self.of.children[1:], strict=True):
            numbers: dict[tuple[int, int], int] = {}
            paths = ((found[-1][v], children[v]) for v in above)
            found.append(tuple(numbers.setdefault(path, len(numbers)) for path in paths))
        return tuple(found)

    def _path(self, depth: int, node: int) -> list[tuple[int, int, int]]:
        """The tiers above a node in which it has siblings: the tier, how many children, and their weight."""
        found = []
        for at in range(depth, 0, -1):
            node = self.of.parents[at][node]
            n, weight = self.of.children[at][node], self.measured[at].tier.weights[node]
            found += [(at, n, weight)] if n > 1 else []
        return found

    def kinds_of(self, margin: Keys) -> tuple[int, ...]:
        """The kind of each node of a tier."""
        return self.kinds[self.of.depth(margin)]

    def unit(self, margin: Keys, kind: int) -> int:
        """The denominator of a kind of nodes."""
        unit = 1
        for _, n, weight in self._path(self.of.depth(margin), self.kinds_of(margin).index(kind)):
            unit *= n * n * weight
        return unit

    def draws(self, margin: Keys, scales: Sequence[Exact], kind: int) -> Terms:
        """The weights, scales and numbers of the draws that are the error of a kind of nodes."""
        found: dict[tuple[Exact, Exact], int] = {}
        factor = Exact(1)
        for at, n, weight in self._path(self.of.depth(margin), self.kinds_of(margin).index(kind)):
            for part, count in ((Exact(n - 1, n * n * weight), 1), (Exact(1, n * n * weight), n - 1)):
                term = factor * part, scales[at]
                found[term] = found.get(term, 0) + count
            factor /= n
        found[factor, scales[0]] = found.get((factor, scales[0]), 0) + 1
        return tuple((weight, scale, count) for (weight, scale), count in found.items())

    def margins(self, noisy: Sequence[Vectors]) -> dict[Keys, list[tuple[int, ...]]]:
        """The nodes of every tier, each times the `unit` of its kind."""
        found = [[tuple(vector) for vector in noisy[0]]]
        units = [1] * len(found[0])
        for depth in range(1, len(self.measured)):
            level, above = self.measured[depth], self.of.parents[depth]
            drawn = dict(zip(level.order, noisy[depth], strict=True))
            size = len(found[0][0])
            whole: dict[int, tuple[int, ...]] = {}
            for node, vector in drawn.items():
                before = whole.get(above[node], (0,) * size)
                whole[above[node]] = tuple(x + y for x, y in zip(before, vector, strict=True))
            nodes, finer = [], []
            for node, v in enumerate(above):
                n, weight = level.tier.children[v], level.tier.weights[v]
                if n == 1:
                    nodes.append(found[-1][v])
                    finer.append(units[v])
                    continue
                parts = zip(found[-1][v], drawn[node], whole[v], strict=True)
                nodes.append(tuple(x * weight * n + units[v] * (n * z - total) for x, z, total in parts))
                finer.append(units[v] * n * n * weight)
            found.append(nodes)
            units = finer
        return dict(zip(self.of.chain, found, strict=True))

    def variances(self, depth: int, kind: int) -> dict[int, Exact]:
        """What noise of variance 1 on each tier adds to the variance of a kind of nodes."""
        found, factor = {}, Exact(1)
        for at, n, weight in self._path(depth, self.kinds[depth].index(kind)):
            found[at] = factor * Exact(n - 1, n**3 * weight**2)
            factor /= n * n
        found[0] = factor
        return found


def residual_shares(of: Hierarchy, measured: tuple[Branches, ...], moves: Sequence[int]) -> list[Exact]:
    """The share of rho for each residual, for the least mean variance: over the nodes of a tier, and over all tiers.

    Claim: with c the mean variance that noise of variance 1 on a tier adds, the shares are proportional to
    sqrt(move c), as in `Levels.shares`; `moves` are squares.
    """
    estimate, gained = Residuals(of, measured), [Exact(0)] * len(measured)
    for depth, kinds in enumerate(estimate.kinds):
        for kind, count in Counter(kinds).items():
            for tier, variance in estimate.variances(depth, kind).items():
                gained[tier] += variance * Exact(count, len(kinds))
    costs = [move * each for move, each in zip(moves, gained, strict=True)]
    roots = [1 + isqrt(int(cost / max(costs) * 2**80)) for cost in costs]
    return [Exact(root, sum(roots)) for root in roots]


@remembered(64)
def residuals(of: Hierarchy, measured: tuple[Branches, ...]) -> Residuals:
    """The estimate for these tiers; prepared once."""
    return Residuals(of, measured)
