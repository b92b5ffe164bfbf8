"""The command line, typed as a newcomer would: rightly and wrongly."""

import csv
import errno
import io
import os
import re
import subprocess
import sys
import types
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from bbb_numpy import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    MeanField,
    Reparameterised,
    __version__,
    plain,
    save,
)
from bbb_numpy.cli import gradcheck as checking
from bbb_numpy.cli.csv_tables import read_csv
from bbb_numpy.cli.main import COMMANDS, main
from bbb_numpy.gradcheck import BARS
from bbb_numpy.gradients import matrix
from bbb_numpy.learners.checkpoint import load
from bbb_numpy.model.objectives import TERMS
from bbb_numpy.parts.mixture import ScaleMixturePrior
from bbb_studies.cli import reproduce as repeating

pytestmark = pytest.mark.brief


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (60, 2))
    y = x[:, 0] - 2 * x[:, 1] + 0.1 * rng.standard_normal(60)
    path = tmp_path / "data.csv"
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([["size", "age", "price"], *np.column_stack([x, y]).tolist()])
    return path


def fit(data, model, *options):
    return main(
        ["fit", str(data), "--target", "price", "--model", str(model), "--epochs", "60", *options]
    )


@pytest.mark.equation("K21", "K30")
def test_gradcheck_prints_the_table_and_every_gradient_passes(capsys):
    layers = ["--layers", "3", "7", "5", "2"]
    assert main(["gradcheck", *layers, "--samples", "4", "--batch", "6"]) == 0
    out = capsys.readouterr().out
    one = "MeanField / GaussianPrior / GaussianLikelihood / Reparameterised / FreeEnergy / relu"
    assert f"\nevery gradient of {one} passes\nnot looked at: other posteriors, priors" in out
    assert out.endswith("bbb-numpy gradcheck --all does, for one activation\n")
    assert all(block in out for block in ("mu", "rho", "log_noise"))
    assert all(term in out for term in ("posterior", "prior", "likelihood", "free energy"))
    largest = re.search(r"largest complex error (\S+)", out)
    assert float(largest[1]) <= 1e-12


def test_gradcheck_exits_with_one_and_names_the_term_when_a_formula_is_wrong(capsys, monkeypatch):
    true_pull_back = MeanField.pull_back

    def plus_one_over_sigma(self, sample, d_w, d_log_q, d_theta):
        wrong = 2 * d_log_q.sum() * sample.parts.ratio
        true_pull_back(self, sample, d_w, d_log_q, d_theta)
        d_theta["rho"] += wrong

    monkeypatch.setattr(MeanField, "pull_back", plus_one_over_sigma)
    assert main(["gradcheck", "--layers", "1", "3", "1", "--method", "complex"]) == 1
    out = capsys.readouterr().out
    assert "FAILED: posterior (complex), free energy (complex)" in out
    assert "<- above 1e-12" in out


@pytest.mark.parametrize(
    "options",
    [["--activation", "tanh"], ["--activation", "gelu"], ["--fixed-noise"], ["--rho", "-40"]],
)
def test_gradcheck_takes_any_architecture(options, capsys):
    assert main(["gradcheck", "--layers", "2", "1", "--method", "complex", *options]) == 0
    assert ("log_noise" in capsys.readouterr().out) is ("--fixed-noise" not in options)


@pytest.mark.equation("K21", "K30")
def test_gradcheck_plain_checks_the_report_on_one_screen_and_names_what_is_wrong(
    capsys, monkeypatch
):
    options = ["--plain", "--layers", "2", "3", "1", "--rho", "-25", "--kl-weight", "0.1"]
    assert main(["gradcheck", *options]) == 0
    out = capsys.readouterr().out
    assert "layers 2-3-1, relu, 13 weights, 4 samples, 6 rows, KL weight 0.1" in out
    for method in BARS:
        assert re.search(rf"plain +{method} +mu +13 .*\nplain +{method} +rho +13 ", out)
    assert "every gradient of plain.py passes" in out

    def one_per_cent_off(*problem):
        value, grad = value_and_grad(*problem)
        grad[3] *= 1.01
        return value, grad

    value_and_grad = plain.value_and_grad
    monkeypatch.setattr(plain, "value_and_grad", one_per_cent_off)
    assert main(["gradcheck", *options, "--method", "complex"]) == 1
    out = capsys.readouterr().out
    assert "FAILED: plain (complex)" in out
    assert "mu W0[1, 0]" in out


