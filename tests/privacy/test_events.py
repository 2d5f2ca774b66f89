"""Events: the JSON form is closed, canonical and for ever."""

from __future__ import annotations

import contextlib
import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.errors import AccountingError, NumberError, UserError
from privet.privacy.events import (
    DEEPEST,
    BoundedRange,
    Composed,
    FixedBatch,
    Free,
    GaussianNoise,
    JointGaussian,
    LaplaceNoise,
    PrivacyEvent,
    Repeated,
    Stated,
    from_json,
    from_tree,
    leaves,
    opened,
    to_json,
    to_tree,
)
from privet.privacy.moves import L1Move, L2Move

ratios = st.fractions(min_value=0, max_denominator=10**12)
simple: st.SearchStrategy[PrivacyEvent] = st.one_of(
    st.builds(
        lambda n, g, s: LaplaceNoise(move=L1Move(n, blocks=g), scale=s),
        st.integers(0, 10**30),
        st.integers(1, 10**6),
        ratios.filter(bool),
    ),
    st.builds(
        lambda n, s, c, e: GaussianNoise(move=L2Move(n), sigma_squared=s, coordinates=c, epsilon=e),
        st.integers(0, 10**30),
        ratios.filter(bool),
        st.integers(1, 10**6),
        st.none() | ratios,
    ),
    st.builds(
        lambda parts, e: JointGaussian(
            noises=[GaussianNoise(move=L2Move(n), sigma_squared=s, coordinates=c, epsilon=None) for n, s, c in parts],
            epsilon=e,
        ),
        st.lists(st.tuples(st.integers(0, 10**30), ratios.filter(bool), st.integers(1, 10**6)), min_size=2, max_size=3),
        ratios,
    ),
    st.builds(lambda e: BoundedRange(epsilon=e), ratios),
    st.builds(lambda e, d: Stated(epsilon=e, delta=d / (1 + d)), ratios, ratios),
    st.builds(Free),
)
events: st.SearchStrategy[PrivacyEvent] = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds(Composed, st.lists(inner, max_size=3)), st.builds(Repeated, inner, st.integers(0, 9))
    ),
    max_leaves=8,
)
batches: st.SearchStrategy[PrivacyEvent] = st.builds(
    lambda parts, e: FixedBatch(events=parts, epsilon=e, delta=1e-6, method="pld/1"),
    st.lists(events, max_size=3),
    ratios,
)

# Never change a line of these: ledgers of every age hold such texts.
GOLDEN: list[tuple[str, PrivacyEvent]] = [
    ('{"kind":"laplace","move":{"blocks":1,"l1":1},"scale":"3/2"}', LaplaceNoise(move=L1Move(1), scale=1.5)),
    ('{"kind":"laplace","move":{"blocks":3,"l1":0},"scale":"2/1"}', LaplaceNoise(move=L1Move(0, blocks=3), scale=2)),
    (
        '{"coordinates":3,"epsilon":null,"kind":"gaussian","move":{"squared_l2":2},"sigma_squared":"5/2"}',
        GaussianNoise(move=L2Move(2), sigma_squared=2.5, coordinates=3, epsilon=None),
    ),
    (
        '{"coordinates":1,"epsilon":"1/2","kind":"gaussian","move":{"squared_l2":1},"sigma_squared":"9/1"}',
        GaussianNoise(move=L2Move(1), sigma_squared=9, coordinates=1, epsilon=0.5),
    ),
    (
        (
            '{"epsilon":"1/2","kind":"joint_gaussian","noises":['
            '{"coordinates":1,"epsilon":null,"kind":"gaussian","move":{"squared_l2":1},"sigma_squared":"9/1"},'
            '{"coordinates":3,"epsilon":null,"kind":"gaussian","move":{"squared_l2":2},"sigma_squared":"5/2"}]}'
        ),
        JointGaussian(
            noises=[
                GaussianNoise(move=L2Move(1), sigma_squared=9, coordinates=1, epsilon=None),
                GaussianNoise(move=L2Move(2), sigma_squared=2.5, coordinates=3, epsilon=None),
            ],
            epsilon=0.5,
        ),
    ),
    ('{"epsilon":"1/2","kind":"bounded_range"}', BoundedRange(epsilon=0.5)),
    ('{"delta":"1/1000000","epsilon":"1/2","kind":"stated"}', Stated(epsilon=0.5, delta=1e-6)),
    ('{"delta":"0/1","epsilon":"1/3","kind":"stated"}', Stated(epsilon="1/3", delta=0)),
    ('{"kind":"free"}', Free()),
    ('{"events":[],"kind":"composed"}', Composed([])),
    ('{"events":[{"kind":"free"},{"kind":"free"}],"kind":"composed"}', Composed([Free(), Free()])),
    ('{"count":3,"event":{"kind":"free"},"kind":"repeated"}', Repeated(Free(), 3)),
    (
        '{"delta":"1/1000000","epsilon":"1/2","events":[{"kind":"free"}],"kind":"fixed_batch","method":"pld/1"}',
        FixedBatch(events=[Free()], epsilon=0.5, delta=1e-6, method="pld/1"),
    ),
]


