"""The report's Section 8: its figures, its claims, and the numbers behind them.

`run_all` writes figures, text and numbers of all experiments, `band` the picture of
plain.py's own example. Every verdict in the text follows from the numbers beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from math import log, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from bbb_numpy import plain
from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.numeric.files import write_json
from bbb_numpy.plots import fits
from bbb_numpy.plots.style import (
    BLACK,
    BLUE,
    GREY,
    VERMILLION,
    finish,
    legend_above,
    plain_numbers,
)
from bbb_numpy.training import Epoch
from bbb_studies.kit import deviations, panels, table
from bbb_studies.progress import steps

from . import regression
from .regression import CASES, TRAINING_SETTINGS, Numbers, Result

# Loss at the end of training, as read from the report's Figures 1 to 3, by range of x
REPORTED_LOSSES = {4.0: 41.0, 2.5: 48.0, 1.0: 59.5}
# Settings that run by default; errata.md needs the others
DEFAULT_SETTINGS = ("printed", "should-be")
# Half the width of the report's bands in sd: their legend says "+/- 3*Std. Dev. (Scaled by 50)"
BAND_HALF_WIDTH_SD = 3 * 50


def run_all(
    problem: int | None = None,
    x_range: float | None = None,
    setting: str | None = None,
    *,
    seed: int = 0,
    out: Path = Path("report"),
    rows: int | None = None,
    epochs: int | None = None,
    progress: bool | None = None,
) -> list[Result]:
    """Run the report's experiments; write figures, ``report.txt`` and ``numbers.json``.

    A selection writes files of its own, such as ``report-problem2-printed.txt``.

    Parameters
    ----------
    problem : int, optional
        1 or 2; by default both.
    x_range : float, optional
        0.5, 1, 2.5 or 4; by default all of them.
    setting : str, optional
        A key of `TRAINING_SETTINGS`, or "all". By default as printed and as it should be.
    seed : int
        Of every experiment.
    out : Path
        Folder, made if it is missing.
    rows, epochs : int, optional
        Instead of the report's, for a quick look.
    progress : bool, optional
        Whether to show a bar, see `bbb_studies.progress.steps`.

    Returns
    -------
    list of Result
        In the order of `CASES`, as printed first.

    Raises
    ------
    ValueError
        If no experiment fits the selection.
    """
    experiments = select(problem, x_range, setting)
    out.mkdir(parents=True, exist_ok=True)
    results = []
    with steps(sum(map(regression.n_updates, experiments)), progress) as report:
        for experiment in experiments:
            result = regression.run(*experiment, seed=seed, rows=rows, epochs=epochs)
            results.append(result)
            draw = _figure_beside if result.setting.as_drawn else _figure
            draw(result).savefig(out / f"{result.name}.png", dpi=100)
            report(regression.n_updates(experiment))
    names = [problem and f"problem{problem}", x_range and f"range{x_range:g}", setting]
    suffix = "".join(f"-{name}" for name in names if name)
    if any(r.case.problem == 2 for r in results):
        _draw_deviations(results, out / f"epistemic{suffix}.png")
    numbers = [
        {
            "problem": result.case.problem,
            "x_range": result.case.x_range,
            "setting": result.setting.title,
            "seed": result.seed,
            "rows": len(result.data.x),
            "epochs": len(result.history),
            **asdict(result.numbers),
        }
        for result in results
    ]
    write_json(out / f"numbers{suffix}.json", numbers)
    (out / f"report{suffix}.txt").write_text(
        summarise(results) + "\n", encoding="utf-8"
    )
    return results


def select(
    problem: int | None, x_range: float | None, setting: str | None
) -> list[tuple[int, float, str]]:
    """Return problem, range and setting of the experiments that fit a selection.

    Parameters
    ----------
    problem, x_range : int, float or None
        None selects all.
    setting : str or None
        A key of `TRAINING_SETTINGS`, or "all"; None selects `DEFAULT_SETTINGS`.

    Returns
    -------
    list of tuple
        In the order of `CASES`.

    Raises
    ------
    ValueError
        If no experiment fits the selection.
    """
    settings: Sequence[str] = DEFAULT_SETTINGS
    if setting == "all":
        settings = list(TRAINING_SETTINGS)
    elif setting is not None:
        settings = [setting]
    experiments = [
        (*case, name)
        for case in CASES
        for name in TRAINING_SETTINGS
        if case[1] in TRAINING_SETTINGS[name].ranges
    ]
    selected = [
        (number, width, name)
        for number, width, name in experiments
        if problem in (None, number) and x_range in (None, width) and name in settings
    ]
    if not selected:
        selection = (problem, x_range, setting)
        raise ValueError(
            "problem, range and setting must be those of an experiment; "
            f"got {selection}; there are {experiments}"
        )
    return selected


def band(path: Path) -> str:
    """Train as in the example of plain.py, draw its band, and return a table of its width."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (100, 1))
    y = x**2 + 0.3 * rng.standard_normal((100, 1))
    net = (1, 20, 1)
    line = np.linspace(-6, 6, 121)[:, None]
    theta = plain.fit(net, plain.init(net, rng), x, y, 1.0, 0.3, 2e-3, 300, 10, 1, rng)
    mean, epistemic, _ = plain.predict(net, theta, line, 0.3, 1000, rng)
    predictive = Predictive(mean, epistemic, np.full_like(mean, 0.3))
    figure, axes = panels(7.2, 4.2)
    ax = fits.fit(line, predictive, data=(x, y), truth=np.square, ax=axes)
    ax.set(xlabel="load x (kg)", ylabel="stretch beyond proportion, y (mm)")
    figure.savefig(path, dpi=100)
    text = (
        "A first fit, that of plain.py: what a spring stretches beyond proportion (mm) under a\n"
        "load x (kg), y = x^2 + N(0, 0.3^2), from 100 loads between -2 and 2 kg. Beyond 2 kg no\n"
        "data say how the curve goes on: the posterior's standard deviation grows, the mean errs."
    )
    rows = {
        "x": line,
        "truth": line**2,
        "mean": mean,
        "epistemic standard deviation": epistemic,
    }
    for name, column in rows.items():
        values = column[[60, 70, 80, 90, 100, 120], 0]  # x = 0, 1, 2, 3, 4, 6
        text += f"\n{name:28} " + " ".join(f"{value:6.2f}" for value in values)
    return f"{text}\npicture: {path}"


