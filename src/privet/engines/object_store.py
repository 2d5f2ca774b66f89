"""Object storage, through Arrow's file systems: which objects there are, and whether they are still the same.

Credentials come from the environment or from the machine; nothing here keeps or shows them, and no text of a store
reaches anybody.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import Any, TypeVar

from privet.errors import Remedy, SourceError, Subject
from privet.system.object_addresses import ObjectAddress
from privet.system.processes import native

ANONYMOUS = "PRIVET_ANONYMOUS_STORAGE"
"""The environment variable that asks for public buckets, read without credentials."""
FOOTER = 16_384
"""How many bytes at the end of an object are read at registration: the footer of most Parquet files."""
_AT_ONCE = 16  # requests
_CONNECT, _SILENCE, _ATTEMPTS = 5.0, 10.0, 3
_VARIABLES = ("AWS_", "GOOGLE_", "CLOUD_STORAGE_", "STORAGE_EMULATOR_", "PRIVET_", "HOME", "HTTP", "NO_PROXY")
_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as it was at registration. Its tag depends on its content, so it is never shown or written down."""

    address: ObjectAddress
    size: int = field(repr=False)
    tag: str = field(repr=False)
    """The store's generation or ETag."""
    end: bytes = field(default=b"", repr=False, compare=False)
    """Its last bytes, as they were."""


class Changed(Exception):
    """An object is gone, or is not what it was at registration."""


class Refused(Exception):
    """The store could not be used, for a reason in our own words."""


# --- stores -----------------------------------------------------------------------------------------


def store(address: ObjectAddress) -> Any:
    """The file system that has the bucket; one for each process and environment."""
    settings = tuple((name, value) for name, value in os.environ.items() if name.upper().startswith(_VARIABLES))
    return _store(os.getpid(), address.scheme, address.bucket, settings)


@lru_cache(maxsize=32)
def _store(process: int, scheme: str, bucket: str, settings: tuple[tuple[str, str], ...]) -> Any:
    anonymous = os.environ.get(ANONYMOUS, "").strip().lower() in ("1", "true", "yes")
    try:
        return _s3(bucket, anonymous) if scheme == "s3" else _gcs(anonymous)
    except Exception as error:
        raise _failure(error) from None


def _s3(bucket: str, anonymous: bool) -> Any:
    from pyarrow import fs

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region is None:
        region = "us-east-1" if endpoint else fs.resolve_s3_region(bucket)
    return fs.S3FileSystem(
        anonymous=anonymous,
        region=region,
        endpoint_override=endpoint,
        connect_timeout=_CONNECT,
        request_timeout=_SILENCE,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS),
    )


def _gcs(anonymous: bool) -> Any:
    from pyarrow import fs

    return fs.GcsFileSystem(anonymous=anonymous, retry_time_limit=timedelta(seconds=_SILENCE), **_emulator())


def _emulator() -> dict[str, Any]:
    """Where Google's clients look for another server than Google's."""
    endpoint = os.environ.get("STORAGE_EMULATOR_HOST", "")
    scheme, sign, host = endpoint.rpartition("://")
    return {"endpoint_override": host.rstrip("/"), "scheme": scheme if sign else "http"} if host else {}


def _failure(error: Exception) -> Changed | Refused:
    """Why a call failed, in our own words: what the store says may contain a key or a value."""
    text = str(error).upper()
    if isinstance(error, FileNotFoundError) or "NO_SUCH_" in text or "NOT_FOUND" in text or "HTTP STATUS 404" in text:
        return Changed()
    denied = ("DENIED", "INVALID_ACCESS", "SIGNATURE", "FORBIDDEN", "STATUS 403", "STATUS 401", "CREDENTIAL", "TOKEN")
    if isinstance(error, PermissionError) or any(word in text for word in denied):
        return Refused("the store denied access with the credentials that were found, if any")
    if any(word in text for word in ("NETWORK", "CURL", "TIMEOUT", "TIMED OUT", "CONNECT", "RETRY", "UNAVAILABLE")):
        return Refused("the store can't be reached, or does not respond")
    if "REDIRECT" in text or "STATUS 301" in text:
        return Refused("the bucket is in another region: set AWS_REGION")
    return Refused("the store failed")


# --- objects ----------------------------------------------------------------------------------------


def opened(known: StoredObject) -> Any:
    """An object to read from, if it is still the same."""
    file, now = _looked_up(known.address)
    if now != known:
        raise Changed
    return file


