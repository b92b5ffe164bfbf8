"""MNIST as Blundell et al. (2015, Section 5.1) classify it: SGD, MAP, Bayes by Backprop; pruning.

Of each method a few candidates are trained briefly; the one that makes the fewest errors on the
validation images is trained on. Test images are looked at once, when all training is over. After
every epoch the state is stored, so that the same call goes on after an interruption.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bbb_numpy.evaluation import pruning
from bbb_numpy.evaluation.predictive import predict_classes
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.joint import Model
from bbb_numpy.model.kl_weights import Shares, geometric_kl_weights, proportional_kl_weights
from bbb_numpy.model.objectives import MAP, MLE, FreeEnergy
from bbb_numpy.numeric.files import write_json
from bbb_numpy.numeric.storing import Format, read_state, write_state
from bbb_numpy.parts.discrete import CategoricalLikelihood
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.posteriors import MeanField, PointMass
from bbb_numpy.plots.style import BLACK, BLUE, GREEN, GREY, PALE, VERMILLION, finish, plain_numbers
from bbb_numpy.progress import steps
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import SGD, Adam, Cosine, Memory, Optimizer
from bbb_numpy.training.state import Epoch, Training
from bbb_studies.data import mnist as data
from bbb_studies.data.mnist import MNIST
from bbb_studies.kit import Claim, claims, listed, panels, plain, text, values

Array = NDArray[Any]
METHODS = ("SGD", "MAP", "BBB")
# The paper's choices of pi, -log sigma1 and -log sigma2
GRID = ((0.25, 0.5, 0.75), (0, 1, 2), (6, 7, 8))
START = 0.05  # standard deviation of the first weights: sqrt(2 / 784), as ReLU keeps its scale
KL_SHARES: dict[str, Shares] = {
    "proportional": proportional_kl_weights,
    "geometric": geometric_kl_weights,
}


@dataclass(frozen=True)
class Candidate:
    """What a network is trained with, apart from the number of epochs."""

    method: str  # one of METHODS
    optimizer: str  # 'SGD' or 'Adam'
    learning_rate: float
    prior: tuple[float, int, int] = (0.5, 0, 6)  # pi, -log sigma1, -log sigma2; not for SGD
    rho: float = -5.0  # every sigma starts at softplus(rho); BBB only
    shares: str = "proportional"
    samples: int = 1  # S, weight vectors of a step; BBB only

    @property
    def name(self) -> str:
        """What it is, in a few words."""
        prior = "pi {:g}, -log sigma1 {}, -log sigma2 {}".format(*self.prior)
        parts = [f"{self.optimizer} {self.learning_rate:g}"]
        parts += [prior] if self.method != "SGD" else []
        parts += [f"KL weights {self.shares}"] if self.shares != "proportional" else []
        parts += [f"S = {self.samples}"] if self.samples != 1 else []
        return ", ".join(parts)


CANDIDATES = (
    Candidate("SGD", "SGD", 1e-3),
    Candidate("SGD", "SGD", 3e-3),
    Candidate("MAP", "SGD", 1e-3, (0.75, 0, 6)),
    Candidate("MAP", "SGD", 3e-3, (0.75, 0, 6)),
    Candidate("MAP", "SGD", 3e-3, (0.75, 2, 6)),
    Candidate("BBB", "SGD", 1e-3, (0.5, 0, 6)),
    Candidate("BBB", "SGD", 1e-3, (0.5, 0, 6), shares="geometric"),
    Candidate("BBB", "Adam", 1e-3, (0.5, 0, 6)),
    Candidate("BBB", "Adam", 1e-3, (0.25, 1, 6)),
    Candidate("BBB", "Adam", 1e-3, (0.75, 2, 8)),
)

# For the paper's budget: three priors of its grid, from broad to narrow, and S of 1 and 2
FULL = CANDIDATES[:5] + tuple(
    Candidate("BBB", "Adam", 1e-3, prior, samples=samples)
    for samples in (1, 2)
    for prior in ((0.5, 0, 6), (0.25, 1, 6), (0.75, 2, 8))
)


@dataclass(frozen=True)
class Settings:
    """How large the study is; the defaults are those of the command."""

    seed: int = 0
    hidden: int = 400  # units of each of two layers
    train: int = 50_000  # the first images of the training part
    validation: int = 10_000  # the last ones
    test: int = 10_000
    batch: int = 128
    search: int = 5  # epochs of every candidate; the best of a method goes on from there
    epochs: tuple[int, int, int] = (30, 30, 90)  # of SGD, MAP and BBB, those of the search too
    draws: int = 50  # weight vectors that predictions are averaged over
    pruning_draws: int = 10


@dataclass
class Run:
    """One network in training: all that its next epoch depends on."""

    training: Training
    rng: np.random.Generator
    errors: list[float] = field(default_factory=list)  # of the mean network, validation images
    seconds: float = 0.0  # of processor time


class Stored(NamedTuple):
    """The file of a run."""

    candidate: Candidate
    settings: Settings
    run: Run


STATE = Format("bbb_numpy.mnist", 2, (Candidate, Settings, Run, Training, Memory, Epoch))
FORMAT = f"{STATE.name} {STATE.version}"


def build(candidate: Candidate, hidden: int) -> Reparameterised:
    """Return network, prior, likelihood, posterior and objective of a candidate."""
    pi, wide, narrow = candidate.prior
    prior = ScaleMixturePrior(pi, exp(-wide), exp(-narrow))
    model = Model(MLP((784, hidden, hidden, 10)), prior, CategoricalLikelihood())
    if candidate.method == "BBB":
        return Reparameterised(model, MeanField(START, candidate.rho), FreeEnergy())
    return Reparameterised(model, PointMass(START), MLE() if candidate.method == "SGD" else MAP())


def optimizer_of(candidate: Candidate, factor: float = 1.0) -> Optimizer:
    """Return the update rule with its learning rate times `factor`."""
    rate = candidate.learning_rate * factor
    return Adam(rate) if candidate.optimizer == "Adam" else SGD(rate)


def train_epoch(run: Run, candidate: Candidate, settings: Settings, x: Array, y: Array) -> None:
    """Train for one more epoch, in place.

    The learning rate falls along half a cosine over all epochs of the method, epoch by epoch.
    `x` (N, 784) and one-hot `y` (N, 10) in float32.
    """
    began = time.process_time()
    epochs = settings.epochs[METHODS.index(candidate.method)]
    recipe = Recipe(
        optimizer=optimizer_of(candidate, Cosine()(len(run.errors), epochs)),
        epochs=1,
        batch_size=settings.batch,
        samples=candidate.samples,
        kl_weights=KL_SHARES[candidate.shares],
    )
    estimator = build(candidate, settings.hidden)
    trained = fit(estimator, run.training, x, y, recipe, rng=run.rng, progress=False)
    if trained.stopped == "interrupted":
        raise KeyboardInterrupt
    run.training = trained
    run.seconds += time.process_time() - began


def classes_of_mean(candidate: Candidate, settings: Settings, theta: Array, x: Array) -> Array:
    """Return the classes (N,) that one network gives, that with the mean weights."""
    model = build(candidate, settings.hidden).model
    weights = theta[None, : model.layout.size]
    blocks = (x[i : i + 1000] for i in range(0, len(x), 1000))
    return np.concatenate([model.predict(weights, block)[0].argmax(1) for block in blocks])


def load(path: Path, candidate: Candidate, settings: Settings) -> Run:
    """Return the state that is stored there; without a file that before the first epoch.

    Networks of one method start alike. ValueError, if the file is damaged or of another run.
    """
    if not path.exists():
        rng = np.random.default_rng([settings.seed, METHODS.index(candidate.method)])
        estimator = build(candidate, settings.hidden)
        return Run(start(estimator, rng, optimizer_of(candidate), np.float32), rng)
    found: Stored = read_state(path, Stored, STATE)
    if (found.candidate, found.settings) != (candidate, settings):
        raise ValueError(f"{path} is of another network or of other settings; delete it")
    return found.run


class Images(NamedTuple):
    """Inputs (N, 784) in float32, pixels / 126, and labels (N,) of the three parts."""

    x: Array
    labels: Array
    x_validation: Array
    labels_validation: Array
    x_test: Array
    labels_test: Array


def probabilities(
    candidate: Candidate, settings: Settings, theta: Array, x: Array, draws: int
) -> Array:
    """Return class probabilities (N, 10), for BBB averaged over `draws` weight vectors."""
    estimator = build(candidate, settings.hidden)
    rng = np.random.default_rng([settings.seed, 100])  # the same draws for every theta
    samples = draws if candidate.method == "BBB" else 1
    return predict_classes(estimator, theta, x, rng=rng, samples=samples).proba


def measure(
    images: Images, settings: Settings, chosen: dict[str, tuple[Candidate, Run]]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the numbers, from test images too, and the weights that the pictures show."""
    labels, methods, errors = images.labels_test, {}, {}
    weights: dict[str, Array] = {}
    for name, (c, run) in chosen.items():
        theta = run.training.theta
        of_validation, found = (
            probabilities(c, settings, theta, x, settings.draws)
            for x in (images.x_validation, images.x_test)
        )
        validation = np.mean(of_validation.argmax(1) != images.labels_validation)
        errors[name] = found.argmax(1) != labels
        tiny = np.finfo(np.float32).tiny
        nll = -np.log(np.maximum(found[np.arange(len(labels)), labels], tiny), dtype=float)
        mean = classes_of_mean(c, settings, theta, images.x_test) != labels
        last = run.training.history[-1]
        methods[name] = {
            "chosen": c.name,
            "epochs": len(run.errors),
            "errors": run.errors,
            "validation": float(validation),
            "test": float(errors[name].mean()),
            "test, mean network": float(mean.mean()),
            "test nll": float(nll.mean()),
            "train nll": last.nll / len(images.x),
            "train kl": last.kl / len(images.x) if name == "BBB" else None,
        }
        weights[name] = theta[: build(c, settings.hidden).model.layout.size].astype(float)
    against = {}
    for name in ("SGD", "MAP"):
        difference = errors[name].astype(float) - errors["BBB"]
        error = difference.std(ddof=1) / len(difference) ** 0.5
        against[name] = [float(difference.mean()), float(error)]
    c, run = chosen["BBB"]
    estimator, theta = build(c, settings.hidden), run.training.theta
    eps = estimator.draw_weights(np.random.default_rng([settings.seed, 101]), 1, theta.dtype)
    weights["BBB, one draw"] = estimator.weights(theta, eps)[0].astype(float)
    ratio = pruning.signal_to_noise_of(estimator, theta)
    weights["ratio"] = ratio
    level = pruning.decibels(ratio[ratio > 0])
    quantiles = np.quantile(level, [0.05, 0.25, 0.5, 0.75, 0.95])
    found_numbers = {
        "methods": methods,
        "against BBB": against,
        "ratio": {"quantiles": quantiles.tolist(), "above 0 dB": float((level > 0).mean())},
        "pruning": pruned(images, settings, chosen),
    }
    return found_numbers, weights


