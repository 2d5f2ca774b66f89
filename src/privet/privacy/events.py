"""Privacy events: small frozen records of what mechanisms did, for accountants and ledgers.

The vocabulary is closed and append-only: once a kind is written to a ledger, its name and its fields never change. The
JSON form is canonical: one event has one text (sorted keys, no spaces, rationals as "p/q").
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from privet.codec import canonical, parsed, ratio, read_ratio
from privet.errors import AccountingError, Remedy, UserError, write
from privet.exact import Exact, Number, nonnegative, positive, whole
from privet.privacy.moves import L1Move, L2Move, Move

DEEPEST = 64
"""The maximum depth of nested events."""

_MOST_LEAVES = 100_000  # per event; a shared branch counts each time it occurs

_BITS = 4096  # of a numerator or denominator, so that every event can be written and read again
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


PrivacyEvent = LaplaceNoise | GaussianNoise | BoundedRange | Stated | Free | Composed | Repeated
"""Every kind of event."""


def leaves(event: PrivacyEvent) -> Iterator[tuple[str, PrivacyEvent, int]]:
    """Each leaf of the tree: its path, itself, and how often it happened.

    Everything but Composed and Repeated is a leaf, including unknown kinds, which an accountant must refuse.

    Example:
        >>> list(leaves(Composed([Free(), Repeated(Free(), 3)])))
        [('events[0]', Free(), 1), ('events[1].event', Free(), 3)]
    """
    for number, leaf in enumerate(_walk(event, "", 1, 1)):
        if number >= _MOST_LEAVES:
            raise _refusal("", f"the event has more than {_MOST_LEAVES:,} leaves. Use Repeated for repeated events")
        yield leaf


def _walk(event: PrivacyEvent, path: str, times: int, depth: int) -> Iterator[tuple[str, PrivacyEvent, int]]:
    if depth > DEEPEST:
        raise _refusal(path, f"events are nested more than {DEEPEST} deep")
    if type(event) is Composed:
        for i, part in enumerate(event.events):
            yield from _walk(part, _join(path, f"events[{i}]"), times, depth + 1)
    elif type(event) is Repeated:
        yield from _walk(event.event, _join(path, "event"), times * event.count, depth + 1)
    else:
        yield path or "the event", event, times


# --- JSON -------------------------------------------------------------------------------------


def to_json(event: PrivacyEvent) -> str:
    """The canonical text of an event.

    Claim: from_json(to_json(event)) == event.

    Example:
        >>> print(to_json(Repeated(LaplaceNoise(move=L1Move(1), scale=1.5), 2)))
        {"count":2,"event":{"kind":"laplace","move":{"blocks":1,"l1":1},"scale":"3/2"},"kind":"repeated"}
    """
    return canonical(to_tree(event))


def to_tree(event: PrivacyEvent) -> dict[str, Any]:
    """An event as a tree of objects, for use in a larger document.

    Example:
        >>> to_tree(LaplaceNoise(move=L1Move(3, blocks=2), scale=1.5))
        {'kind': 'laplace', 'move': {'l1': 3, 'blocks': 2}, 'scale': '3/2'}
    """
    return _encode(event, "", 1)


def from_json(text: str) -> PrivacyEvent:
    """Parse an event; anything else is refused, with the path to the error.

    Example:
        >>> from_json('{"kind":"composed","events":[{"kind":"laplace","move":{"l1":1,"blocks":1},"scale":2}]}')
        Traceback (most recent call last):
        privet.errors.AccountingError: events[0].scale: must be a text such as "3/2" in lowest terms, not 2
    """
    try:
        tree = parsed(text)
    except RecursionError:
        raise _refusal("", f"events are nested more than {DEEPEST} deep") from None
    except (ValueError, TypeError) as error:
        raise AccountingError(f"the event: not valid JSON ({error})") from None
    return from_tree(tree)


def from_tree(tree: object) -> PrivacyEvent:
    """The event that a tree encodes; anything else is refused, with the path to the error.

    Claim: from_tree(to_tree(event)) == event.
    """
    return _decode(tree, "", 1)


def _encode(event: PrivacyEvent, path: str, depth: int) -> dict[str, Any]:
    kind = _NAMES.get(type(event))
    if kind is None:
        raise _refusal(path, f"{type(event).__name__} is not a known kind of event")
    if depth > DEEPEST:
        raise _refusal(path, f"events are nested more than {DEEPEST} deep")
    fields = {name: code[0](getattr(event, name), _join(path, name), depth) for name, code in _KINDS[kind][1].items()}
    return {"kind": kind, **fields}


def _decode(tree: object, path: str, depth: int) -> PrivacyEvent:
    if depth > DEEPEST:
        raise _refusal(path, f"events are nested more than {DEEPEST} deep")
    if not isinstance(tree, dict):
        raise _refusal(path, f"must be an object with a kind, not {_shown(tree)}")
    kind = tree.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise _refusal(_join(path, "kind"), f"must be one of {', '.join(_KINDS)}, not {_shown(kind)}")
    make, codes = _KINDS[kind]
    for name in sorted({*tree} - {*codes, "kind"}):
        raise _refusal(_join(path, name[:40]), f"{kind} has no such field; its fields are {', '.join(codes) or 'none'}")
    for name in codes:
        if name not in tree:
            raise _refusal(_join(path, name), f"is missing, but required for {kind}")
    fields = {name: code[1](tree[name], _join(path, name), depth) for name, code in codes.items()}
    try:
        return make(**fields)
    except UserError as error:
        raise _refusal(path, str(error)) from None


def _write_ratio(number: Exact, path: str, depth: int) -> str:
    return ratio(number)


def _read_ratio(value: object, path: str, depth: int) -> Exact:
    number = read_ratio(value)
    if number is not None and number >= 0:
        return number
    raise _refusal(path, f'must be a text such as "3/2" in lowest terms, not {_shown(value)}')


def _write_level(number: Exact | None, path: str, depth: int) -> str | None:
    return None if number is None else ratio(number)


def _read_level(value: object, path: str, depth: int) -> Exact | None:
    return None if value is None else _read_ratio(value, path, depth)


def _write_whole(number: int, path: str, depth: int) -> int:
    return number


def _read_whole(value: object, path: str, depth: int) -> int:
    if type(value) is int:
        return value
    raise _refusal(path, f"must be a whole number, not {_shown(value)}")


def move_to_tree(move: Move) -> dict[str, int]:
    """A move as a tree of objects.

    Example:
        >>> move_to_tree(L1Move(3, blocks=2)), move_to_tree(L2Move(18))
        ({'l1': 3, 'blocks': 2}, {'squared_l2': 18})
    """
    return {name: getattr(move, field) for name, field in _MOVES[type(move)].items()}


def _write_move(move: Move, path: str, depth: int) -> dict[str, int]:
    return move_to_tree(move)


def _read_move(value: object, path: str, depth: int) -> Move:
    for make, fields in _MOVES.items():
        if isinstance(value, dict) and set(value) == set(fields):
            parts = {fields[name]: _read_whole(part, _join(path, name), depth) for name, part in value.items()}
            try:
                return make(**parts)
            except UserError as error:
                raise _refusal(path, str(error)) from None
    raise _refusal(path, f"must be an object with l1 and blocks, or with squared_l2, not {_shown(value)}")


def _write_event(event: PrivacyEvent, path: str, depth: int) -> dict[str, Any]:
    return _encode(event, path, depth + 1)


def _read_event(value: object, path: str, depth: int) -> PrivacyEvent:
    return _decode(value, path, depth + 1)


def _write_events(events: tuple[PrivacyEvent, ...], path: str, depth: int) -> list[dict[str, Any]]:
    return [_encode(event, f"{path}[{i}]", depth + 1) for i, event in enumerate(events)]


def _read_events(value: object, path: str, depth: int) -> list[PrivacyEvent]:
    if not isinstance(value, list):
        raise _refusal(path, f"must be a list of events, not {_shown(value)}")
    return [_decode(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]


_MOVES: dict[Callable[..., Move], dict[str, str]] = {
    L1Move: {"l1": "l1", "blocks": "blocks"},
    L2Move: {"squared_l2": "squared"},
}
_ratio, _whole = (_write_ratio, _read_ratio), (_write_whole, _read_whole)
_KINDS: dict[str, tuple[Callable[..., PrivacyEvent], dict[str, tuple[Callable[..., Any], Callable[..., Any]]]]] = {
    "laplace": (LaplaceNoise, {"move": (_write_move, _read_move), "scale": _ratio}),
    "gaussian": (
        GaussianNoise,
        {
            "move": (_write_move, _read_move),
            "sigma_squared": _ratio,
            "coordinates": _whole,
            "epsilon": (_write_level, _read_level),
        },
    ),
    "bounded_range": (BoundedRange, {"epsilon": _ratio}),
    "stated": (Stated, {"epsilon": _ratio, "delta": _ratio}),
    "free": (Free, {}),
    "composed": (Composed, {"events": (_write_events, _read_events)}),
    "repeated": (Repeated, {"event": (_write_event, _read_event), "count": _whole}),
}
_NAMES: dict[object, str] = {make: kind for kind, (make, _) in _KINDS.items()}


# --- refusals ---------------------------------------------------------------------------------


def _refusal(path: str, why: str, remedy: Remedy | None = None) -> AccountingError:
    return AccountingError(f"{path or 'the event'}: {why}", remedy=remedy)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(value: object) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _event(value: PrivacyEvent, path: str) -> PrivacyEvent:
    if type(value) not in _NAMES:
        raise _refusal(path, f"must be an event, not {type(value).__name__}", write("Free()"))
    return value


def _short(number: _N, name: str) -> _N:
    if max(part.bit_length() for part in number.as_integer_ratio()) > _BITS:
        raise AccountingError(f"{name} has more than {_BITS} bits, which is too long for a ledger. Round it first")
    return number
