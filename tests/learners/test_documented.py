"""documented parameters: whoever asks for help finds every setting, its type and its default."""

import ast
import inspect
import pydoc
import re
import subprocess
import sys
from html import unescape

import pytest
import sklearn

from bbb_numpy import Adam, BayesianMLPClassifier, BayesianMLPRegressor, Cosine
from bbb_numpy.learners.base import Learner
from bbb_numpy.learners.defaults import CLASSIFICATION, REGRESSION
from bbb_numpy.learners.inference import inferences
from bbb_numpy.registry import ACTIVATIONS, KL_WEIGHTS, OPTIMIZERS, PRIORS, WARM_UPS
from bbb_numpy.training.schedules import schedule_table

LEARNERS = [BayesianMLPRegressor, BayesianMLPClassifier]
pytestmark = pytest.mark.brief


def documented(learner):
    """Parameters by name: their types, and what is said of each on one line."""
    section = inspect.getdoc(learner).split("Parameters\n----------\n")[1].split("\n\n")[0]
    blocks = re.findall(r"^(\w+) :(.*)\n((?:    .*(?:\n|$))*)", section, re.MULTILINE)
    assert section.count("\n") + 1 == sum(2 + text.strip().count("\n") for *_, text in blocks)
    return {name: (type_.strip(), " ".join(text.split())) for name, type_, text in blocks}


def faults(texts, signature):
    """What is wrong with a documentation: a list that a test compares with []."""
    defaults = {
        name: parameter.default
        for name, parameter in signature.parameters.items()
        if name != "self"
    }
    messages = [f"{name}: not documented" for name in defaults if name not in texts]
    messages += [f"{name}: no such parameter" for name in texts if name not in defaults]
    for name in texts.keys() & defaults.keys():
        type_, sep, default = texts[name][0].partition(", default=")
        if not sep or ast.literal_eval(default) != defaults[name]:
            messages.append(f"{name}: the default is {defaults[name]!r}, not {default or 'told'}")
        if not type_.strip() or not texts[name][1].endswith("."):
            messages.append(f"{name}: no type, or no sentence")
    return sorted(messages)


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_parameter_is_documented_with_type_and_default_and_no_stranger_is(learner):
    assert faults(documented(learner), inspect.signature(learner.__init__)) == []
    assert next(iter(documented(learner))) == "hidden_layer_sizes"


def test_the_defaults_that_are_documented_are_those_that_the_learners_take():
    texts = {name: text for name, (_, text) in documented(BayesianMLPClassifier).items()}
    regression, classification = REGRESSION, CLASSIFICATION
    for name in ("hidden_layer_sizes", "predict_samples"):
        values = [f"{table[name]}" for table in (regression, classification)]
        if name == "hidden_layer_sizes":
            values = [f"``{value}``" for value in values]
        expected = f"{values[0]} for regression and {values[1]} for classification"
        assert expected in texts[name]
    scales = (table["prior"].scale for table in (regression, classification))
    narrow, wide = (f"``GaussianPrior({scale})``" for scale in scales)
    assert f"{narrow} for regression and {wide} for classification" in texts["prior"]
    noise = f"GaussianLikelihood({regression['likelihood'].scale}, learn=True)"
    assert noise in texts["likelihood"]
    assert f"LinearWarmUp({regression['kl_warm_up'].share})" in texts["kl_warm_up"]
    assert regression["optimizer"] == Adam(1e-2, schedule=Cosine())
    assert "heteroscedastic noise ``clip=20``" in texts["optimizer"]


def test_the_names_that_are_told_are_those_that_there_are():
    types = {name: f"{type_} {text}" for name, (type_, text) in documented(LEARNERS[0]).items()}
    for name, table in {
        "activation": ACTIVATIONS,
        "inference": inferences(),
        "optimizer": OPTIMIZERS,
        "kl_weights": KL_WEIGHTS,
        "kl_warm_up": WARM_UPS,
    }.items():
        assert [one for one in table if f"'{one}'" not in types[name]] == []
    assert "'mixture'" in types["prior"]
    assert "mixture" in PRIORS


@pytest.mark.parametrize("learner", LEARNERS)
def test_help_shows_the_table_of_schedules(learner):
    page = pydoc.plain(pydoc.render_doc(learner))
    for line in schedule_table(markdown=False).splitlines():
        assert line in page
    for name in ("optimizer", "epochs", "batch_size", "samples"):
        assert "*Schedules*" in documented(learner)[name][1]


@pytest.mark.parametrize("learner", LEARNERS)
def test_help_and_scikit_learns_table_show_what_a_parameter_means(learner):
    page = pydoc.plain(pydoc.render_doc(learner))
    table = unescape(learner()._repr_html_inner())
    tells = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)  # older have names alone
    assert "{parameters of" not in page
    for name, (type_, text) in documented(learner).items():
        assert f"{name} : {type_}" in page
        assert (f"{name}: {type_}<br><br>{text[:20]}" in table) == tells, name


def test_without_docstrings_a_learner_has_none(monkeypatch):
    monkeypatch.setattr(Learner, "__doc__", None)
    for text in (None, "A learner.\n{parameters of Learner}"):
        bare = type("Bare", (BayesianMLPRegressor,), {"__doc__": text})
        assert (bare().epochs, bare.__doc__) == (None, text)


@pytest.mark.slow
def test_without_docstrings_there_are_learners():
    code = (
        "from bbb_numpy import BayesianMLPRegressor as R, BayesianMLPClassifier as C;"
        "print(R().epochs, C(class_weight='balanced').get_params()['class_weight'])"
    )
    call = [sys.executable, "-OO", "-c", code]
    completed = subprocess.run(call, capture_output=True, text=True, check=True)
    assert completed.stdout.split() == ["None", "balanced"]
