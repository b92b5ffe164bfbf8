"""Files of every kind that the package writes, to load them with every later version.

The folders beside this module, ``as_of_0_1_0`` and so on, hold files as that version wrote
them, and ``expected.json`` with what was predicted from each, before and after it went on.
`LEARNERS` and `RUNS` say which files there are: a part that is new is given to one of them, and

    python tests/data/write_files.py

writes the files that are missing into the folder of the version that is installed. Files that are
there are never written again: they are what users have. The names in this module are those of
today, so that it is renamed with the package; the files hold the names of their time.

The files of ``as_of_0_1_0`` were written by version 0.1.0 before its release, the last state before
classes and fields were renamed.
"""

import json
import shutil
import tempfile
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
from sklearn.base import clone

from bbb_numpy import (
    MLP,
    Conformal,
    GaussianLikelihood,
    GaussianPrior,
    Model,
    Recalibrated,
    __version__,
    load,
    save,
)
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.flipout import Flipout
from bbb_numpy.gradients.importance import DoublyReparameterised, SelfNormalised
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.gradients.reparameterised import Reparameterised, StickingTheLanding
from bbb_numpy.learners import checkpoint
from bbb_numpy.learners.classifier import BayesianMLPClassifier
from bbb_numpy.learners.columns import Column
from bbb_numpy.learners.ensemble import Ensemble
from bbb_numpy.learners.inference import Sampling, supports_partial_fit
from bbb_numpy.learners.regressor import BayesianMLPRegressor
from bbb_numpy.model.kl_weights import (
    CyclicalWarmUp,
    LinearWarmUp,
    NoWarmUp,
    geometric_kl_weights,
    proportional_kl_weights,
)
from bbb_numpy.model.objectives import EUBO, MAP, MLE, FreeEnergy, Renyi
from bbb_numpy.parts.counts import NegativeBinomialLikelihood, ZeroInflatedLikelihood
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.hyperpriors import HalfCauchy, HalfNormal, LogNormal
from bbb_numpy.parts.low_rank import LowRank
from bbb_numpy.parts.posteriors import MeanField, PointMass
from bbb_numpy.parts.relevance import ARDPrior
from bbb_numpy.sampling import resuming
from bbb_numpy.sampling import run as running
from bbb_numpy.sampling.mcmc import (
    HMC,
    MAMS,
    MCLMC,
    NUTS,
    SGHMC,
    ChEES,
    GaussianWalk,
    Langevin,
    LogNormalWalk,
    MetropolisHastings,
)
from bbb_numpy.sampling.resuming import Checkpoint
from bbb_numpy.sampling.run import sample, sample_target
from bbb_numpy.training import EarlyStopping
from bbb_numpy.training.laplace import Laplace
from bbb_numpy.training.optimizers import IVON, SGD, Adam, Constant, Cosine, Momentum, StepDecay
from bbb_studies.blundell import mnist
from bbb_studies.ours import certificate

FORMATS = (
    checkpoint._format(),
    resuming._format(),
    mnist.RUN_FORMAT,
    certificate.CERTIFICATE_FORMAT,
)
DATA = Path(__file__).parent
N_ROWS = 8
# Without rounding, so that they are the same numbers on every machine: runs hold a digest of them
X = (np.arange(2.0 * N_ROWS).reshape(-1, 2) * 7 % 11 - 5) / 4
Y = X[:, 0] + X[:, 1] ** 2 / 2


def targets(name):
    """Return targets (N,) or (N, K) of a kind."""
    table = {
        "real": Y,
        "count": np.arange(N_ROWS) % 3,
        "binary": Y > 0,
        "one of three": np.eye(3)[np.arange(N_ROWS) % 3],
        "two classes": np.array(["no", "yes"])[(Y > 0).astype(int)],
        "three classes": np.array(["a", "b", "c"], object)[np.arange(N_ROWS) % 3],
    }
    return table[name]


# --- files of learners

