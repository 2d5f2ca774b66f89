"""Which keys appear in an answer if the keys themselves are private: decided by how many people hold each.

People are counted, once for each key, with at most `max_keys` keys each. Keys that nobody holds are never drawn, so a
key that exists through one person must be unlikely to appear: that is what delta pays for.
"""

from privet.mechanisms.thresholds.base import KeySelection
from privet.mechanisms.thresholds.gaussian import UNIT, GaussianThreshold, key_weight
from privet.mechanisms.thresholds.optimal import OptimalSelection
from privet.mechanisms.thresholds.truncated import TruncatedThreshold

__all__ = ["UNIT", "GaussianThreshold", "KeySelection", "OptimalSelection", "TruncatedThreshold", "key_weight"]
