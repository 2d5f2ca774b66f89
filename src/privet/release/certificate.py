"""A certificate: a release with everything that is needed to check its claim, without the data."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privet.codec import canonical, parsed, ratio
from privet.errors import VerificationError
from privet.exact import Exact
from privet.mechanisms import Gaussian, described
from privet.mechanisms.described import Adding, Choosing
from privet.planner import ReleasePlan
from privet.planner.facts import asked, derived
from privet.planner.outputs import Cells
from privet.privacy import events
from privet.privacy.gaussian import together
from privet.privacy.guarantees import ZeroConcentratedDP, budgets
from privet.release.signing import SigningKey, signer
from privet.system import files
from privet.tables.discovered import Discovered

FORMAT = "privet-certificate/1"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A JSON document, and a signature if the steward has a key."""

    document: dict[str, Any]
    signature: str | None = None

    def to_json(self) -> str:
        """The canonical text: sorted keys, no blanks."""
        return _whole(canonical(self.document), self.signature)

    @classmethod
    def from_json(cls, text: str | bytes) -> Certificate:
        """A certificate from its text; only canonical text is accepted."""
        try:
            given = text.encode() if isinstance(text, str) else bytes(text)
            tree = parsed(given)
            again = canonical(tree).encode()
        except (ValueError, RecursionError, TypeError):
            raise VerificationError("this is not a certificate: its text is not the JSON that Privet writes") from None
        if not isinstance(tree, dict) or set(tree) != {"document", "signature"}:
            raise VerificationError("this is not a certificate: it must have only a document and a signature")
        document, signature = tree["document"], tree["signature"]
        if not isinstance(document, dict) or not isinstance(signature, str | None):
            raise VerificationError("this is not a certificate: its document must be an object and its signature text")
        if again != given.rstrip(b"\n"):
            raise VerificationError("this certificate was reformatted: it is not in its canonical form")
        return cls(document, signature)

    def save(self, path: str | Path) -> Path:
        """Write it to a file; an existing file is replaced."""
        target = Path(path)
        files.write(target, self.to_bytes(), overwrite=True)
        return target

    def to_bytes(self) -> bytes:
        """The contents of its file."""
        return f"{self.to_json()}\n".encode()

    @property
    def digest(self) -> str:
        """The SHA-256 of the document."""
        return hashlib.sha256(canonical(self.document).encode()).hexdigest()

    def __str__(self) -> str:
        return json.dumps(self.document, indent=2, ensure_ascii=False)


def _whole(document: str, signature: str | None) -> str:
    """The canonical text of a certificate, from that of its document."""
    return f'{{"document":{document},"signature":{canonical(signature)}}}'


def certify(
    body: dict[str, Any], *, dataset: str, link: dict[str, Any], version: str, key: SigningKey | None
) -> tuple[Certificate, str]:
    """A certificate for a release, and its text: the question, its consequences, the answer, and the ledger's entry."""
    document = {"format": FORMAT, "version": version, "dataset": dataset, "ledger": link, **body}
    text = canonical(document)
    signature = signer(key).sign(text.encode()).hex() if key is not None else None
    return Certificate(json.loads(text), signature), _whole(text, signature)  # sign exactly what will be read


def of_query(plan: ReleasePlan, noisy: Any, cells: Mapping[str, Cells]) -> dict[str, Any]:
    """The part of a certificate about an answered query."""
    return {
        "kind": "query",
        "asked": asked(plan),
        **found_tree(plan),
        "derived": derived(plan),
        "noisy": [[list(vector) for vector in part] for part in noisy],
        "answer": answered(cells),
    }


def found_tree(plan: ReleasePlan) -> dict[str, Any]:
    """The keys that were found; nothing if all keys are public."""
    groups = plan.query.groups
    return {"found": [list(each) for each in groups.found or ()]} if isinstance(groups, Discovered) else {}


def answered(cells: Mapping[str, Cells]) -> dict[str, Any]:
    """Values, intervals and marks of every column; infinite ends are null."""
    return {
        name: {"values": _cells(c.values), "low": _cells(c.low), "high": _cells(c.high), "noisy": list(c.noisy)}
        for name, c in cells.items()
    }


def _cells(cells: tuple[Any, ...]) -> list[Any]:
    return [None if isinstance(x, float) and not math.isfinite(x) else x for x in cells]


def of_value(mechanism: Adding, released: Any, label: str, *, stated_at: Exact | None = None) -> dict[str, Any]:
    """The part of a certificate about a value whose sensitivity the user stated.

    Noise that is priced in rho may state the epsilon at which it has a delta, for a budget that counts epsilons.
    """
    asked = {"label": label, "mechanism": described.to_tree(mechanism), "stated_at": None}
    derived = {**_derived(mechanism), "step": ratio(mechanism.step)}
    if stated_at is not None and isinstance(mechanism, Gaussian) and isinstance(mechanism.price, ZeroConcentratedDP):
        asked["stated_at"] = ratio(stated_at)
        derived["event"] = events.to_tree(together([mechanism.event()], epsilon=stated_at))
    return {"kind": "value", "asked": asked, "derived": derived, "answer": released}


def of_choice(
    mechanism: Choosing, position: int | None, label: str, *, count: int, candidates: list[Any] | None
) -> dict[str, Any]:
    """The part of a certificate about a choice by scores whose sensitivity the user stated.

    It has the digest of the candidates, of which there may be a million, and the one that was chosen.
    """
    digest = None if candidates is None else hashlib.sha256(canonical(candidates).encode()).hexdigest()
    chosen = None if candidates is None or position is None else candidates[position]
    return {
        "kind": "choice",
        "asked": {
            "label": label,
            "mechanism": described.to_tree(mechanism),
            "count": count,
            "candidates": digest,
        },
        "derived": _derived(mechanism),
        "answer": {"position": position, "candidate": chosen},
    }


def _derived(mechanism: Adding | Choosing) -> dict[str, Any]:
    """The consequences of a stated sensitivity."""
    return {
        "event": events.to_tree(mechanism.event()),
        "guarantee": budgets.to_tree(mechanism.guarantee()),
    }


def plain(tree: Any) -> Any:
    """A tree after a round trip through JSON."""
    return json.loads(canonical(tree))