CHAINS = partial(Sampling, chains=2, draws=2, warm_up=4, start="prior")
# By the name of a file: the kind of targets, and arguments of the learner
LEARNERS = {
    "mean-field": ("real", {}),
    "mean-field-parts": (
        "real",
        {
            "inference": MeanField(0.2, -3.0),
            "gradient_estimator": Reparameterised,
            "objective": FreeEnergy(0.5),
            "kl_weights": proportional_kl_weights,
            "kl_warm_up": LinearWarmUp(0.4),
            "optimizer": Adam(0.02, schedule=Cosine(0.1), clip=10.0),
        },
    ),
    "full-rank": (
        "real",
        {
            "inference": FullRank(0.1, -3.0),
            "prior": "gaussian-learned",
            "likelihood": "gaussian",
            "gradient_estimator": "reparameterised",
            "objective": "elbo",
            "optimizer": SGD(1e-4, schedule=Constant()),
            "activation": "tanh",
        },
    ),
    "low-rank": (
        "real",
        {
            "inference": LowRank(rank=1),
            "prior": "laplace",
            "likelihood": "student-t",
            "gradient_estimator": "antithetic",
            "objective": "tempered-elbo",
            "optimizer": Momentum(1e-4, schedule=Cosine()),
            "activation": "sigmoid",
        },
    ),
    "ivon": (
        "real",
        {"inference": "ivon", "optimizer": IVON(0.1, trust=2.0), "activation": "silu"},
    ),
    "map": (
        "real",
        {
            "inference": "map",
            "objective": MAP(),
            "prior": "mixture",
            "likelihood": "heteroscedastic",
            "activation": "softplus",
        },
    ),
    "mle": (
        "real",
        {
            "inference": "mle",
            "objective": MLE(),
            "likelihood": "student-t-learned",
            "activation": "gelu",
        },
    ),
    "point": ("real", {"inference": PointMass(0.5), "prior": "student-t"}),
    "laplace": ("real", {"inference": Laplace(rounds=2), "activation": "gelu-tanh"}),
    "laplace-kronecker": ("count", {"inference": Laplace("kronecker", 1), "likelihood": "poisson"}),
    "closed-form-kl": (
        "real",
        {
            "gradient_estimator": ClosedFormKL,
            "prior": "layerwise",
            "kl_weights": "geometric",
            "kl_warm_up": CyclicalWarmUp(2),
        },
    ),
    "closed-form-kl-antithetic": (
        "real",
        {
            "gradient_estimator": "closed-form-kl-antithetic",
            "prior": "layerwise-learned",
            "kl_warm_up": "cyclical",
        },
    ),
    "flipout": (
        "count",
        {
            "gradient_estimator": Flipout,
            "likelihood": "poisson",
            "kl_weights": geometric_kl_weights,
            "kl_warm_up": "linear",
        },
    ),
    "sticking-the-landing": (
        "binary",
        {
            "gradient_estimator": StickingTheLanding,
            "likelihood": "bernoulli",
            "prior": "mixture-learned",
            "kl_warm_up": NoWarmUp(),
        },
    ),
    "local-reparameterisation": (
        "real",
        {"gradient_estimator": LocalReparameterisation, "prior": "gaussian-learned"},
    ),
    "renyi": ("real", {"objective": Renyi(0.5), "prior": "student-t-learned"}),
    "iwae": ("real", {"objective": "iwae", "gradient_estimator": DoublyReparameterised}),
    "eubo": ("real", {"objective": EUBO(), "gradient_estimator": SelfNormalised}),
    "closed-form-kl-classes": (
        "two classes",
        {"gradient_estimator": "closed-form-kl", "prior": "gaussian"},
    ),
    "early-stopping": (
        "real",
        {"early_stopping": EarlyStopping(patience=1), "validation_fraction": 0.3},
    ),
    "step-decay": ("real", {}),
    "float32": (
        "real",
        {"dtype": "float32", "random_state": np.random.default_rng(3), "standardize": False},
    ),
    "columns": ("real", {"optimizer": "adam", "kl_warm_up": "none", "kl_weights": "proportional"}),
    "region": ("real", {"epochs": 3}),
    "relevance": ("real", {"prior": ARDPrior(df=3.0)}),
    "negative-binomial": ("count", {"likelihood": NegativeBinomialLikelihood(1.0)}),
    "zero-inflated": ("count", {"likelihood": ZeroInflatedLikelihood(0.5, dispersion=1.0)}),
    "ensemble-float32": ("real", {"inference": Ensemble(members=1, draws=3)}),
    "categorical": ("one of three", {"likelihood": "categorical", "optimizer": "sgd"}),
    "two-classes": ("two classes", {"class_weight": {"no": 1.0, "yes": 2.0}}),
    "three-classes": ("three classes", {"inference": "low-rank", "hidden_layer_sizes": ()}),
    "classes-laplace": ("three classes", {"inference": Laplace("last-layer", 1)}),
    "chees": ("real", {"inference": CHAINS("chees")}),
    "hmc": ("real", {"inference": CHAINS("hmc", hyperpriors={"log_noise": HalfNormal(0.5)})}),
    "mams": ("real", {"inference": CHAINS("mams", hyperpriors={"log_noise": LogNormal()})}),
    "mclmc": ("real", {"inference": CHAINS("mclmc", groups=2, cores=1)}),
    "mh": ("real", {"inference": CHAINS(MetropolisHastings(GaussianWalk(0.1)))}),
    "mh-langevin": ("real", {"inference": CHAINS(MetropolisHastings(Langevin(0.1)))}),
    "mh-log-normal-walk": ("real", {"inference": CHAINS(MetropolisHastings(LogNormalWalk(0.1)))}),
    "nuts": (
        "real",
        {
            "inference": CHAINS(
                NUTS(max_depth=3),
                warm_up=40,  # enough for a dense metric
                metric="dense",
                hyperpriors={"log_noise": HalfCauchy(0.5)},
            )
        },
    ),
    "sghmc": ("real", {"inference": CHAINS("sghmc")}),
    "sgld": ("two classes", {"inference": CHAINS("sgld")}),
    "hmc-classes": ("three classes", {"inference": CHAINS(HMC(path=0.5, max_steps=5))}),
}
# What a file's learner trains with, if its arguments do not say other
FEW_STEPS = {"epochs": 2, "batch_size": 4, "samples": 2}
COMMON = {"hidden_layer_sizes": (2,), "predict_samples": 3, "random_state": 0}


