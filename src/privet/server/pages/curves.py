"""The curve of expected error against cost, and the gauge of what is left of a budget, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from privet.server.pages.drawing import ACCENT, FAINT, INK, LINE, element, picture, short

_WIDE, _HIGH = 340.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 10.0, 22.0, 34.0


@dataclass(frozen=True, slots=True)
class Point:
    """A cost, and the error that it buys."""

    cost: float
    error: float


def curve(points: Sequence[Point], now: Point | None, *, column: str, unit: str) -> Markup:
    """The expected error of a column against what it costs, on logarithmic axes, with the present choice marked.

    Example:
        >>> "M" in curve([Point(0.1, 30.0), Point(1.0, 3.0)], Point(0.5, 6.0), column="n", unit="epsilon")
        True
    """
    every = [*points, *([now] if now is not None else [])]
    across, up = _Log([p.cost for p in every]), _Log([p.error for p in every])

    def x(cost: float) -> float:
        return _LEFT + (_WIDE - _LEFT - _RIGHT) * across.place(cost)

    def y(error: float) -> float:
        return _TOP + (_HIGH - _TOP - _BOTTOM) * (1 - up.place(error))

    bottom = _HIGH - _BOTTOM
    grid: list[Markup] = []
    for tick in across.ticks():
        grid += [
            element("line", class_="grid", x1=x(tick), x2=x(tick), y1=_TOP, y2=bottom, stroke=LINE),
            _text(short(tick), x(tick), bottom + 15, "middle"),
        ]
    for tick in up.ticks():
        grid += [
            element("line", class_="grid", x1=_LEFT, x2=_WIDE - _RIGHT, y1=y(tick), y2=y(tick), stroke=LINE),
            _text(short(tick), _LEFT - 6, y(tick) + 4, "end"),
        ]
    path = " ".join(f"{'M' if i == 0 else 'L'}{x(p.cost):.1f} {y(p.error):.1f}" for i, p in enumerate(points))
    line = element("path", class_="curve", d=path, fill="none", stroke=ACCENT, stroke_width=2)
    mark: list[Markup] = []
    if now is not None:
        guide = {"class_": "guide", "stroke": INK, "stroke_dasharray": "2 3"}
        mark = [
            element("line", x1=x(now.cost), x2=x(now.cost), y1=y(now.error), y2=bottom, **guide),
            element("line", x1=_LEFT, x2=x(now.cost), y1=y(now.error), y2=y(now.error), **guide),
            element("circle", class_="dot", cx=x(now.cost), cy=y(now.error), r=5, fill=ACCENT, stroke=ACCENT),
        ]
    chosen = "" if now is None else f" Now {unit} {short(now.cost)} for an error of {short(now.error)}."
    return picture(
        f"Expected error of {column} against {unit}",
        f"From {short(points[0].error)} at {unit} {short(points[0].cost)} "
        f"to {short(points[-1].error)} at {unit} {short(points[-1].cost)}.{chosen}",
        *grid,
        line,
        *mark,
        _text(f"error of {column[:24]}", 0.0, 11.0, "start"),
        _text(unit, _WIDE - _RIGHT, _HIGH - 3, "end"),
        width="100%",
        height=None,
        viewBox=f"0 0 {_WIDE:.0f} {_HIGH:.0f}",
        class_="costs",
    )


def _text(text: str, x: float, y: float, anchor: str) -> Markup:
    return element("text", text, class_="faint", x=x, y=y, text_anchor=anchor, fill=FAINT, font_size=11)


class _Log:
    """A logarithmic axis that shows all of these numbers."""

    def __init__(self, numbers: Sequence[float]) -> None:
        logs = [math.log10(x) for x in numbers if 0 < x < math.inf] or [0.0]
        self.first, self.last = min(logs), max(logs)
        if self.last - self.first < 0.2:
            self.first, self.last = self.first - 0.1, self.last + 0.1

    def place(self, x: float) -> float:
        if not 0 < x < math.inf:
            return 0.0 if x <= 0 else 1.0
        return (math.log10(x) - self.first) / (self.last - self.first)

    def ticks(self) -> list[float]:
        """Round numbers, few enough to be read."""
        decades = range(math.floor(self.first), math.ceil(self.last) + 1)
        found: list[float] = []
        for mantissas in ((1, 2, 5), (1, 3), (1,)):
            found = [m * 10.0**k for k in decades for m in mantissas]
            found = [x for x in found if self.first - 1e-9 <= math.log10(x) <= self.last + 1e-9]
            if len(found) <= 6:
                return found
        return found[:: math.ceil(len(found) / 6)]


def gauge(share: float, label: str, *, after: float | None = None) -> Markup:
    """A bar of which a share, from 0 to 1, is full; `after` is the share that would be left.

    Example:
        >>> 'width="25%"' in gauge(0.25, "epsilon 1 left of 4")
        True
    """
    full = min(max(share, 0.0), 1.0)
    low = " low" if full < 0.1 else ""
    parts = [
        element("rect", class_="track", width="100%", height=10, rx=5, fill=LINE),
        element("rect", class_=f"left{low}", width=_share(full), height=10, rx=5, fill=ACCENT),
    ]
    if after is not None and after < full:
        kept = min(max(after, 0.0), full)
        parts[1] = element("rect", class_="spending", width=_share(full), height=10, rx=5, fill=FAINT)
        parts.append(element("rect", class_=f"left{low}", width=_share(kept), height=10, rx=5, fill=ACCENT))
    return picture(label, f"{round(100 * full)} % is left.", *parts, width="100%", height=10.0, class_="gauge")


def _share(share: float) -> str:
    return f"{100 * share:.1f}".rstrip("0").rstrip(".") + "%"
