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
    """Return the free energy of a minibatch and its gradient for mu and rho."""
    # YOUR CODE HERE
    raise NotImplementedError
