"""Verification: what holds passes; each leaf that is altered, and each byte, is found."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.release.certificates import ASKED, KEY, LINK, OTHER_KEY, PUBLIC, certificate, event_of, ledger_for

from privet import events
from privet.distances import Adjacency
from privet.errors import UserError, VerificationError
from privet.guarantees import PureDP
from privet.ledger import Dataset, MemoryLedger
from privet.release.certificate import Certificate, canonical, certify
from privet.release.verification import verify

EVERY = [*ASKED, "value"]


@pytest.mark.parametrize("name", EVERY)
def test_what_holds_passes(name: str, tmp_path: Path) -> None:
    made = certificate(name)
    found = verify(made, key=PUBLIC, ledger=ledger_for(name, made))
    assert (found.rules, found.signature, found.ledger) == (True, True, True)
    path = made.save(tmp_path / "answer.json")
    for given in (made, made.to_json(), made.to_json().encode(), path, str(path)):
        assert verify(given).rules
    assert verify(certificate(name, key=None)).rules


def test_what_was_checked_is_said() -> None:
    made = certificate("groups")
    assert str(verify(made)) == (
        "rules      hold: epsilon 0.333334, for n = count(), pay = mean(pay) by region\n"
        "signature  not checked: no key was given\n"
        "ledger     not checked: no ledger was given"
    )
    assert str(verify(made, key=PUBLIC, ledger=ledger_for("groups", made))).endswith(
        "signature  is by this key\nledger     has the debit"
    )
    assert "if the sensitivity of 'two medians' is what was stated" in str(verify(certificate("value")))


# --- level 1: each leaf -----------------------------------------------------------------------------

Path_ = tuple[Any, ...]


def leaves(tree: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every place in a tree: leaves, lists and objects."""
    yield path, tree
    if isinstance(tree, dict | list):
        for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(part, (*path, key))


def variants(value: Any) -> Iterator[Any]:
    """Small changes of one place: what a forger or a flipped bit would do."""
    match value:
        case bool():
            yield not value
            yield int(value)
        case int():
            yield value + 1
            yield value - 1
            yield float(value)
            yield str(value)
        case float():
            yield value * (1 + 1e-6) if value else 1e-9
            yield None
        case str():
            yield value + "x"
            yield value[:-1] if value else "x"
            if re.fullmatch(r"-?\d+/\d+", value):
                top, bottom = value.split("/")
                yield f"{int(top) + 1}/{bottom}"
                yield f"{int(top) - 1}/{bottom}"
                yield f"{2 * int(top)}/{2 * int(bottom)}"
        case None:
            yield 0
            yield "x"
        case list():
            yield [*value, 0]
            if value:
                yield value[:-1]
                yield value[1:]
                yield [*value, value[-1]]
            if len(value) > 1 and value[0] != value[1]:
                yield [value[1], value[0], *value[2:]]
        case dict():
            yield {**value, "further": 1}
            yield list(value)
            for key in value:
                yield {other: part for other, part in value.items() if other != key}


def with_place(document: Any, path: Path_, value: Any) -> Any:
    made = copy.deepcopy(document)
    at = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return made


def named(message: str, path: Path_) -> bool:
    """Whether a message names the place, or one around or just inside it."""
    said = message.split(":")[0]
    text = path[0] + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path[1:])
    return said.startswith(text) or text.startswith(said)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("field", ["derived", "answer"])
def test_every_altered_leaf_is_found_by_the_rules(name: str, field: str) -> None:
    """No key and no ledger: `derived` and `answer` follow from the rest."""
    if name == "value" and field == "answer":
        pytest.xfail("the answer of a stated value follows from nothing, so the rules can't check it")
    document = certificate(name).document
    tried = 0
    for path, value in list(leaves(document[field], (field,))):
        some = list(variants(value))
        if tried > 150:  # plenty: then one change of each place
            some = some[:1]
        for other in some:
            with pytest.raises(VerificationError) as caught:
                verify(Certificate(with_place(document, path, other)))
            assert named(str(caught.value), path), (path, str(caught.value))
            tried += 1
    assert tried > 20


@pytest.mark.parametrize("name", ["groups", "within", "spread"])
def test_altered_questions_and_integers_are_found_by_the_rules(name: str) -> None:
    """What was asked and the noisy integers can't be altered by themselves either."""
    document = certificate(name).document
    asked = [
        place
        for part in document["asked"]
        if part != "query"
        for place in leaves(document["asked"][part], ("asked", part))
    ]
    for path, value in [*asked, *leaves(document["noisy"], ("noisy",))]:
        for other in variants(value):
            if path[0] == "noisy" and type(other) is int:
                continue  # one step more or less may come to the same answer, clamped or rounded
            with pytest.raises(VerificationError):
                verify(Certificate(with_place(document, path, other)))


