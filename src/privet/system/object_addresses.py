"""Addresses of objects in object storage: s3://bucket/key and gs://bucket/key. They never contain credentials."""

from __future__ import annotations

import glob
import re
import shlex
from dataclasses import dataclass

from privet.errors import Remedy, SourceError, Subject, write

_SCHEME = re.compile(r"\s*(s3|gs)://", re.IGNORECASE)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_PARAMETER = re.compile(r"[?&;][\w%.-]+=")
_SECRET = re.compile(
    r"(?:access|secret|session|account)[\w-]{0,20}(?:key|id|token|secret)\w{0,9}\s*[:=]"
    r"|(?:secret|token|passw|pwd|signature|credential)[\w-]{0,20}\s*[:=]",
    re.IGNORECASE,
)
_FROM = {
    "s3": "Credentials come from the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE) or from "
    "the machine's role",
    "gs": "Credentials come from the environment (GOOGLE_APPLICATION_CREDENTIALS) or from the machine's role",
}


@dataclass(frozen=True, slots=True, order=True)
class ObjectAddress:
    """An object, or a pattern of objects, in a bucket.

    Example:
        >>> address = ObjectAddress.parse("s3://survey/2024/*.parquet")
        >>> address.bucket, address.key, address.is_pattern, str(address)
        ('survey', '2024/*.parquet', True, 's3://survey/2024/*.parquet')
        >>> ObjectAddress.parse("s3://AKIA123:hush@survey/people.parquet")
        Traceback (most recent call last):
        privet.errors.SourceError: the address s3://*** contains credentials, or another @. An address is s3://bucket/key,
        and nothing else. Credentials come from the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or
        AWS_PROFILE) or from the machine's role. Remove them; a pattern can have ? for an @ in a key. Write, for
        example: "s3://survey/people.parquet"
    """

    scheme: str
    bucket: str
    key: str

    @classmethod
    def parse(cls, text: str) -> ObjectAddress:
        """The address in a text; an error that repeats no part of a text with a secret in it."""
        match = _SCHEME.match(text)
        assert match is not None, "ask is_object_address first"
        scheme = match[1].lower()
        rest = text[match.end() :].rstrip()
        if "@" in rest:
            raise _refused(
                scheme, "contains credentials, or another @", "Remove them; a pattern can have ? for an @ in a key"
            )
        if _PARAMETER.search(rest) or _SECRET.search(rest):
            raise _refused(
                scheme, "contains parameters", "Remove them; in a pattern, write * for a ? before a name and ="
            )
        bucket, _, key = rest.partition("/")
        if not _BUCKET.fullmatch(bucket):
            raise _refused(scheme, "does not begin with the name of a bucket, in small letters", "")
        address = cls(scheme, bucket, key)
        parts = key.split("/")
        if not key or parts[-1] == "":
            inside = f"{scheme}://{bucket}/{key}*.parquet"
            raise SourceError(
                f"{str(address)!r} is a {'folder' if key else 'bucket'}",
                subject=Subject("file", str(address)),
                remedy=write(repr(inside), terminal=shlex.quote(inside), policy=f'source = "{inside}"'),
            )
        if {"", ".", ".."} & set(parts) or not key.isprintable():
            raise SourceError(
                f"{str(address)!r} is not the address of an object: a part of its key is empty, . or .., or not "
                "printable",
                subject=Subject("file", str(address)),
                remedy=_example(scheme),
            )
        return address

    @property
    def is_pattern(self) -> bool:
        """Whether it names the objects that match it."""
        return glob.has_magic(self.key)

    @property
    def path(self) -> str:
        """The bucket and the key, as file systems of Arrow take them."""
        return f"{self.bucket}/{self.key}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.bucket}/{self.key}"


def is_object_address(text: str) -> bool:
    """Whether this is meant as the address of objects, valid or not.

    Example:
        >>> [is_object_address(text) for text in ("s3://bucket/a.parquet", "GS://bucket/a", "s3.parquet", "mysql://host")]
        [True, True, False, False]
    """
    return _SCHEME.match(text) is not None


def _example(scheme: str, advice: str = "") -> Remedy:
    line = f"{scheme}://survey/people.parquet"
    return write(f'"{line}"', terminal=line, policy=f'source = "{line}"', advice=advice)


def _refused(scheme: str, what: str, advice: str) -> SourceError:
    return SourceError(
        f"the address {scheme}://*** {what}",
        allowed=f"An address is {scheme}://bucket/key, and nothing else. {_FROM[scheme]}",
        subject=Subject("file", f"{scheme}://***"),
        remedy=_example(scheme, advice),
    )
