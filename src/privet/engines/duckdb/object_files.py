"""Objects as files of DuckDB: a file system of a fixed list of objects, which DuckDB reads with its own Parquet reader.

Claim: the values, the types and the failures are those of local files, since the same code reads the same bytes. Only
the listed objects can be opened, and each only as long as it is what it was at registration. DuckDB fetches parts of an
object, column by column, so memory is bounded as it is for files.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from threading import local
from typing import Any

from privet.engines.base import ParquetObjects
from privet.engines.duckdb.files import Connection
from privet.engines.object_store import Changed, Refused, StoredObject, opened
from privet.errors import UserError, install

_NEVER = datetime(2000, 1, 1, tzinfo=UTC)  # an object that changed is not read


class _File:
    """What DuckDB reads one object from. Threads share it: each has a position of its own."""

    def __init__(self, known: StoredObject) -> None:
        self._known = known
        self._file: Any = None
        self._here = local()
        self.size = known.size

    def seek(self, offset: int, whence: int = 0) -> int:
        self._here.place = offset + (0, self.tell(), self.size)[whence]
        return int(self._here.place)

    def tell(self) -> int:
        return int(getattr(self._here, "place", 0))

    def read(self, length: int = -1) -> bytes:
        start = self.tell()
        length = self.size - start if length < 0 else min(length, self.size - start)
        self._here.place = start + length
        from_end = start - (self.size - len(self._known.end))
        if self._known.end and from_end >= 0:
            return self._known.end[from_end : from_end + length]
        if self._file is None:
            self._file = opened(self._known)
        read: bytes = self._file.read_at(length, start)
        if len(read) != length:
            raise Changed
        return read

    def close(self) -> None:
        """The connection to the store is not this file's."""


def file_system(protocol: str, objects: Sequence[StoredObject]) -> Any:
    """The objects `PROTOCOL://0`, `PROTOCOL://1` and so on, to be registered with a connection."""
    try:
        from fsspec import AbstractFileSystem
    except ImportError:
        raise UserError("object storage needs fsspec", remedy=install("objects")) from None

    class Objects(AbstractFileSystem):  # type: ignore[misc, unused-ignore]
        cachable = False

        def _known(self, path: str) -> StoredObject:
            return objects[int(path.rpartition("://")[2])]

        def glob(self, path: str, **options: Any) -> list[str]:
            return [path]

        def exists(self, path: str, **options: Any) -> bool:
            return True

        def info(self, path: str, **options: Any) -> dict[str, Any]:
            return {"name": path, "size": self._known(path).size, "type": "file"}

        def modified(self, path: str) -> datetime:
            return _NEVER

        def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
            if mode != "rb":
                raise PermissionError("objects are only read")
            return _File(self._known(path))

    Objects.protocol = protocol
    return Objects()


def provide(connection: Connection, source: ParquetObjects) -> None:
    """Make the objects readable under the names in `source.files()`."""
    if not connection.filesystem_is_registered(source.protocol):
        connection.register_filesystem(file_system(source.protocol, source.objects))


__all__ = ["Changed", "Refused", "file_system", "provide"]