@pytest.mark.parametrize("other", [["--all"], ["--activation", "tanh"]])
def test_gradcheck_plain_refuses_what_plain_has_not(other, capsys):
    assert main(["gradcheck", "--plain", *other]) == 2
    assert "leave out --all, --activation" in capsys.readouterr().err


def few_combinations():
    return [
        matrix.Combination(posterior, prior, "gaussian-learned", estimator, objective)
        for posterior, prior, estimator, objective in (
            ("mean-field", "mixture-learned", "reparameterised", "elbo"),
            ("full-rank", "gaussian", "sticking-the-landing", "elbo"),
            ("mean-field", "laplace", "flipout", "elbo"),  # refused
        )
    ]


@pytest.mark.parametrize("method", [[], ["--method", "both", "--most", "5"]])
def test_gradcheck_all_prints_the_matrix_and_why_the_rest_is_refused(method, capsys, monkeypatch):
    monkeypatch.setattr(matrix, "combinations", few_combinations)
    assert main(["gradcheck", "--all", *method]) == 0
    out = capsys.readouterr().out
    assert "2 valid combinations, largest complex error" in out
    assert "1 combinations are refused" in out
    assert "Flipout needs KL(q || prior) in closed form" in out
    assert ("central differences" in out or "largest central error" in out) is bool(method)
    assert "every gradient passes, of networks with relu; not looked at: other activations" in out


def test_gradcheck_all_names_the_combination_with_a_wrong_formula(capsys, monkeypatch):
    monkeypatch.setattr(matrix, "combinations", few_combinations)
    right = ScaleMixturePrior.add_vjp

    def forgets_the_prior(self, saved, cotangent, d_w, d_params):
        right(self, saved, 0 * cotangent, d_w, d_params)

    monkeypatch.setattr(ScaleMixturePrior, "add_vjp", forgets_the_prior)
    assert main(["gradcheck", "--all"]) == 1
    out = capsys.readouterr().out
    assert "FAILED: mean-field / mixture-learned / gaussian-learned / reparameterised / elbo" in out
    assert "FAILED: 1 checks" in out


@pytest.mark.equation("D44")
@pytest.mark.parametrize(
    "options", [[], ["--plain"], ["--activation", "tanh", "--rho", "3"], ["--activation", "gelu"]]
)
def test_gradcheck_exact_proves_every_term(options, capsys):
    assert main(["gradcheck", "--exact", "--layers", "2", "3", "1", *options]) == 0
    out = capsys.readouterr().out
    name = "plain.py" if "--plain" in options else "MeanField / .* / (relu|tanh|gelu)"
    assert re.search(f"\nevery gradient of {name} is proved\nnot looked at: ", out)
    assert "bbb-numpy gradcheck --exact --all does" in out
    assert all(term in out for term in (["plain"] if "--plain" in options else TERMS))


def test_gradcheck_exact_names_the_coordinate_that_is_a_millionth_off(capsys, monkeypatch):
    right = MeanField.pull_back

    def off(self, sample, d_w, d_log_q, d_theta):
        right(self, sample, d_w, d_log_q, d_theta)
        d_theta["rho"][2] = d_theta["rho"][2] * (1 + 2.0**-20)

    monkeypatch.setattr(MeanField, "pull_back", off)
    assert main(["gradcheck", "--exact", "--layers", "2", "3", "1"]) == 1
    out = capsys.readouterr().out
    assert "refuted: 1 of" in out
    assert "rho W0[0, 2]: by hand" in out
    assert "NOT PROVED" in out


