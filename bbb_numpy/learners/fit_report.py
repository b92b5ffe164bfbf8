"""Whether a fit has done better than no fit at all, and if not, why not.

Everything that is judged here is measured on the training rows, so that no held-out rows are
needed: a fit may pass and still be poor, but one that fails has not even described the rows that
it was trained on. Every threshold has a reason, which stands with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isnan, log, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..evaluation.predictive import Source, log_predictive_density
from ..model.joint import Likelihood, Prior
from ..model.objectives import MLE
from ..numeric.elementary import LOG_2PI
from ..numeric.layout import Layout
from ..numeric.standardisation import moments
from ..parts.discrete import BernoulliLikelihood, CategoricalLikelihood
from ..parts.full_rank import FullRank
from ..parts.posteriors import PointMass
from ..training import Epoch
from ..training.optimizers import Adam
from ..training.recipe import Rows

__all__ = ["FitReport", "Trained", "fit_report"]

Array = NDArray[Any]

VERY_STRONG = 5.0  # nats of evidence in all rows: odds of 150 to 1 (Kass and Raftery 1995)
# A function r times as large as those under the prior costs about r^2 / 2 nats
NARROW = (2 * VERY_STRONG) ** -0.5
NEGLIGIBLE = 0.05  # nats per row: what a standard deviation that is a quarter off costs
CERTAIN = 3.0  # standard errors
GROSS = 1.0  # nats per row: a density less than 1/e of what another has
BULK = 0.95  # share of the rows that outliers are measured against
FEWEST = 10  # rows among which one can be told from the others
# Standard deviations: differences of inputs that no weight of a usual size brings out, and those
# that take weights of 20, where those of priors are 0.5 or 1.5
SQUEEZED, HIDDEN = 1e-4, 0.05
STARTED = 0.1  # standard deviation of the means with which a posterior starts unless told otherwise
UNIT = 10.0  # training starts with numbers between 1 / UNIT and it
FAST, SLOW = 0.1, 1e-3  # learning rates that are suspect where a fit has failed
NOISE_TO_UNIT = 2.3  # from log 0.1, where the noise starts, to log 1, that of what ignores X
LAST = 4  # epochs: the loss is watched over their last quarter, and so many at least
LEAST_KL = 1.0  # nats: below, the data have told the weights next to nothing
ROWS, SAMPLES = (100, 1000), (32, 100)  # least and most that are looked at
FREE = 2e8  # multiplications, a few hundredths of a second, that are no matter

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
    base: float  # of what ignores X: N(mean(y), var(y)), base rates, a Poisson of the mean rate
    least: float  # what log_density has to reach: base, less what chance can explain
    line: float  # of a least-squares line, less what it costs; nan where the fit beats the base
    slope: float  # of a row's NLL in as many epochs again, if it went on as in the last quarter
    slope_error: float  # its standard error
    moved: float  # largest change of a learned number; nan if training did not start anew
    learning_rate: float  # of the last step
    kl: float  # of the last epoch, nats
    largest_x: float  # magnitude that the network was given
    largest_y: float  # and was to find
    spread_x: float  # smallest standard deviation of the bulk of a column, in units of the column's
    spread_y: float
    bulk_gap: float  # by which the bulk is described worse than by N(its mean, its variance)
    reach: float = nan  # how much functions under the prior vary over the rows, of `KINDS`
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
        return f"{'; '.join(self.findings)}. Likely cause: {'; or '.join(self.causes)}"

    @property
    def out_of_reach(self) -> bool:
        """Whether all rows cannot pay for a function as large as y, at 10 times less noise."""
        return 0 < self.reach < NARROW and 0.5 / self.reach**2 > self.rows * NOISE_TO_UNIT

    def __str__(self) -> str:
        """Return a table of what was measured, and the verdict."""
        numbers = {
            "log density": self.log_density,
            "without X": self.base,
            "of a line": self.line,
            "slope of the loss": self.slope,
            "moved": self.moved,
            "KL": self.kl,
            "largest |X|": self.largest_x,
            "largest |y|": self.largest_y,
        }
        lines = [f"{name:<17} {one:12.4g}" for name, one in numbers.items() if not isnan(one)]
        lines[0] += f" nats per row of {self.rows}"
        return "\n".join([*lines, self.message or "nothing is wrong on these rows"])


class Trained(NamedTuple):
    """How a fit came about, where it was trained and not sampled."""

    optimizer: Any
    history: Sequence[Epoch]  # of this call
    samples: int  # per step
    moved: float  # largest change of a learned number; nan if it did not start anew
    whole: bool  # whether it went on to the last epoch


def fit_report(learner: Any, data: Rows, trained: Trained | None) -> FitReport:
    """Measure a fit on its training rows in training's units, and judge it.

    It costs less than about a tenth of the training, or next to nothing; for very large networks
    after very short training, 32 weight samples at a hundred rows. No generator of the learner is
    used. `trained` is None after sampling.
    """
    source, theta, seed = learner.estimator_, learner.theta_, learner.predict_seed_
    rows, likelihood = len(data.x), source.model.likelihood
    looked_at, samples = _effort(source, theta, rows, trained)
    chosen = np.linspace(0, rows - 1, looked_at).astype(int)
    x, y = data.x[chosen], data.y[chosen]
    rng, units = np.random.default_rng(seed), float(np.log(learner.y_scale_).sum())
    last = trained.history[-1] if trained else None
    with np.errstate(all="ignore"):
        fit = log_predictive_density(source, theta, x, y, rng=rng, samples=samples)
        fit = np.where(np.isfinite(fit), fit, -np.inf).astype(np.float64)
        x, y = x.astype(np.float64), y.astype(np.float64)
        ignorant, free = _base(likelihood, data.y, y)
        density, base = float(fit.mean()), float(ignorant.mean())
        chance = max(NEGLIGIBLE, (VERY_STRONG + 0.5 * free) / rows)
        if len(x) < rows and np.isfinite(fit).all():  # the rows themselves are a sample
            chance += CERTAIN * float((fit - ignorant).std()) / len(x) ** 0.5
        poor, real = not density > base + NEGLIGIBLE, likelihood.target_kind == "real"
        slope, slope_error = _slope(trained, rows)
        report = FitReport(
            rows=rows,
            log_density=density - units,
            base=base - units,
            least=base - chance - units,
            line=base + _gain_of_line(x, y) - units if poor else nan,
            slope=slope,
            slope_error=slope_error,
            moved=trained.moved if trained else nan,
            learning_rate=last.learning_rate if last else nan,
            kl=last.kl if last else nan,
            largest_x=float(np.abs(data.x).max()),
            largest_y=float(np.abs(data.y).max()),
            spread_x=_spread(data.x, x),
            spread_y=_spread(data.y, y) if real else nan,
            bulk_gap=_bulk_gap(y, fit) if real else nan,
            reach=_reach(source, x, y, seed) if poor else nan,
        )
    found = _findings(report, source, trained)
    causes = _causes(report, set(found), source, trained, learner.standardize) if found else []
    return replace(report, findings=tuple(found.values()), causes=tuple(causes))


# What is measured.


def _effort(source: Source, theta: Array, rows: int, trained: Trained | None) -> tuple[int, int]:
    """Return how many rows are looked at, and with how many weight vectors."""
    most = min(rows, ROWS[1])
    if trained is None:
        return most, min(SAMPLES[1], len(theta))
    if isinstance(getattr(source, "posterior", None), PointMass):
        return most, 1
    passes = len(trained.history) * rows * trained.samples  # each forward, and twice that back
    allowed = max(passes / 4, FREE / max(source.model.layout.size, 1))
    looked_at = int(np.clip(allowed // SAMPLES[0], min(ROWS[0], rows), most))
    return looked_at, int(np.clip(allowed // looked_at, *SAMPLES))


def _base(likelihood: Likelihood, y: Array, chosen: Array) -> tuple[Array, int]:
    """Return the log density (n,) of the `chosen` of all `y` without X, and its free numbers.

    Half an observation is added to every count, so that what never occurs has a logarithm.
    """
    outputs = y.shape[1]
    if likelihood.target_kind == "real":
        return _normal(chosen, *moments(y.astype(np.float64), True)), 2 * outputs
    total = y.sum(axis=0, dtype=np.float64) + 0.5
    others = len(y) - total + 1.0 if isinstance(likelihood, BernoulliLikelihood) else len(y)
    constant = np.broadcast_to(np.log(total / others), (1, *chosen.shape)).copy()
    found, _ = likelihood.log_density({}, constant, chosen)
    return found[0], outputs - isinstance(likelihood, CategoricalLikelihood)


def _normal(y: Array, mean: Array, scale: Array) -> Array:
    """Return the log density (n,) of `y` (n, K) under independent Gaussians."""
    z = (y - mean) / scale
    return -0.5 * (z * z + LOG_2PI).sum(axis=1) - np.log(scale).sum()


def _bulk_gap(y: Array, fit: Array) -> float:
    """Return what all rows but those furthest from the medians lose by the `fit` (n,)."""
    if len(y) < FEWEST:
        return nan
    distance = (np.abs(y - np.median(y, axis=0)) / moments(y, True)[1]).max(axis=1)
    bulk = np.argsort(distance, kind="stable")[: int(BULK * len(y))]
    return float((_normal(y[bulk], *moments(y[bulk], True)) - fit[bulk]).mean())


def _spread(everything: Array, some: Array) -> float:
    """Return the smallest standard deviation of the bulk of a column, in units of the column's.

    Extreme rows are looked for in everything (N, d), the bulk in some of the rows (n, d). Columns
    whose bulk does not vary at all have nothing to lose.
    """
    rows = len(some)
    if rows < FEWEST:
        return nan
    ordered = np.sort(some, axis=0)
    cut = max(1, int(0.5 * (1.0 - BULK) * rows))
    inner, middle = ordered[cut : rows - cut].std(axis=0), ordered[rows // 2]
    furthest = np.abs(everything - middle).max(axis=0)
    whole = np.maximum(some.std(axis=0), furthest / len(everything) ** 0.5)
    varies = inner > 1e-12 * np.abs(middle)
    return float((inner[varies] / whole[varies]).min()) if varies.any() else nan


def _gain_of_line(x: Array, y: Array) -> float:
    """Return what a least-squares line gains per row over a constant, less what it costs (BIC).

    For classes and counts its correlation with their numbers is as good a sign of a signal.
    """
    rows = len(x)
    x, y = ((array - mean) / scale for array in (x, y) for mean, scale in [moments(array, True)])
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
    w = prior.draw(np.random.default_rng(seed), _start(prior), (SAMPLES[0], model.layout.size))
    f = model.predict(w, x[:: max(1, len(x) // ROWS[0])])[..., : model.outputs]
    kind = model.likelihood.target_kind
    unit = moments(y, True)[1] if kind == "real" else KINDS[kind][1]
    return float(np.median(f.std(axis=1) / unit))


def _start(prior: Prior) -> dict[str, Array]:
    return Layout(prior.blocks()).views(prior.init(np.float64))


def _slope(trained: Trained | None, rows: int) -> tuple[float, float]:
    """Return the change of the loss per row in as many epochs again, and its standard error.

    The loss is the likelihood's part: the other is changed by warm-up, and falls for long without
    consequence where standard deviations still grow towards the prior's.
    """
    if trained is None or not trained.whole or len(trained.history) < LAST:
        return nan, nan
    epochs = len(trained.history)
    loss = np.array([epoch.nll for epoch in trained.history[-max(LAST, epochs // 4) :]]) / rows
    (slope, _), covariance = np.polyfit(np.arange(len(loss)), loss, 1, cov=True)
    return float(slope * epochs), float(covariance[0, 0] ** 0.5 * epochs)


# What is concluded.


def _findings(report: FitReport, source: Source, trained: Trained | None) -> dict[str, str]:
    """Return what is wrong, by a name of its kind."""
    found: dict[str, str] = {}
    density, spread, prior = report.log_density, report.spread_y, source.model.prior
    poor = not isnan(report.line)
    if report.rows == 1:
        found["rows"] = "there is one row to train on, which shows no spread and no dependence"
    elif not density >= report.least:
        poor = True
        found["worse"] = (
            "the fit is worse than ignoring X: the mean log density of its training rows is "
            f"{density:.4g} nats, that of {KINDS[source.model.likelihood.target_kind][0]} "
            f"{report.base:.4g}"
        )
    elif report.line - density > max(2 * NEGLIGIBLE, VERY_STRONG / report.rows):
        found["nothing"] = (
            "the fit is no better than ignoring X, where a straight line is: the mean log density "
            f"of the training rows is {density:.4g} nats, that of the line {report.line:.4g}"
        )
    elif report.out_of_reach:
        found["narrow"] = "the fit is no better than ignoring X, and its prior does not let it be"
    # Steep is a pace not below the average one, by which the fit has left the base behind
    fall, gain = -report.slope, density - report.base
    if fall > max(CERTAIN * report.slope_error, NEGLIGIBLE, VERY_STRONG / report.rows, gain):
        found["falling"] = (
            f"the loss was still falling steeply when training ended, by {fall:.3g} nats per row "
            "in as many epochs again"
        )
    if trained and isinstance(trained.optimizer, Adam):
        widest = min(prior.deviation(_start(prior)), 1.0)
        if report.learning_rate >= widest:
            found["restless"] = (
                f"the last steps still moved every weight by {report.learning_rate:.3g}, where "
                f"the prior's standard deviation is {widest:.3g}"
            )
    if report.moved < STARTED:
        found["idle"] = (
            f"no number that is learned has moved by more than {report.moved:.2g}, less than the "
            f"{STARTED:g} by which weights differ at the start"
        )
    wasted = -log(spread) - 0.5 * (1 - spread**2) if spread > 0 else nan
    if min(report.bulk_gap, wasted) > GROSS:
        found["outliers in y"] = (
            f"most rows are described worse, by {report.bulk_gap:.3g} nats, than by a Gaussian of "
            "their own"
        )
    if report.spread_x < (HIDDEN if poor else SQUEEZED):
        found["outliers in X"] = (
            f"in a column of X most rows differ by only {report.spread_x:.2g} of its "
            f"standard deviation, and a row is {report.largest_x:.3g} away"
        )
    return found


def _causes(
    report: FitReport, found: set[str], source: Source, trained: Trained | None, standardize: bool
) -> list[str]:
    """Return likely causes with their remedies: those in the data, else in the model or training.

    Where none of them is plain, what is left: short chains, or too few rows.
    """
    model, likelihood, rows = source.model, source.model.likelihood, report.rows
    real = likelihood.target_kind == "real"
    causes = list(_causes_in_data(report, found, real, standardize))
    if causes:
        return causes
    noise_is_fixed = likelihood.noise_name and not likelihood.blocks(model.outputs)
    if real and "worse" in found and noise_is_fixed:
        causes.append(
            f"a noise scale that is fixed, {likelihood}; learn it, as "
            "likelihood='gaussian-learned' and 'student-t-learned' do"
        )
    if (beta := getattr(getattr(source, "objective", None), "beta", 1.0)) > 1.0:
        causes.append(f"a KL term that counts {beta:g} times; use objective='elbo'")
    if 0 < report.reach < NARROW:
        times = report.reach ** (-1 / (len(model.network.sizes) - 1))  # of every layer's weights
        causes.append(
            "a prior that is too narrow: under it functions vary from row to row by "
            f"{report.reach:.2g} of {KINDS[likelihood.target_kind][2]}; use one about {times:.3g} "
            "times as wide"
        )
    if trained is not None and not report.out_of_reach:
        rate = trained.optimizer.learning_rate
        short = report.moved < NOISE_TO_UNIT and "worse" in found
        unfinished = short or found & {"idle", "falling"}
        if rate >= FAST:
            remedy = "try optimizer=Adam(1e-2, schedule=Cosine())"
            causes.append(f"a learning rate that is too high, {rate:g}; {remedy}")
        elif unfinished and rate < SLOW:
            causes.append(f"a learning rate that is too low, {rate:g}; try optimizer=Adam(1e-2)")
        elif unfinished:
            remedy = "train for more, or with smaller batches"
            causes.append(f"too few epochs, {len(trained.history)}; {remedy}")
    if causes:
        return causes
    if trained is None:
        return ["chains that are not there yet; use a longer warm_up, more draws or 'hmc'"]
    if report.kl < LEAST_KL or "nothing" in found or model.layout.size > rows:
        own = isinstance(getattr(source, "posterior", None), FullRank)
        remedy = "'full-rank' with its short steps, or 'map'" if own else "'map'"
        return [
            f"the posterior has collapsed to the prior: {rows} rows do not hold "
            f"{model.layout.size} weights; use fewer or narrower layers, more rows, or "
            f"inference={remedy}"
        ]
    return ["none that is known; try more epochs, another learning rate, or another prior"]


def _causes_in_data(
    report: FitReport, found: set[str], real: bool, standardize: bool
) -> Iterator[str]:
    if "rows" in found:
        yield "too few rows; give more of them"
        return
    sizes = {"X": report.largest_x, "y": report.largest_y if real else 1.0}
    far = [
        f"{name} reaches {size:.3g}"
        for name, size in sizes.items()
        if size and not 1 / UNIT < size < UNIT
    ]
    if "worse" in found and far and not standardize:
        where = ", ".join(far)
        yield f"units far from 1, in which training starts ({where}); use standardize=True"
    if "outliers in y" in found:
        yield (
            "outliers in y; correct or leave out those rows, or if they are real use "
            "likelihood='student-t-learned'"
        )
    if "outliers in X" in found:
        yield "outliers in X; correct or leave out those rows, or transform the column"
