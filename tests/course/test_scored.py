"""Exercises that are scored: checks, cards, an estimator, and the calibration homework."""

import itertools
import re
import runpy

import numpy as np
import pytest

from bbb_course import cards, judge, lottery, variance
from bbb_course.checks import gradients, kernels
from bbb_course.keys import find
from bbb_course.templates import SOLUTIONS
from bbb_studies.data import powerball
from exactgrad import check_gradient

CHECKS = tuple(map(find, ("check_a_gradient", "check_a_sampler", "check_calibration")))


def solution(name):
    (path,) = SOLUTIONS.rglob(f"*_{name}.py")
    return runpy.run_path(str(path))[name]


# --- grade the test


@pytest.mark.parametrize("exercise", CHECKS, ids=lambda one: one.name)
def test_a_check_that_accepts_all_finds_nothing_and_one_that_refuses_all_only_raises_alarms(
    exercise,
):
    right = sum(one.right for one in exercise.subjects())
    assert right >= 5
    for refuses, alarms in ((False, 0), (True, right)):
        verdict = exercise.judge(lambda *arguments, answer=not refuses: answer)
        assert not verdict.passed
        assert verdict.score["planted"] >= 8
        assert verdict.score["found"] == verdict.score["planted"] * refuses
        assert verdict.score["score"] == verdict.score["found"] - alarms


@pytest.mark.equation("M5")
def test_a_check_for_detailed_balance_alone_raises_false_alarms_and_misses_chains_that_stay():
    def detailed_balance(kernel, p):
        flow = p[:, None] * kernel
        return np.allclose(flow, flow.T)

    verdict = judge("check_a_sampler", detailed_balance)
    said = [says for _, says in verdict.findings]
    assert "a kernel with a current in a circle, without detailed balance is right" in said[0]
    assert "a chain that never moves" in said
    assert "a chain of period 2 that has p as its stationary distribution" in said
    assert verdict.score["false alarms"] == 1


def test_a_check_that_counts_its_calls_finds_few_errors():
    """Those that are right come first in the table, and in no order to the answer."""
    calls = itertools.count()
    right = sum(one.right for one in kernels())
    verdicts = [judge("check_a_sampler", lambda kernel, p: next(calls) < right) for _ in range(3)]
    assert not any(verdict.passed for verdict in verdicts)


def test_a_check_that_raises_is_told_on_the_first_of_the_table():
    told = {judge("check_a_sampler", lambda kernel, p: 1 / 0).headline for _ in range(3)}
    (headline,) = told
    assert headline.endswith(f"(on {kernels()[0].what})")


def test_what_a_check_prints_last_is_of_the_program_on_which_it_raises(capsys):
    (seven,) = (one for one in kernels() if one.right and len(one.arguments[1]) == 7)

    def check_a_sampler(kernel, p):
        print(len(p))
        return 1 / (len(p) - 7) != 0

    assert judge("check_a_sampler", check_a_sampler).headline.endswith(f"(on {seven.what})")
    assert capsys.readouterr().out.split()[-1] == "7"


def test_the_right_kernels_leave_p_and_the_wrong_ones_are_wrong():
    for what, right, (kernel, p) in kernels():
        far = np.linalg.matrix_power(kernel, 100_000)
        negative = "negative" in what  # all but that is right
        assert np.allclose(far, p, atol=1e-9) == (right or negative), what
        assert bool((kernel < 0).any()) == negative, what


@pytest.mark.equation("D9")
def test_the_gradients_shown_are_right_and_wrong_as_they_claim():
    for what, right, (value_and_grad, theta) in gradients():
        assert check_gradient(value_and_grad, theta).passed == right, what


@pytest.mark.equation("D9")
def test_an_absolute_tolerance_misses_the_small_gradient_and_only_that():
    """The mistake that the exercise teaches: np.allclose calls all below 1e-8 equal."""

    def check_a_gradient(value_and_grad, theta, **tolerance):
        steps = 1e-6 * np.eye(theta.size)
        sides = [(value_and_grad(theta + h)[0], value_and_grad(theta - h)[0]) for h in steps]
        slopes = np.array([above - below for above, below in sides]) / 2e-6
        return np.allclose(slopes, value_and_grad(theta)[1], **tolerance)

    def missed(**tolerance):
        verdict = judge("check_a_gradient", lambda *given: check_a_gradient(*given, **tolerance))
        return [says for block, says in verdict.findings if block == "not seen"]

    assert missed() == ["a gradient of a cost of a millionth, too large by 1/1000 of itself"]
    assert missed(atol=0) == []


