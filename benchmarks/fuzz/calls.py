"""The public functions, each with a call that works, and random calls made from these.

A function is here if a user passes it data or settings. Not here: the functions inside the
mathematics, which get arrays of the package's own making (`log_density`, `vjp`, `pull_back`, steps
of kernels), records that only hold results, what `bbb-numpy gradcheck` is made of, and the
commands, which `files` and `processes` try.
"""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .pool import HINTS, POOL

__all__ = ["CATALOGUE", "LEFT_OUT", "Call", "drawn", "names"]

START = """
import copy, gzip, pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
import numpy as np, pandas as pd
from matplotlib.figure import Figure
from scipy import sparse
import bbb_numpy
from bbb_numpy import *
from bbb_numpy import plots, data, training
from bbb_studies.data import income_tax, locate, mnist, mushroom, path_loss, powerball, sp500, uci
from bbb_numpy.evaluation import (
    arviz_export, calibration, convergence, model_checks, predictive, pruning, quantiles,
    reliability)
from bbb_numpy.learners.plan import check_plan
from bbb_numpy.model import kl_weights
from bbb_numpy.model.log_joint import LogJoint
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.numeric.storing import CheckpointError
from bbb_numpy.plots import calibration as calibration_plots, fits, moving, weights
from bbb_studies import annealing, mcmc
from bbb_numpy.sampling.draws import DrawnWeights, Draws
from bbb_numpy.sampling.run import sample_target
from bbb_numpy.training import Recipe, advi, ensembles, transforms
from bbb_studies.replicates import fit_replicates

rng = np.random.default_rng(0)
X = rng.standard_normal((12, 2))
y = X[:, 0] + 0.1 * rng.standard_normal(12)
Y = y[:, None]
labels, counts, texts = (y > 0).astype(int), rng.poisson(3.0, 12), np.tile(["no", "yes", "so"], 4)
frame = pd.DataFrame(X, columns=["a", "b"])
model = Model(MLP((2, 3, 1)))
q = Reparameterised(model)
state = training.start(q, rng, Adam())
theta, noise = state.theta, q.draw(rng, 2)
joint = LogJoint(model, X, Y)
bell = lambda u: (-0.5 * (u**2).sum(axis=1), -u)
draws = sample(model, X, Y, chains=2, draws=6, warm_up=4, seed=0, progress=False)
shares = rng.dirichlet(np.ones(3), 12)
means, scales = rng.standard_normal((5, 12, 1)), np.exp(rng.standard_normal((5, 12, 1)))
square = lambda t: ((t**2).sum(), 2 * t)
line = advi.ADVI(bell, transforms.Blockwise((("a", (3,), transforms.Identity()),)))
scene = path_loss.Scene()
evidence = annealing.evidence(joint, chains=3, steps=3, pilot_chains=3, seed=0)
seen = reliability.reliability(np.full(12, 0.4), labels)
path = lambda power: bell
lottery = powerball.Draws(np.array(["2010-02-03"], "M8[D]"), np.arange(1, 6)[None], np.array([59]))
days = np.arange("2000-01-01", "2002-01-01", dtype="M8[D]")
prices = sp500.Prices(days, ("a",), np.exp(0.01 * rng.standard_normal((len(days), 1))))
for one in (X, y, Y, labels, counts, theta, noise, shares, means, scales):
    one.flags.writeable = False
FITTED = {
    "trained": lambda: BayesianMLPRegressor((3,), epochs=2, random_state=0).fit(X, y),
    "named": lambda: BayesianMLPRegressor((3,), epochs=2, random_state=0).fit(frame, Y),
    "sampled": lambda: BayesianMLPRegressor(
        (2,), inference=Sampling("hmc", chains=2, draws=3, warm_up=30), random_state=0).fit(X, y),
    "counts": lambda: BayesianMLPRegressor(
        (3,), likelihood="poisson", epochs=2, random_state=0).fit(X, counts),
    "tails": lambda: BayesianMLPRegressor(
        (3,), likelihood="student-t", inference="map", epochs=2, random_state=0).fit(X, y),
    "two": lambda: BayesianMLPClassifier((3,), epochs=2, random_state=0).fit(X, labels),
    "three": lambda: BayesianMLPClassifier((3,), epochs=2, random_state=0).fit(X, texts),
}
_made, touched = {}, []
def fitted(kind):
    if kind not in _made:
        _made[kind] = pickle.dumps(FITTED[kind]())
    learner = pickle.loads(_made[kind])
    touched.append((learner, held(learner)))
    return learner
def saved():
    save(fitted("trained"), "saved.npz")
    return "saved.npz"
def images():
    with gzip.open("images.gz", "wb") as file:
        file.write(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]))
    return Path("images.gz")
def held(learner):
    state = {k: v for k, v in vars(learner).items() if k.endswith("_") and k != "estimator_"}
    return pickle.dumps(state)
"""