def _figure(result: Result) -> Figure:
    """Draw the report's two panels, and as a third the fit less the truth within the data.

    On the scale of the second its bands are thinner than the lines.
    """
    figure, (loss_ax, fit_ax, residual_ax) = panels(
        13.0, 4.1, 1, 3, width_ratios=(1.1, 1.2, 1.2)
    )
    case = result.case
    x = result.x[:, 0]
    _draw_losses(loss_ax, result.history, len(result.data.x))
    data_and_truth: dict[str, Any] = {
        "data": result.data[:2],
        "truth": result.data.truth,
    }
    fits.fit(x, result.predictive, y_limits=case.y_limits, ax=fit_ax, **data_and_truth)
    low = float(result.data.x.min())
    high = float(result.data.x.max())
    # One more point on either side, so that lines reach the edges of the panel
    step = np.diff(x).max()
    inside = (x > low - step) & (x < high + step)
    within = Predictive._make(moment[inside, 0] for moment in result.predictive)
    fits.fit(x[inside], within, less_truth=True, ax=residual_ax, **data_and_truth)
    residual_ax.legend().remove()  # that of (b) serves both
    loss_ax.set(xlabel="epoch\n(a) loss against epochs")
    fit_ax.set(xlabel="x (dimensionless)\n(b) fit", ylabel="y (dimensionless)")
    label = "x (dimensionless)\n(c) fit less truth, within the data"
    residual_ax.set(xlim=(low, high), xlabel=label, ylabel="y − truth (dimensionless)")
    title = f"problem {case.problem}, x in {case.interval}, {result.setting.title}"
    figure.suptitle(title, fontsize="medium")
    return figure


