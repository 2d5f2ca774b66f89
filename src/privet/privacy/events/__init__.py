"""Privacy events: small frozen records of what mechanisms did, for accountants and ledgers.

The vocabulary is closed and append-only: once a kind is written to a ledger, its name and its fields never change.
"""

from privet.privacy.events.codec import from_json, from_tree, move_to_tree, to_json, to_tree
from privet.privacy.events.records import (
    DEEPEST,
    BoundedRange,
    Composed,
    FixedBatch,
    Free,
    GaussianNoise,
    JointGaussian,
    LaplaceNoise,
    PrivacyEvent,
    Repeated,
    Stated,
    leaves,
    opened,
)

__all__ = [
    "DEEPEST",
    "BoundedRange",
    "Composed",
    "FixedBatch",
    "Free",
    "GaussianNoise",
    "JointGaussian",
    "LaplaceNoise",
    "PrivacyEvent",
    "Repeated",
    "Stated",
    "from_json",
    "from_tree",
    "leaves",
    "move_to_tree",
    "opened",
    "to_json",
    "to_tree",
]
