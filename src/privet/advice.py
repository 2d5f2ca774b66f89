"""What an error recommends, found in its text: what a person wrote is in quotes, and is no recommendation."""

from __future__ import annotations

import re

_QUOTED = re.compile(r"""(?<!\w)(['"])(?:(?!\1)[^\\]|\\.)*\1(?!\w)""", re.DOTALL)


def masked(text: str) -> str:
    """The text with blanks in place of everything in quotes: as long as before, so that places stay the same.

    Example:
        >>> masked("it can't be 'Write: a' here")
        "it can't be            here"
    """
    return _QUOTED.sub(lambda found: " " * len(found[0]), text)
