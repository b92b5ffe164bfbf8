"""The gradient for a triangle of numbers.

Entry (i, j) of C multiplies eps_j and adds to w_i. So its slope is d_w_i eps_j, an outer product,
but only where C has numbers: on and below the diagonal. The paper's formula has entries above it,
and a step along these would spoil the density.

The diagonal must be positive, C_kk = softplus(rho_k), and it is in the entropy: -log C_kk has the
slope -1 / C_kk.

Shapes: C is (P, P), used below its diagonal only; rho is (P,); d_w and eps are (S, P), where d_w
is the slope of everything but log q. Return the slopes below the diagonal, (P, P) with zeros
elsewhere, and those for rho, (P,); both as means over samples, the entropy with weight 1.

Hint: does anything depend on what is in C?

Read: M3 in derivations/correlated-posteriors.md.
"""

import numpy as np


def gradient_for_the_factor(C, rho, d_w, eps):
    """Return slopes (P, P) below the diagonal and for rho (P,).

    Parameters
    ----------
    C : ndarray (P, P)
        Factor of the covariance, used below its diagonal only.
    rho : ndarray (P,)
        Raw diagonal; C_kk = softplus(rho_k).
    d_w : ndarray (S, P)
        Slope for the weights of everything but log q.
    eps : ndarray (S, P)
        Standard normal noise of S weight samples.

    Returns
    -------
    d_C : ndarray (P, P)
        Slopes below the diagonal, zeros elsewhere.
    d_rho : ndarray (P,)
        Slopes for rho.
    """
    ### BEGIN SOLUTION
    samples, weights = eps.shape
    outer = sum(np.outer(d, e) for d, e in zip(d_w, eps, strict=True)) / samples
    rows, columns = np.indices((weights, weights))
    below = np.where(rows > columns, outer, 0.0)
    on_the_diagonal = np.diagonal(outer) - 1 / np.log1p(np.exp(rho))
    return below, on_the_diagonal / (1 + np.exp(-rho))
    ### END SOLUTION
