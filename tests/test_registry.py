"""registry: every name stands for what the book says, and a class of one's own is one of them."""

import re
import sys
from dataclasses import dataclass, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import bbb_numpy
from bbb_numpy import BayesianMLPRegressor, GaussianPrior, LaplacePrior, register
from bbb_numpy import registry as names
from bbb_numpy.cli.main import main
from bbb_numpy.gradients import catalogue
from bbb_numpy.learners.inference import Sampling, inferences
from bbb_numpy.numeric.storing import CheckpointError
from bbb_numpy.parts.network import MLP
from bbb_numpy.registry import FAMILIES, class_of
from bbb_numpy.sampling.mcmc import GaussianWalk, MetropolisHastings, State
from bbb_numpy.sampling.run import SAMPLERS, sample_target

NAMED_BY_LEARNERS = {
    "prior": names.PRIORS,
    "likelihood": names.LIKELIHOODS,
    "inference": inferences(),
    "objective": names.OBJECTIVES,
    "kl_weights": names.KL_WEIGHTS,
    "kl_warm_up": names.WARM_UPS,
    "optimizer": names.OPTIMIZERS,
    "sampler": SAMPLERS,
}


def test_priors_by_name_differ_in_shape_and_all_have_about_the_deviation_one_half():
    fixed = ("gaussian", "laplace", "student-t")  # layerwise: from the widths
    spread = {name: names.PRIORS[name].sd({}) for name in fixed}
    assert spread == pytest.approx(dict.fromkeys(fixed, 0.5), rel=0.02)
    # Krasser's numbers: sqrt(0.2 * 1^2 + 0.8 * 0.1^2)
    assert names.PRIORS["mixture"].sd({}) == pytest.approx(0.208**0.5)


USING = (Path(__file__).parents[1] / "docs" / "parts.md").read_text(encoding="utf-8")
NAMED_OTHERWISE = {
    (part, name): text
    for name, part, text in re.findall(
        r"^\| `([\w-]+)` \| (\w+) \| `(\w+\(.*?\))` \|", USING, re.MULTILINE
    )
}


def of_its_class(name, part):
    """The part that a reader of the class alone expects behind a name."""
    if isinstance(part, Sampling):
        return Sampling(name)
    return type(part)(**{"learn": True} if name.endswith("-learned") else {})


@pytest.mark.parametrize("part", NAMED_BY_LEARNERS)
def test_a_name_is_its_class_without_arguments_or_the_book_says_what_it_is(part):
    """One table of all names: nobody has to guess the numbers behind one."""
    table = {name: one for name, one in NAMED_BY_LEARNERS[part].items() if is_dataclass(one)}
    told = {name for kind, name in NAMED_OTHERWISE if kind == part}
    for name, named in table.items():
        fixed = name.removesuffix("-learned")
        if fixed not in told:
            assert repr(named) == repr(of_its_class(name, named)), name
            continue
        assert repr(named) != repr(of_its_class(name, named)), f"{name}: nothing to say"
        written = eval(NAMED_OTHERWISE[part, fixed], dict(vars(bbb_numpy)))
        learned = written if fixed == name else replace(written, learn=True)
        assert repr(named) == repr(learned), name  # kernels are no values: `eq=False`
    assert told <= set(table)


@pytest.mark.parametrize(
    "table",
    [names.PRIORS, names.LIKELIHOODS, names.CHECKED_PRIORS, names.CHECKED_LIKELIHOODS],
    ids=["priors", "likelihoods", "checked priors", "checked likelihoods"],
)
def test_what_learns_by_name_starts_from_what_is_fixed_by_name(table):
    learned = [name for name in table if name.endswith("-learned")]
    assert learned
    for name in learned:
        assert table[name] == replace(table[name.removesuffix("-learned")], learn=True)


@pytest.mark.parametrize("name", names.ESTIMATORS)
def test_what_is_antithetic_says_so_in_its_name(name):
    keywords = getattr(names.ESTIMATORS[name], "keywords", {})
    assert keywords == ({"antithetic": True} if "antithetic" in name else {})


def test_the_tables_have_their_former_names_too():
    for name in ("POSTERIORS", "PRIORS", "CHECKED_LIKELIHOODS", "ESTIMATORS", "WARM_UPS"):
        assert getattr(catalogue, name) is getattr(names, name)
    assert SAMPLERS is FAMILIES["sampler"].named


# --- a class of one's own


@dataclass(frozen=True)
class Narrow(LaplacePrior):
    """A prior of one's own."""

    scale: float = 0.01


@dataclass(frozen=True, eq=False)
class Drifting(GaussianWalk):
    """A proposal of one's own."""


class Counted(NamedTuple):
    """What the chains of one's own kernel carry."""

    position: np.ndarray
    log_density: np.ndarray
    gradient: np.ndarray
    moves: np.ndarray


@dataclass(frozen=True)
class Counting:
    """A kernel of one's own, with a state of its own."""

    kernel: MetropolisHastings = MetropolisHastings(GaussianWalk(0.5))

    def init(self, target, position):
        return Counted(*self.kernel.init(target, position), np.zeros(len(position), int))

    def step(self, target, rng, state):
        new, info = self.kernel.step(target, rng, State(*state[:3]))
        return Counted(*new, state.moves + info.accepted), info


def softsign(z, slope):
    slope[...] = 1 / (1 + abs(z)) ** 2
    z /= 1 + abs(z)


def data():
    x = np.random.default_rng(0).standard_normal((12, 2))
    return x, x[:, 0]


