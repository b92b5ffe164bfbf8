"""The models of the study of thirty tables, and what each of them predicts for new rows.

Every model gets inputs that are standardised by the training part. A model that predicts only a
mean is given a law around it: for a real target a normal one, as wide as its errors in
cross-validation of the training rows; for a count that one, rounded to whole numbers, or a Poisson
law, whichever made these errors more likely.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, stats
from scipy.special import log_ndtr, logsumexp
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import BayesianRidge, LogisticRegression, PoissonRegressor
from sklearn.model_selection import cross_val_predict
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

import bbb_numpy

Array = NDArray[Any]
Rows = tuple[Array, Array]  # inputs (N, d_in) and targets (N,)
Scores = tuple[Array, Array | None]  # log density (N,), and whether y is in the central 90 % (N,)
REGRESSION, CLASSES, COUNTS = KINDS = ("regression", "classes", "counts")
SEED = 0
TAIL = 0.05  # probability on each side of the intervals
CV_FOLDS = 5
MIN_RELATIVE_SCALE = 1e-9  # of a normal law around a mean, in standard deviations of y
MIN_HISTOGRAM_ROWS = 2_000  # training rows above which boosting is on histograms
MAX_GP_ROWS = {REGRESSION: 1_000, COUNTS: 1_000, CLASSES: 500}
GP_RESTARTS = 2
OURS = "ours"
OURS_BY_KIND = {
    REGRESSION: "BayesianMLPRegressor()",
    CLASSES: "BayesianMLPClassifier()",
    COUNTS: "BayesianMLPRegressor(likelihood='negative-binomial')",
}
PEERS = (
    "random forest",
    "boosting",
    "NGBoost",
    "NGBoost, Poisson",
    "Gaussian process",
    "linear",
    "MLP",
    "bde",
)


class BdeProcess(NamedTuple):
    """How bde is run: the Python of its environment, and how many seconds a fit may take."""

    python: str
    seconds: float


BDE_SCRIPT = Path(__file__).resolve().parent / "tables_bde.py"


def ours(kind: str, expression: str | None = None) -> Any:
    """Return the learner as it comes, or as an expression of names of `bbb_numpy` says.

    Parameters
    ----------
    kind : str
        One of `KINDS`, also a name in the expression.
    expression : str, optional
        For instance ``BayesianMLPRegressor(likelihood="heteroscedastic")``.
    """
    names = {name: getattr(bbb_numpy, name) for name in bbb_numpy.__all__}
    model = eval(expression or OURS_BY_KIND[kind], names | {"kind": kind})
    return model.set_params(random_state=SEED, progress=False)


def score(
    name: str, kind: str, train: Rows, new: Rows, expression: str | None, bde: BdeProcess | None
) -> Scores:
    """Fit a model to the training rows, and return its scores of new rows.

    Parameters
    ----------
    name : str
        One of `PEERS`; every other name is ours.
    kind : str
        One of `KINDS`.
    train, new : tuple of ndarray (N, d_in), ndarray (N,)
        Rows to fit, and rows to predict.
    expression : str, optional
        Which learner is ours.
    bde : BdeProcess, optional
        Where bde runs.

    Returns
    -------
    log_density : ndarray (N,)
        Log density of real targets, log probability of counts and classes, in nats.
    inside : ndarray (N,) of bool, or None
        Whether the target is in the central interval of 90 %; None for classes.
    """
    scaler = StandardScaler().fit(train[0])
    train = scaler.transform(train[0]), train[1]
    new = scaler.transform(new[0]), new[1]
    if name == "bde":
        if bde is None:
            raise ValueError("bde needs a Python of its own; pass --bde-python")
        return _score_bde(bde, kind, train, new)
    if name not in PEERS:
        return _score_ours(ours(kind, expression), kind, train, new)
    if name == "Gaussian process" and len(train[1]) > MAX_GP_ROWS[kind]:
        rng = np.random.default_rng(SEED)
        subset = rng.choice(len(train[1]), MAX_GP_ROWS[kind], replace=False)
        train = train[0][subset], train[1][subset]
    model = peers(kind, *train)[name]()
    if kind == CLASSES:
        model.fit(*train)
        return _score_classes(model.predict_proba(new[0]), model.classes_, len(train[1]), new[1])
    if isinstance(model, PoissonRegressor):
        return score_poisson(new[1], _rate(model.fit(*train).predict(new[0]), len(train[1])))
    if isinstance(model, GaussianProcessRegressor | BayesianRidge):
        mean, scale = model.fit(*train).predict(new[0], return_std=True)
        return score_gaussians(kind, new[1], mean[None], scale[None])
    if name.startswith("NGBoost"):
        law = model.fit(*train).pred_dist(new[0])
        if name == "NGBoost, Poisson":
            return score_poisson(new[1], law.mu)
        return score_gaussians(kind, new[1], law.params["loc"][None], law.params["scale"][None])
    return _score_mean(model, kind, train, new)


def peers(kind: str, x: Array, y: Array) -> dict[str, Callable[[], Any]]:
    """Return a constructor of each model of scikit-learn and NGBoost for training rows."""
    is_large = len(y) > MIN_HISTOGRAM_ROWS
    lengths = ConstantKernel() * Matern(np.ones(x.shape[1]), nu=1.5)
    if kind == CLASSES:
        boosting: Any = HistGradientBoostingClassifier if is_large else GradientBoostingClassifier
        return {
            "random forest": partial(RandomForestClassifier, random_state=SEED),
            "boosting": partial(boosting, random_state=SEED),
            "NGBoost": partial(_ngboost_classifier, len(np.unique(y))),
            "Gaussian process": partial(
                GaussianProcessClassifier,
                lengths,
                n_restarts_optimizer=GP_RESTARTS,
                random_state=SEED,
            ),
            "linear": partial(LogisticRegression, max_iter=1000),
            "MLP": partial(MLPClassifier, random_state=SEED),
        }
    boosting = HistGradientBoostingRegressor if is_large else GradientBoostingRegressor
    if kind == COUNTS:
        boosting = partial(HistGradientBoostingRegressor, loss="poisson")
    return {
        "random forest": partial(RandomForestRegressor, random_state=SEED),
        "boosting": partial(boosting, random_state=SEED),
        "NGBoost": partial(_ngboost_regressor, "Normal"),
        "NGBoost, Poisson": partial(_ngboost_regressor, "Poisson"),
        "Gaussian process": partial(
            MaternProcess,
            lengths + WhiteKernel(),
            normalize_y=True,
            n_restarts_optimizer=GP_RESTARTS,
            random_state=SEED,
        ),
        "linear": BayesianRidge
        if kind == REGRESSION
        else partial(PoissonRegressor, alpha=0.01, max_iter=1000),
        "MLP": lambda: TransformedTargetRegressor(
            MLPRegressor(random_state=SEED), transformer=StandardScaler()
        ),
    }


def _ngboost_classifier(n_classes: int) -> Any:
    from ngboost import NGBClassifier  # type: ignore[import-not-found, import-untyped, unused-ignore]
    from ngboost.distns import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
        k_categorical,
    )

    law = k_categorical(n_classes)
    model = NGBClassifier(Dist=law, verbose=False, random_state=SEED)
    model.classes_ = np.arange(n_classes)
    return model


def _ngboost_regressor(law: str) -> Any:
    from ngboost import NGBRegressor, distns

    return NGBRegressor(Dist=getattr(distns, law), verbose=False, random_state=SEED)


class MaternProcess(GaussianProcessRegressor):  # type: ignore[misc, unused-ignore]
    """scikit-learn's Gaussian process; the gradient of its evidence takes a tenth of the time.

    The kernel is ``ConstantKernel() * Matern(lengths, nu=1.5) + WhiteKernel()``. No array of
    (N, N, d_in) is made: the derivatives by all lengths are sums over pairs of rows of M_ij
    (x_ik - x_jk)^2, which are matrix products.
    """

    def log_marginal_likelihood(
        self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        """Return the log evidence, and if asked its gradient by the logarithms in `theta`."""
        if not eval_gradient:
            return super().log_marginal_likelihood(theta, clone_kernel=clone_kernel)
        if not clone_kernel:
            self.kernel_.theta = theta
        constant, *lengths, white = np.exp(theta)
        x = self.X_train_ / lengths
        y = self.y_train_
        squares = np.square(x).sum(axis=1)
        square_distance = np.maximum(squares[:, None] + squares - 2.0 * x @ x.T, 0.0)  # (N, N)
        np.fill_diagonal(square_distance, 0.0)
        root = np.sqrt(3.0 * square_distance)
        decay = constant * np.exp(-root)
        signal = (1.0 + root) * decay
        covariance = signal.copy()
        covariance[np.diag_indices_from(covariance)] += white + self.alpha
        factor, is_bad = linalg.lapack.dpotrf(covariance, lower=1, clean=1)
        if is_bad:
            return -np.inf, np.zeros_like(theta)
        weights = linalg.cho_solve((factor, True), y)
        log_evidence = -0.5 * y @ weights - np.log(np.diag(factor)).sum()
        log_evidence -= 0.5 * len(y) * np.log(2.0 * np.pi)
        inverse = linalg.lapack.dpotri(factor, lower=1)[0]
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        inner = np.outer(weights, weights) - inverse
        pairs = inner * decay
        by_lengths = pairs.sum(axis=1) @ np.square(x) - np.einsum("ik,ik->k", x, pairs @ x)
        gradient = [0.5 * np.vdot(inner, signal), *(3.0 * by_lengths), 0.5 * white * inner.trace()]
        return log_evidence, np.array(gradient)


def score_gaussians(kind: str, y: Array, mean: Array, scale: Array) -> Scores:
    """Return the scores of an equal mixture of T normal laws, for counts rounded to whole numbers.

    Parameters
    ----------
    kind : {'regression', 'counts'}
        For counts, the probability of the unit interval around y is scored; 0 has all below 0.5.
    y : ndarray (N,)
        Observed targets.
    mean, scale : ndarray (T, N)
        Moments of the laws.
    """
    if kind == REGRESSION:
        log_density = stats.norm.logpdf(y, mean, scale)
        pit = stats.norm.cdf(y, mean, scale).mean(axis=0)
        inside = (pit >= TAIL) & (pit <= 1.0 - TAIL)
        return logsumexp(log_density, axis=0) - np.log(len(mean)), inside
    below = np.where(y == 0, -np.inf, y - 0.5)
    low, high = (below - mean) / scale, (y + 0.5 - mean) / scale
    inside = (stats.norm.cdf(high).mean(axis=0) >= TAIL) & (
        stats.norm.cdf(low).mean(axis=0) <= 1.0 - TAIL
    )
    # differences of tails are exact in the lower one
    is_upper = low > 0
    low, high = np.where(is_upper, -high, low), np.where(is_upper, -low, high)
    log_probability = log_ndtr(high) + np.log1p(-np.exp(log_ndtr(low) - log_ndtr(high)))
    return logsumexp(log_probability, axis=0) - np.log(len(mean)), inside


def score_poisson(y: Array, rate: Array) -> Scores:
    """Return the scores of Poisson laws with `rate` (N,) for counts `y` (N,)."""
    law = stats.poisson(rate)
    inside = (law.cdf(y) >= TAIL) & (law.cdf(y - 1) <= 1.0 - TAIL)
    return law.logpmf(y), inside


def _rate(mean: Array, n_rows: int) -> Array:
    """Return rates of a Poisson law: predicted means, at least half a count in all rows."""
    return np.maximum(mean, 0.5 / n_rows)


def _score_mean(model: Any, kind: str, train: Rows, new: Rows) -> Scores:
    """Return the scores of a model that predicts means, by the law around them (see above)."""
    x, y = train
    mean = model.fit(x, y).predict(new[0])
    expected = cross_val_predict(model, x, y, cv=CV_FOLDS)
    rmse = np.sqrt(np.mean(np.square(y - expected)))
    scale = np.array(max(rmse, MIN_RELATIVE_SCALE * y.std()))
    normal = score_gaussians(kind, new[1], mean[None], np.broadcast_to(scale, (1, len(mean))))
    if kind == REGRESSION:
        return normal
    as_normal = score_gaussians(kind, y, expected[None], np.broadcast_to(scale, (1, len(y))))[0]
    as_poisson = score_poisson(y, _rate(expected, len(y)))[0]
    if as_normal.mean() >= as_poisson.mean():
        return normal
    return score_poisson(new[1], _rate(mean, len(y)))


def _score_classes(proba: Array, classes: Array, n_rows: int, y: Array) -> Scores:
    """Return log probabilities of the classes that came, none below half a row in `n_rows`."""
    proba = np.maximum(proba, 0.5 / n_rows)
    happened = proba[np.arange(len(y)), np.searchsorted(classes, y)]
    return np.log(happened / proba.sum(axis=1)), None


def _score_ours(model: Any, kind: str, train: Rows, new: Rows) -> Scores:
    model.fit(*train)
    if kind == CLASSES:
        return _score_classes(model.predict_proba(new[0]), model.classes_, len(train[1]), new[1])
    low, high = model.predict_interval(new[0], coverage=1.0 - 2.0 * TAIL).T
    return model.log_predictive_density(*new), (low <= new[1]) & (new[1] <= high)


def _score_bde(process: BdeProcess, kind: str, train: Rows, new: Rows) -> Scores:
    """Return the scores of bde; it gets real targets and counts standardised."""
    x, y = train
    shift, scale = (0, 1) if kind == CLASSES else (y.mean(), y.std())
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(Path(tempfile.gettempdir()) / "tables-bde-cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PLATFORMS": "cpu",
        "LOKY_MAX_CPU_COUNT": "1",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    }
    environment.pop("PYTHONPATH", None)
    limit = int(np.ceil(process.seconds))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, x=x, y=(y - shift) / scale, x_new=new[0])
        result = subprocess.run(
            [process.python, str(BDE_SCRIPT), str(path), kind],
            env=environment,
            capture_output=True,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1)),
        )
        if result.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            raise TimeoutError
        if result.returncode:
            raise RuntimeError(result.stderr.strip().splitlines()[-1])
        prediction = np.load(path.with_suffix(".npy")).astype(float)
    if kind == CLASSES:
        return _score_classes(prediction, np.unique(y), len(y), new[1])
    mean, deviation = prediction
    return score_gaussians(kind, new[1], shift + scale * mean, scale * deviation)
