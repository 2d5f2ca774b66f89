"""T1, T2, T4 and T10: low bits, precision, parameters and time. Each check is put to ours and to a broken twin."""

from __future__ import annotations

import bisect
import gc
import math
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from privet.audit.script import Script
from privet.errors import UserError
from privet.exact.lattice import Bounds
from privet.mechanisms import Laplace
from privet.noise import DiscreteLaplace, entropy
from privet.noise import laplace as noise_module
from privet.noise.digits import SMALL, Digits
from privet.noise.entropy import Bits
from privet.noise.gaussian import gaussian_sampler
from privet.noise.inversion import Inversion
from privet.noise.laplace import laplace_digits
from privet.noise.refinement import Refined
from privet.privacy.accounting import PureAccountant
from privet.privacy.events import Composed, Repeated
from privet.privacy.guarantees import ApproxDP, PureDP

Release = Callable[[float], float]
CHANCE = np.random.default_rng(2012)


def textbook(scale: float) -> Release:
    """What everybody writes first: a float plus a float. Broken since 2012."""
    return lambda value: value + float(CHANCE.laplace(0, scale))


def ours(epsilon: str, step: Fraction | None = None) -> Release:
    mechanism = Laplace(sensitivity=1, epsilon=epsilon, step=step)
    return lambda value: float(mechanism.release(float(value)))


# --- T1: low bits -----------------------------------------------------------------------------


def on_one_lattice(release: Release, neighbours: Sequence[float], step: Fraction, count: int) -> bool:
    """Every output is a multiple of the step, whichever neighbour it came from."""
    return all((Fraction(release(value)) / step).denominator == 1 for value in neighbours for _ in range(count))


@pytest.mark.parametrize("neighbours", [(0.0, 1.0), (0.1, 0.7), (math.pi, math.e), (1e5, 1e5 + 0.5), (-0.3, 2.0**-60)])
def test_t1_outputs_lie_on_one_lattice(neighbours: tuple[float, float]) -> None:
    step = Laplace(sensitivity=1, epsilon="0.5").fit(0.5).step
    assert step == Fraction(1, 2**24)
    assert on_one_lattice(ours("0.5"), neighbours, step, 500)
    assert not on_one_lattice(textbook(2), neighbours, step, 500)


def reach_the_same(release: Release, neighbours: Sequence[float], count: int) -> bool:
    """With few outputs possible, all of them, near the values, are seen from both neighbours."""
    seen = [{x for x in (release(value) for _ in range(count)) if -2 <= x <= 3} for value in neighbours]
    return seen[0] == seen[1]


def test_t1_both_neighbours_reach_the_same_numbers() -> None:
    """Steps of 1/4 and a scale near 1: each of 21 numbers has probability above 1/150 from both."""
    assert reach_the_same(ours("2", Fraction(1, 4)), (0.1, 0.9), 8000)
    assert not reach_the_same(textbook(1), (0.1, 0.9), 8000)
    # Mironov's defect on a coarse grid: noise of few values, added in floats before anything is rounded
    coarse: Release = lambda value: value + float(CHANCE.integers(-20, 21)) / 4  # noqa: E731
    assert not reach_the_same(coarse, (0.1, 0.9), 8000)


def test_t1_arrays_and_lists_too() -> None:
    mechanism = Laplace(sensitivity=1, epsilon=1)
    for value in ([0.1, 0.2, 0.7], np.array([0.1, 0.2, 0.7]), np.linspace(0, 1, 5000)):
        fitted = mechanism.fit(value)
        for x in np.asarray(mechanism.release(value)).tolist():
            assert (Fraction(x) / fitted.step).denominator == 1


