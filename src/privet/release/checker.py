"""Whether a certificate's noise is enough for its statements, from these and nothing else.

This is the first level of `verify`. It shares no rule with the planner: it takes the JSON of the statements that the
engine was given, works out how far one person can move each measurement (`row_claims`, `rank_claims`), and asks of a
mechanism only which event its noise is, and accountants what that costs.

Claim: if the engine computed these statements and drew this noise, the release has the guarantee that it claims, for
what the tables protect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from privet import mechanisms
from privet.errors import VerificationError
from privet.mechanisms.thresholds import GaussianThreshold, OptimalSelection, TruncatedThreshold
from privet.privacy import events, rank_claims
from privet.privacy.accounting.guarantee import guarantee_as
from privet.privacy.guarantees import Guarantee, PureDP, budgets
from privet.privacy.moves import L1Move, L2Move, Move, Norm
from privet.privacy.row_claims import adjacency, caps, moved, schemas

_RATIO = re.compile(r"([1-9][0-9]*)/([1-9][0-9]*)", re.ASCII)


def check(derived: Any, noisy: Any) -> Guarantee:
    """The guarantee of the noise; raises `VerificationError` if it is weaker than claimed, or if it can't be read."""
    try:
        return _check(derived, noisy)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise VerificationError(f"the document is malformed: {str(error)[:200]}") from None


def _check(derived: Any, noisy: Any) -> Guarantee:
    """The same, for a document of the right shape.

    `derived` is that part of a certificate, `noisy` its noisy vectors: by measurement, by group.
    """
    if len(derived["measurements"]) != len(noisy):
        raise VerificationError("derived.measurements: every measurement must have one list of noisy vectors")
    names = {part["mechanism"] for part in derived["measurements"]}
    if not names and "discovery" in derived:
        return _keys_alone(derived)
    if not names:
        if derived["event"] != events.to_tree(events.Composed([])):
            raise VerificationError("derived.event: there is no measurement, and so no noise")
        return PureDP.ZERO
    name = names.pop() if len(names) == 1 else "of several kinds"
    mechanism = mechanisms.NOISE.get(name)
    if mechanism is None:
        raise VerificationError(f"derived.measurements.mechanism: there is no mechanism {str(name)[:40]!r}")
    found = _found(derived) if "discovery" in derived else None
    claims: list[events.PrivacyEvent] = []
    implications: list[events.PrivacyEvent] = []
    choices: list[events.PrivacyEvent] = []
    for i, (measured, groups) in enumerate(zip(derived["measurements"], noisy, strict=True)):
        where = f"derived.measurements[{i}]"
        index = measured["statement"]
        if type(index) is not int or not 0 <= index < len(derived["statements"]):
            raise VerificationError(f"{where}.statement: there is no such statement")
        statement = derived["statements"][index]
        if measured["rule"] in rank_claims.RULES:
            ranked = _ranked(statement, measured, groups, mechanism, where)
            _covers(measured["price"], events.Composed([event for part in ranked for event in part]), f"{where}.price")
            choices += ranked[0]
            claims += ranked[1]
            implications += ranked[1]
            continue
        if any(len(vector) != len(measured["matrix"]) for vector in groups):
            raise VerificationError(f"noisy[{i}]: a vector must have {len(measured['matrix'])} coordinates")
        most = len(groups) if found is None else _groups(measured["groups"], len(groups))
        implied = moved(statement, measured, most, mechanism.norm)
        claimed = _move(measured["move"], f"{where}.move", mechanism.norm)
        if not _within(implied, claimed):
            raise VerificationError(f"{where}.move: is {claimed}, but the statement implies {implied}")
        scale, coordinates = _positive(measured["scale"], f"{where}.scale"), most * len(measured["matrix"])
        claim, implication = (
            mechanism.event(move, scale=scale, coordinates=coordinates) for move in (claimed, implied)
        )
        _covers(measured["price"], implication, f"{where}.price")
        claims.append(claim)
        implications.append(implication)
    level = _level(derived["event"]) if found is None else None
    claimed_event, whole = (_together(mechanism, each, choices, level) for each in (claims, implications))
    if found is not None:
        found.check_counts(derived["measurements"], noisy)
        claimed_event, whole = found.composed(claimed_event), found.composed(whole)
    if derived["event"] != events.to_tree(claimed_event):
        raise VerificationError("derived.event: is not the noise of the measurements")
    _covers(derived["price"], whole, "derived.price")
    return _covers(derived["guarantee"], whole, "derived.guarantee")