@dataclass
class Entry:
    """A call that works: text with ``{}`` for each list of arguments, and these as usual."""

    text: str
    usual: tuple[dict[str, str], ...]
    weight: float = 1.0
    nan: bool = False  # whether a result may hold nan, as documented
    more: tuple[tuple[str, ...], ...] = ()  # names of the arguments that may be given besides


class Call(NamedTuple):
    """A call, and the text of the value of every argument."""

    entry: Entry
    given: tuple[dict[str, str], ...]
    changed: tuple[tuple[int, str], ...]  # list and name of those that are not as usual

    def __str__(self) -> str:
        lists = (", ".join(f"{k}={v}" for k, v in one.items()) for one in self.given)
        return self.entry.text.format(*lists)

    def without(self, which: int, name: str) -> Call:
        """Return the call with one argument as usual."""
        given = tuple(dict(one) for one in self.given)
        del given[which][name]
        if name in self.entry.usual[which]:
            given[which][name] = self.entry.usual[which][name]
        return Call(self.entry, given, tuple(c for c in self.changed if c != (which, name)))


def _learner(kind: str, target: str, methods: Mapping[str, dict[str, str]]) -> list[Entry]:
    init = {"hidden_layer_sizes": "(3,)", "epochs": "2", "random_state": "0", "progress": "False"}
    made = f"BayesianMLP{kind}({{}})"
    pair = {"X": "X", "y": target}
    later = {**pair, "classes": "[0, 1]"} if kind == "Classifier" else pair
    found = [
        Entry(f"{made}.fit({{}})", (init, pair), 30, nan=True),
        Entry(f"{made}.partial_fit({{}})", (init, later), 8, nan=True),
        Entry(f"{made}.fit(X, {target}).predict({{}})", (init, {"X": "X"}), 10),
    ]
    for name, usual in methods.items():
        for fitted in FITS[kind]:
            if (fitted, name) == ("sampled", "partial_fit"):
                continue  # it has none
            usual = {k: {"y": FITS[kind][fitted]}.get(k, v) for k, v in usual.items()}
            found.append(Entry(f"fitted('{fitted}').{name}({{}})", (usual,), 1.5, nan=True))
        settings = f"fitted('{fitted}').set_params({{}}).{name}({{}})"
        found.append(Entry(settings, ({"batch_size": "5"}, usual), 2, nan=True))
    return found


FITS = {
    "Regressor": {"trained": "y", "named": "Y", "sampled": "y", "counts": "counts", "tails": "y"},
    "Classifier": {"two": "labels", "three": "texts"},
}
ROWS, PAIR = {"X": "X"}, {"X": "X", "y": "y"}
LEARNERS = [
    *_learner(
        "Regressor",
        "y",
        {
            "predict": ROWS,
            "predict_distribution": ROWS,
            "sample_functions": ROWS,
            "sample_y": ROWS,
            "log_predictive_density": PAIR,
            "score": PAIR,
            "partial_fit": PAIR,
            "fit": PAIR,
        },
    ),
    *_learner(
        "Classifier",
        "labels",
        {
            "predict": ROWS,
            "predict_proba": ROWS,
            "predict_log_proba": ROWS,
            "predict_distribution": ROWS,
            "sample_functions": ROWS,
            "log_predictive_density": PAIR,
            "score": PAIR,
            "partial_fit": PAIR,
            "fit": PAIR,
        },
    ),
]

