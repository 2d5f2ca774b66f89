"""Trees from noisy nodes: the tiers that have noise in L1 are made consistent by least squares, and share epsilon."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

from privet.accuracy.sums import Terms
from privet.exact import Exact
from privet.planner.hierarchies import Branches, Hierarchy, Keys, Vectors
from privet.system.remembered import remembered

_BITS = 20
_PRECISION = 2**_BITS
"""Weights are multiples of 1 / this; any weights are right."""
_UNIT = 2**60
"""Variances are multiples of the largest over this."""
_MANY = 16
"""Terms of an error from which on similar ones are taken together."""
_RATIOS = tuple(map(Exact, ("4", "2", "1.5", "1.25", "1.1", "1.05", "1.02")))
"""How far apart these may be: the first that changes the variance little."""
_STEPS = 64
"""Shares are multiples of 1 / (this times the number of tiers)."""

Shape = tuple[tuple[int, int], ...]
"""How many children of each form a node has."""


@dataclass(frozen=True)
class Shapes:
    """The forms of the subtrees of a hierarchy: nodes of one form have children of the same forms."""

    of: Hierarchy

    @cached_property
    def forms(self) -> tuple[tuple[int, ...], ...]:
        """For each tier, the form of each node."""
        return self._made[0]

    @cached_property
    def shapes(self) -> tuple[tuple[Shape, ...], ...]:
        """For each tier, the shape of each form."""
        return self._made[1]

    @cached_property
    def _made(self) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[Shape, ...], ...]]:
        last = len(self.of.chain) - 1
        forms: list[tuple[int, ...]] = [(0,) * len(self.of.leaves)]
        shapes: list[tuple[Shape, ...]] = [((),)]
        for depth in range(last, 0, -1):
            below: list[Counter[int]] = [Counter() for _ in self.of.children[depth]]
            for node, v in enumerate(self.of.parents[depth]):
                below[v][forms[0][node]] += 1
            numbers: dict[Shape, int] = {}
            every = (tuple(sorted(each.items())) for each in below)
            forms.insert(0, tuple(numbers.setdefault(shape, len(numbers)) for shape in every))
            shapes.insert(0, tuple(numbers))
        return tuple(forms), tuple(shapes)

    @cached_property
    def kinds(self) -> tuple[tuple[int, ...], ...]:
        """For each tier, the kind of each node: its form, and the kind of the node above it."""
        numbers = [{path: kind for kind, path in enumerate(paths)} for paths in self.paths]
        return tuple(tuple(number[path] for path in each) for number, each in zip(numbers, self._paths, strict=True))

    @cached_property
    def paths(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each tier, the kinds: the kind above, and the form."""
        return tuple(tuple(dict.fromkeys(each)) for each in self._paths)

    @cached_property
    def _paths(self) -> tuple[list[tuple[int, int]], ...]:
        found = [[(0, form) for form in self.forms[0]]]
        for depth in range(1, len(self.forms)):
            numbers = {path: i for i, path in enumerate(dict.fromkeys(found[-1]))}
            above = self.of.parents[depth]
            found.append([(numbers[found[-1][above[node]]], form) for node, form in enumerate(self.forms[depth])])
        return tuple(found)


@remembered(64)
def shapes_of(hierarchy: Hierarchy) -> Shapes:
    """The shapes of a hierarchy; found once."""
    return Shapes(hierarchy)


