"""The report's experiments: right data and settings, right measures, honest text.

The runs here are shorter than those of ``make report``; what Section 8 says of the long
ones is in the text that they print.
"""

import json
import re
from dataclasses import asdict, replace
from functools import partial
from math import erf, exp, inf, isfinite, log, sqrt

import numpy as np
import pytest
from tables import check_picture

from bbb_numpy import plain
from bbb_numpy.cli.main import main
from bbb_numpy.evaluation.predictive import Predictive
from bbb_numpy.training.optimizers import SGD
from bbb_studies.kebude import regression, report
from bbb_studies.kebude.regression import CASES, SETTINGS, _inside_and_outside

QUICK = {"rows": 40, "epochs": 3}


@pytest.fixture(scope="module")
def results():
    """All twelve, quick, by (problem, range, setting)."""
    return {
        (*case, setting): regression.run(*case, setting, **QUICK)
        for case in CASES
        for setting, how in SETTINGS.items()
        if case[1] in how.ranges
    }


def test_the_cases_are_those_of_the_report():
    sizes = {case.x_range: (case.rows, case.data) for case in CASES.values() if case.problem == 2}
    assert sizes == {4.0: (500, (-4, 4)), 2.5: (300, (-2.5, 2.5)), 1.0: (125, (-1, 1))}
    assert all(case.panel == (-6, 6) for case in CASES.values() if case.problem == 2)
    assert CASES[1, 0.5].data == (0, 0.5)


@pytest.mark.equation("K43", "K44")
def test_the_printed_setting_is_that_of_the_report():
    printed = SETTINGS["printed"]
    assert printed.optimizer == SGD(1e-3)
    assert (printed.epochs, printed.batch_size, printed.samples) == (100, 1, 1)
    assert (printed.likelihood.scale, printed.likelihood.learn) == (1.0, False)
    assert not printed.standardise
    assert printed.prior_scale is None
    assert {c.problem: c.noise for c in CASES.values()} == {1: 0.02, 2: 3.0}


def test_the_settings_see_the_same_data_within_their_range(results):
    for (problem, x_range), case in CASES.items():
        one, two = (results[problem, x_range, name].data for name in ("printed", "should-be"))
        assert np.array_equal(one.x, two.x)
        assert np.array_equal(one.y, two.y)
        assert case.data[0] <= one.x.min() < one.x.max() <= case.data[1]


def test_as_drawn_the_variance_of_the_noise_is_its_standard_deviation(results):
    """9 in place of 3: the program behind the figures passes 3^2 on."""
    for x_range in report.LEVELS:
        printed, drawn = (results[2, x_range, name].data for name in ("printed", "as-drawn"))
        assert np.array_equal(printed.x, drawn.x)
        np.testing.assert_allclose(drawn.y - drawn.x**3, 3 * (printed.y - printed.x**3), atol=1e-12)


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
        assert report.SCALED * drawn > 150 * sqrt(0.0065)  # 12, wherever x may be
    assert (result.x[0, 0], result.x[-1, 0]) == (-7.5, 7.5)


def test_the_figure_beside_the_reports_has_its_loss_and_its_band(results):
    for number, x_range in enumerate(report.LEVELS, 1):
        result = results[2, x_range, "as-drawn"]
        figure = report._figure_beside(result)
        loss, fit = figure.axes
        assert f"Figure {number}: x in {result.case.interval}" in figure.get_suptitle()
        line, level = loss.get_lines()
        nats = [e.objective / 40 - 0.5 * log(2 * np.pi) for e in result.history]
        np.testing.assert_allclose(line.get_ydata(), nats)
        assert np.array_equal(line.get_xdata(), range(3))
        assert set(level.get_ydata()) == {report.LEVELS[x_range]}
        corners = fit.collections[0].get_paths()[0].vertices
        for side in (0, -1):
            x, mean, sd = (column[side, 0] for column in (result.x, *result.predictive[:2]))
            own = np.unique(corners[corners[:, 0] == x, 1].round(9))
            np.testing.assert_allclose([own[0], own[-1]], [mean - 150 * sd, mean + 150 * sd])