# Constructors of which every argument has a default
SETTINGS = """
EUBO HMC MAMS MAP MCLMC MLE NUTS SGD Adam BernoulliLikelihood CategoricalLikelihood ChEES Constant
Cosine CyclicalWarmUp EarlyStopping FreeEnergy FullRank GaussianLikelihood GaussianPrior HalfCauchy
HalfNormal HeteroscedasticLikelihood LaplacePrior LayerwiseGaussianPrior LinearWarmUp LogNormal
MeanField MetropolisHastings Momentum PointMass PoissonLikelihood Renyi Sampling ScaleMixturePrior
StepDecay StudentTLikelihood StudentTPrior Recipe mcmc.GaussianWalk mcmc.Langevin
mcmc.LogNormalWalk mcmc.StudentWalk transforms.Identity transforms.Log transforms.Logit
transforms.Softplus path_loss.Scene
"""
# Other functions: a call that works
FUNCTIONS = """
MLP(sizes=(2, 3, 1))
Model(network=MLP((2, 3, 1)))
Reparameterised(model=model)
ClosedFormKL(model=model)
StickingTheLanding(model=model)
Flipout(model=model)
LocalReparameterisation(model=model)
DoublyReparameterised(model=model, objective=Renyi(0.0))
SelfNormalised(model=model, objective=EUBO())
mcmc.DiagonalMetric(variance=np.ones(3))
mcmc.DenseMetric(covariance=np.eye(3))
mcmc.Independent(draw=rng.normal, log_density=bell)
check(value_and_grad=square, theta=np.ones(3))
prove(value_and_grad=square, theta=np.ones(3))
sample(model=model, x=X, y=Y, chains=2, draws=3, warm_up=3, progress=False, seed=0)
sample_target(target=bell, start=np.zeros((2, 3)), draws=3, warm_up=3, progress=False)
LogJoint(model=model, x=X, y=Y)
joint.draw_prior(rng=rng, chains=2)
draws.block(name='W0')
annealing.evidence(joint=joint, chains=3, steps=3, pilot_chains=3)
annealing.powers(steps=5)
annealing.equalised(schedule=np.linspace(0, 1, 5), spread=np.ones(4), steps=3)
annealing.between(start=bell, end=bell)
annealing.anneal(path=path, start=np.zeros((2, 3)), kernels=[HMC()], schedule=[0.0, 1.0], rng=rng)
annealing.pilot(path=path, start=np.zeros((2, 3)), kernel=HMC(), schedule=[0.0, 1.0], rng=rng)
DrawnWeights(model=model)
training.start(estimator=q, rng=rng, optimizer=Adam())
training.fit(estimator=q, training=state.copy(), x=X, y=Y, rng=rng, recipe=Recipe(epochs=2),
    progress=False)
fit_replicates(estimators=[q, q], trainings=[state.copy(), state.copy()], xs=[X, X], ys=[Y, Y],
    rngs=[rng, np.random.default_rng(1)], progress=False, recipe=Recipe(epochs=2))
ensembles.ensemble_starts(model=model, x=X, y=Y, chains=2, seed=0, recipe=Recipe(epochs=2),
    progress=False)
advi.ADVI(log_joint=bell, transforms=transforms.Blockwise((('a', (3,),
    transforms.Identity()),)))
advi.fit(problem=line, rng=rng, steps=3, progress=False)
transforms.Blockwise(parts=(('a', (3,), transforms.Log()),))
transforms.Ordered(size=3)
Layout(blocks=(('a', (3,)), ('b', ())))
kl_weights.geometric_kl_weights(batch_sizes=[3, 2])
kl_weights.proportional_kl_weights(batch_sizes=[3, 2])
to_arviz(draws=draws)
convergence.convergence(draws=draws)
convergence.function_r_hats(draws=draws, x=X)
calibration.class_pit(proba=shares, labels=np.arange(12) % 3, rng=rng)
calibration.count_pit(rates=np.ones((5, 12)), y=counts, rng=rng)
calibration.coverage(pits=np.linspace(0, 1, 9))
calibration.crps_draws(draws=means[..., 0], y=y)
calibration.crps_gaussian(mean=y, scale=np.ones(12), y=y)
calibration.crps_mixture(means=means, scales=scales, y=Y)
calibration.pit(means=means, scales=scales, y=Y)
calibration.kolmogorov(pits=np.linspace(0, 1, 9))
model_checks.bayes_factor(first=evidence, second=evidence)
model_checks.in_words(log_factor=2.0)
model_checks.probabilities(log_evidences={'a': -3.0, 'b': -2.0})
model_checks.posterior_check(joint=joint, positions=draws.flat, rng=rng)
model_checks.predicted(joint=joint, positions=draws.flat, rng=rng)
model_checks.prior_predictive(joint=joint, rng=rng, samples=3)
model_checks.reweight(joint=joint, other=joint, positions=draws.flat)
predictive.predict(estimator=q, theta=theta, x=X, rng=rng, samples=3)
predictive.mixture(estimator=q, theta=theta, x=X, rng=rng, samples=3)
predictive.sample_functions(estimator=q, theta=theta, x=X, rng=rng, samples=3)
predictive.sample_targets(estimator=q, theta=theta, x=X, rng=rng, samples=3)
predictive.log_predictive_density(estimator=q, theta=theta, x=X, y=Y, rng=rng, samples=3)
pruning.signal_to_noise(mean=y, deviation=np.ones(12))
pruning.signal_to_noise_of(family=q, theta=theta)
pruning.decibels(ratio=np.ones(3))
pruning.lowest(ratio=np.arange(9.0), share=0.5)
pruning.matrices(layout=q.layout)
pruning.moments_of_draws(draws=draws.flat)
pruning.prune(family=q, theta=theta, share=0.5)
pruning.prune_draws(draws=draws.flat, share=0.5)
pruning.sweep(family=q, theta=theta, score=(lambda t: 1.0))
reliability.brier(proba=np.full(12, 0.4), y=labels)
reliability.brier_parts(proba=np.full(12, 0.4), y=labels)
reliability.reliability(proba=np.full(12, 0.4), y=labels)
reliability.clustered_mean(values=y, groups=labels)
reliability.top_label(proba=shares, labels=np.arange(12) % 3)
reliability.wilson(successes=3, trials=9)
reliability.expected_calibration_error(table=seen)
reliability.maximum_calibration_error(table=seen)
reliability.chance_calibration_error(table=seen)
quantiles.distribution_function(estimator=q, theta=theta, x=X, y=Y, rng=rng, samples=3)
quantiles.quantiles(estimator=q, theta=theta, x=X, q=0.5, rng=rng, samples=3)
quantiles.likely_classes(proba=shares, coverage=0.9)
data.cubic(rng=rng)
data.sine(rng=rng)
data.one_period(rng=rng)
data.cubic_curve(x=y)
data.sine_curve(x=y)
data.ten_sine(x=y)
path_loss.receivers(scene=scene, rng=rng, count=5)
path_loss.grid(scene=scene, cells=3)
path_loss.features(scene=scene, places=10 + X)
path_loss.field(scene=scene, places=10 + X)
path_loss.inside(scene=scene, places=10 + X)
path_loss.walls(scene=scene, places=10 + X)
path_loss.near_edge(scene=scene, places=10 + X, radius=1.0)
income_tax.folds(place=np.arange(12).astype(str))
uci.load(name='boston')
uci.published_splits(name='boston')
uci.standard_splits(rows=30)
powerball.load()
powerball.rules(draws=lottery)
powerball.examples(draws=lottery)
powerball.exact(shares=59)
powerball.mass_of_place(balls=9, place=2)
sp500.load()
sp500.rows(prices=prices)
sp500.splits(table=sp500.rows(prices), first=2001)
sp500.inputs(close=np.exp(np.cumsum(means[0] * np.ones((12, 40)), 1)).T)
locate.find(name='boston', file='boston.csv')
locate.locate(name='boston', file='boston.csv')
mnist.read_idx(path=images(), axes=1)
load(path=saved())
save(model=fitted('trained'), path='m.npz')
fits.fit(x=y, predictive=fitted('trained').predict_distribution(X))
fits.loss(history=fitted('trained').history_)
fits.deviations(x=y, curves={'a': y**2})
calibration_plots.coverage_curve(found={'a': calibration.coverage([0.2, 0.7])})
calibration_plots.pit_histogram(pits=np.linspace(0, 1, 9))
calibration_plots.reliability_diagram(tables={'a': seen})
weights.densities_of_draws(draws=draws.flat, at=np.linspace(-1, 1, 5))
weights.densities_of_mean_field(mean=y, deviation=np.ones(12), at=np.linspace(-1, 1, 5))
moving.slider(figure=Figure(), update=(lambda k: None), frames=1, alt='x', dpi=20)
weights.weight_densities(layout=model.layout, draws=draws.flat)
weights.weight_densities(layout=model.layout, mean=np.zeros(13), deviation=np.ones(13))
weights.ratios(ratio=np.arange(1.0, 9.0))
"""
# Documented: where nothing is known, or where an estimate needs more draws
NAN = """
pruning.sweep predictive. reliability. convergence. to_arviz training. fit_replicates advi. sample
data. path_loss.
"""


