"""Pieces of SVG for pages: elements whose texts are escaped, and the scales that numbers are drawn on.

Colours are attributes, which a page's style sheet overrides: a strict Content-Security-Policy forbids style attributes,
and a picture that is saved has no style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

INK = "#1d211c"
FAINT = "#5b6359"
LINE = "#d9d8d0"
ACCENT = "#1f6b45"


def element(name: str, *inside: object, **attributes: object) -> Markup:
    """An element with its attributes and what is inside; texts are escaped, and `class_` is written `class`.

    Example:
        >>> print(element("text", "<b>", class_="label", text_anchor="end", x=3.0))
        <text class="label" text-anchor="end" x="3">&lt;b&gt;</text>
    """
    written = Markup(" ").join(
        Markup('{}="{}"').format(_attribute(key), _number(value) if isinstance(value, float) else value)
        for key, value in attributes.items()
        if value is not None
    )
    content = Markup("").join(escape(each) for each in inside)
    head = Markup("<{} {}").format(Markup(name), written) if written else Markup(f"<{name}")
    return head + Markup(">") + content + Markup(f"</{name}>")


_AS_WRITTEN = {"viewBox"}


def _attribute(key: str) -> str:
    return key if key in _AS_WRITTEN else key.rstrip("_").replace("_", "-")


def _number(x: float) -> str:
    return f"{x:.2f}".rstrip("0").rstrip(".")


def picture(
    title: str, description: str, *inside: object, width: str, height: float | None, **attributes: object
) -> Markup:
    """A drawing with a title and a description for those who can't see it."""
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *inside,
        xmlns="http://www.w3.org/2000/svg",
        role="img",
        aria_label=f"{title}. {description}",
        width=width,
        height=height,
        font_family="system-ui, sans-serif",
        **attributes,
    )


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers from `first` to `last`, placed from 0 to 1."""

    first: float
    last: float

    @classmethod
    def of(cls, numbers: Sequence[float], *, zero: bool) -> Scale:
        """The scale that shows all finite numbers, and zero if it must be seen.

        Example:
            >>> Scale.of([3.0, 8.0, math.inf], zero=True)
            Scale(first=0.0, last=8.0)
        """
        seen = [x for x in numbers if math.isfinite(x)] + ([0.0] if zero else [])
        first, last = min(seen, default=0.0), max(seen, default=1.0)
        if first == last:
            room = abs(first) or 1.0
            return cls(first - room / 2, first + room / 2) if not zero else cls(min(first, 0.0), max(last, 0.0) or 1.0)
        return cls(first, last)

    def place(self, x: float) -> float:
        """Where a number is; what is outside is at the nearest end."""
        wide = self.last - self.first
        if math.isinf(wide):  # both ends are near the largest floats
            return min(max(x / self.last / 2 + 0.5, 0.0), 1.0)
        return min(max((x - self.first) / wide, 0.0), 1.0)

    def ticks(self, most: int = 5) -> list[float]:
        """Round numbers inside of the scale, at most so many.

        Example:
            >>> Scale(0.0, 87.0).ticks()
            [0.0, 20.0, 40.0, 60.0, 80.0]
        """
        wide = self.last - self.first
        if not (0 < wide < math.inf) or wide < abs(self.first) * 1e-9:
            return []
        step = 10.0 ** math.floor(math.log10(wide / most))
        step = next((step * k for k in (1, 2, 5, 10) if wide / (step * k) <= most), step * 10)
        first = math.ceil(self.first / step)
        return [k * step for k in range(first, math.floor(self.last / step + 1e-9) + 1)]


def short(x: float) -> str:
    """A number for an axis, in few characters.

    Example:
        >>> [short(x) for x in (0.0, 0.05, 250.0, 12_500.0, 3e6, 2e12, -1500.0)]
        ['0', '0.05', '250', '12.5k', '3M', '2e12', '-1,500']
    """
    size = abs(x)
    if size >= 1e12 or 0 < size < 1e-4:
        return f"{x:.3g}".replace("e+", "e").replace("e-0", "e-")
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= unit:
            by = 1e3 if letter == "k" else unit
            return f"{x / by:.4g}{letter}"
    return f"{x:,.4g}" if size < 1000 else f"{x:,.0f}"
