"""The command line, typed as a newcomer would: rightly and wrongly."""

import csv
import io
import itertools
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from bbb_numpy import NUTS, GaussianPrior, Reparameterised, __version__, combinations, load
from bbb_numpy.cli.main import COMMANDS, main
from bbb_numpy.model.objectives import TERMS
from exactgrad.gradcheck import TOLERANCES

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
    assert main(["gradcheck", "--layers", "2", "3", "2", "--samples", "2", "--batch", "3"]) == 0
    out = capsys.readouterr().out
    parts = "MeanField / GaussianPrior / GaussianLikelihood / Reparameterised / FreeEnergy / relu"
    assert f"\nevery gradient of {parts} passes\nnot looked at: other posteriors, priors" in out
    assert out.endswith("bbb-numpy gradcheck --all does, for one activation\n")
    assert all(block in out for block in ("mu", "rho", "log_noise"))
    assert all(term in out for term in ("posterior", "prior", "likelihood", "free energy"))
    assert float(re.search(r"largest complex error (\S+)", out)[1]) <= 1e-12


@pytest.mark.equation("K21", "K30")
def test_gradcheck_plain_checks_the_report_on_one_screen(capsys):
    typed = ["gradcheck", "--plain", "--layers", "2", "3", "1", "--rho", "-25"]
    assert main(typed) == 0
    out = capsys.readouterr().out
    assert "layers 2-3-1, relu, 13 weights, 4 samples, 6 rows, KL weight 0.25" in out
    for method in TOLERANCES:
        assert re.search(rf"plain +{method} +mu +13 .*\nplain +{method} +rho +13 ", out)
    assert "every gradient of plain.py passes" in out


def few_combinations():
    return [
        combinations.Combination(posterior, prior, "gaussian-learned", estimator, objective)
        for posterior, prior, estimator, objective in (
            ("mean-field", "gaussian-learned", "reparameterised", "elbo"),
            ("full-rank", "gaussian", "sticking-the-landing", "elbo"),
            ("mean-field", "laplace", "flipout", "elbo"),  # refused
        )
    ]


@pytest.mark.parametrize("method", [[], ["--method", "both", "--max-coordinates", "5"]])
def test_gradcheck_all_prints_the_matrix_and_why_the_rest_is_refused(method, capsys, monkeypatch):
    monkeypatch.setattr(combinations, "combinations", few_combinations)
    assert main(["gradcheck", "--all", *method]) == 0
    out = capsys.readouterr().out
    assert "2 valid combinations, largest complex error" in out
    assert "1 combinations are refused" in out
    assert "Flipout needs KL(q || prior) in closed form" in out
    assert ("central differences" in out or "largest central error" in out) is bool(method)
    assert "every gradient passes, of networks with relu; not looked at: other activations" in out


def test_the_former_name_of_an_option_works_with_a_warning(capsys):
    assert main(["gradcheck", "--layers", "2", "3", "1", "--most", "2"]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"free energy +central +mu +2 ", out)
    assert "--most is now --max-coordinates" in err


@pytest.mark.equation("D44")
@pytest.mark.parametrize("options", [["--activation", "tanh"], ["--plain"]])
def test_gradcheck_exact_proves_every_term(options, capsys):
    assert main(["gradcheck", "--exact", "--layers", "2", "3", "1", *options]) == 0
    out = capsys.readouterr().out
    name = "plain.py" if "--plain" in options else "MeanField / .* / tanh"
    assert re.search(f"\nevery gradient of {name} is proved\nnot looked at: ", out)
    assert "bbb-numpy gradcheck --exact --all does" in out
    assert all(term in out for term in (["plain"] if "--plain" in options else TERMS))


