"""replicates: training together is training alone, bit for bit, and mixed-up replicates show."""

import numpy as np
import pytest

from bbb_numpy import (
    MLP,
    SGD,
    Adam,
    Cosine,
    GaussianLikelihood,
    GaussianPrior,
    MeanField,
    Model,
    Momentum,
    NonFiniteError,
    Reparameterised,
)
from bbb_numpy.model.kl_weights import LinearWarmUp, geometric_kl_weights
from bbb_numpy.model.objectives import MAP, FreeEnergy, Renyi, free_energy
from bbb_numpy.parts.likelihoods import HeteroscedasticLikelihood
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_numpy.parts.posteriors import PointMass
from bbb_numpy.parts.priors import LaplacePrior, LayerwiseGaussianPrior
from bbb_numpy.training import EarlyStopping, Recipe, fit, start
from bbb_studies import replicates
from bbb_studies.replicated import replicated
from bbb_studies.replicates import fit_replicates, stack
from exactgrad import prove

R, ROWS = 3, 21
LEARNED = GaussianLikelihood(0.3, learn=True)
WIDE = MeanField(0.3, -0.5, 0.5)
PRIORS = (GaussianPrior(0.7),) * R
OPTIMIZER = Adam(1e-2, schedule=Cosine())


def estimators(
    sizes=(4, 12, 1),
    activation="relu",
    priors=PRIORS,
    likelihood=LEARNED,
    posterior=WIDE,
    objective=free_energy,
    antithetic=False,
):
    network = MLP(sizes, activation)
    return [
        Reparameterised(Model(network, prior, likelihood), posterior, objective, antithetic)
        for prior in priors
    ]


def data(built):
    """Rows of each replicate."""
    rng, sizes = np.random.default_rng(5), built[0].model.network.sizes
    xs = rng.standard_normal((len(built), ROWS, sizes[0]))
    return xs, np.sin(xs[..., :1]) + 0.1 * rng.standard_normal((*xs.shape[:2], sizes[-1]))


def both(built, dtype=np.float64, optimizer=OPTIMIZER, **options):
    """Every replicate trained alone, and all of them together, in two calls each."""
    xs, ys = data(built)
    out = []
    for together in (False, True):
        rngs = [np.random.default_rng(10 + r) for r in range(len(built))]
        states = [start(e, g, optimizer, dtype) for e, g in zip(built, rngs, strict=True)]
        for epochs in (2, 1):
            recipe = Recipe(optimizer, epochs=epochs, batch_size=8, **options)
            if together:
                states = fit_replicates(built, states, xs, ys, recipe, rngs=rngs)
            else:
                parts = zip(built, states, xs, ys, rngs, strict=True)
                states = [fit(e, t, x, y, recipe, rng=g) for e, t, x, y, g in parts]
        out.append(states)
    return out


def assert_same(alone, together, ulps=0.0):
    for a, b in zip(alone, together, strict=True):
        eps = np.finfo(a.theta.dtype).eps
        np.testing.assert_allclose(b.theta, a.theta, rtol=0, atol=ulps * eps)
        assert b.theta.dtype == a.theta.dtype
        assert b.optimizer_state.steps == a.optimizer_state.steps
        for name, array in a.optimizer_state.arrays.items():
            size = np.abs(array).max()
            found = b.optimizer_state.arrays[name]
            np.testing.assert_allclose(found, array, rtol=0, atol=10 * ulps * eps * size)
        assert len(b.history) == len(a.history)
        for ours, theirs in zip(b.history, a.history, strict=True):
            # Sums over S of numbers of about this size, in another order
            size = abs(theirs.nll) + abs(theirs.kl)
            np.testing.assert_allclose(ours[:3], theirs[:3], rtol=0, atol=20 * eps * size)
            assert ours.learning_rate == theirs.learning_rate
    assert not np.array_equal(alone[0].theta, alone[1].theta)


@pytest.mark.parametrize(("dtype", "samples"), [(np.float64, 2), (np.float32, 1), (np.float32, 10)])
@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"likelihood": GaussianLikelihood(0.3)},
        {"sizes": (1, 40, 30, 2), "activation": "tanh"},
        {"sizes": (3, 1)},
        {"posterior": MeanField(0.3, -1.0, 3.0), "objective": FreeEnergy(0.5)},
        {"priors": (LaplacePrior(0.4),) * R},
        {"priors": (LayerwiseGaussianPrior((1.0, 0.3)),) * R},
        {"priors": tuple(LayerwiseGaussianPrior((1.0, s)) for s in (0.1, 0.3, 1.0))},
        {"posterior": PointMass(), "objective": MAP()},
    ],
    ids=str,
)
def test_training_together_is_training_alone_bit_for_bit(parts, samples, dtype):
    assert_same(*both(estimators(**parts), dtype, samples=samples))