def _written(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Take calls apart into the function and the text of its arguments."""
    for line in ast.parse(text).body:
        assert isinstance(line, ast.Expr)
        assert isinstance(line.value, ast.Call)
        given = {str(one.arg): ast.unparse(one.value) for one in line.value.keywords}
        yield ast.unparse(line.value.func), given


# Functions of `bbb_numpy` itself that are not called at random
LEFT_OUT = {
    "prove_same": "all its arguments are one's own functions",
    "NonFiniteError": "what training raises",
}
CATALOGUE = (
    LEARNERS
    + [Entry(f"{name}({{}})", ({},), 2.0) for name in SETTINGS.split()]
    + [
        Entry(f"{name}({{}})", (usual,), 2.0, name.startswith(tuple(NAN.split())))
        for name, usual in _written(FUNCTIONS)
    ]
)


def names() -> dict[str, Any]:
    """Return the names that calls are made of."""
    found: dict[str, Any] = {}
    exec(START, found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fitted for a few epochs, on purpose
        _note_arguments(found)
    return found


def _note_arguments(found: dict[str, Any]) -> None:
    for entry in CATALOGUE:
        functions = _functions(entry.text, found)
        named = ([one for one in _optional(f, found) if one not in NOT_GIVEN] for f in functions)
        entry.more = tuple(map(tuple, named))


def _functions(text: str, found: dict[str, Any]) -> list[Any]:
    """Return the functions that the lists of arguments of a call belong to."""
    kinds = [found["BayesianMLPClassifier"], found["BayesianMLPRegressor"]]
    functions = []
    for piece in text.split("({})")[:-1]:
        name = piece.rpartition(".")[2]
        if name == "set_params":
            functions.append(kinds[0])
        elif piece.startswith("."):
            functions.append(next(getattr(kind, name) for kind in kinds if hasattr(kind, name)))
        else:
            functions.append(eval(piece, found))
    return functions


def _optional(function: Any, found: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of all arguments of a function."""
    given = inspect.signature(function).parameters
    if "options" in given:  # of `sample`: those of `sample_target`
        return (*given, *_optional(found["sample_target"], found))
    return tuple(given)


NOT_GIVEN = {"self", "args", "arguments", "options", "sample_weight", "params", "kwargs"}
NUMBERS_CHANGED = (0, *[1] * 12, *[2] * 5, 3, 3)


def drawn(rng: np.random.Generator) -> Call:
    """Return a random call; `names` must have been called."""
    weights = np.array([entry.weight for entry in CATALOGUE])
    entry = CATALOGUE[rng.choice(len(CATALOGUE), p=weights / weights.sum())]
    given = tuple(dict(one) for one in entry.usual)
    changed = set()
    for _ in range(rng.choice(NUMBERS_CHANGED)):
        which = int(rng.integers(len(given)))
        known = [*entry.usual[which], *entry.more[which]]
        if known:
            name = known[rng.integers(len(known))]
            given[which][name] = value(rng, name)
            changed.add((which, name))
    return Call(entry, given, tuple(sorted(changed)))


def value(rng: np.random.Generator, name: str) -> str:
    """Return a value for an argument of this name, as text."""
    hints = HINTS.get(name, ())
    values = hints if hints and rng.random() < 0.5 else POOL[rng.integers(len(POOL))]
    return values[rng.integers(len(values))]
