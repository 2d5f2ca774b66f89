"""Ed25519 keys: the steward signs certificates with one, and publishes the other."""

from __future__ import annotations

import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from privet.errors import UserError, write

SigningKey = Ed25519PrivateKey | str | Path
VerifyingKey = Ed25519PublicKey | str | Path


def new_signing_key(path: str | Path) -> Path:
    """Create a key pair: the private key in `path`, readable only by its owner, and the public key in `path`.pub.

    An existing file is never overwritten. Returns the path of the public key.
    """
    private, public = Path(path), Path(f"{path}.pub")
    key = Ed25519PrivateKey.generate()
    if public.exists():
        raise UserError(f"{public} exists, and a key is never overwritten. Choose another name")
    _write_new(private, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
    _write_new(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 0o644)
    return public


def _write_new(path: Path, content: bytes, mode: int) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), mode)
    except FileExistsError:
        raise UserError(f"{path} exists, and a key is never overwritten. Choose another name") from None
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror}") from None
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def signer(key: SigningKey) -> Ed25519PrivateKey:
    """A private key, or the one in a PEM file."""
    if isinstance(key, Ed25519PrivateKey):
        return key
    content = _bytes(key)
    try:
        loaded = load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        loaded = None
    if isinstance(loaded, Ed25519PrivateKey):
        return loaded
    raise UserError(f"{key} contains no Ed25519 private key", remedy=write('pv.new_signing_key("steward.key")'))


def verifier(key: VerifyingKey) -> Ed25519PublicKey:
    """A public key, or the one in a PEM file."""
    if isinstance(key, Ed25519PublicKey):
        return key
    content = _bytes(key)
    try:
        loaded = load_pem_public_key(content)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        loaded = None
    if isinstance(loaded, Ed25519PublicKey):
        return loaded
    raise UserError(f"{key} contains no Ed25519 public key. Use the steward's .pub file, for example: steward.key.pub")


def signs(key: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    """Whether this is a signature of the message by this key."""
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _bytes(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, TypeError):
        raise UserError(f"there is no key file {path}.") from None
