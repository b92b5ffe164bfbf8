"""Whether chains have converged, in function space and in weight space.

ArviZ is optional: extra `diagnostics`.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import astuple, dataclass
from importlib import import_module
from itertools import groupby
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..model.joint import Model
from ..model.log_joint import LogJoint
from ..numeric.layout import Array
from ..numeric.validation import Numbers, flag
from ..sampling.draws import DrawnWeights, Draws
from .predictive import BLOCK_NUMBERS

__all__ = ["Convergence", "Line", "convergence", "function_r_hats"]

# the variable that names the user's folder for what may be lost
CACHE = "XDG_CACHE_HOME"
GOOD = 1.01  # R-hat below which Vehtari et al. (2021) call chains mixed
# effective draws per chain without which R-hat itself is unreliable (the same)
ENOUGH = 100


def import_arviz() -> Any:
    """Import ArviZ; its announcement of another version, once a day, is no warning of ours."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            arviz = _imported_arviz()
    except ImportError as error:
        raise ImportError(
            "R-hat, effective sample sizes and to_arviz need ArviZ: "
            "pip install 'bbb-numpy[diagnostics]'"
        ) from error
    if sys.flags.optimize > 1:  # it adds to docstrings of functions that it calls
        raise ImportError("ArviZ needs docstrings: run Python without -OO")
    return arviz


def _imported_arviz() -> Any:
    """Import ArviZ, also where the user has no folder for the day of that announcement."""
    try:
        return import_module("arviz")
    except OSError:
        with TemporaryDirectory() as folder:
            usual = os.environ.get(CACHE)
            os.environ[CACHE] = folder
            try:
                return import_module("arviz")
            finally:
                del os.environ[CACHE]
                if usual is not None:
                    os.environ[CACHE] = usual


def draws_of(draws: Any) -> Draws:
    """Return draws, given themselves or a learner that was fitted by sampling."""
    found = getattr(draws, "draws_", draws)
    if not isinstance(found, Draws):
        raise TypeError(
            "draws must be those of `sample` or `sample_target`, or a learner with draws_; got "
            f"{type(draws).__name__}"
        )
    if not len(found.positions):
        raise ValueError(
            "draws is empty: sampling was interrupted before the first draw"
        )
    return found


def model_of(draws: Draws) -> Model | None:
    """Return the model that the target knows, with its data or, when loaded, without."""
    model = getattr(draws.target, "model", None)
    if isinstance(model, Model) and DrawnWeights(model).layout == draws.layout:
        return model
    return None


def of_positions(
    joint: LogJoint, positions: Array, found: Callable[[dict[str, Array], Array], Array]
) -> Array:
    """Return what `found(params, outputs)` says of positions (S, D), in bounded memory."""
    step = max(
        1, BLOCK_NUMBERS // (max(1, len(joint.x)) * max(joint.model.network.sizes))
    )
    out = []
    for some in np.split(positions, range(step, len(positions), step)):
        f = joint.model.predict(np.ascontiguousarray(joint.weights(some)), joint.x)
        out.append(found(joint.params(some), f))
    return np.concatenate(out)


def _functions(model: Model, draws: Draws, x: Any) -> Array:
    """Return E[y|x, w] (T, S, N * K) of all draws at rows `x` (N, d_in)."""
    data = draws.target.x if isinstance(draws.target, LogJoint) else draws.positions
    limits = Numbers((None, model.network.sizes[0]), low=-1e100, high=1e100)
    x = np.ascontiguousarray(limits("x", x), data.dtype)
    joint = LogJoint(model, x, np.zeros((len(x), model.outputs), x.dtype))
    found = of_positions(joint, draws.flat, model.likelihood.mean)
    return found.reshape(*draws.positions.shape[:2], -1)


@dataclass(frozen=True)
class Line:
    """The worst of several numbers that belong together."""

    space: str  # "functions", "weights"; of a target without a model "numbers"
    name: str
    count: int  # of numbers; those that never change are left out
    r_hat: float  # the largest; inf for chains that each stand still
    bulk: float  # the smallest effective sample size for means
    tail: float  # and for 5 % and 95 % quantiles


@dataclass(frozen=True)
class Convergence:
    """R-hat and effective sample sizes in function space and in weight space."""

    draws: int
    chains: int
    lines: tuple[Line, ...]
    # whether E[y|x] was left out: the draws came without x, none was given
    unseen: bool = False
    divergent: int = 0  # draws after a divergence

    def worst(self, space: str) -> Line:
        """Return the largest R-hat and smallest sizes of ``'functions'`` or ``'weights'``."""
        of = [line for line in self.lines if line.space == space]
        if not of:
            raise ValueError(f"there is nothing in {space!r}")
        _, _, counts, r_hats, bulks, tails = zip(*map(astuple, of), strict=True)
        return Line(space, "all", sum(counts), max(r_hats), min(bulks), min(tails))

    @property
    def mixed(self) -> bool:
        """Whether, weights apart, R-hat < 1.01 and there are 100 effective draws per chain.

        Of what was judged: where `unseen`, of the log density and the learned numbers alone.
        """
        return all(
            line.r_hat < GOOD and min(line.bulk, line.tail) >= ENOUGH * self.chains
            for line in self.lines
            if line.space != "weights"
        )

    def __str__(self) -> str:
        width = max(len(line.name) for line in self.lines) + 2
        out = [
            f"{self.chains} chains of {self.draws} draws; of each line the worst",
            f"{'':{width}} numbers   R-hat  bulk ESS  tail ESS",
        ]
        for space, lines in groupby(self.lines, lambda line: line.space):
            out += [space] + [
                f"  {line.name:{width}}{line.count:6} {line.r_hat:7.3f} {line.bulk:9.0f} "
                f"{line.tail:9.0f}"
                for line in lines
            ]
        named = {(line.space, line.name) for line in self.lines}
        wanted = f"Wanted are R-hat < {GOOD:g} and {ENOUGH} effective draws per chain: draw more."
        seen = f"No lack of convergence is seen{' in these' if self.unseen else ''}."
        out.append(seen if self.mixed else wanted)
        if self.divergent:
            out.append(
                f"{self.divergent} of {self.draws * self.chains} draws followed {DIVERGED}"
            )
        out += [UNSEEN] if self.unseen else []
        return "\n".join([*out, PERMUTED] if ("weights", "W1") in named else out)


