"""Sagar's Algorithm 1 where the posterior is known: as printed it fails, corrected it works.

The corrected algorithm is the package's own: `SelfNormalised` with `EUBO` (G7, G8).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import cos, nan, pi
from pathlib import Path as FilePath
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bbb_numpy.gradients.estimator import Batch
from bbb_numpy.gradients.importance import SelfNormalised
from bbb_numpy.model.joint import Model
from bbb_numpy.model.objectives import EUBO, LogDensities, log_weights
from bbb_numpy.numeric.elementary import sigmoid
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, VERMILLION, finish
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import Adam
from bbb_studies import linear_gaussian as exactly
from bbb_studies.kit import Claim, claims, estimate, listed, panels, text, write
from bbb_studies.linear_gaussian import Gaussian, Regression
from bbb_studies.progress import ReportWork, counted, ignore_work
from bbb_studies.progress import steps as count_steps

Array = NDArray[Any]


def shifted_weights(log_w: Array, shift: float) -> Array:
    """Return exp(log w + shift) over its sum; the shift changes nothing but overflow (G7).

    The algorithm prints the shift + min log w.

    Parameters
    ----------
    log_w : array (S,)
        Log importance weights, in nats.
    shift : float
        Added to each of them before exp.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        w = np.exp(log_w + shift)
        return w / w.sum()


@dataclass(frozen=True)
class ThroughTheSamples(SelfNormalised):
    """Algorithm 1's gradient read literally: log q(g(eps)) differentiated through g (G8).

    The weights are the corrected ones. The data cancel: d_mu = 0 and d_rho = sig(rho) / sigma.
    """

    def fill_gradient(self, at: Batch) -> tuple[Any, LogDensities]:
        """Return the estimate of the upper bound and -sum w^ d log q(g(eps)), total derivatives."""
        step = self.forward(at)
        c = step.cotangents
        nothing = np.zeros_like(step.sample.w)
        self.posterior.pull_back(step.sample, nothing, c.posterior, at.d_blocks)
        return step.value, step.terms


@dataclass(frozen=True)
class Equation5(SelfNormalised):
    """The reparameterised gradient of the upper bound (G5), as printed or corrected.

    Corrected it multiplies both gradients by (log w + 1), not the first alone.
    """

    corrected: bool = False

    def fill_gradient(self, at: Batch) -> tuple[Any, LogDensities]:
        """Return the estimate of the upper bound and the gradient that Equation 5 gives."""
        step = self.forward(at)
        c = step.cotangents
        factor = log_weights(step.terms, at.kl_weight) + 1.0  # (S,)
        cotangents = -c.prior * factor, -c.likelihood * factor
        d_w = self.model.vjp(step.joint, *cotangents, at.d_blocks, at.buffers)
        d_log_q = c.posterior * factor if self.corrected else c.posterior  # G5
        self.posterior.pull_back(step.sample, d_w, d_log_q, at.d_blocks)
        return step.value, step.terms


START_LEARNING_RATE = 0.05
N_PATH_POINTS = 40


@dataclass(frozen=True)
class Falling:
    """Half a cosine over `total` epochs, for training that is done a few epochs at a time."""

    done: int
    total: int

    def __call__(self, epoch: float, epochs: int) -> float:
        """Return the factor on the learning rate."""
        return 0.5 * (1.0 + cos(pi * min((self.done + epoch) / self.total, 1.0)))


@dataclass(frozen=True)
class Variant:
    """One way to read the algorithm."""

    title: str
    estimator: type[SelfNormalised] = SelfNormalised
    samples: int = 200  # M
    batch_size: int | None = None  # S; None: all rows
    look: tuple[Any, ...] = ()  # colour, style and width of its line


VARIANTS = {
    "corrected": Variant("corrected", look=(BLUE, "-", 2.2)),
    "through": Variant(
        "gradient through g, as printed",
        ThroughTheSamples,
        look=(VERMILLION, "--", 1.6),
    ),
    "equation 5": Variant("Equation 5 as printed", Equation5, look=(GREEN, "-.", 1.6)),
    "one": Variant("M = 1", samples=1, look=(GREY, "-", 0.9)),
    "minibatch": Variant(
        "N/S inside exp, S = 1", batch_size=1, look=("#7A3F6B", (0, (1, 1)), 1.8)
    ),
}


