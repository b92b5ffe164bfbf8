"""Whether chains have converged, in function space and in weight space.

ArviZ is optional: extra `diagnostics`.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..model.joint import Model
from ..model.log_joint import LogJoint
from ..numeric.deprecation import accept_old_attributes
from ..numeric.layout import Array
from ..numeric.validation import Numbers, flag
from ..sampling.draws import DrawnWeights, Draws
from .predictive import BLOCK_NUMBERS

__all__ = ["Convergence", "Line", "convergence", "function_r_hats"]

# environment variable that names the user's cache folder, which ArviZ writes to
CACHE_VARIABLE = "XDG_CACHE_HOME"
MIXED_R_HAT = 1.01  # chains with a smaller R-hat count as mixed (Vehtari et al. 2021)
# number of effective draws per chain below which R-hat is unreliable (Vehtari et al. 2021)
MIN_ESS_PER_CHAIN = 100
N_ROWS = 50  # default number of rows at which R-hat of functions is computed


def import_arviz() -> Any:
    """Import and return ArviZ, without its FutureWarning; raise ImportError if it is missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            arviz = _imported_arviz()
    except ImportError as error:
        raise ImportError(
            "R-hat, effective sample sizes and to_arviz need ArviZ: "
            "pip install 'bbb-numpy[diagnostics]'"
        ) from error
    # ArviZ extends docstrings of functions when it is called, and fails if there are none
    if sys.flags.optimize > 1:
        raise ImportError("ArviZ needs docstrings: run Python without -OO")
    return arviz


def _imported_arviz() -> Any:
    """Import and return ArviZ, with a temporary cache folder if the user's cannot be written."""
    try:
        return import_module("arviz")
    except OSError:
        with TemporaryDirectory() as folder:
            users_folder = os.environ.get(CACHE_VARIABLE)
            os.environ[CACHE_VARIABLE] = folder
            try:
                return import_module("arviz")
            finally:
                del os.environ[CACHE_VARIABLE]
                if users_folder is not None:
                    os.environ[CACHE_VARIABLE] = users_folder


def draws_of(draws: Any) -> Draws:
    """Return the `Draws` given as `draws`, or those of a learner that was fitted by sampling.

    Raise TypeError for another object, ValueError if there is no draw.
    """
    chains = getattr(draws, "draws_", draws)
    if not isinstance(chains, Draws):
        raise TypeError(
            "draws must be the result of sample or sample_target, or a learner with draws_; got "
            f"{type(draws).__name__}"
        )
    if not len(chains.positions):
        raise ValueError(
            "draws is empty: sampling was interrupted before the first draw; sample again"
        )
    return chains


def model_of(draws: Draws) -> Model | None:
    """Return the model whose posterior was sampled; None if the target density has no model."""
    model = getattr(draws.target, "model", None)
    if isinstance(model, Model) and DrawnWeights(model).layout == draws.layout:
        return model
    return None