def test_t1_large_outputs_stay_on_the_lattice() -> None:
    """Where a float is coarser than a step, rounding drops low bits; what remains is still a multiple."""
    mechanism = Laplace(sensitivity=1, epsilon=Fraction(1, 10**25))
    for _ in range(50):
        assert (Fraction(mechanism.release(0.5)) / mechanism.fit(0.5).step).denominator == 1
    infinite = [Laplace(sensitivity=1, epsilon="1e-399").release(0.5) for _ in range(3)]
    assert all(math.isinf(x) for x in infinite)  # no error, however large


# --- T2: precision ----------------------------------------------------------------------------


def worst_log_ratio(release: Release, first: float, second: float, count: int) -> float:
    """The largest Clopper-Pearson lower bound of a log ratio over events "multiple of 2^-k" and their complements."""
    # a float is a multiple of 2^-k exactly if its denominator, a power of two, is at most 2^k
    draws = [[release(value).as_integer_ratio()[1].bit_length() - 1 for _ in range(count)] for value in (first, second)]
    worst = -math.inf
    for k in range(1, 61):
        hits = [sum(x <= k for x in xs) for xs in draws]
        for a, b in (hits, hits[::-1], [count - h for h in hits], [count - h for h in hits[::-1]]):
            alpha = 1e-12  # of each bound: 240 comparisons stay far below any chance
            lower = float(stats.beta.ppf(alpha, a, count - a + 1)) if a else 0.0
            upper = float(stats.beta.ppf(1 - alpha, b + 1, count - b)) if b < count else 1.0
            worst = max(worst, math.log(lower / upper) if lower > 0 else -math.inf)
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1", "0.1"])
def test_t2_low_bits_tell_no_more_than_epsilon(epsilon: str, effort: int) -> None:
    limit = float(Fraction(epsilon))
    assert worst_log_ratio(ours(epsilon), 0.0, 1.0, 20_000 * effort) <= limit
    assert worst_log_ratio(textbook(1 / limit), 0.0, 1.0, 20_000 * effort) > limit


def test_t2_as_published() -> None:
    """numpy's Laplace at answers 0 and 1: P(not a multiple of 2^-53) is 0.27 and 0.00 (Haney et al. 2022)."""
    release = textbook(1)
    off = [sum((Fraction(release(value)) * 2**53).denominator != 1 for _ in range(20_000)) / 20_000 for value in (0, 1)]
    assert off[0] == pytest.approx(0.27, abs=0.03)
    assert off[1] < 0.005
    assert all((Fraction(ours("1")(float(value))) * 2**53).denominator == 1 for value in (0, 1) for _ in range(500))


# --- T4: parameters ---------------------------------------------------------------------------


def enough_noise(scale_of: Callable[[Any, Any], Any], sensitivity: Any, epsilon: Any) -> bool:
    """scale * epsilon >= sensitivity, exactly, for the numbers as they were written."""
    scale = scale_of(sensitivity, epsilon)
    return Fraction(scale) * Fraction(str(epsilon)) >= Fraction(str(sensitivity))


def our_scale(sensitivity: Any, epsilon: Any) -> Fraction:
    return Laplace(sensitivity=sensitivity, epsilon=epsilon).scale


def float_scale(sensitivity: Any, epsilon: Any) -> float:
    return float(sensitivity) / float(epsilon)


def test_t4_the_noise_is_never_less_than_exact(effort: int) -> None:
    epsilons = [round(float(x), 6) for x in np.linspace(0.001, 8, 2500 * effort)]
    sensitivities = [1, 0.1, 3, 7.77]
    cases = [(sensitivities[i % 4], epsilon) for i, epsilon in enumerate(epsilons)]
    assert all(enough_noise(our_scale, *case) for case in cases)
    short = sum(not enough_noise(float_scale, *case) for case in cases)
    assert short > 0.3 * len(cases)  # about half of the time


numbers = st.floats(min_value=1e-320, max_value=1e250, allow_nan=False) | st.fractions(
    min_value="1e-9", max_value=10**9
)


