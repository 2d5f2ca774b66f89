"""The type that a source gives a column, in words of our own: every source and every engine translates to and from it.

A declaration (`schema`) says what a column means; this says how its values are stored. Both are public.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Family = Literal[
    "integer", "float", "decimal", "boolean", "text", "date", "timestamp", "uuid", "anything", "nothing", "no use"
]
"""What a type of a source holds; `anything` is a column of Python objects, `nothing` one of NULLs."""

Unit = Literal["s", "ms", "us", "ns"]
"""What a timestamp counts."""


@dataclass(frozen=True, slots=True)
class StoredType:
    """The type of a column in a source: its name there, for messages, and what it holds.

    Example:
        >>> StoredType.integer(64), StoredType.integer(8, signed=False, name="byte").name
        (StoredType(name='int64', family='integer', bits=64, signed=True, ...), 'byte')
        >>> StoredType.decimal(18, 3).name
        'decimal(18, 3)'
    """

    name: str
    family: Family
    bits: int = 0
    """Of an integer or a float."""
    signed: bool = True
    """Whether an integer can be negative."""
    precision: int = 0
    """The digits of a decimal."""
    scale: int = 0
    """How many digits of a decimal stand behind the point."""
    unit: Unit = "us"
    """What a timestamp counts."""
    zoned: bool = False
    """Whether a timestamp is an instant; else it is a date and a time of day."""
    enumerated: bool = False
    """Whether the source stores texts as numbers of a list."""

    @classmethod
    def integer(cls, bits: int, *, signed: bool = True, name: str = "") -> StoredType:
        """Integers of so many bits."""
        return cls(name or f"{'' if signed else 'u'}int{bits}", "integer", bits, signed)

    @classmethod
    def float(cls, bits: int = 64, *, name: str = "") -> StoredType:
        """Floats of 32 or 64 bits."""
        return cls(name or f"float{bits}", "float", bits)

    @classmethod
    def decimal(cls, precision: int, scale: int, *, name: str = "") -> StoredType:
        """Decimals."""
        return cls(name or f"decimal({precision}, {scale})", "decimal", precision=precision, scale=scale)

    @classmethod
    def text(cls, *, name: str = "text", enumerated: bool = False) -> StoredType:
        """Texts."""
        return cls(name, "text", enumerated=enumerated)

    @classmethod
    def timestamp(cls, unit: Unit = "us", *, zoned: bool = False, name: str = "") -> StoredType:
        """Timestamps."""
        return cls(name or f"timestamp[{unit}{', UTC' if zoned else ''}]", "timestamp", unit=unit, zoned=zoned)

    @property
    def is_int64(self) -> bool:
        """Whether these are signed 64-bit integers."""
        return self.family == "integer" and self.signed and self.bits == 64

    @property
    def is_float64(self) -> bool:
        """Whether these are 64-bit floats."""
        return self.family == "float" and self.bits == 64

    @property
    def fits_int64(self) -> bool:
        """Whether every integer of this type fits into a signed 64-bit integer."""
        return self.family == "integer" and self.bits + (not self.signed) <= 64

    def named(self, name: str) -> StoredType:
        """The same type under another name."""
        return replace(self, name=name)
