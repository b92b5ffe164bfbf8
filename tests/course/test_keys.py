"""Keys of the exercises: each known mistake gets its sentence, each right answer its proof."""

import json
import math
import re
import time
from functools import partial

import numpy as np
import pytest

from bbb_course import judge
from bbb_course.exercise import Formula, Verdict, formula
from bbb_course.judging import (
    FLOAT_SEEDS,
    Rounding,
    _agree,
    _float_cases,
    _in_common,
    _right_numbers,
    agrees,
    judge_formula,
    right_in_floats,
)
from bbb_course.keys import chapters, exercises, find
from bbb_numpy import Adam, ScaleMixturePrior, plain
from bbb_numpy.evaluation.calibration import crps_draws
from bbb_numpy.numeric.buffers import Buffers
from bbb_numpy.parts.counts import NegativeBinomialLikelihood, ZeroInflatedLikelihood
from tests.project.book import DEFINED

FORMULAS = {name: one for name, one in exercises().items() if isinstance(one, Formula)}
# of a mistake at n = 0
BY_ZERO = pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")


def check_sentence(exercise, mistake):
    verdict = judge(exercise.name, exercise.edited(mistake))
    assert not verdict.passed
    assert verdict.verdict == "known mistake", f"{mistake}\n{verdict}"
    assert mistake.says in [finding.says for finding in verdict.findings], verdict


@BY_ZERO
@pytest.mark.parametrize("exercise", FORMULAS.values(), ids=FORMULAS)
def test_a_known_mistake_gets_its_sentence(exercise):
    check_sentence(exercise, exercise.wrong[0])


@BY_ZERO
@pytest.mark.slow
@pytest.mark.parametrize("exercise", FORMULAS.values(), ids=FORMULAS)
def test_every_known_mistake_gets_its_sentence(exercise):
    for mistake in exercise.wrong[1:]:
        check_sentence(exercise, mistake)


@BY_ZERO
def test_every_known_mistake_is_an_edit_of_the_right_answer_with_other_numbers():
    for exercise in FORMULAS.values():
        cases = [exercise.draw(seed) for seed in FLOAT_SEEDS]
        for mistake in exercise.wrong:
            wrong = exercise.edited(mistake)
            assert wrong is not None, mistake.old
            assert not all(agrees(exercise, case, wrong(*case)) for case in cases), mistake


def adam_that_returns_corrected_averages(theta, m, v, grad, t, eta, beta1, beta2, tiny):
    m = (beta1 * m + (1 - beta1) * grad) / (1 - beta1**t)
    v = (beta2 * v + (1 - beta2) * grad**2) / (1 - beta2**t)
    return theta - eta * m / (np.sqrt(v) + tiny), m, v


def scores_with_a_baseline_of_all_samples(mu, sigma, eps, h):
    advantage = (h - h.mean())[:, None]
    d_mu, d_sigma = eps / sigma, (eps**2 - 1) / sigma
    return (advantage * d_mu).mean(axis=0), (advantage * d_sigma).mean(axis=0)


def slope_of_the_mixture_s_density(w, a, s1, s2):
    pi = 1 / (1 + np.exp(-a))
    one = pi / np.sqrt(2 * np.pi) / s1 * np.exp(-(w**2) / (2 * s1**2))
    two = (1 - pi) / np.sqrt(2 * np.pi) / s2 * np.exp(-(w**2) / (2 * s2**2))
    return -np.log(one + two).sum(), one * w / s1**2 + two * w / s2**2


def path_and_noise_averaged_apart(sigma, rho, eps, d_w, pi):
    d_mu = np.mean(d_w - pi * eps / sigma, axis=0)
    return d_mu, d_mu * np.mean(eps, axis=0) / (1 + np.exp(-rho))


def gradient_with_averaged_noise(mu, rho, eps, x, y, prior, noise, pi):
    sigma = np.log1p(np.exp(rho))
    value, d_mu, _ = right("value_and_gradient", mu, rho, eps, x, y, prior, noise, pi)
    d_sigma = d_mu * eps.mean(axis=0) - pi / sigma
    return value, d_mu, d_sigma / (1 + np.exp(-rho))