def test_what_is_said_beside_the_figures_follows_from_losses_and_data(results):
    result = results[2, 1.0, "as-drawn"]
    ours = result.history[-1].objective / 40 - 0.5 * log(2 * np.pi)
    x, y = result.data.x[:, 0], result.data.y[:, 0]
    mean, sd = (np.interp(x, result.x[:, 0], m[:, 0]) for m in result.predictive[:2])
    held = [f"{np.mean(np.abs(y - mean) <= k * sd):.0%}" for k in (150, 3)]
    text = re.sub(r"\s+", " ", report.summarise([result]))
    assert f"2 [-1, 1]: the loss ends at {ours:.1f}, the report's at 59.5;" in text
    assert f"holds {held[0]} of the data, without the 50 {held[1]}." in text
    scatter = re.search(r"data differ by ([\d.]+) ", text)
    rng = np.random.default_rng(0)  # two draws of 40 rows, a thousand times
    halves = 0.5 * np.mean((9 * rng.standard_normal((2, 1000, 40))) ** 2, axis=2)
    assert float(scatter[1]) == pytest.approx(np.std(halves[0] - halves[1]), rel=0.1)


def test_trained_on_noise_of_nine_the_loss_ends_near_half_its_square_and_the_price_of_the_weights():
    """81 / 2 + KL / rows: near the report's level, which noise of 3 misses by 36."""
    result = regression.run(2, 1.0, "as-drawn", epochs=10)
    n = len(result.data.x)
    at = report._losses(result)[-1]
    assert abs(at - (81 / 2 + result.history[-1].kl / n)) < 4 * 81 / sqrt(2 * n)
    assert abs(at - report.LEVELS[1.0]) < 3 * 81 / sqrt(n)


def test_every_number_of_every_experiment_is_finite(results):
    for result in results.values():
        numbers = asdict(result.numbers)
        assert all(value is None or isfinite(value) for value in numbers.values())
        assert len(result.history) == QUICK["epochs"]
        for moment in result.predictive:
            assert moment.shape == result.x.shape


def test_the_gradients_of_the_very_models_that_were_trained_are_right(results):
    errors = [result.numbers.gradient_error for result in results.values()]
    assert 0 < max(errors) < 1e-12


def test_a_wrong_gradient_shows_in_the_numbers(monkeypatch):
    """Negative control: the error printed is that of the function that trains."""
    right = regression.Reparameterised.value_and_grad

    def wrong(self, theta, noise, x, y, kl_weight=1.0, buffers=None):
        found = right(self, theta, noise, x, y, kl_weight, buffers)
        found.grad[-1] *= 1.001
        return found

    monkeypatch.setattr(regression.Reparameterised, "value_and_grad", wrong)
    assert regression.run(2, 1.0, rows=10, epochs=1).numbers.gradient_error > 1e-6


def test_same_seed_same_numbers_bit_by_bit_and_other_seed_other_numbers(results):
    first = results[2, 4.0, "should-be"]
    again = regression.run(2, 4.0, "should-be", **QUICK)
    other = regression.run(2, 4.0, "should-be", seed=1, **QUICK)
    assert asdict(again.numbers) == asdict(first.numbers)
    assert np.array_equal(again.theta, first.theta)
    assert np.array_equal(again.predictive.epistemic, first.predictive.epistemic)
    assert asdict(other.numbers) != asdict(first.numbers)


def test_the_free_energy_is_that_of_y_in_its_own_units():
    """Standardising y by its deviation s divides densities by s: log s nats per row more."""
    result = regression.run(2, 4.0, "should-be", **QUICK)
    final = result.history[-1]
    assert final.objective == pytest.approx(final.kl + final.nll)
    y_sd = result.data.y.std()
    # -log N(y; f, sigma) >= log sigma + log(2 pi) / 2, with the learned sigma in units of y;
    # without the shift the bound would be lower by log(y_sd), here more than the slack
    n = result.numbers
    least = log(n.noise_learned) + 0.5 * log(2 * np.pi)
    assert final.nll / len(result.data.x) > least - 0.1
    assert final.nll / len(result.data.x) - log(y_sd) < least - 0.1


def artificial(mean, epistemic, total, x_range=1.0):
    """Measure a made-up prediction of x^3 on the panel of one case."""
    x = np.linspace(-6, 6, 241)[:, None]
    aleatoric = np.sqrt(total(x) ** 2 - epistemic(x) ** 2)
    prediction = Predictive(mean(x), epistemic(x), aleatoric)
    return _inside_and_outside(CASES[2, x_range], x, prediction, x**3)


