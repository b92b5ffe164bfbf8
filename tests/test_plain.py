"""The report on one screen, and the fast path held to it."""

import doctest
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from bbb_numpy import MLP, GaussianLikelihood, GaussianPrior, MeanField, Model, Reparameterised
from bbb_numpy import plain as right
from bbb_numpy.evaluation import predictive
from bbb_numpy.numeric.elementary import sigmoid, softplus
from bbb_numpy.training import Recipe, fit, start
from bbb_numpy.training.optimizers import SGD
from exactgrad import check_gradient

SOURCE = Path(right.__file__).read_text(encoding="utf-8")
BAR = 1e-13
ROWS = st.integers(0, 5)


class Case(NamedTuple):
    """All that plain's functions take; `problem` in the order of `plain.value_and_grad`."""

    net: tuple[int, ...]
    theta: np.ndarray
    eps: np.ndarray
    x: np.ndarray
    y: np.ndarray
    prior: float
    noise: float
    pi: float

    @property
    def estimator(self) -> Reparameterised:
        """The fast path for the same model."""
        prior, likelihood = GaussianPrior(self.prior), GaussianLikelihood(self.noise)
        return Reparameterised(Model(MLP(self.net), prior, likelihood), MeanField())


@st.composite
def cases(draw, rows=ROWS, rho=(-30.0, 15.0), scales=(-2.0, 2.0)) -> Case:
    """Any depth, width, S, B, K, deviations and share; rho anywhere between `rho`."""
    hidden = draw(st.lists(st.integers(1, 5), max_size=3))
    net = (draw(st.integers(1, 4)), *hidden, draw(st.integers(1, 3)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = MLP(net).layout.size
    low = draw(st.floats(*rho))
    raw = rng.uniform(low, draw(st.floats(low, rho[1])), size)
    prior, noise = (10.0 ** draw(st.floats(*scales)) for _ in range(2))
    count = draw(rows)
    return Case(
        net,
        np.concatenate([rng.standard_normal(size), raw]),
        rng.standard_normal((draw(st.integers(1, 4)), size)),
        rng.standard_normal((count, net[0])),
        rng.standard_normal((count, net[-1])),
        prior,
        noise,
        draw(st.floats(1e-9, 1.0)),
    )


def sizes_of_the_terms(case: Case) -> tuple[float, np.ndarray]:
    """Return value and gradient with every term of every sum taken as positive.

    Two right programs that add the same terms in another order, or fuse a product with a sum,
    differ by at most (about the number of roundings on the way) x 1.1e-16 of this, on any
    processor: here under 100 roundings, 1e-14. What is left after the terms have cancelled, the
    largest entry of the gradient say, bounds nothing: a single row and a single weight may cancel
    to any small number. Gates are those of the true pass: a unit that is off contributes nothing.
    """
    net, theta, eps, x, y, prior, noise, pi = case
    mu, rho = np.split(theta, 2)
    sigma, slope = softplus(rho), sigmoid(rho)
    _, tape = right.forward(net, mu + sigma * eps, x)
    w = np.abs(mu) + sigma * np.abs(eps)
    f, positive = np.abs(x), []
    for (_, gate, _), (W, b) in zip(tape, right.unpack(net, w), strict=True):
        positive.append((f * gate, gate, W))
        f = (f * gate) @ W + b
    d_w = pi * w / prior**2 + right.vjp(positive, (np.abs(y) + f) / noise**2)
    d_rho = (pi / sigma + (d_w * np.abs(eps)).mean(axis=0)) * slope
    log_q = np.abs(np.log(sigma)) + right.LOG_2PI / 2 + eps**2 / 2
    log_prior = abs(np.log(prior)) + right.LOG_2PI / 2 + w**2 / (2 * prior**2)
    nll = (np.abs(y) + f) ** 2 / (2 * noise**2) + abs(np.log(noise)) + right.LOG_2PI / 2
    value = np.mean(pi * (log_q + log_prior).sum(axis=1) + nll.sum(axis=(1, 2)))
    return float(value), np.concatenate([d_w.mean(axis=0), d_rho])


def errors(case: Case) -> tuple[float, float]:
    """Return the largest error of the value and of the gradient, relative to their terms."""
    fast, exact = (
        case.estimator.value_and_grad(case.theta, case.eps, case.x, case.y, case.pi)[:2],
        right.value_and_grad(*case),
    )
    found = zip(fast, exact, sizes_of_the_terms(case), strict=True)
    value, grad = (float(np.max(np.abs(a - b) / size)) for a, b, size in found)
    return value, grad


@pytest.mark.equation("K3", "K4", "K5", "K10", "K15", "K18", "K31-K36")
@given(cases())
def test_the_fast_path_computes_what_plain_says(case: Case) -> None:
    value, grad = errors(case)
    assert value <= BAR
    assert grad <= BAR


@pytest.mark.equation("K2", "K9", "K13")
@given(cases(rows=st.just(0), rho=(-4.0, 4.0)))
def test_without_rows_plain_is_the_share_of_the_two_log_densities_at_the_weights(
    case: Case,
) -> None:
    mu, rho = case.theta[: case.theta.size // 2], case.theta[case.theta.size // 2 :]
    sigma = np.logaddexp(0.0, rho)
    w = mu + sigma * case.eps
    densities = norm.logpdf(w, mu, sigma), norm.logpdf(w, 0.0, case.prior)  # (S, P) each
    size = case.pi * np.mean(sum(np.abs(part).sum(axis=1) for part in densities))
    kl = case.pi * np.mean(np.subtract(*densities).sum(axis=1))
    assert right.value_and_grad(*case)[0] == pytest.approx(kl, rel=0, abs=1e-12 * size)


@pytest.mark.equation("K20", "K21", "K30", "K37", "K38", "K39", "K40", "K41", "K42")
@given(cases(rows=st.integers(0, 3)))
def test_the_gradient_of_plain_is_that_of_its_value(case: Case) -> None:
    def of_theta(theta: Any) -> Any:
        return right.value_and_grad(*case._replace(theta=theta))

    report = check_gradient(of_theta, case.theta)
    assert report.passed, str(report)


class Run(NamedTuple):
    """Twenty steps from `case.theta`."""

    case: Case
    epochs: int
    batch_size: int
    seed: int


def test_a_unit_at_exactly_zero_is_off() -> None:
    _, [_, (_, gate, _)] = right.forward((1, 3, 2), np.zeros((2, 14)), np.ones((4, 1)))
    assert not gate.any()


@st.composite
def runs(draw) -> Run:
    """Minibatches of any size, the last one ragged; deviations for which 20 steps stay finite."""
    steps, batch_size = draw(st.sampled_from([1, 2, 4, 5, 10, 20])), draw(st.integers(1, 3))
    rows = (steps - 1) * batch_size + draw(st.integers(1, batch_size))
    case = draw(cases(st.just(rows), rho=(-30.0, 0.0), scales=(-0.3, 0.5)))
    return Run(case, 20 // steps, batch_size, draw(st.integers(0, 2**32 - 1)))


def train_plainly(run: Run) -> np.ndarray:
    net, theta, eps, x, y, prior, noise, _ = run.case
    rng = np.random.default_rng(run.seed)
    return right.fit(
        *(net, theta, x, y, prior, noise),
        eta=1e-3, epochs=run.epochs, batch_size=run.batch_size, samples=len(eps), rng=rng,
    )  # fmt: skip


def train_fast(run: Run) -> np.ndarray:
    """Return theta after the same steps of `bbb_numpy.training`."""
    case, estimator, optimizer = run.case, run.case.estimator, SGD(1e-3)
    state = start(estimator, np.random.default_rng(0), optimizer, variational=case.theta)
    recipe = Recipe(optimizer, epochs=run.epochs, batch_size=run.batch_size, samples=len(case.eps))
    rng = np.random.default_rng(run.seed)
    return fit(estimator, state, case.x, case.y, recipe, rng=rng, progress=False).theta


def distance(run: Run) -> float:
    """Return the largest difference of the two thetas, relative to the largest of their block.

    What theta was before a step and what the step adds do not cancel to nothing in a whole block.
    """
    fast, exact = (theta.reshape(2, -1) for theta in (train_fast(run), train_plainly(run)))
    return float(np.max(np.abs(fast - exact).max(axis=1) / np.abs(exact).max(axis=1)))


@pytest.mark.equation("K1", "K43", "K44", "D6")
@given(runs())
def test_twenty_steps_of_training_end_at_the_theta_of_plain(run: Run) -> None:
    assert distance(run) <= BAR


def misprediction(case: Case, samples: int) -> float:
    """Return the largest difference of mean, epistemic and total deviation.

    Relative to the size of the functions whose mean and deviation they are.
    """
    net, theta, x, noise = case.net, case.theta, case.x, case.noise
    exact = right.predict(net, theta, x, noise, samples, np.random.default_rng(1))
    fast = predictive.predict(
        case.estimator, theta, x, rng=np.random.default_rng(1), samples=samples
    )
    mu, rho = np.abs(np.split(theta, 2))
    eps = np.random.default_rng(1).standard_normal((samples, mu.size))
    largest = right.forward(net, mu + softplus(rho) * np.abs(eps), np.abs(x))[0].max(axis=0)
    pairs = zip(exact, (fast.mean, fast.epistemic, fast.total), strict=True)
    return max(float(np.max(np.abs(a - b) / (largest + noise))) for a, b in pairs)


@pytest.mark.equation("D4")
@given(cases(rows=st.integers(1, 5), rho=(-30.0, 3.0)), st.integers(2, 20))
def test_predictions_are_those_of_plain(case: Case, samples: int) -> None:
    assert misprediction(case, samples) <= BAR


def test_the_first_theta_of_section_7_is_that_of_the_report() -> None:
    rng = np.random.default_rng(0)
    mu, rho = np.split(right.init((4, 100, 3), rng, right.SECTION_7), 2)
    assert mu.shape == (5 * 100 + 101 * 3,)
    assert abs(mu.std() - 0.1) < 0.01
    assert (np.abs(rho + 5) < 0.01).all()


def test_its_own_example_prints_what_it_says() -> None:
    assert doctest.testmod(right) == (0, 7)


@lru_cache
def example(start: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both sigma and the epistemic standard deviation at 0, 2, 4, 6 of the docstring's run.

    Sigma of all weights, before and after training.
    """
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (100, 1))
    y = x**2 + 0.3 * rng.standard_normal((100, 1))
    net = (1, 20, 1)
    first = right.init(net, rng, start)
    last = right.fit(net, first, x, y, 1.0, 0.3, 2e-3, 300, 10, 1, rng)
    _, epistemic, _ = right.predict(net, last, np.array([[0], [2], [4], [6]]), 0.3, 1000, rng)
    sigmas = [softplus(theta[theta.size // 2 :]) for theta in (first, last)]
    return *sigmas, epistemic[:, 0]


def without_data(rho: Any, epochs: int, eta: float = 2e-3) -> Any:
    """Sigma when descent follows the first term of K30 alone, an epoch a step."""
    for _ in range(epochs):
        rho = rho + eta / (1 + np.exp(-rho)) / np.logaddexp(0.0, rho)
    return np.logaddexp(0.0, rho)


@pytest.mark.equation("K30", "K44")
def test_a_weight_that_no_data_reach_follows_the_first_term_of_k30_and_no_exponential() -> None:
    """At x = 0 no weight of the first layer acts, and a wide prior does not pull."""
    rng = np.random.default_rng(0)
    zeros = np.zeros((3, 1))
    for rho, exponential in ((-2, 1.0947), (right.SECTION_7, 1.0055)):
        first = right.init((1, 20, 1), rng, rho)
        last = right.fit((1, 20, 1), first, zeros, zeros, 1e6, 0.3, 2e-3, 300, 3, 1, rng)
        before, after = (np.split(theta, 2)[1][:20] for theta in (first, last))
        assert np.allclose(softplus(after), without_data(before, 300), rtol=1e-6)
        too_large = softplus(before) * np.exp(2e-3 * 300) / softplus(after)
        assert np.allclose(too_large, exponential, rtol=5e-3)


@pytest.mark.equation("K44", "D4")
def test_the_band_of_its_example_widens_and_most_sigmas_stand_near_those_without_data() -> None:
    first, last, epistemic = example(-2)
    assert (np.diff(epistemic) > 0).all()
    assert epistemic[3] > 3 * epistemic[1] > 9 * epistemic[0]  # already inside the data
    share = last / without_data(-2, 300)
    assert share.max() < 1
    assert np.sum(share > 0.7) == 45
    assert np.median(share) == pytest.approx(0.89, abs=0.03)
    assert last.min() < 0.5 * first.min()  # some weights the data have pinned down


@pytest.mark.equation("K44", "D4")
def test_from_the_start_of_section_7_nothing_is_learned_of_sigma_in_as_many_epochs() -> None:
    _, last, epistemic = example(right.SECTION_7)
    share = last / without_data(right.SECTION_7, 300)
    assert np.mean(np.abs(share - 1) < 0.05) > 0.9
    assert np.median(share) == pytest.approx(1, abs=0.02)
    assert 5 < example(-2)[2][3] / epistemic[3] < 7  # a sixth as wide


@pytest.mark.equation("K44")
def test_the_precision_decays_from_that_of_the_start_to_the_curvature() -> None:
    """1 / sigma^2 = Lambda + (1 / sigma_0^2 - Lambda) exp(-2 eta epochs), in linear regression."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (30, 2))
    y = x @ [[1.0], [-0.5]] + 0.2 * rng.standard_normal((30, 1))
    curvature = 1 + np.sum(np.column_stack([x, np.ones(30)]) ** 2, axis=0) / 0.2**2
    theta = right.init((2, 1), rng, right.SECTION_7)
    start, eta = softplus(np.split(theta, 2)[1]), 8e-4
    gone = []
    for done in (400, 800, 1600, 3200):
        epochs = done // 2 if gone else done  # since the last time
        theta = right.fit((2, 1), theta, x, y, 1.0, 0.2, eta, epochs, 30, 1, rng)
        decayed = np.exp(-2 * eta * done)
        expected = (curvature + (start**-2 - curvature) * decayed) ** -0.5
        sigma = softplus(np.split(theta, 2)[1])
        # rho trembles by sqrt(eta / 4) times the noise of its slope, which is at most 2
        assert np.abs(np.log(sigma / expected)).max() < 4 * 2 * np.sqrt(eta / 4) + 0.03
        gone.append(np.abs(np.log(sigma / (start * np.exp(eta * done)))).min())
    assert gone[0] < 0.1  # where no data have entered
    assert gone[-1] > 0.5


def test_it_fits_on_one_screen_and_a_half() -> None:
    lines = SOURCE.splitlines()
    assert len(lines) <= 150
    assert max(map(len, lines)) <= 100