def network_without_biases(x, W0, b0, W1, b1, y):
    z = x @ W0
    hidden = np.maximum(z, 0)
    delta1 = hidden @ W1 - y
    delta0 = delta1 @ W1.T * (z > 0)
    return (delta1**2).sum() / 2, x.T @ delta0, delta0.sum(0), hidden.T @ delta1, delta1.sum(0)


def evidence_with_deviations_added(y, x, prior, noise):
    deviation = np.abs(x) * prior + noise
    return -0.5 * (y / deviation) ** 2 - np.log(deviation) - np.log(2 * np.pi) / 2


FREQUENT = [
    ("adam_step", adam_that_returns_corrected_averages, {"new_m": "uncorrected one is kept"}),
    ("score_function_estimator", scores_with_a_baseline_of_all_samples,
     dict.fromkeys(["d_mu", "d_sigma"], "h of the same sample is in it")),
    ("scale_mixture_prior", slope_of_the_mixture_s_density, {"d_w": "divided by the density"}),
    ("sticking_the_landing", path_and_noise_averaged_apart,
     {"d_rho": "eps is averaged before the product"}),
    ("value_and_gradient", gradient_with_averaged_noise,
     {"d_rho": "eps is averaged before the product"}),
    pytest.param(
        "backward_pass", network_without_biases,
        {"value": "b1 is left out", "d_W0": "b0 is left out", "d_b1": "b1 is left out"},
        marks=pytest.mark.slow,  # five blocks with two mistakes each
    ),
    ("evidence_of_one_datum", evidence_with_deviations_added,
     {"log_evidence": "standard deviations are added"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "answer", "says"), FREQUENT)
def test_a_frequent_mistake_is_named_where_a_student_wrote_it(name, answer, says):
    verdict = judge(name, answer)
    assert verdict.verdict == "known mistake", verdict
    findings = dict(verdict.findings)
    for block, sentence in says.items():
        assert sentence in findings[block]


def test_the_answers_are_those_of_the_library():
    rng = np.random.default_rng(0)
    mu, rho, eps = *rng.standard_normal((2, 3)), rng.standard_normal((2, 3))
    x, y = np.column_stack([rng.standard_normal((4, 2)), np.ones(4)]), rng.standard_normal(4)
    value, d_mu, d_rho = find("value_and_gradient").right(mu, rho, eps, x, y, 0.7, 0.4, 0.5)
    theta = np.concatenate([mu, rho])
    of_plain = plain.value_and_grad((2, 1), theta, eps, x[:, :2], y[:, None], 0.7, 0.4, 0.5)
    assert np.allclose(value, of_plain[0], rtol=1e-13)
    assert np.allclose(np.concatenate([d_mu, d_rho]), of_plain[1], rtol=1e-12)

    arrays = [rng.standard_normal(shape) for shape in [(5, 2), (2, 3), 3, (3, 2), 2, (5, 2)]]
    x, W0, b0, W1, b1, y = arrays
    w = np.concatenate([W0.ravel(), b0, W1.ravel(), b1])[None]
    f, tape = plain.forward((2, 3, 2), w, x)
    slopes = find("backward_pass").right(*arrays)[1:]
    assert np.allclose(np.concatenate([np.ravel(s) for s in slopes]), plain.vjp(tape, f - y)[0])

    w, a = rng.standard_normal(3), 0.3
    prior = ScaleMixturePrior(1 / (1 + np.exp(-a)), 1.2, 0.4)
    of_library = prior.log_density({}, w[None], Buffers())[0]
    assert np.allclose(find("scale_mixture_prior").right(w, a, 1.2, 0.4)[0], -of_library)

    draws = rng.standard_normal(7)
    of_library = crps_draws(draws[:, None], np.array([0.3]))
    assert np.allclose(find("crps_of_draws").right(draws, 0.3), of_library)

    f, y = rng.standard_normal(5), np.array([0, 0, 1, 3, 7])
    for name, likelihood, block, sign in [
        ("negative_binomial", NegativeBinomialLikelihood(), "log_dispersion", -1),
        ("extra_zeros", ZeroInflatedLikelihood(), "logit_zeros", 1),
    ]:
        value, d_f, d_number = find(name).right(f, y, 0.6)
        params = {block: np.array([sign * 0.6])}
        log_p, saved = likelihood.log_density(params, f[None, :, None], y[:, None])
        constant = sum(math.lgamma(n + 1) for n in y)
        assert np.allclose(value, -log_p.sum() - constant, rtol=1e-12)
        of_library = {block: np.empty(1)}
        slopes = likelihood.vjp(saved, np.array([-1.0]), of_library)
        assert np.allclose(d_f, slopes.ravel(), rtol=1e-12)
        assert np.allclose(sign * d_number, of_library[block], rtol=1e-12)

    adam, theta = Adam(0.01), rng.standard_normal(3)
    key, m, v = theta.copy(), np.zeros(3), np.zeros(3)
    state = adam.init(theta)
    for t in (1, 2, 3):
        grad = rng.standard_normal(3)
        key, m, v = find("adam_step").right(
            key, m, v, grad, t, 0.01, adam.beta1, adam.beta2, adam.epsilon
        )
        adam.update(theta, grad, state, 1.0)
    assert np.allclose(theta, key, rtol=1e-12)


def check_digits(exercise):
    """Compare a key with itself in numbers of more digits, where answers are compared with it."""

    def longer(one):
        return np.asarray(one, np.longdouble)[()] if np.asarray(one).dtype.kind == "f" else one

    for place in _float_cases(exercise):
        numbers = _right_numbers(exercise, place.arguments)
        if numbers is not None and place.rounding is not Rounding.ANY:  # else proofs decide
            with np.errstate(all="ignore"):
                precise = exercise.right(*map(longer, place.arguments))
            assert all(map(_agree, numbers, exercise.blocks(precise))), place


@pytest.mark.skipif(np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="no more digits")
@pytest.mark.parametrize("exercise", FORMULAS.values(), ids=FORMULAS)
def test_a_key_has_all_digits_where_answers_are_compared_with_it(exercise):
    check_digits(exercise)


@formula(returns="value half", tags="K1", mu=FORMULAS["softplus"].arguments["rho"],
         x=FORMULAS["sticking_the_landing"].arguments["eps"])  # fmt: skip
def plain_key(mu, x):
    value = np.sum(mu * x, axis=1)
    return value, mu / 2


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda mu, x: (-(x @ mu), mu / 2), "its sign is the other way round"),
        (lambda mu, x: (x @ mu / 2, mu / 2), "it is half of what is right"),
        (lambda mu, x: (2 * x @ mu, mu / 2), "it is twice what is right"),
        (lambda mu, x: (x @ mu / 3, mu / 2), "divided by the number of weights P"),
        (lambda mu, x: (x @ mu * len(mu), mu / 2), "multiplied by the number of weights P"),
        # two samples in the proof
        (lambda mu, x: (x @ mu * len(x), mu / 2), "multiplied by the number of weight samples S"),
        (lambda mu, x: ((x @ mu) ** 2, mu / 2), "the square of what is right"),
        (lambda mu, x: (1 / (x @ mu), mu / 2), "one over what is right"),
    ],
)
def test_general_mistakes_are_named_without_an_entry_in_the_key(answer, says):
    verdict = judge_formula(plain_key, answer)
    assert verdict.verdict == "known mistake"
    assert [finding.block for finding in verdict.findings] == ["value"]
    assert says in verdict.findings[0].says
    assert verdict.headline == "half is right; value is wrong"


