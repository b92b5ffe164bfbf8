"""purity: whatever the buffers held before, models and estimators give the same bits (contract 6).

The parts alone are in `tests/parts/test_purity.py`, what is checked of each in `purity.CHECKS`.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import JOINTS, PAIRS, changed, examples, relative_error, seeds
from purity import Pass, bits, faults, sealed, soil

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, MeanField, StudentTPrior
from bbb_numpy.gradients.catalogue import CHECKED_PRIORS
from bbb_numpy.gradients.matrix import SURROGATES, estimator, problem
from bbb_numpy.gradients.reparameterised import Reparameterised
from bbb_numpy.model.joint import Model
from bbb_numpy.model.log_joint import CountedRows, LogJoint
from bbb_numpy.model.objectives import MAP
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.numeric.layout import Layout
from bbb_numpy.parts import network
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_numpy.parts.posteriors import PointMass
from bbb_studies.replicated import ReplicatedModel, replicated
from tests.gradients.test_matrix import small_cases
from tests.parts.test_purity import LooksIntoTheBuffers, blank, scales_the_weights

DTYPES = st.sampled_from([np.float32, np.float64])


def cast(case, dtype):
    """The same problem in another dtype."""
    arrays = (np.asarray(a, dtype) for a in (case.theta, case.noise, case.x, case.y))
    return case._replace(**dict(zip(("theta", "noise", "x", "y"), arrays, strict=True)))


# --- models


def model_pass(model, w, params, x, y, seed=0):
    """Both log densities, and both ways back."""
    c_prior, c_likelihood = np.random.default_rng(seed).standard_normal((2, len(w))).astype(w.dtype)

    def forward(buffers):
        found = model.evaluate(w, params, x, y, buffers)
        joint = model.forward(w, params, x, y, buffers)
        if isinstance(model, ReplicatedModel):  # which only trains
            return found, joint
        return found, joint, model.predict(w, x, buffers)

    def backward(saved, buffers):
        alone, both = blank(params), blank(params)
        d_alone = model.likelihood_vjp(saved[0], c_likelihood, alone, buffers)
        d_both = model.vjp(saved[1], c_prior, c_likelihood, both, buffers)
        return d_alone, alone, d_both, both

    return Pass((w, params, x, y, c_prior, c_likelihood), forward, backward)


def joint_pass(which, seed, samples=2, rows=3, dtype=np.float64, counted=False):
    rng = np.random.default_rng(seed)
    case = cast(problem(estimator(which), rng, samples, rows), dtype)
    model, params = case.estimator.model, case.estimator.layout.views(case.theta)
    params = {name: params[name] for name, _ in model.learned()}
    if counted and not model.likelihood.blocks(model.outputs):
        parts = (model.network, model.prior, model.likelihood)
        model = CountedRows(*parts, counts=np.arange(1, rows + 1).astype(dtype))
    w = (0.5 * rng.standard_normal((samples, model.layout.size))).astype(dtype)
    return model_pass(model, w, params, case.x, case.y, seed)


@pytest.mark.parametrize("which", JOINTS, ids=lambda which: f"{which.prior} / {which.likelihood}")
@examples(5)
@given(data=st.data())
def test_every_model_is_pure(which, data):
    drawn = st.tuples(seeds, st.integers(1, 3), st.integers(0, 3), DTYPES, st.booleans())
    other = data.draw(st.sampled_from(JOINTS))
    assert faults(joint_pass(which, *data.draw(drawn)), joint_pass(other, *data.draw(drawn))) == {}


REPLICATED = {
    **{name: (prior,) * 3 for name, prior in CHECKED_PRIORS.items()},
    "gaussian, three scales": tuple(GaussianPrior(scale) for scale in (0.3, 0.7, 1.5)),
    "student-t, three scales": tuple(StudentTPrior(scale, 3.0) for scale in (0.3, 0.7, 1.5)),
}


def replicated_estimator(priors, point=False, learn=True):
    likelihood = GaussianLikelihood(0.8, learn and not point)
    models = [Model(MLP((2, 3, 2), "tanh"), prior, likelihood) for prior in priors]
    parts = (PointMass(), MAP()) if point else (MeanField(0.3, -0.5, 0.5),)
    return replicated([Reparameterised(model, *parts) for model in models])


def replicated_problem(which, seed, samples, rows, point=False):
    built = replicated_estimator(REPLICATED[which], point)
    rng, count = np.random.default_rng(seed), len(REPLICATED[which])
    theta = 0.5 * rng.standard_normal(built.layout.size)
    noise = built.draw(rng, samples)
    x, y = rng.standard_normal((2, count, rows, 2))
    return built, theta, noise, x, y


def replicated_pass(which, seed, samples=2, rows=3):
    built, theta, _, x, y = replicated_problem(which, seed, samples, rows)
    w = np.random.default_rng(seed).standard_normal((samples, built.model.layout.size))
    views = built.layout.views(theta)
    params = {name: views[name] for name, _ in built.model.learned()}
    return model_pass(built.model, w, params, x, y, seed)


@pytest.mark.equation("D40")
@pytest.mark.parametrize("which", REPLICATED)
@examples(10)
@given(data=st.data())
def test_replicates_are_pure(which, data):
    drawn = st.tuples(seeds, st.integers(1, 3), st.integers(0, 3))
    assert faults(*(replicated_pass(which, *data.draw(drawn)) for _ in range(2))) == {}


@pytest.mark.equation("R5", "R6", "R7", "R8", "D16", "D17", "D39", "D42", "K19")
@pytest.mark.parametrize("prior", CHECKED_PRIORS)
def test_a_model_pulls_back_in_buffers_that_saw_other_weights_as_in_its_own(prior):
    model = Model(MLP((2, 3, 1)), CHECKED_PRIORS[prior])
    rng = np.random.default_rng(0)
    params = Layout(model.prior.blocks()).views(model.prior.init(np.float64))
    x, y, w = rng.standard_normal((4, 2)), rng.standard_normal((4, 1)), []
    for size in (1.0, 30.0):
        w.append(size * rng.standard_normal((2, model.layout.size)))
    found, ones = [], np.ones(2)
    for same in (True, False):
        here, there = Buffers(), Buffers()
        joint = model.forward(w[0], params, x, y, here)
        model.forward(w[1], params, x, y, there)
        d_params = blank(params)
        d_w = model.vjp(joint, ones, 0.0 * ones, d_params, here if same else there)
        found.append((d_w, d_params))
    assert bits(found[0]) == bits(found[1])


# --- estimators: forward and backward in one call


def estimator_pass(case):
    """All that an estimator computes; complex theta too, as a complex step has it."""
    built, at = case.estimator, (case.noise, case.x, case.y, case.kl_weight)
    eps = built.draw_weights(np.random.default_rng(0), 2, case.theta.real.dtype)

    def forward(buffers):
        found = (
            built.value_and_grad(case.theta, *at, buffers),
            built.log_likelihood(case.theta, eps, case.x, case.y, buffers),
            built.weights(case.theta, eps, buffers),
        )
        if isinstance(built, SURROGATES):
            found += (built.surrogate(case.theta, case.theta, *at),)
        return found

    return Pass((case.theta, *at, eps), forward)


@examples(150, derandomize=True, database=None)
@given(data=st.data(), pair=st.tuples(st.sampled_from(PAIRS), st.sampled_from(PAIRS)))
def test_every_estimator_is_pure_beside_every_other(data, pair):
    passes = []
    for which in pair:
        case, dtype = data.draw(small_cases(which)), data.draw(DTYPES)
        case = cast(case, dtype)
        if dtype == np.float64 and data.draw(st.booleans()):
            case = case._replace(theta=case.theta + 1e-30j)
        passes.append(estimator_pass(case))
    assert faults(*passes) == {}


@pytest.mark.parametrize("which", PAIRS, ids=str)
def test_every_number_of_the_gradient_is_written_and_nothing_that_is_passed_in(which):
    case, buffers = problem(estimator(which), np.random.default_rng(1)), Buffers()
    expected = bits(case.estimator.value_and_grad(*case[1:6]))
    with sealed(case[1:5]):
        assert bits(case.estimator.value_and_grad(*case[1:6], buffers)) == expected
        memory = list(buffers._arrays)
        assert bits(case.estimator.value_and_grad(*case[1:6], soil(buffers))) == expected
    # the second turn has found the memory of the first, and no more
    assert [id(array) for array in buffers._arrays] == [id(array) for array in memory]


@pytest.mark.equation("D40")
@pytest.mark.parametrize("which", REPLICATED)
def test_replicates_trained_together_are_pure(which):
    passes = []
    for samples, rows in ((2, 3), (1, 4)):
        built, *at = replicated_problem(which, samples, samples, rows, "learned" not in which)

        def forward(buffers, built=built, at=at):
            return built.value_and_grad(*at, 0.7, buffers)

        passes.append(Pass(at, forward))
    assert faults(*passes) == {}


# --- the target of the samplers, which owns its buffers


@pytest.mark.equation("D33")
@pytest.mark.parametrize("which", JOINTS, ids=lambda which: f"{which.prior} / {which.likelihood}")
def test_the_log_joint_gives_the_same_bits_whatever_was_asked_before(which):
    rng = np.random.default_rng(0)
    case = problem(estimator(which), rng, rows=4)
    repeated = (np.tile(part, (3, 1)) for part in (case.x, case.y))  # CountedRows, where it may
    for x, y in ((case.x, case.y), tuple(repeated)):
        target = LogJoint(case.estimator.model, x, y)
        asked = [0.5 * rng.standard_normal((chains, target.layout.size)) for chains in (3, 1, 3)]
        asked += [asked[0].astype(complex) + 1e-30j, asked[1].astype(np.float32)]
        expected = [bits(replace(target)(position)) for position in asked]
        with sealed((x, y, asked)):
            first = [target(position) for position in asked]
            for _ in range(2):
                again = [target(position) for position in reversed(asked)][::-1]
                assert [bits(found) for found in again] == expected
            assert [bits(found) for found in first] == expected  # fresh arrays, so they stay


# --- planted errors


class LeavesItsTape(Model):
    """As the models once were: the backward pass finds the tape in the buffers, not in `joint`."""

    left: dict = {}  # noqa: RUF012

    def evaluate(self, w, params, x, y, buffers):
        found = super().evaluate(w, params, x, y, buffers)
        self.left[id(buffers)] = found.tape
        return found

    def likelihood_vjp(self, found, d_log_likelihood, d_params, buffers):
        found = found._replace(tape=self.left.get(id(buffers), found.tape))
        return super().likelihood_vjp(found, d_log_likelihood, d_params, buffers)


def with_model(which, make, seed):
    """The pass of a joint density whose model is of another class or has another prior."""
    case = problem(estimator(which), np.random.default_rng(seed), 2, 3)
    model = make(case.estimator.model)
    views = case.estimator.layout.views(case.theta)
    params = {name: views[name] for name, _ in model.learned()}
    w = 0.5 * np.random.default_rng(seed).standard_normal((2, model.layout.size))
    return model_pass(model, w, params, case.x, case.y, seed)


def planted_tape(model):
    return LeavesItsTape(model.network, model.prior, model.likelihood)


def planted_prior(model):
    return replace(model, prior=changed(GaussianPrior(), add_vjp=scales_the_weights))


GAUSSIAN = next(w for w in JOINTS if (w.prior, w.likelihood) == ("gaussian", "gaussian"))


@pytest.mark.parametrize(
    ("make", "checks"),
    [
        (lambda model: model, set()),
        (planted_tape, {"is_not_disturbed_in_between", "can_be_pulled_back_in_other_buffers"}),
        (planted_prior, {"writes_to_nothing_that_was_given", "can_be_pulled_back_twice"}),
    ],
    ids=["right", "tape in the buffers", "weights overwritten"],
)
def test_a_planted_model_that_hides_something_is_seen(make, checks):
    found = faults(*(with_model(GAUSSIAN, make, seed) for seed in (0, 1)))
    assert checks <= set(found)
    assert bool(checks) is bool(found)


def test_a_planted_prior_that_reads_what_forward_left_is_far_off_in_other_buffers():
    # the last array that a forward pass takes is the prior's: its own, if nobody came in between
    right, wrong = (
        Model(MLP((2, 3, 1)), prior) for prior in (ScaleMixturePrior(), LooksIntoTheBuffers())
    )
    rng, ones = np.random.default_rng(0), np.ones(2)
    w, x, y = rng.standard_normal((2, 13)), rng.standard_normal((4, 2)), np.zeros((4, 1))
    found = []
    for model in (right, wrong):
        buffers, d_w = Buffers(), np.zeros_like(w)
        joint = model.forward(w, {}, x, y, buffers)
        model.prior.add_vjp(joint.prior, ones, d_w, {})  # nobody did
        found.append(d_w)
        model.forward(100.0 * w, {}, x, y, buffers)
        later = np.zeros_like(w)
        model.prior.add_vjp(joint.prior, ones, later, {})
        assert (relative_error(later, d_w) < 1e-15) is (model is right)
    assert np.array_equal(*found)


def test_a_planted_network_that_overwrites_its_tape_is_seen_in_every_model(monkeypatch):
    right = network.vjp

    def overwrites(net, tape, d_f, buffers):
        d_w = right(net, tape, d_f, buffers)
        tape.slopes[0][...] *= 0.5
        return d_w

    monkeypatch.setattr(network, "vjp", overwrites)
    for which in JOINTS:
        found = faults(joint_pass(which, 0), joint_pass(which, 1))
        assert "can_be_pulled_back_twice" in found, which


class RewindsWhatIsNotItsOwn(Reparameterised):
    """Begins every step as if the buffers were its own."""

    def value_and_grad(self, theta, noise, x, y, kl_weight=1.0, buffers=None):
        buffers = Buffers() if buffers is None else buffers.rewind()
        return super().value_and_grad(theta, noise, x, y, kl_weight, buffers)


class AddsToItsGradient(MeanField):
    """Takes the uninitialised gradient for zeros."""

    def pull_back(self, sample, d_w, d_log_q, d_theta):
        got = blank(d_theta)
        super().pull_back(sample, d_w, d_log_q, got)
        for name in ("mu", "rho"):
            d_theta[name] += got[name]


class StandardisesItsRows(Reparameterised):
    """Centres the rows that it was given, in place."""

    def value_and_grad(self, theta, noise, x, y, kl_weight=1.0, buffers=None):
        x -= x.mean(axis=0)
        return super().value_and_grad(theta, noise, x, y, kl_weight, buffers)


@pytest.mark.parametrize(
    ("make", "check"),
    [
        (lambda e: Reparameterised(e.model, e.posterior), None),
        (lambda e: RewindsWhatIsNotItsOwn(e.model, e.posterior), "is_not_disturbed_in_between"),
        (
            lambda e: Reparameterised(e.model, AddsToItsGradient(0.3, -0.5, 0.5)),
            "does_not_see_who_was_there_before",
        ),
        (
            lambda e: StandardisesItsRows(e.model, e.posterior),
            "writes_to_nothing_that_was_given",
        ),
    ],
    ids=["right", "rewinds", "adds", "centres"],
)
def test_a_planted_estimator_that_is_not_pure_is_seen(make, check):
    which = next(w for w in PAIRS if w.posterior == "mean-field" and w.prior == "mixture")
    passes = []
    for seed in (0, 1):
        case = problem(estimator(which), np.random.default_rng(seed), rows=3)
        passes.append(estimator_pass(case._replace(estimator=make(case.estimator))))
    found = faults(*passes)
    assert (check in found) if check else (found == {})
