"""Checking a published folder: every certificate, and that tables and pages show what the certificates state.

Claim: a number that was changed in a table or on a page is found, without a key. A changed certificate is found by its
rules, its signature or its ledger. Titles, labels and pictures are only in the manifest: a key shows that they are as
the steward wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from privet.codec import canonical
from privet.errors import LedgerError, NotChecked, PrivetError, UserError, VerificationError
from privet.ledger import Ledger, Receipt
from privet.privacy.guarantees.budgets import amount
from privet.publication.contents import MANIFEST, PAGES, PICTURES, Answer, Manifest, Publication, digest, names
from privet.publication.questions import Question
from privet.release import verification
from privet.release.batch import batch_of
from privet.release.certificate import Certificate
from privet.release.render import frame
from privet.release.signing import VerifyingKey, signs, verifier
from privet.release.verification import walked
from privet.tables import operators
from privet.tables.query import Query
from privet.tables.relation import PublicTable, Table


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found about one file."""

    name: str
    passed: bool
    words: str
    checked: bool = True
    """False if an extra is missing that the check needs; it has not passed, and nothing wrong was found."""


def check(
    folder: Path,
    *,
    key: VerifyingKey | None = None,
    ledger: Ledger | str | Path | None = None,
    receipt: Receipt | str | None = None,
) -> Iterator[Checked]:
    """Check every file of a published folder, one after the other."""
    with ExitStack() as stack:
        book: Ledger | LedgerError | None = None
        if ledger is not None:
            try:
                book = stack.enter_context(walked(ledger, receipt))  # once for all certificates
            except LedgerError as error:
                book = error
        yield from _Folder(folder, key, book).check()