def test_two_mistakes_at_once_are_both_named():
    exercise = FORMULAS["value_and_gradient"]
    named = {mistake.new: mistake for mistake in exercise.wrong}
    two = named["- r @ x / len(x) / noise**2"], named["(pi / sigma + d_w * eps)"]
    verdict = judge("value_and_gradient", exercise.edited(*two))
    says = dict(verdict.findings)
    assert says["d_mu"] == two[0].says
    assert two[0].says in says["d_rho"]
    assert two[1].says in says["d_rho"]


def right(name, *arguments):
    return FORMULAS[name].right(*arguments)


def wrong_for_several_rows(complexity, nll, total):
    return right("cost_of_a_minibatch", complexity, nll, total) + 0.1 * (len(nll) > 1)


def wrong_between_1_and_2(density, new_density, forward, backward):
    ratio = new_density * backward / (density * forward)
    return ratio if ratio < 2.5 else 1 + 0 * ratio


def off_by_less_than_floats_see(*arguments):
    value, d_mu, d_rho = right("complexity_in_closed_form", *arguments)
    return value, d_mu * (1 + 2.0**-40), d_rho


def of_another_prior(w, prior):
    value, d_w = right("gaussian_prior", w, prior)
    return value + np.sum(w**3), d_w + 3 * w**2


