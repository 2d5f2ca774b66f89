"""How far one person can move a measurement, from the statements of a certificate and nothing else.

This is the first level of `verify`. It shares no rule with the planner: it takes the JSON of the statements that the
engine was given, works out all vectors that one row can add, and from these how far they move. Of a mechanism it asks
only which event its noise is, and accountants what that costs.

Claim: if the engine computed these statements and drew this noise, the release has the guarantee that it claims, for
what the tables protect. A row adds to each tally a function of one code, which the statement puts into 0..width, or
calls missing. A coordinate is thus a polynomial a + b v + c v^2 of that code. The L1 norm of a vector is the greatest
of its sums with signs, and such a sum is again a polynomial: it is greatest at an end of 0..width or beside its vertex.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import prod
from typing import Any

from privet import mechanisms
from privet.codec import canonical
from privet.errors import VerificationError
from privet.mechanisms.thresholds import GaussianThreshold, LaplaceThreshold, OptimalSelection
from privet.privacy import events, rank_claims
from privet.privacy.accounting.guarantee import guarantee_as
from privet.privacy.guarantees import Guarantee, PureDP, budgets
from privet.privacy.moves import L1Move, L2Move, Move, Norm

Vector = tuple[int, ...]


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
    blocks, rows = _caps(statement["input"], statement["bounding"])
    replaced = _adjacency(statement["input"]) == "replace"
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


def moved(statement: Any, measured: Any, groups: int, norm: Norm = "L1") -> Move:
    """How far one person can move one measurement: for add/remove, or for replace.

    Claim: add/remove moves as many blocks as a person has groups, each by as much as their rows there add. Replace does
    so twice, for what goes and what comes; these are different blocks if coordinates of what goes only fall and of what
    comes only rise, so if no row adds anything negative. Else they are taken together. In one group two rows are at
    most a diameter apart. In L2 squares of blocks add up, and the square of a norm is at most its L1 norm times its
    greatest coordinate.
    """
    points = _Points.of(statement, measured)
    operator, bounding = statement["input"], statement["bounding"]
    blocks, rows = _caps(operator, bounding)
    most, tall = points.radius(), points.radius(coordinates=1)
    replaced = _adjacency(operator) == "replace"
    if measured["level"] is not None:
        sizes = [len(values) for values in statement["listed"]["values"]]
        level = _level_of(measured["level"], sizes, groups)
        return _moved_level(points, sizes, level, blocks, rows, replaced=replaced, norm=norm)
    times, l1, squared = 1, most, most * tall
    if replaced:
        stays = not statement["keys"] and _keeps_all_rows(operator)
        apart = 2 * most if groups > 1 else points.diameter(zero=not stays)
        if apart == 2 * most and points.never_negative():
            times = 2
        else:
            l1, squared = apart, 4 * squared if groups > 1 else apart * points.diameter(zero=not stays, coordinates=1)
    if norm == "L1":
        return L1Move(rows * l1, blocks=times * blocks)
    return L2Move(times * blocks * rows * rows * squared)


def _adjacency(operator: Any) -> str:
    """Whether the tables that are read protect rows that are added or removed, or replaced."""
    found = {schema["adjacency"] for schema in _schemas(operator)}
    if found not in ({"add/remove"}, {"replace"}):
        raise VerificationError("statements: all tables of a release must have the same adjacency")
    return str(found.pop())


# --- keys that were found ---------------------------------------------------------------------------------


_SELECTIONS = {kind.__name__: kind for kind in (OptimalSelection, LaplaceThreshold, GaussianThreshold)}


@dataclass(frozen=True, slots=True)
class _FoundKeys:
    """A choice of keys, by a mechanism that is built anew from the numbers of a certificate."""

    mechanism: OptimalSelection | LaplaceThreshold | GaussianThreshold

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
        numbers = {name: Fraction(tree[name]) for name in ("epsilon", "delta")}
        return cls(kind(**numbers, max_keys=tree["max_keys"], adjacency=tree["adjacency"]))

    def composed(self, noise: events.PrivacyEvent) -> events.PrivacyEvent:
        """The event of the keys and of the noise in their groups; one noise, if counts decide which keys appear."""
        keys = self.mechanism.event()
        return events.Composed([keys] if isinstance(self.mechanism, LaplaceThreshold) else [keys, noise])

    def check_counts(self, measurements: Any, noisy: Any) -> None:
        """If counts decide which keys appear: they are counts with that noise, and reach the threshold."""
        if not isinstance(self.mechanism, LaplaceThreshold):
            return
        (measured,), (counts,) = measurements, noisy
        if [tally["kind"] for tally in measured["tallies"]] != ["rows"] or measured["matrix"] != [[1]]:
            raise VerificationError("derived.measurements: only counts decide which keys appear")
        if Fraction(measured["scale"]) != self.mechanism.noise.scale:
            raise VerificationError("derived.measurements.scale: is not that of the noise that chooses keys")
        if any(count < self.mechanism.threshold for (count,) in counts):
            raise VerificationError("noisy: a key appears whose count is below the threshold")


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
    keys, rows = _caps(holders["input"], holders["bounding"])
    adjacency = {schema["adjacency"] for schema in _schemas(holders["input"])}
    found = _FoundKeys.claimed(derived["discovery"], held=keys * rows, adjacency=adjacency)
    counted = [_caps(statement["input"], statement["bounding"]) for statement in derived["statements"]]
    if isinstance(found.mechanism, LaplaceThreshold) and any(blocks * most > keys * rows for blocks, most in counted):
        raise VerificationError("derived.statements: a person counts for more than the keys were paid for")
    return found


# --- levels of a rollup or a cube ---------------------------------------------------------------------------


def _level_of(level: Any, sizes: list[int], groups: int) -> list[int]:
    """The positions of the keys of a level, each once, in order."""
    if not isinstance(level, list) or not all(type(key) is int and 0 <= key < len(sizes) for key in level):
        raise VerificationError("measurements.level: must list positions of keys")
    if level != sorted({*level}) or prod(sizes[key] for key in level) != groups:
        raise VerificationError("measurements.level: does not have as many cells as there are noisy vectors")
    return level


def _moved_level(
    points: _Points, sizes: list[int], level: list[int], blocks: int, rows: int, *, replaced: bool, norm: Norm
) -> Move:
    """How far a person with `rows` rows in each of `blocks` cells of the whole table moves one level of it.

    Claim: in L1 the level is a margin, of which one cell can have all rows of a person, unless it has all keys. In L2
    it is a residual: the margin times n I - J along each key, where n is the number of its values. A row then adds phi
    times a column. Along a key, columns have the inner product n (n - 1) if they are the same, and -n if not; over all
    keys these multiply. All rows of a person can add up, and so can what goes and what comes, if they are replaced.
    Also, the matrix stretches nothing by more than the product of n, and at most `beside` cells meet in one.
    """
    cells = prod(sizes[key] for key in level)
    beside, blocks = prod(sizes) // cells, min(blocks, prod(sizes))
    most, radius, tall = rows * blocks, points.radius(), points.radius(coordinates=1)
    apart, apart_tall = points.diameter(zero=True), points.diameter(zero=True, coordinates=1)
    together = points.never_negative()
    if norm == "L1":
        at_once, times = (rows, blocks) if beside == 1 else (most, 1)
        far = radius if not replaced else 2 * radius if cells > 1 else apart
        if replaced and far == 2 * radius and together:
            return L1Move(at_once * radius, blocks=2 * times)
        return L1Move(at_once * far, blocks=times)
    inner = [prod(some) for some in product(*((sizes[key] * (sizes[key] - 1), -sizes[key]) for key in level))]
    one = inner[0] * radius * tall
    fine = cells**2 * rows * most * min(blocks, beside) * radius * tall
    if replaced:
        across = [2 * radius * tall * (inner[0] + abs(other)) for other in inner[1:]]
        one = max(inner[0] * apart * apart_tall, *across, 0)
        fine = fine * (2 if together else 4) if cells > 1 else one * most**2
    return L2Move(min(one * most**2, fine))


# --- how many rows of one person, and which ---------------------------------------------------------------


def _caps(operator: Any, bounding: Any) -> tuple[int, int]:
    """The maximum groups, and rows in each; if only rows are capped, all of them can be in one group."""
    match bounding["kind"]:
        case "at most rows":
            return 1, _count(bounding["rows"])
        case "at most groups":
            return _count(bounding["groups"]), _count(bounding["rows"])
        case "people in groups":
            return _count(bounding["groups"]), 1
        case "unbounded" if _one_row_each(operator):
            return 1, 1
    raise VerificationError("statements: the rows of a person are not bounded")


def _schemas(operator: Any) -> Iterator[Any]:
    """The private tables that are read."""
    match operator["kind"]:
        case "scan":
            yield operator["table"]
        case "join person":
            yield from _schemas(operator["left"])
            yield from _schemas(operator["right"])
        case "where" | "with columns" | "join public" | "per person":
            yield from _schemas(operator["input"])
        case kind:
            raise VerificationError(f"statements: there is no operator {str(kind)[:40]!r}")


def _one_row_each(operator: Any) -> bool:
    """Whether the protected unit has one row: a row itself, or a person after `per person`."""
    match operator["kind"]:
        case "scan":
            return bool(operator["table"]["protect"]["kind"] == "each row")
        case "per person":
            return bool(operator["keys"] == [])
        case "where" | "with columns" | "join public":
            return _one_row_each(operator["input"])
    return False


def _keeps_all_rows(operator: Any) -> bool:
    """Whether every row of a table stays, and none is added, whatever it contains."""
    match operator["kind"]:
        case "scan":
            return bool(operator["table"]["protect"]["kind"] == "each row")
        case "with columns":
            return _keeps_all_rows(operator["input"])
        case "join public" if operator["how"] == "left":
            return _keeps_all_rows(operator["input"])
    return False


# --- what one row can add -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Points:
    """The vectors that a row can add: some fixed ones, and one for each code 0..width."""

    single: tuple[Vector, ...]
    curve: tuple[tuple[int, int, int], ...]
    """The coefficients a, b, c of a + b v + c v^2, for each coordinate."""
    width: int | None
    """The greatest code; None if there is no code."""

    @classmethod
    def of(cls, statement: Any, measured: Any) -> _Points:
        tallies, matrix = measured["tallies"], measured["matrix"]
        known = {canonical(tally) for tally in statement["tallies"]}
        if any(canonical(tally) not in known for tally in tallies):
            raise VerificationError("measurements.tallies: the statement does not count this")
        read = {canonical(tally["value"]): tally["value"] for tally in tallies if tally["kind"] != "rows"}
        if len(read) > 1:
            raise VerificationError("measurements.tallies: a measurement must be a function of one code")
        if not matrix or any(len(row) != len(tallies) or not all(type(x) is int for x in row) for row in matrix):
            raise VerificationError("measurements.matrix: must have an integer for each tally")
        what: Any = next(iter(read.values()), {"kind": "nothing"})

        def vector(adds: list[int]) -> Vector:
            return tuple(sum(a * x for a, x in zip(row, adds, strict=True)) for row in matrix)

        kinds = [tally["kind"] for tally in tallies]
        absent = vector([int(kind == "rows") for kind in kinds])
        match what["kind"]:
            case "nothing":
                return cls((absent,), (), None)
            case "given" if set(kinds) <= {"rows", "present"} or (kinds == ["distinct"] and matrix == [[1]]):
                return cls((absent, vector([1] * len(kinds))), (), None)
            case "place" if (
                set(kinds) <= {"rows", "at"} and _count(what["size"]) == len(what["expression"]["edges"]) - 1
            ):
                if not all(type(t["index"]) is int and 0 <= t["index"] < what["size"] for t in tallies if "index" in t):
                    raise VerificationError("measurements.tallies: there is no such bin")
                at = [
                    vector([int(t["kind"] == "rows" or t["index"] == i) for t in tallies]) for i in range(what["size"])
                ]
                return cls((absent, *at), (), None)
            case "code" if set(kinds) <= set(_POWERS):
                powers = [vector([int(_POWERS[kind] == power) for kind in kinds]) for power in range(3)]
                curve = tuple(zip(*powers, strict=True))
                return cls((absent,) if what["missing"] is not False else (), curve, _count(what["width"]))
        raise VerificationError("measurements.tallies: these can't be combined")

    def radius(self, *, coordinates: int | None = None) -> int:
        """The greatest L1 norm; of one coordinate at a time, if so many count."""
        if self.width is None:
            size = max if coordinates == 1 else sum
            return max(size(map(abs, u)) for u in self.single)
        return max(max(self._ends(signs)[1], -self._ends(signs)[0]) for signs in self._signs(coordinates))

    def never_negative(self) -> bool:
        """Whether no vector has a negative coordinate."""
        if self.width is None:
            return all(x >= 0 for u in self.single for x in u)
        return all(self._ends(signs)[0] >= 0 for signs in self._signs(1))

    def diameter(self, *, zero: bool, coordinates: int | None = None) -> int:
        """The greatest L1 distance between two vectors; with the zero vector among them, if a row can be absent."""
        widest = 0
        if self.width is None:
            size = max if coordinates == 1 else sum
            points = [{i: x for i, x in enumerate(u) if x} for u in self.single] + [{}] * zero
            pairs = combinations(points, 2)
            return max((size(abs(u.get(i, 0) - v.get(i, 0)) for i in {*u, *v} or {0}) for u, v in pairs), default=0)
        for signs in self._signs(coordinates):
            low, high = self._ends(signs)
            widest = max(widest, max(high, 0) - min(low, 0) if zero else high - low)
        return widest

    def _signs(self, coordinates: int | None = None) -> Iterator[Vector]:
        size = len(self.curve) or len(self.single[0])
        if coordinates == 1:
            yield from (tuple(int(k == i) for k in range(size)) for i in range(size))
            return
        if size > 4:
            raise VerificationError("measurements.matrix: has too many coordinates")
        yield from product((1, -1), repeat=size)

    def _ends(self, signs: Vector) -> tuple[int, int]:
        """The least and the greatest sum of the coordinates with these signs."""
        values = [sum(s * x for s, x in zip(signs, u, strict=True)) for u in self.single]
        if self.width is not None:
            a, b, c = (sum(s * part[k] for s, part in zip(signs, self.curve, strict=True)) for k in range(3))
            places = {0, self.width}
            if c:
                vertex = -b // (2 * c)
                places |= {min(max(v, 0), self.width) for v in (vertex, vertex + 1)}
            values += [a + b * v + c * v * v for v in places]
        return min(values), max(values)


_POWERS = {"rows": 0, "present": 0, "total": 1, "squares": 2}
"""What a row with code v adds to a tally: v to this power."""


def _count(number: Any) -> int:
    if type(number) is int and number >= 1:
        return number
    raise VerificationError("statements: caps, widths and sizes must be whole numbers, 1 or greater")
