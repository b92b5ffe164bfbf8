"""What every part of the catalogue has to have; for a new one this is the list of what is missing.

`pytest tests/gradients/test_checklist.py` after adding an entry to the catalogue, and go on until
it is silent. CONTRIBUTING.md leads through it.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import textbook
from problems import VALID

import bbb_numpy
from bbb_numpy import MLP, BayesianMLPClassifier, BayesianMLPRegressor, combinations
from bbb_numpy.gradients import catalogue
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.likelihoods import Likelihood
from bbb_numpy.parts.posteriors import Posterior
from bbb_numpy.parts.priors import Prior
from tests.project.book import DEFINED, FAMILIES, tags_in

pytestmark = pytest.mark.brief

ROOT = Path(__file__).resolve().parents[2]
USING = (ROOT / "docs" / "using.md").read_text(encoding="utf-8")
CONTRACTS = {"prior": Prior, "likelihood": Likelihood, "posterior": Posterior}
TEXTBOOKS = {"prior": textbook.PRIORS, "likelihood": textbook.LIKELIHOODS}


class Entry(NamedTuple):
    """One line of the catalogue."""

    kind: str  # an argument of the learners
    name: str
    part: object  # a part, or what makes an estimator
    checked: object  # the same with the numbers of the tests

    @property
    def cls(self):
        made = isinstance(self.part, partial)
        return (
            self.part.func if made else self.part if self.kind == "estimator" else type(self.part)
        )


TABLES = {
    "prior": (catalogue.PRIORS, catalogue.CHECKED_PRIORS),
    "likelihood": (catalogue.LIKELIHOODS, catalogue.CHECKED_LIKELIHOODS),
    "posterior": (catalogue.POSTERIORS, catalogue.CHECKED_POSTERIORS),
    "objective": (catalogue.OBJECTIVES, catalogue.OBJECTIVES),
    "estimator": (catalogue.ESTIMATORS, catalogue.ESTIMATORS),
}
CATALOGUE = [
    Entry(kind, name, part, checked[name])
    for kind, (table, checked) in TABLES.items()
    for name, part in table.items()
]


def partners(entry):
    """The first valid combination with this part, or with one of its kind."""
    has = [which for which in VALID if getattr(which, entry.kind) == entry.name]
    return has[0] if has else VALID[0]


def case_of(entry, dtype=np.float64):
    """A small problem with the part in it."""
    built = combinations.estimator(partners(entry))
    if entry.kind in ("prior", "likelihood"):
        built = replace(built, model=replace(built.model, **{entry.kind: entry.checked}))
    elif entry.kind != "estimator":
        built = replace(built, **{entry.kind: entry.checked})
    case = combinations.problem(built, np.random.default_rng(0))
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
    arguments = partners(entry)._asdict() | {entry.kind: part}
    posterior = arguments.pop("posterior")
    arguments["inference"] = catalogue.POSTERIORS.get(posterior, posterior)
    arguments["gradient_estimator"] = arguments.pop("estimator")
    if entry.kind != "likelihood":
        arguments["likelihood"] = "gaussian"
    options = {"epochs": 1, "samples": 2, "predict_samples": 3, "random_state": 0}
    return BayesianMLPRegressor((2,), **arguments, **options).fit(*data_for(entry))


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
    for field in fields(entry.cls) if entry.kind != "estimator" else ():
        if field.default is MISSING and field.default_factory is MISSING:
            yield f"has no default for {field.name}: what a user does not say is decided here"


def an_export(entry, folder):
    name = entry.cls.__name__
    if getattr(bbb_numpy, name, None) is not entry.cls or name not in bbb_numpy.__all__:
        yield "is not exported: add it to bbb_numpy/__init__.py, import and __all__"


def a_derivation(entry, folder):
    tags = tags_in(entry.cls.__doc__ or "", FAMILIES)
    if entry.kind in TEXTBOOKS and not tags:
        yield "has no tag in its docstring: name its equation in derivations.md, e.g. (D42)"
    if missing := sorted(tags - set(DEFINED)):
        yield f"has no derivation: write the entry of {', '.join(missing)} in derivations/"


def a_textbook_density(entry, folder):
    if entry.kind in TEXTBOOKS and entry.cls.__name__ not in TEXTBOOKS[entry.kind]:
        yield "has no density in tests/textbook.py: write it there from the equation alone"


def a_line_in_the_list_of_parts(entry, folder):
    argument, name = entry.kind, entry.name
    argument = "gradient_estimator" if argument == "estimator" else argument
    if entry.kind == "posterior" or name in ("map", "mle"):  # a way to infer
        argument, name = "inference", "map" if name == "point" else name
    row = re.search(rf"^\| {argument} \|.*$", USING, re.MULTILINE)
    if row is None or f"`{name}`" not in row[0]:
        yield "is not listed in docs/using.md, under Choosing the parts: make generated"


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
    for how, part in (("by name", entry.name), ("as an object", entry.checked)):
        if entry.kind == "estimator" and how == "as an object":
            part = entry.cls
        try:
            fitted(entry, part)
        except (TypeError, ValueError) as error:
            yield f"is not accepted by a learner {how}: {error}"


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


CHECKLIST = (
    a_contract,
    defaults,
    an_export,
    a_derivation,
    a_textbook_density,
    a_line_in_the_list_of_parts,
    a_gradient_by_the_complex_step,
    single_precision,
    a_learner_that_takes_it,
    a_way_through_a_file,
)


def missing(entry, folder) -> Iterator[str]:
    """What an entry of the catalogue still needs, one line each."""
    for item in CHECKLIST:
        for line in item(entry, folder):
            yield f"[ ] {entry.kind} {entry.name!r}: {entry.cls.__name__} {line}"


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: f"{entry.kind}-{entry.name}")
def test_nothing_is_missing(entry, tmp_path):
    todo = list(missing(entry, tmp_path))
    assert not todo, "\n" + "\n".join(todo)


# --- activations, which are functions: what each of them has to have


def missing_of_activation(name, folder):
    """What an activation still needs."""
    network = MLP((2, 3, 1), name)
    if name not in textbook.ACTIVATIONS:
        yield "has no formula in tests/textbook.py"
    row = re.search(r"^\| activation \|.*$", USING, re.MULTILINE)
    if f"`{name}`" not in row[0]:
        yield "is not listed in docs/using.md, under Choosing the parts"
    function = catalogue.ACTIVATIONS[name]
    tags = tags_in(function.__doc__ or "", FAMILIES)
    if not tags:
        yield "has no tag in its docstring"
    for learner in (BayesianMLPRegressor, BayesianMLPClassifier):
        said = f"{inspect.getdoc(learner)} {inspect.getdoc(learner.__init__)}"
        if "activation : {" in said and f"'{name}'" not in said:
            yield f"is not in the docstring of {learner.__name__}"
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((6, 2)), rng.standard_normal((6, 1))
    options = {"epochs": 1, "predict_samples": 3, "random_state": 0}
    model = BayesianMLPRegressor((3,), activation=name, **options).fit(x, y)
    bbb_numpy.save(model, folder / f"{name}.npz")
    twin = bbb_numpy.load(folder / f"{name}.npz")
    if twin.estimator_.model.network != network or (twin.predict(x) != model.predict(x)).any():
        yield "comes back from a file as something else"


@pytest.mark.parametrize("name", catalogue.ACTIVATIONS)
def test_nothing_is_missing_of_an_activation(name, tmp_path):
    assert list(missing_of_activation(name, tmp_path)) == []
