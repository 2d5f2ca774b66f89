"""Texts of a CSV as columns of a declared kind: what `parsing.parse` gives, for whole columns at once.

A regular expression picks the texts whose meaning is beyond doubt, and Arrow converts those. All others are read by
`parsing.parse`, each different text once.

Claim: `cast` equals `parsing.parse` on every text, and a value depends on its own text alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privet.sources.arrow import DECLARED
from privet.sources.csv import parsing
from privet.sources.csv.date_formats import DateFormat
from privet.sources.csv.notation import Notation
from privet.sources.readings import Reading

_WHOLE = "^-?[0-9]{1,18}$"
_DAY = "^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}$"
_ISO = "^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.][0-9]{1,6})?Z?$"
_FEW = 8


@dataclass(frozen=True, slots=True)
class Cast:
    """A column of values; and which of them are missing because their text is bad."""

    values: Any
    bad: NDArray[np.int64]


def cast(texts: Any, kind: Reading, notation: Notation, form: DateFormat | None = None) -> Cast:
    """The values of a column of texts.

    Example:
        >>> cast(pa.array(["12", "", "x", " 13.0"]), "integer", Notation()).values.to_pylist()
        [12, None, None, 13]
    """
    texts = pc.if_else(_gone(texts, notation.missing), pa.scalar(None, pa.string()), texts)
    if kind == "text":
        return Cast(texts.cast(pa.large_string()), np.zeros(0, np.int64))
    easy = _easy(texts, kind, notation, form)
    values = pa.nulls(len(texts), DECLARED[kind]) if easy is None else easy
    hard = pc.and_(pc.is_null(values), pc.is_valid(texts))
    if not pc.any(hard).as_py():
        return Cast(values, np.zeros(0, np.int64))
    encoded = texts.filter(hard).dictionary_encode()
    read, _ = parsing.parse(encoded.dictionary.to_pylist(), kind, notation, form)
    slow = pa.array(read, DECLARED[kind]).take(encoded.indices)
    values = pc.replace_with_mask(values, hard, slow)
    return Cast(values, np.flatnonzero(pc.and_(pc.is_null(values), hard).to_numpy(zero_copy_only=False)))


def _gone(texts: Any, missing: frozenset[str]) -> Any:
    """Which texts are missing values."""
    gone = pc.is_null(texts)
    if len(missing) > _FEW:
        return pc.or_(gone, pc.is_in(texts, value_set=pa.array(sorted(missing), pa.string())))
    for text in missing:
        gone = pc.or_kleene(gone, pc.equal(texts, text))
    return gone


def _easy(texts: Any, kind: Reading, notation: Notation, form: DateFormat | None) -> Any:
    """The values of the texts that Arrow reads as `parsing` does, None for all others; or None, if there are none."""
    match kind:
        case "integer" | "key":
            return _matched(texts, _WHOLE).cast(pa.int64())
        case "number":
            return _numbers(texts, notation)
        case "date" | "timestamp":
            return _moments(texts, form, DECLARED[kind])
        case _:
            return None  # of booleans there are few words


def _matched(texts: Any, pattern: str) -> Any:
    return pc.if_else(pc.match_substring_regex(texts, pattern), texts, pa.scalar(None, pa.string()))


def _numbers(texts: Any, notation: Notation) -> Any:
    decimal, thousands = re.escape(notation.decimal), re.escape(notation.thousands)
    grouped = rf"|[1-9][0-9]{{0,2}}(?:{thousands}[0-9]{{3}}){{1,4}}" if thousands else ""
    digits = _matched(texts, rf"^-?(?:[0-9]{{1,17}}{grouped})(?:{decimal}[0-9]{{1,17}})?$")
    if notation.thousands:
        digits = pc.replace_substring(digits, notation.thousands, "")
    if notation.decimal != ".":
        digits = pc.replace_substring(digits, notation.decimal, ".")
    return digits.cast(pa.float64())


def _moments(texts: Any, form: DateFormat | None, kind: Any) -> Any:
    if form is not None:
        rewritten = form.iso()
        if rewritten is None:
            return None
        texts = pc.replace_substring_regex(_matched(texts, rewritten[0]), *rewritten)
    plain = _matched(texts, _DAY if kind == pa.date32() or (form is not None and not form.timed) else _ISO)
    try:
        return pc.ascii_rtrim(plain, "Z").cast(kind)
    except pa.ArrowInvalid:  # a day that no month has
        return None