@settings(max_examples=100)
@given(numbers, numbers, st.integers(1, 50))
def test_t4_every_lattice_keeps_the_promise(sensitivity: Any, epsilon: Any, dimension: int) -> None:
    """With its dimension's rounding: the sensitivity in steps covers what rounding adds, and the scale covers both."""
    for mechanism in (
        Laplace(sensitivity=sensitivity, epsilon=epsilon),
        Laplace(sensitivity=sensitivity, epsilon=epsilon, dimension=dimension),
    ):
        assert mechanism.scale * mechanism.epsilon >= mechanism.sensitivity
        assert mechanism.noise.scale * mechanism.epsilon >= mechanism.steps
        assert never_less(mechanism.guarantee().epsilon, mechanism.epsilon)
        if mechanism.dimension is not None:
            most = mechanism.sensitivity / mechanism.step
            assert mechanism.steps >= most + mechanism.dimension - 1
            # "by a part in 2^23 at most"
            excess = mechanism.scale * mechanism.epsilon / mechanism.sensitivity
            assert excess <= 1 + Fraction(1, 2**23)


def never_less(charge: Fraction, exact: Fraction) -> bool:
    """Rounded up if at all, and by next to nothing."""
    return exact <= charge <= exact * (1 + Fraction(1, 2**60)) + Fraction(1, 2**100)


def charges_whole(parts: Sequence[Any], whole: Any, add: Callable[[Sequence[Any]], Any]) -> bool:
    """Parts of a split never charge less than the whole."""
    return bool(add(parts) >= whole)


def exact_sum(parts: Sequence[Any]) -> Fraction:
    events = [Laplace(sensitivity=1, epsilon=part).event() for part in parts]
    return PureAccountant().account(Composed(events)).epsilon


def float_total(parts: Sequence[Any]) -> float:
    total = 0.0
    for part in parts:
        total += float(part)
    return total


@given(st.lists(st.floats(min_value=1e-12, max_value=10), min_size=1, max_size=12))
def test_t4_what_is_spent_is_the_exact_sum(parts: list[float]) -> None:
    assert never_less(exact_sum(parts), sum((Fraction(str(part)) for part in parts), Fraction(0)))


def test_t4_splits_charge_the_whole() -> None:
    assert charges_whole([0.1] * 10, 1, exact_sum)
    assert not charges_whole([0.1] * 10, 1, float_total)
    assert exact_sum([1, "1e-17"]) > 1
    assert not float_total([1, "1e-17"]) > 1  # the free query
    third = Laplace(sensitivity=1, epsilon="1/3").event()
    assert never_less(PureAccountant().account(Repeated(third, 3)).epsilon, Fraction(1))
    assert never_less(exact_sum(["1/3"] * 3), Fraction(1))
    assert exact_sum(["0.5"] * 2) == 1


REFUSED: list[Any] = [
    float("nan"),
    float("inf"),
    float("-inf"),
    -0.0,
    0,
    -1,
    True,
    False,
    "0",
    "",
    "nan",
    "inf",
    "1e9999",
]
REFUSED += [None, [1], b"1", 1j, np.nan, np.inf, np.bool_(True), "-1", "0/1", "1/0", "0x10", "١٢x"]


def accepts(build: Callable[[Any], object], value: Any) -> bool:
    """Whether a value passes; a refusal must be an error that is meant for people."""
    try:
        build(value)
    except UserError:
        return False
    return True


BUILDERS: dict[str, Callable[[Any], object]] = {
    "epsilon of Laplace": lambda v: Laplace(sensitivity=1, epsilon=v),
    "sensitivity of Laplace": lambda v: Laplace(sensitivity=v, epsilon=1),
    "scale of Laplace": lambda v: Laplace(sensitivity=1, scale=v),
    "PureDP": PureDP,
    "scale of noise": DiscreteLaplace,
}


@pytest.mark.parametrize("value", REFUSED, ids=repr)
@pytest.mark.parametrize("name", BUILDERS)
def test_t4_numbers_that_mean_nothing_are_refused(name: str, value: Any) -> None:
    assert not accepts(BUILDERS[name], value)