def of_clipped(name, *arguments):
    return right(name, *(np.clip(one, -20, 20) for one in arguments))


def a_column_of_ones_for_the_inputs(a, mu, sigma, mu_b, sigma_b, zeta):
    inputs = np.column_stack([a**2, np.ones(len(mu))])  # len(a) is right
    return a @ mu + mu_b + zeta * np.sqrt(inputs @ np.vstack([sigma**2, sigma_b**2]))


def of_whole_numbers(heads, tails):
    up, down, total = (np.prod(np.arange(1, n + 1)) for n in (heads, tails, heads + tails + 1))
    return np.log(up * down / total) + (heads + tails) * np.log(2)


def of_each_weight(q, r, step, slope):
    def slopes(q):
        return np.concatenate([slope(q[i : i + 1]) for i in range(len(q))])

    return right("leapfrog", q, r, step, slopes)


def naive_softplus(rho):
    return np.log1p(np.exp(rho))


def by_the_largest_of_all(log_density):
    top = log_density.max()
    return top + np.log(np.mean(np.exp(log_density - top), axis=0))


def of_probabilities_divided_by_their_sum(p):
    return right("entropy_of_a_class", p / p.sum(axis=1, keepdims=True))


def added_up_over_calls(m, L, phi, y, sigma, total=[0.0]):  # noqa: B006
    mean, covariance, log_p = right("one_row_more", m, L, phi, y, sigma)
    total[0] = total[0] + log_p
    return mean, covariance, total[0]


def of_a_constant_kept_for_each_scale(w, prior, constants={}):  # noqa: B006
    value, d_w = right("gaussian_prior", w, prior)
    constant = len(w) * np.log(prior)
    return value - constant + constants.setdefault(prior, constant), d_w


def untraceable(rho):
    return np.vectorize(lambda one: math.log1p(math.exp(one)))(rho)


def in_one_array(rho, kept=np.empty(3)):  # noqa: B008
    sigma = right("softplus", rho)
    if sigma.shape != kept.shape:
        return sigma
    kept[:] = sigma
    return kept


def sigma_of_the_first_call(mu, rho, eps, kept={}):  # noqa: B006
    return mu + kept.setdefault(mu.tobytes(), right("softplus", rho)) * eps


def double_at_first(rho, calls=[]):  # noqa: B006
    calls.append(rho)
    return right("softplus", rho) * (1 + (len(calls) < 3))


def by_the_gain(x, y, prior, noise):
    gain = prior**2 * x / (noise**2 + prior**2 * (x @ x))
    return gain @ y, prior**2 - prior**2 * (gain @ x)  # cancels where the prior is wide