def _draw_losses(ax: Axes, history: Sequence[Epoch], rows: int) -> None:
    """Draw the free energy against epochs, with its complexity and likelihood parts.

    Logarithmic in y, too, if all numbers are positive and far apart.
    """
    columns = np.array([(epoch.objective, epoch.kl, epoch.nll) for epoch in history])
    columns /= rows  # (epochs, 3)
    line_styles = (
        ("free energy", BLACK, "-", 1.6),
        ("KL(q, prior)", BLUE, "--", 1.4),
        ("−log likelihood", VERMILLION, ":", 1.8),
    )
    epochs = np.arange(1, len(history) + 1)
    for values, (label, colour, style, width) in zip(
        columns.T, line_styles, strict=True
    ):
        ax.plot(epochs, values, style, color=colour, linewidth=width, label=label)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if 0 < 5 * columns.min() < columns.max():
        ax.set_yscale("log")
        # Two powers of ten are too few to read values from.
        has_few_decades = columns.max() < 100 * columns.min()
        minor = "25" if has_few_decades else ""
        plain_numbers(ax.yaxis, minor=minor)
        ax.tick_params(axis="y", which="minor", labelsize=ax.yaxis.label.get_fontsize())
    finish(ax, "epoch", "nats per training example", 2)


def _figure_beside(result: Result) -> Figure:
    """Draw the two panels of the report's figure, to be compared with it."""
    figure, (loss_ax, fit_ax) = panels(11.0, 4.4, 1, 2)
    loss_ax.plot(
        np.arange(len(result.history)), _losses(result), color=BLACK, label="Loss"
    )
    level = REPORTED_LOSSES[result.case.x_range]
    loss_ax.axhline(
        level, ls="--", color=GREY, label=f"where the report's ends: {level:g}"
    )
    loss_ax.set(xlabel="Epochs\n(a) Loss vs. Epochs", ylabel="Loss (nats per row)")
    x = result.x[:, 0]
    mean = result.predictive.mean[:, 0]
    half_width = BAND_HALF_WIDTH_SD * result.predictive.epistemic[:, 0]
    low = mean - half_width
    high = mean + half_width
    label = "+/- 3*Std. Dev. (Scaled by 50)"
    fit_ax.fill_between(x, low, high, color=VERMILLION, alpha=0.3, lw=0, label=label)
    fit_ax.plot(*result.data[:2], "x", color=BLACK, ms=3, mew=0.6, label="Data samples")
    fit_ax.plot(x, result.data.truth(x), "--", color=BLUE, label="y_truth")
    fit_ax.plot(x, mean, color=VERMILLION, label="Mean of Regression Fit")
    fit_ax.set(
        xlabel="x (dimensionless)\n(b) Regression fit over samples",
        ylabel="y (dimensionless)",
    )
    for ax in (loss_ax, fit_ax):
        legend_above(ax, 2)
    number = 1 + list(REPORTED_LOSSES).index(result.case.x_range)
    figure.suptitle(f"beside the report's Figure {number}: x in {result.case.interval}")
    return figure


def _losses(result: Result) -> list[float]:
    """Return the loss of every epoch as the report counts it: without log(2 pi) / 2 (K16)."""
    return [
        e.objective / len(result.data.x) - 0.5 * log(2 * pi) for e in result.history
    ]