def test_gradcheck_exact_all_counts_what_is_proved(capsys, monkeypatch):
    monkeypatch.setattr(matrix, "combinations", few_combinations)
    assert main(["gradcheck", "--exact", "--all"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"mean-field +reparameterised +elbo +1 +1\n", out)
    assert "1 combinations are refused" in out
    assert "\n2 of 2 proved, of networks with relu; not looked at: other activations" in out
    right = ScaleMixturePrior.add_vjp
    monkeypatch.setattr(ScaleMixturePrior, "add_vjp", lambda self, saved, c, *rest: right(
        self, saved, 2 * c, *rest
    ))  # fmt: skip
    assert main(["gradcheck", "--exact", "--all"]) == 1
    out, err = capsys.readouterr()
    first = "mean-field / mixture-learned / gaussian-learned / reparameterised / elbo"
    assert out.startswith(f"{first}\nrefuted"), "at once, and the second is not tried"
    assert re.search("by hand .*\nthe first that is not proved ends this run\n\n", out)
    assert "\n0 of 2 proved" in out
    assert "0/2" in err, "a bar, though this is no terminal"


@pytest.mark.parametrize("other", [["--method", "complex"], ["--most", "3"]])
def test_gradcheck_exact_refuses_what_is_for_checks(other, capsys):
    assert main(["gradcheck", "--exact", *other]) == 2
    assert "leave out --method, --most" in capsys.readouterr().err


def test_a_check_that_skips_too_much_does_not_pass(capsys):
    # 2000 rows and 4 samples through a ReLU unit: of 8000 sums, deviation about 1, some 5 are
    # within 2 * 3e-4 of its kink, which no step but the smallest leaves where they are
    many = ["--layers", "1", "3", "1", "--batch", "2000"]
    assert main(["gradcheck", *many, "--method", "central"]) == 1
    out = capsys.readouterr().out
    assert "TOO FEW COORDINATES: central" in out
    assert "FAILED" not in out


@pytest.mark.parametrize("scale", ["30", "1000"])
def test_a_wide_prior_does_not_fail_a_right_gradient(scale, capsys):
    assert main(["gradcheck", "--prior-scale", scale, "--most", "20"]) == 0


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        (["report", "--seed", "-1"], "argument --seed: must be a whole number >= 0; got -1"),
        (["report", "--seed", "x"], "argument --seed: must be a whole number >= 0; got 'x'"),
        (["gradcheck", "--samples", "0"], "--samples: must be a whole number >= 1; got 0"),
        (["gradcheck", "--rho", "x"], "--rho: invalid float value: 'x'"),
        (["reproduce", "keras"], "invalid choice: 'keras'"),
    ],
)
def test_a_wrong_argument_is_named_with_what_is_accepted(typed, complaint, capsys):
    with pytest.raises(SystemExit) as error:
        main(typed)
    assert error.value.code == 2
    assert complaint in capsys.readouterr().err


def test_a_strange_option_is_refused_with_the_usage_of_the_command_that_was_typed(capsys):
    with pytest.raises(SystemExit) as error:
        main(["predict", "new.csv", "old.csv", "--model", "m.npz"])
    assert error.value.code == 2
    said = capsys.readouterr().err
    assert "usage: bbb-numpy predict MODEL DATA [options]" in said
    assert "bbb-numpy predict: error: unrecognized arguments: --model m.npz" in said