def evaluate_draws(
    joint: LogJoint,
    positions: Array,
    function: Callable[[dict[str, Array], Array], Array],
) -> Array:
    """Evaluate a function of the network's outputs at every draw, in blocks of bounded memory.

    Parameters
    ----------
    joint : LogJoint
        Model with the N rows at which the network is evaluated.
    positions : ndarray (S, D)
        S draws of weights and learned numbers.
    function : callable
        ``function(params, f)`` returns an array (S_b, ...) for a block of S_b draws, given the
        learned numbers by name and the outputs f (S_b, N, K).

    Returns
    -------
    ndarray (S, ...)
    """
    numbers_per_draw = max(1, len(joint.x)) * max(joint.model.network.sizes)
    step = max(1, BLOCK_NUMBERS // numbers_per_draw)
    values = []
    for block in np.split(positions, range(step, len(positions), step)):
        w = np.ascontiguousarray(joint.weights(block))
        f = joint.model.predict(w, joint.x)
        values.append(function(joint.params(block), f))
    return np.concatenate(values)


def _functions(model: Model, draws: Draws, x: Any) -> Array:
    """Return E[y|x, w] at rows `x` (N, d_in) for T draws of S chains: (T, S, N * K)."""
    dtype = draws.positions.dtype
    if isinstance(draws.target, LogJoint):
        dtype = draws.target.x.dtype
    limits = Numbers((None, model.network.n_columns), low=-1e100, high=1e100)
    x = np.ascontiguousarray(limits("x", x), dtype)
    joint = LogJoint(model, x, np.zeros((len(x), model.outputs), x.dtype))
    functions = evaluate_draws(joint, draws.flat, model.likelihood.mean)
    return functions.reshape(*draws.positions.shape[:2], -1)


@dataclass(frozen=True)
class Line:
    """Worst R-hat and effective sample sizes of a block of numbers, such as one layer's weights."""

    space: str  # "functions" or "weights"; "numbers" for a target without a model
    name: str  # name of the block, such as "W0" or "log density"
    n_numbers: int  # number of coordinates; those that never change are left out
    r_hat: float  # largest R-hat; inf if no chain ever moves
    ess_bulk: float  # smallest effective sample size for means
    ess_tail: float  # smallest effective sample size for the 5 % and 95 % quantiles


accept_old_attributes(
    Line, {"count": "n_numbers", "bulk": "ess_bulk", "tail": "ess_tail"}
)


@dataclass(frozen=True)
class Convergence:
    """R-hat and effective sample sizes in function space and in weight space."""

    n_draws: int  # number of draws of each chain
    n_chains: int  # number of chains
    lines: tuple[Line, ...]  # results of each block of numbers
    # whether R-hat of functions E[y|x, w] is missing, for want of rows x
    without_functions: bool = False
    n_divergent: int = 0  # number of draws of all chains after a divergent path

    def worst(self, space: str) -> Line:
        """Return a `Line` with the largest R-hat and smallest effective sample sizes in `space`.

        `space` is 'functions', 'weights' or, for a target without a model, 'numbers'. Raise
        ValueError if `lines` holds nothing of this space.
        """
        lines = [line for line in self.lines if line.space == space]
        if not lines:
            spaces = sorted({line.space for line in self.lines})
            raise ValueError(f"space must be one of {spaces}; got {space!r}")
        return Line(
            space,
            "all",
            sum(line.n_numbers for line in lines),
            max(line.r_hat for line in lines),
            min(line.ess_bulk for line in lines),
            min(line.ess_tail for line in lines),
        )

    @property
    def mixed(self) -> bool:
        """Whether R-hat < 1.01, and effective sample sizes are at least 100 per chain.

        Weights are not judged, since permuted hidden units have other weights and equal functions.
        If `without_functions`, only the log density and the learned numbers are judged.
        """
        least = MIN_ESS_PER_CHAIN * self.n_chains
        return all(
            line.r_hat < MIXED_R_HAT and min(line.ess_bulk, line.ess_tail) >= least
            for line in self.lines
            if line.space != "weights"
        )

    def __str__(self) -> str:
        """Return a table of R-hat and effective sample sizes by block, and whether they suffice."""
        width = max(len(line.name) for line in self.lines) + 2
        out = [
            f"{self.n_chains} chains of {self.n_draws} draws; of each line the worst",
            f"{'':{width}} numbers   R-hat  bulk ESS  tail ESS",
        ]
        for space, lines in groupby(self.lines, lambda line: line.space):
            out += [space] + [
                f"  {line.name:{width}}{line.n_numbers:6} {line.r_hat:7.3f} "
                f"{line.ess_bulk:9.0f} {line.ess_tail:9.0f}"
                for line in lines
            ]
        if not self.mixed:
            out.append(
                f"Wanted are R-hat < {MIXED_R_HAT:g} and {MIN_ESS_PER_CHAIN} effective draws per "
                "chain: draw more."
            )
        elif self.without_functions:
            out.append("No lack of convergence is seen in these.")
        else:
            out.append("No lack of convergence is seen.")
        if self.n_divergent:
            n_draws = self.n_draws * self.n_chains
            out.append(f"{self.n_divergent} of {n_draws} draws followed {DIVERGED}")
        if self.without_functions:
            out.append(WITHOUT_FUNCTIONS)
        if ("weights", "W1") in {(line.space, line.name) for line in self.lines}:
            out.append(PERMUTED)
        return "\n".join(out)


accept_old_attributes(
    Convergence,
    {
        "draws": "n_draws",
        "chains": "n_chains",
        "unseen": "without_functions",
        "divergent": "n_divergent",
    },
)


DIVERGED = """a divergence: there may be a narrow region of the posterior that no
chain enters, which R-hat cannot detect. Raise target_accept, or use another prior or
parametrisation."""
WITHOUT_FUNCTIONS = """\
The functions E[y|x] are not judged, since draws loaded from a file hold no data:
give x, standardised like the data of fit; for a learner (X - x_mean_) / x_scale_."""
PERMUTED = """Weights are identified only up to the order of hidden units, and with tanh up to their
signs: chains in different copies of one mode have a large R-hat of weights and the same functions.\
"""


def _r_hats(az: Any, values: Array) -> Array:
    """Return R-hat (M,) of M numbers from T draws of S chains, `values` (T, S, M).

    It is inf where no chain ever moves. `az` is the module arviz.
    """
    # If no chain ever moves, R-hat is a division by a variance of 0, of which NumPy would warn
    with np.errstate(all="ignore"):
        r_hat = az.rhat(az.convert_to_dataset({"v": values.swapaxes(0, 1)}))["v"].values
    return np.where(np.isnan(r_hat), np.inf, r_hat)


def _line(az: Any, space: str, name: str, values: Array) -> Line | None:
    """Return a `Line` with the worst R-hat and effective sample sizes of `values` (T, S, ...).

    T is the number of draws of each of S chains, `az` the module arviz; `space` and `name` are
    fields of the result. None is returned if none of the numbers ever changes.
    """
    # Indexing by a mask keeps the coordinates that change, flattened into one axis
    values = values[..., np.ptp(values, axis=(0, 1)) > 0]
    if not values.shape[-1]:
        return None
    data = az.convert_to_dataset({"v": values.swapaxes(0, 1)})
    r_hat = _r_hats(az, values)
    ess_bulk, ess_tail = (
        np.nan_to_num(az.ess(data, method=method)["v"].values)
        for method in ("bulk", "tail")
    )
    return Line(
        space,
        name,
        values.shape[-1],
        float(r_hat.max()),
        float(ess_bulk.min()),
        float(ess_tail.min()),
    )


def _comparable_chains(draws: Any) -> Draws:
    """Return the `Draws` of `draws` or of a learner; raise ValueError if too few for R-hat."""
    chains = draws_of(draws)
    n_draws, n_chains, _ = chains.positions.shape
    if n_chains < 2 or n_draws < 4:
        raise ValueError(
            "R-hat needs at least two chains of four draws; got "
            f"{n_chains} of {n_draws}"
        )
    return chains


def function_r_hats(draws: Any, x: Any) -> Array:
    """Return R-hat of the functions E[y|x, w] at each row of `x`: (N * K,) for K outputs.

    `convergence` returns the largest of them.

    Parameters
    ----------
    draws : Draws, or a learner with ``draws_``
        At least two chains of four draws.
    x : array-like (N, d_in)
        Rows standardised like those that the chains were fitted to.

    Raises
    ------
    ImportError
        If ArviZ is not installed.
    ValueError
        For fewer chains or draws, or a target that has no model.
    """
    az = import_arviz()
    chains = _comparable_chains(draws)
    return _r_hats(az, _functions(known_model(chains), chains, x))


def known_model(draws: Draws) -> Model:
    """Return the model whose posterior was sampled; raise ValueError if there is no model."""
    model = model_of(draws)
    if model is None:
        raise ValueError(
            "x can be used only with draws of a target that has a model, such as a LogJoint; "
            "leave x out"
        )
    return model


def convergence(draws: Any, x: Any = None, *, weights: bool = True) -> Convergence:
    """Return R-hat and effective sample sizes of functions and, for comparison, of weights.

    Functions are judged first because predictions, noise and log density do not depend on the order
    of the hidden units, whereas permuted copies of one mode have different weights.

    Parameters
    ----------
    draws : Draws, or a learner with ``draws_``
        At least two chains of four draws.
    x : array-like (N, d_in), optional
        Rows at which the functions E[y|x, w] are evaluated, standardised like those that the chains
        were fitted to. By default 50 rows of the data. Draws that were loaded from a file hold no
        data: without `x` their functions are not judged, which the table says.
    weights : bool
        Whether to judge the blocks of weights too, which `Convergence.mixed` does not count. For
        many weights this takes the longest.

    Returns
    -------
    Convergence
        Printed, it is a small table: rank-normalised split R-hat (the larger one of ranks and
        folded ranks), and bulk and tail effective sample sizes (Vehtari et al. 2021), with the
        number of divergences below. MAMS and MCLMC may miss a region without any divergence.

    Raises
    ------
    ImportError
        If ArviZ is not installed.
    ValueError
        If there are fewer chains or draws, if `x` is given but the target of the chains has no
        model with inputs (a `LogJoint` has one), or if no number of the chains ever changes.
    """
    flag("weights", weights)
    az = import_arviz()
    chains = _comparable_chains(draws)
    n_draws, n_chains, _ = chains.positions.shape
    lines = [_line(az, "functions", "log density", chains.log_density)]
    model = model_of(chains) if x is None else known_model(chains)
    blocks = chains.layout.views(chains.positions)
    if x is None and isinstance(chains.target, LogJoint):
        rows = chains.target.x
        n_rows = min(N_ROWS, len(rows))
        x = rows[np.linspace(0, len(rows) - 1, n_rows).astype(int)]
    if model is not None:
        if x is not None:
            f = _functions(model, chains, x)
            lines.insert(0, _line(az, "functions", f"E[y|x] at {len(x)} rows", f))
        learned = [name for name, _ in model.learned()]
        lines += [_line(az, "functions", name, blocks.pop(name)) for name in learned]
    if weights:
        space = "numbers" if model is None else "weights"
        lines += [_line(az, space, name, block) for name, block in blocks.items()]
    changing = tuple(line for line in lines if line is not None)
    if not changing:
        raise ValueError(
            "every proposal was rejected: no number ever changes, so that R-hat is undefined. "
            "Sample with a smaller step size"
        )
    without_functions = model is not None and x is None
    return Convergence(
        n_draws, n_chains, changing, without_functions, chains.divergences
    )
