"""How a CSV writes values: separators in numbers, words for true and false, date formats, missing values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from privet.errors import SourceError, Subject, argument, write
from privet.sources.csv.date_formats import DateFormat

THOUSANDS = (",", ".", " ", "'", "\u2019", "_", "\u00a0", "\u202f")
"""The possible separators between groups of three digits."""

_TRUE = ("true", "t", "yes", "y", "1")
_FALSE = ("false", "f", "no", "n", "0")


@dataclass(frozen=True, slots=True)
class Notation:
    """The notation of a whole file, set by the steward, never guessed.

    Example:
        >>> Notation(true=("ja",), false=("nein",)).booleans["ja"]
        True
    """

    missing: frozenset[str] = frozenset([""])
    decimal: str = "."
    thousands: str = ""
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    dates: Mapping[str, DateFormat] = field(default_factory=dict)
    """The formats of single columns; the empty name means all others."""
    own: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The texts that mean missing in single columns, if they differ from `missing`."""

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise SourceError(
                f"the decimal mark must be '.' or ',', not {self.decimal!r}",
                subject=Subject("argument", "decimal"),
                remedy=argument("decimal", ","),
            )
        if self.thousands and (self.thousands not in THOUSANDS or self.thousands == self.decimal):
            marks = " ".join(repr(sign) for sign in THOUSANDS)
            raise SourceError(
                f"the thousands separator must be one of {marks}, and differ from the decimal mark, not "
                f"{self.thousands!r}",
                subject=Subject("argument", "thousands"),
                remedy=argument("thousands", ","),
            )
        words = self.booleans
        for meant, own in ((True, self.true), (False, self.false)):
            for word in own:
                if not word.strip() or words[word.lower()] is not meant:
                    raise SourceError(
                        f"{word!r} can't mean {str(meant).lower()}: it means the opposite, or is empty",
                        subject=Subject("argument", str(meant).lower()),
                        remedy=write('true=["ja"], false=["nein"]', terminal="--true ja --false nein"),
                    )

    @property
    def booleans(self) -> dict[str, bool]:
        """The boolean that each word means, in lower case."""
        standard = dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)
        own = dict.fromkeys(map(str.lower, self.true), True) | dict.fromkeys(map(str.lower, self.false), False)
        return own | standard

    def for_column(self, column: str) -> Notation:
        """The notation of a column."""
        return replace(self, missing=self.own[column]) if column in self.own else self

    def date(self, column: str) -> DateFormat | None:
        """The format of a column, or None for ISO 8601."""
        return self.dates.get(column, self.dates.get(""))


def date_formats(formats: str | Mapping[str, str] | None, columns: Sequence[str]) -> dict[str, DateFormat]:
    """The date formats by column; the empty name means all others."""
    if formats is None:
        return {}
    if isinstance(formats, str):
        return {"": DateFormat(formats)}
    for name in formats:
        if name and name not in columns:
            raise SourceError(
                f"{name!r} has a date format, but is not an imported date or timestamp",
                allowed=f"The date and timestamp columns are: {', '.join(columns) or 'none'}",
                subject=Subject("column", name),
            )
    return {name: DateFormat(text) for name, text in formats.items()}
