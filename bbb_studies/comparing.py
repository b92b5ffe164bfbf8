"""MLE, MAP, VI and ensembles side by side (W1, W2), and how a study lays out what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bbb_numpy.evaluation import predictive
from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.gradients.catalogue import Estimator
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.joint import Likelihood, Model
from bbb_numpy.model.objectives import MAP, MLE
from bbb_numpy.numeric.elementary import logsumexp
from bbb_numpy.numeric.files import write_json
from bbb_numpy.numeric.standardisation import moments
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField, PointMass
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import Adam, Cosine

Array = NDArray[Any]

METHODS: dict[str, Callable[[Model], Estimator]] = {
    "MLE": lambda model: Reparameterised(model, PointMass(0.3), MLE()),  # W1
    "MAP": lambda model: Reparameterised(model, PointMass(0.3), MAP()),  # W2
    "VI": lambda model: ClosedFormKL(model, MeanField(0.3, -4.0)),
}


@dataclass(frozen=True)
class Setup:
    """How a network is trained, whatever the method."""

    hidden: tuple[int, ...] = (20,)
    activation: str = "tanh"
    prior_scale: float = 2.0
    likelihood: Likelihood = GaussianLikelihood(0.2, learn=True)  # in standardised units
    epochs: int = 3000
    batch_size: int = 40
    learning_rate: float = 1e-2
    samples: int = 1  # of the weights per step; a point needs no more
    standardise: bool = True  # inputs and targets
    schedule: Callable[[float, int], float] = Cosine()  # of the learning rate


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
        parts = self._by_member(predictive.predict, samples, self._inputs(x))
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
        drawn = self._by_member(predictive.sample_functions, samples, self._inputs(x))
        return mean + scale * np.concatenate(drawn)

    def log_density(self, x: Array, y: Array, samples: int = 100) -> Array:
        """Return log P(y|x, D) (N,) of the mixture, in nats, of y in its own units (D5)."""
        mean, scale = self.y_scale
        score = predictive.log_predictive_density
        logs = self._by_member(score, samples, self._inputs(x), (y - mean) / scale)
        return logsumexp(np.stack(logs), axis=0) - np.log(len(logs) * np.prod(scale))

    def _by_member(self, found: Callable[..., Any], samples: int, *rows: Array) -> list[Any]:
        """Return what `found` of `evaluation.predictive` finds of each network at rows."""
        if isinstance(self.estimator.posterior, PointMass):
            samples = 1
        return [
            found(
                self.estimator,
                theta,
                *rows,
                rng=np.random.default_rng([self.seed, member]),
                samples=samples,
            )
            for member, theta in enumerate(self.thetas)
        ]


def train(
    build: Callable[[Model], Estimator],
    setup: Setup,
    x: Array,
    y: Array,
    *,
    seed: int,
    members: int = 1,
) -> Fitted:
    """Train `members` networks from different starts, and return their mixture.

    `build` makes an estimator of a model: an entry of `METHODS`, or one's own; `x` (N, d_in) and
    `y` (N, K). Same seed, same numbers.
    """
    x_scale, y_scale = moments(x, setup.standardise), moments(y, setup.standardise)
    outputs = setup.likelihood.heads(y.shape[1])
    net = MLP((x.shape[1], *setup.hidden, outputs), setup.activation)
    estimator = build(Model(net, GaussianPrior(setup.prior_scale), setup.likelihood))
    recipe = Recipe(
        optimizer=Adam(setup.learning_rate, schedule=setup.schedule),
        epochs=setup.epochs,
        batch_size=setup.batch_size,
        samples=setup.samples,
    )
    rows = (x - x_scale[0]) / x_scale[1], (y - y_scale[0]) / y_scale[1]
    rngs = np.random.default_rng(seed).spawn(members)
    thetas = tuple(learn(estimator, *rows, recipe, rng) for rng in rngs)
    return Fitted(estimator, thetas, x_scale, y_scale, seed)


def learn(
    estimator: Estimator, x: Array, y: Array, recipe: Recipe, rng: np.random.Generator
) -> Array:
    """Train from a new start and return what was learned; Ctrl-C ends the study, too."""
    begin = start(estimator, rng, recipe.optimizer)
    trained = fit(estimator, begin, x, y, recipe, rng=rng, progress=False)
    if trained.stopped == "interrupted":
        raise KeyboardInterrupt
    return trained.theta


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


def write(out: Path, pictures: Mapping[str, Figure], numbers: Any, stem: str = "numbers") -> None:
    """Write pictures as PNG and numbers as JSON to a folder, made if missing."""
    out.mkdir(parents=True, exist_ok=True)
    for name, figure in pictures.items():
        figure.savefig(out / f"{name}.png", dpi=100)
    write_json(out / f"{stem}.json", plain(numbers))


def plain(value: Any) -> Any:
    """Return what JSON has: named parts as tables, arrays as lists, nan as null."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value) and not isinstance(value, type):
        value = {part.name: getattr(value, part.name) for part in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if value != value else value


def average(rows: Sequence[dict[str, float]]) -> dict[str, tuple[float, float]]:
    """Return mean and standard error over repetitions of every number; error 0 of one alone."""
    out = {}
    for key in rows[0]:
        values = np.array([row[key] for row in rows])
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
        out[key] = (float(values.mean()), float(error))
    return out


def plus_minus(pair: Sequence[float], digits: int, scale: float = 1.0) -> str:
    """Return a mean and its standard error, both times `scale`, as 1.23 +- 0.04."""
    mean, error = pair
    return f"{scale * mean:.{digits}f} +- {scale * error:.{digits}f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(f"{cell:<{width}}" if i == 0 else f"{cell:>{width}}" for i, (cell, width) in
                  enumerate(zip(row, widths, strict=True)))
        for row in (head, *rows)
    ]  # fmt: skip
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