@pytest.mark.equation("D35")
def test_coverage_alone_does_not_see_bands_too_wide_here_and_too_narrow_there():
    def coverage(draws, y):
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)
        return abs(np.mean((low <= y) & (y <= high)) - 0.9) < 0.04

    missed = [says for _, says in judge("check_calibration", coverage).findings]
    assert "too wide in most rows and far too narrow in the others" in missed


# --- bug x detector

CHEAP = ("gradient check", "value", "invariance", "mean over noise")


@pytest.mark.parametrize("bug", cards.BUGS)
def test_the_key_is_what_the_cheap_detectors_see(bug):
    for detector in CHEAP[: 3 + (bug in ("score counted twice", "uniform noise"))]:
        assert cards.DETECTORS[detector](bug)[0] == cards.key()[bug][detector][0], detector


@pytest.mark.slow
@pytest.mark.parametrize("bug", ["", *cards.BUGS])
def test_the_whole_key_is_what_the_detectors_see(bug):
    seen = {name: detector(bug)[0] for name, detector in cards.DETECTORS.items()}
    of_key = {name: cell[0] for name, cell in cards.key().get(bug, {}).items()}
    assert seen == (of_key or dict.fromkeys(cards.DETECTORS, False))


def test_every_bug_is_seen_by_one_detector_and_every_detector_misses_one():
    key = cards.key()
    assert list(key) == list(cards.BUGS)
    assert all(any(seen for seen, _ in row.values()) for row in key.values())
    for detector in cards.DETECTORS:
        assert {row[detector][0] for row in key.values()} == {True, False}


def test_the_cards_are_compared_cell_by_cell():
    answer = {bug: set(seen) for bug, seen in solution("which_detector_sees_it").items()}
    answer["bands of fifty"] = {"convergence"}
    verdict = judge("which_detector_sees_it", answer)
    assert verdict.passed
    assert [finding.block for finding in verdict.findings] == [
        "bands of fifty, convergence", "bands of fifty, coverage",
    ]  # fmt: skip
    assert verdict.findings[1].says == "sees it (1)"
    always = {bug: seen | {"gradient check"} for bug, seen in answer.items()}
    verdict = judge("which_detector_sees_it", always)
    assert not verdict.passed
    assert verdict.findings[0] == ("gradient check", "9 of its cells are wrong; at most 2 may be")
    everything = {bug: set(cards.DETECTORS) for bug in cards.BUGS}
    assert not judge("which_detector_sees_it", everything).passed
    empty = dict.fromkeys(cards.BUGS, ())
    assert judge("which_detector_sees_it", empty).verdict == "not answered"
    odd = judge("which_detector_sees_it", {**answer, "no eps": {"luck"}})
    assert "'luck' is no detector" in odd.headline
    assert "must be a dict with the bugs" in judge("which_detector_sees_it", {}).headline


# --- your own estimator


def test_a_biased_estimator_and_one_that_pays_more_are_refused():
    verdict = judge("your_own_estimator", lambda mu, rho, eps, slope: (0 * mu, 0 * rho))
    assert "it is biased" in verdict.findings[0].says
    verdict = judge(
        "your_own_estimator", lambda mu, rho, eps, slope: slope(np.tile(eps, (2, 1)))[:2]
    )
    assert "asks for 8 slopes" in verdict.headline


def test_a_gradient_that_is_shrunk_by_3_percent_is_biased():
    right = solution("your_own_estimator")
    verdict = judge("your_own_estimator", lambda *data: [0.97 * one for one in right(*data)])
    (finding,) = verdict.findings
    assert "baseline" not in finding.says
    mean, exact = re.match(r"its mean is (.+), and (.+) is right, at mu", finding.says).groups()
    assert float(mean) == pytest.approx(0.97 * float(exact), rel=1e-3)


