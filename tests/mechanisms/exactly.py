"""Output distributions by enumeration, in exact rationals: what mechanisms are, independent of how they are computed.

With e^(-1/scale) = r, a rational, all probabilities of noise are rational; e^epsilon is then a power of 1/r, and
privacy is decided exactly. Infinite sums are cut off, and what is left out is kept in `ELSEWHERE`, so that bounds hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, permutations, product
from typing import Any

ELSEWHERE = "elsewhere"
"""The outcome that holds what was cut off; it is at most added to each probability."""

Law = dict[Any, Any]
"""Outcomes and their probabilities: Fractions, or flint's faster rationals."""


def within(p: Law, q: Law, e_epsilon: Any) -> bool:
    """Whether p(x) <= e^epsilon q(x) for every x, for certain."""
    rest = p.get(ELSEWHERE, 0)
    return all(mass + rest <= e_epsilon * q.get(x, 0) for x, mass in p.items() if x != ELSEWHERE and mass)


def beyond(p: Law, q: Law, e_epsilon: Any) -> bool:
    """Whether p(x) > e^epsilon q(x) for some x, for certain."""
    rest = q.get(ELSEWHERE, 0)
    return any(mass > e_epsilon * (q.get(x, 0) + rest) for x, mass in p.items() if x != ELSEWHERE and mass)


def hockey(p: Law, q: Law, e_epsilon: Any) -> Any:
    """The sum of max(0, p - e^epsilon q): the delta of p against q, exactly."""
    return sum(max(0, mass - e_epsilon * q.get(x, 0)) for x, mass in p.items())


def private(laws: Callable[[Any], Law], pairs: Iterable[tuple[Any, Any]], e_epsilon: Any) -> bool:
    """Whether the law of each pair of neighbours is within e^epsilon, in both directions, for certain."""
    return all(within(laws(a), laws(b), e_epsilon) and within(laws(b), laws(a), e_epsilon) for a, b in pairs)


def broken(laws: Callable[[Any], Law], pairs: Iterable[tuple[Any, Any]], e_epsilon: Any) -> bool:
    """Whether some pair of neighbours is certainly not within e^epsilon."""
    return any(beyond(laws(a), laws(b), e_epsilon) or beyond(laws(b), laws(a), e_epsilon) for a, b in pairs)


# --- neighbours -------------------------------------------------------------------------------


def moved(vectors: Iterable[Sequence[int]], by: int = 1) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Each vector and each one in which every number is moved by at most `by`."""
    for vector in vectors:
        for steps in product(range(-by, by + 1), repeat=len(vector)):
            yield tuple(vector), tuple(v + s for v, s in zip(vector, steps, strict=True))


def raised(vectors: Iterable[Sequence[int]], by: int = 1) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The same, if all numbers move in the same direction."""
    for vector in vectors:
        for steps in product(range(by + 1), repeat=len(vector)):
            yield tuple(vector), tuple(v + s for v, s in zip(vector, steps, strict=True))


# --- noise ------------------------------------------------------------------------------------


def noise(r: Any, reach: int) -> Law:
    """Discrete Laplace noise with ratio r, cut off at `reach`."""
    c = (1 - r) / (1 + r)
    law: Law = {k: c * r ** abs(k) for k in range(-reach, reach + 1)}
    law[ELSEWHERE] = 1 - sum(law.values())
    return law


def below(r: Any, k: int) -> Any:
    """P(noise < k), exactly."""
    return r ** (1 - k) / (1 + r) if k <= 0 else 1 - r**k / (1 + r)


# --- selections -------------------------------------------------------------------------------


def exponential(scores: Sequence[int], r: Any) -> dict[Any, Any]:
    """Weights r^(best - score)."""
    weights = [r ** (max(scores) - s) for s in scores]
    return {i: w / sum(weights) for i, w in enumerate(weights)}


def permute_and_flip(scores: Sequence[int], r: Any) -> dict[Any, Any]:
    """All orders of the candidates, one by one."""
    heads = [r ** (max(scores) - s) for s in scores]
    law: dict[Any, Any] = dict.fromkeys(range(len(scores)), r * 0)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        missed = r * 0 + 1
        for i in order:
            law[i] = law[i] + missed * heads[i] / len(orders)
            missed = missed * (1 - heads[i])
    return law


def noisy_max(scores: Sequence[int], r: Any, reach: int, *, ties: str = "uniform", value: bool = False) -> Law:
    """Each maximum up to `reach` away from the best score, and each set of candidates that reach it."""
    law: Law = {}
    left, everyone = r * 0 + 1, range(len(scores))
    c = (1 - r) / (1 + r)
    for v in range(max(scores) - reach, max(scores) + reach + 1):
        at = [c * r ** abs(v - s) for s in scores]
        under = [below(r, v - s) for s in scores]
        for size in range(1, len(scores) + 1):
            for best in combinations(everyone, size):
                mass = math.prod(at[i] if i in best else under[i] for i in everyone)
                left -= mass
                winners = best[:1] if ties == "first" else best
                for i in winners:
                    outcome = (i, v) if value else i
                    law[outcome] = law.get(outcome, 0) + mass / len(winners)
    return {**law, ELSEWHERE: left}


# --- sparse vectors ---------------------------------------------------------------------------


def sparse_vector(
    queries: Sequence[int], *, threshold: Any, query: Any, most: int | None = 1, value: bool = False, reach: int = 40
) -> Law:
    """The law of a list's answers, at threshold 0: which queries are above, up to `most` of them, then silence.

    `threshold` and `query` are the ratios r of the noises (None: no noise), `value` releases the noisy answer.
    """
    law: Law = {}
    for limit, mass in noise(threshold, reach).items():
        if limit == ELSEWHERE:
            law[ELSEWHERE] = law.get(ELSEWHERE, 0) + mass
            continue
        paths: Law = {(): mass}
        for q in queries:
            following: Law = {}
            low = int(q < limit) if query is None else below(query, limit - q)
            options: Law = {False: low, True: 1 - low}
            if value:  # the noisy answers near 0, one by one; all others together
                near = {v: (1 - query) / (1 + query) * query ** abs(v - q) for v in range(-3, 4) if v >= limit}
                options = {False: low, **near, "other": 1 - low - sum(near.values())}
            for path, chance in paths.items():
                if most is not None and sum(step is not False for step in path) >= most:
                    following[path] = following.get(path, 0) + chance
                    continue
                for step, p in options.items():
                    following[*path, step] = following.get((*path, step), 0) + chance * p
            paths = following
        for path, chance in paths.items():
            law[path] = law.get(path, 0) + chance
    return law