def _together(
    mechanism: mechanisms.NoiseMechanism,
    noises: list[events.PrivacyEvent],
    choices: list[events.PrivacyEvent],
    level: Fraction | None,
) -> events.PrivacyEvent:
    """The event of all noises and choices."""
    if not choices:
        return mechanism.together(noises, epsilon=level)
    rest: Any = mechanism.together(noises, epsilon=level) if noises else events.Composed([])
    return events.Composed([*choices, *rest.events])


def _ranked(
    statement: Any, measured: Any, groups: Any, mechanism: mechanisms.NoiseMechanism, where: str
) -> tuple[list[events.PrivacyEvent], list[events.PrivacyEvent]]:
    """The events of choices by rank, and of the noise of the counts between them."""
    blocks, rows = caps(statement["input"], statement["bounding"])
    replaced = adjacency(statement["input"]) == "replace"
    size = len(measured["steps"]) + measured["counts"]
    if any(len(vector) != size for vector in groups):
        raise VerificationError(f"{where}: a vector must have {size} integers")
    known: dict[str, Any] = {"rows": rows, "blocks": blocks, "replaced": replaced}
    chosen = rank_claims.check_choices(statement, measured, groups, **known, where=where)
    if not measured["counts"]:
        return [*chosen], []
    implied = rank_claims.counts_moved(**known, norm=mechanism.norm)
    claimed = _move(measured["move"], f"{where}.move", mechanism.norm)
    if not _within(implied, claimed):
        raise VerificationError(f"{where}.move: is {claimed}, but the statement implies {implied}")
    scale = _positive(measured["scale"]["counts"], f"{where}.scale")
    return [*chosen], [mechanism.event(claimed, scale=scale, coordinates=len(groups) * measured["counts"])]


def _covers(tree: Any, event: events.PrivacyEvent, where: str) -> Guarantee:
    """What an accountant of the claimed kind makes of an event, which must imply the claim."""
    claimed = budgets.from_tree(tree)
    found = guarantee_as(type(claimed), event)
    if not found.implies(claimed):
        raise VerificationError(f"{where}: is {claimed}, but the noise implies {found}")
    return found


def _level(event: Any) -> Fraction | None:
    """The epsilon at which all noise of a release is stated, if it is."""
    noises = [part for part in event["events"] if part["kind"] != "bounded_range"]
    stated = [part["epsilon"] for part in noises if part.get("epsilon") is not None]
    if len(stated) != 1 or len(noises) != 1:
        return None
    return Fraction(0) if stated[0] == "0/1" else _positive(stated[0], "derived.event.epsilon")


def _positive(text: Any, where: str) -> Fraction:
    """A positive rational, written as p/q."""
    match = _RATIO.fullmatch(text) if isinstance(text, str) and len(text) < 10_000 else None
    if match is None:
        raise VerificationError(f"{where}: must be a positive number, written as p/q")
    return Fraction(int(match[1]), int(match[2]))


def _move(tree: Any, where: str, norm: Norm) -> Move:
    """The move that a certificate claims."""
    fields = {"L1": {"blocks", "l1"}, "L2": {"squared_l2"}}[norm]
    if set(tree) != fields or not all(type(part) is int and part >= 0 for part in tree.values()):
        raise VerificationError(f"{where}: must have {' and '.join(sorted(fields))}, in whole numbers")
    return L1Move(tree["l1"], blocks=tree["blocks"]) if norm == "L1" else L2Move(tree["squared_l2"])


def _within(implied: Move, claimed: Move) -> bool:
    """Whether one move is within the other: block by block, or with all blocks combined."""
    if isinstance(implied, L1Move) and isinstance(claimed, L1Move):
        return (implied.blocks <= claimed.blocks and implied.l1 <= claimed.l1) or implied.total <= claimed.l1
    return type(implied) is type(claimed) and implied.total <= claimed.total


# --- keys that were found ---------------------------------------------------------------------------------