@pytest.mark.parametrize(("text", "event"), GOLDEN)
def test_golden_texts_are_written_and_read_for_ever(text: str, event: PrivacyEvent) -> None:
    assert to_json(event) == text
    assert from_json(text) == event


def test_every_kind_has_a_golden_text() -> None:
    assert {type(event) for _, event in GOLDEN} == set(PrivacyEvent.__args__)


@given(events | batches | st.builds(lambda batch: Composed([Free(), Repeated(batch, 2)]), batches))
def test_json_round_trip(event: PrivacyEvent) -> None:
    text = to_json(event)
    assert from_json(text) == event
    assert hash(from_json(text)) == hash(event)
    assert to_json(from_json(text)) == text
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


L = {"kind": "laplace", "scale": "3/2", "move": {"l1": 1, "blocks": 1}}


def inside(leaf: Any) -> str:
    free = {"kind": "free"}
    tree = {"kind": "composed", "events": [free, free, {"kind": "repeated", "count": 2, "event": leaf}]}
    return json.dumps(tree)


@pytest.mark.parametrize(
    ("leaf", "path"),
    [
        ({**L, "scale": 2}, "scale"),
        ({**L, "scale": 1.5}, "scale"),
        ({**L, "scale": "1.5"}, "scale"),
        ({**L, "scale": "3"}, "scale"),
        ({**L, "scale": "6/4"}, "scale"),
        ({**L, "scale": "-3/2"}, "scale"),
        ({**L, "scale": "3/0"}, "scale"),
        ({**L, "scale": "03/2"}, "scale"),
        ({**L, "scale": "3/2\n"}, "scale"),
        ({**L, "scale": "٣/2"}, "scale"),
        ({**L, "scale": "9" * 5000 + "/2"}, "scale"),
        ({**L, "scale": None}, "scale"),
        ({**L, "scale": [[["3/2"]]]}, "scale"),
        ({**L, "move": {"l1": True, "blocks": 1}}, "move.l1"),
        ({**L, "move": {"l1": 1.0, "blocks": 1}}, "move.l1"),
        ({**L, "move": {"l1": 1, "blocks": "1"}}, "move.blocks"),
        ({**L, "move": {"l1": 1}}, "move"),
        ({**L, "move": {"l1": 1, "blocks": 1, "squared_l2": 1}}, "move"),
        ({**L, "move": 1}, "move"),
        ({**L, "extra": 1}, "extra"),
        ({"kind": "laplace", "scale": "3/2"}, "move"),
        ({"kind": "gauss"}, "kind"),
        ({"kind": ["laplace"]}, "kind"),
        ({"kind": None}, "kind"),
        ({}, "kind"),
        ({"kind": "free", "event": {"kind": "free"}}, "event"),
        ({"kind": "composed", "events": {"kind": "free"}}, "events"),
        ({"kind": "composed", "events": [{"kind": "free"}, 7]}, "events[1]"),
    ],
)
def test_bad_fields_are_refused_by_their_path(leaf: Any, path: str) -> None:
    with pytest.raises(AccountingError) as caught:
        from_json(inside(leaf))
    assert str(caught.value).startswith(f"events[2].event.{path}: ")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "leaf",
    [
        {**L, "scale": "0/1"},
        {**L, "move": {"l1": -1, "blocks": 1}},
        {**L, "move": {"l1": 1, "blocks": 0}},
        {**L, "move": {"squared_l2": 1}},
        {"kind": "stated", "epsilon": "1/1", "delta": "3/2"},
        {"kind": "repeated", "event": {"kind": "free"}, "count": -1},
        {**L, "move": {"l1": 2**5000, "blocks": 1}},
        {**L, "move": {"l1": 2**3000, "blocks": 2**3000}},
        "free",
        None,
        [],
    ],
)
def test_bad_values_are_refused_by_their_path(leaf: Any) -> None:
    with pytest.raises(AccountingError, match=r"^events\[2\]\.event(\.move)?: "):
        from_json(inside(leaf))


