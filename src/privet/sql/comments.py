"""Comments in a statement: `-- to the end of the line` and `/* between these */`, as a `.sql` file has them."""

from __future__ import annotations

import re

_PARTS = re.compile(
    r"""
    '(?:[^']|'')*'             # text
    | "(?:[^"]|"")*"           # a name
    | (--[^\n]*)               # a comment to the end of the line
    | (/\*(?!\+).*?\*/)        # a comment between marks; after a plus sign it is a hint for a database
    """,
    re.VERBOSE | re.DOTALL,
)


def blanked(text: str) -> str:
    """The statement with spaces in place of comments, so that every other character keeps its position.

    Claim: text in quotes stays as it is, and what is not a whole comment stays. Whoever reads the result checks that
    the tokenizer sees the same words in both (`tokens.read`), so the two can't disagree about what a comment is.

    Example:
        >>> blanked("SELECT /* all */ COUNT(*) -- of them")
        'SELECT           COUNT(*)           '
        >>> blanked("SELECT '--' AS x")
        "SELECT '--' AS x"
    """
    return _PARTS.sub(lambda part: re.sub(r"\S", " ", part[0]) if part[1] or part[2] else part[0], text)
