"""Text files that people write (policies, statements, public tables), which must be UTF-8."""

from __future__ import annotations

import codecs
from pathlib import Path

_MARKS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}


def text_of(raw: bytes) -> str:
    r"""Decode UTF-8; a `UnicodeDecodeError` if it is not UTF-8. A byte order mark, as on Windows, is removed.

    Example:
        >>> text_of(b"\xef\xbb\xbfSELECT 1")
        'SELECT 1'
    """
    return raw.decode("utf-8-sig")


def why_not(raw: bytes, file: str | Path) -> tuple[int, str]:
    """For bytes that are not UTF-8: the line of the first invalid byte, and what to do.

    Example:
        >>> why_not("Größe".encode("cp1252"), "a")[1]
        'this is not UTF-8 (byte 0xf6). If it is cp1252 from Windows, convert it: iconv -f cp1252 -t utf-8 a > new'
    """
    mark = next((name for start, name in _MARKS.items() if raw.startswith(start)), None)
    try:
        raw.decode("utf-8")
        at = 0
    except UnicodeDecodeError as error:
        at = error.start
    line = raw[:at].count(b"\n") + 1
    if b"\x00" in raw and mark is None:
        return line, "this is a binary file, not text."
    name = Path(file).name
    encoding = mark or "cp1252"
    return line, (
        f"this is not UTF-8 (byte 0x{raw[at]:02x}). If it is {encoding} from Windows, "
        f"convert it: iconv -f {encoding.lower()} -t utf-8 {name} > new{Path(name).suffix}"
    )
