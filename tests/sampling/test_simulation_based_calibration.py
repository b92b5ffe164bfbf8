"""Simulation-based calibration: ranks of the truth among posterior draws are uniform.

A truth is drawn from the prior, data from the truth, draws from the posterior of the data (Talts et
al. 2018). Over many data sets every rank is then equally frequent, whatever is ranked: here the
noise scale, the function at two places, and the log joint, which sees the data.
"""

import numpy as np
import pytest
from scipy import stats

from bbb_numpy import HMC, MLP, GaussianLikelihood, GaussianPrior, LogJoint, LogNormal, Model
from bbb_numpy.sampling.run import sample_target

MODEL = Model(MLP((1, 2, 1), "tanh"), GaussianPrior(1.0), GaussianLikelihood(0.8, learn=True))
HYPERPRIORS = {"log_noise": LogNormal(width=0.3)}  # steps of one size then suit all data sets
X = np.linspace(-1.5, 1.5, 6)[:, None]
GRID = np.array([[-1.0], [2.0]])
PER_CHAIN, CHAINS, DROPPED = 3, 5, 3  # 15 draws, ranks 0 to 15
LIMIT = 1e-4  # p-value of the worst of four
NAMES = ("noise", "f(-1)", "f(2)", "log joint")


def ranked(target, positions):
    """The four numbers that are ranked, (S, 4)."""
    w = np.ascontiguousarray(target.weights(positions))
    f = MODEL.predict(w, GRID)[..., 0]
    noise = target.params(positions)["log_noise"]
    return np.column_stack([noise, f, target(positions)[0]])


class Together(LogJoint):
    """One target for chains of different data sets: y is (S, B, K), a data set for each chain."""

    def __post_init__(self):
        pass  # which says that y must be (B, K)

    def _row_blocks(self, chains):
        return [(self.x, self.y, None)]


def ranks(data_sets, seed):
    """Rank (L, 4) of the truth among the draws, for L data sets.

    The step size is fixed, so that the draws are those of one kernel; chains begin at draws from
    the prior, which know nothing of the truth. The data sets are sampled side by side: paths of
    HMC, of one length for all of them, do not depend on any.
    """
    rng = np.random.default_rng(seed)
    prior = LogJoint(MODEL, X, np.zeros((len(X), 1)), HYPERPRIORS)
    truth = prior.draw_prior(rng, data_sets)
    f = MODEL.predict(np.ascontiguousarray(prior.weights(truth)), X)
    y = MODEL.likelihood.draw(rng, prior.params(truth), f)  # (L, B, 1)
    target = Together(MODEL, X, np.repeat(y, CHAINS, axis=0), HYPERPRIORS)
    draws = sample_target(
        target,
        prior.draw_prior(rng, CHAINS * data_sets),
        sampler=HMC(0.12),
        draws=DROPPED + PER_CHAIN,
        warm_up=0,
        seed=rng,
        thin=15,
    )
    of_truth = ranked(target, np.repeat(truth, CHAINS, axis=0))
    below = sum(ranked(target, kept) < of_truth for kept in draws.positions[DROPPED:])
    return below.reshape(data_sets, CHAINS, -1).sum(axis=1)


def unevenness(ranks):
    """p-value of each row of ranks: chi-squared against equal frequencies, in four bins."""
    edges = np.linspace(0, PER_CHAIN * CHAINS + 1, 5)
    counts = np.array([np.histogram(column, edges)[0] for column in ranks.T])
    return stats.chisquare(counts, axis=1).pvalue


@pytest.mark.equation("D33", "M7")
@pytest.mark.filterwarnings("ignore:[0-9]+ divergent transitions")
@pytest.mark.parametrize("data_sets", [150, pytest.param(600, marks=pytest.mark.slow)])
def test_ranks_of_the_truth_are_uniform(data_sets):
    all_ranks = ranks(data_sets, seed=0)
    assert all_ranks.min() >= 0
    assert all_ranks.max() <= PER_CHAIN * CHAINS
    p_values = unevenness(all_ranks)
    assert p_values.min() > LIMIT, dict(zip(NAMES, p_values, strict=True))
