"""The study of few rows: its count of targets against a predictive that is exact at any N."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from shortened import Line

from bbb_studies.ours import few_rows
from bbb_studies.ours.few_rows import (
    COVERAGES,
    LAWS,
    Record,
    Settings,
    measure,
    read_records,
    run,
    summarise,
)

ROOT = Path(__file__).resolve().parents[2]
LINES = [name for name, law in LAWS.items() if name.startswith("line")]


class PlugIn(Line):
    """The noise as a point, the weights too: what a bound that is cut short amounts to."""

    def predictive(self, x):
        return stats.norm(super().predictive(x).mean(), self.noise)


def cell(learner, n_rows, data_sets=60):
    records = [
        Record("line", law, n_rows, i, *measure(lambda x, y, _: learner(x, y), law, n_rows, i, 0))
        for law in LINES
        for i in range(data_sets)
    ]
    (found,) = summarise(records)
    return found


@pytest.mark.parametrize("n_rows", [5, 12])
def test_what_is_exact_holds_what_it_promises(n_rows):
    found = cell(Line, n_rows)
    off = [(f.mean - c) / f.error for f, c in zip(found.mean, COVERAGES, strict=True)]
    assert np.abs(off).max() < 3
    assert found.lowest_ratio > 0.9


def test_noise_as_a_point_does_not():
    found = cell(PlugIn, 6, 20)
    assert not found.is_as_promised
    assert found.lowest_ratio < 0.9


def test_standard_errors_are_those_of_the_mean_over_laws():
    rng = np.random.default_rng(0)
    shares = rng.uniform(size=(3, 20, 4))
    records = [
        Record("a", law, 5, i, row.tolist(), 0.0, 1.0)
        for law, sets in zip("xyz", shares, strict=True)
        for i, row in enumerate(sets)
    ]
    (found,) = summarise(records)
    np.testing.assert_allclose([f.mean for f in found.mean], shares.mean(axis=(0, 1)))
    expected = np.sqrt(np.sum(shares.var(axis=1, ddof=1) / 20, axis=0)) / 3
    np.testing.assert_allclose([f.error for f in found.mean], expected)
    assert found.n_data_sets == 20


def test_a_run_goes_on_where_it_ended(tmp_path, monkeypatch):
    fits = []

    def fit(x, y, seed):
        fits.append(len(y))
        return Line(x, y)

    monkeypatch.setitem(few_rows.LEARNERS, "line", fit)
    monkeypatch.setattr(few_rows, "JUDGED", ("line",))
    file = tmp_path / "records.jsonl"
    shorter = run(Settings(3, ("line",), (8,), 1), file, progress=False)
    longer = run(Settings(3, ("line",), (8, 20), 2), file, progress=False)
    assert len(fits) == len(longer) == 4 * len(LAWS)
    assert set(map(str, shorter)) < set(map(str, longer))
    assert {record.law for record in read_records(file)} == set(LAWS)


@pytest.mark.parametrize("law", LAWS)
def test_a_law_is_its_mean_and_noise_around_0(law):
    x, y = LAWS[law].draw(np.random.default_rng(0), 2000)
    assert x.shape == (2000, LAWS[law].d_in)
    assert y.shape == (2000,)
    residual = y - LAWS[law].mean(x)
    assert 0.1 < residual.std() < 1.1
    assert abs(residual.mean()) < 0.1


def test_the_page_has_the_tables_of_the_results():
    """``python -m bbb_studies.ours.few_rows FOLDER`` writes both."""
    cells = few_rows.read_cells(ROOT / "benchmarks/results/few_rows.json")
    page = (ROOT / "docs/few-rows.md").read_text("utf-8")
    assert few_rows.with_tables(page, cells) == page
    assert {cell.n_rows for cell in cells} <= set(few_rows.N_ROWS)
