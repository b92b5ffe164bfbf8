"""What a sampler leaves: draws of several chains, and how they stand for a posterior."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from ..model.joint import Model
from ..numeric.buffers import Buffers
from ..numeric.layout import Array, Layout
from ..numeric.validation import InstanceOf
from .mcmc import Target

__all__ = ["DrawnWeights", "Draws"]

GOLDEN_RATIO = 0.5 * (5.0**0.5 - 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Draws:
    """T draws of S chains, after warm-up.

    Attributes
    ----------
    positions : ndarray (T, S, D)
    log_density : ndarray (T, S)
        In nats, unnormalised.
    stats : dict of str to ndarray (T, S)
        The fields of `mcmc.Info`. With thinning: "acceptance" and "energy" of the step that was
        kept, "gradients" and "divergent" summed over the steps between.
    kernel : MetropolisHastings, HMC, ChEES, NUTS, MAMS, MCLMC, SGHMC or one's own
        As adapted, by the first group of chains if there are several.
    target : callable
    layout : Layout
        Names the D numbers.
    warm_up : int
        Draws that were made before and are not kept.
    warm_up_divergent : int
        Divergences among them, which do no harm.
    finished : bool
        False after Ctrl-C.
    other_kernels : tuple
        As adapted by the second group of chains and those after.
    """

    positions: Array
    log_density: Array
    stats: dict[str, Array]
    kernel: Any
    target: Target
    layout: Layout
    warm_up: int
    warm_up_divergent: int
    finished: bool
    other_kernels: tuple[Any, ...] = ()

    @property
    def kernels(self) -> tuple[Any, ...]:
        """The kernels of all groups of chains, as adapted."""
        return (self.kernel, *self.other_kernels)

    @property
    def flat(self) -> Array:
        """All draws of all chains, (T * S, D)."""
        return self.positions.reshape(-1, self.positions.shape[-1])

    def block(self, name: str) -> Array:
        """Return the draws of one block, (T, S, ...), e.g. ``'W0'`` or ``'log_noise'``.

        Raises
        ------
        KeyError
            If there is none of that name; the message lists them.
        """
        blocks = self.layout.views(self.positions)
        if not isinstance(name, str) or name not in blocks:
            raise KeyError(f"name: no block {name!r}; there are {', '.join(blocks)}")
        return blocks[name]

    @property
    def divergences(self) -> int:
        """Number of draws on whose way, since the draw before, a transition diverged."""
        return int(np.count_nonzero(self.stats["divergent"]))

    @property
    def step_size(self) -> float:
        """Step size of the kernel as adapted, the mean over groups; nan for one without."""
        return float(
            np.mean([getattr(kernel, "step_size", np.nan) for kernel in self.kernels])
        )

    @property
    def expected_bias(self) -> float:
        """Share by which variances are off, about: 0 but for an unadjusted kernel (D50, D64).

        Of MCLMC from the energy errors of these draws (its `stats["acceptance"]` is of single
        steps, which it does not reject), as if the posterior were a Gaussian of many dimensions and
        the metric its covariance; inf where the steps are too large to tell. One that is far from
        Gaussian is sampled worse: of a banana's, with a share of 0.18 here, one mean was off by
        0.28 standard deviations. Of SGHMC from the temperature of its momenta: the mean share of
        all directions, of which stiff ones have most.
        """
        if not getattr(self.kernel, "unadjusted", False) or not self.log_density.size:
            return 0.0
        return float(self.kernel.expected_bias(self))

    @property
    def too_large_steps(self) -> float:
        """Share of draws during which steps of MAMS, SGHMC or SGLD were too large.

        By energy errors that refuse a path, or the heat of the momenta; 0 of a Gaussian, and of
        kernels that diverge instead. Where it is more than 0.001, chains leave narrow places out:
        the curved coordinate of a banana had 31 % too little variance of SGHMC, 34 % of SGLD, where
        `expected_bias` told 11 and 12 %. Chains that never came near show none, and MCLMC shows no
        sign: 8 % too little, where 2 % were told.
        """
        tell = getattr(self.kernel, "share_too_large", None)
        return float(tell(self)) if tell and self.log_density.size else 0.0

    def __repr__(self) -> str:
        """Return the summary: the arrays would fill the screen."""
        return f"<Draws: {self.summary()}>"

    def summary(self) -> str:
        """Return one line: draws, acceptance, divergences, gradient evaluations."""
        draws, chains = self.log_density.shape
        unfinished = "" if self.finished else " (interrupted)"
        if not draws:
            return f"no draws of {chains} chains{unfinished}"
        gradients = int(self.stats["gradients"].sum())
        missed = (
            " (narrow places may be missed, and R-hat be 1)" if self.divergences else ""
        )
        biased = ""
        if getattr(self.kernel, "unadjusted", False):
            share = f"{100 * self.expected_bias:.2g} %"
            biased = f"; unadjusted: variances off by about {share} of a Gaussian, too small by "
            biased += "several times that along curved ridges"
        return (
            f"{draws} draws of {chains} chains{unfinished}, "
            f"acceptance {self.stats['acceptance'].mean():.2f}, step size {self.step_size:.3g}, "
            f"{self.divergences} divergent{missed}, {gradients:,} gradient evaluations{biased}"
        )


@dataclass(frozen=True)
class DrawnWeights:
    """Equally weighted draws (T, D) as a posterior, for everything in `evaluation.predictive`.

    There `theta` is the matrix of draws, weights first, then the scales that the chain sampled
    with them; the "noise" is the choice of rows.

    Parameters
    ----------
    model : Model
    """

    model: Model

    def __post_init__(self) -> None:
        InstanceOf(Model)("model", self.model)

    @cached_property
    def layout(self) -> Layout:
        """The blocks of one draw, D numbers: those of `LogJoint.layout`."""
        return Layout(self.model.layout.blocks + self.model.learned())

    def draw_weights(
        self, rng: Generator, samples: int, dtype: Any = np.float64
    ) -> Array:
        """Return numbers (S,) in [0, 1), evenly spread, each of which chooses a draw.

        One lies in each interval of 1 / S, at a place that moves on by the golden ratio from one
        to the next: at equal steps all might be draws of one chain, as chains take turns in
        `Draws.flat`, and every twentieth of four is.
        """
        place = np.arange(samples)
        return rng.permutation(
            (place + (rng.random() + GOLDEN_RATIO * place) % 1.0) / samples
        )

    def noise_blocks(
        self, rng: Generator, samples: int, block: int, dtype: Any
    ) -> Iterator[Array]:
        """Yield what `draw_weights` returns, at most `block` numbers at a time.

        All are drawn at once, so that as many samples as there are draws take each of them once.
        """
        eps = self.draw_weights(rng, samples, dtype)
        for begin in range(0, samples, block):
            yield eps[begin : begin + block]

    def _chosen(self, theta: Array, eps: Array) -> Array:
        if theta.ndim != 2 or theta.shape[1] != self.layout.size or not len(theta):
            raise ValueError(
                f"theta must hold draws (T, {self.layout.size}), one at least; got {theta.shape}"
            )
        return theta[(eps * len(theta)).astype(int)]

    def weights(
        self, theta: Array, eps: Array, buffers: Buffers | None = None
    ) -> Array:
        """Return the weights (S, P) of the chosen draws."""
        return np.ascontiguousarray(
            self._chosen(theta, eps)[:, : self.model.layout.size]
        )

    def outputs(self, theta: Array, w: Array, x: Array, buffers: Buffers) -> Array:
        """Return the network's outputs (S, B, heads) at rows `x`."""
        return self.model.predict(w, x, buffers)

    def params(self, theta: Array, eps: Array) -> dict[str, Array]:
        """Return the scales that were drawn with these weights, (S, ...) each."""
        learned = Layout(self.model.learned())
        return learned.views(self._chosen(theta, eps)[:, self.model.layout.size :])
