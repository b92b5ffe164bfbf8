"""Wu's first system, -x^4 + 3x^2 + 1, by MLE, MAP and VI (W1, W2).

The slides show a fit and no settings. Ours are in `Setup` and in the text that `reproduce`
returns. `train` and `Fitted` serve his second system, `path_loss`, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from .. import plots, predictive
from ..closed_form import ClosedFormKL
from ..datasets import Toy
from ..estimators import Estimator
from ..gradients import Reparameterised
from ..likelihoods import GaussianLikelihood
from ..model import Likelihood, Model
from ..network import MLP
from ..numerics import logsumexp
from ..objectives import MAP, MLE
from ..optimizers import Adam, Cosine
from ..posteriors import MeanField, PointMass
from ..predictive import Predictive
from ..priors import GaussianPrior
from ..scaling import moments
from ..training import fit, start

__all__ = [
    "METHODS",
    "Fitted",
    "Setup",
    "average",
    "judge",
    "quartic",
    "quartic_curve",
    "reproduce",
    "run",
    "table",
    "train",
]

Array = NDArray[Any]

METHODS: dict[str, Callable[[Model], Estimator]] = {
    "MLE": lambda model: Reparameterised(model, PointMass(0.3), MLE()),  # W1
    "MAP": lambda model: Reparameterised(model, PointMass(0.3), MAP()),  # W2
    "VI": lambda model: ClosedFormKL(model, MeanField(0.3, -4.0)),
}


@dataclass(frozen=True)
class Setup:
    """How a network is trained, whatever the method; inputs and targets are standardised."""

    hidden: tuple[int, ...] = (20,)
    activation: str = "tanh"
    prior_scale: float = 2.0
    likelihood: Likelihood = GaussianLikelihood(0.2, learn=True)  # in standardised units
    epochs: int = 3000
    batch_size: int = 40
    learning_rate: float = 1e-2
    samples: int = 1  # of the weights per step; a point needs no more


@dataclass(frozen=True, eq=False)
class Fitted:
    """One trained network, or several as an equal mixture, in the units of the data."""

    estimator: Estimator
    thetas: tuple[Array, ...]
    x_scale: tuple[Array, Array]  # mean and deviation, (d_in,) each
    y_scale: tuple[Array, Array]  # (K,) each
    seed: int

    def _inputs(self, x: Array) -> Array:
        return (x - self.x_scale[0]) / self.x_scale[1]

    def predict(self, x: Array, samples: int = 100) -> Predictive:
        """Return the moments of the mixture at `x` (N, d_in); the same weights for any `x`.

        Between members the means vary too, which is epistemic (D4 with the member as part of w).
        """
        parts = [
            predictive.predict(
                self.estimator,
                theta,
                self._inputs(x),
                rng=np.random.default_rng([self.seed, member]),
                samples=self._samples(samples),
            )
            for member, theta in enumerate(self.thetas)
        ]
        means, epistemic, aleatoric = (np.stack(moment) for moment in zip(*parts, strict=True))
        between = means.var(axis=0, ddof=1) if len(means) > 1 else 0.0
        mean, scale = self.y_scale
        return Predictive(
            mean + scale * means.mean(axis=0),
            scale * np.sqrt(np.mean(epistemic**2, axis=0) + between),
            scale * np.sqrt(np.mean(aleatoric**2, axis=0)),
        )

    def functions(self, x: Array, samples: int = 50) -> Array:
        """Return functions (members * samples, N, K) drawn from the mixture."""
        mean, scale = self.y_scale
        drawn = [
            predictive.sample_functions(
                self.estimator,
                theta,
                self._inputs(x),
                rng=np.random.default_rng([self.seed, member]),
                samples=self._samples(samples),
            )
            for member, theta in enumerate(self.thetas)
        ]
        return mean + scale * np.concatenate(drawn)

    def log_density(self, x: Array, y: Array, samples: int = 100) -> Array:
        """Return log P(y|x, D) (N,) of the mixture, in nats, of y in its own units (D5)."""
        mean, scale = self.y_scale
        logs = [
            predictive.log_predictive_density(
                self.estimator,
                theta,
                self._inputs(x),
                (y - mean) / scale,
                rng=np.random.default_rng([self.seed, member]),
                samples=self._samples(samples),
            )
            for member, theta in enumerate(self.thetas)
        ]
        return logsumexp(np.stack(logs), axis=0) - np.log(len(logs) * np.prod(scale))

    def _samples(self, wanted: int) -> int:
        """Return how many weight samples are needed: a point has only one."""
        return 1 if isinstance(self.estimator.posterior, PointMass) else wanted


def train(
    build: Callable[[Model], Estimator],
    setup: Setup,
    x: Array,
    y: Array,
    *,
    seed: int,
    members: int = 1,
) -> Fitted:
    """Standardise, train `members` networks from different starts, and return their mixture.

    Parameters
    ----------
    build : callable
        From a model to an estimator: an entry of `METHODS`, or one's own.
    setup : Setup
    x, y : ndarray (N, d_in), (N, K)
    seed : int
        Same seed, same numbers.
    members : int
    """
    x_scale, y_scale = moments(x, True), moments(y, True)
    outputs = setup.likelihood.heads(y.shape[1])
    net = MLP((x.shape[1], *setup.hidden, outputs), setup.activation)
    estimator = build(Model(net, GaussianPrior(setup.prior_scale), setup.likelihood))
    optimizer, thetas = Adam(setup.learning_rate, schedule=Cosine()), []
    for rng in np.random.default_rng(seed).spawn(members):
        trained = fit(
            estimator,
            start(estimator, rng, optimizer),
            (x - x_scale[0]) / x_scale[1],
            (y - y_scale[0]) / y_scale[1],
            rng=rng,
            optimizer=optimizer,
            epochs=setup.epochs,
            batch_size=setup.batch_size,
            samples=setup.samples,
            progress=False,
        )
        if trained.stopped == "interrupted":
            raise KeyboardInterrupt
        thetas.append(trained.theta)
    return Fitted(estimator, tuple(thetas), x_scale, y_scale, seed)


def judge(fitted: Fitted, x: Array, y: Array, truth: Array) -> dict[str, float]:
    """Measure a fit on held-out rows.

    Returns
    -------
    dict
        ``rmse`` of the mean to the noiseless `truth`; ``log density`` per row, in nats;
        ``coverage`` of y by mean +- 1.96 total deviations; mean ``epistemic`` deviation.
    """
    p = fitted.predict(x)
    return {
        "rmse": float(np.sqrt(np.mean((p.mean - truth) ** 2))),
        "log density": float(fitted.log_density(x, y).mean()),
        "coverage": float(np.mean(np.abs(y - p.mean) < 1.96 * p.total)),
        "epistemic": float(p.epistemic.mean()),
    }


def average(rows: Sequence[dict[str, float]]) -> dict[str, tuple[float, float]]:
    """Return mean and standard error over repetitions of every number; error 0 of one alone."""
    out = {}
    for key in rows[0]:
        values = np.array([row[key] for row in rows])
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
        out[key] = (float(values.mean()), float(error))
    return out


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(f"{cell:<{width}}" if i == 0 else f"{cell:>{width}}" for i, (cell, width) in
                  enumerate(zip(row, widths, strict=True)))
        for row in (head, *rows)
    ]  # fmt: skip
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


NOISE = 0.2  # deviation of y around the curve
ROWS = 40
DATA = ((-1.5, -0.6), (0.2, 1.5))  # where the training data lie
REGIONS = {
    "data": DATA,
    "gap": (DATA[0][1:] + DATA[1][:1],),
    "outside": ((-2.0, DATA[0][0]), (DATA[1][1], 2.0)),
}
PANEL = (-2.5, 2.5)
FRESH = 2000  # held-out rows per region
MEMBERS = 5
MIXTURE = f"{MEMBERS} MAP"  # an ensemble: as many starts, an equal mixture of their predictions


def quartic_curve(x: Array) -> Array:
    """Return ``-x^4 + 3x^2 + 1``, elementwise."""
    return -(x**4) + 3.0 * x**2 + 1.0


def quartic(
    rng: np.random.Generator,
    rows: int,
    intervals: Sequence[tuple[float, ...]],
    noise: float = NOISE,
) -> Toy:
    """Draw x uniformly over the union of `intervals`, and y around `quartic_curve`."""
    ends = np.array(intervals)  # (I, 2)
    lengths = ends[:, 1] - ends[:, 0]
    which = rng.choice(len(ends), (rows, 1), p=lengths / lengths.sum())
    x = ends[which, 0] + lengths[which] * rng.uniform(size=(rows, 1))
    return Toy(x, quartic_curve(x) + noise * rng.standard_normal((rows, 1)), quartic_curve)


def run(
    seed: int = 0, setup: Setup | None = None
) -> tuple[Toy, dict[str, Fitted], dict[str, dict[str, dict[str, float]]]]:
    """Draw data, train every method, and judge each in every region.

    With `setup` left out the noise deviation of the data is given to the model; then the
    likelihood is bounded, which it is not when an interpolating network learns it (W1).

    Returns
    -------
    data : Toy
    fits : dict
        By method.
    scores : dict
        Of method, then region, then `judge`.
    """
    data_rng = np.random.default_rng(seed)
    data = quartic(data_rng, ROWS, DATA)
    if setup is None:
        setup = Setup(likelihood=GaussianLikelihood(NOISE / float(data.y.std())))
    fits = {name: train(build, setup, *data[:2], seed=seed) for name, build in METHODS.items()}
    fits[MIXTURE] = train(METHODS["MAP"], setup, *data[:2], seed=seed, members=MEMBERS)
    scores: dict[str, dict[str, dict[str, float]]] = {name: {} for name in fits}
    for region, intervals in REGIONS.items():
        fresh = quartic(data_rng, FRESH, intervals)
        for name, fitted in fits.items():
            scores[name][region] = judge(fitted, fresh.x, fresh.y, fresh.truth(fresh.x))
    return data, fits, scores


def reproduce(out: Path, seed: int = 0, repeats: int = 8, setup: Setup | None = None) -> str:
    """Run the experiment `repeats` times; write ``fit.png`` and ``numbers.json``.

    Parameters
    ----------
    out : Path
        An existing folder.
    seed : int
        Of the first repetition, which is the one in the picture.
    repeats : int
        Data sets, each with starts of its own.
    setup : Setup, optional
        Instead of the default, for a quick look.

    Returns
    -------
    str
        What the numbers say.
    """
    runs = [run(seed + repeat, setup) for repeat in range(repeats)]
    scores = {
        method: {
            region: average([scores[method][region] for _, _, scores in runs]) for region in REGIONS
        }
        for method in runs[0][1]
    }
    _draw(*runs[0][:2], out / "fit.png")
    numbers = {"seed": seed, "repeats": repeats, "mean and standard error": scores}
    (out / "numbers.json").write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    return _text(scores, repeats)


def _text(scores: dict[str, dict[str, dict[str, tuple[float, float]]]], repeats: int) -> str:
    intervals = " and ".join(f"[{low:g}, {high:g}]" for low, high in DATA)
    rows = [
        [f"{region}, {method}", *(f"{mean:.3f} ({error:.3f})" for mean, error in numbers.values())]
        for region in REGIONS
        for method, numbers in ((method, scores[method][region]) for method in scores)
    ]

    def growth(method: str) -> list[float]:
        inside, gap, outside = (scores[method][region]["epistemic"][0] for region in REGIONS)
        return [gap / inside, outside / inside]

    one, several = growth("VI"), growth(MIXTURE)
    sees = "sees less" if max(one) < min(several) else "does not see less"
    held = {method: s["outside"]["coverage"][0] for method, s in scores.items()}
    foresees = "None of them foresees" if max(held.values()) < 0.5 else "Some foresee"
    best = max(scores, key=lambda method: scores[method]["outside"]["log density"][0])
    return "\n".join(
        [
            f"y = -x^4 + 3x^2 + 1 + noise of deviation {NOISE:g}, which the model is told; {ROWS} "
            f"rows, x in\n{intervals}. Network 1-20-1, tanh, prior deviation 2 in standardised "
            f"units.\n'{MIXTURE}' is the equal mixture of {MEMBERS} MAP networks from different "
            "starts. Mean (standard error) of",
            f"{repeats} data sets, over new x in the data's intervals, in the gap "
            f"({DATA[0][1]:g}, {DATA[1][0]:g}) and outside (1.5 < |x| < 2):\nRMSE to the curve, "
            "held-out log density in nats per row, share of new y in the 95% interval, mean\n"
            "epistemic deviation.",
            "",
            table(["region, method", *scores["VI"]["data"]], rows),
            "",
            "Epistemic deviation over that within the data, in the gap and outside: VI "
            f"{one[0]:.1f} and {one[1]:.1f}; {MIXTURE} {several[0]:.1f} and\n{several[1]:.1f}; of "
            "one point it is 0 everywhere. A mean field around one solution\n"
            f"{sees} where data are missing than solutions from different starts do.\n"
            f"{foresees} -x^4: outside, the 95% interval holds "
            + ", ".join(f"{share:.0%} ({method})" for method, share in held.items())
            + f"\nof new y; the best log density there is that of {best}.",
        ]
    )


def _draw(data: Toy, fits: dict[str, Fitted], path: Path) -> None:
    figure = Figure(figsize=(14.0, 4.2), layout="constrained")
    panels = figure.subplots(1, len(fits), sharey=True)
    x = np.linspace(*PANEL, 301)[:, None]
    for ax, (name, fitted) in zip(panels, fits.items(), strict=True):
        shown = fitted.predict(x, 500)
        plots.fit(x, shown, data=data[:2], truth=data.truth, y_limits=(-3.0, 5.0), ax=ax)
        ax.axvspan(DATA[0][1], DATA[1][0], color="#EEEEEE", zorder=0)
        ax.legend().remove()  # one for all panels
        ax.set_xlabel(f"x (dimensionless)\n{name}")
        ax.set_ylabel("")
    panels[0].set_ylabel("y (dimensionless)")
    handles, labels = panels[0].get_legend_handles_labels()
    gap = Patch(facecolor="#EEEEEE", label="gap in the data")
    figure.legend(
        [*handles, gap],
        [*labels, str(gap.get_label())],
        loc="outside upper center",
        ncols=len(handles) + 1,
        frameon=False,
    )
    figure.savefig(path, dpi=100)