class Claim(NamedTuple):
    """What a source says, beside what was found here; or what it does not say: `ours`."""

    said: str
    printed: str  # in the source, as a number where it has one; of `ours`: what has to come out
    here: str
    holds: bool | float  # or by how many standard errors the two differ
    ours: bool = False


def claims(caption: str, source: str, rows: Sequence[Claim]) -> str:
    """Lay out which claims of `source` hold, and apart from them what it does not claim."""
    laid_out = [caption]
    for head, ours in (([f"claim of {source}", "printed"], False), (["ours", "expected"], True)):
        cells = []
        for said, printed, here, holds, own in rows:
            verdict = f"{holds:.1f} s.e. off"
            if isinstance(holds, bool | np.bool_):
                verdict = "yes" if holds else "no"
            if own is ours:
                cells.append([said, printed, here, verdict])
        laid_out += [table([*head, "here", "holds"], cells)] if cells else []
    return "\n\n".join(laid_out)


def listed(
    caption: str,
    head: str,
    items: Iterable[tuple[str, Any]],
    columns: Mapping[str, Callable[[Any], str] | str],
) -> str:
    """Lay out one row for each named item, under a caption.

    A column is a function of an item, or a format such as ``"{0.mean:.2f}"``.
    """
    cells = [cell if callable(cell) else cell.format for cell in columns.values()]
    rows = [[name, *(cell(item) for cell in cells)] for name, item in items]
    return f"{caption}\n\n{table([head, *columns], rows)}"


class Estimate(NamedTuple):
    """A mean and its standard error."""

    mean: float
    error: float


def estimate(values: Array) -> Estimate:
    """Return the mean of independent values and its standard error."""
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


def concise(value: float, error: float, most: int = 9) -> str:
    """Return ``value(error)``, the error in units of the last digit: 0.123(4) is 0.123 +- 0.004.

    With at most `most` decimals; an error below the last of them is left out.

    >>> concise(0.12345, 0.0042), concise(12.3, 1.4), concise(0.0, 0.0), concise(123456, 789)
    ('0.123(4)', '12(1)', '0', '1.235(8)e5')
    """
    if abs(value) >= 1e4:
        power = int(np.floor(np.log10(abs(value))))
        return f"{concise(value / 10.0**power, error / 10.0**power, most)}e{power}"
    if error < 1e-12:  # rounding alone
        return "0" if abs(value) < 1e-9 else f"{value:.4g}"
    if error < 0.5 * 10.0**-most:
        return f"{value:.{most}f}"
    places = min(max(-int(np.floor(np.log10(error))), 0), most)
    if round(error * 10**places) == 10:  # 0.0096 rounds to one unit more
        places = max(places - 1, 0)
    return f"{value:.{places}f}({max(round(error * 10**places), 1)})"