class Path(NamedTuple):
    """q at some steps of the training; the last weight is the bias."""

    steps: Array  # (T,)
    means: Array  # (T, P)
    deviations: Array  # (T, P)
    last: Gaussian
    estimator: SelfNormalised
    theta: Array  # after the last step


Row = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Study:
    """All that is trained and measured; paths by the names of `VARIANTS`."""

    steps: int
    mean: Regression
    regression: Regression
    paths: dict[str, Path]  # for the Gaussian mean
    of_regression: dict[str, Path]
    apart: dict[str, float]  # distance that a path moves if the data move
    slopes: dict[str, tuple[float, float]]  # dU/drho and its standard error
    # For minibatches of S rows, the standard deviation of the bias and its limit.
    by_batch: list[Row]
    by_samples: list[Row]  # for M samples per step
    weights: list[Row]  # for growing data, with three shifts of the log weights


def gaussian_mean(
    rng: np.random.Generator, rows: int = 20, noise: float = 1.6
) -> Regression:
    """Draw `rows` values of mean 1; the model's bias is their mean, with prior N(0, 1).

    The only input is 0 everywhere, so that its weight meets no data and keeps the prior.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws the values.
    rows : int
        Number of values.
    noise : float
        Standard deviation of the values, known to the model.
    """
    y = 1.0 + noise * rng.standard_normal((rows, 1))
    model = Model(MLP((1, 1)), GaussianPrior(1.0), GaussianLikelihood(noise))
    return Regression(model, np.zeros((rows, 1)), y)


def correlated_regression(rng: np.random.Generator) -> Regression:
    """Draw 30 rows with two inputs of correlation 0.6; three weights with prior N(0, 1)."""
    return exactly.draw(rng, rows=30, d_in=2, correlation=0.6, noise=1.0, prior=1.0)


