"""Whether intervals of few rows hold what they promise: twelve laws, from 5 rows to 120.

Rows are drawn from a law, a learner is fitted as it comes, and the share of new targets of the same
law inside its central predictive intervals is counted. A record for each data set is appended to a
file, so that the same call goes on after an interruption.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import NDArray

from bbb_numpy.learners.inference import Sampling
from bbb_numpy.learners.regressor import BayesianMLPRegressor
from bbb_numpy.model.kl_weights import NoWarmUp
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.plots import style
from bbb_numpy.plots.style import BLACK, BLUE, GREY
from bbb_studies.kit import Estimate, estimate, panels, table, text, write
from bbb_studies.progress import counted, steps

Array = NDArray[Any]
Rng = np.random.Generator


@dataclass(frozen=True)
class Law:
    """How inputs and targets are made: y = mean(x) + noise(x), in units of their own."""

    what: str  # formula, as shown in tables
    d_in: int
    mean: Callable[[Array], Array]  # from inputs (N, d_in) to E y + const, (N,)
    # from the generator and inputs to the noise (N,)
    noise: Callable[[Rng, Array], Array]
    is_uniform: bool = True  # inputs uniform on [-1, 1], else standard normal

    def draw(self, rng: Rng, n_rows: int) -> tuple[Array, Array]:
        """Draw inputs (N, d_in) and targets (N,) of `n_rows` independent rows."""
        shape = (n_rows, self.d_in)
        x = rng.standard_normal(shape)
        if self.is_uniform:
            x = rng.uniform(-1.0, 1.0, shape)
        return x, self.mean(x) + self.noise(rng, x)


def _normal(scale: float) -> Callable[[Rng, Array], Array]:
    """Return a function that draws normal noise (N,) of one standard deviation, `scale`."""
    return lambda rng, x: scale * rng.standard_normal(len(x))


# The laws were chosen before any learner was fitted to them.
LAWS: dict[str, Law] = {
    "line, much noise": Law("x + e", 1, lambda x: x[:, 0], _normal(1.0)),
    "line, little noise": Law("2 x + 0.2 e", 1, lambda x: 2.0 * x[:, 0], _normal(0.2)),
    "slow sine": Law(
        "sin(pi x) + 0.3 e", 1, lambda x: np.sin(np.pi * x[:, 0]), _normal(0.3)
    ),
    "fast sine": Law(
        "sin(2 pi x) + 0.2 e", 1, lambda x: np.sin(2 * np.pi * x[:, 0]), _normal(0.2)
    ),
    "step": Law("sign(x) + 0.3 e", 1, lambda x: np.sign(x[:, 0]), _normal(0.3)),
    "quadratic": Law(
        "x^2 + 0.5 e, x normal", 1, lambda x: x[:, 0] ** 2, _normal(0.5), False
    ),
    "five inputs": Law(
        "x1 + x2/2 + x3/4 + 0.5 e, x normal",
        5,
        lambda x: x @ np.array([1.0, 0.5, 0.25, 0.0, 0.0]),
        _normal(0.5),
        False,
    ),
    "interaction": Law(
        "x1 x2 + x3/2 + 0.3 e, x normal",
        3,
        lambda x: x[:, 0] * x[:, 1] + 0.5 * x[:, 2],
        _normal(0.3),
        False,
    ),
    "noise that grows": Law(
        "x + (0.6 + 0.4 x) e",
        1,
        lambda x: x[:, 0],
        lambda rng, x: (0.6 + 0.4 * x[:, 0]) * rng.standard_normal(len(x)),
    ),
    "heavy tails": Law(
        "x + 0.4 t, t of 3 degrees of freedom",
        1,
        lambda x: x[:, 0],
        lambda rng, x: 0.4 * rng.standard_t(3, len(x)),
    ),
    "skewed noise": Law(
        "sin(2 x) + 0.5 (exponential - 1)",
        1,
        lambda x: np.sin(2.0 * x[:, 0]),
        lambda rng, x: 0.5 * (rng.standard_exponential(len(x)) - 1.0),
    ),
    "nothing but noise": Law(
        "e, two inputs", 2, lambda x: np.zeros(len(x)), _normal(1.0)
    ),
}
N_ROWS = (5, 8, 12, 20, 30, 60, 120)
COVERAGES = (0.5, 0.8, 0.9, 0.95)
N_NEW_TARGETS = 200  # of each data set


def as_it_comes(x: Array, y: Array, seed: int) -> Any:
    """Fit the default regressor."""
    return BayesianMLPRegressor(random_state=seed).fit(x, y)


def three_times_as_long(x: Array, y: Array, seed: int) -> Any:
    """Fit the default regressor's model with chains of three times the steps."""
    fitted = as_it_comes(x, y, seed)
    model = fitted.estimator_.model
    usual = fitted.inference_
    longer = replace(usual, draws=3 * usual.draws, warm_up=3 * usual.warm_up)
    learner = BayesianMLPRegressor(
        model.network.sizes[1:-1],
        activation=model.network.activation,
        prior=replace(model.prior, sizes=None),
        likelihood=model.likelihood,
        inference=longer,
        random_state=seed,
    )
    return learner.fit(x, y)