@pytest.mark.parametrize(
    "text",
    [
        *["", "{", "free", "[]", "null", "1e999", "NaN", '{"kind":NaN}', '{"kind":"free","kind":"free"}'],
        *['{"kind":"free"} {"kind":"free"}', "9" * 5000, "[" * 100_000, None, 3],
    ],
)
def test_what_is_no_event_is_refused(text: Any) -> None:
    with pytest.raises(AccountingError, match=r"^the event: "):
        from_json(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(AccountingError):
        from_json(text)


@given(events, st.data())
def test_damaged_texts_are_read_or_refused(event: PrivacyEvent, data: st.DataObject) -> None:
    text = to_json(event)
    place = data.draw(st.integers(0, len(text) - 1))
    damaged = text[:place] + data.draw(st.sampled_from('0129"{}[],:/-e. x')) + text[place + 1 :]
    with contextlib.suppress(AccountingError):
        assert to_json(from_json(damaged)) is not None  # any other error would get out


def nested(depth: int) -> PrivacyEvent:
    event: PrivacyEvent = Free()
    for _ in range(depth - 1):
        event = Repeated(event, 1)
    return event


def test_nesting_is_limited_the_same_way_in_and_out() -> None:
    deepest = nested(DEEPEST)
    assert from_json(to_json(deepest)) == deepest
    assert len(list(leaves(deepest))) == 1
    too_deep = nested(DEEPEST + 1)
    text = '{"count":1,"event":' + to_json(deepest) + ',"kind":"repeated"}'
    for refuse in (lambda: to_json(too_deep), lambda: list(leaves(too_deep)), lambda: from_json(text)):
        with pytest.raises(AccountingError, match="more than 64 deep"):
            refuse()


def test_events_refuse_what_is_no_event() -> None:
    with pytest.raises(AccountingError, match=r"^events\[1\]: must be an event, not str"):
        Composed([Free(), "free"])  # type: ignore[list-item]
    with pytest.raises(AccountingError, match=r"^event: must be an event, not int"):
        Repeated(3, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), True, None, "abc"])
def test_a_scale_is_positive(bad: Any) -> None:
    with pytest.raises(NumberError, match=r"scale must be.*LaplaceNoise\(move=L1Move\(1\), scale=2\)"):
        LaplaceNoise(move=L1Move(1), scale=bad)


@pytest.mark.parametrize("bad", [-1, 0.5, float("nan"), True, None, "abc"])
def test_a_move_is_a_number_of_steps(bad: Any) -> None:
    with pytest.raises(NumberError, match=r"l1 must be.*L1Move\(3, blocks=2\)"):
        L1Move(bad)
    with pytest.raises(NumberError, match=r"blocks must be.*L1Move\(3, blocks=2\)"):
        L1Move(1, blocks=bad)
    with pytest.raises(NumberError, match=r"squared must be.*L2Move\(18\)"):
        L2Move(bad)


def test_laplace_noise_needs_a_move_in_l1() -> None:
    with pytest.raises(AccountingError, match="needs a move in L1, not L2Move"):
        LaplaceNoise(move=L2Move(1), scale=1)  # type: ignore[arg-type]