def follow(
    variant: Variant, problem: Regression, rng: np.random.Generator, steps: int = 2000
) -> Path:
    """Train q from the prior on by `training.fit`, and return its path.

    Parameters
    ----------
    variant : Variant
        How the algorithm is read.
    problem : Regression
        Model and rows.
    rng : numpy.random.Generator
        Draws the minibatches and the noise.
    steps : int
        Number of updates, rounded down to whole epochs.

    Returns
    -------
    Path
        q at up to `N_PATH_POINTS` steps.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C, since half a path would look like a whole one.
    """
    estimator = variant.estimator(problem.model, MeanField(), EUBO())
    rows = len(problem.x)
    batch = variant.batch_size or rows
    per_epoch = -(-rows // batch)
    epochs = max(1, steps // per_epoch)
    every = max(1, epochs // N_PATH_POINTS)
    state = start(
        estimator, rng, Adam(START_LEARNING_RATE), variational=_prior(problem)
    )
    marks = [0]
    thetas = [state.theta]
    while marks[-1] < epochs:
        n_done = marks[-1]
        adam = Adam(START_LEARNING_RATE, schedule=Falling(n_done, epochs))
        recipe = Recipe(
            adam, min(every, epochs - n_done), batch_size=batch, samples=variant.samples
        )
        state = fit(
            estimator, state, problem.x, problem.y, recipe, rng=rng, progress=False
        )
        if state.stopped == "interrupted":
            raise KeyboardInterrupt  # half a path would look like a whole one
        marks.append(len(state.history))
        thetas.append(state.theta)
    q = [exactly.gaussian(estimator, theta) for theta in thetas]
    means = np.array([g.mean for g in q])
    deviations = np.array([g.deviation for g in q])
    return Path(
        np.array(marks) * per_epoch, means, deviations, q[-1], estimator, state.theta
    )


def distance(
    variant: Variant, first: Regression, second: Regression, seed: int, steps: int
) -> float:
    """Return how far apart two paths are that see different data and the same noise.

    Parameters
    ----------
    variant : Variant
        How the algorithm is read.
    first, second : Regression
        The two data sets.
    seed : int
        Of the generator of either path.
    steps : int
        Number of updates.

    Returns
    -------
    float
        Largest difference of a mean or standard deviation at any point.
    """
    a = follow(variant, first, np.random.default_rng(seed), steps)
    b = follow(variant, second, np.random.default_rng(seed), steps)
    gaps = (a.means - b.means, a.deviations - b.deviations)
    return max(float(np.abs(gap).max()) for gap in gaps)


def excess(problem: Regression, q: Gaussian) -> float:
    """Return KL(posterior || q) less its least value for independent Gaussians, in nats.

    Parameters
    ----------
    problem : Regression
        Model and rows.
    q : Gaussian
        Independent Gaussians over the weights.
    """
    truth = exactly.exact(problem)
    least_kl = exactly.kl(truth.posterior, exactly.inclusive_optimum(truth))
    with np.errstate(over="ignore"):
        return exactly.kl(truth.posterior, q) - least_kl


def effective_share(
    path: Path, problem: Regression, rng: np.random.Generator, samples: int
) -> float:
    """Return 1 / (S sum w^2) of the last q, averaged over 20 draws of S samples: 1 is the best.

    Parameters
    ----------
    path : Path
        Training whose last q is used.
    problem : Regression
        Model and rows.
    rng : numpy.random.Generator
        Draws the samples.
    samples : int
        Number S of samples in each draw.
    """
    shares = []
    for _ in range(20):
        noise = path.estimator.draw(rng, samples)
        terms = exactly.log_densities(path.estimator, path.theta, noise, problem)
        _, cotangents = EUBO()(terms, 1.0)
        shares.append(1.0 / (samples * float(np.sum(cotangents.posterior**2))))
    return float(np.mean(shares))


def minibatch_fixed_point(problem: Regression, batch: int) -> tuple[float, float]:
    """Return mean and sd that `gaussian_mean` tends to with minibatches of S rows (D30).

    On minibatch i the weights are those of N(m_i, v), the posterior had its rows been seen
    N / S times: v is the posterior's variance, and m_i scatters with the minibatch mean. Moments
    matched over all minibatches are those of the mixture: v + Var(m_i).

    Parameters
    ----------
    problem : Regression
        From `gaussian_mean`.
    batch : int
        Rows S of a minibatch.

    Returns
    -------
    mean, sd : float
        Of the bias, in units of y.
    """
    truth = exactly.exact(problem)
    rows = len(problem.y)
    variance = truth.posterior.covariance[-1, -1]
    of_means = problem.y.var() / batch * (rows - batch) / max(rows - 1, 1)
    # m_i = (1 - v / prior variance) times the minibatch mean
    pull = (1.0 - variance / 1.0**2) ** 2
    return float(truth.posterior.mean[-1]), float(np.sqrt(variance + pull * of_means))


def _prior(problem: Regression) -> Array:
    size = problem.model.layout.size
    return MeanField().pack(np.zeros(size), np.ones(size))


def train_with(
    samples: int, problem: Regression, rng: np.random.Generator, steps: int, runs: int
) -> Row:
    """Train the corrected algorithm `runs` times with `samples` per step, and return its errors.

    Ratios are those of the standard deviations to the marginals of the posterior, means over runs.

    Parameters
    ----------
    samples : int
        Samples M of each step.
    problem : Regression
        Model and rows.
    rng : numpy.random.Generator
        Spawns one generator a run, then draws the samples of the shares.
    steps : int
        Updates in each run.
    runs : int
        Number of runs.

    Returns
    -------
    mapping
        ``samples``, ``excess`` (nats, of every run), ``ratios`` (P,) and ``share``.
    """
    variant = Variant(f"M = {samples}", samples=samples)
    paths = [follow(variant, problem, run_rng, steps) for run_rng in rng.spawn(runs)]
    marginal = exactly.inclusive_optimum(exactly.exact(problem)).deviation
    return {
        "samples": samples,
        "excess": [excess(problem, path.last) for path in paths],  # nats
        "ratios": np.mean([path.last.deviation / marginal for path in paths], axis=0),
        "share": float(
            np.mean([effective_share(path, problem, rng, samples) for path in paths])
        ),
    }


def weight_rows(rng: np.random.Generator, samples: int = 200) -> list[Row]:
    """Return the normalised weights of the prior as q for growing data, with three shifts (G7).

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws the data, then the noise.
    samples : int
        Number S of samples.
    """
    out: list[Row] = []
    for rows in (20, 200, 2000):
        problem = gaussian_mean(rng, rows)
        estimator = SelfNormalised(problem.model, MeanField(), EUBO())
        noise = estimator.draw(rng, samples)
        log_w = log_weights(
            exactly.log_densities(estimator, _prior(problem), noise, problem), 1.0
        )
        zero = np.zeros(samples)
        low = float(log_w.min())
        high = float(log_w.max())
        shares = {
            "+ min": shifted_weights(log_w, low),
            "- min": shifted_weights(log_w, -low),
            "- max": -EUBO()(LogDensities(zero, log_w, zero), 1.0)[1].posterior,
        }
        effective = {
            name: 1.0 / float(np.sum(w**2)) if np.isfinite(w).all() else None
            for name, w in shares.items()
        }
        out.append({"rows": rows, "low": low, "high": high, "effective": effective})
    return out


def slopes_of_rho(
    problem: Regression, rng: np.random.Generator, samples: int, repeats: int = 200
) -> dict[str, tuple[float, float]]:
    """Return dU/drho of the bias where q is N(1, 0.5^2): exact, and estimates with errors (G5).

    Parameters
    ----------
    problem : Regression
        From `gaussian_mean`.
    rng : numpy.random.Generator
        Draws the noise.
    samples : int
        Weight samples of one estimate.
    repeats : int
        Number of independent estimates.

    Returns
    -------
    dict of str to (mean, standard error)
        In nats, by estimator.
    """
    truth = exactly.exact(problem)
    q = Gaussian(np.array([0.0, 1.0]), np.diag([1.0, 0.25]))
    theta = MeanField().pack(q.mean, q.deviation)
    m = truth.posterior.mean[-1]
    v = truth.posterior.covariance[-1, -1]
    sigma = q.deviation[-1]
    d_sigma = 1.0 / sigma - (v + (m - q.mean[-1]) ** 2) / sigma**3  # G8
    estimates = {"exact": (float(d_sigma * sigmoid(theta[-1])), 0.0)}
    parts = problem.model, MeanField(), EUBO()
    estimators = {
        "score form, G8": SelfNormalised(*parts),
        "Equation 5 corrected": Equation5(*parts, corrected=True),
        "Equation 5 as printed": Equation5(*parts),
        "through g as printed": ThroughTheSamples(*parts),
    }
    for name, estimator in estimators.items():
        noises = (estimator.draw(rng, samples) for _ in range(repeats))
        grads = (
            estimator.value_and_grad(theta, e, problem.x, problem.y)[1] for e in noises
        )
        estimates[name] = estimate(np.array([grad[-1] for grad in grads]))
    return estimates


def draw_trajectories(
    mean: Regression, paths: Mapping[str, Path], regression: Regression, corrected: Path
) -> Figure:
    """Draw mean and sd of q for the Gaussian mean, and the sds for the regression, by step.

    Parameters
    ----------
    mean : Regression
        The Gaussian mean.
    paths : mapping of str to Path
        Paths on `mean`, by the names of `VARIANTS`.
    regression : Regression
        The correlated regression.
    corrected : Path
        Path of the corrected algorithm on `regression`.
    """
    figure, (a, b, c) = panels(13.5, 4.6, 1, 3)
    best = exactly.inclusive_optimum(exactly.exact(mean))
    for name, path in paths.items():
        colour, style, width = VARIANTS[name].look
        for ax, values in ((a, path.means), (b, path.deviations)):
            line_style = {
                "color": colour,
                "ls": style,
                "lw": width,
                "label": VARIANTS[name].title,
            }
            ax.plot(path.steps, values[:, -1], **line_style)
    for ax, value in ((a, best.mean[-1]), (b, best.deviation[-1])):
        ax.axhline(value, color=BLACK, ls=":", lw=1.8, label="exact posterior")
    b.set_yscale("log")
    b.set_ylim(1e-5, 5.0)  # one curve leaves for 1e-22
    truth = exactly.exact(regression)
    inclusive = exactly.inclusive_optimum(truth)
    reverse = exactly.reverse_optimum(truth)
    for j, (name, colour) in enumerate(
        {"weight 1": BLUE, "weight 2": VERMILLION, "bias": GREEN}.items()
    ):
        c.plot(
            corrected.steps,
            corrected.deviations[:, j],
            color=colour,
            lw=1.8,
            label=name,
        )
        c.axhline(inclusive.deviation[j], color=colour, ls=":", lw=1.5)
        c.axhline(reverse.deviation[j], color=colour, ls="--", lw=0.9)
    c.plot([], [], ":", color=BLACK, lw=1.5, label="of the posterior")
    c.plot([], [], "--", color=BLACK, lw=0.9, label="of least free energy")
    c.set_ylim(bottom=0.0)
    sd = "standard deviation"
    for ax, panel_title, ylabel in (
        (a, "(a) Gaussian mean: mean of q", "mean (units of y)"),
        (b, f"(b) Gaussian mean: {sd} of q", f"{sd} (units of y)"),
        (c, f"(c) regression, corrected: {sd}s of q", f"{sd} of a weight"),
    ):
        ax.set_xlim(0, corrected.steps[-1])
        finish(ax, f"step\n{panel_title}", ylabel, 2)
    return figure


REGRESSION_VARIANTS = ("corrected", "through", "equation 5")
SHIFTED_DATA_VARIANTS = ("corrected", "through", "one")
BATCH_SIZES = (1, 2, 5, 10, 20)
PATH_ROUNDING = 1e-9  # paths that are no further apart are equal up to rounding
# Nats of KL(posterior || q) above the least that count as "reached".
REACHED_EXCESS = 0.01
# Relative; a standard deviation this near the posterior's counts as right.
SD_RTOL = 0.05
SD_TITLES = ("sd 1", "sd 2", "of bias")  # of the regression's weights


def measure(
    seed: int,
    steps: int,
    samples: tuple[int, ...],
    runs: int,
    report: ReportWork = ignore_work,
) -> Study:
    """Train every reading of the algorithm on both problems, and return all that is measured.

    Parameters
    ----------
    seed : int
        Of data and training.
    steps : int
        Updates of each training.
    samples : tuple of int
        Numbers M of samples that are compared.
    runs : int
        Trainings for each M.
    report : callable
        Called with the number of trainings that have just ended.
    """
    rngs = iter(np.random.default_rng(seed).spawn(1000))
    mean = gaussian_mean(next(rngs))
    regression = correlated_regression(next(rngs))
    paths = {
        name: follow(v, mean, next(rngs), steps)
        for name, v in counted(VARIANTS.items(), report)
    }
    of_regression = {
        name: follow(VARIANTS[name], regression, next(rngs), steps)
        for name in counted(REGRESSION_VARIANTS, report)
    }
    moved = mean._replace(y=mean.y + 10.0)
    apart = {
        name: distance(VARIANTS[name], mean, moved, seed, steps)
        for name in counted(SHIFTED_DATA_VARIANTS, report, 2)
    }
    slopes = slopes_of_rho(mean, next(rngs), max(samples))
    by_batch: list[Row] = []
    for batch in counted(BATCH_SIZES, report):
        path = follow(Variant("", batch_size=batch), mean, next(rngs), steps)
        ends = float(path.deviations[-1, -1]), minibatch_fixed_point(mean, batch)[1]
        by_batch.append({"batch": batch, "found": ends[0], "predicted": ends[1]})
    by_samples = [
        train_with(m, regression, next(rngs), steps, runs)
        for m in counted(samples, report, runs)
    ]
    return Study(
        steps=steps,
        mean=mean,
        regression=regression,
        paths=paths,
        of_regression=of_regression,
        apart=apart,
        slopes=slopes,
        by_batch=by_batch,
        by_samples=by_samples,
        weights=weight_rows(next(rngs)),
    )


def reproduce(
    out: FilePath,
    seed: int = 0,
    *,
    steps: int = 2000,
    samples: tuple[int, ...] = (1, 2, 5, 10, 30, 100, 300, 1000),
    runs: int = 5,
    progress: bool | None = None,
) -> str:
    """Run everything, write the picture and ``numbers.json`` into `out`, and return the tables.

    Parameters
    ----------
    out : pathlib.Path
        Folder of the results.
    seed : int
        Of data and training.
    steps : int
        Updates of each training.
    samples : tuple of int
        Numbers M of samples that are compared.
    runs : int
        Trainings for each M.
    progress : bool, optional
        Show a progress bar; by default only in a terminal.

    Returns
    -------
    str
        The tables.
    """
    work = (
        len(VARIANTS)
        + len(REGRESSION_VARIANTS)
        + 2 * len(SHIFTED_DATA_VARIANTS)
        + len(BATCH_SIZES)
        + runs * len(samples)
    )
    with count_steps(work, progress) as report:
        study = measure(seed, steps, samples, runs, report)
    corrected = study.of_regression["corrected"]
    figure = draw_trajectories(study.mean, study.paths, study.regression, corrected)
    numbers = {
        "gaussian mean": _final(study.mean, study.paths),
        "regression": _final(study.regression, study.of_regression),
        "paths apart": study.apart,
        "d U / d rho": study.slopes,
        "by batch": study.by_batch,
        "by samples": study.by_samples,
        "weights": study.weights,
    }
    write(out, {"trajectories": figure}, numbers)
    return lay_out(study)


def _final(problem: Regression, paths: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    best = exactly.inclusive_optimum(exactly.exact(problem))
    ends = {"exact": best, **{name: path.last for name, path in paths.items()}}
    return {
        name: {"mean": q.mean, "deviation": q.deviation} for name, q in ends.items()
    }


def lay_out(study: Study) -> str:
    """Return every number that is printed, and which lines of the algorithm hold."""
    mean = exactly.exact(study.mean)
    regression = exactly.exact(study.regression)
    best = exactly.inclusive_optimum(regression)
    target = regression.posterior
    limit = np.exp(-exactly.renyi_divergence(2.0, target, best))
    ends = {
        "posterior, each weight alone": best,
        **{
            VARIANTS[name].title: path.last
            for name, path in study.of_regression.items()
        },
        "least free energy": exactly.reverse_optimum(regression),
    }

    def end(q: Gaussian) -> str:
        with np.errstate(over="ignore"):
            divergence = exactly.kl(target, q)
        means = (f"{m:.4f}" for m in q.mean)
        deviations = (f"{sd:.3g}" for sd in q.deviation)
        return " | ".join([*means, *deviations, f"{divergence:.3g}"])

    def shifted(row: Mapping[str, Any]) -> str:
        effective = [
            f"{row['effective'][shift] or nan:.1f}"
            for shift in ("+ min", "- min", "- max")
        ]
        return " | ".join([f"{row['low']:.0f}", f"{row['high']:.0f}", *effective])

    def corrected(row: Mapping[str, Any]) -> str:
        worst = max(row["excess"])
        ratios = [f"{ratio:.3f}" for ratio in row["ratios"]]
        reached = "yes" if worst <= REACHED_EXCESS else "no"
        excess = f"{np.median(row['excess']):.2g} | {worst:.2g} | {reached}"
        effective = f"{row['share'] * row['samples']:.1f} | {row['share']:.1%}"
        return " | ".join([excess, *ratios, effective])

    return text(
        listed(
            "Gaussian mean: 20 values, prior N(0, 1); q after training (units of y).",
            f"{study.steps} steps, M = {VARIANTS['corrected'].samples}, all rows | mean | "
            "standard deviation",
            {"exact posterior": exactly.inclusive_optimum(mean)}
            | {VARIANTS[name].title: path.last for name, path in study.paths.items()},
            "{0.mean[1]:.4f} | {0.deviation[1]:.4g}",
        ),
        listed(
            "Regression: 30 rows, inputs of correlation 0.6 and a bias, prior N(0, 1); nats.",
            " | ".join(["", "mean 1", "mean 2", "bias", *SD_TITLES, "KL(p || q)"]),
            ends,
            end,
        ),
        listed(
            "(a) Weights of 200 samples of the prior (G7): effective samples after each shift.",
            "values | log w from (nats) | to | + min (printed) | - min | - max",
            ((str(row["rows"]), row) for row in study.weights),
            shifted,
        ),
        listed(
            "(b), (c) How far the path moves if every value does by 10 (units of y).",
            "reading | most",
            (
                (VARIANTS[name].title, distance)
                for name, distance in study.apart.items()
            ),
            "{:.3g}",
        ),
        listed(
            "(d) N/S inside exp (D30): standard deviation of q, Gaussian mean (units of y).",
            "S | found | predicted, sqrt(v + Var m_i)",
            ((str(row["batch"]), row) for row in study.by_batch),
            "{0[found]:.4f} | {0[predicted]:.4f}",
        ),
        listed(
            "(e) dU/d rho of the bias where q is N(1, 0.5^2) (nats).",
            "estimate | mean | standard error",
            study.slopes,
            lambda of: f"{of[0]:.4f} | {f'{of[1]:.1g}' if of[1] > 1e-12 else '0'}",
        ),
        listed(
            "Corrected, regression: KL above its least (nats); sd over marginal sd; effective "
            f"samples,\nof many at the optimum {limit:.1%}.",
            " | ".join(
                [
                    "M",
                    "median",
                    "worst",
                    f"<= {REACHED_EXCESS:g}",
                    *SD_TITLES,
                    "effective",
                    "of M",
                ]
            ),
            ((str(row["samples"]), row) for row in study.by_samples),
            corrected,
        ),
        claims(
            "Weights must be finite, a path see the data, a standard deviation be within "
            f"{SD_RTOL:.0%}.",
            "the paper, as printed",
            claims_of_the_paper(study),
        ),
    )


def claims_of_the_paper(study: Study) -> list[Claim]:
    """Return the printed lines of the algorithm as claims, each judged."""
    best = exactly.inclusive_optimum(exactly.exact(study.mean)).deviation[-1]
    rows_without_weights = [
        row["rows"] for row in study.weights if row["effective"]["+ min"] is None
    ]
    rows = [
        Claim(
            "(a) weights exp(log w + min log w)",
            "finite",
            f"nan of {rows_without_weights} values",
            not rows_without_weights,
        )
    ]
    for name, statement in (
        ("through", "(b) gradient of log q(g(eps)), through g"),
        ("one", "(c) one sample per step"),
        ("corrected", "corrected, G8"),
    ):
        apart = study.apart[name]
        ours = name == "corrected"
        rows.append(
            Claim(
                statement,
                "sees the data",
                f"moves by {apart:.3g}",
                apart > PATH_ROUNDING,
                ours,
            )
        )
    for name, statement in (
        ("minibatch", "(d) N/S inside exp, S = 1"),
        ("equation 5", "(e) Equation 5"),
    ):
        ratio = float(study.paths[name].deviations[-1, -1] / best)
        rows.append(
            Claim(statement, "its sd x 1", f"x {ratio:.1g}", abs(ratio - 1) <= SD_RTOL)
        )
    exact = study.slopes["exact"][0]
    (value, error) = study.slopes["Equation 5 as printed"]
    n_errors = abs(value - exact) / error
    return [
        *rows,
        Claim("(e) Equation 5 is dU/d rho", f"{exact:.4f}", f"{value:.4f}", n_errors),
    ]