def mean_field(x: Array, y: Array, seed: int, **arguments: Any) -> Any:
    """Fit the report's method, with `arguments` of the learner."""
    learner = BayesianMLPRegressor(
        inference="mean-field", random_state=seed, **arguments
    )
    return learner.fit(x, y)


# Chains with one noise scale: the weights as the mean field has them, what is integrated differs
CHAINS = Sampling(start="prior", cores=1)


MODEL: dict[str, Any] = {
    "hidden_layer_sizes": (20,),
    "activation": "relu",
    "prior": GaussianPrior(0.5),
    "likelihood": GaussianLikelihood(0.1, learn=True),
    "inference": CHAINS,
}


def chains(x: Array, y: Array, seed: int, **arguments: Any) -> Any:
    """Draw weights and noise scale from the posterior of the mean field's model."""
    return BayesianMLPRegressor(random_state=seed, **(MODEL | arguments)).fit(x, y)


def chains_at_point_noise(x: Array, y: Array, seed: int) -> Any:
    """Draw the weights from their posterior, at the noise scale that the mean field learned."""
    noise = mean_field(x, y, seed).noise_scale_[0] / y.std()
    return chains(x, y, seed, likelihood=GaussianLikelihood(float(noise)))


def mean_field_at_drawn_noise(x: Array, y: Array, seed: int) -> Any:
    """Fit the report's method at the noise scale that is the mean of draws of it."""
    noise = chains(x, y, seed).noise_scale_[0] / y.std()
    likelihood = GaussianLikelihood(float(noise))
    return mean_field(x, y, seed, likelihood=likelihood, epochs=3000)


Fit = Callable[[Array, Array, int], Any]
# What is judged, and below it what tells why the mean field fails
LEARNERS: dict[str, Fit] = {
    "default": as_it_comes,
    "default, three times as long": three_times_as_long,
    "mean-field": mean_field,
    "mean-field, 3,000 epochs": partial(mean_field, epochs=3000),
    "mean-field, no warm-up of the KL term": partial(mean_field, kl_warm_up=NoWarmUp()),
    "chains": chains,
    "chains, three times as long": partial(
        chains, inference=replace(CHAINS, draws=750, warm_up=1200)
    ),
    "chains, y in its own units": partial(chains, standardize=False),
    "chains, noise of the mean field": chains_at_point_noise,
    "mean-field, noise of the chains": mean_field_at_drawn_noise,
}


JUDGED = ("default", "default, three times as long", "mean-field")
ROWS_OF_REASONS = (20,)  # numbers of rows at which all other learners are measured


class Record(NamedTuple):
    """What was measured on one data set."""

    learner: str
    law: str
    n_rows: int
    data_set: int
    inside: list[
        float
    ]  # share of new targets inside the interval of each of `COVERAGES`
    log_density: float  # mean of new targets, in nats
    seconds: float  # of the fit


@dataclass(frozen=True)
class Settings:
    """How large the study is; the defaults are those of the command."""

    seed: int = 0
    learners: tuple[str, ...] = ("default", "mean-field")
    n_rows: tuple[int, ...] = N_ROWS
    data_sets: int = 2  # of each law and number of rows


def quick(seed: int) -> dict[str, Any]:
    """Return the arguments of a short run."""
    return {"settings": Settings(seed, n_rows=(5, 20), data_sets=1)}