def test_reproduce_writes_text_and_says_where(tmp_path, capsys, monkeypatch):
    module = types.SimpleNamespace(reproduce=lambda out, seed: f"seed {seed}")
    monkeypatch.setattr(repeating, "import_module", lambda name: module)
    out = tmp_path / "there"
    assert main(["reproduce", "krasser", "--seed", "3", "--out", str(out)]) == 0
    said = "seed 3\n\nThis is the full run; there is no shorter one.\n"
    assert (out / "krasser.txt").read_text() == said
    assert f"{said}pictures" in capsys.readouterr().out


def test_reproduce_says_whether_it_was_the_short_or_the_full_run(tmp_path, capsys, monkeypatch):
    module = types.SimpleNamespace(
        reproduce=lambda out, seed, repeats=1: f"{repeats} times, seed {seed}",
        full=lambda seed: {"seed": seed, "repeats": 9},
    )
    monkeypatch.setattr(repeating, "import_module", lambda name: module)
    monkeypatch.chdir(tmp_path)
    for options, folder, said in (
        ([], "powerball", "1 times, seed 4\n\nThis is the short run; --full: two cross-"),
        (["--full"], "powerball-full", "9 times, seed 4\n\nThis is the full run (--full): two"),
    ):
        assert main(["reproduce", "powerball", "--seed", "4", *options]) == 0
        assert capsys.readouterr().out.startswith(said)
        assert (tmp_path / "reproduced" / folder / "powerball.txt").read_text().startswith(said)


def test_a_text_that_is_read_again_does_not_grow(tmp_path, capsys, monkeypatch):
    path = tmp_path / "bandit.txt"
    module = types.SimpleNamespace(
        reproduce=lambda out, seed: path.read_text().removesuffix("\n") if path.exists() else "a"
    )
    monkeypatch.setattr(repeating, "import_module", lambda name: module)
    for _ in range(2):
        assert main(["reproduce", "bandit", "--out", str(tmp_path)]) == 0
        assert path.read_text().startswith("a\n\nThis is the short run")
        assert path.read_text().count("This is") == 1


ONE_THREAD = """
import sys, types
from bbb_studies.cli import reproduce as repeating
from bbb_numpy.cli.main import main

def reproduce(out, seed):
    import scipy.linalg, threadpoolctl  # a BLAS of its own, loaded late
    blas = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    return str([pool["num_threads"] for pool in blas])

repeating.import_module = lambda name: types.SimpleNamespace(reproduce=reproduce)
main(["reproduce", sys.argv[1], "--out", sys.argv[2]])
"""


@pytest.mark.parametrize("name", ["krasser", "mnist"])
def test_small_networks_are_reproduced_on_one_blas_thread(name, tmp_path):
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", ONE_THREAD, name, str(tmp_path)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    threads = set(re.findall(r"\d+", done.stdout.splitlines()[0]))
    assert threads == {str(min(2, os.cpu_count())) if name == "mnist" else "1"}


