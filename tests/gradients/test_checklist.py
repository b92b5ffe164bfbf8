"""What everything in the registry has to have; for a new entry this is the list of what is missing.

`pytest tests/gradients/test_checklist.py` after adding one to a table NAMED, and go on until it is
silent. CONTRIBUTING.md leads through it.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import textbook
from problems import VALID

import bbb_numpy
from bbb_numpy import BayesianMLPRegressor, Sampling, combinations
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.likelihoods import Likelihood
from bbb_numpy.parts.posteriors import Posterior
from bbb_numpy.parts.priors import Prior
from bbb_numpy.registry import FAMILIES, POSTERIORS, class_of
from bbb_numpy.sampling.mcmc import MetropolisHastings
from tests.project.book import DEFINED, claims, tags_in
from tests.project.book import FAMILIES as SOURCES
from tests.project.generated import PARTS_ROWS

pytestmark = pytest.mark.brief

ROOT = Path(__file__).resolve().parents[2]
USING = (ROOT / "docs" / "parts.md").read_text(encoding="utf-8")
CONTRACTS = {"prior": Prior, "likelihood": Likelihood, "posterior": Posterior}
COMBINED = ("posterior", "prior", "likelihood", "estimator", "objective")  # fields of a Combination
LEARNED = (*COMBINED, "activation", "optimizer", "sampler", "proposal")  # what a learner can have
DERIVED = (*COMBINED, "activation", "hyperprior", "optimizer", "sampler", "proposal")
EXPORTED = (*COMBINED, "hyperprior", "optimizer", "schedule", "sampler", "proposal")


class Entry(NamedTuple):
    """One line of the registry."""

    kind: str  # its family
    name: str
    part: object  # what the name stands for
    checked: object  # the same with the numbers of the tests

    @property
    def cls(self):
        return class_of(self.checked)

    @property
    def tags(self):
        """The equations that its docstring names."""
        return tags_in(self.cls.__doc__ or "", SOURCES)


ENTRIES = [
    Entry(kind, name, one, FAMILIES[kind].checked[name])
    for kind in FAMILIES
    for name, one in FAMILIES[kind].named.items()
]


def partners(entry):
    """The first valid combination with this part, or with one of its kind."""
    has = [which for which in VALID if getattr(which, entry.kind) == entry.name]
    return has[0] if has else VALID[0]


def case_of(entry, dtype=np.float64):
    """A small problem with the part in it."""
    built = combinations.build_estimator(partners(entry))
    if entry.kind in ("prior", "likelihood"):
        built = replace(built, model=replace(built.model, **{entry.kind: entry.checked}))
    elif entry.kind != "estimator":
        built = replace(built, **{entry.kind: entry.checked})
    case = combinations.draw_case(built, np.random.default_rng(0))
    arrays = (np.asarray(a, dtype) for a in (case.theta, case.noise, case.x, case.y))
    return case._replace(**dict(zip(("theta", "noise", "x", "y"), arrays, strict=True)))


def data_for(entry):
    """Rows and targets that a learner takes with this part."""
    rng = np.random.default_rng(0)
    kind = getattr(entry.part, "target_kind", "real")
    y = rng.standard_normal((6, 2)) if kind == "real" else np.eye(2)[rng.integers(0, 2, 6)]
    return rng.standard_normal((6, 2)), y


def fitted(entry, part):
    """A learner with this part, and with those that go with it."""
    options = {"epochs": 1, "samples": 2, "predict_samples": 3, "random_state": 0}
    if entry.kind in ("sampler", "proposal"):
        kernel = part if entry.kind == "sampler" else MetropolisHastings(entry.checked)
        sampling = Sampling(kernel, chains=2, draws=3, warm_up=5, start="prior")
        options = {"inference": sampling, "predict_samples": 3, "random_state": 0}
    elif entry.kind not in COMBINED:
        options |= {entry.kind: part}
    else:
        arguments = partners(entry)._asdict() | {entry.kind: part}
        posterior = arguments.pop("posterior")
        arguments["inference"] = POSTERIORS.get(posterior, posterior)
        arguments["gradient_estimator"] = arguments.pop("estimator")
        if entry.kind != "likelihood":
            arguments["likelihood"] = "gaussian"
        options |= arguments
    return BayesianMLPRegressor((2,), **options).fit(*data_for(entry))


# --- the list: each yields what is missing, as an instruction


def a_contract(entry, folder):
    contract = CONTRACTS.get(entry.kind, object)
    if not issubclass(entry.cls, contract):
        yield f"is no {contract.__name__}: make it a subclass"
        return
    for name, member in vars(contract).items():
        inherited = inspect.isfunction(member) and getattr(entry.cls, name) is member
        if inherited and "raise NotImplementedError" in inspect.getsource(member):
            yield f"has no {name}: see the contract of {contract.__name__}"


def defaults(entry, folder):
    for field in fields(entry.cls) if is_dataclass(entry.cls) and entry.kind != "estimator" else ():
        if field.default is MISSING and field.default_factory is MISSING:
            yield f"has no default for {field.name}: what a user does not say is decided here"


def an_export(entry, folder):
    name = entry.cls.__name__
    if getattr(bbb_numpy, name, None) is not entry.cls or name not in bbb_numpy.__all__:
        yield "is not exported: add it to bbb_numpy/__init__.py, import and __all__"


def a_derivation(entry, folder):
    if not entry.tags:
        yield "has no tag in its docstring: name its equation in derivations.md, e.g. (D42)"
    if missing := sorted(entry.tags - set(DEFINED)):
        yield f"has no derivation: write the entry of {', '.join(missing)} in derivations/"


@cache
def marks_and_words():
    """The tags of each test, and all words of the files that have tests."""
    texts = [path.read_text("utf-8") for path in sorted(ROOT.glob("tests/**/test_*.py"))]
    tags = set().union(*(tags for text in texts for tags in claims(text).values()))
    return tags, set().union(*(re.findall(r"\w+", text) for text in texts))


def a_check(entry, folder):
    """A formula in the textbook, or a test: with its equation in the mark, or that names it."""
    own = entry.name if entry.kind == "activation" else entry.cls.__name__
    if own in textbook.TABLES.get(entry.kind, ()):
        return
    tags, words = marks_and_words()
    strict = entry.kind in ("prior", "likelihood", "activation")
    if strict or not (entry.tags & tags if entry.tags else own in words):
        yield "has no formula in tests/textbook.py: write it there from the equation alone"
        if not strict:
            yield f"has no test that is marked with {', '.join(sorted(entry.tags)) or own}"


def a_line_in_the_list_of_parts(entry, folder):
    name = "map" if entry.name == "point" else entry.name
    rows = [part for part, names in PARTS_ROWS.items() if name in names]
    if entry.kind in (*COMBINED, "activation", "optimizer", "kl_weights", "kl_warm_up") and not any(
        f"`{name}`" in row
        for part in rows
        for row in re.findall(rf"^\| {part} \|.*$", USING, re.MULTILINE)
    ):
        yield "is not listed in docs/parts.md: make generated"


def a_gradient_by_the_complex_step(entry, folder):
    try:
        report = combinations.check_case(case_of(entry))
    except TypeError as error:
        yield f"is not complex-safe: {error}"
        return
    if not report.passed:
        yield f"has a wrong gradient, or is not complex-safe:\n{report}"


def single_precision(entry, folder):
    case, buffers = case_of(entry, np.float32), Buffers()
    value, grad, terms = case.estimator.value_and_grad(*case[1:6], buffers)
    each = {"value": value, "gradient": grad, **terms._asdict()}
    wide = [name for name, array in each.items() if array.dtype != np.float32]
    wide += ["buffers"] if any(a.dtype != np.float32 for a in buffers._arrays) else []
    if wide:
        yield f"does not stay float32: {', '.join(wide)}"


def a_learner_that_takes_it(entry, folder):
    function = entry.kind in ("estimator", "activation")
    objects = [entry.cls] if entry.kind == "estimator" else [] if function else [entry.checked]
    names = [] if entry.kind == "proposal" else [entry.name]
    for part in (*names, *objects):
        try:
            fitted(entry, part)
        except (TypeError, ValueError) as error:
            yield f"is not accepted by a learner as {part!r}: {error}"


def a_way_through_a_file(entry, folder):
    path, x = folder / f"{entry.kind}-{entry.name}.npz", data_for(entry)[0]
    try:
        model = fitted(entry, entry.name)
        bbb_numpy.save(model, path)
        twin = bbb_numpy.load(path)
    except (TypeError, ValueError) as error:
        yield f"does not come back from a file: {error}"
        return
    if twin.estimator_ != model.estimator_ or (twin.predict(x) != model.predict(x)).any():
        yield "comes back from a file as something else"


CHECKLIST = {  # of these families
    a_contract: tuple(CONTRACTS),
    defaults: tuple(kind for kind in FAMILIES if kind != "state"),
    an_export: EXPORTED,
    a_derivation: DERIVED,
    a_check: tuple(kind for kind in FAMILIES if kind != "state"),  # its kernel's will do
    a_line_in_the_list_of_parts: tuple(FAMILIES),
    a_gradient_by_the_complex_step: COMBINED,
    single_precision: COMBINED,
    a_learner_that_takes_it: LEARNED,
    a_way_through_a_file: LEARNED,
}


def missing(entry, folder) -> Iterator[str]:
    """What an entry of the registry still needs, one line each."""
    for item, kinds in CHECKLIST.items():
        for line in item(entry, folder) if entry.kind in kinds else ():
            yield f"[ ] {entry.kind} {entry.name!r}: {entry.cls.__name__} {line}"


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.kind}-{entry.name}")
def test_nothing_is_missing(entry, tmp_path):
    todo = list(missing(entry, tmp_path))
    assert not todo, "\n" + "\n".join(todo)


@pytest.mark.parametrize("kind", [kind for kind, one in FAMILIES.items() if one.checked_by])
def test_what_a_family_is_checked_by_is_a_test(kind):
    path, name = FAMILIES[kind].checked_by.partition(", ")[2].split("::")
    assert f"def {name}(" in (ROOT / path).read_text("utf-8")


def test_the_list_says_what_is_missing(tmp_path):
    """Of a prior with nothing but its numbers: every line says what to do."""

    class Bare(Prior):
        """A prior (D998)."""

        def __init__(self, scale):
            self.scale = scale

    entry = Entry("prior", "bare", Bare(1.0), Bare(1.0))
    items = (a_contract, an_export, a_derivation, a_check, a_line_in_the_list_of_parts)
    todo = "\n".join(line for item in items for line in item(entry, tmp_path))
    for line in ("has no log_density", "is not exported", "the entry of D998", "has no formula",
                 "is not listed in docs/parts.md"):  # fmt: skip
        assert line in todo