@pytest.mark.parametrize("name", EVERY)
def test_fields_of_the_document(name: str) -> None:
    document = certificate(name).document
    for field in document:
        with pytest.raises(VerificationError):
            verify(Certificate({key: part for key, part in document.items() if key != field}))
    with pytest.raises(VerificationError, match="fields of the document"):
        verify(Certificate({**document, "further": 1}))
    kinds: list[Any] = ["value" if name != "value" else "query", "other", None, [], {}]
    for kind in kinds:
        with pytest.raises(VerificationError):
            verify(Certificate({**document, "kind": kind}))
    for other in ("privet-certificate/2", None, 1):
        with pytest.raises(VerificationError, match="format: this version checks 'privet-certificate/1'"):
            verify(Certificate({**document, "format": other}))
    odd: list[Any] = [None, 7, [], "x" * 10, {}, [[[]]], [[[1, "a"]]]]
    for field in ("asked", "derived", "noisy", "answer", "ledger", "dataset", "version"):
        if field in document:
            for given in odd:
                if type(given) is not type(document[field]) or field not in ("ledger", "dataset", "version", "answer"):
                    if name == "value" and field == "answer":
                        continue
                    with pytest.raises(VerificationError):
                        verify(Certificate({**document, field: given}))


def test_floats_may_differ_in_their_last_bits() -> None:
    """Intervals come from floats; another machine's libraries may round them otherwise."""
    document = certificate("groups").document
    low = document["answer"]["pay"]["low"]
    verify(Certificate(with_place(document, ("answer", "pay", "low", 1), low[1] * (1 + 1e-12))))
    with pytest.raises(VerificationError, match=re.escape("answer.pay.low[1]: is")):
        verify(Certificate(with_place(document, ("answer", "pay", "low", 1), low[1] * (1 + 1e-8))))


@pytest.mark.parametrize("epsilon", ["1/4", "1/2", "1/1"])
def test_a_smaller_claim_is_found(epsilon: str) -> None:
    """The forger's aim: the same noise, and a better promise."""
    document = certificate("count").document
    smaller = with_place(document, ("derived", "guarantee", "epsilon"), "1/10")
    with pytest.raises(
        VerificationError, match=re.escape("derived.guarantee.epsilon: is '1/10', and by the rules '1/1'")
    ):
        verify(Certificate(smaller))
    if epsilon != "1/1":
        with pytest.raises(VerificationError, match="derived"):
            verify(Certificate(with_place(document, ("asked", "epsilon"), epsilon)))


def test_a_value_must_fit_its_mechanism() -> None:
    document = certificate("value").document
    for path, given in [
        (("asked", "sensitivity"), "1/4"),
        (("asked", "epsilon"), "1/4"),
        (("asked", "dimension"), 3),
        (("asked", "dimension"), 0),
        (("asked", "dimension"), "2"),
        (("asked", "sensitivity"), None),
        (("asked", "sensitivity"), "0/1"),
        (("asked", "epsilon"), "NaN"),
    ]:
        with pytest.raises(VerificationError):
            verify(Certificate(with_place(document, path, given)))


@pytest.mark.parametrize("answer", ["a text", [1.0, 2.0, 3.0], None, {"a": 1}, [1.0, "x"], [0.1234567, 0.7654321]])
def test_the_answer_of_a_value_has_the_shape_of_one(answer: Any) -> None:
    document = certificate("value").document
    with pytest.raises(VerificationError):
        verify(Certificate({**document, "answer": answer}))


# --- level 2: each byte -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["groups", "count", "value"])
def test_every_altered_byte_is_found_with_the_key(name: str) -> None:
    text = certificate(name).to_json().encode()
    stream = random.Random(name)
    for position in stream.sample(range(len(text)), min(len(text), 500)):
        altered = bytearray(text)
        altered[position] ^= 1 << stream.randrange(8)
        with pytest.raises((VerificationError, UserError)) as caught:
            verify(bytes(altered), key=PUBLIC)
        assert isinstance(caught.value, VerificationError)