def pruned(
    images: Images, settings: Settings, chosen: dict[str, tuple[Candidate, Run]]
) -> list[dict[str, Any]]:
    """Remove weights of BBB by signal-to-noise, and of SGD by size, of which it has no noise."""
    c, run = chosen["BBB"]
    estimator = build(c, settings.hidden)
    eligible = pruning.matrices(estimator.model.layout)

    def score(theta: Array) -> float:
        found = probabilities(c, settings, theta, images.x_test, settings.pruning_draws)
        return float(np.mean(found.argmax(1) != images.labels_test))

    ratio = pruning.signal_to_noise_of(estimator, run.training.theta)
    plain, plain_run = chosen["SGD"]
    rows = []
    for share in PRUNED:
        removed = pruning.lowest(ratio, share, eligible)
        theta = plain_run.training.theta.copy()
        theta[pruning.lowest(np.abs(theta), share, eligible)] = 0.0
        given = classes_of_mean(plain, settings, theta, images.x_test)
        rows.append(
            {
                "share": share,
                "left": int((eligible & ~removed).sum()),
                "threshold": float(pruning.decibels(ratio[removed].max())) if share else None,
                "BBB": score(pruning.prune(estimator, run.training.theta, share, eligible)),
                "SGD": float(np.mean(given != images.labels_test)),
            }
        )
    return rows


