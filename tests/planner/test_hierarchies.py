"""Trees of levels: variances and answers against linear algebra, exact sums, shares, and sensitivities by search."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product
from random import Random
from typing import Any

import numpy as np
import pytest

from privet.planner.hierarchies import Branches, Hierarchy, Residuals, residual_shares
from privet.planner.least_squares import LeastSquares, tier_shares, variances
from privet.privacy.adjacency import Adjacency
from privet.privacy.tier_claims import Tree
from privet.privacy.tiers import Tier, balanced, residual_move, tier_move

ROLLUP = ((0, 1, 2), (0, 1), (0,), ())
TREES = [
    Hierarchy((("n", "a"), ("n", "b"), ("s", "c")), ((0, 1), (0,), ())),
    Hierarchy((("n", "a"), ("n", "b"), ("n", "c"), ("s", "d"), ("s", "e"), ("w", "f")), ((0, 1), (0,), ())),
    Hierarchy((("n", "a"), ("n", "b"), ("s", "c"), ("s", "d"), ("s", "e")), ((0, 1), (0,))),
    Hierarchy(
        tuple((c, f"{c}{r}", f"{c}{r}{t}") for c, sizes in (("X", (1, 3)), ("Y", (2, 2, 4))) for r, n in
              enumerate(sizes) for t in range(n)), ROLLUP
    ),
    Hierarchy((("n", "a"), ("n", "?"), ("s", "?"), ("s", "b"), ("s", "c")), ((0, 1), ())),
]  # fmt: skip
IDS = ["two", "three", "forest", "countries", "others"]
EVERY = pytest.mark.parametrize("tree", TREES, ids=IDS)


def matrices(tree: Hierarchy, measured: tuple[Branches, ...]) -> list[Any]:
    """What is measured, as matrices over the leaves: from what `vectors` makes of each leaf alone."""
    size = len(tree.leaves)
    alone = [[[int(i == j)] for j in range(size)] for i in range(size)]
    return [np.array([[x for (x,) in level.vectors(leaf)] for leaf in alone], dtype=float).T for level in measured]


def solved(tree: Hierarchy, measured: tuple[Branches, ...], scales: list[float]) -> Any:
    """The covariance of the leaves by generalised least squares over all that is measured."""
    rows = np.concatenate([m / s**0.5 for m, s in zip(matrices(tree, measured), scales, strict=True)])
    return np.linalg.inv(rows.T @ rows)


def summed(tree: Hierarchy, depth: int) -> Any:
    """The nodes of a tier, as a matrix over the leaves."""
    nodes = tree.nodes(tree.chain[depth])
    return np.array([[float(node == at) for at in nodes] for node in range(max(nodes) + 1)])


@EVERY
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("residual", [True, False], ids=["residuals", "nodes"])
def test_answers_add_up_and_have_the_errors_that_they_say(tree: Hierarchy, adjacency: Any, residual: bool) -> None:
    """Each draw alone is put in: the answers are linear, so that is all there is to know of them."""
    measured = tree.tiers(adjacency, residual=residual)
    scales = [Fraction(3 + 2 * depth) for depth in range(len(measured))]
    estimate = Residuals(tree, measured) if residual else LeastSquares(tree, measured, tuple(scales))
    sizes = [level.cells for level in measured]
    columns: dict[Any, list[list[Fraction]]] = {keys: [] for keys in tree.chain}
    for place in [None, *((d, i) for d, n in enumerate(sizes) for i in range(n))]:
        truth = [(7 * i + 3,) for i in range(len(tree.leaves))]
        noisy: list[Any] = [[(int((d, i) == place),) for i in range(n)] for d, n in enumerate(sizes)]
        if place is None:  # and the truth, without noise
            noisy = [level.vectors(truth) for level in measured]
        found = estimate.margins(noisy)
        whole = {
            keys: [Fraction(x, estimate.unit(keys, estimate.kinds_of(keys)[i])) for i, (x,) in enumerate(nodes)]
            for keys, nodes in found.items()
        }
        for depth in range(1, len(tree.chain)):
            sums = [Fraction(0)] * len(tree.children[depth])
            for node, x in enumerate(whole[tree.chain[depth]]):
                sums[tree.parents[depth][node]] += x
            assert sums == whole[tree.chain[depth - 1]]
        if place is None:
            assert whole[tree.chain[-1]] == [x for (x,) in truth]
        else:
            for keys, nodes_ in whole.items():
                columns[keys].append(nodes_)
    covariance = solved(tree, measured, list(map(float, scales)))
    noise = np.repeat([float(s) for s in scales], sizes)
    for depth, keys in enumerate(tree.chain):
        weights = np.array(columns[keys], dtype=float)  # by draw, by node
        mine = (weights**2 * noise[:, None]).sum(axis=0)
        best = np.diag(summed(tree, depth) @ covariance @ summed(tree, depth).T)
        assert np.allclose(mine, best, rtol=1e-5), (keys, mine, best)
        for node, kind in enumerate(estimate.kinds_of(keys)):
            terms = estimate.draws(keys, scales, kind)
            assert sum(n * float(w) ** 2 * float(s) for w, s, n in terms) == pytest.approx(mine[node])
            listed = sorted(float(w) for w, _, n in terms for _ in range(n))
            assert np.allclose(listed, sorted(abs(x) for x in weights[:, node] if x), rtol=1e-9)


@EVERY
def test_shares_of_rho_are_the_best_and_those_of_epsilon_never_worse_than_equal_ones(tree: Hierarchy) -> None:
    measured = tree.tiers(Adjacency.ADD_REMOVE, residual=True)
    moves = [residual_move([(1,)], level.tier, adjacency="add/remove").squared for level in measured]
    shares = [float(x) for x in residual_shares(tree, measured, moves)]
    assert sum(shares) == pytest.approx(1)

    def mean(of: list[float]) -> float:
        covariance = solved(tree, measured, [move / share for move, share in zip(moves, of, strict=True)])
        tiers = [summed(tree, depth) for depth in range(len(tree.chain))]
        return float(np.mean([np.mean(np.diag(s @ covariance @ s.T)) for s in tiers]))

    for i, j in permutations(range(len(shares)), 2):
        moved = list(shares)
        moved[i], moved[j] = moved[i] * 0.97, moved[j] + moved[i] * 0.03
        assert mean(moved) >= mean(shares) * (1 - 1e-9)
    ones = (1,) * len(shares)
    epsilon = [float(x) for x in tier_shares(tree, ones)]
    assert sum(epsilon) == pytest.approx(1)
    assert epsilon[-1] > 0
    equal = variances(tree, ones, [1 / len(ones)] * len(ones))
    for (_, most), (mine, _) in zip(variances(tree, ones, epsilon), equal, strict=True):
        assert most <= len(ones) ** 2 * (1 + 1e-9)
        assert mine <= len(ones) ** 2


def test_closed_variances_are_those_of_linear_algebra() -> None:
    for tree in TREES:
        shares = [(i + 1) / sum(range(1, len(tree.chain) + 1)) for i in range(len(tree.chain))]
        measured = tree.tiers(Adjacency.ADD_REMOVE, residual=False)
        covariance = solved(tree, measured, [1 / share**2 for share in shares])
        for depth, (mean, most) in enumerate(variances(tree, [1] * len(shares), shares)):
            best = np.diag(summed(tree, depth) @ covariance @ summed(tree, depth).T)
            assert [mean, most] == pytest.approx([best.mean(), best.max()])


# --- sensitivities ------------------------------------------------------------------------------------------

PHIS: list[list[tuple[int, ...]]] = [[(1,)], [(2, 0), (0, 2)], [(-2,), (3,)]]


@EVERY
@pytest.mark.parametrize("phis", PHIS, ids=["count", "pair", "signed"])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_no_unit_moves_a_residual_further(tree: Hierarchy, phis: Any, adjacency: Any, effort: int) -> None:
    """Every one or two rows, which reach the claim, and many of two in each of two leaves; the checker has that too."""
    chance = Random(4)
    size, leaves = len(phis[0]), range(len(tree.leaves))
    for level in tree.tiers(adjacency, residual=True):
        matrix = matrices(tree, (level,))[0]

        def far(before: Any, after: Any, matrix: Any = matrix) -> float:
            change = np.zeros((len(leaves), size))
            for sign, rows in ((1, after), (-1, before)):
                for leaf, phi in rows:
                    change[leaf] += sign * np.array(phi)
            return float(((matrix @ change) ** 2).sum())

        single = list(product(leaves, phis))
        for rows, groups in ((1, 1), (2, 1), (2, 2)):
            units: list[Any] = [(), *combinations_with_replacement(single, rows)] if groups == 1 else []
            for _ in range(60 * effort if groups > 1 else 0):
                some = chance.sample(leaves, min(2, len(leaves)))
                units.append([(leaf, phi) for leaf in some for phi in [chance.choice(phis)] for _ in range(rows)])
            pairs: list[Any] = [((), unit) for unit in units]
            if adjacency is Adjacency.REPLACE:
                pairs += [(chance.choice(units), unit) for unit in units for _ in range(4)]
                pairs += [((one,) * rows, (other,) * rows) for one in single for other in single if groups == 1]
            most = max(far(*pair) for pair in pairs)
            claimed = residual_move(phis, level.tier, adjacency=adjacency, rows=rows, max_groups=groups).squared
            assert most <= claimed * (1 + 1e-9)
            if groups == 1:
                assert most == pytest.approx(claimed)
        found = Tree.of({"listed": {"only": json.loads(json.dumps(tree.leaves))}}, level.facts())
        assert (found.nodes, found.measured, found.most) == (level.tier.nodes, level.cells, level.tier.most)


def test_weights_balance_parents_of_different_sizes() -> None:
    """With the weights, the smallest parent has no more noise than the largest; without them, 200 times as much."""
    children = (2, 40)
    for weights, least, most in ((balanced(children, "add/remove"), 0.2, 0.3), ((1, 1), 200, 210)):
        tier = Tier(42, 42, 1, children, weights)
        move = residual_move([(1,)], tier, adjacency="add/remove").squared
        small, large = (move * (n - 1) / (n**3 * w**2) for n, w in zip(children, weights, strict=True))
        assert least < small / large < most
    assert tier_move([(1,)], Tier(1, 42, 42), adjacency="replace", rows=2).total == 2
