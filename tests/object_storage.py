"""Real servers for tests of object storage, on 127.0.0.1: moto for S3, an emulator for Google's storage."""

from __future__ import annotations

import logging
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from privet.engines import object_store

ACCESS, SECRET = "AKIAZQCANARY", "zqsecretcanary/with+slash"


@dataclass
class Bucket:
    """A bucket of a server, as its owner sees it."""

    scheme: str
    name: str
    files: Any
    server: Any = field(repr=False, default=None)

    def put(self, key: str, content: Any, **options: Any) -> str:
        """Write rows or bytes; the address of the object."""
        with self.files.open_output_stream(f"{self.name}/{key}") as stream:
            if isinstance(content, bytes):
                stream.write(content)
            else:
                pq.write_table(content if isinstance(content, pa.Table) else pa.table(content), stream, **options)
        return self.at(key)

    def remove(self, key: str) -> None:
        self.files.delete_file(f"{self.name}/{key}")

    def at(self, key: str) -> str:
        return f"{self.scheme}://{self.name}/{key}"


def behind(bucket: Bucket, key: str, content: bytes) -> None:
    """Put an object into a bucket of S3 without a request, which is faster."""
    from moto.core.models import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(bucket.name, key, content)


def s3_server() -> Any:
    """A server that was started; all of a process have the same buckets."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    return server


def url_of(server: Any) -> str:
    return "http://{}:{}".format(*server.get_host_and_port())


def enforce(server: Any, *, credentials: bool) -> None:
    """Let the server deny access to keys that it does not know, or not."""
    count = b"0" if credentials else b"inf"
    kind = {"Content-Type": "application/octet-stream"}
    urllib.request.urlopen(urllib.request.Request(f"{url_of(server)}/moto-api/reset-auth", count, kind)).read()


def use(monkeypatch: pytest.MonkeyPatch, server: Any) -> None:
    """Point the environment to a server, with credentials."""
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL_S3", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", url_of(server))
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="session")
def s3_running() -> Iterator[Any]:
    server = s3_server()
    yield server
    server.stop()


@pytest.fixture
def s3(s3_running: Any, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Bucket:
    """A bucket of its own, and an environment that leads to it."""
    use(monkeypatch, s3_running)
    monkeypatch.setattr(object_store, "FOOTER", 8)  # so that small objects too are read from the server
    name = f"bucket-{abs(hash(request.node.nodeid)):x}"
    files = fs.S3FileSystem(
        access_key=ACCESS, secret_key=SECRET, region="us-east-1", endpoint_override=url_of(s3_running),
        allow_bucket_creation=True, allow_delayed_open=True,
    )  # fmt: skip
    files.create_dir(name)
    return Bucket("s3", name, files, s3_running)


@pytest.fixture
def gs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket of an emulator of Google's storage; it takes no credentials."""
    # In a process of its own: pyarrow holds Python's lock while it waits for some of the answers.
    with subprocess.Popen([sys.executable, "-c", _GOOGLE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        try:
            assert server.stdout is not None
            where = f"127.0.0.1:{int(server.stdout.readline())}"
            monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://{where}")
            monkeypatch.setenv("PRIVET_ANONYMOUS_STORAGE", "1")
            yield Bucket("gs", "survey", fs.GcsFileSystem(anonymous=True, endpoint_override=where, scheme="http"))
        finally:
            server.kill()


_GOOGLE = """
import time
from gcp_storage_emulator.server import create_server
server = create_server("127.0.0.1", 0, in_memory=True, default_bucket="survey")
server.start()
print(server._api._httpd.server_address[1], flush=True)
time.sleep(300)
"""