def test_cut_and_doubled_texts() -> None:
    text = certificate("count").to_json()
    for altered in (text[:-1], text[: len(text) // 2], text + "}", text + text, text.replace(",", ", ", 1), text + " "):
        with pytest.raises(VerificationError):
            verify(altered, key=PUBLIC)
    assert verify(text + "\n", key=PUBLIC).signature


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("field", ["dataset", "version"])
def test_names_are_signed_too(name: str, field: str) -> None:
    made = certificate(name)
    altered = Certificate({**made.document, field: "other"}, made.signature)
    assert verify(altered).rules, "no rule says what a dataset is called"
    with pytest.raises(VerificationError, match="not this key's signature of this document"):
        verify(altered, key=PUBLIC)


def test_wrong_and_missing_signatures() -> None:
    made, other = certificate("count"), certificate("groups")
    with pytest.raises(VerificationError, match="signature: it is not this key's"):
        verify(made, key=OTHER_KEY.public_key())
    with pytest.raises(VerificationError, match="signature: there is none"):
        verify(certificate("count", key=None), key=PUBLIC)
    assert made.signature is not None
    for signature in (
        other.signature, "", "00" * 64, made.signature[:-2], made.signature + "00", made.signature.upper(),
        " " + made.signature, "zz" * 64, made.signature[:2] + " " + made.signature[2:],
    ):  # fmt: skip
        with pytest.raises(VerificationError, match="signature: it is not this key's"):
            verify(Certificate(made.document, signature), key=PUBLIC)


def test_a_signature_can_not_be_stretched() -> None:
    """S + L verifies too in careless implementations, which makes a second valid text."""
    made = certificate("count")
    assert made.signature is not None
    raw = bytes.fromhex(made.signature)
    order = 2**252 + 27742317777372353535851937790883648493
    second = raw[:32] + (int.from_bytes(raw[32:], "little") + order).to_bytes(32, "little")
    with pytest.raises(VerificationError, match="signature"):
        verify(Certificate(made.document, second.hex()), key=PUBLIC)


def test_a_signature_is_checked_after_the_rules() -> None:
    """A steward who signs what does not hold is found out."""
    document = with_place(certificate("count").document, ("derived", "guarantee", "epsilon"), "1/10")
    forged = Certificate(document, KEY.sign(canonical(document).encode()).hex())
    with pytest.raises(VerificationError, match=r"derived\.guarantee\.epsilon"):
        verify(forged, key=PUBLIC)


# --- level 3: the ledger ----------------------------------------------------------------------------


def paid(*entries: tuple[str, str, Any], answer: str, budget: Any = 10**6) -> MemoryLedger:
    ledger = MemoryLedger()
    ledger.create(Dataset("people", "row", Adjacency.ADD_REMOVE, PureDP(budget)))
    for analyst, request, event in entries:
        charge = ledger.reserve(dataset="people", analyst=analyst, request_id=request, events=[event])
        ledger.settle(charge, "answered", answer)
    return ledger


@pytest.mark.parametrize("name", EVERY)
def test_debits_that_are_not_there(name: str) -> None:
    made = certificate(name)
    right = event_of(name)
    other = events.Composed([events.Laplace(sensitivity=1, scale=12345)])
    nothing = MemoryLedger()
    with pytest.raises(VerificationError, match="ledger: there is no dataset 'people'"):
        verify(made, ledger=nothing)
    for ledger, message in [
        (paid(answer=made.digest), "it has no such entry"),
        (paid(("ann", "second", right), answer=made.digest), "it has no such entry"),
        (paid(("bob", "first", right), answer=made.digest), "it has no such entry"),
        (paid(("ann", "first", other), answer=made.digest), "the entry paid for something else"),
        (paid(("ann", "first", right), answer="0" * 64), "the entry's answer is another one"),
        (paid(("ann", "first", right), answer=""), "the entry's answer is another one"),
    ]:
        with pytest.raises(VerificationError, match=message):
            verify(made, ledger=ledger)
    assert verify(made, ledger=ledger_for(name, made)).ledger


def test_a_debit_that_was_never_settled_or_failed() -> None:
    made = certificate("count")
    for settle in (False, True):
        ledger = paid(answer="")
        charge = ledger.reserve(dataset="people", analyst="ann", request_id="first", events=[event_of("count")])
        if settle:
            ledger.settle(charge, "failed")
        with pytest.raises(VerificationError, match="ledger: the entry's answer is another one"):
            verify(made, ledger=ledger)


def test_two_events_are_not_one() -> None:
    made = certificate("count")
    ledger = paid(answer="")
    twice = [event_of("count"), event_of("count")]
    ledger.settle(
        ledger.reserve(dataset="people", analyst="ann", request_id="first", events=twice), "answered", made.digest
    )
    with pytest.raises(VerificationError, match="paid for something else"):
        verify(made, ledger=ledger)


@pytest.mark.parametrize(
    "link",
    [{}, {"entry": 1}, {**LINK, "entry": "1"}, {**LINK, "entry": 1.0}, {**LINK, "entry": True}, {**LINK, "entry": 0},
     {**LINK, "entry": -1}, {**LINK, "entry": None}, {**LINK, "entry": [1]}, {**LINK, "request_id": None},
     {**LINK, "request_id": ["first"]}, {**LINK, "analyst": None}],
)  # fmt: skip
def test_odd_links(link: dict[str, Any]) -> None:
    made = certificate("count", link=link)
    with pytest.raises(VerificationError, match="ledger: it has no such entry"):
        verify(made, ledger=ledger_for("count", made))


@pytest.mark.parametrize("dataset", [None, 7, [], {}, ["people"]])
def test_odd_datasets(dataset: Any) -> None:
    body = {
        k: v for k, v in certificate("count").document.items() if k in ("kind", "asked", "derived", "noisy", "answer")
    }
    made = certify(body, dataset=dataset, link=LINK, version="0", key=None)
    with pytest.raises(VerificationError, match="dataset"):
        verify(made, ledger=ledger_for("count", made))


def test_a_ledger_entry_of_another_certificate() -> None:
    """The digest covers the document: one debit can't carry two answers."""
    made = certificate("count")
    ledger = ledger_for("count", made)
    document = json.loads(canonical(made.document))
    document["noisy"][0][0][0] += 5
    for part in document["answer"]["n"].values():
        part[0] += 5
    assert verify(Certificate(document)).rules, "other noise would be as good"
    with pytest.raises(VerificationError, match="ledger: the entry's answer is another one"):
        verify(Certificate(document), ledger=ledger)
