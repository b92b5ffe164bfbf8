"""The report's experiments: right data and settings, right measures, honest text.

The runs here are shorter than those of ``make report``; what Section 8 says of the long
ones is in the text that they print.
"""

import json
import re
from dataclasses import asdict, replace
from functools import partial
from math import exp, isfinite, sqrt

import numpy as np
import pytest
from tables import check_picture

from bbb_numpy.cli.main import main
from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.parts.likelihoods import GaussianLikelihood
from bbb_numpy.plots.style import axes_or_new
from bbb_numpy.training import Epoch
from bbb_numpy.training.optimizers import SGD
from bbb_studies.kebude import regression, report
from bbb_studies.kebude.regression import CASES, TRAINING_SETTINGS, Setting, _inside_and_outside

QUICK = {"rows": 40, "epochs": 3}


def fewer(call, **numbers):
    """The call with other numbers than it is given."""
    return lambda *parts, **given: call(*parts, **given | numbers)


@pytest.fixture(scope="module", autouse=True)
def quick():
    """30 functions in place of 500, and 60 slopes to check: both take most of a run's time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regression, "predict", fewer(regression.predict, samples=30))
        patch.setattr(regression, "check", fewer(regression.check, max_coordinates=60))
        yield patch


@pytest.fixture(scope="module")
def results(quick):
    """All twelve, quick, by (problem, range, setting)."""
    return {
        (*case, setting): regression.run(*case, setting, **QUICK)
        for case in CASES
        for setting, how in TRAINING_SETTINGS.items()
        if case[1] in how.ranges
    }


@pytest.mark.equation("K43", "K44")
def test_the_printed_setting_is_that_of_the_report():
    assert TRAINING_SETTINGS["printed"] == Setting(
        "as printed", TRAINING_SETTINGS["printed"].what, SGD(1e-3), epochs=100,
        batch_size=1, samples=1,
        prior_scale=None, likelihood=GaussianLikelihood(1.0), standardise=False,
    )  # fmt: skip
    assert {c.problem: c.noise for c in CASES.values()} == {1: 0.02, 2: 3.0}


def test_one_reading_of_the_noise_serves_the_data_and_the_prior(results):
    """sigma_data is the standard deviation of epsilon, in both problems; literally that of y."""
    for (problem, x_range, name), result in results.items():
        case = CASES[problem, x_range]
        sigma_data = result.data.y.std() if name == "literal" else case.noise
        wanted = 0.4 if name == "should-be" else sigma_data
        assert result.numbers.prior_scale == pytest.approx(wanted)
    y = case.draw(np.random.default_rng(0), 4000, 0.25, 0.2501, case.noise).y  # of problem 1
    steep = 1.2 * np.pi - 1  # minus the slope of the curve at 1/4
    assert y.std() == pytest.approx(0.02 * steep, rel=0.05)  # 0.02 is a standard deviation


def test_the_band_as_drawn_is_that_of_the_last_layer_with_the_bias_unsquared(results):
    result = results[2, 2.5, "as-drawn"]
    mu, rho = np.split(result.theta, 2)
    sigma = np.log1p(np.exp(rho))
    for x, drawn in zip(result.x[::40, 0], result.predictive.epistemic[::40, 0], strict=True):
        a = [max(w * x + b, 0.0) for w, b in zip(mu[:100], mu[100:200], strict=True)]
        variance = sum((one * s) ** 2 for one, s in zip(a, sigma[200:300], strict=True))
        assert drawn == pytest.approx(sqrt(variance + sigma[300]))
        assert report.BAND_HALF_WIDTH_SD * drawn > 150 * sqrt(0.0065)  # 12, wherever x may be
    assert (result.x[0, 0], result.x[-1, 0]) == (-7.5, 7.5)


def test_the_gradients_of_the_very_models_that_were_trained_are_right(results):
    assert 0 < max(result.numbers.gradient_error for result in results.values()) < 1e-12
    for result in results.values():
        assert all(v is None or isfinite(v) for v in asdict(result.numbers).values())
        assert all(moment.shape == result.x.shape for moment in result.predictive)


def test_the_measures_of_a_prediction_that_can_be_worked_out_by_hand():
    x = np.linspace(-6, 6, 241)[:, None]
    epistemic = np.where(np.abs(x) <= 1, 0.2, 0.8)
    made_up = Predictive(x**3 + 0.5, epistemic, np.sqrt(1.0 - epistemic**2))
    assert _inside_and_outside(CASES[2, 1.0], x, made_up, x**3) == pytest.approx(
        {
            "rmse": 0.5,
            "truth_sd": (x[np.abs(x) <= 1] ** 3).std(),
            "truth_in_epistemic": 0.0,  # 0.5 is more than 2 * 0.2
            "truth_in_total": 1.0,
            "truth_left": -6.0,
            "truth_right": 6.0,
            "epistemic_inside": 0.2,
            "epistemic_left": 0.8,
            "epistemic_right": 0.8,
            "ratio": 4.0,
            "misses": 0.5,
            "bend_outside": 1.0,
            "bend_panel": 1.0,
        }
    )


def test_per_example_sgd_leaves_sigma_on_its_way_without_data():
    """The report's bands: sigma_0 exp(learning rate * epochs), whatever the data are."""
    n = regression.run(2, 1.0, "printed", rows=20, epochs=30).numbers
    assert n.sigma_law == pytest.approx(n.sigma_start * exp(1e-3 * 30))
    assert n.sigma_end == pytest.approx(n.sigma_law, rel=2e-3)