def test_t4_a_mechanism_in_floats_takes_them() -> None:
    taken = [value for value in (float("nan"), float("inf"), True, "1e-320") if accepts(lambda v: 1 / float(v), value)]
    assert len(taken) == 4


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "nan", None, -1, 1, 2], ids=repr)
def test_t4_deltas_and_bounds(value: Any) -> None:
    assert not accepts(lambda v: ApproxDP(1, v), value)
    if value not in (-1, 1, 2) or value is True:
        assert not accepts(lambda v: Bounds(v, 10), value)
        assert not accepts(lambda v: Bounds(-10, v), value)


@pytest.mark.parametrize(
    "value", [1e-320, "1e-320", 5e-324, "1e-399", 1e300, np.float32(0.1), np.int8(3), "1/3"], ids=repr
)
def test_t4_extreme_numbers_are_exact(value: Any) -> None:
    mechanism = Laplace(sensitivity=1, epsilon=value)
    assert mechanism.epsilon == Fraction(str(value))
    assert mechanism.scale * Fraction(str(value)) == 1
    assert never_less(mechanism.guarantee().epsilon, Fraction(str(value)))
    assert isinstance(mechanism.release(5), int)
    assert isinstance(mechanism.release(5.5), float)


# --- T10: time --------------------------------------------------------------------------------

Work = list[tuple[str, int]]