def full(seed: int) -> dict[str, Any]:
    """Return the arguments of a run as long as the one of the docs: hours, resumable."""
    return {"settings": Settings(seed, tuple(LEARNERS), data_sets=200)}


def measure(fit: Fit, law_name: str, n_rows: int, data_set: int, seed: int) -> Any:
    """Fit one data set, and return `inside`, `log_density` and `seconds` of a `Record`.

    Parameters
    ----------
    fit : callable
        A value of `LEARNERS`.
    law_name : str
        A key of `LAWS`. Data depend on it, on `n_rows`, `data_set` and `seed`, not on the learner.
    n_rows, data_set : int
        Number of rows, and index of the data set.
    seed : int
        Seed of the study.
    """
    law = LAWS[law_name]
    rng = np.random.default_rng([seed, list(LAWS).index(law_name), n_rows, data_set])
    x, y = law.draw(rng, n_rows)
    new_x, new_y = law.draw(rng, N_NEW_TARGETS)
    start = time.perf_counter()
    with warnings.catch_warnings():
        # a fit of five rows may say that it is not to be trusted; it is judged all the same
        warnings.simplefilter("ignore", UserWarning)
        fitted = fit(x, y, data_set)
        seconds = time.perf_counter() - start
        ends = fitted.predict_interval(new_x, list(COVERAGES))  # (N, C, 2)
        log_density = fitted.log_predictive_density(new_x, new_y).mean()
    inside = (new_y[:, None] >= ends[..., 0]) & (new_y[:, None] <= ends[..., 1])
    return inside.mean(axis=0).tolist(), float(log_density), round(seconds, 3)


def read_records(file: Path) -> list[Record]:
    """Return the records of `file`, a line of JSON each; [] if it does not exist."""
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").splitlines()
    return [Record(**json.loads(line)) for line in lines]


def run(settings: Settings, file: Path, progress: bool | None = None) -> list[Record]:
    """Measure all cells of `settings` that `file` does not have, append them, and return all.

    Parameters
    ----------
    settings : Settings
        Learners, rows and number of data sets; data sets are taken in turns, so that all cells
        grow together.
    file : Path
        File of records, created if missing.
    progress : bool, optional
        As in `bbb_studies.progress.steps`.
    """
    records = read_records(file)
    keys = {record[:4] for record in records}
    missing = [key for key in _keys(settings) if key not in keys]
    file.parent.mkdir(parents=True, exist_ok=True)
    with (
        file.open("a", encoding="utf-8") as lines,
        steps(len(missing), progress) as report,
    ):
        for learner, law, n_rows, data_set in counted(missing, report):
            fit = LEARNERS[learner]
            measured = measure(fit, law, n_rows, data_set, settings.seed)
            records.append(Record(learner, law, n_rows, data_set, *measured))
            print(json.dumps(records[-1]._asdict()), file=lines, flush=True)
    wanted = set(_keys(settings))
    return [record for record in records if record[:4] in wanted]


def _keys(settings: Settings) -> Iterator[tuple[str, str, int, int]]:
    for data_set in range(settings.data_sets):
        for n_rows in settings.n_rows:
            for learner in settings.learners:
                if n_rows not in ROWS_OF_REASONS and learner not in JUDGED:
                    continue
                for law in LAWS:
                    yield learner, law, n_rows, data_set


class Cell(NamedTuple):
    """Coverage of one learner at one number of rows."""

    learner: str
    n_rows: int
    n_data_sets: int  # smallest number of data sets of a law
    mean: list[Estimate]  # over laws, at each of `COVERAGES`
    by_law: dict[str, list[Estimate]]  # over data sets
    log_density: float
    seconds: float  # median of the fits

    @property
    def is_as_promised(self) -> bool:
        """Whether all means are within 2 standard errors, and no law below 0.9, of the promise."""
        near = all(
            abs(found.mean - promised) <= 2.0 * found.error
            for found, promised in zip(self.mean, COVERAGES, strict=True)
        )
        return near and self.lowest_ratio >= 0.9

    @property
    def lowest_ratio(self) -> float:
        """The smallest share inside over what was promised, over laws and coverages."""
        means = np.array(
            [[found.mean for found in law] for law in self.by_law.values()]
        )
        return float((means / COVERAGES).min())