@dataclass(frozen=True)
class LeastSquares:
    """The nodes of every tier from noisy ones whose noise has these variances (up to a common factor).

    Claim: from the leaves up, z is the average of a node's own number and of the sum of the z below it, weighted by
    the inverse of their variances. From the top down, what a node differs from the sum of the z of its children is
    divided among them in proportion to the variances of these z. This is generalised least squares on a tree, up to
    the rounding of weights. With any weights, all numbers are unbiased, and children add up to their node, exactly.

    Reference: Hay, Rastogi, Miklau, Suciu (2010), boosting the accuracy of differentially private histograms through
    consistency.
    """

    of: Hierarchy
    measured: tuple[Branches, ...]
    variances: tuple[Exact, ...]

    def kinds_of(self, margin: Keys) -> tuple[int, ...]:
        """The kind of each node of a tier."""
        return shapes_of(self.of).kinds[self.of.depth(margin)]

    @cached_property
    def _weights(self) -> tuple[list[list[int]], list[list[dict[int, int]]]]:
        """By tier and form: the weight of the node's own number; and the shares of the forms below it."""
        shapes = shapes_of(self.of).shapes
        at = {level.depth: variance for level, variance in zip(self.measured, self.variances, strict=True)}
        largest = max(self.variances)
        own: list[list[int]] = [[_PRECISION]]
        divided: list[list[dict[int, int]]] = [[{}]]
        below = [max(1, int(at[len(shapes) - 1] / largest * _UNIT))]
        for depth in range(len(shapes) - 2, -1, -1):
            variance = max(1, int(at[depth] / largest * _UNIT)) if depth in at else None
            weights, here, shares = [], [], []
            for shape in shapes[depth]:
                summed = sum(below[form] * count for form, count in shape)
                most = max(below[form] for form, _ in shape)
                shares.append({form: max(1, _PRECISION * below[form] // most) for form, _ in shape})
                together = None if variance is None else summed + variance
                weights.append(0 if together is None else _PRECISION * summed // together)
                here.append(summed if variance is None or together is None else summed * variance // together or 1)
            own.insert(0, weights)
            divided.insert(0, shares)
            below = here
        return own, divided

    def _divided(self, depth: int, form: int) -> tuple[dict[int, int], int]:
        """The shares of the children of a form, and their sum."""
        shares = self._weights[1][depth][form]
        return shares, sum(shares[each] * count for each, count in shapes_of(self.of).shapes[depth][form])

    def _up(self, depth: int) -> int:
        """The denominator of the z of a tier."""
        return 1 << _BITS * (len(self.of.chain) - 1 - depth)

    def unit(self, margin: Keys, kind: int) -> int:
        """The denominator of a kind of nodes."""
        shapes, unit = shapes_of(self.of), self._up(0)
        for depth in range(self.of.depth(margin), 0, -1):
            kind = shapes.paths[depth][kind][0]
            form = shapes.paths[depth - 1][kind][1]
            alone = sum(count for _, count in shapes.shapes[depth - 1][form]) == 1
            unit *= 1 if alone else self._divided(depth - 1, form)[1]
        return unit

    def margins(self, noisy: Sequence[Vectors]) -> dict[Keys, list[tuple[int, ...]]]:
        """The nodes of every tier, each times the `unit` of its kind."""
        shapes, last = shapes_of(self.of), len(self.of.chain) - 1
        drawn = {level.depth: vectors for level, vectors in zip(self.measured, noisy, strict=True)}
        up: list[list[tuple[int, ...]]] = [[tuple(vector) for vector in drawn[last]]]
        for depth in range(last - 1, -1, -1):
            finer, made = self._up(depth + 1), []
            for node, total in enumerate(self._below(depth, up[0])):
                own = self._weights[0][depth][shapes.forms[depth][node]]
                mine = drawn[depth][node] if depth in drawn else (0,) * len(total)
                both = zip(mine, total, strict=True)
                made.append(tuple(own * y * finer + (_PRECISION - own) * x for y, x in both))
            up.insert(0, made)
        found, units = [up[0]], [self._up(0)] * len(up[0])
        for depth in range(1, last + 1):
            totals, finer, nodes, made_units = self._below(depth - 1, up[depth]), self._up(depth), [], []
            for node, v in enumerate(self.of.parents[depth]):
                if self.of.children[depth][v] == 1:
                    nodes.append(found[-1][v])
                    made_units.append(units[v])
                    continue
                shares, whole = self._divided(depth - 1, shapes.forms[depth - 1][v])
                share, times = shares[shapes.forms[depth][node]], units[v] // finer
                parts = zip(up[depth][node], found[-1][v], totals[v], strict=True)
                nodes.append(tuple(z * times * whole + share * (x - total * times) for z, x, total in parts))
                made_units.append(units[v] * whole)
            found.append(nodes)
            units = made_units
        return dict(zip(self.of.chain, found, strict=True))

    def _below(self, depth: int, nodes: Vectors) -> list[tuple[int, ...]]:
        """The sum of the nodes below each node of a tier."""
        sums: list[list[int]] = [[0] * len(nodes[0]) for _ in self.of.children[depth + 1]]
        for node, v in enumerate(self.of.parents[depth + 1]):
            for i, x in enumerate(nodes[node]):
                sums[v][i] += x
        return list(map(tuple, sums))

    @cached_property
    def _spread(self) -> list[list[dict[tuple[Exact, int], int]]]:
        """By tier and form: the draws of which its z is made, by weight and tier, and how many there are of each."""
        shapes, last = shapes_of(self.of).shapes, len(self.of.chain) - 1
        drawn = {level.depth for level in self.measured}
        found: list[list[dict[tuple[Exact, int], int]]] = [[{(Exact(1), last): 1}]]
        for depth in range(last - 1, -1, -1):
            here: list[dict[tuple[Exact, int], int]] = []
            for form, shape in enumerate(shapes[depth]):
                own = Exact(self._weights[0][depth][form], _PRECISION)
                terms = {(own, depth): 1} if depth in drawn and own else {}
                for each, count in shape:
                    _add(terms, found[0][each], 1 - own, count)
                here.append(terms)
            found.insert(0, here)
        return found

    @cached_property
    def _errors(self) -> list[list[tuple[dict[tuple[Exact, int], int], Exact]]]:
        """By tier and kind: the draws outside of what is below a node, and the weight of the sum of the z below it.

        A node is z + b (x - Z), where x is the node above, Z the sum of the z of its children, and b its share. With x
        = e + c Z, it is (1 - b (1 - c)) z - b (1 - c) (the other z) + b e; and z = a y + (1 - a) (the sum below).
        """
        shapes, drawn = shapes_of(self.of), {level.depth for level in self.measured}
        found: list[list[tuple[dict[tuple[Exact, int], int], Exact]]] = []
        for depth, paths in enumerate(shapes.paths):
            here = []
            for above, form in paths:
                own = Exact(self._weights[0][depth][form], _PRECISION)
                terms: dict[tuple[Exact, int], int] = {}
                kept = Exact(1)
                if depth:
                    parent = shapes.paths[depth - 1][above][1]
                    shares, whole = self._divided(depth - 1, parent)
                    outer, inside = found[-1][above]
                    share = Exact(shares[form], whole)
                    kept = 1 - share * (1 - inside)
                    for each, count in shapes.shapes[depth - 1][parent]:
                        _add(terms, self._spread[depth][each], share * (1 - inside), count - (each == form))
                    _add(terms, outer, share, 1)
                if depth in drawn:
                    _add(terms, {(Exact(1), depth): 1}, kept * own, 1)
                here.append((terms, kept * (1 - own)))
            found.append(here)
        return found

    def draws(self, margin: Keys, scales: Sequence[Exact], kind: int) -> Terms:
        """The weights, scales and numbers of the draws that are the error of a kind of nodes."""
        depth = self.of.depth(margin)
        shapes, at = shapes_of(self.of), {level.depth: s for level, s in zip(self.measured, scales, strict=True)}
        terms, inside = self._errors[depth][kind]
        every = dict(terms)
        for each, count in shapes.shapes[depth][shapes.paths[depth][kind][1]]:
            _add(every, self._spread[depth + 1][each], inside, count)
        return _few(tuple((weight, at[tier], count) for (weight, tier), count in every.items()))


def _few(terms: Terms) -> Terms:
    """Fewer terms for many, with which the errors of sums are found faster.

    Claim: weights are only rounded up, so that no error is understated, and the variance grows by 1 % at most.
    """
    if len(terms) <= _MANY:
        return terms
    allowed = Exact(101, 100) * sum((n * (w * s) ** 2 for w, s, n in terms), Exact(0))
    for ratio in _RATIOS:
        found: dict[tuple[Exact, Exact], int] = {}
        tops: dict[Exact, Exact] = {}
        for weight, scale, count in sorted(terms, reverse=True):
            if scale not in tops or weight * ratio < tops[scale]:
                tops[scale] = weight
            found[tops[scale], scale] = found.get((tops[scale], scale), 0) + count
        if sum((n * (w * s) ** 2 for (w, s), n in found.items()), Exact(0)) <= allowed:
            return tuple((weight, scale, count) for (weight, scale), count in found.items())
    return terms


def _add(terms: dict[tuple[Exact, int], int], more: dict[tuple[Exact, int], int], factor: Exact, times: int) -> None:
    """Add draws, each with this factor, so many times; only the size of a weight matters."""
    if not factor or not times:
        return
    for (weight, tier), count in more.items():
        key = abs(factor * weight), tier
        terms[key] = terms.get(key, 0) + count * times


@remembered(64)
def least_squares(of: Hierarchy, measured: tuple[Branches, ...], variances: tuple[Exact, ...]) -> LeastSquares:
    """The estimate for these tiers; prepared once."""
    return LeastSquares(of, measured, variances)


# --- shares of epsilon --------------------------------------------------------------------------------------


@remembered(64)
def tier_shares(of: Hierarchy, moves: tuple[int, ...]) -> list[Exact]:
    """The share of epsilon for each tier; 0 for one that is better made of finer ones.

    Claim: the shares add up to 1, and no node has a larger variance than if each tier were measured by itself with an
    equal share: least squares are at least as good as each number alone. Among such shares, a local search makes the
    mean variance small: over the nodes of a tier, and over all tiers. It compares to nine digits, so it finds the same
    shares on every machine.

    Example:
        >>> towns = (("north", "a"), ("north", "b"), ("south", "c"))
        >>> [str(share) for share in tier_shares(Hierarchy(towns, ((0, 1), (0,), ())), (1, 1, 1))]
        ['0', '0', '1']
    """
    count = len(moves)
    equal = [float(move) ** 2 * count**2 for move in moves]
    limit = [each * (1 + 1e-9) for each in equal]

    def score(shares: Sequence[int]) -> float:
        """The mean variance, relative to equal shares; infinite if a node is less accurate than by itself."""
        found = variances(of, moves, [share / (_STEPS * count) for share in shares])
        if any(most > least for (_, most), least in zip(found, limit, strict=True)):
            return inf
        return round(sum(mean for mean, _ in found) / sum(equal), 9)

    best: tuple[float, list[int]] = (inf, [])
    for start in ([_STEPS] * count, [*[0] * (count - 1), _STEPS * count]):
        shares, now, step = list(start), score(start), len(start) * _STEPS // 4
        while step and now < inf:
            moved = [(score(each), each) for each in _steps(shares, step)]
            found = min(moved, default=(inf, shares))
            if found[0] < now:
                now, shares = found
            else:
                step //= 2
        best = min(best, (now, shares))
    return [Exact(share, _STEPS * count) for share in best[1]]


def _steps(shares: Sequence[int], step: int) -> list[list[int]]:
    """The shares after a step from one tier to another; the leaves keep some."""
    found = []
    for i, have in enumerate(shares):
        taken = min(have - (i == len(shares) - 1), step)
        for j in range(len(shares)):
            if i != j and taken > 0:
                moved = list(shares)
                moved[i], moved[j] = moved[i] - taken, moved[j] + taken
                found.append(moved)
    return found


def variances(of: Hierarchy, moves: Sequence[int], shares: Sequence[float]) -> list[tuple[float, float]]:
    """The mean and the greatest variance of the nodes of each tier, in units of that of a move of 1 at full price.

    Claim: let V(z) be the variances from the leaves up, and V(x) those at the end. With b the share of a child, and Z
    the sum of the z below the node above: V(x) = V(z) - b^2 (V(Z) - V(x above)).
    """
    shapes = shapes_of(of)
    own = [(move / share) ** 2 if share else inf for move, share in zip(moves, shares, strict=True)]
    up: list[list[float]] = [[own[-1]]]
    sums: list[list[float]] = []
    for depth in range(len(own) - 2, -1, -1):
        below = [sum(up[0][form] * count for form, count in shape) for shape in shapes.shapes[depth]]
        sums.insert(0, below)
        up.insert(0, [each if own[depth] == inf else each * own[depth] / (each + own[depth]) for each in below])
    found, last = [], [up[0][form] for _, form in shapes.paths[0]]
    for depth, paths in enumerate(shapes.paths):
        if depth:
            here = []
            for above, form in paths:
                whole = sums[depth - 1][shapes.paths[depth - 1][above][1]]
                here.append(up[depth][form] - (up[depth][form] / whole) ** 2 * (whole - last[above]))
            last = here
        counts = Counter(shapes.kinds[depth])
        mean = sum(variance * counts[kind] for kind, variance in enumerate(last)) / len(shapes.kinds[depth])
        found.append((mean, max(last)))
    return found
