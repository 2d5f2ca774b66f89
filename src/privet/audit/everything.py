"""Every sampler that Privet has, verified exactly: the tables, and what is made of them."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

from flint import arb

from privet.audit.choice import verify_choice
from privet.audit.coins import (
    LAST,
    Audited,
    Words,
    audited,
    probes_of,
    verify_coin,
    verify_uniform,
    verify_uniform_array,
    words_of,
)
from privet.audit.sampler import verify_sampler
from privet.exact import Exact, ball, precision
from privet.mechanisms import AboveThreshold, RandomizedResponse
from privet.mechanisms.noisy_max import NOISY_MAX
from privet.mechanisms.permute_and_flip import PERMUTE_AND_FLIP
from privet.noise import BernoulliExp, DiscreteGaussian, DiscreteLaplace, DiscreteStaircase, Geometric, TruncatedLaplace

_PICK = {0: b"\x00", 1: b"\xff"}  # of two heads or of two ties: the first, or the second


def verify_response(mechanism: RandomizedResponse) -> Audited:
    """Certify the coin of randomized response, and that every other report is equally likely.

    Claim: p = e^epsilon / (e^epsilon + k - 1), from the definition; the others are one uniform integer below k - 1.

    Example:
        >>> verify_response(RandomizedResponse(3, epsilon=1)).exact
        True
    """
    k = len(mechanism.categories)

    def keep() -> arb:
        top = ball(mechanism.epsilon).exp()
        return top / (top + k - 1)

    def checks() -> Iterator[bool]:
        length = max(1, (k - 2).bit_length())
        for at in range(k):
            for real, kept in probes_of(keep):
                first, *more = words_of(real)
                drawn = set()
                for other in range(k - 1):
                    arrays = [[first]] if k == 2 else [[first], [other << 64 - length]]
                    drawn.add(mechanism._draw([mechanism.categories[at]], Words(arrays, more))[0])
                truth = mechanism.categories[at]
                yield drawn == ({truth} if kept else {*mechanism.categories} - {truth})

    return audited(f"{mechanism!r}", checks())


def verify_flips(away: int, scale: Exact, draw: Any = PERMUTE_AND_FLIP._draw) -> Audited:
    """Certify permute-and-flip: the coin of a candidate that is `away` from the best, and the choice among heads.

    Example:
        >>> verify_flips(3, Fraction(2)).exact
        True
    """

    def checks() -> Iterator[bool]:
        for real, heads in probes_of(lambda: ball(-away / scale).exp()):
            first, *more = words_of(real)
            for scores, place in (((-away, 0, -away - 1), 0), ((-away - 1, 0, -away), 2)):
                words = [first if i == place else 0 if i == 1 else LAST for i in range(3)]
                chosen = {
                    draw(scores, scale=scale, bits=Words([words], more, pick if heads else b""))
                    for pick in _PICK.values()
                }
                yield chosen == ({place, 1} if heads else {1})

    return audited(f"permute-and-flip, {away} below the best at scale {scale}", checks())


def verify_staircase(noise: DiscreteStaircase) -> Audited:
    """Certify staircase noise: the coin of the inner level, and each integer of the levels 0 to 3 exactly once.

    Its level beyond is geometric, from the same table as `Geometric(1 / epsilon)`, which is verified by itself.

    Example:
        >>> verify_staircase(DiscreteStaircase(sensitivity=5, epsilon=1)).exact
        True
    """
    w, s = noise.width, noise.sensitivity

    def inner() -> arb:
        b = ball(-noise.epsilon).exp()
        return (2 * w - 1) * (1 - b) / (2 * w + 2 * b * (s - w) - (1 - b))

    levels = Geometric(1 / noise.epsilon)
    tables = _middles(levels, 3)
    near, far = (_bytes_below(2 * w - 1), _bytes_below(2 * s))

    def checks() -> Iterator[bool]:
        for real, below in probes_of(inner):
            more = _until_decided(real, inner)
            word = tables[0]
            value = noise.draw(Words([], [*more, word], near[0] + far[0]))
            yield (abs(value) < w) == below
        drawn = [noise.draw(Words([], [0, tables[0]], n + far[0])) for n in near]
        yield sorted(drawn) == list(range(1 - w, w))
        for level, word in enumerate(tables):
            drawn = [noise.draw(Words([], [LAST, word], near[0] + f)) for f in far]
            low = w + level * s
            yield sorted(drawn) == [*range(1 - low - s, 1 - low), *range(low, low + s)]

    return audited(f"staircase of sensitivity {s}, epsilon {noise.epsilon}", checks())


def verify_truncated(noise: TruncatedLaplace, draws: Any = None) -> Audited:
    """Certify truncated Laplace noise: the choice among the parts of its support, and each value exactly once.

    Claim: its boundaries are probed against the published recursion, summed step by step. Each step of the geometric
    noise within a part leads to the value at that distance, and one step too many to another draw. The steps come from
    the same table as `Geometric(1 / epsilon)`, which is verified by itself.

    Example:
        >>> verify_truncated(TruncatedLaplace(epsilon="1/2", delta="1/100")).exact
        True
    """
    draw = noise.draws if draws is None else draws
    geometric = Geometric(1 / noise.epsilon)

    def chances() -> list[arb]:
        """Pi(0), pi(1), ... until 1, by the recursion."""
        e, d, found = ball(noise.epsilon).exp(), ball(noise.delta), [arb(0)]
        while not found[-1] >= 1:
            pi = found[-1]
            up, down = e * pi + d, 1 - (1 - pi - d) / e
            found.append(arb(1) if down >= 1 else up if up <= down else down)
        return found

    with precision(384):
        rule = chances()
        ratios = [(b - a) / (c - b) for a, b, c in zip(rule, rule[1:], rule[2:], strict=False)]
        half = sum(1 for pi in rule if pi < 0.5)  # the threshold: the first n with pi(n) >= 1/2
        rising = 1 + sum(1 for ratio in ratios if abs(ratio * ball(noise.epsilon).exp() - 1) < 1e-30)
    last = len(rule) - 1
    words = _middles(geometric, max(rising, last - rising))

    def checks() -> Iterator[bool]:
        parts = [(lambda: chances()[rising]), (lambda: chances()[last - 1])]
        for i, boundary in enumerate(parts):
            for real, below in probes_of(boundary):
                first, *more = words_of(real)
                (value,) = draw(1, Words([[first], [words[0]]], more)).tolist()
                yield value == (half - rising, half - rising - 1, half - last)[i if below else i + 1]
        for part, size in ((0, rising), (1, last - 1 - rising)):
            for step in range(size):
                (value,) = draw(1, Words([[_inside(parts, part)], [words[step]]], [])).tolist()
                yield value == (half - rising + step if part == 0 else half - rising - 1 - step)
            if size:
                (value,) = draw(1, Words([[_inside(parts, part)], [words[size]], [words[0]]], [])).tolist()
                yield value == half - rising - part

    return audited(f"truncated Laplace of epsilon {noise.epsilon}, delta {noise.delta}", checks())


def _inside(boundaries: list[Any], part: int) -> int:
    """A word in the middle of a part."""
    with precision(256):
        cuts = [arb(0), *(boundary() for boundary in boundaries)]
        return int(((cuts[part] + cuts[part + 1]) / 2 * arb(2) ** 64).floor().fmpz())


def verify_noisy_max(scale: Exact, draw: Any = NOISY_MAX._draw) -> Audited:
    """Certify report noisy max: the best of the noisy scores, and of ties each, for all noise from -3 to 3 on three.

    The noise comes from the same table as `DiscreteLaplace(scale)`, which is verified by itself.

    Example:
        >>> verify_noisy_max(Fraction(2)).exact
        True
    """
    words = dict(zip(range(-3, 4), _middles(DiscreteLaplace(scale), 3, low=-3), strict=True))

    def checks() -> Iterator[bool]:
        for scores in ((0, 0, 0), (0, 1, 3), (2, -1, 0)):
            for noise in product(range(-3, 4), repeat=3):
                noisy = [score + n for score, n in zip(scores, noise, strict=True)]
                best = {i for i, each in enumerate(noisy) if each == max(noisy)}
                drawn = [words[n] for n in noise]
                picks = _bytes_below(len(best))
                yield {draw(scores, scale=scale, bits=Words([drawn], [], pick)) for pick in picks} == best

    return audited(f"report noisy max at scale {scale}", checks())


def verify_above_threshold(mechanism: AboveThreshold) -> Audited:
    """Certify the sparse vector technique: the first noisy query at or above the noisy threshold, for all small noise.

    Example:
        >>> verify_above_threshold(AboveThreshold(sensitivity=1, epsilon=1, threshold=1)).exact
        True
    """
    limits = _middles(mechanism.threshold_noise, 2, low=-2)
    noises = _middles(mechanism.query_noise, 2, low=-2)

    def checks() -> Iterator[bool]:
        for queries in ((0, 1), (1, 0), (3, -2)):
            for at, *noise in product(range(-2, 3), repeat=3):
                noisy = [q + n for q, n in zip(queries, noise, strict=True)]
                above = [i for i, each in enumerate(noisy) if each >= -(-mechanism.threshold // 1) + at]
                script = Words([[noises[n + 2] for n in noise]], [limits[at + 2]])
                yield mechanism._draw(queries, script) == (above[0] if above else None)

    return audited(f"{mechanism!r}", checks())


def _middles(noise: Geometric | DiscreteLaplace, high: int, low: int = 0) -> list[int]:
    """A word for each value: in the middle between two boundaries of the exact CDF, of a table that has one level."""
    with precision(256):
        cuts = [ball((noise.cdf(k).lower + noise.cdf(k).upper) / 2) for k in range(low - 1, high + 1)]
        return [int(((a + b) / 2 * arb(2) ** 64).floor().fmpz()) for a, b in pairwise(cuts)]


def _bytes_below(bound: int) -> list[bytes]:
    """A string of bits for each number below the bound, as `uniform_below` reads them."""
    length = (bound - 1).bit_length()
    size = (length + 7) // 8
    return [(number << 8 * size - length).to_bytes(size, "little") for number in range(bound)]


def _until_decided(real: int, probability: Any) -> list[int]:
    """The words of a uniform real that decide: the first, and all of them if its first 64 bits are the boundary's."""
    words = words_of(real)
    with precision(1152):
        cut = int((probability() * arb(2) ** 384).floor().fmpz())
    same = next(i for i, (a, b) in enumerate(zip(words, words_of(cut), strict=True)) if a != b)
    return words[: same + 1]


