"""Which test sees which mistake?

There are many ways to look for a mistake in a program that trains a Bayesian model, and none of
them finds everything. Most of the mistakes below were printed or published; the test that would
have seen them was not run. Think about each: which of six detectors sees it?

The program is Bayesian linear regression by Bayes by Backprop, with four rows in two minibatches
and three weights, one of them a bias; the design is orthogonal, so that the mean field holds the
exact posterior. (Its source, `bbb_course.cards`, is short.) The detectors are:

    gradient check    the complex step against the gradient, at fixed noise
    value             an epoch's cost at fixed noise against log q - log P(w) - log P(D|w)
    mean over noise   means of cost and gradient over drawn noise against closed forms
    invariance        an epoch's cost and gradient when the data are cut into other minibatches
    convergence       where training ends, for 300 data sets, against the exact posterior
    coverage          the share of new targets inside the 95 % bands, over these data sets

For each bug write the set of the detectors that see it. The key was computed by running all of them
on each; nine of ten cells are asked for, and at most two may be wrong for any one detector. You
are told where you differ, with the measured number.

Hint: a detector can only see what it is shown: noise that is handed to the program by the test,
for instance, is not the noise that it would have drawn.

Read: K18 and K30 in derivations.md; D6 in derivations/training.md; D21 in
derivations/estimators.md.
"""

which_detector_sees_it = {
    # the value has - log(prior) where + belongs
    # (printed in K18)
    "sign of log prior": set(),
    # the slope of -log sigma has the other sign
    # (K30)
    "plus one over sigma": set(),
    # d_rho lacks the factor eps
    # (K28)
    "no eps": set(),
    # the direct partial derivatives of log q are added to the total ones
    # (Wu's split form, W4 and W5, added to K21 and K30)
    "score counted twice": set(),
    # log q is taken at a copy of mu that is no parameter (detached)
    # (the tutorial behind Wu's quartic (D20))
    "mean frozen in log q": set(),
    # the slope for sigma is used as that for rho
    # (K23)
    "softplus without its derivative": set(),
    # the mean over rows stands in place of the sum, in value and gradient
    # (K18 with a mean squared error)
    "likelihood divided by n": set(),
    # each minibatch pays the complexity of the data set
    # (published code)
    "whole KL in every minibatch": set(),
    # the complexity is averaged over weight matrix and bias
    # (published code)
    "KL divided by layers": set(),
    # the complexity is averaged over the weights
    # (published code)
    "KL divided by weights": set(),
    # the complexity is divided by the rows of the batch and of the data set
    # (published code)
    "KL divided by batch and data set": set(),
    # the gradient for rho uses other noise than the weights did
    # (the program published beside the report)
    "noise other than the gradient's": set(),
    # the variance of the bias is taken to be sigma
    # (the program published beside the report)
    "sigma of the bias unsquared": set(),
    # the band is 3 times 50 epistemic deviations
    # (the program published beside the report)
    "bands of fifty": set(),
    # the band of the mean is shown as that of new targets
    # (Krasser's figures (R10))
    "band without noise": set(),
    # eps is uniform between -1 and 1
    # (K1)
    "uniform noise": set(),
}
### BEGIN SOLUTION
which_detector_sees_it = {
    "sign of log prior": {"value", "mean over noise"},
    "plus one over sigma": {
        "gradient check",
        "mean over noise",
        "convergence",
        "coverage",
    },
    "no eps": {"gradient check", "mean over noise", "convergence", "coverage"},
    "score counted twice": {"gradient check"},
    "mean frozen in log q": {"gradient check"},
    "softplus without its derivative": {"gradient check", "mean over noise"},
    "likelihood divided by n": {
        "value",
        "mean over noise",
        "invariance",
        "convergence",
        "coverage",
    },
    "whole KL in every minibatch": {
        "value",
        "mean over noise",
        "invariance",
        "convergence",
        "coverage",
    },
    "KL divided by layers": {"value", "mean over noise", "convergence", "coverage"},
    "KL divided by weights": {"value", "mean over noise", "convergence", "coverage"},
    "KL divided by batch and data set": {
        "value",
        "mean over noise",
        "invariance",
        "convergence",
        "coverage",
    },
    "noise other than the gradient's": {
        "gradient check",
        "mean over noise",
        "convergence",
        "coverage",
    },
    "sigma of the bias unsquared": {
        "gradient check",
        "value",
        "mean over noise",
        "convergence",
    },
    "bands of fifty": {"coverage"},
    "band without noise": {"coverage"},
    "uniform noise": {"mean over noise", "convergence"},
}
### END SOLUTION
