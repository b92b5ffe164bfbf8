"""Draws of several chains: what a sampler returns, and predictions' source of weights."""

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

# 1 / 1.618...: multiples of it, modulo 1, are spread as evenly as can be
INVERSE_GOLDEN_RATIO = 0.5 * (5.0**0.5 - 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class Draws:
    """T draws of S chains, after warm-up.

    Attributes
    ----------
    positions : ndarray (T, S, D)
        The draws themselves.
    log_density : ndarray (T, S)
        At the positions, in nats and up to a constant.
    stats : dict of str to ndarray (T, S)
        Statistics by name, the fields of `mcmc.Info`. With thinning "acceptance" and "energy" are
        those of the step that was kept, "gradients" and "divergent" sums over the steps between.
    kernel : Kernel
        As the first group of chains has adapted it.
    target : Target
        The density that was sampled.
    layout : Layout
        Names of the D numbers.
    warm_up : int
        Number of steps before the draws.
    warm_up_divergent : int
        Divergences among these steps, which do no harm.
    finished : bool
        False after Ctrl-C.
    other_kernels : tuple of Kernel
        As the second group of chains, and those after it, have adapted them.
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
            If no block has that name; the message lists them.
        """
        blocks = self.layout.views(self.positions)
        if not isinstance(name, str) or name not in blocks:
            raise KeyError(
                f"name must be one of {', '.join(map(repr, blocks))}; got {name!r}"
            )
        return blocks[name]

    @property
    def divergences(self) -> int:
        """Number of draws with a divergent transition since the draw before."""
        return int(np.count_nonzero(self.stats["divergent"]))

    @property
    def step_size(self) -> float:
        """Adapted step size, the mean over groups; nan for a kernel without one."""
        sizes = [getattr(kernel, "step_size", np.nan) for kernel in self.kernels]
        return float(np.mean(sizes))

    @property
    def expected_bias(self) -> float:
        """Estimated share by which variances are off; 0 for a kernel that rejects (D50, D64).

        For MCLMC it comes from the energy errors of these draws (its `stats["acceptance"]` is of
        single steps, which it does not reject), as if the posterior were a Gaussian of many
        dimensions and the metric its covariance; it is inf where the steps are too large to tell. A
        posterior far from Gaussian is sampled worse: for a banana, with a share of 0.18 here, one
        mean was off by 0.28 standard deviations. For SGHMC it comes from the temperature of the
        momenta: the mean share over all directions, of which stiff ones have most.
        """
        if not getattr(self.kernel, "unadjusted", False) or not self.log_density.size:
            return 0.0
        return float(self.kernel.expected_bias(self))

    @property
    def too_large_steps(self) -> float:
        """Share of draws during which steps of MAMS, SGHMC or SGLD were too large.

        It counts energy errors that make a path rejected, or the heat of the momenta; it is 0 for a
        Gaussian, and for kernels that diverge instead. Where it is more than 0.001, chains leave
        narrow places out: the variance of the curved coordinate of a banana was 31 % too small with
        SGHMC and 34 % with SGLD, where `expected_bias` was 11 and 12 %. Chains that never came near
        such a place show nothing, and MCLMC never does: its variance was 8 % too small, where
        `expected_bias` was 2 %.
        """
        share = getattr(self.kernel, "share_too_large", None)
        if share is None or not self.log_density.size:
            return 0.0
        return float(share(self))

    def __repr__(self) -> str:
        """Return the summary, as the arrays would fill the screen."""
        return f"<Draws: {self.summary()}>"

    def summary(self) -> str:
        """Return one line with numbers of draws, acceptance, divergences and gradients."""
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
    """Draws of weights as a posterior, for everything in `evaluation.predictive`.

    In its methods `theta` is the matrix of equally weighted draws (T, D), such as `Draws.flat`: in
    each row the weights, then the scales that the chain sampled with them. The noise `eps` (S,) are
    numbers in [0, 1), each of which chooses a row.

    Parameters
    ----------
    model : Model
        As it was sampled.
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

        One lies in each interval of 1 / S, at a position that moves on by the golden ratio from one
        to the next: at equal steps all might be draws of one chain, as chains take turns in
        `Draws.flat`, and every twentieth of four is.

        Parameters
        ----------
        rng : Generator
        samples : int
            S.
        dtype : dtype
            Without effect: a choice of draws has no dtype of weights.
        """
        interval = np.arange(samples)
        position = (rng.random() + INVERSE_GOLDEN_RATIO * interval) % 1.0
        return rng.permutation((interval + position) / samples)

    def noise_blocks(
        self, rng: Generator, samples: int, block: int, dtype: Any
    ) -> Iterator[Array]:
        """Yield what `draw_weights` returns, in pieces.

        All numbers are drawn at once, so that as many samples as there are draws take each of them
        once.

        Parameters
        ----------
        rng : Generator
        samples : int
            S, the number of choices in all.
        block : int
            Upper bound of the numbers of a piece.
        dtype : dtype
            Without effect, as in `draw_weights`.
        """
        eps = self.draw_weights(rng, samples, dtype)
        for first in range(0, samples, block):
            yield eps[first : first + block]

    def _chosen(self, theta: Array, eps: Array) -> Array:
        """Return the rows (S, D) of `theta` that `eps` chooses, or raise ValueError."""
        if theta.ndim != 2 or theta.shape[1] != self.layout.size or not len(theta):
            raise ValueError(
                f"theta must have shape (T, {self.layout.size}), with T >= 1 draws; got "
                f"{theta.shape}"
            )
        return theta[(eps * len(theta)).astype(int)]

    def weights(
        self, theta: Array, eps: Array, buffers: Buffers | None = None
    ) -> Array:
        """Return the weights (S, P) of the chosen draws.

        Parameters
        ----------
        theta : ndarray (T, D)
            All draws.
        eps : ndarray (S,)
            The choice, as `draw_weights` returns it.
        buffers : Buffers, optional
            Without effect: the result is a new array.
        """
        chosen = self._chosen(theta, eps)
        return np.ascontiguousarray(chosen[:, : self.model.layout.size])

    def outputs(self, theta: Array, w: Array, x: Array, buffers: Buffers) -> Array:
        """Return the network's outputs (S, B, heads).

        Parameters
        ----------
        theta : ndarray (T, D)
            Without effect.
        w : ndarray (S, P)
            Weights.
        x : ndarray (B, d_in)
            Rows.
        buffers : Buffers
            Own the result.
        """
        return self.model.predict(w, x, buffers)

    def params(self, theta: Array, eps: Array) -> dict[str, Array]:
        """Return the scales that were drawn with the chosen weights, (S, ...) each, by name.

        Parameters
        ----------
        theta : ndarray (T, D)
            All draws.
        eps : ndarray (S,)
            The choice, as `draw_weights` returns it.
        """
        learned = Layout(self.model.learned())
        return learned.views(self._chosen(theta, eps)[:, self.model.layout.size :])