def summarise(records: Sequence[Record]) -> list[Cell]:
    """Return the coverage of each learner and number of rows, in the order of `records`.

    Cells in which a law is missing are left out, since their mean would be over other laws.
    The standard error is that over data sets within laws: the laws are not a sample.
    """
    groups: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        groups.setdefault((record.learner, record.n_rows), []).append(record)
    laws = {record.law for record in records}
    cells = [_cell(*key, group) for key, group in groups.items()]
    return [cell for cell in cells if cell.by_law.keys() == laws]


def _cell(learner: str, n_rows: int, records: Sequence[Record]) -> Cell:
    shares: dict[str, list[list[float]]] = {}
    for record in records:
        shares.setdefault(record.law, []).append(record.inside)
    by_law = {
        law: [estimate(column) for column in np.array(inside).T]
        for law, inside in shares.items()
    }
    mean = [
        Estimate(
            float(np.mean([found.mean for found in laws])),
            float(np.sqrt(np.sum([found.error**2 for found in laws])) / len(laws)),
        )
        for laws in zip(*by_law.values(), strict=True)
    ]
    return Cell(
        learner,
        n_rows,
        min(map(len, shares.values())),
        mean,
        by_law,
        float(np.mean([record.log_density for record in records])),
        float(np.median([record.seconds for record in records])),
    )


HEAD = ("rows", "data sets", *(f"{100 * c:g} %" for c in COVERAGES), "lowest of a law")


def _row(cell: Cell) -> list[str]:
    lowest = min(cell.by_law, key=lambda law: cell.by_law[law][2].mean)
    return [
        str(cell.n_rows),
        str(cell.n_data_sets),
        *(f"{100 * found.mean:.1f} +- {100 * found.error:.1f}" for found in cell.mean),
        f"{100 * cell.by_law[lowest][2].mean:.0f} ({lowest})",
        f"{cell.log_density:.2f}",
        f"{cell.seconds:.2f}",
    ]


CAPTION = (
    "Share of new targets inside intervals of four coverages, in per cent, mean over twelve laws "
    "with its\nstandard error over data sets; lowest of the 90 % intervals over laws; log density "
    "of a target, nats; seconds a fit."
)


def lay_out(cells: Sequence[Cell]) -> str:
    """Return a table for each learner, of the `cells` of `summarise`."""
    head = (*HEAD, "log density", "s")
    tables = []
    for learner in dict.fromkeys(cell.learner for cell in cells):
        rows = [_row(cell) for cell in cells if cell.learner == learner]
        tables.append(f"{learner}\n\n{table(head, rows, 0)}")
    return text(CAPTION, *tables)


# line, marker and colour of each learner that is drawn
DRAWN = {"default": ("-", "o", BLACK), "mean-field": ("--", "s", BLUE)}


def draw(cells: Sequence[Cell]) -> Figure:
    """Draw coverage against rows, a panel for each of `COVERAGES`: laws thin, means thick."""
    figure, axes = panels(12.6, 3.9, 1, len(COVERAGES), sharex=True)
    by_learner: Mapping[str, list[Cell]] = {
        name: sorted(
            (cell for cell in cells if cell.learner == name), key=lambda c: c.n_rows
        )
        for name in DRAWN
    }
    for index, (ax, coverage) in enumerate(zip(axes, COVERAGES, strict=True)):
        ax.axhline(
            100 * coverage, color=GREY, linewidth=1.0, linestyle=":", label="promised"
        )
        for name, (line, marker, colour) in DRAWN.items():
            own = by_learner[name]
            if not own:
                continue
            n_rows = [cell.n_rows for cell in own]
            for law in own[0].by_law:
                shares = [100 * cell.by_law[law][index].mean for cell in own]
                ax.plot(n_rows, shares, line, color=colour, linewidth=0.6, alpha=0.35)
            means = [100 * cell.mean[index].mean for cell in own]
            ax.plot(
                n_rows, means, line, marker=marker, color=colour, linewidth=2.4,
                label=f"{name}, mean of the laws",
            )  # fmt: skip
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(FixedLocator(N_ROWS))
        ax.xaxis.set_minor_locator(NullLocator())
        style.plain_numbers(ax.xaxis)
        ax.set_xlabel(f"rows\n({'abcd'[index]}) intervals of {100 * coverage:g} %")
    axes[0].set_ylabel("new targets inside (%)")
    style.legend_of_figure(figure, axes[0], 3)
    return figure