PRUNED = (0.0, 0.5, 0.75, 0.95, 0.98)  # shares of the paper's table
STYLES = {  # colour, line, marker, name in the tables, name of its weights
    "SGD": (BLACK, "-", "o", "SGD, maximum likelihood", "SGD"),
    "MAP": (VERMILLION, "--", "s", "MAP, scale mixture", "MAP"),
    "BBB": (BLUE, "-", "^", "Bayes by Backprop, scale mixture", "BBB, posterior means"),
    "BBB, one draw": (GREEN, ":", "v", "", "BBB, one draw"),
}
TITLES = {name: look[3] for name, look in STYLES.items()}


def draw_figure(numbers: Mapping[str, Any], weights: Mapping[str, Array]) -> Figure:
    """Draw errors by epoch, weights, signal-to-noise ratios and errors by share removed."""
    figure, ((a, b), (c, d)) = panels(12.0, 9.4, 2, 2)
    _draw_errors(a, numbers)
    _draw_weights(b, weights)
    _draw_ratios(c, weights["ratio"])
    _draw_pruning(d, numbers)
    return figure


def _draw_errors(ax: Axes, numbers: Mapping[str, Any]) -> None:
    for name, one in numbers["methods"].items():
        colour, style, *_ = STYLES[name]
        epochs = np.arange(1, len(one["errors"]) + 1)
        ax.plot(epochs, 100 * np.array(one["errors"]), style, color=colour, label=TITLES[name])
    ax.set_xscale("log")
    plain_numbers(ax.xaxis, minor="25")
    ax.grid(axis="y", color=GREY, alpha=0.2)
    label = "epoch\n(a) errors of the network with the mean weights"
    finish(ax, label, "validation images classified wrongly (%)", 2)


