"""What is hashed, signed or kept for ever, as JSON: one text for each tree, one tree for each value.

`text` has canonical JSON and exact numbers ("p/q"); `records` turns frozen dataclasses into trees and back, by their
fields; `forms` reads from the annotations of a class what each field may hold.
"""

from privet.codec.records import Codec
from privet.codec.text import canonical, parsed, ratio, read_amount, read_ratio

__all__ = ["Codec", "canonical", "parsed", "ratio", "read_amount", "read_ratio"]
