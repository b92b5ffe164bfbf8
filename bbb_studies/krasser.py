"""Krasser's post, repeated, and what it leaves out.

`reproduce` adds the total band (R10), the prediction from posterior means beside the predictive
mean (R9), the fixed prior, learned noise, and the prior's numbers as the post trains them,
which leave their domain (R8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.special import erf

from bbb_numpy.evaluation.predictive import Predictive, sample_functions
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.joint import Model
from bbb_numpy.model.objectives import FreeEnergy
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.parts.priors import Prior
from bbb_numpy.plots import fits
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    EDGE,
    GREY,
    SKY,
    VERMILLION,
    finish,
    plain_numbers,
)
from bbb_numpy.training import NonFiniteError, Recipe, Training, fit, start
from bbb_numpy.training.optimizers import Adam
from bbb_studies.data.toys import Toy, one_period
from bbb_studies.kit import Claim, claims, deviations, listed, panels, text, write
from bbb_studies.progress import ReportWork, counted, ignore_work, steps

Array = NDArray[Any]
DATA_RANGE = (-0.5, 0.5)  # x of the data
PANEL_RANGE = (-1.5, 1.5)  # x of the prediction
POST_NOISE_SCALE = 1.0  # of the post's data and likelihood
N_FUNCTIONS = 500  # draws of the posterior in a prediction
N_PANEL_POINTS = 1000  # x at which it is computed
# The learning rate at which the raw numbers leave their domain.
UNSTABLE_LEARNING_RATE = 0.1


@dataclass(frozen=True)
class Setting:
    """Prior, likelihood and training of a run; everything else is as in the post."""

    title: str
    prior: Any = ScaleMixturePrior(learn=True)
    likelihood: GaussianLikelihood = GaussianLikelihood(POST_NOISE_SCALE)
    beta: float = 1.0  # weight of the KL term
    rho: float = 0.0  # start of every rho
    learning_rate: float = 0.03

    def estimator(self) -> Reparameterised:
        """Return the post's network with this prior and likelihood.

        It starts at mu ~ N(0, s^2), s = 0.456 as of a weight under the prior's starting values.
        """
        posterior = MeanField(ScaleMixturePrior().sd({}), self.rho, 0.0)
        model = Model(MLP((1, 20, 20, 1)), self.prior, self.likelihood)
        return Reparameterised(model, posterior, FreeEnergy(self.beta))


LEARNED_NOISE = GaussianLikelihood(POST_NOISE_SCALE, learn=True)
RUN_SETTINGS = {
    "post": Setting("as in the post"),
    "fixed": Setting("prior fixed", ScaleMixturePrior()),
    "noise": Setting("noise learned", likelihood=LEARNED_NOISE),
    "cold": Setting("the same, KL x 0.1", likelihood=LEARNED_NOISE, beta=0.1, rho=-4.0),
}


class Numbers(NamedTuple):
    """One run as numbers; standard deviations in units of y."""

    free_energy: float  # nats, KL at full weight; mean of the last tenth of training
    kl: float
    nll: float
    rmse: float  # error of the predictive mean, against the truth inside the data range
    rmse_of_means: float  # the same error of the prediction from posterior means
    coverage: float  # share of new y inside within mean +- 1.96 total deviations
    coverage_epistemic: float  # the same within mean +- 1.96 epistemic ones
    epistemic_inside: float  # mean over the data range
    epistemic_outside: float  # mean over the rest of the panel
    pi: float
    sigma1: float
    sigma2: float
    noise: float  # learned, or fixed
    gap: float  # E_q f(x, w) - f(x, E_q w), root mean square over the panel
    gap_error: float  # its Monte Carlo standard error, root mean square over the panel
    gap_seen: float  # share of the panel where the gap exceeds 4 standard errors

    @property
    def ratio(self) -> float:
        """Epistemic standard deviation outside the data over that inside."""
        return self.epistemic_outside / self.epistemic_inside


class Trace(NamedTuple):
    """Learned numbers as training goes."""

    epochs: Array  # (T,)
    prior: Array  # (T, 3)  pi, sigma1, sigma2
    noise: Array  # (T,)


@dataclass(frozen=True, eq=False)
class Result:
    """One trained setting."""

    setting: Setting
    data: Toy
    training: Training
    trace: Trace
    x: Array  # (N_PANEL_POINTS, 1)
    predictive: Predictive  # (N_PANEL_POINTS, 1) each
    of_means: Array  # (N_PANEL_POINTS, 1)  f(x, E_q w)
    numbers: Numbers


class Domain(NamedTuple):
    """The prior's numbers at the raised learning rate, for some seeds."""

    traces: list[Trace]
    finite: list[bool]  # for each seed, whether every free energy was finite

    @property
    def left(self) -> int:
        """Number of seeds that had pi outside (0, 1) or a scale <= 0."""
        return sum(
            bool((t.prior <= 0).any() or (t.prior[:, 0] >= 1).any())
            for t in self.traces
        )


