"""Date formats, set by the steward: every text of a column must match `%d.%m.%Y` exactly."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

from privet.errors import SourceError, write

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_PARTS = {
    "Y": r"([0-9]{4})",
    "y": r"([0-9]{2})",
    "m": r"([0-9]{1,2})",
    "d": r"([0-9]{1,2})",
    "H": r"([0-9]{1,2})",
    "I": r"([0-9]{1,2})",
    "M": r"([0-9]{2})",
    "S": r"([0-9]{2})",
    "f": r"([0-9]{1,6})",
    "p": r"([AaPp][Mm])",
    "b": rf"({'|'.join(_MONTHS)})",
    "B": rf"({'|'.join(_FULL)})",
}
_PADDED = {"Y": "[1-9][0-9]{3}", "m": "[0-9]{2}", "d": "[0-9]{2}", "H": "[0-9]{2}", "M": "[0-9]{2}", "S": "[0-9]{2}"}
_EXAMPLE = write('date_format="%d.%m.%Y", or date_format={"born": "%d.%m.%Y"}', terminal="--date-format born=%d.%m.%Y")


@dataclass(frozen=True, slots=True)
class DateFormat:
    """The format of a date or a timestamp. Month names are English; `%y` means 1969 to 2068.

    Claim: `read` is total, and depends only on the text; the whole text must have this format.

    Example:
        >>> DateFormat("%d.%m.%Y").read("31.12.2024"), DateFormat("%d.%m.%Y").read("31.12.2024 ")
        (datetime.datetime(2024, 12, 31, 0, 0), None)
    """

    text: str
    _parts: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _pattern: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts: list[str] = []
        pattern = ""
        for mark, plain in re.findall(r"%(.?)|([^%]+)", self.text, re.DOTALL):
            if plain or mark == "%":
                pattern += re.escape(plain or mark)
            elif mark not in _PARTS:
                marks = " ".join(f"%{each}" for each in _PARTS)
                raise SourceError(
                    f"%{mark} in {self.text!r} is not supported", allowed=f"Supported are: {marks} %%", remedy=_EXAMPLE
                )
            elif mark in parts:
                raise SourceError(f"%{mark} appears twice in {self.text!r}", remedy=_EXAMPLE)
            else:
                parts.append(mark)
                pattern += _PARTS[mark]
        named = [bool({*parts} & {*group}) for group in ("Yy", "mbB", "d")]
        if not all(named):
            raise SourceError(f"{self.text!r} needs a year, a month and a day", remedy=_EXAMPLE)
        if ("I" in parts) != ("p" in parts) or {"H", "I"} <= {*parts}:
            raise SourceError(f"{self.text!r} needs %H alone, or %I with %p", remedy=_EXAMPLE)
        object.__setattr__(self, "_parts", tuple(parts))
        object.__setattr__(self, "_pattern", re.compile(pattern, re.ASCII | re.IGNORECASE))

    @property
    def timed(self) -> bool:
        """Whether it includes a time of day."""
        return bool({*self._parts} & {*"HI"})

    def read(self, text: str) -> datetime | None:
        """The date and time of a text, or None."""
        match = self._pattern.fullmatch(text)
        if match is None:
            return None
        part = dict(zip(self._parts, match.groups(), strict=True))
        try:
            return datetime(_year(part), _month(part), int(part["d"]), _hour(part), *_rest(part))
        except ValueError:
            return None

    def iso(self) -> tuple[str, str] | None:
        r"""A regular expression (RE2), and the replacement that turns a match into ISO 8601; None if there is none.

        Example:
            >>> DateFormat("%d.%m.%Y").iso()
            ('^([0-9]{2})\\.([0-9]{2})\\.([1-9][0-9]{3})$', '\\3-\\2-\\1')
        """
        if not {*self._parts} <= {*_PADDED} or len({*self._parts} & {*"HMS"}) not in (0, 3):
            return None
        pattern = "".join(
            re.escape(plain or mark) if plain or mark == "%" else f"({_PADDED[mark]})"
            for mark, plain in re.findall(r"%(.?)|([^%]+)", self.text, re.DOTALL)
        )
        place = {mark: f"\\{number}" for number, mark in enumerate(self._parts, start=1)}
        day = f"{place['Y']}-{place['m']}-{place['d']}"
        return f"^{pattern}$", f"{day}T{place['H']}:{place['M']}:{place['S']}" if "H" in place else day


def _year(part: dict[str, str]) -> int:
    if "Y" in part:
        return int(part["Y"])
    short = int(part["y"])
    return short + (1900 if short >= 69 else 2000)


def _month(part: dict[str, str]) -> int:
    if "m" in part:
        return int(part["m"])
    return 1 + _MONTHS.index((part.get("b") or part["B"])[:3].lower())


def _hour(part: dict[str, str]) -> int:
    if "I" not in part:
        return int(part.get("H", "0"))
    hour = int(part["I"])
    if not 1 <= hour <= 12:
        raise ValueError
    return hour % 12 + (12 if part["p"].lower() == "pm" else 0)


def _rest(part: dict[str, str]) -> tuple[int, int, int]:
    return int(part.get("M", "0")), int(part.get("S", "0")), int(part.get("f", "0").ljust(6, "0"))
