"""families: what every estimator shares, and the combinations that it refuses."""

import numpy as np
import pandas as pd
import pytest
from problems import PAIRS, linear_problem

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, MeanField, Model, Reparameterised
from bbb_numpy.combinations import build_estimator, draw_case
from bbb_numpy.gradients.closed_form import ClosedFormKL
from bbb_numpy.gradients.estimator import is_linear
from bbb_numpy.gradients.flipout import Flipout
from bbb_numpy.gradients.importance import DoublyReparameterised
from bbb_numpy.gradients.local_reparameterisation import LocalReparameterisation
from bbb_numpy.gradients.reparameterised import StickingTheLanding
from bbb_numpy.model.objectives import EUBO, MAP, MLE, TERMS, FreeEnergy, Renyi
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.discrete import PoissonLikelihood
from bbb_numpy.parts.full_rank import FullRank
from bbb_numpy.parts.likelihoods import HeteroscedasticLikelihood
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_numpy.parts.posteriors import PointMass
from bbb_numpy.parts.priors import LaplacePrior

NET = MLP((2, 3, 2))


def test_theta_holds_the_posteriors_blocks_then_the_priors_then_the_likelihoods():
    model = Model(NET, ScaleMixturePrior(learn=True), GaussianLikelihood(0.3, learn=True))
    family = Reparameterised(model, FullRank())
    size = NET.layout.size
    assert dict(family.layout.blocks) == {
        "mu": (size,), "rho": (size,), "lower": (size * (size - 1) // 2,),
        "prior_mixture": (3,), "log_noise": (2,),
    }  # fmt: skip
    assert [name for name, _ in family.layout.blocks][-2:] == ["prior_mixture", "log_noise"]
    theta = family.init(np.random.default_rng(0), np.float32)
    assert theta.dtype == np.float32
    blocks = family.layout.views(theta)
    assert np.allclose(blocks["log_noise"], np.log(0.3))
    assert model.prior.values(blocks) == pytest.approx((0.2, 1.0, 0.1), rel=1e-5)


@pytest.mark.parametrize("which", PAIRS, ids=str)
def test_log_likelihood_and_weights_are_those_of_the_model(which):
    rng = np.random.default_rng(0)
    case = draw_case(build_estimator(which), rng)
    family, theta = case.estimator, case.theta
    eps = family.draw_weights(rng, 3)
    w = family.weights(theta, eps).copy()
    params = family.layout.views(theta)
    expected = family.model.evaluate(w, params, case.x, case.y, Buffers()).log_likelihood
    for buffers in ([], [Buffers()]):
        log_likelihood = family.log_likelihood(theta, eps, case.x, case.y, *buffers)
        assert np.array_equal(log_likelihood, expected)
    assert w.shape == (3, family.model.layout.size)


@pytest.mark.parametrize("which", PAIRS, ids=str)
def test_all_noise_is_drawn_from_the_generator_that_was_passed(which):
    built = build_estimator(which)
    first = built.draw(np.random.default_rng(3), 4, 2, np.float32)
    assert first.dtype == np.float32
    assert first.shape == built.noise_shape(4, 2)
    assert len(first) == 4
    refilled = np.full_like(first, np.nan)
    built.fill(np.random.default_rng(3), refilled)  # as training does, step by step
    assert np.array_equal(first, refilled)


@pytest.mark.equation("K1")
@pytest.mark.parametrize("which", PAIRS, ids=str)
def test_the_noise_of_weights_is_one_normal_number_for_each_of_them_drawn_in_blocks(which):
    built = build_estimator(which)
    size = built.posterior.noise_size(built.model.layout.size)
    noise = built.draw_weights(np.random.default_rng(0), 5, np.float32)
    assert noise.shape == (5, size)
    assert noise.dtype == np.float32
    for samples in (1, 4, 5):
        cut = built.noise_blocks(np.random.default_rng(0), samples, 2, np.float32)
        drawn = [block.copy() for block in cut]
        assert [len(block) for block in drawn] == [2] * (samples // 2) + [1] * (samples % 2)
        assert np.array_equal(np.concatenate(drawn), noise[:samples])
    many = built.draw_weights(np.random.default_rng(1), 20_000).ravel()
    if size:
        assert abs(many.mean()) < 4 / np.sqrt(many.size)
        assert abs(many.var() - 1) < 4 * np.sqrt(2 / many.size)


def test_every_sign_of_flipout_is_fair_the_last_one_too():
    built, rng = Flipout(Model(MLP((2, 1)))), np.random.default_rng(0)
    signs = np.array([built.draw(rng, 1, 3)[0, 3:] for _ in range(400)])  # 4 a row
    assert (np.abs(signs) == 1).all()
    assert np.abs(signs.mean(axis=0)).max() < 4 / np.sqrt(400)


def test_gates_are_those_of_the_network_and_the_signs_of_the_weights_under_laplace():
    estimator, x, _ = linear_problem()
    theta = np.array([1.0, -2.0, 0.5, -9.0, -9.0, -9.0])
    noise = np.zeros((2, 3))
    assert estimator.gates(theta, noise, x).size == 0
    laplace = Reparameterised(Model(MLP((2, 1)), LaplacePrior()))
    assert laplace.gates(theta, noise, x).tolist() == [True, False, True] * 2


@pytest.mark.equation("D21")
def test_the_gates_of_local_reparameterisation_are_those_of_the_drawn_outputs():
    case = draw_case(
        LocalReparameterisation(Model(MLP((2, 6, 1)))), np.random.default_rng(0), rows=4
    )
    blocks, x = case.estimator.layout.views(case.theta), case.x
    (mean, mean_bias), _ = case.estimator.pairs(blocks["mu"])
    (sigma, sigma_bias), _ = case.estimator.pairs(np.log1p(np.exp(blocks["rho"])))
    zeta = 20.0 * case.noise  # the drawn part of an output is of the size of its mean, or larger
    drawn = np.sqrt(x**2 @ sigma**2 + sigma_bias**2) * zeta[:, : 4 * 6].reshape(-1, 4, 6)
    expected = x @ mean + mean_bias + drawn > 0
    gates = case.estimator.gates(case.theta, zeta, x)
    assert np.array_equal(gates, expected.ravel())
    assert not np.array_equal(gates, case.estimator.gates(case.theta, 100.0 * zeta, x))


@pytest.mark.equation("D30")
def test_only_exponentials_of_the_likelihood_are_biased_on_minibatches():
    assert all(is_linear(o) for o in (FreeEnergy(0.3), MLE(), MAP(), *TERMS.values()))
    assert not any(is_linear(o) for o in (Renyi(0.5), Renyi(0.0), EUBO()))


def test_a_network_whose_last_width_does_not_fit_the_likelihood_is_refused():
    with pytest.raises(ValueError, match=r"two network outputs for each target.*got 3 outputs"):
        Model(MLP((2, 3)), likelihood=HeteroscedasticLikelihood())
    assert Model(MLP((2, 4)), likelihood=HeteroscedasticLikelihood()).outputs == 2
    assert Model(MLP((2, 4)), likelihood=PoissonLikelihood()).outputs == 4


MODEL = Model(NET)
REFUSED = [  # beside what `test_matrix` shows of all combinations of names
    (ValueError, lambda: Reparameterised(MODEL, PointMass(), TERMS["posterior"]), "so Term"),
    (ValueError, lambda: Reparameterised(MODEL, FullRank(limit_gib=1e-9)), "the limit is 1e-09"),
    (ValueError, lambda: StickingTheLanding(MODEL, MeanField(), TERMS["prior"]), "got Term"),
    (
        ValueError,
        lambda: DoublyReparameterised(MODEL, MeanField(), Renyi(0.0), antithetic=True),
        "needs independent samples",
    ),
    (TypeError, lambda: Reparameterised(NET), "model must be an object of type Model"),
    (TypeError, lambda: Reparameterised(MODEL, MeanField), "posterior must be an object such as"),
    (
        TypeError,
        lambda: Reparameterised(MODEL, MeanField(), FreeEnergy),
        "objective must be an object such as FreeEnergy",
    ),
    (
        TypeError,
        lambda: Reparameterised(MODEL, antithetic=1),
        "antithetic must be True or False; got 1",
    ),
]


@pytest.mark.parametrize(("error", "make", "message"), REFUSED)
def test_what_does_not_go_together_and_what_is_no_such_part_is_refused(error, make, message):
    with pytest.raises(error, match=message):
        make()


STEPS = (Reparameterised, ClosedFormKL, StickingTheLanding, Flipout, LocalReparameterisation)
NO_STEP = {  # what it is given in place of x, noise, theta or y
    "x of one axis": ("x", lambda x: x[0]),
    "x of three axes": ("x", lambda x: x[None]),
    "x of each sample": ("x", lambda x: np.stack([x, x])),
    "one column of x": ("x", lambda x: x[:, :1]),
    "a list": ("x", lambda x: x.tolist()),
    "a frame": ("x", lambda x: pd.DataFrame(x)),
    "a number of samples": ("noise", lambda noise: 2),
    "noise of one axis": ("noise", lambda noise: noise[0]),
    "noise for other weights": ("noise", lambda noise: noise[:, :-1]),
    "theta of two axes": ("theta", lambda theta: theta[None]),
    "y as a list": ("y", lambda y: y.tolist()),
    "one weight": ("sample_weight", lambda weights: weights[:1]),
    "weights as a list": ("sample_weight", lambda weights: weights.tolist()),
    **{
        f"{name} of {dtype}": (name, lambda array, dtype=dtype: array.astype("i8").astype(dtype))
        for name in ("theta", "noise", "x", "y", "sample_weight")
        for dtype in ("U3", "M8[s]", "m8[s]", "O", "F")
        if (name, dtype) != ("theta", "F")
    },
    "whole numbers for theta": ("theta", lambda theta: theta.astype(int)),
    "halves for theta": ("theta", lambda theta: theta.astype(np.float16)),
}


@pytest.mark.parametrize("change", NO_STEP)
@pytest.mark.parametrize("make", STEPS, ids=lambda make: make.__name__)
def test_a_step_says_which_shapes_it_takes(make, change):
    step, rng = make(Model(NET, GaussianPrior(), GaussianLikelihood())), np.random.default_rng(0)
    x, y = rng.standard_normal((2, 5, 2))
    arguments = {"theta": step.init(rng), "noise": step.draw(rng, 2, 5), "x": x, "y": y}
    arguments["sample_weight"] = np.ones(5)
    assert np.isfinite(step.value_and_grad(**arguments)[0])
    name, changed = NO_STEP[change]
    arguments[name] = changed(arguments[name])
    shapes = r"theta \(34,\), noise \(samples, .*\), x \(rows, 2\), y \(rows, 2\) and .*; got "
    with pytest.raises(ValueError, match=f"arrays must have shapes {shapes}.*{name}: "):
        step.value_and_grad(**arguments)


@pytest.mark.parametrize("weight", ["0.5", None, [1.0], np.datetime64(1, "s"), np.timedelta64(1)])
def test_a_share_of_the_kl_term_that_is_no_number_is_refused(weight):
    step, rng = Reparameterised(Model(NET)), np.random.default_rng(0)
    x, y = rng.standard_normal((2, 5, 2))
    theta, noise = step.init(rng), step.draw(rng, 2)
    with pytest.raises(TypeError, match="kl_weight must be a number; got"):
        step.value_and_grad(theta, noise, x, y, weight)
