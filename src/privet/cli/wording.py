"""Texts of the library in the language of the terminal: flags and commands, never Python."""

from __future__ import annotations

import re

_PHRASES: tuple[tuple[str, str], ...] = (
    (r'session\.reopen\("([^"]*)"\)', r'privet ledger reopen --reason "\1"'),
    (r"\b(?:cap|reopen)\(\.\.\., reason=(\"[^\"]*\")\)", r"--reason \1"),
    (r"cap\('[^']*', pv\.PureDP\(([^)]*)\), reason=\.\.\.\)", r'--epsilon \1 --reason "new consent"'),
    (r"Write, for example: PureDP\(([^)]*)\)", r"Write, for example: --epsilon \1"),
    (r"Write, for example: ApproxDP\(([^,)]*), ([^)]*)\)", r"Write, for example: --epsilon \1 --delta \2"),
    (r"\bwithin\['([^']*)'\]", r"--within \1"),
    (r"""\bwithin=\{["'](\w+)["']: ([^}]*)\}""", r"--within \1=\2"),
    (r'\b(epsilon|delta|confidence|assuming)=("?)([0-9][0-9./e-]*)\2', r"--\1 \3"),
    (r"\b(fresh|simultaneous)=True", r"--\1"),
    (r"\boverwrite=True", "--force"),
    (r"print\(answer\)", "--format table"),
    (r"\badjacency='([^']*)'", r"--adjacency \1"),
)
_OF_STATEMENT = re.compile(r"line \d+, column \d+: ")
_PYTHON = re.compile(r" ?Write(?:, for example)?: [^\n]*\b(?:pv|session)\.[^\n]*")


def in_terminal(text: str) -> str:
    """A text with flags in place of Python's arguments. An error of a statement speaks SQL already, and stays.

    Example:
        >>> in_terminal("Say what to assume: assuming=500")
        'Say what to assume: --assuming 500'
    """
    if _OF_STATEMENT.match(text):
        return text
    for python, flags in _PHRASES:
        text = re.sub(python, flags, text)
    return _PYTHON.sub("", text)
