"""Whether a fit has done better than no fit at all, and if not, why not.

Everything that is judged here is measured on the training rows, so that no held-out rows are
needed: a fit may pass and still be poor, but one that fails has not even described the rows that
it was trained on. Every threshold has a reason, which stands with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, log, nan
from typing import Any

import numpy as np
from scipy import stats

from ..evaluation.convergence import function_r_hats
from ..evaluation.predictive import Source, log_predictive_density, outputs, predict
from ..evaluation.quantiles import distribution_function
from ..model.joint import Likelihood, Prior
from ..model.objectives import MLE
from ..numeric.layout import Array, Layout
from ..numeric.standardisation import moments
from ..parts.discrete import BernoulliLikelihood, CategoricalLikelihood
from ..parts.posteriors import GaussianPosterior, PointMass
from ..parts.student_t import StudentTLikelihood
from ..training import EarlyStopping, Epoch
from ..training.optimizers import IVON, Adam
from ..training.recipe import Rows

__all__ = ["FitReport", "fit_report"]


# nats of evidence in all rows: odds of 150 to 1 (Kass and Raftery 1995)
VERY_STRONG = 5.0
# A function r times as large as those under the prior costs about r^2 / 2 nats
NARROW = (2 * VERY_STRONG) ** -0.5
NEGLIGIBLE = 0.05  # nats per row: what a standard deviation that is a quarter off costs
CERTAIN = 3.0  # standard errors
# of intervals, and the share of targets they hold that is too small
LEVEL, TOO_FEW = 0.9, 0.8
# quantiles, and standard deviations between them of a Gaussian
BULK, WIDTH = (0.1, 0.9), 2.56
# standard deviations: differences that only large weights, or little noise, bring out
HIDDEN = 0.1
UNIT = 10.0  # training starts with numbers between 1 / UNIT and it
FAST, SLOW = 0.1, 1e-3  # learning rates that are suspect where a fit has failed
# nats per row by which the loss of steps that are too large rises in between
RISE = 1.0
# Adam moves no weight farther than this path, half of what the prior is wide
LEAST_PATH = 0.25
LONGER = 4  # times as many epochs are advised
# nats per weight: a standard deviation that is 0.4 of its prior's costs as much
FREE = 0.5
# of `KINDS`: the functions of a posterior that differ so much on its own rows
UNSURE = 0.3
# from log 0.1, where the noise starts, to log 1, that of what ignores X
NOISE_TO_UNIT = 2.3
LAST = 4  # epochs: the loss is watched over their last quarter, and so many at least
LEAST_KL = 1.0  # nats: below, the data have told the weights next to nothing
# of its start, at all: so narrow a prior turns the network off
COLLAPSED, NARROWEST = 1e-3, 1e-6
ROWS, SAMPLES = 1000, (32, 100)  # most rows, least and most samples that are looked at
JUDGED = 50  # rows whose R-hat is looked at: about as many milliseconds
# R-hat above which chains plainly differ (Gelman and Rubin 1992); mixed is below 1.01
APART = 1.1

NO_CAUSE = (
    "No cause is seen in units, outliers, noise, prior and training; see whether "
    "inference='map', which has no uncertainty of weights, and 'hmc', which has all, fail too"
)

# What targets of one kind are compared with, what functions have to vary by (a logit of 3 is a
# probability of 95 %), and the name of that
KINDS = {
    "real": ("N(mean(y), var(y))", 1.0, "the standard deviation of y"),
    "class": ("the base rates", 3.0, "a logit of 3"),
    "count": ("a Poisson of the mean rate", 1.0, "a log rate of 1"),
}


@dataclass(frozen=True)
class FitReport:
    """What `fit` measured of itself, on at most a thousand of its training rows.

    Densities are means per row, in nats, for y in its own units. All else is in training's units,
    which with ``standardize=True`` are standard deviations from the mean. What was not measured, or
    cannot be told, is nan.
    """

    rows: int  # to train on
    log_density: float  # of the fit; -inf where it overflows
    # of what ignores X: N(mean(y), var(y)), base rates, a Poisson of the mean rate
    base: float
    least: float  # what log_density has to reach: base, less what chance can explain
    # of a least-squares line, less what it costs; nan where the fit beats the base
    line: float
    # of a row's NLL in as many epochs again, if it went on as in the last quarter
    slope: float
    slope_error: float  # its standard error
    kl: float  # of the last epoch, nats
    prior_start: float  # standard deviation of a weight under a prior that is learned
    prior_end: float  # after training
    largest_x: float  # magnitude that the network was given
    largest_y: float  # and was to find
    # smallest standard deviation of the bulk of a column, in units of the column's
    spread_x: float
    spread_y: float
    # how much functions under the prior vary over the rows, of `KINDS`
    reach: float = nan
    r_hat: float = nan  # of chains: the largest of E[y|x] on 50 rows; nan without ArviZ
    # share of these rows where it is above 1.1; no finding: of most tables some
    apart: float = nan
    # share of targets in their 90 % intervals, where the noise is given
    held: float = nan
    path: float = nan  # sum of the learning rates of all steps
    # of a row's NLL along as much path again, as in its last quarter
    path_slope: float = nan
    path_slope_error: float = nan  # its standard error
    rise: float = nan  # of a row's NLL above its lowest value before, the largest
    error: float = nan  # root mean square of y - E[y|x, w], over rows and weights
    spread_f: float = nan  # standard deviation of a row's f over weights, of `KINDS`
    density_r_hat: float = nan  # of halves of chains, by their log density
    unmeasured: str = ""  # why chains have no R-hat here, and what to install
    findings: tuple[str, ...] = ()  # what is wrong; empty for a fit that passes
    causes: tuple[str, ...] = ()  # likely ones, each with its remedy

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    @property
    def message(self) -> str:
        """Findings, causes and remedies on one line; empty if the fit passed."""
        if self.passed:
            return ""
        likely = (
            f"Likely cause: {'; or '.join(self.causes)}" if self.causes else NO_CAUSE
        )
        return f"{'; '.join(self.findings)}. {likely}"

    @property
    def out_of_reach(self) -> bool:
        """Whether all rows cannot pay for a function as large as y, at 10 times less noise."""
        return (
            0 < self.reach < NARROW and 0.5 / self.reach**2 > self.rows * NOISE_TO_UNIT
        )

    def __str__(self) -> str:
        """Return a table of what was measured, and the verdict."""
        numbers = [
            (name, one)
            for name, one in vars(self).items()
            if isinstance(one, int | float)
        ]
        lines = [f"{name:<11} {one:12.4g}" for name, one in numbers if not isnan(one)]
        if self.unmeasured:
            lines.append(f"r_hat       not measured: {self.unmeasured}")
        return "\n".join([*lines, self.message or "nothing is wrong on these rows"])


def fit_report(
    learner: Any, data: Rows, parts: Mapping[str, Any], history: Sequence[Epoch]
) -> FitReport:
    """Measure a fit on its training rows in training's units, and judge it.

    It costs as much as a prediction for as many rows. No generator of the learner is used. The
    history is that of this call, by the parts of its plan; it is empty after sampling.
    """
    source, theta, seed = learner.estimator_, learner.theta_, learner.predict_seed_
    rows, model = len(data.x), source.model
    likelihood, prior = model.likelihood, model.prior
    chosen = np.linspace(0, rows - 1, min(rows, ROWS)).astype(int)
    x, y = data.x[chosen], data.y[chosen]
    units = float(np.log(learner.y_scale_).sum())
    # A quarter of the passes that training has made, each of which went forward and back
    passes = len(history) * rows * parts["samples"] / 4 if history else np.inf
    samples = int(np.clip(passes / len(x), *SAMPLES))
    if isinstance(getattr(source, "posterior", None), PointMass):
        samples = 1
    with np.errstate(all="ignore"):
        rng = np.random.default_rng(seed)
        fit = log_predictive_density(source, theta, x, y, rng=rng, samples=samples)
        fit = np.where(np.isfinite(fit), fit, -np.inf).astype(np.float64)
        x, y = x.astype(np.float64), y.astype(np.float64)
        ignorant, free = _base(likelihood, data.y, y)
        density, base = float(fit.mean()), float(ignorant.mean())
        chance = max(NEGLIGIBLE, (VERY_STRONG + 0.5 * free) / rows)
        if len(x) < rows and np.isfinite(fit).all():  # the rows themselves are a sample
            chance += CERTAIN * float((fit - ignorant).std()) / len(x) ** 0.5
        poor = not density > base + NEGLIGIBLE
        unfinished = not history or learner.training_.stopped
        slope, slope_error = (nan, nan) if unfinished else _slope(history, rows)
        learns = (
            history
            and prior.blocks()
            and isinstance(source.posterior, GaussianPosterior)
        )
        report = FitReport(
            rows=rows,
            log_density=density - units,
            base=base - units,
            least=base - chance - units,
            line=base + _gain_of_line(x, y) - units if poor else nan,
            slope=slope,
            slope_error=slope_error,
            kl=history[-1].kl if history else nan,
            prior_start=prior.sd(_start(prior)) if learns else nan,
            prior_end=prior.sd(source.layout.views(theta)) if learns else nan,
            largest_x=float(np.abs(data.x).max()),
            largest_y=float(np.abs(data.y).max()),
            spread_x=_spread(data.x, x),
            spread_y=_spread(data.y, y) if likelihood.target_kind == "real" else nan,
            reach=_reach(source, x, y, seed) if poor else nan,
            held=_held(source, theta, x, y, seed, samples),
            **_mixing(learner, x),
        )
        found = _findings(report, likelihood.target_kind, len(history))
        if not found:
            return report
        symptoms = _symptoms(learner, x, y, rows, parts, history, samples)
    report = replace(report, findings=tuple(found.values()), **symptoms)
    return replace(
        report, causes=tuple(_causes(report, set(found), learner, parts, history))
    )


def _symptoms(
    learner: Any,
    x: Array,
    y: Array,
    rows: int,
    parts: Mapping[str, Any],
    history: Sequence[Epoch],
    samples: int,
) -> dict[str, Any]:
    """Return what tells the causes of a failure apart; it costs two more predictions."""
    source, theta = learner.estimator_, learner.theta_
    found = {
        "spread_f": _spread_of_functions(source, theta, x, y, learner.predict_seed_)
    }
    if source.model.likelihood.target_kind == "real":
        rng = np.random.default_rng(learner.predict_seed_)
        moments_of_f = predict(source, theta, x, rng=rng, samples=samples)
        squares = np.square(y - moments_of_f.mean) + np.square(moments_of_f.epistemic)
        found["error"] = float(np.sqrt(squares.mean()))
    if not history:
        return found | {"density_r_hat": _split_r_hat(learner.draws_.log_density)}
    every = learner.training_.history
    slope, slope_error = _slope_of_path(history, rows)
    return found | {
        "path": -(-rows // parts["batch_size"])
        * sum(epoch.learning_rate for epoch in every),
        "path_slope": slope,
        "path_slope_error": slope_error,
        "rise": _rise(history, rows),
    }


# What is measured.


def _base(likelihood: Likelihood, y: Array, chosen: Array) -> tuple[Array, int]:
    """Return the log density (n,) of the `chosen` of all `y` without X, and its free numbers.

    Half an observation is added to every count, so that what never occurs has a logarithm.
    """
    outputs = y.shape[1]
    if likelihood.target_kind == "real":
        gaussian = stats.norm(*moments(y.astype(np.float64), True))
        return gaussian.logpdf(chosen).sum(axis=1), 2 * outputs
    total = y.sum(axis=0, dtype=np.float64) + 0.5
    others = (
        len(y) - total + 1.0 if isinstance(likelihood, BernoulliLikelihood) else len(y)
    )
    constant = np.broadcast_to(np.log(total / others), (1, *chosen.shape)).copy()
    found, _ = likelihood.log_density({}, constant, chosen)
    return found[0], outputs - isinstance(likelihood, CategoricalLikelihood)


def _spread(everything: Array, some: Array) -> float:
    """Return the smallest standard deviation of the bulk of a column, in units of the column's.

    Extreme rows are looked for in everything (N, d), the bulk in some of the rows (n, d). Columns
    whose bulk does not vary at all have nothing to lose.
    """
    low, high = np.quantile(some, BULK, axis=0)
    shares = (high - low) / (WIDTH * moments(everything, True)[1])
    return float(shares[high > low].min(initial=np.inf))


def _gain_of_line(x: Array, y: Array) -> float:
    """Return what a least-squares line gains per row over a constant, less what it costs (BIC).

    For classes and counts its correlation with their numbers is as good a sign of a signal.
    """
    rows = len(x)
    x, y = (
        (array - mean) / scale
        for array in (x, y)
        for mean, scale in [moments(array, True)]
    )
    x = x[:, x.any(axis=0)]
    if rows < 2 * (x.shape[1] + 1) or not x.shape[1]:
        return 0.0
    fitted = x @ np.linalg.lstsq(x, y, rcond=None)[0]
    left = np.maximum(np.square(y - fitted).mean(axis=0), np.finfo(float).eps)
    gain = -0.5 * np.log(left[y.any(axis=0)]) - 0.5 * x.shape[1] * log(rows) / rows
    return max(float(gain.max(initial=0.0)), 0.0)


def _reach(source: Source, x: Array, y: Array, seed: int) -> float:
    """Return the median over functions under the prior of how much they vary; nan without a prior.

    The prior is that before training.
    """
    model, prior = source.model, source.model.prior
    if isinstance(getattr(source, "objective", None), MLE):
        return nan
    w = prior.draw(
        np.random.default_rng(seed), _start(prior), (SAMPLES[0], model.layout.size)
    )
    f = model.predict(w, x[:: max(1, len(x) // SAMPLES[1])])[..., : model.outputs]
    kind = model.likelihood.target_kind
    return float(np.median(f.std(axis=1) / _unit(kind, y)))


def _unit(kind: str, y: Array) -> Any:
    """Return what functions of targets of one kind have to vary by: of each output, or of all."""
    return moments(y, True)[1] if kind == "real" else KINDS[kind][1]


def _spread_of_functions(
    source: Source, theta: Array, x: Array, y: Array, seed: int
) -> float:
    """Return how much functions of the posterior differ at a row, root mean square, of `KINDS`."""
    rng, chosen = np.random.default_rng(seed), x[:: max(1, len(x) // SAMPLES[1])]
    blocks = [f for *_, f, _ in outputs(source, theta, chosen, rng, SAMPLES[0])]
    f = np.concatenate(blocks).astype(np.float64)[..., : source.model.outputs]
    spread = f.std(axis=0) / _unit(source.model.likelihood.target_kind, y)
    return float(np.sqrt(np.square(spread).mean()))


def _split_r_hat(values: Array) -> float:
    """Return R-hat of numbers (T, S), each chain cut in two (Gelman and Rubin 1992)."""
    half = len(values) // 2
    if half < 2:
        return np.inf
    halves = np.concatenate([values[:half], values[-half:]], axis=1).astype(np.float64)
    within = halves.var(axis=0, ddof=1).mean()
    between = halves.mean(axis=0).var(ddof=1)
    return float(np.sqrt((half - 1) / half + between / within)) if within else np.inf


def _mixing(learner: Any, x: Array) -> dict[str, Any]:
    """Return `r_hat` and `apart` of chains, or why there are none; nan after training."""
    rows = x[np.linspace(0, len(x) - 1, min(JUDGED, len(x))).astype(int)]
    if not hasattr(learner, "draws_"):
        return {}
    try:
        found = function_r_hats(learner.draws_, rows)
    except (ImportError, ValueError) as error:
        return {"unmeasured": str(error)}
    return {"r_hat": float(found.max()), "apart": float(np.mean(found > APART))}


def _noise_is_given(source: Source) -> bool:
    likelihood = source.model.likelihood
    return bool(likelihood.noise_name) and not likelihood.blocks(source.model.outputs)


def _held(
    source: Source, theta: Array, x: Array, y: Array, seed: int, samples: int
) -> float:
    """Return the share of targets in their central intervals; nan where the noise is learned.

    Noise that is learned is as wide as the rows ask for, noise that is given may be anything.
    """
    if not _noise_is_given(source):
        return nan
    rng = np.random.default_rng(seed)
    try:
        pit = distribution_function(source, theta, x, y, rng=rng, samples=samples)
    except (
        TypeError,
        ValueError,
    ):  # a likelihood without one; a network that overflows
        return nan
    return float(np.mean(np.abs(pit - 0.5) <= 0.5 * LEVEL))


def _start(prior: Prior) -> dict[str, Array]:
    return Layout(prior.blocks()).views(prior.init(np.float64))


def _slope(history: Sequence[Epoch], rows: int) -> tuple[float, float]:
    """Return the change of the loss per row in as many epochs again, and its standard error.

    The loss is the likelihood's part: the other is changed by warm-up, and falls for long without
    consequence where standard deviations still grow towards the prior's.
    """
    epochs = len(history)
    if epochs < LAST:
        return nan, nan
    loss = np.array([epoch.nll for epoch in history[-max(LAST, epochs // 4) :]]) / rows
    (slope, _), covariance = np.polyfit(np.arange(len(loss)), loss, 1, cov=True)
    return float(slope * epochs), float(covariance[0, 0] ** 0.5 * epochs)


def _slope_of_path(history: Sequence[Epoch], rows: int) -> tuple[float, float]:
    """Return the change of the loss per row along as much path again, and its standard error.

    The path of an epoch is its learning rate. Where a schedule lets the rate fall, the last epochs
    are flat however short training was; along the path they are few.
    """
    rate = np.array([epoch.learning_rate for epoch in history])
    if len(history) < LAST or not rate.sum() > 0:
        return nan, nan
    path = np.cumsum(rate) / rate.sum()
    first = min(int(np.searchsorted(path, 0.75)), len(history) - LAST)
    loss = np.array([epoch.nll for epoch in history[first:]]) / rows
    (slope, _), covariance = np.polyfit(path[first:], loss, 1, cov=True)
    return float(slope), float(covariance[0, 0] ** 0.5)


def _rise(history: Sequence[Epoch], rows: int) -> float:
    """Return how far the loss per row has risen above what it was before."""
    loss = np.array([epoch.nll for epoch in history]) / rows
    return float((loss - np.minimum.accumulate(loss)).max())


# What is concluded.


def _findings(report: FitReport, kind: str, epochs: int) -> dict[str, str]:
    """Return what is wrong, by a name of its kind."""
    found: dict[str, str] = {}
    density, line = report.log_density, report.line
    no_better = "the fit is no better than ignoring X, "
    if report.rows == 1:
        found["rows"] = (
            "there is one row to train on, which shows no spread and no dependence"
        )
    elif not density >= report.least:
        found["worse"] = (
            "the fit is worse than ignoring X: the mean log density of its training rows is "
            f"{density:.4g} nats, that of {KINDS[kind][0]} {report.base:.4g}"
        )
    elif line - density > max(2 * NEGLIGIBLE, VERY_STRONG / report.rows):
        found["nothing"] = (
            f"{no_better}where a straight line is: the mean log density of the training rows is "
            f"{density:.4g} nats, that of the line {line:.4g}"
        )
    elif report.out_of_reach:
        found["narrow"] = f"{no_better}and its prior does not let it be"
    elif not isnan(line) and 0 < epochs < LAST:
        found["early"] = f"{no_better}after so few epochs"
    elif not isnan(line) and (report.spread_x < HIDDEN or report.spread_y < HIDDEN):
        found["outliers"] = f"{no_better}and a few rows are far from all others"
    # Steep is a pace not below the average one, by which the fit has left the base behind
    fall, gain = -report.slope, density - report.base
    if fall > max(
        CERTAIN * report.slope_error, NEGLIGIBLE, VERY_STRONG / report.rows, gain
    ):
        found["falling"] = (
            f"the loss was still falling steeply when training ended, by {fall:.3g} nats per row "
            "in as many epochs again"
        )
    error = (LEVEL * (1.0 - LEVEL) / report.rows) ** 0.5
    if report.held < min(TOO_FEW, LEVEL - CERTAIN * error):
        found["intervals"] = (
            f"the {100 * LEVEL:.0f} % intervals hold {100 * report.held:.0f} % of the training rows"
        )
    # Narrow alone is no fault; but where the posterior is the prior, the data rule nothing
    start, end = report.prior_start, report.prior_end
    nothing_learned = end < start and report.kl < LEAST_KL
    if (
        (np.isfinite(start) and end < COLLAPSED * start)
        or end < NARROWEST
        or nothing_learned
    ):
        found["collapsed"] = (
            f"the learned prior has collapsed: the standard deviation of a weight under it fell "
            f"from {start:.3g} to {end:.3g}, the KL term to {report.kl:.2g} nats, so that "
            "predictions hardly depend on X"
        )
    return found


def _causes(
    report: FitReport,
    found: set[str],
    learner: Any,
    parts: Mapping[str, Any],
    history: Sequence[Epoch],
) -> list[str]:
    """Return likely causes with their remedies, each of which a measurement speaks for.

    Those in the data come first, and alone: they hide the others. None may be left.
    """
    if "rows" in found:
        return ["too few rows; give more of them"]
    causes = _causes_in_data(report, found, learner, parts)
    if "collapsed" in found:
        causes.append("a prior that the data do not need; fix it (learn=False)")
    if not causes:
        causes = _causes_in_model(report, found, learner)
    if not history:
        return causes or _causes_in_chains(report, parts)
    return causes + _causes_in_training(
        report, found, bool(causes), learner, parts, history
    )


def _causes_in_data(
    report: FitReport, found: set[str], learner: Any, parts: Mapping[str, Any]
) -> list[str]:
    """Return units far from 1, and rows far from all others."""
    likelihood = learner.estimator_.model.likelihood
    causes = []
    sizes = {"X": report.largest_x}
    if likelihood.target_kind == "real":
        sizes["y"] = report.largest_y
    far = [
        f"{name} reaches {size:.3g}"
        for name, size in sizes.items()
        if size and not 1 / UNIT < size < UNIT
    ]
    if "worse" in found and far and not parts["standardize"]:
        where = ", ".join(far)
        causes.append(
            f"units far from 1, in which training starts ({where}); use standardize=True"
        )
    if found - {"falling", "collapsed", "intervals"}:
        remedy = "correct or leave out those rows"
        if report.spread_y < HIDDEN:
            learned = isinstance(likelihood, StudentTLikelihood) and likelihood.learn
            other = "" if learned else ", or use likelihood='student-t-learned'"
            causes.append(f"outliers in y; {remedy}{other}")
        if report.spread_x < HIDDEN:
            causes.append(f"outliers in X; {remedy}, or transform the column")
    return causes


def _causes_in_model(report: FitReport, found: set[str], learner: Any) -> list[str]:
    """Return noise that is fixed too small, a KL term that weighs too much, a narrow prior."""
    source = learner.estimator_
    model, likelihood = source.model, source.model.likelihood
    causes = []
    given = likelihood.scale if _noise_is_given(source) else np.inf
    if "intervals" in found or ("worse" in found and report.error > 2.0 * given):
        learned = ["gaussian-learned", "student-t-learned"]
        if isinstance(likelihood, StudentTLikelihood):
            learned.reverse()
        causes.append(
            f"a noise scale that is fixed, {likelihood}, while rows are {report.error:.2g} from "
            f"the fit; learn it, as likelihood={learned[0]!r} and {learned[1]!r} do"
        )
    per_weight = report.kl / model.layout.size
    beta = getattr(getattr(source, "objective", None), "beta", 1.0)
    if beta > 1.0 and per_weight < FREE:
        causes.append(f"a KL term that counts {beta:g} times; use objective='elbo'")
    if 0 < report.reach < NARROW:
        # of every layer's weights
        times = report.reach ** (-1 / (len(model.network.sizes) - 1))
        causes.append(
            "a prior that is too narrow: under it functions vary from row to row by "
            f"{report.reach:.2g} of {KINDS[likelihood.target_kind][2]}; use one about "
            f"{times:.3g} times as wide"
        )
    return causes


def _causes_in_chains(report: FitReport, parts: Mapping[str, Any]) -> list[str]:
    """Return chains whose halves differ."""
    if not report.density_r_hat > APART:
        return []
    other = "" if parts["inference"].sampler == "hmc" else " or 'hmc'"
    far = (
        "stand still"
        if np.isinf(report.density_r_hat)
        else f"R-hat {report.density_r_hat:.3g}"
    )
    return [
        f"chains that are not there yet (their log density: {far}); use a longer warm_up, more "
        f"draws{other}"
    ]


def _causes_in_training(
    report: FitReport,
    found: set[str],
    explained: bool,
    learner: Any,
    parts: Mapping[str, Any],
    history: Sequence[Epoch],
) -> list[str]:
    """Return steps that are too large, or too few, or a posterior as wide as its prior.

    A loss that falls proves nothing where something else explains the failure, but a path so
    short that no weight can have moved does. Longer training makes a wide posterior wider.
    """
    epochs, optimizer = len(history), parts["optimizer"]
    adam, rate = isinstance(optimizer, Adam), optimizer.learning_rate
    unmoved = epochs < LAST or (adam and report.path < LEAST_PATH)
    fall = -report.path_slope
    falls = fall > max(
        CERTAIN * report.path_slope_error, NEGLIGIBLE, VERY_STRONG / report.rows
    )
    if not explained and not unmoved:
        if adam and rate >= FAST and report.rise > RISE:
            return [
                f"steps with a learning rate of {rate:g}, during which the loss rose by "
                f"{report.rise:.3g} nats per row; use {_usual_optimizer(learner)}"
            ]
        free = report.kl < FREE * learner.estimator_.model.layout.size
        if free and report.spread_f > UNSURE and found - {"falling", "intervals"}:
            return [_wide_posterior(report, learner)]
    steep = "falling" in found and "collapsed" not in found
    short = unmoved or steep or (falls and not explained)
    if not short or report.out_of_reach:
        return []
    count = f"{epochs} epoch{'s' * (epochs > 1)} with a learning rate of {rate:g}"
    why = f"after which the loss still fell (by {fall:.3g} nats per row if it went on)"
    if unmoved and adam:
        why = f"in which a weight moves by {report.path:.2g} at most"
    if learner.training_.stopped:
        patience = max(
            LONGER * parts["early_stopping"].patience, EarlyStopping().patience
        )
        return [
            f"early stopping after {count}, {why}; use EarlyStopping(patience={patience})"
        ]
    remedies, usual_epochs = [], parts["usual_epochs"]
    slow = not isinstance(optimizer, IVON) and (rate < SLOW if adam else True)
    if epochs < usual_epochs or not slow:
        longer = usual_epochs if slow else max(LONGER * epochs, usual_epochs)
        remedies.append(f"train for more, such as epochs={longer}")
    if slow:
        remedies.append(f"use {_usual_optimizer(learner)}")
    return [f"{count}, {why}; {' and '.join(remedies)}"]


def _usual_optimizer(learner: Any) -> str:
    rate = learner.defaults["optimizer"].learning_rate
    return f"optimizer=Adam({rate:g}, schedule=Cosine())"


def _wide_posterior(report: FitReport, learner: Any) -> str:
    """Return that a posterior keeps to its prior, so that its functions differ as much as y."""
    model, usual = learner.estimator_.model, learner.defaults["hidden_layer_sizes"]
    widest = max(report.spread_f, report.reach)
    # of every layer's weights
    times = (UNSURE / widest) ** (1 / (len(model.network.sizes) - 1))
    remedies = [
        f"a prior about {times:.2g} times as wide",
        "more rows, or inference='map'",
    ]
    if sum(model.network.sizes[1:-1]) > sum(usual):
        remedies.insert(0, f"fewer units, such as hidden_layer_sizes={usual}")
    return (
        f"a posterior that keeps to its prior, {report.rows} rows for {model.layout.size} weights: "
        f"its functions differ at these rows by {report.spread_f:.2g} of "
        f"{KINDS[model.likelihood.target_kind][2]}; use {', '.join(remedies)}"
    )