def test_numbers_too_long_for_a_ledger_are_refused() -> None:
    assert from_json(to_json(LaplaceNoise(move=L1Move(2**4095), scale=Fraction(1, 2**4095)))).move.l1 == 2**4095  # type: ignore[union-attr]
    for make in (
        lambda: LaplaceNoise(move=L1Move(1), scale=Fraction(1, 2**4096)),
        lambda: LaplaceNoise(move=L1Move(2**4096), scale=1),
        lambda: Stated(epsilon=Fraction(2**5000), delta=0),
    ):
        with pytest.raises(UserError, match="1,200 digits"):
            make()


def test_leaves_are_counted() -> None:
    tree = Composed([Repeated(Composed([Free(), Repeated(Stated(epsilon=1, delta=0), 3)]), 2), Free()])
    assert list(leaves(tree)) == [
        ("events[0].event.events[0]", Free(), 2),
        ("events[0].event.events[1].event", Stated(epsilon=1, delta=0), 6),
        ("events[1]", Free(), 1),
    ]
    assert list(leaves(Free())) == [("the event", Free(), 1)]


def test_a_tree_of_shared_branches_is_refused_before_it_fills_the_time() -> None:
    tree: PrivacyEvent = Free()
    for _ in range(40):
        tree = Composed([tree, tree])
    with pytest.raises(AccountingError, match="Use Repeated"):
        list(leaves(tree))


# --- fixed batches -------------------------------------------------------------------------------


def a_batch(*parts: PrivacyEvent) -> FixedBatch:
    return FixedBatch(events=parts, epsilon=1, delta=1e-6, method="pld/1")


def test_a_batch_is_one_leaf_and_can_be_opened() -> None:
    one = LaplaceNoise(move=L1Move(1), scale=2)
    batch = a_batch(one, Repeated(one, 3))
    assert list(leaves(Composed([Free(), Repeated(batch, 2)])))[1:] == [("events[1].event", batch.stated, 2)]
    assert opened(Repeated(batch, 2)) == Repeated(Composed([one, Repeated(one, 3)]), 2)


def test_a_batch_in_a_batch_is_refused_wherever_it_hides() -> None:
    for inner in (a_batch(), Composed([Free(), a_batch()]), Repeated(a_batch(Free()), 2)):
        with pytest.raises(AccountingError, match=r"^events\[1\].*: a fixed batch can't have another one inside"):
            a_batch(Free(), inner)
        tree = {"kind": "fixed_batch", "epsilon": "1/1", "delta": "0/1", "method": "pld/1", "events": []}
        with pytest.raises(AccountingError, match="another one inside"):
            from_tree({**tree, "events": [to_tree(Free()), to_tree(inner)]})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"epsilon": "-1/1"}, "epsilon"),
        ({"delta": "2/1"}, "delta must be at most 1"),
        ({"method": "pld"}, "a name and a version"),
        ({"method": 1}, "method: must be a text"),
        ({"method": "PLD/1\n"}, "a name and a version"),
        ({"events": {}}, "must be a list"),
        ({"events": [{"kind": "gauss"}]}, r"events\[0\]\.kind"),
        ({"extra": 1}, "has no such field"),
    ],
)
def test_malformed_batches_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(AccountingError, match=said):
        from_tree({**to_tree(a_batch(Free())), **wrong})


def test_the_depth_of_a_batch_is_limited() -> None:
    deep: PrivacyEvent = Free()
    for _ in range(DEEPEST - 2):
        deep = Composed([deep])
    assert from_json(to_json(a_batch(deep))) == a_batch(deep)
    with pytest.raises(AccountingError, match="nested more than"):
        a_batch(Composed([deep]))
    with pytest.raises(AccountingError, match="nested more than"):
        list(leaves(Composed([a_batch(deep)])))


def test_something_unknown_in_a_batch_is_refused_when_it_is_priced() -> None:
    inner = Repeated(Free(), 2)
    batch = a_batch(inner)
    object.__setattr__(inner, "event", "gauss")  # the constructor would have refused it already
    with pytest.raises(AccountingError, match=r"^events\[0\]\.event: str is not a known kind"):
        list(leaves(batch))
