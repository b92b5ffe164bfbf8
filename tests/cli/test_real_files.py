"""fit and predict on tables as people have them: text, gaps, classes, counts, decimal commas."""

import csv
import io

import numpy as np
import pandas as pd
import pytest

from bbb_numpy import (
    BayesianMLPClassifier,
    BayesianMLPRegressor,
    Conformal,
    Recalibrated,
    load,
    save,
)
from bbb_numpy.cli.main import main
from bbb_numpy.learners.columns import Column

# fits as short as these need not converge
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
COLOURS = {"blau": 0.0, "grün": -9.0, "rot": 20.0}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in a folder of its own, see how it ends; return its output and errors."""
    monkeypatch.chdir(tmp_path)

    def command(*words, ends=0):
        assert main([str(word) for word in words]) == ends
        return capsys.readouterr()

    return command


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def house_rows(count=60):
    rng = np.random.default_rng(1)
    for _ in range(count):
        size, colour = rng.uniform(20, 200), str(rng.choice(list(COLOURS)))
        price = 10 * size + 100 * COLOURS[colour] + 30 * rng.standard_normal()
        yield f"{size:.1f}".replace(".", ","), colour, f"{price:.2f}".replace(".", ",")


@pytest.fixture
def houses(tmp_path):
    """A German table: semicolons, decimal commas, a column of text."""
    lines = ["größe;farbe;preis", *(";".join(row) for row in house_rows())]
    return written(tmp_path / "haus.csv", "\n".join(lines).encode("utf-16"))


def flowers(tmp_path, count=60, names=("small", "large")):
    rng = np.random.default_rng(2)
    lines = ["width,height,kind"]
    for _ in range(count):
        width, height = rng.uniform(0, 1, 2)
        lines.append(f"{width},{height},{names[int(width + height > 1)]}")
    return written(tmp_path / "flowers.csv", "\n".join(lines))


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


SHORT = ("--epochs", 40)


def test_the_model_file_predicts_the_same_table_in_python(run, houses, tmp_path):
    out, err = run("fit", houses, "--target", "preis", "--decimal", ",", *SHORT)
    assert "60 rows, 2 inputs as 4 features, target preis: regression" in out
    assert "haus.csv is read with columns separated by ';'" in err
    model = load("model.npz")
    assert model.columns_ == (Column("größe"), Column("farbe", ("blau", "grün", "rot")))
    new = written(tmp_path / "new.csv", "farbe,größe,id\nrot,100,7\nblau,100,08\n")
    out, _ = run("predict", "model.npz", new, "--keep", "id", "farbe")
    means = [float(row["mean"]) for row in rows(out)]
    assert [(row["id"], row["farbe"]) for row in rows(out)] == [("7", "rot"), ("08", "blau")]
    frame = pd.read_csv(new)
    assert means == model.predict(frame).tolist()
    assert means[0] > means[1]
    train = pd.read_csv(houses, sep=";", decimal=",", encoding="utf-16")
    assert model.score(train, train["preis"]) == pytest.approx(
        model.score(model_features(train), train["preis"])
    )
    with pytest.raises(ValueError, match=r"no column 'größe'; did you mean 'Größe'\?"):
        model.predict(frame.rename(columns={"größe": "Größe"}))
    with pytest.raises(ValueError, match="row 1, column 'farbe': 'lila' must be one"):
        model.predict(frame.assign(farbe=["rot", "lila"]))
    with pytest.raises(ValueError, match="row 0, column 'größe': a value is missing"):
        model.predict(frame.assign(größe=[None, 2.0]))


def model_features(frame):
    """The features as somebody would make them by hand."""
    hot = {f"farbe={colour}": 1.0 * (frame["farbe"] == colour) for colour in COLOURS}
    return pd.DataFrame({"größe": frame["größe"], **hot})


@pytest.mark.filterwarnings("default:column:UserWarning")
def test_an_unknown_category_is_refused_or_all_zero_with_a_warning(run, houses, tmp_path):
    run("fit", houses, "--target", "preis", "--decimal", ",", *SHORT)
    new = written(tmp_path / "new.csv", "größe,farbe\n100,rot\n100,lila\n")
    _, err = run("predict", "model.npz", new, ends=2)
    assert "new.csv, line 3, column 'farbe': 'lila' must be one of the categories" in err
    out, err = run("predict", "model.npz", new, "--unknown", "ignore")
    assert "column 'farbe': 1 cells hold categories that no training row has, such as" in err
    with pytest.warns(UserWarning, match="feature names"):
        zero = load("model.npz").predict(np.array([[100.0, 0.0, 0.0, 0.0]]))
    assert float(rows(out)[1]["mean"]) == zero[0]


def test_dates_are_days_and_numbers_can_be_labels(run, tmp_path):
    text = "zip,day,y\n" + "10115,2024-01-01,1\n80331,2024-01-02 12:00,3\n" * 9
    data = written(tmp_path / "d.csv", text)
    options = ("fit", data, "--target", "y", *SHORT)
    _, err = run(*options, ends=2)
    assert "column 'day': '2024-01-01', like all cells of the column, is a date or a time" in err
    assert "--dates day" in err
    assert "--leave-out" in err
    run(*options, "--dates", "day", "--categories", "zip")
    model = load("model.npz")
    assert model.columns_ == (Column("zip", ("10115", "80331")), Column("day", date=True))
    assert model.x_mean_[-1] == pytest.approx(19723 + 0.75)  # days since 1970-01-01
    frame = pd.read_csv(data, dtype={"zip": str})
    typed = frame.assign(
        zip=frame["zip"].astype(float), day=pd.to_datetime(frame["day"], format="ISO8601")
    )
    assert model.predict(frame).tolist() == model.predict(typed).tolist()
    written(data, text.replace("80331,2024-01-02 12:00", "80331,2.1.2024", 1))
    _, err = run("predict", "model.npz", data, ends=2)
    assert "line 3, column 'day': '2.1.2024' is not a date such as 2024-12-31" in err


def dated(days):
    return "day,y\n" + "".join(f"{day},{k}\n" for k, day in enumerate(days))


@pytest.mark.parametrize(
    ("days", "order"),
    [
        (["1/31/2024", "2/1/2024 12:00", "12/31/99"], "mdy"),
        (["31.1.2024", "1.2.2024 12:00", "31.12.99"], "dmy"),
    ],
)
def test_dates_of_other_orders_are_days_and_predict_knows_the_order(days, order, run, tmp_path):
    data = written(tmp_path / "d.csv", dated(days))
    _, err = run("fit", data, "--target", "y", *SHORT, ends=2)
    assert "--dates day converts dates to days" in err
    run("fit", data, "--target", "y", "--dates", "day", *SHORT)
    model = load("model.npz")
    assert model.columns_ == (Column("day", date=True, order=order),)
    assert model.x_mean_[0] == pytest.approx((19753 + 19754.5 + 10956) / 3)  # days since 1970
    first = written(tmp_path / "n.csv", "day\n" + ("2/1" if order == "mdy" else "1/2") + "/2024\n")
    predicted = rows(run("predict", "model.npz", first).out)
    year_first = written(tmp_path / "n.csv", "day\n2024-02-01\n")
    assert predicted == rows(run("predict", "model.npz", year_first).out)


def test_dates_that_do_not_tell_their_order_are_asked_for_it(run, tmp_path):
    data = written(tmp_path / "d.csv", dated(["1/2/2024", "1/3/2024", "1/4/2024"]))
    options = ("fit", data, "--target", "y", "--dates", "day", *SHORT)
    _, err = run(*options, ends=2)
    assert "line 2, column 'day': the column does not show whether the month or the day" in err
    for order, days in (("mdy", [19724, 19725, 19726]), ("dmy", [19754, 19783, 19814])):
        assert f"{'or ' if order == 'dmy' else '--date-order '}{order}" in err
        run(*options, "--date-order", order)
        assert load("model.npz").x_mean_[0] == pytest.approx(np.mean(days), abs=1.5)


def test_times_are_not_told_to_be_dates(run, tmp_path):
    data = written(tmp_path / "d.csv", "at,a,y\n12:30,1,1\n13:30,2,2\n14:45,3,3\n")
    _, err = run("fit", data, "--target", "y", *SHORT, ends=2)
    assert "'12:30', like all cells of the column, is a time of the day" in err
    assert "--dates" not in err
    run("fit", data, "--target", "y", "--leave-out", "at", *SHORT)


@pytest.mark.parametrize("cell", ["None", "-999", "-"])
def test_cells_that_stand_for_missing_values_can_be_named(cell, run, tmp_path):
    text = f"a,b,y\n1,2,1\n{cell},3,2\n3,{cell},3\n4,5,{cell}\n5,6,5\n6,6,6\n"
    data = written(tmp_path / "d.csv", text)
    options = ("fit", data, "--target", "y", *SHORT)
    if cell != "-999":
        _, err = run(*options, ends=2)
        assert f"line 3, column 'a': {cell!r} is not a number" in err
        sign = "=" if cell == "-" else " "
        assert f"--missing{sign}{cell} if it stands for a missing value" in err
    _, err = run(*options, "--missing", cell, ends=2)
    assert "line 3, column 'a': a value is missing" in err
    out, _ = run(*options, f"--missing={cell}", "--drop-missing")
    assert "3 rows, 2 inputs, target" in out
    same = "-999.0" if cell == "-999" else cell
    new = written(tmp_path / "n.csv", f"a,b\n1,{same}\n1,2\n")
    out, _ = run("predict", "model.npz", new, f"--missing={cell}", "--drop-missing")
    assert rows(out)[0]["mean"] == "" != rows(out)[1]["mean"]


def test_an_identifier_and_a_column_twice_get_a_notice_with_what_to_type(run, tmp_path):
    lines = (f"{1000 + k},{k % 3},{k % 3},{k % 5}" for k in range(20))
    data = written(tmp_path / "d.csv", "\n".join(["my id,a,b,y", *lines]))
    _, err = run("fit", data, "--target", "y", *SHORT)
    assert (
        "'my id' counts the rows, as an identifier does; to leave it out: --leave-out 'my id'"
        in (err)
    )
    assert "columns 'a' and 'b' are equal; to leave it out: --leave-out b" in err
    out, err = run("fit", data, "--target", "y", "--leave-out", "my id", "b", *SHORT)
    assert err == ""
    assert "20 rows, 1 input, target" in out


def test_the_row_numbers_of_pandas_are_left_out_by_fit_and_by_predict(run, tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "y": [1.0, 2, 3, 5]})
    frame.to_csv(tmp_path / "d.csv")
    out, err = run("fit", "d.csv", "--target", "y", *SHORT)
    assert "4 rows, 1 input, target" in out
    assert "the first column has no name and is left out" in err
    means = [float(row["mean"]) for row in rows(run("predict", "model.npz", "d.csv").out)]
    assert means == load("model.npz").predict(frame[["a"]]).tolist()


LIKE_NUMBERS = ["$5", "5 kg", "1.234,5", "1,5", "12 %", "€ 7.50", "1\u00a0234", "-3°", "30 km/h"]
LIKE_NUMBERS += ["5 m2", "US$ 5", "EUR 1.234,50", "5kg"]


@pytest.mark.parametrize("cell", LIKE_NUMBERS)
def test_text_that_looks_like_numbers_is_no_category(cell, run, tmp_path):
    data = written(tmp_path / "d.csv", f"a;y\n{cell};1\n{cell};2\n{cell};3\n")
    _, err = run("fit", data, "--target", "y", *SHORT, ends=2)
    assert f"line 2, column 'a': {cell!r} looks like a number but is not one" in err
    assert all(option in err for option in ("--decimal", "--thousands", "--categories a"))
    run("fit", data, "--target", "y", "--categories", "a", *SHORT)


def test_units_and_currency_beside_numbers_are_left_out_where_that_is_said(run, tmp_path):
    cells = ["$1,234.50", "-$5", "7", "+8 USD", "USD 1", "$ 2.5"]
    lines = [f"{cell};{k}" for k, cell in enumerate(cells)]
    data = written(tmp_path / "d.csv", "\n".join(["a;y", *lines]))
    _, err = run("fit", data, "--target", "y", *SHORT, ends=2)
    assert "name" not in err
    assert "--thousands, or what stands beside them with --strip '$', or read" in err
    words = ("--thousands", ",", "--strip", "$", "USD")
    out, _ = run("fit", data, "--target", "y", *words, *SHORT)
    assert load("model.npz").x_mean_[0] == pytest.approx(np.mean([1234.5, -5, 7, 8, 1, 2.5]))
    assert "--thousands , --strip '$' USD" in out
    run("predict", "model.npz", data, *words)
    written(data, "a;y\n1$2;1\n3;2\n4;3\n")
    _, err = run("fit", data, "--target", "y", *words, *SHORT, ends=2)
    assert "'1$2' is not a number; correct the cell" in err


@pytest.mark.parametrize(
    ("cells", "hint"),
    [
        ("10 20 30 40", "are these classes? --task classification"),
        ("0 1 5 2 7 3 9 4 6 8 12", "are these counts? --task counts"),
        ("101 120 150 208 207 136 198 147 169 187 112", None),
    ],
)
def test_whole_numbers_that_may_be_classes_or_counts_are_asked_for(cells, hint, run, tmp_path):
    lines = [f"{k % 7},{cell}" for k, cell in enumerate(cells.split())]
    data = written(tmp_path / "d.csv", "\n".join(["a,y", *lines]))
    out, _ = run("fit", data, "--target", "y", *SHORT)
    expected = f"regression (the target is a number; {hint})"
    assert (expected if hint else "regression (the target is a number)\n") in out


def test_a_target_that_varies_by_factors_is_told(run, tmp_path):
    a = np.random.default_rng(0).standard_normal(80)
    lines = [f"{x},{np.exp(2 * x)}" for x in a]
    data = written(tmp_path / "d.csv", "\n".join(["a,y", *lines]))
    out, _ = run("fit", data, "--target", "y", *SHORT)
    assert "look at            the target varies by factors rather than by amounts: try" in out
    out, _ = run("fit", data, "--target", "y", "--target-scale", "log", *SHORT)
    assert "varies by factors" not in out


def test_numbers_are_read_as_decimal_and_thousands_say(run, tmp_path):
    data = written(tmp_path / "d.csv", "a;y\n1.234,5;1\n-,25;2\n7;3\n")
    _, err = run("fit", data, "--target", "y", "--decimal", ",", *SHORT, ends=2)
    assert "'1.234,5' is not a number; correct the cell; see --decimal, --th" in err
    german = ("--decimal", ",", "--thousands", ".")
    run("fit", data, "--target", "y", *german, *SHORT)
    assert load("model.npz").x_mean_[0] == pytest.approx(np.mean([1234.5, -0.25, 7]))
    _, err = run("fit", data, "--target", "y", "--decimal", ".", "--thousands", ".", ends=2)
    assert "--decimal and --thousands must be different signs; got '.' for both" in err


def test_missing_inputs_become_the_median_of_fit_and_are_told_if_fit_had_some(run, tmp_path):
    data = written(tmp_path / "d.csv", "a,b,y\n1,x,1\n2,,2\nNA,x,3\n4,z,4\n9,x,5\n")
    run("fit", data, "--target", "y", "--fill", "median", *SHORT)
    assert load("model.npz").columns_ == (
        Column("a", fill=3.0, indicator=True),
        Column("b", ("x", "z"), indicator=True),
    )
    data = written(tmp_path / "d.csv", "a,b,y\n1,x,1\n2,x,3\n4,z,4\n9,x,5\n")
    run("fit", data, "--target", "y", "--fill", "median", *SHORT)
    model = load("model.npz")
    assert model.columns_ == (Column("a", fill=3.0), Column("b", ("x", "z"), fill="x"))
    new = written(tmp_path / "n.csv", "a,b\n?,z\n3,z\n3,\n3,x\n")
    means = [row["mean"] for row in rows(run("predict", "model.npz", new).out)]
    assert means[0] == means[1] != means[2] == means[3]


def test_rows_unlike_those_of_fit_are_told(run, tmp_path):
    lines = "".join(f"{row % 7},{row % 5},{row}\n" for row in range(40))
    run("fit", written(tmp_path / "d.csv", "a,b,y\n" + lines), "--target", "y", *SHORT)
    new = written(tmp_path / "n.csv", "a,b\n3,2\n99,2\n1,1\n-50,1\n")
    _, err = run("predict", "model.npz", new)
    assert "2 of 4 rows (50.0%) are unlike the rows of fit, so that predictions there are" in err
    assert "extrapolated, by column: 'a' 2 (by chance: up to 4.9% of the rows)" in err
    same = written(tmp_path / "s.csv", "a,b\n3,2\n")
    assert "unlike" not in run("predict", "model.npz", same).err


def test_rows_in_which_a_value_is_missing_are_dropped(run, tmp_path):
    data = written(tmp_path / "d.csv", "a,b,y\n1,x,1\n2,y,NA\n,x,3\n4,?,4\n5,y,5\n6,x,6\n")
    out, err = run("fit", data, "--target", "y", *SHORT, "--drop-missing")
    assert "3 of 6 rows are left out" in err
    assert "3 rows, 2 inputs" in out


def test_predictions_stay_beside_their_rows_when_a_value_is_missing(run, tmp_path):
    data = written(tmp_path / "d.csv", "a,y\n1,1\n2,2\n3,3\n4,5\n")
    run("fit", data, "--target", "y", *SHORT)
    gaps = written(tmp_path / "g.csv", "a\n2\nNA\n4\n")
    _, err = run("predict", "model.npz", gaps, ends=2)
    assert "g.csv, line 3, column 'a': a value is missing; fill it in" in err
    out, err = run("predict", "model.npz", gaps, "--drop-missing")
    assert "1 of 3 rows are left out: a value is missing" in err
    means = [row["mean"] for row in rows(out)]
    assert means[1] == ""
    complete = written(tmp_path / "w.csv", "a\n2\n4\n")
    out, _ = run("predict", "model.npz", complete)
    assert means[::2] == [row["mean"] for row in rows(out)]


def test_a_target_of_text_is_classes_and_each_has_its_probability(run, tmp_path):
    data = flowers(tmp_path)
    out, _ = run("fit", data, "--target", "kind", *SHORT)
    assert "target kind: classification (the target is text)" in out
    assert "classes            large, small" in out
    model = load("model.npz")
    assert isinstance(model, BayesianMLPClassifier)
    assert (model.epochs, model.samples, model.hidden_layer_sizes) == (40, None, None)
    out, _ = run("predict", "model.npz", data)
    predictions = rows(out)
    assert list(predictions[0]) == [
        *("prediction", "probability_large", "probability_small", "epistemic", "entropy")
    ]
    for row in predictions:
        large, small = float(row["probability_large"]), float(row["probability_small"])
        assert large + small == pytest.approx(1.0)
        assert row["prediction"] == ("large" if large >= small else "small")
    truth = np.array([row["kind"] for row in rows(data.read_text())])
    assert np.mean(truth == [row["prediction"] for row in predictions]) > 0.8


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ((), BayesianMLPRegressor, "regression (the target is a number; are these classes? --task"),
        (("--task", "regression"), BayesianMLPRegressor, "regression\n"),
        (("--task", "classification"), BayesianMLPClassifier, "classification\n"),
        (("--task", "counts"), BayesianMLPRegressor, "counts\n"),
        (("--likelihood", "poisson"), BayesianMLPRegressor, "counts (the likelihood is poisson)"),
        (("--likelihood", "bernoulli"), BayesianMLPClassifier, "classification (the likelihood"),
    ],
)
def test_the_task_of_a_target_of_numbers_is_said_and_can_be_chosen(
    options, kind, said, run, tmp_path
):
    data = flowers(tmp_path, names=("0", "1"))
    out, _ = run("fit", data, "--target", "kind", *SHORT, *options)
    assert f"target kind: {said}" in out
    model = load("model.npz")
    assert type(model) is kind
    if kind is BayesianMLPClassifier:
        assert model.classes_.tolist() == [0, 1]
    if "counts" in said:
        assert model.likelihood == "poisson"


def test_an_interval_adds_its_ends_and_class_weights_reach_the_model(run, tmp_path):
    data = written(tmp_path / "d.csv", "a,y\n1,1\n2,2\n3,3\n4,5\n")
    run("fit", data, "--target", "y", *SHORT)
    out, _ = run("predict", "model.npz", data, "--interval", "0.8")
    ends = load("model.npz").predict_interval(pd.read_csv(data)[["a"]], 0.8)
    assert [[float(row["lower"]), float(row["upper"])] for row in rows(out)] == ends.tolist()
    options = ("--class-weight", "balanced", *SHORT)
    run("fit", flowers(tmp_path), "--target", "kind", *options)
    assert load("model.npz").class_weight == "balanced"


def test_a_calibration_in_a_file_predicts_as_in_python(run, houses):
    table_words = (houses, "--decimal", ",")
    run("fit", *table_words, "--target", "preis", *SHORT)
    frame = pd.read_csv(houses, sep=";", decimal=",", encoding="utf-16")

    def predicted(file, *words):
        out, _ = run("predict", file, *table_words, *words)
        columns = pd.read_csv(io.StringIO(out), dtype=str)
        return {name: [float(text) for text in cells] for name, cells in columns.items()}

    conformal = Conformal(load("model.npz"), 0.8).calibrate(frame, frame.preis)
    save(conformal, "conformal.npz")
    low, high = conformal.predict_interval(frame).T.tolist()
    mean = conformal.predict(frame).tolist()
    for words in [(), ("--interval", "0.8")]:
        assert predicted("conformal.npz", *words) == {"mean": mean, "lower": low, "upper": high}
    _, err = run("predict", "conformal.npz", *table_words, "--interval", "0.9", ends=2)
    assert "conformal.npz has intervals of the coverage 0.8; leave --interval out" in err

    factor = Recalibrated(conformal.estimator).calibrate(frame, frame.preis)
    save(factor, "factor.npz")
    mean, sd = (numbers.tolist() for numbers in factor.predict(frame, return_std=True))
    low, high = factor.predict_interval(frame, 0.5).T.tolist()
    assert predicted("factor.npz") == {"mean": mean, "total": sd}
    expected = {"mean": mean, "total": sd, "lower": low, "upper": high}
    assert predicted("factor.npz", "--interval", "0.5") == expected
    _, err = run("predict", "factor.npz", *table_words, "--plot", "p.png", ends=2)
    assert "a model that is not calibrated; factor.npz is" in err


def test_sets_of_classes_in_a_file_are_columns(run, tmp_path):
    data = flowers(tmp_path)
    run("fit", data, "--target", "kind", *SHORT)
    frame = pd.read_csv(data)
    model = Conformal(load("model.npz"), 0.8).calibrate(frame, frame.kind)
    save(model, "sets.npz")
    out, _ = run("predict", "sets.npz", data)
    table = pd.read_csv(io.StringIO(out), dtype=str)
    assert list(table) == [
        *("prediction", "probability_large", "probability_small", "in_set_large", "in_set_small")
    ]
    assert table.prediction.tolist() == model.predict(frame).tolist()
    proba = table.filter(like="probability").astype(float)
    assert (proba == model.predict_proba(frame)).all(axis=None)
    assert (table.filter(like="in_set") == model.predict_set(frame).astype(str)).all(axis=None)


def test_a_price_is_modelled_on_the_log_scale_and_printed_in_its_own_units(run, tmp_path):
    data = written(tmp_path / "d.csv", "a,price\n1,10\n2,20\n3,45\n4,80\n")
    out, _ = run("fit", data, "--target", "price", "--target-scale", "log", *SHORT)
    model = load("model.npz")
    assert f"{model.noise_scale_[0]:.6g} (of log price)" in out
    assert model.target_ == "log"
    out, _ = run("predict", "model.npz", data, "--interval", "0.99")
    assert all(float(row["lower"]) > 0 for row in rows(out))
    data = written(tmp_path / "e.csv", "a,price\n1,10\n2,-20\n3,45\n4,80\n")
    _, err = run("fit", data, "--target", "price", "--target-scale", "log", *SHORT, ends=2)
    assert "target='log' needs y > 0, whose logarithm is modelled; got -20 at" in err
    options = ("--task", "counts", "--target-scale", "log")
    _, err = run("fit", data, "--target", "a", *options, ends=2)
    assert "--target-scale is for numbers, not for counts" in err