@pytest.mark.parametrize("has_path", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_baseline_that_sees_its_own_sample_is_named(has_path):
    def answer(mu, rho, eps, slope):
        sigma, sigmoid = np.log1p(np.exp(rho)), 1 / (1 + np.exp(-rho))
        d_w = slope(mu + sigma * eps)
        through_w = d_w - eps / sigma if has_path else d_w
        outside = 0 if has_path else 1 / sigma
        d_rho = ((through_w - through_w.mean(axis=0)) * eps).mean(axis=0) - outside
        return through_w.mean(axis=0), d_rho * sigmoid

    bias = judge("your_own_estimator", answer).findings[0]
    assert bias.block.startswith("d_rho")
    assert "so does a baseline that sees its own sample, by 1/4" in bias.says


@pytest.mark.slow
def test_other_biases_are_not_that_of_a_baseline():
    right = solution("your_own_estimator")
    for d_mu, d_rho in [(0.75, 0.75), (1.0, 0.8), (1.0, 0.0)]:
        factors = (d_mu, d_rho)
        verdict = judge(
            "your_own_estimator",
            lambda *data, factors=factors: [
                factor * block for factor, block in zip(factors, right(*data), strict=True)
            ],
        )
        assert "is biased, by" in verdict.findings[0].says
        assert "baseline" not in str(verdict)


def test_the_error_of_a_mean_is_that_of_what_polynomials_of_the_noise_leave():
    rng = np.random.default_rng(1)
    means = []
    for _ in range(100):
        noise, rest = rng.standard_normal((200, 4, 2)), rng.standard_normal(200)
        estimates = 3 + 20 * noise[:, 1, 0] ** 3 * noise[:, 1, 1] + rest
        mean, error = variance.mean_and_error(estimates[:, None], noise)
        means.append((mean[0] - 3) / error[0])
    assert abs(np.mean(means)) < 0.4  # four standard errors
    assert np.std(means) == pytest.approx(1, abs=0.22)
    nan = np.full((200, 4), np.nan)
    assert (
        variance._bias(variance.MU_NEAR_OPTIMUM, variance.RHO_NEAR_OPTIMUM, nan, noise)[0] == np.inf
    )


@pytest.mark.equation("K21", "K30")
def test_the_mean_by_quadrature_is_that_of_the_report_s_estimator():
    rng = np.random.default_rng(0)
    for mu, rho, _ in variance.THETAS:
        noise = rng.standard_normal((400, 4, 2))
        found = np.array([variance.of_the_report(mu, rho, eps) for eps in noise])
        mean, error = variance.mean_and_error(found, noise)
        assert np.allclose(mean, variance.right_mean(mu, rho), rtol=1e-11)
        assert (error < 1e-9).all()


# --- the calibration homework


@pytest.mark.equation("D37")
def test_who_states_the_truth_loses_nothing_and_who_states_a_half_loses_what_the_entropy_says():
    truth = powerball.exact(69)
    assert lottery.regret(np.nan_to_num(truth.probability[1:])) == pytest.approx(0, abs=1e-5)
    assert lottery.regret(np.full(69, 0.5)) == pytest.approx(np.log(2) - truth.log_loss)


def frequencies(numbers, labels, balls):
    total = np.bincount(numbers, minlength=balls + 1)[1:] + 1.0
    p = (np.bincount(numbers, labels, balls + 1)[1:] + 0.5) / total
    error = 1.645 * np.sqrt(p * (1 - p) / total)
    return p, np.clip(p - error, 0, 1), np.clip(p + error, 0, 1)


def test_intervals_too_narrow_or_too_wide_and_frequencies_alone_are_refused():
    smooth = solution("powerball")

    def told(change):
        verdict = judge("powerball", lambda *data: change(*smooth(*data)))
        return dict(verdict.findings)

    narrow = told(lambda p, low, high: (p, p + 0.3 * (low - p), p + 0.3 * (high - p)))
    wide = told(lambda p, low, high: (p, 0 * p, 0 * p + 1))
    assert "too narrow" in narrow["coverage"]
    assert "too wide" in wide["coverage"]
    assert "regret" not in wide
    assert "at most 0.01 is asked for" in dict(judge("powerball", frequencies).findings)["regret"]


def test_an_answer_by_the_rules_of_the_game_is_refused():
    truth = np.nan_to_num(powerball.exact(69).probability[1:])
    verdict = judge("powerball", lambda *data: (truth, truth, truth))
    assert "labels are exchanged: learn from this history alone" in verdict.findings[0].says