def learner(name):
    """Return the learner of a file, before it is fitted, and its targets."""
    target_name, arguments = LEARNERS[name]
    if name == "step-decay":  # which warns when it is made
        arguments = {"optimizer": Adam(1e-2, schedule=StepDecay(1))}
    learner_class = BayesianMLPClassifier if "classes" in target_name else BayesianMLPRegressor
    inference = arguments.get("inference")
    trains_as_told = not isinstance(inference, Sampling | Ensemble)
    options = COMMON | FEW_STEPS if trains_as_told else COMMON
    if isinstance(inference, Laplace):
        options = COMMON | {"epochs": 2}
    return learner_class(**options | arguments), targets(target_name)


def write_learner(name, path):
    """Write the file of a learner."""
    model, y = learner(name)
    model.fit(X, y)
    if name == "columns":
        model.columns_ = (Column("size", fill=0.5), Column("day", date=True, order="dmy"))
    save(model, path)


def outcomes_of_learner(name, path):
    """Return what a learner predicts as its file has it, and after it has gone on."""
    model = load(path)
    y = targets(LEARNERS[name][0])
    predictions_before = predictions(model)
    if isinstance(model.inference, Sampling):
        model.set_params(warm_start=True).fit(X, y)
    elif not supports_partial_fit(model.inference):
        model.fit(X, y)
    else:
        model.partial_fit(X, y)
    return {"before": predictions_before, "after": predictions(model)}