def _beside(results_of_setting: Sequence[Result]) -> list[str]:
    """Compare the final losses with the report's, and count the data inside the bands."""
    lines = []
    for r in results_of_setting:
        reported_loss = REPORTED_LOSSES[r.case.x_range]
        final_loss = _losses(r)[-1]
        # The mean of epsilon^2 / 2 over the rows has the variance 81^2 / (2 rows), in the report's
        # data and in ours.
        scatter = r.case.noise**4 / sqrt(len(r.data.x))
        mean = np.interp(r.data.x, r.x[:, 0], r.predictive.mean[:, 0])
        sd = np.interp(r.data.x, r.x[:, 0], r.predictive.epistemic[:, 0])
        shares_inside = [
            np.mean(np.abs(r.data.y - mean) <= width * sd)
            for width in (BAND_HALF_WIDTH_SD, 3)
        ]
        lines.append(
            f"{_title(r)}: the loss ends at {final_loss:.1f}, the report's at "
            f"{reported_loss:g}; two draws of the data differ by {scatter:.1f}\n"
            f"    (standard deviation). The band holds {shares_inside[0]:.0%} of the data, "
            f"without the 50 {shares_inside[1]:.0%}."
        )
    return lines


def _draw_deviations(results: Sequence[Result], path: Path) -> None:
    """Draw problem 2's epistemic standard deviations of all ranges, a panel per setting."""
    cubic = [r for r in results if r.case.problem == 2]
    titles = list(_cubic(results) or dict.fromkeys(r.setting.title for r in cubic))
    figure, grid = panels(
        4.8 * len(titles), 4.2, 1, len(titles), sharey=True, squeeze=False
    )
    for ax, letter, title in zip(grid[0], "abc", titles, strict=False):
        results_by_setting = {
            f"data in {r.case.interval}": r for r in cubic if r.setting.title == title
        }
        deviations(
            ax,
            next(iter(results_by_setting.values())).x,
            {name: r.predictive.epistemic for name, r in results_by_setting.items()},
            {name: r.case.data for name, r in results_by_setting.items()},
        )
        ax.set_xlabel(f"x (dimensionless)\n({letter}) {title}")
        if letter != "a":
            ax.set_ylabel("")
    figure.savefig(path, dpi=100)


def opening(results: Sequence[Result]) -> str:
    """Return the introduction: the problems, the ways of training, and a table of their results."""
    settings = _by_setting(results)
    lines = [
        "Bayes by Backprop on the problems of Kebude's report (2018): a network 1-100-1 is fitted",
        "to noisy points of a curve, once for each range of x, and in each of these ways:",
        "",
    ]
    lines += [
        f"  {title:16} {results_of_setting[0].setting.what}"
        for title, results_of_setting in settings.items()
    ]
    sigma_pairs = [
        (n.sigma_law, n.sigma_end) for n in (r.numbers for r in results) if n.sigma_law
    ]
    unchanged = sum(abs(last_sd / law - 1) < 0.05 for law, last_sd in sigma_pairs)
    claims = {
        title: f"{sum('NOT HOLD' not in claim for claim in _claims(results_of_setting))} of 4"
        for title, results_of_setting in _cubic(results).items()
    }
    columns = {
        "fresh y in 95%": lambda n: f"{n.coverage:.1%}",
        "sd beyond / inside": lambda n: f"{n.ratio:.1f}",
        "error beyond, in sd": lambda n: f"{n.misses:.1f}",
        "sd of a weight": lambda n: f"{n.sigma_end:.2g}",
    }
    rows = [
        [
            title,
            *(_range(results_of_setting, column) for column in columns.values()),
            claims.get(title, "-"),
        ]
        for title, results_of_setting in settings.items()
    ]
    caption = (
        "\nA row is a way of training: the smallest and the largest number of its ranges. Share\n"
        "of fresh y inside the data that the 95% interval holds; standard deviation (sd) of the\n"
        "posterior of the curve at the ends of the panel, beyond the data, over that inside;\n"
        "error of the mean there, in sd of the prediction; median sd of a weight after training;\n"
        "claims of the report's Section 8 that hold."
    )
    lines += [caption, table(["trained", *columns, "claims"], rows, n_left_aligned=1)]
    sigma_start = results[0].numbers.sigma_start
    lines.append(
        f"\nThe sd of a weight starts at {sigma_start:.2g}. In {unchanged} of {len(results)} runs "
        "it ends where learning rate and epochs\nalone take it, sigma_0 exp(rate * epochs): the "
        "data have not entered it."
    )
    return "\n".join(lines)