UNUSABLE = [
    (lambda rho: None, "returns None for sigma"),
    (lambda rho: rho[0], r"sigma must have the shape \(3,\); it has \(\)"),
    (lambda rho: rho @ np.ones(4), "raises ValueError in line"),
    (lambda: 0, "raises TypeError"),
    (lambda rho: rho * 1j, "must be real numbers"),
    (lambda rho: rho.fill(0) or rho, "changes its argument rho in place"),
    (lambda rho: np.linalg.solve(np.ones((2, 3)), rho), "raises LinAlgError in line .* `"),
    (3, "must be a function"),
]
JUDGED = [
    *(("softplus", answer, "unusable", f"{says}[^\n]*$") for answer, says in UNUSABLE),
    # no proof: floats are compared
    ("softplus", lambda rho: np.positive(untraceable(rho)), "right", "proved, as np.vectorize"),
    ("softplus", lambda rho: untraceable(rho) + 1e-7, "wrong", "sigma is wrong"),
    ("softplus", lambda rho: untraceable(-rho), "known mistake", "the sign of rho"),
    ("softplus", lambda rho: right("softplus", rho) * (3**0.5) ** 2 / 3, "right", "by identities"),
    # no float shows it: the proof does
    (
        "complexity_in_closed_form", off_by_less_than_floats_see, "wrong",
        "d_mu: .*too (large|small) by .*e-1",
    ),
    # right where the proof looks, not for other numbers or sizes
    ("acceptance_probability", wrong_between_1_and_2, "wrong", "alpha is wrong"),
    ("coverage", lambda low, high, y: np.sum((low <= y) & (y <= high)) / 16, "wrong", "share is"),
    ("softplus", lambda rho: right("softplus", rho.reshape(3)), "wrong", "cannot reshape"),
    # one of something, two sizes that are equal in the proofs, many, tails
    (
        "weights_that_hang_together",
        lambda *arguments: np.squeeze(right("weights_that_hang_together", *arguments)), "wrong",
        r"your w = of shape \(\)\s+right w = of shape \(1, 1\)$",
    ),
    ("local_reparameterisation", a_column_of_ones_for_the_inputs, "wrong", "raises ValueError in"),
    (
        "crps_of_draws", lambda draws, y: right("crps_of_draws", draws[:30], y), "wrong",
        r"draws = \[(0.0, ){30}",
    ),
    (
        "importance_weighted_bound", lambda log_w: of_clipped("importance_weighted_bound", log_w),
        "wrong", r"log_weights = \[0.0, 0.0, 0.0, [2-5]\d\.\d+\]\s+your iwae = 18.6",
    ),
    # what is kept between calls
    ("softplus", in_one_array, "unusable", "what it returned changes at its next call"),
    (
        "from_noise_to_weights", sigma_of_the_first_call, "wrong",
        "w: it is wrong where rho alone is another than at an earlier call",
    ),
    (
        "gaussian_prior", of_a_constant_kept_for_each_scale, "wrong",
        "value: it is wrong where arrays alone are longer than at an earlier call",
    ),
    ("softplus", double_at_first, "wrong", "it is wrong at its first calls"),
    # small numbers among large ones; digits that cancel are no floor
    (
        "softplus", lambda rho: np.maximum(right("softplus", rho), 1e-6), "wrong",
        r"your sigma = \[.*1e-06.*right sigma = \[.*e-\d\d",
    ),
    ("completing_the_square", by_the_gain, "proved", "mean and variance are right"),
    ("log_predictive_density", by_the_largest_of_all, "wrong", r"overflow.*\[-1000.0, 0.0\]"),
    # what must add up to 1 does so in a proof; what a proof has left behind is no number
    ("entropy_of_a_class", of_probabilities_divided_by_their_sum, "proved", "in exact"),
    ("one_row_more", added_up_over_calls, "unusable", "keep nothing between calls"),
    # ties, large counts, a function of other shape, floats near a limit
    (
        "coverage", lambda low, high, y: np.mean((low < y) & (y < high)), "wrong",
        r"low = \[0.0\]\s+high = \[0.0\]\s+y = \[0.0\]",
    ),
    ("occams_razor", of_whole_numbers, "wrong", r"heads = 50\s+tails = 30\s+your .* = nan"),
    ("leapfrog", of_each_weight, "wrong", r"slope = the function 1 - q - np.sum\(q\)"),
    (
        "stable_softplus", lambda rho: np.where(rho > 20, rho, np.log1p(np.exp(rho))), "wrong",
        r"rho = \[20.25\]\s+your sigma = \[20.25\]\s+right sigma = \[20.25000000\d+\]",
    ),
    (
        "normalised_weights", lambda log_w: right("normalised_weights", log_w - log_w.mean()),
        "wrong", r"log_weights = \[800.0, -1000.0\]\s+your share = \['nan', 0.0\]",
    ),
    # digits that six do not show
    (
        "softplus", lambda rho: right("softplus", rho.astype(np.float32)), "wrong",
        r"your sigma = \[0.693147\d{8,}\]\s+right sigma = \[0.693147\d{8,}\]",
    ),
    # the smallest case: at 0 the first is right, in one row the second
    (
        "softplus", lambda rho: right("softplus", rho) + 0.25 * np.tanh(rho), "wrong",
        r"rho = \[1.0\]\s+your sigma = \[1.50366\]\s+right sigma = \[1.31326\]",
    ),
    (
        "cost_of_a_minibatch", wrong_for_several_rows, "wrong",
        r"nll = \[0.0, 0.0\]\s.*your cost = 0.1\s+right cost = 0.0",
    ),
    # another value and its slopes, and only another value
    ("gaussian_prior", of_another_prior, "wrong", "exactly those of this other value"),
    ("gaussian_prior", lambda w, prior: (np.sum(w**3), w), "wrong", "^(?!.*other value)"),
    # the formula is right, its floats are not
    (
        "stable_softplus", naive_softplus, "wrong",
        r"overflow.*write np.logaddexp\(0, rho\).*rho = \[\d+.0\]\s+your sigma = inf",
    ),
    (
        "stable_softplus", lambda rho: np.log(1 + np.exp(-abs(rho))) + rho * (rho > 0), "wrong",
        r"overflow or cancel.*look at line \d+ of test_keys.py.*right sigma = \d.\d*e-",
    ),
    *((name, FORMULAS[name].right, "wrong", "floats overflow or cancel")
      for name in ("log_predictive_density", "normalised_weights")),
]  # fmt: skip