@pytest.mark.parametrize(
    "options",
    [
        {"optimizer": SGD(1e-3)},
        {"optimizer": Momentum(1e-3)},
        {"shuffle": False},
        {"warm_up": LinearWarmUp(1.0), "kl_weights": geometric_kl_weights},
    ],
    ids=["SGD", "momentum", "not shuffled", "weights of the KL term"],
)
def test_every_option_of_training_means_the_same(options):
    assert_same(*both(estimators(), samples=2, **options))


@pytest.mark.parametrize(("dtype", "samples"), [(np.float64, 1), (np.float32, 10)])
@pytest.mark.parametrize(
    "priors",
    [
        tuple(GaussianPrior(scale) for scale in (0.2, 0.7, 2.0)),
        tuple(ScaleMixturePrior(0.4, scale, 0.1) for scale in (0.4, 0.7, 1.0)),
        (ScaleMixturePrior(0.4, 1.0, 0.1, learn=True),) * R,
    ],
    ids=str,
)
def test_a_priors_own_numbers_cost_at_most_rounding(priors, samples, dtype):
    # nine steps of one rounding more or less each; measured: below 1
    assert_same(*both(estimators(priors=priors), dtype, samples=samples), ulps=16)


@pytest.mark.equation("D40", "D44")
@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize("samples", [1, 2])
def test_the_gradient_of_the_sum_over_replicates_is_proved(samples, learn):
    priors = None if learn else tuple(GaussianPrior(scale) for scale in (0.5, 1.0, 2.0))
    priors = priors or (GaussianPrior(0.7, learn=learn),) * R
    built = estimators((2, 3, 2), "tanh", priors, GaussianLikelihood(0.8, learn=learn))
    together, rng = replicated(built), np.random.default_rng(3)
    theta = stack(built[0].layout, [one.init(rng) for one in built])
    given = [rng.standard_normal((samples, R * built[0].model.layout.size))]
    given += list(rng.standard_normal((2, R, 4, 2)))

    def summed(theta, *given):
        value, grad, _ = together.value_and_grad(theta, *given)
        return value.sum(), grad

    proof = prove(summed, theta, *given, 0.7, coordinate=together.coordinate)
    assert proof.proved, proof


def begun(built):
    rngs = [np.random.default_rng(r) for r in range(R)]
    return [start(one, rng, Adam()) for one, rng in zip(built, rngs, strict=True)], rngs


def test_a_replicate_that_diverges_is_named_and_its_last_finite_state_kept():
    built = estimators(likelihood=GaussianLikelihood(1.0))
    (states, rngs), (xs, ys) = begun(built), data(built)
    ys[1] *= 1e170  # squares overflow
    said = r"replicate 1 of these: .* inf.* in epoch 0, step 0"
    with pytest.raises(NonFiniteError, match=said) as caught:
        fit_replicates(built, states, xs, ys, Recipe(epochs=2), rngs=rngs)
    np.testing.assert_array_equal(caught.value.training.theta, states[1].theta)


def test_ctrl_c_reaches_the_caller(monkeypatch, interrupted):
    """Half-trained replicates are no result."""
    built = estimators()
    states, rngs = begun(built)
    monkeypatch.setattr(replicates, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fit_replicates(built, states, *data(built), rngs=rngs)


@pytest.mark.parametrize("recipe", [Recipe(early_stopping=EarlyStopping()), Recipe(Adam(clip=9.0))])
def test_what_needs_a_fit_for_each_is_refused(recipe):
    built = estimators()
    states, rngs = begun(built)
    with pytest.raises(ValueError, match=r"needs a training\.fit for each"):
        fit_replicates(built, states, *data(built), recipe, rngs=rngs)


MIXED = (GaussianPrior(0.7), GaussianPrior(0.7, learn=True), GaussianPrior(0.7))


@pytest.mark.parametrize(
    "built",
    [
        estimators(objective=Renyi(0.5)),
        estimators((2, 3, 2), likelihood=HeteroscedasticLikelihood()),
        estimators(priors=MIXED),
        estimators(priors=(LaplacePrior(1.0), LaplacePrior(2.0))),  # it learns its scale
        estimators(priors=(LaplacePrior(), GaussianPrior())),
        estimators()[:2] + estimators((4, 13, 1))[:1],
        estimators()[:2] + estimators(posterior=MeanField())[:1],
    ],
)
def test_what_cannot_be_replicated_is_refused_with_the_reason(built):
    with pytest.raises(ValueError, match=r"replicates must have .* one at a time; got \[Reparam"):
        replicated(built)
