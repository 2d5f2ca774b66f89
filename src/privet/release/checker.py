"""How far one person can move what was measured, read off the statements of a certificate, and from nothing else.

This is the first level of `verify`. It shares no rule with the planner: it takes the JSON of the statements that the
engine was given, works out all vectors that one row can add, and from these the sensitivity, the noise and the epsilon.

Claim: if the engine computed these statements and drew this noise, the release is epsilon-differentially private for
what the tables protect. A row adds to each tally a function of one code, which the statement puts into 0..width, or
calls missing. A coordinate is thus a polynomial a + b v + c v^2 of that code. The L1 norm of a vector is the greatest
of its sums with signs, and such a sum is again a polynomial: it is greatest at an end of 0..width or beside its vertex.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from privet.canonical import canonical
from privet.errors import VerificationError

Vector = tuple[int, ...]


_RATIO = re.compile(r"([1-9][0-9]*)/([1-9][0-9]*)", re.ASCII)


def check(derived: Any, noisy: Any) -> Fraction:
    """The epsilon that the noise comes to; raises `VerificationError` if it is more than was claimed, or malformed."""
    try:
        return _check(derived, noisy)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise VerificationError(f"the document is malformed: {str(error)[:200]}") from None


def _check(derived: Any, noisy: Any) -> Fraction:
    """The same, for a document of the right shape.

    `derived` is that part of a certificate, `noisy` its noisy vectors: by measurement, by group.
    """
    loss = Fraction(0)
    events = derived["event"]["events"]
    if not len(derived["measurements"]) == len(noisy) == len(events):
        raise VerificationError("derived.event: every measurement has one event, and one list of noisy vectors")
    for i, (measured, groups, event) in enumerate(zip(derived["measurements"], noisy, events, strict=True)):
        where = f"derived.measurements[{i}]"
        index = measured["statement"]
        if type(index) is not int or not 0 <= index < len(derived["statements"]):
            raise VerificationError(f"{where}.statement: there is no such statement")
        statement = derived["statements"][index]
        if any(len(vector) != len(measured["matrix"]) for vector in groups):
            raise VerificationError(f"noisy[{i}]: a vector has {len(measured['matrix'])} coordinates")
        found = moved(statement, measured, len(groups))
        if type(measured["sensitivity"]) is not int or measured["sensitivity"] < found:
            raise VerificationError(
                f"{where}.sensitivity: is {measured['sensitivity']}, but the statement implies {found}"
            )
        scale, epsilon = _positive(measured["scale"], f"{where}.scale"), _positive(measured["epsilon"], where)
        if event != {"kind": "laplace", "sensitivity": measured["sensitivity"], "scale": measured["scale"]}:
            raise VerificationError(f"derived.event.events[{i}]: is not the noise of the measurement")
        if epsilon * scale < found:
            raise VerificationError(f"{where}.scale: is too small for the sensitivity and this epsilon")
        loss += found / scale
    for claim, name in ((derived["epsilon"], "epsilon"), (derived["guarantee"]["epsilon"], "guarantee.epsilon")):
        if loss and _positive(claim, f"derived.{name}") < loss:
            raise VerificationError(f"derived.{name}: is {claim}, but the noise implies {loss}")
    return loss


def _positive(text: Any, where: str) -> Fraction:
    """A positive rational, written as p/q."""
    found = _RATIO.fullmatch(text) if isinstance(text, str) and len(text) < 10_000 else None
    if found is None:
        raise VerificationError(f"{where}: must be a positive number, written as p/q")
    return Fraction(int(found[1]), int(found[2]))


def moved(statement: Any, measured: Any, groups: int) -> int:
    """The L1 sensitivity of one measurement: for add/remove, or for replace."""
    points = _Points.of(statement, measured)
    operator, bounding = statement["of"], statement["bounding"]
    rows = _rows(operator, bounding)
    schemas = list(_schemas(operator))
    adjacency = {schema["adjacency"] for schema in schemas}
    radius = points.radius()
    if adjacency == {"add/remove"}:
        return rows * radius
    if adjacency != {"replace"}:
        raise VerificationError("statements: the tables of one release have one adjacency")
    if groups > 1:
        return 2 * rows * radius
    stays = not statement["keys"] and _keeps_all_rows(operator)
    return rows * points.diameter(zero=not stays)


# --- how many rows of one person, and which ---------------------------------------------------------------


def _rows(operator: Any, bounding: Any) -> int:
    match bounding["kind"]:
        case "at most rows":
            return _count(bounding["rows"])
        case "at most groups":
            return _count(bounding["groups"]) * _count(bounding["rows"])
        case "people in groups":
            return _count(bounding["groups"])
        case "unbounded" if _one_row_each(operator):
            return 1
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
            yield from _schemas(operator["of"])
        case kind:
            raise VerificationError(f"statements: there is no operator {str(kind)[:40]!r}")


def _one_row_each(operator: Any) -> bool:
    """Whether what is protected has one row: a row itself, or a person after `per person`."""
    match operator["kind"]:
        case "scan":
            return bool(operator["table"]["protect"]["kind"] == "each row")
        case "per person":
            return True
        case "where" | "with columns" | "join public":
            return _one_row_each(operator["of"])
    return False


def _keeps_all_rows(operator: Any) -> bool:
    """Whether each row of a table comes out, and no row more, whatever it holds."""
    match operator["kind"]:
        case "scan":
            return bool(operator["table"]["protect"]["kind"] == "each row")
        case "with columns":
            return _keeps_all_rows(operator["of"])
        case "join public" if operator["how"] == "left":
            return _keeps_all_rows(operator["of"])
    return False


# --- what one row can add -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Points:
    """The vectors that a row can add: some by themselves, and one for each code 0..width."""

    single: tuple[Vector, ...]
    curve: tuple[tuple[int, int, int], ...]
    """Of each coordinate the a, b, c of a + b v + c v^2."""
    width: int | None
    """The greatest code; None if there is no code."""

    @classmethod
    def of(cls, statement: Any, measured: Any) -> _Points:
        tallies, matrix = measured["tallies"], measured["matrix"]
        known = {canonical(tally) for tally in statement["tallies"]}
        if any(canonical(tally) not in known for tally in tallies):
            raise VerificationError("measurements.tallies: the statement does not count this")
        read = {canonical(tally["of"]): tally["of"] for tally in tallies if tally["kind"] != "rows"}
        if len(read) > 1:
            raise VerificationError("measurements.tallies: one measurement is a function of one code")
        if not matrix or any(len(row) != len(tallies) or not all(type(x) is int for x in row) for row in matrix):
            raise VerificationError("measurements.matrix: has an integer for each tally")
        what: Any = next(iter(read.values()), {"kind": "nothing"})

        def vector(adds: list[int]) -> Vector:
            return tuple(sum(a * x for a, x in zip(row, adds, strict=True)) for row in matrix)

        kinds = [tally["kind"] for tally in tallies]
        absent = vector([int(kind == "rows") for kind in kinds])
        match what["kind"]:
            case "nothing":
                return cls((absent,), (), None)
            case "given" if set(kinds) <= {"rows", "present"}:
                return cls((absent, vector([1] * len(kinds))), (), None)
            case "place" if set(kinds) <= {"rows", "at"} and _count(what["size"]) == len(what["of"]["edges"]) - 1:
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
        raise VerificationError("measurements.tallies: these do not go together")

    def radius(self) -> int:
        """The greatest L1 norm."""
        return max(max(self._ends(signs)[1], -self._ends(signs)[0]) for signs in self._signs())

    def diameter(self, *, zero: bool) -> int:
        """The greatest L1 distance between two vectors; with the zero vector among them, if a row can be absent."""
        found = 0
        for signs in self._signs():
            low, high = self._ends(signs)
            found = max(found, max(high, 0) - min(low, 0) if zero else high - low)
        return found

    def _signs(self) -> Iterator[Vector]:
        size = len(self.curve) or len(self.single[0])
        if size <= 4:
            yield from product((1, -1), repeat=size)
            return
        # a histogram: each vector is on one axis, so that two coordinates at most count at a time
        if self.curve or any(sum(map(bool, u)) > 1 for u in self.single):
            raise VerificationError("measurements.matrix: has too many coordinates")
        for i in range(size):
            for j in range(i):
                for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                    yield tuple(a if k == i else b if k == j else 0 for k in range(size))

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
    raise VerificationError("statements: caps, widths and sizes are whole numbers from 1 on")