def _looked_up(address: ObjectAddress) -> tuple[Any, StoredObject]:
    try:
        file = store(address).open_input_file(address.path)
        told = {name.lower(): value for name, value in (file.metadata() or {}).items()}
        tag = told.get("generation") or told.get("etag")
        if not tag:
            raise Refused("the store gives neither an ETag nor a generation, so that a change would not be noticed")
        return file, StoredObject(address, file.size(), tag.decode("latin-1"))
    except (Changed, Refused):
        raise
    except Exception as error:
        raise _failure(error) from None


def _registered(address: ObjectAddress) -> StoredObject:
    file, now = _looked_up(address)
    try:
        end = file.read_at(min(FOOTER, now.size), max(0, now.size - FOOTER))
    except Exception as error:
        raise _failure(error) from None
    return StoredObject(address, now.size, now.tag, end)


def register(addresses: Sequence[ObjectAddress]) -> tuple[StoredObject, ...]:
    """These objects as they are now; in plain words, which one can't be had, and why."""

    def one(address: ObjectAddress) -> StoredObject:
        try:
            return _registered(address)
        except Changed:
            raise SourceError(
                f"there is no object {str(address)!r}, or it is not visible with these credentials",
                subject=Subject("file", str(address)),
            ) from None
        except Refused as reason:
            raise refusal(address, reason) from None

    with native():
        return tuple(_at_once(one, addresses))


def listed(pattern: ObjectAddress, folder: str, *, deep: bool) -> list[ObjectAddress]:
    """The objects of a folder of the bucket; `deep`: and of the folders in it."""
    from pyarrow import fs

    where = f"{pattern.bucket}/{folder}".rstrip("/")
    try:
        with native():
            found = store(pattern).get_file_info(fs.FileSelector(where, recursive=deep, allow_not_found=bool(folder)))
    except (Changed, Refused) as reason:
        raise refusal(pattern, reason) from None
    except Exception as error:
        raise refusal(pattern, _failure(error)) from None
    start = len(pattern.bucket) + 1
    files = (each.path[start:] for each in found if each.type == fs.FileType.File)
    return sorted(ObjectAddress(pattern.scheme, pattern.bucket, key) for key in files if not key.endswith("/"))


def refusal(address: ObjectAddress, reason: Changed | Refused) -> SourceError:
    """Why an address can't be read, for the steward."""
    why = str(reason) if isinstance(reason, Refused) else f"there is no bucket {address.bucket!r}"
    return SourceError(
        f"{str(address)!r} can't be read: {why}",
        subject=Subject("file", str(address)),
        remedy=Remedy(_ADVICE[address.scheme]),
    )


_ADVICE = {
    "s3": "Check the address, and the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE, "
    f"AWS_REGION, AWS_ENDPOINT_URL. For a public bucket, set {ANONYMOUS}=1",
    "gs": f"Check the address, and GOOGLE_APPLICATION_CREDENTIALS. For a public bucket, set {ANONYMOUS}=1",
}


def check(objects: Sequence[StoredObject]) -> None:
    """`Changed` or `Refused`, unless all of these objects are what they were."""
    with native():
        for _ in _at_once(opened, objects):
            pass


def check_at_registration(objects: Sequence[StoredObject]) -> None:
    """The same, as an error for the steward."""
    try:
        check(objects)
    except Changed:
        raise SourceError(
            "an object changed, or was removed, while it was looked at", remedy=Remedy("Open the table again")
        ) from None
    except Refused as reason:
        raise refusal(objects[0].address, reason) from None


def check_before_debit(tables: Mapping[str, Sequence[StoredObject]]) -> None:
    """The same for tables, as an error for whoever asks: it names the table, and not where its rows are."""
    for name, objects in tables.items():
        _check_table(name, objects)


def _check_table(table: str, objects: Sequence[StoredObject]) -> None:
    try:
        check(objects)
    except Changed:
        raise SourceError(
            f"the objects of the table {table!r} changed since it was opened, or one is gone. Nothing was spent",
            subject=Subject("table", table),
            remedy=Remedy("Open the dataset again. If the rows changed, the steward declares a new version"),
        ) from None
    except Refused as reason:
        raise SourceError(
            f"the objects of the table {table!r} can't be read: {reason}. Nothing was spent",
            subject=Subject("table", table),
        ) from None


def _at_once(work: Callable[[_T], _R], items: Sequence[_T]) -> Iterable[_R]:
    """What `work` gives for each, several at a time; the first error ends it."""
    if len(items) <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(_AT_ONCE, len(items))) as pool:
        try:
            return list(pool.map(work, items))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
