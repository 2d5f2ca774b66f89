"""How results are printed for programs."""

from __future__ import annotations

import json
from typing import Any


def print_json(tree: Any) -> None:
    """Print a result for programs."""
    print(json.dumps(tree, indent=2, ensure_ascii=False))