def read_cells(file: Path) -> list[Cell]:
    """Return the cells that `reproduce` wrote to `file`."""

    def estimates(found: Sequence[Mapping[str, float]]) -> list[Estimate]:
        return [Estimate(**each) for each in found]

    return [
        Cell(
            **cell
            | {
                "mean": estimates(cell["mean"]),
                "by_law": {law: estimates(e) for law, e in cell["by_law"].items()},
            }
        )
        for cell in json.loads(file.read_text(encoding="utf-8"))
    ]


def markdown(cells: Sequence[Cell]) -> str:
    """Return the table of ``docs/few-rows.md``: a line for each of `cells`."""
    lines = [
        "| learner | rows | data sets | "
        + " | ".join(f"{100 * coverage:g} %" for coverage in COVERAGES)
        + " | smallest share of the promise | log density | s |",
        "|---|" + "---:|" * (len(COVERAGES) + 5),
    ]
    for cell in cells:
        means = [f"{100 * found.mean:.1f}" for found in cell.mean]
        if cell.n_data_sets > 1:
            means = [
                f"{mean} ± {100 * found.error:.1f}"
                for mean, found in zip(means, cell.mean, strict=True)
            ]
        written = [
            cell.learner,
            f"{cell.n_rows}",
            f"{len(cell.by_law)} x {cell.n_data_sets}",
            *means,
            f"{cell.lowest_ratio:.2f}",
            f"{cell.log_density:.2f}",
            f"{cell.seconds:.1f}",
        ]
        lines.append(f"| {' | '.join(written)} |")
    return "\n".join(lines)


# Tables of the page: the learners of each, and numbers of rows; marks stand around each
TABLES = {
    "judged": (JUDGED, N_ROWS),
    "reasons": (tuple(LEARNERS)[2:], ROWS_OF_REASONS),
}


def with_tables(page: str, cells: Sequence[Cell]) -> str:
    """Return the text of a page with the tables of `cells` between their marks."""
    for name, (learners, n_rows) in TABLES.items():
        begin = f"<!-- few-rows: {name} -->"
        end = f"<!-- few-rows: end of {name} -->"
        chosen = [c for c in cells if c.learner in learners and c.n_rows in n_rows]
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n\n{markdown(chosen)}\n\n{end}{after}"
    return page


def reproduce(
    out: Path,
    seed: int = 0,
    settings: Settings | None = None,
    progress: bool | None = None,
) -> str:
    """Measure what is missing, write ``few-rows.png`` and ``.json``, and return the tables.

    Parameters
    ----------
    out : Path
        Folder of the results; its ``few-rows.jsonl`` holds a record for each data set.
    seed : int
        Of data and fits, if `settings` is not given.
    settings : Settings, optional
        Size of the study.
    progress : bool, optional
        Show a progress bar; by default only in a terminal.

    Returns
    -------
    str
        The tables.
    """
    settings = Settings(seed) if settings is None else settings
    cells = summarise(run(settings, out / "few-rows.jsonl", progress))
    write(out, {"few-rows": draw(cells)}, cells, "few-rows")
    return lay_out(cells)


def main(folder: Path, root: Path) -> None:
    """Put the results of a run into the repository: its numbers, its picture, its page.

    Parameters
    ----------
    folder : Path
        Folder of `reproduce`, whose records may still grow.
    root : Path
        Root of the repository.
    """
    cells = summarise(read_records(folder / "few-rows.jsonl"))
    cells.sort(key=lambda cell: (list(LEARNERS).index(cell.learner), cell.n_rows))
    write(root / "benchmarks/results", {}, cells, "few_rows")
    draw(cells).savefig(root / "benchmarks/few_rows.png", dpi=100)
    page = root / "docs/few-rows.md"
    page.write_text(with_tables(page.read_text("utf-8"), cells), "utf-8")
    print(lay_out(cells))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(__file__).resolve().parents[2])
