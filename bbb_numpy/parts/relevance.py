r"""Prior that learns which inputs matter: automatic relevance determination (D67).

MacKay (1994) and Neal (1996) give the weights of each input a precision of its own, with a Gamma
hyperprior: inputs that do not help the fit get a large precision, and their weights shrink to 0.
Here the precisions are integrated over in closed form, and none is learned or sampled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import lgamma, log, pi, prod
from typing import Any, NamedTuple

import numpy as np

from ..numeric.buffers import Buffers
from ..numeric.elementary import log1p
from ..numeric.layout import Array, Params
from ..numeric.validation import Numbers, Optional, check_fields, standard_deviation
from .network import MLP
from .priors import Prior

__all__ = ["ARDPrior"]


def _scales(name: str, value: Any) -> tuple[float, ...]:
    """Return `value` as a tuple of float; raise an error unless it has numbers in [1e-150, 1e150].

    `name` is that of the argument, for error messages.
    """
    check = Numbers((None,), low=1e-150, high=1e150, min_length=1)
    return tuple(check(name, value).astype(float).tolist())


def _sizes(name: str, value: Any) -> tuple[int, ...]:
    """Return `value` as layer widths; raise an error unless a network can have them.

    `name` is that of the argument, for error messages.
    """
    check = Numbers((None,), low=1, whole=True, min_length=2)
    return tuple(check(name, value).astype(int).tolist())


class _Groups(NamedTuple):
    """Groups of G weights among the P of a network, and constants of their densities."""

    of_weight: Array  # (P,) int  group of each weight
    order: Array  # (P,) int  weights, group by group
    starts: Array  # (G,) int  where each group begins in `order`
    exponents: Array  # (G,)  (df + n_g) / 2 for n_g weights
    inverse_scales: Array  # (P,)  1 / s of each weight
    constant: float  # log density at w = 0, in nats


@dataclass(frozen=True)
class ARDPrior(Prior):
    r"""Prior with a precision for each group of weights, integrated over; ARD (D67).

    The weights of a group g are :math:`N(0, s_g^2 / \lambda_g)`, and its precision
    :math:`\lambda_g` is Gamma(df / 2, df / 2), of mean 1. Without the precision a group has a
    multivariate Student-t distribution:

    .. math::
        P(w_g) = \frac{\Gamma(\tfrac{\nu + n_g}{2})}{\Gamma(\tfrac{\nu}{2}) (\nu\pi s_g^2)^{n_g/2}}
        \Big(1 + \frac{|w_g|^2}{\nu s_g^2}\Big)^{-(\nu + n_g) / 2}

    with :math:`\nu` = `df` and :math:`n_g` weights. The groups are: the first layer's weights of
    each input; the biases of each hidden layer; the weights of each further hidden layer; the last
    layer's weights of each output, and its bias. The scale s_g is `scale` for biases, and `scale`
    divided by the square root of the layer's number of inputs for weights, so that the prior
    of the function does not change with the widths.

    Parameters
    ----------
    scale : float
        Scale of a layer's biases, and of its weighted sum of inputs of size 1; > 0.
    df : float
        Degrees of freedom, > 0, as of Student's t: the smaller, the more the groups' scales
        differ.
    output_scales : tuple of float, optional
        A factor > 0 of the scale of each network output. By default 1. With a small factor an
        output is drawn to 0, unless the data say otherwise, such as the output for noise that
        depends on x (D68).
    sizes : tuple of int, optional
        Widths of the network. `Model` fills them in.
    """

    scale: float = 1.0
    df: float = 2.0
    output_scales: tuple[float, ...] | None = None
    sizes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Raise an error unless the fields are valid and fit together."""
        check_fields(self, "the prior", scale=standard_deviation, df=standard_deviation)
        check_fields(self, output_scales=Optional(_scales), sizes=Optional(_sizes))
        if self.sizes is not None:
            if self.output_scales is not None:
                Numbers((self.sizes[-1],))("output_scales", self.output_scales)
            self._groups  # noqa: B018  computed here, since a proof traces what `log_density` does

    def for_network(self, sizes: tuple[int, ...]) -> ARDPrior:
        """Return the prior for layer widths `sizes`; raise ValueError if it has other widths."""
        if self.sizes not in (None, sizes):
            raise ValueError(
                f"the prior was made for a network of sizes {self.sizes}; got a network of sizes "
                f"{sizes}. Give each model a prior of its own, made without `sizes`"
            )
        return replace(self, sizes=sizes)

    @cached_property
    def _network(self) -> MLP:
        """The network, whose layout has the blocks of the weights."""
        if self.sizes is None:
            raise ValueError(
                "an ARDPrior must know the widths of its network: make a Model of both, or call "
                "for_network(sizes)"
            )
        return MLP(self.sizes)

    @cached_property
    def _groups(self) -> _Groups:
        """The groups of the network's weights, in float64."""
        sizes, layout = self._network.sizes, self._network.layout
        last = len(sizes) - 2
        output_scales = np.array(self.output_scales or (1.0,) * sizes[-1])
        index = np.zeros(layout.size, int)
        scales = np.zeros(layout.size)
        views = zip(
            layout.views(index).items(), layout.views(scales).values(), strict=True
        )
        n_groups = 0
        for (name, group), scale in views:
            is_weight = name.startswith("W")
            layer = int(name[1:])
            scale[...] = self.scale
            if is_weight:
                scale /= sizes[layer] ** 0.5
            # lengths of the axes along which groups differ
            axes = [1] * group.ndim
            if is_weight and layer == 0:
                axes[0] = sizes[0]  # a group for each input
            if layer == last:
                axes[-1] = sizes[-1]  # a group for each output
                scale *= output_scales
            n_new = prod(axes)
            group[...] = n_groups + np.arange(n_new).reshape(axes)
            n_groups += n_new
        order = np.argsort(index, kind="stable")
        starts = np.searchsorted(index[order], np.arange(n_groups))
        counts = np.bincount(index)
        constant = sum(map(self._log_constant, counts.tolist()))
        constant -= sum(map(log, scales.tolist()))
        return _Groups(
            index,
            order,
            starts,
            0.5 * (self.df + counts),
            1.0 / scales,
            constant,
        )

    def _log_constant(self, size: int) -> float:
        """Return log of a multivariate t's density at 0, for `size` weights of scale 1 (D67)."""
        return (
            lgamma(0.5 * (self.df + size))
            - lgamma(0.5 * self.df)
            - 0.5 * size * log(pi * self.df)
        )

    def sd(self, params: Params) -> float:
        """Return the smallest standard deviation of a weight; inf if `df` is at most 2."""
        if self.df <= 2.0:
            return float("inf")
        scale = 1.0 / float(self._groups.inverse_scales.max())
        return scale * (self.df / (self.df - 2.0)) ** 0.5

    def log_density(
        self, params: Params, w: Array, buffers: Buffers
    ) -> tuple[Array, Any]:
        r"""Return the normalised log density log P(w) of each weight vector, (S,) in nats (D67).

        :math:`\sum_g [c_g - \tfrac12 (\nu + n_g) \log(1 + |w_g|^2 / (\nu s_g^2))]`, with c_g the
        log density of group g at 0.

        Parameters
        ----------
        params : dict
            Not used: nothing is learned.
        w : ndarray (S, P)
            S flat weight vectors, which are not written to.
        buffers : Buffers
            Not used.

        Returns
        -------
        value : ndarray (S,)
            log P(w) of each weight vector, in nats.
        saved : ndarray (S, P)
            Gradient of the log density for the weights, for `add_vjp`.
        """
        groups = self._groups
        # a proof runs this code with exact numbers, in arrays of dtype object
        dtype = w.real.dtype if w.dtype.kind in "fc" else np.dtype(np.float64)
        inverse_scales = groups.inverse_scales.astype(dtype, copy=False)
        exponents = groups.exponents.astype(dtype, copy=False)
        z = w * inverse_scales
        # |w_g|^2 / s_g^2 of each group, (S, G)
        squares = np.add.reduceat((z * z)[:, groups.order], groups.starts, axis=-1)
        logs = log1p(squares * (1.0 / self.df))
        # log P(w) = c - sum_g (nu + n_g) / 2 log(1 + |w_g|^2 / (nu s_g^2))  (D67)
        terms = exponents * logs
        value = groups.constant - np.add.reduce(terms, axis=-1)  # D67
        # d log P / dw = -(nu + n_g) / (nu + |w_g|^2 / s_g^2) w / s_g^2
        factors = -2.0 * exponents / (self.df + squares)  # D67
        z *= factors[:, groups.of_weight]
        z *= inverse_scales
        return value, z

    def add_vjp(
        self, saved: Any, cotangent: Array, d_w: Array, d_params: Params
    ) -> None:
        r"""Add `cotangent` times d log P(w)/dw to `d_w` (D67).

        :math:`d \log P / dw_j = -(\nu + n_g)\, w_j / (\nu s_g^2 + |w_g|^2)`, g the group of w_j.

        Parameters
        ----------
        saved : object
            Second result of `log_density` for the same weights; it is not written to.
        cotangent : ndarray (S,)
            Derivative of the loss with respect to each log P(w).
        d_w : ndarray (S, P)
            Gradient for the weights, to which the result is added in place.
        d_params : dict
            Not used: nothing is learned.
        """
        d_w += cotangent[:, None] * saved

    def draw(
        self, rng: np.random.Generator, params: Params, shape: tuple[int, int]
    ) -> Array:
        """Draw S weight vectors from the prior, (S, P) in float64.

        Parameters
        ----------
        rng : numpy.random.Generator
        params : dict
            Not used: nothing is learned.
        shape : tuple of int
            (S, P), the number of weight vectors and their length.
        """
        groups = self._groups
        n_groups = len(groups.starts)
        precision = rng.gamma(0.5 * self.df, 2.0 / self.df, (shape[0], n_groups))
        scales = precision[:, groups.of_weight] ** -0.5 / groups.inverse_scales
        return rng.standard_normal(shape) * scales


NAMED = {"prior": {"ard": (ARDPrior(), ARDPrior(0.5, 4.0))}}
