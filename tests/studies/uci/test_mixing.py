"""What is recorded of chains: R-hat near 1 of chains that agree, large of those that do not."""

import json
from dataclasses import replace

import numpy as np
import pytest

from bbb_numpy.model.joint import Model
from bbb_numpy.parts.likelihoods import GaussianLikelihood, HeteroscedasticLikelihood
from bbb_numpy.parts.network import MLP
from bbb_numpy.parts.priors import GaussianPrior
from bbb_numpy.sampling.run import sample
from bbb_studies.uci.trials import MAX_RECORDED_R_HAT, mixing

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 1))


def independent(likelihood=None, draws=200, chains=3):
    """Draws that have mixed, since they are independent, in place of those of a sampler."""
    likelihood = likelihood or GaussianLikelihood(0.3, learn=True)
    model = Model(MLP((1, likelihood.heads(1))), GaussianPrior(), likelihood)
    found = sample(model, X, 0 * X, draws=4, warm_up=0, chains=chains, seed=0, sampler="mh")
    size = found.layout.size
    rng = np.random.default_rng(1)
    return replace(
        found,
        positions=rng.normal(size=(draws, chains, size)),
        log_density=rng.normal(size=(draws, chains)),
    )


def test_independent_draws_have_mixed():
    notes = mixing(independent())
    assert set(notes) == {
        *("r_hat_functions", "ess_functions", "r_hat_noise", "ess_noise"),
        *("r_hat_weights", "ess_weights"),
    }
    for space in ("functions", "noise", "weights"):
        assert notes[f"r_hat_{space}"] < 1.05
        assert notes[f"ess_{space}"] > 200


@pytest.mark.parametrize(
    ("planted", "block"), [("weights", "W0"), ("functions", "W0"), ("noise", "log_noise")]
)
def test_a_chain_elsewhere_is_seen_where_it_matters(planted, block):
    draws = independent()
    draws.block(block)[:, 0] += 5.0
    notes = mixing(draws)
    assert notes[f"r_hat_{planted}"] > 1.5
    assert notes[f"ess_{planted}"] < 20
    if block == "log_noise":  # and nowhere else
        assert max(notes["r_hat_weights"], notes["r_hat_functions"]) < 1.05
    else:
        assert notes["r_hat_noise"] < 1.05


def test_noise_that_depends_on_x_is_none_of_the_numbers():
    notes = mixing(independent(HeteroscedasticLikelihood()))
    assert set(notes) == {"r_hat_functions", "ess_functions", "r_hat_weights", "ess_weights"}


def test_chains_that_stand_still_are_far_from_mixed_and_too_few_have_no_number():
    draws = independent()
    draws.positions[:] = draws.positions[:1]
    notes = mixing(draws)
    assert {notes[f"r_hat_{space}"] for space in ("functions", "noise", "weights")} == {
        MAX_RECORDED_R_HAT
    }
    json.dumps(notes, allow_nan=False)
    assert mixing(independent(draws=3)) == mixing(independent(chains=1)) == mixing(None) == {}
