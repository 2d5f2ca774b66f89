"""Events as JSON, and back.

The form is canonical: one event has one text (sorted keys, no spaces, rationals as "p/q").
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from privet.codec import canonical, parsed, ratio, read_ratio
from privet.errors import AccountingError, UserError
from privet.exact import Exact
from privet.privacy.events.records import (
    DEEPEST,
    BoundedRange,
    Composed,
    FixedBatch,
    Free,
    GaussianNoise,
    JointGaussian,
    LaplaceNoise,
    PrivacyEvent,
    Repeated,
    Stated,
)
from privet.privacy.events.refusals import join, refusal
from privet.privacy.moves import L1Move, L2Move, Move


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
        raise refusal("", f"events are nested more than {DEEPEST} deep") from None
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
        raise refusal(path, f"{type(event).__name__} is not a known kind of event")
    if depth > DEEPEST:
        raise refusal(path, f"events are nested more than {DEEPEST} deep")
    fields = {name: code[0](getattr(event, name), join(path, name), depth) for name, code in _KINDS[kind][1].items()}
    return {"kind": kind, **fields}


def _decode(tree: object, path: str, depth: int) -> PrivacyEvent:
    if depth > DEEPEST:
        raise refusal(path, f"events are nested more than {DEEPEST} deep")
    if not isinstance(tree, dict):
        raise refusal(path, f"must be an object with a kind, not {_shown(tree)}")
    kind = tree.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise refusal(join(path, "kind"), f"must be one of {', '.join(_KINDS)}, not {_shown(kind)}")
    make, codes = _KINDS[kind]
    for name in sorted({*tree} - {*codes, "kind"}):
        raise refusal(join(path, name[:40]), f"{kind} has no such field; its fields are {', '.join(codes) or 'none'}")
    for name in codes:
        if name not in tree:
            raise refusal(join(path, name), f"is missing, but required for {kind}")
    fields = {name: code[1](tree[name], join(path, name), depth) for name, code in codes.items()}
    try:
        return make(**fields)
    except UserError as error:
        raise refusal(path, str(error)) from None


def _write_ratio(number: Exact, path: str, depth: int) -> str:
    return ratio(number)


def _read_ratio(value: object, path: str, depth: int) -> Exact:
    number = read_ratio(value)
    if number is not None and number >= 0:
        return number
    raise refusal(path, f'must be a text such as "3/2" in lowest terms, not {_shown(value)}')


def _write_level(number: Exact | None, path: str, depth: int) -> str | None:
    return None if number is None else ratio(number)


def _read_level(value: object, path: str, depth: int) -> Exact | None:
    return None if value is None else _read_ratio(value, path, depth)


def _write_whole(number: int, path: str, depth: int) -> int:
    return number


def _read_whole(value: object, path: str, depth: int) -> int:
    if type(value) is int:
        return value
    raise refusal(path, f"must be a whole number, not {_shown(value)}")


def _write_text(text: str, path: str, depth: int) -> str:
    return text


def _read_text(value: object, path: str, depth: int) -> str:
    if isinstance(value, str):
        return value
    raise refusal(path, f"must be a text, not {_shown(value)}")


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
            parts = {fields[name]: _read_whole(part, join(path, name), depth) for name, part in value.items()}
            try:
                return make(**parts)
            except UserError as error:
                raise refusal(path, str(error)) from None
    raise refusal(path, f"must be an object with l1 and blocks, or with squared_l2, not {_shown(value)}")


def _write_event(event: PrivacyEvent, path: str, depth: int) -> dict[str, Any]:
    return _encode(event, path, depth + 1)


def _read_event(value: object, path: str, depth: int) -> PrivacyEvent:
    return _decode(value, path, depth + 1)


def _write_events(events: tuple[PrivacyEvent, ...], path: str, depth: int) -> list[dict[str, Any]]:
    return [_encode(event, f"{path}[{i}]", depth + 1) for i, event in enumerate(events)]


def _read_events(value: object, path: str, depth: int) -> list[PrivacyEvent]:
    if not isinstance(value, list):
        raise refusal(path, f"must be a list of events, not {_shown(value)}")
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
    "joint_gaussian": (JointGaussian, {"noises": (_write_events, _read_events), "epsilon": _ratio}),
    "bounded_range": (BoundedRange, {"epsilon": _ratio}),
    "stated": (Stated, {"epsilon": _ratio, "delta": _ratio}),
    "free": (Free, {}),
    "composed": (Composed, {"events": (_write_events, _read_events)}),
    "repeated": (Repeated, {"event": (_write_event, _read_event), "count": _whole}),
    "fixed_batch": (
        FixedBatch,
        {
            "events": (_write_events, _read_events),
            "epsilon": _ratio,
            "delta": _ratio,
            "method": (_write_text, _read_text),
        },
    ),
}
_NAMES: dict[object, str] = {make: kind for kind, (make, _) in _KINDS.items()}


def _shown(value: object) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:37] + "..."
