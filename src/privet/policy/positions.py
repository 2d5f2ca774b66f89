"""The line of each key in a TOML text; tomllib returns only the values."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right

Place = tuple[str | int, ...]
"""The path to a value: keys, and positions in arrays."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\n]+|#[^\n]*)*")
_PLAIN = re.compile(r"[^,\]}#\n]*")
_BASIC = re.compile(r'"(?:[^"\\]|\\.)*"')
_LITERAL = re.compile(r"'[^']*'")
_LONG_BASIC = re.compile(r'"""(?:[^\\]|\\.)*?"""(?:""|"(?!"))?', re.DOTALL)
_LONG_LITERAL = re.compile(r"'''.*?'''(?:''|'(?!'))?", re.DOTALL)


def positions(text: str) -> dict[Place, int]:
    r"""The line of each key and of each element of an array, in a text that tomllib can read.

    Example:
        >>> lines = positions('[a.b]\nc = { d = [1,\n  2] } # e = 1\n"x y".z = 3')
        >>> lines["a", "b", "c", "d"], lines["a", "b", "c", "d", 1], lines["a", "b", "x y", "z"]
        (2, 3, 4)
    """
    return _Scanner(text.replace("\r\n", "\n")).scan()


def line_of(lines: dict[Place, int], place: Place) -> int:
    """The line of a value, or of the nearest table around it; 1 for the file itself."""
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 1)


class _Scanner:
    """A scanner for valid TOML: tomllib has already accepted the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.breaks = [place for place, sign in enumerate(text) if sign == "\n"]
        self.lines: dict[Place, int] = {}
        self.counts: dict[Place, int] = {}

    def scan(self) -> dict[Place, int]:
        table: Place = ()
        self.skip(_GAP)
        while self.at < len(self.text):
            if self.text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)
            self.skip(_GAP)
        return self.lines

    def skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return match.group()

    def mark(self, place: Place, at: int) -> None:
        self.lines.setdefault(place, bisect_right(self.breaks, at - 1) + 1)

    def keys(self) -> list[tuple[str, int]]:
        """A dotted key: its parts, and the position of each."""
        parts = []
        while True:
            self.skip(_SPACE)
            at = self.at
            match self.text[at]:
                case '"':
                    name = tomllib.loads(f"k = {self.skip(_BASIC)}")["k"]
                case "'":
                    name = self.skip(_LITERAL)[1:-1]
                case _:
                    name = self.skip(_BARE)
            parts.append((name, at))
            self.skip(_SPACE)
            if self.text[self.at] != ".":
                return parts
            self.at += 1

    def header(self) -> Place:
        is_array = self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        parts = self.keys()
        self.at += 2 if is_array else 1
        place: Place = ()
        for number, (name, at) in enumerate(parts, start=1):
            place = (*place, name)
            self.mark(place, at)
            if is_array and number == len(parts):
                self.counts[place] = self.counts.get(place, -1) + 1
            if place in self.counts:
                place = (*place, self.counts[place])
                self.mark(place, at)
        return place

    def pair(self, table: Place) -> None:
        place = table
        for name, at in self.keys():
            place = (*place, name)
            self.mark(place, at)
        self.at += 1  # the equals sign
        self.skip(_SPACE)
        self.value(place)

    def value(self, place: Place) -> None:
        match self.text[self.at]:
            case "[":
                self.within(place, "]")
            case "{":
                self.within(place, "}")
            case '"':
                self.skip(_LONG_BASIC if self.text.startswith('"""', self.at) else _BASIC)
            case "'":
                self.skip(_LONG_LITERAL if self.text.startswith("'''", self.at) else _LITERAL)
            case _:
                self.skip(_PLAIN)

    def within(self, place: Place, end: str) -> None:
        """An array, or an inline table."""
        self.at += 1
        number = 0
        self.skip(_GAP)
        while self.text[self.at] != end:
            if end == "}":
                self.pair(place)
            else:
                self.mark((*place, number), self.at)
                self.value((*place, number))
            number += 1
            self.skip(_GAP)
            if self.text[self.at] == ",":
                self.at += 1
                self.skip(_GAP)
        self.at += 1
