"""The public surface, pinned: a name is added or taken away here, in the open, or not at all."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import privet

FACE = """
    AboveThreshold Adjacency ApproxDP BudgetError Certificate Dataset DatasetClosed Exponential Gaussian
    InternalError Laplace LedgerBusy LedgerError NoAnswer PermuteAndFlip PrivetError PublicTable PureDP Query
    RandomizedResponse Release ReleasePlan ReportNoisyMax Session Staircase Table UserError ZeroConcentratedDP
    accounting adjacency approx_bounds audit bins boolean col connect count count_distinct count_people date dbapi
    distances distributions divergences duckdb_file each_row epsilon_for
    errors events exact greatest grouping guarantees
    histogram import_csv integer interval_high interval_low keys keys_from least ledger lit make_survey max mean
    mechanisms median min new_signing_key noise number open_ledger person planner public_table quantile quantiles
    release sensitivity sources statistics std sum table text timestamp total variance verify when
"""
MODULES = {
    "accounting": """
        ACCOUNTANTS Accountant ApproxAccountant BatchAccountant ConcentratedAccountant MeterAccountant PureAccountant
        Share Shown accountant_for accountant_named fixed_batch guarantee_of
    """,
    "audit": "SamplerReport verify_all verify_choice verify_sampler",
    "adjacency": "Adjacency EachRow Person Protected each_row person",
    "distances": "hamming l1 l2_squared l2_up linf symmetric",
    "distributions": "Laplace",
    "divergences": """
        Distribution Finite PrivacyProfile hockey_stick indistinguishable max_divergence privacy_profile
        total_variation Located
    """,
    "errors": """
        AccountingError BudgetError DataError DatasetClosed EntropyError Face InternalError LedgerBusy LedgerError
        NoAnswer NoBounds NoConnection NoSensitivity NotChecked NumberError Place PolicyError PrivetError QueryError
        Remedy ReusedRequest SourceError Subject TooManyGroups UserError VerificationError argument install write
    """,
    "events": """
        BoundedRange Composed DEEPEST FixedBatch Free GaussianNoise JointGaussian LaplaceNoise PrivacyEvent Repeated
        Stated from_json from_tree leaves move_to_tree opened to_json to_tree
    """,
    "exact": """
        Enclosure Exact INFINITY Number ball binary down enclose ends exact exp floor less literal nearest nonnegative
        positive precision probability rounded_up shorter_up show show_up six_digits_up sqrt_up up whole
    """,
    "guarantees": """
        ApproxDP Budget Guarantee PureDP ZeroConcentratedDP budget_of delta_for_population show_down stricter
    """,
    "ledger": """
        Balance CLOSES_AFTER CLOSES_FOR Caps Charge Dataset Entry Ledger Limit Outcome Ration Receipt
        Remaining TableFacts Totals Verified memory_ledger open_ledger verify_export
    """,
    "dbapi": """
        BINARY BOOLEAN Binary Connection Cursor DATETIME DataError DatabaseError Date DateFromTicks Error IntegrityError
        InterfaceError InternalError NUMBER NotSupportedError OperationalError ProgrammingError ROWID STRING Time
        TimeFromTicks Timestamp TimestampFromTicks Warning apilevel connect paramstyle threadsafety
    """,
    "mechanisms": """
        AboveThreshold DEFAULT Exponential GAUSSIAN Gaussian Laplace NOISE NoiseMechanism PermuteAndFlip
        RandomizedResponse ReportNoisyMax ResponseCount SELECTION SelectionMechanism Staircase epsilon_for named serves
        short
    """,
    "noise": """
        Bernoulli BernoulliExp DiscreteGaussian DiscreteLaplace DiscreteStaircase Geometric TruncatedLaplace
        UniformInteger
    """,
    "planner": "ReleasePlan plan",
    "release": "Certificate Release Verification new_signing_key verify",
    "sensitivity": """
        Counterexample Interpolation count diameter for_rows histogram l1_move l2_move max mean median min quantile
        radius search std sum variance
    """,
    "sources": "ImportReport duckdb_file import_csv keys_from public_table table",
    "statistics": """
        Estimate RankEstimate laplace_max laplace_median laplace_min laplace_quantile max mean median min quantile std
        sum variance
    """,
}
NEVER_BY_DEFAULT = {
    "epsilon", "delta", "rho", "scale", "lower", "upper", "unit", "protect", "sensitivity", "max_rows", "adjacency",
    "confidence", "error", "claimed",
}  # fmt: skip
ALLOWED = {
    # one of epsilon and scale must be given; neither has a value of its own
    ("mechanisms.Laplace", "epsilon"),
    ("mechanisms.Laplace", "scale"),
    # one of rho, sigma, and epsilon with delta must be given; none has a value of its own
    ("mechanisms.Gaussian", "delta"),
    ("mechanisms.Gaussian", "epsilon"),
    ("mechanisms.Gaussian", "rho"),
    # no privacy parameters: how sure a reader wants to be, and (epsilon, 0) as the question that is asked
    ("mechanisms.AboveThreshold.error", "confidence"),
    ("mechanisms.RandomizedResponse.error", "confidence"),
    ("mechanisms.RandomizedResponse.estimate", "confidence"),
    ("mechanisms.ReportNoisyMax.error", "confidence"),
    ("mechanisms.Staircase.error", "confidence"),
    ("mechanisms.Staircase.interval", "confidence"),
    ("statistics.Estimate.error", "confidence"),
    ("statistics.Estimate.interval", "confidence"),
    ("statistics.RankEstimate.rank_error", "confidence"),
    ("divergences.indistinguishable", "delta"),
    # max_rows, or max_groups and max_rows_per_group must be given; neither has a value of its own
    ("adjacency.Person", "max_rows"),
    ("adjacency.person", "max_rows"),
    # epsilon, rho or within must be given
    ("planner.plan", "epsilon"),
    ("planner.plan", "delta"),
    ("planner.plan", "rho"),
    ("planner.ReleasePlan", "delta"),
    ("planner.plan", "confidence"),
    # each statement must name its price otherwise
    ("dbapi.connect", "epsilon"),
    # that a person is in the table or not is what most people mean
    ("sources.table", "adjacency"),
}


def load(name: str) -> ModuleType:
    module = getattr(privet, name)
    assert inspect.ismodule(module)
    return module


def public_names(module: ModuleType) -> list[str]:
    """`__all__`, or what the file itself defines without an underscore."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    names = []
    for node in ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.append(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
    return sorted({name for name in names if not name.startswith("_")})


def things() -> Iterator[tuple[str, Any]]:
    """Every public function and class, with its dotted name; and every public method."""
    for name in MODULES:
        for part in public_names(load(name)):
            thing = getattr(load(name), part)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                yield f"{name}.{part}", thing
            if inspect.isclass(thing):
                for method, value in vars(thing).items():
                    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
                    if inspect.isfunction(function) and not method.startswith("_"):
                        yield f"{name}.{part}.{method}", function


def test_the_face() -> None:
    assert sorted(privet.__all__) == sorted(FACE.split())
    assert privet.__all__ == sorted(privet.__all__)
    assert dir(privet) == sorted([*FACE.split(), "__version__"])
    for name in privet.__all__:
        assert getattr(privet, name) is not None
    assert privet.Laplace is load("mechanisms").Laplace
    assert {name for name in privet.__all__ if inspect.ismodule(getattr(privet, name))} == set(MODULES)


def test_the_version_is_the_project_s() -> None:
    from importlib.metadata import version

    assert privet.__version__ == version("privet")


def test_a_name_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'avg'\. Use pv\.mean$"):
        privet.avg  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no attribute 'Laplac'. Did you mean Laplace\?$"):
        privet.Laplac  # noqa: B018
    with pytest.raises(ImportError):
        exec("from privet import lattice_")


def test_a_star_import_brings_the_face() -> None:
    names: dict[str, Any] = {}
    exec("from privet import *", names)
    assert set(FACE.split()) <= names.keys()


@pytest.mark.parametrize("name", MODULES)
def test_each_module_s_names(name: str) -> None:
    module = load(name)
    assert public_names(module) == sorted(MODULES[name].split())
    for part in public_names(module):
        assert hasattr(module, part)
    assert (module.__doc__ or "").strip()


def test_everything_public_says_what_it_is() -> None:
    # what dataclasses and NamedTuples write for themselves is a signature, no sentence
    silent = [
        name
        for name, thing in things()
        if not (inspect.getdoc(thing) or "").strip() or (thing.__doc__ or "").startswith(f"{thing.__name__}(")
        if inspect.isclass(thing) or name.count(".") == 1
    ]
    assert silent == []


def parameters(thing: Any) -> Iterator[inspect.Parameter]:
    if inspect.isclass(thing) and (issubclass(thing, Exception) or getattr(thing, "_is_protocol", False)):
        return
    try:
        yield from inspect.signature(thing).parameters.values()
    except ValueError:  # an enum, or a class written in C
        return


def test_nothing_that_privacy_depends_on_has_a_default() -> None:
    defaults = {
        (name, parameter.name)
        for name, thing in things()
        for parameter in parameters(thing)
        if parameter.name in NEVER_BY_DEFAULT and parameter.default is not inspect.Parameter.empty
    }
    assert defaults == ALLOWED
    for name, parameter in ALLOWED:
        assert any(name == found for found, _ in things()), (name, parameter)


def test_bounds_and_epsilon_are_given_by_name() -> None:
    by_position = [
        (name, parameter.name)
        for name, thing in things()
        for parameter in parameters(thing)
        if name.startswith(("statistics.", "mechanisms."))
        if not name.endswith("Estimate") and parameter.name in NEVER_BY_DEFAULT - {"confidence"}
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    assert by_position == []


def test_what_is_recorded_can_t_be_changed() -> None:
    loose = [
        name
        for name, thing in things()
        if inspect.isclass(thing) and dataclasses.is_dataclass(thing)
        if not thing.__dataclass_params__.frozen  # type: ignore[attr-defined]
    ]
    assert loose == []


def loaded_by(code: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after some code."""
    report = "import sys\nprint('loaded:', *sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("loaded:")[2].split())


def test_import_privet_is_light() -> None:
    heavy = {"numpy", "flint", "pyarrow", "matplotlib", "typer", "rich", "cryptography", "sqlalchemy", "duckdb"}
    loaded = loaded_by("import privet; privet.__version__; dir(privet)")
    assert "privet" in loaded
    assert loaded & heavy == set()
    assert {"numpy", "flint"} <= loaded_by("import privet; privet.Laplace")  # the check can fail


def test_help_is_light() -> None:
    ask = "import sys; sys.argv = ['privet', '--help']; from privet.cli import main"
    loaded = loaded_by(f"{ask}\ntry:\n    main()\nexcept SystemExit:\n    pass")
    assert "typer" in loaded
    assert loaded & {"numpy", "matplotlib", "flint", "pyarrow", "sqlalchemy", "duckdb"} == set()


def test_numbers_need_no_plots_no_arrow_and_no_ledger() -> None:
    mean = "privet.statistics.mean([1, 2], lower=0, upper=3, epsilon=1)"
    loaded = loaded_by(f"import privet; {mean}; privet.Laplace(sensitivity=1, epsilon=1).release(3)")
    assert "numpy" in loaded
    assert loaded & {"matplotlib", "pyarrow", "typer", "sqlalchemy", "duckdb"} == set()
