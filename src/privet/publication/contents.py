"""What a published folder holds: for each question a table, pictures and a certificate, and pages that show all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from privet.codec import canonical
from privet.errors import UserError, VerificationError
from privet.exact import Exact
from privet.privacy.accounting import guarantee_of
from privet.privacy.adjacency import Person
from privet.privacy.guarantees import Guarantee, ZeroConcentratedDP
from privet.privacy.guarantees.budgets import amount
from privet.publication.questions import Question, from_tree, to_tree
from privet.release.answer import Release
from privet.release.batch import batch_of
from privet.release.certificate import Certificate
from privet.release.recall import reopened
from privet.release.render import frame, picture
from privet.release.signing import SigningKey, signer
from privet.tables import operators

FORMAT = "privet-publication/1"
MANIFEST = "manifest.json"
PAGES = ("index.html", "index.md")
TABLES = (".json", ".csv", ".parquet")
PICTURES = (".svg", ".png")
_TINY = Exact(1, 10**9)  # the delta at which a rho is explained


@dataclass(frozen=True, slots=True)
class Answer:
    """A question and its answer, which its certificate states."""

    question: Question
    certificate: Certificate
    drawn: Mapping[str, bytes] = field(default_factory=dict)
    """Its pictures, by suffix; none if there is nothing to draw."""
    release: Release = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "release", reopened(self.certificate))

    def notes(self) -> list[str]:
        """What the numbers mean; what they cost is said once, for all tables."""
        return self.release.notes()[:-1]

    def csv(self) -> bytes:
        return frame.csv(self.release).encode()

    def parquet(self) -> bytes:
        return frame.parquet(self.release, self.facts())

    def facts(self) -> str:
        """The facts beside the rows, for the metadata of a file."""
        of = self.release
        return json.dumps(
            {
                "confidence": of.confidence,
                "guarantee": amount(of.guarantee),
                "limits": of.limits,
                "notes": self.notes(),
            },
            ensure_ascii=False,
        )


def drawings(release: Release, question: Question) -> dict[str, bytes]:
    """The pictures of an answer, by suffix; none if there is nothing that a picture can show."""
    style = question.style
    try:
        figure = release.plot(title=style.title, labels=style.labels, order=style.order)
    except UserError:  # no group is shown, or too many columns
        return {}
    return {suffix: picture.drawn(figure, suffix) for suffix in PICTURES}


@dataclass(frozen=True, slots=True)
class Publication:
    """The answers of a batch under a title."""

    title: str
    text: str
    answers: tuple[Answer, ...]
    version: str
    """The version of Privet that wrote it."""

    @property
    def dataset(self) -> str:
        return str(self.answers[0].certificate.document["dataset"])

    @property
    def is_signed(self) -> bool:
        """Whether every certificate is signed."""
        return all(answer.certificate.signature is not None for answer in self.answers)

    @property
    def command(self) -> str:
        """The command that checks the folder."""
        return "privet verify . --key steward.key.pub" if self.is_signed else "privet verify ."

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all answers together, which their certificates state."""
        batch = batch_of(self.answers[0].certificate.document)
        if batch is None:
            raise VerificationError("the certificate does not belong to a batch")
        return guarantee_of([batch])

    def protects(self) -> tuple[str, str]:
        """What is protected, in words, and the adjacency."""
        table = operators.tables(self.answers[0].release.plan.query.input)[0]
        return ("each person" if isinstance(table.protect, Person) else "each row"), str(table.adjacency)

    def meaning(self) -> str:
        """What the guarantee means for one person."""
        promise, (_, adjacency) = self.guarantee, self.protects()
        if isinstance(promise, ZeroConcentratedDP):
            return promise.meaning(adjacency, delta=_TINY)
        return promise.meaning(adjacency)

    def pages(self) -> dict[str, bytes]:
        """The pages, which follow from everything else."""
        from privet.publication import markdown, page

        return {"index.html": page.html(self).encode(), "index.md": markdown.markdown(self).encode()}

    def files(self, key: SigningKey | None) -> dict[str, bytes]:
        """All files by name, the manifest last."""
        made: dict[str, bytes] = {}
        for answer in self.answers:
            name = answer.question.name
            contents = (answer.certificate.to_bytes(), answer.csv(), answer.parquet())
            made |= {f"{name}{suffix}": content for suffix, content in zip(TABLES, contents, strict=True)}
            made |= {f"{name}{suffix}": content for suffix, content in answer.drawn.items()}
        made |= self.pages()
        return {**made, MANIFEST: manifest(self, made, key)}


def names(questions: tuple[Question, ...], *, pictures: bool) -> list[str]:
    """The names of all files that these questions can have."""
    suffixes = TABLES + (PICTURES if pictures else ())
    return [*(f"{each.name}{suffix}" for each in questions for suffix in suffixes), *PAGES, MANIFEST]


# --- the manifest ---------------------------------------------------------------------------------


def manifest(of: Publication, made: Mapping[str, bytes], key: SigningKey | None) -> bytes:
    """The manifest: what the pages say besides the certificates, and the digest of every file; signed with a key."""
    document = {
        "format": FORMAT,
        "privet": of.version,
        "title": of.title,
        "text": of.text,
        "guarantee": amount(of.guarantee),
        "questions": [to_tree(answer.question) for answer in of.answers],
        "files": {name: digest(content) for name, content in made.items()},
    }
    signature = None if key is None else signer(key).sign(canonical(document).encode()).hex()
    tree = {"document": document, "signature": signature}
    return (json.dumps(tree, indent=2, ensure_ascii=False) + "\n").encode()


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest, as it was read."""

    document: dict[str, Any]
    signature: str | None
    questions: tuple[Question, ...]
    files: Mapping[str, str]

    @classmethod
    def read(cls, content: bytes) -> Manifest:
        """A manifest from its file; raises if it is not one."""
        try:
            tree = json.loads(content)
            document, signature = tree["document"], tree["signature"]
            if document["format"] != FORMAT or not isinstance(signature, str | None):
                raise VerificationError(f"{MANIFEST}: this version checks {FORMAT!r}")
            texts = [document[name] for name in ("title", "text", "privet")]
            listed = tuple(from_tree(each, f"question {i}") for i, each in enumerate(document["questions"], 1))
            files = document["files"]
            sound = all(isinstance(x, str) for x in (*texts, *files, *files.values()))
            if not sound or not listed or len({each.name for each in listed}) < len(listed):
                raise ValueError
            canonical(document)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            why = f": {error}" if isinstance(error, UserError) else ""
            raise VerificationError(f"{MANIFEST}: this is not the manifest of a publication{why}") from None
        return cls(document, signature, listed, files)


def digest(content: bytes) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(content).hexdigest()