def predictions(model):
    """Return what a learner predicts at two rows."""
    if isinstance(model, BayesianMLPClassifier):
        return model.predict_proba(X[:2]).tolist()
    return np.array(model.predict(X[:2], return_std=True)).tolist()


# By the name of a file: a calibration, and the name of its targets
CALIBRATIONS = {
    "conformal": (
        Conformal(BayesianMLPRegressor(**COMMON | FEW_STEPS), 0.5, held_out=0.5, random_state=0),
        "real",
    ),
    "recalibrated": (
        Recalibrated(BayesianMLPRegressor(**COMMON | FEW_STEPS), held_out=0.5, random_state=0),
        "one of three",
    ),
}


def write_calibration(name, path):
    """Write the file of a calibration around a learner."""
    model, target_name = CALIBRATIONS[name]
    save(clone(model).fit(X, targets(target_name)), path)


def outcomes_of_calibration(name, path):
    """Return the intervals of a calibration, as its file has it and after it has gone on."""
    model = load(path)
    before = model.predict_interval(X[:2]).tolist()
    model.estimator = model.estimator_
    model.calibrate(X, targets(CALIBRATIONS[name][1]))
    return {"before": before, "after": model.predict_interval(X[:2]).tolist()}


# --- files of sampling runs

SIZES = (2, 2, 1)
# By the name of a file: the kernel, and arguments of `sample`
RUNS = {
    "chees": (ChEES(max_steps=20), {}),
    "hmc": (HMC(max_steps=20), {"metric": "dense"}),
    "hmc-groups": ("hmc", {"groups": 2, "hyperpriors": {"log_noise": HalfCauchy(0.5)}}),
    "mams": (MAMS(max_steps=20), {"hyperpriors": {"log_noise": HalfNormal(0.5)}}),
    "mclmc": (MCLMC(max_steps=20), {"hyperpriors": {"log_noise": LogNormal(0.2)}}),
    "mh": (MetropolisHastings(GaussianWalk(0.2)), {}),
    "mh-langevin": (MetropolisHastings(Langevin(0.1)), {"thin": 2}),
    "nuts": (NUTS(max_depth=4), {"target_accept": 0.9}),
    "sghmc": (SGHMC(batch_size=4, steps=5), {}),
    "sgld": ("sgld", {}),
    "mh-float32": ("mh", {"dtype": "float32"}),
}
TARGET_RUN = "mh-log-normal-walk"  # of a function, not of a network


def half_normal_density(position):
    """Return the log density (S,) and gradient (S, D) of half-normal numbers."""
    return -0.5 * np.square(position).sum(axis=1), -position


def run_draws(name, folder, warm_up, draws):
    """Return the draws of a run with a checkpoint in `folder`, which goes on if there is one."""
    options = {"warm_up": warm_up, "draws": draws, "seed": 0, "checkpoint": folder, "cores": 1}
    if name == TARGET_RUN:
        kernel = MetropolisHastings(LogNormalWalk(0.5))
        return sample_target(half_normal_density, np.ones((2, 2)), sampler=kernel, **options)
    kernel, arguments = RUNS[name]
    model = Model(MLP(SIZES), GaussianPrior(), GaussianLikelihood(0.3, learn=True))
    return sample(model, X, Y[:, None], sampler=kernel, chains=4, **options | arguments)


RUN_LENGTHS = {"begun": (20, 2), "warm": (40, 2)}  # of warm-up and draws


def write_run(name, stage, path):
    """Write a run: 'begun', after Ctrl-C in its warm-up, or 'warm', after two draws."""
    with tempfile.TemporaryDirectory() as folder:
        if stage == "warm":
            run_draws(name, folder, *RUN_LENGTHS[stage])
        else:
            due = mock.Mock(side_effect=[False, False, False, KeyboardInterrupt])
            with (
                mock.patch.object(Checkpoint, "due", due),
                mock.patch.object(running, "POLL_INTERVAL_S", 0.0),
            ):
                run_draws(name, folder, *RUN_LENGTHS[stage])
        shutil.copy(Path(folder) / "run.npz", path)