def naive_weights(log_weights):
    omega = np.exp(log_weights)
    return omega / omega.sum()


def naive_mean(log_density):
    return np.log(np.mean(np.exp(log_density), axis=0))


@pytest.mark.parametrize(
    ("name", "answer", "cure"),
    [
        ("stable_softplus", naive_softplus, "np.logaddexp(0, rho)"),
        ("normalised_weights", naive_weights, "np.exp(log_weights - np.max(log_weights))"),
        ("log_predictive_density", naive_mean, "np.exp(log_density - m).mean()"),
    ],
)
def test_a_naive_answer_is_told_input_digits_line_and_cure_within_a_second(name, answer, cure):
    start = time.process_time()
    told = judge(name, answer)
    assert time.process_time() - start < 1.0
    (finding,) = told.findings
    assert re.match(
        r"of sixteen digits it loses 16; look at line \d+ of test_keys.py", finding.says
    )
    assert cure in finding.says
    (case,) = told.cases.values()
    assert any(key.startswith("your") and value in ("inf", "nan") for key, value in case.items())


def test_a_table_of_all_arguments_that_one_can_know_is_not_right():
    """The grader's seeds can be read; those of its last comparison are drawn anew each time."""
    exercise, table = FORMULAS["softplus"], {}

    def recorded(rho):
        table[rho.tobytes()] = right("softplus", rho)
        return table[rho.tobytes()]

    def looked_up(rho):
        return table.get(rho.tobytes(), 0 * rho)

    assert right_in_floats(exercise, recorded)
    assert judge("softplus", looked_up).verdict == "right"  # by seeds that are known
    assert not right_in_floats(exercise, looked_up)


def difference_quotient(w, prior):
    def value(w):
        return right("gaussian_prior", w, prior)[0]

    steps = 1e-6 * np.eye(len(w))
    slopes = [(value(w + step) - value(w)) / 1e-6 for step in steps]
    return value(w), np.array(slopes)


def shrunk(factor, *arguments):
    value, d_w = right("gaussian_prior", *arguments)
    return value, factor * d_w


