"""The heart of the book: the free energy and its gradient, by hand.

The model is linear, y = w . x + noise, so that everything fits on one screen; a network only
replaces one line. The value puts the last four exercises together:

    sigma = softplus(rho),  w = mu + sigma eps,
    value = mean over samples of
            pi sum_j [-log sigma + log(prior) - eps^2 / 2 + w^2 / (2 prior^2)]
            + sum_b [(y - w . x)^2 / (2 noise^2) + log(noise) + log(2 pi) / 2].

For the gradient hold eps fixed and apply the chain rule. First the slope for w, which collects
the prior and the likelihood; w moves with mu by 1 and with sigma by eps; sigma moves with rho by
the sigmoid. One more term comes from -log sigma itself. Nothing comes from log q through w: in
terms of eps, log q does not move with w.

Shapes: mu and rho are (P,), eps is (S, P), x is (B, P), y is (B,); prior, noise and pi are
numbers. Return value, d_mu (P,) and d_rho (P,).

Hint: K21 for mu, K30 for rho. The grader proves all your derivatives, and names some thirty
mistakes that have been made here.

Read: K18 to K30 in derivations.md.
"""

import numpy as np


def value_and_gradient(mu, rho, eps, x, y, prior, noise, pi):
    """Return the free energy of a minibatch and its gradient for mu and rho.

    Parameters
    ----------
    mu : ndarray (P,)
        Means of the weights.
    rho : ndarray (P,)
        Raw standard deviations; sigma = softplus(rho).
    eps : ndarray (S, P)
        Standard normal noise of S weight samples.
    x : ndarray (B, P)
        Inputs, a row for each datum.
    y : ndarray (B,)
        Targets.
    prior : float
        Standard deviation of the weights under the prior.
    noise : float
        Standard deviation of y around w . x.
    pi : float
        Share of the complexity that this minibatch pays.

    Returns
    -------
    value : float
        Free energy of the minibatch, in nats.
    d_mu, d_rho : ndarray (P,)
        Its slopes for mu and for rho.
    """
    ### BEGIN SOLUTION
    samples = len(eps)
    sigma = np.log1p(np.exp(rho))
    sigmoid = 1 / (1 + np.exp(-rho))
    w = mu + sigma * eps
    residual = w @ x.T - y  # (S, B)

    complexity = np.sum(w**2) / (2 * prior**2) - np.sum(eps**2) / 2
    complexity = complexity / samples + np.sum(np.log(prior) - np.log(sigma))
    misfit = np.sum(residual**2) / (2 * noise**2 * samples)
    misfit = misfit + len(x) * (np.log(noise) + np.log(2 * np.pi) / 2)

    d_w = pi * w / prior**2 + residual @ x / noise**2
    d_mu = np.sum(d_w, axis=0) / samples
    d_sigma = np.sum(d_w * eps, axis=0) / samples - pi / sigma
    return pi * complexity + misfit, d_mu, d_sigma * sigmoid
    ### END SOLUTION
