"""The kinds of events, and the trees that they form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar, get_args

from privet.errors import AccountingError, write
from privet.exact import Exact, Number, nonnegative, positive, whole
from privet.privacy.events.refusals import join, refusal
from privet.privacy.moves import L1Move, L2Move

DEEPEST = 64
"""The maximum depth of nested events."""

_MOST_LEAVES = 100_000  # per event; a shared branch counts each time it occurs

_BITS = 4096  # of a numerator or denominator, so that every event can be written and read again
_METHOD = re.compile(r"[a-z]{1,20}/[1-9][0-9]{0,5}")
_N = TypeVar("_N", int, Exact)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class LaplaceNoise:
    """Discrete Laplace noise of this exact scale was added to integers that one unit can move by at most `move`.

    Both are in lattice steps.

    Example:
        >>> LaplaceNoise(move=L1Move(1), scale=2)
        LaplaceNoise(move=L1Move(l1=1, blocks=1), scale=Fraction(2, 1))
    """

    move: L1Move
    scale: Exact

    def __init__(self, *, move: L1Move, scale: Number) -> None:
        line = "LaplaceNoise(move=L1Move(1), scale=2)"
        if type(move) is not L1Move:
            raise AccountingError(f"Laplace noise needs a move in L1, not {type(move).__name__}", remedy=write(line))
        _short(move.total, "move")
        object.__setattr__(self, "move", move)
        object.__setattr__(self, "scale", _short(positive(scale, name="scale", example=line), "scale"))


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class GaussianNoise:
    """Discrete Gaussian noise with parameter sigma^2 was added to `coordinates` integers that one unit moves by `move`.

    The noise N has P(N = k) proportional to e^(-k^2 / (2 sigma^2)). A question may state the epsilon at which its delta
    is to be computed; with None it has no price in epsilon.

    Example:
        >>> GaussianNoise(move=L2Move(1), sigma_squared=50, coordinates=3, epsilon=None)
        GaussianNoise(move=L2Move(squared=1), sigma_squared=Fraction(50, 1), coordinates=3, epsilon=None)
    """

    move: L2Move
    sigma_squared: Exact
    coordinates: int
    epsilon: Exact | None

    def __init__(self, *, move: L2Move, sigma_squared: Number, coordinates: int, epsilon: Number | None) -> None:
        line = "GaussianNoise(move=L2Move(1), sigma_squared=50, coordinates=1, epsilon=None)"
        if type(move) is not L2Move:
            raise AccountingError(f"Gaussian noise needs a move in L2, not {type(move).__name__}", remedy=write(line))
        _short(move.total, "move")
        squared = _short(positive(sigma_squared, name="sigma_squared", example=line), "sigma_squared")
        count = _short(whole(coordinates, name="coordinates", example=line), "coordinates")
        level = None if epsilon is None else _short(nonnegative(epsilon, name="epsilon", example=line), "epsilon")
        for name, value in zip(self.__slots__, (move, squared, count, level), strict=True):
            object.__setattr__(self, name, value)

    @property
    def rho(self) -> Exact:
        """Its zero-concentrated privacy: move^2 / (2 sigma^2), exactly (Canonne, Kamath, Steinke 2020, theorem 4)."""
        return self.move.squared / (2 * self.sigma_squared)


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class JointGaussian:
    """Gaussian noise was added to several vectors at once, and their delta is stated together, at one epsilon.

    One unit may move all of the vectors. Each has its own sigma^2; the noises state no epsilon of their own.

    Example:
        >>> noise = GaussianNoise(move=L2Move(1), sigma_squared=50, coordinates=3, epsilon=None)
        >>> JointGaussian(noises=[noise, noise], epsilon=1).rho
        Fraction(1, 50)
    """

    noises: tuple[GaussianNoise, ...]
    epsilon: Exact

    def __init__(self, *, noises: Iterable[GaussianNoise], epsilon: Number) -> None:
        line = "JointGaussian(noises=[noise, noise], epsilon=1)"
        parts = tuple(noises)
        if len(parts) < 2 or any(type(noise) is not GaussianNoise or noise.epsilon is not None for noise in parts):
            raise AccountingError(
                "noises must be two or more Gaussian noises that state no epsilon of their own", remedy=write(line)
            )
        object.__setattr__(self, "noises", parts)
        object.__setattr__(self, "epsilon", _short(nonnegative(epsilon, name="epsilon", example=line), "epsilon"))

    @property
    def rho(self) -> Exact:
        """Its zero-concentrated privacy: the sum of all rho."""
        return sum((noise.rho for noise in self.noises), Exact(0))


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class BoundedRange:
    """A choice whose log-probability ratios between two neighbours all lie in one interval of this length.

    This is the exponential mechanism. It is epsilon-differentially private, and composes better than that says.

    Example:
        >>> BoundedRange(epsilon=0.5)
        BoundedRange(epsilon=Fraction(1, 2))

    Reference: Durfee, Rogers, "Practical differentially private top-k selection", NeurIPS 2019.
    """

    epsilon: Exact

    def __init__(self, *, epsilon: Number) -> None:
        level = nonnegative(epsilon, name="epsilon", example="BoundedRange(epsilon=0.5)")
        object.__setattr__(self, "epsilon", _short(level, "epsilon"))


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class Stated:
    """A computation about which only (epsilon, delta)-DP is known.

    Example:
        >>> Stated(epsilon=0.5, delta=0)
        Stated(epsilon=Fraction(1, 2), delta=Fraction(0, 1))
    """

    epsilon: Exact
    delta: Exact

    def __init__(self, *, epsilon: Number, delta: Number) -> None:
        line = "Stated(epsilon=0.5, delta=0)"
        object.__setattr__(self, "epsilon", _short(nonnegative(epsilon, name="epsilon", example=line), "epsilon"))
        object.__setattr__(self, "delta", _short(nonnegative(delta, name="delta", example=line), "delta"))
        if self.delta > 1:
            raise AccountingError("delta must be at most 1", remedy=write(line))


@dataclass(frozen=True, slots=True)
class Free:
    """Only released results were used: post-processing, or nothing at all."""


@dataclass(frozen=True, slots=True, init=False)
class Composed:
    """All of these happened; each may have been chosen after seeing the earlier answers.

    Example:
        >>> Composed([Free(), Free()])
        Composed(events=(Free(), Free()))
    """

    events: tuple[PrivacyEvent, ...]

    def __init__(self, events: Iterable[PrivacyEvent]) -> None:
        object.__setattr__(self, "events", tuple(_event(e, f"events[{i}]") for i, e in enumerate(events)))


@dataclass(frozen=True, slots=True, init=False)
class Repeated:
    """The same event happened `count` times, with fresh noise each time."""

    event: PrivacyEvent
    count: int

    def __init__(self, event: PrivacyEvent, count: int) -> None:
        line = "Repeated(event, 3)"
        object.__setattr__(self, "event", _event(event, "event"))
        steps = whole(count, name="count", least=0, example=line)
        object.__setattr__(self, "count", _short(steps, "count"))


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class FixedBatch:
    """These events were fixed before the first of them happened; together they are (epsilon, delta)-DP.

    `method` names the computation that says so, and its version. Accountants price the batch as `Stated`. A part must
    not depend on the answers of others, so a batch is written all at once, and has no batch inside.

    Example:
        >>> FixedBatch(events=[Stated(epsilon=0.5, delta=0)] * 2, epsilon=1, delta=0, method="pld/1").stated
        Stated(epsilon=Fraction(1, 1), delta=Fraction(0, 1))
    """

    events: tuple[PrivacyEvent, ...]
    epsilon: Exact
    delta: Exact
    method: str

    def __init__(self, *, events: Iterable[PrivacyEvent], epsilon: Number, delta: Number, method: str) -> None:
        parts = tuple(_event(event, f"events[{i}]") for i, event in enumerate(events))
        price = Stated(epsilon=epsilon, delta=delta)
        if not _METHOD.fullmatch(str(method)):
            raise AccountingError('method must be a name and a version, such as "pld/1"', remedy=write('"pld/1"'))
        for name, value in zip(self.__slots__, (parts, price.epsilon, price.delta, str(method)), strict=True):
            object.__setattr__(self, name, value)
        _check_parts(self, "", 1)

    @property
    def stated(self) -> Stated:
        """What all of it is known to be."""
        return Stated(epsilon=self.epsilon, delta=self.delta)


PrivacyEvent = (
    LaplaceNoise | GaussianNoise | JointGaussian | BoundedRange | Stated | Free | Composed | Repeated | FixedBatch
)
"""Every kind of event."""

_KINDS: tuple[type, ...] = get_args(PrivacyEvent)


def leaves(event: PrivacyEvent) -> Iterator[tuple[str, PrivacyEvent, int]]:
    """Each leaf of the tree: its path, itself, and how often it happened.

    Everything but Composed and Repeated is a leaf, including unknown kinds, which an accountant must refuse. A fixed
    batch is one leaf, what it is stated to be; `opened` gives its parts.

    Example:
        >>> list(leaves(Composed([Free(), Repeated(Free(), 3)])))
        [('events[0]', Free(), 1), ('events[1].event', Free(), 3)]
    """
    for number, leaf in enumerate(_walk(event, "", 1, 1)):
        if number >= _MOST_LEAVES:
            raise refusal("", f"the event has more than {_MOST_LEAVES:,} leaves. Use Repeated for repeated events")
        yield leaf


def _walk(
    event: PrivacyEvent, path: str, times: int, depth: int, *, fixed: bool = False
) -> Iterator[tuple[str, PrivacyEvent, int]]:
    if depth > DEEPEST:
        raise refusal(path, f"events are nested more than {DEEPEST} deep")
    if type(event) is Composed:
        for i, part in enumerate(event.events):
            yield from _walk(part, join(path, f"events[{i}]"), times, depth + 1, fixed=fixed)
    elif type(event) is Repeated:
        yield from _walk(event.event, join(path, "event"), times * event.count, depth + 1, fixed=fixed)
    elif type(event) is FixedBatch and fixed:
        raise refusal(path, "a fixed batch can't have another one inside")
    elif type(event) is FixedBatch:
        _check_parts(event, path, depth)
        yield path or "the event", event.stated, times
    else:
        yield path or "the event", event, times


def _check_parts(batch: FixedBatch, path: str, depth: int) -> None:
    """Refuse a batch with another batch, or with something unknown, inside."""
    for number, (where, leaf, _) in enumerate(_walk(Composed(batch.events), path, 1, depth, fixed=True)):
        if type(leaf) not in _KINDS:
            raise refusal(where, f"{type(leaf).__name__} is not a known kind of event")
        if number >= _MOST_LEAVES:
            raise refusal(path, f"the batch has more than {_MOST_LEAVES:,} leaves. Use Repeated for repeated events")


def opened(event: PrivacyEvent) -> PrivacyEvent:
    """The same with every fixed batch, and noises that were stated together, replaced by their parts.

    Example:
        >>> opened(FixedBatch(events=[Free()], epsilon=0, delta=0, method="pld/1"))
        Composed(events=(Free(),))
    """
    if type(event) is Composed or type(event) is FixedBatch:
        return Composed([opened(part) for part in event.events])
    if type(event) is JointGaussian:
        return Composed(event.noises)
    return Repeated(opened(event.event), event.count) if type(event) is Repeated else event


def _event(value: PrivacyEvent, path: str) -> PrivacyEvent:
    if type(value) not in _KINDS:
        raise refusal(path, f"must be an event, not {type(value).__name__}", write("Free()"))
    return value


def _short(number: _N, name: str) -> _N:
    if max(part.bit_length() for part in number.as_integer_ratio()) > _BITS:
        raise AccountingError(f"{name} has more than {_BITS} bits, which is too long for a ledger. Round it first")
    return number