class _Folder:
    def __init__(self, folder: Path, key: VerifyingKey | None, ledger: Ledger | LedgerError | None) -> None:
        self.folder, self.key, self.ledger = folder, key, ledger

    def read(self, name: str) -> bytes:
        try:
            return (self.folder / name).read_bytes()
        except OSError as error:
            why = "it is missing" if isinstance(error, FileNotFoundError) else f"it can't be read: {error.strerror}"
            raise VerificationError(why) from None

    def check(self) -> Iterator[Checked]:
        try:
            self.manifest = Manifest.read(self.read(MANIFEST))
        except VerificationError as error:
            raise VerificationError(f"{self.folder} is not a publication that can be checked: {error}") from None
        yield self._one(MANIFEST, self._manifest)
        answers: list[Answer] = []
        for question in self.manifest.questions:
            before = len(answers)
            yield self._one(f"{question.name}.json", partial(self._certificate, question, answers))
            if len(answers) == before:
                continue
            answer = answers[-1]
            yield self._one(f"{question.name}.csv", partial(self._csv, answer))
            yield self._one(f"{question.name}.parquet", partial(self._parquet, answer))
            for name in (f"{question.name}{suffix}" for suffix in answer.drawn):
                yield self._one(name, partial(self._same, name, "; a picture is not derived anew"))
        if len(answers) < len(self.manifest.questions):
            yield from (Checked(page, False, "not checked, since a certificate failed") for page in PAGES)
        else:
            yield from self._pages(tuple(answers))
        own = {*names(self.manifest.questions, pictures=True)}
        if more := sorted({*self.manifest.files} - own):
            yield Checked(MANIFEST, False, f"it lists files that a publication does not have: {', '.join(more)[:200]}")
        for path in sorted(self.folder.iterdir()):
            if path.name not in {*self.manifest.files, MANIFEST} & own:
                yield Checked(path.name, True, "not part of the publication")

    def _one(self, name: str, look: Callable[[], str]) -> Checked:
        try:
            return Checked(name, True, look())
        except NotChecked as error:
            return Checked(name, False, " ".join(str(error).split()), checked=False)
        except (PrivetError, ValueError, LookupError, TypeError, ArithmeticError, AttributeError) as error:
            return Checked(name, False, " ".join(str(error).split())[:300] or "it can't be read")

    # --- files ----------------------------------------------------------------------------------

    def _manifest(self) -> str:
        if self.key is None:
            return "read; its signature is not checked: no key was given"
        signature = self.manifest.signature
        text = canonical(self.manifest.document).encode()
        try:
            signed = signature is not None and signs(verifier(self.key), bytes.fromhex(signature), text)
        except ValueError:
            signed = False
        if not signed:
            raise VerificationError("it is not signed with this key")
        return "signed with this key"

    def _certificate(self, question: Question, answers: list[Answer]) -> str:
        name = f"{question.name}.json"
        certificate = Certificate.from_json(self.read(name))
        if isinstance(self.ledger, LedgerError):
            raise VerificationError(f"ledger: {self.ledger}")
        said: verification.Verification | NotChecked
        try:
            said = verification.check(
                certificate, key=self.key, ledger=None if self.ledger is None else nullcontext(self.ledger)
            )
        except NotChecked as error:  # its table and the page can still be compared with it
            said = error
        self._same(name)
        drawn = {s: self.read(f"{question.name}{s}") for s in PICTURES if f"{question.name}{s}" in self.manifest.files}
        answer = Answer(question, certificate, drawn)
        if not _asks(question.sql, answer.release.plan.query):
            raise VerificationError("it is the answer to another question than the manifest has")
        question.style.check(answer.release.plan.query)
        first = (answers or [answer])[0].certificate.document["ledger"]
        link = certificate.document["ledger"]
        if batch_of(certificate.document) is None or {**link["batch"], "part": 0} != {**first["batch"], "part": 0}:
            raise VerificationError("it does not belong to the batch of the others")
        if (link.get("entry"), link.get("hash")) != (first.get("entry"), first.get("hash")):
            raise VerificationError("it was not paid for with the others")
        for other in answers:
            same = other.certificate.document["ledger"]["batch"]["part"] == link["batch"]["part"]
            if same and _measured(other.certificate) != _measured(certificate):
                raise VerificationError(f"it has other noise than {other.question.name}, and the batch paid for one")
        answers.append(answer)
        if isinstance(said, NotChecked):
            raise said
        levels = [word for word, on in (("signature", said.signature), ("debit", said.ledger)) if on]
        return f"passed: {', '.join(['rules', *levels])}; {said.promise}"

    def _csv(self, answer: Answer) -> str:
        name = f"{answer.question.name}.csv"
        if self.read(name) != answer.csv():
            raise VerificationError("its numbers are not those of the certificate")
        return self._same(name, "; the numbers of its certificate")

    def _parquet(self, answer: Answer) -> str:
        import pyarrow.parquet as pq
        from pyarrow import ArrowException

        name = f"{answer.question.name}.parquet"
        try:
            table = pq.read_table(BytesIO(self.read(name)))
        except ArrowException:
            raise VerificationError("it is not a Parquet file") from None
        facts = (table.schema.metadata or {}).get(b"privet", b"").decode()
        if not table.equals(frame.arrow(answer.release)) or facts != answer.facts():
            raise VerificationError("its numbers are not those of the certificate")
        return self._same(name, "; the numbers of its certificate")

    def _same(self, name: str, more: str = "") -> str:
        if digest(self.read(name)) != self.manifest.files.get(name):
            raise VerificationError("it is not the file that the manifest has")
        return f"as in the manifest{more}"

    def _pages(self, answers: tuple[Answer, ...]) -> Iterator[Checked]:
        document = self.manifest.document
        written = Publication(document["title"], document["text"], answers, document["privet"])
        batch = batch_of(answers[0].certificate.document)
        assert batch is not None
        parts = {answer.certificate.document["ledger"]["batch"]["part"] for answer in answers}
        if parts != set(range(len(batch.events))):
            yield Checked(MANIFEST, False, "the batch has further answers, which are not in this folder")
        if document.get("guarantee") != amount(written.guarantee):
            yield Checked(MANIFEST, False, "its guarantee is not that of the certificates")
        for name, content in written.pages().items():
            yield self._one(name, partial(self._page, name, content))

    def _page(self, name: str, content: bytes) -> str:
        if self.read(name) != content:
            raise VerificationError(f"it differs from what the certificates state{self._written_by()}")
        return self._same(name, "; what the certificates state")

    def _written_by(self) -> str:
        from importlib.metadata import version

        here, there = version("privet"), self.manifest.document["privet"]
        return "" if here == there else f", as Privet {here} writes it; this folder was written by Privet {there}"


def _measured(certificate: Certificate) -> list[Any]:
    """What answers of one part of a batch have in common: the rows, the measurements, and the noisy numbers."""
    document = certificate.document
    derived = document["derived"]
    return [derived["statements"], derived["measurements"], document["noisy"], document.get("found")]


def _asks(sql: str, answered: Query) -> bool:
    """Whether a statement asks what was answered; columns that were measured for other questions make no difference."""
    from privet.sql import parse

    tables = {schema.name: Table(schema, None) for schema in operators.tables(answered.input)}
    public = {schema.name: PublicTable(schema, None) for schema in operators.public_tables(answered.input)}
    try:
        asked = parse(sql, tables, public)
    except UserError:
        return False
    names = dict(asked.aggregates)
    kept: Any = tuple(pair for pair in answered.aggregates if pair[0] in names)
    hidden = tuple(name for name in answered.arrangement.hidden if name in names)
    if {name for name, _ in answered.aggregates} - {*names, *answered.arrangement.hidden}:
        return False
    return replace(answered, aggregates=kept, arrangement=replace(answered.arrangement, hidden=hidden)) == asked
