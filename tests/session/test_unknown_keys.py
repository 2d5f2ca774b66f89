"""Questions whose keys are not public: found by a mechanism, paid for at once, checked by anyone."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import privet as pv
from privet.codec import canonical
from privet.engines.sql.engine import SQLLooks
from privet.errors import QueryError, UserError, VerificationError
from privet.mechanisms.thresholds import GaussianThreshold, OptimalSelection, TruncatedThreshold
from privet.planner import ReleasePlan, finding, plan
from privet.planner.kept import Kept
from privet.planner.linear import Linear
from privet.planner.noise import Noise
from privet.privacy.moves import L1Move
from privet.release import checker
from privet.release.certificate import Certificate
from privet.tables.discovered import Discovered

SIZES = {"Rome": 80, "Köln": 70, "日本": 60, "tiny": 1, "x" * 201: 50, "line\nbreak": 50, None: 50}
SEXES = ("f", "m")
BUDGET = pv.ApproxDP(1000, 1e-6)


def rows() -> pa.Table:
    towns = [town for town, people in SIZES.items() for _ in range(people)]
    ids = list(range(len(towns)))
    # each person has a second row: of the same town, and of nowhere
    return pa.table({
        "id": [*ids, *ids], "town": [*towns, *[None] * len(ids)], "sex": [SEXES[i % 2] for i in [*ids, *ids]],
        "code": pa.array([10**9 if i % 2 else 7 for i in [*ids, *ids]]), "x": [float(i % 10) for i in [*ids, *ids]],
    })  # fmt: skip


def table(*, adjacency: str = "add/remove", max_rows: int = 2, data: Any = None) -> pv.Table:
    columns = {"town": pv.text(), "sex": pv.keys(*SEXES), "code": pv.integer(0, 2**40), "x": pv.number(0, 10)}
    protect = pv.person("id", max_rows=max_rows)
    return pv.table("people", rows() if data is None else data, protect=protect, adjacency=adjacency, columns=columns)


PEOPLE = table()
BY_TOWN = PEOPLE.group_by("town").agg(n=pv.count(), x=pv.mean("x"))
COUNTED = PEOPLE.group_by("town").agg(n=pv.count_people())
FOUND = ["Köln", "Rome", "日本"]


@pytest.fixture(params=["duckdb", "reference"])
def session(request: pytest.FixtureRequest) -> Iterator[pv.Session]:
    with pv.Session([PEOPLE], budget=BUDGET, ledger=None, engine=request.param) as opened:
        yield opened


@pytest.fixture
def one() -> Iterator[pv.Session]:
    with pv.Session([PEOPLE], budget=BUDGET, ledger=None) as opened:
        yield opened


def test_what_is_found_and_what_never_appears(session: pv.Session) -> None:
    answer = session.release(BY_TOWN, epsilon=20)
    assert answer.values("town") == FOUND
    assert [abs(n - SIZES[town]) < 30 for n, town in zip(answer.values("n"), FOUND, strict=True)] == [True] * 3
    assert answer.spent == pv.ApproxDP(20, Fraction(1, 10**8))
    assert pv.verify(answer.certificate, ledger=session.ledger).ledger
    assert session.release(BY_TOWN, epsilon=20).paid_before
    assert str(session.release(BY_TOWN, epsilon=20)).startswith("town")


def test_people_are_counted_with_the_noise_that_finds_them(session: pv.Session) -> None:
    made = session.plan(COUNTED, epsilon=8)
    assert made.discovery is not None
    assert isinstance(made.discovery.selection, TruncatedThreshold)
    answer = session.release(made)
    assert answer.values("town") == FOUND
    assert made.scales == (Fraction(2, 8),)
    pv.verify(answer.certificate, ledger=session.ledger)
    again = session.release(COUNTED, epsilon=8)
    assert again.paid_before
    assert again.to_dicts() == answer.to_dicts()


ALONE = PEOPLE.group_by("town").agg()


def test_keys_alone_cost_the_whole_price_and_have_no_numbers(session: pv.Session) -> None:
    made = session.plan(ALONE, epsilon=8)
    assert made.discovery is not None
    assert isinstance(made.discovery.selection, OptimalSelection)
    assert made.discovery.selection.epsilon == 8
    assert (made.noised, made.statements()) == ((), ())
    answer = session.release(made)
    assert answer.values("town") == FOUND
    assert answer.spent == pv.ApproxDP(8, "1e-8")
    assert answer.to_dicts() == [{"town": town} for town in FOUND]
    assert str(answer).splitlines()[: len(FOUND) + 1] == ["town", *FOUND]
    assert "each person counted in at most 2 groups" in " ".join(answer.limits)
    assert "<th" in answer._repr_html_()
    assert answer.chart().startswith("town")
    with pytest.raises(UserError, match="no number to draw"):
        answer.plot()
    pv.verify(answer.certificate, ledger=session.ledger)
    again = session.release("SELECT town FROM people GROUP BY town", epsilon=8)
    assert again.paid_before
    assert again.to_dicts() == answer.to_dicts()
    assert session.paid_before(ALONE, epsilon=8) == answer.guarantee
    text = " ".join(session.explain("SELECT town FROM people GROUP BY town", epsilon=1).split())
    assert "Guarantee epsilon 1, delta 1e-8 for the keys" in text
    assert "Those with fewer count more" in text


def test_keys_alone_find_more_than_counts_do() -> None:
    """At the same price; and people who hold one key count more than those who hold several."""
    with pv.Session([PEOPLE], budget=BUDGET, ledger=None) as session:
        alone, counted, by_town = (session.plan(q, epsilon=1).discovery for q in (ALONE, COUNTED, BY_TOWN))
    assert alone is not None and counted is not None and by_town is not None  # noqa: PT018
    needed = [alone.selection.people_for(0.5, keys=1), counted.selection.people_for(0.5)]
    assert needed[0] < needed[1] < by_town.selection.people_for(0.5, keys=2)


def test_only_keys_that_are_not_public_can_be_asked_for_alone(one: pv.Session) -> None:
    with pytest.raises(QueryError, match="needs at least one aggregate"):
        PEOPLE.group_by("sex").agg()
    with pytest.raises(QueryError, match="the values of 'sex' are public"):
        PEOPLE.group_by("town", "sex").agg()
    with pytest.raises(UserError, match="for the groups, write GROUP BY x"):
        one.release("SELECT DISTINCT town FROM people", epsilon=1)
    with pytest.raises(UserError, match="needs an aggregate"):
        one.release("SELECT sex FROM people GROUP BY sex", epsilon=1)


def test_unknown_keys_with_declared_ones_and_with_each_other(session: pv.Session) -> None:
    answer = session.release(PEOPLE.group_by("sex", "town").agg(n=pv.count_people()), epsilon=20)
    assert list(zip(answer.values("sex"), answer.values("town"), strict=True)) == [(s, t) for s in SEXES for t in FOUND]
    pv.verify(answer.certificate)
    both = session.release("SELECT code, town, COUNT(*) AS n FROM people GROUP BY code, town", epsilon=20)
    pairs = [(code, town) for code in (7, 10**9) for town in FOUND]
    assert list(zip(both.values("code"), both.values("town"), strict=True)) == pairs
    pv.verify(both.certificate)


def test_rows_that_are_protected_on_their_own() -> None:
    data = pa.table({"town": ["a"] * 60 + ["b"]})
    visits = pv.table("visits", data, protect=pv.each_row(), columns={"town": pv.text()}, adjacency="replace")
    with pv.Session([visits], budget=BUDGET, ledger=None) as session:
        answer = session.release("SELECT town, COUNT(*) AS n FROM visits GROUP BY town", epsilon=3, delta=1e-7)
        assert answer.values("town") == ["a"]
        assert answer.spent == pv.ApproxDP(3, "1e-7")
        pv.verify(answer.certificate)
        assert "rows" in session.explain("SELECT town, COUNT(*) FROM visits GROUP BY town", epsilon=3)
        both = session.plan(visits.group_by("town").agg(n=pv.count(), people=pv.count_people()), epsilon=3)
        assert isinstance(both.discovery.selection, OptimalSelection)  # type: ignore[union-attr]
    once = table(max_rows=1)
    with pv.Session([once], budget=BUDGET, ledger=None) as session:
        made = session.plan("SELECT town, COUNT(*) AS n FROM people GROUP BY town", epsilon=8)
        assert isinstance(made.discovery.selection, TruncatedThreshold)  # type: ignore[union-attr]
        pv.verify(session.release(made).certificate)


@pytest.mark.parametrize("max_rows", [1, 2, 40])
def test_a_stored_answer_with_less_noise_is_free(max_rows: int) -> None:
    """It keeps its own keys, threshold and intervals. One at another delta is another question."""
    asked = table(max_rows=max_rows)
    for aggregate in (pv.count(), pv.count_people()):
        query = asked.group_by("town").agg(n=aggregate)
        with pv.Session([asked], budget=BUDGET, ledger=None) as session:
            kinds = [type(session.plan(query, epsilon=epsilon).discovery.selection) for epsilon in (40, 10)]  # type: ignore[union-attr]
            first = session.release(query, epsilon=40)
            again = session.release(query, epsilon=40)
            assert again.paid_before
            assert again.to_dicts() == first.to_dicts()
            cheaper = session.release(query, epsilon=10)
            free = kinds[0] is kinds[1] and kinds[0] is not OptimalSelection
            assert cheaper.paid_before is free
            if free:
                assert cheaper.to_dicts() == first.to_dicts()
                assert cheaper.guarantee == first.guarantee
                assert session.paid_before(query, epsilon=10) == first.guarantee
            assert not session.release(query, epsilon=40, delta=1e-9).paid_before


# --- what is decided before data are read --------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add/remove", "replace"])
@pytest.mark.parametrize(("max_rows", "kind"), [(1, TruncatedThreshold), (2, None), (3, None), (40, GaussianThreshold)])
def test_t16_a_key_of_one_person_appears_with_delta_at_most(adjacency: str, max_rows: int, kind: type | None) -> None:
    """And the event, the moves and the scales are those of the plan, whatever is found."""
    asked = table(adjacency=adjacency, max_rows=max_rows)
    with pv.Session([asked], budget=BUDGET, ledger=None) as session:
        for query in (asked.group_by("town").agg(n=pv.count()), asked.group_by("town").agg(n=pv.count_people())):
            made = session.plan(query, epsilon=1, delta=1e-6)
            assert made.discovery is not None
            chosen = made.discovery.selection
            assert (chosen.max_keys, str(chosen.adjacency), chosen.delta) == (max_rows, adjacency, Fraction(1, 10**6))
            assert chosen.leak().upper <= chosen.delta
            weight, chance = chosen.weight(1), chosen.probability(1)
            if isinstance(chosen, OptimalSelection):  # of all keys that a person can hold alone, one
                chance = max((chosen.probability(1, keys=g) for g in range(1, max_rows + 1)), key=float)
                assert all(g * chosen.weight(g) <= weight for g in range(1, max_rows + 1))
            assert chance.upper <= chosen.delta
            if kind is not None and query.aggregates[0][1] == pv.count():
                assert type(chosen) is kind
            assert made.guarantee().implies(pv.ApproxDP(1, 1e-6))
            for found in ([], [("one",)], [("one",), ("two",)]):
                resolved = made.resolved(found)
                assert resolved.event() == made.event()
                assert [part.move for part in resolved.noised] == [part.move for part in made.noised]
                assert [s.bounding for s in resolved.statements()] == [s.bounding for s in made.statements()]
            total = made.noised[0].move.total
            assert total == max_rows * (2 if adjacency == "replace" else 1)  # as for two groups, even if one is found


def test_one_debit_of_the_whole_price_before_any_row_is_read(one: pv.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    order, asked = [], SQLLooks.holders

    def noted(self: Any, statement: Any) -> Any:
        order.append(one.ledger.balance(one.name).spent)
        return asked(self, statement)

    monkeypatch.setattr(SQLLooks, "holders", noted)
    before = one.spent
    one.release(BY_TOWN, epsilon=2)
    assert len(order) == 1
    assert order[0] != before
    assert order[0] == one.spent


def test_refusals(one: pv.Session) -> None:
    with pv.Session([PEOPLE], budget=pv.PureDP(3), ledger=None) as pure:
        for options in ({"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}):
            with pytest.raises(QueryError, match=r"which values of 'town' occur is private.*the budget has none") as no:
                pure.release(BY_TOWN, **options)
            assert 'pv.keys("north"' in str(no.value)
        with pytest.raises(QueryError, match=r"bins\(\"code\""):
            pure.release(PEOPLE.group_by("code").agg(n=pv.count()), epsilon=1)
        assert pure.remaining.guarantee == pv.PureDP(3)
    rho = pv.Session([PEOPLE], budget=pv.ZeroConcentratedDP(3), ledger=None)
    with rho, pytest.raises(QueryError, match="the budget has none"):
        rho.release(BY_TOWN, rho=1)
    with pytest.raises(UserError):
        one.release(BY_TOWN, rho=1)
    with pytest.raises(QueryError, match="the error of 'x' depends on the number of rows in a group"):
        one.release(BY_TOWN, within={"x": 1})
    with pytest.raises(QueryError, match="keys alone have no errors"):
        one.release(ALONE, within={"n": 10})
    with pytest.raises(QueryError, match="there is no column 'm'"):
        one.release(COUNTED, within={"m": 10})
    with pytest.raises(QueryError, match="no noise scale is known"):
        one.release(BY_TOWN, within={"x": "1e-12"}, assuming=1)
    with pytest.raises(QueryError, match="at most 5 keys"):
        PEOPLE.group_by(**{f"k{i}": "town" for i in range(6)})
    assert one.spent == pv.Session([PEOPLE], budget=BUDGET, ledger=None).spent


@pytest.mark.parametrize(
    ("query", "errors", "options"),
    [(COUNTED, {"n": 6}, {}), (BY_TOWN, {"n": 30, "x": 2}, {"assuming": 100})],
    ids=["people", "numbers"],
)
def test_errors_are_kept_at_the_smallest_epsilon(
    one: pv.Session, query: pv.Query, errors: dict[str, Any], options: dict[str, Any]
) -> None:
    made = one.plan(query, within=errors, **options)
    epsilon, delta = made.price.epsilon, made.price.delta  # type: ignore[union-attr]
    assert delta == Fraction(1, 10**8)
    assert all(made.expected(name) <= error for name, error in errors.items())
    less = one.plan(query, epsilon=epsilon * Fraction(98, 100), **options)
    assert any(less.expected(name) > error for name, error in errors.items())
    assert made == one.plan(query, epsilon=epsilon, **options)
    pv.verify(one.release(made).certificate)


def test_the_share_of_delta_is_the_steward_s() -> None:
    with pv.Session([PEOPLE], budget=BUDGET, ledger=None, delta_share=0.1) as session:
        assert session.plan(BY_TOWN, epsilon=1).price == pv.ApproxDP(1, "1e-7")
        assert session.plan(BY_TOWN, epsilon=1, delta=1e-9).price == pv.ApproxDP(1, "1e-9")
    with pytest.raises(UserError, match="delta_share"):
        pv.Session([PEOPLE], budget=BUDGET, ledger=None, delta_share=2)


def test_explain_tells_how_many_people_a_key_needs(one: pv.Session) -> None:
    text = " ".join(one.explain(COUNTED, epsilon=1).split())
    chosen = TruncatedThreshold(epsilon=1, delta="1e-8", max_keys=2, adjacency="add/remove")
    assert f"with {chosen.people_for(0.5)} people appears with a probability of 50 %" in text
    assert f"one with {chosen.people_for(0.95)} with 95 %" in text
    assert "The noisy counts that decide this are the answer" in text
    text = " ".join(one.explain(BY_TOWN, epsilon=1).split())
    assert "epsilon 0.5 for the keys + 0.5 for the numbers = 1, delta 1e-8" in text


def test_errors_are_not_overpaid_where_the_mechanism_changes() -> None:
    """At epsilon 0.335 a truncated threshold keeps the error; from about 0.4 on another one does not, until 0.544."""
    asked = table(max_rows=15).group_by("town").agg(n=pv.count_people())
    made = plan(asked, within={"n": 165}, delta="1e-8")
    assert made.price == pv.ApproxDP("0.335", "1e-8")
    below, after = (plan(asked, epsilon=epsilon, delta="1e-8").expected("n") for epsilon in ("0.334", "0.45"))
    assert made.expected("n") == 165
    assert below is not None
    assert after is not None
    assert below > 165
    assert after > 165


def test_limits_tell_how_many_people_a_key_needs_at_least_and_at_most() -> None:
    eight = table(max_rows=8).group_by("town")
    chosen = OptimalSelection(epsilon=1, delta="1e-8", max_keys=8, adjacency="add/remove")
    alone, even = chosen.people_for(0.5, keys=1), chosen.people_for(0.5)
    assert alone < even
    limits = finding.limits(plan(eight.agg(), epsilon=1, delta="1e-8"))
    assert limits[0].startswith(f"values of town that {alone} to {even} people have (fewer if each has few values) app")
    assert limits[1] == "at most 10,000 groups"
    counted = TruncatedThreshold(epsilon=1, delta="1e-8", max_keys=8, adjacency="add/remove")
    limits = finding.limits(plan(eight.agg(n=pv.count_people()), epsilon=1, delta="1e-8"))
    assert limits[0].startswith(f"values of town that {counted.people_for(0.5)} people have appear half of the time")


def test_the_number_of_groups_is_bounded() -> None:
    groups = Discovered(((), tuple(range(4000))), (0,))
    assert (groups.limit, groups.most, groups.ceiling) == (2, 8000, 8000)
    some = groups.resolved((("c",), ("a",), ("b",)))
    assert (some.found, some.most) == ((("a",), ("b",)), 8000)
    made = TruncatedThreshold(epsilon=1, delta=1e-6, max_keys=1, adjacency="add/remove")
    from privet.planner.discovery import Discovery
    from privet.tables.expressions.nodes import Column
    from privet.tables.holders import Held, Holders
    from privet.tables.statement import PeopleInGroups

    holders = Holders(PEOPLE.relation.input, (Column("town"),), PeopleInGroups(1))
    held = [Held((f"t{i}",), 1, 1000 * (i + 1)) for i in range(4)]
    found, counts = Discovery(holders, made).drawn(held, 2)
    assert found == (("t2",), ("t3",))  # the largest noisy counts, in the order of keys
    assert counts is not None
    assert [round(n / 1000) for n in counts] == [3, 4]


# --- an answer with nothing in it --------------------------------------------------------------------------------


def test_nothing_found_renders_everywhere(session: pv.Session) -> None:
    for query in (
        PEOPLE.where(pv.col("town").starts_with("tiny")).group_by("town", "code").agg(n=pv.count_people()),
        PEOPLE.where(pv.col("town").starts_with("tiny")).group_by("town", "sex").agg(n=pv.count(), x=pv.mean("x")),
    ):
        answer = session.release(query, epsilon=1, simultaneous=True)
        assert len(answer) == 0
        assert "was found" in str(answer)
        assert "was found" in answer._repr_html_()
        assert answer.to_arrow().num_rows == 0
        assert answer.to_arrow().schema.field("town").type == pa.string()
        assert answer.to_pandas().empty
        assert answer.to_dicts() == []
        assert answer.chart()
        with pytest.raises(UserError, match="nothing to draw"):
            answer.plot()
        pv.verify(answer.certificate)
        assert session.release(query, epsilon=1, simultaneous=True).paid_before


def test_a_key_that_would_be_a_formula_is_a_text_in_csv_and_itself_in_parquet() -> None:
    import csv
    import io

    keys = ["'=1+2", "'s-Gravenhage", "+1", "-1", "=1+2", "@a", "Köln"]
    data = pa.table({"id": range(700), "town": keys * 100, "sex": ["f"] * 700, "code": [1] * 700, "x": [-5.0] * 700})
    of = table(data=data, max_rows=1)
    with pv.Session([of], budget=BUDGET, ledger=None) as session:
        answer = session.release(of.group_by("town").agg(n=pv.count_people(), x=pv.sum("x")), epsilon=50)
    read = list(csv.DictReader(io.StringIO(answer.to_csv(notes=False))))
    assert [row["town"] for row in read] == ["''=1+2", "'s-Gravenhage", "'+1", "'-1", "'=1+2", "'@a", "Köln"]
    assert not any(row["town"].startswith(("=", "+", "-", "@")) for row in read)
    assert answer.to_arrow()["town"].to_pylist() == keys
    assert [int(row["n"]) for row in read] == answer.values("n")
    assert min(float(row["x_low"]) for row in read) < 0, "numbers keep their sign"


# --- certificates ------------------------------------------------------------------------------------------------


def tampered(certificate: Certificate, *path: Any, to: Any) -> Certificate:
    document = copy.deepcopy(certificate.document)
    inner = document
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = to
    return Certificate.from_json(canonical({"document": document, "signature": None}))


@pytest.mark.parametrize("query", [BY_TOWN, COUNTED, ALONE], ids=["numbers", "people", "keys"])
def test_what_was_altered_is_noticed(one: pv.Session, query: pv.Query) -> None:
    certificate = one.release(query, epsilon=8).certificate
    pv.verify(certificate)
    for path, to in (
        (["found"], [["Köln"], ["Rome"], ["Roma"]]),  # not in its order
        (["found"], [["Köln"], ["Rome"]]),
        (["found"], [["Köln"], ["Rome"], ["a\nb"]]),
        (["found"], [["Köln"], ["Rome"], [7]]),
        (["derived", "discovery", "delta"], "1/1000"),
        (["derived", "discovery", "max_keys"], 1),
        (["derived", "discovery", "adjacency"], "replace"),
        (["derived", "discovery", "epsilon"], "1/10"),
    ):
        with pytest.raises(VerificationError):
            pv.verify(tampered(certificate, *path, to=to))


def test_the_checker_alone_notices(one: pv.Session) -> None:
    """It reads the statements and the noise, and never asks the planner."""
    for query in (BY_TOWN, COUNTED, ALONE):
        document = one.release(query, epsilon=8).certificate.document
        derived, noisy = document["derived"], document["noisy"]
        assert checker.check(derived, noisy).implies(pv.ApproxDP(8, "1e-8"))
        wrong = {
            "mechanism": "Nothing", "max_keys": 1, "adjacency": "replace", "delta": "1/10000000000", "epsilon": "1/100",
        }  # fmt: skip
        for name, value in wrong.items():
            other = copy.deepcopy(derived)
            other["discovery"][name] = value
            with pytest.raises(VerificationError):
                checker.check(other, noisy)
        other = copy.deepcopy(derived)
        other["discovery"]["holders"]["bounding"]["groups"] = 3
        with pytest.raises(VerificationError, match="a person can hold 3 keys"):
            checker.check(other, noisy)
        if query is ALONE:
            other = copy.deepcopy(derived)
            other["discovery"]["mechanism"] = "TruncatedThreshold"
            with pytest.raises(VerificationError, match="finds keys with their counts"):
                checker.check(other, noisy)
            continue
        other = copy.deepcopy(derived)
        other["measurements"][0]["groups"] = 2
        with pytest.raises(VerificationError, match="fewer groups were paid for"):
            checker.check(other, noisy)
        if query is COUNTED:
            with pytest.raises(VerificationError, match="below the threshold"):
                checker.check(derived, [[[3], *noisy[0][1:]]])


def test_counts_that_find_keys_are_of_no_more_rows_than_was_paid_for(one: pv.Session) -> None:
    """Their noise is paid for with the keys alone, so that the claims of the measurement prove nothing."""
    document = copy.deepcopy(one.release(COUNTED, epsilon=8).certificate.document)
    derived, noisy = document["derived"], document["noisy"]
    derived["statements"][0]["bounding"]["groups"] *= 50
    (measured,) = derived["measurements"]
    measured["move"]["blocks"] *= 50
    measured["price"] = {"kind": "pure", "epsilon": "400/1"}
    with pytest.raises(VerificationError, match="counts for more than the keys were paid for"):
        checker.check(derived, noisy)


def test_a_certificate_is_json_that_reads_the_same(one: pv.Session) -> None:
    text = one.release(COUNTED, epsilon=8).certificate.to_json()
    assert json.loads(text)["document"]["found"] == [[town] for town in FOUND]
    pv.verify(text)


# --- intervals of counts that are shown because they are large ---------------------------------------------------


@pytest.mark.parametrize("epsilon", ["1/2", 2])
def test_intervals_cover_given_that_a_count_is_shown(epsilon: Any) -> None:
    """Exactly, for every count, given that it is shown, and given that it is not marked; a naive interval does not."""
    made = TruncatedThreshold(epsilon=epsilon, delta=1e-6, max_keys=1, adjacency="add/remove")
    form, noise = Linear(((0, 0, Fraction(1)),)), Noise(_laplace(), (made.scale,))
    level, top = Fraction(19, 20), made.threshold + 200
    output = Kept(form, True, law=made.noise)
    shown = range(made.threshold, top)
    cells = output.cells([[[x]] for x in shown], noise, level)
    half = int(noise.half_width(form, level))
    law = Counter({k: float(made.noise.pmf(k)) for k in range(made.noise.lowest, made.noise.highest + 1)})
    assert sum(law.values()) == pytest.approx(1)
    naive = 1.0
    for n in range(1, made.threshold + 60):
        chances = {x: law[x - n] for x in shown}
        for some in (list(shown), [x for i, x in enumerate(shown) if not cells.noisy[i]]):
            total = sum(chances[x] for x in some)
            if not total:  # noise that ends does not lead there
                continue
            right = sum(
                chances[x] for x in some if cells.low[x - made.threshold] <= n <= cells.high[x - made.threshold]
            )
            assert right / total >= 0.95
        naive = min(naive, sum(chances[x] for x in shown if abs(x - n) <= half) / sum(chances.values()))
    assert naive < 0.1


def _laplace() -> Any:
    from privet.mechanisms import DEFAULT

    return DEFAULT


def test_plans_are_values(one: pv.Session) -> None:
    first, second = (one.plan(COUNTED, epsilon=1) for _ in range(2))
    assert first == second
    assert isinstance(first, ReleasePlan)
    assert one.release(first).plan.noised[0].move == L1Move(1, blocks=2)
    assert first.to_json()["derived"]["discovery"]["mechanism"] == "TruncatedThreshold"


def test_counts_are_integers_whatever_keys_are_found() -> None:
    """The same types for the same question: of many keys, and of none."""
    counts: Any = {"n": pv.count(), "k": pv.count_people(), "m": pv.mean("x"), "d": pv.count_distinct("x")}
    found = []
    for people in (300, 1):
        rows = pa.table({"who": [*range(people)] * 2, "town": ["Rome"] * (2 * people), "x": [3, 4] * people})
        declared: Any = {"town": pv.text(), "x": pv.integer(0, 9)}
        table = pv.table("visits", rows, protect=pv.person("who", max_rows=2), columns=declared)
        with pv.Session([table], budget=pv.ApproxDP(9, 1e-5), ledger=None) as session:
            answer = session.release(table.group_by("town").agg(**counts), epsilon=4, delta=1e-6)
        found.append((answer.to_arrow().num_rows, answer.to_arrow().schema.remove_metadata()))
    assert [rows for rows, _ in found] == [1, 0]
    assert found[0][1] == found[1][1]
    assert [str(found[0][1].field(name).type) for name in ("n", "n_low", "k", "d", "m")] == ["int64"] * 4 + ["double"]
