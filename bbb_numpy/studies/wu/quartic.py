"""Wu's first system, -x^4 + 3x^2 + 1, by MLE, MAP and VI (W1, W2).

The slides show a fit and no settings. Ours are in `Setup` and in the text that `reproduce`
returns. How the methods train and are judged is `studies.comparing`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from bbb_numpy.data import Toy
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.plots import fits as plots
from bbb_numpy.studies.comparing import METHODS, Fitted, Setup, average, judge, table, train

__all__ = ["quartic", "quartic_curve", "reproduce", "run"]

Array = NDArray[Any]

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