def test_gradcheck_exact_all_counts_what_is_proved(capsys, monkeypatch):
    monkeypatch.setattr(combinations, "combinations", few_combinations)
    assert main(["gradcheck", "--exact", "--all"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"mean-field +reparameterised +elbo +1 +1\n", out)
    assert "1 combinations are refused" in out
    assert "\n2 of 2 proved, of networks with relu; not looked at: other activations" in out
    original_add_vjp = GaussianPrior.add_vjp
    monkeypatch.setattr(GaussianPrior, "add_vjp", lambda self, saved, c, *rest: original_add_vjp(
        self, saved, 2 * c, *rest
    ))  # fmt: skip
    assert main(["gradcheck", "--exact", "--all"]) == 1
    out, err = capsys.readouterr()
    first = "mean-field / gaussian-learned / gaussian-learned / reparameterised / elbo"
    assert out.startswith(f"{first}\nrefuted"), "at once, and the second is not tried"
    assert re.search("by hand .*\n(  .*\n)*the first that is not proved ends this run\n\n", out)
    assert "\n0 of 2 proved" in out
    assert "0/2" in err, "a bar, though this is no terminal"


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ("fit d.csv --seed -1", "--seed: must be a whole number >= 0; got '-1'"),
        ("fit d.csv --seed x", "--seed: must be a whole number >= 0; got 'x'"),
        ("fit d.csv --prior laplace --prior-scale 1", "not allowed with argument --prior"),
        ("fit x.csv price", "unrecognized arguments: price"),
        ("gradcheck --samples 0", "--samples: must be a whole number >= 1; got '0'"),
        ("gradcheck --noise-scale -1", "--noise-scale: must be a number > 0; got '-1'"),
        ("gradcheck --rho x", "--rho: invalid float value: 'x'"),
        ("gradcheck --plain --all", "--all: not allowed with argument --plain"),
        ("predict m d.csv --interval 1", "--interval: must be a number between 0 and 1; got '1'"),
        ("predict m d.csv --separator ab", "--separator: invalid choice: 'ab'"),
        ("predict new.csv --model m.npz", "usage: bbb-numpy predict MODEL DATA"),
        ("predict a b --model c", "predict: error: unrecognized arguments: --model"),
        ("train", "invalid choice: 'train'"),
    ],
)
def test_a_wrong_argument_is_named_with_what_is_accepted(typed, complaint, capsys):
    with pytest.raises(SystemExit) as error:
        main(typed.split())
    assert error.value.code == 2
    assert complaint in capsys.readouterr().err


HEAVY = "arviz dask matplotlib numpy.testing pandas scipy sklearn"
HELP = f"""
import signal, sys
before = signal.getsignal(signal.SIGINT)
from bbb_numpy.cli.main import COMMANDS, main
for arguments in ["--version"], ["--help"], *([name, "--help"] for name in COMMANDS):
    try:
        main(arguments)
    except SystemExit:
        print(*arguments, "loads", *sorted(set({HEAVY.split()}) & set(sys.modules)))
assert signal.getsignal(signal.SIGINT) is before, "a handler of signals at import"
"""


def test_help_lists_every_command_each_has_its_own_and_none_waits_for_what_only_a_run_needs():
    run = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    loaded = re.findall(r"^(.*) loads(.*)$", run.stdout, re.MULTILINE)
    expected = ["--version", "--help", *(f"{name} --help" for name in COMMANDS)]
    assert loaded == [(arguments, "") for arguments in expected]
    version, listed, *helps = re.split(" loads\n", run.stdout)
    assert f"bbb-numpy {__version__}" in version
    assert re.findall(r"^    (\S+)(?: |$)", listed, re.MULTILINE)[:5] == list(COMMANDS)
    for command, text in zip(COMMANDS, helps, strict=False):
        assert text.startswith(f"usage: bbb-numpy {command} ")


