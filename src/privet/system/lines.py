"""Text in the lines of a terminal."""

from __future__ import annotations

import re
from textwrap import wrap

_SIGN = re.compile(r"(?<=\d) (?=%)")
_HELD = "\N{NO-BREAK SPACE}"


def folded(text: str, width: int, indent: str = "  ", *, break_long_words: bool = True) -> list[str]:
    """A text in lines of this width, all but the first indented. A number and its % stay together.

    Example:
        >>> folded("at most 8 % of the time", 9)
        ['at most', '  8 % of', '  the', '  time']
    """
    held = wrap(_SIGN.sub(_HELD, text), width, subsequent_indent=indent, break_long_words=break_long_words)
    return [line.replace(_HELD + "%", " %") for line in held]
