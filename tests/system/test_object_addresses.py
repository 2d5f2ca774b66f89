"""Addresses of objects: what they are, and that no secret in one is ever repeated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.errors import SourceError
from privet.system.object_addresses import ObjectAddress, is_object_address

SECRET = "zqHush"  # with a capital letter, which no bucket has
WITH_SECRETS = (
    "s3://AKIA:{}@bucket/people.parquet", "s3://{}@bucket/people.parquet", "s3://minio/{}@bucket/people.parquet",
    "s3://AKIA:{}/x@bucket/a.parquet", "s3://AKIA/{}", "s3://AKIA:{}", "S3://key:{}@bucket/a*.parquet",
    "s3://bucket/people.parquet?access_key=AKIA&secret_key={}", "s3://bucket/people.parquet?X-Amz-Signature={}",
    "s3://bucket/people.parquet?versionId={}", "s3://bucket/people.parquet&secret={}",
    "s3://bucket/access_key={}/people.parquet", "s3://bucket/people.parquet;token={}", "gs://ann:{}@bucket/a.parquet",
    "gs://bucket/a.parquet?token={}", " s3://AKIA:{}@bucket/a.parquet", "s3://bucket{}:9000/x.parquet",
    "s3://bucket/SecretAccessKey: {}/a.parquet", "s3:///{}@x",
)  # fmt: skip


@pytest.mark.parametrize("form", WITH_SECRETS)
def test_credentials_are_refused_and_not_repeated(form: str) -> None:
    text = form.format(SECRET)
    assert is_object_address(text)
    with pytest.raises(SourceError) as refused:
        ObjectAddress.parse(text)
    told = repr(refused.value) + str(refused.value) + repr(refused.value.subject) + repr(refused.value.remedy)
    assert SECRET not in told
    assert "AKIA" not in told
    assert "Credentials come from the environment" in told


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("s3://bucket", "is a bucket"),
        ("s3://bucket/", "is a bucket"),
        ("gs://bucket/people/", "is a folder"),
        ("s3://Bucket/people.parquet", "in small letters"),
        ("s3://b/people.parquet", "in small letters"),
        ("s3://bucket//people.parquet", "is empty"),
        ("s3://bucket/../people.parquet", "is empty"),
        ("s3://bucket/a\nb.parquet", "not printable"),
    ],
)
def test_other_mistakes(text: str, why: str) -> None:
    with pytest.raises(SourceError, match=why):
        ObjectAddress.parse(text)


KEYS = st.lists(st.from_regex(r"[A-Za-z0-9 =*?\[\]+:'\"%#ü._-]{1,8}", fullmatch=True), min_size=1, max_size=4)


@given(st.sampled_from(("s3", "gs")), st.from_regex(r"[a-z0-9][a-z0-9.-]{1,20}[a-z0-9]", fullmatch=True), KEYS)
def test_an_address_is_what_was_written(scheme: str, bucket: str, parts: list[str]) -> None:
    text = f"{scheme}://{bucket}/{'/'.join(parts)}"
    try:
        address = ObjectAddress.parse(text)
    except SourceError:
        assert "=" in text or {".", ".."} & {*parts} or text != text.rstrip() or ":" in text
        return
    assert str(address) == text.rstrip()
    assert ObjectAddress.parse(str(address)) == address