def test_the_measures_of_a_prediction_that_can_be_worked_out_by_hand():
    found = artificial(
        mean=lambda x: x**3 + 0.5,
        epistemic=lambda x: np.where(np.abs(x) <= 1, 0.2, 0.8),
        total=lambda x: np.full_like(x, 1.0),
    )
    assert found["rmse"] == pytest.approx(0.5)
    assert found["epistemic_inside"] == pytest.approx(0.2)
    assert (found["epistemic_left"], found["epistemic_right"]) == (0.8, 0.8)
    assert found["ratio"] == pytest.approx(4.0)
    assert found["misses"] == pytest.approx(0.5)
    assert found["truth_in_epistemic"] == 0.0  # 0.5 is more than 2 * 0.2
    assert found["truth_in_total"] == 1.0
    assert (found["truth_left"], found["truth_right"]) == (-6.0, 6.0)
    assert found["bend_outside"] == pytest.approx(1.0)
    assert found["bend_panel"] == pytest.approx(1.0)


def test_the_truth_leaves_the_band_where_the_tangent_is_two_deviations_away():
    def mean(x):
        return np.where(x > 1, 3 * x - 2, np.where(x < -1, 3 * x + 2, x**3))

    found = artificial(
        mean=mean,
        epistemic=lambda x: np.full_like(x, 0.1),
        total=lambda x: np.full_like(x, 1.0),
    )
    # x^3 - 3 x + 2 = (x - 1)^2 (x + 2) first exceeds 2 behind x = sqrt(3)
    assert found["truth_right"] == pytest.approx(1.75)
    assert found["truth_left"] == pytest.approx(-1.75)
    assert found["bend_outside"] == pytest.approx(0.0, abs=1e-12)
    x = np.linspace(-6, 6, 241)
    bends = [np.std(f - np.polyval(np.polyfit(x, f, 1), x)) for f in (mean(x), x**3)]
    assert found["bend_panel"] == pytest.approx(bends[0] / bends[1])
    assert found["rmse"] == 0.0
    assert found["misses"] == pytest.approx(6**3 - 16)


def test_coverage_of_unit_noise_around_data_of_deviation_3_is_what_the_gaussian_says(results):
    """P(|3 z| < 1.96) = erf(1.96 / (3 sqrt 2)) = 0.486 for the flat untrained fit on [-1, 1]."""
    n = results[2, 1.0, "printed"].numbers
    spread = sqrt(3.0**2 + n.truth_sd**2)
    expected = erf(1.96 / (spread * sqrt(2)))
    assert abs(n.coverage - expected) < 4 * sqrt(expected * (1 - expected) / 2000)
    assert abs(n.noise_true - 3.0) < 4 * 3.0 / sqrt(2 * 2000)


def test_per_example_sgd_leaves_sigma_on_its_way_without_data():
    """The report's bands: sigma_0 exp(learning rate * epochs), whatever the data are."""
    for rows in (10, 40):
        n = regression.run(2, 1.0, "printed", rows=rows, epochs=30).numbers
        assert n.sigma_law == pytest.approx(n.sigma_start * exp(1e-3 * 30))
        assert n.sigma_end == pytest.approx(n.sigma_law, rel=2e-3)
        assert n.sigma_end != pytest.approx(n.sigma_start, rel=1e-2)


def test_as_it_should_be_problem_1_is_learned():
    n = regression.run(1, setting="should-be", rows=300, epochs=300).numbers
    assert n.rmse < 0.3 * n.truth_sd
    assert n.ratio > 2
    assert n.noise_learned < 2 * n.noise_true


def test_files_are_written_and_the_json_has_the_numbers(tmp_path, results):
    out = tmp_path / "new" / "folder"
    found = report.run_all(2, 1.0, out=out, **QUICK)
    part = "-problem2-range1"
    settings = ("printed", "as-drawn", "should-be")
    figures = {f"epistemic{part}.png", *(f"{part[1:]}-{name}.png" for name in settings)}
    written = {f"report{part}.txt", f"numbers{part}.json"}  # those of all cases stay as they are
    assert {path.name for path in out.iterdir()} == figures | written
    for name in figures:
        check_picture(out / name, 400, 5)
    rows = json.loads((out / f"numbers{part}.json").read_text(encoding="utf-8"))
    titles = ["as printed", "as drawn", "as it should be"]
    assert [row["setting"] for row in rows] == titles
    for row, result in zip(rows, found, strict=True):
        assert row | asdict(result.numbers) == row
        assert (row["problem"], row["x_range"], row["rows"], row["epochs"]) == (2, 1.0, 40, 3)
    assert (out / f"report{part}.txt").read_text(encoding="utf-8") == report.summarise(found) + "\n"
    key = (2, 1.0, "printed")
    assert asdict(found[0].numbers) == asdict(results[key].numbers)