def work_of(task: Callable[[], object]) -> Work:
    """Every bytecode that runs, in order: what a stopwatch would see, without the stopwatch."""
    steps: Work = []

    def local(frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            steps.append((frame.f_code.co_name, frame.f_lasti))
        return local

    def entered(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes = True
        return local

    before = sys.gettrace()
    gc.disable()  # its callbacks would run in between
    sys.settrace(entered)
    try:
        task()
    finally:
        sys.settrace(before)
        gc.enable()
    return steps


def words_for(levels: Sequence[Inversion], kind: str, count: int) -> list[NDArray[np.uint64]]:
    """Words that decide the smallest, a middle, the largest or mixed values, in every digit; none is a tie."""
    half = 1 << 63
    base = {
        "low": 3,
        "centre": half + 12345,
        "high": (1 << 64) - 4,
        "below": half - (1 << 61),
        "above": half + (1 << 61),
    }
    found = []
    for level in levels:
        if kind == "mixed":
            words = CHANCE.integers(0, 1 << 63, size=count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        else:
            words = np.full(count, base[kind], dtype=np.uint64)
        while np.isin(words, level.ladder).any():
            words = words + np.uint64(2)
        found.append(words)
    return found


KINDS = ("low", "below", "centre", "above", "high", "mixed")
Sampler = Callable[[Sequence[Inversion], Bits, int], object]


def work_is_constant(draw: Sampler, scale: str, count: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the same bytecodes run whatever value the bits lead to; count 0 is a single draw."""
    levels = laplace_digits(Fraction(scale)).levels
    traces = []
    for warm in (True, False):
        for kind in KINDS:
            words = words_for(levels, kind, max(1, count))
            script = Script(*words) if count else Script(b"".join(w.tobytes() for w in words))
            with monkeypatch.context() as patch:
                patch.setattr(noise_module, "SYSTEM", script)
                trace = work_of(partial(draw, levels, script, count))
            if not warm:
                traces.append(trace)
    assert min(map(len, traces)) > 20
    return all(trace == traces[0] for trace in traces)


def sample(levels: Sequence[Inversion], bits: Bits, count: int, scale: str) -> object:
    noise = DiscreteLaplace(scale)
    return noise.sample(count) if count else noise.sample()


@pytest.mark.parametrize("scale", ["1/3", "1", "15", "300", "1e6", "1e15", "1e18"])
@pytest.mark.parametrize("count", [0, 1, 7, SMALL])
def test_t10_drawing_does_the_same_work_for_every_value(
    scale: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert work_is_constant(lambda levels, bits, n: sample(levels, bits, n, scale), scale, count, monkeypatch)


@pytest.mark.parametrize("epsilon", ["1", "1/300", "1e-6", "1e-15"])
@pytest.mark.parametrize("value", [12, [1, 2, 3], np.arange(4096)], ids=["int", "list", "array"])
def test_t10_releasing_integers_does_the_same_work(epsilon: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = Laplace(sensitivity=1, epsilon=epsilon)
    count = 0 if isinstance(value, int) else len(value)
    scale = str(mechanism.noise.scale)
    assert work_is_constant(lambda *_: mechanism.release(value), scale, count, monkeypatch)


@pytest.mark.parametrize("epsilon", ["2", "1e-3"])
@pytest.mark.parametrize("value", [12.5, [1.5, 2.5], np.linspace(0, 1, 100)], ids=["float", "list", "array"])
def test_t10_releasing_reals_does_the_same_work(epsilon: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = Laplace(sensitivity=1, epsilon=epsilon)
    count = 0 if isinstance(value, float) else len(value)
    scale = str(mechanism.fit(value).noise.scale)
    assert work_is_constant(lambda *_: mechanism.release(value), scale, count, monkeypatch)


class _LooksAtTheValue(Refined):
    """The twin that skips the comparison where it is not needed: for candidates that are multiples of 2^b."""

    def _exponent(self, q: Any, share: Any, times: Any) -> Any:
        return super()._exponent(q, share, times) if np.any(share) else share


def gaussian_work_is_constant(sampler: Digits | Refined, count: int) -> bool:
    """Whether the same bytecodes run whatever value the bits lead to, if none is dropped; count 0 is a single draw."""
    levels = [sampler.coarse] if isinstance(sampler, Refined) else list(sampler.levels)
    rows = sampler.shift // 64 + 1 if isinstance(sampler, Refined) else 0
    traces = []
    for warm in (True, False):
        for kind in (*KINDS[:-1], "mixed"):
            words = words_for(levels, kind, max(1, count))
            if rows:  # a decider that keeps every candidate, and fine parts of all sizes, with both signs
                keep = np.full(max(1, count), (1 << 64) - 99, dtype=np.uint64)
                fine = [np.roll(words[0] ^ np.uint64(len(kind) & 1), row) for row in range(rows)]
                fine = [np.zeros_like(keep) + np.uint64(1 << 62)] * rows if kind == "low" else fine
                fine = [fine[0] & np.uint64(1) for _ in fine] if kind == "above" else fine
                words = [*words, keep, *fine]
            script = Script(*words) if count else Script(b"".join(w.tobytes() for w in words))
            trace = work_of(partial(sampler.array, count, script) if count else partial(sampler.one, script))
            script.finish()
            if not warm:
                traces.append(trace)
    assert min(map(len, traces)) > 20
    return all(trace == traces[0] for trace in traces)


@pytest.mark.parametrize("square", ["1/3", "15", "16000", "1e6", "1e17", "1e30", "1e50"])
@pytest.mark.parametrize("count", [0, 1, 7, SMALL])
def test_t10_gaussian_draws_do_the_same_work_for_every_value(square: str, count: int) -> None:
    if square != "1e50" or count < SMALL:
        assert gaussian_work_is_constant(gaussian_sampler(Fraction(square)), count)


@pytest.mark.parametrize("count", [0, 7])
def test_t10_a_gaussian_draw_that_looks_at_its_value_is_seen(count: int) -> None:
    honest = gaussian_sampler(Fraction(10**6))
    assert isinstance(honest, Refined)
    assert not gaussian_work_is_constant(_LooksAtTheValue(honest.coarse, honest.shift, honest.rate), count)


def test_t10_the_searches_compare_equally_often() -> None:
    """Inside `bisect` no bytecode runs; an integer that counts its comparisons looks in there."""

    class Counting(int):
        compared = 0

        def __lt__(self, other: int) -> bool:
            Counting.compared += 1
            return int(self) < int(other)

    for scale in ("1/3", "7", "300", "1e9"):
        for level in laplace_digits(Fraction(scale)).levels:
            counts = set()
            for words in (words_for([level], kind, 1)[0] for kind in KINDS):
                Counting.compared = 0
                level.one(Counting(int(words[0])), Script())
                counts.add(Counting.compared)
            assert counts == {len(level.ladder).bit_length()}


# twins whose work follows the value


def branching_at_the_end(levels: Sequence[Inversion], bits: Bits, count: int) -> object:
    """Ours as it was once: one comparison less for words below the first boundary."""
    word = int.from_bytes(bits.take(8 * len(levels))[:8], "little")
    rungs = levels[0].ladder.tolist()
    above = bisect.bisect_right(rungs, word)
    return None if above and rungs[above - 1] == word else above


def by_counting(levels: Sequence[Inversion], bits: Bits, count: int) -> object:
    """A geometric variable by coin flips: as many as its value."""
    word, value = int.from_bytes(bits.take(8 * len(levels))[:8], "little"), 0
    while value < 40 and word < (1 << 64) * math.exp(-value - 1):
        value += 1
    return value


def by_walking(levels: Sequence[Inversion], bits: Bits, count: int) -> object:
    """Inversion from the first boundary on, until one is above."""
    words = np.empty(count, dtype=np.uint64)
    for _ in levels:
        bits.fill(words)
    return [next((i for i, p in enumerate(levels[-1].prefixes) if w < p), None) for w in words]


def by_rejection(levels: Sequence[Inversion], bits: Bits, count: int) -> object:
    """Draws until something is accepted; what is asked again depends on the value."""
    word = int.from_bytes(bits.take(8 * len(levels))[:8], "little")
    return word if word >> 63 else by_counting(levels, _Again(word), 0)


class _Again:
    def __init__(self, word: int) -> None:
        self.word = word

    def take(self, count: int) -> bytes:
        return self.word.to_bytes(8, "little") * (count // 8)

    def fill(self, array: NDArray[Any]) -> None: ...


def early_exit(levels: Sequence[Inversion], bits: Bits, count: int) -> object:
    """A binary search that stops when it has found the value, as dictionaries of the 1960s did."""
    word = int.from_bytes(bits.take(8 * len(levels))[:8], "little")
    prefixes = [int(p) for p in levels[0].prefixes]
    low, high = 0, len(prefixes)
    while low < high:
        middle = (low + high) // 2
        if middle and prefixes[middle - 1] <= word < prefixes[middle]:
            return middle
        low, high = (middle + 1, high) if prefixes[middle] <= word else (low, middle)
    return low


@pytest.mark.parametrize(
    ("twin", "count"),
    [(by_counting, 0), (by_walking, 3), (by_rejection, 0), (early_exit, 0)],
    ids=lambda x: str(x)[:22],
)
@pytest.mark.parametrize("scale", ["1", "15", "300"])
def test_t10_twins_are_caught(twin: Sampler, count: int, scale: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not work_is_constant(twin, scale, count, monkeypatch)


def test_t10_a_single_spared_comparison_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not work_is_constant(branching_at_the_end, "300", 0, monkeypatch)


def test_t10_bulk_draws_are_not_covered() -> None:
    """Above 4,096 draws cells with a boundary draw more bits: stated in known-limits, and the check does see it."""
    level = laplace_digits(Fraction(15)).levels[0]
    out = np.empty(5000, dtype=np.int16)
    central, extreme = np.full(5000, 0x8000, dtype=np.uint16), np.zeros(5000, dtype=np.uint16)
    assert work_of(partial(level.many, central, out, entropy.SYSTEM)) != work_of(
        partial(level.many, extreme, out, entropy.SYSTEM)
    )
