"""Canonical JSON for everything that is hashed, signed or stored: one text per tree, one tree per value.

`text` has canonical JSON and exact numbers ("p/q"); `records` converts frozen dataclasses to trees and back, by their
fields; `forms` derives the allowed values of each field from the annotations of its class.
"""

from privet.codec.records import Codec
from privet.codec.text import canonical, parsed, ratio, read_amount, read_ratio

__all__ = ["Codec", "canonical", "parsed", "ratio", "read_amount", "read_ratio"]