def run(name: str = "post", seed: int = 0, epochs: int = 1500) -> Result:
    """Draw data, train one of `RUN_SETTINGS`, and return its predictions and their measures.

    The data of a seed are the same for all settings.

    Parameters
    ----------
    name : str
        A key of `RUN_SETTINGS`.
    seed : int
        Of data, training and prediction.
    epochs : int
        Passes over the data.

    Raises
    ------
    ArithmeticError
        If the free energy is nan or infinite.
    """
    setting = RUN_SETTINGS[name]
    data_rng, train_rng, predict_rng = np.random.default_rng(seed).spawn(3)
    data = one_period(data_rng, noise=POST_NOISE_SCALE)
    training, trace, finite = train(setting, data, train_rng, epochs)
    if not finite:
        raise ArithmeticError(
            f"{setting.title}: the free energy is not finite; lower the learning rate"
        )
    estimator = setting.estimator()
    x = np.linspace(*PANEL_RANGE, N_PANEL_POINTS)[:, None]
    functions = sample_functions(
        estimator, training.theta, x, rng=predict_rng, samples=N_FUNCTIONS
    )

    blocks = estimator.layout.views(training.theta)
    noise = np.full((N_PANEL_POINTS, 1), trace.noise[-1])
    p = Predictive(functions.mean(axis=0), functions.std(axis=0, ddof=1), noise)
    of_means = estimator.model.predict(blocks["mu"][None], x)[0]
    last = training.history[-max(1, epochs // 10) :]
    in_data_range = (x >= DATA_RANGE[0]) & (x <= DATA_RANGE[1])
    error = (p.mean - data.truth(x))[in_data_range]
    pi, sigma1, sigma2 = map(float, trace.prior[-1])
    numbers = Numbers(
        float(np.mean([e.kl + e.nll for e in last])),
        float(np.mean([e.kl for e in last])),
        float(np.mean([e.nll for e in last])),
        rmse=float(np.sqrt(np.mean(error**2))),
        rmse_of_means=float(
            np.sqrt(np.mean((of_means - data.truth(x))[in_data_range] ** 2))
        ),
        coverage=_coverage(error, p.total[in_data_range]),
        coverage_epistemic=_coverage(error, p.epistemic[in_data_range]),
        epistemic_inside=float(p.epistemic[in_data_range].mean()),
        epistemic_outside=float(p.epistemic[~in_data_range].mean()),
        pi=pi,
        sigma1=sigma1,
        sigma2=sigma2,
        noise=float(trace.noise[-1]),
        **_gap(p, of_means),
    )
    return Result(setting, data, training, trace, x, p, of_means, numbers)


def train(
    setting: Setting, data: Toy, rng: np.random.Generator, epochs: int, every: int = 10
) -> tuple[Training, Trace, bool]:
    """Train on all rows with one sample a step, and record the learned numbers on the way.

    Parameters
    ----------
    setting : Setting
        Prior, likelihood and learning rate.
    data : Toy
        Rows to train on.
    rng : numpy.random.Generator
        Draws the start and the noise.
    epochs : int
        Passes over the data; training ends at the first free energy that is not finite.
    every : int
        Passes from one record to the next.

    Returns
    -------
    training : Training
        State after the last pass.
    trace : Trace
        The recorded numbers.
    finite : bool
        Whether every free energy was finite.
    """
    estimator = setting.estimator()
    optimizer = Adam(setting.learning_rate)
    state = start(estimator, rng, optimizer)
    finite = True
    marks = [0]
    rows = [_learned(setting, estimator, state.theta)]
    while marks[-1] < epochs and finite:
        n_epochs = min(every, epochs - marks[-1])
        recipe = Recipe(optimizer, epochs=n_epochs, batch_size=len(data.x))
        try:
            state = fit(estimator, state, *data[:2], recipe, rng=rng, progress=False)
        except NonFiniteError as error:
            state = error.training
            finite = False
        if state.stopped == "interrupted":
            raise KeyboardInterrupt  # numbers of half a training would look like those of a whole
        marks.append(len(state.history))
        rows.append(_learned(setting, estimator, state.theta))
    table = np.array(rows)
    return state, Trace(np.array(marks), table[:, :3], table[:, 3]), finite


def _learned(setting: Setting, estimator: Reparameterised, theta: Array) -> list[float]:
    blocks = estimator.layout.views(theta)
    noise = setting.likelihood.noise_scale(blocks, 1)
    return [*setting.prior.values(blocks), float(noise[0])]


def domains(
    seed: int = 0, seeds: int = 12, epochs: int = 150, report: ReportWork = ignore_work
) -> dict[str, Domain]:
    """Train at a raised learning rate with the post's raw numbers of the prior, and with R8's.

    Parameters
    ----------
    seed : int
        The first seed.
    seeds : int
        Number of seeds.
    epochs : int
        Passes over the data for each.
    report : callable
        Called with `epochs` after each training.

    Returns
    -------
    dict of str to Domain
        The prior's numbers after every epoch, by prior.
    """
    priors = {
        "as the post trains it": RawMixturePrior(),
        "through a sigmoid (R8)": ScaleMixturePrior(learn=True),
    }
    by_domain = {}
    for name, prior in priors.items():
        setting = Setting(name, prior, learning_rate=UNSTABLE_LEARNING_RATE)
        traces = []
        finite = []
        for k in counted(range(seed, seed + seeds), report, epochs):
            data_rng, train_rng, _ = np.random.default_rng(k).spawn(3)
            data = one_period(data_rng, noise=POST_NOISE_SCALE)
            _, trace, trace_is_finite = train(setting, data, train_rng, epochs, every=1)
            traces.append(trace)
            finite.append(trace_is_finite)
        by_domain[name] = Domain(traces, finite)
    return by_domain


def _coverage(error: Array, sd: Array) -> float:
    """Return the probability that a new y, N(truth, POST_NOISE_SCALE^2), is within 1.96 `sd`."""
    upper = erf((error + 1.96 * sd) / (POST_NOISE_SCALE * 2**0.5))
    lower = erf((error - 1.96 * sd) / (POST_NOISE_SCALE * 2**0.5))
    return float(np.mean(0.5 * (upper - lower)))


def _gap(p: Predictive, of_means: Array) -> dict[str, float]:
    """Return the size of E_q f(x, w) - f(x, E_q w) and its Monte Carlo error (R9)."""
    gap = p.mean - of_means
    error = p.epistemic / N_FUNCTIONS**0.5
    return {
        "gap": float(np.sqrt(np.mean(gap**2))),
        "gap_error": float(np.sqrt(np.mean(error**2))),
        "gap_seen": float(np.mean(np.abs(gap) / error > 4)),
    }


@dataclass(frozen=True)
class RawMixturePrior(Prior):
    """The prior *as the post programs it*, to show that it fails: never use it.

    The trained numbers are pi, sigma1 and sigma2 themselves, and the density is the logarithm
    of a sum of densities (R4, R8).
    """

    pi: float = 0.2
    sigma1: float = 1.0
    sigma2: float = 0.1

    def blocks(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Name the learned block: ``prior_raw`` (3,) = (pi, sigma1, sigma2)."""
        return (("prior_raw", (3,)),)

    def initial_values(self) -> dict[str, float]:
        """Return the three numbers of the mixture as they start."""
        return {"pi": self.pi, "sigma1": self.sigma1, "sigma2": self.sigma2}

    def values(self, params: dict[str, Array]) -> tuple[float, ...]:
        """Return pi, sigma1, sigma2 as they are now."""
        return tuple(float(v) for v in params["prior_raw"])

    def log_density(
        self, params: dict[str, Array], w: Array, buffers: Buffers
    ) -> tuple[Array, tuple[Array, ...]]:
        """Return sum_j log[pi N1(w_j) + (1 - pi) N2(w_j)] (S,): -inf or nan where it fails.

        Parameters
        ----------
        params : dict of str to array
            The three numbers as ``prior_raw``.
        w : array (S, P)
            Weights.
        buffers : Buffers
            Not used.

        Returns
        -------
        log_density : array (S,)
            In nats.
        saved : tuple
            What `add_vjp` needs.
        """
        pi, sigma1, sigma2 = raw = params["prior_raw"]
        with np.errstate(divide="ignore", invalid="ignore"):
            wide = _raw_density(w, sigma1)
            narrow = _raw_density(w, sigma2)
            value = np.log(pi * wide + (1.0 - pi) * narrow).sum(axis=-1)
        return value, (raw, w, wide, narrow)

    def add_vjp(
        self,
        saved: tuple[Array, ...],
        cotangent: Array,
        d_w: Array,
        d_params: dict[str, Array],
    ) -> None:
        """Add cotangent (S,) times d log P/dw to `d_w`; write the gradient of the three.

        Parameters
        ----------
        saved : tuple
            From `log_density`.
        cotangent : array (S,)
            Cotangent of the log density.
        d_w : array (S, P)
            Added to.
        d_params : dict of str to array
            Written: ``prior_raw`` (3,).
        """
        (pi, s1, s2), w, wide, narrow = saved
        with np.errstate(divide="ignore", invalid="ignore"):
            total = pi * wide + (1.0 - pi) * narrow
            r1 = pi * wide / total
            r2 = (1.0 - pi) * narrow / total  # responsibilities (S, P)
            slopes = (
                (wide - narrow) / total,
                r1 * (w**2 / s1**3 - 1.0 / s1),
                r2 * (w**2 / s2**3 - 1.0 / s2),
            )
            d_params["prior_raw"][...] = [
                cotangent @ slope.sum(axis=-1) for slope in slopes
            ]
            d_w -= cotangent[:, None] * w * (r1 / s1**2 + r2 / s2**2)


def _raw_density(w: Array, sigma: Array) -> Array:
    """Return the density N(w; 0, sigma^2), nan for a sigma below 0."""
    return np.exp(-0.5 * (w / sigma) ** 2 - np.log(sigma * sqrt(2.0 * np.pi)))


X_LABEL = "x (dimensionless)"


def _draw_prediction(result: Result) -> Figure:
    """Draw (a) the post's picture with the total band, (b) and (c) R9's difference."""
    figure, (a, b, c) = panels(13.0, 4.3, 1, 3)
    _draw_fit(result, a)
    a.set_xlabel(f"{X_LABEL}\n(a) as in the post, with the total band")

    x = result.x[:, 0]
    p = result.predictive
    mean = p.mean[:, 0]
    of_means = result.of_means[:, 0]
    b.plot(x, mean, color=VERMILLION, lw=1.8, label="mean of 500 functions, E f(w)")
    b.plot(x, of_means, "--", color=BLUE, lw=1.6, label="function of the mean, f(E w)")
    in_data_range = (x >= DATA_RANGE[0]) & (x <= DATA_RANGE[1])
    b.plot(
        x[in_data_range],
        result.data.truth(x[in_data_range]),
        ":",
        color=BLACK,
        lw=1.8,
        label="truth",
    )
    finish(b, f"{X_LABEL}\n(b) two predictions", "y (dimensionless)", 2)

    error = p.epistemic[:, 0] / N_FUNCTIONS**0.5
    c.fill_between(
        x, -4 * error, 4 * error, color=SKY, lw=0, label="± 4 standard errors"
    )
    c.plot(x, mean - of_means, color=BLACK, lw=1.4, label="E f(w) − f(E w)")
    c.axhline(0.0, color=GREY, lw=0.7)
    finish(c, f"{X_LABEL}\n(c) their difference", "difference (units of y)", 2)
    for ax in (b, c):
        ax.set_xlim(*PANEL_RANGE)
        for edge in DATA_RANGE:
            ax.axvline(edge, color=EDGE, lw=0.7, ls=(0, (1, 2)), zorder=0.5)
    return figure


def _draw_priors(learned: Result, fixed: Result) -> Figure:
    """Draw the prior's numbers over epochs, learned and fixed, and what they do to the band."""
    figure, (a, b, c) = panels(13.0, 4.3, 1, 3)
    epochs = learned.trace.epochs
    for ax, column, name, colour, dashes in (
        (a, 1, "σ₁", BLUE, (4, 2)),
        (a, 2, "σ₂", VERMILLION, (1, 1.5)),
        (b, 0, "π", VERMILLION, (4, 2)),
    ):
        values = learned.trace.prior[:, column]
        constant = fixed.trace.prior[:, column]
        ax.plot(epochs, values, color=colour, lw=1.6, label=f"{name}, learned")
        ax.plot(
            epochs,
            constant,
            ls=(0, dashes),
            color=colour,
            lw=1.4,
            label=f"{name}, fixed",
        )
        ax.set_ylim(bottom=0.0)
        ax.set_xlim(0, epochs[-1])
    components = "epoch\n(a) standard deviations of the two components"
    finish(a, components, "standard deviation of a weight", 2)
    finish(b, "epoch\n(b) share of the wide component", "share π", 2)
    curves = {
        "prior learned": learned.predictive.epistemic,
        "prior fixed": fixed.predictive.epistemic,
    }
    deviations(c, learned.x, curves, dict.fromkeys(curves, DATA_RANGE))
    plain_numbers(c.yaxis, minor="123456789")
    c.set_xlabel(f"{X_LABEL}\n(c) epistemic standard deviation")
    return figure


def _draw_fit(result: Result, ax: Axes) -> None:
    data = (result.data.x, result.data.y)
    p = result.predictive
    largest_y = float((np.abs(p.mean) + fits.BAND * p.total).max())
    limit = 1.08 * max(largest_y, float(np.abs(result.data.y).max()))
    fits.fit(
        result.x, p, data=data, truth=result.data.truth, y_limits=(-limit, limit), ax=ax
    )
    for line in ax.lines:
        if line.get_label() == "data":
            line.set_markersize(5.0)
    ax.set_ylabel("y (dimensionless)")


N_SEEDS = 8
N_UNSTABLE_SEEDS = 12
N_UNSTABLE_EPOCHS = 150
MUCH_HIGHER_RATIO = (
    1.5  # "much higher" is taken as at least this many times, in every seed
)

Runs = Mapping[str, Sequence[Numbers]]  # by setting, the numbers of every seed


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    epochs: int = 1500,
    seeds: int = N_SEEDS,
    fast: tuple[int, int] = (N_UNSTABLE_SEEDS, N_UNSTABLE_EPOCHS),
    progress: bool | None = None,
) -> str:
    """Run all settings, write pictures and ``numbers.json`` into `out`, and return the tables.

    Parameters
    ----------
    out : Path
        Folder of the results.
    seed : int
        That of the pictures, and the first of those whose ranges are printed.
    epochs : int
        Passes over the data in each training.
    seeds : int
        Number of seeds of each setting.
    fast : tuple of two int
        Number of seeds and of epochs at the raised learning rate.
    progress : bool, optional
        Show a progress bar; by default only in a terminal.

    Returns
    -------
    str
        The tables.
    """
    work = len(RUN_SETTINGS) * seeds * epochs + 2 * fast[0] * fast[1]
    other_seeds = range(1, seeds)
    with steps(work, progress) as report:
        results = {
            name: run(name, seed, epochs)
            for name in counted(RUN_SETTINGS, report, epochs)
        }
        numbers = {
            name: [
                result.numbers,
                *(
                    run(name, seed + k, epochs).numbers
                    for k in counted(other_seeds, report, epochs)
                ),
            ]
            for name, result in results.items()
        }
        domain_by_prior = domains(seed, *fast, report)
    shares_outside = {
        name: {
            "seeds": len(domain.traces),
            "left": domain.left,
            "swapped": sum(
                bool((t.prior[:, 2] >= t.prior[:, 1]).any()) for t in domain.traces
            ),
            "not finite": domain.finite.count(False),
            "largest pi": max(float(t.prior[:, 0].max()) for t in domain.traces),
        }
        for name, domain in domain_by_prior.items()
    }
    pictures = {
        "prediction": _draw_prediction(results["post"]),
        "prior": _draw_priors(results["post"], results["fixed"]),
    }
    write(out, pictures, {"settings": numbers, "domains": shares_outside})
    return _tables(numbers, shares_outside, epochs)


TABLES = (  # caption, digits, numbers
    ("Nats; the KL term at full weight.", 1, "free_energy | kl | nll"),
    (
        "Units of y, in the data; y within 1.96 total or epistemic sd (R10).",
        2,
        "rmse | rmse_of_means | coverage | coverage_epistemic",
    ),
    (
        "Epistemic sd in and out of the data, and out over in.",
        2,
        "epistemic_inside | epistemic_outside | ratio | noise",
    ),
    ("The prior's numbers.", 3, "pi | sigma1 | sigma2"),
    (
        "E f(w) - f(E w) (R9), root mean square; share of x beyond 4 s.e.",
        2,
        "gap | gap_error | gap_seen",
    ),
)


def _tables(
    numbers: Runs, shares_outside: Mapping[str, Mapping[str, float]], epochs: int
) -> str:
    titled = {RUN_SETTINGS[name].title: of_seeds for name, of_seeds in numbers.items()}
    head = f"{len(numbers['post'])} seeds"

    def ranges(caption: str, digits: int, columns: str) -> str:
        """Return a table of the first seed's numbers, with the range over all seeds.

        Parameters
        ----------
        caption : str
            Text above the table.
        digits : int
            Decimals.
        columns : str
            Fields of `Numbers`, ``"rmse | coverage"``.
        """

        def row(of_seeds: Sequence[Numbers]) -> str:
            cells = [
                np.array([getattr(n, key) for n in of_seeds])
                for key in columns.split(" | ")
            ]
            return " | ".join(
                f"{n[0]:.{digits}f} [{n.min():.{digits}f}, {n.max():.{digits}f}]"
                for n in cells
            )

        return listed(caption, f"{head} | {columns}", titled, row)

    return text(
        f"32 points of 10 sin(2 pi x) + N(0, 1), 1-20-20-1 with ReLU, {epochs} epochs: of the "
        "first seed [least, most of all].",
        *(ranges(*table_rows) for table_rows in TABLES),
        listed(
            f"Learning rate {UNSTABLE_LEARNING_RATE:g}: in how many seeds the prior's numbers went "
            "wrong.",
            "pi, sigma1, sigma2 | seeds | outside | largest pi | not finite | sigma2 > sigma1",
            shares_outside,
            "{0[seeds]} | {0[left]} | {0[largest pi]:.3f} | {0[not finite]} | {0[swapped]}",
        ),
        claims(
            f"'Much' is {MUCH_HIGHER_RATIO:g} times, 'equal' within 4 standard errors, in the "
            "worst seed.",
            "the post",
            claims_of_the_post(numbers),
        ),
    )


def claims_of_the_post(numbers: Runs) -> list[Claim]:
    """Return the post's claims, each judged by the runs of every seed."""
    rows = []
    for name, title in (("post", "learned prior"), ("fixed", "prior fixed")):
        smallest_ratio = min(n.ratio for n in numbers[name])
        statement = f"epistemic uncertainty 'is much higher' without data, {title}"
        rows.append(
            Claim(
                statement,
                "much",
                f"{smallest_ratio:.2f} times",
                smallest_ratio >= MUCH_HIGHER_RATIO,
            )
        )
    share_apart = max(n.gap_seen for n in numbers["post"])
    statement = "the predictive mean 'with a single forward pass' (R9)"
    return [
        *rows,
        Claim(statement, "equal", f"not at {share_apart:.0%} of x", share_apart == 0),
    ]
