"""Wu's first system, -x^4 + 3x^2 + 1, by MLE, MAP and VI (W1, W2).

The slides show a fit and no settings. Ours are those of `Setup`; `tutorial` has those of the
tutorial that the slides refer to. `bbb_studies.comparing` trains and judges the methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.posteriors import MeanField
from bbb_numpy.plots import fits as plots
from bbb_numpy.plots.style import BLACK, legend_above, legend_of_figure
from bbb_numpy.training.optimizers import Constant
from bbb_studies.comparing import METHODS, Fitted, Setup, judge, train
from bbb_studies.data.toys import Toy
from bbb_studies.kit import Claim, average, by_key, claims, panels, text, write
from bbb_studies.progress import ReportWork, counted, ignore_work, steps

Array = NDArray[Any]

DATA_NOISE_SCALE = 0.2  # standard deviation of y around the curve
N_TRAINING_ROWS = 40
DATA_INTERVALS = ((-1.5, -0.6), (0.2, 1.5))  # where the training data lie
REGIONS = {
    "data": DATA_INTERVALS,
    "gap": (DATA_INTERVALS[0][1:] + DATA_INTERVALS[1][:1],),
    "outside": ((-2.0, DATA_INTERVALS[0][0]), (DATA_INTERVALS[1][1], 2.0)),
}
PANEL_LIMITS = (-2.5, 2.5)
N_FRESH_ROWS = 2000  # held-out rows per region
N_MEMBERS = 5
# an ensemble: an equal mixture of the predictions from so many starts
ENSEMBLE_NAME = f"{N_MEMBERS} MAP"
# the tutorial's rows, without noise
TUTORIAL_X = np.array([[-2.0], [-1.8], [-1.0], [1.0], [1.8], [2.0]])
TUTORIAL_SETUP = Setup(
    hidden=(32,),
    activation="sigmoid",
    prior_scale=10.0,
    likelihood=GaussianLikelihood(0.1),
    epochs=2000,
    batch_size=len(TUTORIAL_X),
    learning_rate=0.1,
    standardise=False,
    schedule=Constant(),
)


def quartic_curve(x: Array) -> Array:
    """Return ``-x^4 + 3x^2 + 1``, elementwise."""
    return -(x**4) + 3.0 * x**2 + 1.0


def draw_quartic(
    rng: np.random.Generator,
    n_rows: int,
    intervals: Sequence[tuple[float, ...]],
    noise_scale: float = DATA_NOISE_SCALE,
) -> Toy:
    """Draw x uniformly over a union of intervals, and y around `quartic_curve`.

    Parameters
    ----------
    rng : numpy.random.Generator
        Of x and y.
    n_rows : int
        Number of rows.
    intervals : sequence of (low, high)
        Disjoint; each has rows in proportion to its length.
    noise_scale : float
        Standard deviation of y around the curve.

    Returns
    -------
    Toy
        x and y, (n_rows, 1) each, and the curve.
    """
    ends = np.array(intervals)  # (I, 2)
    lengths = ends[:, 1] - ends[:, 0]
    interval = rng.choice(len(ends), (n_rows, 1), p=lengths / lengths.sum())
    x = ends[interval, 0] + lengths[interval] * rng.uniform(size=(n_rows, 1))
    return Toy(
        x,
        quartic_curve(x) + noise_scale * rng.standard_normal((n_rows, 1)),
        quartic_curve,
    )


def run(
    seed: int = 0, setup: Setup | None = None, report: ReportWork = ignore_work
) -> tuple[Toy, dict[str, Fitted], dict[str, dict[str, dict[str, float]]]]:
    """Draw data, train every method, and judge each in every region.

    Parameters
    ----------
    seed : int
        Of data and training.
    setup : Setup, optional
        By default the model is given the noise of the data: then the likelihood is bounded, which
        it is not if an interpolating network learns the noise (W1).
    report : callable
        Is called with the number of fits that have been trained.

    Returns
    -------
    data : Toy
    fits : dict of Fitted
        By method.
    scores : dict of dict of dict
        What `judge` returns, by method and region.
    """
    data_rng = np.random.default_rng(seed)
    data = draw_quartic(data_rng, N_TRAINING_ROWS, DATA_INTERVALS)
    if setup is None:
        setup = Setup(
            likelihood=GaussianLikelihood(DATA_NOISE_SCALE / float(data.y.std()))
        )
    fits = {
        name: train(build, setup, *data[:2], seed=seed)
        for name, build in counted(METHODS.items(), report)
    }
    fits[ENSEMBLE_NAME] = train(
        METHODS["MAP"], setup, *data[:2], seed=seed, members=N_MEMBERS
    )
    report(N_MEMBERS)
    scores: dict[str, dict[str, dict[str, float]]] = {name: {} for name in fits}
    for region, intervals in REGIONS.items():
        fresh = draw_quartic(data_rng, N_FRESH_ROWS, intervals)
        for name, fitted in fits.items():
            scores[name][region] = judge(fitted, fresh.x, fresh.y, fresh.truth(fresh.x))
    return data, fits, scores


def tutorial(seed: int = 0, setup: Setup = TUTORIAL_SETUP) -> Fitted:
    """Train as in the tutorial (J. Feldman, 2018): six rows, mu and rho from 0, plain Adam.

    Parameters
    ----------
    seed : int
        Of the training.
    setup : Setup
        The tutorial's by default.
    """
    return train(
        lambda model: Reparameterised(model, MeanField(0.0, 0.0, 0.0)),
        setup,
        TUTORIAL_X,
        quartic_curve(TUTORIAL_X),
        seed=seed,
    )


def reproduce(
    out: Path,
    seed: int = 0,
    repeats: int = 8,
    setup: Setup | None = None,
    progress: bool | None = None,
) -> str:
    """Compare the methods on several data sets, and return the tables.

    Writes ``fit.png``, ``tutorial.png`` and ``numbers.json``.

    Parameters
    ----------
    out : Path
        Folder of the files.
    seed : int
        Of the first data set, which is in the picture; the others have the seeds that follow.
    repeats : int
        Number of data sets, each with starts of its own.
    setup : Setup, optional
        Instead of the default, for a quick look.
    progress : bool, optional
        Whether to show a bar, see `bbb_studies.progress.steps`.

    Returns
    -------
    str
        The tables.
    """
    with steps(repeats * (len(METHODS) + N_MEMBERS), progress) as report:
        runs = [run(seed + repeat, setup, report) for repeat in range(repeats)]
    data, fits, _ = runs[0]
    scores = {
        method: {
            region: average([regions[method][region] for *_, regions in runs])
            for region in REGIONS
        }
        for method in fits
    }
    epochs = setup.epochs if setup else TUTORIAL_SETUP.epochs
    tutorial_fits = [
        tutorial(seed + i, replace(TUTORIAL_SETUP, epochs=epochs))
        for i in range(repeats)
    ]
    tutorial_claims, error_at_0 = claims_of_the_tutorial(tutorial_fits)
    numbers = {"seed": seed, "repeats": repeats, "mean and standard error": scores}
    pictures = {"fit": _draw(data, fits), "tutorial": _draw_tutorial(tutorial_fits[0])}
    write(out, pictures, {**numbers, "tutorial": tutorial_claims})
    caption = f"As in the tutorial. (At 0, between its rows, the curve is {error_at_0:.0f} sd off.)"
    rows = {
        f"{region}, {name}": scores_by_region[region]
        for region in REGIONS
        for name, scores_by_region in scores.items()
    }
    return text(
        by_key(
            f"-x^4 + 3x^2 + 1 + N(0, {DATA_NOISE_SCALE:g}^2), {N_TRAINING_ROWS} rows; "
            "net 1-20-1; nats; mean +- s.e.",
            " | ".join([f"{repeats} data sets", *rows["data, VI"]]),
            rows,
        ),
        claims(caption, "the tutorial", tutorial_claims),
    )


def claims_of_the_tutorial(fits: Sequence[Fitted]) -> tuple[list[Claim], float]:
    """Judge what the tutorial says of its fit, and return the error at x = 0, which it leaves out.

    The error is in units of the epistemic standard deviation (sd). Mean and sd are averages over
    starts.
    """
    x = np.array([[0.0], [5.0], [-5.0], [100.0], [-100.0], *TUTORIAL_X])
    moments = [fitted.predict(x, 1000)[:2] for fitted in fits]
    mean, sd = np.mean(moments, axis=0)[:, :, 0]
    losses = []
    for fitted in fits:
        rng = np.random.default_rng(fitted.seed)
        noise = fitted.estimator.draw(rng, 1)  # one weight vector, as in the tutorial
        evaluation = fitted.estimator.value_and_grad(
            fitted.thetas[0], noise, TUTORIAL_X, quartic_curve(TUTORIAL_X)
        )
        losses.append(float(evaluation.value))
    low = min(losses)
    high = max(losses)
    error_at_0 = abs(mean[0] - 1.0) / sd[0]  # the curve is 1 at x = 0
    sd_at_5 = sd[1:3].mean()
    sd_at_100 = sd[3:5].mean()
    sd_at_rows = sd[5:].mean()
    loss_text = f"{low:.0f} ... {high:.0f}"
    sd_text = f"sd {sd_at_5:.2f} at +-5, {sd_at_rows:.2f} at the rows"
    sd_at_100_text = f"sd {sd_at_100:.2f} at +-100"
    claims_made = [
        Claim("loss at the end, nats", "278", loss_text, low <= 278 <= high),
        Claim("wide without data", "", sd_text, bool(sd_at_5 > sd_at_rows)),
        Claim("wider further away", "", sd_at_100_text, bool(sd_at_100 > sd_at_5)),
    ]
    return claims_made, float(error_at_0)


def _draw(data: Toy, fits: Mapping[str, Fitted]) -> Figure:
    figure, axes = panels(14.0, 4.2, 1, len(fits), sharey=True)
    x = np.linspace(*PANEL_LIMITS, 301)[:, None]
    for ax, (name, fitted) in zip(axes, fits.items(), strict=True):
        predicted = fitted.predict(x, 500)
        plots.fit(
            x, predicted, data=data[:2], truth=data.truth, y_limits=(-3.0, 5.0), ax=ax
        )
        ax.axvspan(
            DATA_INTERVALS[0][1],
            DATA_INTERVALS[1][0],
            color="#EEEEEE",
            zorder=0,
            label="gap in the data",
        )
        ax.legend().remove()  # one for all panels
        ax.set(xlabel=f"x (dimensionless)\n{name}", ylabel="")
    axes[0].set_ylabel("y (dimensionless)")
    legend_of_figure(figure, axes[0], 6)
    return figure


def _draw_tutorial(fitted: Fitted) -> Figure:
    figure, axes = panels(10.0, 4.0, 1, 2)
    for ax, limit in zip(axes, (5.0, 100.0), strict=True):
        x = np.linspace(-limit, limit, 401)[:, None]
        predicted = fitted.predict(x, 1000)
        rows = (TUTORIAL_X, quartic_curve(TUTORIAL_X))
        plots.fit(
            x, predicted, data=rows, truth=quartic_curve, y_limits=(-20.0, 8.0), ax=ax
        )
        ax.lines[0].set(markersize=7, color=BLACK)
        legend_above(ax, 3)
        ax.set(xlabel="x (dimensionless)", ylabel="y (dimensionless)")
    return figure
