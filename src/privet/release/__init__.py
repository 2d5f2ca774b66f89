"""Releases: answers with their intervals, and certificates that anyone can check."""

from privet.release.answer import Release
from privet.release.certificate import Certificate
from privet.release.signing import new_signing_key
from privet.release.verification import Verification, verify

__all__ = ["Certificate", "Release", "Verification", "new_signing_key", "verify"]