def test_the_tables_show_the_numbers(results):
    some = list(results.values())
    text = report.summarise(some)
    assert max(map(len, text.splitlines())) <= 100
    rows = [line for line in text.splitlines() if re.match(r"[12] \[.*\]  +(as|lit)", line)]
    assert len(rows) == 2 * len(some)
    for result, inside, outside in zip(some, rows[:12], rows[12:], strict=True):
        n = result.numbers
        for row in (inside, outside):
            assert row.startswith(f"{result.case.problem} {result.case.interval} ")
            assert f" {result.setting.title} " in row
        for number in (f"{n.rmse:.3g}", f"{n.noise_learned:.3g}", f"{n.coverage:.1%}"):
            assert number in inside.split()
        for number in (f"{n.ratio:.1f}", f"{n.misses:.1f}", f"{n.epistemic_right:.2g}"):
            assert number in outside.split()
    worst = max(result.numbers.gradient_error for result in some)
    assert f"all 12 trained models: {worst:.1e}" in text


def test_the_opening_says_what_was_found_in_three_sentences_from_the_numbers(results):
    some = list(results.values())
    text = report.opening(some)
    assert report.summarise(some).startswith(text)
    assert max(map(len, text.splitlines())) <= 100
    first, found = (re.sub(r"\s+", " ", part) for part in text.split("\n\n"))
    assert "Kebude's report" in first
    assert len(re.findall(r"\.(?: [A-Z]|$)", found)) == 4  # three, and the count of the claims
    for setting in SETTINGS.values():
        own = [r.numbers for r in some if r.setting == setting]
        for values, form in (
            ([n.coverage for n in own], ".1%"),
            ([n.ratio for n in own], ".1f"),
            ([n.misses for n in own], ".1f"),
            ([n.sigma_end for n in own], ".2g"),
        ):
            ends = dict.fromkeys(format(value, form) for value in (min(values), max(values)))
            assert f"{' to '.join(ends)} {setting.title}" in found


@pytest.mark.parametrize("ends", [(5, 4, 3), (5, 7, 20)])
def test_the_opening_counts_the_claims_that_hold(results, ends):
    some = cubics(results, ends)
    held = report.summarise(some).count(": holds.")
    assert f"Section 8 hold: {held} of 4 as it should be." in report.opening(some)
    assert "Section 8" not in report.opening(some[:2])


def test_the_opening_counts_the_runs_whose_sigma_no_data_have_moved(results):
    drifted = with_numbers(results[2, 1.0, "printed"], sigma_end=0.0074, sigma_law=0.0074)
    learned = with_numbers(results[2, 1.0, "printed"], sigma_end=0.1, sigma_law=0.0074)
    text = re.sub(r"\s+", " ", report.opening([drifted, learned]))
    assert "in 1 of 2 runs it is where learning rate and epochs alone take it" in text


def test_the_band_is_that_of_the_example_in_plain(tmp_path):
    text = report.band(tmp_path / "band.png")
    check_picture(tmp_path / "band.png", 400, 5)
    assert text.endswith(f"picture: {tmp_path / 'band.png'}")
    said = {row[0].split()[0]: row[1:] for row in (re.split(r"  +", r) for r in text.splitlines())}
    shown = re.findall(r"\[ *([\d. ]+),\s+([\d. ]+),", plain.__doc__)  # mean, epistemic
    assert len(shown) == 4
    for x, (mean, epistemic) in zip("0246", shown, strict=True):
        place = said["x"].index(f"{float(x):.2f}")
        assert float(said["mean"][place]) == pytest.approx(float(mean), abs=0.02)
        assert float(said["epistemic"][place]) == pytest.approx(float(epistemic), rel=0.1, abs=0.01)
        assert float(said["truth"][place]) == float(x) ** 2