DRAWN = partial(Sampling, chains=2, draws=5, warm_up=5, start="prior")
OWN = {
    "prior": ("narrow", Narrow(), {"prior": "narrow"}),
    "activation": ("softsign", softsign, {"activation": "softsign"}),
    "proposal": ("drift", Drifting(), {"inference": DRAWN(MetropolisHastings(Drifting(0.1)))}),
    "sampler": ("counting", Counting(), {"inference": DRAWN("counting")}),
}


@pytest.mark.brief
@pytest.mark.parametrize("family", OWN)
def test_what_is_registered_is_taken_by_name_and_comes_back_from_a_file(family, tmp_path, registry):
    name, usual, arguments = OWN[family]
    x, y = data()
    options = {"hidden_layer_sizes": (3,), "epochs": 1, "predict_samples": 3, "random_state": 0}
    if family in ("sampler", "proposal"):
        options["epochs"] = None
    path = tmp_path / "model.npz"
    register(family, name, usual)
    model = BayesianMLPRegressor(**options | arguments).fit(x, y)
    bbb_numpy.save(model, path)
    twin = bbb_numpy.load(path)
    np.testing.assert_array_equal(twin.predict(x), model.predict(x))
    del FAMILIES[family].named[name], FAMILIES[family].checked[name]
    if family == "activation":  # a network names it
        with pytest.raises(CheckpointError, match="activation must be one of"):
            bbb_numpy.load(path)
        return
    missing = type(usual).__name__
    with pytest.raises(CheckpointError, match=f"holds '{missing}', which is no registered class"):
        bbb_numpy.load(path)


def test_a_checkpoint_holds_a_registered_state(tmp_path, registry):
    options = {"sampler": Counting(), "warm_up": 3, "seed": 0, "checkpoint": tmp_path}

    def run(draws):
        start = np.ones((2, 2))
        return sample_target(lambda p: (-0.5 * (p**2).sum(1), -p), start, draws=draws, **options)

    with pytest.raises(CheckpointError, match="cannot be saved"):
        run(4)
    register("state", "Counted", Counted)
    whole = run(8).positions
    np.testing.assert_array_equal(run(4).positions, whole[:4])


@dataclass(frozen=True)
class Learning(GaussianPrior):
    """Another prior of one's own."""


def test_what_learns_is_there_twice_and_one_may_register_again(registry):
    for scale in (0.2, 0.3):
        register("prior", "mine", Learning(scale), Learning(1.0))
        assert names.PRIORS["mine-learned"] == Learning(scale, learn=True)
        assert names.CHECKED_PRIORS["mine"] == Learning(1.0)
    assert class_of(names.PRIORS["mine"]) in names.classes("prior")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("priors", "mine", Narrow()), ValueError, "family must be one of 'posterior'"),
        (("prior", "gaussian", Narrow()), ValueError, "name must be a string that no prior of"),
        (("prior", 3, Narrow()), ValueError, "name must be a string"),
        (("prior", "mine", Narrow), TypeError, "entry must be an object of type Prior"),
        (("prior", "mine", Narrow(), Drifting()), TypeError, "checked must be an object of type"),
        (("activation", "mine", lambda z, slope: None), ValueError, "entry must have as its name"),
        (("prior", "mine", type("LaplacePrior", (Narrow,), {})()), ValueError, "got LaplacePrior"),
        (("estimator", "mine", MLP), TypeError, "entry must be a class of estimators"),
        (("estimator", "mine", Narrow()), TypeError, "entry must be a class of estimators"),
        (("sampler", "mine", type("Own", (), {"init": 0, "step": 0})()), TypeError, "dataclass"),
        (("state", "mine", int), TypeError, "entry must be a named tuple or a dataclass"),
    ],
)
def test_what_cannot_be_registered_is_refused(arguments, error, message, registry):
    with pytest.raises(error, match=message):
        register(*arguments)


PLUGIN = """
from dataclasses import dataclass

from bbb_numpy import LaplacePrior, register

@dataclass(frozen=True)
class Narrow(LaplacePrior):
    scale: float = 0.01

register("prior", "narrow", Narrow())
"""


@pytest.mark.brief
def test_the_command_line_takes_names_of_a_file_that_registers_them(
    tmp_path, monkeypatch, registry, capsys
):
    """And a model's file runs nothing: without the plugin it is refused."""
    plugin, table, model = (tmp_path / name for name in ("own_prior.py", "t.csv", "model.npz"))
    plugin.write_text(PLUGIN)
    table.write_text("x,y\n" + "".join(f"{k},{k % 5}.5\n" for k in range(20)))
    monkeypatch.setattr(sys, "path", sys.path[:])

    def run(*arguments):
        return main([*map(str, arguments)])

    fit = ("fit", table, "--target", "y", "--model", model, "--prior", "narrow", "--epochs", 1)
    assert run("--plugin", plugin, *fit) == 0
    assert run("predict", model, table) == 0
    del FAMILIES["prior"].named["narrow"], FAMILIES["prior"].checked["narrow"]
    assert run("predict", model, table) == 2
    assert "holds 'Narrow', which is no registered class" in capsys.readouterr().err
    assert run("--plugin", tmp_path / "json.py", *fit) == 2
    assert "json.py has the name of another module" in capsys.readouterr().err
    del sys.modules["own_prior"]


@pytest.mark.parametrize("family", ["hyperprior", "objective", "sampler", "proposal"])
def test_what_has_no_method_of_its_family_is_told_an_object_that_has(family):
    with pytest.raises(TypeError, match=r"must be an object such as \w+\(.*\); got 3$"):
        FAMILIES[family].check("part", 3)