def test_without_a_command_python_m_prints_the_help():
    run = subprocess.run([sys.executable, "-m", "bbb_numpy"], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (2, "")
    assert "usage: bbb-numpy [-h] [--version] [--plugin FILE] COMMAND" in run.stderr


TRAINED = ["--epochs", "50", "--batch-size", "60"]  # one draw of noise an epoch
SAMPLED = ["--inference", "nuts", "--draws", "50", "--warm-up", "10", "--chains", "2"]
SAMPLED += ["--start", "prior", "--hidden", "3"]


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("options", "call", "older"),
    [(TRAINED, 1, b"older"), (TRAINED, 25, None), (SAMPLED, 25, b"older")],
)
def test_ctrl_c_during_fit_stores_what_it_says_it_holds_beside_an_older_model(
    options, call, older, data, tmp_path, capsys, monkeypatch
):
    def pressed(function, calls):
        def press(*args, **kwargs):
            if next(calls) == call:
                raise KeyboardInterrupt
            return function(*args, **kwargs)

        return press

    for owner, name in ((Reparameterised, "fill"), (NUTS, "step")):
        monkeypatch.setattr(owner, name, pressed(getattr(owner, name), itertools.count(1)))
    # every draw is taken over at once
    monkeypatch.setattr("bbb_numpy.sampling.run.POLL_INTERVAL_S", 0.0)
    monkeypatch.chdir(tmp_path)
    model, unfinished = tmp_path / "m.npz", tmp_path / "m-unfinished.npz"
    if older:
        model.write_bytes(older)
    assert main(["fit", str(data), "--target", "price", "--model", "m.npz", *options]) == 130
    warning, *_, stored = capsys.readouterr().err.splitlines()
    assert "interrupted by user after" in warning
    assert unfinished.exists() is (call > 1 and older is not None)
    if older:
        assert model.read_bytes() == older
    if call == 1:
        assert stored == "no epoch was finished; nothing is stored in m.npz"
        return
    remark = "; m.npz is unchanged" if older else ""
    name = unfinished.name if older else model.name
    assert stored == f"the unfinished fit is stored in {name}{remark}"
    assert 0 < load(name).n_iter_ < 50
    assert main(["predict", name, str(data)]) == 0


def test_ctrl_c_while_it_waits_for_its_input_is_one_line(monkeypatch, capsys):
    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", type("Waiting", (), {"buffer": property(pressed)})())
    assert main(["fit", "-", "--target", "y"]) == 130
    assert capsys.readouterr().err == "bbb-numpy: interrupted\n"


def test_what_fit_prints_and_predict_writes_are_the_numbers_of_the_stored_model(
    data, tmp_path, capsys
):
    path, out = tmp_path / "m.npz", tmp_path / "p.csv"
    fit(data, path)
    printed = capsys.readouterr().out
    main(["predict", str(path), str(data), "--output", str(out)])
    model, table = load(str(path)), pd.read_csv(data, dtype=str).astype(float)
    inputs = table[["size", "age"]]
    assert "60 rows, 2 inputs, target price" in printed
    assert (
        "\n  numbers          size, age\nmethod             mean-field, by default: an argument"
        in printed
    )
    assert f"noise sd           {model.noise_scale_[0]:.6g} (units of price)" in printed
    expected = model.predict_distribution(inputs)
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    for name in ("mean", "epistemic", "aleatoric", "total"):
        assert [float(row[name]) for row in rows] == getattr(expected, name).tolist()


def test_every_option_of_fit_reaches_the_model_and_a_picture_is_drawn(data, tmp_path):
    path, picture = tmp_path / "m.npz", tmp_path / "fit.png"
    options = "--hidden 4 3 --activation tanh --batch-size 20 --samples 2 --learning-rate 0.02"
    other_options = [
        "--prior-scale",
        "0.7",
        "--seed",
        "5",
        "--inputs",
        "size",
        "--plot",
        str(picture),
    ]
    assert fit(data, path, *options.split(), *other_options) == 0
    model = load(str(path))
    assert tuple(model.hidden_layer_sizes) == (4, 3)
    assert (model.activation, model.batch_size, model.samples) == ("tanh", 20, 2)
    assert (model.optimizer.learning_rate, model.prior.scale) == (0.02, 0.7)
    assert (model.epochs, model.random_state) == (60, 5)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "options",
    [
        "--prior mixture-learned --estimator antithetic --samples 2",
        "--inference map",
        "--likelihood heteroscedastic --objective iwae --samples 3",
    ],
)
def test_parts_are_chosen_by_name(options, data, tmp_path, capsys):
    assert fit(data, tmp_path / "m.npz", *options.split()) == 0
    assert "stored in" in capsys.readouterr().out


def test_a_reader_who_leaves_early_is_no_error(monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert (
        main(["gradcheck", "--layers", "1", "1", "--method", "complex", "--max-coordinates", "1"])
        == 0
    )