def test_the_command_prints_the_opening_and_last_the_band_and_all_verdicts_only_when_asked(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(report, "run_all", partial(report.run_all, **QUICK))
    typed = ["report", "--problem", "2", "--range", "1", "--out", str(tmp_path)]
    assert main(typed) == 0
    brief = capsys.readouterr().out
    assert main([*typed, "--details"]) == 0
    whole = capsys.readouterr().out
    for text in (brief, whole):
        assert text.startswith("Bayes by Backprop on the problems of Kebude's report")
        assert text.endswith(f"picture: {tmp_path / 'band.png'}\n")
    assert "--details" in brief
    assert len(brief.splitlines()) < 25 < len(whole.splitlines())
    assert "is too narrow" in whole
    assert "is too narrow" not in brief
    stored = (tmp_path / "report-problem2-range1.txt").read_text(encoding="utf-8")
    assert stored in whole


def with_numbers(result, **numbers):
    return replace(result, numbers=replace(result.numbers, **numbers))


def cubics(results, ends, setting="should-be"):
    """Three results, widest range first, whose deviation at the ends is as given."""
    return [
        with_numbers(
            results[2, x_range, setting],
            epistemic_left=end,
            epistemic_right=end,
            epistemic_inside=1.0,
            ratio=end,
            bend_panel=bend,
        )
        for x_range, end, bend in zip((4.0, 2.5, 1.0), ends, (0.5, 0.1, 0.01), strict=True)
    ]


@pytest.mark.parametrize(
    ("ends", "wider", "smaller", "belief"),
    [((5, 4, 3), True, True, True), ((5, 7, 20), True, False, False), ((5, 4, 0.5), 0, 1, 1)],
)
def test_each_claim_of_section_8_is_judged_by_its_numbers(results, ends, wider, smaller, belief):
    text = re.sub(r"\s+", " ", report.summarise(cubics(results, ends)))
    for claim, true in (
        ("wider where there is no data", wider),
        ("a smaller increase beyond", smaller),
        ("the belief in its correctness", belief),
        ("the linearity of the fit increases", True),
    ):
        sentence = re.search(rf"'{claim}.*?: (holds|DOES NOT HOLD)\.", text)
        assert sentence is not None
        assert (sentence[1] == "holds") == bool(true)


def test_the_claims_are_left_out_when_a_range_is_missing(results):
    two = cubics(results, (5, 4, 3))[:2]
    assert "where there is no data" not in report.summarise(two)
    assert "where there is no data" in report.summarise(cubics(results, (5, 4, 3)))


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ({"sigma_end": 0.0074, "sigma_law": 0.0074}, "in 1 of 1 runs it is where learning rate"),
        ({"coverage": 0.48}, "too narrow: of fresh y it holds 48.0%"),
        ({"coverage": 0.99}, "too wide: of fresh y it holds 99.0%"),
        ({"rmse": 0.17, "truth_sd": 0.165}, "the curve is not learned"),
        ({"noise_learned": 3.5, "noise_true": 3.0}, "3.5 is above the true 3:"),
    ],
)
def test_a_failure_is_said_when_the_numbers_show_it_and_only_then(results, numbers, sentence):
    good = {
        "sigma_end": 0.1,
        "sigma_law": None,
        "coverage": 0.95,
        "rmse": 0.01,
        "truth_sd": 1.0,
        "noise_learned": 3.0,
        "noise_true": 3.0,
    }
    result = results[1, 0.5, "should-be"]
    silent = report.summarise([with_numbers(result, **good)])
    loud = report.summarise([with_numbers(result, **(good | numbers))])
    assert sentence not in re.sub(r"\s+", " ", silent)
    assert sentence in re.sub(r"\s+", " ", loud)


def test_a_lone_range_or_problem_is_chosen_by_default():
    assert regression.run(**QUICK).case == CASES[2, 4.0]
    assert regression.run(1, **QUICK).case == CASES[1, 0.5]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"problem": 3}, "must be one of 2 with 4, 2 with 2.5, 2 with 1, 1 with 0.5; got 3"),
        ({"problem": 2, "x_range": 3.0}, "got 2, 3.0"),
        ({"x_range": inf}, "got 2, inf"),
        ({"setting": "better"}, r"one of 'printed', .*; got 'better'"),
        (
            {"problem": 1, "setting": "as-drawn"},
            "'as-drawn' has the ranges .* of problem 2; got 0.5",
        ),
        ({"x_range": 1.0, "setting": "literal"}, r"'literal' has the ranges \(4.0,\) .*; got 1"),
    ],
)
def test_an_unknown_experiment_is_refused_and_the_known_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        regression.run(**wrong)


def test_a_choice_that_fits_no_experiment_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match="no experiment with problem=1, x_range=4"):
        report.run_all(1, 4.0, out=tmp_path / "report")
    assert not (tmp_path / "report").exists()