@pytest.mark.parametrize(
    ("name", "answer", "says"),
    [
        ("gaussian_prior", partial(shrunk, 0.97), "it is 0.97 times what is right, everywhere"),
        ("gaussian_prior", partial(shrunk, 0.0), "it is 0 everywhere"),
        ("gaussian_prior", difference_quotient, r"its first \d digits are right: is there"),
        (
            "softplus", lambda rho: right("softplus", rho).astype(np.float32),
            r"its first [78] digits are right: is there a float32",
        ),
    ],
)  # fmt: skip
def test_a_mistake_without_a_name_is_told_what_its_numbers_have_in_common(name, answer, says):
    verdict = judge(name, answer)
    ((block, finding),) = verdict.findings
    assert re.match(says, finding), verdict
    assert list(verdict.cases) == [block]


def test_nothing_is_said_of_numbers_that_have_nothing_in_common():
    answers = {
        "a factor that depends on the number of weights": lambda rho: softplus(rho) / len(rho),
        "a sum": lambda rho: softplus(rho) + 0.1,
        "another function": lambda rho: softplus(rho) + 0.1 * np.sin(rho),
        "nan": lambda rho: softplus(rho) * np.nan,
        "a floor, which the usual numbers do not meet": lambda rho: (
            softplus(rho) + (rho < -9) / 1e9
        ),
    }
    softplus = FORMULAS["softplus"].right
    for what, answer in answers.items():
        assert _in_common(FORMULAS["softplus"], answer, 0) == "", what


def nan_at_simple_numbers(rho):
    return right("softplus", rho) * 1.5 * rho / rho  # 0/0 at the simplest case, which says nothing


def nan_for_small_numbers(rho):
    return np.where(rho < 1.5, np.nan, right("softplus", rho) + 0.1)


@BY_ZERO
def test_the_smallest_case_is_one_with_numbers_where_there_is_one():
    for answer in (nan_at_simple_numbers, nan_for_small_numbers):
        case = judge("softplus", answer).cases["sigma"]
        assert np.isfinite(case["your sigma"]).all(), case
    only_nan = judge("softplus", lambda rho: right("softplus", rho) + 0 * np.log(rho < 1.5))
    assert "nan" in only_nan.cases["sigma"]["your sigma"]


def test_what_cancels_at_extreme_numbers_passes_where_no_proof_can_be_asked():
    def far_away(*data):  # as in another process, where a proof's numbers cannot go
        lists = json.loads(json.dumps([np.asarray(one).tolist() for one in data]))
        return by_the_gain(*map(np.array, lists))

    exercise = find("completing_the_square")
    assert right_in_floats(exercise, far_away)
    assert not right_in_floats(exercise, lambda *data: [1.01 * one for one in far_away(*data)])


@pytest.mark.parametrize(("name", "answer", "verdict", "says"), JUDGED)
def test_an_answer_is_told_what_it_is(name, answer, verdict, says):
    told = judge(name, answer)
    assert told.verdict == verdict, told
    assert told.passed == (verdict in ("proved", "right"))
    assert re.search(says, str(told), re.DOTALL), told


def test_a_wrong_number_of_values_names_the_line_that_returns_them():
    def answer(w, prior):
        if prior < 0:
            return None
        value = np.sum(w)
        return value, w, prior

    headline = judge("gaussian_prior", answer).headline
    line = answer.__code__.co_firstlineno + 4
    assert headline == (
        f"it returns 3 things; asked for are value, d_w, in line {line}, `return value, w, prior`"
    )


def test_numbers_that_are_not_finite_are_texts_or_null_in_json():
    exercise = FORMULAS["gaussian_prior"]
    verdict = judge("gaussian_prior", lambda w, prior: (np.inf, exercise.right(w, prior)[1]))
    assert verdict.cases["value"]["your value"] == "inf"
    nan = Verdict("x", False, "scored", "", score={"bias": np.nan})
    for one in (verdict, nan):
        json.dumps(one.as_dict(), allow_nan=False)


def test_every_tag_is_an_entry_of_the_book_and_every_chapter_has_three_to_nine_exercises():
    for one in exercises().values():
        assert one.tags
        assert set(one.tags) <= set(DEFINED), one.name
    assert [len(some) in range(3, 10) for some in chapters().values()] == 12 * [True]