def _draw_weights(ax: Axes, weights: Mapping[str, Array]) -> None:
    shown = {name: weights[name] for name in STYLES if name in weights}
    most = 1.1 * max(float(np.quantile(np.abs(w), 0.9995)) for w in shown.values())
    edges = np.linspace(-most, most, 161)
    lowest = np.inf
    for name, w in shown.items():
        colour, style, *_, label = STYLES[name]
        density = np.histogram(w, edges)[0] / (len(w) * np.diff(edges))
        lowest = min(lowest, density[density > 0].min())
        ax.stairs(density, edges, color=colour, linestyle=style, linewidth=1.5, label=label)
    ax.set_yscale("log")
    ax.set_ylim(bottom=lowest)
    ax.set_xlim(-most, most)
    label = "weight (dimensionless)\n(b) all weights and biases (the paper's Figure 3)"
    finish(ax, label, "density", 2)


def _draw_ratios(ax: Axes, ratio: Array) -> None:
    """Draw density and distribution function of signal-to-noise ratios in dB (D36)."""
    level = np.sort(pruning.decibels(ratio))
    level = level[np.isfinite(level)]
    bins, label = min(60, max(8, level.size // 15)), f"density, {level.size} weights"
    ax.hist(level, bins, density=True, color=PALE, edgecolor=BLUE, linewidth=0.8, label=label)
    right = ax.twinx()
    right.plot(level, np.arange(1, level.size + 1) / level.size, color=BLACK, linewidth=1.6)
    right.set(ylim=(0, 1), ylabel="share of weights below")
    cut = float(np.quantile(level, 0.75))
    ax.axvline(cut, color=VERMILLION, linestyle="--", linewidth=1.8, label="75% below")
    ax.plot([], [], color=BLACK, linewidth=1.6, label="distribution function (right)")
    ax.grid(axis="x", color=GREY, alpha=0.2)
    below = "(c) signal-to-noise of all weights of BBB (the paper's Figure 4)"
    finish(ax, f"signal-to-noise ratio 10 log10(|μ| / σ) (dB)\n{below}", "density (per dB)", 2)


def _draw_pruning(ax: Axes, numbers: Mapping[str, Any]) -> None:
    rows = numbers["pruning"]
    left = 100 * (1.0 - np.array([row["share"] for row in rows]))
    tests = numbers["settings"]["test"]
    for name, label in (("BBB", "BBB, by signal-to-noise"), ("SGD", "SGD, by size")):
        colour, style, marker, *_ = STYLES[name]
        share = np.array([row[name] for row in rows])
        ax.errorbar(
            left, 100 * share, yerr=100 * np.sqrt(share * (1 - share) / tests), marker=marker,
            linestyle=style, color=colour, capsize=3, label=label,
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log")
    plain_numbers(ax.xaxis)
    ax.set_xticks(left, [f"{value:.0f}" for value in left])
    ax.invert_xaxis()
    plain_numbers(ax.yaxis, minor="235")
    label = "weights left (%)\n(d) pruning; bars are binomial standard deviations"
    finish(ax, label, "test images classified wrongly (%)", 2)


QUANTILES = ("5 %", "25 %", "50 %", "75 %", "95 %")  # of signal-to-noise ratios
Numbers = Mapping[str, Any]


def lay_out(numbers: Numbers) -> str:
    """Return every number that is printed, and which claims of the paper hold."""
    minutes = {"minutes of processor time": f"{numbers['seconds'] / 60:.1f}"}
    chosen = {method: one["chosen"] for method, one in numbers["methods"].items()}

    def candidate(one: Numbers) -> str:
        goes_on = "*" if chosen[one["method"]] == one["name"] else ""
        return f"{_percent(one['errors'][-1])} | {goes_on}"

    def errors(one: Numbers) -> str:
        test = f"{_percent(one['test'])} +- {100 * _deviation(one['test'], numbers):.2f}"
        found = _percent(one["validation"]), test, _percent(one["test, mean network"])
        kl = "" if one["train kl"] is None else f"{one['train kl']:.2f}"
        likelihoods = f"{one['test nll']:.4f} | {one['train nll']:.4f}"
        return " | ".join([str(one["epochs"]), *found, likelihoods, kl])

    def pruned(row: Numbers) -> str:
        threshold = "" if row["threshold"] is None else f"{row['threshold']:.1f}"
        return f"{row['left']} | {threshold} | {_percent(row['BBB'])} | {_percent(row['SGD'])}"

    return text(
        values(
            "MNIST, 784-hidden-hidden-10, ReLU, pixels / 126; images, epochs, weight vectors.",
            "setting",
            numbers["settings"] | minutes,
        ),
        listed(
            "Errors of the candidates on validation images.",
            f"after {numbers['settings']['search']} epochs | validation | goes on",
            ((f"{one['method']}: {one['name']}", one) for one in numbers["search"]),
            candidate,
        ),
        listed(
            "Errors +- binomial standard deviation; NLL, KL in nats per image (train: the last "
            "epoch).",
            "errors | epochs | validation | test | mean weights | test NLL | train NLL | KL",
            ((TITLES[name], one) for name, one in numbers["methods"].items()),
            errors,
        ),
        listed(
            "Test errors less those of Bayes by Backprop, image by image, in points.",
            " | difference | standard error",
            ((TITLES[name], pair) for name, pair in numbers["against BBB"].items()),
            lambda pair: f"{100 * pair[0]:+.2f} | {100 * pair[1]:.2f}",
        ),
        listed(
            "Test errors without the weights of lowest |mu| / sigma (biases stay).",
            "removed | left | up to (dB) | BBB | SGD, by size",
            ((_percent(row["share"], 0), row) for row in numbers["pruning"]),
            pruned,
        ),
        listed(
            "Signal-to-noise ratios of all weights (dB).",
            "share below | dB",
            zip(QUANTILES, numbers["ratio"]["quantiles"], strict=True),
            "{:.1f}",
        ),
        claims(
            "'Held' is within two binomial standard deviations of the whole network's error.",
            "the paper",
            claims_of_the_paper(numbers),
        ),
    )


def _percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f} %"


def _deviation(share: float, numbers: Numbers) -> float:
    return float((share * (1.0 - share) / numbers["settings"]["test"]) ** 0.5)


def claims_of_the_paper(numbers: Numbers) -> list[Claim]:
    """Judge the paper's order of the methods, and how much can be pruned."""
    difference, error = numbers["against BBB"]["SGD"]
    base, *pruned = numbers["pruning"]
    held = [
        row["share"]
        for row in pruned
        if row["BBB"] - base["BBB"] <= 2 * _deviation(max(base["BBB"], row["BBB"]), numbers)
    ]
    most = max(held, default=0.0)
    found = f"{100 * difference:+.2f} +- {100 * error:.2f}"
    worse = "SGD makes more errors than Bayes by Backprop (points, 400 units)"
    return [
        Claim(worse, "more", found, difference > 2 * error),
        Claim("most weights can go (here: 75 %)", "most", f"{most:.0%} held", most >= 0.75),
    ]


DIVISOR = 126  # of the pixels, as in the paper
FINISHED, SETTINGS = "numbers.json", "settings.json"


def full(seed: int) -> dict[str, Any]:
    """Return the arguments of `reproduce` for the paper's budget: 600 epochs of each method."""
    return {"settings": Settings(seed, search=10, epochs=(600, 600, 600)), "candidates": FULL}


def prepare(found: MNIST, settings: Settings) -> Images:
    """Cut the training images into a training and a validation part, and scale all."""
    held_out = len(found.train_images) - settings.validation
    scale, arrays = np.float32(1.0 / DIVISOR), []
    for x, labels, part in (
        (found.train_images, found.train_labels, slice(settings.train)),
        (found.train_images, found.train_labels, slice(held_out, None)),
        (found.test_images, found.test_labels, slice(settings.test)),
    ):
        arrays += [x[part] * scale, labels[part].astype(np.intp)]
    return Images._make(arrays)


def train_all(
    out: Path,
    images: Images,
    settings: Settings,
    candidates: Sequence[Candidate],
    progress: bool | None = None,
) -> tuple[list[Run], list[list[float]], dict[str, int]]:
    """Search, choose and train on; go on from the files in `out`, written after every epoch.

    Return the run of each candidate, its validation error (a share) after every epoch of the
    search, and which candidate of each method was trained to the end.
    """
    paths = [out / f"state-{number}.npz" for number in range(len(candidates))]
    runs = [load(path, c, settings) for path, c in zip(paths, candidates, strict=True)]
    y = np.eye(10, dtype=np.float32)[images.labels]
    work = settings.search * (len(candidates) - len(METHODS)) + sum(settings.epochs)
    with steps(work, progress) as done:
        done(sum(len(run.errors) for run in runs))

        def go_on(number: int, epochs: int) -> None:
            run, c = runs[number], candidates[number]
            while len(run.errors) < epochs:
                train_epoch(run, c, settings, images.x, y)
                given = classes_of_mean(c, settings, run.training.theta, images.x_validation)
                run.errors.append(float(np.mean(given != images.labels_validation)))
                write_state(paths[number], Stored(c, settings, run), STATE)
                done(1)

        for number in range(len(candidates)):
            go_on(number, settings.search)
        searched = [run.errors[: settings.search] for run in runs]
        best = {}
        for method, epochs in zip(METHODS, settings.epochs, strict=True):
            own = [number for number, c in enumerate(candidates) if c.method == method]
            best[method] = min(own, key=lambda number: searched[number][-1])
            go_on(best[method], epochs)
    return runs, searched, best


def reproduce(
    out: Path,
    seed: int = 0,
    *,
    settings: Settings | None = None,
    candidates: Sequence[Candidate] = CANDIDATES,
    found: MNIST | None = None,
    progress: bool | None = None,
) -> str:
    """Train, choose, test and prune; write ``mnist.png`` and ``numbers.json``; return the tables.

    The folder holds the state after every epoch: the same call goes on from there, with the same
    numbers bit for bit (on the same machine, with as many BLAS threads), and returns at once when
    all is done. `settings` have a seed of their own; `candidates`, at least one for each method;
    `found`, images other than those of the data folder. ValueError if `out` holds a run of another
    seed or other settings, or a damaged file.
    """
    settings = settings or Settings(seed)
    names = [c.name for c in candidates]
    record = {"format": FORMAT, "settings": plain(settings), "candidates": names}
    for name in (SETTINGS, FINISHED):
        if (out / name).exists():
            there = json.loads((out / name).read_text(encoding="utf-8"))
            if any(there[part] != value for part, value in record.items()):
                raise ValueError(
                    f"{out} holds the run of other settings: {there['settings']}. Make the same "
                    "call to go on with it, or name another folder"
                )
            if name == FINISHED:
                return lay_out(there)
    images = prepare(data.load() if found is None else found, settings)
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / SETTINGS, record)
    runs, searched, best = train_all(out, images, settings, candidates, progress)
    chosen = {method: (candidates[number], runs[number]) for method, number in best.items()}
    numbers, weights = measure(images, settings, chosen)
    search = [
        {"method": c.method, "name": c.name, "errors": errors}
        for c, errors in zip(candidates, searched, strict=True)
    ]
    numbers = {**record, "search": search, **numbers}
    draw_figure(numbers, weights).savefig(out / "mnist.png", dpi=100)
    numbers["seconds"] = sum(run.seconds for run in runs)
    write_json(out / FINISHED, numbers)
    return lay_out(numbers)