def test_the_environment_is_as_it_was_after_an_experiment(tmp_path, monkeypatch):
    module = types.SimpleNamespace(reproduce=lambda out, seed: os.environ["MKL_NUM_THREADS"])
    monkeypatch.setattr(repeating, "import_module", lambda name: module)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    assert main(["reproduce", "krasser", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "krasser.txt").read_text().startswith("1\n")
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ


def test_every_experiment_of_the_command_line_is_there():
    for study in repeating.STUDIES.values():
        assert callable(import_module(f"bbb_studies.{study.module}").reproduce)


def test_help_shows_no_none(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    assert "None" not in capsys.readouterr().out


def test_the_help_of_report_explains_every_setting_and_says_what_else_is_run(capsys):
    with pytest.raises(SystemExit):
        main(["report", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert all(f"{name}: " in text for name in repeating.SETTINGS)
    assert "plain.py" in text
    assert "--seed SEED of the data, the start and the noise (default: 0)" in text


def subcommands(text):
    """Return the names that a --help lists."""
    return re.findall(r"^    (\S+)(?: |$)", text, re.MULTILINE)


def test_without_a_command_all_of_them_are_listed(capsys):
    assert main([]) == 2
    assert subcommands(capsys.readouterr().err) == list(COMMANDS)


def test_a_file_that_is_not_there_is_named_without_a_number_of_the_system(capsys):
    assert main(["predict", "none.npz", "data.csv"]) == 2
    assert capsys.readouterr().err == "bbb-numpy predict: none.npz: No such file or directory\n"


def test_help_lists_every_command_and_each_has_its_own(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert subcommands(capsys.readouterr().out) == list(COMMANDS)
    for command in COMMANDS:
        with pytest.raises(SystemExit) as end:
            main([command, "--help"])
        assert end.value.code == 0
        assert capsys.readouterr().out.startswith(f"usage: bbb-numpy {command} ")


HEAVY = "arviz dask matplotlib numpy.testing pandas scipy sklearn"
HELP = f"""
import sys
from bbb_numpy.cli.main import COMMANDS, main
for arguments in ["--version"], ["--help"], *([name, "--help"] for name in COMMANDS):
    try:
        main(arguments)
    except SystemExit:
        print(*arguments, "loads", *sorted(set({HEAVY.split()}) & set(sys.modules)))
"""


def test_no_help_waits_for_what_only_a_run_needs():
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    found = re.findall(r"^(.*) loads(.*)$", done.stdout, re.MULTILINE)
    expected = ["--version", "--help", *(f"{name} --help" for name in COMMANDS)]
    assert found == [(arguments, "") for arguments in expected]


def test_fit_then_predict_writes_mean_and_deviations_for_every_row(data, tmp_path, capsys):
    model, out = tmp_path / "m.npz", tmp_path / "p.csv"
    assert fit(data, model) == 0
    printed = capsys.readouterr().out
    assert "60 rows, 2 inputs (size, age), target price" in printed
    assert main(["predict", str(model), str(data), "--output", str(out)]) == 0
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 60
    for row in rows:
        epistemic, aleatoric, total = (float(row[k]) for k in ("epistemic", "aleatoric", "total"))
        assert total == pytest.approx(np.hypot(epistemic, aleatoric))
    with open(data, newline="") as file:
        prices = [float(row["price"]) for row in csv.DictReader(file)]
    means = [float(row["mean"]) for row in rows]
    assert np.corrcoef(means, prices)[0, 1] > 0.95


def test_the_order_of_the_columns_and_extra_ones_do_not_matter(data, tmp_path, capsys):
    model, shuffled = tmp_path / "m.npz", tmp_path / "s.csv"
    fit(data, model)
    capsys.readouterr()
    with open(data, newline="") as file:
        rows = list(csv.DictReader(file))
    with open(shuffled, "w", newline="") as file:
        writer = csv.DictWriter(file, ["name", "age", "price", "size"])
        writer.writeheader()
        writer.writerows({**row, "name": "text"} for row in rows)
    outputs = []
    for path in (data, shuffled):
        assert main(["predict", str(model), str(path)]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


def test_a_picture_is_drawn_for_one_input_column_and_refused_for_two(data, tmp_path, capsys):
    picture = tmp_path / "fit.png"
    assert fit(data, tmp_path / "m.npz", "--plot", str(picture)) == 2
    assert "--plot draws one input column; there are 2 (size, age)" in capsys.readouterr().err
    assert not picture.exists()
    assert not (tmp_path / "m.npz").exists()
    assert fit(data, tmp_path / "m.npz", "--inputs", "size", "--plot", str(picture)) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["fit", "DATA", "--target", "cost"], "no column 'cost'; it has 'size', 'age', 'price'"),
        (["fit", "DATA", "--target", "price", "--inputs", "price"], "cannot be one of the inputs"),
        (["fit", "DATA", "--target", "price", "--inputs", "rooms"], "no column 'rooms'"),
        (["fit", "none.csv", "--target", "price"], "cannot read none.csv"),
        (["predict", "none.npz", "DATA"], "none.npz"),
        (["predict", "DATA", "DATA"], "data.csv"),
        (["gradcheck", "--layers", "3"], "sizes must be at least two whole numbers"),
    ],
)
def test_wrong_input_is_one_line_on_standard_error_and_exit_code_two(
    argv, message, data, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    assert main([str(data) if word == "DATA" else word for word in argv]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    "argv",
    [
        ["gradcheck", "--samples", "0"],
        ["gradcheck", "--noise-scale", "-1"],
        ["fit", "x.csv", "--target", "y", "--batch-size", "0"],
        ["fit", "x.csv"],
        ["train"],
    ],
)
def test_impossible_options_are_refused_by_the_parser(argv, capsys):
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_text_in_a_numeric_column_is_named(data, tmp_path, capsys):
    text = data.read_text().splitlines()
    text[3] = "1.0,old,2.0"
    data.write_text("\n".join(text))
    assert fit(data, tmp_path / "m.npz") == 2
    assert "data.csv, line 4, column 'age': 'old' is no number" in capsys.readouterr().err


def test_python_m_and_the_version(capsys):
    run = subprocess.run(
        [sys.executable, "-m", "bbb_numpy", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == f"bbb-numpy {__version__}"


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("finished", [0, 2])
def test_ctrl_c_during_fit_never_replaces_an_older_model(
    finished, data, tmp_path, monkeypatch, capsys
):
    model, calls = tmp_path / "m.npz", []
    assert fit(data, model) == 0
    before, right = model.read_bytes(), Reparameterised.fill

    def interrupted(self, rng, noise):
        calls.append(1)
        if len(calls) > 2 * finished:  # 60 rows, 32 a step: two steps an epoch
            raise KeyboardInterrupt
        right(self, rng, noise)

    monkeypatch.setattr(Reparameterised, "fill", interrupted)
    assert fit(data, model) == 130
    said = capsys.readouterr().err
    beside = tmp_path / "m-unfinished.npz"
    assert ("no epoch was finished; nothing is stored" in said) is (finished == 0)
    assert beside.exists() is (finished > 0)
    assert (f"the unfinished fit is stored in {beside}" in said) is (finished > 0)
    assert model.read_bytes() == before


def test_an_output_never_replaces_an_input_or_what_is_no_file(data, tmp_path, capsys):
    before = data.read_bytes()
    assert fit(data, data) == 2
    assert fit(data, tmp_path) == 2
    assert data.read_bytes() == before
    assert "would replace another file" in capsys.readouterr().err


def test_a_row_of_empty_cells_is_refused_and_not_dropped(data, tmp_path, capsys):
    fit(data, tmp_path / "m.npz")
    data.write_text("size,age\n1,2\n,\n3,4\n")
    assert main(["predict", str(tmp_path / "m.npz"), str(data)]) == 2
    assert "line 3, column 'size': the cell is empty" in capsys.readouterr().err


def test_a_column_named_twice_and_a_picture_of_unknown_kind_are_refused_before_any_work(
    data, tmp_path, capsys
):
    model = tmp_path / "m.npz"
    assert fit(data, model, "--inputs", "size", "size") == 2
    assert "--inputs names size more than once" in capsys.readouterr().err
    assert fit(data, model, "--inputs", "size", "--plot", str(tmp_path / "a.doc")) == 2
    assert "the ending must be one of" in capsys.readouterr().err
    assert not model.exists()


def test_what_fit_prints_and_predict_writes_are_the_numbers_of_the_stored_model(
    data,
    tmp_path,
    capsys,
):
    path, out = tmp_path / "m.npz", tmp_path / "p.csv"
    fit(data, path)
    printed = capsys.readouterr().out
    main(["predict", str(path), str(data), "--output", str(out)])
    model, table = load(str(path)), read_csv(str(data))
    inputs, prices = table.numbers(["size", "age"]), table.numbers(["price"]).values[:, 0]
    for title, value in (
        ("free energy", model.history_[-1].objective),
        ("noise deviation", model.noise_scale_[0]),
        ("R^2 on these rows", model.score(inputs, prices)),
        ("log density", model.log_predictive_density(inputs, prices).mean()),
    ):
        assert f"{title:<18} {value:12.6g}" in printed
    expected = model.predict_distribution(inputs)
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    for name in ("mean", "epistemic", "aleatoric", "total"):
        assert [float(row[name]) for row in rows] == getattr(expected, name).tolist()


def test_every_option_of_fit_reaches_the_model(data, tmp_path):
    path = tmp_path / "m.npz"
    options = {
        "--hidden": ["4", "3"], "--activation": ["tanh"], "--batch-size": ["20"],
        "--samples": ["2"], "--learning-rate": ["0.02"], "--prior-scale": ["0.7"], "--seed": ["5"],
    }  # fmt: skip
    fit(data, path, *(word for name, values in options.items() for word in (name, *values)))
    model = load(str(path))
    assert tuple(model.hidden_layer_sizes) == (4, 3)
    assert (model.activation, model.batch_size, model.samples) == ("tanh", 20, 2)
    assert (model.optimizer.learning_rate, model.prior.scale) == (0.02, 0.7)
    assert (model.epochs, model.random_state) == (60, 5)


def test_every_option_of_gradcheck_reaches_the_check(monkeypatch, capsys):
    calls, true_check = [], checking.check

    def spy(value_and_grad, theta, **options):
        calls.append((value_and_grad, options))
        return true_check(value_and_grad, theta, **options)

    monkeypatch.setattr(checking, "check", spy)
    argv = "--layers 2 3 1 --samples 3 --batch 5 --activation tanh --prior-scale 0.7"
    more = "--noise-scale 0.3 --kl-weight 0.125 --most 2"
    assert main(["gradcheck", *argv.split(), *more.split()]) == 0
    assert [options["method"] for _, options in calls] == ["complex"] * 4 + ["central"] * 4
    for step, options in calls:
        model, (noise, x, y, kl_weight) = step.value_and_grad.__self__.model, step.given
        assert (model.network.sizes, model.network.activation) == ((2, 3, 1), "tanh")
        assert (model.prior.scale, model.likelihood.scale) == (0.7, 0.3)
        assert (len(noise), x.shape, y.shape) == (3, (5, 2), (5, 1))
        assert (kl_weight, options["most"]) == (0.125, 2)


def test_a_reader_who_leaves_early_is_no_error(monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert main(["gradcheck", "--layers", "1", "1", "--method", "complex", "--most", "1"]) == 0


def test_all_refuses_the_options_of_a_single_architecture(capsys):
    assert main(["gradcheck", "--all", "--layers", "3", "4", "2", "--rho", "3"]) == 2
    assert "leave out --layers, --rho" in capsys.readouterr().err


def test_every_output_has_columns_of_its_own(tmp_path, capsys):
    frame = pd.DataFrame({"a": np.linspace(-1, 1, 30)})
    y = np.stack([frame["a"], -frame["a"]], axis=1)
    save(BayesianMLPRegressor(epochs=2, random_state=0).fit(frame, y), tmp_path / "m.npz")
    frame.to_csv(tmp_path / "d.csv", index=False)
    assert main(["predict", str(tmp_path / "m.npz"), str(tmp_path / "d.csv")]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert list(rows[0])[:4] == ["mean_0", "mean_1", "epistemic_0", "epistemic_1"]
    assert all(np.isfinite(float(value)) for row in rows for value in row.values())


def test_a_model_that_was_fitted_to_an_array_is_sent_to_python(data, tmp_path, capsys):
    x = np.linspace(-1, 1, 20)[:, None]
    save(BayesianMLPClassifier(epochs=2, random_state=0).fit(x, x[:, 0] > 0), tmp_path / "m.npz")
    assert main(["predict", str(tmp_path / "m.npz"), str(data)]) == 2
    assert "was fitted without column names; use it from Python" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--prior", "mixture-learned", "--estimator", "antithetic", "--samples", "2"],
        ["--inference", "full-rank", "--hidden", "3"],
        ["--inference", "map"],
        ["--inference", "mle"],
        ["--likelihood", "heteroscedastic", "--objective", "iwae", "--samples", "3"],
    ],
)
def test_parts_are_chosen_by_name(options, data, tmp_path, capsys):
    assert fit(data, tmp_path / "m.npz", *options) == 0
    assert "stored in" in capsys.readouterr().out


def test_parts_that_do_not_go_together_are_refused_before_any_work(data, tmp_path, capsys):
    model = tmp_path / "m.npz"
    assert fit(data, model, "--prior", "laplace", "--estimator", "flipout") == 2
    assert "Flipout needs KL(q || prior) in closed form" in capsys.readouterr().err
    assert fit(data, model, "--prior", "laplace", "--prior-scale", "1") == 2
    assert "exclude each other" in capsys.readouterr().err
    assert not model.exists()


def test_a_file_in_place_of_the_folder_is_refused(tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    assert main(["reproduce", "krasser", "--out", str(tmp_path / "taken")]) == 2
    assert "is a file; name a folder" in capsys.readouterr().err


@pytest.fixture
def full_disk(monkeypatch):
    """Let the file system refuse what is beyond the first kB of a file."""

    def patch():
        resource = pytest.importorskip("resource")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        for name in ("stdout", "stderr"):  # pytest keeps the true ones in files
            monkeypatch.setattr(sys, name, io.StringIO())
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
        restore.append(lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before))

    restore: list = []
    yield patch
    for each in restore:
        each()


@pytest.mark.parametrize("option", ["--output", "--plot"])
def test_on_a_full_disk_predict_leaves_the_older_file_and_names_it(
    option, data, tmp_path, full_disk
):
    model, out = tmp_path / "m.npz", tmp_path / "out.png"
    assert fit(data, model, "--inputs", "size") == 0
    command = ["predict", str(model), str(data), option, str(out)]
    assert main(command) == 0
    before = out.read_bytes()
    assert len(before) > 1024
    full_disk()
    assert main(command) == 2
    said = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert re.search(rf"^bbb-numpy predict: {re.escape(str(out))}: File too large$", said, re.M)
    assert out.read_bytes() == before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_disk_behind_standard_output_is_said(data, tmp_path):
    model = tmp_path / "m.npz"
    assert fit(data, model) == 0
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "bbb_numpy", "predict", str(model), str(data)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    said = "bbb-numpy predict: standard output: No space left on device"
    assert (run.returncode, run.stderr.splitlines()[0]) == (2, said)


def test_a_study_whose_pictures_find_no_space_names_its_folder(tmp_path, monkeypatch, capsys):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("bbb_studies.mullachery.coin.reproduce", full)
    out = tmp_path / "coin"
    assert main(["reproduce", "coin", "--out", str(out)]) == 2
    assert f"{out}: No space left on device" in capsys.readouterr().err


def test_without_docstrings_the_command_has_its_subcommands_and_arviz_is_refused():
    """`python -OO`: ArviZ adds to docstrings of functions that it calls, and would fail."""
    code = (
        "from bbb_numpy.cli.main import main\n"
        "from bbb_numpy.evaluation.convergence import import_arviz\n"
        "assert main([]) != 2, 'assertions are left out'\n"
        "print(main([]))\n"
        "import_arviz()"
    )
    run = subprocess.run(
        [sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=False
    )
    assert run.stdout == "2\n", run.stderr
    assert all(name in run.stderr for name in COMMANDS)
    assert run.stderr.endswith("ArviZ needs docstrings: run Python without -OO\n")