def test_the_tables_show_the_numbers(results):
    some = list(results.values())
    text = report.summarise(some)
    assert max(map(len, text.splitlines())) <= 100
    rows = [line for line in text.splitlines() if re.match(r"[12] \[.*\]  +(as|lit)", line)]
    assert len(rows) == 2 * len(some)
    for result, inside, outside in zip(some, rows[:12], rows[12:], strict=True):
        n = result.numbers
        for number in (f"{n.rmse:.3g}", f"{n.noise_learned:.3g}", f"{n.coverage:.1%}"):
            assert number in inside.split()
        for number in (f"{n.ratio:.1f}", f"{n.misses:.1f}", f"{n.epistemic_right:.2g}"):
            assert number in outside.split()
    worst = max(result.numbers.gradient_error for result in some)
    assert f"all 12 trained models: {worst:.1e}" in text


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_command_prints_the_spring_first_then_the_opening_and_writes_files(
    whole, request, tmp_path, monkeypatch, capsys, quick
):
    if whole:  # and nothing is less than it is for a user but rows and epochs
        request.getfixturevalue("drawn")
        quick.undo()
    monkeypatch.setattr(report, "run_all", partial(report.run_all, **QUICK))
    typed = ["report", "--problem", "2", "--range", "1", "--setting", "printed", "--out"]
    assert main([*typed, str(tmp_path)]) == 0
    printed, part = capsys.readouterr(), "problem2-range1-printed"
    brief = printed.out
    spring, picture, opening = (
        brief.index(text)
        for text in ("A first fit", f"picture: {tmp_path / 'band.png'}", "Bayes by Backprop on")
    )
    assert 0 == spring < picture < opening < brief.index("--details")
    assert printed.err.startswith("the experiments of the report take about 20 seconds\n")
    assert re.search(r"100 % after \d:\d\d\n$", printed.err) or whole
    pictures = {f"epistemic-{part}.png", f"{part}.png", "band.png"}
    written = {f"report-{part}.txt", f"numbers-{part}.json"}
    assert {path.name for path in tmp_path.iterdir()} == pictures | written
    for name in pictures if whole else ():
        check_picture(tmp_path / name, 400, 5)
    (row,) = json.loads((tmp_path / f"numbers-{part}.json").read_text(encoding="utf-8"))
    numbers = asdict(regression.run(2, 1.0, "printed", **QUICK).numbers)
    assert row | numbers == row
    assert (row["problem"], row["x_range"], row["rows"], row["epochs"]) == (2, 1.0, 40, 3)
    whole = (tmp_path / f"report-{part}.txt").read_text(encoding="utf-8")
    assert len(brief.splitlines()) < 35
    held, *_ = re.findall(r"as printed +([\d.]+%)", brief)
    assert held == f"{numbers['coverage']:.1%}"
    assert f"{numbers['rmse']:.3g}" in whole


