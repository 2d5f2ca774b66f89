"""Arrow's types in our own words."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from privet.tables.stored_types import StoredType


def stored(kind: Any) -> StoredType:
    """What an Arrow type holds.

    Example:
        >>> stored(pa.dictionary(pa.int8(), pa.string())).family, stored(pa.binary()).family
        ('text', 'no use')
        >>> stored(pa.uint8()).bits, stored(pa.decimal128(9, 2)).scale, stored(pa.timestamp("ns", "UTC")).zoned
        (8, 2, True)
    """
    is_, name = pa.types, str(kind)
    if is_.is_dictionary(kind):
        values = stored(kind.value_type)
        return StoredType.text(name=name, enumerated=True) if values.family == "text" else values.named(name)
    if is_.is_run_end_encoded(kind):
        return stored(kind.value_type).named(name)
    if is_.is_integer(kind):
        return StoredType.integer(kind.bit_width, signed=is_.is_signed_integer(kind), name=name)
    if is_.is_floating(kind):
        return StoredType.float(max(32, kind.bit_width), name=name)
    if is_.is_decimal(kind):
        return StoredType.decimal(kind.precision, kind.scale, name=name)
    if is_.is_boolean(kind):
        return StoredType(name, "boolean")
    if is_.is_string(kind) or is_.is_large_string(kind) or is_.is_string_view(kind):
        return StoredType.text(name=name)
    if is_.is_date(kind):
        return StoredType(name, "date")
    if is_.is_timestamp(kind):
        return StoredType.timestamp(kind.unit, zoned=kind.tz is not None, name=name)
    if is_.is_null(kind):
        return StoredType(name, "nothing")
    return StoredType(name, "uuid" if name == "extension<arrow.uuid>" else "no use")