DIVERGED = """a divergence: there may be a narrow place from which the chains
turn away, all of them alike, so that R-hat does not see it. Raise target_accept, or use
another prior or parametrisation."""
UNSEEN = """The functions E[y|x] are not judged, since stored draws come without the data of fit:
give x, rows in the chains' units; for a learner (X - x_mean_) / x_scale_."""
PERMUTED = """Weights are identified only up to the order of hidden units, and with tanh up to their
signs: chains in different copies of one mode have a large R-hat of weights and the same functions.\
"""


def _r_hats(az: Any, values: Array) -> Array:
    """Return R-hat (M,) of numbers (T, S, M); inf where each chain stands still."""
    with np.errstate(all="ignore"):  # a chain that stands still has no variance
        r_hat = az.rhat(az.convert_to_dataset({"v": values.swapaxes(0, 1)}))["v"].values
    return np.where(np.isnan(r_hat), np.inf, r_hat)


def _line(az: Any, space: str, name: str, values: Array) -> Line | None:
    """Judge numbers (T, S, ...); None if none of them ever changes."""
    values = values[..., np.ptp(values, axis=(0, 1)) > 0]  # one axis for all that do
    if not values.shape[-1]:
        return None
    data, r_hat = (
        az.convert_to_dataset({"v": values.swapaxes(0, 1)}),
        _r_hats(az, values),
    )
    bulk, tail = (
        np.nan_to_num(az.ess(data, method=m)["v"].values) for m in ("bulk", "tail")
    )
    worst = float(r_hat.max()), float(bulk.min()), float(tail.min())
    return Line(space, name, values.shape[-1], *worst)


def _judged(draws: Any) -> Draws:
    """Return draws of which R-hat can be computed."""
    found = draws_of(draws)
    count, chains, _ = found.positions.shape
    if chains < 2 or count < 4:
        raise ValueError(
            f"R-hat needs two chains of four draws at least; got {chains} of {count}"
        )
    return found


def function_r_hats(draws: Any, x: Any) -> Array:
    """Return R-hat (N * K,) of E[y|x, w] at each of the rows `x` (N, d_in).

    Arguments and errors are those of `convergence`, which tells the largest.
    """
    az, found = import_arviz(), _judged(draws)
    return _r_hats(az, _functions(known_model(found), found, x))


def known_model(draws: Draws) -> Model:
    """Return what `model_of` does, where rows `x` cannot do without it."""
    model = model_of(draws)
    if model is None:
        raise ValueError(
            "x needs draws of a target that knows its model, such as a LogJoint"
        )
    return model


def convergence(draws: Any, x: Any = None, *, weights: bool = True) -> Convergence:
    """Judge chains by their functions, and for comparison by their weights.

    Predictions, noise and log density are what the draws are for, and they are the same in every
    copy of a mode that the order of the hidden units makes.

    Parameters
    ----------
    draws : Draws, or a learner with ``draws_``
        Two chains at least, of four draws.
    x : array-like (N, d_in), optional
        Rows at which the functions E[y|x, w] are looked at, in the chains' units; by default 50
        of the data's. Draws that were loaded have no data: without `x` their functions are not
        judged, which the table says.
    weights : bool
        Judge the blocks of weights, too, which `Convergence.mixed` takes no notice of. For many
        weights this takes the longest.

    Returns
    -------
    Convergence
        Printed, a small table. R-hat is split, of ranks and folded ranks, the sizes are bulk and
        tail (Vehtari et al. 2021). Divergences are told beneath it; what chains of MAMS and MCLMC
        miss, they do not tell.
    """
    flag("weights", weights)
    az, found = import_arviz(), _judged(draws)
    count, chains, _ = found.positions.shape
    lines = [_line(az, "functions", "log density", found.log_density)]
    model = model_of(found) if x is None else known_model(found)
    blocks = found.layout.views(found.positions)
    if x is None and isinstance(found.target, LogJoint):
        rows = found.target.x
        x = rows[np.linspace(0, len(rows) - 1, min(50, len(rows))).astype(int)]
    if model is not None:
        if x is not None:
            f = _functions(model, found, x)
            lines.insert(0, _line(az, "functions", f"E[y|x] at {len(x)} rows", f))
        learned = [name for name, _ in model.learned()]
        lines += [_line(az, "functions", name, blocks.pop(name)) for name in learned]
    if weights:
        space = "numbers" if model is None else "weights"
        lines += [_line(az, space, name, block) for name, block in blocks.items()]
    changing = tuple(line for line in lines if line is not None)
    if not changing:
        raise ValueError("no number ever changes: every proposal was rejected")
    unseen = model is not None and x is None
    return Convergence(count, chains, changing, unseen, found.divergences)
