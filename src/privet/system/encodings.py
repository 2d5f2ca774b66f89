"""Files of text that people write: policies, statements, public tables. They are in UTF-8."""

from __future__ import annotations

import codecs
from pathlib import Path

_MARKS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


def text_of(raw: bytes) -> str:
    r"""The text; a `UnicodeDecodeError` if it is not UTF-8. A mark at its start, as on Windows, is left out.

    Example:
        >>> text_of(b"\xef\xbb\xbfSELECT 1")
        'SELECT 1'
    """
    return raw.decode("utf-8-sig")


def why_not(raw: bytes, file: str | Path) -> tuple[int, str]:
    """For bytes that are not UTF-8: the line of the first that is wrong, and what to do about it.

    Example:
        >>> why_not("Größe".encode("cp1252"), "a")[1]
        'this is not UTF-8 (byte 0xf6). Is it cp1252, from Windows? Convert it: iconv -f cp1252 -t utf-8 a > new'
    """
    mark = next((name for start, name in _MARKS.items() if raw.startswith(start)), None)
    try:
        raw.decode("utf-8")
        at = 0
    except UnicodeDecodeError as error:
        at = error.start
    line = raw[:at].count(b"\n") + 1
    if b"\x00" in raw and mark is None:
        return line, "this is not a text, but a binary file."
    name = Path(file).name
    meant = mark or "cp1252"
    return line, (
        f"this is not UTF-8 (byte 0x{raw[at]:02x}). Is it {meant}, from Windows? "
        f"Convert it: iconv -f {meant.lower()} -t utf-8 {name} > new{Path(name).suffix}"
    )