def verify_all() -> Iterator[Any]:
    """A report for every kind of sampler, at parameters that reach every branch.

    Example:
        >>> next(verify_all()).exact
        True
    """
    for scale in ("1/3", "1", "2.5", "40", "1e4", "1e12"):
        yield verify_sampler(DiscreteLaplace(scale))
    for scale in ("1/3", "2.5", "1e4"):
        yield verify_sampler(Geometric(scale))
    for square in ("1/9", "2.5", "1e3", "1e6", "1e12"):
        yield verify_sampler(DiscreteGaussian(square))
    for scores, scale in (([3, 0, -500, 2], "2"), ([0, 0, 1], "1/2"), ([0, 7, 7, 400], "30")):
        yield verify_choice(scores, scale=scale)
    for x in ("1e-9", "1/3", "2", "40"):
        exponent = Fraction(x)
        yield verify_coin(f"coin e^-{x}", BernoulliExp(exponent).draw, lambda e=exponent: ball(-e).exp())  # type: ignore[misc]
    for bound in (*range(1, 18), 255, 256, 257, 1000, 2**16):
        yield verify_uniform(bound)
        yield verify_uniform_array(min(bound, 1000))
    for answers, epsilon in ((2, "1"), (3, "1/10"), (7, "5"), (2, "1e-9")):
        yield verify_response(RandomizedResponse(answers, epsilon=epsilon))
    for away, scale in ((1, "1/2"), (3, "2"), (100, "30")):
        yield verify_flips(away, Fraction(scale))
    for sensitivity, epsilon in ((1, "1"), (5, "1"), (20, "3"), (7, "1/10")):
        yield verify_staircase(DiscreteStaircase(sensitivity=sensitivity, epsilon=epsilon))
    for epsilon, delta in (("1", "1e-6"), ("1/2", "1/100"), ("1/10", "1e-4"), ("4", "1/50")):
        yield verify_truncated(TruncatedLaplace(epsilon, delta))
    for scale in ("1/2", "2", "10"):
        yield verify_noisy_max(Fraction(scale))
    for monotone in (False, True):
        yield verify_above_threshold(AboveThreshold(sensitivity=1, epsilon=1, threshold="1/2", monotone=monotone))
