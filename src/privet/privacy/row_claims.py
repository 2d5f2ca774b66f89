"""How far one person can move a measurement, from the statements of a certificate and nothing else.

Claim: a row adds to each tally a function of one code, which the statement puts into 0..width, or calls missing. A
coordinate is thus a polynomial a + b v + c v^2 of that code. The L1 norm of a vector is the greatest of its sums with
signs, and such a sum is again a polynomial: it is greatest at an end of 0..width or beside its vertex.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from typing import Any

from privet.codec import canonical
from privet.errors import VerificationError
from privet.privacy.moves import L1Move, L2Move, Move, Norm
from privet.privacy.tier_claims import Tree

Vector = tuple[int, ...]


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
    blocks, rows = caps(operator, bounding)
    most, tall = points.radius(), points.radius(coordinates=1)
    replaced = adjacency(operator) == "replace"
    if isinstance(measured["level"], dict):
        tree = Tree.of(statement, measured["level"])
        if tree.measured != groups:
            raise VerificationError("measurements.level: does not have as many cells as there are noisy vectors")
        return _moved_tier(points, tree, blocks, rows, replaced=replaced, norm=norm)
    if measured["level"] is not None:
        if statement["listed"]["only"] is not None:
            raise VerificationError("measurements.level: only some groups are possible, so it must name a tree")
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


def adjacency(operator: Any) -> str:
    """Whether the tables that are read protect rows that are added or removed, or replaced."""
    found = {schema["adjacency"] for schema in schemas(operator)}
    if found not in ({"add/remove"}, {"replace"}):
        raise VerificationError("statements: all tables of a release must have the same adjacency")
    return str(found.pop())


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


def _moved_tier(points: _Points, tree: Tree, blocks: int, rows: int, *, replaced: bool, norm: Norm) -> Move:
    """How far a person with `rows` rows in each of `blocks` leaves moves one tier of a tree.

    Claim: in L1 the tier is its nodes, of which one can have all rows of a person, unless each is a leaf. In L2, the
    rows of a person add up to squares of at most `near`, whatever the nodes: no more than `most` leaves meet in one.
    The matrix stretches that by `stretch`; if coordinates of what goes only fall and of what comes only rise, their
    squares add up. If nothing is negative and rows only come, other children of a node add less than nothing: then by
    `column`. Otherwise also, rows can be taken one by one.
    """
    blocks = min(blocks, tree.leaves)
    radius, tall = points.radius(), points.radius(coordinates=1)
    apart, apart_tall = points.diameter(zero=True), points.diameter(zero=True, coordinates=1)
    positive = points.never_negative()
    if norm == "L1":
        at_once, times = (rows, blocks) if tree.most == 1 else (rows * blocks, 1)
        far = radius if not replaced else 2 * radius if tree.nodes > 1 else apart
        if replaced and far == 2 * radius and positive:
            return L1Move(at_once * radius, blocks=2 * times)
        return L1Move(at_once * far, blocks=times)
    one, every = radius * tall, (rows * blocks) ** 2
    near = rows**2 * blocks * min(blocks, tree.most)
    if not replaced:
        return L2Move(one * tree.column * near if positive else one * min(every * tree.column, near * tree.stretch))
    if tree.nodes == 1:
        return L2Move(every * apart * apart_tall)
    if positive:
        return L2Move(2 * one * tree.stretch * near)
    pairs = max(apart * apart_tall * tree.column, 2 * one * tree.stretch)
    return L2Move(min(every * pairs, 4 * one * tree.stretch * near))


# --- how many rows of one person, and which ---------------------------------------------------------------


def caps(operator: Any, bounding: Any) -> tuple[int, int]:
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


def schemas(operator: Any) -> Iterator[Any]:
    """The private tables that are read."""
    match operator["kind"]:
        case "scan":
            yield operator["table"]
        case "join person":
            yield from schemas(operator["left"])
            yield from schemas(operator["right"])
        case "where" | "with columns" | "join public" | "per person":
            yield from schemas(operator["input"])
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
