"""Tables of many columns: each name is looked at a few times, whatever their number."""

import numpy as np
import pandas as pd
import pytest

from bbb_numpy.cli.main import main
from bbb_numpy.learners.columns import Column, encode_columns, get_column

WIDTH = 24
NAMES = [f"column {place}" for place in range(WIDTH)]


@pytest.fixture
def labels_seen(monkeypatch):
    """The labels that loops over the columns of frames have looked at."""
    labels, loop = [], pd.Index.__iter__

    def counted(index):
        for label in loop(index):
            labels.append(label)
            yield label

    monkeypatch.setattr(pd.Index, "__iter__", counted)
    return labels


@pytest.fixture
def frame():
    return pd.DataFrame(np.ones((2, WIDTH)), columns=NAMES)


def test_a_column_is_found_without_looking_at_the_others(frame, labels_seen):
    for name in NAMES:
        assert get_column(frame, name).name == name
    assert not labels_seen


def test_a_table_is_encoded_in_a_few_looks_at_each_name(frame, labels_seen):
    assert list(encode_columns(frame, [Column(name) for name in NAMES]).columns) == NAMES
    assert len(labels_seen) <= 10 * WIDTH


@pytest.mark.slow
@pytest.mark.brief
def test_fit_and_predict_look_at_each_name_a_few_times(tmp_path, labels_seen):
    table, model, out = (str(tmp_path / name) for name in ("t.csv", "m.npz", "o.csv"))
    rows = np.random.default_rng(0).standard_normal((12, WIDTH))
    pd.DataFrame(rows, columns=NAMES).to_csv(table, index=False)
    labels_seen.clear()
    fit = ["fit", table, "--target", NAMES[0], "--model", model, "--epochs", "1", "--hidden", "1"]
    assert main(fit) == 0
    assert main(["predict", model, table, "--output", out, "--keep", *NAMES]) == 0
    assert len(labels_seen) <= 30 * WIDTH  # two fits: of the rows that are not held out, and of all


@pytest.mark.parametrize("columns", [[0, 1, "2"], ["a", "a", "b"]])
def test_labels_that_are_no_text_or_occur_twice_are_found_by_their_text(columns):
    frame = pd.DataFrame([[1, 2, 3]], columns=columns)
    assert [int(get_column(frame, str(name)).iloc[0]) for name in columns] == [
        1 + [*map(str, columns)].index(str(name)) for name in columns
    ]