@pytest.mark.parametrize(
    ("ends", "wider", "smaller", "belief"),
    [((5, 4, 3), True, True, True), ((5, 7, 20), True, False, False), ((5, 4, 0.5), 0, 1, 1)],
)
def test_each_claim_of_section_8_is_judged_by_its_numbers(results, ends, wider, smaller, belief):
    some = []
    for x_range, end, bend in zip((4.0, 2.5, 1.0), ends, (0.5, 0.1, 0.01), strict=True):
        known = {"epistemic_left": end, "epistemic_right": end, "epistemic_inside": 1.0}
        one = results[2, x_range, "should-be"]
        numbers = replace(one.numbers, **known, ratio=end, bend_panel=bend)
        some.append(replace(one, numbers=numbers))
    text = re.sub(r"\s+", " ", report.summarise(some))
    for claim, true in (
        ("wider where there is no data", wider),
        ("a smaller increase beyond", smaller),
        ("the belief in its correctness", belief),
        ("the linearity of the fit increases", True),
    ):
        sentence = re.search(rf"'{claim}.*?: (holds|DOES NOT HOLD)\.", text)
        assert sentence is not None
        assert (sentence[1] == "holds") == bool(true)


def test_a_first_look_is_at_the_text_and_its_correction_and_all_is_everything():
    assert {setting for *_, setting in report.select(None, None, None)} == set(
        report.DEFAULT_SETTINGS
    )
    assert len(report.select(None, None, None)) == 2 * len(CASES)
    every = report.select(None, None, "all")
    assert (
        len(every) == len(set(every)) == sum(len(how.ranges) for how in TRAINING_SETTINGS.values())
    )
    assert report.select(2, 4.0, "literal") == [(2, 4.0, "literal")]


def test_what_is_no_experiment_is_refused_and_the_known_are_named(tmp_path):
    with pytest.raises(
        ValueError, match=r"of an experiment; got \(1, 4.0, None\); there are .*\(1, 0.5"
    ):
        report.run_all(1, 4.0, out=tmp_path)


def lines(ax):
    return {line.get_label(): line for line in ax.lines}


def test_the_loss_shows_the_free_energy_and_both_its_parts_from_epoch_1():
    history = [Epoch(9.0 - e, 3.0, 6.0 - e, 1e-2, np.nan) for e in range(4)]
    ax = axes_or_new(None)
    report._draw_losses(ax, history, 2)
    assert {name: np.transpose(line.get_xydata()).tolist() for name, line in lines(ax).items()} == {
        "free energy": [[1, 2, 3, 4], [4.5, 4.0, 3.5, 3.0]],
        "KL(q, prior)": [[1, 2, 3, 4], [1.5] * 4],
        "−log likelihood": [[1, 2, 3, 4], [3.0, 2.5, 2.0, 1.5]],
    }


@pytest.mark.parametrize(
    ("objectives", "scale"),
    [((9.0, 1.0), "log"), ((9.0, 4.0), "linear"), ((9.0, -1.0), "linear"), ((9.0, 0.0), "linear")],
)
def test_the_loss_is_logarithmic_only_where_that_is_possible_and_useful(objectives, scale):
    ax = axes_or_new(None)
    report._draw_losses(ax, [Epoch(value, 4.0, 5.0, 1e-2, np.nan) for value in objectives], 1)
    assert ax.get_yscale() == scale


def test_the_figure_of_the_report_has_loss_then_fit(results):
    result = results[2, 1.0, "should-be"]
    a, b, c = report._figure(result).axes
    assert "free energy" in lines(a)
    assert a.get_ylabel() == "nats per training example"
    assert np.array_equal(lines(b)["predictive mean"].get_ydata(), result.predictive.mean[:, 0])
    assert b.get_ylim() == result.case.y_limits
    assert c.get_xlim() == (result.data.x.min(), result.data.x.max())
    assert not lines(c)["truth"].get_ydata().any()
    assert [ax.get_xlabel().split("\n")[1][:3] for ax in (a, b, c)] == ["(a)", "(b)", "(c)"]