_SELECTIONS = {kind.__name__: kind for kind in (GaussianThreshold, OptimalSelection, TruncatedThreshold)}


@dataclass(frozen=True, slots=True)
class _FoundKeys:
    """A choice of keys, by a mechanism that is built anew from the numbers of a certificate."""

    mechanism: OptimalSelection | TruncatedThreshold | GaussianThreshold

    @classmethod
    def claimed(cls, tree: Any, *, held: int, adjacency: set[str]) -> _FoundKeys:
        """What a certificate says; `held` is how many keys of a person the statement counts, at most."""
        kind = _SELECTIONS.get(tree["mechanism"])
        if kind is None:
            raise VerificationError(f"derived.discovery: there is no mechanism {str(tree['mechanism'])[:40]!r}")
        if type(tree["max_keys"]) is not int or tree["max_keys"] < held:
            raise VerificationError(f"derived.discovery.max_keys: a person can hold {held} keys here")
        if {tree["adjacency"]} != adjacency:
            raise VerificationError("derived.discovery.adjacency: is not that of the tables")
        numbers = {name: _positive(tree[name], f"derived.discovery.{name}") for name in ("epsilon", "delta")}
        return cls(kind(**numbers, max_keys=tree["max_keys"], adjacency=tree["adjacency"]))

    def composed(self, noise: events.PrivacyEvent) -> events.PrivacyEvent:
        """The event of the keys and of the noise in their groups; one noise, if counts decide which keys appear."""
        keys = self.mechanism.event()
        return events.Composed([keys] if isinstance(self.mechanism, TruncatedThreshold) else [keys, noise])

    def check_counts(self, measurements: Any, noisy: Any) -> None:
        """If counts decide which keys appear: they are counts with that noise, and reach the threshold."""
        if not isinstance(self.mechanism, TruncatedThreshold):
            return
        (measured,), (counts,) = measurements, noisy
        if [tally["kind"] for tally in measured["tallies"]] != ["rows"] or measured["matrix"] != [[1]]:
            raise VerificationError("derived.measurements: only counts decide which keys appear")
        if _positive(measured["scale"], "derived.measurements.scale") != self.mechanism.scale:
            raise VerificationError("derived.measurements.scale: is not that of the noise that chooses keys")
        if any(count < self.mechanism.threshold for (count,) in counts):
            raise VerificationError("noisy: a key appears whose count is below the threshold")


def _keys_alone(derived: Any) -> Guarantee:
    """The guarantee of keys without numbers: that of the mechanism that found them."""
    if derived["statements"]:
        raise VerificationError("derived.statements: nothing is measured in groups")
    found = _found(derived)
    if isinstance(found.mechanism, TruncatedThreshold):
        raise VerificationError("derived.discovery: this mechanism finds keys with their counts")
    whole = events.Composed([found.mechanism.event()])
    if derived["event"] != events.to_tree(whole):
        raise VerificationError("derived.event: is not the choice of keys")
    _covers(derived["price"], whole, "derived.price")
    return _covers(derived["guarantee"], whole, "derived.guarantee")


def _groups(claimed: Any, found: int) -> int:
    """The number of groups that was paid for: how many were found is not known before."""
    if type(claimed) is not int or claimed < found:
        raise VerificationError("measurements.groups: fewer groups were paid for than were found")
    return claimed


def _found(derived: Any) -> _FoundKeys:
    """How the keys of the answer were found: in the rows that are measured, by a mechanism that hides one person."""
    holders = derived["discovery"]["holders"]
    if any(statement["input"] != holders["input"] for statement in derived["statements"]):
        raise VerificationError("derived.discovery: the keys are those of other rows")
    keys, rows = caps(holders["input"], holders["bounding"])
    protected = {schema["adjacency"] for schema in schemas(holders["input"])}
    found = _FoundKeys.claimed(derived["discovery"], held=keys * rows, adjacency=protected)
    counted = [caps(statement["input"], statement["bounding"]) for statement in derived["statements"]]
    if isinstance(found.mechanism, TruncatedThreshold) and any(blocks * most > keys * rows for blocks, most in counted):
        raise VerificationError("derived.statements: a person counts for more than the keys were paid for")
    return found