def outcomes_of_run(name, stage, path):
    """Return the sums of a run's draws (T,), after it has gone on for two draws."""
    warm_up, n_draws = RUN_LENGTHS[stage]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, Path(folder) / "run.npz")
        with mock.patch.object(running, "init_runs", None):  # no run begins, which would end alike
            draws = run_draws(name, folder, warm_up, n_draws + 2)
    return {"draws": draws.positions.astype(float).sum(axis=(1, 2)).tolist()}


# --- files of studies

CANDIDATE = replace(mnist.CANDIDATES[3], epochs=2, hidden=1)
MNIST_SETTINGS = mnist.Settings(train=4, validation=2, test=2, batch=2)
CERTIFICATE_SETTINGS = certificate.Settings(hidden=1)


def trained_on(run):
    """Return the run of a network on MNIST after one more epoch."""
    x = (np.arange(4 * 784).reshape(4, 784) % 13 / 13).astype(np.float32)
    mnist.train_epoch(run, CANDIDATE, MNIST_SETTINGS, x, np.eye(10, dtype=np.float32)[:4])
    run.errors.append(0.5)
    return run


def write_mnist(path):
    """Write a network on MNIST after its first epoch."""
    run = trained_on(mnist.load(path, CANDIDATE, MNIST_SETTINGS))
    mnist.write_state(path, mnist.Stored(CANDIDATE, MNIST_SETTINGS, run), mnist.RUN_FORMAT)


def outcomes_of_mnist(path):
    """Return sums of the weights of the network, as its file has it and after one more epoch."""
    run = mnist.load(path, CANDIDATE, MNIST_SETTINGS)
    sum_before = float(run.training.theta.sum(dtype=float))
    return {"before": sum_before, "after": float(trained_on(run).training.theta.sum(dtype=float))}


def write_certificate(path):
    """Write the weights of a certified network."""
    certificate.load_or_train(path, CERTIFICATE_SETTINGS, lambda: np.arange(6.0))


def outcomes_of_certificate(path):
    """Return the weights of a certified network, which its file has."""

    def fail():
        raise FileNotFoundError(path)

    return {"theta": certificate.load_or_train(path, CERTIFICATE_SETTINGS, fail).tolist()}


# --- all files

# By the name of a file: what writes it to a path, and what returns its outcomes
FILES = {
    **{
        f"learner-{name}": (partial(write_learner, name), partial(outcomes_of_learner, name))
        for name in LEARNERS
    },
    **{
        f"calibration-{name}": (
            partial(write_calibration, name),
            partial(outcomes_of_calibration, name),
        )
        for name in CALIBRATIONS
    },
    **{
        f"run-{stage}-{name}": (
            partial(write_run, name, stage),
            partial(outcomes_of_run, name, stage),
        )
        for stage in RUN_LENGTHS
        for name in (*RUNS, TARGET_RUN)
    },
    "study-mnist": (write_mnist, outcomes_of_mnist),
    "study-certificate": (write_certificate, outcomes_of_certificate),
}


def stored_files():
    """Return the paths of all files that there are, of every version."""
    return sorted(DATA.glob("as_of_*/*.npz"))


def expected_outcomes(folder):
    """Return what was found of the files of a folder when they were written."""
    path = folder / "expected.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def write_missing():
    """Write the files that no version has written yet, and what is expected of them."""
    folder = DATA / f"as_of_{__version__.replace('.', '_')}"
    folder.mkdir(parents=True, exist_ok=True)
    expected = expected_outcomes(folder)
    for name in sorted(FILES.keys() - {path.stem for path in stored_files()}):
        write, outcomes = FILES[name]
        path = folder / f"{name}.npz"
        write(path)
        expected[name] = outcomes(path)
        print(f"{path.name}: {path.stat().st_size} bytes")
    rows = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(expected.items())]
    text = "{\n" + ",\n".join(rows) + "\n}\n"
    (folder / "expected.json").write_text(text, "utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # what a few epochs leave is enough to see
    write_missing()
