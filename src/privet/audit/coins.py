"""Exact verification of coins and of uniform integers, which the other samplers are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privet.audit.choice import AWAY
from privet.exact import precision
from privet.noise.coins import uniform_integers
from privet.noise.entropy import Bits
from privet.noise.uniform import uniform_below

LENGTH = 384
"""The bits of a probe of a coin."""

LAST = (1 << 64) - 1
"""The last word, at which a coin shows tails unless its probability is almost 1."""

Below = Callable[[int, Bits], int]


@dataclass(frozen=True, slots=True)
class Audited:
    """What was verified, with how many probes, and what was found."""

    what: str
    probes: int
    findings: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    def __str__(self) -> str:
        verdict = "exact" if self.exact else "NOT EXACT: " + "; ".join(self.findings)
        return f"{self.what}: {self.probes} probes: {verdict}"


class Words:
    """Prescribed 64-bit words for arrays and further bits, then bytes for the rest; asking for more is an error."""

    def __init__(self, arrays: list[list[int]], more: list[int], rest: bytes = b"") -> None:
        self._arrays, self._more, self._rest = arrays[::-1], more[::-1], rest

    def fill(self, array: NDArray[Any]) -> None:
        array[:] = np.array(self._arrays.pop(), dtype=np.uint64)

    def take(self, count: int) -> bytes:
        if count == 8 and self._more:
            return self._more.pop().to_bytes(8, "little")
        taken, self._rest = self._rest[:count], self._rest[count:]
        if len(taken) != count:
            raise LookupError("the sampler requested bits that an exact sampler would not need")
        return taken


def words_of(real: int) -> list[int]:
    """The words of a uniform real, given by its leading bits."""
    return [real >> LENGTH - 64 * (i + 1) & LAST for i in range(LENGTH // 64)]


def probes_of(probability: Callable[[], arb]) -> Iterator[tuple[int, bool]]:
    """Uniform reals on both sides of a probability, as near as 2^-320, and whether they are below it.

    Far from both ends of [0, 1] these are 26 probes; a probability that is nearer to an end has fewer.
    """
    with precision(3 * LENGTH):
        cut = int((probability() * arb(2) ** LENGTH).floor().fmpz())
    for away in AWAY:
        for side in (-1, 1):
            real = cut + side * (1 << LENGTH - away)
            if 0 <= real < 1 << LENGTH:
                yield real, side < 0


def audited(what: str, checks: Iterator[bool]) -> Audited:
    """Run all checks; a failure is a finding, and so is an error."""
    probes, findings = 0, []
    try:
        for right in checks:
            probes += 1
            if not right:
                findings.append(f"wrong at probe {probes}")
                break
    except Exception as error:  # any failure of a broken sampler is a finding
        findings.append(f"failed ({error})")
    if not probes:
        findings.append("nothing was probed")
    return Audited(what, probes, tuple(findings))


def verify_coin(what: str, toss: Callable[[Bits], int], probability: Callable[[], arb]) -> Audited:
    """Certify a coin that compares one uniform real with its probability.

    Example:
        >>> from privet.exact import ball
        >>> from privet.noise import BernoulliExp
        >>> verify_coin("e^-2", BernoulliExp(2).draw, lambda: ball(-2).exp()).exact
        True
        >>> verify_coin("e^-2", BernoulliExp("2.0000000000000000001").draw, lambda: ball(-2).exp()).exact
        False
    """
    probes = probes_of(probability)
    return audited(what, (bool(toss(Words([], words_of(real)))) == below for real, below in probes))


def verify_uniform(bound: int, below: Below = uniform_below) -> Audited:
    """Certify uniform integers below a bound of at most 2^16, by every string of bits that one try can take.

    Claim: every number has the same number of strings, and all other strings lead to another try.

    Example:
        >>> verify_uniform(6).exact, verify_uniform(6, lambda bound, bits: bits.take(1)[0] % bound).exact
        (True, False)
    """
    size = ((bound - 1).bit_length() + 7) // 8

    def checks() -> Iterator[bool]:
        hits: Counter[int] = Counter()
        for number in range(256**size):
            try:
                hits[below(bound, Words([], [], number.to_bytes(size, "little")))] += 1
            except LookupError:  # another try
                hits[-1] += 1
            yield True
        accepted = {hits[k] for k in range(bound)}
        yield len(accepted) == 1 and 0 not in accepted and set(hits) <= {*range(bound), -1}
        yield hits[-1] * 2 < 256**size

    return audited(f"uniform below {bound}", checks())


def verify_uniform_array(bound: int, integers: Callable[..., Any] = uniform_integers) -> Audited:
    """Certify arrays of uniform integers: the leading bits of each word are the number, or lead to another try.

    Example:
        >>> verify_uniform_array(6).exact
        True
    """
    length = max(1, (bound - 1).bit_length())

    def checks() -> Iterator[bool]:
        for number in range(1 << length):
            for word in (number << 64 - length, (number + 1 << 64 - length) - 1):
                arrays = [[word]] if number < bound else [[word], [0]]
                yield integers(bound, 1, Words(arrays, [])).tolist() == [number if number < bound else 0]

    if bound == 1:
        return audited("uniform array below 1", iter([integers(1, 3, Words([], [])).tolist() == [0, 0, 0]]))
    return audited(f"uniform array below {bound}", checks())