def _range(results: Sequence[Result], column: Callable[[Numbers], str]) -> str:
    """Return the smallest and the largest number of several results, as `column` prints them."""
    printed = sorted(
        (column(r.numbers) for r in results), key=lambda text: float(text.strip("%"))
    )
    return " to ".join(dict.fromkeys((printed[0], printed[-1])))


def _by_setting(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Return the results of each setting by its title, in the order of `TRAINING_SETTINGS`."""
    by_title = {
        setting.title: [r for r in results if r.setting == setting]
        for setting in TRAINING_SETTINGS.values()
    }
    return {
        title: results_of_setting
        for title, results_of_setting in by_title.items()
        if results_of_setting
    }


def _cubic(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Return problem 2's results by setting, widest range first, if there are all three ranges."""
    cubic = sorted(
        (r for r in results if r.case.problem == 2), key=lambda r: -r.case.x_range
    )
    return {
        title: results_of_setting
        for title, results_of_setting in _by_setting(cubic).items()
        if len(results_of_setting) == 3
    }


def summarise(results: Sequence[Result]) -> str:
    """Return the text of the report: an introduction, two tables, the claims of Section 8.

    Claims that compare the three ranges need all three of one setting. At most 100 columns.
    """
    cubic = _cubic(results)
    sections = [opening(results), _settings_text(results)]
    sections += [
        _table(title, results, columns) for title, columns in (INSIDE, OUTSIDE)
    ]
    for title, results_of_setting in _by_setting(results).items():
        lines = []
        if title in cubic:
            lines += _claims(cubic[title])
        if results_of_setting[0].setting.as_drawn:
            lines += [f"  {line}" for line in _beside(results_of_setting)]
        if lines:
            sections.append("\n".join([f"{title.capitalize()}:", *lines]))
    return "\n\n".join(sections)


def _settings_text(results: Sequence[Result]) -> str:
    lines = [
        "Network 1-100-1, ReLU; mean-field posterior started as in the report's Section 7."
    ]
    for title, results_of_setting in _by_setting(results).items():
        setting = results_of_setting[0].setting
        likelihood = setting.likelihood
        noise = "learned" if likelihood.learn else f"fixed at {likelihood.scale:g}"
        units = "standardised" if setting.standardise else "as they are"
        prior_scales = {
            f"{r.numbers.prior_scale:.3g}": None for r in results_of_setting
        }
        prior_text = ", ".join(prior_scales)
        if not setting.prior_scale:
            origin = "y" if setting.literal else "the noise"
            prior_text += f" (that of {origin})"
        lines.append(
            f"{title}: {type(setting.optimizer).__name__}, learning rate "
            f"{setting.optimizer.learning_rate:g}, {len(results_of_setting[0].history)} epochs, "
            f"{setting.batch_size} row(s) and {setting.samples} weight sample(s) per step,\n"
            f"  noise sd {noise}, x and y {units}, prior sd {prior_text}."
        )
        if setting.as_drawn:
            lines.append(
                "  The noise of the data has standard deviation 9, not 3, that of the first mu is "
                "0.01, and\n  'epistemic' is that of the last layer alone, with the sigma of its "
                "bias unsquared."
            )
    worst = max(r.numbers.gradient_error for r in results)
    lines.append(
        f"Largest relative error of the gradient, all coordinates of all {len(results)} "
        f"trained models: {worst:.1e}"
    )
    return "\n".join(lines)


def _table(title: str, results: Sequence[Result], columns: Mapping[str, str]) -> str:
    """Lay out a row for each result; a column is a format of its `Numbers`."""
    rows = [
        [
            _title(r),
            r.setting.title,
            *(form.format(r.numbers) for form in columns.values()),
        ]
        for r in results
    ]
    return f"{title}\n{table(['problem', 'setting', *columns], rows, n_left_aligned=2)}"


INSIDE = (
    "Inside the data range: error to the true curve and its standard deviation (sd), sd of the\n"
    "noise learned or fixed, share of fresh y in the 95% interval, share of the truth in mean\n"
    "+- 2 epistemic sd, free energy",
    {
        "RMSE": "{0.rmse:.3g}",
        "sd(truth)": "{0.truth_sd:.3g}",
        "noise": "{0.noise_learned:.3g}",
        "true": "{0.noise_true:.3g}",
        "in 95%": "{0.coverage:.1%}",
        "in 2 sd": "{0.truth_in_epistemic:.0%}",
        "nats/row": "{0.free_energy:.3f}",
    },
)
OUTSIDE = (
    "Epistemic sd inside the data and at the ends of the panel (x = -6, 6; as drawn\n"
    "-7.5, 7.5; problem 1 -0.5, 1); error of the mean at the ends in total sd; bend\n"
    "of the mean outside the data, and over the panel (0 straight, 1 as the truth); where,\n"
    "outside the data, the truth leaves mean +- 2 total sd (the panel's end if never)",
    {
        "inside": "{0.epistemic_inside:.2g}",
        "at ends": "{0.epistemic_left:.2g}, {0.epistemic_right:.2g}",
        "ratio": "{0.ratio:.1f}",
        "error": "{0.misses:.1f} sd",
        "bend": "{0.bend_outside:.3f}, {0.bend_panel:.3f}",
        "truth leaves": "{0.truth_left:.2f}, {0.truth_right:.2f}",
    },
)


def _title(result: Result) -> str:
    return f"{result.case.problem} {result.case.interval}"


def _holds(claim: bool) -> str:
    return "holds" if claim else "DOES NOT HOLD"


def _claims(cubic: Sequence[Result]) -> list[str]:
    """Judge the claims of Section 8 on three results of one setting, widest range first."""
    all_three = [r.numbers for r in cubic]
    wide, middle, narrow = all_three
    last_x = f"+-{cubic[0].x[-1, 0]:g}"
    ends = [0.5 * (n.epistemic_left + n.epistemic_right) for n in all_three]
    rise = [
        sd_at_end - n.epistemic_inside
        for sd_at_end, n in zip(ends, all_three, strict=True)
    ]
    return [
        f"  'wider where there is no data': at x = {last_x} the epistemic sd is "
        + ", ".join(f"{n.ratio:.1f}" for n in all_three)
        + f"\n    times that inside: {_holds(min(n.ratio for n in all_three) > 1)}.",
        f"  'a smaller increase beyond [-2.5, 2.5]' than beyond [-4, 4]: {rise[1]:.2g} against "
        f"{rise[0]:.2g}: {_holds(rise[1] < rise[0])}.",
        f"  'the belief in its correctness increases' on [-1, 1]: sd at {last_x} {ends[2]:.2g} "
        f"against {ends[1]:.2g}\n    and {ends[0]:.2g}: {_holds(ends[2] < min(ends[:2]))}. "
        f"The mean is wrong there by {narrow.misses:.0f}, {middle.misses:.0f} and "
        f"{wide.misses:.0f} total sd.",
        f"  'the linearity of the fit increases' on [-1, 1]: bend over the panel "
        f"{narrow.bend_panel:.3f} against\n    {middle.bend_panel:.3f} and {wide.bend_panel:.3f}: "
        f"{_holds(narrow.bend_panel < min(middle.bend_panel, wide.bend_panel))}. Outside the data "
        f"all are straight (largest bend {max(n.bend_outside for n in all_three):.3f}).",
    ]
